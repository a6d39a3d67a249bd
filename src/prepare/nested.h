// SPDX-License-Identifier: Apache-2.0
// Converts float linears to nested weights (kernels/nested.h), part by part; the rows of a part are
// processed in parallel.
#ifndef ST_PREPARE_NESTED_H
#define ST_PREPARE_NESTED_H

#include "model/weights_nested.h"
#include "prepare/allocate.h"
#include "prepare/outliers.h"
#include "prepare/pack.h"
#include "prepare/quantize.h"

struct st_nested_packer;

// `outliers`: share of each row's weights that are kept in float besides the codes. pre: `range`
// passes st_nested_check_range(). STINT_E_ARG for an unknown quantizer; the text lists the known
// ones.
stint_status st_nested_packer_open(const struct st_config *config, struct st_nested_range range,
                                   const char *quantizer, float outliers, uint32_t n_threads,
                                   struct st_nested_packer **packer);
void st_nested_packer_close(struct st_nested_packer *packer); // accepts NULL
// True if its quantizer needs sums of x x^T.
bool st_nested_packer_wants_moments(const struct st_nested_packer *packer);

// How much an error of a weight counts in each channel, [stats->n].
void st_nested_importance(const struct st_input_stats *stats, float *importance);

// Writes the section with the lowest and the highest precision.
stint_status st_nested_pack_range(const struct st_nested_packer *packer,
                                  struct st_package_writer *writer);
// Call before the first linear: writes how many bits each has, which is borrowed until close.
stint_status st_nested_pack_bits(struct st_nested_packer *packer,
                                 const struct st_allocation *linears, uint32_t n_linears,
                                 struct st_package_writer *writer);
// Codes get so many bits, 7 or 8, and become INT8 weights too (kernels/nested_int8.h). Call before
// the first linear; writes a section that says so. pre: without outliers.
stint_status st_nested_pack_stored(struct st_nested_packer *packer, unsigned bits,
                                   struct st_package_writer *writer);
// Makes of stats->products, unless it is NULL, what quantizers want. STINT_E_FORMAT.
stint_status st_nested_finish_moments(struct st_input_stats *stats, uint32_t layer);
// Writes the sections of the next linear's parts; `stats` are those of its input, whose moments are
// finished. `scales` [packed
// rows]: of INT8 weights that are made of the codes, whose sums are written too; else NULL. pre:
// the weights are finite, which st_pack_linear() and st_pack_scales() check. STINT_E_NOMEM, E_IO.
stint_status st_nested_pack(struct st_nested_packer *packer, const struct st_pack_source *source,
                            const struct st_input_stats *stats, const float *scales,
                            struct st_package_writer *writer);
// nested_checks.c: writes the hashes of the regions of a linear's codes.
stint_status st_nested_pack_checks(const struct st_nested_weight *weight, const char *linear,
                                   struct st_package_writer *writer);

#endif
