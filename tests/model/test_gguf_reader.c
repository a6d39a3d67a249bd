// SPDX-License-Identifier: Apache-2.0
// Keys of an architecture, with one value for all layers or one for each.
#include "format/expect.h"
#include "model/gguf_reader.h"
#include "support/gguf_builder.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static void values_are_for_all_layers_or_for_each(void **state) {
    struct ts_gguf file = {0};
    struct st_gguf_reader r = {.prefix = "x"};
    struct st_gguf *gguf = NULL;
    uint32_t sizes[3] = {7, 7, 7}, one = 4;
    double number = 0.0;
    (void)state;
    ts_gguf_header(&file, 3, 0, 4);
    ts_gguf_key_u32(&file, "x.one", 9);
    ts_gguf_key_f32(&file, "x.number", 0.5f);
    ts_gguf_key_array(&file, "x.each", ST_GGUF_U32, 3);
    for (uint32_t i = 0; i < 3; i++) ts_gguf_u32(&file, 10 + i);
    ts_gguf_key_array(&file, "x.huge", ST_GGUF_U32, 3);
    for (uint32_t i = 0; i < 3; i++) ts_gguf_u32(&file, UINT32_MAX);
    struct st_map map = ts_exact_map(file.data, file.n);
    assert_int_equal(st_gguf_open("x.gguf", &map, NULL, &gguf), STINT_OK);
    r.gguf = gguf;
    assert_int_equal(st_reader_sizes(&r, "absent", 3, sizes), STINT_OK);
    assert_int_equal(sizes[2], 7);
    assert_int_equal(st_reader_sizes(&r, "one", 3, sizes), STINT_OK);
    assert_int_equal(sizes[0], 9);
    assert_int_equal(sizes[2], 9);
    assert_int_equal(st_reader_sizes(&r, "each", 3, sizes), STINT_OK);
    assert_int_equal(sizes[0], 10);
    assert_int_equal(sizes[2], 12);
    assert_failure(st_reader_sizes(&r, "each", 2, sizes), STINT_E_FORMAT, "3 entries for 2");
    assert_failure(st_reader_sizes(&r, "huge", 3, sizes), STINT_E_FORMAT, "out of range");
    assert_int_equal(st_reader_size(&r, "one", &one), STINT_OK);
    assert_int_equal(one, 9);
    assert_int_equal(st_reader_number(&r, "number", &number), STINT_OK);
    assert_float_equal(number, 0.5, 0.0);
    st_gguf_close(gguf);
    free((void *)(uintptr_t)map.data);
    ts_gguf_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_for_all_layers_or_for_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
