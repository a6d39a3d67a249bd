// SPDX-License-Identifier: Apache-2.0
// Every INT8 tile that this CPU has, and the tile unit's on emulated instructions, against a plain
// triple loop over row-major weights: the same integers, bit for bit.
#if defined(__x86_64__)
#define ST_AMX_EMULATED
#define st_int8_tile_amx emulated_amx_tile
#include "kernels/int8_amx.c"
#undef st_int8_tile_amx
#else
#include "kernels/int8_tiles.h"
#endif

#include "base/cpu.h"
#include "kernel_check.h"

static const struct st_int8_kernel emulated[] = {
#if defined(__x86_64__)
    {"int8_amx, emulated", 0, 0, 4, 64, 64, emulated_amx_tile, NULL, 0, 0, 0},
#endif
    {0},
};

// Calls fn with every kernel that can run here.
static void for_kernels(void (*fn)(const struct st_int8_kernel *kernel)) {
    for (const struct st_int8_kernel *k = emulated; k->name; k++) fn(k);
    for (const struct st_int8_kernel *k = st_int8_kernels; k->name; k++)
        if ((k->isa & st_cpu_flags()) == k->isa) fn(k);
}

// range 127: any; 0: only the two ends, whose sums are the largest there are.
static int8_t random_int8(bool ends) {
    if (ends) return ts_random_below(2) ? 127 : -127;
    return (int8_t)((int)ts_random_below(255) - 127);
}

struct problem {
    size_t rows, n_tokens, k, x_row;
    bool ends, largest; // all of one sign
};

static int32_t *plain_product(const struct problem *p, const int8_t *w, const int8_t *x) {
    int32_t *y = calloc(p->n_tokens * p->rows, sizeof *y);
    for (size_t t = 0; t < p->n_tokens; t++)
        for (size_t r = 0; r < p->rows; r++)
            for (size_t i = 0; i < p->k; i++)
                y[t * p->rows + r] += (int32_t)x[t * p->k + i] * w[r * p->k + i];
    return y;
}

static void pack(const struct problem *p, const int8_t *w, int8_t *panels, int32_t *row_sums) {
    for (size_t r = 0; r < p->rows; r += ST_INT8_PANEL)
        st_int8_pack_panel(w + r * p->k, st_min(ST_INT8_PANEL, p->rows - r), p->k,
                           panels + r / ST_INT8_PANEL * st_int8_panel_bytes(p->k), row_sums + r);
}

// A problem's operands as a kernel takes them, and its answer.
struct made {
    size_t n_panels, width, padded;
    struct kc_array panels, input;
    int32_t *row_sums, *wanted;
};

static struct made make(const struct st_int8_kernel *kernel, const struct problem *p) {
    struct made m = {.n_panels = st_ceil_div(p->rows, ST_INT8_PANEL),
                     .padded = st_int8_padded_k(p->k)};
    m.width = m.n_panels * ST_INT8_PANEL;
    m.panels = kc_make(m.n_panels * st_int8_panel_bytes(p->k), 0);
    m.input = kc_make((p->n_tokens - 1) * p->x_row + m.padded, ts_random_below(64));
    int8_t *w = malloc(p->rows * p->k), *x = malloc(p->n_tokens * p->k);
    m.row_sums = malloc(m.width * sizeof *m.row_sums);
    for (size_t i = 0; i < p->rows * p->k; i++) w[i] = random_int8(p->ends);
    for (size_t i = 0; i < p->n_tokens * p->k; i++) x[i] = random_int8(p->ends);
    if (p->largest) memset(w, 127, p->rows * p->k), memset(x, 127, p->n_tokens * p->k);
    pack(p, w, m.panels.data, m.row_sums);
    ts_random_bytes(m.input.data, m.input.bytes); // what pads k may be anything
    for (size_t t = 0; t < p->n_tokens; t++)
        for (size_t i = 0; i < p->k; i++)
            ((uint8_t *)m.input.data)[t * p->x_row + i] = (uint8_t)(x[t * p->k + i] + kernel->zero);
    m.wanted = plain_product(p, w, x);
    free(w);
    free(x);
    return m;
}

