// SPDX-License-Identifier: Apache-2.0
// Included by a file per instruction set, which names the function by PANEL_QUANTIZE. Rows are the
// innermost loops, of a fixed length, and have sums of their own: the compiler makes vectors of
// them, and every instruction set gets the same bits.
//
// Codes and grids in turns: coordinate descent on the squared error of the outputs (Behdin et al.
// 2023, QuantEase), over all precisions that a code serves together.
#include "prepare/grids_body.h"

enum {
    LANES = MAX * ROWS,                // of a column: its precisions, of each the rows
    TILE_ROWS = GROUP + ST_TILE_MAX_M, // a group's columns in whole tiles
    SWEEPS = 2,
};

// What is worked on.
struct work {
    struct st_panel *p;
    struct st_grid *grids; // [groups]
    float *errors; // [k, lanes] W less what the codes stand for, as st_tile_pack() orders it
    // Of the current group:
    size_t group, first, n;
    float error[GROUP][LANES], slope[TILE_ROWS][LANES]; // slope: half the gradient
};

// ---- Codes

// errors[c] = upper[c / 2] + share times the squared error that code c makes of the targets.
static void add_code_errors(const float target[restrict ROWS], const float minimum[restrict ROWS],
                            const float scale[restrict ROWS], float share, int32_t n_codes,
                            const float (*restrict upper)[ROWS], float (*restrict errors)[ROWS]) {
    for (int32_t c = 0; c < n_codes; c++)
        for (size_t r = 0; r < ROWS; r++) {
            float miss = target[r] - (minimum[r] + scale[r] * (float)c);
            errors[c][r] = upper[c / 2][r] + share * miss * miss;
        }
}

// The first code of least error.
static void find_least(const float (*restrict errors)[ROWS], int32_t n_codes,
                       int32_t selected[restrict ROWS]) {
    float best[ROWS];
    for (size_t r = 0; r < ROWS; r++) best[r] = INFINITY;
    for (size_t r = 0; r < ROWS; r++) selected[r] = 0;
    for (int32_t c = 0; c < n_codes; c++)
        for (size_t r = 0; r < ROWS; r++) {
            int32_t less = -(int32_t)(errors[c][r] < best[r]); // a mask: no store depends on it
            selected[r] = (selected[r] & ~less) | (c & less);
            best[r] = less ? errors[c][r] : best[r];
        }
}

// The code of least error over all precisions of eight targets, and the values it stands for.
static void select_codes(const struct st_panel *p, const struct st_grid *grid,
                         const float targets[MAX][ROWS], uint8_t *code, float values[MAX][ROWS]) {
    unsigned n_bits = st_panel_precisions(p);
    float errors[2][1 << ST_NESTED_HIGHEST][ROWS];
    int32_t selected[ROWS];
    memset(errors[1], 0, sizeof errors[1][0] << (p->low - 1)); // above the lowest precision: none
    for (unsigned b = 0; b < n_bits; b++)
        add_code_errors(targets[b], grid->minimum[b], grid->scale[b], st_panel_share(p, b),
                        1 << (p->low + b), errors[(b + 1) % 2], errors[b % 2]);
    find_least(errors[(n_bits - 1) % 2], 1 << p->high, selected);
    for (unsigned b = 0; b < n_bits; b++)
        for (size_t r = 0; r < ROWS; r++)
            values[b][r] =
                grid->minimum[b][r] + grid->scale[b][r] * (float)(selected[r] >> (n_bits - 1 - b));
    for (size_t r = 0; r < ROWS; r++) code[r] = (uint8_t)selected[r];
}

static void round_codes(const struct st_panel *p, const struct st_grid *grids) {
    for (size_t i = 0; i < p->k; i++) {
        float targets[MAX][ROWS], values[MAX][ROWS];
        for (unsigned b = 0; b < st_panel_precisions(p); b++)
            memcpy(targets[b], p->w + i * ROWS, sizeof targets[b]);
        select_codes(p, &grids[i / GROUP], targets, p->code + i * ROWS, values);
    }
}

