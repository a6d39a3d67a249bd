// SPDX-License-Identifier: Apache-2.0
// Several sequences of one session: whatever the others do, each gets what it would get by itself,
// bit for bit; and sequences that are saved go on where they were.
#include "session/session.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_SEQUENCES = STINT_MAX_STEP_ROWS + 3, N_STEPS = 8, CONTEXT = 96, CHUNK = 16 };

static stint_session *open_session(const stint_model *m, uint32_t n_sequences, const char *schedule,
                                   uint32_t npu_threads) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = CONTEXT,
                               .chunk_len = CHUNK,
                               .npu_threads = npu_threads,
                               .schedule = schedule,
                               .n_sequences = n_sequences};
    if (stint_session_open(m, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

static size_t vocab(const stint_model *m) {
    return m->config.vocab;
}

static void random_ids(const stint_model *m, int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)ts_random_below(vocab(m));
}

// A sequence: a prompt of random length, then single tokens.
struct text {
    int32_t ids[CONTEXT];
    size_t n_prompt, begins; // the step at which its single tokens begin
    float *wanted;           // [1 + N_STEPS, vocab]: of the prompt's last token, then of each step
};

static void make_text(const stint_model *m, stint_session *alone, struct text *t) {
    t->n_prompt = 1 + ts_random_below(40);
    t->begins = ts_random_below(3);
    t->wanted = malloc((1 + N_STEPS) * vocab(m) * sizeof(float));
    random_ids(m, t->ids, t->n_prompt + N_STEPS);
    assert_int_equal(stint_session_truncate(alone, 0, 0), STINT_OK);
    assert_int_equal(st_session_prompt(alone, 0, t->ids, t->n_prompt, t->n_prompt, t->wanted),
                     STINT_OK);
    for (size_t i = 0; i < N_STEPS; i++)
        assert_int_equal(stint_session_step(alone, &(uint32_t){0}, &t->ids[t->n_prompt + i], 1,
                                            t->wanted + (1 + i) * vocab(m)),
                         STINT_OK);
}

static void assert_logits(const stint_model *m, const float *got, const float *wanted,
                          const char *what, size_t sequence) {
    if (memcmp(got, wanted, vocab(m) * sizeof *got) != 0)
        fail_msg("%s: sequence %zu differs from the same by itself", what, sequence);
}

// Their steps overlap, each beginning at a time of its own.
static void run_together(const stint_model *m, stint_session *s, struct text *texts,
                         const char *what) {
    float *logits = malloc(N_SEQUENCES * vocab(m) * sizeof *logits);
    for (uint32_t i = 0; i < N_SEQUENCES; i++) {
        assert_int_equal(
            st_session_prompt(s, i, texts[i].ids, texts[i].n_prompt, texts[i].n_prompt, logits),
            STINT_OK);
        assert_logits(m, logits, texts[i].wanted, what, i);
    }
    for (size_t step = 0; step < N_STEPS + 2; step++) {
        uint32_t sequences[N_SEQUENCES];
        int32_t ids[N_SEQUENCES];
        size_t n = 0;
        for (uint32_t j = 0; j < N_SEQUENCES; j++) {
            uint32_t i = (uint32_t)((j + step) % N_SEQUENCES); // in any order
            if (step < texts[i].begins || step - texts[i].begins >= N_STEPS) continue;
            sequences[n] = i;
            ids[n++] = texts[i].ids[texts[i].n_prompt + step - texts[i].begins];
        }
        assert_int_equal(stint_session_step(s, sequences, ids, n, logits), STINT_OK);
        for (size_t k = 0; k < n; k++) {
            const struct text *t = &texts[sequences[k]];
            assert_logits(m, logits + k * vocab(m), t->wanted + (1 + step - t->begins) * vocab(m),
                          what, sequences[k]);
        }
    }
    for (uint32_t i = 0; i < N_SEQUENCES; i++) {
        assert_int_equal(stint_session_length(s, i), texts[i].n_prompt + N_STEPS);
    }
    free(logits);
}

static void check_together(const stint_model *m, const char *what, const char *schedule,
                           uint32_t npu_threads) {
    struct text texts[N_SEQUENCES];
    stint_session *alone = open_session(m, 0, schedule, npu_threads);
    stint_session *s = open_session(m, N_SEQUENCES, schedule, npu_threads);
    for (int i = 0; i < N_SEQUENCES; i++) make_text(m, alone, &texts[i]);
    run_together(m, s, texts, what);
    for (int i = 0; i < N_SEQUENCES; i++) free(texts[i].wanted);
    stint_session_close(s);
    stint_session_close(alone);
}

static void each_gets_what_it_gets_alone(void **state) {
    (void)state;
    for (int i = 0; i < TS_KINDS; i++) check_together(ts_kinds[i], ts_kind_names[i], NULL, 0);
    check_together(ts_kinds[2], "3 bits", "uniform:3", 0);
    check_together(ts_kinds[1], "int8, split", NULL, 1);
}

// Block forms, positions, windows, mixtures: those of the golden models.
static void so_does_every_family(void **state) {
    (void)state;
    static const char *const families[] = {"llama2", "opt",   "gemma3-linear", "mixtral",
                                           "phi2",   "qwen3", "stablelm"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char name[64];
        stint_model *m = NULL;
        snprintf(name, sizeof name, "fixtures/models/%s", families[i]);
        if (stint_model_open(ts_shared(name), NULL, &m) != STINT_OK)
            fail_msg("%s", stint_error_text());
        check_together(m, families[i], NULL, 0);
        stint_model_close(m);
    }
}

// However a prompt is cut, its bits are those of the whole; and how much of a sequence was a prompt
// is known.
static void pieces_of_a_prompt_give_the_whole(void **state) {
    (void)state;
    for (int k = 0; k < TS_KINDS; k++) {
        const stint_model *m = ts_kinds[k];
        stint_session *s = open_session(m, 2, NULL, 0);
        int32_t ids[64];
        float *logits = malloc(2 * vocab(m) * sizeof *logits);
        random_ids(m, ids, 64);
        assert_int_equal(st_session_prompt(s, 0, ids, 64, 64, logits), STINT_OK);
        for (int round = 0; round < 4; round++) {
            assert_int_equal(stint_session_truncate(s, 1, 0), STINT_OK);
            for (size_t at = 0, n; at < 64; at += n) {
                n = 1 + ts_random_below(64 - at);
                assert_int_equal(st_session_prompt(s, 1, ids + at, n, 64, logits + vocab(m)),
                                 STINT_OK);
            }
            assert_logits(m, logits + vocab(m), logits, ts_kind_names[k], 1);
            assert_int_equal(s->sequences[1].prompted, 64);
        }
        assert_int_equal(stint_session_eval(s, 1, ids, 1, false, NULL), STINT_OK);
        assert_int_equal(s->sequences[1].prompted, 64);
        assert_int_equal(stint_session_truncate(s, 1, 20), STINT_OK);
        assert_int_equal(s->sequences[1].prompted, 20);
        free(logits);
        stint_session_close(s);
    }
}

static void a_wrong_step_changes_nothing(void **state) {
    (void)state;
    stint_session *s = open_session(ts_kinds[0], 3, NULL, 0);
    int32_t ids[CONTEXT];
    random_ids(ts_kinds[0], ids, CONTEXT);
    assert_int_equal(stint_session_eval(s, 3, ids, 1, false, NULL), STINT_E_ARG);
    assert_int_equal(stint_session_eval(s, 2, ids, CONTEXT, false, NULL), STINT_OK);
    const uint32_t twice[] = {0, 1, 0}, full[] = {0, 2}, beyond[] = {1, 3};
    const int32_t bad[] = {5, (int32_t)vocab(ts_kinds[0])};
    assert_int_equal(stint_session_step(s, twice, ids, 3, NULL), STINT_E_ARG);
    assert_int_equal(stint_session_step(s, full, ids, 2, NULL), STINT_E_LIMIT);
    assert_int_equal(stint_session_step(s, beyond, ids, 2, NULL), STINT_E_ARG);
    assert_int_equal(stint_session_step(s, twice, bad, 2, NULL), STINT_E_ARG);
    stint_session_cancel(s);
    assert_int_equal(stint_session_step(s, twice, ids, 2, NULL), STINT_E_CANCELED);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(stint_session_length(s, i), 0);
    }
    assert_int_equal(stint_session_step(s, twice, ids, 2, NULL), STINT_OK);
    assert_int_equal(stint_session_length(s, 1), 1);
    stint_session_close(s);
    stint_session_options o = {.size = sizeof o, .n_sequences = STINT_MAX_SEQUENCES + 1};
    assert_int_equal(stint_session_open(ts_kinds[0], &o, &s), STINT_E_ARG);
}

