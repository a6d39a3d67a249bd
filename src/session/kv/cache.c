// SPDX-License-Identifier: Apache-2.0
#include "session/kv/cache.h"

#include "base/size.h"
#include "kernels/tile.h"
#include "session/session.h"
#include "session/weights/source.h"
#include "stint.h"

#include <string.h>

enum {
    PAGE_BYTES = 4096,
    MIN_STRETCH = 128,
    MAX_STRETCH = 512,
    MAX_STRETCH_BYTES = 4 << 20, // of keys, and of values
};
_Static_assert(MIN_STRETCH % ST_KV_TILE == 0 && MIN_STRETCH % ST_KEY_TILE == 0, "a tile is whole");

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
    kv->keys = st_arena_take(arena, s->n_sequences, kv->sequence_bytes);
    kv->values = kv->shared ? kv->keys : st_arena_take(arena, s->n_sequences, kv->sequence_bytes);
    st_key_bias_lay_out(&kv->bias, s->model, kv->type, kv->positions, arena);
    st_state_lay_out(s, arena);
}

// One behind the other, or one in the place of the other.
static void place_layers(const struct st_config *c, uint32_t n_layers, struct st_kv_cache *kv) {
    kv->stretch_bytes = 0;
    for (uint32_t i = 0; i < n_layers; i++) {
        struct st_heads heads = st_config_heads(c, i);
        struct st_kv_slot slot = {.row_bytes = st_kv_row_bytes(kv->type, heads.dim),
                                  .n_heads = heads.n_kv,
                                  .own = st_config_has_cache(c, i)};
        size_t bytes = slot.n_heads * kv->stretch * slot.row_bytes;
        if (kv->layerwise)
            kv->stretch_bytes = st_max(kv->stretch_bytes, bytes);
        else
            slot.offset =
                slot.own ? kv->stretch_bytes : kv->layers[st_config_cache_of(c, i)].offset;
        if (c->form[i] != ST_FORM_ATTENTION) slot = (struct st_kv_slot){0};
        kv->layers[i] = slot;
        if (slot.own && !kv->layerwise) kv->stretch_bytes += bytes;
    }
}

// As long as MAX_STRETCH_BYTES allow. A multiple of a key tile and of ST_KV_TILE, so that results
// do not depend on it.
static void place_stretches(const struct st_config *c, uint32_t n_layers, struct st_kv_cache *kv) {
    for (kv->stretch = MAX_STRETCH;; kv->stretch /= 2) {
        place_layers(c, n_layers, kv);
        if (kv->stretch == MIN_STRETCH || kv->stretch_bytes <= MAX_STRETCH_BYTES) break;
    }
}

static size_t widest_row(const struct st_kv_cache *kv) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < ST_MAX_LAYERS; i++) bytes = st_max(bytes, kv->layers[i].row_bytes);
    return bytes;
}

stint_status st_kv_measure(struct stint_session *s, size_t *bytes) {
    // A key tile may be read past its end, by whole register tiles.
    size_t positions = st_round_up(s->n_context, ST_KEY_TILE), past = ST_TILE_MAX_M;
    const struct st_config *c = &s->model->config;
    uint32_t n_layers = c->n_layers + s->ahead.on;
    struct st_arena measure = st_arena_measure();
    struct st_kv_cache *kv = &s->kv;
    kv->shared = c->latent.rank != 0;
    kv->positions = positions + past;
    if (!kv->whole) place_stretches(c, n_layers, kv);
    kv->whole |= kv->stretch >= positions;
    if (kv->whole) {
        kv->stretch = kv->positions;
        place_layers(c, n_layers, kv);
        kv->sequence_bytes = kv->stretch_bytes;
    } else {
        kv->sequence_bytes =
            st_ceil_div(positions, kv->stretch) * kv->stretch_bytes + past * widest_row(kv);
    }
    lay_out(s, &measure);
    *bytes = measure.used;
    return st_arena_check(&measure, "a KV cache");
}

// But for each sequence's first stretch, as most texts are short.
static void prefer_huge_pages(const struct st_kv_cache *kv, size_t n_sequences) {
    size_t bytes = kv->sequence_bytes - kv->stretch_bytes;
    for (size_t i = 0; i < n_sequences && !kv->whole; i++) {
        size_t at = i * kv->sequence_bytes + kv->stretch_bytes;
        st_arena_prefer_huge(kv->keys + at, bytes);
        if (!kv->shared) st_arena_prefer_huge(kv->values + at, bytes);
    }
}

stint_status st_kv_open(struct stint_session *s, size_t bytes) {
    ST_TRY(st_arena_open_sparse(&s->kv.arena, bytes));
    lay_out(s, &s->kv.arena);
    prefer_huge_pages(&s->kv, s->n_sequences);
    return st_arena_check(&s->kv.arena, "a KV cache");
}

struct st_kv_rows st_kv_rows_at(const struct st_kv_cache *kv, uint32_t sequence, uint32_t layer,
                                size_t head, size_t position) {
    size_t first = position % kv->stretch;
    return (struct st_kv_rows){
        .keys = st_kv_row(kv, kv->keys, sequence, layer, head, position - first),
        .values = st_kv_row(kv, kv->values, sequence, layer, head, position - first),
        .first = first,
        .stretch = kv->stretch,
        .apart = kv->stretch_bytes};
}

// A head's rows begin and end within pages, and what computes with them reads and writes by whole
// tiles.
size_t st_kv_touched(const struct st_kv_cache *kv, size_t n_tokens) {
    size_t rows = st_round_up(n_tokens, ST_KEY_TILE) + ST_TILE_MAX_M;
    size_t bytes = 0;
    for (uint32_t i = 0; i < ST_MAX_LAYERS; i++) {
        const struct st_kv_slot *slot = &kv->layers[i];
        size_t head = st_round_up(rows * slot->row_bytes, PAGE_BYTES) + PAGE_BYTES;
        if (slot->own) bytes += slot->n_heads * st_min(head, kv->positions * slot->row_bytes);
    }
    return (kv->shared ? 1 : 2) * bytes + st_state_touched(&kv->state);
}

void st_kv_close(struct st_kv_cache *kv) {
    st_arena_close(&kv->arena);
}

const char *stint_kv_name(size_t i) {
    return i < ST_N_KV_TYPES ? st_kv_traits[i].name : NULL;
}

void st_session_reach(struct stint_session *s, uint32_t sequence, size_t n_tokens) {
    st_key_bias_reach(&s->kv.bias, s->model, n_tokens);
    if (s->source->reach) s->source->reach(s, sequence, n_tokens);
}
