// SPDX-License-Identifier: Apache-2.0
// Linears as they are stored, on devices that take them: integers exactly, and floats added in the
// order of the scalar kernels, so that every output has their bits. Floats in any order. The
// drivers compile kernels for each size of a group: STINT_CI_LONG=1 has more sizes.
#include "base/cpu.h"
#include "device/driver.h"
#include "kernels/block_weights.h"
#include "kernels/dequantize.h"
#include "support/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_FAULTS = 120 };

static const char *const ways[] = {"opencl", "opencl:copy=1,items=64", "opencl:items=3",
                                   "opencl:items=200"};

static int n_ways(void) {
    return (int)ts_how_many(2, 2, sizeof ways / sizeof *ways);
}

// A linear, its input as the host has it, and what the scalar kernel makes of them.
struct problem {
    struct st_stored_linear linear;
    struct st_nested_weight nested;
    void *weights;
    struct st_nested_row *rows;
    uint8_t *groups;
    float *x; // [n, n_in]
    unsigned char *input;
    size_t n, terms;
    unsigned bits;
    uint32_t rows_wanted; // 0: all
    float *wanted;        // [n, rows wanted]
};

static void skip_without(void) {
    struct st_device *device = NULL;
    const struct st_device_options options = {.name = "opencl"};
    bool here = st_device_open(&options, &device) == STINT_OK;
    st_device_close(device);
    if (here) return;
    print_message("OpenCL finds no device: scripts/bootstrap opencl\n");
    skip();
}

static struct st_device *must_open(const char *name) {
    struct st_device *device;
    const struct st_device_options options = {.name = name};
    if (st_device_open(&options, &device) != STINT_OK) fail_msg("%s", st_error_text());
    return device;
}

// ---- Problems

static void make_input(struct problem *p) {
    size_t n = p->n * p->linear.n_in;
    p->x = malloc(n * sizeof *p->x);
    for (size_t i = 0; i < n; i++)
        p->x[i] = ts_random_float(-1.0f, 1.0f) * (ts_random_below(50) ? 1.0f : 20.0f);
    p->input = calloc(1, st_stored_input_bytes(p->linear.form, p->linear.n_in, p->n, p->terms));
    p->wanted = malloc(p->n * p->linear.n_out * sizeof(float));
}

static void drop(struct problem *p) {
    free(p->weights);
    free(p->rows);
    free(p->groups);
    free(p->x);
    free(p->input);
    free(p->wanted);
}

static void fill_nested(struct problem *p, uint32_t n_out, uint32_t k, unsigned low,
                        unsigned high) {
    size_t rows = st_nested_padded_rows(n_out), precisions = high - low + 1;
    size_t group_bytes = st_nested_group_bytes(n_out, k),
           bytes = st_nested_code_bytes(n_out, k, high);
    uint8_t *code = malloc(k), *codes = aligned_alloc(64, st_round_up(bytes, 64));
    p->weights = memset(codes, 0, bytes);
    p->rows = malloc(precisions * rows * sizeof *p->rows);
    p->groups = malloc(precisions * group_bytes);
    ts_random_bytes(p->groups, precisions * group_bytes);
    for (size_t i = 0; i < precisions * rows; i++)
        p->rows[i] =
            (struct st_nested_row){ts_random_float(-1.0f, 1.0f), ts_random_float(-1.0f, 1.0f)};
    for (size_t r = 0; r < n_out; r++) {
        ts_random_bytes(code, k);
        for (size_t i = 0; i < k; i++) code[i] &= (1u << high) - 1;
        st_nested_put_row(code, n_out, k, high, r, codes);
    }
    free(code);
    p->nested = (struct st_nested_weight){.codes = codes,
                                          .rows = p->rows,
                                          .n_out = n_out,
                                          .n_in = k,
                                          .low = (uint8_t)low,
                                          .high = (uint8_t)high};
    for (unsigned b = low; b <= high; b++)
        p->nested.groups[b] = p->groups + (b - low) * group_bytes;
    p->linear = (struct st_stored_linear){.form = ST_STORED_NESTED, .n_out = n_out, .n_in = k};
}

