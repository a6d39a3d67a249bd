// SPDX-License-Identifier: Apache-2.0
// Quantizes and dequantizes numbers in float, to compare quantization methods without a kernel for
// each. Pure functions on arrays.
#ifndef ST_EVAL_FAKE_QUANTIZE_H
#define ST_EVAL_FAKE_QUANTIZE_H

#include <stddef.h>
#include <stdint.h>

// y[i] = scale * clamp(round(x[i] / scale), -127, 127); x and y may be the same.
void st_fake_int8(const float *x, size_t n, float scale, float *y);
// The same with one scale for each `group` elements, from their largest magnitude.
void st_fake_int8_groups(const float *x, size_t n, size_t group, float *y);

// An orthogonal rotation of n = 2^a * odd dimensions: random signs, a Hadamard transform over the
// power of two, a random orthogonal matrix over the odd factor (as in QuaRot for sizes without a
// known Hadamard matrix; Ashkboos et al. 2024, section 3).
struct st_rotation {
    size_t n, odd;
    float *signs; // [n]
    float *mixer; // [odd, odd]
};
// Returns 0, or -1 if there is no memory.
int st_rotation_open(size_t n, uint64_t seed, struct st_rotation *rotation);
void st_rotation_close(struct st_rotation *rotation);
// Rotates x [n] in place; scratch [odd].
void st_rotation_apply(const struct st_rotation *rotation, float *x, float *scratch);

#endif
