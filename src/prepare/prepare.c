// SPDX-License-Identifier: Apache-2.0
// Makes a package from a checkpoint: copies what stays as it is, converts the linears (convert.c)
// and measures the result (select.c).
#include "base/clock.h"
#include "base/cpu.h"
#include "base/map.h"
#include "base/size.h"
#include "device/device.h"
#include "format/files.h"
#include "prepare/calibration_tokens.h"
#include "prepare/job.h"
#include "prepare/rows.h"
#include "prepare/sensitivity.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The files of a Hugging Face folder that a package contains besides the weights.
static const char *const kept_files[] = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "modules.json",
    "1_Pooling/config.json",
};

bool st_prepare_is_canceled(void *options) {
    const stint_prepare_options *o = options;
    return o->canceled && o->canceled(o->canceled_context);
}

// Two steps a layer, two for the head, one for the measurement, one to allocate bits.
stint_status st_prepare_step(struct st_prepare_job *job, const char *what) {
    const stint_prepare_options *o = job->options;
    uint64_t total = 2 * ((uint64_t)job->model->config.n_layers + 1) + 1 + (job->nested != NULL);
    if (o->progress) o->progress(o->progress_context, what, ++job->done, total);
    return st_prepare_is_canceled((void *)(uintptr_t)o) ? st_fail(STINT_E_CANCELED, "canceled")
                                                        : STINT_OK;
}

// ---- What is copied

static stint_status add_blob(struct st_prepare_job *p, const char *name, const void *data,
                             size_t bytes) {
    struct st_section s = {.name = name,
                           .type = ST_SECTION_BLOB,
                           .n_dims = 1,
                           .dims = {bytes, 1, 1, 1},
                           .data = data,
                           .bytes = bytes};
    return st_package_add(p->writer, &s);
}

static stint_status keep_files(struct st_prepare_job *p) {
    struct st_files files = {p->source, NULL};
    for (size_t i = 0; i < sizeof kept_files / sizeof *kept_files; i++) {
        struct st_file file;
        if (!st_files_has(&files, kept_files[i])) continue;
        ST_TRY(st_files_open(&files, kept_files[i], &file));
        stint_status status = add_blob(p, kept_files[i], file.map.data, file.map.bytes);
        st_file_close(&file);
        if (status != STINT_OK) return status;
    }
    return STINT_OK;
}

static stint_status keep_gguf(struct st_prepare_job *p) {
    void *data;
    size_t bytes;
    ST_TRY(st_gguf_metadata(p->model->checkpoint.gguf, &data, &bytes));
    stint_status status = add_blob(p, ST_PACKAGE_GGUF, data, bytes);
    free(data);
    return status;
}

static json_t *describe_points(const double points[ST_COVER_POINTS]) {
    json_t *array = json_array();
    for (size_t i = 0; i < ST_COVER_POINTS; i++) json_array_append_new(array, json_real(points[i]));
    return array;
}

static json_t *describe_linear(const struct st_planned *l) {
    return json_pack("{s:s, s:f, s:f, s:f, s:I, s:I, s:f, s:f, s:I, s:b, s:o, s:f, s:i}", "linear",
                     l->name, "threshold", (double)l->scales[0] * 127.0, "clip",
                     (double)l->scales[1] * 127.0, "importance", (double)l->importance, "channels",
                     (json_int_t)l->n_in, "outlier_channels", (json_int_t)l->n_outliers,
                     "per_token", l->per_token, "cold_per_token", l->cold_per_token, "hot_channels",
                     (json_int_t)l->n_hot, "shadowed", l->shadowed, "cover",
                     describe_points(l->cover), "row_error", (double)l->row_error, "row_terms",
                     l->input[1] > 0.0f ? 0 : (int)l->input[0]);
}

static json_t *describe_losses(const struct st_prepare_job *p) {
    json_t *array = json_array();
    for (size_t i = 0; i < p->n_losses; i++) {
        const struct st_loss *l = &p->losses[i];
        json_array_append_new(
            array, json_pack("{s:i, s:f, s:f, s:f, s:f}", "bits", (int)l->bits, "mean_bits",
                             l->mean_bits, "divergence", l->divergence, "perplexity_ratio",
                             l->perplexity_ratio, "top1_agreement", l->top1_agreement));
    }
    return array;
}

