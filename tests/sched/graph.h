// SPDX-License-Identifier: Apache-2.0
// Room for graphs and runs over them, for tests: opened and closed with the group of tests.
#ifndef TESTS_SCHED_GRAPH_H
#define TESTS_SCHED_GRAPH_H

#include "sched/timeline.h"

struct tg_room {
    struct st_arena arena;
    struct st_dag dag;
    struct st_schedule schedule;
    struct st_timeline timeline;
};

static inline void tg_lay_out(struct tg_room *room, uint32_t nodes, uint32_t edges,
                              struct st_arena *arena) {
    st_dag_lay_out(&room->dag, nodes, edges, arena);
    st_schedule_lay_out(&room->schedule, nodes, arena);
    st_timeline_lay_out(&room->timeline, nodes, arena);
}

// 0, or -1 without memory.
static inline int tg_open(struct tg_room *room, uint32_t nodes, uint32_t edges) {
    struct st_arena measure = st_arena_measure();
    tg_lay_out(room, nodes, edges, &measure);
    if (st_arena_open(&room->arena, measure.used) != STINT_OK) return -1;
    tg_lay_out(room, nodes, edges, &room->arena);
    return 0;
}

static inline void tg_close(struct tg_room *room) {
    st_arena_close(&room->arena);
}

#endif
