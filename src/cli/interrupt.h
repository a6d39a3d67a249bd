// SPDX-License-Identifier: Apache-2.0
// Ctrl-C: the first one asks the watched session to stop, a second one ends the program with 130.
#ifndef ST_CLI_INTERRUPT_H
#define ST_CLI_INTERRUPT_H

#include "stint.h"

// From now on Ctrl-C cancels the current work of `session`; NULL restores the default effect of
// Ctrl-C. Each call forgets earlier interrupts.
void st_cli_interrupt_watch(stint_session *session);
// From now on the first Ctrl-C or SIGTERM is only recorded. For work without a session.
void st_cli_interrupt_note(void);
// True if there was an interrupt since the last call of the two functions above; usable as a
// callback.
bool st_cli_interrupted(void *unused);

#endif
