// SPDX-License-Identifier: Apache-2.0
#include "server/scheduler/slots.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/size.h"
#include "generate/rows.h"
#include "session/kv/copy.h"
#include "session/precision/learned.h"
#include "session/precision/precision.h"
#include "session/precision/signal.h"

#include <stdlib.h>
#include <string.h>

stint_status st_slots_open(const stint_model *model, const stint_session_options *options,
                           struct st_slots *slots) {
    struct st_slots s = {0};
    ST_TRY(stint_session_open(model, options, &s.session));
    s.n = s.session->n_sequences;
    s.slots = calloc(s.n, sizeof *s.slots);
    s.scratch.elementwise = s.session->kernels.elementwise;
    s.scratch.candidates = st_sampler_candidates(s.session->draws);
    *slots = s;
    if (s.slots) return STINT_OK;
    st_slots_close(slots);
    return st_fail(STINT_E_NOMEM, "no memory for %u slots", s.n);
}

void st_slots_close(struct st_slots *slots) {
    stint_session_close(slots->session);
    st_generator_scratch_close(&slots->scratch);
    free(slots->slots);
    free(slots->scores);
    *slots = (struct st_slots){0};
}

uint32_t st_slots_count(const struct st_slots *slots, enum st_slot_state state) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < slots->n; i++) n += slots->slots[i].state == state;
    return n;
}

// With RoPE frequencies that depend on the length of the text, the cache depends on it too.
static bool depends_on_length(const struct st_config *c) {
    return c->rope.scaling == ST_ROPE_DYNAMIC || c->rope.scaling == ST_ROPE_LONGROPE;
}

// A prompt whose tokens have log-probabilities is computed as a whole.
static bool scores(const struct st_job *job) {
    return job->echo && job->generator.options.logprobs;
}

static bool may_reuse(const struct st_slots *slots, const struct st_job *job) {
    return !scores(job) && job->n_texts == 0 &&
           !(job->exact && depends_on_length(&slots->session->model->config));
}

static size_t reusable(const struct st_slots *slots, uint32_t slot, const struct st_job *job) {
    const struct stint_session *s = slots->session;
    const struct st_sequence *held = &s->sequences[slot];
    size_t max = st_min(job->exact ? held->prompted : held->length, job->n_prompt - 1), n = 0;
    if (slots->slots[slot].owner != job->owner || !may_reuse(slots, job)) return 0;
    while (n < max && held->history[n] == job->prompt[n]) n++;
    return n;
}

// The slot that holds the most of the job's prompt, of those that are free or of all; among equals
// the least recently used one. -1: there is none. Sets *n to the tokens that it holds.
static int32_t longest(const struct st_slots *slots, const struct st_job *job, bool all,
                       size_t *n) {
    int32_t best = -1;
    *n = 0;
    for (uint32_t i = 0; i < slots->n; i++) {
        enum st_slot_state state = slots->slots[i].state;
        if (state == ST_SLOT_TAKEN || (state != ST_SLOT_FREE && !all)) continue;
        size_t held = reusable(slots, i, job);
        bool older = best >= 0 && held == *n && slots->slots[i].used < slots->slots[best].used;
        if (best >= 0 && held <= *n && !older) continue;
        best = (int32_t)i;
        *n = held;
    }
    return best;
}

// The least recently used free slot, of the empty ones if there are any. pre: one is free
static uint32_t oldest(const struct st_slots *slots, bool *empty) {
    uint32_t best = slots->n;
    *empty = false;
    for (uint32_t i = 0; i < slots->n; i++) {
        if (slots->slots[i].state != ST_SLOT_FREE) continue;
        bool is_empty = slots->session->sequences[i].length == 0;
        bool better = best == slots->n || (is_empty && !*empty) ||
                      (is_empty == *empty && slots->slots[i].used < slots->slots[best].used);
        if (!better) continue;
        best = i;
        *empty = is_empty;
    }
    return best;
}

bool st_slots_select(const struct st_slots *slots, const struct st_job *job,
                     struct st_slot_choice *choice) {
    size_t n, n_source;
    bool empty;
    int32_t best = longest(slots, job, false, &n), source = longest(slots, job, true, &n_source);
    if (best < 0) return false;
    size_t lost = slots->session->sequences[best].length - n;
    uint32_t other = oldest(slots, &empty);
    bool stays = lost == 0 || (!empty && lost <= n);
    *choice = (struct st_slot_choice){(uint32_t)best, (uint32_t)best, n};
    if (stays && (n > 0 || n_source == 0)) return true;
    choice->slot = choice->from = stays ? (uint32_t)best : other;
    choice->reused = reusable(slots, choice->slot, job);
    if (!st_session_copies(slots->session) || n_source <= choice->reused) return true;
    choice->from = (uint32_t)source;
    choice->reused = n_source;
    return true;
}

