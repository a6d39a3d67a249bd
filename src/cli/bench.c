// SPDX-License-Identifier: Apache-2.0
// stint bench: prefill and decode speed beside the limits of this machine, measured in the same
// run. Figures are medians after a warm-up; slow cases are repeated less often.
#include "cli/ablation.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MAX_BATCH = STINT_MAX_STEP_ROWS,
    DECODE_PROMPT = 16,
    STEPS_PER_READ = 8, // after this many steps the weights are only read, for comparison
    REPS_MAX = 100,
    REPS_DEFAULT = 5,
    ROOFLINE_ROUNDS = 3
};
// Without --reps no case is repeated after this many seconds.
static const double case_seconds = 6;
static const double roofline_seconds = 0.2; // for each figure in each round

struct bench_options {
    struct st_cli_common common;
    const char *preset;
    struct st_cli_uints prompts;
    uint32_t n_tokens, n_reps, batch, depth;
    bool ablation;
    struct st_cli_uints bits;
};

static const struct st_cli_option rows[] = {
    {.name = "shape",
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .help = "a preset (random weights of a known shape) instead of MODEL; 'list' names them",
     .offset = offsetof(struct bench_options, preset)},
    {.name = "prompt-tokens",
     .letter = 'p',
     .kind = ST_CLI_UINTS,
     .value = "N,N",
     .preset = "64,256,1024",
     .min = 1,
     .max = 1 << 20,
     .help = "prompt lengths",
     .offset = offsetof(struct bench_options, prompts)},
    {.name = "tokens",
     .letter = 'n',
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "64",
     .max = 1 << 20,
     .help = "tokens to decode; 0: none",
     .offset = offsetof(struct bench_options, n_tokens)},
    {.name = "reps",
     .letter = 'r',
     .kind = ST_CLI_UINT,
     .value = "N",
     .min = 1,
     .max = REPS_MAX,
     .help = "repetitions of each case and, up to 3, of the machine's own speed; without it up to "
             "5 of a case, fewer of slow ones",
     .offset = offsetof(struct bench_options, n_reps)},
    {.name = "bits",
     .kind = ST_CLI_UINTS,
     .value = "B,B",
     .min = 2,
     .max = 8,
     .help = "decode at these precisions; a preset gets random nested weights for them",
     .offset = offsetof(struct bench_options, bits)},
    {.name = "batch",
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "1",
     .min = 1,
     .max = MAX_BATCH,
     .help = "decode N sequences at once, with one reading of the weights",
     .offset = offsetof(struct bench_options, batch)},
    {.name = "depth",
     .kind = ST_CLI_UINT,
     .value = "N",
     .max = 1 << 20,
     .help = "time each case behind a text of N tokens; without it prompts are timed behind none, "
             "decoding behind 16",
     .offset = offsetof(struct bench_options, depth)},
    {.name = "ablation",
     .kind = ST_CLI_FLAG,
     .help =
         "instead measure what chunk sharing and out-of-order subgraphs add on this machine; with "
         "--memory, what bundles, cache, pipeline and hot clusters of neurons do",
     .offset = offsetof(struct bench_options, ablation)},
    {.name = NULL}};

struct bench {
    const struct st_cli_command *command;
    const struct bench_options *options;
    stint_model *model;
    stint_session *session;
    struct st_bench_figures figures;
    int32_t *ids;
    float *logits;
    struct st_cli_progress progress;
    uint64_t cases_done, cases;
};

