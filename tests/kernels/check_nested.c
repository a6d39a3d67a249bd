// SPDX-License-Identifier: Apache-2.0
// Every kernel of nested weights that this CPU has: against the weights as floats, and against the
// scalar one where all sums are integers that a float holds, bit for bit.
#include "base/cpu.h"
#include "base/half.h"
#include "kernel_check.h"
#include "kernels/nested_values.h"

struct problem {
    unsigned low, high;
    size_t n_out, k, n_tokens;
    bool integers; // scales of 1, so that nothing is rounded
    size_t terms;
};

struct data {
    struct st_nested_weight w;
    struct kc_array codes, groups, rows, q, x_scale, sums;
    struct st_nested_input x;
    uint8_t *code; // [n_out, k]
    float *input;  // [n_tokens, k]
};

static void fill_weights(const struct problem *p, struct data *d) {
    size_t rows = st_nested_padded_rows(p->n_out), precisions = p->high - p->low + 1;
    size_t group_bytes = st_nested_group_bytes(p->n_out, p->k);
    d->codes = kc_make(st_nested_code_bytes(p->n_out, p->k, p->high), ts_random_below(64));
    d->groups = kc_make(precisions * group_bytes, 3);
    d->rows = kc_floats(precisions * rows * 2, 1.0f);
    d->code = malloc(p->n_out * p->k);
    ts_random_bytes(d->code, p->n_out * p->k);
    ts_random_bytes(d->groups.data, d->groups.bytes);
    memset(d->codes.data, 0, d->codes.bytes);
    for (size_t i = 0; i < p->n_out * p->k; i++) d->code[i] &= (1u << p->high) - 1;
    struct st_nested_row *row = d->rows.data;
    for (size_t r = 0; r < precisions * rows && p->integers; r++)
        row[r] = (struct st_nested_row){1.0f, 1.0f};
    uint8_t *group = d->groups.data; // so that a float holds the sums
    for (size_t i = 0; i < d->groups.bytes && p->integers; i++) group[i] &= p->high > 5 ? 1 : 7;
    for (size_t r = 0; r < p->n_out; r++)
        st_nested_put_row(d->code + r * p->k, p->n_out, p->k, p->high, r, d->codes.data);
    d->w = (struct st_nested_weight){.codes = d->codes.data,
                                     .rows = d->rows.data,
                                     .n_out = (uint32_t)p->n_out,
                                     .n_in = (uint32_t)p->k,
                                     .low = (uint8_t)p->low,
                                     .high = (uint8_t)p->high};
    for (unsigned b = p->low; b <= p->high; b++)
        d->w.groups[b] = group + (b - p->low) * group_bytes;
}

static const struct st_nested_kernel *scalar(void) {
    return st_nested_select(0);
}

static void fill_input(const struct problem *p, struct data *d) {
    size_t blocks = st_nested_blocks(p->k);
    d->q = kc_make(p->n_tokens * blocks * ST_NESTED_BLOCK, ts_random_below(16));
    d->x_scale = kc_make(p->n_tokens * blocks * sizeof(float), 4);
    d->sums = kc_make(p->n_tokens * blocks * ST_NESTED_GROUPS * sizeof(int16_t), 4);
    d->x =
        (struct st_nested_input){d->q.data, d->x_scale.data, d->sums.data, p->n_tokens, p->terms};
    d->input = malloc(p->n_tokens * p->k * sizeof(float));
    for (size_t i = 0; i < p->n_tokens * p->k; i++)
        d->input[i] = ts_random_float(-1.0f, 1.0f) * (ts_random_below(50) ? 1.0f : 20.0f);
    for (size_t t = 0; t < p->n_tokens; t++)
        st_nested_quantize(scalar(), d->input + t * p->k, p->k, t, &d->x);
    for (size_t i = 0; i < p->n_tokens * blocks && p->integers; i++) d->x.scale[i] = 1.0f;
}

static void free_data(struct data *d) {
    kc_free(&d->codes, "a kernel");
    kc_free(&d->groups, "a kernel");
    kc_free(&d->rows, "a kernel");
    kc_free(&d->q, "quantize");
    kc_free(&d->x_scale, "quantize");
    kc_free(&d->sums, "quantize");
    free(d->code);
    free(d->input);
}

// Adds the product of dequantized weights and inputs, in double, and its terms' magnitudes.
static void add_plain(const struct problem *p, const struct data *d, unsigned bits, size_t row,
                      size_t t, double *sum, double *magnitude) {
    for (size_t i = 0; i < p->k; i++) {
        size_t block = st_nested_at(&d->x, p->k, t, i / ST_NESTED_BLOCK);
        int q = d->x.q[block * ST_NESTED_BLOCK + i % ST_NESTED_BLOCK];
        assert_int_equal(st_nested_code(&d->w, row, i, bits),
                         d->code[row * p->k + i] >> (p->high - bits));
        double term = (double)d->x.scale[block] * q * (double)st_nested_value(&d->w, row, i, bits);
        *sum += term;
        *magnitude += fabs(term);
    }
}

