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

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct fixture {
    struct ts_gguf file;
    struct st_map map;
    struct st_gguf *gguf;
};

static void open_built(struct fixture *f) {
    f->map = ts_exact_map(f->file.data, f->file.n);
    assert_int_equal(st_gguf_open("x.gguf", &f->map, NULL, &f->gguf), STINT_OK);
}

static void close_built(struct fixture *f) {
    st_gguf_close(f->gguf);
    free((void *)f->map.data);
    ts_gguf_free(&f->file);
}

static void put_key(struct fixture *f, const char *key, uint32_t type, const void *value,
                    size_t bytes) {
    ts_gguf_key(&f->file, key, type);
    ts_gguf_bytes(&f->file, value, bytes);
}

static void metadata_integers_of_every_width_are_taken(void **state) {
    (void)state;
    struct fixture f = {0};
    ts_gguf_header(&f.file, 3, 0, 8);
    put_key(&f, "u8", ST_GGUF_U8, &(uint8_t){200}, 1);
    put_key(&f, "i8", ST_GGUF_I8, &(int8_t){100}, 1);
    put_key(&f, "u16", ST_GGUF_U16, &(uint16_t){50000}, 2);
    put_key(&f, "i16", ST_GGUF_I16, &(int16_t){30000}, 2);
    put_key(&f, "u32", ST_GGUF_U32, &(uint32_t){4000000000}, 4);
    put_key(&f, "i32", ST_GGUF_I32, &(int32_t){2000000000}, 4);
    put_key(&f, "u64", ST_GGUF_U64, &(uint64_t){UINT64_MAX}, 8);
    put_key(&f, "i64", ST_GGUF_I64, &(int64_t){INT64_MAX}, 8);
    open_built(&f);
    static const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"u8", 200},          {"i8", 100},         {"u16", 50000},      {"i16", 30000},
                {"u32", 4000000000u}, {"i32", 2000000000}, {"u64", UINT64_MAX}, {"i64", INT64_MAX}};
    for (size_t i = 0; i < 8; i++) {
        uint64_t value = 0;
        assert_int_equal(st_gguf_u64(f.gguf, rows[i].key, UINT64_MAX, &value), STINT_OK);
        assert_true(value == rows[i].value);
        value = 7;
        assert_failure(st_gguf_u64(f.gguf, rows[i].key, 99, &value), STINT_E_FORMAT, rows[i].key);
        assert_int_equal(value, 7);
    }
    close_built(&f);
}

static void metadata_negative_integers_are_refused(void **state) {
    (void)state;
    struct fixture f = {0};
    ts_gguf_header(&f.file, 3, 0, 4);
    put_key(&f, "i8", ST_GGUF_I8, &(int8_t){-1}, 1);
    put_key(&f, "i16", ST_GGUF_I16, &(int16_t){-2}, 2);
    put_key(&f, "i32", ST_GGUF_I32, &(int32_t){-3}, 4);
    put_key(&f, "i64", ST_GGUF_I64, &(int64_t){INT64_MIN}, 8);
    open_built(&f);
    static const char *const pieces[] = {"'i8': -1 is", "'i16': -2 is", "'i32': -3 is",
                                         "'i64': -9223372036854775808 is"};
    static const char *const keys[] = {"i8", "i16", "i32", "i64"};
    for (size_t i = 0; i < 4; i++) {
        uint64_t value = 7;
        assert_failure(st_gguf_u64(f.gguf, keys[i], UINT64_MAX, &value), STINT_E_FORMAT, pieces[i]);
        assert_int_equal(value, 7);
    }
    close_built(&f);
}

