// SPDX-License-Identifier: Apache-2.0
// From a checkpoint to a package: layer by layer the calibration text runs in float, then the
// layer's linears are quantized, written and forgotten (llm.npu, section 3; docs/NUMERICS.md).
#include "base/clock.h"
#include "base/log.h"
#include "format/files.h"
#include "prepare/calibrate.h"
#include "prepare/calibration_tokens.h"
#include "prepare/pack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// What a package keeps of a Hugging Face folder beside the weights.
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
};

struct preparation {
    const char *source;
    const stint_prepare_options *options;
    stint_model *model;
    struct st_package_writer *writer;
    struct st_packer *packer;
    struct st_calibration calibration;
    struct st_ids ids;
    uint32_t n_linears;
    uint64_t done; // steps
};

static bool is_canceled(void *context) {
    const stint_prepare_options *o = context;
    return o->canceled && o->canceled(o->canceled_context);
}

// Two steps a layer, and two for the head.
static stint_status step(struct preparation *p, const char *what) {
    const stint_prepare_options *o = p->options;
    uint64_t total = 2 * ((uint64_t)p->model->config.n_layers + 1);
    if (o->progress) o->progress(o->progress_context, what, ++p->done, total);
    return is_canceled((void *)(uintptr_t)o) ? st_fail(STINT_E_CANCELED, "canceled") : STINT_OK;
}

// ---- What is kept as it is

static stint_status add_blob(struct preparation *p, const char *name, const void *data,
                             size_t bytes) {
    struct st_section s = {.name = name,
                           .type = ST_SECTION_BLOB,
                           .n_dims = 1,
                           .dims = {bytes, 1, 1, 1},
                           .data = data,
                           .bytes = bytes};
    return st_package_add(p->writer, &s);
}

static stint_status keep_files(struct preparation *p) {
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

static stint_status keep_gguf(struct preparation *p) {
    void *data;
    size_t bytes;
    ST_TRY(st_gguf_metadata(p->model->checkpoint.gguf, &data, &bytes));
    stint_status status = add_blob(p, ST_PACKAGE_GGUF, data, bytes);
    free(data);
    return status;
}

static stint_status add_meta(struct preparation *p) {
    stint_model_info info = {.size = sizeof info};
    ST_TRY(stint_model_describe(p->model, &info));
    json_t *meta = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I}", "stint", stint_version(), "weights", "w8a8",
        "weight_scale", p->options->weight_scale == STINT_SCALE_TENSOR ? "tensor" : "channel",
        "made_from", info.weight_type, "parameters", (json_int_t)info.n_parameters,
        "calibration_tokens", (json_int_t)p->ids.count);
    char *text = meta ? json_dumps(meta, JSON_INDENT(1)) : NULL;
    stint_status status = text ? add_blob(p, ST_PACKAGE_META, text, strlen(text))
                               : st_fail(STINT_E_NOMEM, "no memory to describe the package");
    free(text);
    json_decref(meta);
    return status;
}

static stint_status add_tensor(struct preparation *p, const struct st_tensor *t) {
    struct st_section s = {.name = t->name,
                           .type = ST_SECTION_TENSOR,
                           .dtype = t->dtype,
                           .n_dims = t->n_dims,
                           .data = t->data,
                           .bytes = t->bytes};
    memcpy(s.dims, t->dims, sizeof s.dims);
    ST_TRY(st_package_add(p->writer, &s));
    st_map_forget(t->data, t->bytes);
    return STINT_OK;
}

// The tensors that a model with INT8 linears still asks for.
struct collector {
    const struct st_tensor **tensors;
    size_t n, most;
};

static void collect(void *context, const struct st_tensor *tensor) {
    struct collector *c = context;
    for (size_t i = 0; i < c->n; i++)
        if (c->tensors[i] == tensor) return;
    if (c->n < c->most) c->tensors[c->n++] = tensor;
}

// Read while the config is, not bound.
static void collect_rope_factors(const struct preparation *p, struct collector *c) {
    const struct st_tensors *all = p->model->checkpoint.tensors;
    for (size_t i = 0; i < st_tensors_count(all); i++)
        if (strncmp(st_tensors_at(all, i)->name, "rope_", 5) == 0)
            collect(c, st_tensors_at(all, i));
}

static stint_status keep_tensors(struct preparation *p) {
    const struct st_checkpoint *checkpoint = &p->model->checkpoint;
    struct collector c = {.most = st_tensors_count(checkpoint->tensors)};
    struct st_weight_source source = {.tensors = checkpoint->tensors,
                                      .gguf = checkpoint->source == ST_SOURCE_GGUF,
                                      .int8 = true,
                                      .seen = collect,
                                      .context = &c};
    struct st_arena measure = st_arena_measure();
    struct st_weights unused;
    c.tensors = calloc(c.most + 1, sizeof *c.tensors);
    if (!c.tensors) return st_fail(STINT_E_NOMEM, "no memory for %zu tensors", c.most);
    if (source.gguf) collect_rope_factors(p, &c);
    stint_status status = st_weights_bind(&source, &p->model->config, &measure, &unused);
    for (size_t i = 0; i < c.n && status == STINT_OK; i++) status = add_tensor(p, c.tensors[i]);
    free(c.tensors);
    return status;
}

// ---- Linears

static stint_status pack(struct preparation *p, struct st_pack_source *s,
                         const struct st_maxima *maxima) {
    char name[ST_INT8_NAME_BYTES];
    st_int8_name(s->role, &p->model->config, s->layer, s->expert, name);
    s->per_tensor = p->options->weight_scale == STINT_SCALE_TENSOR;
    ST_TRY(st_maxima_scale(maxima, name, &s->input_scale));
    ST_TRY(st_pack_linear(p->packer, s, p->writer));
    for (size_t i = 0; i < ST_STAGE_PARTS && s->parts[i]; i++)
        st_map_forget(s->parts[i]->data, s->parts[i]->n_out * s->parts[i]->row_bytes);
    p->n_linears++;
    return STINT_OK;
}

