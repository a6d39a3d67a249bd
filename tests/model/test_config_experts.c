// SPDX-License-Identifier: Apache-2.0
// Mixtures in config.json: routers, layers without experts, shared experts, and what is refused.
#include "support/checkpoints.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define SIZES                                                                                      \
    "\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":4,\"vocab_size\":100,"     \
    "\"intermediate_size\":128,\"moe_intermediate_size\":32,"

static struct st_config config; // too large for a stack

static stint_status read_text(const char *text) {
    return ts_read_config(text, &config);
}

static void assert_read(const char *text) {
    ts_assert_config(text, &config);
}

static void assert_refused(const char *text, const char *mark) {
    assert_int_equal(read_text(text), STINT_E_FORMAT);
    if (!strstr(st_error_text(), mark)) fail_msg("'%s' lacks '%s'", st_error_text(), mark);
}

static void families_have_their_routers(void **state) {
    (void)state;
    assert_read("{\"model_type\":\"qwen3_moe\"," SIZES
                "\"num_experts\":8,\"num_experts_per_tok\":2}");
    assert_true(config.router.shares && !config.router.sigmoid && !config.router.biased);
    assert_read("{\"model_type\":\"qwen3_moe\"," SIZES "\"moe_intermediate_size\":24,"
                "\"num_experts\":512,\"num_experts_per_tok\":10}"); // as many as Qwen3-Next has
    assert_read("{\"model_type\":\"mixtral\"," SIZES "\"num_local_experts\":8}");
    assert_true(!config.router.shares && config.n_experts_used == 2);
    assert_read("{\"model_type\":\"glm4_moe\"," SIZES
                "\"n_routed_experts\":8,\"num_experts_per_tok\":3,\"n_group\":4,\"topk_group\":2,"
                "\"routed_scaling_factor\":2.5}");
    assert_true(config.router.sigmoid && config.router.biased && config.router.group_sums);
    assert_true(config.router.n_groups == 4 && config.router.n_groups_used == 2);
    assert_true(config.router.scale > 2.4 && config.router.scale < 2.6);
    assert_read("{\"model_type\":\"ernie4_5_moe\"," SIZES "\"moe_num_experts\":6,\"moe_k\":2,"
                "\"moe_num_shared_experts\":2}");
    assert_true(config.router.biased && !config.router.sigmoid && !config.router.shares);
    assert_true(config.dense[0] && !config.dense[1]);
    assert_int_equal(config.shared_ffn, 64);
    assert_read("{\"model_type\":\"lfm2_moe\"," SIZES
                "\"num_experts\":6,\"use_expert_bias\":false}");
    assert_true(config.router.sigmoid && !config.router.biased && !config.router.shares);
    assert_true(config.dense[1] && !config.dense[2]);
    assert_int_equal(config.dense_ffn, 128);
    assert_read("{\"model_type\":\"granitemoe\"," SIZES "\"num_local_experts\":6,"
                "\"shared_intermediate_size\":48}");
    assert_true(!config.router.sigmoid && !config.router.shares);
    assert_int_equal(config.shared_ffn, 48);
}

static void blocks_follow_the_layer(void **state) {
    (void)state;
    assert_read("{\"model_type\":\"qwen2_moe\"," SIZES "\"num_experts\":6,"
                "\"num_experts_per_tok\":2,\"mlp_only_layers\":[2],\"decoder_sparse_step\":2,"
                "\"shared_expert_intermediate_size\":48}");
    const uint8_t dense[] = {1, 0, 1, 0};
    assert_memory_equal(config.dense, dense, sizeof dense);
    assert_int_equal(st_config_blocks(&config, 0), 1);
    assert_int_equal(st_config_blocks(&config, 1), 7);
    assert_int_equal(st_config_max_blocks(&config), 7);
    assert_int_equal(st_config_ffn(&config, 0, 0), 128);
    assert_int_equal(st_config_ffn(&config, 1, 5), 32);
    assert_int_equal(st_config_ffn(&config, 1, 6), 48);
    assert_int_equal(st_config_widest_block(&config, 0), 128);
    assert_int_equal(st_config_widest_block(&config, 1), 32);
    assert_int_equal(st_config_widest_ffn(&config), 128);
    assert_true(st_config_is_routed(&config, 1, 5) && !st_config_is_routed(&config, 1, 6));
    assert_false(st_config_is_routed(&config, 0, 0));
    assert_read("{\"model_type\":\"qwen2\"," SIZES "\"head_dim\":16}");
    assert_int_equal(st_config_max_blocks(&config), 1);
    assert_int_equal(st_config_ffn(&config, 3, 0), st_config_widest_ffn(&config));
}

static void hostile_mixtures_are_refused(void **state) {
    (void)state;
    assert_refused("{\"model_type\":\"glm4_moe\"," SIZES "\"n_routed_experts\":8,"
                   "\"num_experts_per_tok\":3,\"n_group\":3,\"topk_group\":2}",
                   "groups");
    assert_refused("{\"model_type\":\"glm4_moe\"," SIZES "\"n_routed_experts\":8,"
                   "\"num_experts_per_tok\":3,\"n_group\":4,\"topk_group\":1}",
                   "groups");
    assert_refused("{\"model_type\":\"glm4_moe\"," SIZES "\"n_routed_experts\":8,"
                   "\"num_experts_per_tok\":3,\"n_group\":4,\"topk_group\":5}",
                   "groups");
    assert_refused("{\"model_type\":\"qwen2_moe\"," SIZES "\"num_experts\":6,"
                   "\"num_experts_per_tok\":7}",
                   "7 of 6 experts");
    assert_refused("{\"model_type\":\"qwen2_moe\"," SIZES "\"num_experts\":6,"
                   "\"num_experts_per_tok\":2,\"mlp_only_layers\":[4]}",
                   "mlp_only_layers");
    assert_refused("{\"model_type\":\"glm4_moe\"," SIZES "\"n_routed_experts\":8,"
                   "\"num_experts_per_tok\":3,\"n_shared_experts\":2000000000}",
                   "shared");
    assert_refused("{\"model_type\":\"glm4_moe\"," SIZES "\"n_routed_experts\":8,"
                   "\"num_experts_per_tok\":3,\"routed_scaling_factor\":0}",
                   "times 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_have_their_routers),
        cmocka_unit_test(blocks_follow_the_layer),
        cmocka_unit_test(hostile_mixtures_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
