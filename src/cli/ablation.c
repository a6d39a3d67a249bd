// SPDX-License-Identifier: Apache-2.0
// Shadow execution is a property of the package and cannot be switched off here, and no kernel
// multiplies with a scale per group. `stint simulate --ablation` shows both.
#include "cli/ablation.h"

#include "cli/interrupt.h"
#include "cli/output.h"

#include <stdlib.h>

enum { MAX_REPS = 100 };

static const struct step {
    const char *name, *order;
    bool split, each_prompt; // each_prompt: opens a session per prompt, and times that too
} steps[] = {
    {"a graph per prompt, in order", "inorder", true, true},
    {"+ chunk sharing", "inorder", true, false},
    {"+ out of order", "ooo", true, false},
    {"undivided", NULL, false, false},
};

struct ablation {
    const struct st_cli_common *common;
    const stint_model *model;
    const int32_t *ids;
    const char *schedule; // NULL: what the common options say
    float *logits;
    uint32_t n, n_reps;
};

static stint_status begin(const struct st_cli_common *common, const stint_model *model,
                          const int32_t *ids, uint32_t n, uint32_t n_reps, struct ablation *a) {
    stint_model_info info = {.size = sizeof info};
    stint_status status = stint_model_describe(model, &info);
    *a = (struct ablation){.common = common,
                           .model = model,
                           .ids = ids,
                           .logits = malloc((size_t)info.vocab * sizeof(float)),
                           .n = n,
                           .n_reps = n_reps < MAX_REPS ? n_reps : MAX_REPS};
    return status;
}

static bool end(const struct st_cli_command *command, struct ablation *a, stint_status status) {
    free(a->logits);
    if (status != STINT_OK) st_cli_failed(command);
    return status == STINT_OK;
}

static stint_status open_step(const struct ablation *a, const struct step *step,
                              stint_session **session) {
    stint_session_options options = st_cli_session_options(a->common);
    bool threads = options.npu_threads != 0 || options.cpu_threads != 0;
    options.n_context = a->n;
    if (step->each_prompt) options.chunk_len = a->n;
    options.order = step->order;
    if (!step->split) options.npu_threads = options.cpu_threads = 0;
    if (step->split && !threads) options.npu_threads = options.cpu_threads = 1;
    return stint_session_open(a->model, &options, session);
}

// One pass. In a session that stays open, the first pass is a warm-up.
static stint_status time_step(const struct ablation *a, const struct step *step, double *seconds,
                              stint_prefill_info *info) {
    stint_session *session = NULL;
    stint_status status = step->each_prompt ? STINT_OK : open_step(a, step, &session);
    for (uint32_t i = 0; i <= a->n_reps && status == STINT_OK; i++) {
        double begun = st_cli_seconds();
        if (step->each_prompt) status = open_step(a, step, &session);
        st_cli_interrupt_watch(session);
        if (status == STINT_OK) status = stint_session_truncate(session, 0, 0);
        if (status == STINT_OK)
            status = stint_session_eval(session, 0, a->ids, a->n, false, a->logits);
        if (i > 0) seconds[i - 1] = st_cli_seconds() - begun;
        if (status == STINT_OK) status = stint_session_prefill(session, info);
        st_cli_interrupt_watch(NULL);
        if (!step->each_prompt) continue;
        stint_session_close(session);
        session = NULL;
    }
    stint_session_close(session);
    return status;
}

static void report(const struct ablation *a, const struct step *step, double seconds,
                   const stint_prefill_info *info, json_t *rows) {
    if (rows == NULL)
        printf("%8u %-30s %10.1f %10.4g %7.1f%%\n", a->n, step->name, a->n / seconds, seconds,
               100 * info->bubble_rate);
    else
        json_array_append_new(rows,
                              json_pack("{s:s, s:I, s:f, s:f, s:f}", "step", step->name, "tokens",
                                        (json_int_t)a->n, "seconds", seconds, "tokens_per_second",
                                        a->n / seconds, "bubble_rate", info->bubble_rate));
}

bool st_cli_ablation(const struct st_cli_command *command, const struct st_cli_common *common,
                     const stint_model *model, const int32_t *ids, uint32_t n, uint32_t n_reps,
                     json_t *rows) {
    struct ablation a;
    stint_status status = begin(common, model, ids, n, n_reps, &a);
    if (rows == NULL)
        printf("%8s %-30s %10s %10s %8s\n", "prompt", "", "tokens/s", "seconds", "bubbles");
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == STINT_OK; i++) {
        double seconds[MAX_REPS];
        stint_prefill_info info = {.size = sizeof info};
        status = time_step(&a, &steps[i], seconds, &info);
        if (status != STINT_OK) break;
        report(&a, &steps[i], st_cli_median(seconds, a.n_reps), &info, rows);
    }
    return end(command, &a, status);
}

