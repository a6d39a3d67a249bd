// SPDX-License-Identifier: Apache-2.0
#include "cli/common.h"

#include "cli/fault.h"
#include "cli/output.h"
#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct st_cli_option st_cli_common_rows[] = {
    {.name = "exec",
     .kind = ST_CLI_CHOICE,
     .value = "HOW",
     .preset = "auto",
     .choices = "auto|float|npu|fast",
     .help = "float: exact arithmetic; fast: a quantized GGUF's blocks in integers as they lie; "
             "npu: INT8, needs a package; auto: what MODEL is made for",
     .offset = offsetof(struct st_cli_common, exec)},
    {.name = "device",
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .names = stint_device_name,
     .help =
         "device that computes INT8; hexagon is a DSP in an emulator, opencl a GPU where stint "
         "was built with OpenCL, for all other linears too, sim a second processor for tests, with "
         "--memory of hot neurons; A+B are two beside the CPU; without it the best one of this "
         "machine",
     .offset = offsetof(struct st_cli_common, device)},
    {.name = "threads",
     .often = true,
     .kind = ST_CLI_UINT,
     .value = "N",
     .min = 1,
     .max = 1024,
     .help = "threads to compute with; without it one per core",
     .offset = offsetof(struct st_cli_common, n_threads)},
    {.name = "memory",
     .often = true,
     .kind = ST_CLI_SIZE,
     .value = "SIZE",
     .help = "upper bound of all memory in use, e.g. 800M or 2G; weights that do not fit are read "
             "when they are needed",
     .offset = offsetof(struct st_cli_common, memory)},
    {.name = "kv",
     .kind = ST_CLI_WORD,
     .value = "TYPE",
     .preset = "f16",
     .names = stint_kv_name,
     .help = "number type of the KV cache; f32 is exact",
     .offset = offsetof(struct st_cli_common, kv)},
    {.name = "ctx",
     .often = true,
     .kind = ST_CLI_UINT,
     .value = "N",
     .min = 1,
     .max = 1 << 24,
     .help = "maximum tokens of prompt and answer; without it the model's own maximum, up to 4096",
     .offset = offsetof(struct st_cli_common, n_context)},
    {.name = "chunk",
     .kind = ST_CLI_AUTO,
     .value = "N",
     .preset = "256",
     .min = 1,
     .max = 1 << 16,
     .help = "prompt tokens computed together; auto: the length that measures fastest",
     .offset = offsetof(struct st_cli_common, chunk_len)},
    {.name = "verbose",
     .letter = 'v',
     .kind = ST_CLI_FLAG,
     .help = "report on standard error what the library does",
     .offset = offsetof(struct st_cli_common, verbose)},
    {.name = "json",
     .often = true,
     .kind = ST_CLI_FLAG,
     .help = "print one JSON object",
     .offset = offsetof(struct st_cli_common, json)},
    {.name = "npu-threads",
     .kind = ST_CLI_UINT,
     .value = "N",
     .min = 1,
     .max = 1024,
     .help = "split prompts: these threads act as the NPU, --cpu-threads as the CPU, each group at "
             "its own subgraph; without it all threads run one subgraph at a time. With --memory: "
             "these compute hot neurons, --cpu-threads the others",
     .offset = offsetof(struct st_cli_common, npu_threads)},
    {.name = "cpu-threads",
     .kind = ST_CLI_UINT,
     .value = "N",
     .min = 1,
     .max = 1024,
     .help = "see --npu-threads",
     .offset = offsetof(struct st_cli_common, cpu_threads)},
    {.name = "order",
     .kind = ST_CLI_CHOICE,
     .value = "HOW",
     .preset = "ooo",
     .names = stint_order_name,
     .help = "execution order of a split prompt's subgraphs; the results are the same",
     .offset = offsetof(struct st_cli_common, order)},
    {.name = "trace",
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help = "write a timeline of the subgraphs: .json opens in Perfetto, .svg is a chart",
     .offset = offsetof(struct st_cli_common, trace)},
    {.name = "schedule",
     .kind = ST_CLI_TEXT,
     .value = "HOW",
     .help = "precision schedule for decoding a package: none (8 bits throughout), uniform:B, or a "
             "file of 'stint schedule'",
     .offset = offsetof(struct st_cli_common, schedule)},
    {.name = "predictor",
     .kind = ST_CLI_CHOICE,
     .value = "HOW",
     .preset = "on",
     .choices = "on|off",
     .help = "with --memory: off computes all neurons of a sparse model, not only the predicted "
             "ones",
     .offset = offsetof(struct st_cli_common, no_predictor)},
    {.name = "logit-bias",
     .kind = ST_CLI_TEXTS,
     .value = "TOKEN=VALUE",
     .help = "add VALUE to the logit of a token id, -inf bans it; may be given several times",
     .offset = offsetof(struct st_cli_common, biases)},
    {.name = "stop",
     .often = true,
     .kind = ST_CLI_TEXTS,
     .value = "TEXT",
     .help = "end the answer before this text; may be given several times, at most 8",
     .offset = offsetof(struct st_cli_common, stops)},
    {.name = "json-schema",
     .often = true,
     .kind = ST_CLI_TEXT,
     .value = "SCHEMA",
     .help = "the answer is JSON and follows this schema: JSON text, or a file with it; true: any "
             "JSON",
     .offset = offsetof(struct st_cli_common, json_schema)},
    {.name = "thinking",
     .kind = ST_CLI_CHOICE,
     .value = "HOW",
     .preset = "auto",
     .choices = "auto|on|off",
     .help = "whether a model that can reason before it answers does; its reasoning goes to "
             "standard error",
     .offset = offsetof(struct st_cli_common, thinking)},
    {.name = "tools",
     .kind = ST_CLI_TEXT,
     .value = "TOOLS",
     .help = "functions that the model may call, as OpenAI's API has them: JSON text, or a file "
             "with it; calls are printed as JSON, one a line",
     .offset = offsetof(struct st_cli_common, tools)},
    {.name = "tool",
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .help = "the answer is a call of this one of --tools",
     .offset = offsetof(struct st_cli_common, tool)},
    {.name = "npu-memory",
     .kind = ST_CLI_SIZE,
     .value = "SIZE",
     .help = "what a device may take of memory of its own: feed-forward blocks go there first,"
             " then attention's linears, the head last; the CPU computes the rest",
     .offset = offsetof(struct st_cli_common, npu_memory)},
    {.name = "drafts",
     .kind = ST_CLI_AUTO,
     .value = "N",
     .preset = "auto",
     .max = STINT_MAX_STEP_ROWS - 1,
     .help = "maximum tokens to draft for a step, where that measures faster: what followed the "
             "same words before, or what a layer for it in a checkpoint predicts; the text stays "
             "the same; 0: off; auto: 15, with --memory 7",
     .offset = offsetof(struct st_cli_common, n_drafts)},
    {.name = "draft-bits",
     .kind = ST_CLI_AUTO,
     .value = "B",
     .preset = "auto",
     .max = 7,
     .help = "of --drafts: where nothing was like the text's end, draft with so many bits of a "
             "package's nested weights, or the next fewer where that measures faster, below the "
             "text's precision; 0: do not; auto: 4, with --memory 2 where that saves reading",
     .offset = offsetof(struct st_cli_common, draft_bits)},
    {.name = "quality",
     .often = true,
     .kind = ST_CLI_CHOICE,
     .value = "HOW",
     .preset = "auto",
     .choices = "exact|high|fast|auto",
     .help = "a package's steps take the fewest bits that lose under 1 % (high) or 10 % (fast), as "
             "'prepare' measured, or all (exact); auto: high; --schedule says it in bits",
     .offset = offsetof(struct st_cli_common, quality)},
    {.name = "nested",
     .kind = ST_CLI_TEXT,
     .value = "PACKAGE",
     .help = "of a checkpoint in float: a package made from it, whose nested weights run where "
             "drafts or a schedule want fewer bits",
     .offset = offsetof(struct st_cli_common, nested)},
    {.name = NULL}};

