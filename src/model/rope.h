// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021): frequencies under every kind of scaling, and the
// cosines and sines of a run of positions.
#ifndef ST_MODEL_ROPE_H
#define ST_MODEL_ROPE_H

#include "model/config.h"

// frequencies[n_dims / 2] in radians per token, and what cosine and sine are multiplied with, for a
// text of n_tokens in all (dynamic and longrope depend on it). linear: Chen et al. 2023; dynamic:
// NTK-aware with the text's length; llama3: Llama 3.1's banded scaling; yarn: Peng et al. 2023,
// section 3; longrope: Ding et al. 2024.
void st_rope_frequencies(const struct st_rope *rope, uint32_t n_dims, uint64_t n_tokens,
                         double *frequencies, double *magnitude);

// cosine and sine: [n, n_dims / 2] for positions first..first + n - 1.
void st_rope_table(const double *frequencies, double magnitude, uint32_t n_dims, uint64_t first,
                   size_t n, float *cosine, float *sine);

// DeepSeek's factor of the scores under YaRN: the square of what its cosines would otherwise have
// been multiplied with. 1 without latent attention.
double st_rope_latent_scale(const struct st_config *config);

#endif
