// SPDX-License-Identifier: Apache-2.0
// stint simulate: predicts how a model would run on another machine.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/output.h"

#include <stdlib.h>
#include <string.h>

struct simulate_options {
    struct st_cli_common common;
    const char *soc, *preset;
    struct st_cli_uints prompts;
    uint32_t float_on;
    float outlier_prune;
    bool ablation;
};

static const struct st_cli_option rows[] = {
    {.name = "soc",
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .help =
         "the machine: sd8gen3, sd8gen2, flightllm-4k, flightllm-16k, host (one core as NPU, one "
         "as CPU, measured now), or a file like share/soc/*.ini",
     .offset = offsetof(struct simulate_options, soc)},
    {.name = "shape",
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .help = "a model preset instead of MODEL; 'stint bench --shape list' names them",
     .offset = offsetof(struct simulate_options, preset)},
    {.name = "prompt-tokens",
     .letter = 'p',
     .kind = ST_CLI_UINTS,
     .value = "N,N",
     .preset = "64,256,1024",
     .min = 1,
     .max = 1 << 20,
     .help = "prompt lengths",
     .offset = offsetof(struct simulate_options, prompts)},
    {.name = "float",
     .kind = ST_CLI_CHOICE,
     .value = "WHERE",
     .preset = "cpu",
     .choices = "cpu|gpu",
     .help = "processor that computes norms, attention and outliers",
     .offset = offsetof(struct simulate_options, float_on)},
    {.name = "outlier-prune",
     .kind = ST_CLI_FLOAT,
     .value = "R",
     .preset = "0.85",
     .max = 1,
     .help = "share of the layers without shadow execution of outliers",
     .offset = offsetof(struct simulate_options, outlier_prune)},
    {.name = "ablation",
     .kind = ST_CLI_FLAG,
     .help =
         "show what each technique adds: a graph per prompt with a scale per group, then shared "
         "chunks, shadow outliers, out-of-order subgraphs",
     .offset = offsetof(struct simulate_options, ablation)},
    {.name = NULL}};

// The techniques, one after the other.
static const struct step {
    const char *name, *order;
    bool rebuild, per_group;
} steps[] = {
    {"naive", "inorder", true, true},
    {"+ chunk sharing", "inorder", false, true},
    {"+ shadow outliers", "inorder", false, false},
    {"+ out of order", "ooo", false, false},
};
enum { N_STEPS = sizeof steps / sizeof *steps };

struct simulate {
    const struct st_cli_command *command;
    const struct simulate_options *options;
    const stint_model *model;
    char host[512]; // the description of this machine, or ""
};

// One core acts as the NPU, one as the CPU. The figures are peaks, so the results are bounds.
static bool describe_host(struct simulate *s) {
    stint_roofline r = {.size = sizeof r};
    if (stint_roofline_measure(1, 0.2, &r) != STINT_OK) return st_cli_failed(s->command), false;
    snprintf(s->host, sizeof s->host,
             "[soc]\nname = this machine\nmemory_gbps = %.3f\n[npu]\nint8_gops = %.3f\n"
             "fp16_gflops = %.3f\n[cpu]\nint8_gops = %.3f\nattention_gflops = %.3f\n"
             "elementwise_meps = %.3f\n",
             r.bytes_per_second / 1e9, r.int8_ops_per_second / 1e9,
             (r.bf16_flops_per_second > 0 ? r.bf16_flops_per_second : r.float_flops_per_second) /
                 1e9,
             r.int8_ops_per_second / 1e9, r.float_flops_per_second / 1e9, r.bytes_per_second / 8e6);
    return true;
}

static bool simulate(const struct simulate *s, uint32_t n, const struct step *step,
                     const char *trace, stint_simulation *result) {
    const struct simulate_options *o = s->options;
    stint_simulation_options options = {.size = sizeof options,
                                        .soc = o->soc,
                                        .soc_text = *s->host ? s->host : NULL,
                                        .preset = o->preset,
                                        .model = s->model,
                                        .prompt_tokens = n,
                                        .chunk_len = o->common.chunk_len,
                                        .order = step ? step->order : st_cli_order(&o->common),
                                        .outlier_prune = o->outlier_prune,
                                        .gpu = o->float_on == 1,
                                        .rebuild = step && step->rebuild,
                                        .per_group = step && step->per_group,
                                        .trace = trace};
    *result = (stint_simulation){.size = sizeof *result};
    if (stint_simulate(&options, result) == STINT_OK) return true;
    st_cli_failed(s->command);
    return false;
}

static json_t *describe(uint32_t n, const struct step *step, const stint_simulation *r) {
    json_t *object = json_pack(
        "{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f}", "tokens", (json_int_t)n,
        "seconds", r->seconds, "tokens_per_second", n / r->seconds, "bubble_rate", r->bubble_rate,
        "npu_seconds", r->npu_seconds, "cpu_seconds", r->cpu_seconds, "build_seconds",
        r->build_seconds, "chunks", (json_int_t)r->chunks, "subgraphs", (json_int_t)r->subgraphs,
        "graph_bytes_shared", (json_int_t)r->graph_bytes, "graph_bytes_unshared",
        (json_int_t)r->graph_bytes_unshared, "npu_share", r->npu_share);
    if (step) json_object_set_new(object, "step", json_string(step->name));
    if (r->joules > 0.0) json_object_set_new(object, "joules_modelled", json_real(r->joules));
    return object;
}

