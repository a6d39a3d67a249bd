// SPDX-License-Identifier: Apache-2.0
// Answers that share their first steps are the ones that were written by themselves.
#include "eval/fork.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static stint_model *model;

static int open_model(void **state) {
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = 300,
                               .outliers = STINT_OUTLIERS_NONE,
                               .bits_low = 2,
                               .bits_high = 4};
    (void)state;
    model = ts_package(ts_trained(), "m", &o);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

enum { TOKENS = 24 };

static stint_precision random_schedule(void) {
    stint_precision p = {.size = sizeof p, .prefill = 8};
    uint32_t start = 0;
    for (uint32_t bits = 8; bits >= 2; bits = bits == 8 ? 4 : bits - 1) {
        if (ts_random_below(2) && (p.n_steps || bits > 2)) continue;
        p.steps[p.n_steps].bits = bits;
        p.steps[p.n_steps].start = p.n_steps ? start : 0;
        p.n_steps++;
        start += (uint32_t)ts_random_below(TOKENS);
    }
    if (p.n_steps == 0) p.steps[p.n_steps++].bits = 3;
    return p;
}

static void answers_do_not_depend_on_what_came_before(void **state) {
    (void)state;
    const char *prompt = "The old man looked at the sea and said";
    struct st_fork fork;
    assert_int_equal(st_fork_open(model, NULL, 64, TOKENS, false, &fork), STINT_OK);
    assert_int_equal(st_fork_prompt_text(&fork, prompt, false, 8), STINT_OK);
    for (int i = 0; i < 25; i++) {
        stint_precision p = random_schedule();
        struct st_fork alone;
        assert_int_equal(st_fork_write_by(&fork, &p), STINT_OK);
        assert_int_equal(st_fork_open(model, NULL, 64, TOKENS, false, &alone), STINT_OK);
        assert_int_equal(st_fork_prompt_text(&alone, prompt, false, 8), STINT_OK);
        assert_int_equal(st_fork_write_by(&alone, &p), STINT_OK);
        assert_int_equal(fork.n, alone.n);
        assert_memory_equal(fork.ids, alone.ids, fork.n * sizeof *fork.ids);
        assert_string_equal(fork.text, alone.text);
        assert_int_equal(st_fork_sum_bits(&fork), st_fork_sum_bits(&alone));
        st_fork_close(&alone);
    }
    st_fork_close(&fork);
}

static void they_are_what_generation_writes(void **state) {
    (void)state;
    int32_t ids[64], wanted[TOKENS];
    size_t n;
    stint_session *session = NULL;
    stint_precision p = {.size = sizeof p, .prefill = 8, .n_steps = 2, .steps = {{4, 0}, {2, 9}}};
    stint_session_options o = {.size = sizeof o, .n_context = 64 + TOKENS};
    stint_generation g = {.size = sizeof g, .n_tokens = TOKENS};
    stint_generation_result r = {.size = sizeof r};
    struct st_fork fork;
    assert_int_equal(stint_tokenize(stint_model_tokenizer(model), "It was a cold evening", 21,
                                    STINT_TOKENIZE_ADD_BOS, ids, 64, &n),
                     STINT_OK);
    assert_int_equal(stint_session_open(model, &o, &session), STINT_OK);
    assert_int_equal(stint_session_set_precision(session, &p), STINT_OK);
    assert_int_equal(stint_generate(session, ids, n, &g, wanted, TOKENS, &r), STINT_OK);
    assert_int_equal(st_fork_open(model, NULL, 64, TOKENS, false, &fork), STINT_OK);
    assert_int_equal(st_fork_prompt(&fork, ids, n, 8), STINT_OK);
    assert_int_equal(st_fork_write_by(&fork, &p), STINT_OK);
    assert_int_equal(fork.n, r.generated_tokens);
    assert_memory_equal(fork.ids, wanted, fork.n * sizeof *wanted);
    st_fork_close(&fork);
    stint_session_close(session);
}

