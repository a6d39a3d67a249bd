// SPDX-License-Identifier: Apache-2.0
// stint tokenize: text on standard input to ids on standard output, or back with --decode.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/file.h"
#include "cli/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX_BYTES = 1 << 30 };

struct tokenize_options {
    struct st_cli_common common;
    bool decode, bos, plain;
};

static const struct st_cli_option rows[] = {
    {.name = "decode",
     .letter = 'd',
     .kind = ST_CLI_FLAG,
     .help =
         "convert ids on standard input (separated by blanks or commas, or a JSON array) to text",
     .offset = offsetof(struct tokenize_options, decode)},
    {.name = "bos",
     .kind = ST_CLI_FLAG,
     .help = "begin with the BOS token if the checkpoint asks for one",
     .offset = offsetof(struct tokenize_options, bos)},
    {.name = "plain",
     .kind = ST_CLI_FLAG,
     .help =
         "treat special tokens in the text as ordinary characters; with --decode, leave them out",
     .offset = offsetof(struct tokenize_options, plain)},
    {.name = NULL}};

static int print_ids(const struct st_cli_command *command, const int32_t *ids, size_t n_ids,
                     bool json) {
    if (json) {
        json_t *array = json_array();
        for (size_t i = 0; i < n_ids; i++) json_array_append_new(array, json_integer(ids[i]));
        return st_cli_print_json(command->name, json_pack("{s:o}", "ids", array)) ? ST_CLI_DONE
                                                                                  : ST_CLI_FAILED;
    }
    for (size_t i = 0; i < n_ids; i++) printf("%s%" PRId32, i == 0 ? "" : " ", ids[i]);
    return st_cli_write("\n", 1) ? ST_CLI_DONE : ST_CLI_FAILED;
}

static int encode(const struct st_cli_command *command, const struct tokenize_options *options,
                  const stint_tokenizer *tokenizer, const char *text, size_t n_bytes) {
    uint32_t flags =
        (options->bos ? STINT_TOKENIZE_ADD_BOS : 0u) | (options->plain ? STINT_TOKENIZE_PLAIN : 0u);
    size_t n_ids;
    int32_t *ids = st_cli_tokenize(tokenizer, text, n_bytes, flags, &n_ids);
    if (ids == NULL) return st_cli_failed(command);
    int status = print_ids(command, ids, n_ids, options->common.json);
    free(ids);
    return status;
}

// "1 2,3" or "[1, 2, 3]" as ids, malloc'ed; NULL with the error printed.
static int32_t *parse_ids(const struct st_cli_command *command, const char *text, size_t *n_ids) {
    static const char *const between = " \t\r\n,[]";
    size_t capacity = strlen(text) / 2 + 1, n = 0;
    int32_t *ids = malloc(capacity * sizeof *ids);
    if (ids == NULL) {
        st_cli_error(command->name, "not enough memory for %zu ids", capacity);
        return NULL;
    }
    for (text += strspn(text, between); *text != 0; text += strspn(text, between)) {
        char *end;
        errno = 0;
        long long id = strtoll(text, &end, 10);
        if (end == text || errno != 0 || id < 0 || id > INT32_MAX ||
            (*end != 0 && strchr(between, *end) == NULL)) {
            st_cli_error(command->name, "'%.*s' is not a token id", (int)strcspn(text, between),
                         text);
            free(ids);
            return NULL;
        }
        ids[n++] = (int32_t)id;
        text = end;
    }
    *n_ids = n;
    return ids;
}

// The text of ids, malloc'ed; NULL with the library's error.
static char *detokenize(const stint_tokenizer *tokenizer, const int32_t *ids, size_t n_ids,
                        uint32_t flags, size_t *n_bytes) {
    size_t capacity = 8 * n_ids + 64;
    for (;;) {
        char *text = malloc(capacity);
        if (text == NULL) return NULL;
        size_t n = 0;
        stint_status status = stint_detokenize(tokenizer, ids, n_ids, flags, text, capacity, &n);
        if (status == STINT_OK) {
            *n_bytes = n;
            return text;
        }
        free(text);
        if (status != STINT_E_LIMIT || n < capacity) return NULL;
        capacity = n + 1;
    }
}

static int print_text(const struct st_cli_command *command, const char *text, size_t n_bytes,
                      bool json) {
    bool ok;
    if (json)
        ok = st_cli_print_json(command->name,
                               json_pack("{s:o}", "text", json_stringn(text, n_bytes)));
    else
        ok = st_cli_write(text, n_bytes) && (!isatty(STDOUT_FILENO) || st_cli_write("\n", 1));
    return ok ? ST_CLI_DONE : ST_CLI_FAILED;
}

static int decode(const struct st_cli_command *command, const struct tokenize_options *options,
                  const stint_tokenizer *tokenizer, const char *input) {
    size_t n_ids, n_bytes;
    int32_t *ids = parse_ids(command, input, &n_ids);
    if (ids == NULL) return ST_CLI_FAILED;
    uint32_t flags = options->plain ? 0 : STINT_DETOKENIZE_SPECIAL;
    char *text = detokenize(tokenizer, ids, n_ids, flags, &n_bytes);
    int status = text == NULL ? st_cli_failed(command)
                              : print_text(command, text, n_bytes, options->common.json);
    free(text);
    free(ids);
    return status;
}

static int run(const struct st_cli_command *command, void *target) {
    const struct tokenize_options *options = target;
    stint_tokenizer *tokenizer;
    if (stint_tokenizer_open(options->common.model, &tokenizer) != STINT_OK)
        return st_cli_failed(command);
    size_t n_bytes;
    int status = ST_CLI_FAILED;
    char *input = st_cli_read_all(command->name, "-", TEXT_MAX_BYTES, &n_bytes);
    if (input != NULL)
        status = options->decode ? decode(command, options, tokenizer, input)
                                 : encode(command, options, tokenizer, input, n_bytes);
    free(input);
    stint_tokenizer_close(tokenizer);
    return status;
}

const struct st_cli_command st_cli_tokenize_command = {
    .name = "tokenize",
    .summary = "convert text to token ids and back",
    .operand = "MODEL",
    .about = "Reads text from standard input and prints its token ids, or with --decode the other "
             "way round. MODEL is a model folder, a .gguf file (a vocabulary alone will do), or a "
             "tokenizer.json, tokenizer.model or vocab.json (with merges.txt beside it).",
    .example = "echo -n \"It was a cold evening\" | stint tokenize models/novels-10m",
    .common = ST_CLI_COMMON_JSON,
    .options = rows,
    .options_bytes = sizeof(struct tokenize_options),
    .run = run};
