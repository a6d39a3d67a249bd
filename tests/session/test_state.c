// SPDX-License-Identifier: Apache-2.0
// Recurrent state that goes back: a hybrid whose text was truncated, stepped with drafts, canceled,
// saved and restored gives the bits of one to which none of that happened, and computes no more
// again than the tokens from the last border on.
#include "base/map.h"
#include "format/package.h"
#include "session/kv/state.h"
#include "session/session.h"
#include "stint.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_SEQUENCES = 2, CONTEXT = 1600, N_PROMPT = 1100, CHUNK = 48 };

enum { IN_FLOAT, PACKAGE, N_MODELS };

// The hybrids, and what a saved sequence calls a layer's keys and another's state.
static const struct hybrid {
    const char *name, *keys, *states;
} hybrids[] = {{"lfm2", "keys.2", "states.0"},
               {"qwen35", "keys.1", "states.0"},
               {"falcon_h1", "keys.0", "states.1"}},
  *hybrid;

static stint_model *models[N_MODELS], *model;
static size_t vocab;
static int32_t ids[CONTEXT];
static float *logits, *wanted; // [STINT_MAX_STEP_ROWS, vocab]

static int open_models(void **state) {
    (void)state;
    char source[600], package[600];
    stint_model_info info = {.size = sizeof info};
    snprintf(source, sizeof source, "%s/%s", ts_source("tests/golden/models"), hybrid->name);
    snprintf(package, sizeof package, "%s/hybrid.stint", ts_temp_folder());
    if (stint_model_open(source, NULL, &models[IN_FLOAT]) != STINT_OK ||
        stint_model_describe(models[IN_FLOAT], &info) != STINT_OK)
        fail_msg("%s", stint_error_text());
    vocab = info.vocab;
    logits = malloc(STINT_MAX_STEP_ROWS * vocab * sizeof *logits);
    wanted = malloc(STINT_MAX_STEP_ROWS * vocab * sizeof *wanted);
    for (size_t i = 0; i < CONTEXT; i++) ids[i] = (int32_t)ts_random_below(vocab);
    stint_prepare_options o = {
        .size = sizeof o, .ids = ids, .n_ids = 128, .bits_low = 4, .bits_high = 7};
    ts_prepare(source, package, &o);
    if (stint_model_open(package, NULL, &models[PACKAGE]) != STINT_OK)
        fail_msg("%s", stint_error_text());
    model = models[IN_FLOAT];
    return 0;
}

static int close_models(void **state) {
    (void)state;
    free(logits);
    free(wanted);
    for (int i = 0; i < N_MODELS; i++) stint_model_close(models[i]);
    return 0;
}

