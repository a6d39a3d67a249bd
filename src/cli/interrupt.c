// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static _Atomic(stint_session *) watched;
static atomic_int n_interrupts;

static void on_interrupt(int number) {
    (void)number;
    stint_session *session = atomic_load(&watched);
    if (session == NULL || atomic_fetch_add(&n_interrupts, 1) > 0) _exit(130);
    stint_session_cancel(session);
}

void st_cli_interrupt_watch(stint_session *session) {
    atomic_store(&n_interrupts, 0);
    atomic_store(&watched, session);
    struct sigaction action = {.sa_flags = SA_RESTART};
    action.sa_handler = session != NULL ? on_interrupt : SIG_DFL;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}
