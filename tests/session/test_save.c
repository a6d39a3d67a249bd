// SPDX-License-Identifier: Apache-2.0
// Saving and restoring a sequence while another thread computes others: files hold the sequence
// that was asked for, and nobody notices. To be run with -DSTINT_SANITIZE=thread too.
#include "stint.h"
#include "support/kinds.h"
#include "support/support.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// Sequences 0 and 1 are stepped, 2 to 5 are saved and restored.
enum { STEPPED = 2, N_SAVED = 4, N_SEQUENCES = STEPPED + N_SAVED };
enum { N_PROMPT = 12, N_STEPS = 40, CONTEXT = N_PROMPT + N_STEPS, N_ROUNDS = 6 };

// Bounded: in the least memory, so that weights are read again for each step.
enum { N_MODELS = 4 };
static const struct {
    const char *title;
    bool packed, bounded;
} kinds[N_MODELS] = {{"float", false, false},
                     {"int8", true, false},
                     {"float, bounded", false, true},
                     {"int8, bounded", true, true}};
static stint_model *models[N_MODELS];
static size_t vocab;

struct text {
    int32_t ids[CONTEXT];
    float *wanted; // [N_STEPS, vocab]: after each token that follows the prompt
};

static void open_model(int m, const char *path) {
    stint_model_options o = {.size = sizeof o, .lazy = kinds[m].bounded};
    if (stint_model_open(path, &o, &models[m]) != STINT_OK) fail_msg("%s", stint_error_text());
}

static int open_models(void **state) {
    (void)state;
    const char *source = STINT_SOURCE_DIR "/tests/golden/models/qwen3-window";
    char package[600];
    int32_t ids[64];
    stint_model_info info = {.size = sizeof info};
    open_model(0, source);
    assert_int_equal(stint_model_describe(models[0], &info), STINT_OK);
    vocab = info.vocab;
    for (size_t i = 0; i < 64; i++) ids[i] = (int32_t)ts_random_below(vocab);
    stint_prepare_options o = {.size = sizeof o, .ids = ids, .n_ids = 64};
    snprintf(package, sizeof package, "%s/m.stint", ts_temp_folder());
    ts_prepare(source, package, &o);
    for (int m = 1; m < N_MODELS; m++) open_model(m, kinds[m].packed ? package : source);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (int m = 0; m < N_MODELS; m++) stint_model_close(models[m]);
    return 0;
}

