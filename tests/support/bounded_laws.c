// SPDX-License-Identifier: Apache-2.0
// However little memory there is, results are those of the whole model, and a file that fails is
// an error that says so.
#include "support/bounded.h"

#include <fcntl.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

void ts_bounded_any_bound_gives_the_same(void **state) {
    (void)state;
    uint64_t min = ts_bounded_min(1);
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    for (uint64_t more = 0; more <= 9; more = more ? 3 * more : 1) {
        stint_session *s = ts_bounded_session(ts_bounded.lazy, min + (more << 20), false);
        stint_memory_info info = {.size = sizeof info};
        for (int round = 0; round < 2; round++) {
            memset(got, 0, TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
            assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
            assert_memory_equal(got, ts_bounded.wanted,
                                TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
        }
        assert_int_equal(stint_session_memory(s, &info), STINT_OK);
        assert_int_equal(info.budget_bytes, min + (more << 20));
        assert_true(info.fixed_bytes + info.hot_bytes + info.cold_bytes + info.kv_bytes <=
                    info.budget_bytes);
        assert_true(info.bytes_read > 0 && info.reads > 0);
        assert_true(info.hit_rate >= 0 && info.hit_rate <= 1);
        assert_true(info.hidden_fraction >= 0 && info.hidden_fraction <= 1);
        stint_session_close(s);
    }
    free(got);
}

void ts_bounded_a_bound_must_be_given(void **state) {
    (void)state;
    stint_session *s = NULL;
    assert_int_equal(stint_session_open(ts_bounded.lazy, NULL, &s), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "memory bound"));
    stint_session_options o = {.size = sizeof o, .memory = 100 << 20, .npu_threads = 1};
    stint_status split = stint_session_open(ts_bounded.lazy, &o, &s); // test_hybrid.c
    assert_int_equal(split, ts_bounded.lazy->neurons.layers ? STINT_OK : STINT_E_UNSUPPORTED);
    stint_session_close(s);
    s = NULL;
    o = (stint_session_options){.size = sizeof o, .memory = 100 << 20, .schedule = "uniform:7"};
    assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s),
                     ts_bounded_is_nested() ? STINT_E_ARG : STINT_E_UNSUPPORTED);
    s = ts_bounded_session(ts_bounded.whole, 0, true);
    stint_memory_info info = {.size = sizeof info};
    assert_int_equal(stint_session_memory(s, &info), STINT_OK);
    assert_int_equal(info.budget_bytes, 0);
    stint_session_close(s);
}

void ts_bounded_goes_on(stint_session *s, float *got) {
    // An eval ends with slices of the next under way: they were read while the file was damaged.
    stint_status first = ts_bounded_eval(s, got);
    if (first != STINT_OK) {
        assert_int_equal(first, STINT_E_FORMAT);
        assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
    }
    assert_memory_equal(got, ts_bounded.wanted, TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
}

static void assert_damage_is_found(uint64_t memory, const char *section, size_t offset) {
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    stint_session *s = ts_bounded_session(ts_bounded.lazy, memory, false);
    assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
    ts_bounded_flip(section, offset);
    // At once where it must be read again; in a session that begins anew in any case.
    stint_status status = ts_bounded_eval(s, got);
    if (status == STINT_OK)
        assert_memory_equal(got, ts_bounded.wanted,
                            TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    stint_session *other = NULL;
    status = ts_bounded_try(ts_bounded.lazy, memory, false, &other);
    if (other) status = ts_bounded_eval(other, got);
    assert_int_equal(status, STINT_E_FORMAT);
    assert_non_null(strstr(stint_error_text(), section));
    assert_non_null(strstr(stint_error_text(), "m.stint"));
    ts_bounded_flip(section, offset);
    if (!other) other = ts_bounded_session(ts_bounded.lazy, memory, false);
    ts_bounded_goes_on(other, got);
    ts_bounded_goes_on(s, got);
    stint_session_close(other);
    stint_session_close(s);
    free(got);
}

void ts_bounded_damage_is_found(void **state) {
    (void)state;
    uint64_t min = ts_bounded_min(1);
    assert_damage_is_found(min, "layers.0.qkv.weight", 1000);
    assert_damage_is_found(min + (64 << 20), "layers.1.up.weight", 100000);
    assert_damage_is_found(min, "head.weight", 500000);
    if (ts_bounded.lazy->neurons.layers) assert_damage_is_found(min, "layers.1.neurons", 200000);
}

void ts_bounded_a_file_cut_short_is_an_error(void **state) {
    (void)state;
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    stint_session *s = ts_bounded_session(ts_bounded.lazy, ts_bounded_min(1), false);
    assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
    const struct st_section *up =
        st_package_find(ts_bounded.lazy->checkpoint.package, "layers.0.up.weight");
    off_t at = (const unsigned char *)up->data - ts_bounded.lazy->checkpoint.maps->data;
    size_t bytes = ts_bounded.lazy->checkpoint.maps->bytes;
    struct stat before;
    int file = ts_bounded_open(&before);
    unsigned char *rest = malloc(bytes - (size_t)at);
    assert_int_equal(pread(file, rest, bytes - (size_t)at, at), bytes - (size_t)at);
    assert_int_equal(ftruncate(file, at + 4096), 0);
    assert_int_equal(ts_bounded_eval(s, got), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), "cut short"));
    assert_int_equal(stint_session_length(s, 0), 0);
    assert_int_equal(pwrite(file, rest, bytes - (size_t)at, at), bytes - (size_t)at);
    ts_bounded_close(file, &before);
    assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
    assert_memory_equal(got, ts_bounded.wanted, TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    stint_session_close(s);
    free(rest);
    free(got);
}
