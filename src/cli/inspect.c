// SPDX-License-Identifier: Apache-2.0
// stint inspect: describes a model, the memory of a session, and the number of subgraphs of a
// prompt with and without chunk sharing.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/losses.h"
#include "cli/memory_plan.h"
#include "cli/output.h"
#include "cli/sampling.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT_TOKENS = 1024, CHUNK_TOKENS = 256, CONTEXT_DEFAULT = 4096, MAX_KV_TYPES = 16 };

struct inspect_options {
    struct st_cli_common common;
    bool outliers, neurons;
    const char *svg;
};

static const struct st_cli_option rows[] = {
    {.name = "outliers",
     .kind = ST_CLI_FLAG,
     .help = "of a package: threshold, importance and outlier channels of each linear, the most "
             "important first",
     .offset = offsetof(struct inspect_options, outliers)},
    {.name = "neurons",
     .kind = ST_CLI_FLAG,
     .help =
         "of a package made with --neurons: how many are active in each layer, how unevenly, "
         "and what the predictors do; with --memory, of any model: what a session under this "
         "bound would have in memory, what it would read and how fast it would be, by measuring "
         "this device for a second",
     .offset = offsetof(struct inspect_options, neurons)},
    {.name = "svg",
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help = "of a package: draw importance and outlier channels by layer, and how few channels "
             "most outliers are in; with --neurons, these",
     .offset = offsetof(struct inspect_options, svg)},
    {.name = NULL}};

// What a KV cache of this type takes.
struct kv_size {
    const char *type;
    uint64_t bytes;
};

// Everything that is shown, collected before the first line is printed.
struct report {
    const char *path;
    const stint_model *model;
    stint_model_info info;
    uint64_t context, scratch;
    struct kv_size kv[MAX_KV_TYPES];
    size_t n_kv;
    bool has_tokenizer;
    size_t tokenizer_vocab;
    int32_t bos, eos;
    stint_sampling sampling;
    uint64_t recommended;    // by the model's maker: bits of parameters
    stint_graph_info graphs; // only for a package
    uint64_t chunk_len, chunks, shared, subgraphs, shared_graphs, unshared_graphs;
};

static bool is_npu(const struct report *report) {
    return report->info.exec == STINT_EXEC_NPU;
}

// Static subgraphs are built once and serve every chunk; dynamic ones exist per chunk position.
static void count_subgraphs(struct report *report) {
    const stint_model_info *info = &report->info;
    uint64_t layers = info->n_layers, dynamic = info->subgraphs_per_layer;
    dynamic -= info->static_subgraphs_per_layer;
    report->chunks = (PROMPT_TOKENS + report->chunk_len - 1) / report->chunk_len;
    report->subgraphs = layers * info->subgraphs_per_layer;
    report->shared = layers * info->static_subgraphs_per_layer;
    report->shared_graphs = report->shared + layers * dynamic * report->chunks;
    report->unshared_graphs = report->subgraphs * report->chunks;
}

// Compiled graphs are counted on a session that has them.
static bool gather_graphs(const struct st_cli_command *command, const stint_model *model,
                          const stint_session_options *options, struct report *report) {
    stint_session *session = NULL;
    report->chunk_len = options->chunk_len == STINT_CHUNK_AUTO ? CHUNK_TOKENS : options->chunk_len;
    if (!is_npu(report)) return true;
    report->graphs.size = sizeof report->graphs;
    bool ok = stint_session_open(model, options, &session) == STINT_OK &&
              stint_session_graphs(session, &report->graphs) == STINT_OK;
    if (ok) report->chunk_len = stint_session_chunk(session);
    stint_session_close(session);
    return ok || (st_cli_failed(command), false);
}

// Of each type of the cache; the scratch memory is that of the default one.
static bool gather_kv(const stint_model *model, stint_session_options options,
                      struct report *report) {
    uint64_t bytes;
    if (stint_session_measure(model, &options, &bytes, &report->scratch) != STINT_OK) return false;
    while (report->n_kv < MAX_KV_TYPES && (options.kv = stint_kv_name(report->n_kv)) != NULL) {
        struct kv_size *kv = &report->kv[report->n_kv++];
        uint64_t scratch;
        kv->type = options.kv;
        if (stint_session_measure(model, &options, &kv->bytes, &scratch) != STINT_OK) return false;
    }
    return true;
}

