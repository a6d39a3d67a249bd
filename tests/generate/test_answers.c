// SPDX-License-Identifier: Apache-2.0
// Several answers to one prompt: each is the one that a call with its seed gives, whatever the
// others do and whenever they end.
#include "session/session.h"
#include "stint.h"
#include "support/checkpoints.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 5, CONTEXT = 96, MAX_IDS = 24, N_PROMPT = 20 };

struct heard {
    char text[2048];
    int32_t ids[MAX_IDS];
    float logprobs[MAX_IDS];
    size_t n, stop_at; // stop_at: ask for the end with this token
};

struct all {
    struct heard heard[N];
    stint_generation_result results[N];
    size_t n_prompted; // tokens that the prompt's progress told
};

static bool hear(void *context, const stint_piece *piece) {
    struct heard *h = &((struct all *)context)->heard[piece->answer];
    size_t n = strlen(h->text);
    snprintf(h->text + n, sizeof h->text - n, "%.*s", (int)piece->n_bytes, piece->text);
    if (piece->id < 0) return true;
    assert_true(h->n < MAX_IDS);
    h->ids[h->n] = piece->id;
    h->logprobs[h->n++] = piece->logprob;
    return h->n != h->stop_at;
}

static void hear_progress(void *context, const char *what, uint64_t done, uint64_t total) {
    (void)what, (void)total;
    ((struct all *)context)->n_prompted = done;
}

