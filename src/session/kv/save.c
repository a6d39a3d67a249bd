// SPDX-License-Identifier: Apache-2.0
// A sequence's tokens and cache in a file: a package (docs/FORMAT.md) with a JSON object that says
// whose they are, the tokens, and for each layer its keys and values, or the states that are held
// of it (kv/state.h).
#include "session/session.h"

#include "base/json.h"
#include "base/map.h"
#include "base/size.h"
#include "format/package.h"
#include "format/package_layout.h"
#include "model/fingerprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define META    "session.json"
#define TOKENS  "tokens"
#define LENGTHS "state_lengths"
#define WAYS    "ways"

enum { LAYER_NAME = 32 };

static bool has_states(const struct stint_session *s) {
    return s->kv.state.n_layers != 0;
}

// Of one layer's state.
static size_t state_floats(const struct stint_session *s) {
    return s->kv.state.floats;
}

static size_t count_states(const struct stint_session *s, uint32_t sequence) {
    size_t n = 0;
    while (has_states(s) && st_state_held(s, sequence, n)) n++;
    return n;
}

static bool has_attention(const struct stint_session *s, uint32_t layer) {
    return s->model->config.form[layer] == ST_FORM_ATTENTION;
}

// Everything that the cache's bytes depend on.
static stint_status describe(const struct stint_session *s, const struct st_sequence *sequence,
                             json_t **out) {
    const struct st_config *c = &s->model->config;
    uint64_t model;
    char hash[20];
    ST_TRY(st_model_hash(s->model, &model));
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)model);
    json_t *object = json_pack(
        "{s:i, s:s, s:s, s:i, s:i, s:i, s:I, s:I}", "stint_session", has_states(s) ? 3 : 2, "model",
        hash, "kv", st_kv_traits[s->kv.type].name, "layers", (int)c->n_layers, "kv_heads",
        (int)c->n_kv_heads, "head_dim", (int)c->head_dim, "length", (json_int_t)sequence->length,
        "prompted", (json_int_t)sequence->prompted);
    if (!object) return st_fail(STINT_E_NOMEM, "no memory to describe a session");
    if (has_states(s))
        json_object_set_new(object, "state_floats", json_integer((json_int_t)state_floats(s)));
    *out = object;
    return STINT_OK;
}

static size_t head_bytes(const struct stint_session *s, uint32_t layer, size_t length) {
    return length * s->kv.layers[layer].row_bytes;
}

static void layer_name(char name[LAYER_NAME], const char *what, uint32_t layer) {
    snprintf(name, LAYER_NAME, "%s.%u", what, layer);
}

static struct st_section blob(const char *name, const void *data, size_t bytes) {
    return (struct st_section){.name = name,
                               .type = ST_SECTION_BLOB,
                               .n_dims = 1,
                               .dims = {bytes, 1, 1, 1},
                               .data = data,
                               .bytes = bytes};
}

// ---- Saving

static stint_status write_layer(const struct stint_session *s, uint32_t sequence,
                                unsigned char *cache, const char *what, uint32_t layer,
                                struct st_package_writer *writer) {
    char name[LAYER_NAME];
    size_t heads = s->kv.layers[layer].n_heads, length = s->sequences[sequence].length;
    layer_name(name, what, layer);
    struct st_section section = blob(name, NULL, heads * head_bytes(s, layer, length));
    ST_TRY(st_package_begin(writer, &section));
    for (size_t h = 0; h < heads; h++)
        for (size_t at = 0, n; at < length; at += n) {
            n = st_kv_in_row(&s->kv, at, length);
            ST_TRY(st_package_append(writer, st_kv_row(&s->kv, cache, sequence, layer, h, at),
                                     head_bytes(s, layer, n)));
        }
    return STINT_OK;
}

static stint_status write_states(const struct stint_session *s, uint32_t sequence, size_t n_states,
                                 uint32_t layer, struct st_package_writer *writer) {
    char name[LAYER_NAME];
    size_t bytes = state_floats(s) * sizeof(float);
    layer_name(name, "states", layer);
    struct st_section section = blob(name, NULL, n_states * bytes);
    float *state = malloc(bytes);
    if (!state) return st_fail(STINT_E_NOMEM, "no memory to save");
    stint_status status = st_package_begin(writer, &section);
    for (size_t i = 0; i < n_states && status == STINT_OK; i++) {
        st_state_read(s, sequence, st_state_held(s, sequence, i), s->model->config.rank[layer],
                      state);
        status = st_package_append(writer, state, bytes);
    }
    free(state);
    return status;
}

