// SPDX-License-Identifier: Apache-2.0
// Predicts the prefill of a prompt on another machine: the same graph and policies in virtual time,
// with times computed from the description of a system on a chip. Nothing is fitted to the results
// that it predicts.
#include "base/size.h"
#include "model/model.h"
#include "sched/soc.h"
#include "sched/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 256, SHADOW_CHANNELS = 10, MAX_CHUNKS = 4096 }; // llm.npu: 5 to 15 channels

struct simulation {
    stint_simulation_options options;
    struct st_config config;
    const struct st_config *c;
    struct st_soc soc;
    const struct st_soc_processor *floats;
    const struct st_policy *policy;
    uint32_t chunk_len, n_chunks;
    float *seconds;     // [layers, chunks, ST_NODE_KINDS]
    uint8_t *processor; // [layers, ST_NODE_KINDS]
    uint8_t *shadowed;  // [layers, ST_N_SUBGRAPHS]
    struct st_arena arena;
    struct st_dag dag;
    struct st_schedule schedule;
    struct st_timeline timeline;
    stint_simulation result;
};

// ---- Times of subgraphs

// Weights that one token uses in a linear subgraph of a layer; 0 for other subgraphs.
static double weights_of(const struct st_config *c, uint32_t layer, uint32_t kind) {
    struct st_mixer_widths w = st_config_mixer(c, layer);
    double blocks = st_max(1, c->n_experts_used), gated = c->flags & ST_ARCH_GATED ? 3.0 : 2.0;
    switch (kind) {
    case ST_SUBGRAPH_QKV:
        return (double)c->hidden * ((double)w.q + w.k + w.v);
    case ST_SUBGRAPH_O:
        return (double)c->hidden * w.out;
    case ST_SUBGRAPH_FFN:
        if (st_config_blocks(c, layer) == 0) return 0.0;
        if (!st_config_is_routed(c, layer, 0) || c->n_experts == 0)
            return gated * c->hidden * (double)st_config_ffn(c, layer, 0);
        return gated * c->hidden * (blocks * c->ffn + c->shared_ffn);
    default:
        return 0.0;
    }
}

// The same, counting all experts.
static double stored_of(const struct st_config *c, uint32_t layer, uint32_t kind) {
    double all = kind == ST_SUBGRAPH_FFN && st_config_is_routed(c, layer, 0)
                     ? (double)c->n_experts / st_max(1, c->n_experts_used)
                     : 1.0;
    return all * weights_of(c, layer, kind);
}

static double linear_seconds(const struct simulation *s, uint32_t layer, uint32_t kind) {
    bool npu = s->processor[layer * ST_NODE_KINDS + kind] == ST_PROCESSOR_NPU;
    const struct st_soc_processor *p = npu ? &s->soc.npu : &s->soc.cpu;
    double ops = 2.0 * s->chunk_len * weights_of(s->c, layer, kind);
    double slowdown = npu && s->options.per_group ? s->soc.group_slowdown : 1.0;
    return p->dispatch + ops * slowdown / st_soc_rate(&p->int8, s->chunk_len);
}

static double norm_seconds(const struct simulation *s) {
    return s->floats->dispatch + (double)s->chunk_len * s->c->hidden / s->floats->elementwise;
}

// Every query uses all keys before it and its own; an element of a state takes seven operations.
static double attention_seconds(const struct simulation *s, uint32_t layer, uint32_t chunk) {
    const struct st_state_shape *state = &s->c->state;
    double first = (double)chunk * s->chunk_len;
    double n = fmin(s->chunk_len, s->options.prompt_tokens - first);
    double passed = n * state->n_heads * state->n_keys * (double)state->n_values;
    if (s->c->form[layer] != ST_FORM_ATTENTION)
        return norm_seconds(s) + 7.0 * passed / s->floats->attention;
    double pairs = n * (first + (n + 1.0) / 2.0),
           width = (double)s->c->n_heads * st_config_heads(s->c, layer).dim;
    return s->floats->dispatch + 4.0 * pairs * width / s->floats->attention;
}

// The columns of the outlier channels times the chunk's outliers, at the rate of attention.
static double shadow_seconds(const struct simulation *s) {
    double outputs = weights_of(s->c, 0, ST_SUBGRAPH_FFN) / s->c->hidden;
    return s->floats->dispatch +
           2.0 * s->chunk_len * SHADOW_CHANNELS * outputs / s->floats->attention;
}

static double seconds_of(const struct simulation *s, uint32_t layer, uint32_t chunk,
                         uint32_t kind) {
    switch (kind) {
    case ST_SUBGRAPH_ATTN_NORM:
    case ST_SUBGRAPH_FFN_NORM:
        return norm_seconds(s);
    case ST_SUBGRAPH_ATTENTION:
        return attention_seconds(s, layer, chunk);
    case ST_SUBGRAPH_SHADOW:
        return shadow_seconds(s);
    default:
        return linear_seconds(s, layer, kind);
    }
}

