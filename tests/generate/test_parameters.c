// SPDX-License-Identifier: Apache-2.0
// The table of sampling parameters and the struct that it describes.
#include "generate/parameters.h"

#include "base/status.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static size_t size_of(const stint_parameter *p) {
    return p->type == STINT_PARAMETER_UINT64 ? sizeof(uint64_t) : sizeof(uint32_t);
}

static void set(const stint_parameter *p, stint_sampling *sampling, double value) {
    void *at = (char *)sampling + p->offset;
    if (p->type == STINT_PARAMETER_FLOAT) *(float *)at = (float)value;
    if (p->type == STINT_PARAMETER_UINT) *(uint32_t *)at = (uint32_t)value;
    if (p->type == STINT_PARAMETER_UINT64) *(uint64_t *)at = (uint64_t)value;
}

// A member without a row would be out of reach of the command, the server and Python.
static void rows_cover_the_struct(void **state) {
    (void)state;
    unsigned char covered[sizeof(stint_sampling)] = {0};
    const stint_parameter *p;
    memset(covered, 1, offsetof(stint_sampling, temperature)); // size and biases
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++) {
        assert_int_equal(p->offset % size_of(p), 0);
        for (size_t k = 0; k < size_of(p); k++) assert_int_equal(covered[p->offset + k]++, 0);
    }
    size_t n = 0;
    for (size_t k = 0; k < sizeof covered; k++) n += covered[k] == 0;
    assert_true(n < sizeof(uint64_t)); // padding at most
}

static void names_are_unique_and_texts_are_there(void **state) {
    (void)state;
    const stint_parameter *p, *other;
    size_t n = 0;
    for (; (p = stint_sampling_parameter(n)) != NULL; n++) {
        assert_true(*p->name && *p->option && *p->value && *p->help);
        for (size_t k = 0; k < n; k++) {
            other = stint_sampling_parameter(k);
            assert_string_not_equal(p->name, other->name);
            assert_string_not_equal(p->option, other->option);
            if (p->alias) assert_string_not_equal(p->alias, other->name);
            if (p->alias && other->alias) assert_string_not_equal(p->alias, other->alias);
        }
        assert_true(p->min <= p->request_min && p->request_min < p->request_max);
        assert_true(p->request_max <= p->max);
    }
    assert_true(n >= 9 && n <= 64); // the command keeps a bit for each
    assert_null(stint_sampling_parameter(n + 1));
}

static void ranges_are_checked_for_each(void **state) {
    (void)state;
    const stint_parameter *p;
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++) {
        stint_sampling s = {.size = sizeof s};
        const double good[] = {0.0, p->min, p->max, p->standard};
        const double bad[] = {p->max * 1.01 + 1, p->min - 1, NAN, INFINITY};
        if (p->type == STINT_PARAMETER_UINT64) continue; // any value
        for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
            set(p, &s, good[k]);
            assert_int_equal(st_sampling_check(&s), STINT_OK);
            assert_true(st_parameter_get(p, &s) ==
                        (p->type == STINT_PARAMETER_FLOAT ? (double)(float)good[k] : good[k]));
        }
        size_t n = p->type == STINT_PARAMETER_FLOAT ? sizeof bad / sizeof *bad : 1;
        for (size_t k = 0; k < n; k++) {
            set(p, &s, bad[k]);
            if (bad[k] >= p->min && bad[k] <= p->max) continue;
            if (bad[k] == 0.0) continue;
            assert_int_equal(st_sampling_check(&s), STINT_E_ARG);
            assert_non_null(strstr(st_error_text(), p->name));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_cover_the_struct),
        cmocka_unit_test(names_are_unique_and_texts_are_there),
        cmocka_unit_test(ranges_are_checked_for_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