static uint32_t thread_count(const struct bench_options *options) {
    cpu_set_t set;
    if (options->common.n_threads != 0) return options->common.n_threads;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

// Leaves a sequence with the first n tokens. The last of them are computed each time: what a cut
// makes a recurrent model compute again is then not in the time of the case.
static stint_status begin(struct bench *bench, uint32_t sequence, uint32_t n) {
    size_t held = stint_session_length(bench->session, sequence);
    size_t kept = n > DECODE_PROMPT ? n - DECODE_PROMPT : 0;
    if (kept > held) kept = held;
    stint_status status = stint_session_truncate(bench->session, sequence, kept);
    if (status != STINT_OK || kept == n) return status;
    return stint_session_eval(bench->session, sequence, bench->ids + kept, n - kept, false,
                              bench->logits);
}

// Decodes the next token of every sequence.
static stint_status step(struct bench *bench, const int32_t *ids) {
    uint32_t sequences[MAX_BATCH], batch = bench->options->batch;
    if (batch == 1) return stint_session_eval(bench->session, 0, ids, 1, false, bench->logits);
    for (uint32_t i = 0; i < batch; i++) sequences[i] = i;
    return stint_session_step(bench->session, sequences, ids, batch, bench->logits);
}

struct timing {
    double seconds, read_rate;
    uint32_t depth; // tokens that a sequence held before
};

// Times steps and, between them, the reading of their weights, since the speed of memory varies.
static stint_status decode(struct bench *bench, const int32_t *ids, uint32_t n, double *seconds,
                           stint_read_rate *reads) {
    for (uint32_t i = 0; i < n; i++, ids += bench->options->batch) {
        stint_read_rate read = {.size = sizeof read};
        double begun = st_cli_seconds();
        stint_status status = step(bench, ids);
        *seconds += st_cli_seconds() - begun;
        bool due = i % STEPS_PER_READ == STEPS_PER_READ - 1 || i + 1 == n;
        if (status == STINT_OK && due && bench->options->common.memory == 0)
            status = stint_session_read_rate(bench->session, &read);
        if (status != STINT_OK) return status;
        reads->bytes += read.bytes;
        reads->seconds += read.seconds;
    }
    return STINT_OK;
}

// The tokens that sequences hold before they decode.
static uint32_t decode_depth(const struct bench_options *options) {
    return options->depth > 0 ? options->depth : DECODE_PROMPT;
}

// One pass: the whole prompt at once, or steps.
static stint_status pass(struct bench *bench, uint32_t n_prompt, uint32_t n_decode,
                         struct timing *timing) {
    const struct bench_options *options = bench->options;
    uint32_t batch = n_decode > 0 ? options->batch : 1;
    uint32_t depth = n_decode > 0 ? decode_depth(options) : options->depth;
    const int32_t *ids = bench->ids + depth;
    stint_read_rate reads = {0};
    stint_status status = STINT_OK;
    for (uint32_t i = 0; status == STINT_OK && i < batch; i++) status = begin(bench, i, depth);
    timing->depth = (uint32_t)stint_session_length(bench->session, 0);
    double begun = st_cli_seconds();
    if (status == STINT_OK && n_prompt > 0)
        status = stint_session_eval(bench->session, 0, ids, n_prompt, false, bench->logits);
    timing->seconds = n_prompt > 0 ? st_cli_seconds() - begun : 0;
    if (status == STINT_OK) status = decode(bench, ids, n_decode, &timing->seconds, &reads);
    timing->read_rate = reads.seconds > 0 ? (double)reads.bytes / reads.seconds : 0;
    return status;
}

// Runs passes after a warm-up of caches and pages. Returns their number; 0 with the error printed.
static size_t measure(struct bench *bench, uint32_t n_prompt, uint32_t n_decode,
                      struct timing timings[REPS_MAX]) {
    uint32_t n_reps = bench->options->n_reps != 0 ? bench->options->n_reps : REPS_DEFAULT;
    double begun = st_cli_seconds();
    stint_status status = pass(bench, n_prompt, n_decode, timings);
    size_t n = 0;
    while (status == STINT_OK && n < n_reps) {
        status = pass(bench, n_prompt, n_decode, &timings[n++]);
        if (bench->options->n_reps == 0 && st_cli_seconds() - begun > case_seconds) break;
    }
    if (status != STINT_OK) return st_cli_failed_with(bench->command, bench->figures.name), 0;
    st_cli_progress_show(&bench->progress, "bench", ++bench->cases_done, bench->cases);
    return n;
}

static bool measure_prefill(struct bench *bench, struct st_bench_prefill *prefill) {
    struct timing timings[REPS_MAX];
    double seconds[REPS_MAX];
    size_t n = measure(bench, prefill->n_tokens, 0, timings);
    if (n == 0) return false;
    for (size_t i = 0; i < n; i++) seconds[i] = timings[i].seconds;
    prefill->seconds = st_cli_median(seconds, n);
    prefill->depth = timings[0].depth;
    prefill->schedule = st_cli_schedule(bench->session);
    return true;
}

// Each share comes from one pass, whose steps and reads ran at the same time.
static bool measure_decode(struct bench *bench, struct st_bench_decode *decode) {
    struct timing timings[REPS_MAX];
    double seconds[REPS_MAX], rates[REPS_MAX], shares[REPS_MAX];
    uint32_t n_tokens = bench->options->n_tokens;
    size_t n = measure(bench, 0, n_tokens, timings);
    if (n == 0) return false;
    for (size_t i = 0; i < n; i++) {
        double rate = (double)decode->bytes * n_tokens / timings[i].seconds;
        seconds[i] = timings[i].seconds;
        rates[i] = timings[i].read_rate;
        shares[i] = rates[i] > 0 ? rate / rates[i] : 0;
    }
    decode->depth = timings[0].depth;
    decode->seconds = st_cli_median(seconds, n);
    decode->read_rate = st_cli_median(rates, n);
    decode->share = st_cli_median(shares, n);
    return true;
}

// The precisions to decode at; without --bits the precision of the weights.
static size_t decode_cases(const struct bench *bench) {
    if (bench->options->n_tokens == 0) return 0;
    return bench->options->bits.count ? bench->options->bits.count : 1;
}

static uint64_t decode_bytes(const struct bench *bench, size_t i) {
    bool given = bench->options->bits.count > 0;
    return given ? stint_model_bytes_per_token(bench->model, bench->options->bits.values[i])
                 : bench->figures.info.bytes_per_decoded_token;
}

static uint32_t weight_bits(const struct bench *bench, size_t i) {
    if (bench->options->bits.count > 0) return bench->options->bits.values[i];
    static const struct {
        const char *type;
        uint32_t bits;
    } widths[] = {{"f32", 32}, {"f16", 16}, {"bf16", 16}, {"int8", 8}, {"q8_0", 8},
                  {"q6_k", 6}, {"q5_0", 5}, {"q5_1", 5},  {"q5_k", 5}, {"q4_0", 4},
                  {"q4_1", 4}, {"q4_k", 4}, {"q3_k", 3},  {"q2_k", 2}, {"mxfp4", 4}};
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
        if (strcasecmp(widths[w].type, bench->figures.info.weight_type) == 0) return widths[w].bits;
    return 32;
}

static uint32_t longest_case(const struct bench_options *options) {
    uint32_t max_tokens =
        options->n_tokens > 0 ? decode_depth(options) + options->n_tokens * options->batch : 0;
    for (size_t i = 0; i < options->prompts.count; i++)
        if (options->depth + options->prompts.values[i] > max_tokens)
            max_tokens = options->depth + options->prompts.values[i];
    return max_tokens;
}

// Token ids that behave like text in caches: spread over the vocabulary, the same in every run.
static void fill_ids(struct bench *bench, size_t n) {
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bench->ids[i] = (int32_t)((state >> 33) % bench->figures.info.vocab);
    }
}

