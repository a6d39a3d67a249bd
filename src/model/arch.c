// SPDX-License-Identifier: Apache-2.0
#include "model/arch.h"

#include <stddef.h>

// What most Hugging Face folders call their tensors; the prefix before "model." is found by
// st_weights.
static const struct st_names hf_names = {{
    [ST_ROLE_EMBED] = "model.embed_tokens",
    [ST_ROLE_FINAL_NORM] = "model.norm",
    [ST_ROLE_HEAD] = "lm_head",
    [ST_ROLE_ATTN_NORM] = "model.layers.%u.input_layernorm",
    [ST_ROLE_Q] = "model.layers.%u.self_attn.q_proj",
    [ST_ROLE_K] = "model.layers.%u.self_attn.k_proj",
    [ST_ROLE_V] = "model.layers.%u.self_attn.v_proj",
    [ST_ROLE_QKV] = "model.layers.%u.self_attn.qkv_proj",
    [ST_ROLE_O] = "model.layers.%u.self_attn.o_proj",
    [ST_ROLE_Q_NORM] = "model.layers.%u.self_attn.q_norm",
    [ST_ROLE_K_NORM] = "model.layers.%u.self_attn.k_norm",
    [ST_ROLE_FFN_NORM] = "model.layers.%u.post_attention_layernorm",
    [ST_ROLE_GATE] = "model.layers.%u.mlp.gate_proj",
    [ST_ROLE_UP] = "model.layers.%u.mlp.up_proj",
    [ST_ROLE_GATE_UP] = "model.layers.%u.mlp.gate_up_proj",
    [ST_ROLE_DOWN] = "model.layers.%u.mlp.down_proj",
    [ST_ROLE_ROUTER] = "model.layers.%u.block_sparse_moe.gate",
    [ST_ROLE_EXPERT_GATE] = "model.layers.%u.block_sparse_moe.experts.%u.w1",
    [ST_ROLE_EXPERT_UP] = "model.layers.%u.block_sparse_moe.experts.%u.w3",
    [ST_ROLE_EXPERT_DOWN] = "model.layers.%u.block_sparse_moe.experts.%u.w2",
    [ST_ROLE_SINKS] = "model.layers.%u.self_attn.sinks",
    [ST_ROLE_Q_A] = "model.layers.%u.self_attn.q_a_proj",
    [ST_ROLE_Q_A_NORM] = "model.layers.%u.self_attn.q_a_layernorm",
    [ST_ROLE_Q_B] = "model.layers.%u.self_attn.q_b_proj",
    [ST_ROLE_KV_A] = "model.layers.%u.self_attn.kv_a_proj_with_mqa",
    [ST_ROLE_KV_A_NORM] = "model.layers.%u.self_attn.kv_a_layernorm",
    [ST_ROLE_KV_B] = "model.layers.%u.self_attn.kv_b_proj",
}};

static const struct st_names sandwich_names = {{
    [ST_ROLE_POST_ATTN_NORM] = "model.layers.%u.post_attention_layernorm",
    [ST_ROLE_FFN_NORM] = "model.layers.%u.pre_feedforward_layernorm",
    [ST_ROLE_POST_FFN_NORM] = "model.layers.%u.post_feedforward_layernorm",
}};

static const struct st_names branch_names = {{
    [ST_ROLE_POST_ATTN_NORM] = "model.layers.%u.post_attention_layernorm",
    [ST_ROLE_POST_FFN_NORM] = "model.layers.%u.post_feedforward_layernorm",
}};

static const struct st_names glm4_names = {{
    [ST_ROLE_POST_ATTN_NORM] = "model.layers.%u.post_self_attn_layernorm",
    [ST_ROLE_POST_FFN_NORM] = "model.layers.%u.post_mlp_layernorm",
}};