static void check(const struct st_nested_kernel *kernel, const struct problem *p,
                  const struct data *d, unsigned bits) {
    size_t y_row = p->n_out + ts_random_below(3), panels = st_ceil_div(p->n_out, ST_NESTED_PANEL);
    size_t cut = ts_random_below(panels + 1);
    struct kc_array y = kc_make(((p->n_tokens - 1) * y_row + p->n_out) * sizeof(float), 4);
    const float *got = y.data;
    kernel->fn(&d->w, bits, &d->x, 0, cut, y.data, y_row);
    kernel->fn(&d->w, bits, &d->x, cut, panels, y.data, y_row);
    for (size_t t = 0; t < p->n_tokens / d->x.terms; t++)
        for (size_t r = 0; r < p->n_out; r++) {
            double wanted = 0.0, magnitude = 0.0;
            for (size_t term = 0; term < d->x.terms; term++)
                add_plain(p, d, bits, r, d->x.terms * t + term, &wanted, &magnitude);
            double error = fabs((double)got[t * y_row + r] - wanted);
            // Codes and minima are summed apart, and rounded to 24 bits a few times.
            double rounding = fmax(2e-2 * sqrt((double)p->k), 0x1p-21 * magnitude);
            double bound = p->integers ? 0.0 : rounding;
            if (!(error <= bound))
                fail_msg("%s: %u of %u bits, k %zu, token %zu of %zu, row %zu of %zu: %.9g, "
                         "expected %.9g",
                         kernel->name, bits, p->high, p->k, t, p->n_tokens, r, p->n_out,
                         (double)got[t * y_row + r], wanted);
        }
    kc_free(&y, kernel->name);
}

static void run(const struct problem *p) {
    struct data d;
    fill_weights(p, &d);
    fill_input(p, &d);
    for (unsigned bits = p->low; bits <= p->high; bits++)
        for (const struct st_nested_kernel *k = st_nested_kernels; k->name; k++)
            if ((k->isa & st_cpu_flags()) == k->isa) check(k, p, &d, bits);
    free_data(&d);
}

static void test_kernels(void **state) {
    (void)state;
    for (int i = 0; i < 120; i++) {
        unsigned low = 2 + ts_random_below(3), high = low + ts_random_below(8 - low);
        struct problem p = {low,
                            high,
                            1 + ts_random_below(40),
                            1 + ts_random_below(i % 4 ? 300 : 1024),
                            1 + ts_random_below(11),
                            i % 2,
                            1};
        if (i % 3 == 0) p.terms = 2, p.n_tokens *= 2;
        run(&p);
    }
}

static void test_edges(void **state) {
    (void)state;
    const struct problem problems[] = {
        {2, 4, 1, 1, 1, true, 1},    {2, 4, 4, 128, 1, true, 1},  {2, 4, 9, 129, 4, true, 2},
        {2, 7, 8, 1024, 8, true, 1}, {7, 7, 5, 256, 10, true, 2}, {3, 3, 17, 127, 2, false, 1},
        {2, 7, 9, 64, 5, true, 1},   {2, 7, 20, 192, 8, true, 2}, {2, 6, 16, 576, 7, false, 1},
        {2, 5, 8, 65, 3, true, 1},   {2, 5, 8, 160, 3, true, 1},
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) run(&problems[i]);
}

// The largest codes meet the largest inputs: what kernels add in 16 bits has room for that.
static void test_largest_sums(void **state) {
    (void)state;
    for (unsigned high = 2; high <= 7; high++) {
        const struct problem p = {high, high, 9, 192, 4, true, 1};
        struct data d;
        fill_weights(&p, &d);
        fill_input(&p, &d);
        memset(d.code, (1 << high) - 1, p.n_out * p.k);
        for (size_t r = 0; r < p.n_out; r++)
            st_nested_put_row(d.code + r * p.k, p.n_out, p.k, high, r, d.codes.data);
        for (size_t t = 0; t < p.n_tokens; t++) {
            for (size_t i = 0; i < p.k; i++) d.input[i] = t % 2 ? -127.0f : 127.0f;
            st_nested_quantize(scalar(), d.input, p.k, t, &d.x);
        }
        for (const struct st_nested_kernel *k = st_nested_kernels; k->name; k++)
            if ((k->isa & st_cpu_flags()) == k->isa) check(k, &p, &d, high);
        free_data(&d);
    }
}

