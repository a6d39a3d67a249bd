// SPDX-License-Identifier: Apache-2.0
// Latent attention as it is bound: the one expansion of folders becomes the two of GGUF.
#include "support/checkpoints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void assert_same(const struct st_linear_weight *a, const struct st_linear_weight *b) {
    assert_int_equal(a->n_out, b->n_out);
    assert_int_equal(a->n_in, b->n_in);
    assert_int_equal(a->dtype, b->dtype);
    if (a->data || b->data) assert_memory_equal(a->data, b->data, a->n_out * a->row_bytes);
}

static void check(const char *name, bool ranked) {
    stint_model *folder = ts_golden_model(name, ""), *gguf = ts_golden_model(name, "model.gguf");
    const struct st_config *c = &folder->config, *d = &gguf->config;
    assert_memory_equal(&c->latent, &d->latent, sizeof c->latent);
    assert_int_equal(c->latent.query_rank != 0, ranked);
    assert_int_equal(c->head_dim, c->latent.rank + c->rope_dims);
    assert_int_equal(c->head_dim, d->head_dim);
    assert_float_equal(c->attn_scale, d->attn_scale, 1e-6);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct st_latent_weight *a = &folder->weights.layers[i].latent;
        const struct st_latent_weight *b = &gguf->weights.layers[i].latent;
        assert_same(&a->keys, &b->keys);
        assert_same(&a->values, &b->values);
        assert_same(&a->query, &b->query);
        assert_int_equal(a->query.data != NULL, ranked);
        assert_int_equal(a->query_norm.weight != NULL, ranked);
        assert_memory_equal(a->norm.weight, b->norm.weight, c->latent.rank * sizeof(float));
        assert_int_equal(folder->weights.layers[i].v.n_out, 0);
    }
    stint_model_close(folder);
    stint_model_close(gguf);
}

static void folders_and_gguf_bind_the_same_expansions(void **state) {
    (void)state;
    check("deepseek-v2", false);
    check("deepseek-v2-groups", true);
    check("deepseek-v3", true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(folders_and_gguf_bind_the_same_expansions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