static void a_saved_sequence_goes_on(void **state) {
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s/kept.session", ts_temp_folder());
    for (int k = 0; k < TS_KINDS; k++) {
        const stint_model *m = ts_kinds[k];
        stint_session *s = open_session(m, 2, NULL, 0), *other = open_session(m, 3, NULL, 0);
        float *logits = malloc(2 * vocab(m) * sizeof *logits);
        int32_t ids[30];
        random_ids(m, ids, 30);
        assert_int_equal(stint_session_save(s, 0, path), STINT_E_ARG); // holds nothing
        assert_int_equal(stint_session_eval(s, 1, ids, 29, false, NULL), STINT_OK);
        assert_int_equal(stint_session_save(s, 1, path), STINT_OK);
        assert_int_equal(stint_session_eval(s, 1, ids + 29, 1, false, logits), STINT_OK);
        assert_int_equal(stint_session_load(other, 2, path), STINT_OK);
        assert_int_equal(stint_session_length(other, 2), 29);
        assert_memory_equal(stint_session_tokens(other, 2), ids, 29 * sizeof *ids);
        assert_int_equal(stint_session_eval(other, 2, ids + 29, 1, false, logits + vocab(m)),
                         STINT_OK);
        assert_logits(m, logits + vocab(m), logits, ts_kind_names[k], 2);
        free(logits);
        stint_session_close(s);
        stint_session_close(other);
    }
}

