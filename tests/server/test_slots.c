// SPDX-License-Identifier: Apache-2.0
// Slots that answer at the same time take their steps together, as many as a step has rows.
#include "server/scheduler/slots.h"
#include "support/kinds.h"
#include "support/support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_PROMPT = 8, N_CONTEXT = 128 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static size_t n_ended;

static void count_end(void *context, const struct st_scheduler_event *event) {
    (void)context;
    if (event->end == ST_SCHEDULER_GOES_ON) return;
    pthread_mutex_lock(&lock);
    n_ended++;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
}

// Holds the request scheduler's thread until the gate is open.
static void wait_at_gate(void *context, const struct st_scheduler_event *event) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    count_end(context, event);
}

static void submit_all(struct st_scheduler *e, size_t n, uint32_t n_tokens) {
    uint64_t ticket;
    pthread_mutex_lock(&gate);
    for (size_t i = 0; i < n; i++) {
        int32_t prompt[N_PROMPT];
        for (size_t j = 0; j < N_PROMPT; j++) prompt[j] = (int32_t)(3 + ts_random_below(4000));
        struct st_scheduler_request r = {
            .prompt = prompt, .n_prompt = N_PROMPT, .options.max_tokens = n_tokens};
        assert_int_equal(st_scheduler_submit(e, &r, i ? count_end : wait_at_gate, NULL, &ticket),
                         STINT_OK);
    }
    pthread_mutex_unlock(&gate);
    pthread_mutex_lock(&lock);
    while (n_ended < n) pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
}

// Prompts of one chunk: after as many rounds as there are slots all answer, one step for all.
static void all_slots_share_a_step(void **state) {
    (void)state;
    enum { N = STINT_MAX_STEP_ROWS, TOKENS = 3 * N };
    stint_model *model = NULL;
    struct st_scheduler *e = NULL;
    struct st_scheduler_stats stats;
    assert_int_equal(stint_model_open(ts_trained(), NULL, &model), STINT_OK);
    stint_session_options session = {
        .size = sizeof session, .n_threads = 2, .n_context = N_CONTEXT, .n_sequences = N};
    struct st_scheduler_options o = {.model = model, .session = &session, .n_queue = N};
    assert_int_equal(st_scheduler_open(&o, &e), STINT_OK);
    submit_all(e, N, TOKENS);
    st_scheduler_stats(e, &stats);
    assert_int_equal(stats.generated_tokens, N * TOKENS);
    assert_true(stats.decode_steps <= TOKENS + N);
    st_scheduler_close(e);
    stint_model_close(model);
}

// ---- Drafts

enum { N_ANSWERS = 5, MAX_TOKENS = 40 };

struct answer {
    int32_t ids[MAX_TOKENS];
    size_t n;
    struct st_scheduler_usage usage;
};

static void note_token(void *context, const struct st_scheduler_event *event) {
    struct answer *a = context;
    if (event->token) a->ids[a->n++] = event->token->id;
    if (event->end != ST_SCHEDULER_GOES_ON) a->usage = *event->usage;
}

static void end_job(struct st_slots *slots, uint32_t slot, enum st_scheduler_end end) {
    assert_true(end == ST_SCHEDULER_STOPPED || end == ST_SCHEDULER_LENGTH);
    st_slots_end(slots, slot, STINT_OK);
    st_job_end(slots->slots[slot].job, end, STINT_OK, NULL);
    st_job_free(slots->slots[slot].job);
    slots->slots[slot].state = ST_SLOT_FREE;
}

// All requests side by side; drafts are computed whatever they cost.
static void answer_all(const stint_model *model, uint32_t n_drafts,
                       const struct st_scheduler_request *requests, struct answer *answers) {
    struct st_slots slots;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = N_CONTEXT,
                               .n_sequences = N_ANSWERS,
                               .n_drafts = n_drafts,
                               .draft_bits = 3};
    assert_int_equal(st_slots_open(model, &o, &slots), STINT_OK);
    slots.session->drafting.costs.always = true;
    memset(answers, 0, N_ANSWERS * sizeof *answers);
    for (uint32_t i = 0; i < N_ANSWERS; i++) {
        struct st_scheduler_request r = requests[i];
        struct st_job *job = NULL;
        enum st_scheduler_end end;
        r.options.model = model;
        assert_int_equal(st_job_open(&r, model, &job), STINT_OK);
        job->fn = note_token;
        job->context = &answers[i];
        st_slots_give(&slots, &(struct st_slot_choice){i, i, 0}, job);
        assert_int_equal(st_slots_prompt(&slots, i, &end), STINT_OK);
        if (end != ST_SCHEDULER_GOES_ON) end_job(&slots, i, end);
    }
    while (st_slots_count(&slots, ST_SLOT_ANSWER) > 0) {
        struct st_slot_end ends[N_ANSWERS];
        uint64_t steps = 0;
        uint32_t n = st_slots_step(&slots, ends, &steps);
        for (uint32_t i = 0; i < n; i++) end_job(&slots, ends[i].slot, ends[i].end);
    }
    st_slots_close(&slots);
}

static void drafts_of_several_slots_change_nothing(void **state) {
    (void)state;
    stint_model *model = NULL;
    static int32_t prompts[N_ANSWERS][60];
    struct st_scheduler_request requests[N_ANSWERS] = {0};
    struct answer plain[N_ANSWERS], drafted[N_ANSWERS];
    const stint_sampling warm = {.size = sizeof warm, .temperature = 0.5f, .seed = 3, .top_k = 4};
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 200, .bits_low = 2, .bits_high = 3};
    model = ts_package(ts_built("models/novels-2"), "slots", &o);
    for (int i = 0; i < N_ANSWERS; i++) {
        for (int j = 0; j < 60; j++)
            prompts[i][j] =
                j < 7 + i ? (int32_t)(3 + ts_random_below(4000)) : prompts[i][j - 7 - i];
        requests[i] = (struct st_scheduler_request){.prompt = prompts[i], .n_prompt = 60};
        requests[i].options.max_tokens = 10 + (uint32_t)ts_random_below(MAX_TOKENS - 10);
        requests[i].options.sampling = i % 2 ? &warm : NULL;
    }
    answer_all(model, 0, requests, plain);
    size_t n_drafted = 0, n_self = 0;
    for (uint32_t n_drafts = 1; n_drafts < STINT_MAX_STEP_ROWS; n_drafts += 7) {
        answer_all(model, n_drafts, requests, drafted);
        for (int i = 0; i < N_ANSWERS; i++) {
            assert_int_equal(drafted[i].n, plain[i].n);
            assert_memory_equal(drafted[i].ids, plain[i].ids, plain[i].n * sizeof *plain[i].ids);
            assert_int_equal(plain[i].usage.drafted_tokens, 0);
            assert_true(drafted[i].usage.accepted_tokens <= drafted[i].usage.drafted_tokens);
            n_drafted += drafted[i].usage.drafted_tokens;
            n_self += drafted[i].usage.self_accepted_tokens;
        }
    }
    assert_true(n_self > 0 && n_drafted > n_self);
    stint_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_slots_share_a_step),
                                       cmocka_unit_test(drafts_of_several_slots_change_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
