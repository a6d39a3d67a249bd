// SPDX-License-Identifier: Apache-2.0
// Which linears come first when inputs are simplified.
#include "prepare/plan.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 4 };

// Errors of the roles in a model of one layer, and the opposite order for static scales.
static struct st_plan plan_of(struct st_planned linears[N]) {
    const struct st_planned given[N] = {
        {.role = ST_INT8_QKV, .row_error = 2e-4f, .importance = 3.0f},
        {.role = ST_INT8_O, .row_error = 5e-4f, .importance = 4.0f},
        {.role = ST_INT8_UP, .row_error = 1e-4f, .importance = 2.0f},
        {.role = ST_INT8_DOWN, .row_error = 3e-4f, .importance = 1.0f},
    };
    memcpy(linears, given, sizeof given);
    return (struct st_plan){.linears = linears, .n = N};
}

static void expect_order(const struct st_plan *p, const uint32_t order[N]) {
    for (size_t i = 0; i < N; i++) assert_int_equal(p->by_importance[i], order[i]);
}

static void one_term_goes_to_o_first(void **state) {
    (void)state;
    struct st_planned linears[N];
    struct st_plan p = plan_of(linears);
    p.row_scales = true;
    assert_int_equal(st_plan_rank(&p), STINT_OK);
    assert_true(st_plan_share_of_o(&p) == 0.25);
    expect_order(&p, (const uint32_t[N]){1, 2, 0, 3});
    st_plan_prune(&p, 0.5);
    const float terms[N] = {2.0f, 1.0f, 1.0f, 2.0f};
    for (size_t i = 0; i < N; i++) {
        assert_true(linears[i].input[0] == terms[i]);
        assert_true(linears[i].input[1] == 0.0f);
        assert_false(linears[i].shadowed);
    }
    free(p.by_importance);
}

static void static_scales_go_by_importance(void **state) {
    (void)state;
    struct st_planned linears[N];
    struct st_plan p = plan_of(linears);
    assert_int_equal(st_plan_rank(&p), STINT_OK);
    expect_order(&p, (const uint32_t[N]){3, 2, 0, 1});
    free(p.by_importance);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_term_goes_to_o_first),
        cmocka_unit_test(static_scales_go_by_importance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
