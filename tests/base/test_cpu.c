// SPDX-License-Identifier: Apache-2.0
// Detection is once per process, so each setting of STINT_CPU is tried in a child, and the tests
// that do so come first.
#include "base/cpu.h"
#include "stint.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const struct {
    const char *name;
    uint64_t bit;
} sets[] = {
#define X(id, name, bit) {name, ST_CPU_##id},
    ST_CPU_LIST(X)
#undef X
};

// st_cpu_flags() of a process started with this STINT_CPU, NULL: none. pre: nothing was detected in
// this process yet.
static uint64_t flags_under(const char *setting) {
    int ends[2], status;
    uint64_t flags = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setting)
            setenv("STINT_CPU", setting, 1);
        else
            unsetenv("STINT_CPU");
        flags = st_cpu_flags();
        _exit(write(ends[1], &flags, sizeof flags) == sizeof flags ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &flags, sizeof flags), sizeof flags);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return flags;
}

static void cpu_mask_lowers_and_restores(void **state) {
    (void)state;
    uint64_t all = st_cpu_flags();
    st_cpu_mask(ST_CPU_AVX2 | ST_CPU_NEON);
    assert_true(st_cpu_flags() == (all & (ST_CPU_AVX2 | ST_CPU_NEON)));
    st_cpu_mask(0);
    assert_true(st_cpu_flags() == 0);
    st_cpu_mask(UINT64_MAX);
    assert_true(st_cpu_flags() == all);
}

static void cpu_environment_only_lowers(void **state) {
    (void)state;
    uint64_t all = flags_under(NULL);
    assert_true(flags_under("") == all);
    assert_true(flags_under("scalar") == 0);
    assert_true(flags_under("no-such-set,") == 0);
    assert_true(flags_under("avx2") == (all & ST_CPU_AVX2));
    assert_true(flags_under("neon") == (all & ST_CPU_NEON));
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        uint64_t flags = flags_under(sets[i].name);
        assert_true((flags & ~all) == 0);
        assert_true((flags & sets[i].bit) == (all & sets[i].bit));
    }
}

static void cpu_environment_brings_lower_sets_along(void **state) {
    (void)state;
    uint64_t all = flags_under(NULL);
    assert_true(flags_under("avx512") == (all & (ST_CPU_AVX512 | ST_CPU_AVX2)));
    assert_true(flags_under("vnni,avx512bf16") ==
                (all & (ST_CPU_AVX512VNNI | ST_CPU_AVX512BF16 | ST_CPU_AVX512 | ST_CPU_AVX2)));
    assert_true(flags_under("i8mm") == (all & (ST_CPU_I8MM | ST_CPU_DOTPROD | ST_CPU_NEON)));
}

static void cpu_features_name_the_flags(void **state) {
    (void)state;
    const char *features = stint_cpu_features();
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (st_cpu_flags() & sets[i].bit) assert_non_null(strstr(features, sets[i].name));
    if (st_cpu_flags() == 0) assert_string_equal(features, "scalar");
}

static void cpu_facts_are_plausible(void **state) {
    (void)state;
    assert_true(strlen(stint_cpu_name()) > 0);
    assert_ptr_equal(stint_cpu_name(), st_cpu_name());
    assert_true(st_cpu_cores() >= 1);
    assert_true(st_cpu_cores() <= (size_t)sysconf(_SC_NPROCESSORS_CONF));
    for (int level = 1; level <= 3; level++) assert_true(st_cpu_cache_bytes(level) >= 4096);
    assert_int_equal(st_cpu_cache_bytes(0), 0);
    assert_int_equal(st_cpu_cache_bytes(4), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_environment_only_lowers),
        cmocka_unit_test(cpu_environment_brings_lower_sets_along),
        cmocka_unit_test(cpu_mask_lowers_and_restores),
        cmocka_unit_test(cpu_features_name_the_flags),
        cmocka_unit_test(cpu_facts_are_plausible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
