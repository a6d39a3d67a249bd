// SPDX-License-Identifier: Apache-2.0
// The command table and dispatch.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/output.h"
#include "hub/store.h"
#include "stint.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct st_cli_command *const commands[] = {
    &st_cli_inspect_command,  &st_cli_prepare_command,  &st_cli_run_command,
    &st_cli_chat_command,     &st_cli_serve_command,    &st_cli_logits_command,
    &st_cli_tokenize_command, &st_cli_bench_command,    &st_cli_eval_command,
    &st_cli_schedule_command, &st_cli_simulate_command, &st_cli_pull_command,
    &st_cli_list_command,     &st_cli_rm_command,       NULL};

static const struct st_cli_command *find(const char *name) {
    for (size_t i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static int unknown(const char *name) {
    const struct st_cli_command *best = NULL;
    for (size_t i = 0; commands[i] != NULL; i++) {
        const char *known = commands[i]->name;
        if (!st_cli_resembles(name, known)) continue;
        if (best == NULL || st_cli_distance(name, known) < st_cli_distance(name, best->name))
            best = commands[i];
    }
    if (best != NULL)
        st_cli_error(NULL, "unknown command '%s'; did you mean '%s'?", name, best->name);
    else
        st_cli_error(NULL, "unknown command '%s'; 'stint --help' lists them", name);
    return ST_CLI_USAGE;
}

static int help(const char *name, bool all) {
    if (name == NULL) {
        st_cli_print_overview(commands);
        return ST_CLI_DONE;
    }
    const struct st_cli_command *command = find(name);
    if (command == NULL) return unknown(name);
    st_cli_print_help(command, all);
    return ST_CLI_DONE;
}

// The name of a fetched model becomes its path.
static int find_model(const struct st_cli_command *command, struct st_cli_common *common,
                      char **path) {
    *path = NULL;
    if (command->operand == NULL || strstr(command->operand, "MODEL") == NULL ||
        strstr(command->operand, "...") != NULL) // these look themselves
        return ST_CLI_GO;
    if (common->model == NULL) return ST_CLI_GO;
    if (st_hub_find(common->model, path) != STINT_OK) return st_cli_failed(command);
    common->model = *path;
    return ST_CLI_GO;
}

static int dispatch(const struct st_cli_command *command, int argc, char **argv) {
    void *options = calloc(1, command->options_bytes);
    if (options == NULL) {
        st_cli_error(command->name, "not enough memory");
        return ST_CLI_FAILED;
    }
    int status = st_cli_parse(command, argc, argv, options);
    char *path = NULL;
    if (status == ST_CLI_GO) status = find_model(command, options, &path);
    if (status == ST_CLI_GO) status = command->run(command, options);
    free(path);
    free(options);
    return st_cli_finish(command->name, status);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); // a closed pipe becomes a failed write, reported like any other
    signal(SIGXFSZ, SIG_IGN); // so does one past a file's allowed size
    if (argc < 2) {
        st_cli_error(NULL, "a command is missing; 'stint --help' lists them");
        return ST_CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return st_cli_finish(
            NULL, help(argc > 2 ? argv[2] : NULL, argc > 3 && strcmp(argv[3], "all") == 0));
    if (strcmp(word, "--version") == 0) {
        printf("stint %s\n", stint_version());
        return st_cli_finish(NULL, ST_CLI_DONE);
    }
    const struct st_cli_command *command = find(word);
    if (command == NULL) return unknown(word);
    return dispatch(command, argc - 2, argv + 2);
}
