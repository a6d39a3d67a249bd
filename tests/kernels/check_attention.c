// SPDX-License-Identifier: Apache-2.0
// Every row of attention that this CPU has, against a plain softmax in double precision.
#include "kernels/attention.h"

#include "base/cpu.h"
#include "base/half.h"
#include "kernel_check.h"

enum { WIDTH = 48, MAX_WIDTH = 64, KEYS = 150, TILE = 64 };

static bool has(const struct st_attention *row) {
    return (row->isa & st_cpu_flags()) == row->isa;
}

static double capped(double score, double scale, double softcap) {
    return softcap == 0.0 ? score * scale : softcap * tanh(score * scale / softcap);
}

// Random scores in tiles, one value per key, and random windows: sum over keys of probability *
// value.
static void check_online(const struct st_attention *row, float softcap) {
    float scores[KEYS * WIDTH], values[KEYS], tile[TILE * WIDTH];
    float maximum[WIDTH], sum[WIDTH], factor[WIDTH], out[WIDTH], sinks[WIDTH];
    int32_t low[WIDTH], high[WIDTH];
    for (int i = 0; i < KEYS * WIDTH; i++) scores[i] = ts_random_float(-30.0f, 30.0f);
    for (int i = 0; i < KEYS; i++) values[i] = ts_random_float(-1.0f, 1.0f);
    for (int l = 0; l < WIDTH; l++) {
        low[l] = (int32_t)ts_random_below(KEYS - 1);
        high[l] = low[l] + 1 + (int32_t)ts_random_below((size_t)(KEYS - low[l]));
        bool sink = l % 3 == 0; // has seen a score without a value
        maximum[l] = sinks[l] = sink ? ts_random_float(-20.0f, 20.0f) : -INFINITY;
        sum[l] = sink ? 1.0f : 0.0f;
        out[l] = 0.0f;
    }
    for (int key0 = 0; key0 < KEYS; key0 += TILE) {
        int n = KEYS - key0 < TILE ? KEYS - key0 : TILE;
        memcpy(tile, scores + key0 * WIDTH, (size_t)(n * WIDTH) * sizeof(float));
        row->softmax_tile(tile, (size_t)n, WIDTH, key0, low, high, 0.5f, softcap, maximum, sum,
                          factor);
        row->rescale(out, 1, WIDTH, factor);
        for (int j = 0; j < n; j++)
            for (int l = 0; l < WIDTH; l++) out[l] += tile[j * WIDTH + l] * values[key0 + j];
    }
    for (int l = 0; l < WIDTH; l++) {
        double max = (double)sinks[l], total, wanted = 0.0;
        for (int j = low[l]; j < high[l]; j++)
            max = fmax(max, capped((double)scores[j * WIDTH + l], 0.5, (double)softcap));
        total = exp((double)sinks[l] - max);
        for (int j = low[l]; j < high[l]; j++) {
            double p = exp(capped((double)scores[j * WIDTH + l], 0.5, (double)softcap) - max);
            total += p;
            wanted += p * (double)values[j];
        }
        float got = out[l] / sum[l], expected = (float)(wanted / total);
        kc_near(&got, &expected, 1, 5e-6f, row->name);
    }
}

static void online_softmax_equals_the_plain_one(void **state) {
    (void)state;
    for (const struct st_attention *const *row = st_attentions; *row; row++)
        for (int i = 0; has(*row) && i < 20; i++) check_online(*row, i % 2 ? 20.0f : 0.0f);
}