// How the tokens were computed, and at which lengths there are states.
static stint_status write_lengths(const struct stint_session *s, uint32_t sequence, size_t n_states,
                                  struct st_package_writer *writer) {
    struct st_section section =
        blob(WAYS, s->kv.state.texts[sequence].ways, s->sequences[sequence].length);
    ST_TRY(st_package_add(writer, &section));
    if (n_states == 0) return STINT_OK;
    section = blob(LENGTHS, NULL, n_states * sizeof(int32_t));
    section.type = ST_SECTION_I32;
    section.dims[0] = n_states;
    ST_TRY(st_package_begin(writer, &section));
    for (size_t i = 0; i < n_states; i++) {
        int32_t length = (int32_t)st_state_held(s, sequence, i);
        ST_TRY(st_package_append(writer, &length, sizeof length));
    }
    return STINT_OK;
}

static stint_status write_sections(const struct stint_session *s, uint32_t sequence,
                                   const char *meta, struct st_package_writer *writer) {
    const struct st_sequence *held = &s->sequences[sequence];
    struct st_section section = blob(META, meta, strlen(meta));
    ST_TRY(st_package_add(writer, &section));
    section = blob(TOKENS, held->history, held->length * sizeof(int32_t));
    section.type = ST_SECTION_I32;
    section.dims[0] = held->length;
    ST_TRY(st_package_add(writer, &section));
    size_t n_states = count_states(s, sequence);
    if (has_states(s)) ST_TRY(write_lengths(s, sequence, n_states, writer));
    for (uint32_t i = 0; i < s->model->config.n_layers; i++) {
        if (!has_attention(s, i)) {
            if (n_states) ST_TRY(write_states(s, sequence, n_states, i, writer));
            continue;
        }
        if (!s->kv.layers[i].own) continue;
        ST_TRY(write_layer(s, sequence, s->kv.keys, "keys", i, writer));
        if (!s->kv.shared) ST_TRY(write_layer(s, sequence, s->kv.values, "values", i, writer));
    }
    return STINT_OK;
}

// Each section begins at a multiple of the alignment; header, table and description take less than
// one each and an entry for each section.
static uint64_t bytes_for(const struct stint_session *s, size_t length, enum st_kv_type type,
                          size_t n_states) {
    const struct st_config *c = &s->model->config;
    uint64_t n_attention = c->n_form[ST_FORM_ATTENTION], rows = 0;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        struct st_heads heads = st_config_heads(c, i);
        if (s->kv.layers[i].own)
            rows += st_round_up(heads.n_kv * length * st_kv_row_bytes(type, heads.dim),
                                ST_PACKAGE_ALIGN);
    }
    uint64_t state = st_round_up(n_states * state_floats(s) * sizeof(float), ST_PACKAGE_ALIGN);
    uint64_t n_sections = 2 * n_attention + (c->n_layers - n_attention) + 4;
    return 5 * ST_PACKAGE_ALIGN + st_round_up(length * sizeof(int32_t), ST_PACKAGE_ALIGN) +
           (has_states(s) ? st_round_up(length, ST_PACKAGE_ALIGN) : 0) + 2 * rows +
           (c->n_layers - n_attention) * state + n_sections * sizeof(struct st_package_entry);
}

uint64_t st_session_saved_bytes(const struct stint_session *s, uint32_t sequence) {
    return bytes_for(s, s->sequences[sequence].length, s->kv.type, count_states(s, sequence));
}

stint_status stint_session_save(const stint_session *s, uint32_t sequence, const char *path) {
    ST_TRY(st_session_check(s, sequence));
    if (!path) return st_fail(STINT_E_ARG, "path may not be NULL");
    struct st_package_writer *writer = NULL;
    const struct st_sequence *held = &s->sequences[sequence];
    if (held->length == 0) return st_fail(STINT_E_ARG, "there are no tokens to save");
    json_t *object = NULL;
    ST_TRY(describe(s, held, &object));
    char *meta = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    stint_status status = meta ? st_package_create_private(path, &writer)
                               : st_fail(STINT_E_NOMEM, "no memory to save");
    if (status == STINT_OK) {
        status = write_sections(s, sequence, meta, writer);
        if (status == STINT_OK)
            status = st_package_finish(writer);
        else
            st_package_abandon(writer);
    }
    free(meta);
    return status;
}

