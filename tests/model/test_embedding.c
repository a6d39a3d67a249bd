// SPDX-License-Identifier: Apache-2.0
// Rows of an embedding in the head's panels, or in their nested codes.
#include "model/embedding.h"
#include "device/weight_set.h"
#include "support/support.h"

#include "base/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { VOCAB = 35, N = 70, PANELS = 3 };

static void read_row(const struct stint_model *m, size_t id, float *row) {
    const struct st_embedding e = st_embedding_of(m, ST_TABLE_EMBEDDING);
    const unsigned char *entry[ST_EMBEDDING_STRIPS];
    for (uint32_t i = 0; i < e.n_strips; i++) entry[i] = st_embedding_at(&e, i, id / e.entry_rows);
    st_embedding_row(m, &e, st_dequantize_select(st_cpu_flags()), entry, id, row);
}

static void rows_are_those_of_the_head(void **state) {
    (void)state;
    static int8_t rows[PANELS * ST_INT8_PANEL][N];
    float scale[PANELS * ST_INT8_PANEL], row[N];
    int32_t sums[ST_INT8_PANEL];
    int8_t *panels = malloc(PANELS * st_int8_panel_bytes(N));
    struct stint_model *m = calloc(1, sizeof *m);
    assert_true(panels && m);
    for (size_t r = 0; r < PANELS * ST_INT8_PANEL; r++) {
        scale[r] = ts_random_float(0.001f, 0.1f);
        for (size_t k = 0; k < N; k++) rows[r][k] = (int8_t)((int)ts_random_below(255) - 127);
    }
    for (size_t p = 0; p < PANELS; p++)
        st_int8_pack_panel(rows[p * ST_INT8_PANEL], ST_INT8_PANEL, N,
                           panels + p * st_int8_panel_bytes(N), sums);
    m->int8.head.weight = (struct st_int8_weight){.panels = panels, .scale = scale, .n_in = N};
    const struct st_embedding e = st_embedding_of(m, ST_TABLE_EMBEDDING);
    assert_null(e.tensor);
    for (size_t id = 0; id < VOCAB; id++) {
        read_row(m, id, row);
        for (size_t k = 0; k < N; k++) assert_true(row[k] == scale[id] * (float)rows[id][k]);
    }
    free(panels);
    free(m);
}

static void rows_are_made_of_the_heads_codes(void **state) {
    (void)state;
    for (unsigned stored = 7; stored <= ST_NESTED_STORED; stored++) {
        float scale[VOCAB], row[N];
        struct st_nested_int8_row rows[PANELS * ST_INT8_PANEL];
        size_t n_codes = st_nested_code_bytes(VOCAB, N, stored);
        size_t n_groups = st_nested_group_bytes(VOCAB, N);
        uint8_t *codes = malloc(n_codes), *groups = malloc(n_groups);
        struct stint_model *m = calloc(1, sizeof *m);
        assert_true(codes && groups && m);
        ts_random_bytes(codes, n_codes);
        ts_random_bytes(groups, n_groups);
        for (size_t r = 0; r < VOCAB; r++) {
            scale[r] = ts_random_float(0.001f, 0.1f);
            rows[r].step = (int16_t)ts_random_below(4096);
            rows[r].minimum = (int16_t)(ts_random_below(4096) - 2048);
        }
        struct st_weight_set set = {.codes = {{.codes = codes,
                                               .groups[4] = groups,
                                               .n_out = VOCAB,
                                               .n_in = N,
                                               .low = 4,
                                               .high = 4,
                                               .stored = (uint8_t)stored}},
                                    .rows = {rows},
                                    .n_parts = 1};
        m->int8.head.weight = (struct st_int8_weight){.set = &set, .scale = scale, .n_in = N};
        assert_null(st_embedding_of(m, ST_TABLE_EMBEDDING).tensor);
        for (size_t id = 0; id < VOCAB; id++) {
            read_row(m, id, row);
            for (size_t k = 0; k < N; k++)
                assert_true(row[k] ==
                            scale[id] * (float)st_nested_int8_value(set.codes, rows, id, k));
        }
        free(codes);
        free(groups);
        free(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_those_of_the_head),
                                       cmocka_unit_test(rows_are_made_of_the_heads_codes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
