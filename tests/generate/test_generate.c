// SPDX-License-Identifier: Apache-2.0
// stint_generate() with everything that an answer can be asked for: what the callback hears, put
// together, is the answer, and it obeys.
#include "stint.h"
#include "support/support.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_IDS = 200 };

static stint_model *model;
static stint_session *session;
static const int32_t prompt[] = {836, 310, 258, 17, 4};
static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"clock\"}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"sunny\":{\"type\":\"boolean\"}},\"required\":[\"sunny\"]}}}]";

static int open_all(void **state) {
    (void)state;
    stint_session_options options = {.size = sizeof options, .n_threads = 2, .n_context = 256};
    assert_int_equal(stint_model_open(ts_trained(), NULL, &model), STINT_OK);
    return stint_session_open(model, &options, &session);
}

static int close_all(void **state) {
    (void)state;
    stint_session_close(session);
    stint_model_close(model);
    return 0;
}

// What the callback heard, and the result.
struct heard {
    char text[3][8192]; // by kind
    char function[64];
    int32_t ids[MAX_IDS];
    float logprobs[MAX_IDS];
    stint_alternative best[MAX_IDS];
    size_t n_ids, n_calls, stop_at; // stop_at: ask for the end with this token
    stint_generation_result result;
};

static bool hear(void *context, const stint_piece *piece) {
    struct heard *h = context;
    char *text = h->text[piece->kind];
    snprintf(text + strlen(text), sizeof h->text[0] - strlen(text), "%.*s", (int)piece->n_bytes,
             piece->text);
    if (piece->kind == STINT_TEXT_TOOL_CALL) {
        snprintf(h->function, sizeof h->function, "%s", piece->function);
        h->n_calls++;
    }
    if (piece->id < 0) return true;
    assert_true(h->n_ids < MAX_IDS);
    h->logprobs[h->n_ids] = piece->logprob;
    if (piece->n_top > 0) h->best[h->n_ids] = piece->top[0];
    h->ids[h->n_ids++] = piece->id;
    return h->n_ids != h->stop_at;
}

static stint_status ask(struct heard *h, stint_generation generation) {
    size_t stop_at = h->stop_at;
    memset(h, 0, sizeof *h);
    h->stop_at = stop_at;
    h->result.size = sizeof h->result;
    generation.size = sizeof generation;
    generation.text = hear;
    generation.context = h;
    if (generation.n_tokens == 0) generation.n_tokens = MAX_IDS;
    assert_int_equal(stint_session_truncate(session, 0, 0), STINT_OK);
    return stint_generate(session, prompt, 5, &generation, NULL, 0, &h->result);
}

