// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void status_failing_returns_code_and_keeps_text(void **state) {
    (void)state;
    assert_int_equal(st_fail(STINT_E_FORMAT, "tensor '%s': %d bytes", "a", 7), STINT_E_FORMAT);
    assert_string_equal(stint_error_text(), "tensor 'a': 7 bytes");
    assert_string_equal(st_error_text(), "tensor 'a': 7 bytes");
}

static void status_prefix_goes_before_and_keeps_code(void **state) {
    (void)state;
    st_fail(STINT_E_LIMIT, "too long");
    assert_int_equal(st_fail_prefix("%s: ", "file"), STINT_E_LIMIT);
    assert_string_equal(stint_error_text(), "file: too long");
}

static void status_text_may_be_its_own_argument(void **state) {
    (void)state;
    st_fail(STINT_E_IO, "inner");
    st_fail(STINT_E_FORMAT, "outer (%s)", st_error_text());
    assert_string_equal(stint_error_text(), "outer (inner)");
    st_fail_prefix("%s; ", st_error_text());
    assert_string_equal(stint_error_text(), "outer (inner); outer (inner)");
}

static void status_cuts_text_that_is_too_long(void **state) {
    (void)state;
    char longer[2 * ST_ERROR_TEXT_BYTES];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    st_fail(STINT_E_ARG, "%s", longer);
    assert_int_equal(strlen(stint_error_text()), ST_ERROR_TEXT_BYTES - 1);
    st_fail_prefix("%s", longer);
    assert_int_equal(strlen(stint_error_text()), ST_ERROR_TEXT_BYTES - 1);
}

static void status_text_holds_no_control_characters(void **state) {
    (void)state;
    st_fail(STINT_E_FORMAT, "tensor '%s'", "\x1b[2J\n\t\x01\x7f\x1f ~Größe");
    assert_string_equal(stint_error_text(), "tensor '?[2J????? ~Größe'");
    st_fail_prefix("%s: ", "a\r\nb");
    assert_string_equal(stint_error_text(), "a??b: tensor '?[2J????? ~Größe'");
}

static void *save_of_new_thread(void *argument) {
    struct st_error *saved = argument;
    st_error_save(saved);
    st_fail(STINT_E_DEVICE, "of the other thread");
    st_error_save(saved + 1);
    return NULL;
}

static void status_record_is_per_thread_and_travels(void **state) {
    (void)state;
    struct st_error other[2];
    pthread_t thread;
    st_fail(STINT_E_ARG, "of this thread");
    assert_int_equal(pthread_create(&thread, NULL, save_of_new_thread, other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(other[0].text, "");
    assert_string_equal(stint_error_text(), "of this thread");
    assert_int_equal(st_error_restore(&other[1]), STINT_E_DEVICE);
    assert_string_equal(stint_error_text(), "of the other thread");
}

static void status_copy_ends_text_and_returns_full_length(void **state) {
    (void)state;
    char small[4] = "zzz", large[32];
    st_fail(STINT_E_ARG, "abcdef");
    assert_int_equal(stint_error_copy(NULL, 0), 6);
    assert_int_equal(stint_error_copy(small, sizeof small), 6);
    assert_string_equal(small, "abc");
    assert_int_equal(stint_error_copy(large, sizeof large), 6);
    assert_string_equal(large, "abcdef");
}

static void status_each_code_has_its_own_sentence(void **state) {
    (void)state;
#define X(id, value, sentence)                                                                     \
    assert_int_equal(STINT_##id, value);                                                           \
    assert_string_equal(stint_status_text(STINT_##id), sentence);
    STINT_STATUS_LIST(X)
#undef X
    assert_string_equal(stint_status_text((stint_status)-99), "unknown status");
}

static stint_status first_failure(int *n_calls) {
    ++*n_calls;
    ST_TRY(STINT_OK);
    ++*n_calls;
    ST_TRY(STINT_E_IO);
    ++*n_calls;
    return STINT_OK;
}

static void status_try_returns_at_first_failure(void **state) {
    (void)state;
    int n_calls = 0;
    assert_int_equal(first_failure(&n_calls), STINT_E_IO);
    assert_int_equal(n_calls, 2);
}

static void status_version_is_the_headers(void **state) {
    (void)state;
    assert_string_equal(stint_version(), STINT_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_failing_returns_code_and_keeps_text),
        cmocka_unit_test(status_prefix_goes_before_and_keeps_code),
        cmocka_unit_test(status_text_may_be_its_own_argument),
        cmocka_unit_test(status_cuts_text_that_is_too_long),
        cmocka_unit_test(status_text_holds_no_control_characters),
        cmocka_unit_test(status_record_is_per_thread_and_travels),
        cmocka_unit_test(status_copy_ends_text_and_returns_full_length),
        cmocka_unit_test(status_each_code_has_its_own_sentence),
        cmocka_unit_test(status_try_returns_at_first_failure),
        cmocka_unit_test(status_version_is_the_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
