// SPDX-License-Identifier: Apache-2.0
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

bool ts_is_long(void) {
    const char *text = getenv("STINT_CI_LONG");
    return !ts_is_emulated() && text && strcmp(text, "1") == 0;
}

bool ts_is_emulated(void) {
#ifdef STINT_EMULATED
    return true;
#else
    return false;
#endif
}

size_t ts_how_many(size_t few, size_t some, size_t all) {
    if (ts_is_emulated()) return few;
    return ts_is_long() ? all : some;
}
