// SPDX-License-Identifier: Apache-2.0
#include "base/direct.h"

#include <fcntl.h>
#include <stdio.h>

// By its descriptor, so that it is the same file whatever has become of its name.
int st_direct_open(int file, bool *direct) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    *direct = opened >= 0;
    if (opened < 0) opened = open(path, O_RDONLY | O_CLOEXEC);
    return opened >= 0 ? opened : fcntl(file, F_DUPFD_CLOEXEC, 0); // no /proc
}
