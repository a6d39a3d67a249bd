// SPDX-License-Identifier: Apache-2.0
// Included by quantize_body.h: fits the grids of a panel's groups to its weights.
#include "prepare/grids.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

enum { ROWS = ST_NESTED_PANEL, MAX = ST_PANEL_PRECISIONS, GROUP = ST_NESTED_GROUP };

// How far the ends of a group's range move inwards, as shares of it, when its grid is fitted.
static const float shrinks[][2] = {{0.0f, 0.0f},  {0.04f, 0.04f}, {0.08f, 0.08f}, {0.13f, 0.13f},
                                   {0.0f, 0.08f}, {0.08f, 0.0f},  {0.0f, 0.15f},  {0.15f, 0.0f}};

// Weighted sums over a group.
struct moments {
    float w, x, xx, c[MAX][ROWS], cc[MAX][ROWS], xc[MAX][ROWS];
};

static float code_of(float x, float inverse, float top) {
    float code = rintf(x * inverse);
    code = code > 0.0f ? code : 0.0f;
    return code < top ? code : top;
}

// Sums of the codes that the group [first, first + n) has on uniform steps from low[r].
static void add_codes(const struct st_panel *p, size_t first, size_t n, const float *low,
                      const float *inverse, struct moments *m) {
    unsigned n_bits = st_panel_precisions(p);
    float top = (float)((1u << p->high) - 1);
    memset(m->c, 0, sizeof m->c);
    memset(m->cc, 0, sizeof m->cc);
    memset(m->xc, 0, sizeof m->xc);
    for (size_t i = first; i < first + n; i++) {
        const float *x = p->w + i * ROWS;
        float importance = p->importance[i];
        int32_t code[ROWS];
        for (size_t r = 0; r < ROWS; r++)
            code[r] = (int32_t)code_of(x[r] - low[r], inverse[r], top);
        for (unsigned b = 0; b < n_bits; b++)
            for (size_t r = 0; r < ROWS; r++) {
                float c = (float)(code[r] >> (n_bits - 1 - b)), weighted = importance * c;
                m->c[b][r] += weighted;
                m->cc[b][r] += weighted * c;
                m->xc[b][r] += weighted * x[r];
            }
    }
}

// Least squares for each precision; where the codes do not determine it, the steps themselves.
// Returns the weighted error of all precisions.
static float solve(const struct st_panel *p, const struct moments *m, size_t r, const float *x,
                   float low, float step, float scale[MAX], float minimum[MAX]) {
    unsigned n_bits = st_panel_precisions(p);
    float error = 0.0f;
    for (unsigned b = 0; b < n_bits; b++) {
        float steps = (float)(1u << (n_bits - 1 - b));
        float det = m->w * m->cc[b][r] - m->c[b][r] * m->c[b][r];
        float s = (m->w * m->xc[b][r] - m->c[b][r] * x[0]) / det;
        if (!(det > 1e-6f * m->w * m->cc[b][r]) || !(s > 0.0f)) {
            scale[b] = step * steps;
            minimum[b] = low + step * (steps - 1.0f) / 2.0f;
        } else {
            scale[b] = s;
            minimum[b] = (x[0] - s * m->c[b][r]) / m->w;
        }
        float n = minimum[b], c = scale[b];
        float squares = x[1] - 2.0f * (n * x[0] + c * m->xc[b][r]) + n * n * m->w +
                        2.0f * n * c * m->c[b][r] + c * c * m->cc[b][r];
        error += st_panel_share(p, b) * squares;
    }
    return error;
}

static void fit_group(const struct st_panel *p, size_t first, size_t n, struct st_grid *grid) {
    unsigned n_bits = st_panel_precisions(p);
    float min[ROWS], max[ROWS], best[ROWS], x[ROWS][2] = {{0}};
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
            x[r][0] += p->importance[i] * v;
            x[r][1] += p->importance[i] * v * v;
        }
    }
    for (size_t s = 0; s < sizeof shrinks / sizeof *shrinks; s++) {
        float low[ROWS], step[ROWS], inverse[ROWS];
        for (size_t r = 0; r < ROWS; r++) {
            float range = max[r] - min[r], share = 1.0f - shrinks[s][0] - shrinks[s][1];
            low[r] = min[r] + shrinks[s][0] * range;
            step[r] = share * range / (float)((1u << p->high) - 1);
            inverse[r] = step[r] > 0.0f ? 1.0f / step[r] : 0.0f;
        }
        add_codes(p, first, n, low, inverse, &m);
        for (size_t r = 0; r < ROWS; r++) {
            float scale[MAX], minimum[MAX];
            float error = solve(p, &m, r, x[r], low[r], step[r], scale, minimum);
            if (!(error < best[r])) continue;
            best[r] = error;
            for (unsigned b = 0; b < n_bits; b++) {
                grid->scale[b][r] = scale[b];
                grid->minimum[b][r] = minimum[b];
            }
        }
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
