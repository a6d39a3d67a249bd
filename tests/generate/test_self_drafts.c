// SPDX-License-Identifier: Apache-2.0
// Answers whose tokens fewer bits of the weights drafted are those without drafts, bit for bit: of
// every precision, however tokens are picked, with recurrent state, and in bounded memory.
#include "generate/self_drafts.h"

#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { CONTEXT = 400, N_PROMPT = 40, N_IDS = 40, MAX_VOCAB = 4096 };

static stint_model *nested, *hybrid, *lazy; // novels-2; a delta net; the first one once more
static stint_model *floats;                 // the checkpoint with the first one's nested weights

static int open_models(void **state) {
    (void)state;
    static int32_t ids[128];
    char path[600];
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 200, .bits_low = 2, .bits_high = 4};
    stint_model_options on_demand = {.size = sizeof on_demand, .lazy = true};
    nested = ts_package(ts_built("models/novels-2"), "nested", &o);
    snprintf(path, sizeof path, "%s/nested.stint", ts_temp_folder());
    if (stint_model_open(path, &on_demand, &lazy) != STINT_OK) fail_msg("%s", stint_error_text());
    stint_model_options beside = {.size = sizeof beside, .nested = path};
    if (stint_model_open(ts_built("models/novels-2"), &beside, &floats) != STINT_OK)
        fail_msg("%s", stint_error_text());
    for (int i = 0; i < 128; i++) ids[i] = (int32_t)ts_random_below(48);
    o.ids = ids;
    o.n_ids = 128;
    hybrid = ts_package(ts_source("tests/golden/models/qwen35"), "hybrid", &o);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    stint_model_close(nested);
    stint_model_close(lazy);
    stint_model_close(hybrid);
    stint_model_close(floats);
    return 0;
}

struct answer {
    int32_t ids[N_IDS];
    stint_generation_result result;
};

static void generate(stint_session *s, const stint_sampling *sampling, struct answer *a) {
    int32_t prompt[N_PROMPT];
    stint_generation g = {
        .size = sizeof g, .sampling = sampling, .n_tokens = N_IDS, .ignore_eos = true};
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = (int32_t)(3 + (i * i * 31 + 7 * i) % 43);
    memset(a, 0, sizeof *a);
    a->result.size = sizeof a->result;
    assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
    if (stint_generate(s, prompt, N_PROMPT, &g, a->ids, N_IDS, &a->result) != STINT_OK)
        fail_msg("%s", stint_error_text());
    assert_int_equal(stint_session_length(s, 0), N_PROMPT + N_IDS - 1);
}

struct variant {
    const char *schedule;
    uint64_t memory;
    uint32_t n_drafts, draft_bits;
};

static stint_session *open_session(const stint_model *m, const struct variant *v, uint64_t memory) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = CONTEXT,
                               .chunk_len = memory ? 16 : 0, // else its buffers have room for all
                               .schedule = v->schedule,
                               .memory = memory,
                               .n_drafts = v->n_drafts,
                               .draft_bits = v->draft_bits};
    return stint_session_open(m, &o, &s) == STINT_OK ? s : NULL;
}

// The least bound that works: a little below what the refusal of a lower one says.
static uint64_t min_bound(const stint_model *m, const struct variant *v) {
    const uint64_t step = 64 << 10;
    unsigned mib = 0;
    stint_session *s;
    assert_null(open_session(m, v, 1));
    assert_int_equal(sscanf(stint_error_text(), "memory: at least %u MiB", &mib), 1);
    uint64_t bound = (uint64_t)(mib - 2) << 20;
    while (!(s = open_session(m, v, bound))) bound += step;
    stint_session_close(s);
    return bound;
}

static void answer(const stint_model *m, const struct variant *v, const stint_sampling *sampling,
                   struct answer *a) {
    stint_session *s = open_session(m, v, v->memory);
    if (!s) fail_msg("%s", stint_error_text());
    s->drafting.costs.always = true;
    generate(s, sampling, a);
    stint_session_close(s);
}

// Returns how many tokens of the answer fewer bits drafted.
static size_t compare(const stint_model *m, const struct variant *v,
                      const stint_sampling *sampling) {
    static struct answer plain, drafted;
    answer(m, &(struct variant){v->schedule, v->memory, 0, 0}, sampling, &plain);
    answer(m, v, sampling, &drafted);
    if (memcmp(plain.ids, drafted.ids, sizeof plain.ids) != 0)
        fail_msg("%u bits, schedule %s, memory %u: another answer", v->draft_bits,
                 v->schedule ? v->schedule : "none", (unsigned)v->memory);
    const stint_generation_result *p = &plain.result, *d = &drafted.result;
    assert_int_equal(p->self_drafted_tokens, 0);
    assert_int_equal(p->decode_steps, d->decode_steps + d->accepted_tokens);
    assert_true(d->self_accepted_tokens <= d->self_drafted_tokens);
    assert_true(d->self_drafted_tokens <= d->drafted_tokens);
    return d->self_accepted_tokens;
}

