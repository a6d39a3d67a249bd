// SPDX-License-Identifier: Apache-2.0
// Phones as the system describes them.
#include "base/big_cores.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <cmocka.h>

// A folder with a file of each core; a speed of 0 has none.
static const char *describe(const char *phone, const char *file, const unsigned *speeds, int n) {
    static char folder[512];
    char path[700], text[32];
    snprintf(folder, sizeof folder, "%s/%s", ts_temp_folder(), phone);
    mkdir(folder, 0700);
    for (int core = 0; core < n; core++) {
        snprintf(path, sizeof path, "%s/cpu%d", folder, core);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/cpu%d/cpufreq", folder, core);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/cpu%d/%s", phone, core, file);
        snprintf(text, sizeof text, "%u\n", speeds[core]);
        if (speeds[core] > 0) ts_write_text(path, text);
    }
    return folder;
}

static size_t big_of(const char *folder, int first, int n) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int core = first; core < first + n; core++) CPU_SET(core, &set);
    return st_big_cores(folder, &set);
}

static void the_small_cores_of_phones_are_left_out(void **state) {
    (void)state;
    const char *capacity = "cpu_capacity";
    // 4 + 3 + 1; a large pair, a middle pair, 4 small ones; all alike
    const unsigned one[] = {325, 325, 325, 325, 820, 820, 820, 1024};
    const unsigned two[] = {160, 160, 160, 160, 498, 498, 1024, 1024};
    const unsigned alike[] = {1024, 1024, 1024, 1024};
    assert_int_equal(big_of(describe("one", capacity, one, 8), 0, 8), 4);
    assert_int_equal(big_of(describe("two", capacity, two, 8), 0, 8), 4);
    assert_int_equal(big_of(describe("alike", capacity, alike, 4), 0, 4), 4);
}

static void only_allowed_cores_count(void **state) {
    (void)state;
    const unsigned speeds[] = {160, 160, 498, 1024};
    const char *folder = describe("allowed", "cpu_capacity", speeds, 4);
    assert_int_equal(big_of(folder, 0, 2), 2); // nothing faster is allowed
    assert_int_equal(big_of(folder, 1, 3), 2);
    assert_int_equal(big_of(folder, 3, 1), 1);
}

static void clock_rates_stand_in_for_capacities(void **state) {
    (void)state;
    const unsigned rates[] = {1000000, 1000000, 3200000, 2600000};
    assert_int_equal(big_of(describe("rates", "cpufreq/cpuinfo_max_freq", rates, 4), 0, 4), 2);
}

static void all_cores_are_big_where_nothing_is_said(void **state) {
    (void)state;
    const unsigned gap[] = {160, 0, 1024};
    assert_int_equal(big_of(describe("gap", "cpu_capacity", gap, 3), 0, 3), 3);
    assert_int_equal(big_of("/nowhere", 0, 5), 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_small_cores_of_phones_are_left_out),
        cmocka_unit_test(only_allowed_cores_count),
        cmocka_unit_test(clock_rates_stand_in_for_capacities),
        cmocka_unit_test(all_cores_are_big_where_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