#define SHARED(of)                                                                                 \
    [ST_ROLE_SHARED_GATE] = "model.layers.%u.mlp." of ".gate_proj",                                \
    [ST_ROLE_SHARED_UP] = "model.layers.%u.mlp." of ".up_proj",                                    \
    [ST_ROLE_SHARED_DOWN] = "model.layers.%u.mlp." of ".down_proj"

#define EXPERTS                                                                                    \
    [ST_ROLE_ROUTER] = "model.layers.%u.mlp.gate",                                                 \
    [ST_ROLE_EXPERT_GATE] = "model.layers.%u.mlp.experts.%u.gate_proj",                            \
    [ST_ROLE_EXPERT_UP] = "model.layers.%u.mlp.experts.%u.up_proj",                                \
    [ST_ROLE_EXPERT_DOWN] = "model.layers.%u.mlp.experts.%u.down_proj"

// Qwen's: one more for all tokens, with a gate of its own.
#define EXPERTS_AND_GATED                                                                          \
    EXPERTS, SHARED("shared_expert"),                                                              \
        [ST_ROLE_SHARED_INPUT_GATE] = "model.layers.%u.mlp.shared_expert_gate"

static const struct st_names moe_names = {{EXPERTS}};
static const struct st_names qwen2_moe_names = {{EXPERTS_AND_GATED}};

static const struct st_names glm4_moe_names = {{
    EXPERTS,
    SHARED("shared_experts"),
    [ST_ROLE_ROUTER_BIAS] = "model.layers.%u.mlp.gate.e_score_correction_bias",
}};

static const struct st_names ernie_moe_names = {{
    EXPERTS,
    SHARED("shared_experts"),
    [ST_ROLE_ROUTER_BIAS] = "model.layers.%u.mlp.moe_statics.e_score_correction_bias",
}};

static const struct st_names gpt_oss_names = {{
    [ST_ROLE_ROUTER] = "model.layers.%u.mlp.router",
    [ST_ROLE_EXPERTS_GATE_UP] = "model.layers.%u.mlp.experts.gate_up_proj",
    [ST_ROLE_EXPERTS_DOWN] = "model.layers.%u.mlp.experts.down_proj",
}};

static const struct st_names phi_names = {{
    [ST_ROLE_FINAL_NORM] = "model.final_layernorm",
    [ST_ROLE_O] = "model.layers.%u.self_attn.dense",
    [ST_ROLE_Q_NORM] = "model.layers.%u.self_attn.q_layernorm",
    [ST_ROLE_K_NORM] = "model.layers.%u.self_attn.k_layernorm",
    [ST_ROLE_UP] = "model.layers.%u.mlp.fc1",
    [ST_ROLE_DOWN] = "model.layers.%u.mlp.fc2",
}};

// One norm per head: the second %u is the head.
static const struct st_names stablelm_names = {{
    [ST_ROLE_Q_NORM] = "model.layers.%u.self_attn.q_layernorm.norms.%u",
    [ST_ROLE_K_NORM] = "model.layers.%u.self_attn.k_layernorm.norms.%u",
}};

static const struct st_names opt_names = {{
    [ST_ROLE_EMBED] = "model.decoder.embed_tokens",
    [ST_ROLE_POSITIONS] = "model.decoder.embed_positions",
    [ST_ROLE_PROJECT_IN] = "model.decoder.project_in",
    [ST_ROLE_PROJECT_OUT] = "model.decoder.project_out",
    [ST_ROLE_FINAL_NORM] = "model.decoder.final_layer_norm",
    [ST_ROLE_ATTN_NORM] = "model.decoder.layers.%u.self_attn_layer_norm",
    [ST_ROLE_Q] = "model.decoder.layers.%u.self_attn.q_proj",
    [ST_ROLE_K] = "model.decoder.layers.%u.self_attn.k_proj",
    [ST_ROLE_V] = "model.decoder.layers.%u.self_attn.v_proj",
    [ST_ROLE_O] = "model.decoder.layers.%u.self_attn.out_proj",
    [ST_ROLE_FFN_NORM] = "model.decoder.layers.%u.final_layer_norm",
    [ST_ROLE_UP] = "model.decoder.layers.%u.fc1",
    [ST_ROLE_DOWN] = "model.decoder.layers.%u.fc2",
}};

