// SPDX-License-Identifier: Apache-2.0
// What differs between layers, as a GGUF file and as a folder say it.
#include "support/checkpoints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void check(const char *name) {
    stint_model *folder = ts_golden_model(name, ""), *gguf = ts_golden_model(name, "model.gguf");
    const struct st_config *c = &folder->config, *d = &gguf->config;
    assert_memory_equal(&c->local, &d->local, sizeof c->local);
    assert_memory_equal(c->cache_back, d->cache_back, sizeof c->cache_back);
    assert_memory_equal(c->keys_as_values, d->keys_as_values, sizeof c->keys_as_values);
    assert_int_equal(c->layer_input, d->layer_input);
    assert_true(c->layer_input == 0 || c->layer_vocab == d->layer_vocab);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        struct st_mixer_widths a = st_config_mixer(c, i), b = st_config_mixer(d, i);
        struct st_heads heads = st_config_heads(c, i), others = st_config_heads(d, i);
        assert_memory_equal(&a, &b, sizeof a);
        assert_memory_equal(&heads, &others, sizeof heads);
        assert_int_equal(st_config_blocks(c, i), st_config_blocks(d, i));
        for (uint32_t e = 0; e < st_config_blocks(c, i); e++)
            assert_int_equal(st_config_ffn(c, i, e), st_config_ffn(d, i, e));
    }
    assert_int_equal(c->n_streams, d->n_streams);
    assert_int_equal(c->laurel, d->laurel);
    assert_memory_equal(c->cut, d->cut, sizeof c->cut);
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (c->cut[i]) assert_float_equal(c->cutoff[i], d->cutoff[i], 1e-5);
    assert_float_equal(c->attn_scale, 1.0, 0.0);
    assert_float_equal(d->attn_scale, 1.0, 0.0);
    stint_model_close(folder);
    stint_model_close(gguf);
}

static void folders_and_gguf_say_the_same(void **state) {
    (void)state;
    check("gemma4");
    check("gemma4-keys");
    check("gemma4-moe");
    check("gemma3n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(folders_and_gguf_say_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