// ---- With bounded memory

enum { PROMPT = 16 };

// Who computes neurons, as npu_hot.
enum { HOST_ALONE = -1, BOTH = 0, DEVICE_ALONE = 2 };

static const struct memory_step {
    const char *name;
    uint32_t leave_out;
    int npu_hot;
} memory_steps[] = {
    {"neurons read in parts",
     STINT_LEAVE_BUNDLES | STINT_LEAVE_CACHE | STINT_LEAVE_PIPELINE | STINT_LEAVE_HOT, HOST_ALONE},
    {"+ bundles", STINT_LEAVE_CACHE | STINT_LEAVE_PIPELINE | STINT_LEAVE_HOT, HOST_ALONE},
    {"+ cache", STINT_LEAVE_PIPELINE | STINT_LEAVE_HOT, HOST_ALONE},
    {"+ pipeline", STINT_LEAVE_HOT, HOST_ALONE},
    {"+ hot clusters", 0, HOST_ALONE},
    {"+ two processors", 0, BOTH},
    {"the second one alone", 0, DEVICE_ALONE},
};

// The second processor is the device or the threads that are named, or one thread. Threads compute
// no neurons alone.
static bool memory_options(const struct ablation *a, const struct memory_step *step,
                           stint_session_options *options) {
    *options = st_cli_session_options(a->common);
    bool threads = options->npu_threads != 0 || options->cpu_threads != 0;
    options->leave_out = step->leave_out;
    options->npu_hot = (float)step->npu_hot;
    options->n_context = PROMPT + a->n;
    if (a->schedule) options->schedule = a->schedule;
    if (step->npu_hot == HOST_ALONE)
        options->npu_threads = options->cpu_threads = 0;
    else if (options->device == NULL && !threads)
        options->npu_threads = options->cpu_threads = 1;
    return step->npu_hot != DEVICE_ALONE || (options->device != NULL && !threads);
}

// Seconds to decode n tokens one by one, others in each pass; the first one fills the cache.
static stint_status time_memory(const struct ablation *a, const stint_session_options *options,
                                double *seconds, stint_memory_info *info) {
    stint_session *session = NULL;
    stint_status status = stint_session_open(a->model, options, &session);
    st_cli_interrupt_watch(session);
    for (uint32_t i = 0; i <= a->n_reps && status == STINT_OK; i++) {
        const int32_t *ids = a->ids + (size_t)i * (PROMPT + a->n);
        status = stint_session_truncate(session, 0, 0);
        if (status == STINT_OK)
            status = stint_session_eval(session, 0, ids, PROMPT, false, a->logits);
        double begun = st_cli_seconds();
        for (uint32_t t = 0; t < a->n && status == STINT_OK; t++)
            status = stint_session_eval(session, 0, ids + PROMPT + t, 1, false, a->logits);
        if (i > 0) seconds[i - 1] = st_cli_seconds() - begun;
    }
    if (status == STINT_OK) status = stint_session_memory(session, info);
    st_cli_interrupt_watch(NULL);
    stint_session_close(session);
    return status;
}

size_t st_cli_memory_ablation_ids(uint32_t n, uint32_t n_reps) {
    return ((size_t)n_reps + 1) * (PROMPT + n);
}

bool st_cli_memory_ablation(const struct st_cli_command *command,
                            const struct st_cli_common *common, const char *schedule,
                            const stint_model *model, const int32_t *ids, uint32_t n,
                            uint32_t n_reps, json_t *rows) {
    struct ablation a;
    stint_status status = begin(common, model, ids, n, n_reps, &a);
    a.schedule = schedule;
    if (rows == NULL)
        printf("%-30s %10s %10s %10s %10s\n", "", "tokens/s", "hit rate", "hidden", "on NPU");
    for (size_t i = 0; i < sizeof memory_steps / sizeof *memory_steps && status == STINT_OK; i++) {
        double seconds[MAX_REPS];
        stint_memory_info info = {.size = sizeof info};
        stint_session_options options;
        if (!memory_options(&a, &memory_steps[i], &options)) continue;
        status = time_memory(&a, &options, seconds, &info);
        if (status != STINT_OK) break;
        double rate = n / st_cli_median(seconds, a.n_reps);
        if (rows == NULL)
            printf("%-30s %10.2f %9.1f%% %9.1f%% %9.1f%%\n", memory_steps[i].name, rate,
                   100 * info.hit_rate, 100 * info.hidden_fraction, 100 * info.on_npu);
        else
            json_array_append_new(rows, json_pack("{s:s, s:f, s:f, s:f, s:f}", "step",
                                                  memory_steps[i].name, "tokens_per_second", rate,
                                                  "hit_rate", info.hit_rate, "hidden_fraction",
                                                  info.hidden_fraction, "on_npu", info.on_npu));
    }
    return end(command, &a, status);
}