static const struct st_names lfm2_names = {{
    [ST_ROLE_FINAL_NORM] = "model.embedding_norm",
    [ST_ROLE_ATTN_NORM] = "model.layers.%u.operator_norm",
    [ST_ROLE_O] = "model.layers.%u.self_attn.out_proj",
    [ST_ROLE_Q_NORM] = "model.layers.%u.self_attn.q_layernorm",
    [ST_ROLE_K_NORM] = "model.layers.%u.self_attn.k_layernorm",
    [ST_ROLE_FFN_NORM] = "model.layers.%u.ffn_norm",
    [ST_ROLE_GATE] = "model.layers.%u.feed_forward.w1",
    [ST_ROLE_UP] = "model.layers.%u.feed_forward.w3",
    [ST_ROLE_DOWN] = "model.layers.%u.feed_forward.w2",
    [ST_ROLE_CONV] = "model.layers.%u.conv.conv",
    [ST_ROLE_CONV_IN] = "model.layers.%u.conv.in_proj",
    [ST_ROLE_CONV_OUT] = "model.layers.%u.conv.out_proj",
}};

#define QWEN35_DELTA                                                                               \
    [ST_ROLE_CONV] = "model.layers.%u.linear_attn.conv1d",                                         \
    [ST_ROLE_CONV_IN] = "model.layers.%u.linear_attn.in_proj_qkv",                                 \
    [ST_ROLE_CONV_OUT] = "model.layers.%u.linear_attn.out_proj",                                   \
    [ST_ROLE_STATE_GATE] = "model.layers.%u.linear_attn.in_proj_z",                                \
    [ST_ROLE_STATE_NORM] = "model.layers.%u.linear_attn.norm",                                     \
    [ST_ROLE_STATE_RATE] = "model.layers.%u.linear_attn.in_proj_b",                                \
    [ST_ROLE_STATE_DECAY] = "model.layers.%u.linear_attn.in_proj_a",                               \
    [ST_ROLE_STATE_DECAY_BIAS] = "model.layers.%u.linear_attn.dt_bias",                            \
    [ST_ROLE_STATE_DECAY_SCALE] = "model.layers.%u.linear_attn.A_log"

static const struct st_names qwen35_names = {{QWEN35_DELTA}};

static const struct st_names qwen35_moe_names = {{QWEN35_DELTA, EXPERTS_AND_GATED}};

static const struct st_names qwen3next_names = {{
    EXPERTS_AND_GATED,
    [ST_ROLE_CONV] = "model.layers.%u.linear_attn.conv1d",
    [ST_ROLE_CONV_IN] = "model.layers.%u.linear_attn.in_proj_qkvz",
    [ST_ROLE_CONV_OUT] = "model.layers.%u.linear_attn.out_proj",
    [ST_ROLE_STATE_NORM] = "model.layers.%u.linear_attn.norm",
    [ST_ROLE_STATE_RATE] = "model.layers.%u.linear_attn.in_proj_ba",
    [ST_ROLE_STATE_DECAY_BIAS] = "model.layers.%u.linear_attn.dt_bias",
    [ST_ROLE_STATE_DECAY_SCALE] = "model.layers.%u.linear_attn.A_log",
}};

static const struct st_names granite_hybrid_names = {{
    [ST_ROLE_GATE_UP] = "model.layers.%u.shared_mlp.input_linear",
    [ST_ROLE_DOWN] = "model.layers.%u.shared_mlp.output_linear",
    [ST_ROLE_CONV] = "model.layers.%u.mamba.conv1d",
    [ST_ROLE_CONV_IN] = "model.layers.%u.mamba.in_proj",
    [ST_ROLE_CONV_OUT] = "model.layers.%u.mamba.out_proj",
    [ST_ROLE_STATE_NORM] = "model.layers.%u.mamba.norm",
    [ST_ROLE_STATE_DECAY_BIAS] = "model.layers.%u.mamba.dt_bias",
    [ST_ROLE_STATE_DECAY_SCALE] = "model.layers.%u.mamba.A_log",
    [ST_ROLE_STATE_SKIP] = "model.layers.%u.mamba.D",
}};

