// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void dtype_is_found_by_its_own_numbers_and_names(void **state) {
    (void)state;
    for (int i = 0; i < ST_N_DTYPES; i++) {
        const struct st_dtype_traits *traits = st_dtype_traits((enum st_dtype)i);
        enum st_dtype found;
        assert_true(st_dtype_from_gguf(traits->gguf_type, &found));
        assert_int_equal(found, i);
        if (!traits->safetensors_name) continue;
        assert_true(st_dtype_from_safetensors(traits->safetensors_name, &found));
        assert_int_equal(found, i);
    }
}

static void dtype_that_is_unknown_leaves_the_result_alone(void **state) {
    (void)state;
    enum st_dtype found = ST_DTYPE_Q6_K;
    assert_false(st_dtype_from_gguf(9, &found)); // Q8_1: only ever an intermediate
    assert_false(st_dtype_from_gguf(UINT32_MAX, &found));
    assert_false(st_dtype_from_safetensors("I64", &found));
    assert_false(st_dtype_from_safetensors("f32", &found));
    assert_false(st_dtype_from_safetensors("", &found));
    assert_int_equal(found, ST_DTYPE_Q6_K);
}

static void dtype_rows_are_whole_blocks(void **state) {
    (void)state;
    assert_int_equal(st_dtype_row_bytes(ST_DTYPE_F32, 3), 12);
    assert_int_equal(st_dtype_row_bytes(ST_DTYPE_BF16, 3), 6);
    assert_int_equal(st_dtype_row_bytes(ST_DTYPE_Q4_0, 64), 36);
    assert_int_equal(st_dtype_row_bytes(ST_DTYPE_Q6_K, 512), 420);
    assert_int_equal(st_dtype_row_bytes(ST_DTYPE_Q6_K, 0), 0);
    assert_string_equal(st_dtype_traits(ST_DTYPE_IQ4_XS)->name, "iq4_xs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtype_is_found_by_its_own_numbers_and_names),
        cmocka_unit_test(dtype_that_is_unknown_leaves_the_result_alone),
        cmocka_unit_test(dtype_rows_are_whole_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
