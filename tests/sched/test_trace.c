// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "sched/trace.h"
#include "support/support.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct st_event events[] = {
    {.node = 0,
     .chunk = 0,
     .layer = 0,
     .kind = ST_SUBGRAPH_ATTN_NORM,
     .processor = ST_PROCESSOR_CPU,
     .begin = 1.0,
     .end = 1.5},
    {.node = 1,
     .chunk = 0,
     .layer = 0,
     .kind = ST_SUBGRAPH_QKV,
     .processor = ST_PROCESSOR_NPU,
     .begin = 1.5,
     .end = 2.25},
    {.node = 2,
     .chunk = 1,
     .layer = 3,
     .kind = ST_SUBGRAPH_SHADOW,
     .processor = ST_PROCESSOR_CPU,
     .begin = 1.75,
     .end = 2.0},
    {.node = 3,
     .chunk = 1,
     .layer = 3,
     .kind = ST_SUBGRAPH_FFN,
     .processor = ST_PROCESSOR_NPU,
     .begin = 2.75,
     .end = 3.0},
};
static const struct st_timeline timeline = {events, 4};
static const struct st_trace trace = {
    "a run", {[ST_PROCESSOR_CPU] = "CPU", [ST_PROCESSOR_NPU] = "NPU"}, &timeline};

static void sums(void **state) {
    (void)state;
    struct st_timeline_sums s = st_timeline_add_up(&timeline);
    assert_true(s.seconds == 2.0);
    assert_true(s.busy[ST_PROCESSOR_CPU] == 0.75 && s.busy[ST_PROCESSOR_NPU] == 1.0);
    assert_int_equal(s.critical, ST_PROCESSOR_NPU);
    assert_true(s.bubble_rate == 0.5);
    s = st_timeline_add_up(&(struct st_timeline){events, 0});
    assert_true(s.seconds == 0.0 && s.bubble_rate == 0.0);
}

static char *write_trace(const char *name) {
    char path[512];
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", ts_temp_folder(), name);
    assert_int_equal(st_trace_write(path, &trace), STINT_OK);
    char *data = (char *)ts_read(path, &bytes);
    char *text = strndup(data, bytes);
    free(data);
    return text;
}

static void json_holds_every_event(void **state) {
    (void)state;
    char *text = write_trace("trace.json");
    json_t *root = json_loads(text, 0, NULL);
    const json_t *list = json_object_get(root, "traceEvents");
    assert_int_equal(json_array_size(list), 1 + 2 + 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *e = json_array_get(list, 3 + i);
        assert_string_equal(json_string_value(json_object_get(e, "ph")), "X");
        double begin = json_number_value(json_object_get(e, "ts"));
        double length = json_number_value(json_object_get(e, "dur"));
        assert_true(fabs(begin - events[i].begin * 1e6) < 1e-3);
        assert_true(fabs(length - (events[i].end - events[i].begin) * 1e6) < 1e-3);
        assert_int_equal(json_integer_value(json_object_get(e, "tid")), events[i].processor + 1);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(e, "args"), "layer")),
                         events[i].layer);
    }
    json_decref(root);
    free(text);
}

static size_t count(const char *text, const char *what) {
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

static void svg_shows_events_and_bubbles(void **state) {
    (void)state;
    char *text = write_trace("trace.svg");
    assert_int_equal(count(text, " at "), 4);
    // The NPU waits twice; the CPU between its two and at the end.
    assert_int_equal(count(text, "waiting: 500.000 ms"), 2);
    assert_int_equal(count(text, "waiting: "), 4);
    assert_non_null(strstr(text, "bubbles 50.0 %"));
    assert_non_null(strstr(text, "shadow, chunk 1, layer 3: 250.000 ms"));
    assert_int_equal(count(text, "<svg"), count(text, "</svg>"));
    assert_int_equal(count(text, "<rect") + count(text, "<line"),
                     count(text, "</rect>") + count(text, "/>"));
    free(text);
}

static void other_files_are_refused(void **state) {
    (void)state;
    assert_failure(st_trace_write("trace.png", &trace), STINT_E_ARG, ".json or an .svg");
    assert_failure(st_trace_write("trace", &trace), STINT_E_ARG, ".json or an .svg");
    assert_failure(st_trace_write("/no/such/a.svg", &trace), STINT_E_IO, "/no/such/a.svg");
    assert_failure(st_trace_write("/dev/full/x.svg", &trace), STINT_E_IO, "/dev/full/x.svg");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),
        cmocka_unit_test(json_holds_every_event),
        cmocka_unit_test(svg_shows_events_and_bubbles),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
