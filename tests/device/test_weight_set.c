// SPDX-License-Identifier: Apache-2.0
// Panels made of nested codes: each packed row is the row of its part, padding is zeros.
#include "device/weight_set.h"
#include "support/support.h"

#include "base/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { K = 70, HIGH = 4 };

struct made {
    struct st_weight_set set;
    void *memory[3 * ST_LINEAR_OP_PARTS];
    size_t n;
};

static void *random_bytes(struct made *m, size_t bytes) {
    void *data = malloc(bytes);
    assert_non_null(data);
    ts_random_bytes(data, bytes);
    return m->memory[m->n++] = data;
}

static void add_part(struct made *m, size_t n_out) {
    size_t rows = st_nested_padded_rows(n_out);
    struct st_nested_weight w = {
        .n_out = (uint32_t)n_out, .n_in = K, .low = HIGH, .high = HIGH, .stored = 8};
    w.codes = random_bytes(m, st_nested_code_bytes(n_out, K, 8));
    w.groups[HIGH] = random_bytes(m, st_nested_group_bytes(n_out, K));
    struct st_nested_int8_row *row = random_bytes(m, rows * sizeof *row);
    for (size_t r = 0; r < rows; r++)
        row[r] = r < n_out ? (struct st_nested_int8_row){row[r].step & 4095, row[r].minimum / 8}
                           : (struct st_nested_int8_row){0, 0};
    m->set.codes[m->set.n_parts] = w;
    m->set.rows[m->set.n_parts++] = row;
}

static void check(const struct st_linear_op *op) {
    int8_t *panels;
    assert_int_equal(st_weight_set_all(op, &panels), STINT_OK);
    for (size_t packed = 0; packed < st_linear_op_rows(op); packed++) {
        uint32_t part = 0;
        size_t row = 0;
        bool there = st_linear_op_find_row(op, packed, &part, &row);
        const int8_t *panel = panels + packed / ST_INT8_PANEL * st_int8_panel_bytes(K);
        for (size_t k = 0; k < st_int8_padded_k(K); k++) {
            int8_t wanted = 0;
            if (there && k < K)
                wanted = st_nested_int8_value(&op->weight.set->codes[part],
                                              op->weight.set->rows[part], row, k);
            assert_int_equal(panel[k / 4 * 64 + 4 * (packed % ST_INT8_PANEL) + k % 4], wanted);
        }
    }
    free(panels);
}

static void packed_rows_are_those_of_parts(void **state) {
    (void)state;
    static const uint32_t rows[][ST_LINEAR_OP_PARTS] = {
        {40, 16, 8}, {16, 24, 9}, {33, 0, 0}, {64, 0, 0}, {1, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int gated = 0; gated < 2; gated++) {
            struct made m = {0};
            struct st_linear_op op = {.epilogue = gated ? ST_EPILOGUE_GATED : ST_EPILOGUE_FLOAT,
                                      .n_parts = 1,
                                      .rows = {rows[i][0]}};
            for (; !gated && op.n_parts < 3 && rows[i][op.n_parts]; op.n_parts++)
                op.rows[op.n_parts] = rows[i][op.n_parts];
            for (uint32_t p = 0; p < (gated ? 2 : op.n_parts); p++)
                add_part(&m, op.rows[gated ? 0 : p]);
            size_t packed = st_linear_op_packed_rows(op.epilogue, op.n_parts, op.rows);
            op.weight = (struct st_int8_weight){
                .set = &m.set, .n_in = K, .n_panels = (uint32_t)(packed / ST_INT8_PANEL)};
            check(&op);
            for (size_t j = 0; j < m.n; j++) free(m.memory[j]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(packed_rows_are_those_of_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
