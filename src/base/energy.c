// SPDX-License-Identifier: Apache-2.0
#include "base/energy.h"

#include "stint.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool read_number(const char *root, const char *folder, const char *name, uint64_t *value) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool ok = fscanf(file, "%" SCNu64, value) == 1;
    fclose(file);
    return ok;
}

// The packages; their parts (intel-rapl:0:1) are counted in them.
static void read_rapl(const char *root, struct st_energy *e) {
    for (uint32_t i = 0; i < ST_ENERGY_COUNTERS; i++) {
        char folder[64];
        snprintf(folder, sizeof folder, "powercap/intel-rapl:%u", i);
        if (!read_number(root, folder, "energy_uj", &e->microjoules[e->n])) return;
        if (!read_number(root, folder, "max_energy_range_uj", &e->wraps[e->n])) e->wraps[e->n] = 0;
        e->n++;
        e->source = "rapl";
    }
}

// What is left in it, in microwatt-hours.
static void read_battery(const char *root, struct st_energy *e) {
    static const char *const names[] = {"power_supply/battery", "power_supply/BAT0",
                                        "power_supply/BAT1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t left;
        if (!read_number(root, names[i], "energy_now", &left) || left > UINT64_MAX / 3600) continue;
        e->microjoules[0] = left * 3600;
        e->n = 1;
        e->source = "battery";
        return;
    }
}

void st_energy_read(const char *root, struct st_energy *energy) {
    *energy = (struct st_energy){0};
    read_rapl(root, energy);
    if (!energy->source) read_battery(root, energy);
}

double st_energy_between(const struct st_energy *before, const struct st_energy *after) {
    double joules = 0.0;
    if (!before->source || !after->source || before->n != after->n) return -1.0;
    if (strcmp(before->source, after->source) != 0) return -1.0;
    bool falls = strcmp(before->source, "battery") == 0;
    for (uint32_t i = 0; i < before->n; i++) {
        uint64_t from = falls ? after->microjoules[i] : before->microjoules[i];
        uint64_t to = falls ? before->microjoules[i] : after->microjoules[i];
        if (to < from) to += before->wraps[i]; // the counter went round
        if (to < from) return -1.0;
        joules += (double)(to - from) * 1e-6;
    }
    return joules;
}

stint_status stint_energy_begin(stint_energy *energy) {
    if (!energy) return st_fail(STINT_E_ARG, "energy may not be NULL");
    _Static_assert(sizeof(struct st_energy) <= sizeof energy->reserved, "a reading fits");
    struct st_energy now;
    st_energy_read("/sys/class", &now);
    memcpy(energy->reserved, &now, sizeof now);
    energy->source = now.source;
    return STINT_OK;
}

double stint_energy_since(const stint_energy *energy) {
    struct st_energy before, now;
    memcpy(&before, energy->reserved, sizeof before);
    st_energy_read("/sys/class", &now);
    return st_energy_between(&before, &now);
}
