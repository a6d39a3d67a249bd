// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "format/gguf.h"
#include "support/gguf_builder.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t one_dim[] = {8};

static stint_status read_map(const struct st_map *map, bool with_tensors, struct st_gguf **gguf,
                             struct st_tensors **tensors) {
    struct st_tensors *opened = NULL;
    if (with_tensors) assert_int_equal(st_tensors_open(0, &opened), STINT_OK);
    stint_status status = st_gguf_open("x.gguf", map, opened, gguf);
    if (status == STINT_OK && tensors)
        *tensors = opened;
    else
        st_tensors_close(opened);
    return status;
}

// Frees the file and asserts how reading it fails.
static void refuse_as(struct ts_gguf *file, stint_status expected, const char *piece) {
    struct st_map map = ts_exact_map(file->data, file->n);
    struct st_gguf *gguf = NULL;
    assert_failure(read_map(&map, true, &gguf, NULL), expected, piece);
    assert_failure(expected, expected, "x.gguf: ");
    assert_null(gguf);
    free((void *)map.data);
    ts_gguf_free(file);
}

static void refuse(struct ts_gguf *file, const char *piece) {
    refuse_as(file, STINT_E_FORMAT, piece);
}

// A file with two tensors: F32 [3, 8] and Q8_0 [1, 32].
static void build_good(struct ts_gguf *file, uint32_t version) {
    ts_gguf_header(file, version, 2, 2);
    ts_gguf_key_text(file, "general.architecture", "llama");
    ts_gguf_key_u32(file, "general.alignment", 64);
    ts_gguf_tensor(file, "embed", 2, (uint64_t[]){8, 3}, 0, 0);
    ts_gguf_tensor(file, "quant", 2, (uint64_t[]){32, 1}, 8, 128);
    ts_gguf_pad(file, 64);
    for (unsigned char i = 0; i < 128 + 34; i++) ts_gguf_bytes(file, &i, 1);
}

static void gguf_gives_views_into_the_map(void **state) {
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        struct ts_gguf file = {0};
        build_good(&file, version);
        struct st_map map = ts_exact_map(file.data, file.n);
        struct st_gguf *gguf = NULL;
        struct st_tensors *tensors = NULL;
        assert_int_equal(read_map(&map, true, &gguf, &tensors), STINT_OK);
        assert_int_equal(st_tensors_count(tensors), 2);
        const struct st_tensor *embed = st_tensors_find(tensors, "embed");
        assert_non_null(embed);
        assert_int_equal(embed->n_dims, 2);
        assert_int_equal(embed->dims[0], 3); // outermost first
        assert_int_equal(embed->dims[1], 8);
        assert_int_equal(embed->bytes, 96);
        assert_int_equal(*(const unsigned char *)embed->data, 0);
        const struct st_tensor *quant = st_tensors_find(tensors, "quant");
        assert_int_equal(quant->dtype, ST_DTYPE_Q8_0);
        assert_int_equal(quant->bytes, 34);
        assert_int_equal(*(const unsigned char *)quant->data, 128);
        assert_true(st_gguf_has(gguf, "general.architecture"));
        st_tensors_close(tensors);
        st_gguf_close(gguf);
        free((void *)map.data);
        ts_gguf_free(&file);
    }
}

static void gguf_opens_without_tensors_for_the_vocabulary(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    ts_gguf_header(&file, 3, 1, 1);
    ts_gguf_key_u32(&file, "a", 1);
    ts_gguf_tensor(&file, "t", 1, one_dim, 9999, 0); // neither its type nor its data matter
    struct st_map map = ts_exact_map(file.data, file.n);
    struct st_gguf *gguf = NULL;
    assert_int_equal(read_map(&map, false, &gguf, NULL), STINT_OK);
    assert_true(st_gguf_has(gguf, "a"));
    st_gguf_close(gguf);
    free((void *)map.data);
    ts_gguf_free(&file);
}

static void gguf_refuses_what_is_not_its_version(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    refuse(&file, "the file is empty");
    ts_gguf_bytes(&file, "GGU", 3);
    refuse(&file, "is not a GGUF file");
    ts_gguf_bytes(&file, "GGMF\3\0\0\0", 8);
    refuse(&file, "is not a GGUF file");
    ts_gguf_bytes(&file, "GGUF\3\0", 6);
    refuse(&file, "the file ends inside the header");
    ts_gguf_header(&file, 1, 0, 0);
    refuse_as(&file, STINT_E_UNSUPPORTED, "GGUF version 1 is not supported");
    ts_gguf_header(&file, 0x03000000, 0, 0);
    refuse_as(&file, STINT_E_UNSUPPORTED, "big-endian");
    ts_gguf_header(&file, 0, 0, 0);
    refuse_as(&file, STINT_E_UNSUPPORTED, "GGUF version 0");
    ts_gguf_header(&file, 4, 0, 0);
    refuse_as(&file, STINT_E_UNSUPPORTED, "GGUF version 4");
}

