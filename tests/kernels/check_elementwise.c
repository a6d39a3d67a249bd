// SPDX-License-Identifier: Apache-2.0
// Every row of elementwise that this CPU has against the scalar one, at all lengths around a
// vector's.
#include "kernels/elementwise.h"
#include "kernels/int8.h"

#include "base/cpu.h"
#include "kernel_check.h"

static const size_t lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 127, 1000};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

static struct kc_array a, b, got, wanted;

// Fresh operands of length n; got and wanted begin with the same values.
static void begin(size_t n, float range) {
    a = kc_floats(n, range);
    b = kc_floats(n, range);
    got = kc_floats(n, range);
    wanted = kc_floats(n, range);
    memcpy(wanted.data, got.data, n * sizeof(float));
}

static void end(size_t n, float bound, const char *who) {
    kc_near(got.data, wanted.data, n, bound, who);
    kc_free(&a, who);
    kc_free(&b, who);
    kc_free(&got, who);
    kc_free(&wanted, who);
}

static const struct st_elementwise *scalar(void) {
    return st_elementwise_select(0);
}

typedef void each_fn(const struct st_elementwise *row, size_t n);

static void for_each(each_fn *fn) {
    for (const struct st_elementwise *const *row = st_elementwises; *row; row++)
        for (size_t i = 0; i < N_LENGTHS; i++)
            if (((*row)->isa & st_cpu_flags()) == (*row)->isa) fn(*row, lengths[i]);
}

static void norms(const struct st_elementwise *row, size_t n) {
    begin(n, 3.0f);
    row->rmsnorm(a.data, b.data, 1e-5f, n, got.data);
    scalar()->rmsnorm(a.data, b.data, 1e-5f, n, wanted.data);
    end(n, 3e-6f, row->name);
    for (int with = 0; with < 4; with++) {
        begin(n, 3.0f);
        const float *weight = with & 1 ? b.data : NULL, *bias = with & 2 ? b.data : NULL;
        row->layernorm(a.data, weight, bias, 1e-5f, n, got.data);
        scalar()->layernorm(a.data, weight, bias, 1e-5f, n, wanted.data);
        end(n, 1e-5f, row->name);
    }
    begin(n, 3.0f); // in place
    memcpy(got.data, a.data, n * sizeof(float));
    scalar()->rmsnorm(a.data, b.data, 1e-5f, n, wanted.data);
    row->rmsnorm(got.data, b.data, 1e-5f, n, got.data);
    end(n, 3e-6f, row->name);
}

// Bit for bit, halves rounded to even, everything out of range counted.
static void integers(const struct st_elementwise *row, size_t n) {
    for (int zero = 0; zero <= 128; zero += 128) {
        begin(n, 140.0f);
        float *x = a.data;
        const float edges[] = {127.0f, -127.0f, 127.25f, 0.5f, 1.5f, -2.5f, 1e30f, -INFINITY};
        for (size_t i = 0; i < n; i += 3) x[i] = edges[i / 3 % 8];
        struct kc_array q = kc_make(n, 1), r = kc_make(n, 3);
        size_t clipped = row->quantize(x, n, 1.0f, (uint8_t)zero, q.data), expected = 0;
        scalar()->quantize(x, n, 1.0f, (uint8_t)zero, r.data);
        for (size_t i = 0; i < n; i++) {
            float rounded = nearbyintf(fminf(fmaxf(x[i], -127.0f), 127.0f));
            assert_int_equal(((uint8_t *)q.data)[i], (uint8_t)((int)rounded + zero));
            expected += fabsf(x[i]) > 127.0f;
        }
        assert_int_equal(clipped, expected);
        assert_memory_equal(q.data, r.data, n);
        struct kc_array rest = kc_make(n, 1), wanted_rest = kc_make(n, 3);
        assert_int_equal(
            row->quantize_two(x, n, 0.9f, (uint8_t)zero, q.data, rest.data),
            scalar()->quantize_two(x, n, 0.9f, (uint8_t)zero, r.data, wanted_rest.data));
        assert_memory_equal(q.data, r.data, n);
        assert_memory_equal(rest.data, wanted_rest.data, n);
        kc_free(&rest, row->name);
        kc_free(&wanted_rest, row->name);
        kc_free(&q, row->name);
        kc_free(&r, row->name);
        end(n, 0.0f, row->name);
    }
}

// Sums of int32, and of as few products as floats hold, less what stands for zero; as floats
// together. All are arrays of n.
struct sums {
    struct kc_array first, second, rows, few[2], joint;
};

