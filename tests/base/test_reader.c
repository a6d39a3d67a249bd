// SPDX-License-Identifier: Apache-2.0
#include "base/reader.h"
#include "support/support.h"

#include <fcntl.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { BYTES = 100000, RANGES = 1000, RANGE_BYTES = 300 };

static void everything_asked_for_arrives(void **state) {
    (void)state;
    unsigned char *data = malloc(BYTES), *got = malloc(RANGES * RANGE_BYTES);
    size_t offsets[RANGES];
    struct st_reader *r = NULL;
    ts_random_bytes(data, BYTES);
    int file = open(ts_write("data", data, BYTES), O_RDONLY);
    assert_int_equal(st_reader_open(file, "data", &r), STINT_OK);
    assert_int_equal(st_reader_wait(r), STINT_OK); // nothing to wait for
    for (size_t i = 0; i < RANGES; i++) {
        offsets[i] = ts_random_below(BYTES - RANGE_BYTES + 1);
        st_reader_prefetch(r, offsets[i], RANGE_BYTES, got + i * RANGE_BYTES);
        if (ts_random_below(100) == 0) assert_int_equal(st_reader_wait(r), STINT_OK);
    }
    assert_int_equal(st_reader_wait(r), STINT_OK);
    for (size_t i = 0; i < RANGES; i++)
        assert_memory_equal(got + i * RANGE_BYTES, data + offsets[i], RANGE_BYTES);
    st_reader_close(r);
    st_reader_close(NULL);
    close(file);
    free(data);
    free(got);
}

static void a_failure_is_told_once(void **state) {
    (void)state;
    char byte[8];
    struct st_reader *r = NULL;
    int file = open(ts_write("short", "12345", 5), O_RDONLY);
    assert_int_equal(st_reader_open(file, "short", &r), STINT_OK);
    st_reader_prefetch(r, 3, 4, byte);
    st_reader_prefetch(r, 0, 2, byte + 4);
    assert_int_equal(st_reader_wait(r), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), "short: ends at byte 5"));
    assert_int_equal(st_reader_wait(r), STINT_OK);
    st_reader_prefetch(r, 0, 2, byte);
    assert_int_equal(st_reader_wait(r), STINT_OK);
    assert_memory_equal(byte, "12", 2);
    st_reader_close(r);
    close(file);
    assert_int_equal(st_reader_open(file, "closed", &r), STINT_OK);
    st_reader_prefetch(r, 0, 2, byte);
    assert_int_equal(st_reader_wait(r), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), "Bad file descriptor"));
    st_reader_prefetch(r, 0, 2, byte); // closing waits for it
    st_reader_close(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_asked_for_arrives),
        cmocka_unit_test(a_failure_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
