// SPDX-License-Identifier: Apache-2.0
// The peak kernels run, are chosen by what the CPU has, and read what they are given.
#include "kernels/peak.h"

#include "base/cpu.h"
#include "kernel_check.h"

static void every_peak_runs_on_its_cpu(void **state) {
    (void)state;
    static unsigned char data[4096];
    for (const struct st_peak *row = st_peaks; row->name; row++) {
        if ((row->isa & st_cpu_flags()) != row->isa) continue;
        assert_true(row->ops_per_round > 0.0);
        // Zeros add nothing to what the sums begin with, however long.
        assert_true(row->fn(data, 3) == row->fn(data, 30));
    }
}

static void rows_of_a_kind_follow_one_another(void **state) {
    (void)state;
    const uint64_t sets[] = {0, ST_CPU_AVX2, UINT64_MAX};
    for (size_t s = 0; s < 3; s++)
        for (int kind = 0; kind < ST_N_PEAKS; kind++) {
            uint64_t flags = st_cpu_flags() & sets[s];
            size_t n = 0, wanted = 0;
            for (const struct st_peak *row = st_peaks; row->name; row++)
                wanted += (int)row->kind == kind && (row->isa & flags) == row->isa;
            const struct st_peak *row = NULL, *before = NULL;
            while ((row = st_peak_next(row, flags, (enum st_peak_kind)kind)) != NULL) {
                assert_true(!before || row > before);
                assert_true((int)row->kind == kind && (row->isa & flags) == row->isa);
                before = row;
                n++;
            }
            assert_int_equal(n, wanted);
        }
    assert_non_null(st_peak_next(NULL, 0, ST_PEAK_F32));
    assert_null(st_peak_next(NULL, 0, ST_PEAK_BF16));
}

static void reading_sees_every_byte(void **state) {
    (void)state;
    const uint64_t sets[] = {0, ST_CPU_AVX2, UINT64_MAX};
    for (size_t s = 0; s < 3; s++) {
        st_peak_read_fn *read = st_peak_read_select(st_cpu_flags() & sets[s]);
        static float data[1024];
        memset(data, 0, sizeof data);
        uint64_t zero = read(data, sizeof data);
        for (size_t i = 0; i < 1024; i += 1 + ts_random_below(50)) {
            data[i] = 1.0f;
            assert_true(read(data, sizeof data) != zero);
            data[i] = 0.0f;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_peak_runs_on_its_cpu),
        cmocka_unit_test(rows_of_a_kind_follow_one_another),
        cmocka_unit_test(reading_sees_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