// ---- A group

static size_t n_lanes(const struct work *w) {
    return (size_t)st_panel_precisions(w->p) * ROWS;
}

static void begin_group(struct work *w, size_t group) {
    w->group = group;
    w->first = group * GROUP;
    w->n = st_min(GROUP, w->p->k - w->first);
}

// What the codes miss of column i of the group.
static void set_errors(struct work *w, size_t i) {
    const struct st_panel *p = w->p;
    const struct st_grid *grid = &w->grids[w->group];
    const uint8_t *code = p->code + (w->first + i) * ROWS;
    const float *x = p->w + (w->first + i) * ROWS;
    for (unsigned b = 0; b < st_panel_precisions(p); b++)
        for (size_t r = 0; r < ROWS; r++)
            w->error[i][b * ROWS + r] =
                x[r] - (grid->minimum[b][r] +
                        grid->scale[b][r] * (float)(code[r] >> (p->high - p->low - b)));
}

static void store_errors(struct work *w) {
    const struct st_tile *tile = w->p->tile;
    size_t lanes = n_lanes(w), width;
    for (size_t t = 0; t < lanes; t += width) {
        width = st_tile_width(tile, lanes, t);
        for (size_t i = 0; i < w->n; i++)
            memcpy(w->errors + t * w->p->k + (w->first + i) * width, &w->error[i][t],
                   st_min(width, lanes - t) * sizeof(float));
    }
}

// Of the group's columns: H times the errors of the columns within reach.
static void find_slopes(struct work *w) {
    const struct st_panel *p = w->p;
    const struct st_tile *tile = p->tile;
    size_t from = w->first > ST_MOMENTS_REACH - GROUP ? w->first + GROUP - ST_MOMENTS_REACH : 0;
    size_t n = st_min(p->k, w->first + ST_MOMENTS_REACH) - from, lanes = n_lanes(w), width;
    memset(w->slope, 0, sizeof w->slope);
    for (size_t t = 0; t < lanes; t += width) {
        width = st_tile_width(tile, lanes, t);
        for (size_t i = 0; i < w->n; i += tile->m)
            tile->fn[width / tile->lanes - 1](n, p->moments + (w->first + i) * p->k + from, p->k, 1,
                                              w->errors + t * p->k + from * width, &w->slope[i][t],
                                              LANES);
    }
}

static void add_rows(float sum[restrict ROWS], float factor, const float rows[restrict ROWS]) {
    for (size_t r = 0; r < ROWS; r++) sum[r] += factor * rows[r];
}

// The code of column i that is best with all others as they are.
static void renew_code(struct work *w, size_t i) {
    struct st_panel *p = w->p;
    const float *h = p->moments + (w->first + i) * p->k + w->first;
    float targets[MAX][ROWS], values[MAX][ROWS], change[LANES];
    uint8_t *code = p->code + (w->first + i) * ROWS, before[ROWS];
    const float *x = p->w + (w->first + i) * ROWS;
    unsigned n_bits = st_panel_precisions(p);
    for (unsigned b = 0; b < n_bits; b++)
        for (size_t r = 0; r < ROWS; r++) {
            size_t lane = b * ROWS + r;
            targets[b][r] = x[r] - w->error[i][lane] + w->slope[i][lane] / h[i];
        }
    memcpy(before, code, sizeof before);
    select_codes(p, &w->grids[w->group], targets, code, values);
    if (memcmp(before, code, sizeof before) == 0) return;
    for (unsigned b = 0; b < n_bits; b++)
        for (size_t r = 0; r < ROWS; r++) {
            size_t lane = b * ROWS + r;
            change[lane] = x[r] - values[b][r] - w->error[i][lane];
            w->error[i][lane] += change[lane];
        }
    for (size_t j = 0; j < w->n; j++)
        for (unsigned b = 0; b < n_bits; b++)
            add_rows(w->slope[j] + b * ROWS, h[j], change + b * ROWS);
}

