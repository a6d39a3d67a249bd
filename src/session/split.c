// SPDX-License-Identifier: Apache-2.0
// A prompt over two processors (llm.npu, section 3.4): its chunks are under way at the same time,
// each in buffers of its own, and a policy decides which ready subgraph the NPU's threads and the
// CPU's take next. With two devices there are three processors, and a subgraph of a chunk goes to
// the one of those that can run it that would end it first; so does attention where one device
// computes it, too. What a subgraph computes depends neither on when it runs nor on where, so
// neither do the results.
#include "session/pass.h"

#include "base/clock.h"
#include "base/size.h"
#include "sched/assign.h"
#include "sched/trace.h"
#include "session/linear/int8.h"

#include <math.h>
#include <string.h>

// Of the time of qkv: what a shadow takes about, which depends on what is met.
static const float shadow_share = 0.2f;

static struct st_prefill_plan plan_of(const struct stint_session *s, uint32_t n_chunks) {
    struct st_prefill_plan plan = {.n_layers = s->model->config.n_layers,
                                   .n_chunks = n_chunks,
                                   .window = (uint32_t)s->n_buffers,
                                   .seconds = s->split.seconds,
                                   .shadowed = s->split.shadowed,
                                   .ordered = s->split.ordered};
    for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++)
        plan.processor[kind] = (uint8_t)st_subgraphs[kind].processor;
    return plan;
}

void st_split_lay_out(struct stint_session *s, struct st_arena *arena) {
    for (uint32_t i = 0; i < s->model->config.n_layers; i++) {
        s->split.ordered[i] = s->model->config.state.n_heads && s->model->config.form[i];
        st_op_shadows(s, i, s->split.shadowed + (size_t)i * ST_N_SUBGRAPHS);
    }
    struct st_prefill_plan plan = plan_of(s, st_session_max_chunks(s));
    st_dag_lay_out(&s->split.dag, st_prefill_nodes(&plan), st_prefill_edges(&plan), arena);
    st_schedule_lay_out(&s->split.schedule, st_prefill_nodes(&plan), arena);
    st_timeline_lay_out(&s->split.replay, st_prefill_nodes(&plan), arena);
    s->split.seconds = ST_TAKE(arena, float, (size_t)st_session_max_chunks(s) * ST_NODE_KINDS);
    s->split.growth = ST_TAKE(arena, float, st_session_max_chunks(s));
    s->split.processors =
        ST_TAKE(arena, uint8_t,
                st_session_max_chunks(s) * (size_t)s->model->config.n_layers * ST_N_SUBGRAPHS);
}

// Whether there is a choice of processors.
static bool chooses(const struct stint_session *s) {
    return s->split.n_groups > 2 || s->kv.device.device;
}

// Bit p: processor p can run it. Beside one device the CPU's threads have no graphs.
static uint8_t processors_of(const struct stint_session *s, uint32_t layer,
                             enum st_subgraph_kind kind) {
    if (kind == ST_SUBGRAPH_ATTENTION) return st_kv_processors(s, layer);
    if (!st_subgraph_is_static(kind)) return 1u << ST_PROCESSOR_CPU;
    return s->split.n_groups > 2 ? st_npu_processors(s, layer, kind) : 1u << ST_PROCESSOR_NPU;
}

// Where a subgraph of the first layer is profiled for this processor. Static ones also on a device
// that has no room for this layer's: it may have others.
static uint8_t profiled_on(const struct stint_session *s, enum st_subgraph_kind kind,
                           uint8_t processor) {
    if (st_subgraph_is_static(kind))
        return s->split.n_groups > 2 ? processor : (uint8_t)ST_PROCESSOR_NPU;
    return processors_of(s, 0, kind) >> processor & 1 ? processor : (uint8_t)ST_PROCESSOR_CPU;
}

// Seconds of each kind of subgraph in the first layer, over what is in the buffers, with those that
// can on this processor: of devices that are emulated, by their own clocks.
static stint_status profile_on(struct stint_session *s, uint8_t processor) {
    struct st_batch batch = {.n = s->chunk_len, .n_total = s->chunk_len};
    struct st_run run = st_session_run(s, ST_PHASE_PREFILL, ST_PRECISION_INT8, &batch);
    if (chooses(s)) run.processors = s->split.processors;
    st_pass_rotations(&run);
    for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++) {
        uint8_t on = profiled_on(s, (enum st_subgraph_kind)kind, processor);
        s->split.processors[kind] = on;
        run.group = &s->split.groups[on];
        uint64_t begun = st_now_ns();
        run.buffers->jobs = (struct st_node_time){0};
        ST_TRY(st_pass_subgraph(&run, (enum st_subgraph_kind)kind));
        float seconds = (float)(st_now_ns() - begun) * 1e-9f - run.buffers->jobs.excess;
        s->split.profile[on][kind] = fmaxf(seconds, 1e-9f);
    }
    memset(run.buffers->x, 0, batch.n * s->model->config.hidden * sizeof *run.buffers->x);
    return STINT_OK;
}

static stint_status profile(struct stint_session *s) {
    for (uint32_t p = 0; s->model->int8.layers && p < s->split.n_groups; p++)
        for (int kind = 0; kind < ST_N_NPUS; kind++)
            if (s->split.groups[p].npu[kind]) st_npu_measure_sync(s->split.groups[p].npu[kind]);
    for (uint32_t p = 0; chooses(s) && p < s->split.n_groups; p++)
        ST_TRY(profile_on(s, (uint8_t)p));
    return chooses(s) ? STINT_OK : profile_on(s, ST_PROCESSOR_NPU);
}

