// SPDX-License-Identifier: Apache-2.0
// Tokens' inputs of each layer as they are bound, from a folder and from GGUF.
#include "support/checkpoints.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void assert_same(const struct st_linear_weight *a, const struct st_linear_weight *b,
                        uint32_t n_out, uint32_t n_in) {
    assert_int_equal(a->n_out, n_out);
    assert_int_equal(a->n_in, n_in);
    assert_int_equal(a->dtype, b->dtype);
    assert_memory_equal(a->data, b->data, a->n_out * a->row_bytes);
}

static void folders_and_gguf_bind_the_same(void **state) {
    (void)state;
    stint_model *folder = ts_golden_model("gemma4", "");
    stint_model *gguf = ts_golden_model("gemma4", "model.gguf");
    const struct st_config *c = &folder->config;
    const struct st_weights *a = &folder->weights, *b = &gguf->weights;
    uint32_t n = c->layer_input, all = n * c->n_layers;
    assert_same(&a->layer_embed, &b->layer_embed, c->layer_vocab, all);
    assert_same(&a->layer_project, &b->layer_project, all, c->hidden);
    assert_float_equal(a->layer_project.scale, 1.0 / sqrt(c->hidden), 1e-7);
    assert_memory_equal(a->layer_project_norm.weight, b->layer_project_norm.weight,
                        n * sizeof(float));
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct st_layer *l = &a->layers[i], *m = &b->layers[i];
        assert_same(&l->input_gate, &m->input_gate, n, c->hidden);
        assert_same(&l->input_out, &m->input_out, c->hidden, n);
        assert_true(*l->scale == *m->scale && *l->scale < 1.2f);
        assert_int_equal(l->k.data != NULL, st_config_has_cache(c, i));
        assert_int_equal(l->v_norm.weight != NULL, st_config_has_cache(c, i));
    }
    stint_model_close(folder);
    stint_model_close(gguf);
}

static void a_family_without_inputs_has_scales_alone(void **state) {
    (void)state;
    stint_model *m = ts_golden_model("gemma4-keys", "");
    assert_null(m->weights.layer_embed.data);
    assert_null(m->weights.layers[0].input_gate.data);
    assert_non_null(m->weights.layers[0].scale);
    stint_model_close(m);
    m = ts_golden_model("gemma2", "");
    assert_null(m->weights.layers[0].scale);
    stint_model_close(m);
}

static void hidden_states_are_bound_alike(void **state) {
    (void)state;
    stint_model *folder = ts_golden_model("gemma3n", "");
    stint_model *gguf = ts_golden_model("gemma3n", "model.gguf");
    const struct st_config *c = &folder->config;
    const struct st_weights *a = &folder->weights, *b = &gguf->weights;
    uint32_t n = c->n_streams, width = c->hidden;
    for (uint32_t i = 0; i + 1 < n; i++) {
        assert_same(&a->stream_in[i], &b->stream_in[i], width, width);
        assert_same(&a->stream_out[i], &b->stream_out[i], width, width);
    }
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct st_layer *l = &a->layers[i], *m = &b->layers[i];
        assert_same(&l->laurel_in, &m->laurel_in, c->laurel, width);
        assert_same(&l->laurel_out, &m->laurel_out, width, c->laurel);
        assert_same(&l->streams.router, &m->streams.router, n, width);
        assert_memory_equal(l->streams.predict, m->streams.predict, n * n * n * sizeof(float));
        assert_memory_equal(l->streams.correct, m->streams.correct, n * n * sizeof(float));
        assert_memory_equal(l->streams.scale, m->streams.scale, width * sizeof(float));
    }
    stint_model_close(folder);
    stint_model_close(gguf);
}

static void mixtures_are_bound_alike(void **state) {
    (void)state;
    stint_model *folder = ts_golden_model("gemma4-moe", "");
    stint_model *gguf = ts_golden_model("gemma4-moe", "model.gguf");
    const struct st_config *c = &folder->config;
    size_t row = c->hidden * sizeof(float);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct st_layer *l = &folder->weights.layers[i], *m = &gguf->weights.layers[i];
        const struct st_mixture_norms *a = &l->mixture, *b = &m->mixture;
        for (uint32_t e = 0; e < st_config_blocks(c, i); e++) {
            uint32_t width = st_config_ffn(c, i, e);
            assert_same(&l->ffn[e].gate, &m->ffn[e].gate, width, c->hidden);
            assert_same(&l->ffn[e].up, &m->ffn[e].up, width, c->hidden);
            assert_same(&l->ffn[e].down, &m->ffn[e].down, c->hidden, width);
        }
        assert_memory_not_equal(l->ffn[0].gate.data, l->ffn[0].up.data, l->ffn[0].up.row_bytes);
        assert_memory_equal(a->router, b->router, row);
        assert_memory_equal(a->experts, b->experts, row);
        assert_memory_equal(a->shared, b->shared, row);
        assert_memory_equal(a->experts_out, b->experts_out, row);
        assert_memory_equal(a->shared_out, b->shared_out, row);
        assert_memory_equal(a->scale, b->scale, c->n_experts * sizeof(float));
        for (uint32_t k = 0; k < c->hidden; k++) assert_true(l->ffn_norm.weight[k] == 1.0f);
    }
    stint_model_close(folder);
    stint_model_close(gguf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_and_gguf_bind_the_same),
        cmocka_unit_test(hidden_states_are_bound_alike),
        cmocka_unit_test(mixtures_are_bound_alike),
        cmocka_unit_test(a_family_without_inputs_has_scales_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
