// SPDX-License-Identifier: Apache-2.0
#include "server/api/metrics.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *label(size_t i) {
    static const char *const labels[] = {"/a", "/b"};
    return labels[i];
}

static struct st_metrics *open_metrics(void **state) {
    struct st_metrics *metrics = NULL;
    (void)state;
    assert_int_equal(st_metrics_open(label, 2, &metrics), STINT_OK);
    return metrics;
}

// The text, terminated.
static char *written(struct st_metrics *metrics) {
    struct st_json_text out = {0};
    const struct st_model_view view = {
        .name = "m", .stats = {.slots = 3, .prompt_tokens = 8, .reused_tokens = 2}};
    st_metrics_write(metrics, &view, 1, &out);
    st_json_rawn(&out, "", 1);
    assert_false(out.failed);
    return out.bytes.data;
}

// The value of the line that begins with `name`; -1: there is none.
static double value(const char *text, const char *name) {
    char line[128];
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(text, line);
    return at != NULL ? strtod(at + strlen(line), NULL) : -1;
}

static void requests_are_told_apart(void **state) {
    struct st_metrics *metrics = open_metrics(state);
    st_metrics_request(metrics, 0, 200);
    st_metrics_request(metrics, 1, 200);
    st_metrics_request(metrics, 1, 200);
    st_metrics_request(metrics, 1, 429);
    st_metrics_request(metrics, SIZE_MAX, 404);
    st_metrics_request(metrics, 0, 999); // of no known status
    char *text = written(metrics);
    assert_true(value(text, "stint_requests_total{route=\"/a\",code=\"200\"}") == 1);
    assert_true(value(text, "stint_requests_total{route=\"/b\",code=\"200\"}") == 2);
    assert_true(value(text, "stint_requests_total{route=\"/b\",code=\"429\"}") == 1);
    assert_true(value(text, "stint_requests_total{route=\"other\",code=\"404\"}") == 1);
    assert_null(strstr(text, "999"));
    free(text);
    st_metrics_close(metrics);
}

static void histograms_add_up(void **state) {
    struct st_metrics *metrics = open_metrics(state);
    st_metrics_answer(metrics, &(struct st_scheduler_usage){.generated_tokens = 5,
                                                            .first_token_seconds = 0.2,
                                                            .decode_seconds = 0.02});
    st_metrics_answer(
        metrics, &(struct st_scheduler_usage){.generated_tokens = 1, .first_token_seconds = 100});
    st_metrics_answer(metrics, &(struct st_scheduler_usage){0}); // canceled before its first token
    char *text = written(metrics);
    assert_true(value(text, "stint_first_token_seconds_bucket{le=\"0.1\"}") == 0);
    assert_true(value(text, "stint_first_token_seconds_bucket{le=\"0.25\"}") == 1);
    assert_true(value(text, "stint_first_token_seconds_bucket{le=\"60\"}") == 1);
    assert_true(value(text, "stint_first_token_seconds_bucket{le=\"+Inf\"}") == 2);
    assert_true(value(text, "stint_first_token_seconds_count") == 2);
    assert_true(value(text, "stint_first_token_seconds_sum") == 100.2);
    assert_true(value(text, "stint_token_seconds_count") == 4);
    assert_true(value(text, "stint_token_seconds_bucket{le=\"0.005\"}") == 4);
    assert_true(value(text, "stint_queue_seconds_count") == 3);
    free(text);
    st_metrics_close(metrics);
}

static void what_the_engine_counts_is_told(void **state) {
    struct st_metrics *metrics = open_metrics(state);
    char *text = written(metrics);
    assert_true(value(text, "stint_slots") == 3);
    assert_true(value(text, "stint_prompt_tokens_total") == 8);
    assert_true(value(text, "stint_cache_hit_rate") == 0.25);
    free(text);
    st_metrics_close(metrics);
}

// "# HELP name text" and "# TYPE name type" before the lines of each metric, as parsers ask.
static void every_metric_has_help_and_type(void **state) {
    struct st_metrics *metrics = open_metrics(state);
    st_metrics_request(metrics, 0, 200);
    char *text = written(metrics), *rest = NULL, current[80] = "";
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char name[80], type[16];
        if (sscanf(line, "# HELP %79s", name) == 1) continue;
        if (sscanf(line, "# TYPE %79s %15s", current, type) == 2) {
            assert_true(strcmp(type, "counter") == 0 || strcmp(type, "gauge") == 0 ||
                        strcmp(type, "histogram") == 0);
            continue;
        }
        assert_int_equal(strncmp(line, current, strlen(current)), 0);
    }
    free(text);
    st_metrics_close(metrics);
}

static void models_are_kept_separate(void **state) {
    struct st_metrics *metrics = open_metrics(state);
    struct st_json_text out = {0};
    const struct st_model_view views[] = {
        {.name = "a/b", .state = ST_MODEL_READY, .n_loads = 2, .stats = {.slots = 3}},
        {.name = "q\"\\", .stats = {.generated_tokens = 5}}};
    st_metrics_write(metrics, views, 2, &out);
    st_json_rawn(&out, "", 1);
    assert_false(out.failed);
    const char *text = out.bytes.data;
    assert_true(value(text, "stint_slots{model=\"a/b\"}") == 3);
    assert_true(value(text, "stint_model_loaded{model=\"a/b\"}") == 1);
    assert_true(value(text, "stint_model_loads_total{model=\"a/b\"}") == 2);
    assert_true(value(text, "stint_model_loaded{model=\"q\\\"\\\\\"}") == 0);
    assert_true(value(text, "stint_generated_tokens_total{model=\"q\\\"\\\\\"}") == 5);
    st_bytes_free(&out.bytes);
    st_metrics_close(metrics);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_told_apart),
        cmocka_unit_test(histograms_add_up),
        cmocka_unit_test(what_the_engine_counts_is_told),
        cmocka_unit_test(every_metric_has_help_and_type),
        cmocka_unit_test(models_are_kept_separate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
