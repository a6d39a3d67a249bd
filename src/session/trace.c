// SPDX-License-Identifier: Apache-2.0
// A prompt's timeline, and what can be said of its prefill afterwards.
#include "session/session.h"

#include "base/clock.h"
#include "base/size.h"
#include "sched/trace.h"

#include <string.h>

void st_session_record(const struct st_run *r, uint8_t kind, uint64_t begin) {
    const struct stint_session *s = r->s;
    struct st_timeline *t = &r->s->timeline;
    bool split = s->split.on && !r->bits;     // then the executor does
    bool shadow = kind == ST_SUBGRAPH_SHADOW; // within another
    struct st_node_time time = shadow ? (struct st_node_time){0} : r->buffers->jobs;
    if (!shadow) r->buffers->jobs = (struct st_node_time){0};
    if (!r->batch || r->phase == ST_PHASE_DECODE || split || t->n == s->max_events) return;
    bool npu = kind < ST_N_SUBGRAPHS && st_subgraphs[kind].processor == ST_PROCESSOR_NPU;
    t->events[t->n] =
        (struct st_event){.node = t->n,
                          .chunk = (uint32_t)((r->batch->position - s->begun) / s->chunk_len),
                          .layer = (uint16_t)r->layer,
                          .kind = kind,
                          .processor = npu ? ST_PROCESSOR_NPU : ST_PROCESSOR_CPU,
                          .begin = (double)begin * 1e-9,
                          .end = (double)st_now_ns() * 1e-9,
                          .time = time};
    t->n++;
}

stint_status stint_session_prefill(const stint_session *session, stint_prefill_info *info) {
    if (!session || !info || info->size == 0)
        return st_fail(STINT_E_ARG, "info->size must be set to sizeof(stint_prefill_info)");
    struct st_timeline_sums sums = st_timeline_add_up(&session->timeline);
    stint_prefill_info out = {.size = info->size,
                              .subgraphs = session->timeline.n,
                              .seconds = sums.seconds,
                              .npu_seconds = sums.busy[ST_PROCESSOR_NPU],
                              .cpu_seconds = sums.busy[ST_PROCESSOR_CPU],
                              .bubble_rate = session->split.on ? sums.bubble_rate : 0.0,
                              .order = session->split.on ? session->split.policy->name : NULL};
    out.second_seconds = sums.busy[ST_PROCESSOR_SECOND];
    sums = st_timeline_add_up(&session->split.replay);
    out.clock_seconds = sums.seconds;
    out.clock_bubble_rate = sums.bubble_rate;
    for (uint32_t i = 0; i < session->timeline.n; i++)
        out.chunks = st_max(out.chunks, session->timeline.events[i].chunk + 1);
    memcpy(info, &out, st_min(info->size, sizeof out));
    return STINT_OK;
}

stint_status stint_session_trace(const stint_session *session, const char *path) {
    if (!session || !path) return st_fail(STINT_E_ARG, "session and path may not be NULL");
    struct st_trace trace = {.title = session->split.on ? session->split.policy->name
                                                        : "one subgraph at a time, on all threads",
                             .processors = {[ST_PROCESSOR_CPU] = "CPU", [ST_PROCESSOR_NPU] = "NPU"},
                             .timeline = &session->timeline};
    if (session->split.replay.n > 0) trace.replay = &session->split.replay;
    const struct st_npu *second = session->group.npu[ST_NPU_SECOND];
    if (second && session->split.on) {
        const struct st_npu *first = session->group.npu[ST_NPU_DEVICE];
        trace.processors[ST_PROCESSOR_NPU] = st_device_caps(first->device)->name;
        trace.processors[ST_PROCESSOR_SECOND] = st_device_caps(second->device)->name;
    }
    return st_trace_write(path, &trace);
}
