// SPDX-License-Identifier: Apache-2.0
// stint schedule: finds, trains, shows and compares precision schedules of a package.
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/reference.h"
#include "cli/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct schedule_options {
    struct st_cli_common common;
    const char *data, *metric, *output, *schedules, *reference, *minimize, *times, *signal;
    bool chat, only;
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
     .help = "rouge-l, bleu, token-f1; agreement: ROUGE-L with the reference's own output; or kl: "
             "divergence from the reference behind its output, less is better",
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
     .help = "solve: acceptable loss of quality, as a share of the reference's; for kl the "
             "divergence",
     .offset = offsetof(struct schedule_options, epsilon)},
    {.name = "reference",
     .kind = ST_CLI_TEXT,
     .value = "MODEL",
     .help =
         "solve, compare: the model whose quality counts, e.g. the checkpoint of the package in "
         "float; without it the package in INT8",
     .offset = offsetof(struct schedule_options, reference)},
    {.name = "minimize",
     .kind = ST_CLI_TEXT,
     .value = "WHAT",
     .preset = "time",
     .help = "solve: time, of an answer and its prompt; or bits, of a step",
     .offset = offsetof(struct schedule_options, minimize)},
    {.name = "times",
     .kind = ST_CLI_TEXT,
     .value = "BITS:MS:MS,...",
     .help = "solve: milliseconds of a prompt's token and of a step at each precision, on the "
             "machine that counts; without it they are measured here",
     .offset = offsetof(struct schedule_options, times)},
    {.name = "signal",
     .kind = ST_CLI_TEXT,
     .value = "NAME",
     .preset = "none",
     .help = "solve: instead of steps find thresholds for each token, of the entropy or the margin "
             "of the logits before it",
     .offset = offsetof(struct schedule_options, signal)},
    {.name = "chat",
     .kind = ST_CLI_FLAG,
     .help = "solve, compare: prompts are what a user says, in the model's chat format",
     .offset = offsetof(struct schedule_options, chat)},
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
    {.name = "only",
     .kind = ST_CLI_FLAG,
     .help = "compare: nothing beside --schedules",
     .offset = offsetof(struct schedule_options, only)},
    {.name = "high",
     .kind = ST_CLI_UINT,
     .value = "B",
     .min = 2,
     .max = 8,
     .help = "train, compare: the first precision, without it the package's highest; solve: the "
             "steps begin at this one, without it at the cheapest that is good enough",
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
    json_t *schedule = json_pack("{s:I, s:o}", "prefill", (json_int_t)p->prefill, "decode", decode);
    if (p->signal == STINT_SIGNAL_NONE) return schedule;
    json_t *thresholds = json_array();
    for (uint32_t i = 0; i + 1 < p->n_steps; i++)
        json_array_append_new(thresholds, json_real((double)p->thresholds[i]));
    json_object_set_new(schedule, "signal", json_string(stint_signal_name(p->signal)));
    json_object_set_new(schedule, "thresholds", thresholds);
    return schedule;
}

// "8 | 4, 3 from 21": the bits of the prompt, then those of the steps. "8 | 4, 3 below entropy
// 1.2".
enum { PRECISION_TEXT = 128 };
static const char *precision_text(const stint_precision *p, char text[PRECISION_TEXT]) {
    int n = 0;
    text[0] = '\0';
    if (p->n_steps == 0) return "";
    n += snprintf(text, PRECISION_TEXT, "%u | %u", p->prefill, p->steps[0].bits);
    for (uint32_t i = 1; i < p->n_steps && n < PRECISION_TEXT; i++) {
        size_t room = (size_t)(PRECISION_TEXT - n);
        if (p->signal == STINT_SIGNAL_NONE)
            n += snprintf(text + n, room, ", %u from %u", p->steps[i].bits, p->steps[i].start);
        else
            n += snprintf(text + n, room, ", %u below %s %.3g", p->steps[i].bits,
                          stint_signal_name(p->signal), (double)p->thresholds[i - 1]);
    }
    return text;
}

static void add_list(json_t *object, const char *key, const double *values, uint64_t n) {
    if (values == NULL) return;
    json_t *list = json_array();
    for (uint64_t i = 0; i < n; i++) json_array_append_new(list, json_real(values[i]));
    json_object_set_new(object, key, list);
}

// For each prompt the number of steps at 0 to 8 bits.
static void add_steps(json_t *object, const uint32_t *steps, uint64_t n) {
    if (steps == NULL) return;
    json_t *list = json_array();
    for (uint64_t i = 0; i < n; i++) {
        json_t *counts = json_array();
        for (unsigned bits = 0; bits <= 8; bits++)
            json_array_append_new(counts, json_integer(steps[9 * i + bits]));
        json_array_append_new(list, counts);
    }
    json_object_set_new(object, "steps", list);
}

static void take_point(void *context, const stint_schedule_point *point) {
    struct watcher *w = context;
    char text[PRECISION_TEXT];
    if (w->curve != NULL) {
        json_t *object =
            json_pack("{s:s, s:o, s:f, s:f, s:f, s:f, s:I}", "name", point->name, "schedule",
                      describe(&point->precision), "quality", point->quality, "error", point->error,
                      "average_bits", point->average_bits, "seconds", point->seconds, "items",
                      (json_int_t)point->items);
        add_list(object, "scores", point->scores, point->items);
        add_list(object, "bits", point->bits, point->items);
        add_steps(object, point->steps, point->items);
        json_array_append_new(w->curve, object);
        return;
    }
    st_cli_progress_end(&w->progress);
    if (!w->titled)
        printf("%-24s %-32s %8s %8s %8s %10s\n", "", "bits: prompt | steps", "average", "quality",
               "+-", "ms");
    w->titled = true;
    printf("%-24s %-32s %8.3f %8.4f %8.4f %10.1f  %llu items\n", point->name,
           precision_text(&point->precision, text), point->average_bits, point->quality,
           point->error, 1e3 * point->seconds, (unsigned long long)point->items);
}

