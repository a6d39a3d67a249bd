// SPDX-License-Identifier: Apache-2.0
// The node that shortens the NPU's waiting most (llm.npu, section 3.4, eq. 6).
#include "sched/schedule.h"

// C of eq. 6. What a node on the CPU makes ready on the CPU does not keep the NPU from waiting, so
// only what it makes ready on the NPU counts.
static double stall_gain(const struct st_schedule *s, uint32_t node) {
    const float *gain = s->gain + 2 * (size_t)node;
    bool npu = s->dag->nodes[node].processor != ST_PROCESSOR_CPU;
    return npu ? -(double)(gain[0] + gain[1]) : (double)gain[0];
}

const struct st_policy st_policy_ooo = {.name = "ooo",
                                        .about = "what keeps the NPU busy goes first",
                                        .score = stall_gain,
                                        .fallback = &st_policy_inorder};
