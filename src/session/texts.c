// SPDX-License-Identifier: Apache-2.0
// Parts of several texts in the same passes: many short texts, such as the endings of a task's
// items, read the weights once for all of them and fill the tiles of products.
#include "session/pass.h"

#include "base/size.h"
#include "session/weights/source.h"

#include <stdlib.h>
#include <string.h>

// From how many rows on the head has the kernels for many: few ones sum in another order, and what
// a text gets shall not depend on the others.
enum { LEAST_ROWS = ST_LINEAR_FEW_TOKENS + 1 };

// A row of a pass.
struct row {
    size_t part, i; // ids[i] of it
};

// The rows that go through the layers together.
struct rows {
    size_t n;
    int32_t *ids;            // [chunk_len]
    struct st_place *places; // the same
    struct row *of;          // the same
};

static bool is_wanted(const struct st_texts *t, const struct row *row) {
    return row->i >= t->parts[row->part].first;
}

static bool depends_on_length(const struct st_rope *rope) {
    return rope->scaling == ST_ROPE_DYNAMIC || rope->factors[0] != rope->factors[1];
}

// Whether rows of several texts may be a prompt's batch: recurrent states, split prompts and
// devices that attend take one text at a time, and some rotations depend on its length.
static bool can_share(const struct stint_session *s, const struct st_texts *t) {
    const struct st_config *c = &s->model->config;
    bool by_length = depends_on_length(&c->rope) || depends_on_length(&c->rope_local);
    return t->n_rows >= LEAST_ROWS && s->chunk_len >= LEAST_ROWS && !s->split.on && !s->ahead.on &&
           !s->kv.state.n_layers && !s->kv.device.device && !by_length;
}

// ---- In the same passes

static bool open_rows(const struct stint_session *s, struct rows *rows) {
    *rows = (struct rows){.ids = malloc(s->chunk_len * sizeof *rows->ids),
                          .places = malloc(s->chunk_len * sizeof *rows->places),
                          .of = malloc(s->chunk_len * sizeof *rows->of)};
    return rows->ids && rows->places && rows->of;
}

static void close_rows(struct rows *rows) {
    free(rows->ids);
    free(rows->places);
    free(rows->of);
}

// The next rows of all parts, from *at on, as many as a chunk holds.
static void take_rows(struct stint_session *s, const struct st_texts *t, struct row *at,
                      struct rows *rows) {
    rows->n = 0;
    while (at->part < t->n && rows->n < s->chunk_len) {
        const struct st_text_part *part = &t->parts[at->part];
        if (at->i == part->n) {
            *at = (struct row){at->part + 1, 0};
            continue;
        }
        struct st_sequence *held = &s->sequences[part->sequence];
        rows->ids[rows->n] = part->ids[at->i];
        rows->places[rows->n] = (struct st_place){part->sequence, held->length};
        rows->of[rows->n++] = *at;
        held->prompted += held->prompted == held->length;
        held->history[held->length++] = part->ids[at->i++];
        st_session_reach(s, part->sequence, held->length);
    }
}

// Moves the hidden states whose logits are wanted to the front, and their rows with them.
static size_t gather_wanted(const struct st_run *run, const struct st_texts *t, struct rows *rows) {
    size_t hidden = run->s->model->config.hidden, n = 0;
    float *x = run->buffers->x;
    for (size_t i = 0; i < rows->n; i++) {
        if (!is_wanted(t, &rows->of[i])) continue;
        if (n < i) memcpy(x + n * hidden, x + i * hidden, hidden * sizeof *x);
        rows->of[n++] = rows->of[i];
    }
    return n;
}

// The logits of rows [done, done + n) that are wanted: *first gets those of `done`. Where they are
// few, rows before them and copies of the last one are computed too.
static stint_status rows_logits(const struct st_run *head, const struct st_texts *t, size_t done,
                                size_t n, const float **first) {
    const struct stint_session *s = head->s;
    size_t hidden = s->model->config.hidden, from = st_min(done, s->chunk_len - LEAST_ROWS);
    float *x = head->buffers->x;
    if (n >= LEAST_ROWS) from = done;
    for (size_t i = done + n; i < from + LEAST_ROWS; i++)
        memcpy(x + i * hidden, x + (done + n - 1) * hidden, hidden * sizeof *x);
    *first = t->logits + (done - from) * s->model->config.vocab;
    return st_pass_logits(head, from, st_max(done + n - from, LEAST_ROWS), t->logits);
}

