// SPDX-License-Identifier: Apache-2.0
// The layer that predicts a further token: its logits are those of a reference in float64, however
// the text came; what it drafts leaves answers as they are; sessions without drafts do not have it.
#include "session/ahead.h"

#include "session/session.h"
#include "stint.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 40, VOCAB = 48, CONTEXT = 160, N_IDS = 100 };

static const char *const files[] = {"ahead-qwen35", "ahead-qwen35/model.gguf", "ahead-deepseek-v3"};
enum { N_FILES = sizeof files / sizeof *files };

static stint_model *models[N_FILES];
static int32_t tokens[N];

static const char *path_of(const char *name, const char *file) {
    static char relative[200];
    snprintf(relative, sizeof relative, "tests/golden/models/%s%s%s", name, *file ? "/" : "", file);
    return ts_source(relative);
}

static int open_models(void **state) {
    (void)state;
    for (int i = 0; i < N_FILES; i++)
        if (stint_model_open(path_of(files[i], ""), NULL, &models[i]) != STINT_OK)
            fail_msg("%s", stint_error_text());
    for (int i = 0; i < N; i++) tokens[i] = (int32_t)((i * 37 + 11) % (VOCAB - 4) + 3);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (int i = 0; i < N_FILES; i++) stint_model_close(models[i]);
    return 0;
}

static stint_session *open_session(const stint_model *m, size_t chunk, uint32_t n_drafts) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = CONTEXT,
                               .chunk_len = (uint32_t)chunk,
                               .n_sequences = 2,
                               .kv = "f32",
                               .n_drafts = n_drafts};
    if (stint_session_open(m, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

static void ok(stint_status status) {
    if (status != STINT_OK) fail_msg("%s", stint_error_text());
}

// What the layer says behind the first n tokens and the next one; the sequence is left as it was.
static void expect(stint_session *s, uint32_t q, size_t n, const float *golden, const char *what) {
    float logits[VOCAB], deviation = 0.0f, mean = 0.0f, worst = 0.0f;
    const float *wanted = golden + (n - 1) * VOCAB;
    assert_true(st_ahead_is_ready(s, q));
    ok(st_ahead_step(s, &q, &tokens[n], 1, true, logits));
    st_sequence_truncate(&s->sequences[q], n);
    for (int i = 0; i < VOCAB; i++) mean += wanted[i] / VOCAB;
    for (int i = 0; i < VOCAB; i++) {
        deviation += (wanted[i] - mean) * (wanted[i] - mean) / VOCAB;
        worst = fmaxf(worst, fabsf(logits[i] - wanted[i]));
    }
    if (!(worst < 2e-4f * sqrtf(deviation)))
        fail_msg("%s: %zu tokens: %g of %g", what, n, (double)worst, (double)sqrtf(deviation));
}

static void prompt(stint_session *s, uint32_t q, size_t from, size_t to) {
    ok(st_session_prompt(s, q, tokens + from, to - from, to, NULL));
}

static void prompts_give_the_logits_of_the_reference(void **state) {
    (void)state;
    static const size_t lengths[] = {1, 2, 8, 17, N - 1}, chunks[] = {64, 7};
    for (int f = 0; f < N_FILES; f++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(files[f], "/"), files[f]);
        float *golden = (float *)ts_read(path_of(name, "ahead.f32"), NULL);
        for (size_t c = 0; c < 2; c++) {
            stint_session *s = open_session(models[f], chunks[c], 4);
            assert_true(s->ahead.on);
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                ok(stint_session_truncate(s, 1, 0));
                prompt(s, 1, 0, lengths[i]);
                expect(s, 1, lengths[i], golden, files[f]);
            }
            stint_session_close(s);
        }
        free(golden);
    }
}

// Pieces, steps, drafts that were rejected and ends that were taken back.
static void however_the_text_came(void **state) {
    (void)state;
    for (int f = 0; f < N_FILES; f++) {
        char name[64];
        const uint32_t q = 0;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(files[f], "/"), files[f]);
        float *golden = (float *)ts_read(path_of(name, "ahead.f32"), NULL), logits[VOCAB];
        stint_session *s = open_session(models[f], 16, 4);
        prompt(s, 0, 0, 5);
        prompt(s, 0, 5, 12);
        expect(s, 0, 12, golden, "pieces");
        for (size_t i = 12; i < 20; i++) ok(stint_session_step(s, &q, &tokens[i], 1, NULL));
        expect(s, 0, 20, golden, "steps");
        expect(s, 0, 20, golden, "once more");
        ok(st_ahead_step(s, &q, &tokens[3], 1, true, logits)); // guesses that turn out wrong
        ok(st_ahead_step(s, &q, &tokens[4], 1, false, logits));
        st_sequence_truncate(&s->sequences[0], 20);
        const uint32_t rows[] = {0, 0, 0};
        const int32_t drafted[] = {tokens[20], tokens[21], tokens[5]};
        ok(st_session_step(s, 0, rows, drafted, 3, NULL));
        st_sequence_truncate(&s->sequences[0], 22); // the third was rejected
        expect(s, 0, 22, golden, "drafts");
        ok(stint_session_truncate(s, 0, 15));
        expect(s, 0, 15, golden, "taken back");
        ok(stint_session_truncate(s, 0, 3));
        assert_false(st_ahead_is_ready(s, 0));
        prompt(s, 0, 3, 15);
        prompt(s, 0, 15, 30);
        expect(s, 0, 30, golden, "another end");
        stint_session_close(s);
        free(golden);
    }
}

