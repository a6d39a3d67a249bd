// SPDX-License-Identifier: Apache-2.0
#ifndef ST_BASE_PROCESS_H
#define ST_BASE_PROCESS_H

#include <stdint.h>

// Memory of this process that is no file's: what it wrote to, wherever it lies. 0 where the system
// does not tell.
uint64_t st_process_anonymous_bytes(void);

// From now on a freed block of 256 KiB or more goes back to the system, where the C library is
// glibc. By itself it keeps blocks up to the largest that was freed, in an arena of each thread.
void st_process_give_blocks_back(void);
// Gives back what is free now, in blocks of any size.
void st_process_trim(void);

#endif