static void gguf_refuses_counts_beyond_the_file_before_allocating(void **state) {
    (void)state;
    static const uint64_t counts[] = {5, UINT64_C(1) << 60, UINT64_MAX};
    for (size_t i = 0; i < 3; i++) {
        struct ts_gguf file = {0};
        ts_gguf_header(&file, 3, counts[i], 0);
        ts_gguf_zeros(&file, 64);
        refuse(&file, "tensors do not fit");
        ts_gguf_header(&file, 3, 0, counts[i]);
        ts_gguf_zeros(&file, 40);
        ts_fail_allocation(0);
        refuse(&file, "metadata keys do not fit");
        assert_in_range(ts_allocations(), 1, 8); // none of them grows with the count
    }
}

static void gguf_refuses_bad_keys(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key_u32(&file, "", 1);
    refuse(&file, "a metadata key is empty");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_u64(&file, UINT64_MAX);
    ts_gguf_zeros(&file, 20);
    refuse(&file, "a metadata key has 18446744073709551615 bytes");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_u64(&file, 70000);
    ts_gguf_zeros(&file, 80000);
    refuse(&file, "at most 65535");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_u64(&file, 3);
    ts_gguf_bytes(&file, "a\0b\4\0\0\0\1\0\0\0", 11);
    refuse(&file, "a metadata key holds a byte 0");
    ts_gguf_header(&file, 3, 0, 3);
    ts_gguf_key_u32(&file, "same", 1);
    ts_gguf_key_u32(&file, "between", 1);
    ts_gguf_key_text(&file, "same", "x");
    refuse(&file, "metadata 'same': the key is there twice");
}

static void gguf_refuses_bad_values(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key(&file, "k", 13);
    ts_gguf_zeros(&file, 8);
    refuse(&file, "metadata 'k': type 13 is not known");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key(&file, "k", ST_GGUF_BOOL);
    ts_gguf_bytes(&file, "\2", 1);
    refuse(&file, "metadata 'k': 2 is not a bool");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key(&file, "k", ST_GGUF_U64);
    ts_gguf_u32(&file, 0);
    refuse(&file, "metadata 'k': the file ends inside the value");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key(&file, "k", ST_GGUF_STRING);
    ts_gguf_u64(&file, 5);
    ts_gguf_bytes(&file, "four", 4);
    refuse(&file, "metadata 'k': the string has 5 bytes, only 4");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key(&file, "k", ST_GGUF_STRING);
    ts_gguf_u64(&file, UINT64_MAX - 7); // would wrap to a small size with its own length
    refuse(&file, "metadata 'k': the string has 18446744073709551608 bytes");
}

static void gguf_refuses_bad_arrays(void **state) {
    (void)state;
    static const uint64_t counts[] = {3, UINT64_C(1) << 61, UINT64_C(1) << 62, UINT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        struct ts_gguf file = {0};
        ts_gguf_header(&file, 3, 0, 1);
        ts_gguf_key_array(&file, "k", ST_GGUF_U64, counts[i]);
        ts_gguf_zeros(&file, 23);
        refuse(&file, "metadata 'k': an array of ");
        ts_gguf_header(&file, 3, 0, 1);
        ts_gguf_key_array(&file, "k", ST_GGUF_STRING, counts[i]);
        ts_gguf_zeros(&file, 23);
        refuse(&file, "metadata 'k': an array of ");
    }
    struct ts_gguf file = {0};
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key_array(&file, "k", ST_GGUF_ARRAY, 1);
    ts_gguf_zeros(&file, 40);
    refuse_as(&file, STINT_E_UNSUPPORTED, "metadata 'k': arrays in arrays");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key_array(&file, "k", 77, 1);
    ts_gguf_zeros(&file, 40);
    refuse(&file, "metadata 'k': type 77");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key_array(&file, "k", ST_GGUF_STRING, 2);
    ts_gguf_text(&file, "good");
    ts_gguf_u64(&file, 1000);
    refuse(&file, "metadata 'k': a string of an array has 1000 bytes, only 0");
}

