// SPDX-License-Identifier: Apache-2.0
// Random calls from many threads at once: requests asked, cancelled and failed, slots saved and
// restored, sessions computed, saved, loaded and cancelled, conversations held, texts scored,
// packages made. Every answer that is complete is the one that was given alone. To be run with
// -DSTINT_SANITIZE=thread; STINT_CI_LONG=1 goes on for longer.
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
#include <unistd.h>
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
    return ts_how_many(5, 25, 100);
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

static stint_session *session, *talking;
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
        if (throw_dice(dice, 500) == 0) stint_session_cancel(talking);
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

// ---- Conversations with a session of its own, in two sequences

enum { N_TALKS = 3, N_SAID = 8, N_MAX = 100 };

struct said {
    int32_t ids[N_SAID];
    char text[200];
    size_t n, n_text;
    bool canceled;
};

static struct said own_words[N_TALKS][2]; // by question, of the first and the second turn
static atomic_size_t n_talks, n_broken, n_wrong_words;

static bool note_text(void *context, const stint_piece *piece) {
    struct said *said = context;
    assert_true(said->n_text + piece->n_bytes < sizeof said->text);
    memcpy(said->text + said->n_text, piece->text, piece->n_bytes);
    said->n_text += piece->n_bytes;
    return true;
}

// The answer to the messages. One of the questions is answered by chance, always the same one.
static struct said answer_to(uint32_t sequence, size_t talk, const stint_message *messages,
                             size_t n_messages) {
    struct said said = {0};
    static const stint_sampling warm = {
        .size = sizeof warm, .temperature = 0.9f, .seed = 3, .top_k = 20};
    stint_generation g = {.size = sizeof g,
                          .n_tokens = N_SAID,
                          .sampling = talk == 1 ? &warm : NULL,
                          .json_schema = talk == 2 ? "true" : NULL,
                          .text = note_text,
                          .context = &said,
                          .sequence = sequence};
    stint_generation_result result = {.size = sizeof result};
    char *text = NULL;
    int32_t ids[N_MAX];
    size_t n;
    assert_int_equal(stint_chat_format(ts_novels, messages, n_messages, NULL, &text, &g.reasoning),
                     STINT_OK);
    assert_int_equal(
        stint_tokenize(stint_model_tokenizer(ts_novels), text, strlen(text), 0, ids, N_MAX, &n),
        STINT_OK);
    assert_int_equal(stint_session_truncate(talking, sequence, 0), STINT_OK);
    assert_int_equal(stint_generate(talking, ids, n, &g, said.ids, N_SAID, &result), STINT_OK);
    said.n = result.generated_tokens;
    said.canceled = result.stop_reason == STINT_STOP_CANCELED;
    stint_free(text);
    return said;
}

// A question, its answer, and another question; true: nothing stopped them.
static bool talk(uint32_t sequence, size_t which, struct said said[2]) {
    static const char *const questions[N_TALKS] = {"Who was at the sea?", "Was it cold?", "Why?"};
    stint_message messages[] = {{.role = "user", .content = questions[which]},
                                {.role = "assistant"},
                                {.role = "user", .content = "And then?"}};
    said[0] = answer_to(sequence, which, messages, 1);
    messages[1].content = said[0].text;
    if (!said[0].canceled) said[1] = answer_to(sequence, which, messages, 3);
    return !said[0].canceled && !said[1].canceled;
}

static bool is_wrong(const struct said *got, const struct said *own) {
    bool whole = got->n == own->n && got->n_text == own->n_text;
    return got->n > own->n || got->n_text > own->n_text || (!whole && !got->canceled) ||
           memcmp(got->ids, own->ids, got->n * sizeof *got->ids) != 0 ||
           memcmp(got->text, own->text, got->n_text) != 0;
}

static void *talk_often(void *context) {
    struct dice *dice = context;
    while (!atomic_load(&ended)) {
        struct said said[2] = {0};
        size_t which = throw_dice(dice, N_TALKS);
        bool whole = talk((uint32_t)throw_dice(dice, 2), which, said);
        atomic_fetch_add(whole ? &n_talks : &n_broken, 1);
        atomic_fetch_add(&n_wrong_words, is_wrong(&said[0], &own_words[which][0]));
        if (!said[0].canceled)
            atomic_fetch_add(&n_wrong_words, is_wrong(&said[1], &own_words[which][1]));
    }
    return NULL;
}

static void talk_alone(void) {
    stint_session_options two = session_options;
    two.n_sequences = 2;
    two.n_drafts = 4;
    assert_int_equal(stint_session_open(ts_novels, &two, &talking), STINT_OK);
    for (size_t i = 0; i < N_TALKS; i++) assert_true(talk(i % 2, i, own_words[i]));
}

// ---- Scoring a text, making a package: both with models, sessions and threads of their own

static double own_perplexity;
static char scored[600], own_package[600];
static atomic_size_t n_scored, n_prepared, n_stopped, n_wrong;