// The limit of a machine is the best measurement, since other work can only slow it down.
static bool measure_roofline(struct bench *bench) {
    stint_roofline *best = &bench->figures.roofline;
    uint32_t n_reps = bench->options->n_reps, n = ROOFLINE_ROUNDS;
    if (n_reps != 0 && n_reps < n) n = n_reps;
    for (uint32_t round = 0; round < n; round++) {
        stint_roofline now = {.size = sizeof now};
        if (stint_roofline_measure(bench->options->common.n_threads, roofline_seconds, &now) !=
            STINT_OK) {
            st_cli_failed(bench->command);
            return false;
        }
        best->int8_ops_per_second = fmax(best->int8_ops_per_second, now.int8_ops_per_second);
        best->int16_ops_per_second = fmax(best->int16_ops_per_second, now.int16_ops_per_second);
        best->bf16_flops_per_second = fmax(best->bf16_flops_per_second, now.bf16_flops_per_second);
        best->float_flops_per_second =
            fmax(best->float_flops_per_second, now.float_flops_per_second);
        best->bytes_per_second = fmax(best->bytes_per_second, now.bytes_per_second);
    }
    return true;
}

static bool open_session(struct bench *bench, const char *schedule) {
    stint_session_options options = st_cli_session_options(&bench->options->common);
    options.n_context = longest_case(bench->options);
    options.n_sequences = bench->options->batch;
    if (schedule != NULL) options.schedule = schedule;
    st_cli_interrupt_watch(NULL);
    stint_session_close(bench->session);
    bench->session = NULL;
    if (stint_session_open(bench->model, &options, &bench->session) != STINT_OK) {
        st_cli_failed(bench->command);
        return false;
    }
    st_cli_interrupt_watch(bench->session);
    return true;
}

