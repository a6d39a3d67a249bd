// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include "base/cpu.h"
#include "base/log.h"
#include "base/process.h"
#include "base/size.h"
#include "chat/harmony.h"
#include "kernels/blocks.h"
#include "model/nested_from.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

bool st_model_stops(const struct stint_model *model, int32_t id) {
    for (uint32_t i = 0; i < model->config.n_stop_ids; i++)
        if (model->config.stop_ids[i] == id) return true;
    return false;
}

// What is normalised between two linears gets a scale only then.
static stint_status check_norms(const struct stint_model *m) {
    for (uint32_t i = 0; i < m->config.n_layers && m->weights.layers && m->int8.layers; i++)
        for (uint32_t e = 0; e < st_config_blocks(&m->config, i); e++)
            if (m->weights.layers[i].ffn[e].norm &&
                !st_int8_row_scales(&m->int8.layers[i].ffn[e].down.weight))
                return st_fail(STINT_E_FORMAT, "the norm of layer %u needs scales of rows", i);
    return STINT_OK;
}

static stint_status bind_on(struct stint_model *model, struct st_arena *arena) {
    struct st_package *package = model->checkpoint.package;
    bool int8 = package || model->preset_int8;
    struct st_tensor_source source = {.tensors = model->checkpoint.tensors,
                                      .gguf = model->checkpoint.source == ST_SOURCE_GGUF,
                                      .make = model->preset_weights ? st_preset_weights_make : NULL,
                                      .context = model->preset_weights,
                                      .no_embedding =
                                          package && st_package_find(package, ST_EMBEDDING_IN_HEAD),
                                      .int8 = int8};
    ST_TRY(st_weights_bind(&source, &model->config, arena, &model->weights));
    if (!int8) return STINT_OK;
    struct st_int8_source sections = {.find = st_int8_find_in_package, .context = package};
    if (model->preset_int8) {
        st_preset_int8_rewind(model->preset_int8);
        sections =
            (struct st_int8_source){.find = st_preset_int8_find, .context = model->preset_int8};
    }
    ST_TRY(st_weights_int8_bind(&sections, &model->config, arena, &model->int8));
    if (package) ST_TRY(st_weights_neurons_bind(&sections, &model->config, arena, &model->neurons));
    if (model->neurons.layers && model->int8.row_scales)
        return st_fail(STINT_E_FORMAT, "linears of a model with neurons need static scales");
    ST_TRY(check_norms(model));
    bool ffn = model->neurons.layout.n == 0;
    ST_TRY(st_weight_sets_bind(&sections, &model->config, ffn, arena, &model->int8));
    return st_weights_nested_bind(&sections, &model->config, ffn, arena, &model->weights,
                                  &model->nested);
}

static stint_status bind(struct stint_model *model) {
    model->arena = st_arena_measure();
    ST_TRY(bind_on(model, &model->arena));
    ST_TRY(st_arena_open(&model->arena, model->arena.used));
    ST_TRY(bind_on(model, &model->arena));
    return st_arena_check(&model->arena, "norms and biases");
}

// A package holds INT8 linears alone, a checkpoint those that it was made from.
static stint_status check_exec(const struct stint_model *m, const stint_model_options *options) {
    stint_exec exec = options ? options->exec : STINT_EXEC_DEFAULT;
    if (exec == STINT_EXEC_FLOAT && m->checkpoint.package)
        return st_fail(STINT_E_UNSUPPORTED, "a package holds INT8 weights; for --exec float give "
                                            "the checkpoint that it was prepared from");
    if (exec == STINT_EXEC_NPU && !m->checkpoint.package)
        return st_fail(STINT_E_UNSUPPORTED, "--exec npu needs a package: make one with "
                                            "'stint prepare MODEL -o MODEL.stint'");
    return STINT_OK;
}

static stint_status count_blocks(void *context, struct st_linear_id id) {
    struct stint_model *m = context;
    const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS];
    size_t n = st_linear_parts(&m->weights, id, parts);
    for (size_t i = 0; i < n; i++) m->fast |= parts[i]->data && st_blocks_has(parts[i]->dtype);
    return STINT_OK;
}

// Whether steps run in integers over blocks: by default where a linear has them and the CPU the
// vectors, without which floats are faster.
static stint_status select_fast(const stint_model_options *options, struct stint_model *m) {
    stint_exec exec = options ? options->exec : STINT_EXEC_DEFAULT;
    if (exec != STINT_EXEC_DEFAULT && exec != STINT_EXEC_FAST) return STINT_OK;
    if (!m->int8.layers)
        ST_TRY(st_linears_each(&m->config, st_max(1, m->config.n_experts), count_blocks, m));
    if (exec == STINT_EXEC_DEFAULT) m->fast &= st_blocks_select(st_cpu_flags())->isa != 0;
    if (exec == STINT_EXEC_FAST && !m->fast)
        return st_fail(STINT_E_UNSUPPORTED, "--exec fast needs a GGUF file with quantized weights, "
                                            "e.g. Q4_K_M or Q8_0");
    return STINT_OK;
}