static void print_log(void *context, stint_log_level level, const char *text) {
    (void)level;
    st_cli_error(context, "%s", text);
}

void st_cli_log_to_stderr(const struct st_cli_command *command, bool verbose) {
    stint_log_set(print_log, (void *)(uintptr_t)command->name,
                  verbose ? STINT_LOG_DEBUG : STINT_LOG_WARNING);
}

// Positions that a model has not learned cost quality, which nothing else would tell.
void st_cli_warn_of_context(const struct st_cli_command *command,
                            const struct st_cli_common *common, const stint_model *model) {
    stint_model_info info = {.size = sizeof info};
    if (stint_model_describe(model, &info) == STINT_OK && common->n_context > info.context)
        st_cli_error(command->name,
                     "--ctx %u: this model was made for %u tokens; what it writes beyond them may "
                     "be worse",
                     common->n_context, info.context);
}

void st_cli_tell_left_out(const struct st_cli_command *command, const stint_model *model) {
    stint_model_info info = {.size = sizeof info};
    if (stint_model_describe(model, &info) == STINT_OK && *info.left_out)
        st_cli_error(command->name, "left out: %s; this is the checkpoint's text model",
                     info.left_out);
}

stint_model_options st_cli_model_options(const struct st_cli_common *common,
                                         struct st_cli_progress *progress) {
    return (stint_model_options){.size = sizeof(stint_model_options),
                                 .progress = st_cli_progress_show,
                                 .progress_context = progress,
                                 .exec = (stint_exec)common->exec,
                                 .lazy = common->memory != 0,
                                 .nested = common->nested};
}

