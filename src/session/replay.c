// SPDX-License-Identifier: Apache-2.0
// Computes the end of a text again, after layers with recurrent state have gone back to an earlier
// one (kv/state.h): each token as at first, so that keys, values and states come out the same.
#include "session/pass.h"

#include "base/size.h"
#include "session/kv/state.h"
#include "session/weights/source.h"

#include <string.h>

static unsigned kind_of(unsigned way) {
    return way & ~(unsigned)ST_WAY_PRECISION;
}

// As many of the tokens [from, to) as were computed in the same way and can be together.
static size_t together(const struct stint_session *s, const uint8_t *ways, size_t from, size_t to) {
    size_t most = s->chunk_len, n = 1;
    if (kind_of(ways[from]) == ST_WAY_STEP) most = st_min(most, STINT_MAX_STEP_ROWS);
    if (kind_of(ways[from]) == ST_WAY_ONE) most = 1;
    while (n < most && from + n < to && ways[from + n] == ways[from]) n++;
    return n;
}

static stint_status forward(struct stint_session *s, const struct st_state_batch *b) {
    const struct st_sequence *held = &s->sequences[b->sequence];
    struct st_place places[STINT_MAX_STEP_ROWS];
    bool step = kind_of(b->way) == ST_WAY_STEP, prompt = kind_of(b->way) == ST_WAY_PROMPT;
    struct st_batch batch = {.n = b->n,
                             .position = b->position,
                             .n_total = held->length,
                             .sequence = b->sequence,
                             .places = step ? places : NULL};
    struct st_run run = st_session_run(s, prompt ? ST_PHASE_PREFILL : ST_PHASE_DECODE,
                                       b->way & ST_WAY_PRECISION, &batch);
    for (size_t i = 0; i < b->n && step; i++)
        places[i] = (struct st_place){b->sequence, b->position + i};
    if (s->source->begin) s->source->begin(s, run.phase, run.bits, b->n);
    st_state_begin(s, b);
    stint_status status = st_pass_forward(&run, held->history + b->position);
    if (status == STINT_OK) st_state_end(s, b);
    if (s->source->end) s->source->end(s, status);
    return status;
}

stint_status st_session_settle(struct stint_session *s, uint32_t sequence) {
    if (st_state_is_current(s, sequence)) return STINT_OK;
    size_t to = s->sequences[sequence].length;
    const uint8_t *ways = s->kv.state.texts[sequence].ways;
    uint32_t n_events = s->timeline.n;
    stint_status status = STINT_OK;
    struct st_state_batch b = {.sequence = sequence, .position = st_state_restore(s, sequence)};
    s->timeline.n = s->max_events; // what is recorded is the last prompt's
    for (; b.position < to && status == STINT_OK; b.position += b.n) {
        b.n = together(s, ways, b.position, to);
        b.way = ways[b.position];
        status = forward(s, &b);
    }
    s->timeline.n = n_events;
    return status;
}
