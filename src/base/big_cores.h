// SPDX-License-Identifier: Apache-2.0
// Which cores of a processor with large and small ones are worth computing on: a step's threads
// wait for the slowest of them.
#ifndef ST_BASE_BIG_CORES_H
#define ST_BASE_BIG_CORES_H

#include <sched.h>
#include <stddef.h>

#define ST_CORES_FOLDER "/sys/devices/system/cpu"

// How many cores of `set` are big: as fast as the system says (cpu_capacity, else the highest clock
// rate), at least two fifths of the fastest of them. All where it does not say so of each.
size_t st_big_cores(const char *folder, const cpu_set_t *set);

#endif
