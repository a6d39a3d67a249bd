// SPDX-License-Identifier: Apache-2.0
// Products with blocks: every row of the table that this CPU has, for every type, against exact
// integers, and against the float product of the weights that the types define.
#include "kernels/blocks.h"

#include "base/cpu.h"
#include "block_weights.h"
#include "kernel_check.h"
#include "kernels/dequantize.h"

#define N_OF(a) (sizeof(a) / sizeof *(a))

// Weights, inputs and their product.
struct product {
    enum st_dtype dtype;
    size_t n_rows, k, n_columns, row_bytes, y_col;
    struct kc_array w, x, chunks, y;
};

static struct product make(enum st_dtype dtype, size_t n_rows, size_t k, size_t n_columns) {
    size_t items = st_dtype_traits(dtype)->block_items;
    struct product p = {.dtype = dtype, .n_rows = n_rows, .n_columns = n_columns};
    p.k = (k + items - 1) / items * items;
    p.row_bytes = st_dtype_row_bytes(dtype, p.k);
    p.y_col = n_rows + ts_random_below(3);
    p.w = kc_make(p.row_bytes * n_rows, ts_random_below(4));
    p.x = kc_floats(n_columns * p.k, 1.0f);
    p.chunks = kc_make(n_columns * st_blocks_chunks(p.k) * sizeof(struct st_blocks_chunk),
                       ts_random_below(4) * sizeof(float));
    p.y = kc_floats(n_columns * p.y_col, 0.0f);
    memset(p.y.data, 0, p.y.bytes);
    bw_fill(dtype, p.w.data, p.w.bytes);
    return p;
}

static void discard(struct product *p, const char *who) {
    kc_free(&p->w, who);
    kc_free(&p->x, who);
    kc_free(&p->chunks, who);
    kc_free(&p->y, who);
}

static void quantize(struct product *p, const struct st_blocks *row) {
    struct st_blocks_chunk *to = p->chunks.data;
    for (size_t c = 0; c < p->n_columns; c++)
        for (size_t i = 0; i < st_blocks_chunks(p->k); i++)
            st_blocks_quantize(row, (float *)p->x.data + c * p->k, p->k, i, to++);
}

static void multiply(struct product *p, const struct st_blocks *row) {
    row->fn[p->dtype](p->w.data, p->row_bytes, p->n_rows, p->k, p->chunks.data, p->n_columns,
                      p->y.data, p->y_col);
}

static float at(const struct product *p, size_t r, size_t c) {
    return ((float *)p->y.data)[c * p->y_col + r];
}

static void dequantize_row(const struct product *p, size_t r, float *to) {
    st_dequantize_select(0)->fn[p->dtype]((unsigned char *)p->w.data + r * p->row_bytes, 0, p->k,
                                          to);
}

// Calls check for all types and all rows of the table that this CPU has.
static void each(void (*check)(const struct st_blocks *row, enum st_dtype dtype)) {
    for (const struct st_blocks *row = st_blocks_kernels; row->name; row++)
        for (int dtype = 0; dtype < ST_N_DTYPES; dtype++)
            if ((row->isa & st_cpu_flags()) == row->isa && st_blocks_has((enum st_dtype)dtype))
                check(row, (enum st_dtype)dtype);
}

// ---- Integers: where every scale is a whole number, so are all the floats that are summed. None
// of them reaches 2^24, so any order of additions gives the exact product.

enum { K = 256 };

static void set_whole_scales(enum st_dtype dtype, unsigned char *block) {
    bw_set_halves(dtype, block, 1.0f);
    if (dtype == ST_DTYPE_Q4_K || dtype == ST_DTYPE_Q5_K)
        for (int i = 0; i < 12; i++) block[4 + i] &= 3;
    if (dtype == ST_DTYPE_Q6_K)
        for (int i = 0; i < 16; i++) block[192 + i] %= 4;
    if (dtype == ST_DTYPE_IQ4_XS) { // 32 more than a scale of 0 or 1
        block[2] = block[3] = 0xaa;
        for (int i = 0; i < 4; i++) block[4 + i] &= 0x11;
    }
}

// What an input has for its halves; a scale makes up for the factor of the high one.
static const struct halves {
    int high, low; // largest magnitudes
    float scale;
} halves[] = {{127, 0, 0x1p-7f}, {0, 63, 1.0f}, {1, 63, 1.0f}};

static int any_of(int largest, bool extreme) {
    int any = (int)ts_random_below(2 * (uint32_t)largest + 1) - largest;
    return extreme ? (any < 0 ? -largest : largest) : any;
}

// Where element i of a chunk lies among the words.
static size_t word_of(size_t i) {
    return i / ST_BLOCKS_PART * ST_BLOCKS_PART + i % ST_BLOCKS_PART / 2 + i % 2 * 16;
}