static struct sums make_sums(size_t n, int32_t zero) {
    struct sums s = {.first = kc_make(4 * n, 4),
                     .second = kc_make(4 * n, 8),
                     .rows = kc_make(4 * n, 0),
                     .few = {kc_make(4 * n, 4), kc_make(4 * n, 8)},
                     .joint = kc_make(4 * n, 8)};
    int32_t *first = s.first.data, *second = s.second.data, *rows = s.rows.data;
    ts_random_bytes(first, s.first.bytes);
    ts_random_bytes(second, s.second.bytes);
    ts_random_bytes(rows, s.rows.bytes);
    for (size_t i = 0; i < n; i++) {
        first[i] >>= 2;
        second[i] >>= 2;
        rows[i] >>= 10;
        ((int32_t *)s.few[0].data)[i] = (first[i] >> 6) + zero * rows[i];
        ((int32_t *)s.few[1].data)[i] = (second[i] >> 6) + zero * rows[i];
        ((float *)s.joint.data)[i] = 254.0f * (float)first[i];
    }
    return s;
}

static void free_sums(struct sums *s, const char *name) {
    struct kc_array *all[] = {&s->first, &s->second, &s->rows, &s->few[0], &s->few[1], &s->joint};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kc_free(all[i], name);
}

static void dequantize(const struct st_elementwise *row, const struct sums *s, int form,
                       int32_t zero, float own, const float *bias, size_t n, float *y) {
    const int32_t *first = s->first.data, *second = s->second.data, *rows = s->rows.data;
    if (form == 0)
        row->dequantize(first, rows, zero, own, a.data, bias, n, y);
    else if (form == 1)
        row->dequantize_two(first, second, rows, zero, ST_INT8_MAX_K, own, a.data, bias, n, y);
    else if (form == 2)
        row->dequantize_two(s->few[0].data, s->few[1].data, rows, zero, ST_FLOAT_PRODUCTS, own,
                            a.data, bias, n, y);
    else
        row->dequantize_joint(s->joint.data, own, a.data, bias, n, y);
}

// Bit for bit.
static void whole_sums(const struct st_elementwise *row, size_t n) {
    for (int32_t zero = 0; zero <= 128; zero += 128) {
        begin(n, 140.0f);
        struct sums s = make_sums(n, zero);
        for (int form = 0; form < 4; form++)
            for (int bias = 0; bias < 2; bias++) {
                float own = bias ? 0.37f : 1.0f;
                const float *of_row = bias ? b.data : NULL;
                dequantize(row, &s, form, zero, own, of_row, n, got.data);
                dequantize(scalar(), &s, form, zero, own, of_row, n, wanted.data);
                if (n) assert_memory_equal(got.data, wanted.data, n * sizeof(float));
            }
        free_sums(&s, row->name);
        end(n, 0.0f, row->name);
    }
}

// Exact; NaN never wins.
static void magnitudes(const struct st_elementwise *row, size_t n) {
    begin(n, 12.0f);
    float *x = a.data;
    assert_true(row->max_magnitude(x, n) == scalar()->max_magnitude(x, n));
    for (size_t i = 0; i < n; i += 5) x[i] = NAN;
    float max = 0.0f;
    for (size_t i = 0; i < n; i++)
        if (!isnan(x[i])) max = fmaxf(max, fabsf(x[i]));
    assert_true(row->max_magnitude(x, n) == max);
    assert_true(scalar()->max_magnitude(x, n) == max);
    for (size_t i = 0; i < n; i++) x[i] = 0.0f; // what end() compares must be numbers
    end(n, 0.0f, row->name);
}

static void activations(const struct st_elementwise *row, size_t n) {
    for (int act = 0; act < ST_N_ACTS; act++) {
        begin(n, 12.0f);
        row->act((enum st_act)act, a.data, n, got.data);
        scalar()->act((enum st_act)act, a.data, n, wanted.data);
        end(n, 5e-6f, row->name);
        begin(n, 12.0f);
        row->act_gated((enum st_act)act, a.data, b.data, n, got.data);
        scalar()->act_gated((enum st_act)act, a.data, b.data, n, wanted.data);
        end(n, 4e-5f, row->name);
    }
}

static void sums(const struct st_elementwise *row, size_t n) {
    begin(n, 2.0f);
    row->add(a.data, n, got.data);
    scalar()->add(a.data, n, wanted.data);
    end(n, 0.0f, row->name);
    begin(n, 2.0f);
    row->axpy(1.7f, a.data, n, got.data);
    scalar()->axpy(1.7f, a.data, n, wanted.data);
    end(n, 1e-6f, row->name);
    begin(n, 2.0f);
    row->scale(-0.3f, a.data, n, got.data);
    scalar()->scale(-0.3f, a.data, n, wanted.data);
    end(n, 0.0f, row->name);
    begin(n, 100.0f);
    row->softcap(30.0f, a.data, n, got.data);
    scalar()->softcap(30.0f, a.data, n, wanted.data);
    end(n, 1e-5f, row->name);
}