// A schedule by a signal: what generation writes too, whatever was written before.
static void a_signal_selects_for_each_token(void **state) {
    (void)state;
    enum { N = 12 };
    int32_t prompt[N], ids[TOKENS] = {0};
    stint_session *session = NULL;
    struct st_fork fork;
    stint_precision p = {.size = sizeof p,
                         .prefill = 8,
                         .n_steps = 3,
                         .steps = {{4, 0}, {3, 0}, {2, 0}},
                         .signal = STINT_SIGNAL_MARGIN,
                         .thresholds = {0.6f, 0.2f}};
    stint_generation g = {.size = sizeof g, .n_tokens = TOKENS};
    stint_generation_result r = {.size = sizeof r};
    assert_int_equal(stint_session_open(model, NULL, &session), STINT_OK);
    assert_int_equal(st_fork_open(model, NULL, 64, TOKENS, false, &fork), STINT_OK);
    fork.watches = true;
    int n_mixed = 0; // an answer may be all of one precision
    for (int i = 0; i < 4; i++) {
        for (int t = 0; t < N; t++) prompt[t] = (int32_t)(3 + ts_random_below(4000));
        const stint_precision other = random_schedule();
        p.signal = i < 2 ? STINT_SIGNAL_MARGIN : STINT_SIGNAL_ENTROPY;
        p.thresholds[0] = i < 2 ? 0.6f : 3.0f;
        assert_int_equal(st_fork_prompt(&fork, prompt, N, 8), STINT_OK);
        if (i % 2) assert_int_equal(st_fork_write_by(&fork, &other), STINT_OK);
        assert_int_equal(st_fork_write_by(&fork, &p), STINT_OK);
        assert_int_equal(stint_session_truncate(session, 0, 0), STINT_OK);
        assert_int_equal(stint_session_set_precision(session, &p), STINT_OK);
        assert_int_equal(stint_generate(session, prompt, N, &g, ids, TOKENS, &r), STINT_OK);
        assert_int_equal(fork.n, r.generated_tokens);
        assert_memory_equal(fork.ids, ids, fork.n * sizeof *ids);
        double bits = (double)st_fork_sum_bits(&fork) / (double)st_fork_steps(&fork);
        assert_float_equal(bits, r.average_bits, 1e-6);
        assert_true(bits >= 2.0 && bits <= 4.0);
        n_mixed += bits > 2.0 && bits < 4.0;
    }
    assert_true(n_mixed > 0);
    st_fork_close(&fork);
    stint_session_close(session);
}

static void followed_answers_diverge_with_fewer_bits(void **state) {
    (void)state;
    struct st_fork fork;
    struct st_written target;
    const stint_precision high = {.n_steps = 1, .steps = {{4, 0}}};
    const stint_precision low = {.n_steps = 1, .steps = {{2, 0}}};
    int32_t ids[TOKENS];
    assert_int_equal(st_fork_open(model, NULL, 64, TOKENS, false, &fork), STINT_OK);
    assert_int_equal(st_written_open(&fork, &target), STINT_OK);
    fork.record = &target;
    assert_int_equal(st_fork_prompt_text(&fork, "It was a cold evening", false, 8), STINT_OK);
    assert_int_equal(st_fork_write_by(&fork, &high), STINT_OK);
    fork.record = NULL;
    fork.follow = &target;
    size_t n = fork.n;
    assert_int_equal(target.n, n);
    memcpy(ids, fork.ids, n * sizeof *ids);
    assert_int_equal(st_fork_prompt_text(&fork, "It was a cold evening", false, 8), STINT_OK);
    assert_int_equal(st_fork_write_by(&fork, &high), STINT_OK);
    assert_float_equal(st_fork_divergence(&fork), 0.0, 1e-12);
    assert_int_equal(st_fork_write_by(&fork, &low), STINT_OK);
    assert_true(st_fork_divergence(&fork) > 1e-4);
    assert_int_equal(fork.n, n);
    assert_memory_equal(fork.ids, ids, n * sizeof *ids);
    assert_int_equal(st_fork_sum_bits(&fork), 2 * (n - 1));
    st_written_close(&target);
    st_fork_close(&fork);
}

static void a_line_ends_an_answer(void **state) {
    (void)state;
    struct st_fork fork;
    const stint_precision p = {.n_steps = 1, .steps = {{8, 0}}};
    assert_int_equal(st_fork_open(model, NULL, 64, 64, false, &fork), STINT_OK);
    fork.line = true;
    assert_int_equal(st_fork_prompt_text(&fork, "It was a cold evening", false, 8), STINT_OK);
    assert_int_equal(st_fork_write_by(&fork, &p), STINT_OK);
    assert_true(fork.n < 64 || ts_is_emulated()); // two layers write no end of a line
    assert_null(strchr(fork.text, '\n'));
    st_fork_close(&fork);
}

static void what_cannot_fork_is_refused(void **state) {
    (void)state;
    struct st_fork fork;
    stint_model *flat = NULL;
    assert_int_equal(stint_model_open(ts_trained(), NULL, &flat), STINT_OK);
    assert_int_equal(st_fork_open(flat, NULL, 64, 8, false, &fork), STINT_E_UNSUPPORTED);
    assert_int_equal(st_fork_open(model, NULL, 64, 4000, false, &fork), STINT_E_ARG);
    stint_model_close(flat);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_do_not_depend_on_what_came_before),
        cmocka_unit_test(they_are_what_generation_writes),
        cmocka_unit_test(a_signal_selects_for_each_token),
        cmocka_unit_test(followed_answers_diverge_with_fewer_bits),
        cmocka_unit_test(a_line_ends_an_answer),
        cmocka_unit_test(what_cannot_fork_is_refused),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
