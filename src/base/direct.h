// SPDX-License-Identifier: Apache-2.0
#ifndef ST_BASE_DIRECT_H
#define ST_BASE_DIRECT_H

#include <stdbool.h>

enum { ST_DIRECT_BLOCK = 4096 }; // offsets, buffers and lengths of direct reads are multiples

// Opens a file that is open already once more, to be read past the page cache (O_DIRECT): *direct
// says whether its file system can. -1 with errno.
int st_direct_open(int file, bool *direct);

#endif
