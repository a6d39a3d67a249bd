// SPDX-License-Identifier: Apache-2.0
#include "cli/memory_plan.h"

#include "cli/output.h"
#include "cli/progress.h"

#include <stdlib.h>

// ---- As JSON

static json_t *describe_reads(const uint32_t *blocks, const double *per_second, uint32_t depth) {
    json_t *list = json_array();
    for (size_t i = 0; i < STINT_STORAGE_BLOCKS; i++)
        json_array_append_new(list, json_pack("{s:I, s:I, s:f, s:f}", "block",
                                              (json_int_t)blocks[i], "depth", (json_int_t)depth,
                                              "reads_per_second", per_second[i], "bytes_per_second",
                                              per_second[i] * blocks[i]));
    return list;
}

static json_t *describe_storage(const stint_storage *s) {
    json_t *random = json_array();
    for (size_t d = 0; d < STINT_STORAGE_DEPTHS; d++) {
        json_t *reads =
            describe_reads(s->random_block, s->random_per_second[d], s->random_depth[d]);
        json_array_extend(random, reads);
        json_decref(reads);
    }
    return json_pack("{s:b, s:I, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f}", "direct", s->direct,
                     "file_bytes", (json_int_t)s->file_bytes, "sequential",
                     describe_reads(s->sequential_block, s->sequential_per_second, 8), "random",
                     random, "dense_bytes_per_second", s->dense_bytes_per_second, "neuron_seconds",
                     s->neuron_seconds, "seconds", s->seconds, "npu_block_seconds",
                     s->npu_block_seconds, "npu_neuron_seconds", s->npu_neuron_seconds,
                     "cpu_neuron_seconds", s->cpu_neuron_seconds);
}

static json_t *describe_plan(const stint_memory_plan *p) {
    json_t *plan =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "budget_bytes", (json_int_t)p->budget_bytes,
                  "fixed_bytes", (json_int_t)p->fixed_bytes, "hot_bytes", (json_int_t)p->hot_bytes,
                  "cold_bytes", (json_int_t)p->cold_bytes, "kv_bytes", (json_int_t)p->kv_bytes,
                  "scratch_bytes", (json_int_t)p->scratch_bytes);
    json_t *pieces =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "slices", (json_int_t)p->slices,
                  "resident_slices", (json_int_t)p->resident_slices, "expert_slices",
                  (json_int_t)p->expert_slices, "resident_expert_slices",
                  (json_int_t)p->resident_expert_slices, "hot_clusters",
                  (json_int_t)p->hot_clusters, "cluster_neurons", (json_int_t)p->cluster_neurons,
                  "neurons", (json_int_t)p->neurons, "cold_neurons", (json_int_t)p->cold_neurons);
    json_t *expected =
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "hit_rate",
                  p->hit_rate, "computed", p->computed, "on_npu", p->on_npu, "shadow_columns",
                  p->shadow_columns, "bytes_per_token", p->bytes_per_token, "reads_per_token",
                  p->reads_per_token, "read_seconds", p->read_seconds, "compute_seconds",
                  p->compute_seconds, "wait_seconds", p->wait_seconds, "tokens_per_second",
                  p->tokens_per_second, "drafted_per_second", p->drafted_per_second);
    return json_pack("{s:o, s:o, s:o}", "memory", plan, "pieces", pieces, "expected", expected);
}

static json_t *describe_layers(const stint_memory_layer *layers, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const stint_memory_layer *l = &layers[i];
        json_array_append_new(list, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "active",
                                              l->active, "predicted", l->predicted, "hot", l->hot,
                                              "cold", l->cold, "wanted", l->wanted, "misses",
                                              l->misses, "hit_rate", l->hit_rate));
    }
    return list;
}

json_t *st_cli_memory_plan(const struct st_cli_command *command, const struct st_cli_common *common,
                           const stint_model *model) {
    struct st_cli_progress progress = {0};
    stint_model_info info = {.size = sizeof info};
    stint_storage storage = {.size = sizeof storage};
    stint_memory_plan plan = {.size = sizeof plan};
    stint_session_options session = st_cli_session_options(common);
    stint_storage_options options = {.size = sizeof options,
                                     .n_threads = common->n_threads,
                                     .device = common->device,
                                     .session = &session,
                                     .progress = st_cli_progress_show,
                                     .progress_context = &progress};
    json_t *object = NULL;
    stint_status status = stint_model_describe(model, &info);
    stint_memory_layer *layers = calloc(info.n_layers + 1, sizeof *layers);
    if (layers == NULL) return st_cli_error(command->name, "no memory to plan"), NULL;
    // Impossible bounds are refused before anything is measured.
    if (status == STINT_OK) status = stint_session_plan(model, &session, NULL, &plan, NULL);
    if (status == STINT_OK) status = stint_storage_measure(model, &options, &storage);
    st_cli_progress_end(&progress);
    if (status == STINT_OK) status = stint_session_plan(model, &session, &storage, &plan, layers);
    if (status != STINT_OK) {
        st_cli_failed(command);
    } else {
        object = describe_plan(&plan);
        json_object_set_new(object, "storage", describe_storage(&storage));
        json_object_set_new(object, "layers",
                            describe_layers(layers, plan.neurons != 0 ? info.n_layers : 0));
    }
    free(layers);
    return object;
}

// ---- As text

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static const char *size_of(const json_t *object, const char *key, char buf[ST_CLI_SIZE_BYTES]) {
    return st_cli_size((uint64_t)number(object, key), buf);
}

