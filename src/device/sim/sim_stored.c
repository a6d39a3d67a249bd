// SPDX-License-Identifier: Apache-2.0
// Stored linears of a device whose speed is stated: nested codes where they lie in the host's
// memory, with the kernel that the host has, and so with its bits.
#include "device/sim/sim.h"

#include <stdlib.h>

enum { PANELS = 64 }; // between looks at whether the job is over

bool st_sim_has_stored(const char *settings) {
    struct sim_settings read;
    return st_sim_read_settings(settings, &read) == STINT_OK && read.speed > 0;
}

bool st_sim_takes_stored(const struct st_device *device, const struct st_stored_linear *l) {
    return ((const struct sim_device *)device)->kernel && l->form == ST_STORED_NESTED;
}

size_t st_sim_stored_bytes(const struct st_stored_linear *l) {
    (void)l;
    return 0; // nothing is copied
}

stint_status st_sim_import_stored(struct st_device *device, const struct st_stored_linear *l,
                                  struct st_device_stored **stored) {
    (void)l;
    void *memory;
    ST_TRY(st_sim_allocate((struct sim_device *)device, sizeof **stored, &memory));
    *stored = memory;
    return STINT_OK;
}

void st_sim_free_stored(struct st_device_stored *stored) {
    free(stored);
}

bool st_sim_multiply(struct sim_device *d, const struct st_job *job) {
    const struct st_multiply_args *a = &job->multiply;
    const struct st_nested_weight *w = job->stored->linear.nested;
    unsigned char *in = ((struct sim_buffer *)a->x.buffer)->memory + a->x.offset;
    unsigned char *out = ((struct sim_buffer *)a->y.buffer)->memory + a->y.offset;
    const struct st_stored_nested parts = st_stored_nested(w->n_in, a->n * a->terms);
    const struct st_nested_input x = {.q = (int8_t *)in,
                                      .scale = (float *)(in + parts.scale),
                                      .sums = (int16_t *)(in + parts.sums),
                                      .n_tokens = a->n * a->terms,
                                      .terms = a->terms};
    size_t n_panels = st_ceil_div(st_multiply_rows(job->stored, a), ST_NESTED_PANEL);
    for (size_t p = 0; p < n_panels; p += PANELS) {
        if (st_sim_is_over(d, job)) return false;
        d->nested->fn(w, a->bits, &x, p, st_min(n_panels, p + PANELS), (float *)out,
                      a->y.row_bytes / sizeof(float));
    }
    return true;
}