static void fill_seconds(struct simulation *s) {
    float *to = s->seconds;
    for (uint32_t layer = 0; layer < s->c->n_layers; layer++)
        for (uint32_t chunk = 0; chunk < s->n_chunks; chunk++)
            for (uint32_t kind = 0; kind < ST_NODE_KINDS; kind++)
                *to++ = (float)seconds_of(s, layer, chunk, kind);
}

// ---- Placement

// Feed-forward blocks go to the NPU first, then attention's linears, until its memory is full
// (llm.npu, section 4).
static void place(struct simulation *s) {
    static const uint32_t order[] = {ST_SUBGRAPH_FFN, ST_SUBGRAPH_QKV, ST_SUBGRAPH_O};
    double left = s->soc.npu_memory > 0.0 ? s->soc.npu_memory : INFINITY, placed = 0.0, all = 0.0;
    bool cpu = s->soc.cpu.int8.n > 0;
    memset(s->processor, ST_PROCESSOR_CPU, (size_t)s->c->n_layers * ST_NODE_KINDS);
    for (size_t i = 0; i < 3; i++)
        for (uint32_t layer = 0; layer < s->c->n_layers; layer++) {
            double bytes = stored_of(s->c, layer, order[i]);
            all += bytes;
            if (bytes > left && cpu) continue;
            s->processor[layer * ST_NODE_KINDS + order[i]] = ST_PROCESSOR_NPU;
            left -= bytes;
            placed += bytes;
        }
    s->result.npu_share = placed / all;
    s->result.graph_bytes = (uint64_t)placed;
    s->result.graph_bytes_unshared = (uint64_t)placed * s->n_chunks;
}

// Linears near both ends of the model keep their shadows, as these matter most.
static void mark_shadowed(struct simulation *s) {
    static const uint32_t kinds[] = {ST_SUBGRAPH_QKV, ST_SUBGRAPH_O, ST_SUBGRAPH_FFN};
    uint32_t n = s->c->n_layers;
    uint32_t keep = (uint32_t)((1.0 - (double)s->options.outlier_prune) * n + 0.5);
    for (uint32_t i = 0; i < keep; i++)
        for (size_t k = 0; k < 3; k++)
            s->shadowed[(i % 2 ? n - 1 - i / 2 : i / 2) * ST_N_SUBGRAPHS + kinds[k]] =
                ST_SHADOW_BESIDE;
}

static void lay_out(struct simulation *s, const struct st_prefill_plan *plan,
                    struct st_arena *arena) {
    uint32_t nodes = st_prefill_nodes(plan);
    st_dag_lay_out(&s->dag, nodes, st_prefill_edges(plan), arena);
    st_schedule_lay_out(&s->schedule, nodes, arena);
    st_timeline_lay_out(&s->timeline, nodes, arena);
}

static stint_status run(struct simulation *s) {
    struct st_prefill_plan plan = {.n_layers = s->c->n_layers,
                                   .n_chunks = s->n_chunks,
                                   .seconds = s->seconds,
                                   .seconds_by_layer = true,
                                   .processor_by_layer = s->processor,
                                   .shadowed = s->options.per_group ? NULL : s->shadowed};
    struct st_arena measure = st_arena_measure();
    lay_out(s, &plan, &measure);
    ST_TRY(st_arena_open(&s->arena, measure.used));
    lay_out(s, &plan, &s->arena);
    ST_TRY(st_arena_check(&s->arena, "a simulation"));
    st_prefill_dag(&plan, &s->dag);
    const struct st_policy *policy =
        st_timeline_settle(&s->schedule, &s->dag, s->policy, &s->timeline);
    st_timeline_simulate(&s->schedule, &s->dag, policy, &s->timeline);
    if (!s->options.trace) return STINT_OK;
    struct st_trace trace = {
        .title = s->soc.name,
        .processors =
            {[ST_PROCESSOR_CPU] = s->options.gpu ? "GPU" : "CPU", [ST_PROCESSOR_NPU] = "NPU"},
        .timeline = &s->timeline};
    return st_trace_write(s->options.trace, &trace);
}

// ---- Results

// A decode step takes as long as reading every weight once or as computing, whichever is longer.
static void predict_decode(struct simulation *s, double parameters) {
    static const double bits[] = {16, 8, 4, 3, 2};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        const struct st_soc_rates *rates = bits[i] > 8 ? &s->soc.npu.fp16 : &s->soc.npu.int8;
        if (!(s->soc.bytes_per_second > 0.0) || rates->n == 0) continue;
        double read = parameters * bits[i] / 8.0 / s->soc.bytes_per_second;
        s->result.decode[i] = 1.0 / fmax(read, 2.0 * parameters / st_soc_rate(rates, 1));
    }
}