static void the_text_is_that_of_plain_decoding(void **state) {
    (void)state;
    const stint_sampling samplings[] = {
        {.size = sizeof *samplings},
        {.size = sizeof *samplings, .temperature = 0.8f, .top_p = 0.9f, .seed = ts_random()},
        {.size = sizeof *samplings, .temperature = 0.5f, .repeat_penalty = 1.2f, .seed = 5},
    };
    const struct variant variants[] = {{NULL, 0, 15, 4},        {NULL, 0, 6, 3},
                                       {NULL, 0, 1, 2},         {"uniform:4", 0, 7, 4},
                                       {"uniform:3", 0, 15, 2}, {"uniform:2", 0, 15, 7}};
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const struct variant *v = &variants[i];
        size_t n = compare(nested, v, &samplings[i % 3]);
        bool lowest = v->schedule && strcmp(v->schedule, "uniform:2") == 0; // nothing below it
        if (lowest ? n > 0 : n == 0) fail_msg("variant %zu: %zu tokens", i, n);
    }
}

static void recurrent_state_goes_back(void **state) {
    (void)state;
    const struct variant most = {NULL, 0, 15, 4}, few = {"uniform:4", 0, 3, 3};
    const stint_sampling warm = {.size = sizeof warm, .temperature = 1.0f, .seed = 11};
    size_t n = compare(hybrid, &most, NULL) + compare(hybrid, &few, &warm);
    assert_true(n > 0);
}

// All weights, INT8 and nested ones, are read on demand or pinned, as the bound has room.
static void a_package_drafts_for_its_checkpoint(void **state) {
    (void)state;
    const stint_sampling warm = {.size = sizeof warm, .temperature = 1.0f, .seed = 3};
    const struct variant exact = {NULL, 0, 15, 4}, fewer = {"uniform:4", 0, 7, 3};
    assert_true(compare(floats, &exact, NULL) > 0);
    assert_true(compare(floats, &exact, &warm) > 0);
    assert_true(compare(floats, &fewer, NULL) > 0);
}

static void memory_may_be_bounded(void **state) {
    (void)state;
    const uint64_t step = 128 << 10;
    struct variant variants[] = {{NULL, 0, 5, 2}, {"uniform:4", 0, 15, 2}};
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        struct variant *v = &variants[i];
        size_t n_right = 0;
        v->memory = min_bound(lazy, v);
        // Some bounds have no room for weights that only draft, or have all others in memory.
        for (int k = 0; k < 9 || (k < 40 && n_right == 0); k++, v->memory += step)
            n_right += compare(lazy, v, NULL);
        if (n_right == 0) fail_msg("variant %zu: nothing was drafted", i);
    }
}

static void precisions_must_be_there(void **state) {
    (void)state;
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o, .n_drafts = 15, .draft_bits = 8};
    assert_int_equal(stint_session_open(nested, &o, &s), STINT_E_ARG);
    o.draft_bits = 3;
    assert_int_equal(stint_session_open(nested, &o, &s), STINT_OK);
    assert_int_equal(st_self_drafts_bits(s, 8), 3);
    assert_int_equal(st_self_drafts_bits(s, 3), 2);
    assert_int_equal(st_self_drafts_bits(s, 2), 0);
    assert_int_equal(st_self_drafts_bits(s, 0), 0); // floats
    stint_session_close(s);
    o.n_drafts = 0;
    assert_int_equal(stint_session_open(nested, &o, &s), STINT_OK);
    assert_int_equal(st_self_drafts_bits(s, 8), 0);
    stint_session_close(s);
}

// Of three drafts the first was picked: it was right, the second wrong, of the third nobody knows.
static void what_was_picked_is_learned(void **state) {
    (void)state;
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o, .n_drafts = 15, .draft_bits = 4};
    assert_int_equal(stint_session_open(nested, &o, &s), STINT_OK);
    struct st_rows rows = {.n_texts = 2, .n = 8};
    rows.texts[0] = (struct st_rows_text){.n = 4, .n_taken = 3}; // an earlier text's
    rows.texts[1] = (struct st_rows_text){.first = 4, .n = 4, .n_taken = 1, .self = true};
    const float margins[] = {0.2f, 1.5f, 8.0f};
    memcpy(rows.margins + 5, margins, sizeof margins);
    double before[3];
    for (int i = 0; i < 3; i++) before[i] = st_self_draft_chance(&s->drafting.selfs[0], margins[i]);
    st_self_drafts_learn(s, &rows);
    assert_true(st_self_draft_chance(&s->drafting.selfs[0], margins[0]) > before[0]);
    assert_true(st_self_draft_chance(&s->drafting.selfs[0], margins[1]) < before[1]);
    assert_true(st_self_draft_chance(&s->drafting.selfs[0], margins[2]) == before[2]);
    rows.texts[1].n_taken = 3; // all were right
    st_self_drafts_learn(s, &rows);
    assert_true(st_self_draft_chance(&s->drafting.selfs[0], margins[2]) > before[2]);
    stint_session_close(s);
}

