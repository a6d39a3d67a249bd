// SPDX-License-Identifier: Apache-2.0
#include "session/linear/npu.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/size.h"
#include "device/placement.h"
#include "device/weight_set.h"
#include "session/linear/input_norm.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

enum { N_TERMS = 2 };

static size_t max_blocks(const struct stint_model *m) {
    return st_config_max_blocks(&m->config);
}

// Of a layer: qkv, o, then its feed-forward blocks, and down where that is a unit of its own.
static size_t layer_units(const struct stint_model *m) {
    return ST_INT8_UP + max_blocks(m) + st_config_any_cut(&m->config);
}

// The head comes behind all layers.
static size_t unit_of(const struct stint_session *s, enum st_int8_role role, uint32_t layer,
                      uint32_t expert) {
    if (role == ST_INT8_HEAD) return s->npus.n_units - 1;
    size_t first = layer * layer_units(s->model);
    return first + (size_t)role + (role == ST_INT8_UP ? expert : 0);
}

static size_t linear_of(const struct stint_session *s, enum st_int8_role role, uint32_t layer,
                        uint32_t expert) {
    if (role == ST_INT8_HEAD) return s->npus.n_linears - 1;
    size_t first = layer * (ST_INT8_UP + 2 * max_blocks(s->model));
    return first + (size_t)role + (st_int8_is_ffn(role) ? 2 * expert : 0);
}

// ---- Memory

static void lay_out_group(const struct stint_session *s, struct st_worker_group *group,
                          struct st_arena *arena) {
    for (int kind = 0; kind < ST_N_NPUS; kind++) {
        struct st_npu *npu = &group->own[kind];
        npu->weights = ST_TAKE(arena, struct st_device_weights *, s->npus.n_linears);
        npu->graphs = ST_TAKE(arena, struct st_graph *, N_TERMS * s->npus.n_units);
    }
}

void st_npu_lay_out(struct stint_session *s, struct st_arena *arena) {
    size_t layers = s->model->config.n_layers, experts = max_blocks(s->model);
    s->npus.n_units = layers * layer_units(s->model) + 1;
    s->npus.n_linears = layers * (ST_INT8_UP + 2 * experts) + 1;
    s->npus.placed = ST_TAKE(arena, uint8_t, s->npus.n_units);
    s->npus.held = ST_TAKE(arena, uint8_t, s->npus.n_units);
    lay_out_group(s, &s->group, arena);
    for (uint32_t i = 0; s->split.on && i < s->split.n_groups; i++)
        if (i != ST_PROCESSOR_CPU || s->split.n_groups > 2)
            lay_out_group(s, &s->split.groups[i], arena);
}

// ---- Units

// Calls `fn` for every unit of the model, until it fails.
struct unit {
    enum st_int8_role role;
    uint32_t layer, expert;
};
typedef stint_status unit_fn(void *context, const struct unit *unit);

static stint_status each_unit(const struct stint_session *s, unit_fn *fn, void *context) {
    for (uint32_t i = 0; i < s->model->config.n_layers; i++) {
        ST_TRY(fn(context, &(struct unit){ST_INT8_QKV, i, 0}));
        ST_TRY(fn(context, &(struct unit){ST_INT8_O, i, 0}));
        for (uint32_t e = 0; e < st_config_blocks(&s->model->config, i); e++)
            ST_TRY(fn(context, &(struct unit){ST_INT8_UP, i, e}));
        if (st_config_is_cut(&s->model->config, i))
            ST_TRY(fn(context, &(struct unit){ST_INT8_DOWN, i, 0}));
    }
    return fn(context, &(struct unit){ST_INT8_HEAD, 0, 0});
}

static struct st_device_subgraph subgraph_of(const struct stint_session *s, const struct unit *u,
                                             bool two_term) {
    const struct st_weights_int8 *w = &s->model->int8;
    struct st_device_subgraph subgraph = {
        .linear_ops = {*st_int8_linear_op(w, u->role, u->layer, u->expert)},
        .n_linear_ops = 1,
        .in_parts = s->bounded != NULL};
    if (u->role == ST_INT8_UP && !st_config_is_cut(&s->model->config, u->layer)) {
        struct st_linear_op *down = &subgraph.linear_ops[subgraph.n_linear_ops++];
        *down = *st_int8_linear_op(w, ST_INT8_DOWN, u->layer, u->expert);
        down->norm = s->model->weights.layers[u->layer].ffn[u->expert].norm;
        down->norm_epsilon = s->model->config.norm_epsilon;
    }
    for (uint32_t i = 0; i < subgraph.n_linear_ops; i++)
        subgraph.two_term[i] = two_term || subgraph.linear_ops[i].weight.two_term;
    return subgraph;
}

