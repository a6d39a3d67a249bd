// SPDX-License-Identifier: Apache-2.0
// stint run: continues one prompt, or answers it with --chat, and streams the text.
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/file.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/several.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROMPT_MAX_BYTES = 64 << 20, ECHO_MAX_BYTES = 1000 };

struct run_options {
    struct st_cli_common common;
    const char *prompt, *file;
    uint32_t n_tokens, n_top, best_of;
    bool chat, ignore_eos, show_bits, logprobs;
};

static const struct st_cli_option rows[] = {
    {.name = "prompt",
     .letter = 'p',
     .kind = ST_CLI_TEXT,
     .value = "TEXT",
     .help = "the prompt, in place of PROMPT; without either and -f it is read from standard input",
     .offset = offsetof(struct run_options, prompt)},
    {.name = "file",
     .letter = 'f',
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help = "read the prompt from a file, - for standard input",
     .offset = offsetof(struct run_options, file)},
    {.name = "tokens",
     .letter = 'n',
     .kind = ST_CLI_UINT,
     .value = "N",
     .max = 1 << 24,
     .help = "maximum tokens to generate; 0: until the model ends or the context is full",
     .offset = offsetof(struct run_options, n_tokens)},
    {.name = "chat",
     .letter = 'c',
     .kind = ST_CLI_FLAG,
     .help = "put the prompt into the checkpoint's chat template, as one user message",
     .offset = offsetof(struct run_options, chat)},
    {.name = "ignore-eos",
     .kind = ST_CLI_FLAG,
     .help = "continue after the model ends its text",
     .offset = offsetof(struct run_options, ignore_eos)},
    {.name = "show-bits",
     .kind = ST_CLI_FLAG,
     .help = "colour the text by the precision of the weights that generated it; see --schedule",
     .offset = offsetof(struct run_options, show_bits)},
    {.name = "logprobs",
     .kind = ST_CLI_FLAG,
     .help = "with --json: the logarithm of each token's probability",
     .offset = offsetof(struct run_options, logprobs)},
    {.name = "top-logprobs",
     .kind = ST_CLI_UINT,
     .value = "N",
     .max = STINT_MAX_TOP,
     .help = "with --logprobs: beside it those of the N likeliest tokens",
     .offset = offsetof(struct run_options, n_top)},
    {.name = "best-of",
     .kind = ST_CLI_UINT,
     .value = "N",
     .min = 1,
     .max = STINT_MAX_SEQUENCES,
     .help = "generate N answers as one batch, with --seed and those after it, and show the one "
             "with the highest mean log-probability; --json has all",
     .offset = offsetof(struct run_options, best_of)},
    {.name = NULL}};

// Explains the colours, if there are any.
static void print_legend(const stint_model *model) {
    stint_model_info info = {.size = sizeof info};
    const char *plain = st_cli_style(stderr, ST_CLI_PLAIN);
    if (*plain == 0 || stint_model_describe(model, &info) != STINT_OK || info.nested_high == 0)
        return;
    fprintf(stderr, "bits: 8");
    for (uint32_t bits = info.nested_high; bits >= info.nested_low; bits--)
        fprintf(stderr, " %s%u%s",
                st_cli_style(stderr, (enum st_cli_style)(ST_CLI_BITS + bits - 2)), bits, plain);
    fprintf(stderr, "\n");
}

// The newline that ends what another program writes is not part of a prompt.
static char *read_file(const struct st_cli_command *command, const char *file, size_t *n_bytes) {
    char *text = st_cli_read_all(command->name, file, PROMPT_MAX_BYTES, n_bytes);
    if (text == NULL || strcmp(file, "-") != 0) return text;
    if (*n_bytes > 0 && text[*n_bytes - 1] == '\n') text[--*n_bytes] = 0;
    if (*n_bytes > 0 && text[*n_bytes - 1] == '\r') text[--*n_bytes] = 0;
    return text;
}

