// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

bool st_model_stops(const struct stint_model *model, int32_t id) {
    for (uint32_t i = 0; i < model->config.n_stop_ids; i++)
        if (model->config.stop_ids[i] == id) return true;
    return false;
}

static stint_status bind(struct stint_model *model) {
    struct st_weight_source source = {.tensors = model->checkpoint.tensors,
                                      .gguf = model->checkpoint.source == ST_SOURCE_GGUF,
                                      .make = model->shape_weights ? st_shape_weights_make : NULL,
                                      .context = model->shape_weights};
    model->arena = st_arena_measure();
    ST_TRY(st_weights_bind(&source, &model->config, &model->arena, &model->weights));
    ST_TRY(st_arena_open(&model->arena, model->arena.used));
    ST_TRY(st_weights_bind(&source, &model->config, &model->arena, &model->weights));
    return st_arena_check(&model->arena, "norms and biases");
}

// Where there is none, token ids still work; one that cannot be read is an error.
static stint_status open_tokenizer(const char *path, struct stint_model *model) {
    bool gguf = model->checkpoint.source == ST_SOURCE_GGUF;
    stint_status status = STINT_E_IO;
    if (gguf)
        status = st_tokenizer_from_gguf(model->checkpoint.gguf, &model->tokenizer);
    else if (st_tokenizer_is_there(path))
        return st_tokenizer_open(path, &model->tokenizer); // names its file itself
    if (status != STINT_E_IO) return status == STINT_OK ? status : st_fail_prefix("%s: ", path);
    st_log(STINT_LOG_INFO, "%s: no tokenizer", path);
    return STINT_OK;
}

static void adopt_tokenizer(struct stint_model *model) {
    const struct stint_tokenizer *tokenizer = model->tokenizer;
    const char *template = tokenizer ? st_tokenizer_chat_template(tokenizer) : NULL;
    model->chat_format = st_chat_recognise(template);
    if (!tokenizer) return;
    st_config_add_stop(&model->config, st_tokenizer_eos(tokenizer));
    const char *turn_end = st_chat_turn_end(model->chat_format);
    if (turn_end) st_config_add_stop(&model->config, st_tokenizer_find(tokenizer, turn_end));
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

stint_status stint_model_open(const char *path, const stint_model_options *options,
                              stint_model **model) {
    if (!path || !model) return st_fail(STINT_E_ARG, "path and model may not be NULL");
    struct stint_model *m = calloc(1, sizeof *m);
    if (!m) return st_fail(STINT_E_NOMEM, "no memory for a model");
    stint_status status = st_checkpoint_open(path, &m->checkpoint);
    if (status != STINT_OK) return finish_open(status, NULL, m, model); // names its file itself
    status = st_config_read(&m->checkpoint, &m->config);
    if (status == STINT_OK) status = bind(m);
    if (status != STINT_OK) return finish_open(status, path, m, model);
    if (!(options && options->no_tokenizer)) status = open_tokenizer(path, m);
    if (status == STINT_OK) adopt_tokenizer(m);
    return finish_open(status, NULL, m, model);
}

// Lets the binding ask for every tensor once, which makes them: counted only while `bytes` is 0.
static stint_status make_random(struct stint_model *m, size_t bytes) {
    st_shape_weights_close(m->shape_weights);
    st_tensors_close(m->checkpoint.tensors);
    m->shape_weights = NULL;
    m->checkpoint.tensors = NULL;
    ST_TRY(st_tensors_open(1024, &m->checkpoint.tensors));
    ST_TRY(st_shape_weights_open(m->checkpoint.tensors, bytes, &m->shape_weights));
    struct st_weight_source source = {m->checkpoint.tensors, st_shape_weights_make,
                                      m->shape_weights, false};
    struct st_arena measure = st_arena_measure();
    return st_weights_bind(&source, &m->config, &measure, &m->weights);
}

static stint_status open_shape(const char *name, const stint_model_options *options,
                               struct stint_model *m) {
    const struct st_shape *shape;
    ST_TRY(st_shape_find(name, &shape));
    m->checkpoint.source = ST_SOURCE_SHAPE;
    m->checkpoint.config = json_loads(shape->config, 0, NULL);
    ST_TRY(st_config_read(&m->checkpoint, &m->config));
    m->config.tied_if_absent = false;
    ST_TRY(make_random(m, 0));
    ST_TRY(make_random(m, st_shape_weights_bytes(m->shape_weights)));
    st_shape_weights_fill(m->shape_weights, options ? options->progress : NULL,
                          options ? options->progress_context : NULL);
    return bind(m);
}

stint_status stint_model_open_shape(const char *name, const stint_model_options *options,
                                    stint_model **model) {
    if (!name || !model) return st_fail(STINT_E_ARG, "name and model may not be NULL");
    struct stint_model *m = calloc(1, sizeof *m);
    if (!m) return st_fail(STINT_E_NOMEM, "no memory for a model");
    stint_status status = open_shape(name, options, m);
    if (status == STINT_OK) adopt_tokenizer(m);
    return finish_open(status, NULL, m, model);
}

const char *stint_shape_name(size_t i) {
    for (const struct st_shape *s = st_shapes; s->name; s++)
        if (i-- == 0) return s->name;
    return NULL;
}

void stint_model_close(stint_model *model) {
    if (!model) return;
    st_tokenizer_close(model->tokenizer);
    st_shape_weights_close(model->shape_weights);
    st_arena_close(&model->arena);
    st_checkpoint_close(&model->checkpoint);
    free(model);
}

const stint_tokenizer *stint_model_tokenizer(const stint_model *model) {
    return model->tokenizer;
}

stint_status stint_chat_format(const stint_model *model, const stint_message *messages,
                               size_t n_messages, char **text) {
    if (!model->tokenizer)
        return st_fail(STINT_E_ARG, "this model has no tokenizer: only token ids can be used");
    return st_chat_render(model->chat_format, model->tokenizer, messages, n_messages, text);
}

void stint_free(void *pointer) {
    free(pointer);
}