static void free_made(struct made *m, const char *name) {
    free(m->wanted);
    free(m->row_sums);
    kc_free(&m->panels, name);
    kc_free(&m->input, name);
}

// What stands for zero is taken from the sums.
static void check(const struct st_int8_kernel *kernel, const struct problem *p) {
    struct made m = make(kernel, p);
    size_t sum_row = m.width + ts_random_below(5);
    struct kc_array sums = kc_make(((p->n_tokens - 1) * sum_row + m.width) * sizeof(int32_t), 4);
    int32_t *got = sums.data;
    memset(got, 0x5a, sums.bytes);
    kernel->tile(m.panels.data, m.n_panels, m.input.data, p->x_row, p->n_tokens, m.padded, got,
                 sum_row);
    for (size_t t = 0; t < p->n_tokens; t++) {
        for (size_t r = 0; r < p->rows; r++) {
            int32_t sum = got[t * sum_row + r] - kernel->zero * m.row_sums[r];
            if (sum != m.wanted[t * p->rows + r])
                fail_msg("%s: k %zu, token %zu, row %zu: %d, expected %d", kernel->name, p->k, t, r,
                         sum, m.wanted[t * p->rows + r]);
        }
        for (size_t r = p->rows; r < m.width; r++) assert_int_equal(got[t * sum_row + r], 0);
        for (size_t r = m.width; r < sum_row && t + 1 < p->n_tokens; r++)
            assert_int_equal(got[t * sum_row + r], 0x5a5a5a5a);
    }
    kc_free(&sums, kernel->name);
    free_made(&m, kernel->name);
}

// Rows 2 t and 2 t + 1 are input t's terms.
static void check_joint(const struct st_int8_kernel *kernel, const struct problem *p) {
    struct made m = make(kernel, p);
    size_t n = p->n_tokens / 2, sum_row = m.width + ts_random_below(5);
    struct kc_array sums = kc_make(((n - 1) * sum_row + m.width) * sizeof(float), 4);
    float *got = sums.data;
    for (size_t i = 0; i < sums.bytes / sizeof *got; i++) got[i] = 0.5f;
    kernel->two(m.panels.data, m.row_sums, m.n_panels, m.input.data, p->x_row, n, m.padded, got,
                sum_row);
    for (size_t t = 0; t < n; t++) {
        for (size_t r = 0; r < p->rows; r++) {
            const int32_t *both = m.wanted + 2 * t * p->rows + r;
            float wanted = (float)(254.0 * both[0] + both[p->rows]);
            assert_true(got[t * sum_row + r] == wanted);
        }
        for (size_t r = p->rows; r < m.width; r++) assert_true(got[t * sum_row + r] == 0.0f);
        for (size_t r = m.width; r < sum_row && t + 1 < n; r++)
            assert_true(got[t * sum_row + r] == 0.5f);
    }
    kc_free(&sums, kernel->name);
    free_made(&m, kernel->name);
}

static void check_two_terms(const struct st_int8_kernel *kernel) {
    const size_t lengths[] = {1, 64, 65, 500, 512, 513, 1101, 5503};
    if (!kernel->two) return;
    for (size_t i = 0; i < 8 * (size_t)kernel->two_inputs; i++)
        for (size_t panels = 1; panels <= kernel->panels; panels++) {
            size_t k = lengths[i % 8];
            struct problem p = {.rows = panels * ST_INT8_PANEL - ts_random_below(ST_INT8_PANEL),
                                .n_tokens = 2 * (1 + i / 8),
                                .k = k,
                                .x_row = st_int8_padded_k(k) + 16 * ts_random_below(5),
                                .largest = i % 3 == 0};
            check_joint(kernel, &p);
        }
}

