// SPDX-License-Identifier: Apache-2.0
// safetensors: u64 header length, JSON header, data. F32, F16, BF16 of up to 4 dimensions are
// taken; others (I64 position ids, empty tensors, convolutions of a vision tower) are set aside, so
// that only their use is an error.
#ifndef ST_FORMAT_SAFETENSORS_H
#define ST_FORMAT_SAFETENSORS_H

#include "base/map.h"
#include "format/tensors.h"

// Adds the file's tensors as views into `map`. `name` stands in error texts. STINT_E_FORMAT,
// E_NOMEM.
stint_status st_safetensors_read(const char *name, const struct st_map *map,
                                 struct st_tensors *tensors);

#endif
