// SPDX-License-Identifier: Apache-2.0
// Included by a file per instruction set, which names the function by PANEL_QUANTIZE. Rows are the
// innermost loops, of a fixed length, and have sums of their own: the compiler makes vectors of
// them, and every instruction set gets the same bits.
//
// Codes and grids in turns: coordinate descent on the squared error of the outputs (Behdin et al.
// 2023, QuantEase), over all precisions that a code serves together. The first sweep takes weights
// that have no codes yet as they are (Frantar et al. 2022, GPTQ): half the products of one that
// begins with rounded weights, and less divergence on texts it has not seen.
#include "prepare/grids_body.h"

#include <assert.h>

enum {
    LANES = MAX * ROWS,                // of a column: its precisions, of each the rows
    TILE_ROWS = GROUP + ST_TILE_MAX_M, // a group's columns in whole tiles
    SWEEPS = 2,
    TOGETHER = 4, // columns
};
static_assert((int)GROUP % (int)TOGETHER == 0, "there is room for a group past the last row");

// What is worked on.
struct work {
    struct st_panel *p;
    struct st_grid *grids; // [groups]
    struct st_missed missed;
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

// Of two and two codes the one of less error, of equal ones the first. Rows take masks, as no store
// may depend on data.
static void pair(int32_t n, const float (*restrict errors)[ROWS],
                 float (*restrict less_errors)[ROWS], int32_t (*restrict less_codes)[ROWS]) {
    int32_t c = 0;
    do
        for (size_t r = 0; r < ROWS; r++) {
            float first = errors[2 * c][r], second = errors[2 * c + 1][r];
            int32_t less = -(int32_t)(second < first);
            less_errors[c][r] = less ? second : first;
            less_codes[c][r] = 2 * c - less;
        }
    while (++c < n);
}

// The same of codes that are left.
static void halve(int32_t n, const float (*restrict errors)[ROWS],
                  const int32_t (*restrict codes)[ROWS], float (*restrict less_errors)[ROWS],
                  int32_t (*restrict less_codes)[ROWS]) {
    for (int32_t c = 0; c < n; c++)
        for (size_t r = 0; r < ROWS; r++) {
            float first = errors[2 * c][r], second = errors[2 * c + 1][r];
            int32_t less = -(int32_t)(second < first);
            less_errors[c][r] = less ? second : first;
            less_codes[c][r] = (codes[2 * c][r] & ~less) | (codes[2 * c + 1][r] & less);
        }
}

// The first code of least error of errors[from], of which errors[!from] is scratch.
static void find_least(float errors[2][1 << ST_NESTED_HIGHEST][ROWS], unsigned from,
                       int32_t n_codes, int32_t selected[restrict ROWS]) {
    int32_t codes[2][1 << ST_NESTED_HIGHEST][ROWS];
    pair(n_codes / 2, errors[from], errors[!from], codes[!from]);
    from = !from;
    for (int32_t n = n_codes / 4; n > 0; n /= 2, from = !from)
        halve(n, errors[from], codes[from], errors[!from], codes[!from]);
    for (size_t r = 0; r < ROWS; r++) selected[r] = codes[from][0][r];
}

// What the upper bits of codes stand for.
static void put_values(const float minimum[restrict ROWS], const float scale[restrict ROWS],
                       const int32_t codes[restrict ROWS], unsigned n_lower,
                       float values[restrict ROWS]) {
    for (size_t r = 0; r < ROWS; r++)
        values[r] = minimum[r] + scale[r] * (float)(codes[r] >> n_lower);
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
    find_least(errors, (n_bits - 1) % 2, 1 << p->high, selected);
    for (unsigned b = 0; b < n_bits; b++)
        put_values(grid->minimum[b], grid->scale[b], selected, n_bits - 1 - b, values[b]);
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

static void subtract(const float a[restrict ROWS], const float b[restrict ROWS],
                     float out[restrict ROWS]) {
    for (size_t r = 0; r < ROWS; r++) out[r] = a[r] - b[r];
}

// What the codes miss of column i of the group.
static void set_errors(struct work *w, size_t i) {
    const struct st_panel *p = w->p;
    const struct st_grid *grid = &w->grids[w->group];
    const uint8_t *code = p->code + (w->first + i) * ROWS;
    const float *x = p->w + (w->first + i) * ROWS;
    int32_t codes[ROWS];
    for (size_t r = 0; r < ROWS; r++) codes[r] = code[r];
    for (unsigned b = 0; b < st_panel_precisions(p); b++) {
        float values[ROWS];
        put_values(grid->minimum[b], grid->scale[b], codes, p->high - p->low - b, values);
        subtract(x, values, &w->error[i][b * ROWS]);
    }
}

static void store_errors(struct work *w) {
    st_missed_put(&w->missed, w->first, w->n, w->error[0], LANES);
}

static const float *moments_of(const struct work *w, size_t i) {
    return w->p->slopes->moments + (w->first + i) * w->p->k + w->first;
}

static void add_rows(float sum[restrict ROWS], float factor, const float rows[restrict ROWS]) {
    for (size_t r = 0; r < ROWS; r++) sum[r] += factor * rows[r];
}

static void renew_errors(const float x[restrict ROWS], const float values[restrict ROWS],
                         float errors[restrict ROWS], float change[restrict ROWS]) {
    for (size_t r = 0; r < ROWS; r++) {
        change[r] = x[r] - values[r] - errors[r];
        errors[r] += change[r];
    }
}

// The code of column i that is best with all others as they are: `again`, or those that have none
// yet as in the source.
static void renew_code(struct work *w, size_t i, bool again) {
    struct st_panel *p = w->p;
    const float *h = moments_of(w, i);
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
    if (again && memcmp(before, code, sizeof before) == 0) return;
    for (unsigned b = 0; b < n_bits; b++)
        renew_errors(x, values[b], &w->error[i][b * ROWS], change + b * ROWS);
    for (size_t j = 0; j < w->n; j++)
        for (unsigned b = 0; b < n_bits; b++)
            add_rows(w->slope[j] + b * ROWS, h[j], change + b * ROWS);
}

// With c the codes and 1 ones, the entries of (c 1)^T H (c 1) and (c 1)^T slope, by row.
struct normal {
    float cc[ROWS], c1[ROWS], cg[ROWS], g1[ROWS], ones;
};

// out[i] = H's row i times c for the rows from h on: several at once, as each waits for itself.
static void multiply_codes(const float *h, size_t h_row, size_t n, const float (*restrict c)[ROWS],
                           float (*restrict out)[ROWS]) {
    float a[ROWS] = {0}, b[ROWS] = {0}, d[ROWS] = {0}, e[ROWS] = {0};
    for (size_t j = 0; j < n; j++) {
        add_rows(a, h[j], c[j]);
        add_rows(b, h[h_row + j], c[j]);
        add_rows(d, h[2 * h_row + j], c[j]);
        add_rows(e, h[3 * h_row + j], c[j]);
    }
    for (size_t r = 0; r < ROWS; r++) out[0][r] = a[r];
    for (size_t r = 0; r < ROWS; r++) out[1][r] = b[r];
    for (size_t r = 0; r < ROWS; r++) out[2][r] = d[r];
    for (size_t r = 0; r < ROWS; r++) out[3][r] = e[r];
}

static void add_products(float sum[restrict ROWS], const float a[restrict ROWS],
                         const float b[restrict ROWS]) {
    for (size_t r = 0; r < ROWS; r++) sum[r] += a[r] * b[r];
}

// But for `ones`.
static void find_normal(const struct work *w, unsigned b, struct normal *m) {
    const struct st_panel *p = w->p;
    const float *h = moments_of(w, 0);
    float c[GROUP][ROWS], hc[GROUP][ROWS];
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < w->n; i++)
        for (size_t r = 0; r < ROWS; r++)
            c[i][r] = (float)(p->code[(w->first + i) * ROWS + r] >> (p->high - p->low - b));
    for (size_t i = 0; i < w->n; i += TOGETHER) multiply_codes(h + i * p->k, p->k, w->n, c, hc + i);
    for (size_t i = 0; i < w->n; i++) {
        const float *slope = &w->slope[i][b * ROWS];
        add_products(m->cc, c[i], hc[i]);
        add_rows(m->c1, 1.0f, hc[i]);
        add_products(m->cg, c[i], slope);
        add_rows(m->g1, 1.0f, slope);
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

static void renew_group(struct work *w, size_t group, bool again) {
    begin_group(w, group);
    if (again)
        for (size_t i = 0; i < w->n; i++) set_errors(w, i);
    else
        memset(w->error, 0, sizeof w->error);
    st_missed_slopes(&w->missed, w->first, w->n, again ? w->p->k : w->first, w->slope[0], LANES);
    for (size_t i = 0; i < w->n; i++) renew_code(w, i, again);
    float ones = w->p->ones[w->group];
    for (unsigned b = 0; b < st_panel_precisions(w->p); b++) {
        struct normal normal;
        find_normal(w, b, &normal);
        normal.ones = ones;
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
    if (!p->slopes) {
        round_codes(p, w.grids);
        return;
    }
    st_missed_begin(p->slopes, n_lanes(&w), scratch + st_panel_grid_floats(p->k), &w.missed);
    for (size_t sweep = 0; sweep < SWEEPS; sweep++)
        for (size_t g = 0; g < groups; g++) renew_group(&w, g, sweep > 0);
}
