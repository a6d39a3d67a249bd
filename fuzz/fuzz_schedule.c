// SPDX-License-Identifier: Apache-2.0
// Bytes as a precision schedule, static or learned, of a package of 2 to 4 bits: what is taken
// obeys st_precision_check().
#include "session/precision/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct st_layer_int8 layer;
    struct stint_model *model = calloc(1, sizeof *model);
    struct st_precision_schedule schedule = {0};
    char path[64];
    int file = memfd_create("fuzz", 0);
    if (!model || file < 0 || write(file, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    model->nested = (struct st_nested_range){2, 4};
    model->int8.layers = &layer;
    model->config.n_layers = 1;
    model->config.n_kv_heads = 1;
    model->config.head_dim = 4;
    if (st_schedule_load(model, path, &schedule) == STINT_OK) {
        if (st_precision_check(model, &schedule.precision) != STINT_OK) abort();
        if (schedule.precision.n_steps == 0) abort();
    }
    st_schedule_close(&schedule);
    close(file);
    free(model);
    return 0;
}