static bool gather(const struct st_cli_command *command, const struct inspect_options *options,
                   const stint_model *model, struct report *report) {
    report->path = options->common.model;
    report->model = model;
    report->info.size = sizeof report->info;
    stint_session_options session = st_cli_session_options(&options->common);
    if (stint_model_describe(model, &report->info) != STINT_OK ||
        !gather_kv(model, session, report))
        return st_cli_failed(command), false;
    uint32_t own = report->info.context;
    report->context = options->common.n_context != 0 ? options->common.n_context
                      : own < CONTEXT_DEFAULT        ? own
                                                     : CONTEXT_DEFAULT;
    const stint_tokenizer *tokenizer = stint_model_tokenizer(model);
    report->has_tokenizer = tokenizer != NULL;
    report->sampling.size = sizeof report->sampling;
    report->recommended = stint_model_sampling(model, &report->sampling);
    if (tokenizer != NULL) {
        report->tokenizer_vocab = stint_tokenizer_vocab(tokenizer);
        report->bos = stint_tokenizer_bos(tokenizer);
        report->eos = stint_tokenizer_eos(tokenizer);
    }
    bool ok = gather_graphs(command, model, &session, report);
    count_subgraphs(report);
    return ok;
}

static json_t *memory_object(const struct report *report) {
    json_t *memory = json_pack(
        "{s:I, s:I, s:I}", "weight_bytes", (json_int_t)report->info.weight_bytes, "context_tokens",
        (json_int_t)report->context, "scratch_bytes", (json_int_t)report->scratch);
    for (size_t i = 0; i < report->n_kv; i++) {
        char key[32];
        snprintf(key, sizeof key, "kv_bytes_%s", report->kv[i].type);
        json_object_set_new(memory, key, json_integer((json_int_t)report->kv[i].bytes));
    }
    return memory;
}

static bool print_object(const struct st_cli_command *command, const struct report *report) {
    const stint_model_info *info = &report->info;
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "model",
        report->path, "architecture", info->architecture, "source", info->source, "weight_type",
        info->weight_type, "parameters", (json_int_t)info->n_parameters, "layers",
        (json_int_t)info->n_layers, "hidden", (json_int_t)info->hidden, "heads",
        (json_int_t)info->n_heads, "kv_heads", (json_int_t)info->n_kv_heads, "head_dim",
        (json_int_t)info->head_dim, "ffn", (json_int_t)info->ffn, "experts",
        (json_int_t)info->n_experts, "experts_used", (json_int_t)info->n_experts_used, "vocab",
        (json_int_t)info->vocab, "context", (json_int_t)info->context, "window",
        (json_int_t)info->window);
    json_t *more = json_pack(
        "{s:s, s:s, s:I, s:f, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "activation",
        info->activation, "norm", info->norm, "rope_dims", (json_int_t)info->rope_dims,
        "rope_theta", (double)info->rope_theta, "rope_scaling", info->rope_scaling, "chat_template",
        info->chat_template, "linear_ops_per_token", (json_int_t)info->linear_ops_per_token,
        "bytes_per_decoded_token", (json_int_t)info->bytes_per_decoded_token, "conv_layers",
        (json_int_t)info->n_conv_layers, "conv_length", (json_int_t)info->conv_length,
        "state_layers", (json_int_t)info->n_state_layers, "state_heads",
        (json_int_t)info->state_heads, "state_keys", (json_int_t)info->state_keys, "state_values",
        (json_int_t)info->state_values);
    json_t *subgraphs = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "per_layer",
        (json_int_t)info->subgraphs_per_layer, "static_per_layer",
        (json_int_t)info->static_subgraphs_per_layer, "total", (json_int_t)report->subgraphs,
        "shared", (json_int_t)report->shared, "prompt_tokens", (json_int_t)PROMPT_TOKENS,
        "chunk_tokens", (json_int_t)report->chunk_len, "built_with_sharing",
        (json_int_t)report->shared_graphs, "built_without_sharing",
        (json_int_t)report->unshared_graphs);
    json_t *tokenizer =
        report->has_tokenizer
            ? json_pack("{s:I, s:I, s:I}", "vocab", (json_int_t)report->tokenizer_vocab, "bos",
                        (json_int_t)report->bos, "eos", (json_int_t)report->eos)
            : json_null();
    json_object_update(object, more);
    json_decref(more);
    json_object_set_new(object, "memory", memory_object(report));
    json_object_set_new(object, "subgraphs", subgraphs);
    json_object_set_new(object, "tokenizer", tokenizer);
    json_object_set_new(object, "sampling",
                        st_cli_sampling_json(&report->sampling, report->recommended));
    if (*info->left_out) json_object_set_new(object, "left_out", json_string(info->left_out));
    json_object_set_new(object, "exec", json_string(stint_exec_name(info->exec)));
    if (info->nested_high != 0)
        json_object_set_new(object, "nested",
                            json_pack("{s:I, s:I, s:I, s:o}", "low", (json_int_t)info->nested_low,
                                      "high", (json_int_t)info->nested_high, "bytes",
                                      (json_int_t)info->nested_bytes, "losses",
                                      st_cli_losses(report->model)));
    if (is_npu(report))
        json_object_set_new(object, "graphs",
                            json_pack("{s:I, s:I, s:I, s:f}", "compiled",
                                      (json_int_t)report->graphs.n_graphs, "bytes_shared",
                                      (json_int_t)report->graphs.bytes, "bytes_unshared",
                                      (json_int_t)(report->graphs.bytes * report->chunks),
                                      "compile_seconds", report->graphs.compile_seconds));
    return st_cli_print_json(command->name, object);
}