static struct heard *answer(stint_generation generation) {
    struct heard *h = calloc(1, sizeof *h);
    if (ask(h, generation) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(h->n_ids, h->result.generated_tokens);
    return h;
}

static void a_stop_text_ends_the_answer_before_it(void **state) {
    (void)state;
    struct heard *whole = answer((stint_generation){.n_tokens = 40});
    const char *text = whole->text[STINT_TEXT_ANSWER];
    assert_true(strlen(text) > 20);
    char stop[8];
    snprintf(stop, sizeof stop, "%.5s", text + strlen(text) / 2);
    const char *const stops[] = {"never to be seen", stop};
    struct heard *h = answer((stint_generation){.n_tokens = 40, .stops = stops, .n_stops = 2});
    assert_int_equal(h->result.stop_reason, STINT_STOP_TEXT);
    assert_int_equal(strlen(h->text[0]), strstr(text, stop) - text);
    assert_memory_equal(h->text[0], text, strlen(h->text[0]));
    free(whole);
    free(h);
}

static void log_probabilities_are_of_the_tokens_that_came(void **state) {
    (void)state;
    struct heard *h = answer((stint_generation){.n_tokens = 10, .logprobs = true, .n_top = 2});
    for (size_t i = 0; i < h->n_ids; i++) { // greedy
        assert_int_equal(h->best[i].id, h->ids[i]);
        assert_true(h->best[i].logprob == h->logprobs[i] && h->logprobs[i] < 0.0f);
    }
    const stint_logit_bias bias = {h->ids[0], -INFINITY};
    stint_sampling sampling = {.size = sizeof sampling, .biases = &bias, .n_biases = 1};
    struct heard *other = answer(
        (stint_generation){.n_tokens = 10, .logprobs = true, .n_top = 2, .sampling = &sampling});
    assert_int_not_equal(other->ids[0], h->ids[0]);
    assert_int_equal(other->best[0].id, h->ids[0]); // what the model says
    assert_true(other->logprobs[0] < other->best[0].logprob);
    free(h);
    free(other);
}

static void a_schema_is_followed(void **state) {
    (void)state;
    static const char schema[] = "{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":"
                                 "{\"enum\":[\"x\",\"yes\",true]}}}";
    for (uint64_t seed = 0; seed < 5; seed++) {
        stint_sampling sampling = {.size = sizeof sampling, .temperature = 1.0f, .seed = seed};
        struct heard *h = answer((stint_generation){.json_schema = schema, .sampling = &sampling});
        json_t *json = json_loads(h->text[0], 0, NULL);
        if (!json) fail_msg("%s", h->text[0]);
        assert_non_null(json_object_get(json, "a"));
        assert_int_equal(h->result.stop_reason, STINT_STOP_EOS);
        json_decref(json);
        free(h);
    }
}

static void a_required_tool_is_called(void **state) {
    (void)state;
    struct heard *h = answer((stint_generation){.tools = tools, .tool = "weather"});
    assert_int_equal(h->n_calls, 1);
    assert_int_equal(h->result.tool_calls, 1);
    assert_string_equal(h->function, "weather");
    assert_string_equal(h->text[STINT_TEXT_ANSWER], "");
    json_t *arguments = json_loads(h->text[STINT_TEXT_TOOL_CALL], 0, NULL);
    assert_true(json_is_boolean(json_object_get(arguments, "sunny")));
    json_decref(arguments);
    free(h);
}

// This model calls nothing by itself: its answer comes as a whole, and is the same.
static void an_answer_that_calls_nothing_is_text(void **state) {
    (void)state;
    struct heard *plain = answer((stint_generation){.n_tokens = 20});
    struct heard *h = answer((stint_generation){.n_tokens = 20, .tools = tools});
    assert_string_equal(h->text[0], plain->text[0]);
    assert_int_equal(h->result.tool_calls, 0);
    free(plain);
    free(h);
}

static void reasoning_comes_as_such(void **state) {
    (void)state;
    struct heard *plain = answer((stint_generation){.n_tokens = 20});
    struct heard *open =
        answer((stint_generation){.n_tokens = 20, .reasoning = STINT_REASONING_OPEN});
    const char *thought = open->text[STINT_TEXT_REASONING], *said = plain->text[0];
    assert_string_equal(open->text[STINT_TEXT_ANSWER], "");
    assert_non_null(strstr(said, thought)); // without the blanks around it
    assert_true(strlen(thought) + 3 > strlen(said));
    assert_int_equal(open->result.reasoning_tokens, 20);
    struct heard *possible =
        answer((stint_generation){.n_tokens = 20, .reasoning = STINT_REASONING_POSSIBLE});
    assert_string_equal(possible->text[STINT_TEXT_ANSWER], said);
    assert_int_equal(possible->result.reasoning_tokens, 0);
    free(plain);
    free(open);
    free(possible);
}

static void the_callback_ends_it_at_that_token(void **state) {
    (void)state;
    struct heard h = {.stop_at = 3};
    const stint_reasoning reasoning[] = {STINT_REASONING_NONE, STINT_REASONING_OPEN};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ask(&h, (stint_generation){.reasoning = reasoning[i]}), STINT_OK);
        assert_int_equal(h.n_ids, 3);
        assert_int_equal(h.result.generated_tokens, 3);
        assert_int_equal(h.result.stop_reason, STINT_STOP_CALLBACK);
        assert_int_equal(stint_session_length(session, 0), 5 + 2); // the last one is not held
    }
}

