// SPDX-License-Identifier: Apache-2.0
// Precisions over time, the files they come from, and nested weights in a session.
#include "session/precision/schedule.h"
#include "session/session.h"
#include "support/kinds.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MODEL STINT_TESTS_DIR "/models/novels-2"

#define SIGNAL "\"prefill\":8,\"decode\":[[4,0],[3,0],[2,0]],\"signal\":\"margin\","

static stint_model *model, *flat; // with nested weights, and without
static char fingerprint[ST_FINGERPRINT_BYTES];

static stint_model *prepare(const char *name, uint32_t low, uint32_t high, float sparse) {
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = 300,
                               .outliers = STINT_OUTLIERS_NONE,
                               .bits_low = low,
                               .bits_high = high,
                               .sparse = sparse};
    return ts_package(MODEL, name, &o);
}

static int open_models(void **state) {
    (void)state;
    model = prepare("nested", 2, 4, 0.0f);
    flat = prepare("flat", 0, 0, 0.0f);
    st_schedule_fingerprint(model, fingerprint);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    stint_model_close(model);
    stint_model_close(flat);
    return 0;
}

static void precision_falls_where_it_says(void **state) {
    (void)state;
    const stint_precision p = {.n_steps = 3, .steps = {{4, 0}, {3, 10}, {2, 20}}};
    const unsigned wanted[][2] = {{0, 4}, {9, 4}, {10, 3}, {19, 3}, {20, 2}, {1000, 2}};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(st_precision_at(&p, wanted[i][0], 0.0f), wanted[i][1]);
}

static void assert_refused(const char *spec, stint_status wanted, const char *piece) {
    struct st_precision_schedule s = {0};
    assert_int_equal(st_schedule_load(model, spec, &s), wanted);
    if (!strstr(stint_error_text(), piece)) fail_msg("'%s' lacks '%s'", stint_error_text(), piece);
}

static const char *file(const char *package, const char *rest) {
    char text[512];
    snprintf(text, sizeof text, "{\"stint_schedule\":1,\"package\":\"%s\",%s}", package, rest);
    return ts_write_text("s.json", text);
}

