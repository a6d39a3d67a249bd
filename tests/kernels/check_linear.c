// SPDX-License-Identifier: Apache-2.0
// Every path of a linear against a plain loop in double precision; the tile unit's also in
// emulation, so that it is tested on CPUs that have none.
#define ST_AMX_EMULATED
#define st_linear_bf16_amx_takes            emulated_takes
#define st_linear_bf16_amx_block_tokens     emulated_block_tokens
#define st_linear_bf16_amx_pack             emulated_pack
#define st_linear_bf16_amx_rows             emulated_rows
#define st_linear_bf16_few_amx_takes        few_takes
#define st_linear_bf16_few_amx_block_tokens few_block_tokens
#define st_linear_bf16_few_amx_pack         few_pack
#define st_linear_bf16_few_amx_rows         few_rows
#include "../../src/kernels/linear_bf16_amx.c"
#include "../../src/kernels/linear_bf16_few_amx.c"
#undef st_linear_bf16_amx_takes
#undef st_linear_bf16_amx_block_tokens
#undef st_linear_bf16_amx_pack
#undef st_linear_bf16_amx_rows
#undef st_linear_bf16_few_amx_takes
#undef st_linear_bf16_few_amx_block_tokens
#undef st_linear_bf16_few_amx_pack
#undef st_linear_bf16_few_amx_rows

#include "base/cpu.h"
#include "block_weights.h"
#include "kernel_check.h"
#include "kernels/blocks.h"
#include "kernels/int16_rows.h"
#include "kernels/quantize_float.h"

static const struct st_linear_path emulated = {"bf16_amx emulated",
                                               0,
                                               0,
                                               ST_LINEAR_EXACT,
                                               emulated_takes,
                                               emulated_block_tokens,
                                               emulated_pack,
                                               emulated_rows,
                                               NULL};

static const struct st_linear_path emulated_few = {"bf16_few_amx emulated",
                                                   0,
                                                   0,
                                                   ST_LINEAR_EXACT,
                                                   few_takes,
                                                   few_block_tokens,
                                                   few_pack,
                                                   few_rows,
                                                   NULL};

static struct st_linear_kernels kernels_for(uint64_t flags) {
    return (struct st_linear_kernels){
        st_tile_select(flags),          st_dequantize_select(flags),      st_gemv_select(flags),
        st_pairs_select(flags),         st_dequantize_bf16_select(flags), st_int16_select(flags),
        st_nested_values_select(flags), st_elementwise_select(flags)};
}

struct product {
    enum st_dtype dtype;
    struct st_nested_weight nested; // of `bits`, instead; 0: none
    unsigned bits;
    size_t n_tokens, k, n_rows, row_bytes;
    struct kc_array x, w, bias, y, packed, scratch;
};

static struct product make(enum st_dtype dtype, size_t n_tokens, size_t k, size_t n_rows,
                           const struct st_linear_kernels *kernels) {
    struct product p = {.dtype = dtype, .n_tokens = n_tokens, .k = k, .n_rows = n_rows};
    p.row_bytes = st_dtype_row_bytes(dtype, k);
    p.x = kc_floats(n_tokens * k, 1.0f);
    p.w = kc_make(n_rows * p.row_bytes, 2 * ts_random_below(4));
    p.bias = kc_floats(n_rows, 1.0f);
    p.y = kc_floats(n_tokens * n_rows, 0.0f);
    p.packed = kc_floats(st_linear_packed_floats(kernels->tile, n_tokens, k), 1.0f);
    p.scratch = kc_floats(st_linear_scratch_floats(kernels->tile, n_tokens), 1.0f);
    bw_fill(dtype, p.w.data, p.w.bytes);
    return p;
}

