// SPDX-License-Identifier: Apache-2.0
// INT8 weights by the error of the outputs: coordinate descent, in which a weight's rounding makes
// up for that of others whose inputs correlate with its own. As quantize_body.h does for nested
// codes, the first sweep takes weights that have no codes yet as they are.
#ifndef ST_PREPARE_DESCENT_H
#define ST_PREPARE_DESCENT_H

#include "prepare/slopes.h"

// Rows side by side: element i of row r is at i * n_rows + r. Three vectors of 16 lanes or six of 8
// are whole tiles, which read second moments once for all of them.
enum { ST_DESCENT_ROWS = 48, ST_DESCENT_FEW_ROWS = 16 };

// Takes codes for an element of all rows. value[r]: what the present code stands for; becomes what
// the one nearest to target[r] stands for.
typedef void st_descent_select_fn(void *context, size_t element, const float *target, float *value);

struct st_descent {
    size_t n_rows;  // 48, or 8, which are slower; a row has the same bits in both
    const float *w; // [k, n_rows] the source's weights
    size_t k;
    const struct st_slopes *slopes; // of the inputs
    const float *max;               // [k] their largest magnitudes
    st_descent_select_fn *select;
    void *context;
    float *value; // [k, n_rows] of the codes: in, and out
};

// Floats of the scratch for n_rows of k weights.
size_t st_descent_scratch(const struct st_tile *tile, size_t k, size_t n_rows);
// The same bits on all instruction sets but for the products of the slopes.
void st_descent_run(const struct st_descent *descent, float *scratch);

#endif