static stint_session *open_session(int m) {
    stint_session *s = NULL;
    unsigned mib;
    stint_session_options o = {.size = sizeof o,
                               .memory = kinds[m].bounded,
                               .n_threads = 1,
                               .n_context = CONTEXT,
                               .chunk_len = 16,
                               .n_sequences = N_SEQUENCES};
    if (kinds[m].bounded) { // the refusal of one byte says what is needed
        assert_int_equal(stint_session_open(models[m], &o, &s), STINT_E_LIMIT);
        assert_int_equal(sscanf(stint_error_text(), "memory: at least %u MiB", &mib), 1);
        o.memory = (uint64_t)mib << 20;
    }
    if (stint_session_open(models[m], &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

static void begin(stint_session *s, uint32_t sequence, const struct text *t) {
    assert_int_equal(stint_session_truncate(s, sequence, 0), STINT_OK);
    assert_int_equal(stint_session_eval(s, sequence, t->ids, N_PROMPT, false, NULL), STINT_OK);
}

static void make_texts(int m, struct text *texts) {
    stint_session *s = open_session(m);
    for (uint32_t q = 0; q < N_SEQUENCES; q++) {
        struct text *t = &texts[q];
        for (size_t i = 0; i < CONTEXT; i++) t->ids[i] = (int32_t)ts_random_below(vocab);
        t->wanted = malloc(N_STEPS * vocab * sizeof *t->wanted);
        begin(s, q, t);
        for (size_t i = 0; i < N_STEPS; i++)
            assert_int_equal(
                stint_session_step(s, &q, t->ids + N_PROMPT + i, 1, t->wanted + i * vocab),
                STINT_OK);
    }
    stint_session_close(s);
}

static void free_texts(struct text *texts) {
    for (size_t q = 0; q < N_SEQUENCES; q++) free(texts[q].wanted);
}

// ---- One thread after the other

// The sequence asked for, whichever was computed last.
static void any_sequence_is_saved(void **state) {
    (void)state;
    for (int m = 0; m < N_MODELS; m++) {
        struct text texts[N_SEQUENCES];
        make_texts(m, texts);
        stint_session *s = open_session(m), *other = open_session(m);
        float *logits = malloc(vocab * sizeof *logits);
        char path[600];
        for (uint32_t q = 0; q < N_SEQUENCES; q++) begin(s, q, &texts[q]);
        for (uint32_t q = 0; q < N_SEQUENCES; q++) {
            uint32_t to = (q + 1) % N_SEQUENCES;
            snprintf(path, sizeof path, "%s/%u.session", ts_temp_folder(), q);
            assert_int_equal(stint_session_save(s, q, path), STINT_OK);
            assert_int_equal(stint_session_load(other, to, path), STINT_OK);
            assert_int_equal(stint_session_length(other, to), N_PROMPT);
            assert_memory_equal(stint_session_tokens(other, to), texts[q].ids, N_PROMPT * 4);
            assert_int_equal(stint_session_step(other, &to, texts[q].ids + N_PROMPT, 1, logits),
                             STINT_OK);
            if (memcmp(logits, texts[q].wanted, vocab * sizeof *logits) != 0)
                fail_msg("%s: sequence %u goes on as another", kinds[m].title, q);
        }
        free(logits);
        free_texts(texts);
        stint_session_close(s);
        stint_session_close(other);
    }
}

// ---- At the same time

struct computing {
    stint_session *s;
    const struct text *texts;
    atomic_bool stop;
    atomic_uint rounds; // of steps from a prompt to the end of the context
    bool failed, differs;
};

// cmocka's assertions belong to the main thread.
static void *compute(void *context) {
    struct computing *c = context;
    float *logits = malloc(STEPPED * vocab * sizeof *logits);
    while (!atomic_load(&c->stop) && !c->failed) {
        for (uint32_t q = 0; q < STEPPED; q++)
            c->failed |=
                stint_session_truncate(c->s, q, 0) != STINT_OK ||
                stint_session_eval(c->s, q, c->texts[q].ids, N_PROMPT, false, NULL) != STINT_OK;
        for (size_t i = 0; i < N_STEPS; i++) {
            const uint32_t sequences[STEPPED] = {0, 1};
            const int32_t ids[STEPPED] = {c->texts[0].ids[N_PROMPT + i],
                                          c->texts[1].ids[N_PROMPT + i]};
            c->failed |= stint_session_step(c->s, sequences, ids, STEPPED, logits) != STINT_OK;
            for (size_t q = 0; q < STEPPED; q++)
                c->differs |= memcmp(logits + q * vocab, c->texts[q].wanted + i * vocab,
                                     vocab * sizeof *logits) != 0;
        }
        atomic_fetch_add(&c->rounds, 1);
    }
    free(logits);
    return NULL;
}

// Each is restored into another's place, so that every file passes through every sequence.
static void save_and_restore(stint_session *s, const struct text *texts, uint32_t holds[]) {
    char path[N_SAVED][600];
    for (uint32_t i = 0; i < N_SAVED; i++) {
        snprintf(path[i], sizeof path[i], "%s/%u.session", ts_temp_folder(), i);
        assert_int_equal(stint_session_save(s, STEPPED + i, path[i]), STINT_OK);
    }
    uint32_t before[N_SAVED];
    memcpy(before, holds, sizeof before);
    for (uint32_t i = 0; i < N_SAVED; i++) {
        uint32_t to = (i + 1) % N_SAVED;
        assert_int_equal(stint_session_truncate(s, STEPPED + to, 0), STINT_OK);
        assert_int_equal(stint_session_load(s, STEPPED + to, path[i]), STINT_OK);
        holds[to] = before[i];
        assert_int_equal(stint_session_length(s, STEPPED + to), N_PROMPT);
        assert_memory_equal(stint_session_tokens(s, STEPPED + to), texts[holds[to]].ids,
                            N_PROMPT * sizeof(int32_t));
    }
}

static void check_while_others_compute(int m) {
    struct text texts[N_SEQUENCES];
    uint32_t holds[N_SAVED]; // the text that each saved sequence has
    make_texts(m, texts);
    struct computing c = {.s = open_session(m), .texts = texts};
    float *logits = malloc(vocab * sizeof *logits);
    pthread_t thread;
    for (uint32_t i = 0; i < N_SAVED; i++) {
        holds[i] = STEPPED + i;
        begin(c.s, STEPPED + i, &texts[STEPPED + i]);
    }
    assert_int_equal(pthread_create(&thread, NULL, compute, &c), 0);
    for (int round = 0; round < N_ROUNDS; round++) save_and_restore(c.s, texts, holds);
    while (atomic_load(&c.rounds) == 0) sched_yield();
    atomic_store(&c.stop, true);
    pthread_join(thread, NULL);
    if (c.failed || c.differs) fail_msg("%s: the stepped sequences noticed", kinds[m].title);
    for (uint32_t i = 0; i < N_SAVED; i++) {
        const struct text *t = &texts[holds[i]];
        uint32_t q = STEPPED + i;
        for (size_t step = 0; step < 3; step++) {
            assert_int_equal(stint_session_step(c.s, &q, t->ids + N_PROMPT + step, 1, logits),
                             STINT_OK);
            if (memcmp(logits, t->wanted + step * vocab, vocab * sizeof *logits) != 0)
                fail_msg("%s: sequence %u goes on as another", kinds[m].title, q);
        }
    }
    free(logits);
    free_texts(texts);
    stint_session_close(c.s);
}

static void others_compute_meanwhile(void **state) {
    (void)state;
    for (int m = 0; m < N_MODELS; m++) check_while_others_compute(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_sequence_is_saved),
                                       cmocka_unit_test(others_compute_meanwhile)};
    return cmocka_run_group_tests(tests, open_models, close_models);
}
