// SPDX-License-Identifier: Apache-2.0
#include "session/linear/input_norm.h"

#include <string.h>

enum { NORMS = 2 }; // of a layer: before qkv, before its feed-forward block

static size_t place_of(const struct st_config *c, uint32_t layer, enum st_int8_role role) {
    return ((size_t)layer * NORMS + (role == ST_INT8_UP)) * c->hidden * sizeof(float);
}

bool st_input_norm_is_left(const struct st_run *r, enum st_int8_role role) {
    const struct st_config *c = &r->s->model->config;
    if (c->norm != ST_NORM_RMS || !st_block_norms_input(c->block)) return false;
    // A feed-forward part, hidden states beside the first, or a second mixer read it too.
    if (c->block == ST_BLOCK_PARALLEL || c->n_streams || c->flags & ST_ARCH_JOINT) return false;
    return role == ST_INT8_UP || c->form[r->layer] != ST_FORM_DELTA; // so do its rates
}

static stint_status write(const struct stint_session *s, struct st_npu *npu) {
    const struct st_config *c = &s->model->config;
    struct st_mapping map;
    ST_TRY(st_buffer_map(npu->norms, 0, st_buffer_bytes(npu->norms), ST_MAP_WRITE, &map));
    memset(map.data, 0, map.bytes);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct st_layer *l = &s->model->weights.layers[i];
        const float *norms[] = {
            [ST_INT8_QKV] = l->attn_norm.weight, [ST_INT8_UP] = l->ffn_norm.weight};
        for (enum st_int8_role role = ST_INT8_QKV; role <= ST_INT8_UP; role++)
            if (norms[role])
                memcpy((unsigned char *)map.data + place_of(c, i, role), norms[role],
                       c->hidden * sizeof(float));
    }
    return st_buffer_unmap(&map);
}

stint_status st_input_norms_open(const struct stint_session *s, struct st_npu *npu) {
    const struct st_config *c = &s->model->config;
    if (!st_device_caps(npu->device)->row_norms || s->bounded || c->norm != ST_NORM_RMS)
        return STINT_OK;
    stint_status status =
        st_buffer_allocate(npu->device, place_of(c, c->n_layers, ST_INT8_QKV), &npu->norms);
    if (status == STINT_E_LIMIT) return STINT_OK;
    return status == STINT_OK ? write(s, npu) : status;
}

struct st_slice st_input_norm_slice(const struct st_run *r, const struct st_npu *npu,
                                    enum st_int8_role role) {
    const struct st_config *c = &r->s->model->config;
    if (!npu->norms || r->layer >= c->n_layers) return (struct st_slice){0};
    return (struct st_slice){npu->norms, place_of(c, r->layer, role), 0};
}