// ---- Placement

struct placing {
    const struct stint_session *s;
    const struct st_device *device;
    struct st_placement_item *items;
    size_t *units; // of the items: layers may have fewer than the widest mixture
    size_t n;
};

static stint_status list_unit(void *context, const struct unit *u) {
    static const enum st_placement_kind kinds[ST_INT8_ROLES] = {
        [ST_INT8_QKV] = ST_PLACE_QKV,  [ST_INT8_O] = ST_PLACE_O,       [ST_INT8_UP] = ST_PLACE_FFN,
        [ST_INT8_DOWN] = ST_PLACE_FFN, [ST_INT8_HEAD] = ST_PLACE_HEAD,
    };
    struct placing *p = context;
    struct st_device_subgraph subgraph = subgraph_of(p->s, u, false);
    p->units[p->n] = unit_of(p->s, u->role, u->layer, u->expert);
    struct st_placement_item *item = &p->items[p->n++];
    *item = (struct st_placement_item){.kind = kinds[u->role], .layer = u->layer};
    item->supported = st_device_supports(p->device, &subgraph);
    for (uint32_t i = 0; i < subgraph.n_linear_ops; i++)
        item->bytes[0] += st_device_weights_bytes(p->device, &subgraph.linear_ops[i].weight);
    return STINT_OK;
}

// A unit's place is the first device that has it.
static void note_places(struct stint_session *s, const struct placing *p, const int *where,
                        enum st_npu_kind kind) {
    for (size_t i = 0; i < p->n; i++) {
        size_t unit = p->units[i];
        bool has = where[i] != ST_PLACEMENT_HOST;
        if (kind == ST_NPU_DEVICE || (has && s->npus.placed[unit] == ST_NPU_HOST))
            s->npus.placed[unit] = has ? (uint8_t)kind : ST_NPU_HOST;
        if (has) s->npus.held[unit] |= (uint8_t)(1u << kind);
    }
}

static stint_status place(struct stint_session *s, struct st_device *device,
                          enum st_npu_kind kind) {
    uint64_t limit = st_device_caps(device)->memory_limit, used = st_device_used_bytes(device);
    struct placing p = {s, device, calloc(s->npus.n_units, sizeof *p.items),
                        calloc(s->npus.n_units, sizeof *p.units), 0};
    int *where = calloc(s->npus.n_units, sizeof *where);
    stint_status status = STINT_OK;
    if (!p.items || !p.units || !where)
        status = st_fail(STINT_E_NOMEM, "no memory to place a model");
    if (status == STINT_OK) status = each_unit(s, list_unit, &p);
    if (status == STINT_OK) {
        if (limit) limit = st_max(1, limit - st_min(limit, used));
        st_placement(p.items, p.n, &limit, 1, where);
        note_places(s, &p, where, kind);
    }
    free(p.items);
    free(p.units);
    free(where);
    return status;
}

// ---- Opening

struct compiling {
    const struct stint_session *s;
    struct st_npu *npu;
    enum st_npu_kind kind;
};

// A device with memory of its own takes all panels at once.
static stint_status import(const struct compiling *c, const struct st_linear_op *linear_op,
                           bool in_parts, struct st_device_weights **weights) {
    struct st_int8_weight weight = linear_op->weight;
    int8_t *panels = NULL;
    if (weight.set && !weight.panels && !st_device_caps(c->npu->device)->host_memory) {
        ST_TRY(st_weight_set_all(linear_op, &panels));
        weight.panels = panels;
        weight.fleeting = true;
    }
    stint_status status = st_device_import_weights(c->npu->device, &weight, in_parts, weights);
    free(panels);
    return status;
}

