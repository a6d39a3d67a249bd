// SPDX-License-Identifier: Apache-2.0
// stint schedule: finds, trains, shows and compares precision schedules of a package.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct schedule_options {
    struct st_cli_common common;
    const char *data, *metric, *output, *schedules;
    uint32_t limit, n_tokens, n_candidates, high, low, epochs;
    float epsilon;
    uint64_t seed;
};

static const struct st_cli_option rows[] = {
    {.name = "data",
     .letter = 'd',
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help = "solve, compare: prompts and references, JSONL as for 'stint eval -t generate'; "
             "train: a text",
     .offset = offsetof(struct schedule_options, data)},
    {.name = "metric",
     .letter = 'm',
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .preset = "rouge-l",
     .help = "rouge-l, bleu, token-f1, or agreement: ROUGE-L with the model's own output in INT8",
     .offset = offsetof(struct schedule_options, metric)},
    {.name = "output",
     .letter = 'o',
     .kind = ST_CLI_TEXT,
     .value = "FILE",
     .help = "solve, train: write the schedule here, for --schedule of other commands",
     .offset = offsetof(struct schedule_options, output)},
    {.name = "epsilon",
     .kind = ST_CLI_FLOAT,
     .value = "E",
     .preset = "0.01",
     .min = 1e-6,
     .max = 1,
     .help = "solve: acceptable loss of quality, as a share of INT8's",
     .offset = offsetof(struct schedule_options, epsilon)},
    {.name = "candidates",
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "4",
     .min = 2,
     .max = 8,
     .help = "steps at which a precision may begin, from the first to the end",
     .offset = offsetof(struct schedule_options, n_candidates)},
    {.name = "tokens",
     .letter = 'n',
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "64",
     .min = 2,
     .max = 4096,
     .help = "longest answer",
     .offset = offsetof(struct schedule_options, n_tokens)},
    {.name = "limit",
     .kind = ST_CLI_UINT,
     .value = "N",
     .max = 1 << 20,
     .help = "number of prompts from the file; train: number of samples, without it 256",
     .offset = offsetof(struct schedule_options, limit)},
    {.name = "schedules",
     .letter = 's',
     .kind = ST_CLI_TEXT,
     .value = "FILE,FILE",
     .help = "compare: these",
     .offset = offsetof(struct schedule_options, schedules)},
    {.name = "high",
     .kind = ST_CLI_UINT,
     .value = "B",
     .min = 2,
     .max = 8,
     .help = "train, compare: the first precision; without it the package's highest",
     .offset = offsetof(struct schedule_options, high)},
    {.name = "low",
     .kind = ST_CLI_UINT,
     .value = "B",
     .min = 2,
     .max = 8,
     .help = "train, compare: the lower precision; without it the next lower one",
     .offset = offsetof(struct schedule_options, low)},
    {.name = "epochs",
     .kind = ST_CLI_UINT,
     .value = "N",
     .preset = "30",
     .min = 1,
     .max = 10000,
     .help = "train: passes over the samples",
     .offset = offsetof(struct schedule_options, epochs)},
    {.name = "seed",
     .kind = ST_CLI_UINT64,
     .value = "N",
     .preset = "0",
     .help = "train, compare: the same seed gives the same result",
     .offset = offsetof(struct schedule_options, seed)},
    {.name = NULL}};

struct watcher {
    struct st_cli_progress progress;
    json_t *curve; // NULL: print a table
    bool titled;
};

static bool canceled(void *context) {
    (void)context;
    return st_cli_interrupted(NULL);
}

static void show_progress(void *context, const char *what, uint64_t done, uint64_t total) {
    struct watcher *w = context;
    st_cli_progress_show(&w->progress, what, done, total);
}

static json_t *describe(const stint_precision *p) {
    if (p->n_steps == 0) return json_null();
    json_t *decode = json_array();
    for (uint32_t i = 0; i < p->n_steps; i++)
        json_array_append_new(decode, json_pack("[I, I]", (json_int_t)p->steps[i].bits,
                                                (json_int_t)p->steps[i].start));
    return json_pack("{s:I, s:o}", "prefill", (json_int_t)p->prefill, "decode", decode);
}

