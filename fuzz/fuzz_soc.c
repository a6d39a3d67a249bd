// SPDX-License-Identifier: Apache-2.0
// Bytes as the description of a system on a chip: a status, and numbers that can be divided by
// where it is a good one.
#include "sched/soc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct st_soc soc;
    char *text = malloc(size + 1);
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (st_soc_read(text, "soc", &soc) == STINT_OK)
        for (uint32_t rows = 1; rows < 1 << 20; rows *= 4) {
            double rate = st_soc_rate(&soc.npu.int8, rows);
            if (!(rate > 0.0) || !isfinite(rate) || !(soc.group_slowdown >= 1.0)) abort();
        }
    free(text);
    return 0;
}
