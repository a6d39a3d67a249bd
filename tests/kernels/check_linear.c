// SPDX-License-Identifier: Apache-2.0
// Every path of a linear against a plain loop in double precision; the tile unit's also in
// emulation, so that it is tested on CPUs that have none.
#define ST_AMX_EMULATED
#define st_linear_bf16_amx_takes        emulated_takes
#define st_linear_bf16_amx_block_tokens emulated_block_tokens
#define st_linear_bf16_amx_pack         emulated_pack
#define st_linear_bf16_amx_rows         emulated_rows
#include "../../src/kernels/linear_bf16_amx.c"
#undef st_linear_bf16_amx_takes
#undef st_linear_bf16_amx_block_tokens
#undef st_linear_bf16_amx_pack
#undef st_linear_bf16_amx_rows

#include "base/cpu.h"
#include "kernel_check.h"

static const struct st_linear_path emulated = {
    "bf16_amx emulated", 0, emulated_takes, emulated_block_tokens, emulated_pack, emulated_rows};

static struct st_linear_kernels kernels_for(uint64_t flags) {
    return (struct st_linear_kernels){st_tile_select(flags), st_dequantize_select(flags),
                                      st_gemv_select(flags)};
}

struct product {
    size_t n_tokens, k, n_rows;
    struct kc_array x, w, bias, y, packed, scratch;
};

static struct product make(size_t n_tokens, size_t k, size_t n_rows,
                           const struct st_linear_kernels *kernels) {
    struct product p = {.n_tokens = n_tokens, .k = k, .n_rows = n_rows};
    p.x = kc_floats(n_tokens * k, 1.0f);
    p.w = kc_make(n_rows * k * sizeof(uint16_t), 2 * ts_random_below(4));
    p.bias = kc_floats(n_rows, 1.0f);
    p.y = kc_floats(n_tokens * n_rows, 0.0f);
    p.packed = kc_floats(st_linear_packed_floats(kernels->tile, n_tokens, k), 1.0f);
    p.scratch = kc_floats(st_linear_scratch_floats(kernels->tile, n_tokens), 1.0f);
    for (size_t i = 0; i < n_rows * k; i++) {
        uint16_t half = st_bf16_from_f32(ts_random_float(-1.0f, 1.0f));
        memcpy((unsigned char *)p.w.data + 2 * i, &half, sizeof half);
    }
    return p;
}

static void done(struct product *p, const char *who) {
    struct kc_array *all[] = {&p->x, &p->w, &p->bias, &p->y, &p->packed, &p->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kc_free(all[i], who);
}

static void run(const struct st_linear_path *path, const struct st_linear_kernels *kernels,
                struct product *p, size_t rows_per_call) {
    struct st_linear_args args = {.w = p->w.data,
                                  .row_bytes = p->k * sizeof(uint16_t),
                                  .dtype = ST_DTYPE_BF16,
                                  .k = p->k,
                                  .n_tokens = p->n_tokens,
                                  .x = path->pack ? p->packed.data : p->x.data,
                                  .bias = p->bias.data,
                                  .y = p->y.data,
                                  .y_row = p->n_rows};
    if (path->pack)
        for (size_t b = 0; b * path->block_tokens(kernels) < p->n_tokens; b++)
            path->pack(kernels, p->x.data, p->n_tokens, p->k, b, p->packed.data);
    for (size_t row = 0; row < p->n_rows; row += rows_per_call)
        path->rows(kernels, &args, row, st_min(row + rows_per_call, p->n_rows), p->scratch.data);
}

static void check(const struct st_linear_path *path, const struct st_linear_kernels *kernels,
                  size_t n_tokens, size_t k, size_t n_rows) {
    struct product p = make(n_tokens, k, n_rows, kernels);
    float *wanted = calloc(n_tokens * n_rows, sizeof *wanted);
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t r = 0; r < n_rows; r++) {
            double sum = (double)((float *)p.bias.data)[r];
            for (size_t i = 0; i < k; i++) {
                uint16_t half;
                memcpy(&half, (unsigned char *)p.w.data + 2 * (r * k + i), sizeof half);
                sum += (double)((float *)p.x.data)[t * k + i] * (double)st_f32_from_bf16(half);
            }
            wanted[t * n_rows + r] = (float)sum;
        }
    run(path, kernels, &p, n_rows);
    // 16 bits of mantissa and random signs: far below what BF16 activations would give.
    kc_near(p.y.data, wanted, n_tokens * n_rows, 2e-5f * sqrtf((float)k) + 1e-5f, path->name);
    memcpy(wanted, p.y.data, p.y.bytes);
    run(path, kernels, &p, ST_LINEAR_ROWS); // in other pieces: not a bit may change
    assert_memory_equal(p.y.data, wanted, p.y.bytes);
    free(wanted);
    done(&p, path->name);
}

static void every_path_equals_the_definition(void **state) {
    (void)state;
    const uint64_t sets[] = {0, ST_CPU_AVX2, UINT64_MAX};
    const size_t tokens[] = {1, 4, 5, 17, 48, 50, 100}, rows[] = {1, 7, 64, 65, 130};
    const size_t lengths[] = {32, 96, 544};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        uint64_t flags = st_cpu_flags() & sets[s];
        struct st_linear_kernels kernels = kernels_for(flags);
        for (const struct st_linear_path *path = st_linear_paths; path->name; path++)
            for (size_t i = 0; i < 7 * 5 * 3; i++) {
                size_t n = tokens[i % 7], r = rows[i / 7 % 5], k = lengths[i / 35];
                if (st_linear_path_fits(path, flags, ST_DTYPE_BF16, k, n))
                    check(path, &kernels, n, k, r);
            }
    }
}

static void emulated_tiles_equal_the_definition(void **state) {
    (void)state;
    struct st_linear_kernels kernels = kernels_for(0);
    const size_t tokens[] = {5, 32, 33, 70}, rows[] = {1, 31, 32, 65, 130}, lengths[] = {32, 288};
    for (size_t i = 0; i < 4 * 5 * 2; i++) {
        size_t n = tokens[i % 4], r = rows[i / 4 % 5], k = lengths[i / 20];
        assert_true(emulated.takes(ST_DTYPE_BF16, k, n));
        check(&emulated, &kernels, n, k, r);
    }
    assert_false(emulated.takes(ST_DTYPE_BF16, 33, 100));
    assert_false(emulated.takes(ST_DTYPE_F16, 32, 100));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_equals_the_definition),
        cmocka_unit_test(emulated_tiles_equal_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
