// SPDX-License-Identifier: Apache-2.0
// The definition: column by column, token by token.
#include "kernels/recurrence_rows.h"

static float product(const float *column, const float *key, size_t n_keys) {
    float sum = 0.0f;
    for (size_t k = 0; k < n_keys; k++) sum += key[k] * column[k * ST_STATE_PANEL];
    return sum;
}

static void run_column(const struct st_recurrence_run *r, float *column, size_t i) {
    for (size_t t = 0; t < r->n_tokens; t++) {
        const float *key = r->keys + t * r->key_row;
        float *value = r->values + t * r->value_row + i, decay = r->decays[t * r->gate_row];
        if (r->rates)
            *value = r->rates[t * r->gate_row] * (*value - decay * product(column, key, r->n_keys));
        for (size_t k = 0; k < r->n_keys; k++)
            column[k * ST_STATE_PANEL] = decay * column[k * ST_STATE_PANEL] + key[k] * *value;
        if (r->queries)
            r->out[t * r->out_row + i] = product(column, r->queries + t * r->key_row, r->n_keys);
    }
}

static void run(const struct st_recurrence_run *r) {
    for (size_t i = 0; i < r->n_values; i++)
        run_column(
            r, r->state + i / ST_STATE_PANEL * ST_STATE_PANEL * r->n_keys + i % ST_STATE_PANEL, i);
}

const struct st_recurrence st_recurrence_scalar = {.name = "recurrence_scalar", .run = run};
