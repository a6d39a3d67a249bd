// SPDX-License-Identifier: Apache-2.0
#include "base/big_cores.h"

#include <stdio.h>

// Small cores of phones have a sixth to a third of the largest core's capacity, middle ones half
// and more.
enum { SHARE = 2, OF = 5 };

// 0: the system does not say.
static unsigned long read_number(const char *folder, int core, const char *name) {
    char path[512];
    unsigned long number;
    int n = snprintf(path, sizeof path, "%s/cpu%d/%s", folder, core, name);
    FILE *file = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (!file) return 0;
    int n_read = fscanf(file, "%lu", &number);
    fclose(file);
    return n_read == 1 ? number : 0;
}

// 0: not all cores have the file.
static size_t count_big(const char *folder, const cpu_set_t *set, const char *name) {
    unsigned long speeds[CPU_SETSIZE], max = 0;
    size_t n = 0, n_big = 0;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, set)) continue;
        unsigned long speed = read_number(folder, core, name);
        if (speed == 0) return 0;
        speeds[n++] = speed;
        if (speed > max) max = speed;
    }
    for (size_t i = 0; i < n; i++) n_big += speeds[i] / SHARE >= max / OF;
    return n_big;
}

size_t st_big_cores(const char *folder, const cpu_set_t *set) {
    size_t n_big = count_big(folder, set, "cpu_capacity");
    if (n_big == 0) n_big = count_big(folder, set, "cpufreq/cpuinfo_max_freq");
    return n_big > 0 ? n_big : (size_t)CPU_COUNT(set);
}
