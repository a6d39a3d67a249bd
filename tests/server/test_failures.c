// SPDX-License-Identifier: Apache-2.0
// Requests that fail: the slot is good for the next one, the others do not notice, and the client
// is not blamed. Faults are NaN in a restored cache and in a row of the embedding.
#include "format/package.h"
#include "server/answers.h"
#include "server/server.h"
#include "support/ask.h"
#include "support/novels.h"
#include "support/support.h"

#include "base/map.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

enum { N_PROMPT = 40, N_KEPT = 20 };

// ---- A cache with NaN

// Copies a saved session; the values of its first layer become NaN, in F32 and in F16.
static void poison(const char *from, const char *to) {
    struct st_map map = {0};
    struct st_package *package = NULL;
    struct st_package_writer *writer = NULL;
    assert_int_equal(st_map_open(from, &map), STINT_OK);
    assert_int_equal(st_package_open(from, &map, &package), STINT_OK);
    assert_int_equal(st_package_create(to, &writer), STINT_OK);
    for (size_t i = 0; i < st_package_count(package); i++) {
        struct st_section section = *st_package_at(package, i);
        void *bytes = malloc(section.bytes);
        memcpy(bytes, section.data, section.bytes);
        if (strcmp(section.name, "values.0") == 0) memset(bytes, 0xff, section.bytes);
        section.data = bytes;
        assert_int_equal(st_package_add(writer, &section), STINT_OK);
        free(bytes);
    }
    assert_int_equal(st_package_finish(writer), STINT_OK);
    st_package_close(package);
    st_map_close(&map);
}

// Tokens [n] that a slot held, with NaN for values.
static void make_poison(const int32_t *ids, size_t n, const char *path) {
    stint_session *s = NULL;
    char clean[600];
    snprintf(clean, sizeof clean, "%s/clean", ts_temp_folder());
    assert_int_equal(stint_session_open(ts_novels, &session_options, &s), STINT_OK);
    assert_int_equal(stint_session_eval(s, 0, ids, n, false, NULL), STINT_OK);
    assert_int_equal(stint_session_save(s, 0, clean), STINT_OK);
    stint_session_close(s);
    poison(clean, path);
}

// The first failure drops what that request computed, the second all that the slot holds.
static void a_slot_that_fails_twice_is_cleared(void **state) {
    (void)state;
    int32_t prompt[N_PROMPT];
    char path[600];
    size_t n = 0;
    for (size_t i = 0; i < N_PROMPT; i++) prompt[i] = (int32_t)(3 + ts_random_below(4000));
    snprintf(path, sizeof path, "%s/poison", ts_temp_folder());
    make_poison(prompt, N_KEPT, path);
    struct st_scheduler *s = open_scheduler(ts_novels, 1);
    struct answer wanted = ask(s, prompt, N_PROMPT);
    assert_int_equal(wanted.end, ST_SCHEDULER_LENGTH);
    assert_int_equal(st_scheduler_restore(s, 0, 0, path, &n), STINT_OK);
    for (int i = 0; i < 2; i++) {
        struct answer failed = ask(s, prompt, N_PROMPT);
        assert_int_equal(failed.end, ST_SCHEDULER_FAILED);
        assert_int_equal(failed.status, STINT_E_FORMAT);
        assert_int_equal(failed.reused, N_KEPT);
    }
    struct answer again = ask(s, prompt, N_PROMPT);
    assert_int_equal(again.end, ST_SCHEDULER_LENGTH);
    assert_int_equal(again.reused, 0);
    assert_int_equal(again.n_ids, wanted.n_ids);
    assert_memory_equal(again.ids, wanted.ids, wanted.n_ids * sizeof(int32_t));
    st_scheduler_close(s);
}

// ---- A damaged row of the embedding

// A copy of a tiny model in which the embedding of one token is NaN.
static stint_model *open_damaged(int32_t token) {
    static const char source[] = "tests/golden/models/llama-yarn";
    static const char key[] = "\"model.embed_tokens.weight\"";
    char path[600];
    size_t n, begin;
    unsigned char *bytes;
    stint_model *damaged = NULL;
    snprintf(path, sizeof path, "%s/config.json", source);
    bytes = ts_read(ts_source(path), &n);
    ts_write("config.json", bytes, n);
    free(bytes);
    snprintf(path, sizeof path, "%s/model.safetensors", source);
    bytes = ts_read(ts_source(path), &n);
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    const char *found = strstr((const char *)bytes + 8, key);
    found = found ? strstr(found, "\"data_offsets\":") : NULL;
    assert_non_null(found);
    begin = 8 + (size_t)header + strtoul(strchr(found, '[') + 1, NULL, 10);
    enum { ROW_BYTES = 32 * 2 }; // BF16
    memset(bytes + begin + (size_t)token * ROW_BYTES, 0xff, ROW_BYTES);
    ts_write("model.safetensors", bytes, n);
    free(bytes);
    if (stint_model_open(ts_temp_folder(), NULL, &damaged) != STINT_OK)
        fail_msg("%s", stint_error_text());
    return damaged;
}