// ---- Loading

static stint_status read_meta(const struct stint_session *s, const struct st_package *package,
                              int64_t *length, int64_t *prompted) {
    const struct st_section *section = st_package_find(package, META);
    json_t *object = NULL, *own = NULL;
    if (!section || section->type != ST_SECTION_BLOB)
        return st_fail(STINT_E_FORMAT, "is a package, but no saved session");
    ST_TRY(st_json_parse(META, section->data, section->bytes, &object));
    stint_status status = st_json_int(object, "length", 1, (int64_t)s->n_context, length);
    if (status == STINT_OK) status = st_json_int(object, "prompted", 0, *length, prompted);
    // All the rest must be what this session would write.
    if (status == STINT_OK) status = describe(s, &(struct st_sequence){0}, &own);
    if (status == STINT_OK) {
        json_object_del(own, "length");
        json_object_del(own, "prompted");
        json_object_del(object, "length");
        json_object_del(object, "prompted");
        if (!json_equal(own, object))
            status = st_fail(STINT_E_ARG, "was saved by another model, or with another --kv");
    }
    json_decref(own);
    json_decref(object);
    return status;
}

static stint_status find_bytes(const struct st_package *package, const char *name,
                               enum st_section_type type, size_t bytes, const void **data) {
    const struct st_section *section = st_package_find(package, name);
    if (!section || section->type != type || section->bytes != bytes)
        return st_fail(STINT_E_FORMAT, "section '%s' is missing or has not %zu bytes", name, bytes);
    *data = section->data;
    return STINT_OK;
}

static stint_status check_tokens(const struct stint_session *s, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->model->config.vocab)
            return st_fail(STINT_E_FORMAT, "token %zu is %d: the vocabulary has %u", i, (int)ids[i],
                           s->model->config.vocab);
    return STINT_OK;
}

// Lengths ascend, up to the text's own; every token was computed in some way that there is.
static stint_status check_states(const int32_t *lengths, size_t n_states, const uint8_t *ways,
                                 size_t n) {
    for (size_t i = 0; i < n_states; i++)
        if (lengths[i] < 1 || (size_t)lengths[i] > n || (i && lengths[i] <= lengths[i - 1]))
            return st_fail(STINT_E_FORMAT, "section '%s'[%zu] is %d", LENGTHS, i, (int)lengths[i]);
    for (size_t i = 0; i < n; i++) {
        unsigned kind = ways[i] & ~(unsigned)ST_WAY_PRECISION;
        if (kind != ST_WAY_PROMPT && kind != ST_WAY_ONE && kind != ST_WAY_STEP)
            return st_fail(STINT_E_FORMAT, "section '%s'[%zu] is %u", WAYS, i, ways[i]);
    }
    return STINT_OK;
}

struct saved_states {
    const int32_t *lengths; // [n]
    const uint8_t *ways;
    size_t n;
};

static stint_status find_states(const struct stint_session *s, const struct st_package *package,
                                size_t length, struct saved_states *states) {
    const struct st_section *lengths = st_package_find(package, LENGTHS);
    const void *ways = NULL, *data = NULL;
    *states = (struct saved_states){0};
    if (!has_states(s)) return STINT_OK;
    ST_TRY(find_bytes(package, WAYS, ST_SECTION_BLOB, length, &ways));
    states->ways = ways;
    if (lengths) {
        states->n = lengths->bytes / sizeof(int32_t);
        ST_TRY(find_bytes(package, LENGTHS, ST_SECTION_I32, states->n * sizeof(int32_t), &data));
        states->lengths = data;
    }
    return check_states(states->lengths, states->n, ways, length);
}