// Signs: 0 for any, else all codes of a half have that one, so that neighbours add up.
static void set_whole_inputs(struct product *p, const struct st_blocks *row, const struct halves *h,
                             bool extreme, int sign) {
    struct st_blocks_chunk *x = p->chunks.data;
    for (size_t c = 0; c < p->n_columns; c++, x++) {
        memset(x, 0, sizeof *x);
        for (size_t i = 0; i < K; i++) {
            int high = any_of(h->high, extreme), low = any_of(h->low, extreme);
            x->high[i] = (int8_t)(sign ? sign * abs(high) : high);
            x->low[i] = (int8_t)(sign ? sign * abs(low) : low);
            x->q[word_of(i)] = (int16_t)(128 * x->high[i] + x->low[i]);
            x->half_sum[i / 16] += h->scale * (float)(128 * x->high[i] + x->low[i]);
        }
        for (size_t part = 0; part < ST_BLOCKS_PARTS; part++) {
            x->scale[part] = h->scale;
            x->sum[part] = x->half_sum[2 * part] + x->half_sum[2 * part + 1];
        }
        if (row->arrange) row->arrange(x);
    }
}

static double input_at(const struct product *p, size_t c, size_t i) {
    const struct st_blocks_chunk *of = p->chunks.data;
    of += c * st_blocks_chunks(p->k) + i / K;
    return (double)of->scale[i % K / ST_BLOCKS_PART] * (128 * of->high[i % K] + of->low[i % K]);
}

static void compare_integers(const struct product *p, const char *who) {
    float w[K];
    for (size_t r = 0; r < p->n_rows; r++) {
        dequantize_row(p, r, w);
        for (size_t c = 0; c < p->n_columns; c++) {
            double sum = 0.0;
            for (size_t i = 0; i < p->k; i++) sum += (double)w[i] * input_at(p, c, i);
            if ((double)at(p, r, c) != sum)
                fail_msg("%s, %s: row %zu is %.9g, not %.9g", who, st_dtype_traits(p->dtype)->name,
                         r, (double)at(p, r, c), sum);
        }
    }
}

static void check_integers(const struct st_blocks *row, enum st_dtype dtype) {
    const struct st_dtype_traits *traits = st_dtype_traits(dtype);
    const int signs[] = {0, 1, -1};
    for (size_t i = 0; i < 48; i++) {
        struct product p = make(dtype, i % 3 ? 5 : 21, K, 1 + ts_random_below(10));
        unsigned char *w = p.w.data;
        bool extreme = i % 2;
        if (extreme) memset(w, i % 4 == 1 ? 0xff : i % 8 == 3 ? 0x88 : 0x00, p.w.bytes);
        if (extreme && dtype == ST_DTYPE_Q8_0) memset(w, i % 4 == 1 ? 0x80 : 0x7f, p.w.bytes);
        for (size_t b = 0; b < p.w.bytes; b += traits->block_bytes) set_whole_scales(dtype, w + b);
        set_whole_inputs(&p, row, &halves[i % N_OF(halves)], extreme, signs[i / 4 % N_OF(signs)]);
        multiply(&p, row);
        compare_integers(&p, row->name);
        discard(&p, row->name);
    }
}

static void integers_are_exact(void **state) {
    (void)state;
    each(check_integers);
}

// Powers of two of MXFP4's blocks, subnormal ones too, with inputs that are as far on the other
// side of 1. Of the last three, 12 times a scale is not finite.
static void check_exponents(const struct st_blocks *row, enum st_dtype dtype) {
    size_t block = st_dtype_traits(dtype)->block_bytes;
    for (int e = 0; e <= 252 && dtype == ST_DTYPE_MXFP4; e++) {
        struct product p = make(dtype, 3, K, 1 + (size_t)e % 3);
        const struct halves inputs = {1, 63, ldexpf(1.0f, e < 220 ? 100 - e : -120)};
        for (size_t b = 0; b < p.w.bytes; b += block) ((unsigned char *)p.w.data)[b] = (uint8_t)e;
        set_whole_inputs(&p, row, &inputs, false, 0);
        multiply(&p, row);
        compare_integers(&p, row->name);
        discard(&p, row->name);
    }
}

static void any_exponent_is_exact(void **state) {
    (void)state;
    each(check_exponents);
}

// ---- Floats