struct answer {
    int32_t ids[N_IDS];
    stint_generation_result result;
};

static void generate(const stint_model *m, uint32_t n_drafts, const stint_sampling *sampling,
                     struct answer *a) {
    stint_session *s = open_session(m, 16, n_drafts);
    stint_generation g = {
        .size = sizeof g, .sampling = sampling, .n_tokens = N_IDS, .ignore_eos = true};
    memset(a, 0, sizeof *a);
    a->result.size = sizeof a->result;
    s->drafting.costs.always = true;
    ok(stint_generate(s, tokens, 30, &g, a->ids, N_IDS, &a->result));
    stint_session_close(s);
}

static void answers_are_those_without_drafts(void **state) {
    (void)state;
    static struct answer plain, drafted;
    stint_logit_bias few[VOCAB - 3]; // leaves three tokens, so that some drafts are right
    for (int32_t i = 0; i < VOCAB - 3; i++) few[i] = (stint_logit_bias){i, -INFINITY};
    const stint_sampling samplings[] = {
        {.size = sizeof *samplings},
        {.size = sizeof *samplings, .temperature = 1.0f, .seed = 11},
        {.size = sizeof *samplings, .temperature = 0.5f, .repeat_penalty = 1.2f, .seed = 5},
        {.size = sizeof *samplings, .biases = few, .n_biases = VOCAB - 3},
    };
    size_t n_drafted = 0, n_accepted = 0;
    for (int f = 0; f < N_FILES; f++)
        for (size_t i = 0; i < 4; i++) {
            generate(models[f], 0, &samplings[i], &plain);
            generate(models[f], 5, &samplings[i], &drafted);
            assert_int_equal(plain.result.drafted_tokens, 0);
            assert_memory_equal(plain.ids, drafted.ids, sizeof plain.ids);
            assert_int_equal(plain.result.decode_steps,
                             drafted.result.decode_steps + drafted.result.accepted_tokens);
            n_drafted += drafted.result.self_drafted_tokens;
            n_accepted += drafted.result.self_accepted_tokens;
        }
    print_message("%zu drafted, %zu of them accepted\n", n_drafted, n_accepted);
    assert_true(n_drafted > 100 && n_accepted > 0);
}

static void sessions_without_drafts_do_not_have_it(void **state) {
    (void)state;
    stint_model *without = NULL;
    uint64_t kv[3], scratch[3];
    ok(stint_model_open(path_of("qwen35", ""), NULL, &without));
    for (int i = 0; i < 3; i++) {
        stint_session_options o = {
            .size = sizeof o, .n_context = CONTEXT, .n_drafts = i == 2 ? 4 : 0};
        ok(stint_session_measure(i ? models[0] : without, &o, &kv[i], &scratch[i]));
    }
    assert_int_equal(kv[0], kv[1]);
    assert_true(kv[2] > kv[1]);
    stint_session *s = open_session(models[0], 16, 0);
    assert_false(s->ahead.on);
    stint_session_close(s);
    stint_model_close(without);
}

// The model runs where what is behind its layers is not as expected.
static void another_form_is_left_out(void **state) {
    (void)state;
    size_t bytes, n_config;
    stint_model *m = NULL;
    unsigned char *data = ts_read(path_of("ahead-qwen35", "model.safetensors"), &bytes);
    unsigned char *config = ts_read(path_of("ahead-qwen35", "config.json"), &n_config);
    char *at = memmem(data, bytes, "mtp.norm.weight", 15);
    assert_non_null(at);
    memcpy(at, "mtp.form.weight", 15);
    ts_write("model.safetensors", data, bytes);
    ts_write("config.json", config, n_config);
    ok(stint_model_open(ts_temp_folder(), NULL, &m));
    stint_session *s = open_session(m, 16, 4);
    assert_false(s->ahead.on);
    prompt(s, 0, 0, 20);
    stint_session_close(s);
    stint_model_close(m);
    free(config);
    free(data);
}

static void packages_leave_it_out(void **state) {
    (void)state;
    char path[600];
    stint_model *package = NULL;
    stint_prepare_options o = {.size = sizeof o, .ids = tokens, .n_ids = N};
    snprintf(path, sizeof path, "%s/ahead.stint", ts_temp_folder());
    ts_prepare(path_of("ahead-qwen35", ""), path, &o);
    ok(stint_model_open(path, NULL, &package));
    stint_session *s = open_session(package, 16, 4);
    assert_false(s->ahead.on);
    assert_null(st_tensors_find(package->checkpoint.tensors, "mtp.fc.weight"));
    stint_session_close(s);
    stint_model_close(package);
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_give_the_logits_of_the_reference),
        cmocka_unit_test(however_the_text_came),
        cmocka_unit_test(answers_are_those_without_drafts),
        cmocka_unit_test(sessions_without_drafts_do_not_have_it),
        cmocka_unit_test(packages_leave_it_out),
        cmocka_unit_test(another_form_is_left_out),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