// With rows that are there and rows that are not, with and without a bias, gated in place or not.
static void convolutions(const struct st_elementwise *row, size_t n) {
    begin(n, 2.0f);
    row->multiply(a.data, n, got.data);
    scalar()->multiply(a.data, n, wanted.data);
    end(n, 0.0f, row->name);
    for (size_t n_taps = 1; n_taps <= 4; n_taps++)
        for (size_t n_rows = 0; n_rows <= n_taps; n_rows++) {
            struct kc_array taps = kc_floats(n_taps * n, 1.0f), more = kc_floats(4 * n, 2.0f);
            const float *rows[4] = {NULL};
            begin(n, 2.0f);
            for (size_t k = n_taps - n_rows; k < n_taps; k++)
                rows[k] = (const float *)more.data + k * n;
            const float *bias = n_rows % 2 ? b.data : NULL;
            bool gated = n_rows < n_taps;
            row->short_conv(rows, taps.data, n_taps, bias, gated ? got.data : NULL, n, got.data);
            scalar()->short_conv(rows, taps.data, n_taps, bias, gated ? wanted.data : NULL, n,
                                 wanted.data);
            end(n, 4e-6f, row->name);
            kc_free(&taps, row->name);
            kc_free(&more, row->name);
        }
}

static void rotations(const struct st_elementwise *row, size_t n) {
    size_t even = n / 2 * 2;
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        begin(even, 1.0f);
        row->rope(got.data, a.data, b.data, even, interleaved);
        scalar()->rope(wanted.data, a.data, b.data, even, interleaved);
        end(even, 1e-6f, row->name);
    }
}

static void maxima(const struct st_elementwise *row, size_t n) {
    if (n == 0) return;
    begin(n, 1.0f);
    float *x = a.data;
    x[ts_random_below(n)] = 5.0f;
    x[ts_random_below(n)] = 5.0f; // the first of equals wins
    assert_int_equal(row->argmax(x, n), scalar()->argmax(x, n));
    x[ts_random_below(n)] = NAN;
    x[0] = n > 1 ? NAN : x[0];
    assert_int_equal(row->argmax(x, n), scalar()->argmax(x, n));
    for (size_t i = 0; i < n; i++) x[i] = -INFINITY;
    assert_int_equal(row->argmax(x, n), 0);
    memcpy(got.data, wanted.data, n * sizeof(float));
    end(n, 0.0f, row->name);
}

// What libm says about the ends of the number line.
static void extremes(const struct st_elementwise *row, size_t n) {
    if (n != 16) return;
    const float x[16] = {0.0f,  -0.0f,  1e-30f, -1e-30f, 88.0f, -88.0f, 200.0f, -200.0f,
                         1e30f, -1e30f, 5.0f,   -5.0f,   87.5f, -87.5f, 0.5f,   -0.5f};
    for (int act = 0; act < ST_N_ACTS; act++) {
        begin(n, 1.0f);
        row->act((enum st_act)act, x, n, got.data);
        scalar()->act((enum st_act)act, x, n, wanted.data);
        for (size_t i = 0; i < n; i++) {
            float g = ((float *)got.data)[i], w = ((float *)wanted.data)[i];
            if (!(g == w || fabsf(g - w) <= 1e-5f * fmaxf(1.0f, fabsf(w))))
                fail_msg("%s: activation %d of %g is %g, expected %g", row->name, act, (double)x[i],
                         (double)g, (double)w);
        }
        memcpy(got.data, wanted.data, n * sizeof(float));
        end(n, 0.0f, row->name);
    }
    float nan[16];
    for (size_t i = 0; i < 16; i++) nan[i] = NAN;
    float out[16];
    for (int act = 0; act < ST_N_ACTS; act++) {
        row->act((enum st_act)act, nan, 16, out);
        if (!isnan(out[3])) fail_msg("%s: activation %d hides NaN", row->name, act);
    }
}