stint_model *st_cli_open_model(const struct st_cli_command *command,
                               const struct st_cli_common *common, const char *preset,
                               const struct st_cli_uints *bits) {
    struct st_cli_progress progress = {0};
    stint_model_options options = st_cli_model_options(common, &progress);
    for (size_t i = 0; bits != NULL && i < bits->count; i++) {
        uint32_t b = bits->values[i];
        if (b == 8) continue; // INT8 always exists
        if (options.nested_low == 0 || b < options.nested_low) options.nested_low = b;
        if (b > options.nested_high) options.nested_high = b;
    }
    st_cli_log_to_stderr(command, common->verbose);
    stint_model *model = NULL;
    if (preset == NULL) st_cli_fault_watch(command->name, common->model);
    stint_status status = preset != NULL ? stint_model_open_preset(preset, &options, &model)
                                         : stint_model_open(common->model, &options, &model);
    st_cli_progress_end(&progress);
    if (status != STINT_OK) st_cli_failed(command);
    if (model != NULL && preset == NULL) st_cli_warn_of_context(command, common, model);
    return model;
}

const char *st_cli_order(const struct st_cli_common *common) {
    return stint_order_name(common->order);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double st_cli_median(double *values, size_t n) {
    qsort(values, n, sizeof *values, by_value);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// What is given, or a preset: fewer under a bound, where each row of a step takes room from
// weights.
static uint32_t unless_bounded(const struct st_cli_common *common, uint32_t given, uint32_t preset,
                               uint32_t bounded) {
    if (given != UINT32_MAX) return given;
    return common->memory != 0 ? bounded : preset;
}

// Commands without --quality are exact.
static const char *schedule_of(const struct st_cli_common *common) {
    static const char *const schedules[] = {"none", "high", "fast"}; // exact, high, fast
    if (common->schedule != NULL) return common->schedule;
    if (common->quality < sizeof schedules / sizeof *schedules) return schedules[common->quality];
    return "high"; // auto
}

stint_session_options st_cli_session_options(const struct st_cli_common *common) {
    return (stint_session_options){
        .size = sizeof(stint_session_options),
        .n_threads = common->n_threads,
        .n_context = common->n_context,
        .chunk_len = common->chunk_len,
        .kv = common->kv,
        .memory = common->memory,
        .device = common->device,
        .npu_threads = common->npu_threads,
        .cpu_threads = common->cpu_threads,
        .npu_memory = common->npu_memory,
        .schedule = schedule_of(common),
        .leave_out = common->no_predictor != 0 ? STINT_LEAVE_PREDICTOR : 0,
        .order = st_cli_order(common),
        .n_drafts = unless_bounded(common, common->n_drafts, STINT_MAX_STEP_ROWS - 1, 7),
        .draft_bits = unless_bounded(common, common->draft_bits, 4, 2)};
}

json_t *st_cli_schedule(const stint_session *session) {
    stint_prefill_info info = {.size = sizeof info};
    if (stint_session_prefill(session, &info) != STINT_OK) return NULL;
    json_t *json = json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f}", "order",
                             info.order != NULL ? info.order : "undivided", "chunks",
                             (json_int_t)info.chunks, "subgraphs", (json_int_t)info.subgraphs,
                             "seconds", info.seconds, "npu_seconds", info.npu_seconds,
                             "cpu_seconds", info.cpu_seconds, "bubble_rate", info.bubble_rate);
    if (json != NULL && strchr(stint_session_device(session), '+') != NULL &&
        json_object_set_new(json, "second_seconds", json_real(info.second_seconds)) != 0) {
        json_decref(json);
        return NULL;
    }
    if (json != NULL && info.clock_seconds > 0.0) {
        json_t *clock = json_pack("{s:f, s:f}", "seconds", info.clock_seconds, "bubble_rate",
                                  info.clock_bubble_rate);
        if (json_object_set_new(json, "device_clock", clock) != 0) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

bool st_cli_add_memory(const stint_session *session, json_t *object) {
    stint_memory_info info = {.size = sizeof info};
    if (stint_session_memory(session, &info) != STINT_OK) return false;
    if (info.budget_bytes == 0) return true;
    json_t *memory =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "budget_bytes", (json_int_t)info.budget_bytes,
                  "peak_bytes", (json_int_t)info.peak_bytes, "fixed_bytes",
                  (json_int_t)info.fixed_bytes, "hot_bytes", (json_int_t)info.hot_bytes,
                  "cold_bytes", (json_int_t)info.cold_bytes, "kv_bytes", (json_int_t)info.kv_bytes);
    json_t *io = json_pack(
        "{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "bytes_read", (json_int_t)info.bytes_read,
        "reads", (json_int_t)info.reads, "hit_rate", info.hit_rate, "hidden_fraction",
        info.hidden_fraction, "computed", info.computed, "bytes_per_step", info.bytes_per_step,
        "foreseen", info.foreseen, "foreseen_used", info.foreseen_used, "on_npu", info.on_npu);
    return json_object_set_new(object, "memory", memory) == 0 &&
           json_object_set_new(object, "io", io) == 0;
}

const char *st_cli_memory(const stint_session *session, char text[ST_CLI_MEMORY_BYTES]) {
    char peak[ST_CLI_SIZE_BYTES], bound[ST_CLI_SIZE_BYTES], read[ST_CLI_SIZE_BYTES];
    stint_memory_info info = {.size = sizeof info};
    if (stint_session_memory(session, &info) != STINT_OK || info.budget_bytes == 0)
        return st_cli_size(stint_peak_rss_bytes(), text);
    snprintf(text, ST_CLI_MEMORY_BYTES, "%s of %s, %s read, %.0f %% of it hidden behind computing",
             st_cli_size(info.peak_bytes, peak), st_cli_size(info.budget_bytes, bound),
             st_cli_size(info.bytes_read, read), 100 * info.hidden_fraction);
    return text;
}

bool st_cli_trace(const struct st_cli_command *command, const struct st_cli_common *common,
                  const stint_session *session) {
    bool ok = common->trace == NULL || stint_session_trace(session, common->trace) == STINT_OK;
    if (!ok) st_cli_failed(command);
    return ok;
}

json_t *st_cli_shadow(const stint_session *session) {
    stint_shadow_info info = {.size = sizeof info};
    if (stint_session_shadow(session, &info) != STINT_OK) return NULL;
    return json_pack("{s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "linears_active",
                     (json_int_t)info.n_linears, "outlier_channels_mean", info.outlier_channels,
                     "hot_hits", (json_int_t)info.hot_hits, "cold_reads",
                     (json_int_t)info.cold_reads, "cold_bytes", (json_int_t)info.cold_bytes,
                     "resident_bytes", (json_int_t)info.resident_bytes, "all_float_bytes",
                     (json_int_t)info.float_bytes, "seconds", info.seconds, "npu_seconds",
                     info.device_seconds);
}

int st_cli_failed_with(const struct st_cli_command *command, const char *model) {
    st_cli_error(command->name, "%s: %s", model, stint_error_text());
    return ST_CLI_FAILED;
}

int st_cli_failed(const struct st_cli_command *command) {
    st_cli_error(command->name, "%s", stint_error_text());
    return ST_CLI_FAILED;
}

int32_t *st_cli_tokenize(const stint_tokenizer *tokenizer, const char *text, size_t n_bytes,
                         uint32_t flags, size_t *n_ids) {
    size_t capacity = n_bytes + 16;
    for (;;) {
        int32_t *ids = malloc(capacity * sizeof *ids);
        if (ids == NULL) return NULL;
        size_t count = 0;
        stint_status status =
            stint_tokenize(tokenizer, text, n_bytes, flags, ids, capacity, &count);
        if (status == STINT_OK) {
            *n_ids = count;
            return ids;
        }
        free(ids);
        if (status != STINT_E_LIMIT || count <= capacity) return NULL;
        capacity = count;
    }
}

double st_cli_rate(size_t n, double seconds) {
    return seconds > 0 ? (double)n / seconds : 0;
}

double st_cli_decode_rate(const stint_generation_result *result) {
    size_t n_steps = result->generated_tokens;
    if (result->stop_reason != STINT_STOP_EOS && n_steps > 0) n_steps--;
    return st_cli_rate(n_steps, result->decode_seconds);
}
