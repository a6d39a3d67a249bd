// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "format/tensors.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>

static const float numbers[64];

static struct st_tensors *open_empty(void) {
    struct st_tensors *tensors = NULL;
    assert_int_equal(st_tensors_open(0, &tensors), STINT_OK);
    return tensors;
}

static struct st_tensor vector(const char *name, uint64_t n) {
    return (struct st_tensor){
        .name = name, .data = numbers, .dims = {n}, .bytes = n * 4, .n_dims = 1};
}

static void tensors_are_found_in_any_number(void **state) {
    (void)state;
    struct st_tensors *tensors = open_empty();
    char name[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "layers.%d.weight", i);
        struct st_tensor t = vector(name, 1 + (uint64_t)i % 64);
        assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    }
    assert_int_equal(st_tensors_count(tensors), 5000);
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "layers.%d.weight", i);
        const struct st_tensor *t = st_tensors_find(tensors, name);
        assert_non_null(t);
        assert_ptr_equal(t, st_tensors_at(tensors, (size_t)i));
        assert_string_equal(t->name, name);
        assert_int_equal(t->dims[0], 1 + i % 64);
        assert_int_equal(t->dims[1], 1);
        assert_int_equal(t->dims[3], 1);
    }
    assert_null(st_tensors_find(tensors, "layers.5000.weight"));
    st_tensors_close(tensors);
}

static void tensors_keep_borrowed_ones_where_they_are(void **state) {
    (void)state;
    struct st_tensors *tensors = open_empty();
    struct st_tensor t = vector("first", 1);
    assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    const struct st_tensor *first = st_tensors_find(tensors, "first");
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        t = vector(name, 1);
        assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    }
    assert_ptr_equal(st_tensors_find(tensors, "first"), first);
    st_tensors_close(tensors);
}

static void tensors_take_scalars_and_blocks(void **state) {
    (void)state;
    struct st_tensors *tensors = open_empty();
    struct st_tensor t = {.name = "scalar", .data = numbers, .bytes = 4};
    assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    assert_int_equal(st_tensors_find(tensors, "scalar")->dims[0], 1);
    t = (struct st_tensor){.name = "q",
                           .data = numbers,
                           .dims = {2, 64},
                           .n_dims = 2,
                           .dtype = ST_DTYPE_Q8_0,
                           .bytes = 2 * 2 * 34};
    assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    st_tensors_close(tensors);
}

static void tensors_refuse_what_does_not_add_up(void **state) {
    (void)state;
    struct st_tensors *tensors = open_empty();
    struct st_tensor t = vector("a", 3);
    assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    assert_failure(st_tensors_add(tensors, &t), STINT_E_FORMAT, "tensor 'a': is there twice");
    t = vector("b", 3);
    t.bytes = 13;
    assert_failure(st_tensors_add(tensors, &t), STINT_E_FORMAT, "tensor 'b': has 13 bytes");
    t = vector("c", 0);
    assert_failure(st_tensors_add(tensors, &t), STINT_E_FORMAT, "tensor 'c': dimension 0 is 0");
    t = vector("", 3);
    assert_failure(st_tensors_add(tensors, &t), STINT_E_FORMAT, "empty name");
    char longer[ST_MAX_NAME_BYTES + 2];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    t = vector(longer, 3);
    assert_failure(st_tensors_add(tensors, &t), STINT_E_FORMAT, "a name of 256 bytes");
    t = vector("d", 3);
    t.n_dims = 5;
    assert_failure(st_tensors_add(tensors, &t), STINT_E_FORMAT, "tensor 'd': 5 dimensions");
    t = vector("e", 33);
    t.dtype = ST_DTYPE_Q4_0;
    assert_failure(st_tensors_add(tensors, &t), STINT_E_FORMAT, "tensor 'e': rows of 33");
    assert_int_equal(st_tensors_count(tensors), 1);
    st_tensors_close(tensors);
}

static void tensors_refuse_products_that_wrap(void **state) {
    (void)state;
    struct st_tensors *tensors = open_empty();
    struct st_tensor t = {
        .name = "w", .data = numbers, .n_dims = 2, .dims = {UINT64_C(1) << 32, UINT64_C(1) << 32}};
    assert_failure(st_tensors_add(tensors, &t), STINT_E_FORMAT, "tensor 'w': the product");
    t.dims[0] = 1;
    t.dims[1] = UINT64_C(1) << 62; // as many items fit, their bytes wrap to 0
    assert_failure(st_tensors_add(tensors, &t), STINT_E_FORMAT, "tensor 'w': its size");
    st_tensors_close(tensors);
}

