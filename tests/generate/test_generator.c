// SPDX-License-Identifier: Apache-2.0
// Answers from hand-made logits: what ends them, what of their text is told when, and what their
// log-probabilities are.
#include "generate/generator.h"
#include "base/cpu.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CONTEXT = 64, MAX_IDS = 64 };

static stint_model *model;
static float *logits;
static struct st_generator_scratch scratch;
static struct st_generator generator;

static int open_all(void **state) {
    (void)state;
    assert_int_equal(stint_model_open(ts_trained(), NULL, &model), STINT_OK);
    logits = malloc(model->config.vocab * sizeof *logits);
    scratch.elementwise = st_elementwise_select(st_cpu_flags());
    scratch.candidates = calloc(model->config.vocab, sizeof *scratch.candidates);
    return logits == NULL || scratch.candidates == NULL;
}

static int close_all(void **state) {
    (void)state;
    st_generator_scratch_close(&scratch);
    free(scratch.candidates);
    free(logits);
    stint_model_close(model);
    return 0;
}

// What came of an answer.
struct got {
    int32_t ids[MAX_IDS];
    size_t n_ids, n_told; // bytes before the end
    char text[4096];
    struct st_token last;
    stint_stop_reason reason;
};

static void append(struct got *got, const char *text, size_t n) {
    snprintf(got->text + strlen(got->text), sizeof got->text - strlen(got->text), "%.*s", (int)n,
             text);
}

static int32_t stop_id(void) {
    int32_t id = 0;
    while (!st_model_stops(model, id)) id++;
    return id;
}

