// SPDX-License-Identifier: Apache-2.0
// Random numbers from a counter: the n-th draw of a seed is the same whatever was drawn before.
#ifndef ST_BASE_RANDOM_H
#define ST_BASE_RANDOM_H

#include <stdint.h>

// A number that nobody can predict, for hash tables of what files and clients name.
uint64_t st_random_seed(void);

// The n-th draw of a seed, in [0, 1).
double st_random_draw(uint64_t seed, uint64_t n);

#endif
