// SPDX-License-Identifier: Apache-2.0
// Nested codes for the weights of a row (Any-Precision LLM, Park et al. 2024, section 3;
// kernels/nested.h): which weights share a code at which precision. Quantizers only select codes;
// at every precision, the centroid of a code is the weighted mean of its weights.
#ifndef ST_PREPARE_QUANTIZE_H
#define ST_PREPARE_QUANTIZE_H

#include "base/arena.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct st_row {
    float *w; // [k] in: the weights; out: the values of their codes
    size_t k;
    const float *importance; // [k] weight of the error, E[x^2] of the input; 0 for a weight that is
                             // kept besides the codes
    const float *factor;     // [k, k] upper triangle, if the quantizer needs it: st_gptq_factor()
    unsigned low, high;      // bits
    uint8_t *code;           // [k] out: of `high` bits
};

struct st_row_scratch {
    uint32_t *order;          // [k]
    uint32_t *keys[2];        // [k]
    uint32_t *other;          // [k]
    double *sum[3];           // [k + 1] of weights, weights x, weights x^2, in ascending order of x
    double *cost[2];          // [k + 1]
    uint32_t *first;          // [ST_KMEANS_EXACT, k + 1] begin of the last cluster
    uint32_t bounds[256 + 1]; // clusters in the sorted row
};

enum { ST_KMEANS_EXACT = 16 }; // up to so many clusters the solution is optimal

// For rows of k weights.
void st_row_scratch_take(struct st_row_scratch *scratch, size_t k, struct st_arena *arena);

struct st_quantizer {
    const char *name, *what;
    bool factor; // needs `factor`
    void (*row)(const struct st_row *row, struct st_row_scratch *scratch);
};

extern const struct st_quantizer st_quantizers[]; // the default first; ends with a NULL name
const struct st_quantizer *st_quantizer_find(const char *name); // NULL: the default; or NULL

// Centroids of precision b begin at 2^b - 2^low. A code without weights has the centroid of its
// neighbour.
void st_row_centroids(const struct st_row *row, float *centroids);

// Uniform steps over the weights of a row whose importance is not 0: code i stands for min + i *
// size.
struct st_steps {
    float min, size, top; // the largest code
};
struct st_steps st_row_steps(const struct st_row *row);
static inline uint8_t st_steps_code(const struct st_steps *s, float w) {
    float code = s->size > 0.0f ? rintf((w - s->min) / s->size) : 0.0f;
    return (uint8_t)fminf(fmaxf(code, 0.0f), s->top);
}

// ---- gptq.c

// Replaces H [k, k] = sum of x x^T, of which only the upper triangle is read, by the upper Cholesky
// factor of the inverse of H (GPTQ, Frantar et al. 2023, section 3.3). `damp` times the mean of the
// diagonal is added to the diagonal first. `inverse` [k, k]: scratch. False if H is not positive
// definite even so.
bool st_gptq_factor(float *h, size_t k, double damp, float *inverse);
void st_gptq_row(const struct st_row *row, struct st_row_scratch *scratch);

#endif