static stint_session *open_session(const stint_model *m, uint32_t n, uint32_t n_drafts) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = CONTEXT,
                               .n_sequences = n,
                               .n_drafts = n_drafts};
    if (stint_session_open(m, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    s->drafting.costs.always = true;
    return s;
}

static stint_status ask(stint_session *s, const int32_t *prompt, stint_generation g,
                        struct all *all) {
    g.size = sizeof g;
    g.text = hear;
    g.context = all;
    g.progress = hear_progress;
    g.progress_context = all;
    if (!g.n_tokens) g.n_tokens = MAX_IDS;
    all->results[0].size = sizeof all->results[0];
    assert_int_equal(stint_session_truncate(s, g.sequence, 0), STINT_OK);
    return stint_generate(s, prompt, N_PROMPT, &g, NULL, 0, all->results);
}

// Ends some answers early.
static const stint_sampling drawn = {.size = sizeof drawn, .temperature = 1.3f, .seed = 40};
static const char *const stops[] = {"e", "\n"};

static void make_prompt(const stint_model *m, int32_t *prompt) {
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = (int32_t)ts_random_below(m->config.vocab);
}

static void assert_alike(const struct all *all, size_t i, const struct all *single) {
    const stint_generation_result *a = &all->results[i], *b = &single->results[0];
    assert_memory_equal(all->heard[i].ids, single->heard[0].ids, sizeof single->heard[0].ids);
    assert_memory_equal(all->heard[i].logprobs, single->heard[0].logprobs,
                        sizeof single->heard[0].logprobs);
    assert_string_equal(all->heard[i].text, single->heard[0].text);
    assert_int_equal(a->stop_reason, b->stop_reason);
    assert_int_equal(a->generated_tokens, b->generated_tokens);
    assert_int_equal(a->prompt_tokens, b->prompt_tokens);
    assert_true(a->mean_logprob == b->mean_logprob && a->mean_logprob < 0.0);
    assert_int_equal(a->decode_steps + a->accepted_tokens, b->decode_steps);
}

// Returns how many different lengths the answers have.
static size_t compare(const stint_model *m, uint32_t n_drafts, stint_generation g) {
    stint_session *s = open_session(m, N + 1, n_drafts), *one = open_session(m, 1, 0);
    static struct all all, single;
    int32_t prompt[N_PROMPT];
    size_t n_lengths = 0;
    make_prompt(m, prompt);
    memset(&all, 0, sizeof all);
    stint_sampling sampling = drawn;
    g.sampling = &sampling;
    g.sequence = 1;
    g.n_answers = N;
    if (ask(s, prompt, g, &all) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(all.n_prompted, N_PROMPT);
    g.sequence = 0;
    g.n_answers = 0;
    g.logprobs = true;
    for (size_t i = 0; i < N; i++) {
        memset(&single, 0, sizeof single);
        sampling.seed = drawn.seed + i;
        assert_int_equal(ask(one, prompt, g, &single), STINT_OK);
        assert_alike(&all, i, &single);
        assert_int_equal(stint_session_length(s, 1 + (uint32_t)i), stint_session_length(one, 0));
        size_t k = 0;
        while (k < i && all.heard[k].n != all.heard[i].n) k++;
        n_lengths += k == i;
    }
    stint_session_close(s);
    stint_session_close(one);
    return n_lengths;
}

static void each_is_the_answer_of_its_seed(void **state) {
    (void)state;
    const stint_generation short_ones = {.stops = stops, .n_stops = 2};
    size_t n_lengths = 0;
    for (int k = 0; k < TS_KINDS; k++)
        for (uint32_t n_drafts = 0; n_drafts < 4; n_drafts += 3)
            n_lengths += compare(ts_kinds[k], n_drafts, short_ones);
    assert_true(n_lengths > 2 * TS_KINDS); // the batch has shrunk
    compare(ts_kinds[1], 0, (stint_generation){.json_schema = "{\"type\":\"integer\"}"});
}

static void recurrent_state_is_computed_for_each(void **state) {
    (void)state;
    stint_model *m = ts_golden_model("lfm2", "");
    compare(m, 0, (stint_generation){0});
    stint_model_close(m);
}

static void the_callback_ends_one_answer_alone(void **state) {
    (void)state;
    stint_session *s = open_session(ts_kinds[0], N, 0);
    static struct all all;
    int32_t prompt[N_PROMPT];
    memset(&all, 0, sizeof all);
    make_prompt(ts_kinds[0], prompt);
    all.heard[2].stop_at = 4;
    const stint_generation g = {.sampling = &drawn, .n_answers = N, .ignore_eos = true};
    assert_int_equal(ask(s, prompt, g, &all), STINT_OK);
    for (size_t i = 0; i < N; i++) {
        bool stopped = i == 2;
        assert_int_equal(all.heard[i].n, stopped ? 4 : MAX_IDS);
        assert_int_equal(all.results[i].stop_reason,
                         stopped ? STINT_STOP_CALLBACK : STINT_STOP_LENGTH);
    }
    stint_session_close(s);
}

static void ids_are_rows(void **state) {
    (void)state;
    enum { CAPACITY = 6 };
    stint_session *s = open_session(ts_kinds[0], 2, 0);
    int32_t prompt[N_PROMPT], ids[2 * CAPACITY], one[CAPACITY];
    make_prompt(ts_kinds[0], prompt);
    stint_sampling sampling = drawn;
    stint_generation g = {
        .size = sizeof g, .sampling = &sampling, .n_answers = 2, .ignore_eos = true};
    // The results of a program that was built before they grew.
    struct {
        size_t size;
        stint_stop_reason stop_reason;
        size_t prompt_tokens, generated_tokens;
    } results[2] = {{.size = sizeof *results}};
    assert_int_equal(stint_generate(s, prompt, N_PROMPT, &g, ids, CAPACITY,
                                    (stint_generation_result *)(void *)results),
                     STINT_OK);
    g.n_answers = 0;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(results[i].generated_tokens, CAPACITY);
        sampling.seed = drawn.seed + i;
        assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
        assert_int_equal(stint_generate(s, prompt, N_PROMPT, &g, one, CAPACITY, NULL), STINT_OK);
        assert_memory_equal(ids + i * CAPACITY, one, sizeof one);
    }
    stint_session_close(s);
}

static bool cancel(void *context, const stint_piece *piece) {
    if (piece->answer == 1) stint_session_cancel(context);
    return true;
}

static void wrong_numbers_and_canceling(void **state) {
    (void)state;
    stint_session *s = open_session(ts_kinds[0], N, 0);
    static struct all all;
    int32_t prompt[N_PROMPT];
    make_prompt(ts_kinds[0], prompt);
    stint_generation g = {.size = sizeof g, .n_answers = N + 1};
    assert_int_equal(ask(s, prompt, g, &all), STINT_E_ARG);
    g.n_answers = N;
    g.sequence = 1;
    assert_int_equal(ask(s, prompt, g, &all), STINT_E_ARG);
    g.sequence = 0;
    g.text = cancel;
    g.context = s;
    assert_int_equal(stint_generate(s, prompt, N_PROMPT, &g, NULL, 0, all.results), STINT_OK);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(all.results[i].stop_reason, STINT_STOP_CANCELED);
        assert_int_equal(all.results[i].generated_tokens, 1);
    }
    stint_session_close(s);
}

static void a_lost_allocation_leaks_nothing(void **state) {
    (void)state;
    stint_session *s = open_session(ts_kinds[0], 2, 0);
    static struct all all;
    int32_t prompt[N_PROMPT];
    make_prompt(ts_kinds[0], prompt);
    const stint_generation g = {
        .sampling = &drawn, .n_answers = 2, .n_tokens = 2, .stops = stops, .n_stops = 2};
    int n_failed = 0;
    for (size_t n = 1;; n++) {
        memset(&all, 0, sizeof all);
        ts_fail_allocation(n);
        stint_status status = ask(s, prompt, g, &all);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        if (!failed) break;
        assert_int_equal(status, STINT_E_NOMEM);
        n_failed++;
    }
    assert_true(n_failed >= 3); // the answers, stop texts, log-probabilities
    stint_session_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_the_answer_of_its_seed),
        cmocka_unit_test(recurrent_state_is_computed_for_each),
        cmocka_unit_test(the_callback_ends_one_answer_alone),
        cmocka_unit_test(ids_are_rows),
        cmocka_unit_test(wrong_numbers_and_canceling),
        cmocka_unit_test(a_lost_allocation_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, ts_kinds_open, ts_kinds_close);
}