// A host that stands by has everything: its graphs borrow the weights where they are.
static stint_status compile_unit(void *context, const struct unit *u) {
    const struct compiling *c = context;
    const struct stint_session *s = c->s;
    size_t unit = unit_of(s, u->role, u->layer, u->expert);
    struct st_device_weights **weights =
        c->npu->weights + linear_of(s, u->role, u->layer, u->expert);
    if (c->kind != ST_NPU_HOST && !(s->npus.held[unit] >> c->kind & 1)) return STINT_OK;
    struct st_device_subgraph subgraph = subgraph_of(s, u, false);
    for (uint32_t i = 0; i < subgraph.n_linear_ops; i++)
        ST_TRY(import(c, &subgraph.linear_ops[i], subgraph.in_parts, &weights[i]));
    ST_TRY(
        st_device_compile(c->npu->device, &subgraph, weights, s->chunk_len, &c->npu->graphs[unit]));
    if (!s->model->neurons.layers) return STINT_OK;
    for (uint32_t i = 0; i < subgraph.n_linear_ops; i++) subgraph.two_term[i] = true;
    return st_device_compile(c->npu->device, &subgraph, weights, st_session_step_rows(s),
                             &c->npu->graphs[s->npus.n_units + unit]);
}

static stint_status open_memory(const struct stint_session *s, struct st_npu *npu) {
    size_t vocab_bytes = s->model->config.vocab * sizeof(float);
    ST_TRY(st_mirror_open(npu->device, s->arena.base, s->arena.used, &npu->mirror));
    if (npu->mirror.shared) // until it stands for something else
        return st_buffer_import(npu->device, s->arena.base, ST_DEVICE_ALIGNMENT, &npu->outside);
    ST_TRY(st_buffer_allocate(npu->device, ST_NPU_OUTSIDE_ROWS * vocab_bytes, &npu->outside));
    return st_input_norms_open(s, npu);
}

static stint_status open_one(struct stint_session *s, const struct st_npu_options *o,
                             struct st_worker_group *group, enum st_npu_kind kind) {
    struct st_npu *npu = &group->own[kind];
    bool host = kind == ST_NPU_HOST;
    const char *name = kind == ST_NPU_SECOND ? o->second : o->device;
    struct st_device_options options = {
        .name = host ? "cpu" : name, .workers = group->pool, .memory_limit = host ? 0 : o->memory};
    ST_TRY(st_device_open(&options, &npu->device));
    group->npu[kind] = npu;
    const struct st_device_caps *caps = st_device_caps(npu->device);
    if (!s->bounded || caps->host_memory) return open_memory(s, npu);
    // Then it runs hot clusters of neurons alone (weights/hybrid.h).
    if (s->model->neurons.layers && caps->own_processor && caps->sums) return STINT_OK;
    return st_fail(STINT_E_UNSUPPORTED,
                   "device '%s': it runs no weights that are read on demand; leave out --memory "
                   "or --device",
                   caps->name);
}

static stint_status compile(struct stint_session *s, struct st_worker_group *group,
                            enum st_npu_kind kind) {
    struct compiling c = {s, group->npu[kind], kind};
    return each_unit(s, compile_unit, &c);
}

stint_status st_npu_read_names(const char *names, char buffer[ST_NPU_NAME_BYTES],
                               struct st_npu_options *options) {
    const char *plus = names ? strchr(names, '+') : NULL;
    options->device = names;
    if (!plus) return STINT_OK;
    size_t n = (size_t)(plus - names);
    if (n == 0 || n >= ST_NPU_NAME_BYTES || plus[1] == '\0' || strchr(plus + 1, '+'))
        return st_fail(STINT_E_ARG, "device '%.64s': two devices are written A+B", names);
    memcpy(buffer, names, n);
    buffer[n] = '\0';
    options->device = buffer;
    options->second = plus + 1;
    return STINT_OK;
}

// Two devices are processors beside the host's cores.
static stint_status check_pair(const struct st_npu_options *o, const struct st_npu *npu) {
    const struct st_device_caps *caps = st_device_caps(npu->device);
    if (!o->second || caps->own_processor) return STINT_OK;
    return st_fail(STINT_E_ARG,
                   "device '%s': it runs on the CPU's cores, which take part in any case; name two "
                   "others, or one device alone",
                   caps->name);
}

