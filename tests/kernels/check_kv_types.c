// SPDX-License-Identifier: Apache-2.0
// Every type of the KV cache in every row of attention that this CPU has: what is stored and loaded
// against the scalar row, bit for bit; attention over it against the scalar row and against the
// same rows in floats.
#include "kernels/attention.h"

#include "base/cpu.h"
#include "base/half.h"
#include "kernel_check.h"

#include <float.h>
#include <math.h>

static const size_t dims[] = {1,  3,  8,  15, 16, 17,  20,  31,  32,  33,
                              63, 64, 65, 80, 96, 100, 113, 128, 251, 256};
enum { N_DIMS = sizeof dims / sizeof *dims };

// Of attention from what it is in floats. Codes are multiplied with queries of 16 bits.
static float tolerance(int type) {
    return type == ST_KV_Q8 ? 1e-4f : 1e-5f;
}

static bool has(const struct st_attention *row) {
    return (row->isa & st_cpu_flags()) == row->isa;
}

static const struct st_kv_kernel *scalar(int type) {
    return &st_attention_select(0)->kv[type];
}

// n_rows stored rows, of values that differ in size from block to block.
static struct kc_array stored(int type, const float *x, size_t n_rows, size_t n) {
    size_t bytes = st_kv_row_bytes((enum st_kv_type)type, n);
    struct kc_array rows = kc_make(n_rows * bytes, 4);
    for (size_t r = 0; r < n_rows; r++)
        scalar(type)->store(x + r * n, n, (char *)rows.data + r * bytes);
    return rows;
}

static struct kc_array random_values(size_t n, size_t head_dim) {
    struct kc_array x = kc_floats(n, 1.0f);
    for (size_t i = 0; i < n; i++)
        ((float *)x.data)[i] =
            ldexpf(ts_random_float(-1.0f, 1.0f), (int)(i % head_dim / 32 % 3) - 2);
    return x;
}

static void check_rows(const struct st_attention *row, int type, size_t n_rows, size_t n) {
    size_t bytes = st_kv_row_bytes((enum st_kv_type)type, n);
    struct kc_array x = random_values(n_rows * n, n), wanted = stored(type, x.data, n_rows, n);
    struct kc_array got = kc_make(n_rows * bytes, 4), floats = kc_floats(n_rows * n, 1.0f);
    float *loaded = calloc(n_rows * n, sizeof *loaded);
    for (size_t r = 0; r < n_rows; r++)
        row->kv[type].store((const float *)x.data + r * n, n, (char *)got.data + r * bytes);
    assert_memory_equal(got.data, wanted.data, n_rows * bytes);
    row->kv[type].load(got.data, n_rows, n, floats.data);
    scalar(type)->load(got.data, n_rows, n, loaded);
    assert_memory_equal(floats.data, loaded, n_rows * n * sizeof *loaded);
    free(loaded);
    struct kc_array *all[] = {&x, &wanted, &got, &floats};
    for (size_t i = 0; i < 4; i++) kc_free(all[i], row->name);
}

static void rows_equal_the_scalar_ones(void **state) {
    (void)state;
    const size_t counts[] = {1, 2, 7, 64};
    for (const struct st_attention *const *row = st_attentions; *row; row++)
        for (size_t i = 0; has(*row) && i < N_DIMS * 4 * ST_N_KV_TYPES; i++)
            check_rows(*row, (int)(i % ST_N_KV_TYPES), counts[i / ST_N_KV_TYPES % 4],
                       dims[i / ST_N_KV_TYPES / 4]);
}

static void divide(const struct st_attended *all, size_t n_queries, size_t n, float *out) {
    for (size_t i = 0; i < n_queries; i++) st_attended_end(&all[i], n, out + i * n);
}

// Scores that were begun with those of other rows, as a key split in two has them.
static void check_begun(const struct st_attention *row, int type, const struct kc_array *q,
                        const struct st_kv_rows *rows, size_t n_queries, size_t n_keys, size_t n) {
    struct kc_array other = random_values(n_keys * n, n),
                    scores = kc_floats(n_queries * n_keys, 1.0f);
    struct kc_array out = kc_floats(n_queries * n, 1.0f);
    float *wanted = calloc(n_queries * n, sizeof *wanted);
    struct st_attended all[ST_KV_QUERIES];
    st_attention_select(0)->score(q->data, n_queries, other.data, n_keys, n, scores.data);
    scalar(type)->decode(q->data, n_queries, rows, n_keys, n, 0.3f, 0.0f, true, scores.data, all,
                         wanted);
    divide(all, n_queries, n, wanted);
    row->score(q->data, n_queries, other.data, n_keys, n, scores.data);
    row->kv[type].decode(q->data, n_queries, rows, n_keys, n, 0.3f, 0.0f, true, scores.data, all,
                         out.data);
    divide(all, n_queries, n, out.data);
    kc_near(out.data, wanted, n_queries * n, tolerance(type), row->name);
    free(wanted);
    struct kc_array *arrays[] = {&other, &scores, &out};
    for (size_t i = 0; i < 3; i++) kc_free(arrays[i], row->name);
}

