// SPDX-License-Identifier: Apache-2.0
// Rows of an embedding in the head's panels.
#include "model/embedding.h"
#include "support/support.h"

#include "base/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { VOCAB = 35, N = 70, PANELS = 3 };

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
    const struct st_embedding e = st_embedding_of(m);
    assert_true(e.in_head);
    for (size_t id = 0; id < VOCAB; id++) {
        st_embedding_row(m, st_dequantize_select(st_cpu_flags()),
                         e.data + id / e.entry_rows * e.entry_bytes, id, row);
        for (size_t k = 0; k < N; k++) assert_true(row[k] == scale[id] * (float)rows[id][k]);
    }
    free(panels);
    free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_those_of_the_head)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
