// SPDX-License-Identifier: Apache-2.0
// A column of weights that is multiplied in float has a scale of its own besides the scales of the
// rows. So it keeps its precision even if its weights are small in each row (docs/NUMERICS.md).
#include "base/cpu.h"
#include "base/size.h"
#include "kernels/dequantize.h"
#include "prepare/pack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { BLOCK = 256 }; // channels at a time; a multiple of every type's block

struct job {
    const struct st_pack_source *source;
    struct st_linear_op linear_op;
    const struct st_dequantize *dequantize;
    size_t rows;
    const float *row_scales; // [rows]
    float *scales;           // [n_in]
    int8_t *columns;         // [BLOCK, rows]
    int32_t *checks;         // [n_in, 2]
};

// Channels [first, first + n) of a packed row, divided by the row's scale; false for padding.
static bool load(const struct job *j, size_t packed, size_t first, size_t n, float *x) {
    uint32_t part;
    size_t row;
    if (!st_linear_op_find_row(&j->linear_op, packed, &part, &row)) return false;
    const struct st_linear_weight *w = j->source->parts[part];
    st_linear_dequantize_row(j->dequantize, w, row, first, n, x);
    for (size_t c = 0; c < n; c++) x[c] /= j->row_scales[packed];
    return true;
}

static void measure(const struct job *j, size_t first, size_t n) {
    float x[BLOCK], *max = j->scales + first;
    for (size_t r = 0; r < j->rows; r++)
        for (size_t c = 0, here = load(j, r, first, n, x) ? n : 0; c < here; c++)
            max[c] = fmaxf(max[c], fabsf(x[c]));
    for (size_t c = 0; c < n; c++) max[c] = max[c] / 127.0f >= 0x1p-100f ? max[c] / 127.0f : 1.0f;
}

static void quantize(const struct job *j, size_t first, size_t n) {
    float x[BLOCK];
    memset(j->columns, 0, n * j->rows);
    for (size_t r = 0; r < j->rows; r++)
        for (size_t c = 0, here = load(j, r, first, n, x) ? n : 0; c < here; c++)
            j->columns[c * j->rows + r] = (int8_t)rintf(x[c] / j->scales[first + c]);
}

static void check(const struct job *j, size_t first, size_t n) {
    for (size_t c = 0; c < n; c++) {
        uint64_t hash = XXH3_64bits(j->columns + c * j->rows, j->rows);
        j->checks[2 * (first + c)] = (int32_t)(uint32_t)hash;
        j->checks[2 * (first + c) + 1] = (int32_t)(uint32_t)(hash >> 32);
    }
}

static stint_status write_checks(const struct job *j, const char *linear,
                                 struct st_package_writer *writer) {
    char name[ST_INT8_NAME_BYTES + 16];
    size_t k = j->linear_op.weight.n_in;
    struct st_section checks = {.name = name,
                                .type = ST_SECTION_I32,
                                .n_dims = 2,
                                .dims = {k, 2, 1, 1},
                                .data = j->checks,
                                .bytes = 2 * k * sizeof *j->checks};
    snprintf(name, sizeof name, "%s%s", linear, ST_INT8_COLUMN_CHECKS);
    return st_package_add(writer, &checks);
}

static stint_status write_all(const struct job *j, const char *linear,
                              struct st_package_writer *writer) {
    char name[ST_INT8_NAME_BYTES + 16];
    size_t k = j->linear_op.weight.n_in;
    struct st_section columns = {
        .name = name, .type = ST_SECTION_COLUMNS, .n_dims = 2, .dims = {k, j->rows, 1, 1}};
    snprintf(name, sizeof name, "%s%s", linear, ST_INT8_COLUMNS);
    ST_TRY(st_package_begin(writer, &columns));
    for (size_t first = 0; first < k; first += BLOCK) {
        size_t n = st_min(BLOCK, k - first);
        measure(j, first, n);
        quantize(j, first, n);
        check(j, first, n);
        ST_TRY(st_package_append(writer, j->columns, n * j->rows));
    }
    ST_TRY(write_checks(j, linear, writer));
    return st_pack_section(writer, linear, ST_INT8_COLUMN_SCALES, ST_SECTION_F32, j->scales, k);
}

stint_status st_pack_columns(const struct st_config *config, const struct st_pack_source *source,
                             const float *row_scales, struct st_package_writer *writer) {
    struct job j = {.source = source,
                    .dequantize = st_dequantize_select(st_cpu_flags()),
                    .row_scales = row_scales};
    char linear[ST_INT8_NAME_BYTES];
    st_int8_name(source->role, config, source->layer, source->expert, linear);
    st_int8_shape(source->role, config, source->layer, source->expert, &j.linear_op);
    j.rows = (size_t)j.linear_op.weight.n_panels * ST_INT8_PANEL;
    j.scales = calloc(j.linear_op.weight.n_in, sizeof *j.scales);
    j.columns = malloc(BLOCK * j.rows);
    j.checks = calloc(j.linear_op.weight.n_in, 2 * sizeof *j.checks);
    stint_status status = j.scales && j.columns && j.checks
                              ? write_all(&j, linear, writer)
                              : st_fail(STINT_E_NOMEM, "no memory for the columns of '%s'", linear);
    free(j.scales);
    free(j.columns);
    free(j.checks);
    return status;
}