// One of two slots that step together cannot go on; the other one gets what it gets alone.
static void others_in_the_step_go_on(void **state) {
    (void)state;
    enum { DAMAGED = 7 };
    static const int32_t good_prompt[] = {1, 2, 3, 4}, bad_prompt[] = {9, 8, 10};
    stint_model *damaged = open_damaged(DAMAGED);
    const stint_logit_bias never = {DAMAGED, -100.0f}, always = {DAMAGED, 100.0f};
    stint_sampling calm = {.size = sizeof calm, .biases = &never, .n_biases = 1};
    stint_sampling doomed = {.size = sizeof doomed, .biases = &always, .n_biases = 1};
    const struct st_scheduler_request good = {
        .prompt = good_prompt, .n_prompt = 4, .options = {.sampling = &calm, .max_tokens = 12}};
    const struct st_scheduler_request bad = {
        .prompt = bad_prompt, .n_prompt = 3, .options = {.sampling = &doomed, .max_tokens = 12}};
    struct answer alone = NEW_ANSWER, together = NEW_ANSWER, failed = NEW_ANSWER;
    struct st_scheduler *s = open_scheduler(damaged, 2);
    submit(s, &good, &alone);
    wait_end(&alone);
    together.held = true;
    submit(s, &good, &together);
    pthread_mutex_lock(&together.lock);
    while (!together.stops) pthread_cond_wait(&together.waits, &together.lock);
    pthread_mutex_unlock(&together.lock);
    submit(s, &bad, &failed);
    pthread_mutex_lock(&together.lock);
    together.held = false;
    pthread_cond_broadcast(&together.waits);
    pthread_mutex_unlock(&together.lock);
    wait_end(&together);
    wait_end(&failed);
    assert_int_equal(failed.end, ST_SCHEDULER_FAILED);
    assert_int_equal(failed.status, STINT_E_FORMAT);
    assert_int_equal(failed.n_ids, 1);
    assert_int_equal(together.end, alone.end);
    assert_int_equal(together.n_ids, alone.n_ids);
    assert_memory_equal(together.ids, alone.ids, alone.n_ids * sizeof(int32_t));
    st_scheduler_close(s);
    stint_model_close(damaged);
}

// ---- Over HTTP

static void post(const struct st_server *server, const char *path, const char *body, char *reply,
                 size_t n) {
    char request[2048];
    snprintf(request, sizeof request,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             path, strlen(body), body);
    ts_ask(st_server_address(server), request, reply, n);
}

static void the_client_is_not_blamed(void **state) {
    (void)state;
    int32_t prompt[N_PROMPT];
    char path[600], body[1024] = "{\"max_tokens\":2,\"prompt\":[", reply[4096];
    for (size_t i = 0; i < N_PROMPT; i++) {
        prompt[i] = (int32_t)(3 + ts_random_below(4000));
        size_t at = strlen(body);
        snprintf(body + at, sizeof body - at, "%d%s", prompt[i], i + 1 < N_PROMPT ? "," : "]}");
    }
    snprintf(path, sizeof path, "%s/slots", ts_temp_folder());
    assert_int_equal(mkdir(path, 0700), 0);
    const struct st_server_options options = {.models = &ts_novels_served,
                                              .n_models = 1,
                                              .loader = ts_novels_loader(),
                                              .session = &session_options,
                                              .host = "127.0.0.1",
                                              .slot_dir = path,
                                              .slot_files = 4,
                                              .slot_bytes = 1 << 20,
                                              .n_slots = 1,
                                              .n_queue = 1,
                                              .n_connections = 8,
                                              .timeout = 60,
                                              .max_body = 1 << 16};
    struct st_server *server = NULL;
    if (st_server_open(&options, &server) != STINT_OK) fail_msg("%s", stint_error_text());
    char file[700];
    snprintf(file, sizeof file, "%s/bad.slot", path);
    make_poison(prompt, N_KEPT, file);
    post(server, "/v1/slots/0/restore", "{\"name\":\"bad\"}", reply, sizeof reply);
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
    for (int i = 0; i < 2; i++) {
        post(server, "/v1/completions", body, reply, sizeof reply);
        assert_int_equal(strncmp(reply, "HTTP/1.1 500", 12), 0);
        assert_non_null(strstr(reply, "\"type\":\"server_error\""));
    }
    post(server, "/v1/completions", body, reply, sizeof reply);
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
    assert_true(st_server_close(server, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_that_fails_twice_is_cleared),
        cmocka_unit_test(others_in_the_step_go_on),
        cmocka_unit_test(the_client_is_not_blamed),
    };
    return cmocka_run_group_tests(tests, ts_novels_open, ts_novels_close);
}
