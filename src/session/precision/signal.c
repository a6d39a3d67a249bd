// SPDX-License-Identifier: Apache-2.0
#include "session/precision/signal.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

static const float negligible = 16.0f; // below the largest logit

// With d = largest logit - logit: ln sum e^-d + sum d e^-d / sum e^-d.
static float entropy(const float *logits, size_t vocab) {
    float most = -INFINITY, sum = 0.0f, weighted = 0.0f;
    for (size_t v = 0; v < vocab; v++) most = logits[v] > most ? logits[v] : most;
    for (size_t v = 0; v < vocab; v++) {
        float d = most - logits[v];
        if (!(d < negligible)) continue;
        float e = expf(-d);
        sum += e;
        weighted += d * e;
    }
    return sum > 0.0f ? logf(sum) + weighted / sum : 0.0f;
}

static float margin(const float *logits, size_t vocab) {
    float first = -INFINITY, second = -INFINITY;
    for (size_t v = 0; v < vocab; v++) {
        float other = logits[v] < first ? logits[v] : first;
        first = logits[v] > first ? logits[v] : first;
        second = other > second ? other : second;
    }
    return isfinite(second) && isfinite(first) ? expf(second - first) : 0.0f;
}

float st_signal_read(stint_signal signal, const float *logits, size_t vocab) {
    if (signal == STINT_SIGNAL_ENTROPY) return entropy(logits, vocab);
    return signal == STINT_SIGNAL_MARGIN ? margin(logits, vocab) : 0.0f;
}

static const char *const names[ST_N_SIGNALS] = {"none", "entropy", "margin"};

const char *stint_signal_name(stint_signal signal) {
    return (unsigned)signal < ST_N_SIGNALS ? names[signal] : NULL;
}

stint_status st_signal_find(const char *name, stint_signal *signal) {
    *signal = STINT_SIGNAL_NONE;
    if (!name) return STINT_OK;
    for (int i = 0; i < ST_N_SIGNALS; i++)
        if (strcmp(names[i], name) == 0) {
            *signal = (stint_signal)i;
            return STINT_OK;
        }
    return st_fail(STINT_E_ARG, "signal '%.64s' is not known; known are: none, entropy, margin",
                   name);
}