// "8 | 4, 3 from 21": the bits of the prompt, then those of the steps.
enum { PRECISION_TEXT = 128 };
static const char *precision_text(const stint_precision *p, char text[PRECISION_TEXT]) {
    int n = 0;
    text[0] = '\0';
    if (p->n_steps == 0) return "";
    n += snprintf(text, PRECISION_TEXT, "%u | %u", p->prefill, p->steps[0].bits);
    for (uint32_t i = 1; i < p->n_steps; i++)
        n += snprintf(text + n, (size_t)(PRECISION_TEXT - n), ", %u from %u", p->steps[i].bits,
                      p->steps[i].start);
    return text;
}

static void take_point(void *context, const stint_schedule_point *point) {
    struct watcher *w = context;
    char text[PRECISION_TEXT];
    if (w->curve != NULL) {
        json_array_append_new(w->curve,
                              json_pack("{s:s, s:o, s:f, s:f, s:I}", "name", point->name,
                                        "schedule", describe(&point->precision), "quality",
                                        point->quality, "average_bits", point->average_bits,
                                        "items", (json_int_t)point->items));
        return;
    }
    st_cli_progress_end(&w->progress);
    if (!w->titled)
        printf("%-24s %-32s %8s %8s\n", "", "bits: prompt | steps", "average", "quality");
    w->titled = true;
    printf("%-24s %-32s %8.3f %8.4f  %llu items\n", point->name,
           precision_text(&point->precision, text), point->average_bits, point->quality,
           (unsigned long long)point->items);
}

// Splits --schedules at its commas, in place.
static size_t split(char *list, const char **names, size_t max) {
    size_t n = 0;
    for (char *name = list, *end; name != NULL && *name != 0 && n < max; name = end) {
        end = strchr(name, ',');
        if (end != NULL) *end++ = '\0';
        names[n++] = name;
    }
    return n;
}

typedef stint_status schedule_fn(const stint_model *model, const stint_schedule_options *options,
                                 stint_schedule_result *result);

static int report(const struct st_cli_command *command, const char *action,
                  const struct schedule_options *o, const stint_schedule_result *r, json_t *curve) {
    char text[PRECISION_TEXT];
    bool train = strcmp(action, "train") == 0, solve = strcmp(action, "solve") == 0;
    if (curve != NULL) {
        json_t *object =
            json_pack("{s:o, s:f, s:f, s:f, s:I, s:o, s:f, s:f, s:f, s:f}", "schedule",
                      describe(&r->selected), "quality", r->quality, "reference", r->reference,
                      "average_bits", r->average_bits, "items", (json_int_t)r->items, "curve",
                      curve, "training_accuracy", r->training_accuracy, "validation_accuracy",
                      r->validation_accuracy, "majority", r->majority, "seconds", r->seconds);
        return st_cli_print_json(command->name, object) ? ST_CLI_DONE : ST_CLI_FAILED;
    }
    if (solve)
        fprintf(stderr, "%s: %.3f bits on average, quality %.4f of %.4f (%+.2f %%), %.1f s\n",
                precision_text(&r->selected, text), r->average_bits, r->quality, r->reference,
                r->reference > 0 ? 100 * (r->quality / r->reference - 1) : 0.0, r->seconds);
    if (train)
        fprintf(stderr,
                "%llu samples: %.1f %% right, %.1f %% of the held-out ones; the most frequent "
                "choice has %.1f %%; %.1f s\n",
                (unsigned long long)r->items, 100 * r->training_accuracy,
                100 * r->validation_accuracy, 100 * r->majority, r->seconds);
    if (o->output != NULL && (solve || train)) fprintf(stderr, "%s\n", o->output);
    return ST_CLI_DONE;
}

