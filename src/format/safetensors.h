// SPDX-License-Identifier: Apache-2.0
// safetensors: u64 header length, JSON header, data. F32, F16, BF16 are taken; other types are
// refused by name.
#ifndef ST_FORMAT_SAFETENSORS_H
#define ST_FORMAT_SAFETENSORS_H

#include "base/map.h"
#include "format/tensors.h"

// Adds the file's tensors as views into `map`. `name` stands in error texts. STINT_E_FORMAT,
// E_UNSUPPORTED.
stint_status st_safetensors_read(const char *name, const struct st_map *map,
                                 struct st_tensors *tensors);

#endif