static void tensors_set_aside_fail_on_use_only(void **state) {
    (void)state;
    struct st_tensors *tensors = open_empty();
    assert_int_equal(st_tensors_set_aside(tensors, "ids", "its type is I64"), STINT_OK);
    assert_int_equal(st_tensors_count(tensors), 0);
    assert_null(st_tensors_find(tensors, "ids"));
    assert_string_equal(st_tensors_why_aside(tensors, "ids"), "its type is I64");
    assert_null(st_tensors_why_aside(tensors, "other"));
    assert_failure(st_tensors_missing(tensors, "ids"), STINT_E_UNSUPPORTED,
                   "tensor 'ids': its type is I64");
    assert_failure(st_tensors_missing(tensors, "other"), STINT_E_FORMAT, "'other' is missing");
    struct st_tensor t = vector("ids", 1);
    assert_failure(st_tensors_add(tensors, &t), STINT_E_FORMAT, "'ids': is there twice");
    st_tensors_close(tensors);
}

static void tensors_of_bytes_are_found_as_such_only(void **state) {
    (void)state;
    struct st_tensors *tensors = open_empty();
    struct st_tensor t = {
        .name = "codes", .data = numbers, .bytes = 6, .n_dims = 2, .dims = {2, 3, 0, 0}};
    assert_int_equal(st_tensors_set_bytes_aside(tensors, &t, "its type is U8"), STINT_OK);
    assert_null(st_tensors_find(tensors, "codes"));
    assert_null(st_tensors_find_bytes(tensors, "other"));
    assert_int_equal(st_tensors_find_bytes(tensors, "codes")->dims[1], 3);
    assert_int_equal(st_tensors_set_aside(tensors, "ids", "its type is I64"), STINT_OK);
    assert_null(st_tensors_find_bytes(tensors, "ids"));
    t.name = "cut";
    t.bytes = 5;
    assert_failure(st_tensors_set_bytes_aside(tensors, &t, ""), STINT_E_FORMAT, "'cut': has 5");
    t.dims[0] = UINT64_MAX / 2;
    assert_failure(st_tensors_set_bytes_aside(tensors, &t, ""), STINT_E_FORMAT, "'cut': has 5");
    st_tensors_close(tensors);
}

static void tensors_that_share_bytes_are_named(void **state) {
    (void)state;
    struct st_tensors *tensors = open_empty();
    struct st_tensor t = vector("late", 4);
    t.data = numbers + 8;
    assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    t = vector("early", 8);
    assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    assert_int_equal(st_tensors_check_overlap(tensors, 0), STINT_OK);
    t = vector("middle", 1);
    t.data = numbers + 7;
    assert_int_equal(st_tensors_add(tensors, &t), STINT_OK);
    assert_failure(st_tensors_check_overlap(tensors, 0), STINT_E_FORMAT, "'early' and 'middle'");
    assert_int_equal(st_tensors_check_overlap(tensors, 2), STINT_OK);
    assert_int_equal(st_tensors_check_overlap(tensors, 3), STINT_OK);
    st_tensors_close(tensors);
}

static void tensors_survive_any_failing_allocation(void **state) {
    (void)state;
    for (size_t n = 1;; n++) {
        struct st_tensors *tensors = NULL;
        ts_fail_allocation(n);
        stint_status status = st_tensors_open(4, &tensors);
        for (int i = 0; i < 40 && status == STINT_OK; i++) {
            char name[16];
            snprintf(name, sizeof name, "%d", i);
            struct st_tensor t = vector(name, 1);
            status = i % 2 ? st_tensors_add(tensors, &t) : st_tensors_set_aside(tensors, name, "");
        }
        if (status == STINT_OK) status = st_tensors_check_overlap(tensors, tensors ? 19 : 0);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
        st_tensors_close(tensors);
        if (!failed) break;
    }
}

static void tensors_close_accepts_null(void **state) {
    (void)state;
    st_tensors_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_found_in_any_number),
        cmocka_unit_test(tensors_keep_borrowed_ones_where_they_are),
        cmocka_unit_test(tensors_take_scalars_and_blocks),
        cmocka_unit_test(tensors_refuse_what_does_not_add_up),
        cmocka_unit_test(tensors_refuse_products_that_wrap),
        cmocka_unit_test(tensors_set_aside_fail_on_use_only),
        cmocka_unit_test(tensors_of_bytes_are_found_as_such_only),
        cmocka_unit_test(tensors_that_share_bytes_are_named),
        cmocka_unit_test(tensors_survive_any_failing_allocation),
        cmocka_unit_test(tensors_close_accepts_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
