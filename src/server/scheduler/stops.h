// SPDX-License-Identifier: Apache-2.0
// Texts that end an answer and are no part of it.
#ifndef ST_SERVER_STOPS_H
#define ST_SERVER_STOPS_H

#include <stdbool.h>
#include <stddef.h>

// How much of text[0, n), the end of an answer so far, is certain to belong to it: all before the
// stop text that is complete first, and then *found is true; else all but what may begin one.
size_t st_stops_certain(const char *const *stops, size_t n_stops, const char *text, size_t n,
                        bool *found);

#endif
