// SPDX-License-Identifier: Apache-2.0
// stint logits: writes the logits at every position of given tokens, float32 little-endian
// [n, vocab].
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/file.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/tokens.h"

#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the file has the byte order of the machine, which must be little-endian"
#endif

enum { ROWS_MAX_BYTES = 256 << 20, ROWS_MAX = 256 };

struct logits_options {
    struct st_cli_common common;
    const char *tokens, *output;
};

static const struct st_cli_option rows[] = {
    {.name = "tokens",
     .letter = 't',
     .kind = ST_CLI_TEXT,
     .value = "FILE.json",
     .help = "the tokens to evaluate: {\"tokens\": [1, 2, 3]}",
     .offset = offsetof(struct logits_options, tokens)},
    {.name = "output",
     .letter = 'o',
     .kind = ST_CLI_TEXT,
     .value = "FILE.f32",
     .help = "output file: float32 little-endian [n_tokens, vocab]",
     .offset = offsetof(struct logits_options, output)},
    {.name = NULL}};

// Evaluates the ids in batches, so that few rows are in memory at once, and writes the logits.
static bool write_logits(const struct st_cli_command *command, const char *model,
                         stint_session *session, const int32_t *ids, size_t n_ids, size_t vocab,
                         struct st_cli_writer *writer) {
    size_t n_rows = ROWS_MAX_BYTES / (vocab * sizeof(float));
    n_rows = n_rows < 1 ? 1 : n_rows > ROWS_MAX ? ROWS_MAX : n_rows;
    if (n_rows > n_ids) n_rows = n_ids;
    float *logits = malloc(n_rows * vocab * sizeof *logits);
    if (logits == NULL)
        st_cli_error(command->name, "not enough memory for %zu logits", n_rows * vocab);
    struct st_cli_progress progress = {0};
    bool ok = logits != NULL;
    for (size_t done = 0; ok && done < n_ids;) {
        size_t n = n_ids - done < n_rows ? n_ids - done : n_rows;
        ok = stint_session_eval(session, 0, ids + done, n, true, logits) == STINT_OK;
        if (!ok) st_cli_failed_with(command, model);
        ok = ok && st_cli_writer_put(writer, logits, n * vocab * sizeof *logits);
        done += n;
        st_cli_progress_show(&progress, "logits", done, n_ids);
    }
    st_cli_progress_end(&progress);
    free(logits);
    return ok;
}

static bool evaluate(const struct st_cli_command *command, const struct logits_options *options,
                     const stint_model *model, const int32_t *ids, size_t n_ids, size_t vocab) {
    stint_session_options session_options = st_cli_session_options(&options->common);
    session_options.n_context = (uint32_t)n_ids;
    stint_session *session;
    if (stint_session_open(model, &session_options, &session) != STINT_OK) {
        st_cli_failed(command);
        return false;
    }
    struct st_cli_writer writer;
    bool ok = st_cli_writer_open(&writer, command->name, options->output);
    if (ok) {
        st_cli_interrupt_watch(session);
        ok = write_logits(command, options->common.model, session, ids, n_ids, vocab, &writer);
        st_cli_interrupt_watch(NULL);
        ok = st_cli_writer_close(&writer, ok) && ok;
    }
    stint_session_close(session);
    return ok;
}

static int report(const struct st_cli_command *command, const struct logits_options *options,
                  size_t n_ids, size_t vocab, double seconds) {
    if (!options->common.json) {
        fprintf(stderr, "%zu tokens x %zu logits in %.2f s, written to %s\n", n_ids, vocab, seconds,
                options->output);
        return ST_CLI_DONE;
    }
    json_t *object = json_pack("{s:I, s:I, s:f, s:s}", "tokens", (json_int_t)n_ids, "vocab",
                               (json_int_t)vocab, "seconds", seconds, "output", options->output);
    return st_cli_print_json(command->name, object) ? ST_CLI_DONE : ST_CLI_FAILED;
}

static int run(const struct st_cli_command *command, void *target) {
    const struct logits_options *options = target;
    if (options->tokens == NULL || options->output == NULL) {
        st_cli_error(command->name, "%s is missing",
                     options->tokens == NULL ? "--tokens FILE.json" : "-o FILE.f32");
        return ST_CLI_USAGE;
    }
    size_t n_ids = 0;
    int32_t *ids = st_cli_read_tokens(command->name, options->tokens, &n_ids);
    if (ids == NULL) return ST_CLI_FAILED;
    int status = ST_CLI_FAILED;
    stint_model *model = st_cli_open_model(command, &options->common, NULL, NULL);
    stint_model_info info = {.size = sizeof info};
    if (model != NULL && stint_model_describe(model, &info) == STINT_OK) {
        double begun = st_cli_seconds();
        if (evaluate(command, options, model, ids, n_ids, info.vocab))
            status = report(command, options, n_ids, info.vocab, st_cli_seconds() - begun);
    }
    stint_model_close(model);
    free(ids);
    return status;
}

const struct st_cli_command st_cli_logits_command = {
    .name = "logits",
    .summary = "the logits at every position of given tokens",
    .operand = "MODEL",
    .about = "Evaluates tokens in one causal pass and writes the logits at every position, to "
             "compare engines or to score text. The file appears only when it is complete.",
    .example = "stint logits models/novels-10m --tokens tokens.json -o logits.f32",
    .common = ST_CLI_COMMON_EXEC | ST_CLI_COMMON_DEVICE | ST_CLI_COMMON_THREADS |
              ST_CLI_COMMON_MEMORY | ST_CLI_COMMON_PREDICTOR | ST_CLI_COMMON_KV |
              ST_CLI_COMMON_CHUNK | ST_CLI_COMMON_VERBOSE | ST_CLI_COMMON_JSON |
              ST_CLI_COMMON_SPLIT | ST_CLI_COMMON_SCHEDULE | ST_CLI_COMMON_NESTED |
              ST_CLI_COMMON_NPU_MEMORY,
    .options = rows,
    .options_bytes = sizeof(struct logits_options),
    .run = run};