static void gguf_refuses_a_bad_alignment(void **state) {
    (void)state;
    static const uint32_t values[] = {0, 1, 4, 7, 24, 33, UINT32_C(1) << 31, UINT32_MAX};
    struct ts_gguf file = {0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        ts_gguf_header(&file, 3, 0, 1);
        ts_gguf_key_u32(&file, "general.alignment", values[i]);
        refuse(&file, "metadata 'general.alignment': ");
    }
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key_text(&file, "general.alignment", "32");
    refuse(&file, "'general.alignment': is of type string, expected u32");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key(&file, "general.alignment", ST_GGUF_U64);
    ts_gguf_u64(&file, 32);
    refuse(&file, "'general.alignment': is of type u64, expected u32");
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key_array(&file, "general.alignment", ST_GGUF_U32, 0);
    refuse(&file, "'general.alignment': is of type array, expected u32");
}

// One tensor "t", then padding to 32 and `data_bytes` zeros.
static void build_tensor(struct ts_gguf *file, uint32_t n_dims, const uint64_t *dims, uint32_t type,
                         uint64_t offset, size_t data_bytes) {
    ts_gguf_header(file, 3, 1, 0);
    ts_gguf_tensor(file, "t", n_dims, dims, type, offset);
    ts_gguf_pad(file, 32);
    ts_gguf_zeros(file, data_bytes);
}

static void gguf_refuses_bad_tensor_shapes(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    const uint64_t ones[] = {1, 1, 1, 1, 1};
    build_tensor(&file, 0, ones, 0, 0, 4);
    refuse(&file, "tensor 't': 0 dimensions");
    build_tensor(&file, 5, ones, 0, 0, 4);
    refuse(&file, "tensor 't': 5 dimensions");
    ts_gguf_header(&file, 3, 1, 0);
    ts_gguf_text(&file, "t");
    ts_gguf_u32(&file, UINT32_MAX);
    ts_gguf_zeros(&file, 64);
    refuse(&file, "tensor 't': 4294967295 dimensions");
    build_tensor(&file, 2, (uint64_t[]){4, 0}, 0, 0, 4);
    refuse(&file, "tensor 't': dimension 0 is 0");
    build_tensor(&file, 2, (uint64_t[]){UINT64_C(1) << 32, UINT64_C(1) << 32}, 0, 0, 4);
    refuse(&file, "tensor 't': the product");
    build_tensor(&file, 1, (uint64_t[]){UINT64_C(1) << 62}, 0, 0, 4);
    refuse(&file, "tensor 't': its size");
    build_tensor(&file, 1, (uint64_t[]){UINT64_C(1) << 63}, 8, 0, 4); // Q8_0: bytes wrap
    refuse(&file, "tensor 't': ");
    build_tensor(&file, 2, (uint64_t[]){33, 32}, 2, 0, 4096);
    refuse(&file, "tensor 't': rows of 33 are no whole blocks of 32");
}

// Microsoft's ternary type is set aside as bytes, of which the file must have all.
static void gguf_sets_i2_s_aside(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    const uint64_t dims[] = {64, 4};
    build_tensor(&file, 2, dims, ST_I2_S_GGUF, 0, 95);
    refuse(&file, "tensor 't': ends at byte");
    build_tensor(&file, 1, (uint64_t[]){64}, ST_I2_S_GGUF, 0, 96);
    refuse(&file, "tensor 't': its shape is no whole number of blocks of 128");
    build_tensor(&file, 2, (uint64_t[]){UINT64_C(1) << 40, UINT64_C(1) << 40}, ST_I2_S_GGUF, 0, 96);
    refuse(&file, "tensor 't': its shape");
    build_tensor(&file, 2, dims, ST_I2_S_GGUF, 0, 96);
    struct st_map map = ts_exact_map(file.data, file.n);
    struct st_tensors *tensors = NULL;
    struct st_gguf *gguf = NULL;
    assert_int_equal(read_map(&map, true, &gguf, &tensors), STINT_OK);
    assert_null(st_tensors_find(tensors, "t"));
    assert_int_equal(st_tensors_find_bytes(tensors, "t")->bytes, 96);
    st_gguf_close(gguf);
    st_tensors_close(tensors);
    free((void *)map.data);
    ts_gguf_free(&file);
}

static void gguf_names_an_unsupported_type(void **state) {
    (void)state;
    static const uint32_t numbers[] = {4, 5, 9, 16, 24, 99, UINT32_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct ts_gguf file = {0};
        char piece[64];
        snprintf(piece, sizeof piece, "tensor 't': type %u is not supported", numbers[i]);
        build_tensor(&file, 1, (uint64_t[]){256}, numbers[i], 0, 4096);
        refuse_as(&file, STINT_E_UNSUPPORTED, piece);
    }
    assert_non_null(strstr(st_error_text(), "q6_k"));
}

