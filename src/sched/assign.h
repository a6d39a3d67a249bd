// SPDX-License-Identifier: Apache-2.0
// Which processor runs each subgraph of a prompt where several can.
#ifndef ST_SCHED_ASSIGN_H
#define ST_SCHED_ASSIGN_H

#include "sched/schedule.h"

struct st_assignment {
    // Seconds of a subgraph of a first chunk on each processor, with its submit and its copies.
    const float (*seconds)[ST_N_SUBGRAPHS]; // [n_processors]
    const uint8_t *can; // [n_layers, ST_N_SUBGRAPHS] bit p: processor p can run it; never 0
    uint32_t n_layers, n_processors;
    const float *growth; // [n_chunks] times what dynamic subgraphs take; NULL: once
};

// Sets the processor and the seconds of each subgraph's node, so that it would end first,
// in the order in which the nodes become ready in virtual time (the rule of Topcuoglu et al. 2002).
// Shadows stay where they are. processors: [chunks, n_layers, ST_N_SUBGRAPHS]. `schedule`
// lends its memory.
void st_assign(const struct st_assignment *assignment, struct st_dag *dag,
               struct st_schedule *schedule, uint8_t *processors);

#endif