static void print_tokenizer(const struct report *report) {
    char bos[16] = "none", eos[16] = "none";
    if (report->bos >= 0) snprintf(bos, sizeof bos, "%" PRId32, report->bos);
    if (report->eos >= 0) snprintf(eos, sizeof eos, "%" PRId32, report->eos);
    if (report->has_tokenizer)
        st_cli_row("tokenizer", "%zu tokens, BOS %s, EOS %s; %u rows in the output head",
                   report->tokenizer_vocab, bos, eos, report->info.vocab);
    else
        st_cli_row("tokenizer", "none; %u rows in the output head", report->info.vocab);
}

static void print_model(const struct report *report) {
    const stint_model_info *info = &report->info;
    char bytes[ST_CLI_SIZE_BYTES];
    st_cli_title(report->path);
    st_cli_row("architecture", "%s (%s)", info->architecture, info->source);
    if (*info->left_out) st_cli_row("left out", "%s: this is its text model", info->left_out);
    st_cli_row("parameters", "%.1f M, mostly %s, %s", (double)info->n_parameters * 1e-6,
               info->weight_type, st_cli_size(info->weight_bytes, bytes));
    st_cli_row("layers", "%u of hidden size %u, %s", info->n_layers, info->hidden, info->norm);
    st_cli_row("attention", "%u heads, %u key-value heads of %u", info->n_heads, info->n_kv_heads,
               info->head_dim);
    if (info->n_conv_layers != 0)
        st_cli_row("convolutions", "%u of the layers, over %u tokens, instead of attention",
                   info->n_conv_layers, info->conv_length);
    if (info->n_state_layers != 0)
        st_cli_row("states",
                   "%u of the layers have %u heads with %u x %u numbers, instead of "
                   "attention",
                   info->n_state_layers, info->state_heads, info->state_keys, info->state_values);
    if (info->window != 0) st_cli_row("sliding window", "%u tokens", info->window);
    st_cli_row("FFN", "%u, %s", info->ffn, info->activation);
    if (info->n_experts != 0)
        st_cli_row("experts", "%u, %u used for a token", info->n_experts, info->n_experts_used);
    if (info->rope_dims != 0)
        st_cli_row("rope", "%u of %u, theta %.10g, scaling %s", info->rope_dims, info->head_dim,
                   (double)info->rope_theta, info->rope_scaling);
    st_cli_row("context", "%u tokens", info->context);
    st_cli_row("work per token", "%.3f G operations in the linears",
               (double)info->linear_ops_per_token * 1e-9);
    print_tokenizer(report);
    st_cli_row("chat template", "%s", info->chat_template);
    char sampling[ST_CLI_SAMPLING_BYTES];
    st_cli_row("sampling", "%s",
               st_cli_sampling_text(&report->sampling, report->recommended, sampling));
}