// The prompt, malloc'ed; NULL with *status set and the error printed.
static char *read_prompt(const struct st_cli_command *command, const struct run_options *options,
                         size_t *n_bytes, int *status) {
    const char *file = options->file;
    *status = ST_CLI_USAGE;
    const char *given = options->prompt, *operand = options->common.action;
    if ((given != NULL) + (file != NULL) + (operand != NULL) > 1) {
        st_cli_error(command->name, "%s cannot be used together",
                     operand == NULL ? "-p and -f" : "a prompt after MODEL and -p or -f");
        return NULL;
    }
    if (given == NULL) given = operand;
    if (given == NULL && file == NULL) {
        if (isatty(STDIN_FILENO)) {
            st_cli_error(command->name, "no prompt: give one after MODEL, or a file with -f FILE");
            return NULL;
        }
        file = "-";
    }
    *status = ST_CLI_FAILED;
    if (file != NULL) return read_file(command, file, n_bytes);
    *n_bytes = strlen(given);
    char *prompt = strdup(given);
    if (prompt == NULL) st_cli_error(command->name, "not enough memory");
    return prompt;
}

static int32_t *prompt_ids(const struct run_options *options, const stint_model *model,
                           const char *prompt, size_t n_bytes, struct st_cli_answer *answer,
                           size_t *n_ids) {
    const stint_tokenizer *tokenizer = stint_model_tokenizer(model);
    if (!options->chat)
        return st_cli_tokenize(tokenizer, prompt, n_bytes, STINT_TOKENIZE_ADD_BOS, n_ids);
    stint_message message = {.role = "user", .content = prompt};
    char *text;
    if (stint_chat_format(model, &message, 1, &answer->chat, &text,
                          &answer->generation.reasoning) != STINT_OK)
        return NULL;
    int32_t *ids = st_cli_tokenize(tokenizer, text, strlen(text), 0, n_ids);
    stint_free(text);
    return ids;
}

// A terminal shows the prompt before its continuation; a pipe gets only the continuation.
static void echo_prompt(const struct run_options *options, const char *prompt, size_t n_bytes) {
    if (options->chat || options->common.json || n_bytes > ECHO_MAX_BYTES) return;
    if (!isatty(STDOUT_FILENO) || !isatty(STDERR_FILENO)) return;
    fprintf(stderr, "%s%s%s", st_cli_style(stderr, ST_CLI_DIM), prompt,
            st_cli_style(stderr, ST_CLI_PLAIN));
}

// Tokens per second of all answers: each began with the prompt's end.
static double decode_rate(const struct st_cli_several *answers) {
    stint_generation_result all = answers->results[0];
    if (answers->n == 1) return st_cli_decode_rate(&all);
    all.generated_tokens = 0;
    for (uint32_t i = 0; i < answers->n; i++) {
        const stint_generation_result *r = &answers->results[i];
        all.generated_tokens += r->generated_tokens;
        if (r->decode_seconds > all.decode_seconds) all.decode_seconds = r->decode_seconds;
    }
    return st_cli_rate(all.generated_tokens, all.decode_seconds);
}

static void print_figures(const stint_session *session, const struct st_cli_several *answers,
                          const stint_energy *energy) {
    const stint_generation_result *result = &answers->results[answers->best];
    char memory[ST_CLI_MEMORY_BYTES], joules[64] = "", bits[64] = "", of[64] = "";
    if (answers->n > 1)
        snprintf(of, sizeof of, " (the best of %u answers: %.3f)", answers->n,
                 result->mean_logprob);
    if (result->average_bits > 0 && result->average_bits < 8)
        snprintf(bits, sizeof bits, ", %.2f bits on average", result->average_bits);
    if (energy->source != NULL)
        snprintf(joules, sizeof joules, "; %.1f J (%s)", stint_energy_since(energy),
                 energy->source);
    fprintf(
        stderr,
        "%sprompt %zu tokens, %.1f tokens/s; generated %zu tokens%s, %.1f tokens/s%s; peak memory "
        "%s%s%s\n",
        st_cli_style(stderr, ST_CLI_DIM), result->prompt_tokens,
        st_cli_rate(result->prompt_tokens, result->prefill_seconds), result->generated_tokens, of,
        decode_rate(answers), bits, st_cli_memory(session, memory), joules,
        st_cli_style(stderr, ST_CLI_PLAIN));
}

