// SPDX-License-Identifier: Apache-2.0
#include "model/stored_experts.h"

#include "base/size.h"

#include <stdio.h>
#include <string.h>

enum { CODE_BYTES = ST_MXFP4_BYTES - 1 };

static stint_status check_shape(const struct st_tensor *t, uint32_t n_dims, const uint64_t *dims) {
    bool same = t->n_dims == n_dims;
    for (uint32_t d = 0; d < n_dims; d++) same = same && t->dims[d] == dims[d];
    if (same) return STINT_OK;
    return st_fail(STINT_E_FORMAT, "tensor '%s' has not the shape that the config says", t->name);
}

// Takes room for the result; NULL while measuring.
static unsigned char *take(const struct st_stored_experts *x, enum st_dtype dtype,
                           struct st_arena *arena, struct st_tensor *tensor) {
    *tensor = (struct st_tensor){
        .name = x->name, .dims = {x->n_experts, x->n_out, x->n_in, 1}, .dtype = dtype, .n_dims = 3};
    size_t row = st_dtype_row_bytes(dtype, x->n_in), rows = (size_t)x->n_experts * x->n_out;
    unsigned char *to = st_arena_take(arena, rows, row);
    tensor->bytes = rows * row;
    tensor->data = to;
    return to;
}

static stint_status turn(const struct st_tensor *stored, const struct st_stored_experts *x,
                         struct st_arena *arena, struct st_tensor *tensor) {
    size_t rows = (size_t)x->step * x->n_out, item = st_dtype_traits(stored->dtype)->block_bytes;
    ST_TRY(check_shape(stored, 3, (uint64_t[]){x->n_experts, x->n_in, rows}));
    unsigned char *to = take(x, stored->dtype, arena, tensor);
    const unsigned char *from = stored->data;
    for (size_t e = 0; e < x->n_experts && to; e++)
        for (size_t r = 0; r < x->n_out; r++)
            for (size_t k = 0; k < x->n_in; k++, to += item)
                memcpy(to, from + ((e * x->n_in + k) * rows + x->first + x->step * r) * item, item);
    return STINT_OK;
}

// Codes of neighbours share a byte in the folder; in a block those that are 16 apart.
static void rewrite_block(const unsigned char *codes, unsigned char scale, unsigned char *block) {
    block[0] = scale;
    for (size_t i = 0; i < CODE_BYTES; i++) {
        size_t shift = i % 2 * 4;
        unsigned low = codes[i / 2] >> shift & 15,
                 high = codes[CODE_BYTES / 2 + i / 2] >> shift & 15;
        block[1 + i] = (unsigned char)(low | high << 4);
    }
}

static stint_status join(const struct st_tensor *codes, const struct st_tensor *scales,
                         const struct st_stored_experts *x, struct st_arena *arena,
                         struct st_tensor *tensor) {
    size_t rows = (size_t)x->step * x->n_out, blocks = x->n_in / ST_MXFP4_ITEMS;
    if (x->n_in % ST_MXFP4_ITEMS != 0)
        return st_fail(STINT_E_FORMAT, "tensor '%s': rows of %u are no whole blocks of %d",
                       codes->name, x->n_in, ST_MXFP4_ITEMS);
    ST_TRY(check_shape(codes, 4, (uint64_t[]){x->n_experts, rows, blocks, CODE_BYTES}));
    ST_TRY(check_shape(scales, 3, (uint64_t[]){x->n_experts, rows, blocks}));
    unsigned char *to = take(x, ST_DTYPE_MXFP4, arena, tensor);
    const unsigned char *from = codes->data, *scale = scales->data;
    for (size_t e = 0; e < x->n_experts && to; e++)
        for (size_t r = 0; r < x->n_out; r++)
            for (size_t i = 0; i < blocks; i++, to += ST_MXFP4_BYTES) {
                size_t at = (e * rows + x->first + x->step * r) * blocks + i;
                rewrite_block(from + at * CODE_BYTES, scale[at], to);
            }
    return STINT_OK;
}

stint_status st_stored_experts_rewrite(const struct st_tensors *tensors,
                                       const struct st_stored_experts *x, struct st_arena *arena,
                                       struct st_tensor *tensor, bool *found) {
    char name[ST_MAX_NAME_BYTES + 1];
    const struct st_tensor *matrices = st_tensors_find(tensors, x->name);
    *found = true;
    if (matrices) return turn(matrices, x, arena, tensor);
    snprintf(name, sizeof name, "%s_blocks", x->name);
    const struct st_tensor *codes = st_tensors_find_bytes(tensors, name);
    *found = codes != NULL;
    if (!codes) return STINT_OK;
    snprintf(name, sizeof name, "%s_scales", x->name);
    const struct st_tensor *scales = st_tensors_find_bytes(tensors, name);
    if (!scales) return st_tensors_missing(tensors, name);
    return join(codes, scales, x, arena, tensor);
}
