// SPDX-License-Identifier: Apache-2.0
// A saved session goes back only into the model that it is from: one that differs in any tensor or
// in its configuration is another. Nobody but the owner can read it.
#include "stint.h"
#include "support/support.h"

#include "format/expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

static const char source[] = "tests/golden/models/llama-yarn";

static unsigned char *read_part(const char *name, size_t *n) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", source, name);
    return ts_read(ts_source(path), n);
}

// The model with these bytes, in a folder of its own.
static stint_model *open_model(const char *name, const void *config, size_t n_config,
                               const void *weights, size_t n_weights) {
    char folder[600], file[700];
    stint_model *model = NULL;
    snprintf(folder, sizeof folder, "%s/%s", ts_temp_folder(), name);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(file, sizeof file, "%s/config.json", name);
    ts_write(file, config, n_config);
    snprintf(file, sizeof file, "%s/model.safetensors", name);
    ts_write(file, weights, n_weights);
    if (stint_model_open(folder, NULL, &model) != STINT_OK) fail_msg("%s", stint_error_text());
    return model;
}

static stint_session *open_session(const stint_model *model) {
    stint_session *s = NULL;
    const stint_session_options o = {.size = sizeof o, .n_context = 32, .n_threads = 1};
    assert_int_equal(stint_session_open(model, &o, &s), STINT_OK);
    return s;
}

static void save(const stint_model *model, const char *path) {
    static const int32_t ids[] = {1, 5, 9, 2};
    stint_session *s = open_session(model);
    assert_int_equal(stint_session_eval(s, 0, ids, 4, false, NULL), STINT_OK);
    assert_int_equal(stint_session_save(s, 0, path), STINT_OK);
    stint_session_close(s);
}

static stint_status load(const stint_model *model, const char *path) {
    stint_session *s = open_session(model);
    stint_status status = stint_session_load(s, 0, path);
    stint_session_close(s);
    return status;
}

static void only_the_same_model_restores(void **state) {
    (void)state;
    size_t n_config, n_weights;
    unsigned char *config = read_part("config.json", &n_config),
                  *weights = read_part("model.safetensors", &n_weights);
    char path[600];
    struct stat info;
    snprintf(path, sizeof path, "%s/session", ts_temp_folder());
    stint_model *model = open_model("one", config, n_config, weights, n_weights);
    save(model, path);
    stint_model_close(model);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    model = open_model("same", config, n_config, weights, n_weights);
    assert_int_equal(load(model, path), STINT_OK);
    stint_model_close(model);
    weights[n_weights - 2] ^= 1; // the last bit of the last weight
    model = open_model("weight", config, n_config, weights, n_weights);
    assert_failure(load(model, path), STINT_E_ARG, "another model");
    stint_model_close(model);
    weights[n_weights - 2] ^= 1;
    char *theta = strstr((char *)config, "\"rms_norm_eps\": 1e-0");
    assert_non_null(theta);
    theta[strlen("\"rms_norm_eps\": 1e-0")] ^= 1; // another digit
    model = open_model("config", config, n_config, weights, n_weights);
    assert_failure(load(model, path), STINT_E_ARG, "another model");
    stint_model_close(model);
    free(config);
    free(weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_same_model_restores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