// A lane that has met no key yet changes nothing and is not poisoned for the keys to come.
static void lanes_without_keys_stay_empty(void **state) {
    (void)state;
    for (const struct st_attention *const *row = st_attentions; *row; row++) {
        if (!has(*row)) continue;
        float scores[2 * 16] = {0}, maximum[16], sum[16] = {0}, factor[16];
        int32_t low[16], high[16];
        for (int l = 0; l < 16; l++) {
            maximum[l] = -INFINITY;
            low[l] = l < 8 ? 0 : 100;
            high[l] = low[l] + 1;
        }
        (*row)->softmax_tile(scores, 2, 16, 0, low, high, 1.0f, 0.0f, maximum, sum, factor);
        for (int l = 0; l < 16; l++) {
            assert_true(factor[l] == 1.0f);
            assert_true(sum[l] == (l < 8 ? 1.0f : 0.0f));
            assert_true(scores[l] == (l < 8 ? 1.0f : 0.0f) && scores[16 + l] == 0.0f);
            assert_true(l < 8 ? maximum[l] == 0.0f : maximum[l] == -INFINITY);
        }
    }
}

// One tile, every row against the scalar one: arrays of just their size, off by a float, windows up
// to the ends of the integers, scores up to infinity, and nothing but 0 for a masked key.
static void check_tile(const struct st_attention *row, size_t n_keys, size_t width) {
    const int32_t ends[] = {INT32_MIN, -1, 0, 1, 1000, 1007, 1016, 1040, INT32_MAX};
    enum { FIRST = 1000 };
    struct kc_array got[4], wanted[4]; // scores, maximum, sum, factor
    int32_t low[MAX_WIDTH], high[MAX_WIDTH];
    for (size_t l = 0; l < width; l++) {
        low[l] = ends[ts_random_below(9)];
        high[l] = ends[ts_random_below(9)];
    }
    for (size_t i = 0; i < 4; i++) {
        size_t n = i ? width : n_keys * width;
        got[i] = kc_floats(n, 40.0f);
        wanted[i] = kc_floats(n, 40.0f);
        memcpy(wanted[i].data, got[i].data, n * sizeof(float));
    }
    for (size_t l = 0; l < width; l += 3) { // a third begins empty
        ((float *)got[1].data)[l] = ((float *)wanted[1].data)[l] = -INFINITY;
        ((float *)got[2].data)[l] = ((float *)wanted[2].data)[l] = 0.0f;
    }
    if (n_keys) ((float *)got[0].data)[0] = ((float *)wanted[0].data)[0] = -INFINITY;
    row->softmax_tile(got[0].data, n_keys, width, FIRST, low, high, 0.5f, 0.0f, got[1].data,
                      got[2].data, got[3].data);
    st_attention_select(0)->softmax_tile(wanted[0].data, n_keys, width, FIRST, low, high, 0.5f,
                                         0.0f, wanted[1].data, wanted[2].data, wanted[3].data);
    for (size_t i = 0; i < n_keys * width; i++) {
        int64_t key = FIRST + (int64_t)(i / width);
        bool masked = key < low[i % width] || key >= high[i % width];
        if (masked) assert_true(((float *)got[0].data)[i] == 0.0f);
    }
    for (size_t i = 0; i < 4; i++) {
        kc_near(got[i].data, wanted[i].data, i ? width : n_keys * width, 3e-5f, row->name);
        kc_free(&got[i], row->name);
        kc_free(&wanted[i], row->name);
    }
}

static void tiles_equal_the_scalar_ones(void **state) {
    (void)state;
    const size_t keys[] = {0, 1, 2, 7, 16, 37};
    for (const struct st_attention *const *row = st_attentions; *row; row++)
        for (size_t i = 0; has(*row) && i < 6 * 4 * 5; i++)
            check_tile(*row, keys[i % 6], (1 + i / 6 % 4) * 16);
}

static void rescaling_equals_the_scalar_one(void **state) {
    (void)state;
    const size_t counts[] = {0, 1, 3, 128};
    for (const struct st_attention *const *row = st_attentions; *row; row++)
        for (size_t i = 0; has(*row) && i < 4 * 4; i++) {
            size_t width = (1 + i / 4) * 16, n = counts[i % 4] * width;
            struct kc_array got = kc_floats(n, 2.0f), wanted = kc_floats(n, 2.0f);
            struct kc_array factor = kc_floats(width, 1.0f);
            memcpy(wanted.data, got.data, n * sizeof(float));
            (*row)->rescale(got.data, counts[i % 4], width, factor.data);
            st_attention_select(0)->rescale(wanted.data, counts[i % 4], width, factor.data);
            kc_near(got.data, wanted.data, n, 0.0f, (*row)->name);
            kc_free(&got, (*row)->name);
            kc_free(&wanted, (*row)->name);
            kc_free(&factor, (*row)->name);
        }
}