static const struct st_names gguf_names = {{
    [ST_ROLE_EMBED] = "token_embd",
    [ST_ROLE_FINAL_NORM] = "output_norm",
    [ST_ROLE_HEAD] = "output",
    [ST_ROLE_ROPE_FACTORS] = "rope_freqs",
    [ST_ROLE_ROPE_SHORT] = "rope_factors_short",
    [ST_ROLE_ROPE_LONG] = "rope_factors_long",
    [ST_ROLE_ATTN_NORM] = "blk.%u.attn_norm",
    [ST_ROLE_Q] = "blk.%u.attn_q",
    [ST_ROLE_K] = "blk.%u.attn_k",
    [ST_ROLE_V] = "blk.%u.attn_v",
    [ST_ROLE_QKV] = "blk.%u.attn_qkv",
    [ST_ROLE_O] = "blk.%u.attn_output",
    [ST_ROLE_Q_NORM] = "blk.%u.attn_q_norm",
    [ST_ROLE_K_NORM] = "blk.%u.attn_k_norm",
    [ST_ROLE_POST_ATTN_NORM] = "blk.%u.post_attention_norm",
    [ST_ROLE_FFN_NORM] = "blk.%u.ffn_norm",
    [ST_ROLE_GATE] = "blk.%u.ffn_gate",
    [ST_ROLE_UP] = "blk.%u.ffn_up",
    [ST_ROLE_GATE_UP] = "blk.%u.ffn_up", // Phi-3 names it like up; its rows differ
    [ST_ROLE_DOWN] = "blk.%u.ffn_down",
    [ST_ROLE_POST_FFN_NORM] = "blk.%u.post_ffw_norm",
    [ST_ROLE_ROUTER] = "blk.%u.ffn_gate_inp",
    [ST_ROLE_EXPERT_GATE] = "blk.%u.ffn_gate.%u",
    [ST_ROLE_EXPERT_UP] = "blk.%u.ffn_up.%u",
    [ST_ROLE_EXPERT_DOWN] = "blk.%u.ffn_down.%u",
    [ST_ROLE_EXPERTS_GATE] = "blk.%u.ffn_gate_exps",
    [ST_ROLE_EXPERTS_UP] = "blk.%u.ffn_up_exps",
    [ST_ROLE_EXPERTS_DOWN] = "blk.%u.ffn_down_exps",
    [ST_ROLE_SINKS] = "blk.%u.attn_sinks",
    [ST_ROLE_Q_A] = "blk.%u.attn_q_a",
    [ST_ROLE_Q_A_NORM] = "blk.%u.attn_q_a_norm",
    [ST_ROLE_Q_B] = "blk.%u.attn_q_b",
    [ST_ROLE_KV_A] = "blk.%u.attn_kv_a_mqa",
    [ST_ROLE_KV_A_NORM] = "blk.%u.attn_kv_a_norm",
    [ST_ROLE_K_B] = "blk.%u.attn_k_b",
    [ST_ROLE_V_B] = "blk.%u.attn_v_b",
    [ST_ROLE_ROUTER_BIAS] = "blk.%u.exp_probs_b",
    [ST_ROLE_SHARED_INPUT_GATE] = "blk.%u.ffn_gate_inp_shexp",
    [ST_ROLE_SHARED_GATE] = "blk.%u.ffn_gate_shexp",
    [ST_ROLE_SHARED_UP] = "blk.%u.ffn_up_shexp",
    [ST_ROLE_SHARED_DOWN] = "blk.%u.ffn_down_shexp",
    [ST_ROLE_CONV] = "blk.%u.shortconv.conv",
    [ST_ROLE_CONV_IN] = "blk.%u.shortconv.in_proj",
    [ST_ROLE_CONV_OUT] = "blk.%u.shortconv.out_proj",
}};