static void done(struct product *p, const char *who) {
    struct kc_array *all[] = {&p->x, &p->w, &p->bias, &p->y, &p->packed, &p->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kc_free(all[i], who);
}

static struct st_linear_args args_of(const struct st_linear_path *path, const struct product *p) {
    return (struct st_linear_args){.w = p->w.data,
                                   .row_bytes = p->row_bytes,
                                   .dtype = p->dtype,
                                   .nested = p->bits ? &p->nested : NULL,
                                   .bits = p->bits,
                                   .k = p->k,
                                   .n_tokens = p->n_tokens,
                                   .x = path->pack ? p->packed.data : p->x.data,
                                   .bias = p->bias.data,
                                   .y = p->y.data,
                                   .y_row = p->n_rows};
}

static void pack(const struct st_linear_path *path, const struct st_linear_kernels *kernels,
                 const float *x, size_t n_tokens, size_t k, float *out) {
    for (size_t b = 0; b * path->block_tokens(kernels) < n_tokens; b++)
        path->pack(kernels, x, n_tokens, k, b, out);
}

static void run(const struct st_linear_path *path, const struct st_linear_kernels *kernels,
                struct product *p, size_t rows_per_call) {
    struct st_linear_args args = args_of(path, p);
    if (path->pack) pack(path, kernels, p->x.data, p->n_tokens, p->k, p->packed.data);
    for (size_t row = 0; row < p->n_rows; row += rows_per_call)
        path->rows(kernels, &args, row, st_min(row + rows_per_call, p->n_rows), p->scratch.data);
}

// What the path makes of n elements of an input or of weights. The scalar row says what integers
// are.
static void round_row(enum st_linear_rounding rounding, int max_q, float *x, size_t n) {
    for (size_t i = 0; i < n && rounding == ST_LINEAR_BF16; i++)
        x[i] = st_f32_from_bf16(st_bf16_from_f32(x[i]));
    for (size_t i = 0; i < n && rounding == ST_LINEAR_INT16; i += ST_INT16_BLOCK) {
        int16_t q[ST_INT16_BLOCK];
        size_t end = st_min(n, i + ST_INT16_BLOCK);
        float scale = st_int16_quantize_scalar(x + i, end - i, max_q, q);
        for (size_t j = i; j < end; j++) x[j] = scale * (float)q[j - i];
    }
}

static void read_row(const struct st_linear_kernels *kernels, const struct product *p, size_t r,
                     float *row) {
    if (p->bits)
        st_nested_values_select(0)->floats(&p->nested, p->bits, r, 0, p->k, row);
    else
        kernels->dequantize->fn[p->dtype]((unsigned char *)p->w.data + r * p->row_bytes, 0, p->k,
                                          row);
}

// What the path makes of a row of weights.
static void round_weights(enum st_linear_rounding rounding, const struct product *p, size_t r,
                          float *row) {
    const struct st_int16 *scalar = st_int16s;
    while (scalar->isa) scalar++;
    if (rounding != ST_LINEAR_INT16 || p->bits || !scalar->blocks[p->dtype]) {
        round_row(rounding, ST_INT16_MAX_WEIGHT, row, p->k);
        return;
    }
    for (size_t i = 0; i < p->k; i += ST_INT16_BLOCK) {
        int16_t q[ST_INT16_BLOCK];
        size_t n = st_min(ST_INT16_BLOCK, p->k - i);
        const unsigned char *w = (unsigned char *)p->w.data + r * p->row_bytes;
        float scale;
        scalar->blocks[p->dtype](w, p->row_bytes, 1, i, n, q, n, &scale);
        for (size_t j = 0; j < n; j++) row[i + j] = scale * (float)q[j];
    }
}

// Of all rows; returns the largest magnitude of a weight, but at least 1.
static float define(const struct st_linear_path *path, const struct st_linear_kernels *kernels,
                    const struct product *p, float *y) {
    float *x = malloc(p->x.bytes), *row = calloc(p->k, sizeof *row), largest = 1.0f;
    memcpy(x, p->x.data, p->x.bytes);
    for (size_t t = 0; t < p->n_tokens; t++)
        round_row(path->rounding, ST_INT16_MAX_INPUT, x + t * p->k, p->k);
    for (size_t r = 0; r < p->n_rows; r++) {
        read_row(kernels, p, r, row);
        largest = fmaxf(largest, st_max_magnitude(row, p->k));
        round_weights(path->rounding, p, r, row);
        for (size_t t = 0; t < p->n_tokens; t++) {
            double sum = (double)((float *)p->bias.data)[r];
            for (size_t i = 0; i < p->k; i++) sum += (double)x[t * p->k + i] * (double)row[i];
            y[t * p->n_rows + r] = (float)sum;
        }
    }
    free(x);
    free(row);
    return largest;
}

static void check_product(const struct st_linear_path *path,
                          const struct st_linear_kernels *kernels, struct product *p) {
    float *wanted = calloc(p->n_tokens * p->n_rows, sizeof *wanted);
    float largest = define(path, kernels, p, wanted);
    run(path, kernels, p, p->n_rows);
    // 16 bits of mantissa and random signs: far below what BF16 activations would give.
    kc_near(p->y.data, wanted, p->n_tokens * p->n_rows,
            (2e-5f * sqrtf((float)p->k) + 1e-5f) * largest, path->name);
    memcpy(wanted, p->y.data, p->y.bytes);
    run(path, kernels, p, ST_LINEAR_ROWS); // in other pieces: not a bit may change
    assert_memory_equal(p->y.data, wanted, p->y.bytes);
    free(wanted);
}

static void check(const struct st_linear_path *path, const struct st_linear_kernels *kernels,
                  enum st_dtype dtype, size_t n_tokens, size_t k, size_t n_rows) {
    struct product p = make(dtype, n_tokens, k, n_rows, kernels);
    check_product(path, kernels, &p);
    done(&p, path->name);
}

static void every_path_equals_the_definition(void **state) {
    (void)state;
    const uint64_t sets[] = {0, ST_CPU_AVX2, UINT64_MAX};
    const size_t tokens[] = {1, 4, 5, 17, 48, 50, 100}, rows[] = {1, 7, 64, 65, 130};
    const size_t lengths[] = {32, 96, 544, 1056}; // the last two are longer than blocks of k
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        uint64_t flags = st_cpu_flags() & sets[s];
        struct st_linear_kernels kernels = kernels_for(flags);
        for (const struct st_linear_path *path = st_linear_paths; path->name; path++)
            for (size_t i = 0; i < 7 * 5 * 4; i++) {
                size_t n = tokens[i % 7], r = rows[i / 7 % 5], k = lengths[i / 35];
                if (st_linear_path_fits(path, flags, true, ST_DTYPE_BF16, k, n))
                    check(path, &kernels, ST_DTYPE_BF16, n, k, r);
            }
    }
}

