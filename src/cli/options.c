// SPDX-License-Identifier: Apache-2.0
// Parses a command line by a command's rows. Every problem is a usage error: exit status 2, and one
// line that names the option, and the nearest known option if it looks mistyped.
#include "cli/options.h"

#include "cli/common.h"
#include "cli/output.h"
#include "cli/sampling.h"

#include <stdio.h>
#include <string.h>

static const struct st_cli_option help_row = {.name = "help",
                                              .letter = 'h',
                                              .kind = ST_CLI_FLAG,
                                              .often = true,
                                              .help =
                                                  "print this text; --help all: with every option"};

const struct st_cli_option *st_cli_option_at(const struct st_cli_command *command, size_t i,
                                             bool *shared) {
    *shared = false;
    size_t n = 0;
    for (const struct st_cli_option *o = command->options; o->name != NULL; o++)
        if (n++ == i) return o;
    *shared = true;
    for (size_t bit = 0; st_cli_common_rows[bit].name != NULL; bit++)
        if ((command->common >> bit & 1) != 0 && n++ == i) return &st_cli_common_rows[bit];
    const struct st_cli_option *o;
    for (size_t k = 0; (o = st_cli_sampling_option(command->samples, k)) != NULL; k++)
        if (n++ == i) return o;
    return n == i ? &help_row : NULL;
}

static const struct st_cli_option *find_long(const struct st_cli_command *command, const char *name,
                                             size_t n_name) {
    bool shared;
    const struct st_cli_option *o;
    for (size_t i = 0; (o = st_cli_option_at(command, i, &shared)) != NULL; i++)
        if (strlen(o->name) == n_name && memcmp(o->name, name, n_name) == 0) return o;
    return NULL;
}

static const struct st_cli_option *find_letter(const struct st_cli_command *command, char letter) {
    bool shared;
    const struct st_cli_option *o;
    for (size_t i = 0; (o = st_cli_option_at(command, i, &shared)) != NULL; i++)
        if (o->letter != 0 && o->letter == letter) return o;
    return NULL;
}

static int unknown_option(const struct st_cli_command *command, const char *word) {
    char name[48];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const char *bare = name + strspn(name, "-");
    const struct st_cli_option *best = NULL, *o;
    bool shared;
    for (size_t i = 0; (o = st_cli_option_at(command, i, &shared)) != NULL; i++) {
        if (!st_cli_resembles(bare, o->name)) continue;
        if (best == NULL || st_cli_distance(bare, o->name) < st_cli_distance(bare, best->name))
            best = o;
    }
    if (best != NULL)
        st_cli_error(command->name, "unknown option '%s'; did you mean --%s?", name, best->name);
    else
        st_cli_error(command->name, "unknown option '%s'; 'stint %s --help' lists them", name,
                     command->name);
    return ST_CLI_USAGE;
}

// Finds the value of an option: "--name=value", "-nVALUE" or the next word.
static const struct st_cli_option *split(const struct st_cli_command *command, const char *word,
                                         const char **value) {
    *value = NULL;
    if (word[1] == '-') {
        size_t n = strcspn(word + 2, "=");
        if (word[2 + n] == '=') *value = word + 2 + n + 1;
        return find_long(command, word + 2, n);
    }
    if (word[2] != 0) *value = word + 2;
    return find_letter(command, word[1]);
}

static int set_option(const struct st_cli_command *command, const struct st_cli_option *option,
                      const char *word, const char *value, void *target) {
    char why[256];
    if (option->kind == ST_CLI_FLAG && value != NULL) {
        st_cli_error(command->name, "--%s takes no value ('%s')", option->name, word);
        return ST_CLI_USAGE;
    }
    struct st_cli_common *common = target;
    common->given |= option->given;
    if (st_cli_set(option, value, target, why, sizeof why)) return ST_CLI_GO;
    st_cli_error(command->name, "--%s: %s", option->name, why);
    return ST_CLI_USAGE;
}

static bool takes_several(const struct st_cli_command *command) {
    const char *operand = command->operand != NULL ? command->operand : "";
    return strstr(operand, "...") != NULL;
}

static int set_operand(const struct st_cli_command *command, const char *word, void *target) {
    struct st_cli_common *common = target;
    if (common->model != NULL && command->action != NULL && common->action == NULL) {
        common->action = word;
        return ST_CLI_GO;
    }
    if (common->model != NULL && takes_several(command) && common->more.count < ST_CLI_TEXTS_MAX) {
        common->more.values[common->more.count++] = word;
        return ST_CLI_GO;
    }
    if (command->operand == NULL || common->model != NULL) {
        st_cli_error(command->name,
                     "'%s' is one argument too many; 'stint %s --help' shows the usage", word,
                     command->name);
        return ST_CLI_USAGE;
    }
    common->model = word;
    return ST_CLI_GO;
}

static int parse_words(const struct st_cli_command *command, int argc, char **argv, void *target) {
    bool options_end = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        int status;
        if (options_end || word[0] != '-' || word[1] == 0) {
            status = set_operand(command, word, target);
        } else if (strcmp(word, "--") == 0) {
            options_end = true;
            continue;
        } else {
            const char *value;
            const struct st_cli_option *option = split(command, word, &value);
            if (option == NULL) return unknown_option(command, word);
            if (option == &help_row) {
                st_cli_print_help(command, i + 1 < argc && strcmp(argv[i + 1], "all") == 0);
                return ST_CLI_DONE;
            }
            if (option->kind != ST_CLI_FLAG && value == NULL) {
                if (i + 1 == argc) {
                    st_cli_error(command->name, "--%s needs a value: %s", option->name,
                                 option->value);
                    return ST_CLI_USAGE;
                }
                value = argv[++i];
            }
            status = set_option(command, option, word, value, target);
        }
        if (status != ST_CLI_GO) return status;
    }
    return ST_CLI_GO;
}

int st_cli_parse(const struct st_cli_command *command, int argc, char **argv, void *target) {
    bool shared;
    const struct st_cli_option *o;
    for (size_t i = 0; (o = st_cli_option_at(command, i, &shared)) != NULL; i++)
        if (o->preset != NULL) set_option(command, o, o->name, o->preset, target);
    int status = parse_words(command, argc, argv, target);
    if (status != ST_CLI_GO) return status;
    const struct st_cli_common *common = target;
    if (command->operand != NULL && command->operand[0] != '[' && common->model == NULL) {
        st_cli_error(command->name, "%s is missing; 'stint %s --help' shows the usage",
                     command->operand, command->name);
        return ST_CLI_USAGE;
    }
    if (command->action != NULL && command->action[0] != '[' && common->action == NULL) {
        st_cli_error(command->name, "an action is missing after %s: %s", command->operand,
                     command->action);
        return ST_CLI_USAGE;
    }
    return ST_CLI_GO;
}