static void add_up(struct simulation *s) {
    struct st_timeline_sums sums = st_timeline_add_up(&s->timeline);
    stint_simulation *r = &s->result;
    double linears = 0.0, head = (double)s->c->vocab * s->c->hidden;
    for (uint32_t i = 0; i < s->c->n_layers * ST_N_SUBGRAPHS; i++)
        linears += stored_of(s->c, i / ST_N_SUBGRAPHS, i % ST_N_SUBGRAPHS);
    r->build_seconds = (s->soc.build + s->soc.optimize) * (linears + head);
    r->seconds = sums.seconds + (s->options.rebuild ? r->build_seconds : 0.0);
    r->npu_seconds = sums.busy[ST_PROCESSOR_NPU];
    r->cpu_seconds = sums.busy[ST_PROCESSOR_CPU];
    r->bubble_rate = 1.0 - r->npu_seconds / sums.seconds;
    r->chunks = s->n_chunks;
    r->subgraphs = s->timeline.n;
    if (s->soc.npu.watts > 0.0 && s->floats->watts > 0.0)
        r->joules = s->soc.npu.watts * r->npu_seconds + s->floats->watts * r->cpu_seconds;
    predict_decode(s, linears + head);
}

// ---- Opening

static stint_status read_options(const stint_simulation_options *options, struct simulation *s) {
    stint_simulation_options *o = &s->options;
    memcpy(o, options, st_min(options->size, sizeof *o));
    if (!o->soc && !o->soc_text)
        return st_fail(STINT_E_ARG, "a simulation needs the name of a system on a chip");
    if ((o->model != NULL) == (o->preset != NULL))
        return st_fail(STINT_E_ARG, "a simulation needs either a model or a preset");
    if (o->prompt_tokens == 0 || o->prompt_tokens > 1 << 24 || o->chunk_len > 1 << 16)
        return st_fail(STINT_E_ARG, "prompt of %u tokens, chunks of %u: out of range",
                       o->prompt_tokens, o->chunk_len);
    if (!(o->outlier_prune >= 0.0f && o->outlier_prune <= 1.0f))
        return st_fail(STINT_E_ARG, "outlier_prune %g: expected 0 to 1", (double)o->outlier_prune);
    ST_TRY(st_policy_select(o->order, &s->policy));
    s->chunk_len = o->rebuild ? o->prompt_tokens : o->chunk_len ? o->chunk_len : CHUNK;
    s->n_chunks = (uint32_t)st_ceil_div(o->prompt_tokens, s->chunk_len);
    if (s->n_chunks > MAX_CHUNKS)
        return st_fail(STINT_E_ARG, "%u chunks: at most %d", s->n_chunks, MAX_CHUNKS);
    return STINT_OK;
}

static stint_status simulate(struct simulation *s) {
    const stint_simulation_options *o = &s->options;
    ST_TRY(o->soc_text ? st_soc_read(o->soc_text, o->soc ? o->soc : "soc", &s->soc)
                       : st_soc_open(o->soc, &s->soc));
    s->floats = o->gpu || !s->soc.cpu.present ? &s->soc.gpu : &s->soc.cpu;
    if (!s->floats->present || !(s->floats->attention > 0.0) || !(s->floats->elementwise > 0.0))
        return st_fail(STINT_E_ARG, "%s has no %s that computes in float", s->soc.name,
                       o->gpu ? "GPU" : "CPU");
    size_t n = s->c->n_layers;
    s->seconds = calloc(n * s->n_chunks * ST_NODE_KINDS, sizeof *s->seconds);
    s->processor = calloc(n, ST_NODE_KINDS);
    s->shadowed = calloc(n, ST_N_SUBGRAPHS);
    if (!s->seconds || !s->processor || !s->shadowed)
        return st_fail(STINT_E_NOMEM, "no memory for a simulation");
    place(s);
    mark_shadowed(s);
    fill_seconds(s);
    ST_TRY(run(s));
    add_up(s);
    return STINT_OK;
}

stint_status stint_simulate(const stint_simulation_options *options, stint_simulation *result) {
    if (!options || !result || result->size == 0)
        return st_fail(STINT_E_ARG, "options may not be NULL, sizes must be set");
    struct simulation *s = calloc(1, sizeof *s);
    json_t *keep = NULL;
    if (!s) return st_fail(STINT_E_NOMEM, "no memory for a simulation");
    stint_status status = read_options(options, s);
    if (status == STINT_OK && s->options.preset)
        status = st_preset_config(s->options.preset, &s->config, &keep);
    s->c = s->options.model ? &s->options.model->config : &s->config;
    if (status == STINT_OK) status = simulate(s);
    if (status == STINT_OK) {
        s->result.size = result->size;
        memcpy(result, &s->result, st_min(result->size, sizeof s->result));
    }
    json_decref(keep);
    st_arena_close(&s->arena);
    free(s->seconds);
    free(s->processor);
    free(s->shadowed);
    free(s);
    return status;
}

const char *stint_soc(size_t i) {
    return st_soc_builtin(i);
}
