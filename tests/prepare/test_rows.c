// SPDX-License-Identifier: Apache-2.0
// Tables of tokens' rows written as Q8_0 and read back.
#include "prepare/rows.h"
#include "kernels/dequantize.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 9, WIDTH = 64 };

static float values[ROWS * WIDTH];

static struct st_tensor table(void) {
    for (size_t i = 0; i < ROWS * WIDTH; i++) values[i] = ts_random_float(-3.0f, 3.0f);
    return (struct st_tensor){.name = "rows",
                              .data = values,
                              .bytes = sizeof values,
                              .dims = {ROWS, WIDTH, 1, 1},
                              .n_dims = 2,
                              .dtype = ST_DTYPE_F32};
}

static stint_status write(const struct st_tensor *t, const char *path) {
    struct st_package_writer *writer = NULL;
    assert_int_equal(st_package_create(path, &writer), STINT_OK);
    stint_status status = st_rows_pack(t, writer);
    if (status == STINT_OK) return st_package_finish(writer);
    st_package_abandon(writer);
    return status;
}

static void path_of(char path[512]) {
    snprintf(path, 512, "%s/rows.stint", ts_temp_folder());
}

static void rows_are_close_to_what_they_were(void **state) {
    (void)state;
    struct st_tensor t = table();
    struct st_map map = {0};
    struct st_package *package = NULL;
    float row[WIDTH];
    char path[512];
    path_of(path);
    for (size_t i = 0; i < 32; i++) values[3 * WIDTH + i] = 0.0f; // a block of nothing
    if (write(&t, path) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(st_map_open(path, &map), STINT_OK);
    assert_int_equal(st_package_open(path, &map, &package), STINT_OK);
    const struct st_section *s = st_package_find(package, "rows");
    assert_int_equal(s->dtype, ST_DTYPE_Q8_0);
    assert_int_equal(s->bytes, ROWS * WIDTH / 32 * 34);
    assert_int_equal(s->dims[0], ROWS);
    assert_int_equal(s->dims[1], WIDTH);
    for (size_t r = 0; r < ROWS; r++) {
        st_dequantize_select(0)->fn[s->dtype]((const char *)s->data + r * WIDTH / 32 * 34, 0, WIDTH,
                                              row);
        for (size_t i = 0; i < WIDTH; i++)
            assert_float_equal(row[i], values[r * WIDTH + i], 0.51 * 3.0 / 127.0);
    }
    st_package_close(package);
    st_map_close(&map);
}

static void numbers_that_are_none_are_refused(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, 1e30f};
    struct st_tensor t = table();
    char path[512];
    path_of(path);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        values[5 * WIDTH + 40] = bad[i];
        assert_int_equal(write(&t, path), STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), "'rows': row 5"));
    }
}

static void blocks_and_other_widths_stay(void **state) {
    (void)state;
    struct st_tensor t = table();
    assert_true(st_rows_become_blocks(&t));
    t.dtype = ST_DTYPE_Q4_0;
    assert_false(st_rows_become_blocks(&t));
    t.dtype = ST_DTYPE_BF16;
    assert_true(st_rows_become_blocks(&t));
    t.dims[1] = 70;
    assert_false(st_rows_become_blocks(&t));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_close_to_what_they_were),
        cmocka_unit_test(numbers_that_are_none_are_refused),
        cmocka_unit_test(blocks_and_other_widths_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
