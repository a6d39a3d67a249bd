// SPDX-License-Identifier: Apache-2.0
// Which fields each route knows, and that it refuses every other one by name.
#include "server/api/handlers.h"
#include "server/api/known.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static bool takes(const struct st_known *known, const char *name, json_t *value,
                  struct st_problem *problem) {
    json_t *object = json_object();
    assert_int_equal(json_object_set_new(object, name, value), 0);
    *problem = (struct st_problem){0};
    bool ok = st_known_check(object, known, NULL, problem);
    json_decref(object);
    return ok;
}

static void every_route_with_a_body_has_a_list(void **state) {
    (void)state;
    for (size_t i = 0; i < st_n_routes; i++)
        assert_int_equal(st_routes[i].known != NULL, strcmp(st_routes[i].method, "POST") == 0);
}

static void fields_in_no_list_are_refused_by_name(void **state) {
    (void)state;
    static const char *const names[] = {"made_up", "Model", "messages ", "", "temperatur"};
    struct st_problem problem;
    for (size_t i = 0; i < st_n_routes; i++)
        for (size_t k = 0; st_routes[i].known && k < sizeof names / sizeof *names; k++) {
            assert_false(takes(st_routes[i].known, names[k], json_false(), &problem));
            assert_int_equal(problem.status, 400);
            assert_string_equal(problem.param, names[k]);
            assert_non_null(strstr(problem.text, names[k]));
            assert_true(takes(st_routes[i].known, names[k], json_null(), &problem));
        }
}

static void listed_fields_are_taken(void **state) {
    (void)state;
    struct st_problem problem;
    for (size_t i = 0; i < st_n_routes; i++) {
        const struct st_known *known = st_routes[i].known;
        for (const char *const *name = known ? known->used : NULL; name && *name; name++)
            assert_true(takes(known, *name, json_integer(1), &problem));
        for (const char *const *name = known ? known->idle : NULL; name && *name; name++)
            assert_true(takes(known, *name, json_integer(1), &problem));
        assert_int_equal(known && takes(known, "dry_base", json_integer(1), &problem),
                         known && known->sampling);
    }
}

static void refused_fields_may_ask_for_nothing(void **state) {
    (void)state;
    struct st_problem problem;
    for (size_t i = 0; i < st_n_routes; i++) {
        const struct st_known *known = st_routes[i].known;
        const struct st_known_refused *row = known ? known->refused : NULL;
        for (; row && row->name; row++) {
            assert_true(takes(known, row->name, json_false(), &problem));
            assert_true(takes(known, row->name, json_integer(0), &problem));
            assert_true(takes(known, row->name, json_array(), &problem));
            assert_false(takes(known, row->name, json_true(), &problem));
            assert_string_equal(problem.param, row->name);
            assert_true(!row->mend || strstr(problem.text, row->mend));
            assert_false(takes(known, row->name, json_string("a"), &problem));
        }
    }
}

static void a_field_inside_another_has_its_whole_name(void **state) {
    (void)state;
    struct st_problem problem;
    json_t *object = json_pack("{s:i}", "made_up", 1);
    assert_false(st_known_check(object, &st_known_slot, "options", &problem));
    assert_string_equal(problem.param, "options.made_up");
    json_decref(object);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_with_a_body_has_a_list),
        cmocka_unit_test(fields_in_no_list_are_refused_by_name),
        cmocka_unit_test(listed_fields_are_taken),
        cmocka_unit_test(refused_fields_may_ask_for_nothing),
        cmocka_unit_test(a_field_inside_another_has_its_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