// The product of floats with what the inputs were quantized to, and a bound of its roundings: 2^-20
// of what would be the sum if nothing cancelled, with codes that are up to 128 more.
static void compare_floats(const struct product *p, const char *who) {
    float *w = malloc(p->k * sizeof *w + 1);
    assert_non_null(w);
    for (size_t r = 0; r < p->n_rows; r++) {
        dequantize_row(p, r, w);
        for (size_t c = 0; c < p->n_columns; c++) {
            double sum = 0.0, largest = 0.0, inputs = 0.0;
            for (size_t i = 0; i < p->k; i++) {
                double value = input_at(p, c, i);
                sum += (double)w[i] * value;
                inputs += fabs(value);
                largest = fmax(largest, fabs((double)w[i]));
            }
            double bound = 3.0 * largest * inputs * 0x1p-20, got = (double)at(p, r, c);
            if (!(fabs(got - sum) <= bound))
                fail_msg("%s, %s: row %zu of %zu, column %zu is %.9g, expected %.9g +- %g", who,
                         st_dtype_traits(p->dtype)->name, r, p->k, c, got, sum, bound);
        }
    }
    free(w);
}

static void check_product(const struct st_blocks *row, enum st_dtype dtype, size_t n_rows, size_t k,
                          size_t n_columns) {
    struct product p = make(dtype, n_rows, k, n_columns);
    quantize(&p, row);
    multiply(&p, row);
    compare_floats(&p, row->name);
    discard(&p, row->name);
}

static void check_columns(const struct st_blocks *row, enum st_dtype dtype) {
    const size_t counts[] = {1, 2, 3, 4, 5, 8, 15, 16};
    for (size_t i = 0; i < N_OF(counts); i++)
        check_product(row, dtype, i % 2 ? 3 : 16, 480, counts[i]);
}

static void any_number_of_columns_is_right(void **state) {
    (void)state;
    each(check_columns);
}

static void check_shapes(const struct st_blocks *row, enum st_dtype dtype) {
    const size_t rows[] = {0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 23, 64, 512};
    const size_t lengths[] = {32, 64, 96, 224, 256, 288, 576, 896};
    for (size_t i = 0; i < N_OF(rows); i++)
        check_product(row, dtype, rows[i], lengths[i % N_OF(lengths)], 1 + ts_random_below(16));
    check_product(row, dtype, 801, 512, 1); // two streams and an odd row
    check_product(row, dtype, 231, 576, 1); // and rows that share a chunk
    check_product(row, dtype, 231, 640, 1);
    for (size_t i = 0; i < N_OF(lengths); i++)
        check_product(row, dtype, 2, lengths[i], 1 + ts_random_below(3));
}

static void any_shape_is_right(void **state) {
    (void)state;
    each(check_shapes);
}

// ---- Laws

// Not a bit of an output depends on which rows and columns are computed in the same call.
static void check_alone(const struct st_blocks *row, enum st_dtype dtype, size_t k,
                        size_t n_columns) {
    struct product p = make(dtype, 23, k, n_columns);
    quantize(&p, row);
    multiply(&p, row);
    for (size_t r = 0; r < p.n_rows; r++)
        for (size_t c = 0; c < p.n_columns; c++) {
            const struct st_blocks_chunk *x = p.chunks.data;
            float alone;
            row->fn[dtype]((unsigned char *)p.w.data + r * p.row_bytes, p.row_bytes, 1, p.k,
                           x + c * st_blocks_chunks(p.k), 1, &alone, 1);
            assert_memory_equal(&alone, (float *)p.y.data + c * p.y_col + r, sizeof alone);
        }
    discard(&p, row->name);
}

static void check_neighbours(const struct st_blocks *row, enum st_dtype dtype) {
    const size_t lengths[] = {352, 320, 384}; // of the latter, rows share a chunk
    check_alone(row, dtype, lengths[0], 3 + ts_random_below(14));
    for (size_t i = 0; i < N_OF(lengths); i++)
        for (size_t n = 1; n <= 4; n++) check_alone(row, dtype, lengths[i], n);
}

static void outputs_do_not_depend_on_their_neighbours(void **state) {
    (void)state;
    each(check_neighbours);
}

// A column that is not finite stays in its own outputs.
static void check_not_finite(const struct st_blocks *row, enum st_dtype dtype) {
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < N_OF(bad); i++) {
        struct product p = make(dtype, 3, K, 3);
        size_t c = ts_random_below(3);
        ((float *)p.x.data)[c * p.k + ts_random_below((uint32_t)p.k)] = bad[i];
        quantize(&p, row);
        multiply(&p, row);
        for (size_t r = 0; r < p.n_rows; r++)
            for (size_t j = 0; j < p.n_columns; j++)
                assert_int_equal(isfinite(at(&p, r, j)) != 0, j != c);
        discard(&p, row->name);
    }
}

static void not_finite_stays_in_its_column(void **state) {
    (void)state;
    each(check_not_finite);
}

// ---- Inputs

