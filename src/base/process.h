// SPDX-License-Identifier: Apache-2.0
#ifndef ST_BASE_PROCESS_H
#define ST_BASE_PROCESS_H

#include <stdint.h>

// Memory of this process that is no file's: what it wrote to, wherever it lies. 0 where the system
// does not tell.
uint64_t st_process_anonymous_bytes(void);

#endif