// The parts lie one after another, as the device gets them.
static struct st_nested_input nested_input(const struct problem *p) {
    const struct st_stored_nested parts = st_stored_nested(p->linear.n_in, p->n * p->terms);
    return (struct st_nested_input){.q = (int8_t *)p->input,
                                    .scale = (float *)(void *)(p->input + parts.scale),
                                    .sums = (int16_t *)(void *)(p->input + parts.sums),
                                    .n_tokens = p->n * p->terms,
                                    .terms = p->terms};
}

static uint32_t n_rows(const struct problem *p) {
    return p->rows_wanted ? p->rows_wanted : p->linear.n_out;
}

// flags: the kernel whose bits are wanted.
static void use_bits(struct problem *p, unsigned bits, uint64_t flags) {
    const struct st_nested_input x = nested_input(p);
    p->bits = bits;
    p->linear.nested = &p->nested;
    st_nested_select(flags)->fn(&p->nested, bits, &x, 0, st_ceil_div(n_rows(p), ST_NESTED_PANEL),
                                p->wanted, n_rows(p));
}

static void make_nested(struct problem *p) {
    unsigned low = 2 + ts_random_below(3), high = low + ts_random_below(8 - low);
    *p = (struct problem){.n = 1 + ts_random_below(9), .terms = 1 + ts_random_below(2)};
    fill_nested(p, 1 + ts_random_below(40), 1 + ts_random_below(ts_random_below(2) ? 300 : 1024),
                low, high);
    make_input(p);
    struct st_nested_input x = nested_input(p);
    for (size_t t = 0; t < p->n; t++) {
        const float *row = p->x + t * p->linear.n_in;
        st_nested_quantize(st_nested_select(0), row, p->linear.n_in, t * p->terms, &x);
        if (p->terms == 2)
            st_nested_quantize_rest(st_nested_select(0), row, p->linear.n_in, 2 * t, 2 * t + 1, &x);
    }
}

static void make_rows(struct problem *p, enum st_stored_form form, enum st_dtype dtype) {
    uint32_t items = st_dtype_traits(dtype)->block_items;
    uint32_t n_out = 1 + ts_random_below(40), n_in = items * (1 + ts_random_below(600 / items + 1));
    *p = (struct problem){.n = 1 + ts_random_below(9), .terms = 1};
    size_t row_bytes = st_dtype_row_bytes(dtype, n_in);
    p->weights = aligned_alloc(64, st_round_up(n_out * row_bytes, 64));
    p->linear = (struct st_stored_linear){.form = form,
                                          .n_out = n_out,
                                          .n_in = n_in,
                                          .dtype = dtype,
                                          .rows = p->weights,
                                          .row_bytes = row_bytes};
    make_input(p);
}

static void make_blocks(struct problem *p, enum st_dtype dtype) {
    make_rows(p, ST_STORED_BLOCKS, dtype);
    const struct st_blocks *scalar = st_blocks_select(0);
    struct st_blocks_chunk *chunks = (struct st_blocks_chunk *)(void *)p->input;
    size_t k = p->linear.n_in, n_chunks = st_blocks_chunks(k);
    bw_fill(dtype, p->weights, p->linear.n_out * p->linear.row_bytes);
    for (size_t i = 0; i < p->n * n_chunks; i++)
        st_blocks_quantize(scalar, p->x + i / n_chunks * k, k, i % n_chunks, chunks + i);
    scalar->fn[dtype](p->weights, p->linear.row_bytes, p->linear.n_out, k, chunks, p->n, p->wanted,
                      p->linear.n_out);
}

static float float_at(const struct problem *p, size_t row, size_t i) {
    const unsigned char *from = (const unsigned char *)p->linear.rows + row * p->linear.row_bytes;
    float value;
    st_dequantize_select(0)->fn[p->linear.dtype](from, i, 1, &value);
    return value;
}

