// SPDX-License-Identifier: Apache-2.0
// Random INT8 linears for a model preset.
#ifndef ST_MODEL_PRESET_INT8_H
#define ST_MODEL_PRESET_INT8_H

#include "model/weights_nested.h"

struct st_preset_int8;

// Makes every section that binding a model of this config asks for, with nested linears of the
// precisions `nested`, if it has any.
stint_status st_preset_int8_open(const struct st_config *config, struct st_nested_range nested,
                                 stint_progress_fn *progress, void *progress_context,
                                 struct st_preset_int8 **preset);
void st_preset_int8_close(struct st_preset_int8 *preset); // accepts NULL
// For st_int8_source.find; context is the struct. Call st_preset_int8_rewind() before each binding.
stint_status st_preset_int8_find(void *context, const char *name, bool required,
                                 struct st_section *section);
void st_preset_int8_rewind(struct st_preset_int8 *preset);
uint64_t st_preset_int8_bytes(const struct st_preset_int8 *preset);

#endif
