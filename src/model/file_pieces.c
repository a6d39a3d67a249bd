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
    size_t layer = qkv + o + block * st_max(1, m->config.n_experts);
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

static stint_status bind_section(struct stint_model *m, struct st_linear_id id) {
    const struct st_package *package = m->checkpoint.package;
    char linear[ST_INT8_NAME_BYTES], name[ST_INT8_NAME_BYTES + 16];
    struct st_linear_op shape;
    st_int8_name(id.role, &m->config, id.layer, id.expert, linear);
    snprintf(name, sizeof name, "%s%s", linear, ST_INT8_WEIGHT);
    st_int8_shape(id.role, &m->config, id.layer, &shape);
    const struct st_section *section = st_package_find(package, name);
    m->pieces.at[st_file_piece_place(m, id)] =
        (struct st_file_piece){.linear = id,
                               .section = section->name,
                               .offset = st_package_offset(package, section),
                               .bytes = section->bytes,
                               .group_bytes = st_linear_op_group_bytes(&shape),
                               .hash = st_package_section_hash(package, section),
                               .hashed = true};
    return STINT_OK;
}

static stint_status bind_tensors(struct stint_model *m, struct st_linear_id id) {
    const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS];
    size_t place = st_file_piece_place(m, id), n = st_linear_parts(&m->weights, id, parts);
    for (size_t i = 0; i < parts_of(m, id.role); i++) {
        struct st_file_piece *piece = &m->pieces.at[place + i];
        *piece = (struct st_file_piece){.linear = id};
        if (i >= n || !parts[i]->data) continue;
        struct st_linear_weight *w = (struct st_linear_weight *)(uintptr_t)parts[i];
        piece->bytes = w->n_out * w->row_bytes;
        piece->group_bytes = ST_PIECE_ROWS * w->row_bytes;
        w->piece = (uint32_t)(place + i + 1);
        if (!st_checkpoint_find(&m->checkpoint, w->data, piece->bytes, &piece->file,
                                &piece->offset))
            return st_fail(STINT_E_INTERNAL, "a linear of layer %u is in no file", id.layer);
    }
    return STINT_OK;
}

static stint_status bind_linear(void *context, struct st_linear_id id) {
    struct stint_model *m = context;
    return m->int8.layers ? bind_section(m, id) : bind_tensors(m, id);
}

stint_status st_file_pieces_bind(struct stint_model *m, struct st_arena *arena) {
    m->pieces.n = count(m);
    m->pieces.at = ST_TAKE(arena, struct st_file_piece, m->pieces.n);
    if (!m->pieces.at) return STINT_OK; // measuring
    return st_linears_each(&m->config, (uint32_t)st_max(1, m->config.n_experts), bind_linear, m);
}

// Several linears may lie in one tensor: fused ones, the experts of a layer.
const char *st_file_piece_tensor(const struct stint_model *m, const struct st_file_piece *piece) {
    const unsigned char *data = m->checkpoint.maps[piece->file].data + piece->offset;
    for (size_t i = 0; i < st_tensors_count(m->checkpoint.tensors); i++) {
        const struct st_tensor *t = st_tensors_at(m->checkpoint.tensors, i);
        uintptr_t from = (uintptr_t)t->data;
        if ((uintptr_t)data >= from && (uintptr_t)data - from < t->bytes) return t->name;
    }
    return "";
}
