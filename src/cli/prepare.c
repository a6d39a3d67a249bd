// SPDX-License-Identifier: Apache-2.0
// stint prepare: turns a checkpoint into a package of INT8 linears.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/file.h"
#include "cli/interrupt.h"
#include "cli/losses.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/tokens.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX_BYTES = 64 << 20 };

struct prepare_options {
    struct st_cli_common common;
    const char *output, *text, *tokens, *prune, *bits, *quantizer, *target;
    uint32_t n_tokens, weight_scale;
    float sparse, recall;
    bool neurons;
    int neuron_bits; // 0: 4, 1: 8
    int one_set;     // 0: off, 1: 7, 2: 8
};

static const struct st_cli_option rows[] = {
    {.name = "output",
     .letter = 'o',
     .kind = ST_CLI_TEXT,
     .value = "OUT.stint",
     .help = "the package; it appears only when it is complete",
     .offset = offsetof(struct prepare_options, output)},
    {.name = "calib",
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help = "calibration text, similar to what the model will read, - for standard input; without "
             "it one that ships with stint",
     .offset = offsetof(struct prepare_options, text)},
    {.name = "calib-ids",
     .kind = ST_CLI_TEXT,
     .value = "FILE.json",
     .help =
         "calibration text as token ids, for a model without a tokenizer: {\"tokens\": [1, 2, 3]}",
     .offset = offsetof(struct prepare_options, tokens)},
    {.name = "calib-tokens",
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "8192",
     .min = 1,
     .max = 1 << 20,
     .help = "maximum tokens of the calibration text",
     .offset = offsetof(struct prepare_options, n_tokens)},
    {.name = "weight-scale",
     .kind = ST_CLI_CHOICE,
     .value = "PER",
     .preset = "channel",
     .choices = "channel|tensor",
     .help = "weights that share a scale: an output channel, or a whole linear",
     .offset = offsetof(struct prepare_options, weight_scale)},
    {.name = "target",
     .kind = ST_CLI_TEXT,
     .value = "DEVICE",
     .help = "the device that will run the package: cpu and amx quantize each token with a scale "
             "of its own, sim (which stands for an NPU) needs static scales and shadow execution; "
             "without it the best one of this machine",
     .offset = offsetof(struct prepare_options, target)},
    {.name = "outlier-prune",
     .kind = ST_CLI_TEXT,
     .value = "R",
     .preset = "auto",
     .help = "static scales, and the share of the linears, least important first, that run without "
             "shadow execution of outliers; off: no shadow execution and no clipping; auto: what "
             "the target needs, of shares up to 0.85 that which loses under 0.3 % on held-out text",
     .offset = offsetof(struct prepare_options, prune)},
    {.name = "bits",
     .kind = ST_CLI_TEXT,
     .value = "LO..HI",
     .preset = "2..4",
     .help = "decode with nested weights of these precisions too, 2 to 8 bits, which take the "
             "space of the highest (8 bits are INT8, which always exists); none: no nested weights",
     .offset = offsetof(struct prepare_options, bits)},
    {.name = "quantizer",
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .preset = "descent",
     .help = "quantizer of nested weights: descent (by the error of the outputs) or uniform "
             "(rounding alone; faster)",
     .offset = offsetof(struct prepare_options, quantizer)},
    {.name = "one-set",
     .kind = ST_CLI_CHOICE,
     .choices = "off|7|8",
     .value = "off|7|8",
     .preset = "off",
     .help = "7, 8: make INT8 weights of nested codes of so many bits; the package is a quarter or "
             "a third smaller, its steps at 8 bits are slower",
     .offset = offsetof(struct prepare_options, one_set)},
    {.name = "sparse",
     .kind = ST_CLI_FLOAT,
     .value = "SHARE",
     .preset = "0",
     .max = 0.1,
     .help =
         "share of each row's weights that nested weights store in float besides the codes, e.g. "
         "0.005",
     .offset = offsetof(struct prepare_options, sparse)},
    {.name = "neurons",
     .kind = ST_CLI_FLAG,
     .help =
         "for a model with ReLU: store its neurons one by one and train predictors of the active "
         "ones, for --memory",
     .offset = offsetof(struct prepare_options, neurons)},
    {.name = "neuron-bits",
     .kind = ST_CLI_CHOICE,
     .choices = "4|8",
     .value = "4|8",
     .preset = "4",
     .help = "bits of a neuron's weights: 8 are the INT8 weights unchanged, 4 take half the memory "
             "and half the reading, and cost about a quarter of a percent of perplexity",
     .offset = offsetof(struct prepare_options, neuron_bits)},
    {.name = "recall",
     .kind = ST_CLI_FLOAT,
     .value = "SHARE",
     .preset = "0.98",
     .max = 1,
     .help = "share of the active neurons that a predictor must find: with more of them more "
             "neurons are read and computed, and fewer tokens change",
     .offset = offsetof(struct prepare_options, recall)},
    {.name = NULL}};

