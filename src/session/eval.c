// SPDX-License-Identifier: Apache-2.0
// Evaluation of token ids: prompts chunk by chunk, steps of one sequence or several.
#include "session/pass.h"

#include "base/size.h"
#include "session/kv/state.h"
#include "session/pooled.h"
#include "session/step/device_step.h"
#include "session/weights/source.h"

#include <string.h>

stint_status st_session_check(const struct stint_session *s, uint32_t sequence) {
    if (!s) return st_fail(STINT_E_ARG, "session may not be NULL");
    if (sequence < s->n_sequences) return STINT_OK;
    return st_fail(STINT_E_ARG, "sequence %u: the session has %u", sequence, s->n_sequences);
}

stint_status st_session_check_ids(const struct stint_session *s, const struct st_sequence *sequence,
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

// How these tokens are computed (kv/state.h).
static unsigned way_of(const struct st_run *run, size_t n, const struct st_eval_request *e) {
    unsigned kind = n == 1 ? ST_WAY_ONE : ST_WAY_STEP;
    return (run->phase == ST_PHASE_PREFILL ? ST_WAY_PROMPT : kind) | e->precision;
}

// Where the logits of a last id go that is run alone; or NULL.
static float *logits_of_one(const struct stint_session *s, const struct st_eval_request *e,
                            size_t done) {
    if (!e->logits || e->n - done != 1) return NULL;
    return e->logits + (e->all ? done * s->model->config.vocab : 0);
}

static stint_status forward(const struct st_run *run, const struct st_eval_request *e, size_t done,
                            bool *head) {
    const int32_t *ids = e->ids + done;
    *head = false;
    if (st_device_step(run, ids, logits_of_one(run->s, e, done), head)) return STINT_OK;
    return st_pass_forward(run, ids);
}

// How many of the next n tokens of a prompt, from the first on, nobody reads behind the last layer.
static size_t unread(const struct st_run *run, const struct st_eval_request *e, size_t done,
                     size_t n) {
    if (run->phase != ST_PHASE_PREFILL || e->pooled || (e->logits && e->all) || run->s->ahead.on)
        return 0;
    if (!st_pass_leaves_unread(run->s)) return 0;
    return e->logits && done + n == e->n ? n - 1 : n;
}

// Runs the next ids: a chunk; where prompts are split as many chunks as there are, or, where each
// one's hidden states are needed, as have buffers. *n gets their number, *head whether a device has
// the logits of the last one, which is alone.
static stint_status run_ids(struct stint_session *s, const struct st_eval_request *e, size_t done,
                            struct st_run *run, size_t *n, bool *head) {
    bool split = s->split.on && run->phase == ST_PHASE_PREFILL && !run->bits;
    struct st_batch batch = {.n = e->n - done,
                             .position = s->sequences[e->sequence].length,
                             .n_total = e->n_total,
                             .sequence = e->sequence};
    if (!split) batch.n = st_min(batch.n, s->chunk_len);
    bool rows = e->pooled || (e->logits && e->all);
    if (split && rows) batch.n = st_min(batch.n, s->n_buffers * s->chunk_len);
    *n = batch.n;
    run->batch = &batch;
    run->n_unread = split ? 0 : unread(run, e, done, batch.n);
    struct st_state_batch state = {e->sequence, batch.position, batch.n, way_of(run, batch.n, e)};
    st_session_reach(s, e->sequence, batch.position + batch.n);
    st_state_begin(s, &state);
    stint_status status =
        split ? st_split_forward(run, e->ids + done) : forward(run, e, done, head);
    if (status == STINT_OK) st_state_end(s, &state);
    run->batch = NULL;
    return status;
}

// Of rows [first, n) of what was run last, chunk by chunk. head: those of one row are there.
static stint_status rows_logits(const struct st_run *run, size_t first, size_t n, bool head,
                                float *logits) {
    struct stint_session *s = run->s;
    size_t vocab = s->model->config.vocab;
    if (head) return st_pass_finish_logits(run, 1, logits);
    for (size_t at = first; at < n;) {
        struct st_run r = *run;
        size_t row = at % s->chunk_len, rows = st_min(s->chunk_len - row, n - at);
        r.buffers = &s->buffers[at / s->chunk_len % s->n_buffers];
        ST_TRY(st_pass_logits(&r, row, rows, logits + (at - first) * vocab));
        at += rows;
    }
    return STINT_OK;
}

// Chunks as short as a short text are not those of a prompt.
static enum st_phase phase_of(const struct stint_session *s, const struct st_eval_request *e) {
    return s->chunk_len > ST_SHORT_TEXT ? e->phase : ST_PHASE_DECODE;
}

static stint_status eval_batches(struct stint_session *s, const struct st_eval_request *e) {
    size_t vocab = s->model->config.vocab;
    struct st_sequence *held = &s->sequences[e->sequence];
    struct st_run run = st_session_run(s, ST_PHASE_DECODE, e->precision, NULL);
    run.as_steps = e->as_steps;
    if (e->phase == ST_PHASE_PREFILL) {
        s->timeline.n = 0;
        s->begun = held->length;
    }
    for (size_t done = 0, n; done < e->n; done += n) {
        run.phase = phase_of(s, e);
        if (s->source->begin) s->source->begin(s, run.phase, run.bits, e->n - done);
        bool head = false;
        ST_TRY(run_ids(s, e, done, &run, &n, &head));
        if (run.phase == ST_PHASE_PREFILL && held->prompted == held->length) held->prompted += n;
        memmove(held->history + held->length, e->ids + done, n * sizeof(int32_t));
        held->length += n;
        run.phase = ST_PHASE_DECODE; // the head meets rows one by one
        if (e->logits && e->all) ST_TRY(rows_logits(&run, 0, n, head, e->logits + done * vocab));
        if (e->logits && !e->all && done + n == e->n)
            ST_TRY(rows_logits(&run, n - 1, n, head, e->logits));
        if (e->pooled) ST_TRY(st_pooled_add(&run, n, e->pooled));
        if (s->ahead.on) {
            run.phase = phase_of(s, e);
            ST_TRY(st_ahead_prompt(&run, e, done, n));
        }
        if (e->progress) e->progress(e->progress_context, "prompt", done + n, e->n);
    }
    return STINT_OK;
}

// What was computed of weights that somebody writes is worth nothing. Their file says so before
// they change. A package's that are read on demand are checked by their hashes.
stint_status st_session_check_files(const struct stint_session *s) {
    const struct st_checkpoint *c = &s->model->checkpoint;
    if (c->lazy && c->package) return STINT_OK;
    ST_TRY(st_checkpoint_check(c));
    return s->model->nested_from ? st_checkpoint_check(&s->model->nested_from->checkpoint)
                                 : STINT_OK;
}

stint_status st_session_eval(struct stint_session *s, const struct st_eval_request *e) {
    struct st_sequence *held = &s->sequences[e->sequence];
    ST_TRY(st_session_check_ids(s, held, e->ids, e->n));
    ST_TRY(st_session_settle(s, e->sequence));
    size_t before = held->length;
    stint_status status = eval_batches(s, e);
    if (status == STINT_OK) status = st_session_check_files(s);
    if (status == STINT_OK) s->newest_bits = st_session_bits_of(s->model, e->precision);
    if (status != STINT_OK) st_sequence_truncate(held, before);
    if (s->source->end) s->source->end(s, status);
    return status;
}

struct st_eval_request st_eval_request_of(const struct stint_session *s, uint32_t sequence,
                                          const int32_t *ids, size_t n) {
    return (struct st_eval_request){.sequence = sequence,
                                    .ids = ids,
                                    .n = n,
                                    .phase = n > ST_SHORT_TEXT ? ST_PHASE_PREFILL : ST_PHASE_DECODE,
                                    .precision = s->precision.prefill,
                                    .n_total = s->sequences[sequence].length + n};
}

stint_status stint_session_eval(stint_session *session, uint32_t sequence, const int32_t *ids,
                                size_t n_ids, bool all, float *logits) {
    ST_TRY(st_session_check(session, sequence));
    if (!ids && n_ids) return st_fail(STINT_E_ARG, "ids may not be NULL");
    struct st_eval_request e = st_eval_request_of(session, sequence, ids, n_ids);
    e.all = all;
    e.logits = logits;
    stint_status status = st_session_eval(session, &e);
    atomic_store(&session->canceled, false);
    return status;
}

stint_status st_session_prompt(struct stint_session *s, uint32_t sequence, const int32_t *ids,
                               size_t n, uint64_t n_total, float *logits) {
    struct st_eval_request e = st_eval_request_of(s, sequence, ids, n);
    e.phase = ST_PHASE_PREFILL;
    e.n_total = n_total;
    e.logits = logits;
    stint_status status = st_session_eval(s, &e);
    atomic_store(&s->canceled, false);
    return status;
}

// Tells the recurrent state of each sequence of a step, before and after it.
typedef void state_fn(struct stint_session *s, const struct st_state_batch *batch);

static void tell_state(struct stint_session *s, state_fn *fn, unsigned precision,
                       const struct st_place *places, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct st_state_batch b = {places[i].sequence, s->sequences[places[i].sequence].length, 0,
                                   ST_WAY_STEP | precision};
        if (places[i].position != b.position) continue; // a draft of one that was told
        for (size_t k = 0; k < n; k++) b.n += places[k].sequence == b.sequence;
        fn(s, &b);
    }
}

