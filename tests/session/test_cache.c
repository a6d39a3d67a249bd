// SPDX-License-Identifier: Apache-2.0
// Sessions with every type of KV cache that the library names, float and INT8, of a model whose
// keys have a norm and of one whose keys have large biases: sizes, how near their results are to
// those of an f32 cache, that they do not depend on threads and chunks, and that a saved sequence
// goes on as if it had never left.
#include "stint.h"
#include "base/half.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N_IDS = 90, CONTEXT = 128, MAX_TYPES = 16, N_MODELS = 4 };

static stint_model *models[N_MODELS]; // float and INT8 of each of two
static const char *types[MAX_TYPES];
static size_t n_types, vocab;
static int32_t ids[N_IDS];

static void read_types(void) {
    const char *name;
    while (n_types < MAX_TYPES && (name = stint_kv_name(n_types))) types[n_types++] = name;
}

// BF16 values of a tensor of 16, times a factor.
static void scale_tensor(unsigned char *file, const char *name, float factor) {
    uint64_t header;
    memcpy(&header, file, sizeof header);
    const char *entry = strstr((const char *)file + 8, name);
    assert_non_null(entry);
    size_t at = 8 + header + strtoull(strstr(entry, "data_offsets\":[") + 15, NULL, 10);
    for (size_t i = 0; i < 16; i++, at += 2) {
        uint16_t value;
        memcpy(&value, file + at, 2);
        value = st_bf16_from_f32(factor * st_f32_from_bf16(value));
        memcpy(file + at, &value, 2);
    }
}

// As in real models of this shape, which their training gives biases far above all else in a key.
static const char *with_large_biases(const char *source) {
    char path[600], name[64];
    size_t bytes;
    snprintf(path, sizeof path, "%s/config.json", source);
    unsigned char *file = ts_read(path, &bytes);
    ts_write("config.json", file, bytes);
    free(file);
    snprintf(path, sizeof path, "%s/model.safetensors", source);
    file = ts_read(path, &bytes);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "model.layers.%d.self_attn.k_proj.bias", i);
        scale_tensor(file, name, 32.0f);
    }
    ts_write("model.safetensors", file, bytes);
    free(file);
    return ts_temp_folder();
}

static void open_both(const char *source, const char *name, stint_model **both) {
    char package[600];
    stint_prepare_options o = {.size = sizeof o, .ids = ids, .n_ids = N_IDS};
    snprintf(package, sizeof package, "%s/%s.stint", ts_temp_folder(), name);
    ts_prepare(source, package, &o);
    if (stint_model_open(source, NULL, &both[0]) != STINT_OK ||
        stint_model_open(package, NULL, &both[1]) != STINT_OK)
        fail_msg("%s", stint_error_text());
}

static int open_models(void **state) {
    (void)state;
    vocab = 48;
    // The same ones each time: with biases this large, errors differ tenfold between texts.
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)((i * i * 7 + i * 13) % vocab);
    open_both(ts_source("tests/golden/models/qwen3-window"), "norm", models);
    open_both(with_large_biases(ts_source("tests/golden/models/qwen2-window")), "biases",
              models + 2);
    for (int i = 0; i < N_MODELS; i++) {
        stint_model_info info = {.size = sizeof info};
        assert_int_equal(stint_model_describe(models[i], &info), STINT_OK);
        assert_int_equal(info.vocab, vocab);
    }
    read_types();
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (int i = 0; i < N_MODELS; i++) stint_model_close(models[i]);
    return 0;
}

static stint_session_options options_of(const char *type) {
    return (stint_session_options){
        .size = sizeof(stint_session_options), .n_threads = 1, .n_context = CONTEXT, .kv = type};
}

