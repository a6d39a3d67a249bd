// SPDX-License-Identifier: Apache-2.0
// Nested codes for the weights of a panel of rows (kernels/nested.h): the groups' scales and minima
// of every precision, and codes that serve all precisions.
#ifndef ST_PREPARE_QUANTIZE_H
#define ST_PREPARE_QUANTIZE_H

#include "base/arena.h"
#include "base/thread.h"
#include "kernels/elementwise.h"
#include "kernels/nested.h"

#include <stdbool.h>

enum { ST_PANEL_PRECISIONS = ST_NESTED_HIGHEST - ST_NESTED_LOWEST + 1 };

// Rows side by side: element i of row r is at i * ST_NESTED_PANEL + r.
struct st_panel {
    const float *w; // [k, rows]
    size_t k;
    const float *importance; // [k] weight of the squared error: E[x^2] of the input
    const float *feedback;   // [k, k] by st_feedback_factor(), or NULL: codes are rounded
    unsigned low, high;      // bits
    const struct st_elementwise *elementwise;
    uint8_t *code;                          // [k, rows] out: of `high` bits
    uint8_t *groups[ST_NESTED_HIGHEST + 1]; // out: of this panel, by bits
    struct st_nested_row rows[ST_PANEL_PRECISIONS][ST_NESTED_PANEL]; // out: low first
};

// Floats of the scratch of st_panel_quantize() for rows of k weights.
size_t st_panel_scratch(size_t k, unsigned low, unsigned high);
// pre: the panel's groups are zeroed.
void st_panel_quantize(struct st_panel *panel, float *scratch);

struct st_quantizer {
    const char *name, *what;
    bool feedback;
};

extern const struct st_quantizer st_quantizers[]; // the default first; ends with a NULL name
const struct st_quantizer *st_quantizer_find(const char *name); // NULL: the default; or NULL

// ---- feedback.c

// Replaces H [k, k] = sum of x x^T, of which only the upper triangle is read, by what st_panel
// wants (LDLQ: QuIP, Chee et al. 2023, section 3, which equals GPTQ): M, unit upper triangular,
// where H + damp = M D M^T and D is diagonal. Row i has what an error of weight i adds to the
// weights that follow. First `damp` times the mean of the diagonal is added to it, and the rest is
// multiplied by n / (n + k), n being the tokens in the sum: of few tokens, correlations are mostly
// chance (Ledoit and Wolf 2004). False if H is not positive definite even so.
bool st_feedback_factor(float *h, size_t k, uint64_t n_tokens, double damp,
                        const struct st_elementwise *elementwise, struct st_pool *pool);

#endif
