// SPDX-License-Identifier: Apache-2.0
// The learned scheduler's file, and its choice at run time.
#include "session/precision/learned.h"

#include "base/half.h"
#include "base/size.h"
#include "session/precision/schedule_json.h"
#include "session/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define META    "scheduler.json"
#define WEIGHTS "scheduler.weights"

struct st_learned {
    struct st_arena arena;
    struct st_pooling_net net;
    struct st_pooling_state state;
    stint_precision choices[ST_LEARNED_CHOICES];
    float *keys, *values; // [kv heads, room, head_dim]
    size_t room;          // tokens
};

size_t st_learned_choices(const struct st_learned *learned) {
    return learned->net.n_choices;
}

const stint_precision *st_learned_choice(const struct st_learned *learned, size_t i) {
    return &learned->choices[i];
}

// ---- The file: a package of two sections

static struct st_pooling_net shape_of(const struct stint_model *model, size_t n_choices) {
    struct st_heads heads = st_learned_heads(&model->config);
    return (struct st_pooling_net){.n_heads = heads.n_kv,
                                   .head_dim = heads.dim,
                                   .n_hidden = ST_LEARNED_HIDDEN,
                                   .n_choices = n_choices};
}

static stint_status read_meta(const struct stint_model *model, const struct st_section *section,
                              struct st_learned *l) {
    json_t *meta = NULL;
    ST_TRY(st_json_parse(META, section->data, section->bytes, &meta));
    const json_t *choices = json_object_get(meta, "choices");
    size_t n = json_array_size(choices);
    stint_status status = st_schedule_check_owner(model, meta);
    if (status == STINT_OK && (n < 2 || n > ST_LEARNED_CHOICES))
        status =
            st_fail(STINT_E_FORMAT, "expected 2 to %d choices, not %zu", ST_LEARNED_CHOICES, n);
    for (size_t i = 0; i < n && status == STINT_OK; i++)
        status = st_schedule_parse(model, json_array_get(choices, i), &l->choices[i]);
    l->net = shape_of(model, n);
    json_decref(meta);
    return status;
}

static void lay_out(struct st_learned *l, struct st_arena *arena) {
    size_t floats = l->net.n_heads * l->net.head_dim * l->room;
    float *weights = ST_TAKE(arena, float, st_pooling_net_size(&l->net));
    if (weights) st_pooling_net_place(&l->net, weights);
    st_pooling_state_take(&l->net, l->room, arena, &l->state);
    l->keys = ST_TAKE(arena, float, floats);
    l->values = ST_TAKE(arena, float, floats);
}

static stint_status read_weights(const struct st_section *section, struct st_learned *l) {
    const float *weights = section->data;
    size_t n = st_pooling_net_size(&l->net);
    if (section->type != ST_SECTION_F32 || section->bytes != n * sizeof(float))
        return st_fail(STINT_E_FORMAT, "section '" WEIGHTS "' has not the size that this package's "
                                       "heads say");
    for (size_t i = 0; i < n; i++)
        if (!isfinite(weights[i]))
            return st_fail(STINT_E_FORMAT,
                           "section '" WEIGHTS "' holds a value that is not finite");
    struct st_arena measure = st_arena_measure();
    lay_out(l, &measure);
    ST_TRY(st_arena_open(&l->arena, measure.used));
    lay_out(l, &l->arena);
    ST_TRY(st_arena_check(&l->arena, "a scheduler"));
    memcpy(l->net.query, weights, n * sizeof *weights);
    return STINT_OK;
}

static stint_status read_sections(const struct stint_model *model, const char *path,
                                  const struct st_map *map, struct st_learned *l) {
    struct st_package *package = NULL;
    ST_TRY(st_package_open(path, map, &package));
    const struct st_section *meta = st_package_find(package, META);
    const struct st_section *weights = st_package_find(package, WEIGHTS);
    stint_status status = STINT_OK;
    if (!meta || meta->type != ST_SECTION_BLOB || !weights)
        status = st_fail(STINT_E_FORMAT, "is a package, not a precision schedule");
    if (status == STINT_OK) status = read_meta(model, meta, l);
    if (status == STINT_OK) status = read_weights(weights, l);
    st_package_close(package);
    return status == STINT_OK ? status : st_fail_prefix("%s: ", path);
}

