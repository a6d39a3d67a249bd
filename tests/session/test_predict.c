// SPDX-License-Identifier: Apache-2.0
// Neurons that are read one by one: the laws of a bound with all of them, and what predictors leave
// out.
#include "kernels/neuron.h"
#include "session/weights/bounded.h"
#include "support/bounded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct ts_bounded_variant variants[] = {
    {"sparse", "models/novels-10m-drelu", 8, 512, 0, 0},
    {"sparse, 4 bits, 3 a step", "models/novels-2-drelu", 4, 2048, 3, 0},
};

// Of the largest logit.
static size_t best(const float *logits) {
    size_t b = 0;
    for (size_t i = 1; i < ts_bounded_vocab(); i++) b = logits[i] > logits[b] ? i : b;
    return b;
}

static void predictors_compute_less(void **state) {
    (void)state;
    assert_non_null(ts_bounded.lazy->neurons.layers);
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got),
          *again = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * 4);
    stint_memory_info info = {.size = sizeof info};
    size_t same = 0;
    for (int round = 0; round < 2; round++) { // with much memory, with little
        uint64_t memory = round ? ts_bounded_min(1) : 200 << 20;
        stint_session *s = ts_bounded_session(ts_bounded.lazy, memory, true);
        assert_int_equal(ts_bounded_eval(s, round ? again : got), STINT_OK);
        assert_int_equal(stint_session_memory(s, &info), STINT_OK);
        stint_session_close(s);
    }
    // What is in memory has no say in which neurons are computed, but hot ones are, asked or not.
    assert_true(info.computed > 0.1 && info.computed < 0.9);
    for (size_t i = TS_BOUNDED_PROMPT; i < TS_BOUNDED_IDS; i++)
        same +=
            best(got + i * ts_bounded_vocab()) == best(ts_bounded.wanted + i * ts_bounded_vocab());
    assert_true(same >= 7); // of 10
    free(got);
    free(again);
}

// What stays is there before the first step, unless nothing is to stay.
static void a_session_opens_with_what_stays(void **state) {
    (void)state;
    static const uint32_t leave_out[] = {0, STINT_LEAVE_CACHE};
    for (size_t i = 0; i < 2; i++) {
        stint_session_options o = ts_bounded_options(200 << 20);
        o.leave_out = leave_out[i] | STINT_LEAVE_PREDICTOR;
        stint_session *s;
        stint_memory_info info = {.size = sizeof info};
        assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s), STINT_OK);
        const struct st_neurons *n = &s->bounded->neurons;
        uint32_t entries = n->model->neurons.layout.n_entries, all = 0;
        for (uint32_t layer = 0; layer < n->model->config.n_layers && i == 0; layer++)
            for (uint32_t e = st_neurons_first_cold(n, layer); e < n->kept[layer]; e++, all++)
                assert_true(st_cache_has(&n->cold, layer * entries + e));
        assert_int_equal(n->cold.n_used, all);
        assert_int_equal(all > 0, i == 0);
        assert_int_equal(stint_session_memory(s, &info), STINT_OK);
        assert_true(info.bytes_per_step == 0.0); // opening is no step
        ts_bounded_assert_same(s, ts_bounded.wanted, "filled");
        stint_session_close(s);
    }
}

// Rows of a step are named neurons in groups: a larger batch gives what the groups by themselves
// do.
static void larger_steps_give_the_same(void **state) {
    (void)state;
    enum { N = TS_BOUNDED_CHUNK, STEPS = 5 };
    const unsigned bits = ts_bounded.variant->step_bits ? ts_bounded.variant->step_bits : 8;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = TS_BOUNDED_CONTEXT,
                               .chunk_len = TS_BOUNDED_CHUNK,
                               .memory = ts_bounded_min(N) + (2 << 20),
                               .schedule = ts_bounded_schedule(),
                               .n_sequences = N};
    uint32_t sequences[N];
    size_t vocab = ts_bounded_vocab();
    float *logits[2];
    for (size_t i = 0; i < 2; i++) logits[i] = malloc(N * vocab * sizeof *logits[i]);
    for (uint32_t i = 0; i < N; i++) sequences[i] = i;
    stint_session *s[2] = {NULL, NULL};
    for (size_t i = 0; i < 2; i++) {
        if (stint_session_open(ts_bounded.lazy, &o, &s[i]) != STINT_OK)
            fail_msg("%s", stint_error_text());
        for (uint32_t q = 0; q < N; q++)
            assert_int_equal(
                st_session_prompt(s[i], q, ts_bounded.ids + q, TS_BOUNDED_PROMPT - 2, 8, NULL),
                STINT_OK);
    }
    for (size_t step = 0; step < STEPS; step++) {
        const int32_t *ids = ts_bounded.ids + step;
        size_t n = N - step; // the last group is not always whole
        assert_int_equal(st_session_step(s[0], bits, sequences, ids, n, logits[0]), STINT_OK);
        for (size_t at = 0; at < n; at += ST_NEURON_TOKENS)
            assert_int_equal(st_session_step(s[1], bits, sequences + at, ids + at,
                                             st_min(ST_NEURON_TOKENS, n - at),
                                             logits[1] + at * vocab),
                             STINT_OK);
        assert_memory_equal(logits[0], logits[1], n * vocab * sizeof *logits[0]);
    }
    for (size_t i = 0; i < 2; i++) {
        stint_session_close(s[i]);
        free(logits[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_session_opens_with_what_stays),
                                       cmocka_unit_test(larger_steps_give_the_same),
                                       cmocka_unit_test(predictors_compute_less)};
    // Of few layers, too little may be left out.
    return ts_bounded_run(&variants[0], true, tests, 2) |
           ts_bounded_run(&variants[1], true, tests, 1);
}
