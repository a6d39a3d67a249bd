// SPDX-License-Identifier: Apache-2.0
// What is sampled with drafts has the distribution of plain sampling: chi-square over 6,000 first
// tokens that a draft was computed for, at one of three settings, with STINT_CI_LONG=1 over 20,000
// at all. Both sides have seeds of their own, so that equal texts (test_self_drafts.c) cannot be
// what passes.
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

enum { N_PROMPT = 24, N_TOKENS = 3, WATCHED = 1, BATCH = STINT_MAX_STEP_ROWS / 2 };
static const double accepted = 4.0, told_apart = 8.0; // standard deviations

static stint_model *model;
static size_t n_samples;

static int open_model(void **state) {
    (void)state;
    n_samples = ts_how_many(2600, 6000, 20000);
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 200, .bits_low = 2, .bits_high = 4};
    model = ts_package(ts_built("models/novels-2"), "distribution", &o);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    return 0;
}

// How often each token came in a text's watched place, which a draft is proposed for.
struct counts {
    uint32_t *of;        // [vocab]
    size_t place[BATCH]; // tokens of each answer of the batch at hand
    size_t drafted;      // by n-grams or fewer bits
};

static bool hear(void *context, const stint_piece *piece) {
    struct counts *c = context;
    if (piece->id < 0) return true;
    bool watched = c->place[piece->answer]++ == WATCHED;
    if (watched) c->of[piece->id]++;
    return !watched;
}

static void sample(stint_session *s, const stint_sampling *sampling, struct counts *c) {
    int32_t prompt[N_PROMPT];
    stint_sampling own = *sampling;
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = (int32_t)(3 + (i * i * 31 + 7 * i) % 43);
    for (size_t n = 0; n < n_samples; n += BATCH, own.seed += BATCH) {
        stint_generation g = {.size = sizeof g,
                              .n_tokens = N_TOKENS,
                              .ignore_eos = true,
                              .sampling = &own,
                              .text = hear,
                              .context = c,
                              .n_answers = BATCH};
        stint_generation_result results[BATCH] = {{.size = sizeof *results}};
        memset(c->place, 0, sizeof c->place);
        assert_int_equal(stint_session_truncate(s, 0, n ? N_PROMPT - 1 : 0), STINT_OK);
        const int32_t *from = n ? prompt + N_PROMPT - 1 : prompt;
        size_t n_from = n ? 1 : N_PROMPT;
        if (stint_generate(s, from, n_from, &g, NULL, 0, results) != STINT_OK)
            fail_msg("%s", stint_error_text());
        for (size_t i = 0; i < BATCH; i++) c->drafted += results[i].drafted_tokens;
    }
}

static struct counts count(const stint_sampling *sampling, uint32_t n_drafts) {
    struct counts c = {.drafted = 0};
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 1,
                               .n_context = 64,
                               .n_sequences = BATCH,
                               .n_drafts = n_drafts,
                               .draft_bits = n_drafts ? 3 : 0};
    assert_non_null(c.of = calloc(model->config.vocab, sizeof *c.of));
    if (stint_session_open(model, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    s->drafting.costs.always = n_drafts > 0;
    sample(s, sampling, &c);
    stint_session_close(s);
    return c;
}

// How far two samples of the same size are apart: chi-square of tokens that came at least ten times
// and of all others together, as a standard normal deviate (Wilson and Hilferty 1931).
static double distance(const uint32_t *a, const uint32_t *b) {
    double sum = 0.0, rare[2] = {0};
    size_t n = 0;
    for (size_t i = 0; i < model->config.vocab; i++) {
        double x = a[i], y = b[i];
        if (x + y < 10.0) {
            rare[0] += x;
            rare[1] += y;
            continue;
        }
        sum += (x - y) * (x - y) / (x + y);
        n++;
    }
    if (rare[0] + rare[1] > 0.0) {
        sum += (rare[0] - rare[1]) * (rare[0] - rare[1]) / (rare[0] + rare[1]);
        n++;
    }
    assert_true(n > 2);
    double free = (double)n - 1.0, part = 2.0 / (9.0 * free);
    return (cbrt(sum / free) - (1.0 - part)) / sqrt(part);
}

static void drafts_keep_the_distribution(void **state) {
    (void)state;
    const stint_sampling settings[] = {
        {.size = sizeof *settings, .temperature = 1.0f},
        {.size = sizeof *settings, .temperature = 0.7f, .top_p = 0.95f, .min_p = 0.02f},
        {.size = sizeof *settings, .temperature = 1.3f, .top_k = 40, .repeat_penalty = 1.2f}};
    size_t only = ts_random_below(sizeof settings / sizeof *settings);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (!ts_is_long() && i != only) continue;
        stint_sampling with = settings[i];
        with.seed = n_samples;
        struct counts plain = count(&settings[i], 0), drafted = count(&with, 1);
        double d = distance(plain.of, drafted.of);
        print_message("setting %zu: %g deviations; %zu drafts\n", i, d, drafted.drafted);
        assert_true(drafted.drafted > n_samples / 2);
        if (!(d < accepted)) fail_msg("setting %zu: %g deviations", i, d);
        free(plain.of);
        free(drafted.of);
    }
}

// The same test tells temperatures apart that differ by a quarter, in the long mode by 15 %.
static void another_distribution_is_noticed(void **state) {
    (void)state;
    const float other = ts_is_long() ? 1.15f : 1.25f;
    const stint_sampling colder = {.size = sizeof colder, .temperature = 1.0f},
                         warmer = {.size = sizeof warmer, .temperature = other, .seed = n_samples};
    struct counts a = count(&colder, 0), b = count(&warmer, 1);
    double d = distance(a.of, b.of);
    print_message("another temperature: %g deviations\n", d);
    if (!(d > told_apart)) fail_msg("%g deviations", d);
    free(a.of);
    free(b.of);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(drafts_keep_the_distribution),
                                       cmocka_unit_test(another_distribution_is_noticed)};
    return cmocka_run_group_tests(tests, open_model, close_model);
}
