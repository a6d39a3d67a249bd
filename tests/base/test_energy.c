// SPDX-License-Identifier: Apache-2.0
// Readings of made-up counters.
#include "base/energy.h"

#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <setjmp.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

static char root[600];

static void put(const char *name, const char *text) {
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void begin(const char *name) {
    snprintf(root, sizeof root, "%s/%s", ts_temp_folder(), name);
    mkdir(root, 0777);
}

static void counters_are_added_and_may_go_round(void **state) {
    (void)state;
    struct st_energy a, b;
    begin("rapl");
    put("powercap/intel-rapl:0/energy_uj", "1000000\n");
    put("powercap/intel-rapl:0/max_energy_range_uj", "262143000000\n");
    put("powercap/intel-rapl:1/energy_uj", "262142000000\n");
    put("powercap/intel-rapl:1/max_energy_range_uj", "262143000000\n");
    st_energy_read(root, &a);
    assert_string_equal(a.source, "rapl");
    assert_int_equal(a.n, 2);
    put("powercap/intel-rapl:0/energy_uj", "3500000\n");
    put("powercap/intel-rapl:1/energy_uj", "500000\n");
    st_energy_read(root, &b);
    assert_true(fabs(st_energy_between(&a, &b) - (2.5 + 1.5)) < 1e-9);
    put("powercap/intel-rapl:1/max_energy_range_uj", "0\n");
    st_energy_read(root, &a);
    b.microjoules[1] = 1;
    assert_true(st_energy_between(&a, &b) < 0.0);
}

static void a_battery_falls(void **state) {
    (void)state;
    struct st_energy a, b;
    begin("battery");
    put("power_supply/BAT0/energy_now", "50000000\n");
    st_energy_read(root, &a);
    assert_string_equal(a.source, "battery");
    put("power_supply/BAT0/energy_now", "49999000\n");
    st_energy_read(root, &b);
    assert_true(fabs(st_energy_between(&a, &b) - 3.6) < 1e-9);
}

static void nothing_is_said_to_be_nothing(void **state) {
    (void)state;
    struct st_energy a;
    begin("nothing");
    put("power_supply/BAT0/energy_now", "many\n");
    st_energy_read(root, &a);
    assert_null(a.source);
    assert_true(st_energy_between(&a, &a) < 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_added_and_may_go_round),
        cmocka_unit_test(a_battery_falls),
        cmocka_unit_test(nothing_is_said_to_be_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
