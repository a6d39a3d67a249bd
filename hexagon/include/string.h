// SPDX-License-Identifier: Apache-2.0
// What sources shared with the host need of the C library, which is not there (runtime.c).
#ifndef DSP_STRING_H
#define DSP_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memset(void *to, int byte, size_t n);

#endif
