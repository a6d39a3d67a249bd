// SPDX-License-Identifier: Apache-2.0
#include "model/rope.h"

#include <math.h>

static const double two_pi = 6.28318530717958647692;

static double clamp01(double x) {
    return x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x;
}

// Llama 3.1: long waves are slowed down by the factor, short ones are kept, with a smooth band
// between.
static void scale_llama3(const struct st_rope *rope, uint32_t half, double *f) {
    for (uint32_t i = 0; i < half; i++) {
        double waves =
            rope->original_context * f[i] / two_pi; // full turns over the original context
        double smooth =
            clamp01((waves - rope->low_factor) / (rope->high_factor - rope->low_factor));
        f[i] = (1.0 - smooth) * f[i] / rope->factor + smooth * f[i];
    }
}

// The pair whose wave turns `turns` times over the original context.
static double yarn_pair(const struct st_rope *rope, uint32_t n_dims, double turns) {
    return n_dims * log(rope->original_context / (turns * two_pi)) / (2.0 * log(rope->theta));
}

static void scale_yarn(const struct st_rope *rope, uint32_t n_dims, double *f) {
    double low = yarn_pair(rope, n_dims, rope->beta_fast);
    double high = yarn_pair(rope, n_dims, rope->beta_slow);
    low = fmax(rope->whole ? low : floor(low), 0.0);
    high = fmin(rope->whole ? high : ceil(high), n_dims - 1.0);
    if (low == high) high += 0.001;
    for (uint32_t i = 0; i < n_dims / 2; i++) {
        double ramp = clamp01((i - low) / (high - low));
        f[i] = ramp * f[i] / rope->factor + (1.0 - ramp) * f[i];
    }
}

static double yarn_mscale(double factor, double mscale) {
    return factor <= 1.0 ? 1.0 : 0.1 * mscale * log(factor) + 1.0;
}

double st_rope_latent_scale(const struct st_config *c) {
    const struct st_rope *rope = &c->rope;
    bool scaled = c->latent.rank && rope->scaling == ST_ROPE_YARN && rope->mscale_all_dim > 0.0;
    double m = scaled ? yarn_mscale(rope->factor, rope->mscale_all_dim) : 1.0;
    return m * m;
}

static double magnitude_of(const struct st_rope *rope) {
    if (rope->scaling != ST_ROPE_YARN && rope->scaling != ST_ROPE_LONGROPE) return 1.0;
    if (rope->attention_factor > 0.0) return rope->attention_factor;
    if (rope->scaling == ST_ROPE_LONGROPE)
        return rope->factor <= 1.0 || rope->original_context <= 1.0
                   ? 1.0
                   : sqrt(1.0 + log(rope->factor) / log(rope->original_context));
    if (rope->mscale > 0.0 && rope->mscale_all_dim > 0.0)
        return yarn_mscale(rope->factor, rope->mscale) /
               yarn_mscale(rope->factor, rope->mscale_all_dim);
    return yarn_mscale(rope->factor, 1.0);
}

void st_rope_frequencies(const struct st_rope *rope, uint32_t n_dims, uint64_t n_tokens, double *f,
                         double *magnitude) {
    uint32_t half = n_dims / 2;
    double theta = rope->theta, n = (double)n_tokens;
    if (rope->scaling == ST_ROPE_DYNAMIC && n > rope->original_context && n_dims > 2)
        theta *= pow(rope->factor * n / rope->original_context - (rope->factor - 1.0),
                     n_dims / (n_dims - 2.0));
    const float *divisors = rope->factors[n > rope->original_context];
    for (uint32_t i = 0; i < half; i++) {
        f[i] = pow(theta, -2.0 * i / n_dims);
        if (divisors) f[i] /= (double)divisors[i];
        if (rope->scaling == ST_ROPE_LINEAR || rope->scaling == ST_ROPE_PROPORTIONAL)
            f[i] /= rope->factor;
        if (rope->scaling == ST_ROPE_PROPORTIONAL && i >= rope->n_turned) f[i] = 0.0;
    }
    if (rope->scaling == ST_ROPE_LLAMA3) scale_llama3(rope, half, f);
    if (rope->scaling == ST_ROPE_YARN) scale_yarn(rope, n_dims, f);
    *magnitude = magnitude_of(rope);
}

void st_rope_table(const double *frequencies, double magnitude, uint32_t n_dims, uint64_t first,
                   size_t n, float *cosine, float *sine) {
    uint32_t half = n_dims / 2;
    for (size_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < half; i++) {
            double angle = (double)(first + t) * frequencies[i];
            cosine[t * half + i] = (float)(cos(angle) * magnitude);
            sine[t * half + i] = (float)(sin(angle) * magnitude);
        }
}
