// SPDX-License-Identifier: Apache-2.0
// The energy that the system counts: the processors' own counters (RAPL, through powercap), or a
// battery's charge.
#ifndef ST_BASE_ENERGY_H
#define ST_BASE_ENERGY_H

#include "base/status.h"

#include <stdint.h>

enum { ST_ENERGY_COUNTERS = 8 };

// A reading. Two of them make a difference.
struct st_energy {
    const char *source; // "rapl" or "battery"; NULL: the system offers neither
    uint32_t n;
    uint64_t microjoules[ST_ENERGY_COUNTERS], wraps[ST_ENERGY_COUNTERS]; // counters, and their ends
};

// `root`: where the system's files lie, normally "/sys/class".
void st_energy_read(const char *root, struct st_energy *energy);
// Joules between two readings of the same source; negative where that cannot be told.
double st_energy_between(const struct st_energy *before, const struct st_energy *after);

#endif
