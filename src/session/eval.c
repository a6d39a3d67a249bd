// SPDX-License-Identifier: Apache-2.0
// Evaluation of token ids: prompts chunk by chunk, steps of one sequence or several.
#include "session/session.h"

#include "base/size.h"

#include <string.h>

static stint_status check_ids(const struct stint_session *s, const struct st_sequence *sequence,
                              const int32_t *ids, size_t n) {
    uint32_t vocab = s->model->config.vocab;
    if (n > s->n_context - sequence->length)
        return st_fail(STINT_E_LIMIT,
                       "context: %zu tokens do not fit after %zu of %zu; open the session with a "
                       "longer context (--ctx)",
                       n, sequence->length, s->n_context);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= vocab)
            return st_fail(STINT_E_ARG,
                           "token %zu is %d: the model's vocabulary has %u; the tokenizer must be "
                           "the model's own",
                           i, (int)ids[i], vocab);
    return STINT_OK;
}

// Runs the next ids: a chunk; where prompts are split as many chunks as there are, or, where each
// one's hidden states are needed, as have buffers. *n gets their number.
static stint_status step(struct stint_session *s, const struct st_eval_request *e, size_t done,
                         size_t *n) {
    const int32_t *ids = e->ids + done;
    *n = e->n - done;
    if (s->split.on && s->prompt && !s->bits) {
        if (e->logits && e->all) *n = st_min(*n, s->n_lanes * s->chunk_len);
        return st_split_forward(s, ids, *n, e->n_total);
    }
    *n = st_min(*n, s->chunk_len);
    struct st_batch batch = {*n, s->now->length, e->n_total, st_session_now(s), NULL};
    struct st_run run = st_session_run(s, &batch);
    return st_session_forward(&run, ids);
}

// Of rows [first, n) of a step, chunk by chunk.
static stint_status step_logits(struct stint_session *s, size_t first, size_t n, float *logits) {
    size_t vocab = s->model->config.vocab;
    for (size_t at = first; at < n;) {
        struct st_run run = st_session_run(s, NULL);
        size_t row = at % s->chunk_len, rows = st_min(s->chunk_len - row, n - at);
        run.lane = &s->lanes[at / s->chunk_len % s->n_lanes];
        ST_TRY(st_session_logits(&run, row, rows, logits + (at - first) * vocab));
        at += rows;
    }
    return STINT_OK;
}

static stint_status eval_batches(struct stint_session *s, const struct st_eval_request *e) {
    size_t vocab = s->model->config.vocab;
    struct st_sequence *now = s->now;
    if (e->prompt) {
        s->timeline.n = 0;
        s->begun = now->length;
    }
    for (size_t done = 0, n; done < e->n; done += n) {
        s->prompt = e->prompt && s->chunk_len > ST_DECODE_TOKENS;
        if (s->resident) st_resident_pass(s->resident, s->prompt);
        stint_status status = step(s, e, done, &n);
        if (s->prompt && status == STINT_OK && now->prompted == now->length) now->prompted += n;
        s->prompt = false;
        if (status != STINT_OK) return status;
        memmove(now->history + now->length, e->ids + done, n * sizeof(int32_t));
        now->length += n;
        if (e->logits && e->all) ST_TRY(step_logits(s, 0, n, e->logits + done * vocab));
        if (e->logits && !e->all && done + n == e->n) ST_TRY(step_logits(s, n - 1, n, e->logits));
        if (e->progress) e->progress(e->progress_context, "prompt", done + n, e->n);
    }
    return STINT_OK;
}

// What a bound of memory needs after each step.
static void settle(struct stint_session *s, stint_status status) {
    if (s->resident && status != STINT_OK) st_resident_reset(s->resident);
    if (s->resident) st_resident_note(s->resident);
}

stint_status st_session_eval(struct stint_session *s, const struct st_eval_request *e) {
    ST_TRY(check_ids(s, s->now, e->ids, e->n));
    size_t before = s->now->length;
    stint_status status = eval_batches(s, e);
    if (status != STINT_OK) st_sequence_truncate(s->now, before);
    settle(s, status);
    return status;
}

struct st_eval_request st_eval_request_of(const struct stint_session *s, const int32_t *ids,
                                          size_t n) {
    return (struct st_eval_request){
        .ids = ids, .n = n, .prompt = n > ST_DECODE_TOKENS, .n_total = s->now->length + n};
}

stint_status stint_session_eval(stint_session *session, const int32_t *ids, size_t n_ids, bool all,
                                float *logits) {
    if (!session || (!ids && n_ids)) return st_fail(STINT_E_ARG, "session and ids may not be NULL");
    struct st_eval_request e = st_eval_request_of(session, ids, n_ids);
    e.all = all;
    e.logits = logits;
    stint_status status = st_session_eval(session, &e);
    atomic_store(&session->canceled, false);
    return status;
}

stint_status st_session_prompt(struct stint_session *s, const int32_t *ids, size_t n,
                               uint64_t n_total, float *logits) {
    struct st_eval_request e = {
        .ids = ids, .n = n, .prompt = true, .n_total = n_total, .logits = logits};
    stint_status status = st_session_eval(s, &e);
    atomic_store(&s->canceled, false);
    return status;
}

// At most ST_DECODE_TOKENS of them.
static stint_status step_batch(struct stint_session *s, const uint32_t *sequences,
                               const int32_t *ids, size_t n, float *logits) {
    struct st_place places[ST_DECODE_TOKENS];
    struct st_batch batch = {.n = n, .places = places};
    struct st_run run = st_session_run(s, &batch);
    for (size_t i = 0; i < n; i++)
        places[i] = (struct st_place){sequences[i], s->sequences[sequences[i]].length};
    if (s->resident) st_resident_pass(s->resident, false);
    stint_status status = st_session_forward(&run, ids);
    if (status == STINT_OK && logits) status = st_session_logits(&run, 0, n, logits);
    settle(s, status);
    return status;
}

static stint_status check_step(const struct stint_session *s, const uint32_t *sequences,
                               const int32_t *ids, size_t n) {
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        if (sequences[i] >= s->n_sequences || seen >> sequences[i] & 1)
            return st_fail(STINT_E_ARG, "sequence %u: the session has %u, and each may occur once",
                           sequences[i], s->n_sequences);
        seen |= (uint64_t)1 << sequences[i];
        ST_TRY(check_ids(s, &s->sequences[sequences[i]], &ids[i], 1));
    }
    return STINT_OK;
}

stint_status stint_session_step(stint_session *s, const uint32_t *sequences, const int32_t *ids,
                                size_t n, float *logits) {
    if (!s || ((!sequences || !ids) && n))
        return st_fail(STINT_E_ARG, "session, sequences and ids may not be NULL");
    ST_TRY(check_step(s, sequences, ids, n));
    size_t vocab = s->model->config.vocab, most = st_min(ST_DECODE_TOKENS, s->chunk_len);
    stint_status status = STINT_OK;
    for (size_t done = 0, m; done < n && status == STINT_OK; done += m) {
        m = st_min(most, n - done);
        status =
            step_batch(s, sequences + done, ids + done, m, logits ? logits + done * vocab : NULL);
    }
    for (size_t i = 0; i < n && status == STINT_OK; i++) {
        struct st_sequence *sequence = &s->sequences[sequences[i]];
        sequence->history[sequence->length++] = ids[i];
    }
    atomic_store(&s->canceled, false);
    return status;
}
