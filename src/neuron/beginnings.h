// SPDX-License-Identifier: Apache-2.0
// Strips that are the beginning of a part of a package whose hash is that of the whole: the whole
// goes by once when a session opens, and each slice is then what it was.
#ifndef ST_NEURON_BEGINNINGS_H
#define ST_NEURON_BEGINNINGS_H

#include "neuron/slices.h"

// Sets what is known of such strips of a piece, whose slices `seen` [slices, strips] has.
// STINT_E_IO, E_FORMAT, E_NOMEM.
stint_status st_beginnings_check(const struct stint_model *model, struct st_loader *loader,
                                 const struct st_sliced *sliced, struct st_slice_seen *seen);

#endif
