// SPDX-License-Identifier: Apache-2.0
// Every own golden checkpoint as a session meets it: the bits do not depend on how a prompt is cut,
// on what was forgotten before, on the sequences beside it, or on a file in between.
#include "stint.h"
#include "support/support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_SEQUENCES = 3, N_PROMPT = 45, N_STEPS = 12, CONTEXT = N_PROMPT + N_STEPS };

struct subject {
    const stint_model *model;
    const char *path;
    size_t vocab;
    int32_t ids[N_SEQUENCES][CONTEXT];
    float *logits, *wanted;
};

static stint_session *open_session(const struct subject *t, size_t chunk) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = CONTEXT,
                               .chunk_len = chunk,
                               .n_sequences = N_SEQUENCES};
    if (stint_session_open(t->model, &o, &s) != STINT_OK)
        fail_msg("%s: %s", t->path, stint_error_text());
    return s;
}

static void prompt(const struct subject *t, stint_session *s, uint32_t q, size_t from,
                   float *logits) {
    if (stint_session_eval(s, q, t->ids[q] + from, N_PROMPT - from, false, logits) != STINT_OK)
        fail_msg("%s: %s", t->path, stint_error_text());
}

static void expect_equal(const struct subject *t, const float *got, const float *wanted, size_t n,
                         const char *what) {
    if (memcmp(got, wanted, n * t->vocab * sizeof *got) != 0) fail_msg("%s: %s", t->path, what);
}

static void cuts_do_not_matter(const struct subject *t) {
    static const size_t chunks[] = {7, 16, 31};
    stint_session *whole = open_session(t, 64);
    prompt(t, whole, 0, 0, t->wanted);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        stint_session *s = open_session(t, chunks[i]);
        prompt(t, s, 0, 0, t->logits);
        expect_equal(t, t->logits, t->wanted, 1, "a chunked prompt differs");
        size_t kept = ts_random_below(N_PROMPT - 6);
        assert_int_equal(stint_session_truncate(s, 0, kept), STINT_OK);
        prompt(t, s, 0, kept, t->logits);
        expect_equal(t, t->logits, t->wanted, 1, "a prompt whose end was read again differs");
        stint_session_close(s);
    }
    stint_session_close(whole);
}

static void step(const struct subject *t, stint_session *s, const uint32_t *sequences,
                 const uint32_t *texts, size_t n, size_t i, float *logits) {
    int32_t ids[N_SEQUENCES];
    for (size_t q = 0; q < n; q++) ids[q] = t->ids[texts[q]][N_PROMPT + i];
    if (stint_session_step(s, sequences, ids, n, logits) != STINT_OK)
        fail_msg("%s: %s", t->path, stint_error_text());
}

// Texts alone, then side by side, halfway saved and restored into each other's places.
static void neighbours_and_files_do_not_matter(const struct subject *t) {
    static const uint32_t texts[] = {0, 1, 2}, turned[] = {1, 2, 0};
    char path[N_SEQUENCES][600];
    stint_session *alone = open_session(t, 16), *s = open_session(t, 16);
    stint_session *restored = open_session(t, 16);
    for (uint32_t q = 0; q < N_SEQUENCES; q++) {
        prompt(t, alone, q, 0, NULL);
        prompt(t, s, q, 0, NULL);
        for (size_t i = 0; i < N_STEPS; i++)
            step(t, alone, &q, &q, 1, i, t->wanted + (i * N_SEQUENCES + q) * t->vocab);
    }
    for (size_t i = 0; i < N_STEPS / 2; i++) {
        step(t, s, texts, texts, N_SEQUENCES, i, t->logits);
        expect_equal(t, t->logits, t->wanted + i * N_SEQUENCES * t->vocab, N_SEQUENCES,
                     "texts side by side differ");
    }
    for (uint32_t q = 0; q < N_SEQUENCES; q++) {
        snprintf(path[q], sizeof path[q], "%s/%u.session", ts_temp_folder(), q);
        assert_int_equal(stint_session_save(s, q, path[q]), STINT_OK);
        assert_int_equal(stint_session_load(restored, turned[q], path[q]), STINT_OK);
        remove(path[q]);
    }
    for (size_t i = N_STEPS / 2; i < N_STEPS; i++) {
        step(t, restored, turned, texts, N_SEQUENCES, i, t->logits);
        expect_equal(t, t->logits, t->wanted + i * N_SEQUENCES * t->vocab, N_SEQUENCES,
                     "restored texts differ");
    }
    stint_session_close(alone);
    stint_session_close(s);
    stint_session_close(restored);
}

static void check(const char *path) {
    stint_model *model = NULL;
    stint_model_info info = {.size = sizeof info};
    if (stint_model_open(path, NULL, &model) != STINT_OK ||
        stint_model_describe(model, &info) != STINT_OK)
        fail_msg("%s: %s", path, stint_error_text());
    struct subject t = {.model = model, .path = path, .vocab = info.vocab};
    t.logits = malloc(N_SEQUENCES * t.vocab * sizeof *t.logits);
    t.wanted = malloc((size_t)N_SEQUENCES * N_STEPS * t.vocab * sizeof *t.wanted);
    for (size_t q = 0; q < N_SEQUENCES; q++)
        for (size_t i = 0; i < CONTEXT; i++) t.ids[q][i] = (int32_t)ts_random_below(t.vocab);
    cuts_do_not_matter(&t);
    neighbours_and_files_do_not_matter(&t);
    free(t.logits);
    free(t.wanted);
    stint_model_close(model);
}

// Their frequencies depend on the length of the whole text, so a cut prompt is another one.
static bool scales_by_length(const char *name) {
    return strcmp(name, "llama-dynamic") == 0 || strncmp(name, "phi3-", 5) == 0 ||
           strcmp(name, "phi4-mini") == 0;
}

static void every_family_keeps_its_bits(void **state) {
    (void)state;
    const char *root = ts_source("tests/golden/models");
    char path[700];
    size_t n_checked = 0;
    DIR *folder = opendir(root);
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.' || scales_by_length(entry->d_name)) continue;
        snprintf(path, sizeof path, "%s/%s", root, entry->d_name);
        check(path);
        snprintf(path, sizeof path, "%s/%s/model.gguf", root, entry->d_name);
        FILE *file = fopen(path, "rb");
        if (file) fclose(file);
        if (file) check(path);
        n_checked++;
    }
    closedir(folder);
    assert_true(n_checked > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_family_keeps_its_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