// A call in some hundred ends what is asked for it.
static bool cancels(void *context) {
    struct dice *dice = context;
    bool canceled = dice && throw_dice(dice, 200) == 0;
    if (canceled) atomic_fetch_add(&n_stopped, 1);
    return canceled;
}

static stint_status score(struct dice *dice, double *perplexity) {
    stint_session_options small = session_options;
    stint_eval_result result = {.size = sizeof result};
    const stint_eval_options options = {.size = sizeof options,
                                        .task = "ppl",
                                        .data = scored,
                                        .limit = 2,
                                        .window = 24,
                                        .session = &small,
                                        .canceled = cancels,
                                        .context = dice};
    small.n_threads = 2;
    stint_status status = stint_eval(ts_novels, &options, &result);
    *perplexity = result.metrics[0].value;
    return status;
}

static stint_status prepare(struct dice *dice, const char *path) {
    static const char model[] = STINT_SOURCE_DIR "/tests/golden/models/llama-dynamic";
    static const int32_t ids[] = {1, 7, 5, 9, 2, 8, 4, 6, 3, 11, 13, 12, 10, 15, 14, 16};
    const stint_prepare_options options = {.size = sizeof options,
                                           .ids = ids,
                                           .n_ids = sizeof ids / sizeof *ids,
                                           .outlier_prune = 0.5f,
                                           .n_threads = 2,
                                           .canceled = cancels,
                                           .canceled_context = dice};
    return stint_prepare(model, path, &options, NULL);
}

static void *score_often(void *context) {
    while (!atomic_load(&ended)) {
        double perplexity = 0;
        stint_status status = score(context, &perplexity);
        bool right = status == STINT_OK ? perplexity == own_perplexity : status == STINT_E_CANCELED;
        atomic_fetch_add(&n_wrong, !right);
        atomic_fetch_add(&n_scored, status == STINT_OK);
    }
    return NULL;
}

static bool is_own_package(const char *path) {
    struct st_map own = {0}, made = {0};
    bool same = st_map_open(own_package, &own) == STINT_OK &&
                st_map_open(path, &made) == STINT_OK && made.bytes == own.bytes &&
                memcmp(made.data, own.data, made.bytes) == 0;
    st_map_close(&made);
    st_map_close(&own);
    return same;
}

static void *prepare_often(void *context) {
    char path[600];
    snprintf(path, sizeof path, "%s/again.stint", ts_temp_folder());
    while (!atomic_load(&ended)) {
        remove(path);
        stint_status status = prepare(context, path);
        bool right = status == STINT_OK ? is_own_package(path)
                                        : status == STINT_E_CANCELED && access(path, F_OK) != 0;
        atomic_fetch_add(&n_wrong, !right);
        atomic_fetch_add(&n_prepared, status == STINT_OK);
    }
    return NULL;
}

static void score_and_prepare_alone(void) {
    snprintf(scored, sizeof scored, "%s/text", ts_temp_folder());
    snprintf(own_package, sizeof own_package, "%s/own.stint", ts_temp_folder());
    FILE *file = fopen(scored, "w");
    assert_non_null(file);
    for (int i = 0; i < 20; i++) fputs("The old man looked at the sea, and it was cold. ", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(score(NULL, &own_perplexity), STINT_OK);
    assert_true(own_perplexity > 1);
    assert_int_equal(prepare(NULL, own_package), STINT_OK);
}

// ---- All at once

static void answers_stay_right(void **state) {
    (void)state;
    enum { N_OTHERS = 8 };
    struct asker askers[N_ASKERS];
    pthread_t asking[N_ASKERS], others[N_OTHERS];
    struct dice dice[N_OTHERS];
    void *(*const work[N_OTHERS])(void *) = {keep_slots,    keep_slots,   watch,
                                             save_and_load, cancel_often, score_often,
                                             prepare_often, talk_often};
    for (size_t p = 0; p < N_PROMPTS; p++)
        for (size_t i = 0; i < N_PROMPT; i++) prompts[p][i] = (int32_t)(3 + ts_random_below(4000));
    write_poison();
    score_and_prepare_alone();
    open_session();
    talk_alone();
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
    assert_int_equal(n_wrong, 0);
    assert_int_equal(n_wrong_words, 0);
    print_message("%zu complete, %zu cancelled, %zu failed, %zu refused; %zu saved, %zu restored, "
                  "%zu loaded; %zu talks, %zu broken off; %zu scored, %zu prepared, %zu stopped\n",
                  n_complete, n_canceled, n_failed, n_refused, n_saved, n_restored, n_loaded,
                  n_talks, n_broken, n_scored, n_prepared, n_stopped);
    assert_true(n_complete > 0);
    st_scheduler_close(scheduler);
    stint_session_close(session);
    stint_session_close(talking);
    free(own_logits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_stay_right),
    };
    return cmocka_run_group_tests(tests, ts_novels_open, ts_novels_close);
}
