// SPDX-License-Identifier: Apache-2.0
// Float linears to nested weights (kernels/nested.h), part by part, all rows of a part in parallel.
#ifndef ST_PREPARE_NESTED_H
#define ST_PREPARE_NESTED_H

#include "model/weights_nested.h"
#include "prepare/outliers.h"
#include "prepare/pack.h"
#include "prepare/quantize.h"

struct st_nested_packer;

// `outliers`: share of each row's weights that are kept in float beside the codes.
// `range` is one that st_nested_check_range() takes. E_ARG for an unknown quantizer, with the known
// ones in the text.
stint_status st_nested_packer_open(const struct st_config *config, struct st_nested_range range,
                                   const char *quantizer, float outliers, uint32_t n_threads,
                                   struct st_nested_packer **packer);
void st_nested_packer_close(struct st_nested_packer *packer); // accepts NULL
// Whether its quantizer asks for sums of x x^T.
bool st_nested_packer_wants_factor(const struct st_nested_packer *packer);

// Writes the section that says which precisions there are.
stint_status st_nested_pack_range(const struct st_nested_packer *packer,
                                  struct st_package_writer *writer);
// Writes the sections of a linear's parts; `stats` are of its input. Weights must be finite, which
// st_pack_linear() checks. STINT_E_NOMEM, E_IO.
stint_status st_nested_pack(struct st_nested_packer *packer, const struct st_pack_source *source,
                            struct st_input_stats *stats, struct st_package_writer *writer);

#endif
