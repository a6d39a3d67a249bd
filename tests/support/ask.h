// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_ASK_H
#define TESTS_ASK_H

#include <stddef.h>

// Sends a request, as it is, on a connection of its own to "http://127.0.0.1:PORT", and reads all
// that comes back, up to n - 1 bytes, or what has come when nothing more comes for a minute; reply
// is terminated.
void ts_ask(const char *address, const char *request, char *reply, size_t n);

#endif