static void what_is_wrong_is_refused(void **state) {
    (void)state;
    struct heard h = {0};
    const stint_generation bad[] = {
        {.json_schema = "{"},
        {.json_schema = "3"},
        {.json_schema = "true", .tools = tools, .tool_choice = STINT_TOOLS_REQUIRED},
        {.tools = "[{}]"},
        {.tools = tools, .tool = "other"},
        {.tool_choice = STINT_TOOLS_REQUIRED},
        {.tools = tools, .tool_choice = (stint_tool_choice)9},
        {.reasoning = (stint_reasoning)9},
        {.n_stops = 1},
        {.logprobs = true, .n_top = STINT_MAX_TOP + 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (ask(&h, bad[i]) != STINT_E_ARG) fail_msg("case %zu", i);
    assert_int_equal(ask(&h, (stint_generation){.json_schema = "{\"contains\":{}}"}),
                     STINT_E_UNSUPPORTED);
    assert_int_equal(h.n_ids, 0);
    assert_int_equal(stint_session_length(session, 0), 0);
}

static void a_lost_allocation_is_an_error_and_leaks_nothing(void **state) {
    (void)state;
    const stint_logit_bias bias = {7, 1.0f};
    stint_sampling sampling = {.size = sizeof sampling, .biases = &bias, .n_biases = 1};
    const stint_generation generation = {.n_tokens = 6,
                                         .sampling = &sampling,
                                         .stops = &(const char *){"a"},
                                         .n_stops = 1,
                                         .logprobs = true,
                                         .tools = tools,
                                         .tool = "clock",
                                         .reasoning = STINT_REASONING_POSSIBLE};
    struct heard h = {0};
    size_t n_failed = 0;
    for (size_t n = 1;; n += 1 + n / 16) {
        ts_fail_allocation(n);
        stint_status status = ask(&h, generation);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        if (!failed) {
            assert_int_equal(status, STINT_OK);
            break;
        }
        n_failed += status != STINT_OK;
    }
    assert_true(n_failed > 5);
}

static void cancel_after_64(void *context, const char *what, uint64_t done, uint64_t total) {
    (void)what, (void)total;
    if (done >= 64) stint_session_cancel(context);
}

static void a_canceled_prompt_counts_what_was_read(void **state) {
    (void)state;
    int32_t ids[160];
    stint_session *own;
    stint_session_options options = {
        .size = sizeof options, .n_threads = 2, .n_context = 256, .chunk_len = 32};
    for (size_t i = 0; i < 160; i++) ids[i] = (int32_t)(10 + i);
    assert_int_equal(stint_session_open(model, &options, &own), STINT_OK);
    stint_generation generation = {
        .size = sizeof generation, .progress = cancel_after_64, .progress_context = own};
    stint_generation_result result = {.size = sizeof result};
    assert_int_equal(stint_generate(own, ids, 160, &generation, NULL, 0, &result), STINT_OK);
    assert_int_equal(result.stop_reason, STINT_STOP_CANCELED);
    assert_int_equal(result.prompt_tokens, 64);
    assert_int_equal(result.generated_tokens, 0);
    stint_session_close(own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_text_ends_the_answer_before_it),
        cmocka_unit_test(log_probabilities_are_of_the_tokens_that_came),
        cmocka_unit_test(a_schema_is_followed),
        cmocka_unit_test(a_required_tool_is_called),
        cmocka_unit_test(an_answer_that_calls_nothing_is_text),
        cmocka_unit_test(reasoning_comes_as_such),
        cmocka_unit_test(the_callback_ends_it_at_that_token),
        cmocka_unit_test(a_canceled_prompt_counts_what_was_read),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(a_lost_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
