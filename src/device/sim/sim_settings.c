// SPDX-License-Identifier: Apache-2.0
#include "device/settings.h"
#include "device/sim/sim.h"

stint_status st_sim_read_settings(const char *text, struct sim_settings *s) {
    *s = (struct sim_settings){.delay = 20};
    const struct st_device_setting rows[] = {
        {"fail", &s->fail},   {"oom", &s->oom},     {"hang", &s->hang},       {"lose", &s->lose},
        {"nomem", &s->nomem}, {"delay", &s->delay}, {"timeout", &s->timeout}, {"speed", &s->speed}};
    return st_device_read_settings("sim", text, rows, sizeof rows / sizeof *rows,
                                   "fail, oom, hang, lose, nomem (the N-th fails, from 1), delay "
                                   "(microseconds), timeout (milliseconds) or speed (million "
                                   "weights a second)");
}
