// SPDX-License-Identifier: Apache-2.0
#include "session/kv/cache.h"

#include "base/size.h"
#include "kernels/tile.h"
#include "session/session.h"
#include "stint.h"

#include <string.h>

enum { PAGE_BYTES = 4096 };

stint_status st_kv_find(const char *name, enum st_kv_type *type) {
    for (int i = 0; i < ST_N_KV_TYPES; i++)
        if (strcmp(name, st_kv_traits[i].name) == 0) {
            *type = (enum st_kv_type)i;
            return STINT_OK;
        }
    return st_fail(STINT_E_ARG, "KV cache type '%s' is not one of %s", name, st_kv_names());
}

static void lay_out(struct stint_session *s, struct st_arena *arena) {
    struct st_kv_cache *kv = &s->kv;
    kv->keys = st_arena_take(arena, kv->all_heads, kv->head_bytes);
    kv->values = kv->shared ? kv->keys : st_arena_take(arena, kv->all_heads, kv->head_bytes);
    st_key_bias_lay_out(&kv->bias, s->model, kv->type, kv->head_bytes / kv->row_bytes, arena);
    st_state_lay_out(s, arena);
}

stint_status st_kv_measure(struct stint_session *s, size_t *bytes) {
    // A key tile may be read past its end, by whole register tiles.
    size_t positions = st_round_up(s->n_context, ST_KEY_TILE) + ST_TILE_MAX_M;
    const struct st_config *c = &s->model->config;
    struct st_arena measure = st_arena_measure();
    struct st_kv_cache *kv = &s->kv;
    kv->n_layers = kv->layerwise ? 1 : c->n_form[ST_FORM_ATTENTION];
    kv->rank = c->rank;
    kv->shared = c->latent.rank != 0;
    kv->n_heads = c->n_kv_heads;
    kv->row_bytes = st_kv_row_bytes(kv->type, c->head_dim);
    kv->head_bytes = positions * kv->row_bytes;
    kv->all_heads = s->n_sequences * kv->n_layers * kv->n_heads;
    lay_out(s, &measure);
    *bytes = measure.used;
    return st_arena_check(&measure, "a KV cache");
}

stint_status st_kv_open(struct stint_session *s, size_t bytes) {
    ST_TRY(st_arena_open_sparse(&s->kv.arena, bytes));
    lay_out(s, &s->kv.arena);
    return st_arena_check(&s->kv.arena, "a KV cache");
}

// A head's rows begin and end within pages, and what computes with them reads and writes by whole
// tiles.
size_t st_kv_touched(const struct st_kv_cache *kv, size_t n_tokens) {
    size_t rows = st_round_up(n_tokens, ST_KEY_TILE) + ST_TILE_MAX_M;
    size_t head = st_round_up(rows * kv->row_bytes, PAGE_BYTES) + PAGE_BYTES;
    return (kv->shared ? 1 : 2) * kv->n_layers * kv->n_heads * st_min(head, kv->head_bytes) +
           st_state_touched(&kv->state);
}

void st_kv_close(struct st_kv_cache *kv) {
    st_arena_close(&kv->arena);
}

const char *stint_kv_name(size_t i) {
    return i < ST_N_KV_TYPES ? st_kv_traits[i].name : NULL;
}
