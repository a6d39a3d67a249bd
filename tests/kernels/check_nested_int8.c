// SPDX-License-Identifier: Apache-2.0
// INT8 panels from nested codes: the definition against floats, and every kernel that this CPU has
// against the definition, bit for bit.
#include "base/cpu.h"
#include "kernel_check.h"
#include "kernels/nested_int8.h"

struct data {
    struct st_nested_weight w;
    struct kc_array codes, groups, rows;
};

static struct data make(size_t n_out, size_t k, unsigned high, unsigned stored) {
    struct data d = {.codes = kc_make(st_nested_code_bytes(n_out, k, stored), 5),
                     .groups = kc_make(st_nested_group_bytes(n_out, k), 3),
                     .rows = kc_make(st_nested_padded_rows(n_out) * 4, 2)};
    ts_random_bytes(d.codes.data, d.codes.bytes);
    ts_random_bytes(d.groups.data, d.groups.bytes);
    ts_random_bytes(d.rows.data, d.rows.bytes);
    struct st_nested_int8_row *rows = d.rows.data;
    for (size_t r = 0; r < st_nested_padded_rows(n_out); r++) {
        if (r % 3)
            rows[r] = (struct st_nested_int8_row){rows[r].step & 0x1fff, rows[r].minimum / 4};
        rows[r].step &= INT16_MAX;
        rows[r].minimum = rows[r].minimum == INT16_MIN ? 0 : rows[r].minimum;
    }
    d.w = (struct st_nested_weight){.codes = d.codes.data,
                                    .n_out = (uint32_t)n_out,
                                    .n_in = (uint32_t)k,
                                    .low = (uint8_t)high,
                                    .high = (uint8_t)high,
                                    .stored = (uint8_t)stored};
    d.w.groups[high] = d.groups.data;
    return d;
}

static void free_data(struct data *d) {
    kc_free(&d->codes, "a kernel");
    kc_free(&d->groups, "a kernel");
    kc_free(&d->rows, "a kernel");
}

static void check_panel(const struct st_nested_int8_kernel *kernel, const struct data *d,
                        size_t panel) {
    size_t k = st_int8_padded_k(d->w.n_in), half = panel % 2 * 32;
    struct kc_array to = kc_make(k * ST_INT8_PANEL, 1);
    int8_t *w = to.data;
    kernel->fn(&d->w, d->rows.data, panel, w + half);
    for (size_t i = 0; i < k; i++)
        for (size_t r = 0; r < ST_INT8_PANEL; r++) {
            size_t at = i / 4 * 64 + 4 * r + i % 4;
            int want = i < d->w.n_in ? st_nested_int8_value(&d->w, d->rows.data,
                                                            panel * ST_NESTED_PANEL + r % 8, i)
                                     : 0;
            if (r / 8 != panel % 2) want = (int8_t)0xa5; // untouched
            if (w[at] != want)
                fail_msg("%s: row %zu, element %zu of %u is %d, expected %d", kernel->name, r, i,
                         d->w.n_in, w[at], want);
        }
    kc_free(&to, kernel->name);
}

// Against the panel that the kernel would write, which check_panel() has held against single
// values.
static void check_products(const struct st_nested_int8_kernel *kernel, const struct data *d,
                           size_t panel, size_t n_tokens) {
    size_t k = st_int8_padded_k(d->w.n_in), x_row = k + 1 + ts_random_below(70);
    size_t sum_row = ST_NESTED_PANEL + ts_random_below(3);
    struct kc_array panels = kc_make(k * ST_INT8_PANEL, 1), x = kc_make(n_tokens * x_row, 1);
    struct kc_array sums = kc_make(n_tokens * sum_row * sizeof(int32_t), 4);
    const int8_t *w = panels.data;
    uint8_t *q = x.data;
    int32_t *sum = sums.data;
    kernel->fn(&d->w, d->rows.data, panel, panels.data);
    ts_random_bytes(q, x.bytes);
    for (size_t t = 0; t < n_tokens; t++) {
        for (size_t i = 0; i < d->w.n_in; i++) {
            int v = (int)ts_random_below(255) - 127;
            if (t == 1) v = i % 2 ? 127 : -127; // the largest sums
            q[t * x_row + i] = (uint8_t)(v + kernel->zero);
        }
        memset(q + t * x_row + d->w.n_in, 0, k - d->w.n_in);
    }
    memset(sum, 0xa5, sums.bytes);
    kernel->product(&d->w, d->rows.data, panel, q, x_row, n_tokens, sum, sum_row);
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t r = 0; r < sum_row; r++) {
            int32_t want = 0;
            for (size_t i = 0; i < d->w.n_in && r < ST_NESTED_PANEL; i++) {
                int v = q[t * x_row + i];
                want += w[i / 4 * 64 + 4 * r + i % 4] * (kernel->zero ? v : (int8_t)v);
            }
            if (r >= ST_NESTED_PANEL) want = (int32_t)0xa5a5a5a5; // untouched
            if (sum[t * sum_row + r] != want)
                fail_msg("%s: row %zu of token %zu of %zu over %u elements is %d, expected %d",
                         kernel->name, r, t, n_tokens, d->w.n_in, sum[t * sum_row + r], want);
        }
    kc_free(&panels, kernel->name);
    kc_free(&x, kernel->name);
    kc_free(&sums, kernel->name);
}