static void bad_schedules_are_refused_with_the_reason(void **state) {
    (void)state;
    const char *f = fingerprint;
    const struct {
        const char *package, *rest, *piece;
        stint_status status;
    } cases[] = {
        {"0123456789abcdef", "\"prefill\":8,\"decode\":[[4,0]]", "another package", STINT_E_ARG},
        {f, "\"prefill\":8,\"decode\":[[5,0]]", "precision 5: this package has 2 to 4",
         STINT_E_ARG},
        {f, "\"prefill\":7,\"decode\":[[4,0]]", "precision 7", STINT_E_ARG},
        {f, "\"prefill\":8,\"decode\":[[4,1]]", "starts at step 1, not 0", STINT_E_ARG},
        {f, "\"prefill\":8,\"decode\":[[4,0],[3,9],[2,8]]", "before the one above", STINT_E_ARG},
        {f, "\"prefill\":8,\"decode\":[[3,0],[4,9]]", "rises from 3 to 4", STINT_E_ARG},
        {f, "\"prefill\":8,\"decode\":[]", "1 to 8 steps", STINT_E_ARG},
        {f, "\"prefill\":8,\"decode\":[[4]]", "pairs", STINT_E_FORMAT},
        {f, "\"prefill\":8,\"decode\":[[4,-1]]", "whole numbers", STINT_E_FORMAT},
        {f, "\"prefill\":8,\"decode\":[[4,0.5]]", "pairs", STINT_E_FORMAT},
        {f, "\"prefill\":8", "\"decode\" is missing", STINT_E_FORMAT},
        {f, "\"prefill\":\"x\",\"decode\":[[4,0]]", "prefill", STINT_E_FORMAT},
        {f, SIGNAL "\"thresholds\":[0.1,0.5]", "threshold 1 is 0.5: they fall", STINT_E_ARG},
        {f, SIGNAL "\"thresholds\":[0.5,-1]", "none is negative", STINT_E_ARG},
        {f, SIGNAL "\"thresholds\":[0.5]", "a list of 2 numbers", STINT_E_FORMAT},
        {f, SIGNAL "\"thresholds\":[0.5,\"x\"]", "holds numbers", STINT_E_FORMAT},
        {f, SIGNAL "\"x\":1", "a list of 2 numbers", STINT_E_FORMAT},
        {f, "\"prefill\":8,\"decode\":[[4,0],[3,1]],\"signal\":\"entropy\",\"thresholds\":[1]",
         "with a signal all start at 0", STINT_E_ARG},
        {f, "\"prefill\":8,\"decode\":[[4,0]],\"signal\":\"mood\"", "'mood' is not known",
         STINT_E_ARG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(file(cases[i].package, cases[i].rest), cases[i].status, cases[i].piece);
    assert_refused(ts_write_text("x.json", "{}"), STINT_E_FORMAT, "not a precision schedule");
    assert_refused(ts_write_text("x.json", "nonsense"), STINT_E_FORMAT, "x.json");
    assert_refused("/no/such/file", STINT_E_IO, "/no/such/file");
    assert_refused("uniform:9", STINT_E_ARG, "precision 9");
    assert_refused("uniform:x", STINT_E_ARG, "uniform:B");
    struct st_precision_schedule s = {0};
    assert_int_equal(st_schedule_load(flat, "uniform:4", &s), STINT_E_UNSUPPORTED);
    assert_non_null(strstr(stint_error_text(), "--bits 2..4"));
}

static void a_written_schedule_is_read_again(void **state) {
    (void)state;
    char path[600];
    const stint_precision p = {
        .size = sizeof p, .prefill = 8, .n_steps = 2, .steps = {{4, 0}, {2, 7}}};
    struct st_precision_schedule s = {0};
    snprintf(path, sizeof path, "%s/out.json", ts_temp_folder());
    assert_int_equal(st_schedule_write(model, &p, path), STINT_OK);
    assert_int_equal(st_schedule_load(model, path, &s), STINT_OK);
    assert_memory_equal(&s.precision, &p, sizeof p);
    assert_null(s.learned);
    const stint_precision by_signal = {.size = sizeof p,
                                       .prefill = 4,
                                       .n_steps = 3,
                                       .steps = {{4, 0}, {3, 0}, {2, 0}},
                                       .signal = STINT_SIGNAL_ENTROPY,
                                       .thresholds = {1.1f, 0.3f}};
    assert_int_equal(st_schedule_write(model, &by_signal, path), STINT_OK);
    assert_int_equal(st_schedule_load(model, path, &s), STINT_OK);
    assert_memory_equal(&s.precision, &by_signal, sizeof by_signal);
    snprintf(path, sizeof path, "%s/no/out.json", ts_temp_folder());
    assert_int_equal(st_schedule_write(model, &p, path), STINT_E_IO);
}

static void random_ids(int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)ts_random_below(4000);
}

static float *logits_of(const stint_model *m, uint32_t bits, const int32_t *ids, size_t n,
                        size_t at_once, uint32_t n_threads) {
    size_t vocab = m->config.vocab;
    float *out = malloc(n * vocab * sizeof *out);
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o, .n_threads = n_threads, .n_context = 64};
    stint_precision p = {.size = sizeof p, .prefill = bits, .n_steps = 1, .steps = {{bits, 0}}};
    assert_int_equal(stint_session_open(m, &o, &s), STINT_OK);
    assert_int_equal(stint_session_set_precision(s, &p), STINT_OK);
    assert_int_equal(stint_session_bits(s), bits);
    for (size_t i = 0; i < n; i += at_once)
        assert_int_equal(stint_session_eval(s, 0, ids + i, n - i < at_once ? n - i : at_once, true,
                                            out + i * vocab),
                         STINT_OK);
    stint_session_close(s);
    return out;
}

static double distance(const float *a, const float *b, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum / (double)n);
}