static void print_memory(const struct report *report) {
    const stint_model_info *info = &report->info;
    char a[ST_CLI_SIZE_BYTES], b[ST_CLI_SIZE_BYTES], c[ST_CLI_SIZE_BYTES];
    uint64_t rest = info->weight_bytes + report->scratch;
    st_cli_title("Memory");
    st_cli_row("weights", "%s, mapped from the file", st_cli_size(info->weight_bytes, a));
    st_cli_row("scratch", "%s", st_cli_size(report->scratch, a));
    for (size_t i = 0; i < report->n_kv; i++)
        st_cli_row(i == 0 ? "KV cache" : "", "%s in %s for %" PRIu64 " tokens, %s with all else",
                   st_cli_size(report->kv[i].bytes, a), report->kv[i].type, report->context,
                   st_cli_size(rest + report->kv[i].bytes, b));
    st_cli_row("decode reads", "%s for each token", st_cli_size(info->bytes_per_decoded_token, a));
    if (info->nested_high == 0) return;
    st_cli_row("nested weights", "%u to %u bits, %s of the weights; a token reads %s to %s",
               info->nested_low, info->nested_high, st_cli_size(info->nested_bytes, a),
               st_cli_size(stint_model_bytes_per_token(report->model, info->nested_low), b),
               st_cli_size(stint_model_bytes_per_token(report->model, info->nested_high), c));
    json_t *losses = st_cli_losses(report->model), *loss;
    char text[ST_CLI_LOSS_BYTES];
    size_t i;
    json_array_foreach(losses, i, loss)
        st_cli_row(i == 0 ? "their loss" : "", "%s", st_cli_loss_text(loss, text));
    json_decref(losses);
}

static void print_subgraphs(const struct report *report) {
    const stint_model_info *info = &report->info;
    char title[64], a[ST_CLI_SIZE_BYTES], b[ST_CLI_SIZE_BYTES];
    snprintf(title, sizeof title, "Subgraphs of a %d-token prompt in chunks of %" PRIu64,
             PROMPT_TOKENS, report->chunk_len);
    st_cli_title(title);
    st_cli_row("per layer", "%u; %u of them are static and serve every chunk",
               info->subgraphs_per_layer, info->static_subgraphs_per_layer);
    st_cli_row("in all layers", "%" PRIu64 ", %" PRIu64 " of them shared", report->subgraphs,
               report->shared);
    st_cli_row("to build", "%" PRIu64 " with sharing, %" PRIu64 " without", report->shared_graphs,
               report->unshared_graphs);
    if (!is_npu(report)) return;
    st_cli_row("graph memory", "%s shared, %s unshared; compiled in %.1f ms",
               st_cli_size(report->graphs.bytes, a),
               st_cli_size(report->graphs.bytes * report->chunks, b),
               1e3 * report->graphs.compile_seconds);
}

// Shows the notes of the package; with --memory, also the plan for that bound.
static bool show(const struct st_cli_command *command, const struct inspect_options *options,
                 const stint_model *model) {
    const struct st_cli_view *view =
        options->neurons ? &st_cli_neurons_view : &st_cli_outliers_view;
    json_t *plan = NULL;
    if (options->common.memory != 0) {
        if ((plan = st_cli_memory_plan(command, &options->common, model)) == NULL) return false;
        view = &st_cli_memory_view;
    }
    return st_cli_view_show(command, &options->common, view, options->svg, model, plan);
}

static int run(const struct st_cli_command *command, void *target) {
    const struct inspect_options *options = target;
    stint_model *model = st_cli_open_model(command, &options->common, NULL, NULL);
    if (model == NULL) return ST_CLI_FAILED;
    if (options->outliers || options->neurons || options->svg != NULL ||
        options->common.memory != 0) {
        bool shown = show(command, options, model);
        stint_model_close(model);
        return shown ? ST_CLI_DONE : ST_CLI_FAILED;
    }
    struct report report = {0};
    bool ok = gather(command, options, model, &report);
    if (ok && options->common.json) {
        ok = print_object(command, &report);
    } else if (ok) {
        print_model(&report);
        print_memory(&report);
        print_subgraphs(&report);
    }
    stint_model_close(model);
    return ok ? ST_CLI_DONE : ST_CLI_FAILED;
}

const struct st_cli_command st_cli_inspect_command = {
    .name = "inspect",
    .summary = "architecture, sizes, memory plan",
    .operand = "MODEL",
    .about = "Describes a model, the memory that it needs with a given context, and the subgraphs "
             "of a prompt: how many a chunk-shared prefill builds and how many an unshared one.",
    .example = "stint inspect models/novels-10m --ctx 1024",
    .common = ST_CLI_COMMON_DEVICE | ST_CLI_COMMON_THREADS | ST_CLI_COMMON_MEMORY |
              ST_CLI_COMMON_CONTEXT | ST_CLI_COMMON_CHUNK | ST_CLI_COMMON_PREDICTOR |
              ST_CLI_COMMON_SCHEDULE | ST_CLI_COMMON_QUALITY | ST_CLI_COMMON_DRAFTS |
              ST_CLI_COMMON_VERBOSE | ST_CLI_COMMON_JSON,
    .options = rows,
    .options_bytes = sizeof(struct inspect_options),
    .run = run};
