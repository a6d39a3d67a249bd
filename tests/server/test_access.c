// SPDX-License-Identifier: Apache-2.0
#include "server/api/access.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static void only_the_key_opens(void **state) {
    (void)state;
    const struct st_access access = {.key = "sk-abc"};
    assert_true(st_access_key(&access, "Bearer sk-abc"));
    assert_true(st_access_key(&access, "bearer  sk-abc"));
    static const char *const wrong[] = {NULL,
                                        "",
                                        "Bearer",
                                        "Bearer ",
                                        "sk-abc",
                                        "Bearer sk-ab",
                                        "Basic sk-abc",
                                        "Bearer sk-abcd",
                                        "Bearer sk-abC",
                                        "Bearer sk-abcsk-abc",
                                        "Bearersk-abc"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(st_access_key(&access, wrong[i]));
}

static void without_a_key_all_may_ask(void **state) {
    (void)state;
    const struct st_access access = {0};
    assert_true(st_access_key(&access, NULL));
    assert_true(st_access_key(&access, "Bearer whatever"));
}

static void a_local_server_has_local_names(void **state) {
    (void)state;
    const struct st_access local = {.local = true}, open = {.local = false};
    static const char *const good[] = {NULL,    "localhost", "LOCALHOST:80", "127.0.0.1:8080",
                                       "[::1]", "[::1]:5"};
    static const char *const bad[] = {"",
                                      "evil.example",
                                      "localhost.evil.example",
                                      "127.0.0.1.evil.example",
                                      "localhost:80@evil",
                                      "evil.example:8080",
                                      "::1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(st_access_host(&local, good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(st_access_host(&local, bad[i]));
        assert_true(st_access_host(&open, bad[i]));
    }
}

static void pages_ask_where_they_come_from(void **state) {
    (void)state;
    const struct st_access none = {0}, one = {.cors = "https://a.example"}, all = {.cors = "*"};
    assert_true(st_access_origin(&none, NULL, "localhost"));
    assert_true(st_access_origin(&none, "http://localhost:8080", "localhost:8080"));
    assert_false(st_access_origin(&none, "http://localhost:8081", "localhost:8080"));
    assert_false(st_access_origin(&none, "https://a.example", "localhost:8080"));
    assert_false(st_access_origin(&none, "null", "localhost:8080"));
    assert_false(st_access_origin(&none, "http://localhost", NULL));
    assert_true(st_access_origin(&one, "https://a.example", "localhost"));
    assert_false(st_access_origin(&one, "https://a.example.evil", "localhost"));
    assert_false(st_access_origin(&one, "http://a.example", "localhost"));
    assert_true(st_access_origin(&all, "null", "localhost"));
}

static void the_first_that_is_wrong_is_told(void **state) {
    (void)state;
    const struct st_access access = {.key = "k", .local = true};
    struct st_problem problem;
    assert_true(st_access_check(&access, true, "Bearer k", "localhost", NULL, &problem));
    assert_true(st_access_check(&access, false, NULL, "localhost", NULL, &problem));
    assert_false(st_access_check(&access, true, NULL, "localhost", NULL, &problem));
    assert_int_equal(problem.status, 401);
    assert_false(st_access_check(&access, true, "Bearer k", "evil", NULL, &problem));
    assert_int_equal(problem.status, 403);
    assert_false(st_access_check(&access, true, "Bearer k", NULL, "http://evil", &problem));
    assert_int_equal(problem.status, 403);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_key_opens),
        cmocka_unit_test(without_a_key_all_may_ask),
        cmocka_unit_test(a_local_server_has_local_names),
        cmocka_unit_test(pages_ask_where_they_come_from),
        cmocka_unit_test(the_first_that_is_wrong_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
