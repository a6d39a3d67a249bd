// SPDX-License-Identifier: Apache-2.0
#include "session/linear/share.h"

static const double at_first = 0.125;
static const double kept = 0.95; // of what is known, at each note

double st_share_of_device(const struct st_share *s) {
    double rates[ST_N_SHARERS];
    for (int i = 0; i < ST_N_SHARERS; i++) {
        if (!(s->seconds[i] > 0.0)) return at_first;
        rates[i] = s->work[i] / s->seconds[i];
    }
    double both = rates[ST_SHARER_DEVICE] + rates[ST_SHARER_HOST];
    return both > 0.0 ? rates[ST_SHARER_DEVICE] / both : at_first;
}

void st_share_note(struct st_share *s, enum st_sharer who, double work, double seconds) {
    s->work[who] = kept * s->work[who] + work;
    s->seconds[who] = kept * s->seconds[who] + seconds;
}
