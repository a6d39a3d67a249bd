// SPDX-License-Identifier: Apache-2.0
// How the pieces of a model are cut into slices, for neuron/slices.c alone.
#ifndef ST_NEURON_SLICES_PLAN_H
#define ST_NEURON_SLICES_PLAN_H

#include "neuron/slices.h"

// An expert: nobody knows before whether it is needed.
bool st_slice_by_chance(const struct st_config *config, struct st_linear_id linear);
// ST_REGION_* of a piece, and the ST_PASS_* that it is of, where steps take so much (ST_STEPS_*).
uint32_t st_slice_region(const struct st_config *config, unsigned steps,
                         const struct st_file_piece *piece);
unsigned st_slice_passes(unsigned steps, const struct st_file_piece *piece);
// Groups of a slice.
uint32_t st_slice_groups(const struct st_file_piece *piece, size_t entry_bytes);
// Bytes of a slice, in all strips.
size_t st_slice_bytes(const struct st_file_piece *piece, uint32_t slice_groups, uint32_t slice);

#endif
