// SPDX-License-Identifier: Apache-2.0
// What the commands share: the options of more than one command, opening a model with them, and
// small steps on the public API.
#ifndef ST_CLI_COMMON_H
#define ST_CLI_COMMON_H

#include "cli/options.h"
#include "stint.h"

#include <jansson.h>

// In the order of stint_exec.
enum { ST_CLI_EXEC_AUTO, ST_CLI_EXEC_FLOAT, ST_CLI_EXEC_NPU };

// First member of every command's options.
struct st_cli_common {
    const char *model;  // the operand
    const char *action; // the second one
    uint32_t exec;
    const char *device;
    uint32_t n_threads;
    uint64_t memory;
    uint32_t kv;
    uint32_t n_context;
    uint32_t chunk_len;
    bool verbose;
    bool json;
    float temperature, top_p, min_p, repeat_penalty;
    uint32_t top_k, repeat_last;
    uint64_t seed;
    uint32_t npu_threads, cpu_threads;
    uint32_t order; // of inorder, ooo, heft
    const char *schedule;
    const char *trace;
    uint32_t no_predictor; // of on, off
    float presence_penalty, frequency_penalty;
    struct st_cli_texts biases, stops;
    const char *json_schema, *tools, *tool;
    uint32_t thinking; // as stint_thinking
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
    ST_CLI_COMMON_SAMPLING = 127 << 9,
    ST_CLI_COMMON_SPLIT = 7 << 16,
    ST_CLI_COMMON_ORDER = 1 << 18,
    ST_CLI_COMMON_TRACE = 1 << 19,
    ST_CLI_COMMON_SCHEDULE = 1 << 20,
    ST_CLI_COMMON_PREDICTOR = 1 << 21,
    ST_CLI_COMMON_ANSWER = 63 << 22,
    ST_CLI_COMMON_TOOLS = 3 << 28,
    ST_CLI_COMMON_SESSION =
        127 + ST_CLI_COMMON_VERBOSE + ST_CLI_COMMON_SPLIT + ST_CLI_COMMON_PREDICTOR
};

// Warnings of the library go to standard error; everything it says if `verbose`.
void st_cli_log_to_stderr(const struct st_cli_command *command, bool verbose);

// Opens common->model, or random weights of `shape` where that is not NULL, nested ones of the
// precisions `bits` among them (NULL: none), with a progress bar; or says why not and returns NULL.
stint_model *st_cli_open_model(const struct st_cli_command *command,
                               const struct st_cli_common *common, const char *shape,
                               const struct st_cli_uints *bits);
stint_session_options st_cli_session_options(const struct st_cli_common *common);

// What shadow execution did in the session, as an object of its own.
json_t *st_cli_shadow(const stint_session *session);
// The name of --order.
const char *st_cli_order(const struct st_cli_common *common);
// The median of n > 0 values, which it sorts.
double st_cli_median(double *values, size_t n);
// How the last prompt's subgraphs went by, as an object of its own.
json_t *st_cli_schedule(const stint_session *session);
// Adds to a report what a bound of memory was used for and what was read, where there is one.
bool st_cli_add_memory(const stint_session *session, json_t *object);
// The same in words, after a run or a measurement; without a bound the process's peak.
enum { ST_CLI_MEMORY_BYTES = 128 };
const char *st_cli_memory(const stint_session *session, char text[ST_CLI_MEMORY_BYTES]);
// Writes --trace, if it was given; false with the error printed.
bool st_cli_trace(const struct st_cli_command *command, const struct st_cli_common *common,
                  const stint_session *session);

// Prints this thread's last library error as the command's; returns ST_CLI_FAILED.
int st_cli_failed(const struct st_cli_command *command);
// The same of what went wrong while `model` ran.
int st_cli_failed_with(const struct st_cli_command *command, const char *model);

// What the sampling options say.
stint_sampling st_cli_sampling_options(const struct st_cli_common *common);

// text[0, n_bytes) as ids, malloc'ed; NULL with the library's error.
int32_t *st_cli_tokenize(const stint_tokenizer *tokenizer, const char *text, size_t n_bytes,
                         uint32_t flags, size_t *n_ids);

// Decode steps per second: the first token comes with the prompt, and EOS is a step but no token. 0
// where nothing was timed.
double st_cli_decode_rate(const stint_generation_result *result);
double st_cli_rate(size_t n, double seconds);

#endif
