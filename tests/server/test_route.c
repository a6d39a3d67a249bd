// SPDX-License-Identifier: Apache-2.0
#include "server/api/handlers.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static int found(const char *method, const char *path, struct st_route_match *match) {
    struct st_problem problem;
    const char *allowed = NULL;
    if (st_route_find(method, path, match, &allowed, &problem)) return 200;
    assert_int_equal(allowed != NULL, problem.status == 405);
    return problem.status;
}

static void paths_lead_to_their_handlers(void **state) {
    (void)state;
    static const struct {
        const char *method, *path;
        st_handler_fn *handler;
        const char *argument;
    } cases[] = {
        {"POST", "/v1/chat/completions", st_handle_chat, ""},
        {"POST", "/v1/completions", st_handle_text, ""},
        {"GET", "/v1/models", st_handle_models, ""},
        {"GET", "/v1/models/a.b", st_handle_model, "a.b"},
        {"GET", "/v1/models/org/a", st_handle_model, "org/a"},
        {"POST", "/v1/slots/3/save", st_handle_save, "3"},
        {"POST", "/v1/slots/x/restore", st_handle_restore, "x"},
        {"HEAD", "/health", st_handle_health, ""},
        {"GET", "/metrics", st_handle_metrics, ""},
        {"GET", "/", st_handle_page, ""},
        {"GET", "/app.js", st_handle_page, "app.js"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_route_match match;
        assert_int_equal(found(cases[i].method, cases[i].path, &match), 200);
        assert_ptr_equal(match.route->handler, cases[i].handler);
        assert_ptr_equal(match.route, &st_routes[match.index]);
        assert_string_equal(match.argument, cases[i].argument);
    }
}

static void other_paths_are_not_there(void **state) {
    (void)state;
    static const char *const paths[] = {"",
                                        "x",
                                        "//",
                                        "/v1/",
                                        "/v1/models/",
                                        "/a/b",
                                        "/v1/slots//save",
                                        "/v1/slots/1/2/save",
                                        "/../etc/passwd",
                                        "/v1/../../etc/passwd",
                                        "/static/app.js",
                                        "/v1/chat/completions/",
                                        "/V1/models"};
    struct st_route_match match;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_int_equal(found("GET", paths[i], &match), 404);
    assert_int_equal(found("POST", "/app.js", &match), 404);
}

static void other_methods_are_told_the_right_one(void **state) {
    (void)state;
    struct st_route_match match;
    assert_int_equal(found("GET", "/v1/completions", &match), 405);
    assert_int_equal(found("DELETE", "/v1/models", &match), 405);
    assert_int_equal(found("get", "/health", &match), 405);
}

static void an_argument_that_is_too_long_matches_nothing(void **state) {
    (void)state;
    char path[ST_ROUTE_ARGUMENT_BYTES + 16] = "/v1/models/";
    struct st_route_match match;
    memset(path + 11, 'a', ST_ROUTE_ARGUMENT_BYTES);
    assert_int_equal(found("GET", path, &match), 404);
    path[11 + ST_ROUTE_ARGUMENT_BYTES - 1] = 0;
    assert_int_equal(found("GET", path, &match), 200);
}

static void keys_are_needed_where_tokens_are_spent(void **state) {
    (void)state;
    for (size_t i = 0; i < st_n_routes; i++) {
        bool open =
            st_routes[i].handler == st_handle_page || st_routes[i].handler == st_handle_health;
        assert_int_equal(st_routes[i].is_public, open);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_to_their_handlers),
        cmocka_unit_test(other_paths_are_not_there),
        cmocka_unit_test(other_methods_are_told_the_right_one),
        cmocka_unit_test(an_argument_that_is_too_long_matches_nothing),
        cmocka_unit_test(keys_are_needed_where_tokens_are_spent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
