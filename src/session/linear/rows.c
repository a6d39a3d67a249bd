// SPDX-License-Identifier: Apache-2.0
#include "session/linear/rows.h"

#include "base/size.h"
#include "session/weights/source.h"

#include <string.h>

static stint_status each_range(const struct st_run *r, const struct st_linear_weight *weight,
                               struct st_rows *all, struct st_rows *rows, st_rows_fn *fn,
                               void *context) {
    const struct st_weight_source *source = r->s->source;
    for (size_t row = 0; row < weight->n_out; row += rows->n) {
        rows->first = row;
        ST_TRY(source->acquire_rows(r, weight, rows));
        fn(context, all);
        source->release_rows(r, weight, rows);
    }
    rows->n = 0;
    return STINT_OK;
}

stint_status st_rows_each(const struct st_run *r, const struct st_linear_weight *const *weights,
                          size_t n_linears, st_rows_fn *fn, void *context) {
    struct st_rows rows[ST_MAX_LINEARS] = {0};
    if (weights[0]->piece) {
        for (size_t i = 0; i < n_linears; i++)
            ST_TRY(each_range(r, weights[i], rows, &rows[i], fn, context));
        return STINT_OK;
    }
    for (size_t i = 0; i < n_linears; i++)
        rows[i] = (struct st_rows){.data = weights[i]->data, .n = weights[i]->n_out};
    fn(context, rows);
    return STINT_OK;
}

static stint_status each_panels(const struct st_run *r, const struct st_linear_weight *weight,
                                struct st_rows *all, struct st_rows *rows, st_rows_fn *fn,
                                void *context) {
    const struct st_weight_source *source = r->s->source;
    size_t n_rows = r->n_rows ? r->n_rows : weight->n_out;
    size_t n_panels = st_ceil_div(n_rows, ST_NESTED_PANEL);
    for (struct st_panels panels = {.first = 0}; panels.first < n_panels;
         panels.first += panels.n) {
        ST_TRY(source->acquire_panels(r, weight->nested, &panels));
        *rows = (struct st_rows){.first = panels.first * ST_NESTED_PANEL,
                                 .n = panels.weight.n_out,
                                 .nested = &panels.weight};
        fn(context, all);
        source->release_panels(r, weight->nested, &panels);
    }
    *rows = (struct st_rows){0};
    return STINT_OK;
}

// Linears are prefetched in the order of the package, which has gate before up.
static bool is_turned(const struct st_linear_weight *const *weights, size_t n) {
    return n > 1 && weights[1]->nested->index < weights[0]->nested->index;
}

stint_status st_nested_rows_each(const struct st_run *r,
                                 const struct st_linear_weight *const *weights, size_t n_linears,
                                 st_rows_fn *fn, void *context) {
    struct st_rows rows[ST_MAX_LINEARS] = {0};
    bool in_place[ST_MAX_LINEARS], any = false;
    for (size_t i = 0; i < n_linears; i++) {
        const struct st_nested_weight *nested = r->s->source->nested(r, weights[i]->nested);
        in_place[i] = nested != NULL;
        any |= in_place[i];
        if (nested) rows[i] = (struct st_rows){.n = nested->n_out, .nested = nested};
    }
    if (any) fn(context, rows);
    memset(rows, 0, sizeof rows);
    for (size_t j = 0; j < n_linears; j++) {
        size_t i = is_turned(weights, n_linears) ? n_linears - 1 - j : j;
        if (!in_place[i]) ST_TRY(each_panels(r, weights[i], rows, &rows[i], fn, context));
    }
    return STINT_OK;
}
