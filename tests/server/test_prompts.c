// SPDX-License-Identifier: Apache-2.0
// Prompts that take long to tokenize, or cannot fit: others are answered meanwhile, and what cannot
// fit is refused before memory is spent on it.
#include "server/server.h"
#include "support/ask.h"
#include "support/novels.h"
#include "support/support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// One word of so many letters is tokenized as one piece, with more than 40 bytes for each letter.
enum { N_CLIENTS = 8, WORD_BYTES = 100000, HELD_BYTES = 3000000, REPLY_BYTES = 8192 };

static struct st_server *open_server(size_t n_context) {
    struct st_server *server = NULL;
    const stint_session_options session = {
        .size = sizeof session, .n_context = n_context, .n_threads = 1, .kv = "f16"};
    const struct st_server_options options = {.models = &ts_novels_served,
                                              .n_models = 1,
                                              .loader = ts_novels_loader(),
                                              .session = &session,
                                              .host = "127.0.0.1",
                                              .n_slots = 1,
                                              .n_queue = N_CLIENTS,
                                              .n_connections = 64,
                                              .timeout = 600,
                                              .max_body = 4 << 20};
    if (st_server_open(&options, &server) != STINT_OK) fail_msg("%s", stint_error_text());
    return server;
}

// A request whose prompt is one word of n letters; free() it.
static char *word_request(size_t n) {
    char *request = malloc(n + 300), *word = malloc(n + 1);
    memset(word, 'x', n);
    word[n] = 0;
    snprintf(request, n + 300,
             "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
             "Content-Length: %zu\r\n\r\n{\"max_tokens\":1,\"prompt\":\"%s\"}",
             n + strlen("{\"max_tokens\":1,\"prompt\":\"\"}"), word);
    free(word);
    return request;
}

struct client {
    pthread_t thread;
    const char *address, *request;
    atomic_bool done;
    char reply[REPLY_BYTES];
};

static void *run_client(void *context) {
    struct client *client = context;
    ts_ask(client->address, client->request, client->reply, REPLY_BYTES);
    atomic_store(&client->done, true);
    return NULL;
}

static void check_health(const struct st_server *server) {
    char reply[REPLY_BYTES];
    ts_ask(st_server_address(server),
           "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", reply,
           sizeof reply);
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
}

// Tokenizing stands still in every thread that has begun it.
static void others_are_answered_while_prompts_are_tokenized(void **state) {
    (void)state;
    static struct client clients[N_CLIENTS];
    struct st_server *server = open_server(16384);
    char *request = word_request(WORD_BYTES);
    ts_hold_allocations(HELD_BYTES);
    for (size_t i = 0; i < N_CLIENTS; i++) {
        clients[i].address = st_server_address(server);
        clients[i].request = request;
        assert_int_equal(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
        if (i < 2) ts_wait_held(i + 1);
        check_health(server);
    }
    for (int i = 0; i < N_CLIENTS; i++) check_health(server);
    for (size_t i = 0; i < N_CLIENTS; i++) assert_false(atomic_load(&clients[i].done));
    ts_hold_allocations(0);
    for (size_t i = 0; i < N_CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_non_null(strstr(clients[i].reply, "context_length_exceeded"));
    }
    free(request);
    assert_true(st_server_close(server, 1));
}

// No thread comes to allocate what tokenizing this text takes.
static void a_prompt_that_cannot_fit_is_refused_by_its_bytes(void **state) {
    (void)state;
    char reply[REPLY_BYTES];
    struct st_server *server = open_server(64);
    char *request = word_request(WORD_BYTES);
    ts_hold_allocations(HELD_BYTES);
    ts_ask(st_server_address(server), request, reply, sizeof reply);
    ts_hold_allocations(0);
    assert_int_equal(strncmp(reply, "HTTP/1.1 400", 12), 0);
    assert_non_null(strstr(reply, "context_length_exceeded"));
    assert_non_null(strstr(reply, "the prompt has 100000 bytes, and 64 tokens"));
    free(request);
    assert_true(st_server_close(server, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_answered_while_prompts_are_tokenized),
        cmocka_unit_test(a_prompt_that_cannot_fit_is_refused_by_its_bytes),
    };
    return cmocka_run_group_tests(tests, ts_novels_open, ts_novels_close);
}
