// SPDX-License-Identifier: Apache-2.0
// Columns that were only tried are not in the package, in whatever order the plan ranks now.
#include "prepare/job.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_LINEARS = 3 };

// Writes one section of weights, then one of columns for each linear; drops, and counts what is
// left.
static size_t sections_left(const bool *shadowed, const uint32_t *ranks) {
    struct st_planned linears[N_LINEARS] = {0};
    uint32_t by_importance[N_LINEARS];
    memcpy(by_importance, ranks, sizeof by_importance);
    struct st_prepare_job job = {
        .plan = {.linears = linears, .n = N_LINEARS, .by_importance = by_importance}};
    char path[600], name[32];
    snprintf(path, sizeof path, "%s/columns.stint", ts_temp_folder());
    assert_int_equal(st_package_create(path, &job.writer), STINT_OK);
    for (size_t i = 0; i <= N_LINEARS; i++) {
        snprintf(name, sizeof name, "section.%zu", i);
        struct st_section s = {.name = name,
                               .type = ST_SECTION_BLOB,
                               .n_dims = 1,
                               .dims = {1, 1, 1, 1},
                               .data = "x",
                               .bytes = 1};
        if (i > 0) {
            linears[i - 1].first_section = st_package_sections(job.writer);
            linears[i - 1].written = true;
            linears[i - 1].shadowed = shadowed[i - 1];
        }
        assert_int_equal(st_package_add(job.writer, &s), STINT_OK);
    }
    assert_int_equal(st_prepare_drop_columns(&job), STINT_OK);
    size_t left = st_package_sections(job.writer);
    st_package_abandon(job.writer);
    return left;
}

static void what_was_only_tried_is_dropped(void **state) {
    (void)state;
    const uint32_t orders[][N_LINEARS] = {{2, 1, 0}, {0, 1, 2}, {1, 2, 0}};
    const bool none[N_LINEARS] = {false}, first[N_LINEARS] = {true, false, false},
               all[N_LINEARS] = {true, true, true};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        assert_int_equal(sections_left(none, orders[i]), 1);
        assert_int_equal(sections_left(first, orders[i]), 2);
        assert_int_equal(sections_left(all, orders[i]), 1 + N_LINEARS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_only_tried_is_dropped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