stint_status st_learned_open(const struct stint_model *model, const char *path,
                             const struct st_map *map, struct st_learned **learned) {
    struct st_learned *l = calloc(1, sizeof *l);
    if (!l) return st_fail(STINT_E_NOMEM, "no memory for a scheduler");
    l->room = ST_LEARNED_TOKENS;
    stint_status status = read_sections(model, path, map, l);
    if (status != STINT_OK) {
        st_learned_close(l);
        return status;
    }
    *learned = l;
    return STINT_OK;
}

void st_learned_close(struct st_learned *learned) {
    if (!learned) return;
    st_arena_close(&learned->arena);
    free(learned);
}

static stint_status write_sections(const struct st_pooling_net *net, const char *meta,
                                   struct st_package_writer *writer) {
    size_t n = st_pooling_net_size(net);
    struct st_section s = {.name = META,
                           .type = ST_SECTION_BLOB,
                           .n_dims = 1,
                           .dims = {strlen(meta), 1, 1, 1},
                           .data = meta,
                           .bytes = strlen(meta)};
    ST_TRY(st_package_add(writer, &s));
    s = (struct st_section){.name = WEIGHTS,
                            .type = ST_SECTION_F32,
                            .n_dims = 1,
                            .dims = {n, 1, 1, 1},
                            .data = net->query,
                            .bytes = n * sizeof(float)};
    return st_package_add(writer, &s);
}

stint_status st_learned_write(const struct stint_model *model, const struct st_pooling_net *net,
                              const stint_precision *choices, const char *path) {
    char fingerprint[ST_FINGERPRINT_BYTES];
    struct st_package_writer *writer = NULL;
    json_t *list = json_array();
    st_schedule_fingerprint(model, fingerprint);
    for (size_t i = 0; i < net->n_choices; i++)
        json_array_append_new(list, st_schedule_describe(&choices[i]));
    json_t *meta = json_pack("{s:s, s:o}", "package", fingerprint, "choices", list);
    bool whole = meta && json_array_size(list) == net->n_choices;
    char *text = whole ? json_dumps(meta, JSON_COMPACT) : NULL;
    stint_status status =
        text ? st_package_create(path, &writer) : st_fail(STINT_E_NOMEM, "no memory to write");
    if (status == STINT_OK) {
        status = write_sections(net, text, writer);
        if (status == STINT_OK)
            status = st_package_finish(writer);
        else
            st_package_abandon(writer);
    }
    free(text);
    json_decref(meta);
    return status;
}

// ---- At run time

size_t st_learned_cache_floats(const struct stint_session *s, uint32_t sequence) {
    const struct st_config *c = &s->model->config;
    size_t n = st_min(s->sequences[sequence].length, ST_LEARNED_TOKENS);
    struct st_heads heads = st_learned_heads(c);
    return (size_t)heads.n_kv * heads.dim * n;
}

static void read_rows(const struct stint_session *s, uint32_t sequence, unsigned char *cache,
                      size_t head, float *to) {
    const struct st_config *c = &s->model->config;
    size_t length = s->sequences[sequence].length, n = st_min(length, ST_LEARNED_TOKENS);
    uint32_t layer = st_config_last_attention(c);
    size_t dim = st_learned_heads(c).dim, first = length - n;
    to += head * n * dim;
    for (size_t at = first, some; at < length; at += some) {
        some = st_kv_in_row(&s->kv, at, length);
        st_session_kv_kernel(s)->load(st_kv_row(&s->kv, cache, sequence, layer, head, at), some,
                                      dim, to + (at - first) * dim);
    }
    if (cache != s->kv.keys || !st_kv_mixes_keys(&s->kv)) return;
    for (size_t i = 0; i < n; i++) st_kv_mix(to + i * dim, dim);
}

void st_learned_read_cache(const struct stint_session *s, uint32_t sequence, float *keys,
                           float *values) {
    for (size_t h = 0; h < st_learned_heads(&s->model->config).n_kv; h++) {
        read_rows(s, sequence, s->kv.keys, h, keys);
        read_rows(s, sequence, s->kv.values, h, values);
    }
}

void st_learned_select(struct st_learned *l, const struct stint_session *s, uint32_t sequence,
                       stint_precision *precision) {
    size_t n = st_min(s->sequences[sequence].length, ST_LEARNED_TOKENS), best = 0;
    struct st_pooling_input input = {l->keys, l->values, n, n * l->net.head_dim};
    st_learned_read_cache(s, sequence, l->keys, l->values);
    st_pooling_forward(&l->net, &input, &l->state);
    for (size_t i = 1; i < l->net.n_choices; i++)
        if (l->state.logits[i] > l->state.logits[best]) best = i;
    *precision = l->choices[best];
}
