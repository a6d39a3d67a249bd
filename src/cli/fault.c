// SPDX-License-Identifier: Apache-2.0
#include "cli/fault.h"

#include "cli/options.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const st_cli_fault_text =
    "a part of the model cannot be read any more: its file was cut "
    "or written while it was in use, or its disk has failed";

static const char *fault_command;
static char fault_model[1024];

// Only what a signal handler may call.
static void print(const char *text) {
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n; // there is nobody to tell
}

// Several threads may meet the same fault at once: the first one tells of it.
void st_cli_fault_end(void) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&told)) pause();
    const char *const parts[] = {"stint: ", fault_command,     ": ", fault_model,
                                 ": ",      st_cli_fault_text, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) print(parts[i]);
    _exit(ST_CLI_FAILED);
}

static void end(int number) {
    (void)number;
    st_cli_fault_end();
}

static atomic_int signal_instead; // set while other threads run already

void st_cli_fault_stand(void) {
    int number = atomic_load(&signal_instead);
    if (number == 0) st_cli_fault_end(); // nobody waits for it yet
    kill(getpid(), number);
    for (;;) pause();
}

static void stand_still(int number) {
    (void)number;
    st_cli_fault_stand();
}

static void handle(void (*handler)(int)) {
    struct sigaction action = {.sa_flags = 0};
    action.sa_handler = handler;
    sigfillset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

void st_cli_fault_watch(const char *command, const char *model) {
    fault_command = command;
    snprintf(fault_model, sizeof fault_model, "%s", model);
    handle(end);
}

void st_cli_fault_signal(int number) {
    atomic_store(&signal_instead, number);
    handle(stand_still);
}
