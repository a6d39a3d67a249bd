// SPDX-License-Identifier: Apache-2.0
#include "session/linear/rows.h"

#include "session/weights/source.h"

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
        rows[i] = (struct st_rows){weights[i]->data, 0, weights[i]->n_out};
    fn(context, rows);
    return STINT_OK;
}
