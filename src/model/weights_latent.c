// SPDX-License-Identifier: Apache-2.0
// Binds latent attention (model/weights.h). Folders store one linear that expands latents to all
// heads' keys and values; its two parts are copied apart, that of keys turned, as GGUF has them.
#include "base/size.h"
#include "model/binder.h"

#include <string.h>

// Rows [from, from + n) of each head's `stored` rows, as they are or turned, one head below the
// other.
struct part {
    size_t stored, from, n;
    bool turned;
};

static void copy_part(const struct st_tensor *t, size_t n_heads, size_t rank, struct part p,
                      unsigned char *to) {
    const unsigned char *from = t->data;
    size_t item = st_dtype_traits(t->dtype)->block_bytes, row = rank * item;
    for (size_t h = 0; h < n_heads; h++) {
        const unsigned char *head = from + (h * p.stored + p.from) * row;
        if (!p.turned) {
            memcpy(to + h * p.n * row, head, p.n * row);
            continue;
        }
        for (size_t k = 0; k < rank; k++)
            for (size_t r = 0; r < p.n; r++)
                memcpy(to + ((h * rank + k) * p.n + r) * item, head + r * row + k * item, item);
    }
}

static stint_status bind_part(const struct st_binder *b, const struct st_tensor *stored,
                              struct part p, struct st_linear_weight *linear) {
    const struct st_config *c = b->config;
    size_t rank = c->latent.rank, rows = p.turned ? rank : p.n, n_in = p.turned ? p.n : rank;
    struct st_tensor t = *stored;
    if (st_dtype_traits(t.dtype)->block_items != 1)
        return st_fail(STINT_E_UNSUPPORTED, "tensor '%s': quantized, and so cannot be split",
                       t.name);
    size_t item = st_dtype_traits(t.dtype)->block_bytes;
    unsigned char *to = st_arena_take(b->arena, c->n_heads * rows * n_in, item);
    if (to) copy_part(stored, c->n_heads, rank, p, to);
    t.data = to;
    if (!to) return STINT_OK; // measuring
    st_bind_rows(&t, 0, (uint32_t)(c->n_heads * rows), (uint32_t)n_in, linear);
    return STINT_OK;
}

static stint_status bind_expansions(const struct st_binder *b, uint32_t i,
                                    struct st_latent_weight *latent) {
    const struct st_config *c = b->config;
    const struct st_latent *l = &c->latent;
    struct part keys = {l->plain + l->value, 0, l->plain, true};
    struct part values = {l->plain + l->value, l->plain, l->value, false};
    struct st_tensor t;
    bool found;
    if (b->source->gguf) {
        ST_TRY(st_bind_find(b, ST_ROLE_K_B, ".weight", i, 0, 3,
                            (uint64_t[]){c->n_heads, l->rank, l->plain}, true, &t, &found));
        st_bind_rows(&t, 0, c->n_heads * l->rank, l->plain, &latent->keys);
        ST_TRY(st_bind_find(b, ST_ROLE_V_B, ".weight", i, 0, 3,
                            (uint64_t[]){c->n_heads, l->value, l->rank}, true, &t, &found));
        st_bind_rows(&t, 0, c->n_heads * l->value, l->rank, &latent->values);
        return STINT_OK;
    }
    ST_TRY(st_bind_find(b, ST_ROLE_KV_B, ".weight", i, 0, 2,
                        (uint64_t[]){(uint64_t)c->n_heads * keys.stored, l->rank}, true, &t,
                        &found));
    ST_TRY(bind_part(b, &t, keys, &latent->keys));
    return bind_part(b, &t, values, &latent->values);
}

stint_status st_bind_latent(const struct st_binder *b, uint32_t i, struct st_layer *layer) {
    const struct st_config *c = b->config;
    const struct st_latent *l = &c->latent;
    struct st_latent_weight *latent = &layer->latent;
    uint32_t n_q = c->n_heads * (l->plain + c->rope_dims);
    if (l->query_rank) {
        ST_TRY(st_bind_linear(b, ST_ROLE_Q_A, i, l->query_rank, c->hidden, false, &layer->q));
        ST_TRY(st_bind_norm(b, ST_ROLE_Q_A_NORM, i, l->query_rank, true, &latent->query_norm));
        ST_TRY(st_bind_linear(b, ST_ROLE_Q_B, i, n_q, l->query_rank, false, &latent->query));
    } else {
        ST_TRY(st_bind_linear(b, ST_ROLE_Q, i, n_q, c->hidden, false, &layer->q));
    }
    ST_TRY(st_bind_linear(b, ST_ROLE_KV_A, i, c->head_dim, c->hidden, false, &layer->k));
    ST_TRY(st_bind_norm(b, ST_ROLE_KV_A_NORM, i, l->rank, true, &latent->norm));
    ST_TRY(bind_expansions(b, i, latent));
    return st_bind_linear(b, ST_ROLE_O, i, c->hidden, c->n_heads * l->value, false, &layer->o);
}
