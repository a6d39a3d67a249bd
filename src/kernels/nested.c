// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested.h"

#include "base/cpu.h"
#include "kernels/nested_rows.h"

#include <stdbool.h>
#include <string.h>

const struct st_nested_kernel st_nested_kernels[] = {
#if defined(__x86_64__)
    {"nested_avx512vnni", ST_CPU_AVX512 | ST_CPU_AVX512VNNI, st_nested_avx512vnni,
     st_nested_quantize_avx512, st_nested_rest_avx512},
    {"nested_avxvnni", ST_CPU_AVX2 | ST_CPU_AVXVNNI, st_nested_avxvnni, st_nested_quantize_avx2,
     st_nested_rest_avx2},
    {"nested_avx2", ST_CPU_AVX2, st_nested_avx2, st_nested_quantize_avx2, st_nested_rest_avx2},
#elif defined(__aarch64__)
    {"nested_dotprod", ST_CPU_DOTPROD, st_nested_dotprod, st_nested_quantize_plain,
     st_nested_rest_plain},
    {"nested_neon", ST_CPU_NEON, st_nested_neon, st_nested_quantize_plain, st_nested_rest_plain},
#endif
    {"nested_scalar", 0, st_nested_scalar, st_nested_quantize_plain, st_nested_rest_plain},
    {0},
};

const struct st_nested_kernel *st_nested_select(uint64_t cpu_flags) {
    const struct st_nested_kernel *kernel = st_nested_kernels;
    while ((kernel->isa & cpu_flags) != kernel->isa) kernel++;
    return kernel;
}

// Where an element lies: the byte of the region of the two top bits and the first of its bits
// there, the byte of a further bit's region and its bit.
struct place {
    size_t pair, plane;
    unsigned pair_bit, plane_bit;
};

static bool is_half(size_t k, size_t column) {
    return column / ST_NESTED_BLOCK >= st_nested_whole_blocks(k);
}

static struct place place_of(size_t row, size_t column, size_t k) {
    size_t panel = row / ST_NESTED_PANEL, block = column / ST_NESTED_BLOCK;
    unsigned j = column % ST_NESTED_BLOCK / 16, a = j / 4, f = j % 4;
    size_t r = row % ST_NESTED_PANEL, i = column % 16;
    struct place p = {
        .pair = panel * st_nested_plane_panel_bytes(k, 2) + block * ST_NESTED_PAIRS +
                a * ST_NESTED_PLANE + 16 * r + i,
        .plane = panel * st_nested_plane_panel_bytes(k, 3) + block * ST_NESTED_PLANE,
        .pair_bit = 2 * f,
    };
    if (is_half(k, column)) {
        a = (unsigned)r / 4;
        r %= 4;
    }
    p.plane += 16 * r + i;
    p.plane_bit = 2 * f + a;
    return p;
}

struct group_place {
    size_t scale, minimum;
};

static struct group_place group_place_of(size_t row, size_t column, size_t k) {
    size_t panel = row / ST_NESTED_PANEL, r = row % ST_NESTED_PANEL;
    size_t g = column % ST_NESTED_BLOCK / ST_NESTED_GROUP, bytes = ST_NESTED_GROUP_BYTES;
    size_t block =
        panel * st_nested_group_panel_bytes(k) + column / ST_NESTED_BLOCK * ST_NESTED_GROUP_BYTES;
    if (is_half(k, column)) {
        g += r / 4 * 2;
        r %= 4;
        bytes /= 2;
    }
    size_t scale = block + r * ST_NESTED_GROUPS + g;
    return (struct group_place){scale, scale + bytes / 2};
}

struct st_nested_group st_nested_group(const uint8_t *groups, size_t k, size_t row, size_t column) {
    struct group_place at = group_place_of(row, column, k);
    return (struct st_nested_group){groups[at.scale], (int8_t)groups[at.minimum]};
}

void st_nested_put_group(uint8_t *groups, size_t k, size_t row, size_t column,
                         struct st_nested_group group) {
    struct group_place at = group_place_of(row, column, k);
    groups[at.scale] = group.scale;
    groups[at.minimum] = (uint8_t)group.minimum;
}

struct st_nested_weight st_nested_panels(const struct st_nested_weight *w, unsigned bits,
                                         size_t panel, size_t n_panels) {
    struct st_nested_weight part = *w;
    size_t row = panel * ST_NESTED_PANEL;
    part.n_out = (uint32_t)st_min(n_panels * ST_NESTED_PANEL, w->n_out - row);
    for (unsigned b = 2; b <= bits; b++)
        part.planes[b] = st_nested_plane(w, b) + panel * st_nested_plane_panel_bytes(w->n_in, b);
    bits = (unsigned)st_min(bits, w->high); // more are stored
    part.low = part.high = (uint8_t)bits;
    part.groups[bits] = w->groups[bits] + panel * st_nested_group_panel_bytes(w->n_in);
    part.rows = st_nested_row(w, bits, row);
    if (!w->outlier_rows) return part;
    part.outlier_rows = w->outlier_rows + row;
    part.outliers = w->outliers + (bits - w->low) * w->n_outliers;
    return part;
}