// The orders of blocks_arranged.h, register by register and lane by lane, of the first n elements
// again and again.
static void check_arranged(const struct st_blocks_chunk *x, size_t n_elements) {
    for (size_t at = 0; at < ST_BLOCKS_CHUNK; at++) {
        size_t j = at / 64, n = at / 32 % 2, half = at / 16 % 2, lane = at / 4 % 4, i = at % 4;
        size_t block = (32 * (2 * lane + half) + 16 * n + 4 * j + i) % n_elements;
        size_t pair = (32 * (2 * lane + n) + 16 * half + 4 * j + i) % n_elements;
        assert_int_equal(x->by_blocks[0][at], x->high[block]);
        assert_int_equal(x->by_blocks[1][at], x->low[block]);
        assert_int_equal(x->by_pairs[0][at], x->high[pair]);
        assert_int_equal(x->by_pairs[1][at], x->low[pair]);
    }
}

// The order of blocks_arranged_512.h.
static void check_arranged_512(const struct st_blocks_chunk *x, size_t n_elements) {
    for (size_t at = 0; at < ST_BLOCKS_CHUNK; at++) {
        size_t reg = at / 64, lane = at / 4 % 16, i = at % 4;
        size_t from = 32 * (lane % 8) + 16 * (reg % 2) + 8 * (reg / 2) + 4 * (lane / 8) + i;
        assert_int_equal(x->by_blocks[0][at], x->high[from % n_elements]);
        assert_int_equal(x->by_blocks[1][at], x->low[from % n_elements]);
    }
}

// Of a whole chunk and one with `left` elements.
static void check_quantized(const struct st_blocks *row, float range, size_t left) {
    const size_t n = ST_BLOCKS_CHUNK + left;
    struct kc_array x = kc_floats(n, range);
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct st_blocks_chunk got, wanted;
        memset(&got, 0xa5, sizeof got);
        memset(&wanted, 0x5a, sizeof wanted);
        st_blocks_quantize(row, x.data, n, chunk, &got);
        st_blocks_quantize(st_blocks_select(0), x.data, n, chunk, &wanted);
        assert_memory_equal(&got, &wanted, offsetof(struct st_blocks_chunk, by_blocks));
        size_t repeated = chunk == 1 && left != 96 ? left : ST_BLOCKS_CHUNK;
        if (row->arrange && row->isa & ST_CPU_AVX512)
            check_arranged_512(&got, repeated);
        else if (row->arrange)
            check_arranged(&got, repeated);
        for (size_t i = 0; i < ST_BLOCKS_CHUNK; i++) {
            size_t from = chunk * ST_BLOCKS_CHUNK + i;
            float value = from < n ? ((float *)x.data)[from] : 0.0f;
            float step = got.scale[i / ST_BLOCKS_PART];
            float q = (float)(128 * got.high[i] + got.low[i]);
            assert_true(fabsf(step * q - value) <= 0.505f * step);
            assert_true(fabsf(q) <= ST_BLOCKS_MAX_Q);
            assert_in_range(got.low[i] + 64, 0, 127);
            assert_int_equal(got.q[word_of(i)], 128 * got.high[i] + got.low[i]);
        }
    }
    kc_free(&x, row->name);
}

static void inputs_are_quantized_alike_and_to_half_a_step(void **state) {
    (void)state;
    for (const struct st_blocks *row = st_blocks_kernels; row->name; row++) {
        if ((row->isa & st_cpu_flags()) != row->isa) continue;
        // Below 2^-100 an input is 0 (quantize_float.h).
        const float ranges[] = {0.0f, 1.0f, 1e-28f, 1e30f};
        for (size_t i = 0; i < N_OF(ranges); i++)
            for (size_t left = 64; left <= 128; left += 32) check_quantized(row, ranges[i], left);
    }
}

static void part_sums_are_those_of_the_codes(void **state) {
    (void)state;
    struct kc_array x = kc_floats(ST_BLOCKS_CHUNK, 1.0f);
    struct st_blocks_chunk chunk;
    st_blocks_quantize(st_blocks_select(st_cpu_flags()), x.data, ST_BLOCKS_CHUNK, 0, &chunk);
    for (size_t half = 0; half < 2 * ST_BLOCKS_PARTS; half++) {
        int sum = 0;
        for (size_t i = 0; i < 16; i++)
            sum += 128 * chunk.high[half * 16 + i] + chunk.low[half * 16 + i];
        assert_true(chunk.half_sum[half] == chunk.scale[half / 2] * (float)sum);
    }
    kc_free(&x, "quantize");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(any_exponent_is_exact),
        cmocka_unit_test(any_number_of_columns_is_right),
        cmocka_unit_test(any_shape_is_right),
        cmocka_unit_test(outputs_do_not_depend_on_their_neighbours),
        cmocka_unit_test(not_finite_stays_in_its_column),
        cmocka_unit_test(inputs_are_quantized_alike_and_to_half_a_step),
        cmocka_unit_test(part_sums_are_those_of_the_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