static void make_floats(struct problem *p, enum st_dtype dtype) {
    make_rows(p, ST_STORED_FLOATS, dtype);
    size_t k = p->linear.n_in, n_out = p->linear.n_out;
    for (size_t i = 0; i < n_out * k; i++) {
        float value = ts_random_float(-1.0f, 1.0f);
        uint16_t half = dtype == ST_DTYPE_F16 ? st_f16_from_f32(value) : st_bf16_from_f32(value);
        if (dtype == ST_DTYPE_F32)
            ((float *)p->weights)[i] = value;
        else
            ((uint16_t *)p->weights)[i] = half;
    }
    memcpy(p->input, p->x, p->n * k * sizeof(float));
    for (size_t t = 0; t < p->n; t++)
        for (size_t r = 0; r < n_out; r++) {
            double sum = 0.0;
            for (size_t i = 0; i < k; i++)
                sum += (double)float_at(p, r, i) * (double)p->x[t * k + i];
            p->wanted[t * n_out + r] = (float)sum;
        }
}

// ---- Runs

enum { GAP = 3 }; // floats between rows of the output

static stint_status with_buffers(const struct problem *p, struct st_device_stored *stored,
                                 struct st_buffer *in, struct st_buffer *out, float *got) {
    size_t row = (n_rows(p) + GAP) * sizeof(float);
    const struct st_multiply_args args = {.x = {.buffer = in, .offset = ST_DEVICE_ALIGNMENT},
                                          .y = {out, 0, row},
                                          .n = p->n,
                                          .terms = p->terms,
                                          .bits = p->bits,
                                          .n_out = p->rows_wanted};
    struct st_mapping map;
    struct st_job *job;
    size_t bytes = st_stored_input_bytes(p->linear.form, p->linear.n_in, p->n, p->terms);
    ST_TRY(st_buffer_map(in, ST_DEVICE_ALIGNMENT, bytes, ST_MAP_WRITE, &map));
    memcpy(map.data, p->input, bytes);
    ST_TRY(st_buffer_unmap(&map));
    ST_TRY(st_device_multiply(stored, &args, NULL, 0, &job));
    ST_TRY(st_job_join(job, NULL));
    ST_TRY(st_buffer_map(out, 0, p->n * row, ST_MAP_READ, &map));
    for (size_t t = 0; t < p->n; t++) {
        const float *from = (const float *)map.data + t * (n_rows(p) + GAP);
        memcpy(got + t * n_rows(p), from, n_rows(p) * sizeof *got);
        for (size_t i = 0; i < GAP; i++)
            assert_true(from[n_rows(p) + i] == 0.0f); // nothing behind a row is written
    }
    return st_buffer_unmap(&map);
}

static stint_status run_on(struct st_device *device, const struct problem *p, float *got) {
    struct st_device_stored *stored = NULL;
    struct st_buffer *in = NULL, *out = NULL;
    size_t bytes = st_stored_input_bytes(p->linear.form, p->linear.n_in, p->n, p->terms);
    stint_status status = st_device_import_stored(device, &p->linear, &stored);
    if (status == STINT_OK) status = st_buffer_allocate(device, ST_DEVICE_ALIGNMENT + bytes, &in);
    if (status == STINT_OK)
        status = st_buffer_allocate(device, p->n * (n_rows(p) + GAP) * sizeof(float), &out);
    if (status == STINT_OK) status = with_buffers(p, stored, in, out, got);
    st_buffer_free(in);
    st_buffer_free(out);
    st_device_free_stored(stored);
    return status;
}

static bool is_close(const struct problem *p, const float *got) {
    for (size_t i = 0; i < p->n * n_rows(p); i++)
        if (!(fabsf(got[i] - p->wanted[i]) <= 1e-5f * sqrtf((float)p->linear.n_in) * 20.0f))
            return false;
    return true;
}

static bool is_right(const struct problem *p, const float *got) {
    if (p->linear.form == ST_STORED_FLOATS) return is_close(p, got);
    return memcmp(got, p->wanted, p->n * n_rows(p) * sizeof *got) == 0;
}

static void check(struct st_device *device, const char *way, const struct problem *p) {
    float *got = malloc(p->n * n_rows(p) * sizeof *got);
    if (run_on(device, p, got) != STINT_OK) fail_msg("%s: %s", way, st_error_text());
    if (!is_right(p, got))
        fail_msg("%s: form %d, type %d, bits %u of %u: %u x %u with %zu inputs of %zu terms", way,
                 (int)p->linear.form, (int)p->linear.dtype, p->bits, p->nested.high,
                 p->linear.n_out, p->linear.n_in, p->n, p->terms);
    free(got);
}

