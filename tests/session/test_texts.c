// SPDX-License-Identifier: Apache-2.0
// Parts of several texts in the same passes: each gets what it would get by itself, bit for bit;
// and what a prompt would get, but for the order of sums in the head, which meets few rows by other
// kernels than many.
#include "session/session.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_TEXTS = 5, CONTEXT = 128, CHUNK = 32 };

static stint_session *open_session(const stint_model *m, uint32_t npu_threads) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .npu_threads = npu_threads,
                               .n_context = CONTEXT,
                               .chunk_len = CHUNK,
                               .n_sequences = N_TEXTS};
    if (stint_session_open(m, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

// What comes for a round: its logits [rows, vocab], in the order of parts and ids.
struct got {
    const struct st_text_part *parts;
    size_t vocab, n, part, i;
    float *logits;
};

static void take(void *context, size_t part, size_t i, const float *logits) {
    struct got *got = context;
    assert_true(part > got->part || (part == got->part && (i > got->i || got->n == 0)));
    assert_in_range(i, got->parts[part].first, got->parts[part].n - 1);
    memcpy(got->logits + got->n++ * got->vocab, logits, got->vocab * sizeof *logits);
    got->part = part;
    got->i = i;
}

// Parts go to sequences in any order. Short ones are steps where texts do not share passes.
static size_t make_parts(const stint_model *m, int32_t *ids, struct st_text_part *parts) {
    size_t first = ts_random_below(N_TEXTS), rows = 0;
    for (size_t p = 0; p < N_TEXTS; p++, ids += CONTEXT) {
        size_t n = ST_SHORT_TEXT + 1 + ts_random_below(35);
        for (size_t i = 0; i < n; i++) ids[i] = (int32_t)ts_random_below(m->config.vocab);
        size_t wanted = ts_random_below(3) ? n - ST_SHORT_TEXT - 1 : 0;
        parts[p] = (struct st_text_part){(uint32_t)((first + p) % N_TEXTS), ids, n,
                                         ts_random_below(4) ? wanted : n};
        if (parts[p].first <= ST_SHORT_TEXT) parts[p].first = 0;
        rows += n - parts[p].first;
    }
    return rows;
}

static void assert_part(stint_session *alone, const struct st_text_part *part, const float *got,
                        const char *what) {
    size_t vocab = alone->model->config.vocab;
    float *wanted = malloc(CONTEXT * vocab * sizeof *wanted);
    struct st_eval_request e = st_eval_request_of(alone, part->sequence, part->ids, part->n);
    e.phase = ST_PHASE_PREFILL;
    e.all = e.as_steps = true;
    e.logits = wanted;
    assert_int_equal(st_session_eval(alone, &e), STINT_OK);
    for (size_t i = part->first; i < part->n; i++, got += vocab)
        for (size_t v = 0; v < vocab; v++) {
            float is = wanted[i * vocab + v];
            if (fabsf(got[v] - is) > 1e-4f * (1.0f + fabsf(is)))
                fail_msg("%s: %g, sequence %u by itself %g", what, got[v], part->sequence, is);
        }
    free(wanted);
}

// What a step finds.
static void assert_held(stint_session *s, stint_session *alone, uint32_t sequence,
                        const char *what) {
    size_t vocab = s->model->config.vocab, bytes = vocab * sizeof(float);
    float *logits = malloc(2 * bytes);
    assert_int_equal(stint_session_step(s, &sequence, (int32_t[]){7}, 1, logits), STINT_OK);
    assert_int_equal(stint_session_step(alone, &sequence, (int32_t[]){7}, 1, logits + vocab),
                     STINT_OK);
    if (memcmp(logits, logits + vocab, bytes) != 0)
        fail_msg("%s: sequence %u holds something else", what, sequence);
    free(logits);
}

// The same call with this part alone.
static void assert_single(stint_session *single, const struct st_text_part *part, const float *got,
                          const struct st_texts *all, const char *what) {
    size_t vocab = single->model->config.vocab, n = part->n - part->first;
    struct got one = {
        .parts = part, .vocab = vocab, .logits = malloc((n + 1) * vocab * sizeof *got)};
    struct st_texts t = {part, 1, all->logits, all->n_rows, take, &one};
    assert_int_equal(st_session_eval_texts(single, &t), STINT_OK);
    assert_int_equal(one.n, n);
    if (memcmp(got, one.logits, n * vocab * sizeof *got) != 0)
        fail_msg("%s: sequence %u depends on the others", what, part->sequence);
    free(one.logits);
}

static void check_together(const stint_model *m, const char *what, uint32_t npu_threads,
                           size_t n_rows) {
    stint_session *s = open_session(m, npu_threads), *alone = open_session(m, npu_threads);
    stint_session *single = open_session(m, npu_threads);
    size_t vocab = m->config.vocab;
    float *scratch = malloc(n_rows * vocab * sizeof *scratch);
    struct got got = {.vocab = vocab, .logits = malloc(N_TEXTS * 64 * vocab * sizeof(float))};
    int32_t ids[N_TEXTS * CONTEXT];
    struct st_text_part parts[N_TEXTS];
    for (size_t round = ts_how_many(1, 3, 3); round > 0; round--) {
        size_t rows = make_parts(m, ids, parts), at = 0;
        got.parts = parts;
        got.n = got.part = got.i = 0;
        struct st_texts t = {parts, N_TEXTS, scratch, n_rows, take, &got};
        if (st_session_eval_texts(s, &t) != STINT_OK) fail_msg("%s", stint_error_text());
        assert_int_equal(got.n, rows);
        for (size_t p = 0; p < N_TEXTS; p++) {
            assert_part(alone, &parts[p], got.logits + at * vocab, what);
            assert_single(single, &parts[p], got.logits + at * vocab, &t, what);
            at += parts[p].n - parts[p].first;
            assert_int_equal(s->sequences[parts[p].sequence].length,
                             alone->sequences[parts[p].sequence].length);
            assert_int_equal(s->sequences[parts[p].sequence].prompted,
                             alone->sequences[parts[p].sequence].prompted);
        }
    }
    for (uint32_t i = 0; i < N_TEXTS; i++) {
        assert_memory_equal(stint_session_tokens(s, i), stint_session_tokens(alone, i),
                            stint_session_length(s, i) * sizeof *ids);
        assert_held(s, alone, i, what);
    }
    free(scratch);
    free(got.logits);
    stint_session_close(s);
    stint_session_close(alone);
    stint_session_close(single);
}

static void each_gets_what_it_gets_alone(void **state) {
    (void)state;
    for (int i = 0; i < TS_KINDS; i++) check_together(ts_kinds[i], ts_kind_names[i], 0, 5);
    check_together(ts_kinds[1], "int8, split", 1, 64);
}

static void so_does_every_family(void **state) {
    (void)state;
    static const char *const families[] = {"llama2", "opt",   "gemma3-linear", "mixtral",
                                           "phi2",   "qwen3", "llama-q"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char name[64];
        stint_model *m = NULL;
        snprintf(name, sizeof name, "fixtures/models/%s", families[i]);
        if (stint_model_open(ts_shared(name), NULL, &m) != STINT_OK) continue;
        check_together(m, families[i], 0, 7);
        stint_model_close(m);
    }
}

// Recurrent layers and rotations that depend on the text's length go one by one.
static void so_does_every_architecture(void **state) {
    (void)state;
    static const char *const families[] = {
        "lfm2", "falcon_h1", "gemma3n", "deepseek-v2", "llama-dynamic", "phi3-longrope", "gpt-oss"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char name[64];
        stint_model *m = NULL;
        snprintf(name, sizeof name, "tests/golden/models/%s", families[i]);
        if (stint_model_open(ts_source(name), NULL, &m) != STINT_OK)
            fail_msg("%s", stint_error_text());
        check_together(m, families[i], 0, 64);
        stint_model_close(m);
    }
}

static void ignore(void *context, size_t part, size_t i, const float *logits) {
    (void)context;
    (void)part;
    (void)i;
    (void)logits;
}

static void a_wrong_text_changes_nothing(void **state) {
    (void)state;
    const stint_model *m = ts_kinds[0];
    stint_session *s = open_session(m, 0);
    int32_t ids[CONTEXT + 1] = {0}, bad[] = {1, (int32_t)m->config.vocab};
    float *logits = malloc(m->config.vocab * sizeof *logits);
    assert_int_equal(stint_session_eval(s, 1, ids, 7, false, NULL), STINT_OK);
    struct st_text_part parts[] = {{1, ids, 20, 0}, {0, ids, 20, 20}};
    struct st_texts t = {parts, 2, logits, 1, ignore, NULL};
    stint_session_cancel(s);
    assert_int_equal(st_session_eval_texts(s, &t), STINT_E_CANCELED);
    atomic_store(&s->canceled, false);
    parts[1] = (struct st_text_part){0, bad, 2, 0};
    assert_int_equal(st_session_eval_texts(s, &t), STINT_E_ARG);
    parts[1] = (struct st_text_part){N_TEXTS, ids, 2, 0};
    assert_int_equal(st_session_eval_texts(s, &t), STINT_E_ARG);
    parts[1] = (struct st_text_part){0, ids, CONTEXT + 1, 0};
    assert_int_equal(st_session_eval_texts(s, &t), STINT_E_LIMIT);
    assert_int_equal(stint_session_length(s, 0), 0);
    assert_int_equal(stint_session_length(s, 1), 7);
    parts[1] = (struct st_text_part){0, ids, 0, 0}; // nothing new
    assert_int_equal(st_session_eval_texts(s, &t), STINT_OK);
    assert_int_equal(stint_session_length(s, 0), 0);
    assert_int_equal(stint_session_length(s, 1), 27);
    free(logits);
    stint_session_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gets_what_it_gets_alone),
        cmocka_unit_test(so_does_every_family),
        cmocka_unit_test(so_does_every_architecture),
        cmocka_unit_test(a_wrong_text_changes_nothing),
    };
    return cmocka_run_group_tests(tests, ts_kinds_open, ts_kinds_close);
}