static void quantized_types_equal_the_definition(void **state) {
    (void)state;
    const uint64_t sets[] = {0, ST_CPU_AVX2, ~(uint64_t)ST_CPU_AVX512BF16, UINT64_MAX};
    const size_t tokens[] = {16, 17, 23, 31, 32, 33, 64}, rows[] = {1, 9, 67};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        uint64_t flags = st_cpu_flags() & sets[s];
        struct st_linear_kernels kernels = kernels_for(flags);
        for (int dtype = 0; dtype < ST_N_DTYPES; dtype++)
            for (const struct st_linear_path *path = st_linear_paths; path->name; path++) {
                size_t items = st_dtype_traits((enum st_dtype)dtype)->block_items;
                bool fits = st_linear_path_fits(path, flags, true, (enum st_dtype)dtype, 768, 16);
                if (!st_blocks_has((enum st_dtype)dtype) || !fits) continue;
                for (size_t i = 0; i < 7; i++)
                    check(path, &kernels, (enum st_dtype)dtype, tokens[i],
                          items * (1 + i * 96 / items), rows[i % 3]);
                check(path, &kernels, (enum st_dtype)dtype, 512, items, 3);
                check(path, &kernels, (enum st_dtype)dtype, 49, items * (1 + 1024 / items), 9);
            }
    }
}

// Random codes and groups.
static void check_nested(const struct st_linear_path *path, const struct st_linear_kernels *kernels,
                         unsigned bits, size_t n_tokens, size_t k, size_t n_rows) {
    struct product p = make(ST_DTYPE_BF16, n_tokens, k, n_rows, kernels);
    struct kc_array codes = kc_make(st_nested_code_bytes(n_rows, k, bits), 5);
    struct kc_array groups = kc_make(st_nested_group_bytes(n_rows, k), 3);
    struct kc_array rows = kc_floats(2 * st_nested_padded_rows(n_rows), 0.01f);
    ts_random_bytes(codes.data, codes.bytes);
    ts_random_bytes(groups.data, groups.bytes);
    p.bits = bits;
    p.nested = (struct st_nested_weight){.codes = codes.data,
                                         .rows = rows.data,
                                         .n_out = (uint32_t)n_rows,
                                         .n_in = (uint32_t)k,
                                         .low = (uint8_t)bits,
                                         .high = (uint8_t)bits};
    p.nested.groups[bits] = groups.data;
    check_product(path, kernels, &p);
    kc_free(&codes, path->name);
    kc_free(&groups, path->name);
    kc_free(&rows, path->name);
    done(&p, path->name);
}

