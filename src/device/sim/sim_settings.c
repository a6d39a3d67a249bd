// SPDX-License-Identifier: Apache-2.0
#include "device/sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static stint_status read_one(const char *text, size_t n, struct sim_settings *s) {
    const struct {
        const char *name;
        uint32_t *value;
    } rows[] = {{"fail", &s->fail},      {"oom", &s->oom},     {"hang", &s->hang},
                {"lose", &s->lose},      {"nomem", &s->nomem}, {"delay", &s->delay},
                {"timeout", &s->timeout}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t name = strlen(rows[i].name);
        if (n < name + 2 || memcmp(text, rows[i].name, name) != 0 || text[name] != '=') continue;
        const char *digits = text + name + 1;
        char *end;
        errno = 0;
        unsigned long value = strtoul(digits, &end, 10);
        if (*digits < '0' || *digits > '9' || end != text + n || errno || value > UINT32_MAX) break;
        *rows[i].value = (uint32_t)value;
        return STINT_OK;
    }
    return st_fail(STINT_E_ARG,
                   "device 'sim': setting '%.*s' is not NAME=NUMBER, where NAME is fail, oom, "
                   "hang, lose, nomem (the N-th fails, from 1), delay (microseconds) or timeout "
                   "(milliseconds)",
                   (int)st_min(n, 64), text);
}

stint_status st_sim_read_settings(const char *text, struct sim_settings *settings) {
    *settings = (struct sim_settings){.delay = 20};
    while (text) {
        size_t n = strcspn(text, ",");
        ST_TRY(read_one(text, n, settings));
        text = text[n] ? text + n + 1 : NULL;
    }
    return STINT_OK;
}
