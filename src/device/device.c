// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

#include "device/cpu/cpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct st_device_type *const st_device_types[] = {&st_device_amx, &st_device_cpu, NULL};

stint_status st_device_find(const char *name, const struct st_device_type **type) {
    char known[128] = "";
    size_t used = 0;
    for (size_t i = 0; st_device_types[i]; i++) {
        const struct st_device_type *t = st_device_types[i];
        bool named = name && strcmp(name, t->name) == 0;
        if (named && !t->present())
            return st_fail(STINT_E_DEVICE, "device '%s': this machine has none (%s)", name,
                           t->what);
        if (named || (!name && t->present())) {
            *type = t;
            return STINT_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", t->name);
    }
    return st_fail(STINT_E_ARG, "device '%.64s' is not known; known are: %s", name, known);
}

void st_spill_row(struct st_spill *spill, const float *x, size_t n, float scale, uint32_t token,
                  uint32_t channel, uint8_t zero, uint8_t *q) {
    float edge = 127.0f * scale;
    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(x[i]) > edge)) continue;
        size_t at = atomic_fetch_add_explicit(&spill->n, 1, memory_order_relaxed);
        if (at < spill->capacity)
            spill->entries[at] = (struct st_spilled){token, channel + (uint32_t)i, x[i]};
        q[i] = zero;
    }
}