static void nested_weights_equal_the_definition(void **state) {
    (void)state;
    const uint64_t sets[] = {ST_CPU_AVX2, UINT64_MAX};
    const size_t tokens[] = {1, 5, 33, 64}, rows[] = {1, 9, 67}, lengths[] = {62, 576, 1100, 2114};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        uint64_t flags = st_cpu_flags() & sets[s];
        const struct st_linear_path *path = st_linear_nested_path(flags);
        struct st_linear_kernels kernels = kernels_for(flags);
        for (size_t i = 0; i < 4 * 3 * 4 && path; i++)
            check_nested(path, &kernels, 2 + i % 6, tokens[i % 4], lengths[i / 12],
                         rows[i / 4 % 3]);
    }
    assert_null(st_linear_nested_path(0));
}

// Beside BF16 too, and of weights that are no quantized blocks.
static void integers_of_16_bits_take_everything(void **state) {
    (void)state;
    const uint64_t sets[] = {ST_CPU_AVX2, UINT64_MAX};
    const enum st_dtype dtypes[] = {ST_DTYPE_F32, ST_DTYPE_F16, ST_DTYPE_BF16, ST_DTYPE_Q4_1};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        uint64_t flags = st_cpu_flags() & sets[s];
        struct st_linear_kernels kernels = kernels_for(flags);
        const struct st_linear_path *path = st_linear_int16_path(flags, 96);
        assert_null(st_linear_int16_path(flags, 97));
        for (size_t i = 0; i < 4 && path; i++) {
            assert_int_equal(path->rounding, ST_LINEAR_INT16);
            check(path, &kernels, dtypes[i], 1 + 16 * i, 96 + 320 * i, 1 + 33 * i);
            check_nested(path, &kernels, 2 + (unsigned)i, 5 + 14 * i, 62 + 514 * i, 9);
        }
    }
    assert_null(st_linear_int16_path(0, 96));
}

static void exact_arithmetic_does_not_round(void **state) {
    (void)state;
    for (const struct st_linear_path *path = st_linear_paths; path->name; path++)
        if (path->rounding != ST_LINEAR_EXACT)
            for (int dtype = 0; dtype < ST_N_DTYPES; dtype++)
                assert_false(
                    st_linear_path_fits(path, UINT64_MAX, false, (enum st_dtype)dtype, 256, 64));
}

static void emulated_tiles_equal_the_definition(void **state) {
    (void)state;
    struct st_linear_kernels kernels = kernels_for(0);
    const size_t tokens[] = {5, 32, 33, 70}, rows[] = {1, 31, 32, 65, 130}, lengths[] = {32, 288};
    for (size_t i = 0; i < 4 * 5 * 2; i++) {
        size_t n = tokens[i % 4], r = rows[i / 4 % 5], k = lengths[i / 20];
        assert_true(emulated.takes(ST_DTYPE_BF16, k, n));
        check(&emulated, &kernels, ST_DTYPE_BF16, n, k, r);
    }
    assert_false(emulated.takes(ST_DTYPE_BF16, 33, 100));
    assert_false(emulated.takes(ST_DTYPE_F16, 32, 100));
}

// A step has up to 16 tokens; each gets the bits that it gets alone.
static void check_tokens_alone(const struct st_linear_path *path, size_t n, size_t k, size_t rows) {
    struct st_linear_kernels kernels = kernels_for(0);
    struct product p = make(ST_DTYPE_BF16, n, k, rows, &kernels);
    check_product(path, &kernels, &p);
    float *together = malloc(p.y.bytes), *wanted = malloc(p.y.bytes);
    memcpy(together, p.y.data, p.y.bytes);
    // All three parts count: two would miss by 1e-5.
    float largest = define(path, &kernels, &p, wanted);
    kc_near(together, wanted, n * rows, 1.5e-6f * sqrtf((float)k) * largest, path->name);
    free(wanted);
    p.n_tokens = 1;
    for (size_t t = 0; t < n; t++) {
        memmove(p.x.data, (float *)p.x.data + (t > 0) * k, (n - t) * k * sizeof(float));
        run(path, &kernels, &p, rows);
        assert_memory_equal(p.y.data, together + t * rows, rows * sizeof(float));
    }
    free(together);
    p.n_tokens = n;
    done(&p, path->name);
}