// Rows in stretches, bit for bit as one after another, from any row on.
static void check_stretches(const struct st_attention *row, int type, size_t n_queries,
                            size_t n_keys, size_t n) {
    enum { STRETCH = ST_KV_TILE };
    size_t bytes = st_kv_row_bytes((enum st_kv_type)type, n);
    size_t first = ts_random_below(2 * STRETCH), n_rows = first + n_keys;
    size_t apart = STRETCH * bytes + 4 * ts_random_below(20), n_stretches = n_rows / STRETCH + 1;
    struct kc_array q = kc_floats(n_queries * n, 1.0f), x = random_values(n_rows * n, n);
    struct kc_array all = stored(type, x.data, n_rows, n), cut = kc_make(n_stretches * apart, 4);
    struct kc_array out = kc_floats(n_queries * n, 1.0f), wanted = kc_floats(n_queries * n, 1.0f);
    float *scores = calloc(n_queries * n_keys, sizeof *scores);
    struct st_attended got[ST_KV_QUERIES], expected[ST_KV_QUERIES];
    for (size_t i = 0; i < n_rows; i++)
        memcpy((char *)cut.data + i / STRETCH * apart + i % STRETCH * bytes,
               (char *)all.data + i * bytes, bytes);
    const struct st_kv_rows in_one = {all.data, all.data, first, n_rows, 0, NULL};
    const struct st_kv_rows in_parts = {cut.data, cut.data, first, STRETCH, apart, cut.data};
    row->kv[type].decode(q.data, n_queries, &in_one, n_keys, n, 0.3f, 0.0f, false, scores, expected,
                         wanted.data);
    row->kv[type].decode(q.data, n_queries, &in_parts, n_keys, n, 0.3f, 0.0f, false, scores, got,
                         out.data);
    assert_memory_equal(got, expected, n_queries * sizeof *got);
    assert_memory_equal(out.data, wanted.data, n_queries * n * sizeof(float));
    free(scores);
    struct kc_array *arrays[] = {&q, &x, &all, &cut, &out, &wanted};
    for (size_t i = 0; i < 6; i++) kc_free(arrays[i], row->name);
}

static void stretches_do_not_matter(void **state) {
    (void)state;
    const size_t keys[] = {1, 15, 127, 128, 129, 300}, some_dims[] = {20, 64, 80, 128};
    for (const struct st_attention *const *row = st_attentions; *row; row++)
        for (size_t i = 0; has(*row) && i < 6 * 4; i++)
            for (int type = 0; type < ST_N_KV_TYPES; type++)
                check_stretches(*row, type, 1 + i % ST_KV_QUERIES, keys[i % 6], some_dims[i / 6]);
}

