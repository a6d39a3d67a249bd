// SPDX-License-Identifier: Apache-2.0
// Three slots: one is saved and restored while the two others compute. A file holds the slot that
// was asked for, and no answer changes. To be run with -DSTINT_SANITIZE=thread too.
#include "server/answers.h"
#include "support/novels.h"
#include "support/support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_SLOTS = 3, N_PROMPT = 40, N_ROUNDS = 12, N_BUSY = 2 };

static void assert_same(const struct answer *got, const struct answer *wanted) {
    assert_int_equal(got->end, wanted->end);
    assert_int_equal(got->n_ids, wanted->n_ids);
    assert_memory_equal(got->ids, wanted->ids, wanted->n_ids * sizeof(int32_t));
}

// Asks the same again and again, so that a slot computes all the time.
struct busy {
    struct st_scheduler *scheduler;
    const int32_t *prompt;
    const struct answer *wanted;
    atomic_bool stops;
    size_t n_wrong, n_answers;
};

static void *keep_busy(void *context) {
    struct busy *busy = context;
    while (!atomic_load(&busy->stops) || busy->n_answers == 0) {
        struct answer a = ask(busy->scheduler, busy->prompt, N_PROMPT);
        busy->n_wrong += a.n_ids != busy->wanted->n_ids ||
                         memcmp(a.ids, busy->wanted->ids, a.n_ids * sizeof(int32_t)) != 0;
        busy->n_answers++;
    }
    return NULL;
}

static void random_prompt(int32_t *ids) {
    for (size_t i = 0; i < N_PROMPT; i++) ids[i] = (int32_t)(3 + ts_random_below(4000));
}

// The slot that holds these tokens: only its file lets another scheduler reuse all of them.
static void check_file(const char *path, const int32_t *prompt, const struct answer *wanted) {
    struct st_scheduler *s = open_scheduler(ts_novels, 1);
    size_t n = 0;
    if (st_scheduler_restore(s, 0, 0, path, &n) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(n, N_PROMPT + TS_ANSWER_TOKENS - 1);
    struct answer again = ask(s, prompt, N_PROMPT);
    assert_int_equal(again.reused, N_PROMPT - 1);
    assert_same(&again, wanted);
    st_scheduler_close(s);
}

static void slots_are_saved_while_others_compute(void **state) {
    (void)state;
    int32_t prompts[N_SLOTS][N_PROMPT];
    struct answer wanted[N_SLOTS];
    struct busy busy[N_BUSY];
    pthread_t threads[N_BUSY];
    char path[600];
    snprintf(path, sizeof path, "%s/slot", ts_temp_folder());
    struct st_scheduler *s = open_scheduler(ts_novels, N_SLOTS);
    for (int i = 0; i < N_SLOTS; i++) {
        random_prompt(prompts[i]);
        wanted[i] = ask(s, prompts[i], N_PROMPT);
    }
    // Slot 2 holds the last prompt; it was computed last only before the others began.
    for (int i = 0; i < N_BUSY; i++) {
        busy[i] = (struct busy){.scheduler = s, .prompt = prompts[i], .wanted = &wanted[i]};
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &busy[i]), 0);
    }
    for (int round = 0; round < N_ROUNDS; round++) {
        size_t n = 0;
        if (st_scheduler_save(s, N_SLOTS - 1, 0, UINT64_MAX, path, &n) != STINT_OK)
            fail_msg("%s", stint_error_text());
        assert_int_equal(n, N_PROMPT + TS_ANSWER_TOKENS - 1);
        if (round % 4 == 0) check_file(path, prompts[N_SLOTS - 1], &wanted[N_SLOTS - 1]);
        if (st_scheduler_restore(s, N_SLOTS - 1, 0, path, &n) != STINT_OK)
            fail_msg("%s", stint_error_text());
    }
    struct answer again = ask(s, prompts[N_SLOTS - 1], N_PROMPT);
    assert_int_equal(again.reused, N_PROMPT - 1);
    assert_same(&again, &wanted[N_SLOTS - 1]);
    for (int i = 0; i < N_BUSY; i++) {
        atomic_store(&busy[i].stops, true);
        pthread_join(threads[i], NULL);
        assert_true(busy[i].n_answers > 0);
        assert_int_equal(busy[i].n_wrong, 0);
    }
    st_scheduler_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_saved_while_others_compute),
    };
    return cmocka_run_group_tests(tests, ts_novels_open, ts_novels_close);
}
