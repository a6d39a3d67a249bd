// SPDX-License-Identifier: Apache-2.0
// Included by quantize_body.h: fits the grids of a panel's groups to its weights.
#include "prepare/grids.h"

#include "base/half.h"
#include "base/size.h"

#include <math.h>
#include <string.h>

enum { ROWS = ST_PANEL_ROWS, MAX = ST_PANEL_PRECISIONS, GROUP = ST_NESTED_GROUP };

// How far the ends of a group's range move inwards, as shares of it, when its grid is fitted.
static const float shrinks[][2] = {{0.0f, 0.0f},  {0.04f, 0.04f}, {0.08f, 0.08f}, {0.13f, 0.13f},
                                   {0.0f, 0.08f}, {0.08f, 0.0f},  {0.0f, 0.15f},  {0.15f, 0.0f}};

// Weighted sums over a group.
struct moments {
    float w, x[ROWS], xx[ROWS], c[MAX][ROWS], cc[MAX][ROWS], xc[MAX][ROWS];
};

// Uniform steps, of the highest precision.
struct steps {
    float low[ROWS], step[ROWS];
};

static float code_of(float x, float inverse, float top) {
    float code = rintf(x * inverse);
    code = code > 0.0f ? code : 0.0f;
    return code < top ? code : top;
}

// Sums over the weights and codes of a group, of which the lower bits do not count.
static void add_codes(const float (*restrict x)[ROWS], const int32_t (*restrict codes)[ROWS],
                      const float *restrict importance, size_t n, unsigned n_lower,
                      float sum_c[restrict ROWS], float sum_cc[restrict ROWS],
                      float sum_xc[restrict ROWS]) {
    float s[ROWS] = {0}, cc[ROWS] = {0}, xc[ROWS] = {0};
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < ROWS; r++) {
            float c = (float)(codes[i][r] >> n_lower), weighted = importance[i] * c;
            s[r] += weighted;
            cc[r] += weighted * c;
            xc[r] += weighted * x[i][r];
        }
    for (size_t r = 0; r < ROWS; r++) {
        sum_c[r] = s[r];
        sum_cc[r] = cc[r];
        sum_xc[r] = xc[r];
    }
}

// For the codes that the group [first, first + n) has on uniform steps.
static void sum_codes(const struct st_panel *p, size_t first, size_t n, const struct steps *steps,
                      struct moments *m) {
    unsigned n_bits = st_panel_precisions(p);
    float top = (float)((1u << p->high) - 1), inverse[ROWS];
    const float(*x)[ROWS] = (const float(*)[ROWS])(p->w + first * ROWS);
    int32_t codes[GROUP][ROWS];
    for (size_t r = 0; r < ROWS; r++)
        inverse[r] = steps->step[r] > 0.0f ? 1.0f / steps->step[r] : 0.0f;
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < ROWS; r++)
            codes[i][r] = (int32_t)code_of(x[i][r] - steps->low[r], inverse[r], top);
    for (unsigned b = 0; b < n_bits; b++)
        add_codes(x, codes, p->importance + first, n, n_bits - 1 - b, m->c[b], m->cc[b], m->xc[b]);
}

// Least squares for precision low + b, one of whose steps is n_steps of the highest one's; where
// the codes do not determine it, the steps themselves. Adds `share` of the weighted errors.
static void solve(const struct moments *m, unsigned b, float share, float n_steps,
                  const struct steps *steps, float scale[restrict ROWS],
                  float minimum[restrict ROWS], float errors[restrict ROWS]) {
    uint32_t large[ROWS], positive[ROWS];
    for (size_t r = 0; r < ROWS; r++) {
        float sum_c = m->c[b][r], cc = m->cc[b][r], det = m->w * cc - sum_c * sum_c;
        scale[r] = (m->w * m->xc[b][r] - sum_c * m->x[r]) / det;
        minimum[r] = (m->x[r] - scale[r] * sum_c) / m->w;
        large[r] = -(uint32_t)(det > 1e-6f * m->w * cc);
        positive[r] = -(uint32_t)(scale[r] > 0.0f);
    }
    for (size_t r = 0; r < ROWS; r++) {
        float sum_c = m->c[b][r], cc = m->cc[b][r], xc = m->xc[b][r], x = m->x[r];
        float same_s = steps->step[r] * n_steps;
        float same_n = steps->low[r] + steps->step[r] * (n_steps - 1.0f) / 2.0f;
        uint32_t solved = large[r] & positive[r];
        float s = st_float_select(solved, scale[r], same_s),
              n = st_float_select(solved, minimum[r], same_n);
        float squares =
            m->xx[r] - 2.0f * (n * x + s * xc) + n * n * m->w + 2.0f * n * s * sum_c + s * s * cc;
        scale[r] = s;
        minimum[r] = n;
        errors[r] += share * squares;
    }
}

