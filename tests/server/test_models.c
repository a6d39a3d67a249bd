// SPDX-License-Identifier: Apache-2.0
// Models that come and go: loaded when they are needed, unloaded when another one needs the memory,
// and never while somebody holds them.
#include "base/clock.h"
#include "server/models/registry.h"
#include "session/weights/bounded.h"
#include "support/support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

enum { N = 3, N_DRAFTS = STINT_MAX_STEP_ROWS - 1 };

// Opens the bundled model from its files, unless its path is "bad" and `broken` is set. Then a
// bounded session is not allocated until the test lets it, where `stops_at_session` is set.
static bool broken, stops_at_session;

static stint_status open_model(void *context, const char *path, stint_model **model,
                               stint_sampling *sampling) {
    const stint_model_options options = {.size = sizeof options, .lazy = context != NULL};
    if (broken && strcmp(path, "bad") == 0) return st_fail(STINT_E_IO, "bad: is broken");
    ST_TRY(stint_model_open(ts_trained(), &options, model));
    stint_model_sampling(*model, sampling);
    if (stops_at_session) ts_hold_allocations(sizeof(struct st_bounded));
    return STINT_OK;
}

static void close_model(void *context, stint_model *model) {
    (void)context;
    stint_model_close(model);
}

static struct st_models *open_models(uint64_t memory, uint32_t idle) {
    static const struct st_server_model list[N] = {
        {.name = "a", .path = "a", .bytes = 7}, {.name = "b/c", .path = "b"}, {"d", "bad", 0}};
    static char lazy;
    const stint_session_options session = {.size = sizeof session,
                                           .n_context = 64,
                                           .n_threads = 1,
                                           .n_sequences = 1,
                                           .n_drafts = N_DRAFTS,
                                           .memory = memory};
    const struct st_models_options options = {
        .list = list,
        .n = N,
        .loader = {open_model, close_model, memory > 0 ? &lazy : NULL},
        .session = &session,
        .n_queue = 1,
        .idle = idle};
    struct st_models *models = NULL;
    if (st_models_open(&options, &models) != STINT_OK) fail_msg("%s", stint_error_text());
    return models;
}

struct client {
    struct st_models_waiter waiter;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool awake;
};