static void check_all(const struct st_nested_int8_kernel *kernel, const struct data *d) {
    if ((kernel->isa & st_cpu_flags()) != kernel->isa) return;
    for (size_t p = 0; p < st_nested_padded_rows(d->w.n_out) / ST_NESTED_PANEL; p++) {
        check_panel(kernel, d, p);
        check_products(kernel, d, p, 1 + p % ST_NESTED_INT8_TOKENS);
    }
}

static void kernels_agree(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) {
        size_t n_out = 1 + ts_random_below(40), k = 1 + ts_random_below(i % 4 ? 300 : 1100);
        if (i % 5 == 0) k = st_round_up(k, ST_NESTED_HALF); // halves of blocks
        struct data d = make(n_out, k, 2 + ts_random_below(6), 7 + ts_random_below(2));
        for (const struct st_nested_int8_kernel *kernel = st_nested_int8_kernels; kernel->name;
             kernel++)
            check_all(kernel, &d);
        free_data(&d);
    }
}

// A code whose lower bits are half of what they can be is the value that steps read, and the
// others divide the distance to the next one evenly.
static void weights_are_those_of_steps(void **state) {
    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct st_nested_weight w = {.high = (uint8_t)(2 + ts_random_below(6)), .stored = 8};
        unsigned code = ts_random_below(256), lower = 1u << (8 - w.high);
        float int8_scale = ts_random_float(0.001f, 0.1f);
        // A group that spans at most the row's range.
        struct st_nested_group group = {(uint8_t)(1 + ts_random_below(255)),
                                        (int8_t) - (int)ts_random_below(128)};
        float span = ts_random_float(0.2f, 1.0f) * 254.0f * int8_scale;
        struct st_nested_row row = {span / (float)(((1 << w.high) - 1) * 255), span / 254.0f};
        struct st_nested_int8_row r = st_nested_int8_row_of(&row, w.high, int8_scale);
        double steps = ((double)code - st_nested_int8_half(&w)) / lower;
        double value =
            (double)row.scale * group.scale * steps + (double)row.minimum * group.minimum;
        double wanted = fmin(fmax(value / (double)int8_scale, -127.0), 127.0);
        double got = st_nested_int8_of_code(&w, group, &r, code);
        if (fabs(got - wanted) > 0.7)
            fail_msg("code %u of %u bits is %g, expected about %g", code, w.high, got, wanted);
    }
}

// Shapes at the edges of vectors, halves and blocks, with each number of tokens.
static void products_agree_at_edges(void **state) {
    (void)state;
    static const size_t ks[] = {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 191, 192, 193, 257, 576};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        struct data d = make(9, ks[i], 2 + i % 6, 7 + i % 2);
        for (const struct st_nested_int8_kernel *kernel = st_nested_int8_kernels; kernel->name;
             kernel++)
            for (size_t n = 1; n <= ST_NESTED_INT8_TOKENS; n++)
                if ((kernel->isa & st_cpu_flags()) == kernel->isa)
                    check_products(kernel, &d, n % 2, n);
        free_data(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_agree),
                                       cmocka_unit_test(products_agree_at_edges),
                                       cmocka_unit_test(weights_are_those_of_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