static void emulated_tiles_of_few_tokens_equal_the_definition(void **state) {
    (void)state;
    const size_t rows[] = {1, 31, 32, 65, 130}, lengths[] = {32, 288};
    for (size_t n = 1; n <= 16; n++)
        for (size_t i = 0; i < 10; i++)
            check_tokens_alone(&emulated_few, n, lengths[i / 5], rows[i % 5]);
    assert_true(emulated_few.takes(ST_DTYPE_BF16, 64, 4));
    assert_false(emulated_few.takes(ST_DTYPE_BF16, 64, 5));
    assert_false(emulated_few.takes(ST_DTYPE_BF16, 33, 1));
    assert_false(emulated_few.takes(ST_DTYPE_F16, 32, 1));
}

// Packed by the path in one go, against products, activation and packing one after another.
static void check_gated(const struct st_linear_path *path, const struct st_linear_kernels *kernels,
                        enum st_dtype dtype, size_t n_tokens, size_t k, size_t n_rows) {
    struct product up = make(dtype, n_tokens, k, n_rows, kernels);
    struct product gate = make(dtype, n_tokens, k, n_rows, kernels);
    struct st_linear_args of_up = args_of(path, &up), of_gate = args_of(path, &gate);
    of_gate.x = of_up.x;
    of_up.bias = of_gate.bias = NULL;
    pack(path, kernels, up.x.data, n_tokens, k, up.packed.data);
    path->rows(kernels, &of_up, 0, n_rows, up.scratch.data);
    path->rows(kernels, &of_gate, 0, n_rows, up.scratch.data);
    kernels->elementwise->act_gated(ST_ACT_SILU, gate.y.data, up.y.data, n_tokens * n_rows,
                                    up.y.data);
    size_t room = st_linear_packed_floats(kernels->tile, n_tokens, n_rows);
    struct kc_array wanted = kc_floats(room, 1.0f), got = kc_floats(room, 1.0f);
    pack(path, kernels, up.y.data, n_tokens, n_rows, wanted.data);
    struct st_linear_gated gated = {&of_up, &of_gate, n_rows, ST_ACT_SILU, got.data};
    size_t rows = 2 + 2 * ts_random_below(st_linear_whole_rows(kernels->tile));
    for (size_t row = 0; row < n_rows; row += rows)
        path->gated(kernels, &gated, row, st_min(row + rows, n_rows), up.scratch.data);
    size_t bytes = path->rounding == ST_LINEAR_BF16 ? sizeof(uint16_t) : sizeof(float), width;
    for (size_t t = 0; t < n_tokens; t += width) {
        width = st_tile_width(kernels->tile, n_tokens, t);
        assert_memory_equal((float *)got.data + t * n_rows, (float *)wanted.data + t * n_rows,
                            width * n_rows * bytes);
    }
    kc_free(&wanted, path->name);
    kc_free(&got, path->name);
    done(&up, path->name);
    done(&gate, path->name);
}

static void gated_rows_are_the_next_input(void **state) {
    (void)state;
    const uint64_t sets[] = {0, ST_CPU_AVX2, UINT64_MAX};
    const size_t tokens[] = {1, 5, 16, 17, 64, 100}, rows[] = {2, 34, 64, 65, 130, 192};
    size_t n_checked = 0;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        uint64_t flags = st_cpu_flags() & sets[s];
        struct st_linear_kernels kernels = kernels_for(flags);
        for (const struct st_linear_path *path = st_linear_paths; path->name; path++)
            for (size_t i = 0; i < 6 * 6 && path->gated; i++) {
                size_t n = tokens[i % 6], r = rows[i / 6];
                size_t k = (i + i / 6) % 2 ? 96 : 1056;
                // r is the next linear's k, which must be even for some paths.
                if (!st_linear_path_fits(path, flags, true, ST_DTYPE_Q4_1, r, n)) continue;
                check_gated(path, &kernels, ST_DTYPE_Q4_1, n, k, r);
                n_checked++;
            }
    }
    assert_true(n_checked > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_equals_the_definition),
        cmocka_unit_test(quantized_types_equal_the_definition),
        cmocka_unit_test(nested_weights_equal_the_definition),
        cmocka_unit_test(gated_rows_are_the_next_input),
        cmocka_unit_test(integers_of_16_bits_take_everything),
        cmocka_unit_test(exact_arithmetic_does_not_round),
        cmocka_unit_test(emulated_tiles_equal_the_definition),
        cmocka_unit_test(emulated_tiles_of_few_tokens_equal_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
