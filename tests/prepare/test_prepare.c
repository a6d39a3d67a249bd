// SPDX-License-Identifier: Apache-2.0
// Preparing as a whole: what it says, what it refuses, and that it leaves nothing half done.
#include "stint.h"
#include "support/support.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <setjmp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define MODEL STINT_TESTS_DIR "/models/novels-2"

static char out[512];

static int name_package(void **state) {
    (void)state;
    snprintf(out, sizeof out, "%s/m.stint", ts_temp_folder());
    return 0;
}

static size_t n_files(void) {
    size_t n = 0;
    DIR *dir = opendir(ts_temp_folder());
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void assert_refused(stint_status status, stint_status expected, const char *piece) {
    assert_int_equal(status, expected);
    if (!strstr(stint_error_text(), piece))
        fail_msg("the text '%s' lacks '%s'", stint_error_text(), piece);
    assert_int_equal(n_files(), 0);
}

static void what_cannot_be_prepared_is_refused(void **state) {
    (void)state;
    const int32_t beyond = 5000;
    stint_prepare_options options = {.size = sizeof options, .ids = &beyond, .n_ids = 1};
    char nowhere[600];
    snprintf(nowhere, sizeof nowhere, "%s/no/such.stint", ts_temp_folder());
    assert_refused(stint_prepare(NULL, out, NULL, NULL), STINT_E_ARG, "NULL");
    assert_refused(stint_prepare(MODEL, "", NULL, NULL), STINT_E_ARG, "NULL");
    assert_refused(stint_prepare("/no/such/model", out, NULL, NULL), STINT_E_IO, "/no/such/model");
    assert_refused(stint_prepare(MODEL, nowhere, NULL, NULL), STINT_E_IO, "No such file");
    assert_refused(stint_prepare(MODEL, out, &options, NULL), STINT_E_ARG, "token 0 is 5000");
    options = (stint_prepare_options){.size = sizeof options, .text = "", .text_bytes = 0};
    assert_refused(stint_prepare(MODEL, out, &options, NULL), STINT_E_ARG, "empty");
    options =
        (stint_prepare_options){.size = sizeof options, .weight_scale = (stint_weight_scale)7};
    assert_refused(stint_prepare(MODEL, out, &options, NULL), STINT_E_ARG, "weight scale 7");
    options = (stint_prepare_options){
        .size = sizeof options, .bits_low = 2, .bits_high = 4, .one_set = 6};
    assert_refused(stint_prepare(MODEL, out, &options, NULL), STINT_E_ARG, "expected 7 or 8");
    options.one_set = 8;
    options.bits_low = options.bits_high = 0;
    assert_refused(stint_prepare(MODEL, out, &options, NULL), STINT_E_ARG, "nested weights");
    options = (stint_prepare_options){
        .size = sizeof options, .bits_low = 2, .bits_high = 4, .one_set = 8, .sparse = 0.01f};
    assert_refused(stint_prepare(MODEL, out, &options, NULL), STINT_E_ARG, "without outliers");
}

static void progress_is_whole_and_rises(void *context, const char *what, uint64_t done,
                                        uint64_t total) {
    uint64_t *last = context;
    assert_true(done == *last + 1 && done <= total && total == 7);
    assert_non_null(what);
    *last = done;
}

static void a_package_stands_alone(void **state) {
    (void)state;
    uint64_t last = 0;
    stint_model *model = NULL;
    stint_prepare_options options = {.size = sizeof options,
                                     .n_tokens = 200,
                                     .progress = progress_is_whole_and_rises,
                                     .progress_context = &last,
                                     .weight_scale = STINT_SCALE_TENSOR};
    stint_prepare_summary summary = {.size = sizeof summary};
    assert_int_equal(stint_prepare(MODEL, out, &options, &summary), STINT_OK);
    assert_int_equal(last, 7);
    assert_int_equal(summary.n_tokens, 200);
    assert_int_equal(summary.n_linears, 9);
    assert_true(summary.seconds > 0);
    struct stat info;
    assert_int_equal(stat(out, &info), 0);
    assert_int_equal(summary.bytes, info.st_size);
    assert_int_equal(n_files(), 1);
    assert_int_equal(stint_model_open(out, NULL, &model), STINT_OK);
    assert_non_null(stint_model_tokenizer(model));
    assert_int_equal(stint_tokenizer_vocab(stint_model_tokenizer(model)), 4096);
    stint_model_info described = {.size = sizeof described}, source = described;
    assert_int_equal(stint_model_describe(model, &described), STINT_OK);
    stint_model_close(model);
    assert_int_equal(stint_model_open(MODEL, NULL, &model), STINT_OK);
    assert_int_equal(stint_model_describe(model, &source), STINT_OK);
    stint_model_close(model);
    assert_string_equal(described.weight_type, "int8");
    assert_int_equal(described.n_parameters, source.n_parameters);
    assert_true(described.bytes_per_decoded_token * 2 == source.bytes_per_decoded_token);
    // A package is no source, and its own name is not written over by accident.
    assert_int_equal(stint_prepare(out, out, NULL, NULL), STINT_E_UNSUPPORTED);
    assert_non_null(strstr(stint_error_text(), "is a package already"));
    unlink(out);
}

static void count_warnings(void *context, stint_log_level level, const char *text) {
    if (level == STINT_LOG_WARNING && strstr(text, "first choices")) ++*(size_t *)context;
}

static double number_of(const json_t *loss, const char *key) {
    return json_number_value(json_object_get(loss, key));
}

// Each precision loses more than the one above it, the highest more than INT8; those that lose too
// much are named.
static void the_loss_at_each_precision_is_noted(void **state) {
    (void)state;
    stint_model *model = NULL;
    stint_prepare_options options = {
        .size = sizeof options, .n_tokens = 900, .bits_low = 2, .bits_high = 4};
    stint_prepare_summary summary = {.size = sizeof summary};
    size_t warnings = 0, expected = 0, bytes = 0;
    stint_log_set(count_warnings, &warnings, STINT_LOG_WARNING);
    const char *source = ts_trained(); // losses want one that was trained so
    assert_int_equal(stint_prepare(source, out, &options, &summary), STINT_OK);
    stint_log_set(NULL, NULL, STINT_LOG_WARNING);
    assert_true(summary.held_out_tokens > 0);
    assert_int_equal(stint_model_open(out, NULL, &model), STINT_OK);
    const char *text = stint_model_notes(model, &bytes);
    json_t *notes = json_loadb(text, bytes, 0, NULL), *losses = json_object_get(notes, "losses");
    assert_int_equal(json_array_size(losses), 3);
    double divergence = INFINITY, same = 0.0;
    for (size_t i = 0; i < 3; i++) {
        const json_t *loss = json_array_get(losses, i);
        assert_true(number_of(loss, "bits") == (double)(2 + i));
        assert_true(number_of(loss, "divergence") < divergence);
        assert_true(number_of(loss, "top1_agreement") >= same);
        assert_true(number_of(loss, "perplexity_ratio") > (ts_is_emulated() ? 0.5 : 0.9));
        divergence = number_of(loss, "divergence");
        same = number_of(loss, "top1_agreement");
        expected += same < 0.6;
    }
    assert_true(divergence > summary.divergence);
    assert_int_equal(warnings, expected);
    json_decref(notes);
    stint_model_close(model);
    unlink(out);
}

static bool after_some_time(void *context) {
    return --*(int *)context < 0;
}

static void a_canceled_package_leaves_nothing(void **state) {
    (void)state;
    for (int after = 0; after < 30; after += 4) {
        int left = after;
        stint_prepare_options options = {.size = sizeof options,
                                         .n_tokens = 300,
                                         .canceled = after_some_time,
                                         .canceled_context = &left};
        assert_refused(stint_prepare(MODEL, out, &options, NULL), STINT_E_CANCELED, "canceled");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_prepared_is_refused),
        cmocka_unit_test(a_package_stands_alone),
        cmocka_unit_test(the_loss_at_each_precision_is_noted),
        cmocka_unit_test(a_canceled_package_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, name_package, NULL);
}
