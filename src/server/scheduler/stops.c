// SPDX-License-Identifier: Apache-2.0
#include "server/scheduler/stops.h"

#include <string.h>

// Bytes of the longest stop text that text[0, n) ends with; 0: with none.
static size_t ends_with(const char *const *stops, size_t n_stops, const char *text, size_t n) {
    size_t longest = 0;
    for (size_t i = 0; i < n_stops; i++) {
        size_t n_stop = strlen(stops[i]);
        if (n_stop <= n && n_stop > longest && memcmp(text + n - n_stop, stops[i], n_stop) == 0)
            longest = n_stop;
    }
    return longest;
}

static bool may_begin(const char *const *stops, size_t n_stops, const char *text, size_t n) {
    for (size_t i = 0; i < n_stops; i++)
        if (n < strlen(stops[i]) && memcmp(text, stops[i], n) == 0) return true;
    return false;
}

size_t st_stops_certain(const char *const *stops, size_t n_stops, const char *text, size_t n,
                        bool *found) {
    *found = false;
    for (size_t end = 1; end <= n; end++) {
        size_t n_stop = ends_with(stops, n_stops, text, end);
        if (n_stop == 0) continue;
        *found = true;
        return end - n_stop;
    }
    for (size_t at = 0; at < n; at++)
        if (may_begin(stops, n_stops, text + at, n - at)) return at;
    return n;
}