typedef stint_status schedule_fn(const stint_model *model, const stint_schedule_options *options,
                                 stint_schedule_result *result);

static int report(const struct st_cli_command *command, const char *action,
                  const struct schedule_options *o, const stint_schedule_result *r, json_t *curve) {
    char text[PRECISION_TEXT];
    bool train = strcmp(action, "train") == 0, solve = strcmp(action, "solve") == 0;
    if (curve != NULL) {
        json_t *object =
            json_pack("{s:o, s:f, s:f, s:f, s:f, s:I, s:o, s:f, s:f, s:f, s:f}", "schedule",
                      describe(&r->selected), "quality", r->quality, "reference", r->reference,
                      "average_bits", r->average_bits, "answer_seconds", r->answer_seconds, "items",
                      (json_int_t)r->items, "curve", curve, "training_accuracy",
                      r->training_accuracy, "validation_accuracy", r->validation_accuracy,
                      "majority", r->majority, "seconds", r->seconds);
        return st_cli_print_json(command->name, object) ? ST_CLI_DONE : ST_CLI_FAILED;
    }
    if (solve)
        fprintf(stderr,
                "%s: %.3f bits on average, quality %.4f of %.4f (%+.2f %%), %.1f ms an answer; "
                "%.1f s\n",
                precision_text(&r->selected, text), r->average_bits, r->quality, r->reference,
                r->reference > 0 ? 100 * (r->quality / r->reference - 1) : 0.0,
                1e3 * r->answer_seconds, r->seconds);
    if (train)
        fprintf(stderr,
                "%llu samples: %.1f %% right, %.1f %% of the held-out ones; the most frequent "
                "choice has %.1f %%; %.1f s\n",
                (unsigned long long)r->items, 100 * r->training_accuracy,
                100 * r->validation_accuracy, 100 * r->majority, r->seconds);
    if (o->output != NULL && (solve || train)) fprintf(stderr, "%s\n", o->output);
    return ST_CLI_DONE;
}

// Of --signal; false for an unknown name.
static bool find_signal(const char *name, stint_signal *signal) {
    const char *known;
    for (*signal = STINT_SIGNAL_NONE; (known = stint_signal_name(*signal)) != NULL; ++*signal)
        if (strcmp(known, name) == 0) return true;
    return false;
}

static int call(const struct st_cli_command *command, const char *action, schedule_fn *fn,
                const struct schedule_options *o) {
    struct st_cli_words names = {0};
    stint_signal signal;
    if (!find_signal(o->signal, &signal)) {
        st_cli_error(command->name, "--signal '%s' is not one of none, entropy, margin", o->signal);
        return ST_CLI_USAGE;
    }
    if (o->schedules != NULL && !st_cli_words_split(o->schedules, &names)) {
        st_cli_error(command->name, "--schedules: more than %d files", ST_CLI_WORDS_MAX);
        return ST_CLI_USAGE;
    }
    stint_model *model = st_cli_open_model(command, &o->common, NULL, NULL);
    stint_model *reference = NULL;
    if (model != NULL && o->reference != NULL)
        reference = st_cli_open_reference(command, &o->common, o->reference);
    bool opened = model != NULL && (reference != NULL || o->reference == NULL);
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
                                      .schedules = names.at,
                                      .n_schedules = names.n,
                                      .output = o->output,
                                      .session = &session,
                                      .progress = show_progress,
                                      .point = take_point,
                                      .canceled = canceled,
                                      .context = &w,
                                      .reference = reference,
                                      .chat = o->chat,
                                      .minimize = o->minimize,
                                      .times = o->times,
                                      .signal = signal,
                                      .only = o->only};
    stint_schedule_result result = {.size = sizeof result};
    int status = ST_CLI_FAILED;
    st_cli_interrupt_note();
    bool ok = opened && fn(model, &options, &result) == STINT_OK;
    st_cli_interrupt_watch(NULL);
    st_cli_progress_end(&w.progress);
    if (ok)
        status = report(command, action, o, &result, w.curve);
    else if (opened)
        st_cli_failed(command);
    if (!ok) json_decref(w.curve);
    st_cli_words_free(&names);
    stint_model_close(reference);
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
        "searches the fastest schedule that preserves quality on prompts with references; train "
        "makes one that depends on each prompt, from any text; compare sets "
        "schedules beside each other and beside simpler methods. MODEL is a package with nested "
        "weights, as 'stint prepare' makes them.",
    .example = "stint schedule novels.stint solve -d prompts.jsonl -m agreement -o fast.json",
    .common = ST_CLI_COMMON_DEVICE | ST_CLI_COMMON_THREADS | ST_CLI_COMMON_KV |
              ST_CLI_COMMON_VERBOSE | ST_CLI_COMMON_JSON,
    .options = rows,
    .options_bytes = sizeof(struct schedule_options),
    .run = run};