// At most STINT_MAX_STEP_ROWS of them.
enum step_kind { STEP, DRAFT, DRAFT_IN_PART };

static stint_status step_batch(struct stint_session *s, unsigned precision, enum step_kind kind,
                               const uint32_t *sequences, const int32_t *ids, size_t n,
                               float *logits) {
    struct st_place places[STINT_MAX_STEP_ROWS];
    struct st_batch batch = {.n = n, .places = places};
    struct st_run run = st_session_run(s, ST_PHASE_DECODE, precision, &batch);
    run.drafts = kind != STEP;
    run.head_in_part = kind == DRAFT_IN_PART || s->drafting.partial >> run.bits & 1;
    for (size_t i = 0; i < n; i++) {
        places[i] = (struct st_place){sequences[i], s->sequences[sequences[i]].length};
        for (size_t k = 0; k < i; k++) places[i].position += sequences[k] == sequences[i];
        st_session_reach(s, sequences[i], places[i].position + 1);
    }
    if (s->source->begin) s->source->begin(s, run.phase, run.bits, n);
    tell_state(s, st_state_begin, precision, places, n);
    bool head = false;
    stint_status status = STINT_OK;
    if (!st_device_step(&run, ids, logits, &head)) status = st_pass_forward(&run, ids);
    if (status == STINT_OK) tell_state(s, st_state_end, precision, places, n);
    if (status == STINT_OK && logits)
        status = head ? st_pass_finish_logits(&run, n, logits) : st_pass_logits(&run, 0, n, logits);
    for (size_t i = 0; i < n && s->ahead.on && status == STINT_OK; i++)
        st_ahead_keep(s, places[i].sequence, places[i].position, ids[i],
                      run.buffers->x + i * s->model->config.hidden);
    if (status == STINT_OK) status = st_session_check_files(s);
    if (s->source->end) s->source->end(s, status);
    return status;
}

