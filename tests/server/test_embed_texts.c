// SPDX-License-Identifier: Apache-2.0
// Embeddings through the request scheduler: what a session of its own gives, whatever runs beside.
#include "server/scheduler/slots.h"
#include "support/support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_TEXTS = 5, N_CONTEXT = 64, MAX_WIDTH = 1024, N_REQUESTS = 6 };

static stint_model *model;
static size_t width;
static int32_t ids[N_TEXTS * N_CONTEXT];
static const size_t lengths[N_TEXTS] = {1, 40, 7, N_CONTEXT, 16};
static size_t n_ids;
static float wanted[N_TEXTS * MAX_WIDTH];

static stint_session_options options_of(uint32_t n_sequences) {
    return (stint_session_options){.size = sizeof(stint_session_options),
                                   .n_threads = 2,
                                   .n_context = N_CONTEXT,
                                   .chunk_len = 16,
                                   .n_sequences = n_sequences};
}

static int open_model(void **state) {
    (void)state;
    stint_session *s;
    stint_session_options o = options_of(1);
    stint_model_info info = {.size = sizeof info};
    assert_int_equal(stint_model_open(ts_trained(), NULL, &model), STINT_OK);
    assert_int_equal(stint_model_describe(model, &info), STINT_OK);
    width = info.embedding;
    assert_int_equal(stint_session_open(model, &o, &s), STINT_OK);
    for (size_t i = 0; i < N_TEXTS; n_ids += lengths[i++]) {
        for (size_t t = 0; t < lengths[i]; t++)
            ids[n_ids + t] = (int32_t)(3 + ts_random_below(4000));
        assert_int_equal(stint_session_embed(s, 0, ids + n_ids, lengths[i], STINT_POOLING_DEFAULT,
                                             wanted + i * width),
                         STINT_OK);
    }
    stint_session_close(s);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

static struct st_scheduler_request request(void) {
    return (struct st_scheduler_request){
        .prompt = ids, .n_prompt = n_ids, .texts = lengths, .n_texts = N_TEXTS};
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static size_t n_ended, n_equal;

static void take(void *context, const struct st_scheduler_event *event) {
    (void)context;
    if (event->end == ST_SCHEDULER_GOES_ON) return;
    pthread_mutex_lock(&lock);
    if (event->vectors) {
        assert_int_equal(event->end, ST_SCHEDULER_STOPPED);
        assert_int_equal(event->usage->prompt_tokens, n_ids);
        n_equal += memcmp(event->vectors, wanted, N_TEXTS * width * sizeof *wanted) == 0;
    }
    n_ended++;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
}

static void wait_for(size_t n) {
    pthread_mutex_lock(&lock);
    while (n_ended < n) pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
}

static void they_equal_those_of_a_session(void **state) {
    (void)state;
    struct st_scheduler *s;
    stint_session_options session = options_of(2);
    struct st_scheduler_options o = {.model = model, .session = &session, .n_queue = N_REQUESTS};
    uint64_t ticket;
    n_ended = n_equal = 0;
    assert_int_equal(st_scheduler_open(&o, &s), STINT_OK);
    for (int i = 0; i < N_REQUESTS; i++) { // every second one generates
        struct st_scheduler_request r = request();
        if (i % 2) r = (struct st_scheduler_request){.prompt = ids, .n_prompt = 30};
        r.options.max_tokens = 20;
        assert_int_equal(st_scheduler_submit(s, &r, take, NULL, &ticket), STINT_OK);
    }
    wait_for(N_REQUESTS);
    assert_int_equal(n_equal, N_REQUESTS / 2);
    st_scheduler_close(s);
}

static void texts_that_do_not_fit_are_refused(void **state) {
    (void)state;
    static const size_t bad[][2] = {{0, 5}, {N_CONTEXT + 1, 1}, {3, 3}};
    struct st_scheduler *s;
    stint_session_options session = options_of(1);
    struct st_scheduler_options o = {.model = model, .session = &session, .n_queue = 1};
    uint64_t ticket;
    assert_int_equal(st_scheduler_open(&o, &s), STINT_OK);
    for (size_t i = 0; i < 3; i++) {
        struct st_scheduler_request r = {
            .prompt = ids, .n_prompt = 5, .texts = bad[i], .n_texts = 2};
        assert_int_equal(st_scheduler_submit(s, &r, take, NULL, &ticket), STINT_E_ARG);
    }
    st_scheduler_close(s);
}

static struct st_job *open_job(struct st_slots *slots, const struct st_scheduler_request *r) {
    struct st_job *job;
    struct st_scheduler_request with_model = *r;
    with_model.options.model = model;
    assert_int_equal(st_job_open(&with_model, model, &job), STINT_OK);
    job->fn = take;
    st_slots_give(slots, &(struct st_slot_choice){0}, job);
    return job;
}

// A cancel that comes too late for its own request stops one piece of the next one, no more.
static void a_late_cancel_costs_one_piece(void **state) {
    (void)state;
    struct st_slots slots;
    stint_session_options o = options_of(1);
    enum st_scheduler_end end = ST_SCHEDULER_GOES_ON;
    assert_int_equal(st_slots_open(model, &o, &slots), STINT_OK);
    struct st_scheduler_request scored = {
        .prompt = ids, .n_prompt = 40, .echo = true, .no_answer = true, .options.logprobs = true};
    const struct st_scheduler_request requests[] = {request(), scored};
    for (size_t i = 0; i < 2; i++) {
        struct st_job *job = open_job(&slots, &requests[i]);
        n_equal = 0;
        stint_session_cancel(slots.session);
        assert_int_equal(st_slots_prompt(&slots, 0, &end), STINT_E_CANCELED);
        do assert_int_equal(st_slots_prompt(&slots, 0, &end), STINT_OK);
        while (end == ST_SCHEDULER_GOES_ON);
        st_job_end(job, end, STINT_OK, NULL);
        assert_int_equal(n_equal, i == 0);
        st_job_free(job);
    }
    slots.slots[0].state = ST_SLOT_FREE;
    st_slots_close(&slots);
}

static void no_memory_is_told(void **state) {
    (void)state;
    struct st_slots slots;
    stint_session_options o = options_of(1);
    struct st_scheduler_request r = request();
    enum st_scheduler_end end;
    struct st_job *job = NULL;
    assert_int_equal(st_slots_open(model, &o, &slots), STINT_OK);
    for (size_t n = 1;; n++) {
        ts_fail_allocation(n);
        stint_status status = st_job_open(&r, model, &job);
        ts_fail_allocation(0);
        if (status == STINT_OK) break;
        assert_int_equal(status, STINT_E_NOMEM);
    }
    st_slots_give(&slots, &(struct st_slot_choice){0}, job);
    ts_fail_allocation(1);
    assert_int_equal(st_slots_prompt(&slots, 0, &end), STINT_E_NOMEM);
    ts_fail_allocation(0);
    st_job_free(job);
    st_slots_close(&slots);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_equal_those_of_a_session),
        cmocka_unit_test(texts_that_do_not_fit_are_refused),
        cmocka_unit_test(a_late_cancel_costs_one_piece),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