static stint_status give_logits(const struct st_run *run, const struct st_texts *t,
                                struct rows *rows) {
    struct st_run head = *run;
    size_t vocab = run->s->model->config.vocab, wanted = gather_wanted(run, t, rows);
    const float *logits;
    head.phase = ST_PHASE_DECODE; // it meets rows one by one
    head.batch = NULL;
    for (size_t done = 0, n; done < wanted; done += n) {
        n = st_min(t->n_rows, wanted - done);
        ST_TRY(rows_logits(&head, t, done, n, &logits));
        for (size_t i = 0; i < n; i++)
            t->fn(t->context, rows->of[done + i].part, rows->of[done + i].i, logits + i * vocab);
    }
    return STINT_OK;
}

static stint_status run_rows(struct stint_session *s, const struct st_texts *t, struct rows *rows) {
    struct st_batch batch = {.n = rows->n, .places = rows->places};
    struct st_run run = st_session_run(s, ST_PHASE_PREFILL, s->precision.prefill, &batch);
    run.as_steps = true;
    if (s->source->begin) s->source->begin(s, run.phase, run.bits, rows->n);
    ST_TRY(st_pass_forward(&run, rows->ids));
    return give_logits(&run, t, rows);
}

static stint_status eval_together(struct stint_session *s, const struct st_texts *t) {
    struct row at = {0};
    struct rows rows;
    stint_status status =
        open_rows(s, &rows) ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory for a batch of texts");
    s->timeline.n = 0;
    s->begun = 0;
    while (status == STINT_OK) {
        take_rows(s, t, &at, &rows);
        if (rows.n == 0) break;
        status = run_rows(s, t, &rows);
    }
    close_rows(&rows);
    if (status == STINT_OK) status = st_session_check_files(s);
    if (status == STINT_OK) s->newest_bits = st_session_bits_of(s->model, s->precision.prefill);
    if (s->source->end) s->source->end(s, status);
    return status;
}

// ---- One after the other

// Some ids of a part that makes a text of n_total.
static stint_status eval_piece(struct stint_session *s, const struct st_text_part *part,
                               size_t n_total, size_t from, size_t n, float *logits) {
    struct st_eval_request e = st_eval_request_of(s, part->sequence, part->ids + from, n);
    e.all = e.as_steps = true;
    e.n_total = n_total;
    e.logits = logits;
    return n ? st_session_eval(s, &e) : STINT_OK;
}

static stint_status eval_part(struct stint_session *s, const struct st_texts *t, size_t at) {
    const struct st_text_part *part = &t->parts[at];
    size_t vocab = s->model->config.vocab;
    size_t total = s->sequences[part->sequence].length + part->n;
    ST_TRY(eval_piece(s, part, total, 0, st_min(part->first, part->n), NULL));
    for (size_t i = part->first, n; i < part->n; i += n) {
        n = st_min(t->n_rows, part->n - i);
        ST_TRY(eval_piece(s, part, total, i, n, t->logits));
        for (size_t r = 0; r < n; r++) t->fn(t->context, at, i + r, t->logits + r * vocab);
    }
    return STINT_OK;
}

static stint_status eval_apart(struct stint_session *s, const struct st_texts *t) {
    for (size_t i = 0; i < t->n; i++) ST_TRY(eval_part(s, t, i));
    return STINT_OK;
}

stint_status st_session_eval_texts(struct stint_session *s, const struct st_texts *t) {
    size_t before[STINT_MAX_SEQUENCES];
    for (size_t i = 0; i < t->n; i++) {
        const struct st_text_part *part = &t->parts[i];
        ST_TRY(st_session_check(s, part->sequence));
        before[i] = s->sequences[part->sequence].length;
        ST_TRY(st_session_check_ids(s, &s->sequences[part->sequence], part->ids, part->n));
    }
    stint_status status = can_share(s, t) ? eval_together(s, t) : eval_apart(s, t);
    for (size_t i = 0; i < t->n && status != STINT_OK; i++)
        st_sequence_truncate(&s->sequences[t->parts[i].sequence], before[i]);
    return status;
}