void st_slots_give(struct st_slots *slots, const struct st_slot_choice *choice,
                   struct st_job *job) {
    struct stint_session *s = slots->session;
    uint32_t slot = choice->slot;
    slots->slots[slot].job = job;
    slots->slots[slot].reused = choice->reused;
    slots->slots[slot].owner = job->owner;
    slots->slots[slot].used = ++slots->n_given;
    slots->slots[slot].state = ST_SLOT_PROMPT;
    if (choice->from != slot)
        st_session_copy(s, choice->from, slot, choice->reused);
    else
        st_sequence_truncate(&s->sequences[slot], choice->reused);
    job->begun = st_now_ns();
    job->done = job->usage.reused_tokens = choice->reused;
    job->usage.queue_seconds = (double)(job->begun - job->submitted) * 1e-9;
    job->precision = s->precision;
    job->record.slot = slot;
}

// ---- Prefixes on disk

static bool gives_up(const struct st_slots *slots, const struct st_slot_choice *choice) {
    size_t kept = choice->from == choice->slot ? choice->reused : 0;
    size_t lost = slots->session->sequences[choice->slot].length - kept;
    return lost >= ST_PREFIX_MIN && lost > kept;
}

static bool may_load(const struct st_slots *slots, const struct st_job *job, size_t held) {
    return may_reuse(slots, job) && job->n_prompt > held + ST_PREFIX_MIN;
}

bool st_slots_fetches(const struct st_slots *slots, const struct st_job *job,
                      const struct st_slot_choice *choice) {
    return slots->prefixes.folder && !job->fetched &&
           (gives_up(slots, choice) || may_load(slots, job, choice->reused));
}

bool st_slots_save_prefix(struct st_slots *slots, uint32_t slot) {
    bool saved;
    if (st_prefixes_save(&slots->prefixes, slots->session, slot, slots->slots[slot].owner,
                         &saved) != STINT_OK)
        st_log(STINT_LOG_WARNING, "a prefix is not kept: %s", stint_error_text());
    return saved;
}

void st_slots_fetch(struct st_slots *slots, const struct st_slot_choice *choice,
                    const struct st_job *job, bool *saved, bool *loaded) {
    struct st_prefix_file file;
    uint32_t slot = choice->slot;
    bool found = may_load(slots, job, choice->reused) &&
                 st_prefixes_find(&slots->prefixes, job->owner, job->prompt, job->n_prompt - 1,
                                  job->exact, &file) &&
                 file.n >= choice->reused + ST_PREFIX_MIN;
    *saved = gives_up(slots, choice) && st_slots_save_prefix(slots, slot);
    *loaded = found && st_prefixes_load(&slots->prefixes, slots->session, slot, job->owner,
                                        &file) == STINT_OK;
    if (*loaded)
        slots->slots[slot].owner = job->owner;
    else if (found)
        st_log(STINT_LOG_WARNING, "a prefix is not loaded: %s", stint_error_text());
}

// ---- Running

void st_slots_end(struct st_slots *slots, uint32_t slot, stint_status status) {
    struct st_slot *at = &slots->slots[slot];
    if (status == STINT_E_CANCELED) return;
    at->n_failures = status == STINT_OK ? 0 : at->n_failures + 1;
    if (status == STINT_OK) return;
    st_sequence_truncate(&slots->session->sequences[slot], at->n_failures > 1 ? 0 : at->reused);
}

static size_t common(const struct st_job *a, const struct st_job *b) {
    size_t n = 0, max = st_min(a->n_prompt, b->n_prompt);
    while (n < max && a->prompt[n] == b->prompt[n]) n++;
    return n;
}

// Whether most of a prompt, of which nothing was computed yet, is computed for an earlier request:
// it will be copied.
static bool is_computed_elsewhere(const struct st_slots *slots, uint32_t slot) {
    const struct st_slot *own = &slots->slots[slot];
    const struct st_job *job = own->job;
    if (job->done != own->reused || !may_reuse(slots, job) || !st_session_copies(slots->session))
        return false;
    for (uint32_t i = 0; i < slots->n; i++) {
        const struct st_slot *other = &slots->slots[i];
        if (other->state != ST_SLOT_PROMPT || other->used >= own->used ||
            other->owner != own->owner || other->job->n_texts > 0)
            continue;
        size_t n = st_min(common(job, other->job), job->n_prompt - 1);
        size_t most = job->done + (job->n_prompt - job->done) / 2;
        if (n > other->job->done && n > most) return true;
    }
    return false;
}