// ---- Tests

static void nested_codes_have_the_scalar_kernels_bits(void **state) {
    (void)state;
    skip_without();
    for (int w = 0; w < n_ways(); w++) {
        struct st_device *device = must_open(ways[w]);
        for (int i = 0; i < 30; i++) {
            struct problem p;
            make_nested(&p);
            for (unsigned bits = p.nested.low; bits <= p.nested.high; bits++) {
                use_bits(&p, bits, 0);
                check(device, ways[w], &p);
            }
            drop(&p);
        }
        st_device_close(device);
    }
}

// Where the products are the host's, some of the rows may be.
static void rows_have_the_host_kernels_bits(void **state) {
    (void)state;
    struct st_device *device = must_open("sim:speed=1000000,delay=0");
    for (int i = 0; i < 60; i++) {
        struct problem p;
        float got[9 * 48];
        make_nested(&p);
        uint32_t panels = ts_random_below(p.linear.n_out / ST_NESTED_PANEL + 1);
        p.rows_wanted = ST_NESTED_PANEL * panels;
        for (unsigned bits = p.nested.low; bits <= p.nested.high; bits++) {
            use_bits(&p, bits, st_cpu_flags());
            check(device, "sim", &p);
        }
        p.rows_wanted = p.linear.n_out + 1;
        assert_int_equal(run_on(device, &p, got), STINT_E_INTERNAL);
        assert_non_null(strstr(st_error_text(), "rows that it has not"));
        drop(&p);
    }
    st_device_close(device);
}

static void blocks_have_the_scalar_kernels_bits(void **state) {
    (void)state;
    skip_without();
    for (int w = 0; w < n_ways(); w++) {
        struct st_device *device = must_open(ways[w]);
        for (int dtype = 0; dtype < 4 * ST_N_DTYPES; dtype++) {
            struct problem p;
            if (!st_blocks_has((enum st_dtype)(dtype % ST_N_DTYPES))) continue;
            make_blocks(&p, (enum st_dtype)(dtype % ST_N_DTYPES));
            check(device, ways[w], &p);
            drop(&p);
        }
        st_device_close(device);
    }
}

static void floats_are_close(void **state) {
    (void)state;
    skip_without();
    static const enum st_dtype types[] = {ST_DTYPE_F32, ST_DTYPE_F16, ST_DTYPE_BF16};
    for (int w = 0; w < n_ways(); w++) {
        struct st_device *device = must_open(ways[w]);
        for (int i = 0; i < 15; i++) {
            struct problem p;
            make_floats(&p, types[i % 3]);
            check(device, ways[w], &p);
            drop(&p);
        }
        st_device_close(device);
    }
}

// Rows of a GGUF file begin at multiples of 32 bytes, not of a line.
static void weights_may_lie_anywhere(void **state) {
    (void)state;
    skip_without();
    struct st_device *device = must_open("opencl");
    for (size_t shift = 2; shift <= 32; shift *= 2) {
        struct problem p;
        make_blocks(&p, ST_DTYPE_Q4_K);
        size_t bytes = p.linear.n_out * p.linear.row_bytes;
        unsigned char *moved = aligned_alloc(64, st_round_up(bytes + shift, 64));
        memcpy(moved + shift, p.weights, bytes);
        p.linear.rows = moved + shift;
        check(device, "moved", &p);
        free(moved);
        drop(&p);
    }
    st_device_close(device);
}

