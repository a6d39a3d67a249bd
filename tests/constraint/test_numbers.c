// SPDX-License-Identifier: Apache-2.0
// Bounds of numbers are what arithmetic says of random bounds and decimals.
#include "constraint/constraint.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bool accepts(const struct st_constraint *c, const char *text) {
    struct st_constraint_state *s = NULL;
    assert_int_equal(st_constraint_begin(c, &s), STINT_OK);
    bool ok = st_constraint_push(s, text, strlen(text)) && st_constraint_complete(s);
    st_constraint_end(s);
    return ok;
}

// NULL where no number is in the range.
static struct st_constraint *compile(const char *schema) {
    struct st_constraint *c = NULL;
    json_t *json = json_loads(schema, 0, NULL);
    stint_status status = st_constraint_schema(json, &c);
    json_decref(json);
    if (status != STINT_OK && status != STINT_E_ARG) fail_msg("%s: %s", schema, st_error_text());
    return c;
}

static void integers_of_a_range(void **state) {
    (void)state;
    for (int round = 0; round < 60; round++) {
        int reach = round % 3 ? 1500 : 30, low = (int)ts_random_below(2 * reach) - reach;
        int high = low - 2 + (int)ts_random_below(reach);
        char schema[128], text[16];
        snprintf(schema, sizeof schema, "{\"type\":\"integer\",\"minimum\":%d,\"maximum\":%d}", low,
                 high);
        struct st_constraint *c = compile(schema);
        assert_int_equal(c != NULL, low <= high);
        for (int i = low - 120; c && i <= high + 120; i++) {
            snprintf(text, sizeof text, "%d", i);
            if (accepts(c, text) != (i >= low && i <= high)) fail_msg("%s: %s", schema, text);
        }
        st_constraint_free(c);
    }
}

// A decimal of up to 3 digits behind the point, in thousandths.
static int random_decimal(int reach, char *text, bool zeros) {
    static const int powers[] = {1000, 100, 10, 1};
    int n = (int)ts_random_below(4), value = (int)ts_random_below(2 * reach) - reach;
    value -= value % powers[n];
    int size = abs(value), written = 0;
    written = snprintf(text, 32, "%s%d", value < 0 ? "-" : "", size / 1000);
    if (n) snprintf(text + written, 32, ".%0*d", n, size % 1000 / powers[n]);
    if (n && zeros && ts_random_below(3) == 0) memcpy(text + strlen(text), "00", 3);
    return value;
}

static void decimals_of_a_range(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++) {
        char low_text[64], high_text[64], text[64], schema[256];
        int reach = round % 2 ? 3000 : 25000;
        int low = random_decimal(reach, low_text, false);
        int high = random_decimal(reach, high_text, false);
        bool over = ts_random_below(2), under = ts_random_below(2);
        snprintf(schema, sizeof schema, "{\"type\":\"number\",\"%s\":%s,\"%s\":%s}",
                 over ? "exclusiveMinimum" : "minimum", low_text,
                 under ? "exclusiveMaximum" : "maximum", high_text);
        struct st_constraint *c = compile(schema);
        for (int i = 0; i < 300; i++) {
            int value = random_decimal(reach + 2000, text, true);
            bool wanted =
                (over ? value > low : value >= low) && (under ? value < high : value <= high);
            if (i == 0 && !over) { // the bounds themselves
                strcpy(text, low_text);
                wanted = under ? low < high : low <= high;
            }
            if ((c && accepts(c, text)) != wanted) fail_msg("%s: %s", schema, text);
        }
        st_constraint_free(c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_a_range),
        cmocka_unit_test(decimals_of_a_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
