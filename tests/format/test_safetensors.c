// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "format/safetensors.h"
#include "support/gguf_builder.h"
#include "support/support.h"

#include <stdlib.h>

// A file with this header and data bytes 0, 1, 2, ...; `length` replaces the header's length if
// not 0.
static struct st_map make(const char *header, size_t data_bytes, uint64_t length) {
    struct ts_gguf file = {0};
    ts_gguf_u64(&file, length ? length : strlen(header));
    ts_gguf_bytes(&file, header, strlen(header));
    for (size_t i = 0; i < data_bytes; i++)
        ts_gguf_bytes(&file, &(unsigned char){(unsigned char)i}, 1);
    struct st_map map = ts_exact_map(file.data, file.n);
    ts_gguf_free(&file);
    return map;
}

static stint_status read_map(struct st_map map, struct st_tensors **tensors) {
    struct st_tensors *opened = NULL;
    stint_status status = st_tensors_open(0, &opened);
    if (status == STINT_OK) status = st_safetensors_read("x.safetensors", &map, opened);
    if (tensors && status == STINT_OK)
        *tensors = opened;
    else
        st_tensors_close(opened);
    return status;
}

// Reads a file of this header and asserts the failure.
static void refuse(const char *header, size_t data_bytes, const char *piece) {
    struct st_map map = make(header, data_bytes, 0);
    assert_failure(read_map(map, NULL), STINT_E_FORMAT, piece);
    assert_failure(STINT_E_FORMAT, STINT_E_FORMAT, "x.safetensors: ");
    free((void *)map.data);
}

static void safetensors_gives_views_into_the_map(void **state) {
    (void)state;
    struct st_map map = make("{\"__metadata__\":{\"format\":\"pt\"},"
                             "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4,28]},"
                             "\"h\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]},"
                             "\"b\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[2,4]}}   ",
                             28, 0);
    struct st_tensors *tensors = NULL;
    assert_int_equal(read_map(map, &tensors), STINT_OK);
    assert_int_equal(st_tensors_count(tensors), 3);
    const struct st_tensor *a = st_tensors_find(tensors, "a");
    assert_non_null(a);
    assert_int_equal(a->dtype, ST_DTYPE_F32);
    assert_int_equal(a->n_dims, 2);
    assert_int_equal(a->dims[0], 2);
    assert_int_equal(a->dims[1], 3);
    assert_int_equal(a->bytes, 24);
    assert_int_equal(*(const unsigned char *)a->data, 4);
    assert_int_equal(st_tensors_find(tensors, "h")->dtype, ST_DTYPE_F16);
    const struct st_tensor *b = st_tensors_find(tensors, "b");
    assert_int_equal(b->n_dims, 0);
    assert_int_equal(b->bytes, 2);
    assert_null(st_tensors_find(tensors, "__metadata__"));
    st_tensors_close(tensors);
    free((void *)map.data);
}

static void safetensors_sets_aside_what_it_cannot_use(void **state) {
    (void)state;
    struct st_map map =
        make("{\"ids\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
             "\"none\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[8,8]},"
             "\"patch\":{\"dtype\":\"F16\",\"shape\":[1,1,1,1,1],\"data_offsets\":[8,10]},"
             "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[10,14]}}",
             14, 0);
    struct st_tensors *tensors = NULL;
    assert_int_equal(read_map(map, &tensors), STINT_OK);
    assert_int_equal(st_tensors_count(tensors), 1);
    assert_non_null(st_tensors_find(tensors, "w"));
    assert_failure(st_tensors_missing(tensors, "ids"), STINT_E_UNSUPPORTED,
                   "tensor 'ids': its type is I64");
    assert_failure(st_tensors_missing(tensors, "none"), STINT_E_UNSUPPORTED, "a dimension is 0");
    assert_failure(st_tensors_missing(tensors, "patch"), STINT_E_UNSUPPORTED, "more than 4");
    st_tensors_close(tensors);
    free((void *)map.data);
}