static void check_decode(const struct st_attention *row, int type, size_t n_queries, size_t n_keys,
                         size_t n, float softcap) {
    size_t n_row = n_keys * n, n_out = n_queries * n;
    struct st_attended got[ST_KV_QUERIES], all[ST_KV_QUERIES];
    struct kc_array q = kc_floats(n_out, 1.0f), x = random_values(n_row, n),
                    y = random_values(n_row, n);
    struct kc_array keys = stored(type, x.data, n_keys, n),
                    scores = kc_floats(n_queries * n_keys, 1.0f);
    struct kc_array values = stored(type, y.data, n_keys, n), out = kc_floats(n_out, 1.0f);
    float *wanted = calloc(n_out, sizeof *wanted);
    const struct st_kv_rows rows = {keys.data, values.data, 0, n_keys, 0, NULL};
    const struct st_kv_rows floats = {x.data, y.data, 0, n_keys, 0, NULL};
    row->kv[type].decode(q.data, n_queries, &rows, n_keys, n, 0.3f, softcap, false, scores.data,
                         got, out.data);
    scalar(type)->decode(q.data, n_queries, &rows, n_keys, n, 0.3f, softcap, false, scores.data,
                         all, wanted);
    for (size_t i = 0; i < n_queries; i++) {
        kc_near(&got[i].maximum, &all[i].maximum, 1, tolerance(type), row->name);
        kc_near(&got[i].sum, &all[i].sum, 1, tolerance(type) * all[i].sum, row->name);
    }
    divide(got, n_queries, n, out.data);
    divide(all, n_queries, n, wanted);
    kc_near(out.data, wanted, n_out, tolerance(type), row->name);
    check_begun(row, type, &q, &rows, n_queries, n_keys, n);
    scalar(type)->load(keys.data, n_keys, n, x.data);
    scalar(type)->load(values.data, n_keys, n, y.data);
    for (size_t i = 0; i < n_queries; i++)
        row->kv[type].decode((const float *)q.data + i * n, 1, &rows, n_keys, n, 0.3f, softcap,
                             false, scores.data, &all[i], wanted + i * n);
    divide(all, n_queries, n, wanted);
    assert_memory_equal(out.data, wanted, n_out * sizeof *wanted);
    for (size_t i = 0; i < n_queries; i++)
        row->kv[ST_KV_F32].decode((const float *)q.data + i * n, 1, &floats, n_keys, n, 0.3f,
                                  softcap, false, scores.data, &all[i], wanted + i * n);
    divide(all, n_queries, n, wanted);
    if (type == ST_KV_Q8)
        kc_near(out.data, wanted, n_out, tolerance(type), row->name);
    else
        assert_memory_equal(out.data, wanted, n_out * sizeof *wanted);
    free(wanted);
    struct kc_array *arrays[] = {&q, &x, &y, &keys, &values, &scores, &out};
    for (size_t i = 0; i < 7; i++) kc_free(arrays[i], row->name);
}

// The scalar one; bit for bit, itself query by query; and itself over what the rows hold in floats,
// bit for bit but for codes, which are multiplied in whole numbers.
static void decoding_equals_that_over_floats(void **state) {
    (void)state;
    const size_t keys[] = {1, 2, 3, 4, 5, 7, 16, 17, 100, 128, 300};
    enum { N_KEYS = sizeof keys / sizeof *keys };
    for (const struct st_attention *const *row = st_attentions; *row; row++)
        for (size_t i = 0; has(*row) && i < N_KEYS * N_DIMS; i++)
            for (int type = 0; type < ST_N_KV_TYPES; type++)
                check_decode(*row, type, 1 + i % ST_KV_QUERIES, keys[i % N_KEYS], dims[i / N_KEYS],
                             (i + (size_t)type) % 2 ? 10.0f : 0.0f);
}

static void halves_are_rounded_to_nearest_even(void **state) {
    (void)state;
    for (const struct st_attention *const *row = st_attentions; *row; row++) {
        if (!has(*row)) continue;
        float x[1000];
        uint16_t got[1000];
        for (int i = 0; i < 1000; i++)
            x[i] = ldexpf(ts_random_float(-1.0f, 1.0f), (int)ts_random_below(44) - 26);
        x[0] = 65519.0f; // the largest that does not round to infinity
        x[1] = 65520.0f;
        x[2] = INFINITY;
        x[3] = 0x1.002p0f; // half way: to even
        x[4] = 0x1.006p0f;
        (*row)->kv[ST_KV_F16].store(x, 1000, got);
        for (int i = 0; i < 1000; i++) assert_int_equal(got[i], st_f16_from_f32(x[i]));
        assert_int_equal(got[0], 0x7bff);
        assert_int_equal(got[1], 0x7c00);
        assert_int_equal(got[3], 0x3c00);
        assert_int_equal(got[4], 0x3c02);
    }
}

// No value is further from what was stored than half a step, and a step is a 127th of the largest
// of its block, which BF16 rounds up by less than 1 / 128.
static void codes_are_near_their_values(void **state) {
    (void)state;
    enum { N = 113 };
    for (const struct st_attention *const *row = st_attentions; *row; row++)
        for (int i = 0; has(*row) && i < 200; i++) {
            float x[N], got[N];
            char codes[N + 8];
            int size = (int)ts_random_below(60) - 30;
            for (int d = 0; d < N; d++) x[d] = ldexpf(ts_random_float(-1.0f, 1.0f), size);
            if (i % 3 == 0) x[ts_random_below(N)] *= 1000.0f;
            (*row)->kv[ST_KV_Q8].store(x, N, codes);
            (*row)->kv[ST_KV_Q8].load(codes, 1, N, got);
            for (int b = 0; b < N; b += ST_KV_BLOCK) {
                float largest = 0.0f;
                for (int d = b; d < N && d < b + ST_KV_BLOCK; d++)
                    largest = fmaxf(largest, fabsf(x[d]));
                for (int d = b; d < N && d < b + ST_KV_BLOCK; d++)
                    assert_true(fabsf(x[d] - got[d]) <= largest / 127.0f * 0.505f);
            }
        }
}

