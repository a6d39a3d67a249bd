// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "sched/graph.h"
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
     .end = 2.25,
     .time = {.device = 0.5f, .sync = 0.25f}},
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
    "a run", {[ST_PROCESSOR_CPU] = "CPU", [ST_PROCESSOR_NPU] = "NPU"}, &timeline, NULL};

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

// An emulated NPU, whose first node took half a second longer than by its own clock.
static void a_replay_takes_the_devices_time(void **state) {
    (void)state;
    struct tg_room room;
    struct st_event replayed[4];
    struct st_timeline replay = {replayed, 0}, run = {events, 2};
    assert_int_equal(tg_open(&room, 2, 1), 0);
    st_dag_begin(&room.dag, 2);
    st_dag_add(&room.dag, (struct st_node){.processor = ST_PROCESSOR_CPU, .seconds = 9.0f});
    st_dag_add(&room.dag, (struct st_node){.processor = ST_PROCESSOR_NPU, .seconds = 9.0f});
    st_dag_need(&room.dag, 0, 1);
    st_dag_finish(&room.dag);
    assert_false(st_timeline_replay(&room.schedule, &room.dag, st_policies[0], &run, &replay));
    assert_int_equal(replay.n, 0);
    struct st_event own[2] = {events[0], events[1]};
    run.events = own;
    own[1].time.excess = 0.5f;
    assert_true(st_timeline_replay(&room.schedule, &room.dag, st_policies[0], &run, &replay));
    assert_int_equal(replay.n, 2);
    assert_true(replayed[0].begin == 0.0 && replayed[0].end == 0.5);
    assert_true(replayed[1].begin == 0.5 && replayed[1].end == 0.75);
    tg_close(&room);
}

static char *write_trace_of(const struct st_trace *what, const char *name) {
    char path[512];
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", ts_temp_folder(), name);
    assert_int_equal(st_trace_write(path, what), STINT_OK);
    char *data = (char *)ts_read(path, &bytes);
    char *text = strndup(data, bytes);
    free(data);
    return text;
}

static void json_holds_every_event(void **state) {
    (void)state;
    char *text = write_trace_of(&trace, "trace.json");
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
        const json_t *arguments = json_object_get(e, "args");
        assert_int_equal(json_integer_value(json_object_get(arguments, "layer")), events[i].layer);
        assert_int_equal(json_object_size(arguments), i == 1 ? 4 : 2);
        if (i != 1) continue;
        assert_true(json_number_value(json_object_get(arguments, "device_us")) == 500e3);
        assert_true(json_number_value(json_object_get(arguments, "sync_us")) == 250e3);
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
    char *text = write_trace_of(&trace, "trace.svg");
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

static void a_replay_is_a_second_process_and_the_chart(void **state) {
    (void)state;
    struct st_event half[] = {events[0], events[1]};
    const struct st_timeline replay = {half, 2};
    struct st_trace both = trace;
    both.replay = &replay;
    char *json = write_trace_of(&both, "replay.json"), *svg = write_trace_of(&both, "replay.svg");
    json_t *root = json_loads(json, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(root, "traceEvents")), 2 * 3 + 4 + 2);
    assert_int_equal(count(json, "\"pid\":2"), 3 + 2);
    assert_int_equal(count(json, "a run, by the devices' clocks"), 1);
    assert_int_equal(count(svg, "a run, by the devices' clocks"), 1);
    assert_int_equal(count(svg, " at "), 2);
    json_decref(root);
    free(json);
    free(svg);
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
        cmocka_unit_test(a_replay_takes_the_devices_time),
        cmocka_unit_test(json_holds_every_event),
        cmocka_unit_test(svg_shows_events_and_bubbles),
        cmocka_unit_test(a_replay_is_a_second_process_and_the_chart),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