static void safetensors_refuses_a_bad_header_length(void **state) {
    (void)state;
    static const struct {
        size_t bytes;
        uint64_t length;
        const char *piece;
    } rows[] = {
        {0, 0, "0 bytes are no"},
        {7, 0, "7 bytes are no"},
        {8, 0, "header: line"},
        {8, 1, "the header takes 1 bytes, the file has 8"},
        {10, 3, "the header takes 3 bytes"},
        {10, UINT64_MAX, "the header takes 18446744073709551615 bytes"},
        {10, UINT64_MAX - 7, "the header takes 18446744073709551608 bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char bytes[16] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
        memcpy(bytes, &rows[i].length, 8);
        struct st_map map = ts_exact_map(bytes, rows[i].bytes);
        assert_failure(read_map(map, NULL), STINT_E_FORMAT, rows[i].piece);
        free((void *)map.data);
    }
}

static void safetensors_refuses_headers_over_the_limit(void **state) {
    (void)state;
    size_t bytes = 100 * 1000 * 1000 + 9;
    unsigned char *data = calloc(1, bytes); // never touched: costs no memory
    assert_non_null(data);
    memcpy(data, &(uint64_t){bytes - 8}, 8);
    assert_failure(read_map((struct st_map){data, bytes}, NULL), STINT_E_FORMAT, "at most");
    free(data);
}

static void safetensors_refuses_headers_that_are_not_an_object(void **state) {
    (void)state;
    refuse("[]", 0, "not a JSON object");
    refuse("{\"a\":", 0, "header: line 1");
    refuse("{}x", 0, "header: line 1");
    refuse("{\"a\":3}", 0, "tensor 'a': is not described by an object");
    refuse("{\"a\":{},\"a\":{}}", 0, "header: line 1");
    refuse("{\"a\\u0000b\":{}}", 0, "header: line 1");
}

#define MEMBER(name, dtype, shape, offsets)                                                        \
    "\"" name "\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(dtype, shape, offsets) "{" MEMBER("a", dtype, shape, offsets) "}"

static void safetensors_refuses_bad_members(void **state) {
    (void)state;
    refuse(ONE("3", "[1]", "[0,4]"), 4, "tensor 'a': 'dtype'");
    refuse("{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor 'a': 'dtype'");
    refuse("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "tensor 'a': 'shape'");
    refuse(ONE("\"F32\"", "4", "[0,4]"), 4, "tensor 'a': 'shape'");
    refuse(ONE("\"F32\"", "[-1]", "[0,4]"), 4, "tensor 'a': dimension 0");
    refuse(ONE("\"F32\"", "[1,1.5]", "[0,4]"), 4, "tensor 'a': dimension 1");
    refuse(ONE("\"F32\"", "[true]", "[0,4]"), 4, "tensor 'a': dimension 0");
    refuse(ONE("\"F32\"", "[1]", "[0]"), 4, "tensor 'a': 'data_offsets'");
    refuse(ONE("\"F32\"", "[1]", "[0,4,8]"), 8, "tensor 'a': 'data_offsets'");
    refuse(ONE("\"F32\"", "[1]", "[-4,0]"), 4, "tensor 'a': 'data_offsets'");
    refuse(ONE("\"F32\"", "[1]", "null"), 4, "tensor 'a': 'data_offsets'");
    refuse(ONE("\"F32\"", "[1]", "[0,99999999999999999999]"), 4, "header: line 1");
    refuse("{" MEMBER("", "\"F32\"", "[1]", "[0,4]") "}", 4, "empty name");
}

static void safetensors_refuses_bad_ranges(void **state) {
    (void)state;
    refuse(ONE("\"F32\"", "[1]", "[4,0]"), 4, "tensor 'a': begins at 4, after its end at 0");
    refuse(ONE("\"F32\"", "[2]", "[0,8]"), 7, "tensor 'a': ends at byte 8 of the data");
    refuse(ONE("\"I64\"", "[1]", "[0,8]"), 7, "tensor 'a': ends at byte 8 of the data");
    refuse(ONE("\"F32\"", "[1]", "[0,9223372036854775807]"), 4, "tensor 'a': ends at byte 92");
    refuse(ONE("\"F32\"", "[2]", "[0,4]"), 4, "tensor 'a': has 4 bytes, its shape takes 8");
    refuse(ONE("\"F16\"", "[2]", "[0,8]"), 8, "tensor 'a': has 8 bytes, its shape takes 4");
    refuse(ONE("\"F32\"", "[]", "[0,0]"), 0, "tensor 'a': has 0 bytes, its shape takes 4");
}

static void safetensors_refuses_products_that_wrap(void **state) {
    (void)state;
    refuse(ONE("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0, "tensor 'a': the product");
    refuse(ONE("\"F32\"", "[4611686018427387904]", "[0,0]"), 0, "tensor 'a': its size");
}

static void safetensors_refuses_overlaps(void **state) {
    (void)state;
    refuse(
        "{" MEMBER("a", "\"F32\"", "[2]", "[0,8]") "," MEMBER("b", "\"F32\"", "[1]", "[4,8]") "}",
        8, "'a' and 'b' overlap");
    refuse(
        "{" MEMBER("a", "\"F32\"", "[1]", "[0,4]") "," MEMBER("b", "\"F32\"", "[1]", "[0,4]") "}",
        8, "overlap");
}

static void safetensors_survives_any_failing_allocation(void **state) {
    (void)state;
    struct st_map map = make(
        "{" MEMBER("a", "\"F32\"", "[1]", "[0,4]") "," MEMBER("i", "\"I64\"", "[1]", "[8,16]") "}",
        16, 0);
    for (size_t n = 1;; n++) {
        struct st_tensors *tensors = NULL;
        ts_fail_allocation(n);
        stint_status status = read_map(map, &tensors);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        if (!failed) assert_int_equal(status, STINT_OK);
        if (status == STINT_OK) st_tensors_close(tensors);
        if (!failed) break;
        assert_int_not_equal(status, STINT_OK);
    }
    free((void *)map.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safetensors_gives_views_into_the_map),
        cmocka_unit_test(safetensors_sets_aside_what_it_cannot_use),
        cmocka_unit_test(safetensors_refuses_a_bad_header_length),
        cmocka_unit_test(safetensors_refuses_headers_over_the_limit),
        cmocka_unit_test(safetensors_refuses_headers_that_are_not_an_object),
        cmocka_unit_test(safetensors_refuses_bad_members),
        cmocka_unit_test(safetensors_refuses_bad_ranges),
        cmocka_unit_test(safetensors_refuses_products_that_wrap),
        cmocka_unit_test(safetensors_refuses_overlaps),
        cmocka_unit_test(safetensors_survives_any_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
