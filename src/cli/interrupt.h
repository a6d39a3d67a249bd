// SPDX-License-Identifier: Apache-2.0
// Ctrl-C: the first one asks the watched session to stop, a second one ends the program with 130.
#ifndef ST_CLI_INTERRUPT_H
#define ST_CLI_INTERRUPT_H

#include "stint.h"

// From now on Ctrl-C cancels what runs in `session`; NULL gives Ctrl-C its usual effect back. Each
// call forgets earlier interrupts.
void st_cli_interrupt_watch(stint_session *session);
// From now on the first Ctrl-C is only noted. For work without a session.
void st_cli_interrupt_note(void);
// Whether there was one since the last call of the two above; as a callback.
bool st_cli_interrupted(void *unused);

#endif
