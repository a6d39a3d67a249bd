// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct record {
    int n_messages, n_inside;
    stint_log_level level;
    char text[64];
};

static void receive(void *context, stint_log_level level, const char *text) {
    struct record *record = context;
    assert_int_equal(record->n_inside++, 0); // one at a time
    record->n_messages++;
    record->level = level;
    snprintf(record->text, sizeof record->text, "%s", text);
    record->n_inside--;
}

static void log_passes_messages_up_to_its_level(void **state) {
    (void)state;
    struct record record = {0};
    stint_log_set(receive, &record, STINT_LOG_WARNING);
    st_log(STINT_LOG_INFO, "not this");
    assert_int_equal(record.n_messages, 0);
    st_log(STINT_LOG_WARNING, "%d of %s", 3, "x");
    assert_int_equal(record.n_messages, 1);
    assert_int_equal(record.level, STINT_LOG_WARNING);
    assert_string_equal(record.text, "3 of x");
    stint_log_set(NULL, NULL, STINT_LOG_DEBUG);
    st_log(STINT_LOG_ERROR, "to nobody");
    assert_int_equal(record.n_messages, 1);
}

static void *send_many(void *argument) {
    for (int i = 0; i < 200; i++) st_log(STINT_LOG_INFO, "%d", i);
    return argument;
}

static void log_serialises_threads(void **state) {
    (void)state;
    enum { N_THREADS = 4 };
    struct record record = {0};
    pthread_t threads[N_THREADS];
    stint_log_set(receive, &record, STINT_LOG_DEBUG);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_many, NULL), 0);
    for (int i = 0; i < N_THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    stint_log_set(NULL, NULL, STINT_LOG_ERROR);
    assert_int_equal(record.n_messages, N_THREADS * 200);
}

static void log_cuts_long_messages(void **state) {
    (void)state;
    char text[5000];
    struct record record = {0};
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    stint_log_set(receive, &record, STINT_LOG_DEBUG);
    st_log(STINT_LOG_ERROR, "%s", text);
    stint_log_set(NULL, NULL, STINT_LOG_ERROR);
    assert_int_equal(record.n_messages, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_passes_messages_up_to_its_level),
        cmocka_unit_test(log_serialises_threads),
        cmocka_unit_test(log_cuts_long_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