// Where there is none, token ids still work; one that cannot be read is an error.
static stint_status open_tokenizer(const char *path, struct stint_model *model) {
    struct st_files files = {path, model->checkpoint.package};
    bool gguf = model->checkpoint.source == ST_SOURCE_GGUF;
    stint_status status = STINT_E_IO;
    if (gguf)
        status = st_tokenizer_from_gguf(model->checkpoint.gguf, &model->tokenizer);
    else if (st_tokenizer_is_there(&files))
        return st_tokenizer_from_files(&files, &model->tokenizer); // names its file itself
    if (status != STINT_E_IO) return status == STINT_OK ? status : st_fail_prefix("%s: ", path);
    st_log(STINT_LOG_INFO, "%s: no tokenizer", path);
    return STINT_OK;
}

static stint_status adopt_tokenizer(struct stint_model *model) {
    const struct stint_tokenizer *tokenizer = model->tokenizer;
    const char *template = tokenizer ? st_tokenizer_chat_template(tokenizer) : NULL;
    ST_TRY(st_chat_open(template, tokenizer, &model->chat));
    if (!tokenizer) return STINT_OK;
    st_config_add_stop(&model->config, st_tokenizer_eos(tokenizer));
    const char *turn_end = st_chat_turn_end(st_chat_builtin(model->chat));
    if (turn_end) st_config_add_stop(&model->config, st_tokenizer_find(tokenizer, turn_end));
    if (st_harmony_is_spoken(template)) // GGUF files name one end alone
        st_config_add_stop(&model->config, st_tokenizer_find(tokenizer, "<|call|>"));
    return STINT_OK;
}

static stint_status read_pooling(const char *path, struct stint_model *model) {
    struct st_files files = {path, model->checkpoint.package};
    return st_pooling_read(&model->checkpoint, &files, &model->pooling);
}

static stint_status finish_open(stint_status status, const char *name, struct stint_model *m,
                                stint_model **model) {
    if (status != STINT_OK) {
        stint_model_close(m);
        return name ? st_fail_prefix("%s: ", name) : status;
    }
    *model = m;
    return STINT_OK;
}

// Float linears that every token needs are pinned: the file may change, or be cut short.
static void pin_linear(struct st_linear_weight *w, struct st_arena *arena) {
    size_t bytes = w->n_out * w->row_bytes;
    void *copy = w->data ? st_arena_take(arena, bytes, 1) : NULL;
    if (copy) w->data = memcpy(copy, w->data, bytes);
}

static void pin_latent(struct st_latent_weight *w, struct st_arena *arena) {
    pin_linear(&w->query, arena);
    pin_linear(&w->keys, arena);
    pin_linear(&w->values, arena);
}

static void pin_linears(struct stint_model *m, struct st_arena *arena) {
    struct st_weights *w = &m->weights;
    pin_linear(&w->positions, arena);
    pin_linear(&w->project_in, arena);
    pin_linear(&w->project_out, arena);
    pin_linear(&w->layer_project, arena);
    for (uint32_t i = 1; i < m->config.n_streams; i++) {
        pin_linear(&w->stream_in[i - 1], arena);
        pin_linear(&w->stream_out[i - 1], arena);
    }
    for (uint32_t i = 0; i < m->config.n_layers && w->layers; i++) {
        pin_linear(&w->layers[i].router, arena);
        pin_linear(&w->layers[i].shared_gate, arena);
        pin_linear(&w->layers[i].input_gate, arena);
        pin_linear(&w->layers[i].input_out, arena);
        pin_linear(&w->layers[i].laurel_in, arena);
        pin_linear(&w->layers[i].laurel_out, arena);
        pin_linear(&w->layers[i].streams.router, arena);
        pin_linear(&w->layers[i].state.rate, arena);
        pin_linear(&w->layers[i].state.decay, arena);
        pin_latent(&w->layers[i].latent, arena);
    }
}

// What was read of it to open it leaves memory.
static stint_status leave_file(struct stint_model *m) {
    struct st_arena measure = st_arena_measure();
    pin_linears(m, &measure);
    ST_TRY(st_file_pieces_bind(m, &measure));
    ST_TRY(st_arena_open(&m->pinned, measure.used));
    pin_linears(m, &m->pinned);
    ST_TRY(st_file_pieces_bind(m, &m->pinned));
    for (size_t i = 0; i < m->checkpoint.n_maps; i++) {
        st_map_forget(m->checkpoint.maps[i].data, m->checkpoint.maps[i].bytes);
        posix_fadvise(m->checkpoint.files[i].file, 0, 0, POSIX_FADV_DONTNEED);
    }
    return STINT_OK;
}

