// SPDX-License-Identifier: Apache-2.0
// Answers with drafts are those without, bit for bit, however tokens are picked; and what is
// sampled has the same distribution.
#include "generate/rows.h"

#include "base/random.h"
#include "generate/sample.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CONTEXT = 256, MAX_IDS = 64, N_DRAFTS = 15 };

// Whose drafts are computed whatever they cost.
static stint_session *open_session(const stint_model *m, uint32_t n_drafts, const char *schedule) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = CONTEXT,
                               .schedule = schedule,
                               .n_sequences = 2,
                               .n_drafts = n_drafts};
    if (stint_session_open(m, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    s->drafting.costs.always = true;
    return s;
}

struct heard {
    char text[4096];
    int32_t ids[MAX_IDS];
    float logprobs[MAX_IDS];
    size_t n, stop_at;
    size_t length; // of the sequence, when the last token came
    stint_session *session;
    stint_generation_result result;
};

static bool hear(void *context, const stint_piece *piece) {
    struct heard *h = context;
    snprintf(h->text + strlen(h->text), sizeof h->text - strlen(h->text), "%.*s",
             (int)piece->n_bytes, piece->text);
    if (piece->id < 0) return true;
    h->ids[h->n] = piece->id;
    h->logprobs[h->n++] = piece->logprob;
    h->length = stint_session_length(h->session, 1);
    return h->n != h->stop_at;
}

static void answer(stint_session *s, const int32_t *prompt, size_t n_prompt,
                   stint_generation generation, struct heard *h) {
    size_t stop_at = h->stop_at;
    memset(h, 0, sizeof *h);
    h->stop_at = stop_at;
    h->session = s;
    h->result.size = sizeof h->result;
    generation.size = sizeof generation;
    generation.text = hear;
    generation.context = h;
    generation.sequence = 1;
    if (generation.n_tokens == 0) generation.n_tokens = MAX_IDS;
    assert_int_equal(stint_session_truncate(s, 1, 0), STINT_OK);
    if (stint_generate(s, prompt, n_prompt, &generation, NULL, 0, &h->result) != STINT_OK)
        fail_msg("%s", stint_error_text());
    assert_int_equal(h->n, h->result.generated_tokens);
}

// A text whose parts occur more than once.
static size_t make_prompt(const stint_model *m, int32_t *ids) {
    size_t n = 30 + ts_random_below(60);
    for (size_t i = 0; i < n; i++)
        ids[i] =
            i >= 12 && ts_random_below(8) ? ids[i - 12] : (int32_t)ts_random_below(m->config.vocab);
    return n;
}

static void assert_same(const struct heard *plain, const struct heard *drafted, const char *what) {
    const stint_generation_result *p = &plain->result, *d = &drafted->result;
    if (plain->n != drafted->n || memcmp(plain->ids, drafted->ids, sizeof plain->ids) != 0 ||
        memcmp(plain->logprobs, drafted->logprobs, sizeof plain->logprobs) != 0 ||
        strcmp(plain->text, drafted->text) != 0)
        fail_msg("%s: the answer is another one", what);
    assert_int_equal(plain->length, drafted->length);
    assert_int_equal(stint_session_length(plain->session, 1),
                     stint_session_length(drafted->session, 1));
    assert_int_equal(p->stop_reason, d->stop_reason);
    assert_true(fabs(p->average_bits - d->average_bits) < 1e-9);
    assert_int_equal(p->drafted_tokens, 0);
    assert_true(d->accepted_tokens <= d->drafted_tokens);
    assert_int_equal(p->decode_steps, d->decode_steps + d->accepted_tokens);
}

// Returns how many drafts were taken.
static size_t compare(const stint_model *m, const char *what, const char *schedule,
                      stint_generation generation, int n_rounds, size_t stop_at) {
    stint_session *plain = open_session(m, 0, schedule);
    stint_session *drafting = open_session(m, N_DRAFTS, schedule);
    static struct heard a, b;
    size_t n_taken = 0;
    for (int i = 0; i < n_rounds; i++) {
        int32_t prompt[100];
        size_t n = make_prompt(m, prompt);
        a.stop_at = b.stop_at = stop_at;
        answer(plain, prompt, n, generation, &a);
        answer(drafting, prompt, n, generation, &b);
        assert_same(&a, &b, what);
        n_taken += b.result.accepted_tokens;
    }
    stint_session_close(plain);
    stint_session_close(drafting);
    return n_taken;
}

static void the_text_is_that_of_plain_decoding(void **state) {
    (void)state;
    size_t n_taken = 0;
    for (int i = 0; i < TS_KINDS; i++)
        n_taken += compare(ts_kinds[i], ts_kind_names[i], NULL, (stint_generation){0}, 2, 0);
    n_taken += compare(ts_kinds[2], "3 bits", "uniform:3", (stint_generation){0}, 2, 0);
    assert_true(n_taken > 0);
}

static void so_it_is_however_tokens_are_picked(void **state) {
    (void)state;
    static const char *const stops[] = {" the", "ing "};
    stint_sampling sampling = {.size = sizeof sampling,
                               .temperature = 0.7f,
                               .top_p = 0.9f,
                               .repeat_penalty = 1.1f,
                               .frequency_penalty = 0.1f,
                               .seed = ts_random_below(1000)};
    stint_sampling cold = {.size = sizeof cold, .temperature = 0.2f, .top_k = 3};
    stint_sampling dry = {.size = sizeof dry, .dry_multiplier = 0.8f, .xtc_probability = 0.5f};
    const stint_generation generations[] = {
        {.sampling = &sampling},
        {.sampling = &cold, .logprobs = true, .n_top = 3},
        {.sampling = &dry},
        {.stops = stops, .n_stops = 2},
        {.json_schema = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}"},
        {.ignore_eos = true, .n_tokens = 7},
    };
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++) {
        char what[32];
        snprintf(what, sizeof what, "generation %zu", i);
        compare(ts_kinds[i % TS_KINDS], what, NULL, generations[i], 2, 0);
    }
    compare(ts_kinds[0], "stopped", NULL, (stint_generation){0}, 2, 9);
}

