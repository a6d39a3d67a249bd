// SPDX-License-Identifier: Apache-2.0
#include "device/outliers.h"

#include <math.h>

void st_outliers_reset(struct st_outliers *list, size_t capacity) {
    list->count = 0;
    list->capacity = (uint32_t)capacity;
}

void st_outliers_collect(struct st_outliers *list, const float *x, size_t n, float scale,
                         uint32_t row, uint32_t channel, uint8_t zero, uint8_t *q) {
    float edge = 127.0f * scale;
    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(x[i]) > edge)) continue;
        uint32_t at = __atomic_fetch_add(&list->count, 1, __ATOMIC_RELAXED);
        if (at < list->capacity)
            list->entries[at] = (struct st_outlier){row, channel + (uint32_t)i, x[i]};
        q[i] = zero;
    }
}