enum { UNIFORM_BYTES = 32 };

// The schedule of the i-th precision; NULL: none was given.
static const char *uniform(const struct bench *bench, size_t i, char text[UNIFORM_BYTES]) {
    if (bench->options->bits.count == 0) return NULL;
    snprintf(text, UNIFORM_BYTES, "uniform:%u", bench->options->bits.values[i]);
    return text;
}

// With bounded memory a session is planned for its precision schedule.
static bool set_precision(struct bench *bench, size_t i) {
    uint32_t bits = bench->figures.decodes[i].bits;
    stint_precision precision = {.size = sizeof precision, .prefill = bits, .n_steps = 1};
    precision.steps[0].bits = bits;
    if (bench->options->bits.count == 0) return true;
    if (bench->options->common.memory != 0) {
        char schedule[UNIFORM_BYTES];
        return open_session(bench, uniform(bench, i, schedule));
    }
    if (stint_session_set_precision(bench->session, &precision) == STINT_OK) return true;
    st_cli_failed_with(bench->command, bench->figures.name);
    return false;
}

static void plan(struct bench *bench) {
    const struct bench_options *o = bench->options;
    struct st_bench_figures *f = &bench->figures;
    f->n_threads = thread_count(o);
    f->n_tokens = o->n_tokens;
    f->batch = o->batch;
    f->depth = o->depth;
    f->bounded = o->common.memory != 0;
    f->n_prefills = o->prompts.count;
    f->n_decodes = decode_cases(bench);
    for (size_t i = 0; i < f->n_prefills; i++) f->prefills[i].n_tokens = o->prompts.values[i];
    for (size_t i = 0; i < f->n_decodes; i++) {
        f->decodes[i].bits = weight_bits(bench, i);
        f->decodes[i].bytes = decode_bytes(bench, i);
    }
}

// The peak is read before the roofline runs, whose buffers are larger than many models.
static bool measure_all(struct bench *bench) {
    const struct bench_options *options = bench->options;
    plan(bench);
    bench->cases = bench->figures.n_prefills + bench->figures.n_decodes + 1;
    st_cli_progress_show(&bench->progress, "bench", 0, bench->cases);
    struct st_bench_figures *f = &bench->figures;
    bool ok = true;
    for (size_t i = 0; ok && i < f->n_prefills; i++) ok = measure_prefill(bench, &f->prefills[i]);
    ok = ok && st_cli_trace(bench->command, &options->common, bench->session);
    for (size_t i = 0; ok && i < f->n_decodes; i++)
        ok = set_precision(bench, i) && measure_decode(bench, &f->decodes[i]);
    st_cli_interrupt_watch(NULL);
    f->session = bench->session;
    f->peak_bytes = stint_peak_rss_bytes();
    // Its buffers would exceed a memory bound.
    if (options->common.memory == 0) ok = ok && measure_roofline(bench);
    st_cli_progress_end(&bench->progress);
    return ok;
}

static bool make_room(struct bench *bench) {
    uint32_t max_tokens = longest_case(bench->options);
    bench->ids = malloc((size_t)max_tokens * sizeof *bench->ids);
    bench->logits =
        malloc((size_t)bench->figures.info.vocab * bench->options->batch * sizeof *bench->logits);
    if (bench->ids == NULL || bench->logits == NULL) {
        st_cli_error(bench->command->name, "not enough memory");
        return false;
    }
    fill_ids(bench, max_tokens);
    return true;
}