// A schedule switches in the middle of what might be drafted.
static void precision_switches_where_it_should(void **state) {
    (void)state;
    stint_precision p = {.size = sizeof p, .prefill = 8, .n_steps = 3};
    p.steps[0].bits = 8;
    p.steps[1].bits = 4;
    p.steps[1].start = 5;
    p.steps[2].bits = 2;
    p.steps[2].start = 17;
    stint_session *plain = open_session(ts_kinds[2], 0, NULL);
    stint_session *drafting = open_session(ts_kinds[2], N_DRAFTS, NULL);
    assert_int_equal(stint_session_set_precision(plain, &p), STINT_OK);
    assert_int_equal(stint_session_set_precision(drafting, &p), STINT_OK);
    static struct heard a, b;
    int32_t prompt[100];
    size_t n = make_prompt(ts_kinds[2], prompt);
    answer(plain, prompt, n, (stint_generation){.n_tokens = 40}, &a);
    answer(drafting, prompt, n, (stint_generation){.n_tokens = 40}, &b);
    assert_same(&a, &b, "schedule");
    stint_session_close(plain);
    stint_session_close(drafting);
}

static void the_context_may_fill_up(void **state) {
    (void)state;
    int32_t prompt[CONTEXT];
    static struct heard a, b;
    stint_session *plain = open_session(ts_kinds[0], 0, NULL);
    stint_session *drafting = open_session(ts_kinds[0], N_DRAFTS, NULL);
    for (size_t n = CONTEXT - 6; n <= CONTEXT; n++) {
        for (size_t i = 0; i < n; i++) prompt[i] = (int32_t)(300 + i % 9);
        answer(plain, prompt, n, (stint_generation){.ignore_eos = true}, &a);
        answer(drafting, prompt, n, (stint_generation){.ignore_eos = true}, &b);
        assert_int_equal(a.result.stop_reason, STINT_STOP_CONTEXT);
        assert_same(&a, &b, "full context");
    }
    stint_session_close(plain);
    stint_session_close(drafting);
}

// Rows that follow each other in a sequence give what steps one after another give.
static void rows_are_steps(void **state) {
    (void)state;
    for (int k = 0; k < TS_KINDS; k++) {
        stint_session *s = open_session(ts_kinds[k], N_DRAFTS, NULL);
        size_t vocab = ts_kinds[k]->config.vocab, n_prompt = 20, n = 5 + ts_random_below(12);
        int32_t ids[64];
        const uint32_t sequences[STINT_MAX_STEP_ROWS] = {0};
        float *wanted = malloc(2 * STINT_MAX_STEP_ROWS * vocab * sizeof *wanted);
        float *got = wanted + STINT_MAX_STEP_ROWS * vocab;
        for (int i = 0; i < 64; i++) ids[i] = (int32_t)ts_random_below(vocab);
        assert_int_equal(stint_session_eval(s, 0, ids, n_prompt, false, NULL), STINT_OK);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(
                stint_session_eval(s, 0, ids + n_prompt + i, 1, false, wanted + i * vocab),
                STINT_OK);
        assert_int_equal(stint_session_truncate(s, 0, n_prompt), STINT_OK);
        assert_int_equal(st_session_step(s, 8, sequences, ids + n_prompt, n, got), STINT_OK);
        assert_memory_equal(got, wanted, n * vocab * sizeof *got);
        assert_int_equal(stint_session_length(s, 0), n_prompt + n);
        assert_int_equal(st_session_step(s, 8, sequences, ids, 16, NULL), STINT_OK);
        free(wanted);
        stint_session_close(s);
    }
}

