// SPDX-License-Identifier: Apache-2.0
// The blocks of mixtures as they are bound: from folders and from GGUF the same weights.
#include "kernels/dequantize.h"
#include "support/checkpoints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void assert_same(const struct st_linear_weight *a, const struct st_linear_weight *b) {
    assert_int_equal(a->n_out, b->n_out);
    assert_int_equal(a->n_in, b->n_in);
    float *rows[2];
    const struct st_linear_weight *both[] = {a, b};
    for (size_t i = 0; i < 2; i++) {
        rows[i] = malloc((size_t)a->n_in * sizeof(float));
        assert_non_null(both[i]->data);
    }
    for (size_t r = 0; r < a->n_out; r++) {
        for (size_t i = 0; i < 2; i++)
            st_dequantize_select(0)->fn[both[i]->dtype](
                (const char *)both[i]->data + r * both[i]->row_bytes, 0, a->n_in, rows[i]);
        assert_memory_equal(rows[0], rows[1], a->n_in * sizeof(float));
    }
    assert_int_equal(a->bias != NULL, b->bias != NULL);
    if (a->bias) assert_memory_equal(a->bias, b->bias, a->n_out * sizeof(float));
    free(rows[0]);
    free(rows[1]);
}

static void check(const char *name) {
    stint_model *folder = ts_golden_model(name, ""), *gguf = ts_golden_model(name, "model.gguf");
    const struct st_config *c = &folder->config;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct st_layer *a = &folder->weights.layers[i], *b = &gguf->weights.layers[i];
        assert_int_equal(st_config_blocks(c, i), st_config_blocks(&gguf->config, i));
        for (uint32_t e = 0; e < st_config_blocks(c, i); e++) {
            assert_int_equal(a->ffn[e].up.n_out, st_config_ffn(c, i, e));
            assert_same(&a->ffn[e].gate, &b->ffn[e].gate);
            assert_same(&a->ffn[e].up, &b->ffn[e].up);
            assert_same(&a->ffn[e].down, &b->ffn[e].down);
        }
        if (!st_config_is_routed(c, i, 0)) continue;
        assert_same(&a->router, &b->router);
        assert_int_equal(a->router_bias != NULL, c->router.biased);
        if (a->router_bias)
            assert_memory_equal(a->router_bias, b->router_bias, c->n_experts * sizeof(float));
        assert_int_equal(a->shared_gate.data != NULL, b->shared_gate.data != NULL);
        if (a->shared_gate.data) assert_same(&a->shared_gate, &b->shared_gate);
    }
    stint_model_close(folder);
    stint_model_close(gguf);
}

static void folders_and_gguf_bind_the_same_blocks(void **state) {
    (void)state;
    const char *const names[] = {"gpt-oss",      "gpt-oss-bf16", "qwen2moe",   "glm4-moe",
                                 "ernie4_5-moe", "lfm2moe",      "granitemoe", "granitehybrid-moe",
                                 "qwen35moe",    "qwen3next-moe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check(names[i]);
}

// Blocks stay in 4 bits.
static void stored_codes_stay_codes(void **state) {
    (void)state;
    stint_model *m = ts_golden_model("gpt-oss", "");
    assert_int_equal(m->weights.layers[0].ffn[0].down.dtype, ST_DTYPE_MXFP4);
    stint_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(folders_and_gguf_bind_the_same_blocks),
                                       cmocka_unit_test(stored_codes_stay_codes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
