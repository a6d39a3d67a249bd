// SPDX-License-Identifier: Apache-2.0
// How uncertain a model is about the next token: from the logits of the step before, so that a
// precision schedule can give bits to the tokens that need them.
#ifndef ST_SESSION_SIGNAL_H
#define ST_SESSION_SIGNAL_H

#include "stint.h"

#include <stddef.h>

// Signals that a schedule can name: [0, ST_N_SIGNALS), of which 0 is none.
enum { ST_N_SIGNALS = STINT_SIGNAL_MARGIN + 1 };

// ENTROPY: in nats; tokens below e^-16 of the likeliest one are left out. MARGIN: the second
// probability over the first one, in [0, 1]; 0 with one token. Both rise with the uncertainty. NONE
// is 0.
float st_signal_read(stint_signal signal, const float *logits, size_t vocab);

// NULL is none. STINT_E_ARG lists the names.
stint_status st_signal_find(const char *name, stint_signal *signal);

#endif