// Each is checked with those of its sequence that go before it.
static stint_status check_step(const struct stint_session *s, const uint32_t *sequences,
                               const int32_t *ids, size_t n) {
    size_t lengths[STINT_MAX_SEQUENCES] = {0};
    for (size_t i = 0; i < n; i++) {
        ST_TRY(st_session_check(s, sequences[i]));
        struct st_sequence then = s->sequences[sequences[i]];
        then.length += lengths[sequences[i]]++;
        ST_TRY(st_session_check_ids(s, &then, &ids[i], 1));
    }
    return STINT_OK;
}

static void append(struct stint_session *s, const uint32_t *sequences, const int32_t *ids,
                   size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct st_sequence *sequence = &s->sequences[sequences[i]];
        sequence->history[sequence->length++] = ids[i];
    }
}

static stint_status step(struct stint_session *s, unsigned precision, enum step_kind kind,
                         const uint32_t *sequences, const int32_t *ids, size_t n, float *logits) {
    ST_TRY(check_step(s, sequences, ids, n));
    for (size_t i = 0; i < n; i++) ST_TRY(st_session_settle(s, sequences[i]));
    size_t vocab = s->model->config.vocab, most = st_min(STINT_MAX_STEP_ROWS, s->chunk_len);
    for (size_t done = 0, m; done < n; done += m) {
        m = st_min(most, n - done);
        stint_status status = step_batch(s, precision, kind, sequences + done, ids + done, m,
                                         logits ? logits + done * vocab : NULL);
        if (status != STINT_OK) {
            for (size_t i = 0; i < done; i++) s->sequences[sequences[i]].length--;
            return status;
        }
        append(s, sequences + done, ids + done, m);
    }
    s->newest_bits = st_session_bits_of(s->model, precision);
    return STINT_OK;
}

