// SPDX-License-Identifier: Apache-2.0
// The request scheduler: whatever runs beside it, a request gets the answer that it gets alone;
// every request ends exactly once; and slots come free.
#include "constraint/constraint.h"
#include "server/scheduler/scheduler.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MODEL STINT_TESTS_DIR "/models/novels-2"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) // each takes seconds
enum { N_REQUESTS = 9 };
#else
enum { N_REQUESTS = 24 };
#endif
enum { N_SLOTS = 4, N_QUEUE = 64, MAX_IDS = 200 };

static stint_model *model, *package; // float; INT8 with nested weights

static int open_models(void **state) {
    (void)state;
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = 300,
                               .outliers = STINT_OUTLIERS_NONE,
                               .bits_low = 2,
                               .bits_high = 4};
    assert_int_equal(stint_model_open(MODEL, NULL, &model), STINT_OK);
    package = ts_package(MODEL, "m", &o);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    stint_model_close(model);
    stint_model_close(package);
    return 0;
}

static struct st_scheduler *open_engine(const stint_model *m, uint32_t n_slots, uint32_t n_queue,
                                        const char *schedule) {
    struct st_scheduler *s = NULL;
    stint_session_options session = {.size = sizeof session,
                                     .n_threads = 2,
                                     .n_context = 256,
                                     .chunk_len = 16,
                                     .schedule = schedule,
                                     .n_sequences = n_slots};
    struct st_scheduler_options o = {.model = m, .session = &session, .n_queue = n_queue};
    if (st_scheduler_open(&o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

// What a request got.
struct answer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int32_t ids[MAX_IDS];
    float logprobs[MAX_IDS];
    uint32_t bits[MAX_IDS];
    int32_t best[MAX_IDS];
    size_t n_ids, n_text, n_ends;
    char text[16384];
    enum st_scheduler_end end;
    struct st_scheduler_usage usage;
    uint64_t ticket;
};

static void take_event(void *context, const struct st_scheduler_event *event) {
    struct answer *a = context;
    pthread_mutex_lock(&a->lock);
    if (event->token) {
        assert_true(a->n_ids < MAX_IDS);
        a->logprobs[a->n_ids] = event->token->logprob;
        a->bits[a->n_ids] = event->bits;
        a->best[a->n_ids] = event->token->n_top ? event->token->top[0].id : -1;
        a->ids[a->n_ids++] = event->token->id;
    }
    memcpy(a->text + a->n_text, event->text, event->n_bytes);
    a->n_text += event->n_bytes;
    if (event->end != ST_SCHEDULER_GOES_ON) {
        a->end = event->end;
        a->usage = *event->usage;
        a->n_ends++;
    }
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static struct answer *new_answer(void) {
    struct answer *a = calloc(1, sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    return a;
}

static void wait_for(struct answer *a, size_t n_ids) {
    pthread_mutex_lock(&a->lock);
    while (!a->n_ends && a->n_ids < n_ids) pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

static void wait_end(struct answer *a) {
    wait_for(a, SIZE_MAX);
}

static stint_status submit(struct st_scheduler *s, const struct st_scheduler_request *request,
                           struct answer *a) {
    return st_scheduler_submit(s, request, take_event, a, &a->ticket);
}

static struct answer *ask(struct st_scheduler *s, const struct st_scheduler_request *request) {
    struct answer *a = new_answer();
    if (submit(s, request, a) != STINT_OK) fail_msg("%s", stint_error_text());
    wait_end(a);
    return a;
}

static void random_prompt(int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(3 + ts_random_below(4000));
}

static void assert_same(const struct answer *got, const struct answer *wanted, int i) {
    if (got->n_ids != wanted->n_ids || memcmp(got->ids, wanted->ids, got->n_ids * 4) != 0 ||
        got->n_text != wanted->n_text || memcmp(got->text, wanted->text, got->n_text) != 0)
        fail_msg("request %d: '%.*s' (%zu tokens), alone '%.*s' (%zu)", i, (int)got->n_text,
                 got->text, got->n_ids, (int)wanted->n_text, wanted->text, wanted->n_ids);
    assert_int_equal(got->end, wanted->end);
    assert_int_equal(got->n_ends, 1);
}

static void check_together(const stint_model *m, const char *schedule, uint32_t n_slots) {
    static int32_t prompts[N_REQUESTS][80];
    struct st_scheduler_request requests[N_REQUESTS];
    stint_sampling warm = {.size = sizeof warm, .temperature = 0.8f, .seed = 5, .top_p = 0.9f};
    struct answer *alone[N_REQUESTS], *together[N_REQUESTS];
    struct st_scheduler *s = open_engine(m, 1, N_QUEUE, schedule);
    for (int i = 0; i < N_REQUESTS; i++) {
        size_t n = 1 + ts_random_below(80);
        random_prompt(prompts[i], n);
        if (i % 3 == 2) // shares its beginning with another
            memcpy(prompts[i], prompts[i - 1], (n < 30 ? n : 30) * sizeof **prompts);
        requests[i] =
            (struct st_scheduler_request){.prompt = prompts[i],
                                          .n_prompt = n,
                                          .options.max_tokens = 1 + (uint32_t)ts_random_below(24),
                                          .exact = true,
                                          .options.sampling = i % 4 == 1 ? &warm : NULL};
        alone[i] = ask(s, &requests[i]);
    }
    st_scheduler_close(s);
    s = open_engine(m, n_slots, N_QUEUE, schedule);
    for (int i = 0; i < N_REQUESTS; i++) {
        together[i] = new_answer();
        assert_int_equal(submit(s, &requests[i], together[i]), STINT_OK);
    }
    for (int i = 0; i < N_REQUESTS; i++) {
        wait_end(together[i]);
        assert_same(together[i], alone[i], i);
        free(together[i]);
        free(alone[i]);
    }
    struct st_scheduler_stats stats;
    st_scheduler_stats(s, &stats);
    assert_int_equal(stats.requests, N_REQUESTS);
    assert_int_equal(stats.queued, 0);
    st_scheduler_close(s);
}

static void answers_do_not_depend_on_the_others(void **state) {
    (void)state;
    check_together(model, NULL, N_SLOTS);
    check_together(package, NULL, N_SLOTS);
    check_together(package, "uniform:3", N_SLOTS);
    check_together(model, NULL, STINT_MAX_STEP_ROWS);
    check_together(package, NULL, STINT_MAX_STEP_ROWS);
}

static void beginnings_are_not_computed_twice(void **state) {
    (void)state;
    struct st_scheduler *s = open_engine(package, 2, N_QUEUE, NULL);
    int32_t prompt[120];
    random_prompt(prompt, 120);
    struct st_scheduler_request r = {.prompt = prompt, .n_prompt = 60, .options.max_tokens = 10};
    struct answer *first = ask(s, &r), *again = ask(s, &r);
    assert_int_equal(first->usage.reused_tokens, 0);
    assert_int_equal(again->usage.reused_tokens, 59);
    assert_same(again, first, 0);
    // A conversation goes on with the answer: it is held too, but for those who want the same bits
    // as anew.
    memcpy(prompt + 60, again->ids, 9 * sizeof *prompt);
    r.n_prompt = 75;
    r.exact = true;
    struct answer *exact = ask(s, &r);
    assert_int_equal(exact->usage.reused_tokens, 60);
    free(first);
    free(again);
    free(exact);
    st_scheduler_close(s);
    s = open_engine(package, 2, N_QUEUE, NULL);
    r = (struct st_scheduler_request){.prompt = prompt, .n_prompt = 60, .options.max_tokens = 10};
    free(ask(s, &r));
    r.n_prompt = 75;
    struct answer *more = ask(s, &r);
    assert_int_equal(more->usage.reused_tokens, 69);
    free(more);
    st_scheduler_close(s);
}

static void a_stop_text_ends_the_answer_before_it(void **state) {
    (void)state;
    struct st_scheduler *s = open_engine(model, 1, N_QUEUE, NULL);
    int32_t prompt[20];
    random_prompt(prompt, 20);
    struct st_scheduler_request r = {.prompt = prompt, .n_prompt = 20, .options.max_tokens = 40};
    struct answer *whole = ask(s, &r);
    whole->text[whole->n_text] = 0;
    assert_true(whole->n_text > 20);
    char stop[8];
    snprintf(stop, sizeof stop, "%.5s", whole->text + whole->n_text / 2);
    const char *const stops[] = {"never to be seen", stop};
    r.options.stops = stops;
    r.options.n_stops = 2;
    struct answer *stopped = ask(s, &r);
    assert_int_equal(stopped->end, ST_SCHEDULER_STOPPED);
    size_t wanted = (size_t)(strstr(whole->text, stop) - whole->text);
    assert_int_equal(stopped->n_text, wanted);
    assert_memory_equal(stopped->text, whole->text, wanted);
    r.options.reasoning =
        ST_REASONING_BEFORE; // which this model does not begin with: all is answer
    struct answer *before = ask(s, &r);
    assert_same(before, stopped, 0);
    r.options.reasoning = ST_REASONING_INSIDE; // and does not end: none is
    struct answer *inside = ask(s, &r);
    assert_same(inside, whole, 0);
    free(before);
    free(inside);
    free(whole);
    free(stopped);
    st_scheduler_close(s);
}

static void logprobs_are_those_of_the_model(void **state) {
    (void)state;
    struct st_scheduler *s = open_engine(model, 1, N_QUEUE, NULL);
    stint_sampling punished = {.size = sizeof punished, .presence_penalty = 2.0f};
    int32_t prompt[20];
    random_prompt(prompt, 20);
    struct st_scheduler_request r = {.prompt = prompt,
                                     .n_prompt = 20,
                                     .options.max_tokens = 20,
                                     .options.logprobs = true,
                                     .options.n_top = 3};
    struct answer *plain = ask(s, &r);
    r.options.sampling = &punished;
    struct answer *other = ask(s, &r);
    stint_session *session = NULL;
    stint_model_info info = {.size = sizeof info};
    stint_model_describe(model, &info);
    float *logits = malloc(info.vocab * sizeof *logits);
    assert_int_equal(stint_session_open(model, NULL, &session), STINT_OK);
    assert_int_equal(stint_session_eval(session, 0, prompt, 20, false, logits), STINT_OK);
    double sum = 0.0;
    for (uint32_t i = 0; i < info.vocab; i++) sum += exp((double)logits[i]);
    double wanted = (double)logits[plain->ids[0]] - log(sum);
    assert_true(fabs((double)plain->logprobs[0] - wanted) < 1e-3);
    for (size_t i = 0; i < plain->n_ids; i++) {
        assert_int_equal(plain->best[i], plain->ids[i]); // greedy
        assert_true(plain->logprobs[i] <= 0.0f);
    }
    // Penalties change what is taken, not what the model says of it.
    assert_true(other->logprobs[0] == plain->logprobs[0]);
    free(logits);
    free(plain);
    free(other);
    stint_session_close(session);
    st_scheduler_close(s);
}

static void constrained_answers_are_json(void **state) {
    (void)state;
    struct st_scheduler *s = open_engine(model, 3, N_QUEUE, NULL);
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":12},"
        "\"age\":{\"type\":\"integer\",\"minimum\":3,\"maximum\":90}},"
        "\"required\":[\"name\",\"age\"],\"additionalProperties\":false}";
    json_t *parsed = json_loads(schema, 0, NULL);
    struct st_constraint *constraint = NULL;
    assert_int_equal(st_constraint_schema(parsed, &constraint), STINT_OK);
    json_decref(parsed);
    struct answer *answers[12];
    for (uint64_t i = 0; i < 12; i++) {
        stint_sampling sampling = {.size = sizeof sampling, .temperature = 1.2f, .seed = i};
        int32_t prompt[10];
        random_prompt(prompt, 10);
        struct st_scheduler_request r = {.prompt = prompt,
                                         .n_prompt = 10,
                                         .options.max_tokens = MAX_IDS,
                                         .options.sampling = &sampling,
                                         .options.constraint = i % 4 == 3 ? NULL : constraint};
        answers[i] = new_answer();
        assert_int_equal(submit(s, &r, answers[i]), STINT_OK);
    }
    for (int i = 0; i < 12; i++) {
        wait_end(answers[i]);
        json_error_t error;
        if (i % 4 == 3) {
            free(answers[i]);
            continue; // ran beside them, free
        }
        assert_int_equal(answers[i]->end, ST_SCHEDULER_STOPPED);
        json_t *json = json_loadb(answers[i]->text, answers[i]->n_text, 0, &error);
        if (!json) fail_msg("'%.*s': %s", (int)answers[i]->n_text, answers[i]->text, error.text);
        json_int_t age = json_integer_value(json_object_get(json, "age"));
        assert_true(age >= 3 && age <= 90);
        assert_true(json_is_string(json_object_get(json, "name")));
        assert_int_equal(json_object_size(json), 2);
        json_decref(json);
        free(answers[i]);
    }
    st_scheduler_close(s);
    st_constraint_free(constraint);
}

static void canceled_requests_free_their_slots(void **state) {
    (void)state;
    struct st_scheduler *s = open_engine(model, 2, N_QUEUE, NULL);
    int32_t prompt[100];
    random_prompt(prompt, 100);
    struct st_scheduler_request r = {.prompt = prompt, .n_prompt = 100};
    struct answer *a[6];
    for (int i = 0; i < 6; i++) {
        a[i] = new_answer();
        assert_int_equal(submit(s, &r, a[i]), STINT_OK);
    }
    wait_for(a[0], 2);
    st_scheduler_cancel(s, a[4]->ticket); // waits
    assert_int_equal(a[4]->n_ends, 1);
    assert_int_equal(a[4]->end, ST_SCHEDULER_CANCELED);
    assert_int_equal(a[4]->n_ids, 0);
    for (int i = 0; i < 6; i++) {
        if (i == 1) continue;
        st_scheduler_cancel(s, a[i]->ticket);
        st_scheduler_cancel(s, a[i]->ticket);
        wait_end(a[i]);
    }
    st_scheduler_cancel(s, 1000);
    wait_end(a[1]); // nobody canceled this one: it fills its context
    assert_int_equal(a[1]->end, ST_SCHEDULER_LENGTH);
    assert_int_equal(a[1]->usage.prompt_tokens + a[1]->usage.generated_tokens, 257);
    assert_true(st_scheduler_drain(s, 10.0));
    struct st_scheduler_stats stats;
    st_scheduler_stats(s, &stats);
    assert_int_equal(stats.busy, 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(a[i]->n_ends, 1);
        free(a[i]);
    }
    st_scheduler_close(s);
}

static void a_full_queue_refuses(void **state) {
    (void)state;
    struct st_scheduler *s = open_engine(model, 1, 2, NULL);
    int32_t prompt[300];
    random_prompt(prompt, 300);
    struct st_scheduler_request r = {.prompt = prompt, .n_prompt = 20};
    struct answer *a[3], *refused = new_answer();
    a[0] = new_answer();
    assert_int_equal(submit(s, &r, a[0]), STINT_OK);
    wait_for(a[0], 1);
    for (int i = 1; i < 3; i++) {
        a[i] = new_answer();
        assert_int_equal(submit(s, &r, a[i]), STINT_OK);
    }
    assert_int_equal(submit(s, &r, refused), STINT_E_LIMIT);
    r.n_prompt = 257;
    assert_int_equal(submit(s, &r, refused), STINT_E_ARG);
    r.n_prompt = 0;
    assert_int_equal(submit(s, &r, refused), STINT_E_ARG);
    r.n_prompt = 1;
    prompt[0] = 1 << 20;
    assert_int_equal(submit(s, &r, refused), STINT_E_ARG);
    prompt[0] = 5;
    r.options.stops = &(const char *){""};
    r.options.n_stops = 1;
    assert_int_equal(submit(s, &r, refused), STINT_E_ARG);
    st_scheduler_close(s); // ends all of them
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a[i]->n_ends, 1);
        assert_int_equal(a[i]->end, ST_SCHEDULER_CANCELED);
        free(a[i]);
    }
    assert_int_equal(refused->n_ends, 0);
    free(refused);
}

static void draining_lets_answers_finish(void **state) {
    (void)state;
    struct st_scheduler *s = open_engine(model, 1, N_QUEUE, NULL);
    int32_t prompt[20];
    random_prompt(prompt, 20);
    struct st_scheduler_request r = {.prompt = prompt, .n_prompt = 20, .options.max_tokens = 30};
    struct answer *a[3], *late = new_answer();
    for (int i = 0; i < 3; i++) {
        a[i] = new_answer();
        assert_int_equal(submit(s, &r, a[i]), STINT_OK);
    }
    assert_true(st_scheduler_drain(s, 60.0));
    assert_int_equal(submit(s, &r, late), STINT_E_CANCELED);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a[i]->n_ends, 1);
        assert_int_equal(a[i]->end, ST_SCHEDULER_LENGTH);
        free(a[i]);
    }
    free(late);
    st_scheduler_close(s);
}

static void precision_is_told_and_seen(void **state) {
    (void)state;
    struct st_scheduler *s = open_engine(package, 2, N_QUEUE, "uniform:3");
    int32_t prompt[40];
    random_prompt(prompt, 40);
    json_t *last = st_scheduler_last(s);
    assert_true(json_is_null(last));
    json_decref(last);
    struct st_scheduler_request r = {.prompt = prompt, .n_prompt = 40, .options.max_tokens = 8};
    struct answer *a = ask(s, &r);
    for (size_t i = 0; i < a->n_ids; i++) assert_int_equal(a->bits[i], 3);
    assert_true(st_scheduler_drain(s, 10.0));
    last = st_scheduler_last(s);
    assert_int_equal(json_integer_value(json_object_get(last, "prompt_tokens")), 40);
    assert_int_equal(json_array_size(json_object_get(last, "tokens")), a->n_ids);
    const json_t *prefill = json_object_get(last, "prefill");
    assert_int_equal(json_integer_value(json_object_get(prefill, "chunks")), 3);
    assert_true(json_array_size(json_object_get(prefill, "events")) >= 3 * 6);
    assert_true(json_is_null(json_object_get(last, "memory")));
    json_decref(last);
    free(a);
    st_scheduler_close(s);
}

static void slots_go_to_disk_and_back(void **state) {
    (void)state;
    struct st_scheduler *s = open_engine(model, 2, N_QUEUE, NULL);
    int32_t prompt[60];
    char path[600];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/slot.session", ts_temp_folder());
    random_prompt(prompt, 60);
    struct st_scheduler_request r = {.prompt = prompt, .n_prompt = 60, .options.max_tokens = 5};
    struct answer *first = ask(s, &r);
    assert_int_equal(st_scheduler_save(s, 2, 0, UINT64_MAX, path, &n), STINT_E_ARG);
    assert_int_equal(st_scheduler_save(s, 1, 0, UINT64_MAX, path, &n),
                     STINT_E_ARG); // holds nothing
    assert_int_equal(st_scheduler_save(s, 0, 0, UINT64_MAX, path, &n), STINT_OK);
    assert_int_equal(n, 64);
    st_scheduler_close(s);
    s = open_engine(model, 2, N_QUEUE, NULL);
    assert_int_equal(st_scheduler_restore(s, 1, 0, "no/such", &n), STINT_E_IO);
    assert_int_equal(st_scheduler_restore(s, 1, 0, path, &n), STINT_OK);
    struct answer *again = ask(s, &r);
    assert_int_equal(again->usage.reused_tokens, 59);
    assert_same(again, first, 0);
    free(first);
    free(again);
    st_scheduler_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_do_not_depend_on_the_others),
        cmocka_unit_test(beginnings_are_not_computed_twice),
        cmocka_unit_test(a_stop_text_ends_the_answer_before_it),
        cmocka_unit_test(logprobs_are_those_of_the_model),
        cmocka_unit_test(constrained_answers_are_json),
        cmocka_unit_test(canceled_requests_free_their_slots),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(draining_lets_answers_finish),
        cmocka_unit_test(precision_is_told_and_seen),
        cmocka_unit_test(slots_go_to_disk_and_back),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
