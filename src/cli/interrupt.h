// SPDX-License-Identifier: Apache-2.0
// Ctrl-C: the first one asks the watched session to stop, a second one ends the program with 130.
#ifndef ST_CLI_INTERRUPT_H
#define ST_CLI_INTERRUPT_H

#include "stint.h"

// From now on Ctrl-C cancels what runs in `session`; NULL gives Ctrl-C its usual effect back. Each
// call forgets earlier interrupts.
void st_cli_interrupt_watch(stint_session *session);

#endif
