// SPDX-License-Identifier: Apache-2.0
#include "kernels/nested_int8.h"

#include "base/cpu.h"
#include "kernels/nested_int8_rows.h"

#include <math.h>
#include <string.h>

const struct st_nested_int8_kernel st_nested_int8_kernels[] = {
#if defined(__x86_64__)
    {"nested_int8_avx512vnni", ST_CPU_AVX512 | ST_CPU_AVX512VNNI, st_nested_int8_avx512, 128,
     st_nested_int8_product_avx512vnni},
    {"nested_int8_avx512", ST_CPU_AVX512, st_nested_int8_avx512, 0, st_nested_int8_product_avx2},
    {"nested_int8_avxvnni", ST_CPU_AVX2 | ST_CPU_AVXVNNI, st_nested_int8_avx2, 128,
     st_nested_int8_product_avxvnni},
    {"nested_int8_avx2", ST_CPU_AVX2, st_nested_int8_avx2, 0, st_nested_int8_product_avx2},
#elif defined(__aarch64__)
    {"nested_int8_dotprod", ST_CPU_DOTPROD, st_nested_int8_neon, 0, st_nested_int8_product_dotprod},
    {"nested_int8_neon", ST_CPU_NEON, st_nested_int8_neon, 0, st_nested_int8_product_neon},
#endif
    {"nested_int8_scalar", 0, st_nested_int8_scalar, 0, st_nested_int8_product_scalar},
    {0},
};

const struct st_nested_int8_kernel *st_nested_int8_select(uint64_t cpu_flags) {
    const struct st_nested_int8_kernel *kernel = st_nested_int8_kernels;
    while ((kernel->isa & cpu_flags) != kernel->isa) kernel++;
    return kernel;
}

static int16_t nearest(float x) {
    return (int16_t)rintf(fminf(fmaxf(x, -INT16_MAX), INT16_MAX));
}

struct st_nested_int8_row st_nested_int8_row_of(const struct st_nested_row *row, unsigned high,
                                                float int8_scale) {
    float step = row->scale / (float)(1u << (ST_NESTED_STORED - high));
    return (struct st_nested_int8_row){
        .step = nearest(fmaxf(step / int8_scale * (4096.0f * 256.0f), 0.0f)),
        .minimum = nearest(row->minimum / int8_scale * (32.0f * 128.0f)),
    };
}

static int16_t multiply(int a, int b) {
    return (int16_t)(uint16_t)((a * b + (1 << 14)) >> 15);
}

static int16_t at(unsigned code, int step) {
    return multiply(((int)code - 128) * 256, step);
}

int8_t st_nested_int8_of_code(const struct st_nested_weight *w, struct st_nested_group group,
                              const struct st_nested_int8_row *row, unsigned code) {
    int step = multiply(group.scale << 7, row->step);
    int least = multiply(group.minimum * 256, row->minimum);
    int16_t sum =
        (int16_t)(uint16_t)(at(code, step) - at(st_nested_int8_half(w), step) + least + 16);
    int value = sum >> 5;
    return (int8_t)(value < -127 ? -127 : value > 127 ? 127 : value);
}

int8_t st_nested_int8_value(const struct st_nested_weight *w, const struct st_nested_int8_row *rows,
                            size_t row, size_t column) {
    struct st_nested_group group = st_nested_group(w->groups[w->high], w->n_in, row, column);
    unsigned code = st_nested_code(w, row, column, w->stored) << (ST_NESTED_STORED - w->stored);
    return st_nested_int8_of_code(w, group, &rows[row], code);
}

void st_nested_int8_pad(size_t k, int8_t *to) {
    for (size_t i = k; i < st_int8_padded_k(k); i++)
        for (size_t r = 0; r < ST_NESTED_PANEL; r++)
            to[i / 4 * 4 * ST_INT8_PANEL + 4 * r + i % 4] = 0;
}