stint_status st_split_open(struct stint_session *s, const struct st_npu_options *npu) {
    struct st_npu_options options = *npu;
    options.one = &s->group;
    for (uint32_t i = 0; i < s->split.n_groups; i++) {
        struct st_worker_group *group = &s->split.groups[i];
        options.quantizes = i == ST_PROCESSOR_CPU && s->split.n_groups == 2;
        ST_TRY(st_pool_open(group->n_threads, &group->pool));
        if (s->model->int8.layers) ST_TRY(st_npu_open(s, &options, group));
    }
    ST_TRY(st_executor_open(s->split.n_groups, &s->split.executor));
    return profile(s);
}

void st_split_close(struct stint_session *s) {
    st_executor_close(s->split.executor);
    for (uint32_t i = 0; i < s->split.n_groups; i++) {
        st_npu_close(s, &s->split.groups[i]);
        st_pool_close(s->split.groups[i].pool);
    }
}

// Attention grows with the keys that a chunk meets; the first meets half of its own.
static void set_seconds(struct stint_session *s, uint32_t n_chunks, size_t position) {
    for (uint32_t i = 0; i < n_chunks; i++) {
        float *seconds = s->split.seconds + (size_t)i * ST_NODE_KINDS;
        float chunks = (float)position / (float)s->chunk_len + (float)i;
        for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++)
            seconds[kind] = s->split.profile[st_subgraphs[kind].processor][kind];
        s->split.growth[i] = 1.0f + 2.0f * chunks;
        seconds[ST_SUBGRAPH_ATTENTION] *= s->split.growth[i];
        seconds[ST_SUBGRAPH_SHADOW] = shadow_share * seconds[ST_SUBGRAPH_QKV];
    }
}

// The subgraphs of a prompt, over the processors that can run them.
static void spread(struct stint_session *s) {
    struct st_split *split = &s->split;
    uint32_t n_layers = s->model->config.n_layers;
    for (uint32_t i = 0; i < n_layers; i++)
        for (uint32_t k = 0; k < ST_N_SUBGRAPHS; k++) {
            enum st_subgraph_kind kind = (enum st_subgraph_kind)k;
            split->can[i * ST_N_SUBGRAPHS + k] = processors_of(s, i, kind);
        }
    const struct st_assignment assignment = {split->profile, split->can, n_layers, split->n_groups,
                                             split->growth};
    st_assign(&assignment, &split->dag, &split->schedule, split->processors);
}

struct prompt {
    const struct st_run *run; // of all chunks
    const int32_t *ids;
};

static struct st_batch batch_of(const struct prompt *p, uint32_t chunk) {
    size_t chunk_len = p->run->s->chunk_len, done = chunk * chunk_len;
    struct st_batch batch = *p->run->batch;
    batch.n = st_min(chunk_len, batch.n - done);
    batch.position += done;
    return batch;
}

static stint_status compute_node(void *context, const struct st_node *node,
                                 struct st_chunk_buffers *buffers) {
    const struct prompt *p = context;
    struct st_batch batch = batch_of(p, node->chunk);
    struct stint_session *s = p->run->s;
    struct st_run run = *p->run;
    run.buffers = buffers;
    run.group = &s->split.groups[node->processor];
    run.batch = &batch;
    run.layer = node->layer;
    run.shadows_apart = true;
    if (chooses(s))
        run.processors =
            s->split.processors + (size_t)node->chunk * s->model->config.n_layers * ST_N_SUBGRAPHS;
    if (node->layer == 0 && node->kind == ST_SUBGRAPH_ATTN_NORM) {
        ST_TRY(st_pass_embed(&run, p->ids + (size_t)node->chunk * s->chunk_len,
                             s->model->config.n_layers));
    }
    if (node->kind == ST_SUBGRAPH_SHADOW)
        return st_pass_shadow(&run, (enum st_int8_role)node->role);
    return st_pass_subgraph(&run, (enum st_subgraph_kind)node->kind);
}

static stint_status run_node(void *context, const struct st_node *node, struct st_node_time *time) {
    const struct prompt *p = context;
    const struct stint_session *s = p->run->s;
    struct st_chunk_buffers *buffers = &s->buffers[node->chunk % s->n_buffers];
    buffers->jobs = (struct st_node_time){0};
    stint_status status = compute_node(context, node, buffers);
    *time = buffers->jobs;
    return status;
}

stint_status st_split_forward(const struct st_run *run, const int32_t *ids) {
    struct stint_session *s = run->s;
    struct st_split *split = &s->split;
    struct prompt prompt = {run, ids};
    uint32_t n_chunks = (uint32_t)st_ceil_div(run->batch->n, s->chunk_len);
    struct st_prefill_plan plan = plan_of(s, n_chunks);
    set_seconds(s, n_chunks, run->batch->position);
    st_prefill_dag(&plan, &split->dag);
    if (chooses(s)) spread(s);
    const struct st_policy *policy =
        st_timeline_settle(&split->schedule, &split->dag, split->policy, &s->timeline);
    struct st_execution execution = {&split->dag,  policy,   &split->schedule,
                                     &s->timeline, run_node, &prompt};
    split->replay.n = 0;
    stint_status status = st_executor_run(split->executor, &execution);
    if (status == STINT_OK) {
        st_timeline_replay(&split->schedule, &split->dag, policy, &s->timeline, &split->replay);
        return STINT_OK;
    }
    struct st_error why;
    st_error_save(&why);
    for (size_t i = 0; i < s->n_buffers; i++) {
        st_shadow_abandon(&s->buffers[i].shadow);
        st_int8_abandon(&s->buffers[i]);
    }
    return st_error_restore(&why);
}
