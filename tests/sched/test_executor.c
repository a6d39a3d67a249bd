// SPDX-License-Identifier: Apache-2.0
// Real threads keep the laws that virtual time keeps; a failure ends the run and no more.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "sched/executor.h"
#include "sched/graph.h"
#include "support/support.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { NODES = 200, EDGES = 1000, CASES = 60 };

static struct tg_room room;

static int open_all(void **state) {
    (void)state;
    return tg_open(&room, NODES, EDGES);
}

static int close_all(void **state) {
    (void)state;
    tg_close(&room);
    return 0;
}

static void random_dag(uint32_t n_processors) {
    st_dag_begin(&room.dag, n_processors);
    for (uint32_t i = 0; i < NODES; i++)
        st_dag_add(&room.dag, (struct st_node){.processor = (uint8_t)ts_random_below(n_processors),
                                               .seconds = (float)(1 + ts_random_below(20)),
                                               .layer = (uint16_t)i});
    for (uint32_t to = 1; to < NODES; to++)
        for (size_t k = ts_random_below(4), from = ts_random_below(to); k > 0; k--, from++)
            if (from < to) st_dag_need(&room.dag, (uint32_t)from, to);
    st_dag_finish(&room.dag);
}

// What the nodes see: plain memory, so that a missing hand-over shows under a thread checker.
struct watch {
    int value[NODES];
    atomic_int running[ST_MAX_PROCESSORS], n_run;
    int fail_at; // node, or -1
};

static stint_status run_node(void *context, const struct st_node *node, struct st_node_time *time) {
    struct watch *w = context;
    uint32_t i = node->layer;
    int sum = 1;
    time->sync = (float)i;
    assert_int_equal(atomic_fetch_add(&w->running[node->processor], 1), 0);
    for (uint32_t e = 0; e < room.dag.n_added; e++) {
        if (room.dag.to[e] != i) continue;
        assert_true(w->value[room.dag.from[e]] > 0);
        sum += w->value[room.dag.from[e]] % 1000;
    }
    w->value[i] = sum;
    atomic_fetch_add(&w->n_run, 1);
    atomic_fetch_sub(&w->running[node->processor], 1);
    return (int)i == w->fail_at ? st_fail(STINT_E_IO, "node %u broke", i) : STINT_OK;
}

static void every_node_runs_once_in_order(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= ST_MAX_PROCESSORS; n++) {
        struct st_executor *executor = NULL;
        assert_int_equal(st_executor_open(n, &executor), STINT_OK);
        for (int i = 0; i < CASES; i++) {
            struct watch w = {.fail_at = -1};
            random_dag(n);
            struct st_execution run = {&room.dag,      st_policies[i % 3], &room.schedule,
                                       &room.timeline, run_node,           &w};
            assert_int_equal(st_executor_run(executor, &run), STINT_OK);
            assert_int_equal(w.n_run, NODES);
            assert_int_equal(room.timeline.n, NODES);
            for (uint32_t e = 0; e < NODES; e++) {
                const struct st_event *event = &room.timeline.events[e];
                assert_true(event->end >= event->begin);
                assert_true(event->time.sync == (float)event->node && event->time.device == 0.0f);
            }
        }
        st_executor_close(executor);
    }
}

static void a_failure_ends_the_run(void **state) {
    (void)state;
    struct st_executor *executor = NULL;
    assert_int_equal(st_executor_open(2, &executor), STINT_OK);
    for (int i = 0; i < CASES; i++) {
        struct watch w = {.fail_at = (int)ts_random_below(NODES)};
        char text[32];
        random_dag(2);
        struct st_execution run = {&room.dag,      st_policies[i % 3], &room.schedule,
                                   &room.timeline, run_node,           &w};
        snprintf(text, sizeof text, "node %d broke", w.fail_at);
        assert_failure(st_executor_run(executor, &run), STINT_E_IO, text);
        assert_int_equal(w.n_run, room.timeline.n);
        // The next run begins anew.
        struct watch again = {.fail_at = -1};
        run.context = &again;
        assert_int_equal(st_executor_run(executor, &run), STINT_OK);
        assert_int_equal(again.n_run, NODES);
    }
    random_dag(3);
    struct st_execution run = {&room.dag,      st_policies[0], &room.schedule,
                               &room.timeline, run_node,       NULL};
    assert_failure(st_executor_run(executor, &run), STINT_E_INTERNAL, "3 processors, there are 2");
    st_executor_close(executor);
    st_executor_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_runs_once_in_order),
        cmocka_unit_test(a_failure_ends_the_run),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