// Of one layer. The sequence has its length already where they are copied.
static stint_status read_states(struct stint_session *s, uint32_t sequence,
                                const struct st_package *package, uint32_t layer,
                                const struct saved_states *states, bool copy) {
    char name[LAYER_NAME];
    size_t floats = state_floats(s);
    const void *data = NULL;
    if (states->n == 0) return STINT_OK;
    layer_name(name, "states", layer);
    ST_TRY(find_bytes(package, name, ST_SECTION_BLOB, states->n * floats * sizeof(float), &data));
    for (size_t i = 0; i < states->n && copy; i++)
        st_state_write(s, sequence, (size_t)states->lengths[i], s->model->config.rank[layer],
                       (const float *)data + i * floats);
    return STINT_OK;
}

// Twice over all layers: first to see that they are there.
static stint_status read_layers(struct stint_session *s, uint32_t sequence,
                                const struct st_package *package, size_t length,
                                const struct saved_states *states, bool copy) {
    const struct st_config *c = &s->model->config;
    unsigned char *caches[] = {s->kv.keys, s->kv.values};
    static const char *const names[] = {"keys", "values"};
    for (uint32_t i = 0; i < 2 * c->n_layers; i++) {
        char name[LAYER_NAME];
        const void *data = NULL;
        if (!has_attention(s, i / 2)) {
            if (i % 2) ST_TRY(read_states(s, sequence, package, i / 2, states, copy));
            continue;
        }
        if ((i % 2 && s->kv.shared) || !s->kv.layers[i / 2].own) continue;
        size_t heads = s->kv.layers[i / 2].n_heads, bytes = head_bytes(s, i / 2, length);
        layer_name(name, names[i % 2], i / 2);
        ST_TRY(find_bytes(package, name, ST_SECTION_BLOB, heads * bytes, &data));
        const char *from = data;
        for (size_t h = 0; h < heads && copy; h++)
            for (size_t at = 0, n; at < length; at += n) {
                n = st_kv_in_row(&s->kv, at, length);
                memcpy(st_kv_row(&s->kv, caches[i % 2], sequence, i / 2, h, at), from,
                       head_bytes(s, i / 2, n));
                from += head_bytes(s, i / 2, n);
            }
    }
    return STINT_OK;
}

static stint_status read_package(struct stint_session *s, uint32_t sequence,
                                 const struct st_package *package) {
    struct st_sequence *held = &s->sequences[sequence];
    int64_t length = 0, prompted = 0;
    const void *ids = NULL;
    ST_TRY(read_meta(s, package, &length, &prompted));
    size_t n = (size_t)length;
    ST_TRY(find_bytes(package, TOKENS, ST_SECTION_I32, n * sizeof(int32_t), &ids));
    ST_TRY(check_tokens(s, ids, n));
    struct saved_states states;
    ST_TRY(find_states(s, package, n, &states));
    ST_TRY(read_layers(s, sequence, package, n, &states, false));
    // What all sequences share belongs to the thread that computes: the sequence's next run makes
    // it reach so far (st_session_reach).
    held->length = n; // from here on nothing fails
    if (has_states(s)) st_state_reset(s, sequence, n, states.ways);
    st_kv_device_forget(s, sequence, 0);
    ST_TRY(read_layers(s, sequence, package, n, &states, true));
    memcpy(held->history, ids, n * sizeof(int32_t));
    held->prompted = (size_t)prompted;
    return STINT_OK;
}

stint_status stint_session_load(stint_session *s, uint32_t sequence, const char *path) {
    ST_TRY(st_session_check(s, sequence));
    if (!path) return st_fail(STINT_E_ARG, "path may not be NULL");
    struct st_map map = {0};
    struct st_package *package = NULL;
    // One of another type of cache is to be told so: floats are the largest.
    size_t most = s->n_context / ST_STATE_STRIDE + 2;
    stint_status status = st_map_copy(path, bytes_for(s, s->n_context, ST_KV_F32, most), &map);
    if (status == STINT_E_LIMIT)
        return st_fail(STINT_E_LIMIT,
                       "%s: is larger than a saved session of %zu tokens, which the context holds",
                       path, s->n_context);
    if (status != STINT_OK) return status;
    if (!st_package_is(&map))
        status = st_fail(STINT_E_FORMAT, "%s: is not a saved session", path);
    else
        status = st_package_open(path, &map, &package);
    if (status == STINT_OK) {
        status = read_package(s, sequence, package);
        if (status != STINT_OK) status = st_fail_prefix("%s: ", path);
    }
    st_package_close(package);
    st_map_close(&map);
    return status;
}
