// SPDX-License-Identifier: Apache-2.0
// The sampler on hand-made logits: what each setting keeps, and how often it is drawn.
#include "generate/sample.h"

#include "base/cpu.h"
#include "base/random.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { VOCAB = 1000 };

static float logits[VOCAB];
static struct st_candidate candidates[VOCAB];
static int32_t history[64];

static struct st_sampler make(void) {
    return (struct st_sampler){.elementwise = st_elementwise_select(st_cpu_flags()),
                               .candidates = candidates,
                               .vocab = VOCAB,
                               .ids = history};
}

// Probabilities fall by half from token 0 on: 1/2, 1/4, ...
static void halving_logits(void) {
    for (int i = 0; i < VOCAB; i++) logits[i] = -logf(2.0f) * (float)(i + 1);
}

static int draws[VOCAB];

static void draw_many(const stint_sampling *sampling, int n) {
    struct st_sampler s = make();
    memset(draws, 0, sizeof draws);
    for (int i = 0; i < n; i++) {
        halving_logits();
        draws[st_sample(&s, sampling, st_random_draw(1, (uint64_t)i), logits)]++;
    }
}

static void assert_share(int id, double wanted, int n) {
    double got = (double)draws[id] / n;
    if (fabs(got - wanted) > 0.03) fail_msg("token %d: share %.3f, expected %.3f", id, got, wanted);
}

static void greedy_takes_the_first_of_equals(void **state) {
    (void)state;
    struct st_sampler s = make();
    memset(logits, 0, sizeof logits);
    logits[17] = logits[900] = 3.0f;
    assert_int_equal(st_sample(&s, NULL, 0.9, logits), 17);
}

static void temperature_one_draws_the_distribution(void **state) {
    (void)state;
    draw_many(&(stint_sampling){.temperature = 1.0f}, 4000);
    assert_share(0, 0.5, 4000);
    assert_share(1, 0.25, 4000);
    assert_share(2, 0.125, 4000);
}

static void temperature_half_squares_it(void **state) {
    (void)state;
    draw_many(&(stint_sampling){.temperature = 0.5f}, 4000);
    assert_share(0, 0.75, 4000);
    assert_share(1, 0.1875, 4000);
}

static void top_k_keeps_k(void **state) {
    (void)state;
    draw_many(&(stint_sampling){.temperature = 1.0f, .top_k = 2}, 3000);
    assert_share(0, 2.0 / 3.0, 3000);
    assert_share(1, 1.0 / 3.0, 3000);
    assert_int_equal(draws[0] + draws[1], 3000);
}

static void top_p_keeps_the_smallest_set_that_reaches_it(void **state) {
    (void)state;
    draw_many(&(stint_sampling){.temperature = 1.0f, .top_p = 0.7f}, 2000);
    assert_int_equal(draws[0] + draws[1], 2000);
    assert_true(draws[1] > 0);
}

static void top_p_works_where_nothing_stands_out(void **state) {
    (void)state;
    struct st_sampler s = make();
    int seen = 0;
    memset(draws, 0, sizeof draws);
    for (int i = 0; i < 4000; i++) {
        memset(logits, 0, sizeof logits);
        stint_sampling sampling = {.temperature = 1.0f, .top_p = 0.5f};
        int32_t id = st_sample(&s, &sampling, st_random_draw(2, (uint64_t)i), logits);
        seen += draws[id]++ == 0;
        assert_true(id < VOCAB / 2); // equals are taken in order of their ids
    }
    assert_true(seen > 400);
}

static void min_p_is_relative_to_the_best(void **state) {
    (void)state;
    draw_many(&(stint_sampling){.temperature = 1.0f, .min_p = 0.2f}, 2000);
    assert_int_equal(draws[0] + draws[1] + draws[2], 2000);
    assert_true(draws[2] > 0);
}

// XTC as its author describes it: sort, then drop the head of the list but for its last token.
static size_t reference_xtc(const float *given, size_t n, double threshold, bool *kept) {
    size_t order[VOCAB], n_head = 0;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && given[order[at - 1]] < given[i]; at--) order[at] = order[at - 1];
        order[at] = i;
        sum += exp((double)given[i]);
    }
    while (n_head < n && exp((double)given[order[n_head]]) / sum >= threshold) n_head++;
    for (size_t i = 0; i < n; i++) kept[order[i]] = n_head < 2 || i + 1 >= n_head;
    return n_head < 2 ? n : n - n_head + 1;
}