unsigned st_nested_code(const struct st_nested_weight *w, size_t row, size_t column,
                        unsigned bits) {
    struct place p = place_of(row, column, w->n_in);
    unsigned code = st_nested_plane(w, 2)[p.pair] >> p.pair_bit & 3;
    for (unsigned b = 3; b <= bits; b++)
        code = code << 1 | (st_nested_plane(w, b)[p.plane] >> p.plane_bit & 1);
    return code;
}

float st_nested_value(const struct st_nested_weight *w, size_t row, size_t column, unsigned bits) {
    struct st_nested_group group = st_nested_group(w->groups[bits], w->n_in, row, column);
    const struct st_nested_row *r = st_nested_row(w, bits, row);
    int scaled = (int)(group.scale * st_nested_code(w, row, column, bits));
    return r->scale * (float)scaled + r->minimum * (float)group.minimum;
}

void st_nested_put_row(const uint8_t *code, size_t n_out, size_t k, unsigned high, size_t row,
                       uint8_t *codes) {
    for (size_t c = 0; c < k; c++) {
        struct place p = place_of(row, c, k);
        codes[p.pair] |= (uint8_t)((code[c] >> (high - 2) & 3) << p.pair_bit);
        for (unsigned b = 2; b < high; b++)
            codes[st_nested_code_bytes(n_out, k, b) + p.plane] |=
                (uint8_t)((code[c] >> (high - 1 - b) & 1) << p.plane_bit);
    }
}

size_t st_nested_at(const struct st_nested_input *input, size_t k, size_t t, size_t b) {
    size_t first = t / ST_NESTED_TOKENS * ST_NESTED_TOKENS;
    size_t n = st_min(ST_NESTED_TOKENS, input->n_tokens - first);
    return first * st_nested_blocks(k) + b * n + (t - first);
}

static void put_block(const struct st_nested_kernel *kernel, const float *x, size_t at,
                      struct st_nested_input *input) {
    kernel->quantize(x, input->q + at * ST_NESTED_BLOCK, input->scale + at,
                     input->sums + at * ST_NESTED_GROUPS);
}

// Block b of x[0, k), in `tail` where zeros fill it up.
static const float *block_of(const float *x, size_t k, size_t b, float tail[ST_NESTED_BLOCK]) {
    size_t first = b * ST_NESTED_BLOCK;
    if (k - first >= ST_NESTED_BLOCK) return x + first;
    memset(tail, 0, ST_NESTED_BLOCK * sizeof *tail);
    return memcpy(tail, x + first, (k - first) * sizeof *tail);
}

void st_nested_quantize(const struct st_nested_kernel *kernel, const float *x, size_t k, size_t t,
                        struct st_nested_input *input) {
    float tail[ST_NESTED_BLOCK];
    for (size_t b = 0; b < st_nested_blocks(k); b++)
        put_block(kernel, block_of(x, k, b, tail), st_nested_at(input, k, t, b), input);
}

void st_nested_quantize_rest(const struct st_nested_kernel *kernel, const float *x, size_t k,
                             size_t of, size_t t, struct st_nested_input *input) {
    float tail[ST_NESTED_BLOCK], rest[ST_NESTED_BLOCK];
    for (size_t b = 0; b < st_nested_blocks(k); b++) {
        size_t done = st_nested_at(input, k, of, b);
        kernel->rest(block_of(x, k, b, tail), input->q + done * ST_NESTED_BLOCK, input->scale[done],
                     rest);
        put_block(kernel, rest, st_nested_at(input, k, t, b), input);
    }
}

void st_nested_add_outliers(const struct st_nested_weight *w, unsigned bits, const float *x,
                            size_t n_tokens, size_t row, size_t row1, float *y, size_t y_row) {
    if (!w->outlier_rows) return;
    const float *values = w->outliers + (bits - w->low) * w->n_outliers;
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t r = row; r < row1; r++) {
            float sum = 0.0f;
            for (int32_t e = w->outlier_rows[r]; e < w->outlier_rows[r + 1]; e++)
                sum += values[e] * x[t * w->n_in + (size_t)w->outlier_columns[e]];
            y[t * y_row + r] += sum;
        }
}