static int call(const struct st_cli_command *command, const char *action, schedule_fn *fn,
                const struct schedule_options *o) {
    const char *names[16];
    char *list = o->schedules != NULL ? strdup(o->schedules) : NULL;
    stint_model *model = st_cli_open_model(command, &o->common, NULL, NULL);
    stint_session_options session = st_cli_session_options(&o->common);
    struct watcher w = {.curve = o->common.json ? json_array() : NULL};
    stint_schedule_options options = {.size = sizeof options,
                                      .data = o->data,
                                      .metric = o->metric,
                                      .limit = o->limit,
                                      .n_tokens = o->n_tokens,
                                      .n_candidates = o->n_candidates,
                                      .epsilon = (double)o->epsilon,
                                      .high = o->high,
                                      .low = o->low,
                                      .seed = o->seed,
                                      .epochs = o->epochs,
                                      .schedules = names,
                                      .n_schedules = split(list, names, 16),
                                      .output = o->output,
                                      .session = &session,
                                      .progress = show_progress,
                                      .point = take_point,
                                      .canceled = canceled,
                                      .context = &w};
    stint_schedule_result result = {.size = sizeof result};
    int status = ST_CLI_FAILED;
    st_cli_interrupt_note();
    bool ok = model != NULL && fn(model, &options, &result) == STINT_OK;
    st_cli_interrupt_watch(NULL);
    st_cli_progress_end(&w.progress);
    if (ok)
        status = report(command, action, o, &result, w.curve);
    else if (model != NULL)
        st_cli_failed(command);
    if (!ok) json_decref(w.curve);
    free(list);
    stint_model_close(model);
    return status;
}

// Prints the contents of a schedule file, given as --schedules.
static int show(const struct st_cli_command *command, const struct schedule_options *o) {
    stint_model *model = st_cli_open_model(command, &o->common, NULL, NULL);
    stint_session_options options = st_cli_session_options(&o->common);
    stint_session *session = NULL;
    char text[PRECISION_TEXT];
    options.schedule = o->schedules;
    options.n_context = 16;
    bool ok = model != NULL && stint_session_open(model, &options, &session) == STINT_OK;
    if (!ok && model != NULL) st_cli_failed(command);
    stint_precision precision = {.size = sizeof precision};
    bool learned = ok && stint_session_precision(session, &precision);
    if (ok && o->common.json)
        ok = st_cli_print_json(command->name, json_pack("{s:o, s:b}", "schedule",
                                                        describe(&precision), "learned", learned));
    else if (ok && learned)
        printf("learned: selects after each prompt\n");
    else if (ok)
        printf("%s\n", precision_text(&precision, text));
    stint_session_close(session);
    stint_model_close(model);
    return ok ? ST_CLI_DONE : ST_CLI_FAILED;
}

static int run(const struct st_cli_command *command, void *target) {
    static const struct {
        const char *name;
        schedule_fn *fn;
    } actions[] = {{"solve", stint_schedule_solve},
                   {"train", stint_schedule_train},
                   {"compare", stint_schedule_compare}};
    const struct schedule_options *o = target;
    const char *action = o->common.action;
    if (strcmp(action, "show") == 0 && o->schedules == NULL) {
        st_cli_error(command->name, "show: --schedules FILE is missing");
        return ST_CLI_USAGE;
    }
    if (strcmp(action, "show") == 0) return show(command, o);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(action, actions[i].name) != 0) continue;
        if (o->data != NULL) return call(command, action, actions[i].fn, o);
        st_cli_error(command->name, "%s: --data FILE is missing", action);
        return ST_CLI_USAGE;
    }
    st_cli_error(command->name, "'%s' is not one of solve, train, compare, show", action);
    return ST_CLI_USAGE;
}

const struct st_cli_command st_cli_schedule_command = {
    .name = "schedule",
    .summary = "find, train and compare precision schedules",
    .operand = "MODEL",
    .action = "solve|train|compare|show",
    .about =
        "Decoding reads the weights for every token, so fewer bits are faster. solve "
        "searches the schedule with the fewest bits that preserves quality on prompts with "
        "references; train makes one that depends on each prompt, from any text; compare sets "
        "schedules beside each other and beside simpler methods. MODEL is a package with nested "
        "weights, as 'stint prepare' makes them.",
    .example = "stint schedule novels.stint solve -d prompts.jsonl -m agreement -o fast.json",
    .common = ST_CLI_COMMON_DEVICE | ST_CLI_COMMON_THREADS | ST_CLI_COMMON_KV |
              ST_CLI_COMMON_VERBOSE | ST_CLI_COMMON_JSON,
    .options = rows,
    .options_bytes = sizeof(struct schedule_options),
    .run = run};