static void metadata_floats_must_be_finite(void **state) {
    (void)state;
    struct fixture f = {0};
    ts_gguf_header(&f.file, 3, 0, 4);
    put_key(&f, "f32", ST_GGUF_F32, &(float){0.5f}, 4);
    put_key(&f, "f64", ST_GGUF_F64, &(double){1e-300}, 8);
    put_key(&f, "nan", ST_GGUF_F32, &(float){NAN}, 4);
    put_key(&f, "inf", ST_GGUF_F64, &(double){-INFINITY}, 8);
    open_built(&f);
    double value = 0.0;
    assert_int_equal(st_gguf_f64(f.gguf, "f32", &value), STINT_OK);
    assert_true(value == 0.5);
    assert_int_equal(st_gguf_f64(f.gguf, "f64", &value), STINT_OK);
    assert_true(value == 1e-300);
    assert_failure(st_gguf_f64(f.gguf, "nan", &value), STINT_E_FORMAT, "'nan'");
    assert_failure(st_gguf_f64(f.gguf, "inf", &value), STINT_E_FORMAT, "'inf'");
    assert_true(value == 1e-300);
    close_built(&f);
}

static void metadata_absent_keys_keep_the_default(void **state) {
    (void)state;
    struct fixture f = {0};
    ts_gguf_header(&f.file, 3, 0, 0);
    open_built(&f);
    uint64_t u = 1;
    double d = 2.0;
    bool b = true;
    struct st_gguf_string s = {"x", 1};
    struct st_gguf_array a = {.count = 3};
    assert_int_equal(st_gguf_u64(f.gguf, "k", 0, &u), STINT_OK);
    assert_int_equal(st_gguf_f64(f.gguf, "k", &d), STINT_OK);
    assert_int_equal(st_gguf_bool(f.gguf, "k", &b), STINT_OK);
    assert_int_equal(st_gguf_str(f.gguf, "k", &s), STINT_OK);
    assert_int_equal(st_gguf_array(f.gguf, "k", ST_GGUF_U8, &a), STINT_OK);
    assert_true(u == 1 && d == 2.0 && b && s.bytes == 1 && a.count == 3);
    assert_false(st_gguf_has(f.gguf, "k"));
    close_built(&f);
}

static void metadata_of_another_type_is_refused_by_name(void **state) {
    (void)state;
    struct fixture f = {0};
    ts_gguf_header(&f.file, 3, 0, 4);
    ts_gguf_key_text(&f.file, "text", "12");
    ts_gguf_key_u32(&f.file, "number", 12);
    put_key(&f, "flag", ST_GGUF_BOOL, "\1", 1);
    ts_gguf_key_array(&f.file, "list", ST_GGUF_I32, 0);
    open_built(&f);
    uint64_t u = 0;
    double d = 0.0;
    bool b = false;
    struct st_gguf_string s = {0};
    struct st_gguf_array a = {0};
    stint_status e = STINT_E_FORMAT;
    assert_failure(st_gguf_u64(f.gguf, "text", 99, &u), e, "'text': is of type string");
    assert_failure(st_gguf_u64(f.gguf, "flag", 99, &u), e, "'flag': is of type bool");
    assert_failure(st_gguf_u64(f.gguf, "list", 99, &u), e, "'list': is of type array");
    assert_failure(st_gguf_f64(f.gguf, "number", &d), e, "'number': is of type u32");
    assert_failure(st_gguf_bool(f.gguf, "number", &b), e, "'number': is of type u32");
    assert_failure(st_gguf_str(f.gguf, "list", &s), e, "'list': is of type array");
    assert_failure(st_gguf_array(f.gguf, "text", ST_GGUF_U8, &a), e, "'text': is of type string");
    assert_failure(st_gguf_array(f.gguf, "list", ST_GGUF_STRING, &a), e,
                   "'list': is an array of i32, expected string");
    assert_int_equal(st_gguf_bool(f.gguf, "flag", &b), STINT_OK);
    assert_true(b);
    assert_int_equal(st_gguf_str(f.gguf, "text", &s), STINT_OK);
    assert_int_equal(s.bytes, 2);
    assert_memory_equal(s.data, "12", 2);
    close_built(&f);
}