static void the_limit_of_memory_holds(void **state) {
    (void)state;
    skip_without();
    struct st_device *device = must_open("opencl");
    struct st_device_stored *one = NULL, *two = NULL;
    struct problem p;
    make_nested(&p);
    use_bits(&p, p.nested.low, 0);
    device->caps.memory_limit = st_device_used_bytes(device) + device->ops->stored_bytes(&p.linear);
    assert_int_equal(st_device_import_stored(device, &p.linear, &one), STINT_OK);
    assert_int_equal(st_device_import_stored(device, &p.linear, &two), STINT_E_LIMIT);
    st_device_free_stored(one);
    assert_int_equal(st_device_import_stored(device, &p.linear, &two), STINT_OK);
    st_device_free_stored(two);
    assert_int_equal(st_device_used_bytes(device), 0);
    st_device_close(device);
    drop(&p);
}

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    skip_without();
    struct st_device *device = must_open("opencl");
    struct st_device_stored *stored = NULL;
    struct st_buffer *buffer;
    struct st_job *job;
    struct problem p;
    make_nested(&p);
    use_bits(&p, p.nested.high, 0);
    assert_int_equal(st_device_import_stored(device, &p.linear, &stored), STINT_OK);
    size_t bytes = st_stored_input_bytes(ST_STORED_NESTED, p.linear.n_in, 1, 1);
    assert_int_equal(st_buffer_allocate(device, st_max(bytes, p.linear.n_out * 4), &buffer),
                     STINT_OK);
    const struct st_multiply_args good = {
        .x = {.buffer = buffer}, .y = {.buffer = buffer}, .n = 1, .terms = 1, .bits = p.bits};
    struct st_multiply_args bad[] = {good, good, good, good, good};
    bad[0].bits = p.bits + 1u;
    bad[1].terms = 3;
    bad[2].x.offset = st_round_up(st_buffer_bytes(buffer), ST_DEVICE_ALIGNMENT);
    bad[3].y.offset = st_round_up(st_buffer_bytes(buffer), sizeof(float));
    bad[4].x.buffer = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(st_device_multiply(stored, &bad[i], NULL, 0, &job), STINT_E_INTERNAL);
    st_device_free_stored(stored);
    p.linear.n_in++; // not that of its weights
    assert_int_equal(st_device_import_stored(device, &p.linear, &stored), STINT_E_UNSUPPORTED);
    st_buffer_free(buffer);
    st_device_close(device);
    drop(&p);
}

// ---- Failures

// What fails is one clear error, and nothing else changes.
static void every_call_may_fail(void **state) {
    (void)state;
    skip_without();
    struct problem p;
    make_nested(&p);
    use_bits(&p, p.nested.high, 0);
    float *got = malloc(p.n * p.linear.n_out * sizeof *got);
    unsigned n_failed = 0;
    for (unsigned n = 30; n < MAX_FAULTS; n++) {
        char name[32];
        struct st_device *device = NULL;
        snprintf(name, sizeof name, "opencl:%s=%u", n % 2 ? "lose" : "error", n);
        const struct st_device_options options = {.name = name};
        if (st_device_open(&options, &device) != STINT_OK) continue;
        stint_status status = run_on(device, &p, got);
        if (status == STINT_OK) assert_true(is_right(&p, got));
        if (status != STINT_OK) {
            n_failed++;
            assert_int_equal(status, n % 2 ? STINT_E_DEVICE : STINT_E_NOMEM);
            assert_int_equal(st_device_is_lost(device), n % 2);
            assert_non_null(strstr(st_error_text(), "device 'opencl'"));
        }
        st_device_close(device);
    }
    assert_true(n_failed > 10);
    free(got);
    drop(&p);
}

static void other_devices_leave_it_to_the_host(void **state) {
    (void)state;
    struct st_device *device = must_open("sim");
    struct st_device_stored *stored = NULL;
    struct problem p;
    bool has = true;
    make_nested(&p);
    use_bits(&p, p.nested.high, 0);
    assert_false(st_device_takes_stored(device, &p.linear));
    assert_int_equal(st_device_import_stored(device, &p.linear, &stored), STINT_E_UNSUPPORTED);
    assert_int_equal(st_device_has_stored("sim", &has), STINT_OK);
    assert_false(has);
    assert_int_equal(st_device_has_stored("sim:delay=0,speed=5", &has), STINT_OK);
    assert_true(has);
    assert_int_equal(st_device_has_stored("what", &has), STINT_E_ARG);
    st_device_close(device);
    drop(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_codes_have_the_scalar_kernels_bits),
        cmocka_unit_test(rows_have_the_host_kernels_bits),
        cmocka_unit_test(blocks_have_the_scalar_kernels_bits),
        cmocka_unit_test(floats_are_close),
        cmocka_unit_test(weights_may_lie_anywhere),
        cmocka_unit_test(the_limit_of_memory_holds),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(other_devices_leave_it_to_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
