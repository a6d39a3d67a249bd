// SPDX-License-Identifier: Apache-2.0
// Measures this machine for the memory plan: the speed of reading the model's file, and the time
// of computing with what was read (neuron/storage.h, docs/MEMORY.md).
#include "neuron/storage.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/size.h"
#include "device/mirror.h"
#include "model/model.h"
#include "neuron/slices.h"
#include "neuron/sparse.h"
#include "session/weights/storage.h"

#include <math.h>
#include <string.h>

enum {
    SEQUENTIAL_DEPTH = ST_SLICES_DEPTH,
    MAX_BYTES = 32 << 20, // of the memory that is read and computed with: larger than most caches
    N_SEQUENTIAL = STINT_STORAGE_BLOCKS,
    N_RANDOM = STINT_STORAGE_BLOCKS * STINT_STORAGE_DEPTHS,
    N_FIGURES = N_SEQUENTIAL + N_RANDOM + 2,
    FEW_NEURONS = 512, // per round: about as many as are predicted in a layer
};
static const uint32_t sequential_blocks[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
static const uint32_t random_blocks[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10};
static const uint32_t random_depths[] = {1, 8, 32, 64};

struct measuring {
    const struct stint_model *model;
    stint_storage_options options;
    stint_storage out;
    uint64_t done;
    double slot; // seconds of a figure
    struct st_arena arena;
    unsigned char *memory; // [MAX_BYTES] on a block
    // A packed linear, one token; NULL where the model has floats or blocks.
    const struct st_linear_op *linear;
    uint8_t *in;
    float *out_rows; // [ST_LINEAR_OP_PARTS, packed rows]
    // Neurons, one token.
    struct st_sparse sparse;
    struct st_neuron_ref *refs; // [FEW_NEURONS]
    uint8_t *x;                 // [k]
    float *y;                   // [k]
};

static void report(struct measuring *m) {
    const stint_storage_options *o = &m->options;
    if (o->progress) o->progress(o->progress_context, "measuring", ++m->done, N_FIGURES);
}

// ---- Reading

static stint_status measure_reading(struct measuring *m, const struct st_reading *reading,
                                    double *per_second) {
    const struct st_checkpoint *c = &m->model->checkpoint;
    struct st_loader_options options = {.files = c->files, .n_files = 1};
    ST_TRY(st_storage_rate(&options, m->out.file_bytes, reading, m->slot, m->memory, per_second,
                           &m->out.direct));
    report(m);
    return STINT_OK;
}

static stint_status measure_storage(struct measuring *m) {
    stint_storage *out = &m->out;
    memcpy(out->sequential_block, sequential_blocks, sizeof sequential_blocks);
    memcpy(out->random_block, random_blocks, sizeof random_blocks);
    memcpy(out->random_depth, random_depths, sizeof random_depths);
    for (size_t b = 0; b < STINT_STORAGE_BLOCKS; b++) {
        struct st_reading r = {sequential_blocks[b], SEQUENTIAL_DEPTH, ST_LOADER_THREADS, false};
        ST_TRY(measure_reading(m, &r, &out->sequential_per_second[b]));
    }
    for (size_t d = 0; d < STINT_STORAGE_DEPTHS; d++)
        for (size_t b = 0; b < STINT_STORAGE_BLOCKS; b++) {
            struct st_reading r = {random_blocks[b], random_depths[d], random_depths[d], true};
            ST_TRY(measure_reading(m, &r, &out->random_per_second[d][b]));
        }
    return STINT_OK;
}

// ---- Computing

// The device that computes a linear from slices, with its buffers.
struct dense {
    struct st_device *device;
    struct st_mirror mirror; // of the arena
    struct st_device_weights *weights;
    struct st_graph *graph;
};

// Multiplies with weights at a different address each time, like slices, of as many groups as fit.
// The values of the weights do not matter.
static stint_status run_dense(struct measuring *m, const struct dense *d) {
    size_t group = st_linear_op_group_bytes(m->linear), at = 0;
    uint32_t n_groups = (uint32_t)st_min(st_linear_op_groups(m->linear), MAX_BYTES / group);
    size_t bytes = n_groups * group, row = st_linear_op_rows(m->linear);
    struct st_slice slice;
    struct st_linear_op_part part = {
        .n_groups = n_groups, .slice_groups = n_groups, .slices = &slice};
    struct st_graph_args args = {
        .n_rows = 1, .in = st_mirror_slice(&d->mirror, m->in, 0), .part = &part};
    for (uint32_t i = 0; i < ST_LINEAR_OP_PARTS; i++)
        args.out[i] = st_mirror_slice(&d->mirror, m->out_rows + i * row, row * sizeof(float));
    uint64_t begun = st_now_ns(), now = begun, runs = 0;
    for (; n_groups && now - begun < (uint64_t)(m->slot * 1e9); now = st_now_ns(), runs++) {
        struct st_job *job;
        slice = st_mirror_slice(&d->mirror, m->memory + at, 0);
        at = at + 2 * bytes <= MAX_BYTES ? at + bytes : 0;
        ST_TRY(st_device_submit(d->graph, &args, NULL, 0, &job));
        ST_TRY(st_job_join(job, NULL));
    }
    m->out.dense_bytes_per_second = (double)(runs * bytes) * 1e9 / (double)st_max(1, now - begun);
    return STINT_OK;
}

static stint_status open_dense(struct measuring *m, struct st_pool *pool, struct dense *d) {
    struct st_device_subgraph subgraph = {
        .linear_ops = {*m->linear}, .n_linear_ops = 1, .in_parts = true};
    struct st_device_options options = {.name = m->options.device, .workers = pool};
    ST_TRY(st_device_open(&options, &d->device));
    if (!st_device_caps(d->device)->host_memory) { // then the host computes what is streamed
        st_device_close(d->device);
        d->device = NULL;
        options.name = "cpu";
        ST_TRY(st_device_open(&options, &d->device));
    }
    ST_TRY(st_mirror_open(d->device, m->arena.base, m->arena.used, &d->mirror));
    ST_TRY(st_device_import_weights(d->device, &m->linear->weight, true, &d->weights));
    return st_device_compile(d->device, &subgraph, &d->weights, 1, &d->graph);
}

static stint_status measure_packed(struct measuring *m, struct st_pool *pool) {
    struct dense d = {0};
    stint_status status = open_dense(m, pool, &d);
    if (status == STINT_OK) status = run_dense(m, &d);
    st_device_free_graph(d.graph);
    st_device_free_weights(d.weights);
    st_mirror_close(&d.mirror);
    st_device_close(d.device);
    return status;
}

static stint_status measure_dense(struct measuring *m, struct st_pool *pool) {
    stint_status status = m->linear ? measure_packed(m, pool)
                                    : st_storage_rows(m->model, pool, m->memory, MAX_BYTES, m->slot,
                                                      &m->out.dense_bytes_per_second);
    report(m);
    return status;
}

// Takes as many bundles of the first layer as fit.
static stint_status read_bundles(struct measuring *m, size_t *n_entries) {
    const struct st_neuron_layout *l = &m->model->neurons.layout;
    const struct st_checkpoint *c = &m->model->checkpoint;
    struct st_loader_options options = {.files = c->files, .n_files = 1, .n_threads = 1};
    struct st_loader *loader;
    *n_entries = st_min(MAX_BYTES / l->entry_bytes, l->n_entries);
    struct st_load load = {.offset = (uint64_t)(m->model->neurons.layers[0].bundles -
                                                (const unsigned char *)c->maps->data),
                           .bytes = *n_entries * l->entry_bytes,
                           .to = m->memory};
    ST_TRY(st_loader_open(&options, &loader));
    st_loader_prefetch(loader, &load);
    stint_status status = st_loader_wait(loader, &load);
    st_loader_close(loader);
    return status;
}

// Computes some of them, from this entry on.
static size_t fill_refs(const struct measuring *m, size_t entry, size_t n_entries) {
    const struct st_neuron_layout *l = &m->sparse.layout;
    const int32_t *order = m->model->neurons.layers[0].order;
    size_t n = 0;
    for (size_t i = entry * l->per_entry; n < FEW_NEURONS; i++, n++) {
        if (i >= l->n || i >= n_entries * l->per_entry) break;
        const unsigned char *bundles = m->memory + i / l->per_entry * l->entry_bytes;
        m->refs[n] = (struct st_neuron_ref){bundles + i % l->per_entry * l->bundle_bytes,
                                            (uint32_t)order[i]};
    }
    return n;
}

static stint_status measure_neurons(struct measuring *m, struct st_pool *pool) {
    struct st_sparse *s = &m->sparse;
    atomic_size_t clipped = 0;
    size_t n_entries, entry = 0, step = st_max(1, FEW_NEURONS / s->layout.per_entry);
    ST_TRY(read_bundles(m, &n_entries));
    s->up = &m->model->int8.layers[0].ffn->up;
    s->down = &m->model->int8.layers[0].ffn->down;
    s->clipped = &clipped;
    // A pseudo-random input, for which some neurons are active.
    for (size_t i = 0; i < ST_TWO_TERMS * s->layout.k; i++)
        m->x[i] = (uint8_t)(128 - 32 + i * 37 % 65);
    uint64_t begun = st_now_ns(), now = begun, computed = 0;
    for (; now - begun < (uint64_t)(m->slot * 1e9); now = st_now_ns()) {
        size_t n = fill_refs(m, entry, n_entries);
        entry = entry + step < n_entries ? entry + step : 0;
        st_sparse_begin(s, m->x, s->layout.k, 128, 1);
        st_sparse_add(s, pool, m->refs, n);
        st_sparse_end(s, pool, m->y, s->layout.k);
        computed += n;
    }
    m->out.neuron_seconds = (double)(now - begun) * 1e-9 / (double)st_max(1, computed);
    report(m);
    return STINT_OK;
}

// As a session times its processors when it opens.
static stint_status measure_processors(struct measuring *m) {
    const stint_session_options *given = m->options.session;
    stint_session_options o = {0};
    stint_memory_info info = {.size = sizeof info};
    stint_session *s = NULL;
    if (!given || !m->model->neurons.layers) return STINT_OK;
    memcpy(&o, given, st_min(given->size, sizeof o));
    if (o.npu_hot < 0.0f || !(o.device || o.npu_threads || o.cpu_threads)) return STINT_OK;
    o.npu_hot = 0.0f;
    ST_TRY(stint_session_open(m->model, &o, &s));
    stint_status status = stint_session_memory(s, &info);
    stint_session_close(s);
    m->out.npu_block_seconds = info.npu_block_seconds;
    m->out.npu_neuron_seconds = info.npu_neuron_seconds;
    m->out.cpu_neuron_seconds = info.cpu_neuron_seconds;
    return status;
}

// ---- All measurements

// The larger one of a layer's linears that give floats.
static const struct st_linear_op *select_linear(const struct stint_model *m) {
    const struct st_linear_op *o = &m->int8.layers[0].o, *qkv = &m->int8.layers[0].qkv;
    size_t of_o = st_linear_op_groups(o) * st_linear_op_group_bytes(o);
    return st_linear_op_groups(qkv) * st_linear_op_group_bytes(qkv) > of_o ? qkv : o;
}

static void lay_out(struct measuring *m, struct st_arena *a) {
    unsigned char *memory = ST_TAKE(a, unsigned char, MAX_BYTES + ST_LOAD_BLOCK);
    m->memory = memory ? memory + (-(uintptr_t)memory & (ST_LOAD_BLOCK - 1)) : NULL;
    if (!m->linear) return;
    m->in = ST_TAKE(a, uint8_t, st_quantized_bytes(1, m->linear->weight.n_in, false));
    m->out_rows =
        ST_TAKE(a, float, ST_LINEAR_OP_PARTS *(size_t)m->linear->weight.n_panels *ST_INT8_PANEL);
    if (!m->model->neurons.layers) return;
    m->refs = ST_TAKE(a, struct st_neuron_ref, FEW_NEURONS);
    m->x = ST_TAKE(a, uint8_t, ST_TWO_TERMS * m->sparse.layout.k);
    m->y = ST_TAKE(a, float, m->sparse.layout.k);
    st_sparse_lay_out(&m->sparse, a);
}

static stint_status measure_all(struct measuring *m) {
    uint64_t flags = st_cpu_flags();
    struct st_arena measure = st_arena_measure();
    struct st_pool *pool = NULL;
    ST_TRY(st_pool_open(m->options.n_threads, &pool));
    m->linear = m->model->int8.layers ? select_linear(m->model) : NULL;
    m->sparse = (struct st_sparse){.kernel = st_neuron_select(flags),
                                   .elementwise = st_elementwise_select(flags),
                                   .layout = m->model->neurons.layout,
                                   .n_threads = st_pool_threads(pool)};
    lay_out(m, &measure);
    stint_status status = st_arena_check(&measure, "measuring");
    if (status == STINT_OK) status = st_arena_open(&m->arena, measure.used);
    if (status == STINT_OK) {
        lay_out(m, &m->arena);
        memset(m->memory, 1, MAX_BYTES); // pages exist only after they are written
        status = measure_storage(m);
    }
    if (status == STINT_OK) status = measure_dense(m, pool);
    if (status == STINT_OK && m->model->neurons.layers) status = measure_neurons(m, pool);
    st_pool_close(pool);
    return status;
}

stint_status stint_storage_measure(const stint_model *model, const stint_storage_options *options,
                                   stint_storage *storage) {
    if (!model || !storage || storage->size == 0)
        return st_fail(STINT_E_ARG, "storage->size must be set to sizeof(stint_storage)");
    if (model->checkpoint.n_maps == 0)
        return st_fail(STINT_E_UNSUPPORTED, "random weights are in no file to be measured");
    struct measuring m = {.model = model, .out.size = storage->size};
    if (options) memcpy(&m.options, options, st_min(options->size, sizeof m.options));
    double seconds = m.options.seconds > 0.0 ? fmin(m.options.seconds, 3600.0) : 1.0;
    uint64_t begun = st_now_ns();
    m.slot = seconds / N_FIGURES;
    m.out.file_bytes = model->checkpoint.maps->bytes;
    stint_status status = measure_all(&m);
    st_arena_close(&m.arena);
    if (status == STINT_OK) status = measure_processors(&m);
    if (status != STINT_OK) return status;
    m.out.seconds = (double)(st_now_ns() - begun) * 1e-9;
    memcpy(storage, &m.out, st_min(storage->size, sizeof m.out));
    return STINT_OK;
}
