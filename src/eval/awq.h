// SPDX-License-Identifier: Apache-2.0
// Activation-aware weight quantization (AWQ, Lin et al. 2024, section 3.2), to compare with:
// weights of four bits, inputs in float. Channels with large inputs are multiplied by a factor
// before their weights are rounded, and divided by it again: an error of theirs counts most. Only
// products of a linear itself are compared, not those of a block, and weights are not clipped.
#ifndef ST_EVAL_AWQ_H
#define ST_EVAL_AWQ_H

#include <stddef.h>

enum {
    ST_AWQ_GRID = 20,    // exponents that are tried, 0 to 0.95
    ST_AWQ_SAMPLES = 32, // tokens of each input
    ST_AWQ_ROW_STEP = 4, // rows from one that is tried to the next
};

// Tokens of an input on the calibration text. Of n_met so far one in `step` is kept: whenever there
// is no room, every second one makes it.
struct st_awq_tokens {
    size_t n, n_met, step, n_kept;
    float *sum;  // [n] of magnitudes, owned
    float *kept; // [ST_AWQ_SAMPLES, n], behind it
};
// 0, or -1 without memory.
int st_awq_tokens_open(size_t n, struct st_awq_tokens *tokens);
void st_awq_tokens_close(struct st_awq_tokens *tokens); // accepts a zeroed one
void st_awq_tokens_add(struct st_awq_tokens *tokens, const float *x);

// What linears that share an input are searched with.
struct st_awq {
    size_t n, group;
    const float *x; // [n_samples, n]
    size_t n_samples;
    const float *mean; // [n] magnitude of the input
    float *factors;    // [ST_AWQ_GRID, n]
    float *row;        // [n] scratch
    double errors[ST_AWQ_GRID];
};

// w [n] becomes what rounding leaves of it: whole numbers 0 to 15 less a zero, times a scale, of
// each `group` elements.
void st_fake_int4_groups(float *w, size_t n, size_t group);

// Fills the factors: mean^exponent, with the geometric mean of their least and largest as 1.
void st_awq_begin(struct st_awq *awq);
// Adds to the errors the squared errors of the samples' products with one row of weights.
void st_awq_try(struct st_awq *awq, const float *w);
// The factors with the least errors.
const float *st_awq_best(const struct st_awq *awq);
// w becomes what the weights times factors leave when they are rounded, divided by factors again.
void st_awq_quantize(const float *factors, size_t n, size_t group, float *w);

#endif
