// SPDX-License-Identifier: Apache-2.0
#include "model/file_pieces.h"

#include "base/size.h"
#include "model/model.h"

#include <stdio.h>

// ---- The order

// Tensors of a linear in a checkpoint, at most.
static const uint8_t float_parts[ST_INT8_ROLES] = {
    [ST_INT8_QKV] = 3, [ST_INT8_O] = 1, [ST_INT8_UP] = 2, [ST_INT8_DOWN] = 1, [ST_INT8_HEAD] = 1};

static size_t parts_of(const struct stint_model *m, enum st_int8_role role) {
    return m->int8.layers ? 1 : float_parts[role];
}

size_t st_file_piece_place(const struct stint_model *m, struct st_linear_id id) {
    size_t qkv = parts_of(m, ST_INT8_QKV), o = parts_of(m, ST_INT8_O);
    size_t up = parts_of(m, ST_INT8_UP), block = up + parts_of(m, ST_INT8_DOWN);
    size_t layer = qkv + o + block * st_config_max_blocks(&m->config);
    if (id.role == ST_INT8_HEAD) return layer * m->config.n_layers;
    if (id.role == ST_INT8_QKV) return layer * id.layer;
    if (id.role == ST_INT8_O) return layer * id.layer + qkv;
    return layer * id.layer + qkv + o + block * id.expert + (id.role == ST_INT8_DOWN ? up : 0);
}

static size_t count(const struct stint_model *m) {
    return st_file_piece_place(m, (struct st_linear_id){.role = ST_INT8_HEAD}) +
           parts_of(m, ST_INT8_HEAD);
}

// ---- The pieces of a linear

struct binder {
    struct stint_model *model;
    struct st_file_strip *strips; // [pieces]
};

static void set_piece(struct binder *b, size_t place, struct st_linear_id id, uint32_t file,
                      const struct st_file_strip *strip) {
    b->strips[place] = *strip;
    b->model->pieces.at[place] = (struct st_file_piece){
        .linear = id, .strips = &b->strips[place], .n_strips = 1, .file = file};
}

static stint_status bind_section(struct binder *b, struct st_linear_id id) {
    struct stint_model *m = b->model;
    const struct st_package *package = m->checkpoint.package;
    char linear[ST_INT8_NAME_BYTES], name[ST_INT8_NAME_BYTES + 16];
    struct st_linear_op shape;
    st_int8_name(id.role, &m->config, id.layer, id.expert, linear);
    snprintf(name, sizeof name, "%s%s", linear, ST_INT8_WEIGHT);
    st_int8_shape(id.role, &m->config, id.layer, id.expert, &shape);
    const struct st_section *section = st_package_find(package, name);
    m->pieces.at[st_file_piece_place(m, id)] = (struct st_file_piece){.linear = id};
    if (!section) return STINT_OK; // made of nested codes (device/weight_set.h)
    struct st_file_strip strip = {.section = section->name,
                                  .offset = st_package_offset(package, section),
                                  .bytes = section->bytes,
                                  .group_bytes = st_linear_op_group_bytes(&shape),
                                  .hash = st_package_section_hash(package, section),
                                  .hashed = true};
    set_piece(b, st_file_piece_place(m, id), id, 0, &strip);
    return STINT_OK;
}

static stint_status bind_tensors(struct binder *b, struct st_linear_id id) {
    struct stint_model *m = b->model;
    const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS];
    size_t place = st_file_piece_place(m, id), n = st_linear_parts(&m->weights, id, parts);
    for (size_t i = 0; i < parts_of(m, id.role); i++) {
        m->pieces.at[place + i] = (struct st_file_piece){.linear = id};
        if (i >= n || !parts[i]->data) continue;
        struct st_linear_weight *w = (struct st_linear_weight *)(uintptr_t)parts[i];
        struct st_file_strip strip = {.bytes = w->n_out * w->row_bytes,
                                      .group_bytes = ST_PIECE_ROWS * w->row_bytes};
        uint32_t file;
        if (!st_checkpoint_find(&m->checkpoint, w->data, strip.bytes, &file, &strip.offset))
            return st_fail(STINT_E_UNSUPPORTED,
                           "the folder stores experts in a way that nothing computes with, so "
                           "they cannot be read on demand: prepare a package, or use a GGUF file");
        w->piece = (uint32_t)(place + i + 1);
        set_piece(b, place + i, id, file, &strip);
    }
    return STINT_OK;
}

static stint_status bind_linear(void *context, struct st_linear_id id) {
    struct binder *b = context;
    return b->model->int8.layers ? bind_section(b, id) : bind_tensors(b, id);
}

stint_status st_file_pieces_bind(struct stint_model *m, struct st_arena *arena) {
    m->pieces.n = count(m);
    m->pieces.at = ST_TAKE(arena, struct st_file_piece, m->pieces.n);
    struct binder b = {m, ST_TAKE(arena, struct st_file_strip, m->pieces.n)};
    if (!m->pieces.at || !b.strips) return STINT_OK; // measuring
    return st_linears_each(&m->config, (uint32_t)st_max(1, m->config.n_experts), bind_linear, &b);
}

const char *st_file_tensor_at(const struct stint_model *m, const void *data) {
    for (size_t i = 0; i < st_tensors_count(m->checkpoint.tensors); i++) {
        const struct st_tensor *t = st_tensors_at(m->checkpoint.tensors, i);
        uintptr_t from = (uintptr_t)t->data;
        if ((uintptr_t)data >= from && (uintptr_t)data - from < t->bytes) return t->name;
    }
    return "";
}

// Several linears may lie in one tensor: fused ones, the experts of a layer.
const char *st_file_piece_tensor(const struct stint_model *m, const struct st_file_piece *piece) {
    return st_file_tensor_at(m, m->checkpoint.maps[piece->file].data + piece->strips->offset);
}