static void check_all_sizes(const struct st_int8_kernel *kernel) {
    for (size_t n = 1; n <= kernel->tokens; n++)
        for (size_t panels = 1; panels <= kernel->panels; panels++) {
            size_t k = 1 + ts_random_below(300);
            struct problem p = {.rows = panels * ST_INT8_PANEL - ts_random_below(ST_INT8_PANEL),
                                .n_tokens = n,
                                .k = k,
                                .x_row = st_int8_padded_k(k) + 16 * ts_random_below(5)};
            check(kernel, &p);
        }
}

static void check_edges(const struct st_int8_kernel *kernel) {
    const size_t lengths[] = {1, 3, 4, 5, 63, 64, 65, 128, 200, 1000, 5504};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int ends = 0; ends < 2; ends++) {
            size_t rows = 1 + ts_random_below((size_t)kernel->panels * ST_INT8_PANEL);
            struct problem p = {.rows = ends ? 1 : rows,
                                .n_tokens = 1 + ts_random_below(kernel->tokens),
                                .k = lengths[i],
                                .x_row = st_int8_padded_k(lengths[i]) + ends * 1,
                                .ends = ends};
            check(kernel, &p);
        }
}

// The longest sums that a linear may have, all of one sign.
static void check_longest(const struct st_int8_kernel *kernel) {
    enum { K = ST_INT8_MAX_K };
    int8_t *w = malloc(K), *panel = malloc(st_int8_panel_bytes(K));
    uint8_t *x = malloc(K);
    int32_t row_sums[ST_INT8_PANEL], sums[ST_INT8_PANEL];
    memset(w, 127, K);
    memset(x, kernel->zero + 127, K);
    st_int8_pack_panel(w, 1, K, panel, row_sums);
    kernel->tile(panel, 1, x, K, 1, K, sums, ST_INT8_PANEL);
    assert_int_equal(row_sums[0], 127 * K);
    assert_int_equal(sums[0] - kernel->zero * row_sums[0], 127 * 127 * K);
    free(w);
    free(panel);
    free(x);
}

static void two_terms_are_exact_together(void **state) {
    (void)state;
    for_kernels(check_two_terms);
}

static void every_size_is_exact(void **state) {
    (void)state;
    for_kernels(check_all_sizes);
}
static void edges_are_exact(void **state) {
    (void)state;
    for_kernels(check_edges);
}
static void the_longest_sum_fits(void **state) {
    (void)state;
    for_kernels(check_longest);
}

static void the_best_row_that_is_there_is_selected(void **state) {
    (void)state;
    assert_string_equal(st_int8_select(0)->name, "int8_scalar");
    assert_ptr_equal(st_int8_select(~(uint64_t)0), st_int8_kernels);
    for (const struct st_int8_kernel *k = st_int8_kernels; k->name; k++) {
        assert_ptr_equal(st_int8_select(k->isa), k);
        assert_true((size_t)k->panels * ST_INT8_PANEL * k->tokens <= ST_INT8_SUMS);
    }
}

static void a_panel_interleaves_its_rows(void **state) {
    (void)state;
    enum { ROWS = 3, K = 70 };
    int8_t w[ROWS * K], panel[2 * 64 * ST_INT8_PANEL];
    int32_t row_sums[ST_INT8_PANEL];
    for (size_t i = 0; i < sizeof w; i++) w[i] = random_int8(false);
    assert_int_equal(st_int8_panel_bytes(K), sizeof panel);
    memset(panel, 9, sizeof panel);
    st_int8_pack_panel(w, ROWS, K, panel, row_sums);
    for (size_t r = 0; r < ST_INT8_PANEL; r++) {
        int32_t sum = 0;
        for (size_t i = 0; i < 128; i++) {
            int wanted = r < ROWS && i < K ? w[r * K + i] : 0;
            assert_int_equal(panel[i / 4 * 64 + r * 4 + i % 4], wanted);
            sum += wanted;
        }
        assert_int_equal(row_sums[r], sum);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_terms_are_exact_together),
        cmocka_unit_test(every_size_is_exact),
        cmocka_unit_test(edges_are_exact),
        cmocka_unit_test(the_longest_sum_fits),
        cmocka_unit_test(the_best_row_that_is_there_is_selected),
        cmocka_unit_test(a_panel_interleaves_its_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
