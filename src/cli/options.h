// SPDX-License-Identifier: Apache-2.0
// Commands and their options as rows of data: parsing, range errors, --help and man pages all read
// the same rows. A command's options struct begins with struct st_cli_common; every row has
// the offset of its value in the struct. The default of every value is zero unless the row has a
// preset.
#ifndef ST_CLI_OPTIONS_H
#define ST_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ST_CLI_DONE = 0, ST_CLI_FAILED = 1, ST_CLI_USAGE = 2, ST_CLI_GO = -1 };

enum st_cli_kind {
    ST_CLI_FLAG,   // bool
    ST_CLI_UINT,   // uint32_t in [min, max]
    ST_CLI_AUTO,   // the same, or UINT32_MAX for "auto"
    ST_CLI_UINT64, // uint64_t
    ST_CLI_FLOAT,  // float in [min, max]
    ST_CLI_SIZE,   // uint64_t bytes, with K, M, G
    ST_CLI_TEXT,   // const char *, into argv
    ST_CLI_TEXTS,  // struct st_cli_texts, one more for each time that it is given
    ST_CLI_UINTS,  // struct st_cli_uints, each in [min, max]
    ST_CLI_CHOICE, // uint32_t: index into choices
    ST_CLI_WORD    // const char *, into argv: one of the choices
};

enum { ST_CLI_UINTS_MAX = 32, ST_CLI_TEXTS_MAX = 64 };

struct st_cli_texts {
    const char *values[ST_CLI_TEXTS_MAX]; // into argv
    size_t count;
};

struct st_cli_uints {
    uint32_t values[ST_CLI_UINTS_MAX];
    size_t count;
};

struct st_cli_option {
    const char *name; // without dashes; NULL ends a table
    char letter;      // 0: none
    enum st_cli_kind kind;
    const char *value;  // name of the value in help texts; NULL for a flag
    const char *preset; // parsed first, shown as the default; NULL: zero
    const char *help;
    double min, max;
    const char *choices;            // "f32|f16"; or
    const char *(*names)(size_t i); // the i-th choice, NULL after the last
    size_t offset;
    bool often;     // of a shared option: many need it
    uint64_t given; // of a sampling parameter: its bit of st_cli_common.given
};

// Whether a command has the options of cli/sampling.h, and what holds where they do not say.
enum st_cli_samples { ST_CLI_SAMPLES_NOT, ST_CLI_SAMPLES_GREEDY, ST_CLI_SAMPLES_AS_THE_MODEL };

struct st_cli_command {
    const char *name;
    const char *summary; // one line for `stint --help`
    const char *operand; // "MODEL"; in brackets if it is optional, with ... behind it if there may
                         // be several; NULL: none
    const char *action;  // a second operand, likewise: "solve|train", "[PROMPT]"
    const char *about;   // a paragraph for the command's own help
    const char *example; // one command line
    unsigned common;     // ST_CLI_COMMON_* rows it shares
    enum st_cli_samples samples;
    const struct st_cli_option *options;
    size_t options_bytes;
    int (*run)(const struct st_cli_command *command, void *options); // ST_CLI_DONE, _FAILED, _USAGE
};

// Parses argv[0, argc) into `target` (zeroed, of command->options_bytes). ST_CLI_GO: run it;
// otherwise the exit status, with help or the error already printed.
int st_cli_parse(const struct st_cli_command *command, int argc, char **argv, void *target);

// The i-th option of a command: its own options, the shared ones, sampling, --help; NULL after the
// last. *shared: it is not the command's own.
const struct st_cli_option *st_cli_option_at(const struct st_cli_command *command, size_t i,
                                             bool *shared);

// Parses one value and stores it; false with the reason in `why`.
bool st_cli_set(const struct st_cli_option *option, const char *text, void *target, char *why,
                size_t why_bytes);

// The choices of an option as "a|b|c", in `text` if they have names; NULL if it has none.
enum { ST_CLI_CHOICES_BYTES = 200 };
const char *st_cli_choices(const struct st_cli_option *option, char text[ST_CLI_CHOICES_BYTES]);

// The edit distance of two words.
size_t st_cli_distance(const char *a, const char *b);
// True if `name` is close enough to a mistyped `word` to be suggested.
bool st_cli_resembles(const char *word, const char *name);

// The shared options only where they are often used, unless `all`.
void st_cli_print_help(const struct st_cli_command *command, bool all);
void st_cli_print_overview(const struct st_cli_command *const *commands);

#endif