// An answer to the prompt {5, 6, 7} of a model that wants to say `wish` and then to end.
static struct got answer(struct st_generator_options options, const char *wish) {
    struct got got = {0};
    int32_t history[CONTEXT] = {5, 6, 7}, ids[MAX_IDS];
    struct st_generated generated;
    size_t n_history = 3, n = 0;
    options.model = model;
    assert_int_equal(stint_tokenize(model->tokenizer, wish, strlen(wish), STINT_TOKENIZE_PLAIN, ids,
                                    MAX_IDS, &n),
                     STINT_OK);
    if (st_generator_open(&generator, &options) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(st_generator_begin(&generator, &scratch, history, n_history, CONTEXT),
                     STINT_OK);
    for (size_t i = 0;; i++) {
        for (uint32_t v = 0; v < model->config.vocab; v++) logits[v] = -0.001f * (float)v;
        logits[i < n ? ids[i] : stop_id()] = 10.0f;
        if (!st_generator_next(&generator, &scratch, logits, history, n_history, &got.last)) break;
        bool goes_on = st_generator_accept(&generator, &got.last, &generated);
        if (generated.counts) got.ids[got.n_ids++] = got.last.id;
        append(&got, generated.text, generated.n_bytes);
        if (!goes_on) break;
        history[n_history++] = got.last.id;
    }
    const char *rest;
    got.n_told = strlen(got.text);
    size_t n_rest = st_generator_finish(&generator, &rest);
    append(&got, rest, n_rest);
    got.reason = generator.reason;
    assert_true(generator.ended);
    st_generator_close(&generator);
    return got;
}

static void the_model_ends_its_answer(void **state) {
    (void)state;
    struct got got = answer((struct st_generator_options){0}, "The old man said");
    assert_string_equal(got.text, " The old man said" + (got.text[0] == 'T'));
    assert_int_equal(got.reason, STINT_STOP_EOS);
    got = answer((struct st_generator_options){.ignore_eos = true, .max_tokens = 20}, "The old");
    assert_int_equal(got.n_ids, 20);
    assert_int_equal(got.reason, STINT_STOP_LENGTH);
}

static void limits_end_it(void **state) {
    (void)state;
    struct got got = answer((struct st_generator_options){.max_tokens = 2}, "The old man said");
    assert_int_equal(got.n_ids, 2);
    assert_int_equal(got.reason, STINT_STOP_LENGTH);
    got = answer((struct st_generator_options){.ignore_eos = true}, "The old man said");
    assert_int_equal(got.n_ids, CONTEXT - 3 + 1); // the last one needs no place in the cache
    assert_int_equal(got.reason, STINT_STOP_CONTEXT);
}

static void stop_texts_end_it_and_are_no_part_of_it(void **state) {
    (void)state;
    const char *const stops[] = {"never", "d man sa"};
    struct got got =
        answer((struct st_generator_options){.stops = stops, .n_stops = 2}, "The old man said no");
    assert_int_equal(got.reason, STINT_STOP_TEXT);
    assert_non_null(strstr(got.text, "The ol"));
    assert_null(strstr(got.text, "d"));
    assert_int_equal(got.n_told, strlen(got.text));
    // What only begins a stop text is told at the end.
    const char *const never[] = {"said no more"};
    got = answer((struct st_generator_options){.stops = never, .n_stops = 1}, "The man said no");
    assert_int_equal(got.reason, STINT_STOP_EOS);
    assert_non_null(strstr(got.text, "said no"));
    assert_int_equal(got.n_told, strlen(got.text) - strlen("said no"));
}

static void stop_texts_are_not_looked_for_in_reasoning(void **state) {
    (void)state;
    struct st_generator_options options = {.stops = &(const char *){"man"}, .n_stops = 1};
    options.reasoning = ST_REASONING_INSIDE;
    struct got got = answer(options, "A man.</think>The old man");
    assert_int_equal(got.reason, STINT_STOP_TEXT);
    assert_non_null(strstr(got.text, "A man.</think>The old"));
    assert_null(strstr(got.text, "old man"));
}

static void biases_ban_and_favour(void **state) {
    (void)state;
    int32_t old[8];
    size_t n;
    assert_int_equal(
        stint_tokenize(model->tokenizer, "The old", 7, STINT_TOKENIZE_PLAIN, old, 8, &n), STINT_OK);
    const stint_logit_bias biases[] = {{old[n - 1], -INFINITY}, {40, 5.0f}, {40, 5.5f}};
    stint_sampling sampling = {.size = sizeof sampling, .biases = biases, .n_biases = 3};
    struct got got = answer((struct st_generator_options){.sampling = &sampling}, "The old");
    for (size_t i = 0; i < got.n_ids; i++) assert_int_equal(got.ids[i], 40);
    assert_int_equal(got.reason, STINT_STOP_CONTEXT);
}

static void what_is_out_of_range_is_refused(void **state) {
    (void)state;
    const stint_logit_bias bad[] = {
        {-1, 0.0f}, {(int32_t)model->config.vocab, 0.0f}, {0, INFINITY}, {0, NAN}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stint_sampling sampling = {.size = sizeof sampling, .biases = &bad[i], .n_biases = 1};
        struct st_generator_options options = {.model = model, .sampling = &sampling};
        assert_int_equal(st_generator_open(&generator, &options), STINT_E_ARG);
    }
    const char *stops[STINT_MAX_STOPS + 1];
    for (size_t i = 0; i <= STINT_MAX_STOPS; i++) stops[i] = "a";
    struct st_generator_options many = {
        .model = model, .stops = stops, .n_stops = STINT_MAX_STOPS + 1};
    assert_int_equal(st_generator_open(&generator, &many), STINT_E_ARG);
    stops[0] = "";
    many.n_stops = 1;
    assert_int_equal(st_generator_open(&generator, &many), STINT_E_ARG);
}

static void log_probabilities_are_those_before_biases(void **state) {
    (void)state;
    const stint_logit_bias bias = {40, 20.0f};
    stint_sampling sampling = {.size = sizeof sampling, .biases = &bias, .n_biases = 1};
    struct got got = answer(
        (struct st_generator_options){
            .sampling = &sampling, .logprobs = true, .n_top = 3, .max_tokens = 1},
        "The");
    double sum = exp(10.0);
    for (uint32_t v = 0; v < model->config.vocab; v++) sum += exp(-0.001 * v);
    assert_int_equal(got.last.id, 40);
    assert_true(fabs((double)got.last.logprob - (-0.04 - log(sum))) < 1e-3);
    assert_int_equal(got.last.n_top, 3);
    assert_true(fabs((double)got.last.top[0].logprob - (10.0 - log(sum))) < 1e-3);
    assert_true(got.last.top[0].logprob > got.last.top[1].logprob);
    assert_int_equal(got.last.top[1].id, 0);
    assert_int_equal(got.last.top[2].id, 1);
}

static void a_constraint_is_kept_whatever_is_wished(void **state) {
    (void)state;
    json_t *schema = json_loads("{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":"
                                "{\"enum\":[\"x\",\"yes\",true]}}}",
                                0, NULL);
    struct st_constraint *constraint;
    assert_int_equal(st_constraint_schema(schema, &constraint), STINT_OK);
    struct got got = answer(
        (struct st_generator_options){.constraint = constraint, .ignore_eos = true}, "The old man");
    json_t *json = json_loads(got.text, 0, NULL);
    if (json == NULL) fail_msg("%s", got.text);
    assert_non_null(json_object_get(json, "a"));
    assert_int_equal(got.reason, STINT_STOP_EOS);
    json_decref(json);
    st_constraint_free(constraint);
    json_decref(schema);
}

static void the_seed_decides(void **state) {
    (void)state;
    stint_sampling sampling = {.size = sizeof sampling, .temperature = 3.0f, .seed = 4};
    struct st_generator_options options = {.sampling = &sampling, .max_tokens = 30};
    struct got one = answer(options, "The"), same = answer(options, "The");
    sampling.seed = 5;
    struct got other = answer(options, "The");
    assert_memory_equal(one.ids, same.ids, sizeof one.ids);
    assert_memory_not_equal(one.ids, other.ids, sizeof one.ids);
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    const stint_logit_bias bias = {40, 20.0f};
    stint_sampling sampling = {.size = sizeof sampling, .biases = &bias, .n_biases = 1};
    struct st_generator_options options = {
        .model = model, .sampling = &sampling, .stops = &(const char *){"a"}, .n_stops = 1};
    for (size_t n = 1;; n++) {
        ts_fail_allocation(n);
        stint_status status = st_generator_open(&generator, &options);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
        if (status == STINT_OK) st_generator_close(&generator);
        if (!failed) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_ends_its_answer),
        cmocka_unit_test(limits_end_it),
        cmocka_unit_test(stop_texts_end_it_and_are_no_part_of_it),
        cmocka_unit_test(stop_texts_are_not_looked_for_in_reasoning),
        cmocka_unit_test(biases_ban_and_favour),
        cmocka_unit_test(what_is_out_of_range_is_refused),
        cmocka_unit_test(log_probabilities_are_those_before_biases),
        cmocka_unit_test(a_constraint_is_kept_whatever_is_wished),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
