// SPDX-License-Identifier: Apache-2.0
// Shared by the commands: options of more than one command, opening a model with them, and small
// helpers on the public API.
#ifndef ST_CLI_COMMON_H
#define ST_CLI_COMMON_H

#include "cli/options.h"
#include "stint.h"

#include <jansson.h>

// First member of every command's options.
struct st_cli_common {
    const char *model;        // the operand
    const char *action;       // the second operand
    struct st_cli_texts more; // operands after the first, of a command that takes several
    uint32_t exec;            // a stint_exec
    const char *device;
    uint32_t n_threads;
    uint64_t memory;
    const char *kv;
    uint32_t n_context;
    uint32_t chunk_len;
    bool verbose;
    bool json;
    stint_sampling sampling; // without its biases, which are texts here
    uint64_t given;          // bit i: the command line has sampling parameter i
    uint32_t npu_threads, cpu_threads;
    uint64_t npu_memory;
    uint32_t order; // of stint_order_name()
    const char *schedule;
    uint32_t quality; // index into exact, high, fast, auto
    const char *trace;
    uint32_t no_predictor; // index into on, off
    struct st_cli_texts biases, stops;
    const char *json_schema, *tools, *tool;
    uint32_t thinking;             // as stint_thinking
    uint32_t n_drafts, draft_bits; // UINT32_MAX: auto
    const char *nested;
};

extern const struct st_cli_option st_cli_common_rows[];

// Bits of st_cli_command.common, in the order of the rows.
enum {
    ST_CLI_COMMON_EXEC = 1,
    ST_CLI_COMMON_DEVICE = 2,
    ST_CLI_COMMON_THREADS = 4,
    ST_CLI_COMMON_MEMORY = 8,
    ST_CLI_COMMON_KV = 16,
    ST_CLI_COMMON_CONTEXT = 32,
    ST_CLI_COMMON_CHUNK = 64,
    ST_CLI_COMMON_VERBOSE = 128,
    ST_CLI_COMMON_JSON = 256,
    ST_CLI_COMMON_SPLIT = 7 << 9,
    ST_CLI_COMMON_ORDER = 1 << 11,
    ST_CLI_COMMON_TRACE = 1 << 12,
    ST_CLI_COMMON_SCHEDULE = 1 << 13,
    ST_CLI_COMMON_PREDICTOR = 1 << 14,
    ST_CLI_COMMON_ANSWER = 15 << 15,
    ST_CLI_COMMON_TOOLS = 3 << 19,
    ST_CLI_COMMON_NPU_MEMORY = 1 << 21,
    ST_CLI_COMMON_DRAFTS = 3 << 22,
    ST_CLI_COMMON_QUALITY = 1 << 24,
    ST_CLI_COMMON_NESTED = 1 << 25,
    ST_CLI_COMMON_SESSION = 127 + ST_CLI_COMMON_VERBOSE + ST_CLI_COMMON_SPLIT +
                            ST_CLI_COMMON_PREDICTOR + ST_CLI_COMMON_NPU_MEMORY
};

// Prints warnings of the library on standard error; all its messages if `verbose`.
void st_cli_log_to_stderr(const struct st_cli_command *command, bool verbose);

// How models are opened with these options; `progress` is borrowed as long as a model is opened.
struct st_cli_progress;
stint_model_options st_cli_model_options(const struct st_cli_common *common,
                                         struct st_cli_progress *progress);
// Says which parts of a multimodal checkpoint are not run.
void st_cli_tell_left_out(const struct st_cli_command *command, const stint_model *model);
// Says so if --ctx is more than the model was made for.
void st_cli_warn_of_context(const struct st_cli_command *command,
                            const struct st_cli_common *common, const stint_model *model);

// Opens common->model, or makes random weights for `preset` if that is not NULL, with nested
// weights of the precisions `bits` (NULL: none). Shows a progress bar. NULL with the error printed.
stint_model *st_cli_open_model(const struct st_cli_command *command,
                               const struct st_cli_common *common, const char *preset,
                               const struct st_cli_uints *bits);
stint_session_options st_cli_session_options(const struct st_cli_common *common);

// The statistics of shadow execution in the session, as a new object.
json_t *st_cli_shadow(const stint_session *session);
// The name of --order.
const char *st_cli_order(const struct st_cli_common *common);
// The median of n > 0 values, which it sorts.
double st_cli_median(double *values, size_t n);
// The execution of the last prompt's subgraphs, as a new object.
json_t *st_cli_schedule(const stint_session *session);
// If memory is bounded, adds its use and the reads to a report.
bool st_cli_add_memory(const stint_session *session, json_t *object);
// The same in words, after a run or a measurement; without a bound, the peak memory of the process.
enum { ST_CLI_MEMORY_BYTES = 128 };
const char *st_cli_memory(const stint_session *session, char text[ST_CLI_MEMORY_BYTES]);
// Writes the file of --trace, if given; false with the error printed.
bool st_cli_trace(const struct st_cli_command *command, const struct st_cli_common *common,
                  const stint_session *session);

// Prints this thread's last library error as the command's; returns ST_CLI_FAILED.
int st_cli_failed(const struct st_cli_command *command);
// The same for an error while `model` ran.
int st_cli_failed_with(const struct st_cli_command *command, const char *model);

// text[0, n_bytes) as ids, malloc'ed; NULL with the library's error.
int32_t *st_cli_tokenize(const stint_tokenizer *tokenizer, const char *text, size_t n_bytes,
                         uint32_t flags, size_t *n_ids);

// Decode steps per second. The first token comes from the prompt; EOS is a step but not a token. 0
// if nothing was timed.
double st_cli_decode_rate(const stint_generation_result *result);
double st_cli_rate(size_t n, double seconds);

#endif