static stint_session *open_session(const stint_model *model, const stint_session_options *options) {
    stint_session *s = NULL;
    if (stint_session_open(model, options, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

// Logits of every position: [N_IDS, vocab].
static float *evaluate(const stint_model *model, const stint_session_options *options) {
    stint_session *s = open_session(model, options);
    float *logits = malloc(N_IDS * vocab * sizeof *logits);
    assert_non_null(logits);
    if (stint_session_eval(s, 0, ids, N_IDS, true, logits) != STINT_OK)
        fail_msg("%s", stint_error_text());
    stint_session_close(s);
    return logits;
}

static void smaller_types_take_less(void **state) {
    (void)state;
    uint64_t bytes[MAX_TYPES], scratch;
    assert_true(n_types >= 2);
    for (size_t i = 0; i < n_types; i++) {
        stint_session_options o = options_of(types[i]);
        assert_int_equal(stint_session_measure(models[0], &o, &bytes[i], &scratch), STINT_OK);
        if (i > 0) assert_true(bytes[i] * 10 <= bytes[i - 1] * 7);
    }
}

static void other_names_are_refused(void **state) {
    (void)state;
    stint_session *s = NULL;
    for (int i = 0; i < 3; i++) {
        stint_session_options o = options_of((const char *[]){"f8", "", "f32|f16"}[i]);
        assert_int_equal(stint_session_open(models[0], &o, &s), STINT_E_ARG);
        assert_null(s);
        for (size_t t = 0; t < n_types; t++) assert_non_null(strstr(stint_error_text(), types[t]));
    }
}

// Of tokens that are computed together, or, in chunks of four, one by one as steps.
static void check_near(int m, uint32_t chunk) {
    stint_session_options o = options_of("f32");
    o.chunk_len = chunk;
    float *exact = evaluate(models[m], &o);
    for (size_t i = 1; i < n_types; i++) {
        double error = 0, power = 0;
        o.kv = types[i];
        float *got = evaluate(models[m], &o);
        for (size_t j = 0; j < N_IDS * vocab; j++) {
            error += pow((double)got[j] - (double)exact[j], 2);
            power += pow((double)exact[j], 2);
        }
        print_message("%s, model %d, chunk %u: %.2g of f32's\n", types[i], m, chunk,
                      sqrt(error / power));
        assert_true(error > 0 && sqrt(error / power) < (m % 2 == 0 ? 0.042 : 0.15));
        free(got);
    }
    free(exact);
}

static void results_are_near_those_of_floats(void **state) {
    (void)state;
    for (int m = 0; m < N_MODELS; m++) {
        check_near(m, 0);
        check_near(m, 4);
    }
}

static void threads_and_chunks_do_not_matter(void **state) {
    (void)state;
    for (int m = 0; m < N_MODELS; m++)
        for (size_t i = 0; i < n_types; i++) {
            stint_session_options o = options_of(types[i]);
            float *whole = evaluate(models[m], &o);
            o.n_threads = 3;
            o.chunk_len = 23;
            float *parts = evaluate(models[m], &o);
            assert_memory_equal(whole, parts, N_IDS * vocab * sizeof *whole);
            free(whole);
            free(parts);
        }
}

static void check_restored(const stint_model *model, const char *type, const char *other) {
    char path[600];
    float *wanted = malloc(vocab * sizeof *wanted), *got = malloc(vocab * sizeof *got);
    stint_session_options o = options_of(type), p = options_of(other);
    stint_session *a = open_session(model, &o), *b = open_session(model, &o);
    stint_session *c = open_session(model, &p);
    snprintf(path, sizeof path, "%s/%s.session", ts_temp_folder(), type);
    assert_int_equal(stint_session_eval(a, 0, ids, N_IDS - 1, false, NULL), STINT_OK);
    assert_int_equal(stint_session_save(a, 0, path), STINT_OK);
    assert_int_equal(stint_session_load(b, 0, path), STINT_OK);
    assert_int_equal(stint_session_eval(a, 0, ids + N_IDS - 1, 1, false, wanted), STINT_OK);
    assert_int_equal(stint_session_eval(b, 0, ids + N_IDS - 1, 1, false, got), STINT_OK);
    assert_memory_equal(got, wanted, vocab * sizeof *got);
    assert_int_equal(stint_session_load(c, 0, path), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "--kv"));
    stint_session_close(a);
    stint_session_close(b);
    stint_session_close(c);
    free(wanted);
    free(got);
}

static void saved_sequences_go_on_and_know_their_type(void **state) {
    (void)state;
    for (int m = 0; m < N_MODELS; m++)
        for (size_t i = 0; i < n_types; i++)
            check_restored(models[m], types[i], types[(i + 1) % n_types]);
}

// Before it is read: it may be any file.
static void files_too_large_for_the_context_are_refused(void **state) {
    (void)state;
    stint_session_options o = options_of(types[0]);
    stint_session *s = open_session(models[0], &o);
    char path[600];
    snprintf(path, sizeof path, "%s/long.session", ts_temp_folder());
    assert_int_equal(stint_session_eval(s, 0, ids, N_IDS - 1, false, NULL), STINT_OK);
    assert_int_equal(stint_session_save(s, 0, path), STINT_OK);
    assert_int_equal(truncate(path, 1L << 40), 0);
    assert_int_equal(stint_session_load(s, 0, path), STINT_E_LIMIT);
    assert_non_null(strstr(stint_error_text(), path));
    assert_int_equal(stint_session_length(s, 0), N_IDS - 1);
    stint_session_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smaller_types_take_less),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(results_are_near_those_of_floats),
        cmocka_unit_test(threads_and_chunks_do_not_matter),
        cmocka_unit_test(saved_sequences_go_on_and_know_their_type),
        cmocka_unit_test(files_too_large_for_the_context_are_refused),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
