// SPDX-License-Identifier: Apache-2.0
// How many bits lose how little: from the losses that `stint prepare` measured of each precision of
// a package, and wrote into its notes (docs/FORMAT.md).
#ifndef ST_SESSION_QUALITY_H
#define ST_SESSION_QUALITY_H

#include "model/model.h"

// The fewest bits of steps whose loss a word allows: "high" under 1 %, "fast" under 10 %. The loss
// is what perplexity rises by on the held-out text, or, where that is less, the divergence from the
// source. 8, for INT8: no precision loses so little, or nothing was measured. 0: another word.
unsigned st_precision_quality(const struct stint_model *model, const char *word);

#endif
