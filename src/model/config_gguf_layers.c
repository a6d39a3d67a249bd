// SPDX-License-Identifier: Apache-2.0
// The same as config_layers.c, of GGUF files.
#include "model/gguf_reader.h"
#include "model/weights_int8.h"

#include <math.h>
#include <stdio.h>

// Layers with a window have keys of their own; the file's plain keys are of the others.
static stint_status read_heads(const struct st_gguf_reader *r, struct st_config *c) {
    uint32_t values = 0, n_kv[ST_MAX_LAYERS];
    bool seen[2] = {false, false};
    c->local = (struct st_heads){c->n_heads, c->head_dim, 0};
    ST_TRY(st_reader_size(r, "attention.key_length_swa", &c->local.dim));
    values = c->local.dim;
    ST_TRY(st_reader_size(r, "attention.value_length_swa", &values));
    if (values != c->local.dim)
        return st_fail(STINT_E_UNSUPPORTED,
                       "key length %u, value length %u of layers with a "
                       "window: they must be equal",
                       c->local.dim, values);
    c->local.rope_dims = c->local.dim;
    ST_TRY(st_reader_size(r, "rope.dimension_count_swa", &c->local.rope_dims));
    for (uint32_t i = 0; i < c->n_layers; i++) n_kv[i] = c->n_heads;
    ST_TRY(st_reader_sizes(r, "attention.head_count_kv", c->n_layers, n_kv));
    for (uint32_t i = 0; i < c->n_layers; i++) {
        uint32_t *to = c->sliding[i] ? &c->local.n_kv : &c->n_kv_heads;
        if (seen[c->sliding[i]] && n_kv[i] != *to)
            return st_fail(STINT_E_UNSUPPORTED,
                           "'%s.attention.head_count_kv' differs between layers of one kind",
                           r->prefix);
        *to = n_kv[i];
        seen[c->sliding[i]] = true;
    }
    return STINT_OK;
}

// Of a mixture these are of its shared block, which has one width.
static stint_status read_widths(const struct st_gguf_reader *r, struct st_config *c) {
    for (uint32_t i = 0; i < c->n_layers; i++) c->ffn_at_layer[i] = c->ffn;
    ST_TRY(st_reader_sizes(r, "feed_forward_length", c->n_layers, c->ffn_at_layer));
    uint32_t first = c->ffn_at_layer[0];
    for (uint32_t i = 0; i < c->n_layers && c->n_experts; i++) {
        if (c->ffn_at_layer[i] != first)
            return st_fail(STINT_E_UNSUPPORTED,
                           "'%s.feed_forward_length' differs between layers with experts",
                           r->prefix);
        c->ffn_at_layer[i] = 0;
    }
    *(c->n_experts ? &c->shared_ffn : &c->ffn) = first;
    return STINT_OK;
}

// Whether values have a linear of their own: a tensor, or in packages rows of the one of all three.
static bool has_values(const struct st_checkpoint *checkpoint, const struct st_config *c,
                       uint32_t layer) {
    char name[64];
    snprintf(name, sizeof name, "blk.%u.attn_v.weight", layer);
    if (!checkpoint->package) return st_tensors_find(checkpoint->tensors, name) != NULL;
    st_int8_name(ST_INT8_QKV, c, layer, 0, name);
    char section[sizeof name + sizeof ST_INT8_SCALE];
    snprintf(section, sizeof section, "%s%s", name, ST_INT8_SCALE);
    const struct st_section *s = st_package_find(checkpoint->package, section);
    struct st_linear_op with;
    st_int8_shape(ST_INT8_QKV, c, layer, 0, &with);
    return !s || s->dims[0] == (uint64_t)with.weight.n_panels * ST_INT8_PANEL;
}

static stint_status read_streams(const struct st_gguf_reader *r,
                                 const struct st_checkpoint *checkpoint, struct st_config *c) {
    struct st_reader_key k = st_reader_key(r, "activation_sparsity_scale");
    struct st_gguf_array cutoffs = {.type = ST_GGUF_N_TYPES};
    uint32_t active = 0;
    ST_TRY(st_reader_size(r, "altup.num_inputs", &c->n_streams));
    ST_TRY(st_reader_size(r, "altup.active_idx", &active));
    if (c->n_streams == 0) return STINT_OK;
    if (active)
        return st_fail(STINT_E_UNSUPPORTED, "'%s.altup.active_idx' is %u", r->prefix, active);
    const struct st_tensor *t = st_tensors_find(checkpoint->tensors, "blk.0.laurel_l.weight");
    if (!t) return st_tensors_missing(checkpoint->tensors, "blk.0.laurel_l.weight");
    c->laurel = t->dims[0] <= INT32_MAX ? (uint32_t)t->dims[0] : 0;
    ST_TRY(st_gguf_array(r->gguf, k.text, ST_GGUF_F32, &cutoffs));
    if (cutoffs.type == ST_GGUF_N_TYPES) return STINT_OK;
    if (cutoffs.count != c->n_layers)
        return st_fail(STINT_E_FORMAT, "'%s' has %llu entries for %u layers", k.text,
                       (unsigned long long)cutoffs.count, c->n_layers);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        c->cutoff[i] = st_gguf_array_f32(&cutoffs, i);
        c->cut[i] = isfinite(c->cutoff[i]); // a share of 0 is minus infinity
    }
    return STINT_OK;
}

stint_status st_config_read_gguf_layers(const struct st_gguf_reader *r,
                                        const struct st_checkpoint *checkpoint,
                                        struct st_config *c) {
    uint32_t n_shared = 0;
    char name[64];
    if (!(c->flags & ST_ARCH_LAYERS)) return STINT_OK;
    if (c->window == 0)
        return st_fail(STINT_E_UNSUPPORTED, "'%s.attention.sliding_window' is missing", r->prefix);
    ST_TRY(read_heads(r, c));
    ST_TRY(read_widths(r, c));
    ST_TRY(st_reader_size(r, "attention.shared_kv_layers", &n_shared));
    for (uint32_t i = 0; i < c->n_layers && i < c->n_layers - n_shared; i++)
        c->keys_as_values[i] = !has_values(checkpoint, c, i);
    ST_TRY(st_config_share_caches(c, n_shared));
    ST_TRY(read_streams(r, checkpoint, c));
    ST_TRY(st_reader_size(r, "embedding_length_per_layer_input", &c->layer_input));
    if (c->layer_input == 0) return STINT_OK;
    snprintf(name, sizeof name, "%s.weight", st_arch_role(c->arch, true, ST_ROLE_LAYER_EMBED));
    const struct st_tensor *t = st_tensors_find(checkpoint->tensors, name);
    if (!t) return st_tensors_missing(checkpoint->tensors, name);
    c->layer_vocab = t->dims[0] <= INT32_MAX ? (uint32_t)t->dims[0] : 0;
    return STINT_OK;
}
