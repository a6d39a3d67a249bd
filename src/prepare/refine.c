// SPDX-License-Identifier: Apache-2.0
#include "prepare/refine.h"

#include "prepare/descent.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = ST_PANEL_ROWS };
static_assert((int)ROWS == ST_DESCENT_FEW_ROWS, "they descend at once");

static int clamp(int x, int least, int most) {
    return x < least ? least : x > most ? most : x;
}

// One weight: a first guess by the distance of two codes, then the best of its neighbours.
static int8_t refine(const struct st_nested_weight *w, struct st_nested_group group,
                     const struct st_nested_int8_row *row, float wanted, uint8_t *code) {
    unsigned spare = ST_NESTED_STORED - w->stored, lower = (unsigned)w->stored - w->high;
    int first = *code << lower, last = first + (1 << lower) - 1;
    int half = (int)(st_nested_int8_half(w) >> spare);
    float step = (float)group.scale * (float)row->step * (float)(1 << spare) / (4096.0f * 256.0f);
    float minimum = (float)group.minimum * (float)row->minimum;
    float away = wanted - minimum / (32.0f * 128.0f) - step * (float)first; // from code + half
    int guess = first + half + (int)(step > 0.0f ? fminf(fmaxf(away / step, -256.0f), 256.0f) : 0);
    guess = clamp(guess, first, last);
    int8_t best = 0;
    float least = INFINITY;
    for (int c = clamp(guess - 2, first, last); c <= clamp(guess + 2, first, last); c++) {
        int8_t got = st_nested_int8_of_code(w, group, row, (unsigned)c << spare);
        float miss = fabsf((float)got - wanted);
        if (miss >= least) continue;
        least = miss;
        best = got;
        *code = (uint8_t)c;
    }
    return best;
}

struct panel {
    const struct st_refined *r;
    struct st_nested_int8_row rows[ROWS];
};

// Of an element: its code has the upper bits alone, or all.
static int8_t refine_element(const struct panel *p, size_t i, size_t r, float wanted,
                             uint8_t *code) {
    const struct st_nested_weight *w = p->r->weight;
    struct st_nested_group group = st_nested_group(w->groups[w->high], w->n_in, p->r->row + r, i);
    return refine(w, group, &p->rows[r], wanted, code);
}

// A whole number that is within a half is the nearest.
static void select_code(void *context, size_t i, const float *target, float *value) {
    const struct panel *p = context;
    const struct st_nested_weight *w = p->r->weight;
    for (size_t r = 0; r < p->r->n_rows; r++) {
        uint8_t *code = &p->r->code[i * ROWS + r];
        if (fabsf(target[r] - value[r]) <= 0.5f) continue;
        *code = (uint8_t)(*code >> (w->stored - w->high));
        value[r] = (float)refine_element(p, i, r, target[r], code);
    }
}

static void begin(struct panel *p, float *value) {
    const struct st_refined *x = p->r;
    const struct st_nested_weight *w = x->weight;
    memset(value, 0, w->n_in * ROWS * sizeof *value);
    for (size_t r = 0; r < x->n_rows; r++) {
        p->rows[r] =
            st_nested_int8_row_of(st_nested_row(w, w->high, x->row + r), w->high, x->scales[r]);
        for (size_t i = r; i < w->n_in * ROWS; i += ROWS) {
            x->w[i] /= x->scales[r];
            value[i] = (float)refine_element(p, i / ROWS, r, x->w[i], &x->code[i]);
        }
    }
}

size_t st_refine_scratch(const struct st_tile *tile, size_t k) {
    return k * ROWS + st_descent_scratch(tile, k, ROWS);
}

void st_refine_panel(const struct st_refined *x, float *scratch) {
    struct panel p = {.r = x};
    size_t k = x->weight->n_in;
    struct st_descent d = {.n_rows = ROWS,
                           .w = x->w,
                           .k = k,
                           .slopes = x->slopes,
                           .max = x->max,
                           .select = select_code,
                           .context = &p,
                           .value = scratch};
    begin(&p, d.value);
    if (x->slopes) st_descent_run(&d, scratch + k * ROWS);
    for (size_t r = 0; r < x->n_rows; r++) {
        x->sums[r] = 0;
        for (size_t i = r; i < k * ROWS; i += ROWS) x->sums[r] += (int32_t)d.value[i];
    }
}

// ---- Parts

void st_refined_parts_close(struct st_refined_parts *parts) {
    free(parts->scales);
    free(parts->sums);
}

// Where a packed row has its number; SIZE_MAX: it is padding.
static size_t place_of(const struct st_refined_parts *p, size_t packed) {
    uint32_t part;
    size_t row;
    if (!st_linear_op_find_row(&p->linear_op, packed, &part, &row)) return SIZE_MAX;
    return p->begin[part] + row;
}

stint_status st_refined_parts_open(const struct st_config *config,
                                   const struct st_pack_source *source, const float *scales,
                                   struct st_refined_parts *p) {
    *p = (struct st_refined_parts){0};
    if (!scales) return STINT_OK;
    st_int8_shape(source->role, config, source->layer, source->expert, &p->linear_op);
    st_int8_name(source->role, config, source->layer, source->expert, p->name);
    for (uint32_t i = 1; i < ST_LINEAR_OP_PARTS && source->parts[i]; i++)
        p->begin[i] = p->begin[i - 1] + source->parts[i - 1]->n_out;
    size_t rows = st_linear_op_rows(&p->linear_op);
    p->scales = calloc(rows, sizeof *p->scales);
    p->sums = calloc(rows, sizeof *p->sums);
    if (!p->scales || !p->sums) {
        st_refined_parts_close(p);
        return st_fail(STINT_E_NOMEM, "no memory for the scales of '%s'", p->name);
    }
    for (size_t packed = 0; packed < rows; packed++) {
        size_t at = place_of(p, packed);
        if (at != SIZE_MAX) p->scales[at] = scales[packed];
    }
    return STINT_OK;
}

stint_status st_refined_parts_write(const struct st_refined_parts *p,
                                    struct st_package_writer *writer) {
    size_t rows = st_linear_op_rows(&p->linear_op);
    int32_t *sums = calloc(rows, sizeof *sums);
    if (!sums) return st_fail(STINT_E_NOMEM, "no memory for the sums of '%s'", p->name);
    for (size_t packed = 0; packed < rows; packed++) {
        size_t at = place_of(p, packed);
        if (at != SIZE_MAX) sums[packed] = p->sums[at];
    }
    stint_status status =
        st_pack_section(writer, p->name, ST_INT8_SUMS, ST_SECTION_I32, sums, rows);
    free(sums);
    return status;
}
