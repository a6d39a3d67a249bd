// SPDX-License-Identifier: Apache-2.0
#include "prepare/rounding.h"

#include "base/cpu.h"
#include "base/half.h"
#include "base/size.h"
#include "kernels/dequantize.h"
#include "prepare/quantize.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = ST_PANEL_ROWS };

struct worker {
    float *row;      // [k]
    float *w;        // [k, ROWS]
    float *scratch;  // st_panel_scratch()
    uint8_t *code;   // [k, ROWS]
    uint8_t *groups; // of the rows
};

// Of ROWS rows.
struct miss {
    double error, energy;
};

struct st_rounder {
    const struct st_dequantize *dequantize;
    const struct st_tile *tile;
    st_panel_quantize_fn *quantize;
    struct st_pool *pool;
    struct st_arena arena;
    struct worker *workers;
    struct miss *misses; // [ROWS rows each, of the tallest linear]
    // The current linear:
    const struct st_linear_weight *linear;
    const float *importance;
    unsigned bits;
    size_t stride;
    uint16_t *rounded;
};

static void lay_out(struct st_rounder *r, size_t tallest, size_t k, struct st_arena *arena) {
    size_t n = st_pool_threads(r->pool);
    size_t scratch = st_panel_scratch(r->tile, k, ST_NESTED_LOWEST, ST_NESTED_LOWEST);
    r->workers = ST_TAKE(arena, struct worker, n);
    r->misses = ST_TAKE(arena, struct miss, st_ceil_div(tallest, ROWS));
    for (size_t i = 0; i < n; i++) {
        struct worker w = {.row = ST_TAKE(arena, float, k),
                           .w = ST_TAKE(arena, float, k *ROWS),
                           .scratch = ST_TAKE(arena, float, scratch),
                           .code = ST_TAKE(arena, uint8_t, k * ROWS),
                           .groups = ST_TAKE(arena, uint8_t, st_nested_group_bytes(ROWS, k))};
        if (r->workers) r->workers[i] = w;
    }
}

stint_status st_rounder_open(size_t tallest, size_t widest, struct st_pool *pool,
                             struct st_rounder **rounder) {
    struct st_rounder *r = calloc(1, sizeof *r);
    if (!r) return st_fail(STINT_E_NOMEM, "no memory to round weights");
    r->dequantize = st_dequantize_select(st_cpu_flags());
    r->tile = st_tile_select(st_cpu_flags());
    r->quantize = st_panel_quantizer_select(st_cpu_flags())->quantize;
    r->pool = pool;
    struct st_arena measure = st_arena_measure();
    lay_out(r, tallest, widest, &measure);
    stint_status status = st_arena_check(&measure, "rounded weights");
    if (status == STINT_OK) status = st_arena_open(&r->arena, measure.used);
    if (status != STINT_OK) {
        st_rounder_close(r);
        return status;
    }
    lay_out(r, tallest, widest, &r->arena);
    *rounder = r;
    return STINT_OK;
}

void st_rounder_close(struct st_rounder *rounder) {
    if (!rounder) return;
    st_arena_close(&rounder->arena);
    free(rounder);
}

static void load(const struct st_rounder *r, struct worker *w, size_t first) {
    const struct st_linear_weight *l = r->linear;
    for (size_t i = 0; i < ROWS; i++) {
        if (first + i < l->n_out)
            st_linear_dequantize_row(r->dequantize, l, first + i, 0, l->n_in, w->row);
        else
            memset(w->row, 0, l->n_in * sizeof *w->row);
        for (size_t c = 0; c < l->n_in; c++) w->w[c * ROWS + i] = w->row[c];
    }
}

// Adds up what was missed, and keeps what the codes stand for.
static struct miss store(const struct st_rounder *r, const struct worker *w,
                         const struct st_panel *p, size_t first) {
    struct miss miss = {0.0, 0.0};
    size_t k = r->linear->n_in;
    struct st_nested_group group = {0};
    for (size_t i = 0; i < st_min(ROWS, r->linear->n_out - first); i++)
        for (size_t c = 0; c < k; c++) {
            if (c % ST_NESTED_GROUP == 0) group = st_nested_group(w->groups, k, i, c);
            float value = p->rows[0][i].scale * (float)(group.scale * w->code[c * ROWS + i]) +
                          p->rows[0][i].minimum * (float)group.minimum;
            float was = w->w[c * ROWS + i], error = was - value;
            miss.error += (double)(r->importance[c] * error * error);
            miss.energy += (double)(r->importance[c] * was * was);
            if (r->rounded) r->rounded[(first + i) * k + c] = st_f16_from_f32(value);
        }
    return miss;
}

static void round_panel(void *context, size_t item, size_t worker) {
    const struct st_rounder *r = context;
    struct worker *w = &r->workers[worker];
    size_t k = r->linear->n_in, first = item * r->stride * ROWS;
    struct st_panel panel = {.w = w->w,
                             .k = k,
                             .importance = r->importance,
                             .low = r->bits,
                             .high = r->bits,
                             .code = w->code};
    panel.groups[r->bits] = w->groups;
    memset(w->groups, 0, st_nested_group_bytes(ROWS, k));
    load(r, w, first);
    r->quantize(&panel, w->scratch);
    r->misses[item] = store(r, w, &panel, first);
}

double st_round_linear(struct st_rounder *r, const struct st_linear_weight *linear,
                       const float *importance, unsigned bits, size_t stride, uint16_t *rounded) {
    size_t n = st_ceil_div(st_ceil_div(linear->n_out, ROWS), stride);
    struct miss all = {0.0, 0.0};
    r->linear = linear;
    r->importance = importance;
    r->bits = bits;
    r->stride = stride;
    r->rounded = rounded;
    st_pool_run(r->pool, round_panel, r, n);
    for (size_t i = 0; i < n; i++) {
        all.error += r->misses[i].error;
        all.energy += r->misses[i].energy;
    }
    return all.energy > 0.0 ? all.error / all.energy : 0.0;
}