static void print_head(void) {
    printf("%8s %-18s %10s %10s %8s %10s %10s %9s\n", "prompt", "", "tokens/s", "seconds",
           "bubbles", "NPU s", "float s", "graphs");
}

static void print_row(uint32_t n, const char *what, const stint_simulation *r) {
    char size[ST_CLI_SIZE_BYTES];
    printf("%8u %-18s %10.1f %10.4g %7.1f%% %10.4g %10.4g %9s\n", n, what, n / r->seconds,
           r->seconds, 100 * r->bubble_rate, r->npu_seconds, r->cpu_seconds,
           st_cli_size(r->graph_bytes, size));
}

static json_t *describe_decode(const stint_simulation *r) {
    static const int bits[] = {16, 8, 4, 3, 2};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (r->decode[i] > 0.0)
            json_array_append_new(list,
                                  json_pack("{s:i, s:f, s:f}", "bits", bits[i], "tokens_per_second",
                                            r->decode[i], "speedup",
                                            r->decode[0] > 0 ? r->decode[i] / r->decode[0] : 0.0));
    return list;
}

static void print_decode(const json_t *decode) {
    size_t i;
    const json_t *row;
    if (json_array_size(decode) > 0) printf("\n%8s %10s %10s\n", "bits", "tokens/s", "over 16");
    json_array_foreach(decode, i, row) {
        printf("%8lld %10.1f %9.2fx\n", (long long)json_integer_value(json_object_get(row, "bits")),
               json_number_value(json_object_get(row, "tokens_per_second")),
               json_number_value(json_object_get(row, "speedup")));
    }
}

// All prompts; with --ablation every step of each.
static bool run_all(const struct simulate *s, json_t *prefill, json_t **decode) {
    const struct simulate_options *o = s->options;
    bool json = o->common.json;
    if (!json) print_head();
    for (size_t i = 0; i < o->prompts.count; i++)
        for (size_t k = 0; k < (o->ablation ? N_STEPS : 1); k++) {
            const struct step *step = o->ablation ? &steps[k] : NULL;
            bool last = i + 1 == o->prompts.count && (!step || k + 1 == N_STEPS);
            uint32_t n = o->prompts.values[i];
            stint_simulation result;
            if (!simulate(s, n, step, last ? o->common.trace : NULL, &result)) return false;
            json_array_append_new(prefill, describe(n, step, &result));
            if (!json) print_row(n, step ? step->name : "", &result);
            if (last) *decode = describe_decode(&result);
        }
    if (!json) print_decode(*decode);
    return true;
}

static int run(const struct st_cli_command *command, void *target) {
    const struct simulate_options *o = target;
    if (o->soc == NULL || (o->common.model != NULL) == (o->preset != NULL)) {
        st_cli_error(command->name, "%s",
                     o->soc == NULL ? "--soc NAME is missing"
                                    : "give either a MODEL or --shape NAME");
        return ST_CLI_USAGE;
    }
    struct simulate s = {.command = command, .options = o};
    stint_model *model = o->preset ? NULL : st_cli_open_model(command, &o->common, NULL, NULL);
    json_t *prefill = json_array(), *decode = NULL;
    s.model = model;
    bool ok = (o->preset || model) && (strcmp(o->soc, "host") != 0 || describe_host(&s)) &&
              run_all(&s, prefill, &decode);
    if (ok && o->common.json)
        ok = st_cli_print_json(command->name,
                               json_pack("{s:s, s:s, s:b, s:O, s:O}", "soc", o->soc, "model",
                                         o->preset ? o->preset : o->common.model, "modelled", true,
                                         "prefill", prefill, "decode", decode));
    json_decref(prefill);
    json_decref(decode);
    stint_model_close(model);
    return ok ? ST_CLI_DONE : ST_CLI_FAILED;
}

const struct st_cli_command st_cli_simulate_command = {
    .name = "simulate",
    .summary = "predict how a model would run on another machine",
    .operand = "[MODEL]",
    .about =
        "Runs a prompt's subgraphs in virtual time, over the few numbers that describe a system "
        "on a chip. Every figure is a prediction: share/soc gives the source of each number.",
    .example = "stint simulate --soc sd8gen3 --shape qwen1.5-1.8b -p 1024 --trace gen3.svg",
    .common = ST_CLI_COMMON_CHUNK | ST_CLI_COMMON_ORDER | ST_CLI_COMMON_TRACE |
              ST_CLI_COMMON_VERBOSE | ST_CLI_COMMON_JSON,
    .options = rows,
    .options_bytes = sizeof(struct simulate_options),
    .run = run};
