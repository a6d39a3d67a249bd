// SPDX-License-Identifier: Apache-2.0
// From the weights of a row to nested codes (Any-Precision LLM, Park et al. 2024, section 3;
// kernels/nested.h): which weights share a code at which precision. Quantizers only choose codes;
// the centroid of a code is the weighted mean of what it stands for, at every precision.
#ifndef ST_PREPARE_QUANTIZE_H
#define ST_PREPARE_QUANTIZE_H

#include "base/arena.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct st_row {
    float *w; // [k] in: the weights; out: the values that the codes stand for
    size_t k;
    const float *importance; // [k] how much an error there counts, E[x^2] of the input; 0: not at
                             // all, as that weight is kept beside the codes
    const float *factor; // [k, k] upper triangle, for quantizers that ask for it: st_gptq_factor()
    unsigned low, high;  // bits
    uint8_t *code;       // [k] out: of `high` bits
};

struct st_row_scratch {
    uint32_t *order;          // [k]
    uint32_t *keys[2];        // [k]
    uint32_t *other;          // [k]
    double *sum[3];           // [k + 1] of weights, weights x, weights x^2, in ascending order of x
    double *cost[2];          // [k + 1]
    uint32_t *first;          // [ST_KMEANS_EXACT, k + 1] where the last of some clusters begins
    uint32_t bounds[256 + 1]; // clusters in the sorted row
};

enum { ST_KMEANS_EXACT = 16 }; // up to so many clusters there is no better solution

// Of rows of k weights.
void st_row_scratch_take(struct st_row_scratch *scratch, size_t k, struct st_arena *arena);

struct st_quantizer {
    const char *name, *what;
    bool factor; // asks for it
    void (*row)(const struct st_row *row, struct st_row_scratch *scratch);
};

extern const struct st_quantizer st_quantizers[]; // the default first; ends with a NULL name
const struct st_quantizer *st_quantizer_find(const char *name); // NULL: the default; or NULL

// centroids of precision b begin at 2^b - 2^low; those of codes that no weight has are their
// neighbour's.
void st_row_centroids(const struct st_row *row, float *centroids);

// Even steps over the weights of a row that count: code i stands for least + i size.
struct st_steps {
    float min, size, top; // the largest code
};
struct st_steps st_row_steps(const struct st_row *row);
static inline uint8_t st_steps_code(const struct st_steps *s, float w) {
    float code = s->size > 0.0f ? rintf((w - s->min) / s->size) : 0.0f;
    return (uint8_t)fminf(fmaxf(code, 0.0f), s->top);
}

// ---- gptq.c

// From H [k, k] = sum of x x^T, of which the upper triangle counts, to the upper Cholesky factor of
// the inverse of H with its diagonal raised by `damp` of its mean (GPTQ, Frantar et al. 2023,
// section 3.3), in place. `inverse` [k, k]: scratch. False where H is not positive even so.
bool st_gptq_factor(float *h, size_t k, double damp, float *inverse);
void st_gptq_row(const struct st_row *row, struct st_row_scratch *scratch);

#endif
