// SPDX-License-Identifier: Apache-2.0
// The layer that predicts a further token. It has the form of the model's layers with attention.
// Most files number it behind the others; Qwen's Hugging Face folders have it apart, as number 0.
#include "base/log.h"
#include "model/arch_names.h"
#include "model/binder.h"

#include <string.h>

static const struct st_name_prefix apart = {ST_AHEAD_PREFIX, true};

static bool stands_apart(const struct st_binder *b) {
    const char *join = st_arch_role(b->config->arch, b->source->gguf, ST_ROLE_AHEAD_JOIN);
    return strncmp(join, ST_AHEAD_PREFIX, strlen(ST_AHEAD_PREFIX)) == 0;
}

// The names of its tensors. Only a folder has layers apart, so the numbers are those of the config.
static struct st_binder names_of(const struct st_binder *b) {
    struct st_binder own = *b;
    if (stands_apart(b)) own.prefix = &apart;
    return own;
}

// Packages are made without it, and random weights have none. Families whose layers differ from
// each other or whose tokens have more than one hidden state do not come with it.
bool st_bind_has_ahead(const struct st_binder *b) {
    const struct st_config *c = b->config;
    const char *join = st_arch_role(c->arch, b->source->gguf, ST_ROLE_AHEAD_JOIN);
    struct st_binder own = names_of(b);
    char name[ST_BIND_NAME_BYTES];
    if (b->source->int8 || b->source->make || b->source->seen || c->n_layers + 1 >= ST_MAX_LAYERS ||
        c->flags & (ST_ARCH_HALVES | ST_ARCH_JOINT | ST_ARCH_LAYERS) || c->n_streams ||
        c->layer_input || c->embed != c->hidden || c->n_form[ST_FORM_ATTENTION] == 0)
        return false;
    st_bind_name(&own, join, ".weight", c->n_layers, 0, name);
    return st_tensors_find(b->source->tensors, name) != NULL;
}

static stint_status bind(const struct st_binder *b, struct st_layer *layer,
                         struct st_ahead_weight *ahead) {
    struct st_config *c = b->config;
    struct st_binder own = names_of(b);
    uint32_t i = c->n_layers;
    c->form[i] = ST_FORM_ATTENTION;
    c->rank[i] = (uint16_t)c->n_form[ST_FORM_ATTENTION];
    c->mixer_at[i] = c->ffn_at[i] = (uint16_t)(stands_apart(b) ? 0 : i);
    c->sliding[i] = c->unrotated[i] = c->dense[i] = c->joined[i] = c->keys_as_values[i] = 0;
    c->cache_back[i] = 0;
    c->ffn_at_layer[i] = 0;
    ST_TRY(st_bind_layer(&own, i, layer));
    ST_TRY(
        st_bind_linear(&own, ST_ROLE_AHEAD_JOIN, i, c->hidden, 2 * c->hidden, false, &ahead->join));
    ST_TRY(st_bind_norm(&own, ST_ROLE_AHEAD_EMBED_NORM, i, c->hidden, true, &ahead->embed_norm));
    ST_TRY(st_bind_norm(&own, ST_ROLE_AHEAD_HIDDEN_NORM, i, c->hidden, true, &ahead->hidden_norm));
    return st_bind_norm(&own, ST_ROLE_AHEAD_NORM, i, c->hidden, true, &ahead->norm);
}

stint_status st_bind_ahead(const struct st_binder *b, struct st_layer *layer,
                           struct st_ahead_weight *ahead) {
    stint_status status = bind(b, layer, ahead);
    if (status == STINT_OK || status == STINT_E_NOMEM) return status;
    st_log(STINT_LOG_INFO, "the layer that predicts further tokens is left out: %s",
           st_error_text());
    *ahead = (struct st_ahead_weight){0};
    return STINT_OK;
}