static void xtc_keeps_what_the_reference_keeps(void **state) {
    (void)state;
    enum { N = 12, DRAWS = 300 };
    struct st_sampler s = make();
    s.vocab = N;
    for (uint64_t round = 0; round < 60; round++) {
        float given[N];
        bool kept[N], seen[N] = {false};
        for (uint64_t i = 0; i < N; i++)
            given[i] = 3.0f * (float)st_random_draw(round, i) + (i == 0 && round % 3 == 0);
        double threshold = 0.02 + 0.3 * st_random_draw(round, N);
        size_t n_kept = reference_xtc(given, N, (double)(float)threshold, kept), n_seen = 0;
        stint_sampling sampling = {
            .temperature = 1.0f, .xtc_probability = 1.0f, .xtc_threshold = (float)threshold};
        for (int i = 0; i < DRAWS; i++) {
            memcpy(logits, given, sizeof given);
            int32_t id = st_sample(&s, &sampling, (i + 0.5) / DRAWS, logits);
            assert_true(kept[id]);
            n_seen += !seen[id];
            seen[id] = true;
        }
        assert_int_equal(n_seen, n_kept); // each has more than 1/300 here
    }
}

static void xtc_applies_as_often_as_asked(void **state) {
    (void)state;
    struct st_sampler s = make();
    stint_sampling sampling = {.temperature = 1.0f, .xtc_probability = 0.3f, .xtc_threshold = 0.2f};
    memset(draws, 0, sizeof draws);
    for (uint64_t i = 0; i < 4000; i++) {
        s.n_generated = i;
        halving_logits();
        draws[st_sample(&s, &sampling, st_random_draw(0, i), logits)]++;
    }
    assert_share(0, 0.7 * 0.5, 4000); // otherwise 1/4 of 1/2 is left
    assert_share(1, 0.7 * 0.25 + 0.3 * 0.5, 4000);
}

static void xtc_leaves_a_lone_top_choice(void **state) {
    (void)state;
    draw_many(
        &(stint_sampling){.temperature = 1.0f, .xtc_probability = 1.0f, .xtc_threshold = 0.3f},
        2000);
    assert_share(0, 0.5, 2000);
}

// DRY as its author wrote it (text-generation-webui, DRYLogitsProcessor), but for the cap of 1e6.
static void reference_dry(const stint_sampling *p, int breaker, const int32_t *ids, int n,
                          float *to) {
    int longest[VOCAB] = {0};
    if (ids[n - 1] == breaker) return;
    for (int i = 0; i + 1 < n; i++) {
        if (ids[i] != ids[n - 1] || ids[i + 1] == breaker) continue;
        int length = 1;
        while (i - length >= 0 && ids[i - length] == ids[n - 1 - length] &&
               ids[i - length] != breaker)
            length++;
        if (length > longest[ids[i + 1]]) longest[ids[i + 1]] = length;
    }
    for (int id = 0; id < VOCAB; id++) {
        int beyond = longest[id] - (int)p->dry_allowed_length;
        if (longest[id] == 0 || beyond < 0) continue;
        to[id] -= (float)fmin(1e6, (double)p->dry_multiplier * pow((double)p->dry_base, beyond));
    }
}

// Random texts of `kinds` tokens; kinds[0] is the breaker if the sampler has a tokenizer.
static void compare_dry(struct st_sampler *s, const int32_t kinds[5]) {
    int n_penalised = 0, breaker = s->tokenizer ? kinds[0] : -1;
    for (uint64_t round = 0; round < 400; round++) {
        static float expected[VOCAB];
        int n = 1 + (int)(st_random_draw(round, 1) * 63), skipped = 0;
        int n_kinds = 1 + (int)(st_random_draw(round, 2) * 4);
        stint_sampling p = {.dry_multiplier = 0.8f,
                            .dry_base = round % 3 ? 1.0f + 2.0f * (float)(round % 7) : 1.0f,
                            .dry_allowed_length = 1 + (uint32_t)(round % 4),
                            .dry_penalty_last_n = round % 5 ? 0 : 20};
        for (int i = 0; i < n; i++)
            history[i] = kinds[(int)(st_random_draw(round, 3 + (uint64_t)i) * n_kinds)];
        if (p.dry_penalty_last_n && n > 20) skipped = n - 20;
        for (int i = 0; i < VOCAB; i++) expected[i] = logits[i] = -(float)(i % 7);
        float before = expected[kinds[1]];
        reference_dry(&p, breaker, history + skipped, n - skipped, expected);
        s->n_ids = (size_t)n;
        st_sample(s, &p, 0.0, logits);
        assert_memory_equal(logits, expected, sizeof expected);
        n_penalised += expected[kinds[1]] != before;
    }
    assert_true(n_penalised > 30);
}