static void assert_not_loaded(stint_session *s, const char *path, stint_status wanted) {
    size_t length = stint_session_length(s, 0);
    assert_int_equal(stint_session_load(s, 0, path), wanted);
    assert_int_equal(stint_session_length(s, 0), length);
}

static void what_is_not_its_own_is_refused(void **state) {
    (void)state;
    char path[600];
    stint_session *s = open_session(ts_kinds[0], 0, NULL, 0);
    stint_session *other = open_session(ts_kinds[1], 0, NULL, 0), *small = NULL;
    int32_t ids[40];
    size_t bytes;
    snprintf(path, sizeof path, "%s/own.session", ts_temp_folder());
    random_ids(ts_kinds[0], ids, 40);
    assert_int_equal(stint_session_eval(s, 0, ids, 40, false, NULL), STINT_OK);
    assert_int_equal(stint_session_save(s, 0, path), STINT_OK);
    assert_not_loaded(other, path, STINT_E_ARG);
    stint_session_options o = {.size = sizeof o, .n_context = 39};
    assert_int_equal(stint_session_open(ts_kinds[0], &o, &small), STINT_OK);
    assert_not_loaded(small, path, STINT_E_FORMAT);
    unsigned char *file = ts_read(path, &bytes);
    for (int i = 0; i < 20; i++) { // any byte of it
        size_t at = i < 4 ? (size_t)i * 5 : ts_random_below(bytes);
        unsigned char before = file[at];
        file[at] ^= 0x41;
        const char *damaged = ts_write("damaged.session", file, bytes);
        stint_status status = stint_session_load(s, 0, damaged);
        // Between sections there are bytes that nobody reads.
        assert_true(status == STINT_E_FORMAT || status == STINT_E_UNSUPPORTED ||
                    status == STINT_OK);
        file[at] = before;
    }
    assert_not_loaded(s, ts_write("short.session", file, bytes / 2), STINT_E_FORMAT);
    assert_not_loaded(s, ts_write_text("none.session", "hello"), STINT_E_FORMAT);
    assert_not_loaded(s, "no/such.session", STINT_E_IO);
    free(file);
    stint_session_close(s);
    stint_session_close(other);
    stint_session_close(small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gets_what_it_gets_alone),
        cmocka_unit_test(so_does_every_family),
        cmocka_unit_test(pieces_of_a_prompt_give_the_whole),
        cmocka_unit_test(a_wrong_step_changes_nothing),
        cmocka_unit_test(a_saved_sequence_goes_on),
        cmocka_unit_test(what_is_not_its_own_is_refused),
    };
    return cmocka_run_group_tests(tests, ts_kinds_open, ts_kinds_close);
}
