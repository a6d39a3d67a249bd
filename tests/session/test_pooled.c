// SPDX-License-Identifier: Apache-2.0
// Embeddings of texts: the output head is linear, so what it makes of an embedding is what the
// reference's logits give when they are pooled alike, up to a factor.
#include "session/pooled.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 48 }; // tokens of a golden text

static stint_model *models[2]; // float, INT8

static int open_models(void **state) {
    (void)state;
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 300, .outliers = STINT_OUTLIERS_NONE};
    const char *source = ts_built("models/novels-2");
    assert_int_equal(stint_model_open(source, NULL, &models[0]), STINT_OK);
    models[1] = ts_package(source, "int8", &o);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) stint_model_close(models[i]);
    return 0;
}

struct golden {
    stint_model *model;
    int32_t ids[N];
    float *logits; // [N, vocab]
};

static void read_golden(const char *family, struct golden *g) {
    char path[128];
    snprintf(path, sizeof path, "fixtures/models/%s", family);
    if (stint_model_open(ts_shared(path), NULL, &g->model) != STINT_OK)
        fail_msg("%s", stint_error_text());
    snprintf(path, sizeof path, "fixtures/models/%s/logits.f32", family);
    g->logits = (float *)(void *)ts_read(ts_shared(path), NULL);
    snprintf(path, sizeof path, "fixtures/models/%s/tokens.json", family);
    json_t *tokens = json_load_file(ts_shared(path), 0, NULL);
    const json_t *list = json_object_get(tokens, "tokens");
    assert_int_equal(json_array_size(list), N);
    for (size_t i = 0; i < N; i++) g->ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    json_decref(tokens);
}

static stint_session *open_session(const stint_model *m, uint32_t chunk, uint32_t npu_threads) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 2,
                               .n_context = 64,
                               .chunk_len = chunk,
                               .kv = "f32",
                               .npu_threads = npu_threads,
                               .n_sequences = 2};
    if (stint_session_open(m, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

// What the kind makes of the golden logits, column by column.
static double wanted(const struct golden *g, stint_pooling kind, size_t column) {
    size_t vocab = g->model->config.vocab;
    double sum = 0.0;
    if (kind == STINT_POOLING_FIRST) return (double)g->logits[column];
    if (kind == STINT_POOLING_LAST) return (double)g->logits[(N - 1) * vocab + column];
    for (size_t t = 0; t < N; t++) sum += (double)g->logits[t * vocab + column];
    return sum;
}

// 1 - cosine of the head's answer to the vector and of the pooled logits.
static double angle(const struct golden *g, const stint_session *s, stint_pooling kind,
                    const float *vector) {
    const struct st_weights *w = &g->model->weights;
    size_t vocab = g->model->config.vocab, width = g->model->config.embed;
    float *row = malloc(width * sizeof *row);
    double dot = 0.0, a = 0.0, b = 0.0;
    for (size_t i = 0; i < vocab; i++) {
        double got = 0.0, want = wanted(g, kind, i);
        st_session_row(s, &w->head, i, row);
        for (size_t k = 0; k < width; k++) got += (double)row[k] * (double)vector[k];
        dot += got * want;
        a += got * got;
        b += want * want;
    }
    free(row);
    return 1.0 - dot / sqrt(a * b);
}

static double length(const float *vector, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)vector[i] * (double)vector[i];
    return sqrt(sum);
}

static void they_agree_with_the_golden_logits(void **state) {
    (void)state;
    static const char *const families[] = {"llama2", "qwen2", "qwen3", "mixtral", "gemma"};
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        struct golden g;
        read_golden(families[f], &g);
        size_t width = g.model->config.embed;
        float *vector = malloc(width * sizeof *vector);
        stint_session *s = open_session(g.model, 16, 0);
        for (stint_pooling kind = STINT_POOLING_MEAN; kind <= STINT_POOLING_FIRST; kind++) {
            assert_int_equal(stint_session_embed(s, 0, g.ids, N, kind, vector), STINT_OK);
            assert_true(fabs(length(vector, width) - 1.0) < 1e-5);
            double off = angle(&g, s, kind, vector);
            if (!(off < 1e-8)) fail_msg("%s, pooling %d: %g", families[f], (int)kind, off);
            assert_int_equal(stint_session_length(s, 0), N);
        }
        stint_session_close(s);
        free(vector);
        free(g.logits);
        stint_model_close(g.model);
    }
}

// The text before it, its chunks and a split change nothing.
static void a_text_has_one_embedding(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        stint_model_info info = {.size = sizeof info};
        int32_t ids[40];
        float vectors[4][1024];
        stint_model_describe(models[i], &info);
        for (size_t t = 0; t < 40; t++) ids[t] = (int32_t)(3 + ts_random_below(4000));
        stint_session *s[4] = {open_session(models[i], 64, 0), open_session(models[i], 16, 0),
                               open_session(models[i], 8, i > 0), // floats have no NPU
                               NULL};
        s[3] = s[0];
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(
                stint_session_embed(s[k], k % 2, ids, 40, STINT_POOLING_DEFAULT, vectors[k]),
                STINT_OK);
            if (memcmp(vectors[0], vectors[k], info.embedding * sizeof(float)) != 0)
                fail_msg("model %d: case %zu differs", i, k);
        }
        for (size_t k = 0; k < 3; k++) stint_session_close(s[k]);
    }
}

static void what_is_not_a_text_is_refused(void **state) {
    (void)state;
    stint_session *s = open_session(models[0], 0, 0);
    float vector[1024];
    int32_t ids[65] = {5};
    assert_int_equal(stint_session_embed(s, 2, ids, 1, 0, vector), STINT_E_ARG);
    assert_int_equal(stint_session_embed(s, 0, ids, 0, 0, vector), STINT_E_ARG);
    assert_int_equal(stint_session_embed(s, 0, ids, 65, 0, vector), STINT_E_LIMIT);
    assert_int_equal(stint_session_embed(s, 0, ids, 1, (stint_pooling)4, vector), STINT_E_ARG);
    ids[0] = -1;
    assert_int_equal(stint_session_embed(s, 0, ids, 1, 0, vector), STINT_E_ARG);
    stint_session_close(s);
}

static void damaged_weights_are_told(void **state) {
    (void)state;
    float vector[2] = {1.0f, NAN};
    struct st_pooled pooled = {.kind = STINT_POOLING_MEAN, .n = 1, .vector = vector};
    assert_int_equal(st_pooled_finish(2, &pooled), STINT_E_FORMAT);
    vector[1] = 0.0f;
    assert_int_equal(st_pooled_finish(2, &pooled), STINT_OK);
    vector[0] = 0.0f; // has no direction
    assert_int_equal(st_pooled_finish(2, &pooled), STINT_OK);
    assert_true(vector[0] == 0.0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_agree_with_the_golden_logits),
        cmocka_unit_test(a_text_has_one_embedding),
        cmocka_unit_test(what_is_not_a_text_is_refused),
        cmocka_unit_test(damaged_weights_are_told),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
