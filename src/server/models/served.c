// SPDX-License-Identifier: Apache-2.0
#include "server/models/served.h"

#include "model/fingerprint.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static void make_fingerprint(struct st_served *served, const stint_session_options *options) {
    char text[512];
    stint_model_info info = {.size = sizeof info};
    struct st_scheduler_stats stats;
    stint_model_describe(served->model, &info);
    st_scheduler_stats(served->scheduler, &stats);
    int n = snprintf(text, sizeof text, "%s %s %s %llu %llu %d %s %zu %s %s %s", stint_version(),
                     info.architecture, info.weight_type, (unsigned long long)info.n_parameters,
                     (unsigned long long)info.weight_bytes, (int)info.exec, stats.device,
                     stats.chunk, options->kv != NULL ? options->kv : "",
                     options->schedule != NULL ? options->schedule : "", stint_cpu_features());
    size_t n_bytes = n > 0 && (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    snprintf(served->fingerprint, sizeof served->fingerprint, "fp_%016llx",
             (unsigned long long)XXH3_64bits(text, n_bytes));
}

stint_status st_served_open(struct st_served *served, const struct st_server_loader *loader,
                            const char *path) {
    served->sampling = (stint_sampling){.size = sizeof served->sampling};
    ST_TRY(loader->open(loader->context, path, &served->model, &served->sampling));
    served->tokenizer = stint_model_tokenizer(served->model);
    return served->tokenizer != NULL
               ? STINT_OK
               : st_fail(STINT_E_UNSUPPORTED,
                         "%s: the model has no tokenizer, so it cannot be served", path);
}

stint_status st_served_bytes(const struct st_served *served, const stint_session_options *options,
                             uint64_t *bytes) {
    stint_memory_plan plan = {.size = sizeof plan};
    ST_TRY(stint_session_plan(served->model, options, NULL, &plan, NULL));
    uint64_t sum = plan.fixed_bytes + plan.hot_bytes + plan.cold_bytes + plan.kv_bytes;
    *bytes = sum < options->memory ? sum : options->memory;
    return STINT_OK;
}

// A saved cache serves only where it would be computed alike.
static stint_status keep_prefixes(struct st_served *served, struct st_prefixes prefixes) {
    uint64_t both[] = {0, XXH3_64bits(served->fingerprint, strlen(served->fingerprint))};
    ST_TRY(st_model_hash(served->model, &both[0]));
    prefixes.model = XXH3_64bits(both, sizeof both);
    return st_scheduler_keep_prefixes(served->scheduler, &prefixes);
}

stint_status st_served_start(struct st_served *served, const struct st_server_loader *loader,
                             const stint_session_options *options, uint32_t n_queue,
                             const struct st_prefixes *prefixes) {
    struct st_scheduler_stats stats;
    ST_TRY(st_scheduler_open(&(struct st_scheduler_options){.model = served->model,
                                                            .session = options,
                                                            .n_queue = n_queue,
                                                            .lost = loader->lost,
                                                            .context = loader->context},
                             &served->scheduler));
    st_scheduler_stats(served->scheduler, &stats);
    served->context = stats.context;
    served->n_slots = stats.slots;
    make_fingerprint(served, options);
    if (prefixes->folder != NULL) ST_TRY(keep_prefixes(served, *prefixes));
    return st_chat_open(st_tokenizer_chat_template(served->tokenizer), served->tokenizer,
                        &served->chat);
}

void st_served_close(struct st_served *served, const struct st_server_loader *loader) {
    st_scheduler_close(served->scheduler);
    st_chat_close(served->chat);
    if (served->model != NULL) loader->close(loader->context, served->model);
    served->scheduler = NULL;
    served->chat = NULL;
    served->model = NULL;
}
