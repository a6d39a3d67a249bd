// SPDX-License-Identifier: Apache-2.0
// Every neuron kernel that this CPU has against plain loops: the same integers, bit for bit.
#include "kernels/neuron.h"

#include "base/cpu.h"
#include "kernel_check.h"

#include <math.h>

static int8_t random_int8(bool ends) {
    if (ends) return ts_random_below(2) ? 127 : -127;
    return (int8_t)((int)ts_random_below(255) - 127);
}

// n rows of k weights as they are stored, and what they stand for.
static int8_t *random_rows(uint8_t *to, enum st_neuron_code code, size_t n, size_t k, bool ends) {
    int8_t *w = malloc(n * k);
    size_t bytes = st_neuron_row_bytes(k, code);
    for (size_t i = 0; i < n * bytes; i++)
        to[i] = (uint8_t)(code == ST_NEURON_INT8 ? random_int8(ends)
                                                 : (int)(ends ? 255 : ts_random_below(256)));
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < k; i += ST_NEURON_K)
            if (code == ST_NEURON_LEVELS)
                st_neuron_dequantize(to + r * bytes, k, i, w + r * k + i);
            else
                memcpy(w + r * k + i, to + r * bytes + i, ST_NEURON_K);
    return w;
}

static void check_dot(const struct st_neuron_kernel *kernel, enum st_neuron_code code, size_t k,
                      size_t n_rows, size_t n_tokens, bool ends) {
    size_t x_row = k + ts_random_below(70);
    struct kc_array rows = kc_make(n_rows * st_neuron_row_bytes(k, code), ts_random_below(64));
    struct kc_array x = kc_make((n_tokens - 1) * x_row + k, ts_random_below(64));
    struct kc_array sums = kc_make(n_rows * n_tokens * sizeof(int32_t), 4);
    int8_t *w = random_rows(rows.data, code, n_rows, k, ends);
    for (size_t i = 0; i < x.bytes; i++)
        ((uint8_t *)x.data)[i] = (uint8_t)(random_int8(ends) + kernel->zero);
    kernel->dot[code](rows.data, n_rows, k, x.data, x_row, n_tokens, sums.data);
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t r = 0; r < n_rows; r++) {
            int32_t wanted = 0, row_sum = 0;
            for (size_t i = 0; i < k; i++) {
                uint8_t byte = (uint8_t)(((uint8_t *)x.data)[t * x_row + i] - kernel->zero);
                wanted += (int8_t)byte * w[r * k + i];
                row_sum += w[r * k + i];
            }
            assert_int_equal(((int32_t *)sums.data)[t * n_rows + r] - kernel->zero * row_sum,
                             wanted);
        }
    free(w);
    kc_free(&rows, kernel->name);
    kc_free(&x, kernel->name);
    kc_free(&sums, kernel->name);
}

// The sums of two workers, as they are added up in the end.
static void check_add(const struct st_neuron_kernel *kernel, enum st_neuron_code code, size_t k,
                      size_t n_tokens, bool ends) {
    enum { PARTS = 2 };
    size_t sum_row = k + 16 * ts_random_below(3), part = n_tokens * sum_row;
    struct kc_array columns[ST_NEURON_GROUP];
    struct kc_array sums = kc_make((PARTS * part) * sizeof(int32_t), 4 * ts_random_below(3));
    int32_t *wanted = calloc(n_tokens * k, sizeof *wanted), *got = malloc(k * sizeof *got);
    int32_t q_sum[ST_NEURON_TOKENS] = {0};
    memset(sums.data, 0, sums.bytes);
    for (size_t group = 0; group < 6; group++) {
        const uint8_t *at[ST_NEURON_GROUP];
        int8_t *w[ST_NEURON_GROUP];
        int8_t q[ST_NEURON_TOKENS * ST_NEURON_GROUP];
        for (size_t j = 0; j < ST_NEURON_GROUP; j++) {
            columns[j] = kc_make(st_neuron_row_bytes(k, code), ts_random_below(64));
            at[j] = columns[j].data;
            w[j] = random_rows(columns[j].data, code, 1, k, ends);
            for (size_t i = 0; i < k && code == ST_NEURON_INT8; i++)
                ((uint8_t *)columns[j].data)[i] ^= 128;
        }
        for (size_t t = 0; t < n_tokens; t++)
            for (size_t j = 0; j < ST_NEURON_GROUP; j++) {
                q[t * ST_NEURON_GROUP + j] = random_int8(ends);
                q_sum[t] += q[t * ST_NEURON_GROUP + j];
                for (size_t i = 0; i < k; i++)
                    wanted[t * k + i] += q[t * ST_NEURON_GROUP + j] * w[j][i];
            }
        kernel->add[code](at, q, n_tokens, k, (int32_t *)sums.data + group % PARTS * part, sum_row);
        for (size_t j = 0; j < ST_NEURON_GROUP; j++) {
            kc_free(&columns[j], kernel->name);
            free(w[j]);
        }
    }
    for (size_t t = 0; t < n_tokens; t++) {
        st_neuron_finish(kernel, (int32_t *)sums.data + t * sum_row, part, PARTS, k, q_sum[t], got);
        for (size_t i = 0; i < k; i++)
            if (got[i] != wanted[t * k + i])
                fail_msg("%s: k %zu, token %zu, output %zu: %d, expected %d", kernel->name, k, t, i,
                         got[i], wanted[t * k + i]);
    }
    kc_free(&sums, kernel->name);
    free(wanted);
    free(got);
}

static void all_kernels_agree(void **state) {
    (void)state;
    for (const struct st_neuron_kernel *kernel = st_neuron_kernels; kernel->name; kernel++) {
        if ((kernel->isa & st_cpu_flags()) != kernel->isa) continue;
        for (size_t run = 0; run < 120; run++) {
            size_t k = ST_NEURON_K * (1 + ts_random_below(run % 10 ? 5 : 70));
            size_t n_tokens = 1 + ts_random_below(ST_NEURON_TOKENS);
            enum st_neuron_code code = run % 2 ? ST_NEURON_LEVELS : ST_NEURON_INT8;
            check_dot(kernel, code, k, 1 + ts_random_below(2), n_tokens, run % 3 == 0);
            check_add(kernel, code, k, n_tokens, run % 3 == 0);
        }
    }
}

// kernels/neuron.h says where they come from.
static void levels_are_those_of_a_normal_distribution(void **state) {
    (void)state;
    static const double best[16] = {-2.6869, -2.0105, -1.55,  -1.1786, -0.8545, -0.5569,
                                    -0.2749, 0,       0.2457, 0.4961,  0.7567,  1.0347,
                                    1.3419,  1.698,   2.1441, 2.7941};
    for (size_t s = 0; s < ST_NEURON_SCALES; s++)
        for (size_t i = 0; i < 16; i++) {
            double top = 4.0 * pow(127.0 / 4.0, (double)(s / 2) / (ST_NEURON_SCALES / 2 - 1));
            int level = (int)floor(top * best[i] / best[15] + 0.5);
            assert_int_equal(st_neuron_levels[s][i], s % 2 ? -level : level);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kernels_agree),
        cmocka_unit_test(levels_are_those_of_a_normal_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
