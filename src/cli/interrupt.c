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
    if (atomic_fetch_add(&n_interrupts, 1) > 0) _exit(130);
    if (session != NULL) stint_session_cancel(session);
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_flags = SA_RESTART};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void st_cli_interrupt_watch(stint_session *session) {
    atomic_store(&n_interrupts, 0);
    atomic_store(&watched, session);
    handle(SIGINT, session != NULL ? on_interrupt : SIG_DFL);
}

void st_cli_interrupt_note(void) {
    atomic_store(&n_interrupts, 0);
    atomic_store(&watched, NULL);
    handle(SIGINT, on_interrupt);
    handle(SIGTERM, on_interrupt);
}

bool st_cli_interrupted(void *unused) {
    (void)unused;
    return atomic_load(&n_interrupts) > 0;
}
