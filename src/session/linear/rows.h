// SPDX-License-Identifier: Apache-2.0
// Rows of linears as a checkpoint or a package stores them, wherever they are: all of them in the
// mapped file, or some at a time as a memory-bounded session reads them.
#ifndef ST_SESSION_LINEAR_ROWS_H
#define ST_SESSION_LINEAR_ROWS_H

#include "session/session.h"

// Rows [first, first + n) of a linear: one behind the other from `data` on, or as a nested weight
// of their own.
struct st_rows {
    const unsigned char *data;
    size_t first, n;
    const struct st_nested_weight *nested;
};

// rows: of each linear; n is 0 for those that are not at hand now.
typedef void st_rows_fn(void *context, const struct st_rows *rows);

// Calls `fn` once with all rows of all linears where they are in place. If the first linear is read
// on demand all must be, and `fn` gets their rows in order, range by range.
stint_status st_rows_each(const struct st_run *run, const struct st_linear_weight *const *weights,
                          size_t n_linears, st_rows_fn *fn, void *context);

// The same of nested weights, where each linear may be in memory or read on demand: `fn` gets those
// that are in memory first, together, and then the others range by range. Ranges begin with whole
// panels.
stint_status st_nested_rows_each(const struct st_run *run,
                                 const struct st_linear_weight *const *weights, size_t n_linears,
                                 st_rows_fn *fn, void *context);

// first[i]: of linear i, if the rows at hand lay one after another; first[n_linears]: their number.
static inline void st_rows_first(const struct st_rows *rows, size_t n_linears, size_t *first) {
    first[0] = 0;
    for (size_t i = 0; i < n_linears; i++) first[i + 1] = first[i] + rows[i].n;
}

#endif
