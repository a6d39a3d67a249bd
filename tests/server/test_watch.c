// SPDX-License-Identifier: Apache-2.0
// Clients that leave, and what that means for others. Answers wait in the queue of a scheduler
// whose only slot is held, so canceling one ends it in the watching thread, which a gate can hold.
#include "server/http/watch.h"

#include "server/answers.h"
#include "server/api/protocol.h"
#include "support/novels.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool reached, open;
};

// A connection with an answer; the client has the other end of the socket.
struct connection {
    struct st_watched watched;
    struct st_answer *answer;
    struct gate gate; // that its end waits at
    int client;
};

static struct st_models *models;
static const struct st_served *served;
static struct st_metrics *metrics;
static struct answer running = NEW_ANSWER; // in the only slot

static const char *no_label(size_t i) {
    (void)i;
    return "";
}

static int open_all(void **state) {
    static const int32_t prompt[] = {836, 310};
    if (ts_novels_open(state) != STINT_OK) return -1;
    const stint_session_options session = {
        .size = sizeof session, .n_context = 64, .n_threads = 1, .n_sequences = 1};
    const struct st_models_options options = {.list = &ts_novels_served,
                                              .n = 1,
                                              .loader = ts_novels_loader(),
                                              .session = &session,
                                              .n_queue = 8};
    if (st_models_open(&options, &models) != STINT_OK) return -1;
    if (st_metrics_open(no_label, 1, &metrics) != STINT_OK) return -1;
    served = st_models_hold(models, 0);
    const struct st_scheduler_request r = {
        .prompt = prompt, .n_prompt = 2, .options.max_tokens = TS_ANSWER_TOKENS};
    running.held = true;
    submit(served->scheduler, &r, &running);
    return 0;
}

static int close_all(void **state) {
    pthread_mutex_lock(&running.lock);
    running.held = false;
    pthread_cond_broadcast(&running.waits);
    pthread_mutex_unlock(&running.lock);
    wait_end(&running);
    st_models_release(served);
    st_models_stop(models);
    st_models_close(models);
    st_metrics_close(metrics);
    return ts_novels_close(state);
}

static void wait_at(void *context) {
    struct gate *g = context;
    pthread_mutex_lock(&g->lock);
    g->reached = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void wait_until_reached(struct gate *g) {
    pthread_mutex_lock(&g->lock);
    while (!g->reached) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void open_gate(struct gate *g) {
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void nothing(void *context) {
    (void)context;
}

static struct st_answer *ask_for_answer(struct gate *g) {
    static const char body[] = "{\"prompt\":\"a\",\"max_tokens\":4}";
    static const int32_t ids[] = {836};
    const struct st_answer_prompt prompt = {ids, 1};
    const struct st_response response = {
        .model = "m", .tokenizer = served->tokenizer, .protocol = &st_protocol_openai};
    struct st_request request;
    struct st_problem problem;
    struct st_answer *answer;
    assert_true(st_request_parse(body, strlen(body), false, &served->sampling, &request, &problem));
    const struct st_answer_options options = {.served = served,
                                              .metrics = metrics,
                                              .response = &response,
                                              .request = &request,
                                              .prompts = &prompt,
                                              .n_prompts = 1};
    assert_true(st_answer_open(&options, &answer, &problem));
    const struct st_answer_watcher watcher = {.wake = wait_at, .flooded = nothing, .context = g};
    st_answer_watch(answer, &watcher);
    assert_true(st_answer_wait(answer, nothing, NULL));
    return answer;
}

// `gated`: the end of its answer waits until the gate is opened.
static void join(struct st_watch *watch, struct connection *c, bool gated) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    c->gate = (struct gate){
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .open = !gated};
    c->client = ends[1];
    c->answer = ask_for_answer(&c->gate);
    st_watch_add(watch, &c->watched, ends[0]);
    st_watch_answer(&c->watched, c->answer);
}

static void leave(struct connection *c) {
    close(c->client);
    c->client = -1;
}

static void end(struct connection *c) {
    int file = c->watched.file;
    st_watch_remove(&c->watched);
    close(file);
    if (c->client >= 0) close(c->client);
    open_gate(&c->gate);
    st_answer_cancel(c->answer);
    st_answer_release(c->answer);
}

static struct st_watch *open_watch(void) {
    const struct st_watch_limits limits = {
        .full = 100, .patience = 1000, .bytes_per_second = 1e6, .linger = 0};
    struct st_watch *watch = NULL;
    assert_int_equal(st_watch_open(&limits, &watch), STINT_OK);
    return watch;
}

static void who_leaves_is_canceled_and_who_stays_is_not(void **state) {
    (void)state;
    static struct connection stays, leaves;
    struct st_watch *watch = open_watch();
    join(watch, &stays, false);
    join(watch, &leaves, true);
    leave(&leaves);
    wait_until_reached(&leaves.gate);
    open_gate(&leaves.gate);
    assert_true(st_watch_gone(&leaves.watched));
    assert_false(st_watch_gone(&stays.watched));
    assert_true(st_answer_failed(leaves.answer));
    assert_false(st_answer_failed(stays.answer));
    end(&leaves);
    end(&stays);
    st_watch_close(watch);
}

// The watching thread is held at the first client, so that the ends of the next two come together.
// While it is held at one of these, the other's connection ends, and a new one takes its memory.
static void an_old_event_means_no_new_connection(void **state) {
    (void)state;
    static struct connection first, second, third, last;
    struct st_watch *watch = open_watch();
    join(watch, &first, true);
    join(watch, &second, true);
    join(watch, &third, false);
    leave(&first);
    wait_until_reached(&first.gate);
    leave(&second);
    leave(&third);
    open_gate(&first.gate);
    wait_until_reached(&second.gate);
    end(&third);
    join(watch, &third, false);
    open_gate(&second.gate);
    join(watch, &last, true);
    leave(&last);
    wait_until_reached(&last.gate); // what came before has been dealt with
    open_gate(&last.gate);
    assert_false(st_watch_gone(&third.watched));
    assert_false(st_answer_failed(third.answer));
    end(&first);
    end(&second);
    end(&third);
    end(&last);
    st_watch_close(watch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_is_canceled_and_who_stays_is_not),
        cmocka_unit_test(an_old_event_means_no_new_connection),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