static void metadata_arrays_give_their_elements(void **state) {
    (void)state;
    struct fixture f = {0};
    ts_gguf_header(&f.file, 3, 0, 5);
    ts_gguf_key_array(&f.file, "i16", ST_GGUF_I16, 2);
    ts_gguf_bytes(&f.file, (int16_t[]){-2, 3}, 4);
    ts_gguf_key_array(&f.file, "bool", ST_GGUF_BOOL, 2);
    ts_gguf_bytes(&f.file, "\0\1", 2);
    ts_gguf_key_array(&f.file, "f32", ST_GGUF_F32, 2);
    ts_gguf_bytes(&f.file, (float[]){1.5f, -2.0f}, 8);
    ts_gguf_key_array(&f.file, "f64", ST_GGUF_F64, 1);
    ts_gguf_bytes(&f.file, (double[]){0.25}, 8);
    ts_gguf_key_array(&f.file, "text", ST_GGUF_STRING, 3);
    ts_gguf_text(&f.file, "ab");
    ts_gguf_text(&f.file, "");
    ts_gguf_text(&f.file, "c");
    open_built(&f);
    struct st_gguf_array a = {0};
    assert_int_equal(st_gguf_array(f.gguf, "i16", ST_GGUF_I16, &a), STINT_OK);
    assert_int_equal(a.count, 2);
    assert_true(st_gguf_array_u64(&a, 0) == UINT64_MAX - 1);
    assert_int_equal(st_gguf_array_u64(&a, 1), 3);
    assert_int_equal(st_gguf_array(f.gguf, "bool", ST_GGUF_BOOL, &a), STINT_OK);
    assert_int_equal(st_gguf_array_u64(&a, 1), 1);
    assert_int_equal(st_gguf_array(f.gguf, "f32", ST_GGUF_F32, &a), STINT_OK);
    assert_true(st_gguf_array_f32(&a, 0) == 1.5f && st_gguf_array_f32(&a, 1) == -2.0f);
    assert_int_equal(st_gguf_array(f.gguf, "f64", ST_GGUF_F64, &a), STINT_OK);
    assert_true(st_gguf_array_f32(&a, 0) == 0.25f);
    assert_int_equal(st_gguf_array(f.gguf, "text", ST_GGUF_STRING, &a), STINT_OK);
    const unsigned char *cursor = a.data;
    static const char *const expected[] = {"ab", "", "c"};
    for (size_t i = 0; i < 3; i++) {
        struct st_gguf_string s = st_gguf_next_string(&cursor);
        assert_int_equal(s.bytes, strlen(expected[i]));
        assert_memory_equal(s.data, expected[i], s.bytes);
    }
    assert_ptr_equal(cursor, f.map.data + f.map.bytes);
    close_built(&f);
}

static void metadata_is_found_among_many_keys(void **state) {
    (void)state;
    struct fixture f = {0};
    enum { N = 3000 };
    char key[32];
    ts_gguf_header(&f.file, 3, 0, N);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(key, sizeof key, "key.%u", i * 7919u % N); // in no order
        ts_gguf_key_u32(&f.file, key, i * 7919u % N);
    }
    open_built(&f);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t value = N;
        snprintf(key, sizeof key, "key.%u", i);
        assert_int_equal(st_gguf_u64(f.gguf, key, N, &value), STINT_OK);
        assert_int_equal(value, i);
    }
    assert_false(st_gguf_has(f.gguf, "key."));
    assert_false(st_gguf_has(f.gguf, "key.3000"));
    assert_false(st_gguf_has(f.gguf, ""));
    close_built(&f);
}

static void metadata_close_accepts_null(void **state) {
    (void)state;
    st_gguf_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_integers_of_every_width_are_taken),
        cmocka_unit_test(metadata_negative_integers_are_refused),
        cmocka_unit_test(metadata_floats_must_be_finite),
        cmocka_unit_test(metadata_absent_keys_keep_the_default),
        cmocka_unit_test(metadata_of_another_type_is_refused_by_name),
        cmocka_unit_test(metadata_arrays_give_their_elements),
        cmocka_unit_test(metadata_is_found_among_many_keys),
        cmocka_unit_test(metadata_close_accepts_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