static stint_session *open_context(size_t chunk, bool split, size_t context) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .npu_threads = split,
                               .cpu_threads = split,
                               .n_context = (uint32_t)context,
                               .chunk_len = (uint32_t)chunk,
                               .n_sequences = N_SEQUENCES};
    if (stint_session_open(model, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

static stint_session *open_session(size_t chunk, bool split) {
    return open_context(chunk, split, CONTEXT);
}

static void ok(stint_status status) {
    if (status != STINT_OK) fail_msg("%s", stint_error_text());
}

// Tokens [from, to) of the text: a prompt, one short text, or steps.
enum how { PROMPT, SHORT, STEPS };

static void compute(stint_session *s, uint32_t q, enum how how, size_t from, size_t to,
                    float *last) {
    assert_int_equal(stint_session_length(s, q), from);
    if (how == PROMPT) ok(st_session_prompt(s, q, ids + from, to - from, to, last));
    if (how == SHORT) ok(stint_session_eval(s, q, ids + from, to - from, false, last));
    for (size_t i = from; i < to && how == STEPS; i++) // at a precision that changes
        ok(st_session_step(s, i / 5 % 2 ? 5 : s->precision.prefill, &q, &ids[i], 1, last));
}

static void expect_wanted(const char *what) {
    if (memcmp(logits, wanted, vocab * sizeof *logits) != 0) fail_msg("%s: other bits", what);
}

// A text of prompts, steps and short texts, and how its tokens are to be computed again.
static const struct {
    enum how how;
    size_t to;
} pieces[] = {{PROMPT, 700}, {STEPS, 720},  {SHORT, 723},  {SHORT, 724},
              {PROMPT, 730}, {STEPS, 1010}, {PROMPT, 1100}};

static void compute_pieces(stint_session *s, uint32_t q, size_t from, float *last) {
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        if (pieces[i].to <= from) continue;
        compute(s, q, pieces[i].how, from, pieces[i].to, last);
        from = pieces[i].to;
    }
}

static bool within_a_short_text(size_t length) {
    return length > 720 && length < 723;
}

// However far a text is truncated, what follows has the same bits.
static void truncations_do_not_matter(size_t chunk, bool split) {
    stint_session *s = open_session(chunk, split);
    compute_pieces(s, 0, 0, wanted);
    for (size_t i = 0; i < ts_how_many(4, 7, 12); i++) {
        static const size_t fixed[] = {1099, 1, 1011, 719, 0, 256};
        size_t length = i < 6 ? fixed[i] : ts_random_below(N_PROMPT);
        if (within_a_short_text(length)) continue; // its rest would be computed in another way
        ok(stint_session_truncate(s, 0, length));
        compute_pieces(s, 0, length, logits);
        expect_wanted("truncated");
    }
    stint_session_close(s);
}

static void truncated_texts_go_on_with_the_same_bits(void **state) {
    (void)state;
    truncations_do_not_matter(CHUNK, false);
    truncations_do_not_matter(7, false);
    model = models[PACKAGE];
    truncations_do_not_matter(CHUNK, false);
    model = models[IN_FLOAT];
}

static void split_prompts_leave_the_same_states(void **state) {
    (void)state;
    truncations_do_not_matter(CHUNK, true);
    truncations_do_not_matter(7, true);
    model = models[PACKAGE];
    truncations_do_not_matter(7, true);
    model = models[IN_FLOAT];
}

static bool model_has_matrices(void) {
    return model->config.state.n_heads > 0;
}

// Of a long text, an edit far back recomputes from the border before it.
static void little_is_computed_again(void **state) {
    (void)state;
    stint_session *s = open_session(CHUNK, false);
    compute(s, 0, PROMPT, 0, N_PROMPT, NULL);
    for (size_t length = N_PROMPT - 1; length > 300; length -= 97) {
        ok(stint_session_truncate(s, 0, length));
        if (st_state_is_current(s, 0)) continue;
        size_t border = st_state_restore(s, 0);
        assert_in_range(length - border, 0, ST_STATE_STRIDE + 2 * CHUNK);
        ok(st_session_settle(s, 0));
        assert_true(st_state_is_current(s, 0));
    }
    stint_session_close(s);
}

// Of a long prompt an edit computes again what stands between the last border in front
// of it and itself, at most a stretch; what follows has the bits of the edited prompt computed
// anew.
static void an_edit_is_computed_from_the_last_border(void **state) {
    (void)state;
    enum { MOST = 4000, LONG_CONTEXT = 4400, LONG_CHUNK = 256 };
    static int32_t text[MOST];
    const size_t n_text = ts_how_many(1600, MOST, MOST), edit = n_text * 5 / 8;
    for (size_t i = 0; i < n_text; i++) text[i] = ids[i * 7 % CONTEXT];
    stint_session *s = open_context(LONG_CHUNK, false, LONG_CONTEXT);
    size_t stretch = model_has_matrices() ? 768 : 256, sum = 0, most = 0, n = 0;
    ok(st_session_prompt(s, 0, text, n_text, n_text, NULL));
    for (size_t length = n_text - 60; length > edit; length -= 103, n++) {
        ok(stint_session_truncate(s, 0, length));
        size_t border = st_state_restore(s, 0);
        assert_int_equal(border, length / stretch * stretch);
        ok(st_session_settle(s, 0));
        sum += length - border;
        most = length - border > most ? length - border : most;
    }
    print_message("%s: %zu edits, %zu tokens again at most, %zu on average\n", hybrid->name, n,
                  most, sum / n);
    assert_in_range(most, 1, stretch - 1);
    text[edit] = (text[edit] + 1) % (int32_t)vocab;
    ok(stint_session_truncate(s, 0, edit));
    ok(st_session_prompt(s, 0, text + edit, n_text - edit, n_text, logits));
    stint_session *fresh = open_context(LONG_CHUNK, false, LONG_CONTEXT);
    ok(st_session_prompt(fresh, 0, text, n_text, n_text, wanted));
    expect_wanted("edited");
    stint_session_close(fresh);
    stint_session_close(s);
}

// Borders are also left by a text that grows step by step.
static void steps_leave_borders(void **state) {
    (void)state;
    stint_session *s = open_session(CHUNK, false);
    compute(s, 0, PROMPT, 0, 10, NULL);
    compute(s, 0, STEPS, 10, 900, NULL);
    ok(stint_session_truncate(s, 0, 850));
    assert_false(st_state_is_current(s, 0));
    size_t border = st_state_restore(s, 0);
    assert_in_range(border, 1, 850);
    assert_true(850 - border <= ST_STATE_STRIDE + CHUNK);
    stint_session_close(s);
}

// A text that took another end, as a prompt or by steps, does not meet states of the first one.
static void states_of_another_end_are_forgotten(void **state) {
    (void)state;
    stint_session *s = open_session(CHUNK, false), *fresh = open_session(CHUNK, false);
    compute(s, 0, PROMPT, 0, N_PROMPT, NULL);
    ok(stint_session_truncate(s, 0, 100));
    for (uint32_t i = 0; i < 2; i++) { // the other end: the text's own beginning
        stint_session *t = i ? fresh : s;
        const uint32_t sequence = 0;
        if (i) ok(st_session_prompt(t, 0, ids, 100, 100, NULL));
        for (size_t k = 0; k < 300; k++) ok(stint_session_step(t, &sequence, &ids[k], 1, NULL));
        ok(st_session_prompt(t, 0, ids, 500, 900, NULL));
        ok(stint_session_truncate(t, 0, 800));
        ok(st_session_prompt(t, 0, ids + 5, 40, 840, NULL));
        ok(stint_session_truncate(t, 0, 320));
        ok(st_session_prompt(t, 0, ids + 5, 40, 360, i ? wanted : logits));
    }
    expect_wanted("another end");
    stint_session_close(s);
    stint_session_close(fresh);
}

// Rows of drafts, of which the first few are good, beside another text's rows.
static void rejected_drafts_leave_no_trace(void **state) {
    (void)state;
    enum { N = 60 };
    stint_session *s = open_session(CHUNK, false);
    compute(s, 0, PROMPT, 0, 250, NULL);
    compute(s, 1, PROMPT, 0, 90, NULL);
    compute(s, 0, STEPS, 250, 250 + N, wanted);
    ok(stint_session_truncate(s, 0, 250));
    for (size_t at = 250; at < 250 + N;) {
        uint32_t sequences[STINT_MAX_STEP_ROWS];
        int32_t row_ids[STINT_MAX_STEP_ROWS];
        size_t n = 2 + ts_random_below(STINT_MAX_STEP_ROWS - 2);
        size_t good = st_min(1 + ts_random_below(n - 1), 250 + N - at);
        for (size_t i = 0; i < n; i++) {
            sequences[i] = i + 1 == n;
            row_ids[i] = i < good ? ids[at + i] : (int32_t)ts_random_below(vocab);
        }
        ok(st_session_step(s, s->precision.prefill, sequences, row_ids, n, logits));
        memmove(logits, logits + (good - 1) * vocab, vocab * sizeof *logits);
        st_sequence_truncate(&s->sequences[0], at + 1); // as src/generate/rows.c does it
        s->sequences[0].length += good - 1;
        at += good;
    }
    expect_wanted("drafts");
    stint_session_close(s);
}

static void stop_at_once(void *context, const char *what, size_t done, size_t total) {
    (void)what, (void)total;
    if (done > 400) stint_session_cancel(context);
}

static void canceled_prompts_leave_no_trace(void **state) {
    (void)state;
    stint_session *s = open_session(CHUNK, false);
    compute(s, 0, PROMPT, 0, 600, NULL);
    compute(s, 0, PROMPT, 600, 620, wanted);
    ok(stint_session_truncate(s, 0, 600));
    struct st_eval_request e = st_eval_request_of(s, 0, ids + 300, 500);
    e.progress = stop_at_once;
    e.progress_context = s;
    assert_int_equal(st_session_eval(s, &e), STINT_E_CANCELED);
    assert_int_equal(stint_session_length(s, 0), 600);
    // While the request to cancel stands, a state is not found again; afterwards it is.
    assert_int_equal(st_session_eval(s, &e), STINT_E_CANCELED);
    atomic_store(&s->canceled, false);
    compute(s, 0, PROMPT, 600, 620, logits);
    expect_wanted("canceled");
    stint_session_close(s);
}

// Into another sequence of a session with other chunks, at lengths with a state and without.
static void files_hold_the_states(void **state) {
    (void)state;
    static const size_t lengths[] = {1, 2, 255, 620, 1100};
    const char *path = ts_temp_folder();
    char file[600];
    snprintf(file, sizeof file, "%s/hybrid.session", path);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        stint_session *s = open_session(CHUNK, false), *t = open_session(32, i % 2);
        compute_pieces(s, 0, 0, NULL);
        ok(stint_session_truncate(s, 0, lengths[i]));
        ok(stint_session_save(s, 0, file));
        compute(s, 0, PROMPT, lengths[i], lengths[i] + 30, wanted);
        compute(t, 1, PROMPT, 0, 333, NULL);
        ok(stint_session_load(t, 1, file));
        assert_int_equal(stint_session_length(t, 1), lengths[i]);
        compute(t, 1, PROMPT, lengths[i], lengths[i] + 30, logits);
        expect_wanted("restored");
        ok(stint_session_load(t, 1, file));
        size_t earlier = lengths[i] * 3 / 4;
        if (within_a_short_text(earlier)) earlier = 720;
        ok(stint_session_truncate(t, 1, earlier));
        ok(stint_session_truncate(s, 0, earlier));
        compute(s, 0, PROMPT, earlier, earlier + 30, wanted);
        compute(t, 1, PROMPT, earlier, earlier + 30, logits);
        expect_wanted("restored and truncated");
        stint_session_close(s);
        stint_session_close(t);
    }
    remove(file);
}