// However many tokens go together, each gets the same bits.
static void test_tokens_alone(void **state) {
    (void)state;
    const struct problem p = {2, 4, 23, 700, 8, false, 1};
    struct data d;
    float together[8 * 23], alone[23], scale[6];
    int8_t q[6 * ST_NESTED_BLOCK];
    int16_t sums[6 * ST_NESTED_GROUPS];
    fill_weights(&p, &d);
    fill_input(&p, &d);
    for (const struct st_nested_kernel *k = st_nested_kernels; k->name; k++) {
        if ((k->isa & st_cpu_flags()) != k->isa) continue;
        k->fn(&d.w, 3, &d.x, 0, 3, together, 23);
        for (size_t t = 0; t < 8; t++) {
            struct st_nested_input one = {q, scale, sums, 1, 1};
            st_nested_quantize(k, d.input + t * p.k, p.k, 0, &one);
            k->fn(&d.w, 3, &one, 0, 3, alone, 23);
            assert_memory_equal(alone, together + t * 23, sizeof alone);
        }
    }
    free_data(&d);
}

// Panels by themselves give the bits that they give in the whole.
static void test_panels(void **state) {
    (void)state;
    const struct problem p = {2, 6, 61, 300, 4, false, 2};
    struct data d;
    float whole[2 * 61], part[2 * 61];
    fill_weights(&p, &d);
    fill_input(&p, &d);
    for (const struct st_nested_kernel *k = st_nested_kernels; k->name; k++) {
        if ((k->isa & st_cpu_flags()) != k->isa) continue;
        for (unsigned bits = 2; bits <= 6; bits++) {
            k->fn(&d.w, bits, &d.x, 0, 8, whole, 61);
            for (size_t panel = 0, n; panel < 8; panel += n) {
                n = 1 + ts_random_below((uint32_t)(8 - panel));
                struct st_nested_weight w = st_nested_panels(&d.w, bits, panel, n);
                k->fn(&w, bits, &d.x, 0, n, part + panel * ST_NESTED_PANEL, 61);
            }
            assert_memory_equal(part, whole, sizeof whole);
        }
    }
    free_data(&d);
}

// The code of a lower precision is the top of a higher one's.
static void test_codes(void **state) {
    (void)state;
    const struct problem p = {2, 7, 10, 150, 1, false, 1};
    struct data d;
    fill_weights(&p, &d);
    fill_input(&p, &d);
    for (unsigned bits = 2; bits <= 7; bits++)
        for (size_t r = 0; r < p.n_out; r++)
            for (size_t c = 0; c < p.k; c++)
                assert_int_equal(st_nested_code(&d.w, r, c, bits),
                                 d.code[r * p.k + c] >> (7 - bits));
    free_data(&d);
}

// Elements [first, first + n) of a row from every kernel, the first as good as st_nested_value()
// and the others its equals.
static void check_values(const struct data *d, unsigned bits, size_t row, size_t first, size_t n) {
    size_t room = st_round_up(n, ST_NESTED_BLOCK);
    const struct st_nested_values *plain = st_nested_values_select(0);
    struct kc_array floats = kc_make(room * sizeof(float), 4), bf16 = kc_make(room * 2, 2);
    float *wanted = calloc(room, sizeof *wanted);
    uint16_t *rounded = calloc(room, sizeof *rounded);
    plain->floats(&d->w, bits, row, first, n, wanted);
    plain->bf16(&d->w, bits, row, first, n, rounded);
    for (size_t i = 0; i < n; i++) {
        float value = st_nested_value(&d->w, row, first + i, bits);
        assert_true(fabsf(wanted[i] - value) <= 1e-2f); // terms are up to 32,385
        assert_int_equal(rounded[i], st_bf16_from_f32(wanted[i]));
    }
    for (const struct st_nested_values *v = st_nested_values; v->name; v++) {
        if ((v->isa & st_cpu_flags()) != v->isa) continue;
        if (v->floats) v->floats(&d->w, bits, row, first, n, floats.data);
        if (v->floats) assert_memory_equal(floats.data, wanted, n * sizeof(float));
        if (v->bf16) v->bf16(&d->w, bits, row, first, n, bf16.data);
        if (v->bf16) assert_memory_equal(bf16.data, rounded, n * sizeof(uint16_t));
    }
    kc_free(&floats, "values");
    kc_free(&bf16, "values");
    free(wanted);
    free(rounded);
}