static void keep_less(const float errors[restrict ROWS], const float best[restrict ROWS],
                      const float from[restrict ROWS], float to[restrict ROWS]) {
    for (size_t r = 0; r < ROWS; r++) {
        int32_t less = -(int32_t)(errors[r] < best[r]);
        float before = to[r];
        to[r] = less ? from[r] : before;
    }
}

// Tries steps for a group; best [r] is the least error so far.
static void try_steps(const struct st_panel *p, size_t first, size_t n, const struct steps *steps,
                      struct moments *m, float best[ROWS], struct st_grid *grid) {
    unsigned n_bits = st_panel_precisions(p);
    float scale[MAX][ROWS], minimum[MAX][ROWS], errors[ROWS] = {0};
    sum_codes(p, first, n, steps, m);
    for (unsigned b = 0; b < n_bits; b++)
        solve(m, b, st_panel_share(p, b), (float)(1u << (n_bits - 1 - b)), steps, scale[b],
              minimum[b], errors);
    for (unsigned b = 0; b < n_bits; b++) {
        keep_less(errors, best, scale[b], grid->scale[b]);
        keep_less(errors, best, minimum[b], grid->minimum[b]);
    }
    for (size_t r = 0; r < ROWS; r++) best[r] = errors[r] < best[r] ? errors[r] : best[r];
}

static void fit_group(const struct st_panel *p, size_t first, size_t n, struct st_grid *grid) {
    float min[ROWS], max[ROWS], best[ROWS];
    struct moments m = {0};
    for (size_t r = 0; r < ROWS; r++) {
        min[r] = best[r] = INFINITY;
        max[r] = -INFINITY;
    }
    for (size_t i = first; i < first + n; i++) {
        m.w += p->importance[i];
        for (size_t r = 0; r < ROWS; r++) {
            float v = p->w[i * ROWS + r];
            min[r] = v < min[r] ? v : min[r];
            max[r] = v > max[r] ? v : max[r];
            m.x[r] += p->importance[i] * v;
            m.xx[r] += p->importance[i] * v * v;
        }
    }
    for (size_t s = 0; s < sizeof shrinks / sizeof *shrinks; s++) {
        struct steps steps;
        for (size_t r = 0; r < ROWS; r++) {
            float range = max[r] - min[r], share = 1.0f - shrinks[s][0] - shrinks[s][1];
            steps.low[r] = min[r] + shrinks[s][0] * range;
            steps.step[r] = share * range / (float)((1u << p->high) - 1);
        }
        try_steps(p, first, n, &steps, &m, best, grid);
    }
}

// What whole numbers up to `top` are multiples of, so that the largest is `max`.
static float unit_of(float max, float top) {
    return max / top >= 0x1p-100f ? max / top : 1.0f;
}

// Sets the grid of a group, precision and row to the multiples of the row's floats next to it.
static void put_grid(struct st_panel *p, struct st_grid *grids, size_t g, unsigned b, size_t r,
                     float scale, float minimum) {
    const struct st_nested_row *row = &p->rows[b][r];
    float s = fminf(fmaxf(rintf(scale / row->scale), 1.0f), 255.0f);
    float n = fminf(fmaxf(rintf(minimum / row->minimum), -127.0f), 127.0f);
    st_nested_put_group(p->groups[p->low + b], p->k, r, g * GROUP,
                        (struct st_nested_group){(uint8_t)s, (int8_t)n});
    grids[g].scale[b][r] = s * row->scale;
    grids[g].minimum[b][r] = n * row->minimum;
}

// Rounds the grids of a precision and row to bytes.
static void round_grids(struct st_panel *p, struct st_grid *grids, unsigned b, size_t r) {
    float scale = 0.0f, minimum = 0.0f;
    for (size_t g = 0; g < st_panel_groups(p->k); g++) {
        scale = fmaxf(scale, grids[g].scale[b][r]);
        minimum = fmaxf(minimum, fabsf(grids[g].minimum[b][r]));
    }
    p->rows[b][r] = (struct st_nested_row){unit_of(scale, 255.0f), unit_of(minimum, 127.0f)};
    for (size_t g = 0; g < st_panel_groups(p->k); g++)
        put_grid(p, grids, g, b, r, grids[g].scale[b][r], grids[g].minimum[b][r]);
}

// Fits the grids of all groups and rounds them to what a package holds, in p->groups and p->rows.
static void fit_grids(struct st_panel *p, struct st_grid *grids) {
    for (size_t g = 0; g < st_panel_groups(p->k); g++) {
        size_t first = g * GROUP;
        fit_group(p, first, st_min(GROUP, p->k - first), &grids[g]);
    }
    for (unsigned b = 0; b < st_panel_precisions(p); b++)
        for (size_t r = 0; r < ROWS; r++) round_grids(p, grids, b, r);
}
