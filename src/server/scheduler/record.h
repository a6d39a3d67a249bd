// SPDX-License-Identifier: Apache-2.0
// The record of a request that the web page shows (docs/SERVER.md, /stint/last): the timeline of
// its prefill, and its tokens with their precision and time.
#ifndef ST_SERVER_RECORD_H
#define ST_SERVER_RECORD_H

#include "sched/timeline.h"
#include "server/scheduler/scheduler.h"

enum { ST_RECORD_EVENTS = 8192, ST_RECORD_TOKENS = 4096, ST_RECORD_TEXT = 256 << 10 };

struct st_record_token {
    size_t text, n_bytes; // in record.text
    uint32_t bits, batch; // sequences that were decoded together
    double seconds;       // since the token before it
};

// Grows on demand. What exceeds the limits, or finds no memory, is left out. Zero-initialise; free
// with st_record_free.
struct st_record {
    struct st_scheduler_usage usage;
    uint32_t slot, chunks;
    double npu_seconds, cpu_seconds, bubble_seconds;
    struct st_event *events;
    size_t n_events, events_capacity;
    struct st_record_token *tokens;
    size_t n_tokens, tokens_capacity;
    char *text;
    size_t text_bytes, text_capacity;
    stint_memory_info memory;
};

void st_record_free(struct st_record *record);
// Adds the events of a piece of the prompt that began at `begin` seconds of the request's prefill.
void st_record_piece(struct st_record *record, const struct st_timeline *timeline, double begin,
                     const stint_prefill_info *info);
void st_record_token(struct st_record *record, const char *text, size_t n_bytes, uint32_t bits,
                     uint32_t batch, double seconds);
// A new reference; NULL without memory.
json_t *st_record_json(const struct st_record *record);

#endif