stint_status st_session_step(struct stint_session *s, unsigned precision, const uint32_t *sequences,
                             const int32_t *ids, size_t n, float *logits) {
    return step(s, precision, STEP, sequences, ids, n, logits);
}

stint_status st_session_draft_step(struct stint_session *s, unsigned precision, bool in_part,
                                   const uint32_t *sequences, const int32_t *ids, size_t n,
                                   float *logits) {
    return step(s, precision, in_part ? DRAFT_IN_PART : DRAFT, sequences, ids, n, logits);
}

static stint_status check_distinct(const uint32_t *sequences, size_t n) {
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        if (sequences[i] < STINT_MAX_SEQUENCES && seen >> sequences[i] & 1)
            return st_fail(STINT_E_ARG, "sequence %u: each may occur once", sequences[i]);
        if (sequences[i] < STINT_MAX_SEQUENCES) seen |= (uint64_t)1 << sequences[i];
    }
    return STINT_OK;
}

stint_status stint_session_step(stint_session *s, const uint32_t *sequences, const int32_t *ids,
                                size_t n, float *logits) {
    if (!s || ((!sequences || !ids) && n))
        return st_fail(STINT_E_ARG, "session, sequences and ids may not be NULL");
    ST_TRY(check_distinct(sequences, n));
    stint_status status = st_session_step(s, s->precision.prefill, sequences, ids, n, logits);
    atomic_store(&s->canceled, false);
    return status;
}

stint_status stint_session_embed(stint_session *session, uint32_t sequence, const int32_t *ids,
                                 size_t n_ids, stint_pooling pooling, float *vector) {
    struct st_pooled pooled = {.vector = vector};
    ST_TRY(st_session_check(session, sequence));
    if (!ids || n_ids == 0 || !vector)
        return st_fail(STINT_E_ARG, "an embedding needs at least one token, and a vector");
    ST_TRY(st_pooled_kind(session->model, pooling, &pooled.kind));
    st_sequence_truncate(&session->sequences[sequence], 0);
    struct st_eval_request e = st_eval_request_of(session, sequence, ids, n_ids);
    e.phase = ST_PHASE_PREFILL;
    e.pooled = &pooled;
    stint_status status = st_session_eval(session, &e);
    atomic_store(&session->canceled, false);
    return status == STINT_OK ? st_pooled_finish(session->model->config.embed, &pooled) : status;
}