static void dry_is_as_the_reference(void **state) {
    (void)state;
    struct st_sampler s = make();
    compare_dry(&s, (const int32_t[]){0, 1, 2, 3, 4});
}

static void dry_ends_repetitions_at_breakers(void **state) {
    (void)state;
    struct st_sampler s = make();
    struct stint_tokenizer *tokenizer = NULL;
    assert_int_equal(st_tokenizer_open(ts_source("models/novels-10m"), &tokenizer), STINT_OK);
    char text[ST_PIECE_MAX_BYTES];
    int32_t words[4] = {0};
    int n_words = 0;
    for (int32_t id = 0; id < VOCAB && n_words < 4; id++) {
        size_t n = st_tokenizer_piece(tokenizer, id, text);
        bool plain = n > 2;
        for (size_t i = 0; i < n; i++) plain = plain && text[i] >= 'a' && text[i] <= 'z';
        if (plain) words[n_words++] = id;
    }
    assert_int_equal(n_words, 4);
    s.tokenizer = tokenizer;
    const char *const breakers[] = {"\"", ":", "*"};
    for (size_t i = 0; i < 3; i++) {
        int32_t id = st_tokenizer_find(tokenizer, breakers[i]);
        assert_true(id >= 0 && id < VOCAB);
        compare_dry(&s, (const int32_t[]){id, words[0], words[1], words[2], words[3]});
    }
    st_tokenizer_close(tokenizer);
}

static void dry_has_the_usual_defaults(void **state) {
    (void)state;
    struct st_sampler s = make();
    const int32_t ids[] = {1, 2, 3, 4, 1, 2, 3};
    memcpy(history, ids, sizeof ids);
    memset(logits, 0, sizeof logits);
    s.n_ids = 7;
    st_sample(&s, &(stint_sampling){.dry_multiplier = 1.0f}, 0.0, logits);
    assert_true(logits[4] == -1.75f); // a repetition of 3, where 2 are allowed
    assert_true(logits[1] == 0.0f && logits[2] == 0.0f && logits[3] == 0.0f);
}

static void repeat_penalty_makes_recent_tokens_rarer(void **state) {
    (void)state;
    struct st_sampler s = make();
    memset(logits, 0, sizeof logits);
    logits[3] = 2.0f;
    logits[4] = 1.5f;
    history[0] = history[1] = 3;
    s.n_ids = 2;
    stint_sampling sampling = {.repeat_penalty = 2.0f};
    assert_int_equal(st_sample(&s, &sampling, 0.0, logits), 4);
    assert_true(logits[3] == 1.0f); // once, however often it occurred
    logits[5] = -1.0f;
    history[0] = 5;
    st_sample(&s, &sampling, 0.0, logits);
    assert_true(logits[5] == -2.0f);
}

static void penalties_count_what_was_generated(void **state) {
    (void)state;
    struct st_sampler s = make();
    memset(logits, 0, sizeof logits);
    int32_t ids[] = {7, 8, 7, 9}; // the first is the prompt's
    memcpy(history, ids, sizeof ids);
    s.n_ids = 4;
    s.n_generated = 3;
    stint_sampling sampling = {.presence_penalty = 1.0f, .frequency_penalty = 0.25f};
    st_sample(&s, &sampling, 0.0, logits);
    assert_true(logits[7] == -1.25f && logits[8] == -1.25f && logits[9] == -1.25f);
    memset(logits, 0, sizeof logits);
    s.n_generated = 4;
    st_sample(&s, &sampling, 0.0, logits);
    assert_true(logits[7] == -1.5f); // twice
    assert_true(logits[10] == 0.0f);
}

// ---- Against all tokens sorted, without anything that saves work

static int by_id(const void *x, const void *y) {
    return ((const struct st_candidate *)x)->id - ((const struct st_candidate *)y)->id;
}

static int by_weight(const void *x, const void *y) {
    const struct st_candidate *a = x, *b = y;
    if (a->p != b->p) return a->p > b->p ? -1 : 1;
    return a->id - b->id;
}

