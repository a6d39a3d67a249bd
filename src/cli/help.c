// SPDX-License-Identifier: Apache-2.0
// Prints help texts from the commands' rows.
#include "cli/options.h"

#include "cli/output.h"
#include "stint.h"

#include <stdio.h>
#include <string.h>

enum { COLUMN = 28, WIDTH = 96 };

// Prints `text` from column `at` on, and breaks lines between words at WIDTH.
static void print_wrapped(const char *text, size_t at) {
    size_t used = at;
    while (*text != 0) {
        size_t n = strcspn(text, " ");
        if (used > at && used + 1 + n > WIDTH) {
            printf("\n%*s", (int)at, "");
            used = at;
        }
        if (used > at) used += (size_t)printf(" ");
        used += (size_t)printf("%.*s", (int)n, text);
        text += n;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_option(const struct st_cli_option *option) {
    char left[240], help[320], letter[8] = "    ", choices[ST_CLI_CHOICES_BYTES];
    if (option->letter != 0) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    const char *value = st_cli_choices(option, choices);
    if (value == NULL) value = option->value;
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name, value == NULL ? "" : " ",
             value == NULL ? "" : value);
    snprintf(help, sizeof help, "%s%s%s%s", option->help,
             option->preset == NULL ? "" : " (default ",
             option->preset == NULL ? "" : option->preset, option->preset == NULL ? "" : ")");
    if (strlen(left) >= COLUMN)
        printf("%s\n%*s", left, COLUMN, "");
    else
        printf("%-*s", COLUMN, left);
    print_wrapped(help, COLUMN);
}

void st_cli_print_help(const struct st_cli_command *command, bool all) {
    size_t n_hidden = 0;
    printf("Usage: stint %s%s%s%s%s [options]\n\n", command->name,
           command->operand == NULL ? "" : " ", command->operand == NULL ? "" : command->operand,
           command->action == NULL ? "" : " ", command->action == NULL ? "" : command->action);
    print_wrapped(command->about, 0);
    for (int shared = 0; shared < 2; shared++) {
        const char *title = shared == 0 ? "\nOptions" : "\nOptions that several commands have";
        bool is_shared, titled = false;
        const struct st_cli_option *o;
        for (size_t i = 0; (o = st_cli_option_at(command, i, &is_shared)) != NULL; i++) {
            if (is_shared != (shared == 1)) continue;
            if (is_shared && !o->often && !all) {
                n_hidden++;
                continue;
            }
            if (!titled) st_cli_title(title);
            titled = true;
            print_option(o);
        }
    }
    if (n_hidden > 0)
        printf("\n'stint %s --help all' explains %zu more options.\n", command->name, n_hidden);
    st_cli_title("\nExample");
    printf("  %s\n", command->example);
}

void st_cli_print_overview(const struct st_cli_command *const *commands) {
    printf("stint %s: large language models on one small device\n\n"
           "Usage: stint COMMAND [MODEL] [options]\n",
           stint_version());
    st_cli_title("\nCommands");
    for (; *commands != NULL; commands++)
        printf("  %-12s %s\n", (*commands)->name, (*commands)->summary);
    printf(
        "\nMODEL is a Hugging Face folder (config.json, *.safetensors, tokenizer), a .gguf file, "
        "a package,\nor the name of a model that 'stint pull' fetched.\n"
        "'stint COMMAND --help' explains a command, 'stint COMMAND --help all' all its "
        "options.\nExit status: 0 done, 1 failed, 2 usage "
        "error.\n");
    st_cli_title("\nExample");
    printf("  stint run models/novels-10m -p \"It was a cold evening in November, and\" -n 64\n");
}
