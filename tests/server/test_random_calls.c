// SPDX-License-Identifier: Apache-2.0
// Random calls from many threads at once: requests asked, cancelled and failed, slots saved and
// restored, sessions computed, saved, loaded and cancelled. Every answer that is complete is the
// one that was given alone. To be run with -DSTINT_SANITIZE=thread; STINT_CI_LONG=1 goes on for
// longer.
#include "format/package.h"
#include "server/answers.h"
#include "support/novels.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_SLOTS = 3, N_PROMPTS = 4, N_PROMPT = 24, N_ASKERS = 4, N_KEPT = 12 };

// ---- A sequence of random numbers for each thread

struct dice {
    uint64_t state;
};

static size_t throw_dice(struct dice *dice, size_t n) {
    dice->state ^= dice->state << 13;
    dice->state ^= dice->state >> 7;
    dice->state ^= dice->state << 17;
    return (size_t)(dice->state >> 16) % n;
}

static struct dice new_dice(void) {
    return (struct dice){ts_random() | 1};
}

static size_t n_rounds(void) {
    const char *text = getenv("STINT_CI_LONG");
    return text && strcmp(text, "1") == 0 ? 100 : 25;
}

// ---- Requests and slots

static struct st_scheduler *scheduler;
static int32_t prompts[N_PROMPTS][N_PROMPT];
static struct answer wanted[N_PROMPTS];
static atomic_bool ended;
static atomic_size_t n_complete, n_canceled, n_failed, n_refused, n_saved, n_restored, n_loaded;

struct asker {
    struct dice dice;
    size_t n_wrong;
};

// Some requests are cancelled, at once or when they have had time to begin.
static void ask_once(struct asker *asker) {
    struct answer a = NEW_ANSWER;
    size_t which = throw_dice(&asker->dice, N_PROMPTS), fate = throw_dice(&asker->dice, 4);
    uint64_t ticket;
    const struct st_scheduler_request r = {.prompt = prompts[which],
                                           .n_prompt = N_PROMPT,
                                           .exact = true,
                                           .options.max_tokens = TS_ANSWER_TOKENS};
    if (st_scheduler_submit(scheduler, &r, take_event, &a, &ticket) != STINT_OK) {
        atomic_fetch_add(&n_refused, 1);
        return;
    }
    if (fate == 1) sched_yield();
    if (fate <= 1) st_scheduler_cancel(scheduler, ticket);
    wait_end(&a);
    // Only the slot that was given values which are no numbers may fail.
    bool right = a.n_ids <= wanted[which].n_ids &&
                 memcmp(a.ids, wanted[which].ids, a.n_ids * sizeof(int32_t)) == 0;
    bool complete = a.end == wanted[which].end;
    asker->n_wrong += !right || (complete && a.n_ids != wanted[which].n_ids) ||
                      (a.end == ST_SCHEDULER_CANCELED && fate > 1) ||
                      (a.end == ST_SCHEDULER_FAILED && which != 0);
    atomic_fetch_add(complete                         ? &n_complete
                     : a.end == ST_SCHEDULER_CANCELED ? &n_canceled
                                                      : &n_failed,
                     1);
}

static void *ask_often(void *context) {
    struct asker *asker = context;
    for (size_t i = 0; i < n_rounds(); i++) ask_once(asker);
    return NULL;
}

// Saves and restores slots, one of them from a file that makes its next request fail.
static void *keep_slots(void *context) {
    struct dice *dice = context;
    char path[2][600];
    snprintf(path[0], sizeof path[0], "%s/kept-%zu", ts_temp_folder(), throw_dice(dice, 1000000));
    snprintf(path[1], sizeof path[1], "%s/poison", ts_temp_folder());
    for (size_t n; !atomic_load(&ended); sched_yield()) {
        uint32_t slot = (uint32_t)throw_dice(dice, N_SLOTS);
        uint64_t bound = throw_dice(dice, 8) ? UINT64_MAX : 100;
        const char *from = path[throw_dice(dice, 4) == 0];
        if (throw_dice(dice, 2))
            atomic_fetch_add(&n_saved,
                             st_scheduler_save(scheduler, slot, 0, bound, path[0], &n) == STINT_OK);
        else
            atomic_fetch_add(&n_restored,
                             st_scheduler_restore(scheduler, slot, 0, from, &n) == STINT_OK);
    }
    return NULL;
}

static void *watch(void *context) {
    (void)context;
    while (!atomic_load(&ended)) {
        struct st_scheduler_stats stats;
        st_scheduler_stats(scheduler, &stats);
        json_decref(st_scheduler_last(scheduler));
        sched_yield();
    }
    return NULL;
}

// A saved session of the first prompt's beginning whose values are no numbers.
static void write_poison(void) {
    stint_session *s = NULL;
    struct st_map map = {0};
    struct st_package *package = NULL;
    struct st_package_writer *writer = NULL;
    char clean[600], path[600];
    snprintf(clean, sizeof clean, "%s/clean", ts_temp_folder());
    snprintf(path, sizeof path, "%s/poison", ts_temp_folder());
    assert_int_equal(stint_session_open(ts_novels, &session_options, &s), STINT_OK);
    assert_int_equal(stint_session_eval(s, 0, prompts[0], N_KEPT, false, NULL), STINT_OK);
    assert_int_equal(stint_session_save(s, 0, clean), STINT_OK);
    stint_session_close(s);
    assert_int_equal(st_map_open(clean, &map), STINT_OK);
    assert_int_equal(st_package_open(clean, &map, &package), STINT_OK);
    assert_int_equal(st_package_create(path, &writer), STINT_OK);
    for (size_t i = 0; i < st_package_count(package); i++) {
        struct st_section section = *st_package_at(package, i);
        void *bytes = malloc(section.bytes);
        bool values = strcmp(section.name, "values.0") == 0;
        assert_non_null(bytes);
        memcpy(bytes, section.data, section.bytes);
        if (values) memset(bytes, 0xff, section.bytes);
        section.data = bytes;
        assert_int_equal(st_package_add(writer, &section), STINT_OK);
        free(bytes);
    }
    assert_int_equal(st_package_finish(writer), STINT_OK);
    st_package_close(package);
    st_map_close(&map);
}