static json_t *describe_drafts(const stint_generation_result *result) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "steps", (json_int_t)result->decode_steps,
                     "drafted", (json_int_t)result->drafted_tokens, "accepted",
                     (json_int_t)result->accepted_tokens, "self_drafted",
                     (json_int_t)result->self_drafted_tokens, "self_accepted",
                     (json_int_t)result->self_accepted_tokens);
}

static json_t *describe_steps(const stint_generation_result *result) {
    return json_pack("{s:f, s:f, s:f}", "median", result->step_median, "p90", result->step_p90,
                     "p99", result->step_p99);
}

static json_t *describe_energy(const stint_energy *energy) {
    double joules = energy->source != NULL ? stint_energy_since(energy) : -1.0;
    if (joules >= 0.0) return json_pack("{s:f, s:s}", "joules", joules, "source", energy->source);
    return json_pack("{s:n, s:s}", "joules", "note",
                     "this system does not measure energy: it has neither powercap nor a battery");
}

static bool print_object(const struct st_cli_command *command, const struct st_cli_several *answers,
                         const stint_energy *energy) {
    const struct st_cli_sink *sink = &answers->sinks[answers->best];
    const stint_generation_result *result = &answers->results[answers->best];
    const stint_session *session = sink->session;
    json_t *object = json_object(),
           *figures = json_pack(
               "{s:f, s:I, s:I, s:f, s:f, s:I, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o}",
               "average_bits", result->average_bits, "prompt_tokens",
               (json_int_t)result->prompt_tokens, "generated_tokens",
               (json_int_t)result->generated_tokens, "prefill_tokens_per_second",
               st_cli_rate(result->prompt_tokens, result->prefill_seconds),
               "decode_tokens_per_second", decode_rate(answers), "peak_rss_bytes",
               (json_int_t)stint_peak_rss_bytes(), "stop_reason",
               stint_stop_reason_name(result->stop_reason), "device", stint_session_device(session),
               "clipped", (json_int_t)stint_session_clipped(session), "shadow",
               st_cli_shadow(session), "schedule", st_cli_schedule(session), "drafts",
               describe_drafts(result), "step_seconds", describe_steps(result), "energy",
               describe_energy(energy));
    bool ok = st_cli_sink_report(sink, object) && json_object_update(object, figures) == 0 &&
              st_cli_add_memory(session, object);
    json_decref(figures);
    if (ok && answers->n > 1)
        ok = json_object_set_new(object, "best", json_integer(answers->best)) == 0 &&
             json_object_set_new(object, "answers", st_cli_several_report(answers)) == 0;
    if (!ok) {
        json_decref(object);
        st_cli_error(command->name, "not enough memory");
        return false;
    }
    return st_cli_print_json(command->name, object);
}

static bool generate(const struct st_cli_command *command, const struct run_options *options,
                     struct st_cli_answer *answer, stint_session *session, const int32_t *ids,
                     size_t n_ids) {
    uint32_t n = options->best_of > 1 ? options->best_of : 1;
    bool json = options->common.json;
    struct st_cli_several answers = {.max_tokens = (size_t)n * options->n_tokens};
    if (!st_cli_several_open(&answers, n, session, json, options->logprobs)) {
        st_cli_error(command->name, "not enough memory");
        st_cli_several_close(&answers);
        return false;
    }
    answers.sinks[0].show_bits = options->show_bits;
    stint_generation *generation = &answer->generation;
    generation->n_tokens = options->n_tokens;
    generation->ignore_eos = options->ignore_eos;
    generation->logprobs = options->logprobs;
    generation->n_top = options->n_top;
    generation->n_answers = n;
    generation->text = st_cli_several_take;
    generation->context = &answers;
    generation->progress = st_cli_progress_show;
    generation->progress_context = &answers.sinks[0].progress;
    stint_energy energy;
    stint_energy_begin(&energy);
    st_cli_interrupt_watch(session);
    bool ok = stint_generate(session, ids, n_ids, generation, NULL, 0, answers.results) == STINT_OK;
    st_cli_interrupt_watch(NULL);
    st_cli_progress_end(&answers.sinks[0].progress);
    if (!ok) st_cli_failed_with(command, options->common.model);
    if (ok) st_cli_several_end(&answers, json);
    if (ok) print_figures(session, &answers, &energy);
    if (ok) ok = st_cli_trace(command, &options->common, session);
    if (ok && json) ok = print_object(command, &answers, &energy);
    st_cli_several_close(&answers);
    return ok;
}