static void test_values(void **state) {
    (void)state;
    const size_t lengths[] = {1, 63, 64, 65, 128, 192, 200, 256, 448, 576, 1000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const struct problem p = {2, 7, 1 + ts_random_below(30), lengths[i], 1, false, 1};
        struct data d;
        fill_weights(&p, &d);
        fill_input(&p, &d);
        for (unsigned bits = 2; bits <= 7; bits++)
            for (size_t row = 0; row < p.n_out; row++) {
                check_values(&d, bits, row, 0, p.k);
                size_t first = ts_random_below((uint32_t)st_ceil_div(p.k, ST_NESTED_BLOCK));
                size_t left = p.k - first * ST_NESTED_BLOCK;
                size_t n = st_min(left, (1 + ts_random_below(3)) * ST_NESTED_BLOCK);
                check_values(&d, bits, row, first * ST_NESTED_BLOCK, n);
            }
        free_data(&d);
    }
}

static void test_quantize(void **state) {
    (void)state;
    float x[300];
    int8_t q[384];
    float scale[3];
    int16_t sums[3 * ST_NESTED_GROUPS];
    struct st_nested_input input = {q, scale, sums, 1, 1};
    for (size_t i = 0; i < 300; i++) x[i] = i < 128 ? 0.0f : ts_random_float(-3.0f, 3.0f);
    st_nested_quantize(scalar(), x, 300, 0, &input);
    assert_true(scale[0] == 0.0f);
    for (size_t g = 0; g < 3 * ST_NESTED_GROUPS; g++) {
        int32_t sum = 0;
        for (size_t i = g * ST_NESTED_GROUP; i < (g + 1) * ST_NESTED_GROUP; i++) {
            float wanted = i < 300 ? x[i] : 0.0f, step = scale[i / ST_NESTED_BLOCK];
            assert_true(fabsf((float)q[i] * step - wanted) <= step * 0.501f);
            sum += q[i];
        }
        assert_int_equal(sums[g], sum);
    }
}

// Every kernel's, where rounding is a close call too.
static void test_quantizers(void **state) {
    (void)state;
    float x[ST_NESTED_BLOCK], scale[2];
    int8_t q[2][ST_NESTED_BLOCK];
    int16_t sums[2][ST_NESTED_GROUPS];
    for (const struct st_nested_kernel *k = st_nested_kernels; k->name; k++) {
        if ((k->isa & st_cpu_flags()) != k->isa) continue;
        for (int round = 0; round < 200; round++) {
            float max = round % 7 ? ts_random_float(1e-3f, 1e3f) : round % 2 ? 0.0f : 1e-38f;
            for (size_t i = 0; i < ST_NESTED_BLOCK; i++) {
                float half = (float)ts_random_below(255) - 127.0f + 0.5f; // between two numbers
                x[i] = round % 3 ? ts_random_float(-max, max) : max * half / 127.5f;
            }
            scalar()->quantize(x, q[0], &scale[0], sums[0]);
            k->quantize(x, q[1], &scale[1], sums[1]);
            assert_memory_equal(q[0], q[1], sizeof q[0]);
            assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
            assert_true(scale[0] == scale[1]);
        }
    }
}

// Two numbers a weight say 254 times as much.
static void test_rest(void **state) {
    (void)state;
    enum { K = 200, BLOCKS = 2, TOKENS = 6 };
    float x[TOKENS / 2][K], scale[TOKENS * BLOCKS];
    int8_t q[TOKENS * BLOCKS * ST_NESTED_BLOCK];
    int16_t sums[TOKENS * BLOCKS * ST_NESTED_GROUPS];
    struct st_nested_input input = {q, scale, sums, TOKENS, 1};
    for (size_t t = 0; t < TOKENS; t += 2) {
        for (size_t i = 0; i < K; i++) x[t / 2][i] = ts_random_float(-3.0f, 3.0f);
        st_nested_quantize(scalar(), x[t / 2], K, t, &input);
        st_nested_quantize_rest(scalar(), x[t / 2], K, t, t + 1, &input);
    }
    for (size_t t = 0; t < TOKENS; t += 2)
        for (size_t i = 0; i < K; i++) {
            size_t first = st_nested_at(&input, K, t, i / ST_NESTED_BLOCK);
            size_t rest = st_nested_at(&input, K, t + 1, i / ST_NESTED_BLOCK);
            size_t at = i % ST_NESTED_BLOCK;
            float sum = scale[first] * (float)q[first * ST_NESTED_BLOCK + at] +
                        scale[rest] * (float)q[rest * ST_NESTED_BLOCK + at];
            assert_true(fabsf(sum - x[t / 2][i]) <= scale[first] / 254.0f * 0.51f);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),      cmocka_unit_test(test_edges),
        cmocka_unit_test(test_largest_sums), cmocka_unit_test(test_tokens_alone),
        cmocka_unit_test(test_panels),       cmocka_unit_test(test_codes),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_rest),         cmocka_unit_test(test_quantizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
