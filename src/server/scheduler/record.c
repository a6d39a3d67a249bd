// SPDX-License-Identifier: Apache-2.0
#include "server/scheduler/record.h"

#include "base/size.h"
#include "model/graph.h"
#include "sched/dag.h"

#include <stdlib.h>
#include <string.h>

void st_record_free(struct st_record *r) {
    free(r->events);
    free(r->tokens);
    free(r->text);
    *r = (struct st_record){0};
}

// Makes room for n more items; false where there is none.
static bool grow(void **items, size_t count, size_t n, size_t item_bytes, size_t max,
                 size_t *capacity) {
    if (count + n <= *capacity) return true;
    if (count + n > max) return false;
    size_t wanted = st_min(max, st_max(count + n, 2 * *capacity + 64));
    void *grown = realloc(*items, wanted * item_bytes);
    if (!grown) return false;
    *items = grown;
    *capacity = wanted;
    return true;
}

void st_record_piece(struct st_record *r, const struct st_timeline *timeline, double begin,
                     const stint_prefill_info *info) {
    double zero = timeline->n ? timeline->events[0].begin : 0.0;
    for (uint32_t i = 1; i < timeline->n; i++)
        if (timeline->events[i].begin < zero) zero = timeline->events[i].begin;
    for (uint32_t i = 0; i < timeline->n; i++) {
        if (!grow((void **)&r->events, r->n_events, 1, sizeof *r->events, ST_RECORD_EVENTS,
                  &r->events_capacity))
            break;
        struct st_event *e = &r->events[r->n_events++];
        *e = timeline->events[i];
        e->chunk += r->chunks;
        e->begin += begin - zero;
        e->end += begin - zero;
    }
    r->chunks += info->chunks;
    r->npu_seconds += info->npu_seconds;
    r->cpu_seconds += info->cpu_seconds;
    r->bubble_seconds += info->bubble_rate * info->seconds;
}

void st_record_token(struct st_record *r, const char *text, size_t n_bytes, uint32_t bits,
                     uint32_t batch, double seconds) {
    if (!grow((void **)&r->tokens, r->n_tokens, 1, sizeof *r->tokens, ST_RECORD_TOKENS,
              &r->tokens_capacity) ||
        !grow((void **)&r->text, r->text_bytes, n_bytes, 1, ST_RECORD_TEXT, &r->text_capacity))
        return;
    r->tokens[r->n_tokens++] =
        (struct st_record_token){r->text_bytes, n_bytes, bits, batch, seconds};
    if (n_bytes) memcpy(r->text + r->text_bytes, text, n_bytes);
    r->text_bytes += n_bytes;
}

static json_t *events_json(const struct st_record *r) {
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_events; i++) {
        const struct st_event *e = &r->events[i];
        bool shadow = e->kind >= ST_N_SUBGRAPHS;
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:i, s:i, s:f, s:f}", "processor",
                            e->processor == ST_PROCESSOR_CPU ? "cpu" : "npu", "kind",
                            shadow ? "shadow" : st_subgraphs[e->kind].name, "layer", (int)e->layer,
                            "chunk", (int)e->chunk, "begin", e->begin, "end", e->end));
    }
    return list;
}

static json_t *tokens_json(const struct st_record *r) {
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_tokens; i++) {
        const struct st_record_token *t = &r->tokens[i];
        json_array_append_new(list, json_pack("{s:s%, s:i, s:i, s:f}", "text",
                                              t->n_bytes ? r->text + t->text : "", t->n_bytes,
                                              "bits", (int)t->bits, "batch", (int)t->batch,
                                              "seconds", t->seconds));
    }
    return list;
}

static json_t *memory_json(const stint_memory_info *m) {
    if (m->budget_bytes == 0) return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "budget_bytes", (json_int_t)m->budget_bytes,
                     "peak_bytes", (json_int_t)m->peak_bytes, "fixed_bytes",
                     (json_int_t)m->fixed_bytes, "hot_bytes", (json_int_t)m->hot_bytes,
                     "cold_bytes", (json_int_t)m->cold_bytes, "kv_bytes", (json_int_t)m->kv_bytes);
}

static json_t *io_json(const stint_memory_info *m) {
    if (m->budget_bytes == 0) return json_null();
    return json_pack("{s:I, s:I, s:f, s:f}", "bytes_read", (json_int_t)m->bytes_read, "reads",
                     (json_int_t)m->reads, "hit_rate", m->hit_rate, "hidden_fraction",
                     m->hidden_fraction);
}

json_t *st_record_json(const struct st_record *r) {
    const struct st_scheduler_usage *u = &r->usage;
    double seconds = u->prefill_seconds, bubbles = seconds > 0.0 ? r->bubble_seconds / seconds : 0;
    json_t *prefill = json_pack("{s:f, s:f, s:f, s:f, s:i, s:o}", "seconds", seconds, "npu_seconds",
                                r->npu_seconds, "cpu_seconds", r->cpu_seconds, "bubble_rate",
                                bubbles, "chunks", (int)r->chunks, "events", events_json(r));
    return json_pack(
        "{s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:i, s:o, s:o, s:o, s:o}",
        "prompt_tokens", (json_int_t)u->prompt_tokens, "reused_tokens",
        (json_int_t)u->reused_tokens, "generated_tokens", (json_int_t)u->generated_tokens,
        "queue_seconds", u->queue_seconds, "first_token_seconds", u->first_token_seconds,
        "prefill_seconds", u->prefill_seconds, "decode_seconds", u->decode_seconds, "average_bits",
        u->average_bits, "drafted_tokens", (json_int_t)u->drafted_tokens, "accepted_tokens",
        (json_int_t)u->accepted_tokens, "self_drafted_tokens", (json_int_t)u->self_drafted_tokens,
        "self_accepted_tokens", (json_int_t)u->self_accepted_tokens, "slot", (int)r->slot,
        "prefill", prefill, "tokens", tokens_json(r), "memory", memory_json(&r->memory), "io",
        io_json(&r->memory));
}