static void wake(void *context) {
    struct client *client = context;
    pthread_mutex_lock(&client->lock);
    client->awake = true;
    pthread_cond_signal(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

static void begin(struct st_models *models, size_t i, struct client *client) {
    *client = (struct client){.lock = PTHREAD_MUTEX_INITIALIZER,
                              .changed = PTHREAD_COND_INITIALIZER,
                              .waiter = {.wake = wake, .context = client}};
    st_models_wait(models, i, &client->waiter);
}

static const struct st_served *end(struct client *client) {
    pthread_mutex_lock(&client->lock);
    while (!client->awake) pthread_cond_wait(&client->changed, &client->lock);
    pthread_mutex_unlock(&client->lock);
    return client->waiter.served;
}

static const struct st_served *get(struct st_models *models, size_t i) {
    struct client client;
    begin(models, i, &client);
    return end(&client);
}

static struct st_model_view view_of(struct st_models *models, size_t i) {
    struct st_model_view view;
    st_models_view(models, i, &view);
    return view;
}

static void wait_for(struct st_models *models, size_t i, enum st_model_state state) {
    while (view_of(models, i).state != state) continue;
}

static void names_find_models(void **state) {
    (void)state;
    struct st_models *models = open_models(0, 0);
    assert_int_equal(st_models_find(models, "a"), 0);
    assert_int_equal(st_models_find(models, "b/c"), 1);
    assert_int_equal(st_models_find(models, "b/c:latest"), 1);
    assert_int_equal(st_models_find(models, "a:7b"), SIZE_MAX);
    assert_int_equal(st_models_find(models, "aa"), SIZE_MAX);
    assert_int_equal(st_models_find(models, ""), SIZE_MAX);
    st_models_close(models);
}

static void a_model_is_loaded_when_it_is_needed(void **state) {
    (void)state;
    struct st_models *models = open_models(0, 0);
    assert_null(st_models_hold(models, 0));
    struct st_model_view view = view_of(models, 0);
    assert_int_equal(view.state, ST_MODEL_OUT);
    assert_int_equal(view.file_bytes, 7);
    assert_string_equal(view.info.architecture, "");
    const struct st_served *served = get(models, 0);
    assert_non_null(served);
    assert_string_equal(served->name, "a");
    assert_ptr_equal(st_models_hold(models, 0), served);
    view = view_of(models, 0);
    assert_int_equal(view.state, ST_MODEL_READY);
    assert_int_equal(view.n_loads, 1);
    assert_int_equal(view.context, 64);
    assert_string_not_equal(view.info.architecture, "");
    assert_int_equal(view_of(models, 1).state, ST_MODEL_OUT);
    for (int i = 0; i < 2; i++) st_models_release(served);
    st_models_close(models);
}

static void who_waits_is_told_why_a_model_cannot_be_loaded(void **state) {
    (void)state;
    struct st_models *models = open_models(0, 0);
    struct client client;
    broken = true;
    begin(models, 2, &client);
    assert_null(end(&client));
    assert_int_equal(client.waiter.status, STINT_E_IO);
    assert_string_equal(client.waiter.text, "bad: is broken");
    broken = false; // the next request tries again
    const struct st_served *served = get(models, 2);
    assert_non_null(served);
    st_models_release(served);
    st_models_close(models);
}

static void an_idle_model_is_unloaded(void **state) {
    (void)state;
    struct st_models *models = open_models(0, 1);
    const struct st_served *held = get(models, 0), *idle = get(models, 1);
    uint64_t released = st_now_ns();
    st_models_release(idle);
    wait_for(models, 1, ST_MODEL_OUT);
    assert_true(st_now_ns() - released >= 1000000000u);
    assert_int_equal(view_of(models, 0).state, ST_MODEL_READY);
    assert_int_equal(view_of(models, 1).n_loads, 1);
    st_models_release(held);
    st_models_close(models);
}

// The bytes of one model under a bound.
static uint64_t bytes_of_one(void) {
    struct st_models *models = open_models((uint64_t)1 << 40, 0);
    const struct st_served *served = get(models, 0);
    assert_non_null(served);
    uint64_t bytes = view_of(models, 0).stats.memory.budget_bytes;
    st_models_release(served);
    st_models_close(models);
    return bytes;
}

static void the_least_recently_used_makes_room(void **state) {
    (void)state;
    uint64_t one = bytes_of_one();
    assert_true(one > 0);
    struct st_models *models = open_models(2 * one + one / 2, 0);
    const struct st_served *a = get(models, 0), *b = get(models, 1);
    st_models_release(b);
    st_models_release(a); // used last
    const struct st_served *d = get(models, 2);
    assert_int_equal(view_of(models, 0).state, ST_MODEL_READY);
    assert_int_equal(view_of(models, 1).state, ST_MODEL_OUT);
    st_models_release(d);
    st_models_close(models);
}

static void a_busy_model_is_waited_for_and_takes_no_more(void **state) {
    (void)state;
    struct st_models *models = open_models(bytes_of_one(), 0);
    const struct st_served *a = get(models, 0);
    struct client other, same;
    begin(models, 1, &other);
    wait_for(models, 0, ST_MODEL_LEAVING);
    assert_null(st_models_hold(models, 0));
    begin(models, 0, &same); // behind the other one
    st_models_hold_again(a);
    st_models_release(a);
    assert_int_equal(view_of(models, 0).state, ST_MODEL_LEAVING);
    st_models_release(a);
    const struct st_served *b = end(&other);
    assert_non_null(b);
    st_models_release(b);
    a = end(&same);
    assert_non_null(a);
    assert_int_equal(view_of(models, 0).n_loads, 2);
    assert_int_equal(view_of(models, 1).state, ST_MODEL_OUT);
    st_models_release(a);
    st_models_close(models);
}

static void stopping_wakes_whoever_waits(void **state) {
    (void)state;
    struct st_models *models = open_models(bytes_of_one(), 0);
    const struct st_served *a = get(models, 0);
    struct client waits, late;
    begin(models, 1, &waits);
    wait_for(models, 0, ST_MODEL_LEAVING);
    st_models_stop(models);
    assert_null(end(&waits));
    assert_int_equal(waits.waiter.status, STINT_E_CANCELED);
    begin(models, 1, &late);
    assert_null(end(&late));
    st_models_release(a);
    st_models_close(models);
}

static void a_bound_that_is_too_small_is_said(void **state) {
    (void)state;
    struct st_models *models = open_models(1 << 20, 0);
    struct client client;
    begin(models, 0, &client);
    assert_null(end(&client));
    assert_int_equal(client.waiter.status, STINT_E_LIMIT);
    st_models_close(models);
}

static void a_model_that_does_not_start_leaves_its_room(void **state) {
    (void)state;
    uint64_t one = bytes_of_one();
    struct st_models *models = open_models(one + one / 2, 0);
    struct client client;
    stops_at_session = true;
    begin(models, 2, &client);
    ts_wait_held(1);
    stops_at_session = false;
    assert_true(models->entries[2].bytes > 0); // it has its part of the bound, and starts
    ts_fail_allocation(1);
    ts_hold_allocations(0);
    assert_null(end(&client));
    ts_fail_allocation(0);
    assert_int_equal(client.waiter.status, STINT_E_NOMEM);
    assert_int_equal(view_of(models, 2).state, ST_MODEL_OUT);
    assert_int_equal(models->entries[2].bytes, 0);
    const struct st_served *a = get(models, 0);
    assert_non_null(a);
    st_models_release(a);
    st_models_close(models);
}

// What the process grew by while the model was opened is taken for its own, and would not fit.
static void a_model_that_seems_too_large_is_measured_alone(void **state) {
    (void)state;
    uint64_t bound = 3 * bytes_of_one();
    struct st_models *models = open_models(bound, 0);
    struct client client;
    st_models_release(get(models, 0));
    ts_hold_allocations(32768);
    begin(models, 1, &client);
    ts_wait_held(1);
    void *grown = mmap(NULL, bound, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(grown != MAP_FAILED);
    memset(grown, 1, bound);
    ts_hold_allocations(0);
    const struct st_served *b = end(&client);
    if (!b) fail_msg("%s", client.waiter.text);
    assert_int_equal(view_of(models, 0).state, ST_MODEL_OUT);
    const struct st_served *a = get(models, 0); // beside it
    assert_int_equal(view_of(models, 1).state, ST_MODEL_READY);
    munmap(grown, bound);
    st_models_release(a);
    st_models_release(b);
    st_models_close(models);
}

// Counters do not fall when a model is unloaded.
static void counters_survive_unloading(void **state) {
    (void)state;
    struct st_scheduler_stats a = {.prompt_tokens = 3, .slots = 2, .memory.bytes_read = 5};
    const struct st_scheduler_stats b = {.prompt_tokens = 4, .slots = 7, .memory.bytes_read = 6};
    st_scheduler_stats_add(&a, &b);
    assert_int_equal(a.prompt_tokens, 7);
    assert_int_equal(a.memory.bytes_read, 11);
    assert_int_equal(a.slots, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_find_models),
        cmocka_unit_test(a_model_is_loaded_when_it_is_needed),
        cmocka_unit_test(who_waits_is_told_why_a_model_cannot_be_loaded),
        cmocka_unit_test(an_idle_model_is_unloaded),
        cmocka_unit_test(the_least_recently_used_makes_room),
        cmocka_unit_test(a_busy_model_is_waited_for_and_takes_no_more),
        cmocka_unit_test(stopping_wakes_whoever_waits),
        cmocka_unit_test(a_bound_that_is_too_small_is_said),
        cmocka_unit_test(a_model_that_does_not_start_leaves_its_room),
        cmocka_unit_test(a_model_that_seems_too_large_is_measured_alone),
        cmocka_unit_test(counters_survive_unloading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
