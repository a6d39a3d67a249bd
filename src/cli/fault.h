// SPDX-License-Identifier: Apache-2.0
// A model's file is mapped. If it is cut while it is in use, or its disk fails, a read of it raises
// SIGBUS, which ends the program with a line that says so.
#ifndef ST_CLI_FAULT_H
#define ST_CLI_FAULT_H

// From now on such a fault prints "stint: COMMAND: MODEL: ..." and ends the program with status 1.
// Both texts are borrowed for good.
void st_cli_fault_watch(const char *command, const char *model);

// From now on the thread that meets a fault stands still, and the process gets this signal instead.
void st_cli_fault_signal(int number);

// What that thread does then, for one that finds out in another way.
void st_cli_fault_stand(void) __attribute__((noreturn));

// What is printed, for clients.
extern const char *const st_cli_fault_text;

// Prints the line and ends the program.
void st_cli_fault_end(void) __attribute__((noreturn));

#endif