static bool answer(const struct st_cli_command *command, const struct run_options *options,
                   struct st_cli_answer *asked, const stint_model *model, const char *prompt,
                   size_t n_bytes) {
    if (stint_model_tokenizer(model) == NULL) {
        st_cli_error(command->name,
                     "%s: has no tokenizer, so it can read token ids only; see "
                     "'stint logits'",
                     options->common.model);
        return false;
    }
    size_t n_ids;
    int32_t *ids = prompt_ids(options, model, prompt, n_bytes, asked, &n_ids);
    if (ids == NULL) {
        st_cli_failed(command);
        return false;
    }
    stint_session_options session_options = st_cli_session_options(&options->common);
    session_options.n_sequences = options->best_of;
    stint_session *session = NULL;
    bool ok = false;
    if (n_ids == 0) {
        st_cli_error(command->name, "the prompt is empty");
    } else if (stint_session_open(model, &session_options, &session) != STINT_OK) {
        st_cli_failed(command);
    } else {
        if (options->show_bits) print_legend(model);
        echo_prompt(options, prompt, n_bytes);
        ok = generate(command, options, asked, session, ids, n_ids);
    }
    stint_session_close(session);
    free(ids);
    return ok;
}

static bool usage_error(const struct st_cli_command *command, const struct run_options *options) {
    const char *why = NULL;
    if (options->logprobs && !options->common.json) why = "--logprobs needs --json";
    if (options->n_top > 0 && !options->logprobs) why = "--top-logprobs needs --logprobs";
    if (options->best_of > 1 && options->common.sampling.temperature <= 0.0f)
        why = "--best-of needs --temp: without it all answers are the same";
    if (options->best_of > 1 && options->show_bits)
        why = "--best-of and --show-bits cannot be used together";
    if (options->common.tools != NULL && !options->chat) why = "--tools needs --chat";
    if (options->common.tool != NULL && options->common.tools == NULL) why = "--tool needs --tools";
    if (why != NULL) st_cli_error(command->name, "%s", why);
    return why != NULL;
}

static int run(const struct st_cli_command *command, void *target) {
    const struct run_options *options = target;
    struct st_cli_answer asked = {0};
    if (usage_error(command, options)) return ST_CLI_USAGE;
    int status = st_cli_answer_open(command, &options->common, &asked);
    size_t n_bytes;
    char *prompt = NULL;
    if (status == ST_CLI_GO) prompt = read_prompt(command, options, &n_bytes, &status);
    if (prompt != NULL) {
        stint_model *model = st_cli_open_model(command, &options->common, NULL, NULL);
        if (model != NULL) st_cli_tell_left_out(command, model);
        bool ok = model != NULL && answer(command, options, &asked, model, prompt, n_bytes);
        stint_model_close(model);
        free(prompt);
        status = ok ? ST_CLI_DONE : ST_CLI_FAILED;
    }
    st_cli_answer_free(&asked);
    return status;
}

const struct st_cli_command st_cli_run_command = {
    .name = "run",
    .summary = "continue a prompt, or answer it with --chat",
    .operand = "MODEL",
    .action = "[PROMPT]",
    .about = "Streams the continuation of a prompt to standard output and ends with one line of "
             "figures on standard error. Ctrl-C stops the text; a second Ctrl-C ends the program.",
    .example = "stint run models/novels-10m \"It was a cold evening\" -n 64 --temp 0.7 --seed 7",
    .common = ST_CLI_COMMON_SESSION | ST_CLI_COMMON_DRAFTS | ST_CLI_COMMON_NESTED |
              ST_CLI_COMMON_QUALITY | ST_CLI_COMMON_JSON | ST_CLI_COMMON_TRACE |
              ST_CLI_COMMON_SCHEDULE | ST_CLI_COMMON_ANSWER | ST_CLI_COMMON_TOOLS,
    .samples = ST_CLI_SAMPLES_GREEDY,
    .options = rows,
    .options_bytes = sizeof(struct run_options),
    .run = run};
