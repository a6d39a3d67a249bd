// SPDX-License-Identifier: Apache-2.0
// Each processor follows the order of chunks, and waits for the next of its nodes. The baseline.
#include "sched/schedule.h"

const struct st_policy st_policy_inorder = {.name = "inorder",
                                            .about = "each processor follows the order of chunks"};