// One of the devices that act as NPUs, or that of the session's own threads.
static stint_status open_device(struct stint_session *s, const struct st_npu_options *o,
                                struct st_worker_group *group, enum st_npu_kind kind) {
    struct st_npu *shared = o->one ? o->one->npu[kind] : NULL;
    if (shared && st_device_caps(shared->device)->own_processor) {
        group->npu[kind] = shared;
        return STINT_OK;
    }
    ST_TRY(open_one(s, o, group, kind));
    ST_TRY(check_pair(o, group->npu[kind]));
    if (!o->one) ST_TRY(place(s, group->npu[kind]->device, kind));
    return o->quantizes ? STINT_OK : compile(s, group, kind);
}

stint_status st_npu_open(struct stint_session *s, const struct st_npu_options *o,
                         struct st_worker_group *group) {
    uint64_t begun = st_now_ns();
    ST_TRY(open_device(s, o, group, ST_NPU_DEVICE));
    if (o->second) ST_TRY(open_device(s, o, group, ST_NPU_SECOND));
    s->npus.compile_seconds = (double)(st_now_ns() - begun) * 1e-9;
    group->npu[ST_NPU_HOST] = group->npu[ST_NPU_DEVICE];
    if (!st_device_caps(group->npu[ST_NPU_DEVICE]->device)->own_processor) return STINT_OK;
    ST_TRY(open_one(s, o, group, ST_NPU_HOST));
    return o->quantizes ? STINT_OK : compile(s, group, ST_NPU_HOST);
}

// One quantized row, from its submit to its end.
static stint_status time_job(const struct st_npu *npu, struct st_buffer *buffer, float *seconds) {
    enum { N = 64 };
    const struct st_quantize_args args = {.x = {buffer, 0, N * sizeof(float)},
                                          .quantized = {buffer, N * sizeof(float), 0},
                                          .n_rows = 1,
                                          .n = N,
                                          .scale = 1.0f};
    struct st_job *job;
    struct st_job_result result;
    uint64_t begun = st_now_ns();
    ST_TRY(st_device_quantize(npu->device, &args, NULL, 0, &job));
    ST_TRY(st_job_join(job, &result));
    *seconds = (float)(st_now_ns() - begun) * 1e-9f;
    return STINT_OK;
}

// The least of several: others may have kept the cores.
void st_npu_measure_sync(struct st_npu *npu) {
    enum { TIMES = 16, BYTES = 1024 };
    struct st_buffer *buffer;
    if (!st_device_caps(npu->device)->virtual_clock || npu->sync_seconds > 0.0f) return;
    if (st_buffer_allocate(npu->device, BYTES, &buffer) != STINT_OK) return;
    for (int i = 0; i < TIMES; i++) {
        float seconds;
        if (time_job(npu, buffer, &seconds) != STINT_OK) break;
        if (i == 0 || seconds < npu->sync_seconds) npu->sync_seconds = seconds;
    }
    st_buffer_free(buffer);
}

void st_npu_close(const struct stint_session *s, struct st_worker_group *group) {
    for (int kind = 0; kind < ST_N_NPUS; kind++) {
        struct st_npu *npu = &group->own[kind];
        for (size_t i = 0; npu->graphs && i < N_TERMS * s->npus.n_units; i++)
            st_device_free_graph(npu->graphs[i]);
        for (size_t i = 0; npu->weights && i < s->npus.n_linears; i++)
            st_device_free_weights(npu->weights[i]);
        st_buffer_free(npu->outside);
        st_buffer_free(npu->norms);
        st_mirror_close(&npu->mirror);
        st_device_close(npu->device);
        *npu = (struct st_npu){0};
    }
}

// ---- Running

// The processor that a chunk's subgraph was given to, or the unit's place.
static enum st_npu_kind wanted_of(const struct st_run *r, enum st_int8_role role, size_t unit) {
    static const uint8_t subgraphs[ST_INT8_ROLES] = {[ST_INT8_QKV] = ST_SUBGRAPH_QKV,
                                                     [ST_INT8_O] = ST_SUBGRAPH_O,
                                                     [ST_INT8_UP] = ST_SUBGRAPH_FFN,
                                                     [ST_INT8_DOWN] = ST_SUBGRAPH_FFN};
    static const enum st_npu_kind kinds[ST_MAX_PROCESSORS] = {[ST_PROCESSOR_CPU] = ST_NPU_HOST,
                                                              [ST_PROCESSOR_NPU] = ST_NPU_DEVICE,
                                                              [ST_PROCESSOR_SECOND] =
                                                                  ST_NPU_SECOND};
    const struct st_npus *npus = &r->s->npus;
    if (!r->processors || role == ST_INT8_HEAD) return (enum st_npu_kind)npus->placed[unit];
    return kinds[r->processors[r->layer * ST_N_SUBGRAPHS + subgraphs[role]]];
}