// Parses --outlier-prune; false with the error printed.
static bool read_prune(const struct st_cli_command *command, const char *text,
                       stint_prepare_options *options) {
    char *end;
    double share = strtod(text, &end);
    options->outliers = STINT_OUTLIERS_AUTO;
    if (strcmp(text, "auto") == 0) return true;
    options->outliers = STINT_OUTLIERS_NONE;
    if (strcmp(text, "off") == 0) return true;
    options->outliers = STINT_OUTLIERS_SHARE;
    options->outlier_prune = (float)share;
    if (end != text && *end == 0 && share >= 0 && share <= 1) return true;
    st_cli_error(command->name, "--outlier-prune: '%s' is not one of auto, off, 0 to 1", text);
    return false;
}

// Parses --bits; false with the error printed.
static bool read_bits(const struct st_cli_command *command, const char *text,
                      stint_prepare_options *options) {
    unsigned low, high;
    int end = 0;
    if (strcmp(text, "none") == 0) return true;
    if (sscanf(text, "%1u..%1u%n", &low, &high, &end) == 2 && text[end] == 0 && low >= 2 &&
        low <= high && high <= 8) {
        if (low == 8) return true; // only INT8
        options->bits_low = low;
        options->bits_high = high == 8 ? 7 : high;
        return true;
    }
    st_cli_error(command->name, "--bits: '%s' is neither none nor LO..HI with 2 <= LO <= HI <= 8",
                 text);
    return false;
}

// The loss of the package, as a clause; empty if no text was held out.
static void describe_loss(const stint_prepare_summary *s, char *text, size_t bytes) {
    *text = 0;
    if (s->held_out_tokens > 0)
        snprintf(text, bytes,
                 "; perplexity of %u held-out tokens %.2f, in float %.2f (%+.2f %%), same first "
                 "choice %.1f %%",
                 s->held_out_tokens, s->perplexity, s->float_perplexity,
                 100 * (s->perplexity / s->float_perplexity - 1), 100 * s->top1_agreement);
}

// What the package says about its losses; NULL with the error printed.
static json_t *read_losses(const struct st_cli_command *command, const char *package) {
    stint_model_options options = {.size = sizeof options, .no_tokenizer = true, .lazy = true};
    stint_model *model = NULL;
    if (stint_model_open(package, &options, &model) != STINT_OK) {
        st_cli_failed(command);
        return NULL;
    }
    json_t *losses = st_cli_losses(model);
    stint_model_close(model);
    return losses;
}

static void print_losses(json_t *losses) {
    char text[ST_CLI_LOSS_BYTES];
    size_t i;
    json_t *loss;
    json_array_foreach(losses, i, loss) fprintf(stderr, "  %s\n", st_cli_loss_text(loss, text));
}

static int report(const struct st_cli_command *command, const struct prepare_options *options,
                  const stint_prepare_summary *summary) {
    char size[ST_CLI_SIZE_BYTES], peak[ST_CLI_SIZE_BYTES], loss[256];
    json_t *losses = read_losses(command, options->output);
    if (losses == NULL) return ST_CLI_FAILED;
    if (!options->common.json) {
        describe_loss(summary, loss, sizeof loss);
        fprintf(stderr,
                "%s: %u linears in INT8, %u with shadow outliers, %s; calibrated on %u tokens in "
                "%.1f s; peak memory %s%s\n",
                options->output, summary->n_linears, summary->n_shadowed,
                st_cli_size(summary->bytes, size), summary->n_tokens, summary->seconds,
                st_cli_size(stint_peak_rss_bytes(), peak), loss);
        print_losses(losses);
        json_decref(losses);
        return ST_CLI_DONE;
    }
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:f, s:I, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:o}",
        "source", options->common.model, "package", options->output, "bytes",
        (json_int_t)summary->bytes, "linears", (json_int_t)summary->n_linears, "linears_shadowed",
        (json_int_t)summary->n_shadowed, "pruned", summary->pruned, "calibration_tokens",
        (json_int_t)summary->n_tokens, "weight_scale",
        options->weight_scale == STINT_SCALE_TENSOR ? "tensor" : "channel", "held_out_tokens",
        (json_int_t)summary->held_out_tokens, "float_perplexity", summary->float_perplexity,
        "perplexity", summary->perplexity, "top1_agreement", summary->top1_agreement, "divergence",
        summary->divergence, "seconds", summary->seconds, "peak_rss_bytes",
        (json_int_t)stint_peak_rss_bytes(), "losses", losses);
    return st_cli_print_json(command->name, object) ? ST_CLI_DONE : ST_CLI_FAILED;
}

