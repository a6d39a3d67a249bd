// SPDX-License-Identifier: Apache-2.0
// Binds tokens' inputs of each layer, and what a layer does with its own (session/layer_input.c).
#include "model/binder.h"

#include <math.h>

stint_status st_bind_layer_inputs(const struct st_binder *b, struct st_weights *w) {
    const struct st_config *c = b->config;
    uint32_t n = c->layer_input, all = c->n_layers * n;
    if (n == 0) return STINT_OK;
    ST_TRY(st_bind_linear(b, ST_ROLE_LAYER_EMBED, 0, c->layer_vocab, all, false, &w->layer_embed));
    ST_TRY(st_bind_linear(b, ST_ROLE_LAYER_PROJECT, 0, all, c->hidden, false, &w->layer_project));
    w->layer_project.scale = (float)(1.0 / sqrt(c->hidden));
    return st_bind_norm(b, ST_ROLE_LAYER_PROJECT_NORM, 0, n, true, &w->layer_project_norm);
}

stint_status st_bind_layer_input(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    uint32_t n = c->layer_input;
    if (st_bind_has_role(b, ST_ROLE_LAYER_SCALE))
        ST_TRY(st_bind_vector(b, ST_ROLE_LAYER_SCALE, b->source->gguf ? ".weight" : "", i, 0, 1,
                              false, 0.0f, &layer->scale));
    if (n == 0) return STINT_OK;
    ST_TRY(st_bind_linear(b, ST_ROLE_LAYER_GATE, i, n, c->hidden, false, &layer->input_gate));
    ST_TRY(st_bind_linear(b, ST_ROLE_LAYER_OUT, i, c->hidden, n, false, &layer->input_out));
    return st_bind_norm(b, ST_ROLE_LAYER_OUT_NORM, i, c->hidden, true, &layer->input_norm);
}
