// SPDX-License-Identifier: Apache-2.0
#include "sched/assign.h"

#include "sched/timeline.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { LAYERS = 3, CHUNKS = 6, MAX_NODES = LAYERS * CHUNKS * ST_N_SUBGRAPHS };

static struct {
    struct st_arena arena;
    struct st_dag dag;
    struct st_schedule schedule;
    struct st_timeline timeline;
} room;

static float seconds[CHUNKS * ST_NODE_KINDS];
static float growth[CHUNKS];
static uint8_t processors[MAX_NODES], can[LAYERS * ST_N_SUBGRAPHS];

static struct st_prefill_plan plan(void) {
    struct st_prefill_plan p = {.n_layers = LAYERS, .n_chunks = CHUNKS, .seconds = seconds};
    for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++)
        p.processor[kind] = (uint8_t)st_subgraphs[kind].processor;
    return p;
}

static void lay_out(struct st_arena *arena) {
    struct st_prefill_plan p = plan();
    st_dag_lay_out(&room.dag, st_prefill_nodes(&p), st_prefill_edges(&p), arena);
    st_schedule_lay_out(&room.schedule, st_prefill_nodes(&p), arena);
    st_timeline_lay_out(&room.timeline, st_prefill_nodes(&p), arena);
}

static int open_room(void **state) {
    (void)state;
    struct st_arena measure = st_arena_measure();
    lay_out(&measure);
    assert_int_equal(st_arena_open(&room.arena, measure.used), STINT_OK);
    lay_out(&room.arena);
    return 0;
}

static int close_room(void **state) {
    (void)state;
    st_arena_close(&room.arena);
    return 0;
}

static void assign(const float (*each)[ST_N_SUBGRAPHS], uint32_t n_processors) {
    const struct st_assignment a = {each, can, LAYERS, n_processors, growth};
    struct st_prefill_plan p = plan();
    for (int i = 0; i < CHUNKS * ST_NODE_KINDS; i++) seconds[i] = 0.001f;
    for (int i = 0; i < CHUNKS; i++) growth[i] = 1.0f + (float)i;
    st_prefill_dag(&p, &room.dag);
    st_assign(&a, &room.dag, &room.schedule, processors);
}

static double simulate(void) {
    st_timeline_simulate(&room.schedule, &room.dag, st_policy_find("ooo"), &room.timeline);
    assert_int_equal(room.timeline.n, room.dag.n);
    return st_timeline_add_up(&room.timeline).seconds;
}

static void random_seconds(float (*each)[ST_N_SUBGRAPHS]) {
    for (int p = 0; p < ST_MAX_PROCESSORS; p++)
        for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++)
            each[p][kind] = 1e-4f * (float)(1 + ts_random_below(100));
}

static void only_what_can_run_a_subgraph_does(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        float each[ST_MAX_PROCESSORS][ST_N_SUBGRAPHS];
        random_seconds(each);
        for (int i = 0; i < LAYERS * ST_N_SUBGRAPHS; i++)
            can[i] = (uint8_t)(1 + ts_random_below(7));
        assign((const float(*)[ST_N_SUBGRAPHS])each, 3);
        assert_int_equal(room.dag.n_processors, 3);
        for (uint32_t i = 0; i < room.dag.n; i++) {
            const struct st_node *n = &room.dag.nodes[i];
            size_t row = n->chunk * LAYERS + n->layer;
            assert_int_equal(processors[row * ST_N_SUBGRAPHS + n->kind], n->processor);
            assert_true(can[n->layer * ST_N_SUBGRAPHS + n->kind] >> n->processor & 1);
            float times = st_subgraphs[n->kind].dynamic ? growth[n->chunk] : 1.0f;
            float wanted = each[n->processor][n->kind] * times;
            assert_memory_equal(&n->seconds, &wanted, sizeof wanted);
        }
        simulate();
    }
}

// Two equal devices halve the time that one device takes for the static subgraphs.
static void a_second_device_takes_half_of_the_work(void **state) {
    (void)state;
    float each[ST_MAX_PROCESSORS][ST_N_SUBGRAPHS];
    for (int p = 0; p < ST_MAX_PROCESSORS; p++)
        for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++)
            each[p][kind] = p == ST_PROCESSOR_CPU ? 100.0f : 1.0f;
    memset(can, 3, sizeof can);
    assign((const float(*)[ST_N_SUBGRAPHS])each, 2);
    double one = simulate();
    memset(can, 7, sizeof can);
    assign((const float(*)[ST_N_SUBGRAPHS])each, 3);
    double two = simulate();
    assert_true(one >= 3.0 * LAYERS * CHUNKS);
    assert_true(two < 0.6 * one);
}

// What is slower everywhere gets nothing while waiting costs less.
static void a_slow_processor_gets_nothing(void **state) {
    (void)state;
    float each[ST_MAX_PROCESSORS][ST_N_SUBGRAPHS];
    for (int p = 0; p < ST_MAX_PROCESSORS; p++)
        for (int kind = 0; kind < ST_N_SUBGRAPHS; kind++)
            each[p][kind] = p == ST_PROCESSOR_SECOND ? 1000.0f
                            : p == ST_PROCESSOR_CPU  ? 5e3f
                                                     : 1.0f;
    memset(can, 7, sizeof can);
    assign((const float(*)[ST_N_SUBGRAPHS])each, 3);
    for (uint32_t i = 0; i < room.dag.n; i++)
        assert_int_not_equal(room.dag.nodes[i].processor, ST_PROCESSOR_SECOND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_can_run_a_subgraph_does),
        cmocka_unit_test(a_second_device_takes_half_of_the_work),
        cmocka_unit_test(a_slow_processor_gets_nothing),
    };
    return cmocka_run_group_tests(tests, open_room, close_room);
}
