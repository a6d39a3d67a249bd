// SPDX-License-Identifier: Apache-2.0
// The bundled model, opened once for the tests of a group.
#ifndef TESTS_NOVELS_H
#define TESTS_NOVELS_H

#include "server/server.h"

extern stint_model *ts_novels;

// Set-up and tear-down of a cmocka group.
int ts_novels_open(void **state);
int ts_novels_close(void **state);

// A server's only model, "m", and how it gets it: it stays open.
extern const struct st_server_model ts_novels_served;
struct st_server_loader ts_novels_loader(void);

#endif