// Copies a saved session but for one section: its first bytes are others, or it is absent or short.
struct damage {
    const char *section;
    const void *bytes;
    size_t n_bytes, shorter;
};

static void copy_damaged(const char *from, const char *to, const struct damage *d) {
    struct st_map map = {0};
    struct st_package *package = NULL;
    struct st_package_writer *writer = NULL;
    ok(st_map_open(from, &map));
    ok(st_package_open(from, &map, &package));
    ok(st_package_create(to, &writer));
    for (size_t i = 0; i < st_package_count(package); i++) {
        struct st_section section = *st_package_at(package, i);
        bool hit = strcmp(section.name, d->section) == 0;
        if (hit && d->n_bytes == 0 && d->shorter == 0) continue;
        unsigned char *bytes = malloc(section.bytes);
        memcpy(bytes, section.data, section.bytes);
        if (hit && d->bytes) memcpy(bytes, d->bytes, d->n_bytes);
        if (hit) section.bytes -= d->shorter;
        if (hit) section.dims[0] -= d->shorter;
        section.data = bytes;
        ok(st_package_add(writer, &section));
        free(bytes);
    }
    ok(st_package_finish(writer));
    st_package_close(package);
    st_map_close(&map);
}

static void damaged_states_are_refused(void **state) {
    (void)state;
    static const int32_t none[] = {0}, beyond[] = {601}, back[] = {500, 400};
    static const unsigned char way[] = {0xc0};
    const struct damage damages[] = {
        {"state_lengths", none, sizeof none, 0},
        {"state_lengths", beyond, sizeof beyond, 0},
        {"state_lengths", back, sizeof back, 0},
        {"ways", way, sizeof way, 0},
        {"ways", NULL, 0, 0},
        {"ways", NULL, 0, 1},
        {hybrid->states, NULL, 0, 0},
        {hybrid->states, NULL, 0, 64},
        {hybrid->keys, NULL, 0, 0},
    };
    char whole[600], damaged[600];
    snprintf(whole, sizeof whole, "%s/whole.session", ts_temp_folder());
    snprintf(damaged, sizeof damaged, "%s/damaged.session", ts_temp_folder());
    stint_session *s = open_session(CHUNK, false);
    compute(s, 0, PROMPT, 0, 600, NULL);
    ok(stint_session_save(s, 0, whole));
    compute(s, 1, PROMPT, 0, 320, NULL);
    compute(s, 1, PROMPT, 320, 330, wanted);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        copy_damaged(whole, damaged, &damages[i]);
        assert_int_equal(stint_session_load(s, 1, damaged), STINT_E_FORMAT);
        ok(stint_session_truncate(s, 1, 320));
        compute(s, 1, PROMPT, 320, 330, logits);
        expect_wanted("refused");
    }
    const struct damage without = {"state_lengths", NULL, 0, 0}; // no states: all is computed again
    copy_damaged(whole, damaged, &without);
    ok(stint_session_load(s, 1, damaged));
    compute(s, 0, PROMPT, 600, 610, wanted);
    compute(s, 1, PROMPT, 600, 610, logits);
    expect_wanted("without states");
    stint_session_close(s);
    remove(whole);
    remove(damaged);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_texts_go_on_with_the_same_bits),
        cmocka_unit_test(split_prompts_leave_the_same_states),
        cmocka_unit_test(little_is_computed_again),
        cmocka_unit_test(an_edit_is_computed_from_the_last_border),
        cmocka_unit_test(steps_leave_borders),
        cmocka_unit_test(states_of_another_end_are_forgotten),
        cmocka_unit_test(rejected_drafts_leave_no_trace),
        cmocka_unit_test(canceled_prompts_leave_no_trace),
        cmocka_unit_test(files_hold_the_states),
        cmocka_unit_test(damaged_states_are_refused),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof hybrids / sizeof *hybrids; i++) {
        hybrid = &hybrids[i];
        failed += cmocka_run_group_tests_name(hybrid->name, tests, open_models, close_models);
    }
    return failed;
}
