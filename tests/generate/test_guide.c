// SPDX-License-Identifier: Apache-2.0
// Answers drawn at random from what a guide allows: always a text of the constraint, and in front
// of it at most whole reasoning.
#include "generate/guide.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static stint_model *model;
static struct st_guide guide;
static float *logits;

static int open_all(void **state) {
    (void)state;
    assert_int_equal(stint_model_open(ts_trained(), NULL, &model), STINT_OK);
    assert_int_equal(st_guide_open(&guide, model), STINT_OK);
    logits = malloc(model->config.vocab * sizeof *logits);
    return logits == NULL;
}

static int close_all(void **state) {
    (void)state;
    free(logits);
    st_guide_close(&guide);
    stint_model_close(model);
    return 0;
}

// One allowed token; those that go on with `wish` are wanted.
static int32_t draw(const char *wish) {
    char piece[ST_PIECE_MAX_BYTES];
    int32_t best = -1;
    float max = -INFINITY;
    for (size_t id = 0; id < model->config.vocab; id++) {
        if (logits[id] == -INFINITY) continue;
        size_t n = st_tokenizer_piece(model->tokenizer, (int32_t)id, piece);
        bool wanted = n > 0 && n <= strlen(wish) && memcmp(piece, wish, n) == 0;
        float value = ts_random_float(0, 1) + (wanted ? 2.0f : 0.0f);
        if (best < 0 || value > max) {
            best = (int32_t)id;
            max = value;
        }
    }
    return best;
}

// Writes an answer that follows `wish` where it may, and returns whether it came to its end.
static bool write_answer(enum st_reasoning_phase begin, const char *wish,
                         struct st_constraint_state *at, struct st_reasoning *reasoning,
                         char text[4096]) {
    size_t n_text = 0;
    *reasoning = (struct st_reasoning){.phase = begin};
    for (int i = 0; i < 200; i++) {
        for (size_t id = 0; id < model->config.vocab; id++) logits[id] = 0.0f;
        if (!st_guide_apply(&guide, model, reasoning, at, logits)) break;
        int32_t id = draw(wish + (n_text < strlen(wish) ? n_text : strlen(wish)));
        if (st_model_stops(model, id)) break;
        st_guide_take(model, reasoning, at, id);
        size_t n = st_tokenizer_piece(model->tokenizer, id, text + n_text);
        st_reasoning_push(reasoning, text + n_text, n);
        n_text += n;
        text[n_text] = 0;
    }
    st_reasoning_end(reasoning);
    return st_constraint_complete(at);
}

static void check(enum st_reasoning_phase begin, const char *wish, size_t n_reasoning) {
    json_t *schema = json_loads("{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":"
                                "{\"enum\":[\"x\",\"yes\",true]}}}",
                                0, NULL);
    struct st_constraint *constraint;
    struct st_constraint_state *at;
    assert_int_equal(st_constraint_schema(schema, &constraint), STINT_OK);
    for (int round = 0; round < 20; round++) {
        char text[4096] = "";
        struct st_reasoning reasoning;
        assert_int_equal(st_constraint_begin(constraint, &at), STINT_OK);
        assert_true(write_answer(begin, wish, at, &reasoning, text));
        assert_int_equal(reasoning.to - reasoning.from, n_reasoning);
        size_t from = st_reasoning_before_answer(&reasoning, strlen(text));
        json_t *json = json_loads(text + from, 0, NULL);
        if (json == NULL) fail_msg("%s", text);
        assert_non_null(json_object_get(json, "a"));
        json_decref(json);
        st_constraint_end(at);
    }
    st_constraint_free(constraint);
    json_decref(schema);
}

static void reasoning_is_free_and_the_answer_is_not(void **state) {
    (void)state;
    check(ST_REASONING_BEFORE, "<think>\nWell, {no}.\n</think>\n\n{\"a\":", 11);
    check(ST_REASONING_BEFORE, "\n<think>Well</think>Sure: {", 4);
    check(ST_REASONING_BEFORE, "<think></think>{", 0);
    check(ST_REASONING_INSIDE, "Well, {no}.</think>\n\nSure", 11);
    check(ST_REASONING_INSIDE, "a</b</think>x", 4);
}

static void who_does_not_reason_is_held_from_the_beginning(void **state) {
    (void)state;
    check(ST_REASONING_BEFORE, "{\"a\":\"x\"}", 0);
    check(ST_REASONING_NONE, "<think>Well</think>", 0);
}

// What the model would rather not say is not said, but the reasoning cannot be where it ends.
static void nothing_ends_within_reasoning(void **state) {
    (void)state;
    struct st_reasoning inside = {.phase = ST_REASONING_INSIDE};
    size_t n_forbidden = 0;
    struct st_constraint *constraint;
    struct st_constraint_state *at;
    assert_int_equal(st_constraint_json(&constraint), STINT_OK);
    assert_int_equal(st_constraint_begin(constraint, &at), STINT_OK);
    for (size_t id = 0; id < model->config.vocab; id++) logits[id] = 0.0f;
    assert_true(st_guide_apply(&guide, model, &inside, at, logits));
    for (size_t id = 0; id < model->config.vocab; id++) {
        bool stops = st_model_stops(model, (int32_t)id);
        assert_int_equal(logits[id] == -INFINITY, stops);
        n_forbidden += stops;
    }
    assert_true(n_forbidden > 0);
    st_constraint_end(at);
    st_constraint_free(constraint);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasoning_is_free_and_the_answer_is_not),
        cmocka_unit_test(who_does_not_reason_is_held_from_the_beginning),
        cmocka_unit_test(nothing_ends_within_reasoning),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