// How often fewer bits are right, whose steps cost little.
static void know(stint_session *s, double hope) {
    struct st_drafting *d = &s->drafting;
    d->costs = (struct st_draft_costs){.bits = 8, .longest = STINT_MAX_STEP_ROWS, .total = 1e3};
    d->costs.plain[1] = 1.0;
    for (size_t i = 0; i < ST_SELF_WAYS; i++) {
        struct st_self_draft *self = &d->selfs[i];
        *self = (struct st_self_draft){.bits = 4 - (unsigned)i, .target = 8};
        for (int k = 0; k < 3; k++) st_self_draft_measure(self, &d->costs, 1, 0.01);
        for (int k = 0; k < 200; k++)
            st_self_draft_observe(self, 1.5f, (double)(k % 10) < 10.0 * hope);
    }
}

static void fewer_bits_take_the_place_of_doubtful_words(void **state) {
    (void)state;
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o, .n_drafts = 7, .draft_bits = 4, .n_threads = 2};
    assert_int_equal(stint_session_open(nested, &o, &s), STINT_OK);
    const struct {
        double hope, words;
        bool self;
    } cases[] = {{0.9, 0.3, true}, {0.9, 0.99, false}, {0.2, 0.5, false}};
    struct st_generator_options options = {.model = nested};
    struct st_generator_scratch scratch = {.elementwise = s->kernels.elementwise,
                                           .candidates = st_sampler_candidates(s->draws)};
    static struct st_generator g;
    int32_t prompt[N_PROMPT];
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = (int32_t)(3 + i % 43);
    assert_int_equal(st_generator_open(&g, &options), STINT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_rows rows = {.n_texts = 1, .bits = 8, .scratch = &scratch};
        struct st_proposal p = {.ids = {5}, .chances = {cases[i].words}, .n = 1, .n_selected = 1};
        p.max = 7;
        assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
        assert_int_equal(stint_session_eval(s, 0, prompt, N_PROMPT - 1, false, NULL), STINT_OK);
        assert_int_equal(st_generator_begin(&g, &scratch, prompt, N_PROMPT, CONTEXT), STINT_OK);
        rows.texts[0] = (struct st_rows_text){
            .newest = prompt[N_PROMPT - 1], .generator = &g, .precision = &s->precision};
        know(s, cases[i].hope);
        assert_int_equal(st_self_drafts_add(s, &rows, &p, s->logits), STINT_OK);
        assert_int_equal(rows.texts[0].self, cases[i].self);
        assert_true(cases[i].self ? p.n_selected > 0 : p.n_selected == 1 && p.ids[0] == 5);
    }
    st_generator_close(&g);
    st_generator_scratch_close(&scratch);
    stint_session_close(s);
}

static void a_part_of_the_head_has_its_logits(void **state) {
    (void)state;
    static float whole[2 * MAX_VOCAB], part[2 * MAX_VOCAB];
    size_t vocab = nested->config.vocab, rows = st_draft_head_rows(&nested->config);
    const uint32_t sequences[] = {0, 0};
    const int32_t ids[] = {7, 9};
    stint_session *s = open_session(nested, &(struct variant){NULL, 0, 7, 4}, 0);
    assert_true(rows < vocab && vocab <= MAX_VOCAB);
    double saved = st_draft_head_saves(nested, 4);
    assert_true(saved > 0.0 && saved < 1.0);
    for (unsigned bits = 2; bits <= 4; bits++)
        for (size_t n = 1; n <= 2; n++) {
            float *logits[] = {whole, part};
            for (int in_part = 0; in_part < 2; in_part++) {
                assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
                assert_int_equal(
                    st_session_draft_step(s, bits, in_part, sequences, ids, n, logits[in_part]),
                    STINT_OK);
            }
            for (size_t t = 0; t < n; t++) {
                const float *a = logits[0] + t * vocab, *b = logits[1] + t * vocab;
                assert_memory_equal(a, b, rows * sizeof *a);
                for (size_t i = rows; i < vocab; i++) assert_true(isinf(b[i]) && b[i] < 0.0f);
            }
        }
    stint_session_close(s);
}

// Tokens of answers, those that were drafted among them, say whether a part is enough.
static void texts_that_it_lacks_take_the_whole_head(void **state) {
    (void)state;
    stint_session *s = open_session(nested, &(struct variant){NULL, 0, 15, 4}, 0);
    struct st_rows rows = {.n_texts = 1, .n = 4, .ids = {1, 4000, 4001, 4002}};
    rows.texts[0] = (struct st_rows_text){.n = 4, .n_taken = 2};
    st_self_drafts_learn(s, &rows);
    assert_true(s->drafting.head.n == 3.0f && s->drafting.head.outside == 2.0f);
    stint_session_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_that_of_plain_decoding),
        cmocka_unit_test(recurrent_state_goes_back),
        cmocka_unit_test(a_package_drafts_for_its_checkpoint),
        cmocka_unit_test(memory_may_be_bounded),
        cmocka_unit_test(precisions_must_be_there),
        cmocka_unit_test(what_was_picked_is_learned),
        cmocka_unit_test(fewer_bits_take_the_place_of_doubtful_words),
        cmocka_unit_test(a_part_of_the_head_has_its_logits),
        cmocka_unit_test(texts_that_it_lacks_take_the_whole_head),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