// Before the first piece: copies what other slots have computed of the prompt by now.
static void take_over(struct st_slots *slots, uint32_t slot) {
    struct st_job *job = slots->slots[slot].job;
    size_t n;
    int32_t source = longest(slots, job, true, &n);
    if (job->done != slots->slots[slot].reused || n <= job->done ||
        !st_session_copies(slots->session))
        return;
    st_session_copy(slots->session, (uint32_t)source, slot, n);
    slots->slots[slot].reused = job->done = job->usage.reused_tokens = n;
}

int32_t st_slots_next_prompt(struct st_slots *slots) {
    for (uint32_t i = 0; i < slots->n; i++) {
        uint32_t slot = (slots->turn + i) % slots->n;
        if (slots->slots[slot].state != ST_SLOT_PROMPT || is_computed_elsewhere(slots, slot))
            continue;
        take_over(slots, slot);
        return (int32_t)slot;
    }
    return -1;
}

// Continues the answer of a slot with logits [vocab].
static enum st_scheduler_end go_on(struct st_slots *slots, uint32_t slot, float *logits,
                                   uint32_t batch) {
    const struct st_sequence *held = &slots->session->sequences[slot];
    struct st_job *job = slots->slots[slot].job;
    struct st_token token;
    job->signal =
        st_signal_read(job->precision.signal, logits, slots->session->model->config.vocab);
    if (!st_generator_next(&job->generator, &slots->scratch, logits, held->history, held->length,
                           &token))
        return st_job_reason(job);
    return st_job_accept(job, &token, slots->session->newest_bits, batch);
}

// Adds the piece to the job's record.
static void record_piece(struct st_job *job, const struct stint_session *s, uint64_t begun) {
    stint_prefill_info info = {.size = sizeof info};
    if (stint_session_prefill(s, &info) == STINT_OK)
        st_record_piece(&job->record, &s->timeline, (double)(begun - job->begun) * 1e-9, &info);
}

static stint_status begin_answer(struct st_slots *slots, uint32_t slot,
                                 enum st_scheduler_end *end) {
    struct stint_session *s = slots->session;
    const struct st_sequence *held = &s->sequences[slot];
    struct st_job *job = slots->slots[slot].job;
    ST_TRY(st_generator_begin(&job->generator, &slots->scratch, held->history, held->length,
                              s->n_context));
    if (s->learned) st_learned_select(s->learned, s, slot, &job->precision);
    job->prefilled = st_now_ns();
    job->usage.prefill_seconds = (double)(job->prefilled - job->begun) * 1e-9;
    slots->slots[slot].state = ST_SLOT_ANSWER;
    *end = job->no_answer ? ST_SCHEDULER_LENGTH : go_on(slots, slot, s->logits, 1);
    return STINT_OK;
}

// Computes n tokens of a prompt with the logits of all, which score the tokens behind them.
static stint_status score_piece(struct st_slots *slots, uint32_t slot, size_t n) {
    struct stint_session *s = slots->session;
    struct st_job *job = slots->slots[slot].job;
    size_t vocab = s->model->config.vocab, next = job->done + 1;
    if (!slots->scores) slots->scores = calloc(ST_SLOTS_SCORED * vocab, sizeof *slots->scores);
    if (!slots->scores) return st_fail(STINT_E_NOMEM, "no memory for log-probabilities");
    struct st_eval_request e = st_eval_request_of(s, slot, job->prompt + job->done, n);
    e.phase = ST_PHASE_PREFILL;
    e.n_total = job->n_prompt;
    e.all = true;
    e.logits = slots->scores;
    ST_TRY(st_session_eval(s, &e));
    if (job->done == 0) st_job_echo(job, 0, 1, NULL);
    st_job_echo(job, next, st_min(n, job->n_prompt - next), slots->scores);
    memcpy(s->logits, slots->scores + (n - 1) * vocab, vocab * sizeof *s->logits);
    return STINT_OK;
}

static stint_status prompt_piece(struct st_slots *slots, uint32_t slot, size_t n) {
    struct st_job *job = slots->slots[slot].job;
    bool last = job->done + n == job->n_prompt;
    if (scores(job)) return score_piece(slots, slot, n);
    if (job->echo && last) st_job_echo(job, 0, job->n_prompt, NULL);
    return st_session_prompt(slots->session, slot, job->prompt + job->done, n, job->n_prompt,
                             last ? slots->session->logits : NULL);
}

