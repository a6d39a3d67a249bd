// SPDX-License-Identifier: Apache-2.0
// How two processors that begin at the same time divide rows so that they end at the same time: by
// what each has done in what time.
#ifndef ST_SESSION_LINEAR_SHARE_H
#define ST_SESSION_LINEAR_SHARE_H

enum st_sharer { ST_SHARER_DEVICE, ST_SHARER_HOST, ST_N_SHARERS };

// Zeroed: neither has done anything.
struct st_share {
    double work[ST_N_SHARERS], seconds[ST_N_SHARERS]; // what is long ago counts little
};

// The device's part of the work; a small one until both have done some.
double st_share_of_device(const struct st_share *share);
// One of them has done so much in so many seconds, which are more than 0.
void st_share_note(struct st_share *share, enum st_sharer who, double work, double seconds);

#endif