static void print_storage(const json_t *storage) {
    char size[ST_CLI_SIZE_BYTES];
    const json_t *read;
    size_t i;
    st_cli_title("This device, measured");
    st_cli_row("reads", "%s",
               json_is_true(json_object_get(storage, "direct"))
                   ? "bypassing the page cache"
                   : "through the page cache: this file system has no O_DIRECT");
    json_array_foreach(json_object_get(storage, "sequential"), i, read)
        st_cli_row(i == 0 ? "sequential" : "", "%9.0f MB/s in pieces of %s, 8 in flight",
                   number(read, "bytes_per_second") * 1e-6, size_of(read, "block", size));
    json_array_foreach(json_object_get(storage, "random"), i, read)
        st_cli_row(i == 0 ? "random" : "", "%9.0f MB/s in pieces of %s, %.0f in flight",
                   number(read, "bytes_per_second") * 1e-6, size_of(read, "block", size),
                   number(read, "depth"));
    st_cli_row("dense linears", "%.1f GB/s", number(storage, "dense_bytes_per_second") * 1e-9);
    if (number(storage, "neuron_seconds") > 0)
        st_cli_row("a neuron", "%.3f us", number(storage, "neuron_seconds") * 1e6);
    if (number(storage, "cpu_neuron_seconds") > 0)
        st_cli_row("hot clusters", "%.3f us a neuron; a second processor %.1f us and %.3f us each",
                   number(storage, "cpu_neuron_seconds") * 1e6,
                   number(storage, "npu_block_seconds") * 1e6,
                   number(storage, "npu_neuron_seconds") * 1e6);
}

static void print_pieces(const json_t *pieces, const json_t *expected) {
    double slices = number(pieces, "slices"), experts = number(pieces, "expert_slices"),
           neurons = number(pieces, "neurons");
    if (slices > 0)
        st_cli_row("of every token", "%.0f of %.0f slices stay", number(pieces, "resident_slices"),
                   slices);
    if (experts > 0)
        st_cli_row("experts", "%.0f of %.0f slices stay", number(pieces, "resident_expert_slices"),
                   experts);
    if (neurons > 0)
        st_cli_row("neurons", "%.1f %% of them stay in %.0f hot clusters, %.1f %% singly",
                   100 * number(pieces, "hot_clusters") * number(pieces, "cluster_neurons") /
                       neurons,
                   number(pieces, "hot_clusters"), 100 * number(pieces, "cold_neurons") / neurons);
    if (neurons > 0)
        st_cli_row("computed", "%.1f %% of the neurons", 100 * number(expected, "computed"));
    if (number(expected, "on_npu") > 0)
        st_cli_row("", "%.1f %% of these by a second processor, beside the CPU",
                   100 * number(expected, "on_npu"));
}

static void print_plan(const json_t *plan) {
    const json_t *memory = json_object_get(plan, "memory");
    const json_t *expected = json_object_get(plan, "expected");
    char a[ST_CLI_SIZE_BYTES], b[ST_CLI_SIZE_BYTES], c[ST_CLI_SIZE_BYTES], d[ST_CLI_SIZE_BYTES];
    st_cli_title("A token under this bound, expected");
    st_cli_row("bound", "%s: fixed %s, KV %s, hot %s", size_of(memory, "budget_bytes", a),
               size_of(memory, "fixed_bytes", b), size_of(memory, "kv_bytes", c),
               size_of(memory, "hot_bytes", d));
    if (number(memory, "cold_bytes") > 0)
        st_cli_row("", "single neurons %s", size_of(memory, "cold_bytes", a));
    print_pieces(json_object_get(plan, "pieces"), expected);
    if (number(expected, "shadow_columns") > 0)
        st_cli_row("shadow", "%.1f columns of outliers", number(expected, "shadow_columns"));
    st_cli_row("in memory", "%.2f %% of the needed bytes", 100 * number(expected, "hit_rate"));
    st_cli_row("reads", "%s in %.1f reads", size_of(expected, "bytes_per_token", a),
               number(expected, "reads_per_token"));
    st_cli_row("time", "reading %.2f ms, computing %.2f ms, waiting %.2f ms",
               1e3 * number(expected, "read_seconds"), 1e3 * number(expected, "compute_seconds"),
               1e3 * number(expected, "wait_seconds"));
    st_cli_row("speed", "%.1f tokens/s, without attention and sampling",
               number(expected, "tokens_per_second"));
    if (number(expected, "drafted_per_second") > 0)
        st_cli_row("", "%.1f with drafts by fewer bits, if four of five are right",
                   number(expected, "drafted_per_second"));
}

static void print_layers(const json_t *layers) {
    const json_t *layer;
    size_t i;
    if (json_array_size(layers) == 0) return;
    st_cli_title("By layer, of its neurons");
    printf("%5s %8s %9s %8s %8s %8s %8s %8s\n", "layer", "active", "predicted", "hot", "stay",
           "wanted", "misses", "hits");
    json_array_foreach(layers, i, layer) printf(
        "%5zu %7.1f%% %8.1f%% %7.1f%% %7.1f%% %7.1f%% %7.2f%% %7.2f%%\n", i,
        100 * number(layer, "active"), 100 * number(layer, "predicted"), 100 * number(layer, "hot"),
        100 * number(layer, "cold"), 100 * number(layer, "wanted"), 100 * number(layer, "misses"),
        100 * number(layer, "hit_rate"));
}

static bool print(const json_t *notes) {
    const json_t *plan = json_object_get(notes, "plan");
    print_plan(plan);
    print_storage(json_object_get(plan, "storage"));
    print_layers(json_object_get(plan, "layers"));
    return true;
}

const struct st_cli_view st_cli_memory_view = {
    .key = "plan", .hint = "", .print = print, .draw = st_cli_neurons_draw};