static const struct st_names qwen35_gguf_names = {{
    [ST_ROLE_FFN_NORM] = "blk.%u.post_attention_norm",
    [ST_ROLE_CONV] = "blk.%u.ssm_conv1d",
    [ST_ROLE_CONV_IN] = "blk.%u.attn_qkv",
    [ST_ROLE_CONV_OUT] = "blk.%u.ssm_out",
    [ST_ROLE_STATE_GATE] = "blk.%u.attn_gate",
    [ST_ROLE_STATE_NORM] = "blk.%u.ssm_norm",
    [ST_ROLE_STATE_RATE] = "blk.%u.ssm_beta",
    [ST_ROLE_STATE_DECAY] = "blk.%u.ssm_alpha",
    [ST_ROLE_STATE_DECAY_BIAS] = "blk.%u.ssm_dt.bias",
    [ST_ROLE_STATE_DECAY_SCALE] = "blk.%u.ssm_a",
}};

static const struct st_names qwen3next_gguf_names = {{
    [ST_ROLE_FFN_NORM] = "blk.%u.post_attention_norm",
    [ST_ROLE_CONV] = "blk.%u.ssm_conv1d",
    [ST_ROLE_CONV_IN] = "blk.%u.attn_qkv",
    [ST_ROLE_CONV_OUT] = "blk.%u.ssm_out",
    [ST_ROLE_STATE_GATE] = "blk.%u.attn_gate",
    [ST_ROLE_STATE_NORM] = "blk.%u.ssm_norm",
    [ST_ROLE_STATE_RATE] = "blk.%u.ssm_ba",
    [ST_ROLE_STATE_DECAY_BIAS] = "blk.%u.ssm_dt.bias",
    [ST_ROLE_STATE_DECAY_SCALE] = "blk.%u.ssm_a",
}};

static const struct st_names mamba_gguf_names = {{
    [ST_ROLE_CONV] = "blk.%u.ssm_conv1d",
    [ST_ROLE_CONV_IN] = "blk.%u.ssm_in",
    [ST_ROLE_CONV_OUT] = "blk.%u.ssm_out",
    [ST_ROLE_STATE_NORM] = "blk.%u.ssm_norm",
    [ST_ROLE_STATE_DECAY_BIAS] = "blk.%u.ssm_dt.bias",
    [ST_ROLE_STATE_DECAY_SCALE] = "blk.%u.ssm_a",
    [ST_ROLE_STATE_SKIP] = "blk.%u.ssm_d",
}};

static const struct st_names lfm2_gguf_names = {{
    [ST_ROLE_FINAL_NORM] = "token_embd_norm",
}};

static const struct st_names glm4_moe_gguf_names = {{
    [ST_ROLE_FFN_NORM] = "blk.%u.post_attention_norm",
}};

static const struct st_names gpt_oss_gguf_names = {{
    [ST_ROLE_FFN_NORM] = "blk.%u.post_attention_norm",
}};

#define GEMMA (ST_ARCH_GATED | ST_ARCH_NORM_PLUS_ONE | ST_ARCH_EMBED_SCALE | ST_ARCH_GELU_IS_TANH)

#define DELTA_NET                                                                                  \
    (ST_ARCH_GATED | ST_ARCH_QK_NORM | ST_ARCH_NORM_PLUS_ONE | ST_ARCH_GATED_ATTENTION)
#define DELTA_NET_DEFAULTS                                                                         \
    "{\"head_dim\":256,\"rms_norm_eps\":1e-6,\"partial_rotary_factor\":0.25,"                      \
    "\"full_attention_interval\":4,\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":128,"      \
    "\"linear_value_head_dim\":128,\"linear_num_key_heads\":16,\"linear_num_value_heads\":32}"

