// SPDX-License-Identifier: Apache-2.0
#include "prepare/rows.h"

#include "base/half.h"
#include "base/map.h"
#include "kernels/dequantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FORGET_BYTES = 16 << 20 }; // of the mapped table, at a time

static const float largest_half = 65504.0f;

bool st_rows_become_blocks(const struct st_tensor *t) {
    bool floats = t->dtype == ST_DTYPE_F32 || t->dtype == ST_DTYPE_F16 || t->dtype == ST_DTYPE_BF16;
    return floats && t->n_dims == 2 && t->dims[1] % ST_Q8_0_ITEMS == 0;
}

// A scale and its codes; false if a number is not finite, or too large for the scale.
static bool make_block(const float *x, unsigned char *block) {
    float max = 0.0f;
    int8_t *codes = (int8_t *)(block + 2);
    for (size_t i = 0; i < ST_Q8_0_ITEMS; i++) {
        if (!isfinite(x[i])) return false;
        max = fmaxf(max, fabsf(x[i]));
    }
    if (max / 127.0f > largest_half) return false;
    uint16_t half = st_f16_from_f32(max / 127.0f);
    float scale = st_f32_from_f16(half);
    memcpy(block, &half, sizeof half);
    for (size_t i = 0; i < ST_Q8_0_ITEMS; i++)
        codes[i] = (int8_t)(scale > 0.0f ? fmaxf(-127.0f, fminf(127.0f, rintf(x[i] / scale))) : 0);
    return true;
}

static stint_status pack_rows(const struct st_tensor *t, float *x, unsigned char *row,
                              struct st_package_writer *writer) {
    st_dequantize_fn *dequantize = st_dequantize_select(0)->fn[t->dtype];
    size_t n = t->dims[1], stored = st_dtype_row_bytes(t->dtype, n), forgotten = 0;
    for (uint64_t r = 0; r < t->dims[0]; r++) {
        dequantize((const char *)t->data + r * stored, 0, n, x);
        for (size_t i = 0; i < n / ST_Q8_0_ITEMS; i++)
            if (!make_block(x + i * ST_Q8_0_ITEMS, row + i * ST_Q8_0_BYTES))
                return st_fail(STINT_E_FORMAT, "tensor '%s': row %llu is not of finite numbers",
                               t->name, (unsigned long long)r);
        ST_TRY(st_package_append(writer, row, n / ST_Q8_0_ITEMS * ST_Q8_0_BYTES));
        size_t done = (r + 1) * stored;
        if (done - forgotten < FORGET_BYTES) continue;
        st_map_forget((const char *)t->data + forgotten, done - forgotten);
        forgotten = done;
    }
    return STINT_OK;
}

stint_status st_rows_pack(const struct st_tensor *table, struct st_package_writer *writer) {
    struct st_section section = {.name = table->name,
                                 .type = ST_SECTION_TENSOR,
                                 .dtype = ST_DTYPE_Q8_0,
                                 .n_dims = table->n_dims};
    memcpy(section.dims, table->dims, sizeof section.dims);
    float *x = calloc(table->dims[1], sizeof *x);
    unsigned char *row = calloc(table->dims[1], sizeof *row * 2);
    stint_status status = x && row ? st_package_begin(writer, &section)
                                   : st_fail(STINT_E_NOMEM, "no memory for a row");
    if (status == STINT_OK) status = pack_rows(table, x, row, writer);
    free(x);
    free(row);
    return status;
}