static void settings_have_a_range(void **state) {
    (void)state;
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o, .n_drafts = STINT_MAX_STEP_ROWS};
    assert_int_equal(stint_session_open(ts_kinds[0], &o, &s), STINT_E_ARG);
}

// ---- The distribution of two tokens in a row

enum { VOCAB_MAX = 4096, MAX_CELLS = 100 };

static int n_samples(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) // which look at the code alone
    return 2000;
#else
    return (int)ts_how_many(2000, 20000, 20000);
#endif
}

struct experiment {
    stint_session *s;
    const int32_t *history;
    size_t n_history;
    float *first;              // [vocab] logits
    float *second[VOCAB_MAX];  // [vocab] behind each first token, of steps of one row
    float *drafted[VOCAB_MAX]; // the same behind drafts, of steps with both
    int32_t draft;             // of every sample, if `low` is NULL
    float *low;                // [vocab] logits of fewer bits, from which each sample drafts
    struct st_candidate *candidates;
    float *scratch; // [vocab]
};

static int32_t pick(struct experiment *e, const stint_sampling *sampling, const float *logits,
                    const int32_t *ids, size_t n_ids, size_t n_generated) {
    size_t vocab = e->s->model->config.vocab;
    struct st_sampler sampler = {.elementwise = e->s->kernels.elementwise,
                                 .candidates = e->candidates,
                                 .vocab = vocab,
                                 .ids = ids,
                                 .n_ids = n_ids,
                                 .n_generated = n_generated};
    memcpy(e->scratch, logits, vocab * sizeof *logits);
    return st_sample(&sampler, sampling, st_random_draw(sampling->seed, n_generated), e->scratch);
}

static const float *behind(struct experiment *e, int32_t id) {
    size_t vocab = e->s->model->config.vocab;
    if (e->second[id]) return e->second[id];
    e->second[id] = malloc(vocab * sizeof(float));
    assert_int_equal(stint_session_step(e->s, &(uint32_t){0}, &id, 1, e->second[id]), STINT_OK);
    assert_int_equal(stint_session_truncate(e->s, 0, e->n_history), STINT_OK);
    return e->second[id];
}

// The same of a step in which the token was a draft behind the prompt's last one.
static const float *behind_draft(struct experiment *e, int32_t id) {
    size_t vocab = e->s->model->config.vocab;
    if (e->drafted[id]) return e->drafted[id];
    const int32_t ids[] = {e->history[e->n_history - 1], id};
    float *both = malloc(2 * vocab * sizeof *both);
    assert_int_equal(stint_session_truncate(e->s, 0, e->n_history - 1), STINT_OK);
    assert_int_equal(st_session_step(e->s, 8, (uint32_t[]){0, 0}, ids, 2, both), STINT_OK);
    assert_int_equal(stint_session_truncate(e->s, 0, e->n_history), STINT_OK);
    assert_memory_equal(both, e->first, vocab * sizeof *both);
    e->drafted[id] = malloc(vocab * sizeof *both);
    memcpy(e->drafted[id], both + vocab, vocab * sizeof *both);
    free(both);
    return e->drafted[id];
}

// Counts of pairs; those beyond the cells are one.
struct cells {
    int64_t pairs[MAX_CELLS];
    size_t n;
    double counts[2][MAX_CELLS + 1];
};

static void count(struct cells *c, int which, int32_t first, int32_t second) {
    int64_t pair = (int64_t)first << 32 | second;
    size_t i = 0;
    while (i < c->n && c->pairs[i] != pair) i++;
    if (i == c->n && c->n < MAX_CELLS) c->pairs[c->n++] = pair;
    c->counts[which][i]++;
}

// Of two samples of the same size; in standard deviations above what equal distributions give.
static double chi_square(const struct cells *c) {
    double sum = 0.0, freedom = -1.0, rest[2] = {0};
    for (size_t i = 0; i <= c->n; i++) {
        double a = c->counts[0][i], b = c->counts[1][i];
        if (a + b < 20.0) { // rare ones together
            rest[0] += a;
            rest[1] += b;
            continue;
        }
        sum += (a - b) * (a - b) / (a + b);
        freedom += 1.0;
    }
    if (rest[0] + rest[1] >= 20.0) {
        sum += (rest[0] - rest[1]) * (rest[0] - rest[1]) / (rest[0] + rest[1]);
        freedom += 1.0;
    }
    return freedom > 0.0 ? (sum - freedom) / sqrt(2.0 * freedom) : 0.0;
}