static int32_t reference_sample(const stint_sampling *p, double draw) {
    static struct st_candidate c[VOCAB];
    float best = -INFINITY;
    size_t n = VOCAB, kept = 0;
    double sum = 0.0, at = 0.0;
    for (size_t i = 0; i < n; i++) best = fmaxf(best, logits[i]);
    for (size_t i = 0; i < n; i++)
        c[i] = (struct st_candidate){expf((logits[i] - best) / p->temperature), (int32_t)i};
    qsort(c, n, sizeof *c, by_weight);
    if (p->top_k) n = p->top_k < n ? p->top_k : n;
    if (!(p->top_p > 0.0f)) qsort(c, n, sizeof *c, by_id);
    for (size_t i = 0; i < n; i++)
        if (c[i].p >= p->min_p) c[kept++] = c[i];
    for (size_t i = 0; i < kept; i++) sum += (double)c[i].p;
    if (p->top_p > 0.0f) {
        size_t all = kept;
        for (kept = 0; kept < all && at < (double)p->top_p * sum;) at += (double)c[kept++].p;
    }
    sum = at = 0.0;
    for (size_t i = 0; i < kept; i++) sum += (double)c[i].p;
    for (size_t i = 0; i < kept; i++)
        if ((at += (double)c[i].p) > draw * sum) return c[i].id;
    return c[kept - 1].id;
}

// With equal logits, and with tokens that are not allowed, up to all but a few.
static void what_is_left_is_as_the_reference_has_it(void **state) {
    (void)state;
    static const uint32_t ks[] = {0, 2, 3, 15, 16, 40, 600, VOCAB, 5000};
    struct st_sampler s = make();
    for (int round = 0; round < 3000; round++) {
        uint32_t allowed = ts_random_below(4) ? VOCAB : 1 + ts_random_below(30);
        float step = ts_random_below(2) ? 0.0f : 0.5f, spread = ts_random_float(0.1f, 8.0f);
        stint_sampling p = {.size = sizeof p,
                            .temperature = ts_random_float(0.2f, 1.7f),
                            .top_k = ks[ts_random_below(sizeof ks / sizeof *ks)],
                            .min_p = ts_random_below(2) ? 0.0f : ts_random_float(0.0f, 0.2f),
                            .top_p = ts_random_below(2) ? 0.0f : ts_random_float(0.5f, 0.99f)};
        for (int i = 0; i < VOCAB; i++) {
            logits[i] = ts_random_float(-spread, spread);
            if (step > 0.0f) logits[i] = step * roundf(logits[i] / step);
            if (ts_random_below(VOCAB) >= allowed) logits[i] = -INFINITY;
        }
        logits[ts_random_below(VOCAB)] = 0.0f;
        double draw = st_random_draw(7, (uint64_t)round);
        int32_t wanted = reference_sample(&p, draw);
        assert_int_equal(st_sample(&s, &p, draw, logits), wanted);
    }
}

static void what_is_impossible_is_never_drawn(void **state) {
    (void)state;
    struct st_sampler s = make();
    stint_sampling sampling = {.temperature = 1.0f};
    const double ends[] = {0.0, 0.5, 0x1.fffffffffffffp-1};
    for (int i = 0; i < 3; i++) {
        for (int v = 0; v < VOCAB; v++) logits[v] = -INFINITY;
        logits[3] = logits[500] = -7.0f;
        int32_t id = st_sample(&s, &sampling, ends[i], logits);
        assert_true(id == 3 || id == 500);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_first_of_equals),
        cmocka_unit_test(temperature_one_draws_the_distribution),
        cmocka_unit_test(temperature_half_squares_it),
        cmocka_unit_test(top_k_keeps_k),
        cmocka_unit_test(top_p_keeps_the_smallest_set_that_reaches_it),
        cmocka_unit_test(top_p_works_where_nothing_stands_out),
        cmocka_unit_test(min_p_is_relative_to_the_best),
        cmocka_unit_test(xtc_keeps_what_the_reference_keeps),
        cmocka_unit_test(xtc_applies_as_often_as_asked),
        cmocka_unit_test(xtc_leaves_a_lone_top_choice),
        cmocka_unit_test(dry_is_as_the_reference),
        cmocka_unit_test(dry_ends_repetitions_at_breakers),
        cmocka_unit_test(dry_has_the_usual_defaults),
        cmocka_unit_test(repeat_penalty_makes_recent_tokens_rarer),
        cmocka_unit_test(penalties_count_what_was_generated),
        cmocka_unit_test(what_is_left_is_as_the_reference_has_it),
        cmocka_unit_test(what_is_impossible_is_never_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