stint_status st_slots_prompt(struct st_slots *slots, uint32_t slot, enum st_scheduler_end *end) {
    struct stint_session *s = slots->session;
    struct st_job *job = slots->slots[slot].job;
    bool alone = s->split.on && st_slots_count(slots, ST_SLOT_ANSWER) == 0;
    size_t max = s->chunk_len * (alone ? s->n_buffers : 1),
           n = st_min(max, job->n_prompt - job->done);
    if (scores(job)) n = st_min(n, ST_SLOTS_SCORED);
    bool last = job->done + n == job->n_prompt;
    uint64_t begun = st_now_ns();
    *end = ST_SCHEDULER_GOES_ON;
    stint_status status =
        job->n_texts > 0 ? st_slots_embed(slots, slot, max, end) : prompt_piece(slots, slot, n);
    atomic_store(&s->canceled, false); // or it would stop the next piece too, for good
    ST_TRY(status);
    record_piece(job, s, begun);
    slots->turn = (slot + 1) % slots->n;
    if (job->n_texts > 0) return STINT_OK;
    job->done += n;
    return last ? begin_answer(slots, slot, end) : STINT_OK;
}

// The tokens of a slot that a step gave. GOES_ON: the answer is not ended.
static enum st_scheduler_end take_rows(struct st_slots *slots, uint32_t slot, struct st_rows *rows,
                                       size_t i) {
    struct stint_session *s = slots->session;
    struct st_job *job = slots->slots[slot].job;
    const struct st_rows_text *text = &rows->texts[i];
    enum st_scheduler_end end;
    do {
        float *logits = s->logits + (text->first + text->n_taken) * s->model->config.vocab;
        end = go_on(slots, slot, logits, (uint32_t)rows->n_texts);
    } while (end == ST_SCHEDULER_GOES_ON && st_rows_take(s, rows, i, job->next_id));
    job->usage.drafted_tokens += text->n - 1;
    job->usage.accepted_tokens += text->n_taken;
    if (text->self) job->usage.self_drafted_tokens += text->n - 1;
    if (text->self) job->usage.self_accepted_tokens += text->n_taken;
    return end;
}

static stint_status step_rows(struct st_slots *slots, const uint32_t *batch, struct st_rows *rows) {
    for (size_t i = 0; i < rows->n_texts; i++) {
        const struct st_job *job = slots->slots[batch[i]].job;
        rows->texts[i] = (struct st_rows_text){.sequence = batch[i],
                                               .newest = job->next_id,
                                               .generator = &job->generator,
                                               .precision = &job->precision};
    }
    struct stint_session *s = slots->session;
    stint_status status = st_rows_draft(s, rows, s->logits);
    if (status == STINT_OK) status = st_rows_step(s, rows, s->logits);
    atomic_store(&s->canceled, false);
    return status;
}

// One batch: slots of one precision.
static uint32_t step_batch(struct st_slots *slots, unsigned bits, const uint32_t *batch, uint32_t n,
                           struct st_slot_end *ends) {
    struct st_rows rows = {.n_texts = n, .bits = bits, .scratch = &slots->scratch};
    uint32_t n_ends = 0;
    stint_status status = step_rows(slots, batch, &rows);
    if (status != STINT_OK && status != STINT_E_CANCELED && n > 1) {
        for (uint32_t i = 0; i < n; i++)
            n_ends += step_batch(slots, bits, batch + i, 1, ends + n_ends);
        return n_ends;
    }
    for (uint32_t i = 0; i < n; i++) {
        enum st_scheduler_end end = ST_SCHEDULER_FAILED;
        if (status == STINT_OK) end = take_rows(slots, batch[i], &rows, i);
        if (end != ST_SCHEDULER_GOES_ON)
            ends[n_ends++] = (struct st_slot_end){batch[i], end, status};
    }
    if (status == STINT_OK) st_rows_end(slots->session, &rows);
    return n_ends;
}

static unsigned next_bits(const struct st_slot *slot) {
    const struct st_job *job = slot->job;
    return st_precision_at(&job->precision, job->usage.generated_tokens - 1, job->signal);
}

uint32_t st_slots_step(struct st_slots *slots, struct st_slot_end *ends, uint64_t *steps) {
    unsigned bits[STINT_MAX_SEQUENCES];
    uint32_t n_ends = 0;
    uint64_t waits = 0; // a bit per slot
    for (uint32_t i = 0; i < slots->n; i++) {
        if (slots->slots[i].state != ST_SLOT_ANSWER) continue;
        bits[i] = next_bits(&slots->slots[i]);
        waits |= (uint64_t)1 << i;
    }
    while (waits) {
        uint32_t batch[STINT_MAX_STEP_ROWS];
        uint32_t n = (uint32_t)st_rows_group(slots->session, bits, &waits, batch);
        n_ends += step_batch(slots, bits[batch[0]], batch, n, ends + n_ends);
        ++*steps;
    }
    return n_ends;
}