static stint_status pack_ffn(struct preparation *p, uint32_t i, uint32_t expert) {
    const struct st_ffn_weight *w = &p->model->weights.layers[i].ffn[expert];
    const struct st_layer_maxima *m = &p->calibration.maxima;
    bool gated = w->gate.data != NULL;
    struct st_pack_source up = {.role = ST_INT8_UP, .layer = i, .expert = expert};
    struct st_pack_source down = {
        .role = ST_INT8_DOWN, .layer = i, .expert = expert, .parts = {&w->down}};
    up.parts[0] = gated ? &w->gate : &w->up;
    up.parts[1] = gated ? &w->up : NULL;
    ST_TRY(pack(p, &up, &m->up[expert]));
    return pack(p, &down, &m->down[expert]);
}

static stint_status pack_layer(struct preparation *p, uint32_t i) {
    const struct st_layer *l = &p->model->weights.layers[i];
    const struct st_layer_maxima *m = &p->calibration.maxima;
    struct st_pack_source qkv = {.role = ST_INT8_QKV, .layer = i, .parts = {&l->q, &l->k, &l->v}};
    struct st_pack_source o = {.role = ST_INT8_O, .layer = i, .parts = {&l->o}};
    ST_TRY(pack(p, &qkv, &m->qkv));
    ST_TRY(pack(p, &o, &m->o));
    for (uint32_t e = 0; e < st_max(1, p->model->config.n_experts); e++) ST_TRY(pack_ffn(p, i, e));
    return STINT_OK;
}

static stint_status pack_head(struct preparation *p) {
    struct st_pack_source head = {.role = ST_INT8_HEAD, .parts = {&p->model->weights.head}};
    return pack(p, &head, &p->calibration.maxima.head);
}

static stint_status calibrate_and_pack(struct preparation *p) {
    for (uint32_t i = 0; i < p->model->config.n_layers; i++) {
        ST_TRY(st_calibration_layer(&p->calibration, i));
        ST_TRY(step(p, "calibrating"));
        ST_TRY(pack_layer(p, i));
        ST_TRY(step(p, "quantizing"));
    }
    ST_TRY(st_calibration_head(&p->calibration));
    ST_TRY(step(p, "calibrating"));
    ST_TRY(pack_head(p));
    return step(p, "quantizing");
}

static stint_status write_package(struct preparation *p) {
    const stint_prepare_options *o = p->options;
    bool gguf = p->model->checkpoint.source == ST_SOURCE_GGUF;
    ST_TRY(add_meta(p));
    ST_TRY(gguf ? keep_gguf(p) : keep_files(p));
    ST_TRY(st_packer_open(&p->model->config, &p->packer));
    p->calibration.stop = is_canceled;
    p->calibration.stop_context = (void *)(uintptr_t)o;
    ST_TRY(st_calibration_open(p->model, p->ids.data, p->ids.count, o->n_threads, &p->calibration));
    ST_TRY(calibrate_and_pack(p));
    return keep_tensors(p);
}

// ---- The whole

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static stint_status open_source(struct preparation *p, const char *package) {
    stint_model_options options = {.size = sizeof options};
    ST_TRY(stint_model_open(p->source, &options, &p->model));
    if (p->model->checkpoint.package)
        return st_fail(STINT_E_UNSUPPORTED, "%s: is a package already", p->source);
    if (same_file(p->source, package))
        return st_fail(STINT_E_ARG, "%s: the package would take the place of its source", package);
    struct st_calibration_input input = {p->options->text, p->options->text_bytes, p->options->ids,
                                         p->options->n_ids, p->options->n_tokens};
    ST_TRY(st_calibration_tokens(p->model, &input, &p->ids));
    return st_package_create(package, &p->writer);
}

static void close_all(struct preparation *p) {
    st_calibration_close(&p->calibration);
    st_packer_close(p->packer);
    st_package_abandon(p->writer);
    st_ids_free(&p->ids);
    stint_model_close(p->model);
}

stint_status stint_prepare(const char *source, const char *package,
                           const stint_prepare_options *options, stint_prepare_summary *summary) {
    if (!source || !package || !*package)
        return st_fail(STINT_E_ARG, "source and package may not be NULL");
    stint_prepare_options o = {0};
    if (options) memcpy(&o, options, st_min(options->size, sizeof o));
    if (o.weight_scale != STINT_SCALE_CHANNEL && o.weight_scale != STINT_SCALE_TENSOR)
        return st_fail(STINT_E_ARG, "weight scale %d: expected channel or tensor",
                       (int)o.weight_scale);
    struct preparation p = {.source = source, .options = &o};
    uint64_t begun = st_now_ns();
    stint_status status = open_source(&p, package);
    if (status == STINT_OK && write_package(&p) != STINT_OK)
        status = st_fail_prefix("%s: ", source);
    stint_prepare_summary out = {.n_linears = p.n_linears, .n_tokens = (uint32_t)p.ids.count};
    if (status == STINT_OK) {
        status = st_package_finish(p.writer);
        p.writer = NULL;
    }
    close_all(&p);
    struct stat info;
    if (status != STINT_OK || !summary) return status;
    if (stat(package, &info) == 0) out.bytes = (uint64_t)info.st_size;
    out.size = summary->size;
    out.seconds = (double)(st_now_ns() - begun) * 1e-9;
    memcpy(summary, &out, st_min(summary->size, sizeof out));
    return STINT_OK;
}