// ---- A session of its own: one thread computes, one loads and saves another sequence, one cancels

static stint_session *session;
static float *own_logits, *logits;
static size_t vocab;

static void *save_and_load(void *context) {
    char path[600];
    (void)context;
    snprintf(path, sizeof path, "%s/session", ts_temp_folder());
    while (!atomic_load(&ended)) {
        bool saved = stint_session_save(session, 1, path) == STINT_OK;
        atomic_fetch_add(&n_loaded, saved && stint_session_load(session, 1, path) == STINT_OK);
    }
    return NULL;
}

static void *cancel_often(void *context) {
    struct dice *dice = context;
    while (!atomic_load(&ended)) {
        if (throw_dice(dice, 500) == 0) stint_session_cancel(session);
        sched_yield();
    }
    return NULL;
}

// In pieces of more than four tokens, so that the bits are the same (docs/NUMERICS.md).
static void compute_once(struct dice *dice) {
    size_t n = 5 + throw_dice(dice, N_PROMPT - 9);
    stint_status first = stint_session_eval(session, 0, prompts[1], n, false, logits);
    assert_true(first == STINT_OK || first == STINT_E_CANCELED);
    assert_int_equal(stint_session_length(session, 0), first == STINT_OK ? n : 0);
    size_t held = first == STINT_OK ? n : 0;
    stint_status rest =
        stint_session_eval(session, 0, prompts[1] + held, N_PROMPT - held, false, logits);
    assert_true(rest == STINT_OK || rest == STINT_E_CANCELED);
    if (rest == STINT_OK) assert_memory_equal(logits, own_logits, vocab * sizeof *logits);
    assert_int_equal(stint_session_truncate(session, 0, 0), STINT_OK);
}

static void open_session(void) {
    stint_model_info info = {.size = sizeof info};
    stint_session_options two = session_options;
    two.n_sequences = 2;
    assert_int_equal(stint_model_describe(ts_novels, &info), STINT_OK);
    vocab = info.vocab;
    own_logits = calloc(2 * vocab, sizeof *own_logits);
    assert_non_null(own_logits);
    logits = own_logits + vocab;
    assert_int_equal(stint_session_open(ts_novels, &two, &session), STINT_OK);
    assert_int_equal(stint_session_eval(session, 0, prompts[1], N_PROMPT, false, own_logits), 0);
    assert_int_equal(stint_session_eval(session, 1, prompts[2], N_PROMPT, false, NULL), 0);
    assert_int_equal(stint_session_truncate(session, 0, 0), STINT_OK);
}

// ---- All at once

static void answers_stay_right(void **state) {
    (void)state;
    enum { N_OTHERS = 5 };
    struct asker askers[N_ASKERS];
    pthread_t asking[N_ASKERS], others[N_OTHERS];
    struct dice dice[N_OTHERS];
    void *(*const work[N_OTHERS])(void *) = {keep_slots, keep_slots, watch, save_and_load,
                                             cancel_often};
    for (size_t p = 0; p < N_PROMPTS; p++)
        for (size_t i = 0; i < N_PROMPT; i++) prompts[p][i] = (int32_t)(3 + ts_random_below(4000));
    write_poison();
    open_session();
    scheduler = open_scheduler(ts_novels, N_SLOTS);
    for (size_t p = 0; p < N_PROMPTS; p++) wanted[p] = ask(scheduler, prompts[p], N_PROMPT);
    for (int i = 0; i < N_OTHERS; i++) {
        dice[i] = new_dice();
        assert_int_equal(pthread_create(&others[i], NULL, work[i], &dice[i]), 0);
    }
    for (int i = 0; i < N_ASKERS; i++) {
        askers[i] = (struct asker){.dice = new_dice()};
        assert_int_equal(pthread_create(&asking[i], NULL, ask_often, &askers[i]), 0);
    }
    struct dice own = new_dice();
    for (size_t i = 0; i < n_rounds(); i++) compute_once(&own);
    for (int i = 0; i < N_ASKERS; i++) {
        pthread_join(asking[i], NULL);
        assert_int_equal(askers[i].n_wrong, 0);
    }
    atomic_store(&ended, true);
    for (int i = 0; i < N_OTHERS; i++) pthread_join(others[i], NULL);
    print_message("%zu complete, %zu cancelled, %zu failed, %zu refused; %zu saved, %zu restored, "
                  "%zu loaded\n",
                  n_complete, n_canceled, n_failed, n_refused, n_saved, n_restored, n_loaded);
    assert_true(n_complete > 0);
    st_scheduler_close(scheduler);
    stint_session_close(session);
    free(own_logits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_stay_right),
    };
    return cmocka_run_group_tests(tests, ts_novels_open, ts_novels_close);
}
