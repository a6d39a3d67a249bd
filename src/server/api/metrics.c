// SPDX-License-Identifier: Apache-2.0
#include "server/api/metrics.h"

#include <pthread.h>
#include <stdlib.h>

static const int codes[] = {200, 204, 400, 401, 403, 404, 405, 413, 429, 499, 500, 503};
enum { N_CODES = sizeof codes / sizeof *codes, N_BOUNDS = 14 };

// Seconds, from a token of a small model to a long prompt on a slow device.
static const double bounds[N_BOUNDS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                        0.25,  0.5,    1,     2.5,  5,     10,   60};

struct histogram {
    uint64_t counts[N_BOUNDS + 1], total;
    double sum;
};

struct st_metrics {
    pthread_mutex_t lock;
    st_metrics_label_fn *label;
    size_t n_labels;
    struct histogram first_token, queue, token;
    uint64_t requests[]; // [n_labels + 1][N_CODES]
};

stint_status st_metrics_open(st_metrics_label_fn *label, size_t n, struct st_metrics **metrics) {
    struct st_metrics *made = calloc(1, sizeof *made + (n + 1) * N_CODES * sizeof *made->requests);
    if (made == NULL) return st_fail(STINT_E_NOMEM, "no memory to count requests");
    pthread_mutex_init(&made->lock, NULL);
    made->label = label;
    made->n_labels = n;
    *metrics = made;
    return STINT_OK;
}