// Adds how many samples took a draft, and how many cells were compared.
static void compare_distributions(struct experiment *e, stint_sampling sampling, size_t *n_drafted,
                                  size_t *n_cells) {
    static struct cells cells;
    int32_t ids[CONTEXT];
    uint64_t seed = ts_random();
    memset(&cells, 0, sizeof cells);
    memcpy(ids, e->history, e->n_history * sizeof *ids);
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < n_samples(); i++) {
            sampling.seed = seed++;
            int32_t first = pick(e, &sampling, e->first, ids, e->n_history, 0), draft = e->draft;
            if (e->low) draft = pick(e, &sampling, e->low, ids, e->n_history, 0);
            bool taken = which == 1 && first == draft;
            const float *logits = taken ? behind_draft(e, draft) : behind(e, first);
            ids[e->n_history] = first;
            count(&cells, which, first, pick(e, &sampling, logits, ids, e->n_history + 1, 1));
            *n_drafted += taken;
        }
    *n_cells += cells.n;
    double deviations = chi_square(&cells);
    if (!(deviations < 6.0)) fail_msg("chi-square is %g deviations too large", deviations);
}

// Whether drafts behind this prompt are right now and then: both precisions prefer the same token.
static bool read_prompt(struct experiment *e, unsigned draft_bits) {
    const stint_sampling greedy = {.size = sizeof greedy};
    const uint32_t sequence = 0;
    const size_t n = e->n_history - 1;
    const int32_t *last = &e->history[n];
    int32_t low = -1;
    assert_int_equal(stint_session_truncate(e->s, 0, 0), STINT_OK);
    assert_int_equal(stint_session_eval(e->s, 0, e->history, n, false, NULL), STINT_OK);
    if (draft_bits) {
        assert_int_equal(st_session_step(e->s, draft_bits, &sequence, last, 1, e->low), STINT_OK);
        assert_int_equal(stint_session_truncate(e->s, 0, n), STINT_OK);
        low = pick(e, &greedy, e->low, e->history, e->n_history, 0);
    }
    assert_int_equal(st_session_step(e->s, 8, &sequence, last, 1, e->first), STINT_OK);
    e->draft = pick(e, &greedy, e->first, e->history, e->n_history, 0);
    return !draft_bits || low == e->draft;
}

// Of a model, with a draft that is always the same or, from fewer bits, another for each sample.
static void keep_distribution(const stint_model *m, unsigned draft_bits) {
    const stint_sampling settings[] = {
        {.size = sizeof *settings, .temperature = 1.0f, .top_k = 6},
        {.size = sizeof *settings, .temperature = 0.7f, .top_k = 9, .top_p = 0.9f},
        {.size = sizeof *settings,
         .temperature = 1.2f,
         .top_k = 8,
         .repeat_penalty = 1.3f,
         .frequency_penalty = 0.5f},
    };
    size_t vocab = m->config.vocab;
    assert_true(vocab <= VOCAB_MAX);
    struct experiment *e = calloc(1, sizeof *e);
    int32_t prompt[100];
    e->s = open_session(m, N_DRAFTS, NULL);
    e->history = prompt;
    float *floats = e->first = malloc(3 * vocab * sizeof *floats);
    e->scratch = floats + vocab;
    e->candidates = st_sampler_candidates(e->s->draws);
    if (draft_bits) e->low = floats + 2 * vocab;
    do e->n_history = make_prompt(m, prompt);
    while (!read_prompt(e, draft_bits));
    size_t n_drafted = 0, n_cells = 0;
    for (int i = 0; i < 3; i++) compare_distributions(e, settings[i], &n_drafted, &n_cells);
    assert_true(n_drafted > (size_t)n_samples() / 50 && n_cells > 12);
    for (size_t i = 0; i < vocab; i++) {
        free(e->second[i]);
        free(e->drafted[i]);
    }
    free(floats);
    stint_session_close(e->s);
    free(e);
}

static void sampling_keeps_its_distribution(void **state) {
    (void)state;
    keep_distribution(ts_kinds[0], 0);
}

static void so_it_does_where_fewer_bits_draft(void **state) {
    (void)state;
    keep_distribution(ts_kinds[2], 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_that_of_plain_decoding),
        cmocka_unit_test(so_it_is_however_tokens_are_picked),
        cmocka_unit_test(precision_switches_where_it_should),
        cmocka_unit_test(the_context_may_fill_up),
        cmocka_unit_test(rows_are_steps),
        cmocka_unit_test(settings_have_a_range),
        cmocka_unit_test(sampling_keeps_its_distribution),
        cmocka_unit_test(so_it_does_where_fewer_bits_draft),
    };
    return cmocka_run_group_tests(tests, ts_kinds_open, ts_kinds_close);
}
