// SPDX-License-Identifier: Apache-2.0
// A server within this process: opened, asked, closed, and opened without memory.
#include "server/server.h"
#include "support/ask.h"
#include "support/novels.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

static atomic_bool library_listens;

// Stands before the system's, to see what the HTTP library does.
__attribute__((visibility("default"))) int epoll_ctl(int epoll, int what, int file,
                                                     struct epoll_event *event) {
    int listens = 0;
    socklen_t n = sizeof listens;
    getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n);
    if (listens) atomic_store(&library_listens, true);
    return (int)syscall(SYS_epoll_ctl, epoll, what, file, event);
}

static stint_status open_server(struct st_server **server) {
    const stint_session_options session = {.size = sizeof session, .n_context = 64, .n_threads = 1};
    const struct st_server_options options = {.models = &ts_novels_served,
                                              .n_models = 1,
                                              .loader = ts_novels_loader(),
                                              .session = &session,
                                              .host = "127.0.0.1",
                                              .key = "k",
                                              .cors = "*",
                                              .slot_dir = "/tmp",
                                              .slot_files = 4,
                                              .slot_bytes = 1 << 20,
                                              .n_slots = 1,
                                              .n_queue = 1,
                                              .n_connections = 64,
                                              .timeout = 5,
                                              .max_body = 1 << 16};
    return st_server_open(&options, server);
}

static void ask(const struct st_server *server, const char *request, char *reply, size_t n) {
    ts_ask(st_server_address(server), request, reply, n);
}

static void it_answers_and_closes(void **state) {
    (void)state;
    struct st_server *server = NULL;
    char reply[4096];
    assert_int_equal(open_server(&server), STINT_OK);
    ask(server, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", reply,
        sizeof reply);
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
    assert_non_null(strstr(reply, "{\"status\":\"ok\",\"slots\":1,\"busy\":0,\"queued\":0}"));
    ask(server,
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Authorization: Bearer k\r\nContent-Length: 43\r\n\r\n"
        "{\"prompt\":\"The\",\"max_tokens\":3,\"stream\":true}",
        reply, sizeof reply);
    assert_int_equal(strncmp(reply, "HTTP/1.1 400", 12), 0); // the length cuts the body
    ask(server,
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Authorization: Bearer k\r\nContent-Length: 45\r\n\r\n"
        "{\"prompt\":\"The\",\"max_tokens\":3,\"stream\":true}",
        reply, sizeof reply);
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
    assert_non_null(strstr(reply, "data: [DONE]"));
    assert_true(st_server_close(server, 1));
    assert_false(library_listens); // or closing could abort the process (accept.h)
}

static void several_live_side_by_side(void **state) {
    (void)state;
    struct st_server *servers[2] = {NULL};
    for (size_t i = 0; i < 2; i++) assert_int_equal(open_server(&servers[i]), STINT_OK);
    assert_string_not_equal(st_server_address(servers[0]), st_server_address(servers[1]));
    for (size_t i = 0; i < 2; i++) assert_true(st_server_close(servers[i], 0));
    assert_true(st_server_close(NULL, 0));
}

static void without_memory_nothing_is_opened_and_nothing_lost(void **state) {
    (void)state;
    size_t n = 1;
    for (;; n++) {
        struct st_server *server = NULL;
        ts_fail_allocation(n);
        stint_status status = open_server(&server);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        assert_int_equal(status == STINT_OK, server != NULL);
        st_server_close(server, 0);
        if (!failed) {
            assert_int_equal(status, STINT_OK);
            break;
        }
    }
    assert_true(n > 10);
}

static void names_tell_who_can_reach_them(void **state) {
    (void)state;
    assert_true(st_server_is_local("127.0.0.1"));
    assert_true(st_server_is_local("127.8.8.8"));
    assert_true(st_server_is_local("::1"));
    assert_true(st_server_is_local("localhost"));
    assert_false(st_server_is_local("0.0.0.0"));
    assert_false(st_server_is_local("::"));
    assert_false(st_server_is_local("192.0.2.1"));
    assert_false(st_server_is_local("no such name"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_answers_and_closes),
        cmocka_unit_test(several_live_side_by_side),
        cmocka_unit_test(without_memory_nothing_is_opened_and_nothing_lost),
        cmocka_unit_test(names_tell_who_can_reach_them),
    };
    return cmocka_run_group_tests(tests, ts_novels_open, ts_novels_close);
}
