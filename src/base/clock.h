// SPDX-License-Identifier: Apache-2.0
// Monotonic time.
#ifndef ST_BASE_CLOCK_H
#define ST_BASE_CLOCK_H

#include <stdint.h>

uint64_t st_now_ns(void);

#endif