// With c the codes and 1 ones, the entries of (c 1)^T H (c 1) and (c 1)^T slope, by row.
struct normal {
    float cc[ROWS], c1[ROWS], cg[ROWS], g1[ROWS], ones;
};

static void find_normal(const struct work *w, unsigned b, struct normal *m) {
    const struct st_panel *p = w->p;
    float c[GROUP][ROWS];
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < w->n; i++)
        for (size_t r = 0; r < ROWS; r++)
            c[i][r] = (float)(p->code[(w->first + i) * ROWS + r] >> (p->high - p->low - b));
    for (size_t i = 0; i < w->n; i++) {
        const float *h = p->moments + (w->first + i) * p->k + w->first;
        float hc[ROWS] = {0};
        for (size_t j = 0; j < w->n; j++) {
            add_rows(hc, h[j], c[j]);
            m->ones += h[j];
        }
        for (size_t r = 0; r < ROWS; r++) {
            float slope = w->slope[i][b * ROWS + r];
            m->cc[r] += c[i][r] * hc[r];
            m->c1[r] += hc[r];
            m->cg[r] += c[i][r] * slope;
            m->g1[r] += slope;
        }
    }
}

// Least squares for the grid of a row, then rounded; kept if the error is less even so.
static void renew_grid(struct work *w, unsigned b, size_t r, const struct normal *m) {
    struct st_panel *p = w->p;
    struct st_grid *grid = &w->grids[w->group];
    float scale = grid->scale[b][r], minimum = grid->minimum[b][r];
    double cc = (double)m->cc[r], c1 = (double)m->c1[r], ones = (double)m->ones;
    double cg = (double)m->cg[r], g1 = (double)m->g1[r], det = cc * ones - c1 * c1;
    if (!(det > 1e-6 * cc * ones)) return; // one code alone
    put_grid(p, w->grids, w->group, b, r, scale + (float)((cg * ones - g1 * c1) / det), minimum);
    double ds = (double)(grid->scale[b][r] - scale);
    put_grid(p, w->grids, w->group, b, r, grid->scale[b][r],
             minimum + (float)((g1 - ds * c1) / ones));
    double dm = (double)(grid->minimum[b][r] - minimum);
    if (ds * ds * cc + 2 * ds * dm * c1 + dm * dm * ones < 2 * (ds * cg + dm * g1)) return;
    put_grid(p, w->grids, w->group, b, r, scale, minimum);
}

static void renew_group(struct work *w, size_t group) {
    begin_group(w, group);
    for (size_t i = 0; i < w->n; i++) set_errors(w, i);
    find_slopes(w);
    for (size_t i = 0; i < w->n; i++) renew_code(w, i);
    for (unsigned b = 0; b < st_panel_precisions(w->p); b++) {
        struct normal normal;
        find_normal(w, b, &normal);
        for (size_t r = 0; r < ROWS; r++) renew_grid(w, b, r, &normal);
    }
    for (size_t i = 0; i < w->n; i++) set_errors(w, i);
    store_errors(w);
}

// ---- All groups

void PANEL_QUANTIZE(struct st_panel *p, float *scratch) {
    struct work w = {.p = p, .grids = (struct st_grid *)(void *)scratch};
    size_t groups = st_panel_groups(p->k);
    fit_grids(p, w.grids);
    round_codes(p, w.grids);
    if (!p->moments) return;
    w.errors = scratch + st_panel_grid_floats(p->k);
    memset(w.errors, 0, p->k * st_panel_lanes(p->tile, p->low, p->high) * sizeof *w.errors);
    for (size_t g = 0; g < groups; g++) {
        begin_group(&w, g);
        for (size_t i = 0; i < w.n; i++) set_errors(&w, i);
        store_errors(&w);
    }
    for (size_t sweep = 0; sweep < SWEEPS; sweep++)
        for (size_t g = 0; g < groups; g++) renew_group(&w, g);
}