enum st_npu_kind st_npu_select(const struct st_run *r, enum st_int8_role role, uint32_t expert) {
    const struct stint_session *s = r->s;
    struct st_npu *const *npu = r->group->npu;
    if (npu[ST_NPU_DEVICE] == npu[ST_NPU_HOST]) return ST_NPU_DEVICE;
    size_t unit = unit_of(s, role, r->layer, expert);
    enum st_npu_kind kind = wanted_of(r, role, unit);
    if (kind == ST_NPU_HOST || st_device_is_lost(npu[kind]->device)) return ST_NPU_HOST;
    return s->npus.held[unit] >> kind & 1 ? kind : ST_NPU_HOST;
}

static bool is_in_use(const struct st_npu *npu) {
    return npu && !st_device_is_lost(npu->device);
}

uint8_t st_npu_processors(const struct stint_session *s, uint32_t layer,
                          enum st_subgraph_kind kind) {
    enum st_int8_role role = kind == ST_SUBGRAPH_QKV ? ST_INT8_QKV
                             : kind == ST_SUBGRAPH_O ? ST_INT8_O
                                                     : ST_INT8_UP;
    uint32_t n = role == ST_INT8_UP ? st_config_blocks(&s->model->config, layer) : 1;
    unsigned held = 0, can = 1u << ST_PROCESSOR_CPU;
    for (uint32_t e = 0; e < n; e++) held |= s->npus.held[unit_of(s, role, layer, e)];
    if (held >> ST_NPU_DEVICE & 1 && is_in_use(s->group.npu[ST_NPU_DEVICE]))
        can |= 1u << ST_PROCESSOR_NPU;
    if (held >> ST_NPU_SECOND & 1 && is_in_use(s->group.npu[ST_NPU_SECOND]))
        can |= 1u << ST_PROCESSOR_SECOND;
    return (uint8_t)can;
}

void st_npu_count_failure(struct stint_session *s, enum st_npu_kind kind) {
    atomic_fetch_add_explicit(&s->npus.faults, 1, memory_order_relaxed);
    if (!atomic_exchange_explicit(&s->npus.told[kind], true, memory_order_relaxed))
        st_log(STINT_LOG_WARNING, "%s: the CPU takes over", stint_error_text());
}

// Also of a job that was canceled: a caller who cancels is heard between subgraphs (pass.c).
bool st_npu_takes_over(const struct st_run *r, enum st_npu_kind kind, stint_status status) {
    struct st_npu *const *npu = r->group->npu;
    if (status == STINT_OK || status == STINT_E_INTERNAL || kind == ST_NPU_HOST ||
        npu[ST_NPU_DEVICE] == npu[ST_NPU_HOST])
        return false;
    st_npu_count_failure(r->s, kind);
    return true;
}

struct st_graph *st_npu_graph(const struct st_run *r, const struct st_npu *npu,
                              enum st_int8_role role, uint32_t expert, bool two_term) {
    size_t unit = unit_of(r->s, role, r->layer, expert);
    return npu->graphs[(two_term ? r->s->npus.n_units : 0) + unit];
}

stint_status stint_session_graphs(const stint_session *session, stint_graph_info *info) {
    if (!session || !info || info->size == 0)
        return st_fail(STINT_E_ARG, "info->size must be set to sizeof(stint_graph_info)");
    const struct st_npu *npu = session->group.npu[ST_NPU_DEVICE];
    stint_graph_info out = {.size = info->size};
    for (size_t i = 0; npu && i < session->npus.n_units; i++) {
        if (!npu->graphs[i]) continue;
        out.n_graphs++;
        out.bytes += st_graph_bytes(npu->graphs[i]);
    }
    if (npu) {
        out.compile_seconds = session->npus.compile_seconds;
        out.bytes += session->quantized_bytes;
    }
    memcpy(info, &out, st_min(info->size, sizeof out));
    return STINT_OK;
}