static void codes_keep_zeros_and_what_is_no_number(void **state) {
    (void)state;
    enum { N = 96 };
    for (const struct st_attention *const *row = st_attentions; *row; row++) {
        if (!has(*row)) continue;
        float x[N] = {0}, got[N];
        char codes[N + 6];
        for (int d = 32; d < 64; d++) x[d] = d % 2 ? 1e-38f : -1e-45f; // too small for a scale
        (*row)->kv[ST_KV_Q8].store(x, N, codes);
        (*row)->kv[ST_KV_Q8].load(codes, 1, N, got);
        for (int d = 0; d < N; d++) assert_true(got[d] == 0.0f);
        x[40] = INFINITY;
        x[70] = -NAN;
        x[95] = 1.0f;
        (*row)->kv[ST_KV_Q8].store(x, N, codes);
        (*row)->kv[ST_KV_Q8].load(codes, 1, N, got);
        for (int d = 0; d < N; d++) assert_true(d < 32 ? got[d] == 0.0f : isnan(got[d]));
        x[40] = FLT_MAX;
        x[70] = 0.0f;
        (*row)->kv[ST_KV_Q8].store(x, N, codes);
        (*row)->kv[ST_KV_Q8].load(codes, 1, N, got);
        assert_true(got[40] > 0.99f * FLT_MAX / 1.01f && isfinite(got[95]) && got[41] == 0.0f);
    }
}

// Mixing twice multiplies by the length, and products of mixed values are so many times the others.
static void mixing_keeps_products(void **state) {
    (void)state;
    enum { N = 256 };
    for (size_t i = 0; i < N_DIMS; i++) {
        size_t n = dims[i], length = st_kv_mix_length(n);
        float x[N], y[N], mixed[N], twice[N];
        double product = 0, wanted = 0;
        assert_true(n % length == 0 && n / length % 2 == 1 && (length & (length - 1)) == 0);
        for (size_t d = 0; d < n; d++) {
            mixed[d] = x[d] = ts_random_float(-1.0f, 1.0f) * (d % 32 == 5 ? 100.0f : 1.0f);
            y[d] = ts_random_float(-1.0f, 1.0f);
            wanted += (double)length * (double)x[d] * (double)y[d];
        }
        st_kv_mix(mixed, n);
        memcpy(twice, mixed, sizeof twice);
        st_kv_mix(twice, n);
        for (size_t d = 0; d < n; d++)
            assert_true(fabsf(twice[d] - (float)length * x[d]) <= 1e-4f * (float)length * 100.0f);
        st_kv_mix(y, n);
        for (size_t d = 0; d < n; d++) product += (double)mixed[d] * (double)y[d];
        assert_true(fabs(product - wanted) <= 1e-4 * (double)length * 100.0);
    }
    float one[8] = {0, 0, 1, 0, 0, 0, 0, 0};
    const float wanted[8] = {1, 1, -1, -1, 1, 1, -1, -1};
    st_kv_mix(one, 8);
    assert_memory_equal(one, wanted, sizeof one);
}

static void names_and_sizes_are_those_of_the_table(void **state) {
    (void)state;
    const char *at = st_kv_names();
    for (int type = 0; type < ST_N_KV_TYPES; type++) {
        size_t n = strcspn(at, "|");
        assert_int_equal(strlen(st_kv_traits[type].name), n);
        assert_memory_equal(st_kv_traits[type].name, at, n);
        assert_int_equal(at[n], type + 1 < ST_N_KV_TYPES ? '|' : 0);
        at += n + 1;
    }
    assert_int_equal(st_kv_row_bytes(ST_KV_F32, 80), 320);
    assert_int_equal(st_kv_row_bytes(ST_KV_F16, 80), 160);
    assert_int_equal(st_kv_row_bytes(ST_KV_Q8, 80), 86);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_equal_the_scalar_ones),
        cmocka_unit_test(stretches_do_not_matter),
        cmocka_unit_test(decoding_equals_that_over_floats),
        cmocka_unit_test(halves_are_rounded_to_nearest_even),
        cmocka_unit_test(codes_are_near_their_values),
        cmocka_unit_test(codes_keep_zeros_and_what_is_no_number),
        cmocka_unit_test(mixing_keeps_products),
        cmocka_unit_test(names_and_sizes_are_those_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