static bool run_ablation(struct bench *bench) {
    const struct bench_options *o = bench->options;
    bool bounded = o->common.memory != 0, ok = true;
    uint32_t n = o->n_tokens ? o->n_tokens : 16, n_reps = o->n_reps ? o->n_reps : 1;
    size_t n_ids = bounded ? st_cli_memory_ablation_ids(n, n_reps) : longest_case(o);
    char schedule[UNIFORM_BYTES];
    json_t *table = o->common.json ? json_array() : NULL;
    bench->ids = malloc(n_ids * sizeof *bench->ids);
    if (bench->ids == NULL) return st_cli_error(bench->command->name, "not enough memory"), false;
    fill_ids(bench, n_ids);
    if (bounded)
        ok = st_cli_memory_ablation(bench->command, &o->common, uniform(bench, 0, schedule),
                                    bench->model, bench->ids, n, n_reps, table);
    for (size_t i = 0; ok && !bounded && i < o->prompts.count; i++)
        ok = st_cli_ablation(bench->command, &o->common, bench->model, bench->ids,
                             o->prompts.values[i], o->n_reps ? o->n_reps : 3, table);
    if (ok && table != NULL)
        return st_cli_print_json(
            bench->command->name,
            json_pack("{s:s, s:o}", "model", bench->figures.name, "ablation", table));
    json_decref(table);
    return ok;
}

static int list_presets(void) {
    const char *name;
    for (size_t i = 0; (name = stint_preset_name(i)) != NULL; i++) printf("%s\n", name);
    return ST_CLI_DONE;
}

static int run(const struct st_cli_command *command, void *target) {
    const struct bench_options *options = target;
    if ((options->common.model != NULL) == (options->preset != NULL)) {
        st_cli_error(command->name, "give either a MODEL or --shape NAME");
        return ST_CLI_USAGE;
    }
    if (options->preset != NULL && strcmp(options->preset, "list") == 0) return list_presets();
    if (options->ablation && options->depth > 0) {
        st_cli_error(command->name, "--ablation compares whole prompts: leave out --depth");
        return ST_CLI_USAGE;
    }
    struct bench bench = {
        .command = command,
        .options = options,
        .figures = {.name = options->preset != NULL ? options->preset : options->common.model,
                    .info = {.size = sizeof bench.figures.info},
                    .roofline = {.size = sizeof bench.figures.roofline}}};
    struct st_bench_figures *f = &bench.figures;
    bench.model = st_cli_open_model(command, &options->common, options->preset, &options->bits);
    int status = ST_CLI_FAILED;
    bool opened = bench.model != NULL && stint_model_describe(bench.model, &f->info) == STINT_OK;
    if (opened && options->ablation) {
        status = run_ablation(&bench) ? ST_CLI_DONE : ST_CLI_FAILED;
    } else if (opened && make_room(&bench) && open_session(&bench, NULL) && measure_all(&bench)) {
        status = ST_CLI_DONE;
        if (!options->common.json)
            st_bench_print_table(f);
        else if (!st_bench_print_object(command->name, f))
            status = ST_CLI_FAILED;
    }
    for (size_t i = 0; i < f->n_prefills; i++) json_decref(f->prefills[i].schedule);
    free(bench.ids);
    free(bench.logits);
    stint_session_close(bench.session);
    stint_model_close(bench.model);
    return status;
}

const struct st_cli_command st_cli_bench_command = {
    .name = "bench",
    .summary = "measure speed, and the limits of this machine",
    .operand = "[MODEL]",
    .about = "Times prefill at several prompt lengths and decoding with random tokens. It also "
             "measures the machine's arithmetic, and how fast the weights of a step can be read. "
             "--shape sizes a device for a known model without a download.",
    .example = "stint bench --shape qwen1.5-1.8b -p 256 -n 32",
    .common =
        (ST_CLI_COMMON_SESSION & ~ST_CLI_COMMON_CONTEXT) | ST_CLI_COMMON_JSON | ST_CLI_COMMON_TRACE,
    .options = rows,
    .options_bytes = sizeof(struct bench_options),
    .run = run};