static json_t *describe(const struct st_prepare_job *p, const stint_model_info *info) {
    const stint_prepare_summary *s = &p->summary;
    json_t *linears = json_array();
    for (size_t i = 0; i < p->plan.n; i++)
        json_array_append_new(linears, describe_linear(&p->plan.linears[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:o}",
                     "stint", stint_version(), "weights", "w8a8", "weight_scale",
                     p->options->weight_scale == STINT_SCALE_TENSOR ? "tensor" : "channel",
                     "made_from", info->weight_type, "parameters", (json_int_t)info->n_parameters,
                     "calibration_tokens", (json_int_t)p->ids.count, "held_out_tokens",
                     (json_int_t)s->held_out_tokens, "float_perplexity", s->float_perplexity,
                     "perplexity", s->perplexity, "top1_agreement", s->top1_agreement, "divergence",
                     s->divergence, "pruned", s->pruned, "cover_shares",
                     describe_points(st_cover_shares), "linears", linears);
}

static stint_status add_notes(struct st_prepare_job *p) {
    stint_model_info info = {.size = sizeof info};
    ST_TRY(stint_model_describe(p->model, &info));
    json_t *meta = describe(p, &info);
    if (meta && p->n_losses) json_object_set_new(meta, "losses", describe_losses(p));
    if (meta && p->neurons) json_object_set_new(meta, "neurons", st_neurons_describe(p->neurons));
    char *text = meta ? json_dumps(meta, JSON_INDENT(1)) : NULL;
    stint_status status = text ? add_blob(p, ST_PACKAGE_META, text, strlen(text))
                               : st_fail(STINT_E_NOMEM, "no memory to describe the package");
    free(text);
    json_decref(meta);
    return status;
}

static stint_status add_tensor(struct st_prepare_job *p, const struct st_tensor *t) {
    struct st_section s = {.name = t->name,
                           .type = ST_SECTION_TENSOR,
                           .dtype = t->dtype,
                           .n_dims = t->n_dims,
                           .data = t->data,
                           .bytes = t->bytes};
    memcpy(s.dims, t->dims, sizeof s.dims);
    if (t->data == p->model->weights.layer_embed.data && st_rows_become_blocks(t))
        ST_TRY(st_rows_pack(t, p->writer));
    else
        ST_TRY(st_package_add(p->writer, &s));
    st_map_forget(t->data, t->bytes);
    return STINT_OK;
}

// The tensors that a model with INT8 linears still needs.
struct collector {
    const struct st_tensor **tensors;
    size_t n, max;
};

static void collect(void *context, const struct st_tensor *tensor) {
    struct collector *c = context;
    for (size_t i = 0; i < c->n; i++)
        if (c->tensors[i] == tensor) return;
    if (c->n < c->max) c->tensors[c->n++] = tensor;
}

// Read with the config, not bound to a weight.
static void collect_rope_factors(const struct st_prepare_job *p, struct collector *c) {
    const struct st_tensors *all = p->model->checkpoint.tensors;
    for (size_t i = 0; i < st_tensors_count(all); i++)
        if (strncmp(st_tensors_at(all, i)->name, "rope_", 5) == 0)
            collect(c, st_tensors_at(all, i));
}

static stint_status keep_tensors(struct st_prepare_job *p) {
    const struct st_checkpoint *checkpoint = &p->model->checkpoint;
    struct collector c = {.max = st_tensors_count(checkpoint->tensors)};
    struct st_tensor_source source = {.tensors = checkpoint->tensors,
                                      .gguf = checkpoint->source == ST_SOURCE_GGUF,
                                      .no_embedding = p->model->config.tied,
                                      .int8 = true,
                                      .seen = collect,
                                      .context = &c};
    struct st_arena measure = st_arena_measure();
    struct st_weights unused;
    c.tensors = calloc(c.max + 1, sizeof *c.tensors);
    if (!c.tensors) return st_fail(STINT_E_NOMEM, "no memory for %zu tensors", c.max);
    if (source.gguf) collect_rope_factors(p, &c);
    stint_status status = st_weights_bind(&source, &p->model->config, &measure, &unused);
    const int32_t shape[2] = {(int32_t)p->model->config.vocab, (int32_t)p->model->config.embed};
    if (status == STINT_OK && p->model->config.tied)
        status = st_pack_section(p->writer, ST_EMBEDDING_IN_HEAD, "", ST_SECTION_I32, shape, 2);
    for (size_t i = 0; i < c.n && status == STINT_OK; i++) status = add_tensor(p, c.tensors[i]);
    free(c.tensors);
    return status;
}

static void watch(void *context, const struct st_linear_input *input) {
    st_neurons_see(context, input);
}

static stint_status open_neurons(struct st_prepare_job *p) {
    const stint_prepare_options *o = p->options;
    const struct st_config *c = &p->model->config;
    if (!st_act_is_sparse(c->act) || c->n_experts)
        return st_fail(
            STINT_E_UNSUPPORTED,
            "neurons: every neuron of this model is active (its activation is not a ReLU), "
            "so there is nothing to predict; under a memory bound its weights are "
            "read in their turn without this");
    for (uint32_t i = 0; i < c->n_layers; i++) {
        if (st_config_blocks(c, i) == 0)
            return st_fail(STINT_E_UNSUPPORTED, "neurons: layer %u has no feed-forward block", i);
        if (p->model->weights.layers[i].ffn->norm)
            return st_fail(STINT_E_UNSUPPORTED,
                           "neurons: a norm behind the activation of layer %u needs all of them",
                           i);
    }
    struct st_predictor_options options = {.rank = o->predictor_rank,
                                           .recall = o->recall > 0.0f ? (double)o->recall : 0.98,
                                           .stop = st_prepare_is_canceled,
                                           .stop_context = (void *)(uintptr_t)o};
    enum st_neuron_code code = o->neuron_bits == 8 ? ST_NEURON_INT8 : ST_NEURON_LEVELS;
    ST_TRY(st_neuron_packer_open(c, &options, code, p->n_observed, o->n_threads, &p->neurons));
    p->calibration.watch = watch;
    p->calibration.watch_context = p->neurons;
    return STINT_OK;
}

// How many bits the codes of each linear have.
static stint_status allocate_bits(struct st_prepare_job *p) {
    const stint_prepare_options *o = p->options;
    ST_TRY(st_sensitivity_measure(p, &p->allocation, &p->n_nested));
    ST_TRY(st_allocate_bits(p->allocation, p->n_nested, o->bits_low, o->bits_high));
    ST_TRY(st_nested_pack_range(p->nested, p->writer));
    ST_TRY(st_nested_pack_bits(p->nested, p->allocation, p->n_nested, p->writer));
    if (o->one_set) ST_TRY(st_nested_pack_stored(p->nested, o->one_set, p->writer));
    return st_prepare_step(p, "allocating bits");
}

static stint_status write_package(struct st_prepare_job *p) {
    const stint_prepare_options *o = p->options;
    bool gguf = p->model->checkpoint.source == ST_SOURCE_GGUF;
    ST_TRY(gguf ? keep_gguf(p) : keep_files(p));
    ST_TRY(st_packer_open(&p->model->config, &p->packer));
    if (o->bits_high) {
        struct st_nested_range range = {(uint8_t)o->bits_low, (uint8_t)o->bits_high};
        ST_TRY(st_nested_packer_open(&p->model->config, range, o->quantizer, o->sparse,
                                     o->n_threads, &p->nested));
        p->calibration.products = st_nested_packer_wants_moments(p->nested);
        ST_TRY(st_slopes_open(st_nested_widest(&p->model->config), st_cpu_flags(), &p->slopes));
    }
    if (o->neurons) ST_TRY(open_neurons(p));
    if (p->nested) ST_TRY(allocate_bits(p));
    // With a scale for each token, outliers count only should shadow execution be tried.
    if (p->plan.row_scales) p->calibration.n_counted = ST_CALIBRATION_SEQUENCE;
    p->calibration.stop = st_prepare_is_canceled;
    p->calibration.stop_context = (void *)(uintptr_t)o;
    ST_TRY(st_calibration_open(p->model, p->ids.data, p->ids.count, p->n_observed, o->n_threads,
                               &p->calibration));
    ST_TRY(st_prepare_convert(p));
    ST_TRY(st_prepare_select(p));
    ST_TRY(st_prepare_step(p, "measuring"));
    ST_TRY(st_prepare_drop_columns(p));
    ST_TRY(st_prepare_write_inputs(p));
    for (size_t i = 0; i < p->plan.n; i++) p->summary.n_shadowed += p->plan.linears[i].shadowed;
    ST_TRY(keep_tensors(p));
    ST_TRY(add_notes(p));
    if (!p->nested || !p->exact.n) return STINT_OK;
    // The loss at each nested precision, of the package as it would be: then the notes with it.
    ST_TRY(st_prepare_measure(p));
    ST_TRY(st_package_drop(p->writer, st_package_sections(p->writer) - 1));
    return add_notes(p);
}

// ---- All steps

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// The package's loss is measured against the source, so the source runs in exact float.
static stint_status open_in_float(struct st_prepare_job *p) {
    stint_model_options options = {.size = sizeof options, .exec = STINT_EXEC_FLOAT};
    if (!p->model->fast) return STINT_OK;
    stint_model_close(p->model);
    p->model = NULL;
    return stint_model_open(p->source, &options, &p->model);
}

static stint_status open_source(struct st_prepare_job *p, const char *package) {
    stint_model_options options = {.size = sizeof options};
    ST_TRY(stint_model_open(p->source, &options, &p->model));
    if (p->model->checkpoint.package)
        return st_fail(STINT_E_UNSUPPORTED, "%s: is a package already", p->source);
    ST_TRY(open_in_float(p));
    if (same_file(p->source, package))
        return st_fail(STINT_E_ARG, "%s: the package would take the place of its source", package);
    struct st_calibration_input input = {p->options->text, p->options->text_bytes, p->options->ids,
                                         p->options->n_ids, p->options->n_tokens};
    ST_TRY(st_calibration_tokens(p->model, &input, &p->ids));
    // Whole sequences, a quarter of the text, are held out, if one remains to calibrate on.
    size_t sequence = st_calibration_sequence(p->model);
    p->n_observed = st_max(sequence, p->ids.count * 3 / 4 / sequence * sequence);
    p->n_observed = st_min(p->n_observed, p->ids.count);
    return st_package_create(package, &p->writer);
}

static void close_all(struct st_prepare_job *p) {
    st_calibration_close(&p->calibration);
    st_plan_close(&p->plan);
    st_packer_close(p->packer);
    st_nested_packer_close(p->nested);
    free(p->allocation);
    st_slopes_close(&p->slopes);
    st_neuron_packer_close(p->neurons);
    st_package_abandon(p->writer);
    st_ids_free(&p->ids);
    free(p->exact.at);
    stint_model_close(p->model);
}

static stint_status check_options(const stint_prepare_options *o) {
    if (o->weight_scale != STINT_SCALE_CHANNEL && o->weight_scale != STINT_SCALE_TENSOR)
        return st_fail(STINT_E_ARG, "weight scale %d: expected channel or tensor",
                       (int)o->weight_scale);
    if ((unsigned)o->outliers > STINT_OUTLIERS_NONE)
        return st_fail(STINT_E_ARG, "outliers %d: expected auto, share or none", (int)o->outliers);
    if (!(o->outlier_prune >= 0.0f && o->outlier_prune <= 1.0f))
        return st_fail(STINT_E_ARG, "outlier_prune %g: expected 0 to 1", (double)o->outlier_prune);
    if (!(o->recall >= 0.0f && o->recall <= 1.0f))
        return st_fail(STINT_E_ARG, "recall %g: expected 0 to 1", (double)o->recall);
    if (o->predictor_rank > ST_NEURON_MAX_RANK)
        return st_fail(STINT_E_ARG, "predictor_rank %u: at most %d", o->predictor_rank,
                       ST_NEURON_MAX_RANK);
    if (o->neuron_bits != 0 && o->neuron_bits != 4 && o->neuron_bits != 8)
        return st_fail(STINT_E_ARG, "neuron_bits %u: expected 4 or 8", o->neuron_bits);
    if (!(o->sparse >= 0.0f && o->sparse <= 0.1f))
        return st_fail(STINT_E_ARG, "sparse %g: expected 0 to 0.1", (double)o->sparse);
    if (o->one_set && o->one_set != ST_NESTED_STORED && o->one_set != ST_NESTED_STORED - 1)
        return st_fail(STINT_E_ARG, "one_set %u: expected 7 or 8", o->one_set);
    if (o->one_set && (!o->bits_high || o->neurons || o->sparse > 0.0f))
        return st_fail(STINT_E_ARG, "one_set: INT8 weights are made of nested weights of all "
                                    "linears, without outliers and neurons");
    return o->bits_high ? st_nested_check_range(o->bits_low, o->bits_high, STINT_E_ARG) : STINT_OK;
}

const char *stint_quantizer(size_t i, const char **about) {
    const struct st_quantizer *q = st_quantizers;
    while (i-- > 0 && q->name) q++;
    if (about && q->name) *about = q->what;
    return q->name;
}

stint_status stint_prepare(const char *source, const char *package,
                           const stint_prepare_options *options, stint_prepare_summary *summary) {
    if (!source || !package || !*package)
        return st_fail(STINT_E_ARG, "source and package may not be NULL");
    stint_prepare_options o = {0};
    if (options) memcpy(&o, options, st_min(options->size, sizeof o));
    ST_TRY(check_options(&o));
    struct st_prepare_job p = {.source = source, .options = &o};
    ST_TRY(st_device_has_row_scales(o.target, &p.plan.row_scales));
    // Shares and their absence are those of shadow execution, predictors need static scales.
    if (o.outliers != STINT_OUTLIERS_AUTO || o.neurons) p.plan.row_scales = false;
    uint64_t begun = st_now_ns();
    stint_status status = open_source(&p, package);
    if (status == STINT_OK && write_package(&p) != STINT_OK)
        status = st_fail_prefix("%s: ", source);
    p.summary.n_tokens = (uint32_t)p.ids.count;
    if (status == STINT_OK) {
        status = st_package_finish(p.writer);
        p.writer = NULL;
    }
    close_all(&p);
    if (status == STINT_OK) st_map_renew(package, NULL, NULL);
    struct stat info;
    if (status != STINT_OK || !summary) return status;
    if (stat(package, &info) == 0) p.summary.bytes = (uint64_t)info.st_size;
    p.summary.size = summary->size;
    p.summary.seconds = (double)(st_now_ns() - begun) * 1e-9;
    memcpy(summary, &p.summary, st_min(summary->size, sizeof p.summary));
    return STINT_OK;
}
