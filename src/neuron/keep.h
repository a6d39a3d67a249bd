// SPDX-License-Identifier: Apache-2.0
// Which slices stay where not all find room, and all are used in turn.
#ifndef ST_NEURON_KEEP_H
#define ST_NEURON_KEEP_H

#include <stddef.h>
#include <stdint.h>

// An entry of the cache holds one slice, however small, so the largest stay: kept[i] is 1 for
// `room` of them, of equal ones for the first. bytes [n]; what has none is never kept. Returns the
// bytes of those that stay.
uint64_t st_keep_largest(const uint32_t *bytes, size_t n, size_t room, uint8_t *kept);

#endif