void st_metrics_close(struct st_metrics *metrics) {
    if (metrics == NULL) return;
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

void st_metrics_request(struct st_metrics *metrics, size_t i, int status) {
    size_t row = i < metrics->n_labels ? i : metrics->n_labels, code = 0;
    while (code < N_CODES && codes[code] != status) code++;
    if (code == N_CODES) return;
    pthread_mutex_lock(&metrics->lock);
    metrics->requests[row * N_CODES + code]++;
    pthread_mutex_unlock(&metrics->lock);
}

static void observe(struct histogram *histogram, double seconds, uint64_t times) {
    size_t i = 0;
    while (i < N_BOUNDS && seconds > bounds[i]) i++;
    histogram->counts[i] += times;
    histogram->total += times;
    histogram->sum += seconds * (double)times;
}

void st_metrics_answer(struct st_metrics *metrics, const struct st_scheduler_usage *usage) {
    pthread_mutex_lock(&metrics->lock);
    observe(&metrics->queue, usage->queue_seconds, 1);
    if (usage->generated_tokens > 0) observe(&metrics->first_token, usage->first_token_seconds, 1);
    if (usage->generated_tokens > 1) {
        size_t n = usage->generated_tokens - 1;
        observe(&metrics->token, usage->decode_seconds / (double)n, n);
    }
    pthread_mutex_unlock(&metrics->lock);
}

static void head(struct st_json_text *out, const char *name, const char *type, const char *help) {
    st_json_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_requests(const struct st_metrics *metrics, struct st_json_text *out) {
    head(out, "stint_requests_total", "counter", "Requests by route and HTTP status.");
    for (size_t row = 0; row <= metrics->n_labels; row++)
        for (size_t i = 0; i < N_CODES; i++) {
            uint64_t n = metrics->requests[row * N_CODES + i];
            if (n == 0) continue;
            st_json_format(out, "stint_requests_total{route=\"%s\",code=\"%d\"} %llu\n",
                           row < metrics->n_labels ? metrics->label(row) : "other", codes[i],
                           (unsigned long long)n);
        }
}

static void write_histogram(const struct histogram *histogram, const char *name, const char *help,
                            struct st_json_text *out) {
    uint64_t sum = 0;
    head(out, name, "histogram", help);
    for (size_t i = 0; i < N_BOUNDS; i++) {
        sum += histogram->counts[i];
        st_json_format(out, "%s_bucket{le=\"%g\"} %llu\n", name, bounds[i],
                       (unsigned long long)sum);
    }
    st_json_format(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n", name,
                   (unsigned long long)histogram->total, name, histogram->sum, name,
                   (unsigned long long)histogram->total);
}

// ---- Of each model

typedef double value_fn(const struct st_model_view *view);

#define VALUE(name, expression)                                                                    \
    static double name(const struct st_model_view *view) {                                         \
        return (double)(expression);                                                               \
    }
VALUE(prompt_tokens, view->stats.prompt_tokens)
VALUE(reused_tokens, view->stats.reused_tokens)
VALUE(generated_tokens, view->stats.generated_tokens)
VALUE(drafted_tokens, view->stats.drafted_tokens)
VALUE(accepted_tokens, view->stats.accepted_tokens)
VALUE(self_drafted_tokens, view->stats.self_drafted_tokens)
VALUE(self_accepted_tokens, view->stats.self_accepted_tokens)
VALUE(decode_steps, view->stats.decode_steps)
VALUE(prefill_seconds, view->stats.prefill_seconds)
VALUE(decode_seconds, view->stats.decode_seconds)
VALUE(rejected, view->stats.rejected)
VALUE(prefix_loads, view->stats.prefix_loads)
VALUE(prefix_saves, view->stats.prefix_saves)
VALUE(loads, view->n_loads)
VALUE(loaded, view->state == ST_MODEL_READY)
VALUE(slots, view->stats.slots)
VALUE(busy, view->stats.busy)
VALUE(queued, view->stats.queued)
VALUE(queue_size, view->stats.queue_size)
VALUE(cache_hit_rate, view->stats.prompt_tokens > 0
                          ? (double)view->stats.reused_tokens / (double)view->stats.prompt_tokens
                          : 0)
VALUE(bubble_rate, view->stats.bubble_rate)
VALUE(budget_bytes, view->stats.memory.budget_bytes)
VALUE(kv_bytes, view->stats.memory.kv_bytes)
VALUE(bytes_read, view->stats.memory.bytes_read)
VALUE(hit_rate, view->stats.memory.hit_rate)
#undef VALUE

static const struct {
    const char *name, *type, *help;
    value_fn *value;
} rows[] = {
    {"stint_prompt_tokens_total", "counter", "Tokens of prompts.", prompt_tokens},
    {"stint_reused_tokens_total", "counter", "Prompt tokens that were still in a slot's cache.",
     reused_tokens},
    {"stint_generated_tokens_total", "counter", "Tokens of answers.", generated_tokens},
    {"stint_drafted_tokens_total", "counter", "Tokens computed as drafts.", drafted_tokens},
    {"stint_accepted_tokens_total", "counter", "Drafts that became tokens of answers.",
     accepted_tokens},
    {"stint_self_drafted_tokens_total", "counter", "Of the drafts, those made with fewer bits.",
     self_drafted_tokens},
    {"stint_self_accepted_tokens_total", "counter", "Of these, tokens of answers.",
     self_accepted_tokens},
    {"stint_decode_steps_total", "counter",
     "Decode steps; each gives one token to every running answer.", decode_steps},
    {"stint_prefix_loads_total", "counter", "Prefixes loaded from --prefix-cache.", prefix_loads},
    {"stint_prefix_saves_total", "counter", "Prefixes saved into --prefix-cache.", prefix_saves},
    {"stint_prefill_seconds_total", "counter", "Time spent on prefill.", prefill_seconds},
    {"stint_decode_seconds_total", "counter", "Time spent on decoding.", decode_seconds},
    {"stint_rejected_total", "counter", "Requests that found the queue full.", rejected},
    {"stint_model_loads_total", "counter", "How often a model was loaded.", loads},
    {"stint_model_loaded", "gauge", "Whether a model is loaded.", loaded},
    {"stint_slots", "gauge", "Answers that can run at once.", slots},
    {"stint_slots_busy", "gauge", "Answers that are running.", busy},
    {"stint_queue_length", "gauge", "Requests that are waiting for a slot.", queued},
    {"stint_queue_size", "gauge", "Requests that may wait.", queue_size},
    {"stint_cache_hit_rate", "gauge", "Share of prompt tokens that were still in a slot's cache.",
     cache_hit_rate},
    {"stint_bubble_rate", "gauge", "Share of the last prefill in which the NPU was idle.",
     bubble_rate},
    {"stint_memory_budget_bytes", "gauge", "The model's part of --memory; 0: no bound.",
     budget_bytes},
    {"stint_kv_bytes", "gauge", "KV cache, if memory is bounded.", kv_bytes},
    {"stint_weight_bytes_read_total", "counter", "Weights read from the package.", bytes_read},
    {"stint_weight_hit_rate", "gauge", "Share of weights in memory when needed.", hit_rate},
};

// A name in a label, where a few characters are escaped.
static void write_label(const char *name, struct st_json_text *out) {
    st_json_raw(out, "{model=\"");
    for (; *name != 0; name++) {
        if (*name == '\\' || *name == '"') st_json_raw(out, "\\");
        if (*name == '\n')
            st_json_raw(out, "\\n");
        else
            st_json_rawn(out, name, 1);
    }
    st_json_raw(out, "\"}");
}

// With a single model there are no labels.
static void write_models(const struct st_model_view *views, size_t n, struct st_json_text *out) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        head(out, rows[i].name, rows[i].type, rows[i].help);
        for (size_t k = 0; k < n; k++) {
            st_json_raw(out, rows[i].name);
            if (n > 1) write_label(views[k].name, out);
            st_json_format(out, " %.17g\n", rows[i].value(&views[k]));
        }
    }
    head(out, "stint_peak_memory_bytes", "gauge", "Peak memory of this process.");
    st_json_format(out, "stint_peak_memory_bytes %.17g\n", (double)stint_peak_rss_bytes());
}

void st_metrics_write(struct st_metrics *metrics, const struct st_model_view *views, size_t n,
                      struct st_json_text *out) {
    pthread_mutex_lock(&metrics->lock);
    write_requests(metrics, out);
    write_histogram(&metrics->first_token, "stint_first_token_seconds",
                    "From a request to its answer's first token.", out);
    write_histogram(&metrics->token, "stint_token_seconds",
                    "Between the tokens of an answer, its average.", out);
    write_histogram(&metrics->queue, "stint_queue_seconds", "From a request to its slot.", out);
    pthread_mutex_unlock(&metrics->lock);
    write_models(views, n, out);
}