// Relative to the result, over all exponents that e^-x has, up to where it is just no infinity.
static void silu_keeps_its_digits(void **state) {
    (void)state;
    for (const struct st_elementwise *const *row = st_elementwises; *row; row++) {
        if (((*row)->isa & st_cpu_flags()) != (*row)->isa) continue;
        for (float from = -87.2f; from < 88.7f; from += 0.00937f) {
            float x[16], y[16];
            for (int i = 0; i < 16; i++) x[i] = -from - (float)i * 0.00059f;
            (*row)->act(ST_ACT_SILU, x, 16, y);
            for (int i = 0; i < 16; i++) {
                if (x[i] < -88.7f) continue;
                double exact = (double)x[i] / (1.0 + exp(-(double)x[i]));
                if (!(fabs((double)y[i] - exact) <= 2.2e-7 * fabs(exact)))
                    fail_msg("%s: silu of %.9g is %.9g, expected %.9g", (*row)->name, (double)x[i],
                             (double)y[i], exact);
            }
        }
    }
}

// The mean is far larger than what is around it.
static void layernorm_takes_a_large_mean_away(void **state) {
    (void)state;
    enum { N = 257 };
    for (const struct st_elementwise *const *row = st_elementwises; *row; row++) {
        if (((*row)->isa & st_cpu_flags()) != (*row)->isa) continue;
        float x[N], y[N], exact[N];
        for (int i = 0; i < N; i++) x[i] = 1000.0f + ts_random_float(-0.5f, 0.5f);
        (*row)->layernorm(x, NULL, NULL, 1e-5f, N, y);
        scalar()->layernorm(x, NULL, NULL, 1e-5f, N, exact);
        kc_near(y, exact, N, 2e-6f, (*row)->name);
    }
}

// The one element that is none, wherever it is.
static void finite_rows(const struct st_elementwise *row, size_t n) {
    begin(n, 1e30f);
    float *x = a.data;
    assert_true(row->finite(x, n) && scalar()->finite(x, n));
    for (size_t i = 0; i < n; i++) {
        float was = x[i];
        x[i] = (float[]){INFINITY, -INFINITY, NAN}[i % 3];
        assert_false(row->finite(x, n));
        assert_false(scalar()->finite(x, n));
        x[i] = was;
    }
    end(n, 0.0f, row->name);
}

// Blocks of the search, equals in several of them, NaN between.
static void the_first_of_equal_maxima_wins_in_long_rows(void **state) {
    (void)state;
    enum { N = 5003 };
    static float x[N + 1];
    for (const struct st_elementwise *const *row = st_elementwises; *row; row++)
        for (int round = 0; ((*row)->isa & st_cpu_flags()) == (*row)->isa && round < 50; round++) {
            float *at = x + round % 2; // off by a float
            for (int i = 0; i < N; i++)
                at[i] = round % 3 ? ts_random_float(-1.0f, 0.0f) : -INFINITY;
            for (int i = 0; i < 40; i++) at[ts_random_below(N)] = NAN;
            for (int i = 0; i < round % 7; i++) at[ts_random_below(N)] = 1.0f;
            assert_int_equal((*row)->argmax(at, N), scalar()->argmax(at, N));
        }
}

static void norms_equal_the_scalar_ones(void **state) {
    (void)state;
    for_each(norms);
}
static void integers_equal_the_scalar_ones(void **state) {
    (void)state;
    for_each(integers);
    for_each(whole_sums);
    for_each(magnitudes);
    for_each(finite_rows);
}
static void activations_equal_the_scalar_ones(void **state) {
    (void)state;
    for_each(activations);
}
static void sums_equal_the_scalar_ones(void **state) {
    (void)state;
    for_each(sums);
}
static void convolutions_equal_the_scalar_ones(void **state) {
    (void)state;
    for_each(convolutions);
}
static void rotations_equal_the_scalar_ones(void **state) {
    (void)state;
    for_each(rotations);
}
static void maxima_stand_where_the_scalar_one_says(void **state) {
    (void)state;
    for_each(maxima);
}
static void extremes_come_out_as_in_libm(void **state) {
    (void)state;
    for_each(extremes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_equal_the_scalar_ones),
        cmocka_unit_test(integers_equal_the_scalar_ones),
        cmocka_unit_test(activations_equal_the_scalar_ones),
        cmocka_unit_test(sums_equal_the_scalar_ones),
        cmocka_unit_test(convolutions_equal_the_scalar_ones),
        cmocka_unit_test(rotations_equal_the_scalar_ones),
        cmocka_unit_test(maxima_stand_where_the_scalar_one_says),
        cmocka_unit_test(extremes_come_out_as_in_libm),
        cmocka_unit_test(silu_keeps_its_digits),
        cmocka_unit_test(layernorm_takes_a_large_mean_away),
        cmocka_unit_test(the_first_of_equal_maxima_wins_in_long_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