static int prepare(const struct st_cli_command *command, const struct prepare_options *options,
                   const char *text, size_t text_bytes, const int32_t *ids, size_t n_ids) {
    struct st_cli_progress progress = {0};
    stint_prepare_options prepare_options = {
        .size = sizeof prepare_options,
        .text = text,
        .text_bytes = text_bytes,
        .ids = ids,
        .n_ids = n_ids,
        .n_tokens = options->n_tokens,
        .weight_scale = (stint_weight_scale)options->weight_scale,
        .n_threads = options->common.n_threads,
        .quantizer = options->quantizer,
        .sparse = options->sparse,
        .neurons = options->neurons,
        .neuron_bits = options->neuron_bits ? 8 : 4,
        .recall = options->recall,
        .progress = st_cli_progress_show,
        .progress_context = &progress,
        .canceled = st_cli_interrupted,
        .target = options->target,
        .one_set = options->one_set ? 6u + (unsigned)options->one_set : 0};
    stint_prepare_summary summary = {.size = sizeof summary};
    if (!read_prune(command, options->prune, &prepare_options)) return ST_CLI_USAGE;
    if (!read_bits(command, options->bits, &prepare_options)) return ST_CLI_USAGE;
    st_cli_log_to_stderr(command, options->common.verbose);
    st_cli_interrupt_note();
    stint_status status =
        stint_prepare(options->common.model, options->output, &prepare_options, &summary);
    st_cli_interrupt_watch(NULL);
    st_cli_progress_end(&progress);
    return status == STINT_OK ? report(command, options, &summary) : st_cli_failed(command);
}

static int run(const struct st_cli_command *command, void *target) {
    const struct prepare_options *options = target;
    const char *wrong = options->output == NULL ? "-o OUT.stint is missing"
                        : options->text != NULL && options->tokens != NULL
                            ? "--calib and --calib-ids cannot be used together"
                            : NULL;
    if (wrong != NULL) {
        st_cli_error(command->name, "%s", wrong);
        return ST_CLI_USAGE;
    }
    size_t n_bytes = 0, n_ids = 0;
    char *text = NULL;
    int32_t *ids = NULL;
    if (options->text != NULL)
        text = st_cli_read_all(command->name, options->text, TEXT_MAX_BYTES, &n_bytes);
    if (options->tokens != NULL) ids = st_cli_read_tokens(command->name, options->tokens, &n_ids);
    int status = ST_CLI_FAILED;
    if ((options->text == NULL || text != NULL) && (options->tokens == NULL || ids != NULL))
        status = prepare(command, options, text, n_bytes, ids, n_ids);
    free(text);
    free(ids);
    return status;
}

const struct st_cli_command st_cli_prepare_command = {
    .name = "prepare",
    .summary = "turn a checkpoint into a package that runs in INT8",
    .operand = "MODEL",
    .about = "Reads a Hugging Face folder or a GGUF file, runs a calibration text through it in "
             "float, layer by layer, and writes its linears as INT8 (W8A8) for the integer units. "
             "About one layer and the embedding are in memory at a time. The package holds all "
             "that is needed, so MODEL may be removed afterwards.",
    .example = "stint prepare models/novels-10m -o novels.stint",
    .common = ST_CLI_COMMON_THREADS | ST_CLI_COMMON_VERBOSE | ST_CLI_COMMON_JSON,
    .options = rows,
    .options_bytes = sizeof(struct prepare_options),
    .run = run};