// Fewer bits are farther from the source; threads change nothing. Single tokens differ from a
// prompt by attention's order of summation, which can move an input by one step of its INT8.
static void every_precision_computes(void **state) {
    (void)state;
    enum { N = 12 };
    int32_t ids[N];
    size_t vocab = model->config.vocab;
    random_ids(ids, N);
    stint_model *source = NULL;
    assert_int_equal(stint_model_open(MODEL, NULL, &source), STINT_OK);
    stint_session *s = NULL;
    float *exact = malloc(N * vocab * sizeof *exact);
    assert_int_equal(stint_session_open(source, NULL, &s), STINT_OK);
    assert_int_equal(stint_session_eval(s, 0, ids, N, true, exact), STINT_OK);
    stint_session_close(s);
    stint_model_close(source);
    double last = INFINITY;
    for (uint32_t bits = 2; bits <= 4; bits++) {
        float *all = logits_of(model, bits, ids, N, N, 2);
        float *one = logits_of(model, bits, ids, N, 1, 2);
        float *thread = logits_of(model, bits, ids, N, N, 1);
        assert_memory_equal(all, thread, N * vocab * sizeof *all);
        assert_true(distance(all, one, N * vocab) < 0.1);
        double off = distance(all, exact, N * vocab);
        assert_true(off < last);
        last = off;
        free(all);
        free(one);
        free(thread);
    }
    assert_true(last < 0.5);
    free(exact);
}

// Weights kept beside the codes bring the result nearer on average: of prompts of 8 tokens, one in
// fifteen moves away.
static void outliers_help(void **state) {
    (void)state;
    enum { N = 60 };
    int32_t ids[N];
    random_ids(ids, N);
    stint_model *sparse = prepare("sparse", 2, 3, 0.05f);
    float *exact = logits_of(model, 8, ids, N, N, 2);
    float *plain = logits_of(model, 2, ids, N, N, 2), *kept = logits_of(sparse, 2, ids, N, N, 2);
    size_t n = N * model->config.vocab;
    assert_true(distance(kept, exact, n) < distance(plain, exact, n));
    free(exact);
    free(plain);
    free(kept);
    stint_model_close(sparse);
}

static bool note_bits(void *context, const stint_piece *piece) {
    char *out = context;
    (void)piece;
    out[strlen(out)] = (char)('0' + stint_session_bits(*(stint_session **)(out + 32)));
    return true;
}

static void generation_follows_the_schedule(void **state) {
    (void)state;
    struct {
        char bits[32];
        stint_session *session;
    } c = {{0}, NULL};
    const int32_t prompt[] = {1, 2, 3, 4, 5, 6};
    stint_session_options o = {
        .size = sizeof o,
        .schedule = file(fingerprint, "\"prefill\":8,\"decode\":[[4,0],[3,3],[2,5]]")};
    stint_generation g = {
        .size = sizeof g, .n_tokens = 8, .ignore_eos = true, .text = note_bits, .context = &c};
    stint_generation_result r = {.size = sizeof r};
    stint_precision p = {.size = sizeof p};
    assert_int_equal(stint_session_open(model, &o, &c.session), STINT_OK);
    assert_false(stint_session_precision(c.session, &p));
    assert_int_equal(p.n_steps, 3);
    assert_int_equal(stint_generate(c.session, prompt, 6, &g, NULL, 0, &r), STINT_OK);
    assert_string_equal(c.bits, "84443322");
    assert_true(fabs(r.average_bits - (4 + 4 + 4 + 3 + 3 + 2 + 2) / 7.0) < 1e-9);
    assert_int_equal(stint_session_set_precision(c.session, NULL), STINT_OK);
    assert_int_equal(stint_session_bits(c.session), 8);
    stint_session_close(c.session);
}

static void bytes_fall_with_bits(void **state) {
    (void)state;
    stint_model_info info = {.size = sizeof info};
    assert_int_equal(stint_model_describe(model, &info), STINT_OK);
    assert_int_equal(info.nested_low, 2);
    assert_int_equal(info.nested_high, 4);
    uint64_t b2 = stint_model_bytes_per_token(model, 2), b3 = stint_model_bytes_per_token(model, 3),
             b4 = stint_model_bytes_per_token(model, 4);
    assert_true(b2 < b3 && b3 < b4 && b4 < info.bytes_per_decoded_token);
    assert_true(info.nested_bytes >= b4 && info.nested_bytes < b4 + b4 / 3);
    assert_int_equal(stint_model_bytes_per_token(model, 8), info.bytes_per_decoded_token);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(precision_falls_where_it_says),
        cmocka_unit_test(bad_schedules_are_refused_with_the_reason),
        cmocka_unit_test(a_written_schedule_is_read_again),
        cmocka_unit_test(every_precision_computes),
        cmocka_unit_test(outliers_help),
        cmocka_unit_test(generation_follows_the_schedule),
        cmocka_unit_test(bytes_fall_with_bits),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