static void gguf_rejects_tensor_past_end(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    build_tensor(&file, 1, one_dim, 0, 0, 31);
    refuse(&file, "tensor 't': ends at byte 96, the file has 95");
    build_tensor(&file, 1, one_dim, 0, 64, 64);
    refuse(&file, "tensor 't': ends at byte");
    build_tensor(&file, 1, one_dim, 0, UINT64_C(1) << 62, 64);
    refuse(&file, "tensor 't': ends at byte");
    build_tensor(&file, 1, one_dim, 0, UINT64_MAX - 31, 64); // start wraps to inside the file
    refuse(&file, "tensor 't': offset 18446744073709551584 and size 32 wrap");
    build_tensor(&file, 1, one_dim, 0, UINT64_MAX - 127, 64); // the end wraps
    refuse(&file, "tensor 't': ");
}

static void gguf_refuses_bad_offsets(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    build_tensor(&file, 1, one_dim, 0, 8, 64);
    refuse(&file, "tensor 't': offset 8 is not a multiple of 32");
    ts_gguf_header(&file, 3, 2, 0);
    ts_gguf_tensor(&file, "a", 1, (uint64_t[]){16}, 0, 0);
    ts_gguf_tensor(&file, "b", 1, (uint64_t[]){16}, 0, 32);
    ts_gguf_pad(&file, 32);
    ts_gguf_zeros(&file, 96);
    refuse(&file, "tensors 'a' and 'b' overlap");
}

static void gguf_refuses_padding_past_the_end(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    ts_gguf_header(&file, 3, 1, 1);
    ts_gguf_key_u32(&file, "general.alignment", 1 << 20);
    ts_gguf_tensor(&file, "t", 1, one_dim, 0, 0);
    ts_gguf_zeros(&file, 64);
    refuse(&file, "tensor 't': ends at byte 1048608");
}

static void gguf_refuses_bad_tensor_names(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    ts_gguf_header(&file, 3, 1, 0);
    ts_gguf_tensor(&file, "", 1, one_dim, 0, 0);
    ts_gguf_zeros(&file, 96);
    refuse(&file, "a tensor's name is empty");
    ts_gguf_header(&file, 3, 1, 0);
    ts_gguf_u64(&file, 256);
    ts_gguf_zeros(&file, 600);
    refuse(&file, "a tensor's name has 256 bytes, at most 255");
    ts_gguf_header(&file, 3, 1, 0);
    ts_gguf_u64(&file, UINT64_C(1) << 63);
    ts_gguf_zeros(&file, 96);
    refuse(&file, "a tensor's name has 9223372036854775808 bytes");
    ts_gguf_header(&file, 3, 2, 0);
    ts_gguf_tensor(&file, "t", 1, one_dim, 0, 0);
    ts_gguf_tensor(&file, "t", 1, one_dim, 0, 32);
    ts_gguf_pad(&file, 32);
    ts_gguf_zeros(&file, 64);
    refuse(&file, "tensor 't': is there twice");
}

static void gguf_survives_any_failing_allocation(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    build_good(&file, 3);
    struct st_map map = ts_exact_map(file.data, file.n);
    for (size_t n = 1;; n++) {
        struct st_gguf *gguf = NULL;
        struct st_tensors *tensors = NULL;
        assert_int_equal(st_tensors_open(0, &tensors), STINT_OK);
        ts_fail_allocation(n);
        stint_status status = st_gguf_open("x.gguf", &map, tensors, &gguf);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
        st_gguf_close(gguf);
        st_tensors_close(tensors);
        if (!failed) break;
    }
    free((void *)map.data);
    ts_gguf_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gguf_gives_views_into_the_map),
        cmocka_unit_test(gguf_opens_without_tensors_for_the_vocabulary),
        cmocka_unit_test(gguf_refuses_what_is_not_its_version),
        cmocka_unit_test(gguf_refuses_counts_beyond_the_file_before_allocating),
        cmocka_unit_test(gguf_refuses_bad_keys),
        cmocka_unit_test(gguf_refuses_bad_values),
        cmocka_unit_test(gguf_refuses_bad_arrays),
        cmocka_unit_test(gguf_refuses_a_bad_alignment),
        cmocka_unit_test(gguf_refuses_bad_tensor_shapes),
        cmocka_unit_test(gguf_sets_i2_s_aside),
        cmocka_unit_test(gguf_names_an_unsupported_type),
        cmocka_unit_test(gguf_rejects_tensor_past_end),
        cmocka_unit_test(gguf_refuses_bad_offsets),
        cmocka_unit_test(gguf_refuses_padding_past_the_end),
        cmocka_unit_test(gguf_refuses_bad_tensor_names),
        cmocka_unit_test(gguf_survives_any_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