stint_status stint_model_open(const char *path, const stint_model_options *options,
                              stint_model **model) {
    if (!path || !model) return st_fail(STINT_E_ARG, "path and model may not be NULL");
    struct stint_model *m = calloc(1, sizeof *m);
    if (!m) return st_fail(STINT_E_NOMEM, "no memory for a model");
    bool lazy = options && options->lazy;
    uint64_t before = st_process_anonymous_bytes();
    stint_status status = lazy ? st_checkpoint_open_lazy(path, &m->checkpoint)
                               : st_checkpoint_open(path, &m->checkpoint);
    if (status != STINT_OK) return finish_open(status, NULL, m, model); // names its file itself
    status = check_exec(m, options);
    if (status == STINT_OK) status = st_config_read(&m->checkpoint, &m->config);
    if (status == STINT_OK) status = bind(m);
    if (status == STINT_OK) status = select_fast(options, m);
    if (status != STINT_OK) return finish_open(status, path, m, model);
    status = options && options->nested ? st_nested_from_open(options->nested, m) : STINT_OK;
    if (status != STINT_OK) return finish_open(status, NULL, m, model); // names its file itself
    if (!(options && options->no_tokenizer)) status = open_tokenizer(path, m);
    if (status == STINT_OK) status = adopt_tokenizer(m);
    if (status == STINT_OK) status = read_pooling(path, m);
    if (status == STINT_OK && m->checkpoint.lazy) status = leave_file(m);
    uint64_t after = st_process_anonymous_bytes();
    m->held_bytes = after > before ? after - before : 0;
    return finish_open(status, NULL, m, model);
}

// Lets the binding ask for every tensor once, which makes them: counted only while `bytes` is 0.
static stint_status make_random(const struct st_preset *preset, size_t bytes,
                                struct stint_model *m) {
    st_preset_weights_close(m->preset_weights);
    st_tensors_close(m->checkpoint.tensors);
    m->preset_weights = NULL;
    m->checkpoint.tensors = NULL;
    ST_TRY(st_tensors_open(1024, &m->checkpoint.tensors));
    ST_TRY(st_preset_weights_open(preset, m->checkpoint.tensors, bytes, &m->preset_weights));
    struct st_tensor_source source = {.tensors = m->checkpoint.tensors,
                                      .make = st_preset_weights_make,
                                      .context = m->preset_weights,
                                      .int8 = m->preset_int8 != NULL};
    struct st_arena measure = st_arena_measure();
    return st_weights_bind(&source, &m->config, &measure, &m->weights);
}

static stint_status open_preset_int8(const stint_model_options *options, struct stint_model *m) {
    uint32_t low = options->nested_low, high = options->nested_high;
    if (high) ST_TRY(st_nested_check_range(low, high, STINT_E_ARG));
    struct st_nested_range range = {(uint8_t)low, (uint8_t)high};
    return st_preset_int8_open(&m->config, range, options->progress, options->progress_context,
                               &m->preset_int8);
}

static stint_status open_preset(const char *name, const stint_model_options *options,
                                struct stint_model *m) {
    const struct st_preset *preset;
    stint_model_options o = options ? *options : (stint_model_options){.size = sizeof o};
    m->checkpoint.source = ST_SOURCE_PRESET;
    ST_TRY(st_preset_find(name, &preset));
    ST_TRY(st_preset_config(name, &m->config, &m->checkpoint.config));
    if (o.exec == STINT_EXEC_DEFAULT) o.exec = preset->fast ? STINT_EXEC_FAST : STINT_EXEC_NPU;
    if (o.exec == STINT_EXEC_NPU) ST_TRY(open_preset_int8(&o, m));
    ST_TRY(make_random(preset, 0, m));
    ST_TRY(make_random(preset, st_preset_weights_bytes(m->preset_weights), m));
    st_preset_weights_fill(m->preset_weights, o.progress, o.progress_context);
    ST_TRY(bind(m));
    return select_fast(&o, m);
}

stint_status stint_model_open_preset(const char *name, const stint_model_options *options,
                                     stint_model **model) {
    if (!name || !model) return st_fail(STINT_E_ARG, "name and model may not be NULL");
    struct stint_model *m = calloc(1, sizeof *m);
    if (!m) return st_fail(STINT_E_NOMEM, "no memory for a model");
    stint_status status = open_preset(name, options, m);
    if (status == STINT_OK) status = adopt_tokenizer(m);
    return finish_open(status, NULL, m, model);
}

const char *stint_preset_name(size_t i) {
    for (const struct st_preset *s = st_presets; s->name; s++)
        if (i-- == 0) return s->name;
    return NULL;
}

void stint_model_close(stint_model *model) {
    if (!model) return;
    st_chat_close(model->chat);
    st_tokenizer_close(model->tokenizer);
    st_nested_from_close(model);
    st_preset_weights_close(model->preset_weights);
    st_preset_int8_close(model->preset_int8);
    st_arena_close(&model->arena);
    st_arena_close(&model->pinned);
    st_checkpoint_close(&model->checkpoint);
    free(model);
}

const char *stint_model_notes(const stint_model *model, size_t *bytes) {
    const struct st_package *package = model->checkpoint.package;
    const struct st_section *notes = package ? st_package_find(package, ST_PACKAGE_META) : NULL;
    if (!notes) return NULL;
    *bytes = notes->bytes;
    return notes->data;
}

const stint_tokenizer *stint_model_tokenizer(const stint_model *model) {
    return model->tokenizer;
}

void stint_free(void *pointer) {
    free(pointer);
}