// Keys in spans of any length, with and without a sink, against all of them at once.
static void joined_spans_equal_the_whole(void **state) {
    (void)state;
    enum { N = 150, DIM = 33 };
    for (const struct st_attention *const *row = st_attentions; *row; row++)
        for (int i = 0; has(*row) && i < 20; i++) {
            float q[DIM], keys[N * DIM], values[N * DIM], scores[N], out[DIM], part[DIM];
            float sink = ts_random_float(-8.0f, 8.0f);
            struct st_attended all, span;
            for (int d = 0; d < DIM; d++) q[d] = ts_random_float(-1.0f, 1.0f);
            for (int d = 0; d < N * DIM; d++) {
                keys[d] = ts_random_float(-2.0f, 2.0f);
                values[d] = ts_random_float(-1.0f, 1.0f);
            }
            st_attended_begin(i % 2 ? &sink : NULL, DIM, &all, out);
            for (size_t from = 0, n; from < N; from += n) {
                n = 1 + ts_random_below(N - from);
                const struct st_kv_rows rows = {keys, values, from, N, 0, NULL};
                (*row)->kv[ST_KV_F32].decode(q, 1, &rows, n, DIM, 1.0f, 0.0f, false, scores, &span,
                                             part);
                st_attended_join(&span, part, DIM, &all, out);
            }
            st_attended_end(&all, DIM, out);
            double wanted[DIM] = {0}, total = i % 2 ? exp((double)sink) : 0.0;
            for (int j = 0; j < N; j++) {
                double score = 0.0;
                for (int d = 0; d < DIM; d++) score += (double)q[d] * (double)keys[j * DIM + d];
                total += exp(score);
                for (int d = 0; d < DIM; d++) wanted[d] += exp(score) * (double)values[j * DIM + d];
            }
            for (int d = 0; d < DIM; d++) {
                float expected = (float)(wanted[d] / total);
                kc_near(&out[d], &expected, 1, 5e-6f, (*row)->name);
            }
        }
}

// A NaN among the keys is not hidden, and a damaged value spoils its own element alone.
static void decoding_lets_nan_through(void **state) {
    (void)state;
    for (const struct st_attention *const *row = st_attentions; *row; row++) {
        if (!has(*row)) continue;
        float q[33], keys[6 * 33], values[6 * 33], scores[6], out[33];
        const struct st_kv_rows rows = {keys, values, 0, 6, 0, NULL};
        struct st_attended attended;
        for (int i = 0; i < 33; i++) q[i] = 0.1f;
        for (int i = 0; i < 6 * 33; i++) keys[i] = values[i] = ts_random_float(-1.0f, 1.0f);
        values[2 * 33 + 5] = NAN;
        (*row)->kv[ST_KV_F32].decode(q, 1, &rows, 6, 33, 1.0f, 0.0f, false, scores, &attended, out);
        for (int i = 0; i < 33; i++) assert_true(i == 5 ? isnan(out[i]) : isfinite(out[i]));
        keys[4 * 33 + 32] = NAN;
        (*row)->kv[ST_KV_F32].decode(q, 1, &rows, 6, 33, 1.0f, 0.0f, false, scores, &attended, out);
        for (int i = 0; i < 33; i++) assert_true(isnan(out[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(online_softmax_equals_the_plain_one),
        cmocka_unit_test(lanes_without_keys_stay_empty),
        cmocka_unit_test(tiles_equal_the_scalar_ones),
        cmocka_unit_test(rescaling_equals_the_scalar_one),
        cmocka_unit_test(joined_spans_equal_the_whole),
        cmocka_unit_test(decoding_lets_nan_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