const struct st_arch st_archs[] = {
    {.name = "llama",
     .model_types = {"llama"},
     .gguf = "llama",
     .flags = ST_ARCH_GATED | ST_ARCH_GGUF_INTERLEAVED,
     .window = ST_WINDOW_ALL},
    {.name = "mistral",
     .model_types = {"mistral"},
     .gguf = "mistral",
     .flags = ST_ARCH_GATED | ST_ARCH_GGUF_INTERLEAVED,
     .window = ST_WINDOW_ALL},
    {.name = "ministral3",
     .model_types = {"ministral3", "mistral3"},
     .gguf = "mistral3",
     .flags = ST_ARCH_GATED | ST_ARCH_GGUF_INTERLEAVED,
     .window = ST_WINDOW_ALL},
    {.name = "mixtral",
     .model_types = {"mixtral"},
     .flags = ST_ARCH_GATED,
     .window = ST_WINDOW_ALL},
    {.name = "qwen2",
     .model_types = {"qwen2"},
     .gguf = "qwen2",
     .flags = ST_ARCH_GATED | ST_ARCH_QKV_BIAS,
     .window = ST_WINDOW_FROM},
    {.name = "qwen3",
     .model_types = {"qwen3"},
     .gguf = "qwen3",
     .flags = ST_ARCH_GATED | ST_ARCH_QK_NORM,
     .window = ST_WINDOW_FROM},
    {.name = "qwen3moe",
     .model_types = {"qwen3_moe"},
     .gguf = "qwen3moe",
     .flags = ST_ARCH_GATED | ST_ARCH_QK_NORM,
     .window = ST_WINDOW_FROM,
     .names = &moe_names,
     .defaults = "{\"norm_topk_prob\":false}"},
    {.name = "qwen2moe",
     .model_types = {"qwen2_moe"},
     .gguf = "qwen2moe",
     .flags = ST_ARCH_GATED | ST_ARCH_QKV_BIAS | ST_ARCH_ROUTE_ALL,
     .window = ST_WINDOW_FROM,
     .names = &qwen2_moe_names},
    {.name = "olmoe",
     .model_types = {"olmoe"},
     .gguf = "olmoe",
     .flags = ST_ARCH_GATED | ST_ARCH_QK_NORM_WHOLE | ST_ARCH_ROUTE_ALL,
     .names = &moe_names},
    {.name = "glm4moe",
     .model_types = {"glm4_moe"},
     .gguf = "glm4moe",
     .flags = ST_ARCH_GATED | ST_ARCH_ROUTE_SIGMOID | ST_ARCH_ROUTE_BIAS,
     .names = &glm4_moe_names,
     .gguf_names = &glm4_moe_gguf_names,
     .defaults = "{\"partial_rotary_factor\":0.5}"},
    {.name = "ernie4_5-moe",
     .model_types = {"ernie4_5_moe"},
     .gguf = "ernie4_5-moe",
     .flags = ST_ARCH_GATED | ST_ARCH_INTERLEAVED | ST_ARCH_ROUTE_BIAS,
     .names = &ernie_moe_names,
     .defaults = "{\"rope_theta\":500000.0,\"moe_layer_start_index\":1}"},
    {.name = "deepseek2",
     .model_types = {"deepseek_v2"},
     .gguf = "deepseek2",
     .flags = ST_ARCH_GATED | ST_ARCH_INTERLEAVED | ST_ARCH_ROUTE_ALL,
     .names = &glm4_moe_names},
    {.name = "deepseek3",
     .model_types = {"deepseek_v3", "glm4_moe_lite"}, // that is GLM-4.7-Flash
     .flags = ST_ARCH_GATED | ST_ARCH_INTERLEAVED | ST_ARCH_ROUTE_SIGMOID | ST_ARCH_ROUTE_BIAS,
     .names = &glm4_moe_names},
    {.name = "gpt-oss",
     .model_types = {"gpt_oss"},
     .gguf = "gpt-oss",
     .flags = ST_ARCH_GATED | ST_ARCH_BIAS | ST_ARCH_SINKS | ST_ARCH_CLAMPED | ST_ARCH_WHOLE_YARN |
              ST_ARCH_EXPERT_COLUMNS,
     .window = ST_WINDOW_ALTERNATE,
     .names = &gpt_oss_names,
     .gguf_names = &gpt_oss_gguf_names,
     .defaults = "{\"head_dim\":64,\"sliding_window\":128,\"rope_theta\":150000.0}"},
    {.name = "smollm3",
     .model_types = {"smollm3"},
     .gguf = "smollm3",
     .flags = ST_ARCH_GATED | ST_ARCH_GGUF_INTERLEAVED,
     .window = ST_WINDOW_FROM,
     .unrotated_pattern = 4},
    {.name = "olmo2",
     .model_types = {"olmo2", "olmo3"},
     .gguf = "olmo2",
     .block = ST_BLOCK_BRANCH,
     .flags = ST_ARCH_GATED | ST_ARCH_QK_NORM_WHOLE,
     .window = ST_WINDOW_PATTERN,
     .window_pattern = 4,
     .names = &branch_names},
    {.name = "glm4",
     .model_types = {"glm4"},
     .gguf = "glm4",
     .block = ST_BLOCK_SANDWICH,
     .flags = ST_ARCH_GATED | ST_ARCH_INTERLEAVED,
     .names = &glm4_names,
     .defaults = "{\"partial_rotary_factor\":0.5}"},
    {.name = "ernie4_5",
     .model_types = {"ernie4_5"},
     .gguf = "ernie4_5",
     .flags = ST_ARCH_GATED | ST_ARCH_INTERLEAVED},
    {.name = "gemma", .model_types = {"gemma"}, .gguf = "gemma", .flags = GEMMA},
    {.name = "gemma2",
     .model_types = {"gemma2"},
     .gguf = "gemma2",
     .flags = GEMMA,
     .block = ST_BLOCK_SANDWICH,
     .window = ST_WINDOW_ALTERNATE,
     .names = &sandwich_names,
     .defaults = "{\"query_pre_attn_scalar\":256,\"sliding_window\":4096,"
                 "\"attn_logit_softcapping\":50.0,\"final_logit_softcapping\":30.0}",
     .gguf_wide_scale_layers = 46,
     .gguf_window = 4096,
     .gguf_softcaps = {50.0, 30.0}},
    {.name = "gemma3",
     .model_types = {"gemma3_text", "gemma3"},
     .gguf = "gemma3",
     .flags = GEMMA | ST_ARCH_QK_NORM,
     .block = ST_BLOCK_SANDWICH,
     .window = ST_WINDOW_PATTERN,
     .names = &sandwich_names,
     .defaults = "{\"num_attention_heads\":8,\"num_key_value_heads\":4,\"head_dim\":256,"
                 "\"vocab_size\":262208,\"rms_norm_eps\":1e-6,\"rope_theta\":1000000.0,"
                 "\"rope_local_base_freq\":10000.0,\"query_pre_attn_scalar\":256,"
                 "\"sliding_window\":4096,\"max_position_embeddings\":131072}",
     .gguf_wide_scale_layers = 62,
     .window_pattern = 6,
     .gguf_local_theta = 10000.0},
    {.name = "phi",
     .model_types = {"phi"},
     .gguf = "phi2",
     .norm = ST_NORM_LAYER,
     .block = ST_BLOCK_PARALLEL,
     .flags = ST_ARCH_BIAS | ST_ARCH_HEAD_BIAS,
     .names = &phi_names,
     .defaults = "{\"partial_rotary_factor\":0.5}"},
    {.name = "phi3",
     .model_types = {"phi3"},
     .gguf = "phi3",
     .flags = ST_ARCH_GATED,
     .window = ST_WINDOW_ALL},
    {.name = "stablelm",
     .model_types = {"stablelm", "stablelm_epoch"},
     .gguf = "stablelm",
     .norm = ST_NORM_LAYER,
     .flags = ST_ARCH_GATED,
     .names = &stablelm_names,
     .defaults = "{\"partial_rotary_factor\":0.25}"},
    {.name = "opt",
     .model_types = {"opt"},
     .norm = ST_NORM_LAYER,
     .flags = ST_ARCH_BIAS | ST_ARCH_POSITIONS,
     .names = &opt_names,
     .defaults = "{\"hidden_act\":\"relu\",\"layer_norm_eps\":1e-5}"},
    {.name = "lfm2",
     .model_types = {"lfm2", "lfm2_vl"},
     .gguf = "lfm2",
     .form = ST_FORM_CONV,
     .flags = ST_ARCH_GATED | ST_ARCH_QK_NORM,
     .names = &lfm2_names,
     .gguf_names = &lfm2_gguf_names,
     .defaults = "{\"rope_theta\":1000000.0,\"norm_eps\":1e-5,\"conv_L_cache\":3,"
                 "\"tie_word_embeddings\":true}"},
    {.name = "qwen35",
     .model_types = {"qwen3_5", "qwen3_5_text"},
     .gguf = "qwen35",
     .form = ST_FORM_DELTA,
     .flags = DELTA_NET | ST_ARCH_GGUF_TILED_HEADS,
     .names = &qwen35_names,
     .gguf_names = &qwen35_gguf_names,
     .defaults = DELTA_NET_DEFAULTS},
    {.name = "qwen35moe",
     .model_types = {"qwen3_5_moe", "qwen3_5_moe_text"},
     .gguf = "qwen35moe",
     .form = ST_FORM_DELTA,
     .flags = DELTA_NET | ST_ARCH_GGUF_TILED_HEADS,
     .names = &qwen35_moe_names,
     .gguf_names = &qwen35_gguf_names,
     .defaults = DELTA_NET_DEFAULTS},
    {.name = "qwen3next",
     .model_types = {"qwen3_next"},
     .gguf = "qwen3next",
     .form = ST_FORM_DELTA,
     .flags = DELTA_NET | ST_ARCH_FUSED_GATES | ST_ARCH_HF_FUSED_MIX,
     .names = &qwen3next_names,
     .gguf_names = &qwen3next_gguf_names,
     .defaults = DELTA_NET_DEFAULTS},
    {.name = "granite",
     .model_types = {"granite"},
     .gguf = "granite",
     .flags = ST_ARCH_GATED | ST_ARCH_GGUF_INTERLEAVED},
    {.name = "granitehybrid",
     .model_types = {"granitemoehybrid"},
     .gguf = "granitehybrid",
     .form = ST_FORM_MAMBA,
     .flags = ST_ARCH_GATED | ST_ARCH_MAY_ROTATE,
     .names = &granite_hybrid_names,
     .gguf_names = &mamba_gguf_names,
     .defaults = "{\"rms_norm_eps\":1e-6,\"mamba_n_heads\":128,\"mamba_n_groups\":1,"
                 "\"mamba_d_state\":256,\"mamba_d_conv\":4,\"mamba_expand\":2,"
                 "\"mamba_conv_bias\":true}"},
    {.name = "bamboo",
     .model_types = {"bamboo"},
     .flags = ST_ARCH_GATED | ST_ARCH_DUAL_ACT,
     .window = ST_WINDOW_ALL},
    {.name = NULL},
};

const char *st_arch_role(const struct st_arch *arch, bool gguf, enum st_role role) {
    const struct st_names *own = gguf ? arch->gguf_names : arch->names;
    if (own && own->role[role]) return own->role[role];
    return gguf ? gguf_names.role[role] : hf_names.role[role];
}
