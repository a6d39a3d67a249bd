// SPDX-License-Identifier: Apache-2.0
#include "model/arch_names.h"

// What most Hugging Face folders call their tensors; the prefix before "model." is found by
// st_weights.
const struct st_names st_hf_names = {{
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
    [ST_ROLE_AHEAD_JOIN] = "model.layers.%u.eh_proj",
    [ST_ROLE_AHEAD_EMBED_NORM] = "model.layers.%u.enorm",
    [ST_ROLE_AHEAD_HIDDEN_NORM] = "model.layers.%u.hnorm",
    [ST_ROLE_AHEAD_NORM] = "model.layers.%u.shared_head.norm",
}};

#define SANDWICH                                                                                   \
    [ST_ROLE_POST_ATTN_NORM] = "model.layers.%u.post_attention_layernorm",                         \
    [ST_ROLE_FFN_NORM] = "model.layers.%u.pre_feedforward_layernorm",                              \
    [ST_ROLE_POST_FFN_NORM] = "model.layers.%u.post_feedforward_layernorm"

const struct st_names st_sandwich_names = {{SANDWICH}};

#define LAYER_INPUTS                                                                               \
    [ST_ROLE_LAYER_EMBED] = "model.embed_tokens_per_layer",                                        \
    [ST_ROLE_LAYER_PROJECT] = "model.per_layer_model_projection",                                  \
    [ST_ROLE_LAYER_PROJECT_NORM] = "model.per_layer_projection_norm",                              \
    [ST_ROLE_LAYER_GATE] = "model.layers.%u.per_layer_input_gate",                                 \
    [ST_ROLE_LAYER_OUT] = "model.layers.%u.per_layer_projection",                                  \
    [ST_ROLE_LAYER_OUT_NORM] = "model.layers.%u.post_per_layer_input_norm"

const struct st_names st_gemma4_names = {{
    SANDWICH,
    LAYER_INPUTS,
    [ST_ROLE_LAYER_SCALE] = "model.layers.%u.layer_scalar",
    [ST_ROLE_ROUTER] = "model.layers.%u.router.proj",
    [ST_ROLE_ROUTER_SCALE] = "model.layers.%u.router.scale",
    [ST_ROLE_EXPERT_SCALE] = "model.layers.%u.router.per_expert_scale",
    [ST_ROLE_EXPERT_NORM] = "model.layers.%u.pre_feedforward_layernorm_2",
    [ST_ROLE_EXPERT_OUT_NORM] = "model.layers.%u.post_feedforward_layernorm_2",
    [ST_ROLE_SHARED_OUT_NORM] = "model.layers.%u.post_feedforward_layernorm_1",
    [ST_ROLE_EXPERTS_HALVES] = "model.layers.%u.experts.gate_up_proj",
    [ST_ROLE_EXPERTS_DOWN] = "model.layers.%u.experts.down_proj",
    [ST_ROLE_SHARED_GATE] = "model.layers.%u.mlp.gate_proj",
    [ST_ROLE_SHARED_UP] = "model.layers.%u.mlp.up_proj",
    [ST_ROLE_SHARED_DOWN] = "model.layers.%u.mlp.down_proj",
}};

const struct st_names st_gemma3n_names = {{
    SANDWICH,
    LAYER_INPUTS,
    [ST_ROLE_STREAM_IN] = "model.altup_projections.%u",
    [ST_ROLE_STREAM_OUT] = "model.altup_unembed_projections.%u",
    [ST_ROLE_STREAM_ROUTER] = "model.layers.%u.altup.modality_router",
    [ST_ROLE_STREAM_ROUTER_NORM] = "model.layers.%u.altup.router_norm",
    [ST_ROLE_STREAM_PREDICT] = "model.layers.%u.altup.prediction_coefs",
    [ST_ROLE_STREAM_CORRECT] = "model.layers.%u.altup.correction_coefs",
    [ST_ROLE_STREAM_SCALE] = "model.layers.%u.altup.correct_output_scale",
    [ST_ROLE_LAUREL_IN] = "model.layers.%u.laurel.linear_left",
    [ST_ROLE_LAUREL_OUT] = "model.layers.%u.laurel.linear_right",
    [ST_ROLE_LAUREL_NORM] = "model.layers.%u.laurel.post_laurel_norm",
}};

const struct st_names st_branch_names = {{
    [ST_ROLE_POST_ATTN_NORM] = "model.layers.%u.post_attention_layernorm",
    [ST_ROLE_POST_FFN_NORM] = "model.layers.%u.post_feedforward_layernorm",
}};

const struct st_names st_bitnet_names = {{
    [ST_ROLE_O_NORM] = "model.layers.%u.self_attn.attn_sub_norm",
    [ST_ROLE_DOWN_NORM] = "model.layers.%u.mlp.ffn_sub_norm",
}};

const struct st_names st_glm4_names = {{
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
    [ST_ROLE_EXPERT_DOWN] = "model.layers.%u.mlp.experts.%u.down_proj",                            \
    [ST_ROLE_EXPERTS_HALVES] = "model.layers.%u.mlp.experts.gate_up_proj",                         \
    [ST_ROLE_EXPERTS_DOWN] = "model.layers.%u.mlp.experts.down_proj"

// Qwen's: one more for all tokens, with a gate of its own.
#define EXPERTS_AND_GATED                                                                          \
    EXPERTS, SHARED("shared_expert"),                                                              \
        [ST_ROLE_SHARED_INPUT_GATE] = "model.layers.%u.mlp.shared_expert_gate"

const struct st_names st_moe_names = {{EXPERTS}};
const struct st_names st_qwen2_moe_names = {{EXPERTS_AND_GATED}};

const struct st_names st_glm4_moe_names = {{
    EXPERTS,
    SHARED("shared_experts"),
    [ST_ROLE_ROUTER_BIAS] = "model.layers.%u.mlp.gate.e_score_correction_bias",
}};

const struct st_names st_ernie_moe_names = {{
    EXPERTS,
    SHARED("shared_experts"),
    [ST_ROLE_ROUTER_BIAS] = "model.layers.%u.mlp.moe_statics.e_score_correction_bias",
}};

const struct st_names st_gpt_oss_names = {{
    [ST_ROLE_ROUTER] = "model.layers.%u.mlp.router",
    [ST_ROLE_EXPERTS_GATE_UP] = "model.layers.%u.mlp.experts.gate_up_proj",
    [ST_ROLE_EXPERTS_DOWN] = "model.layers.%u.mlp.experts.down_proj",
}};

const struct st_names st_phi_names = {{
    [ST_ROLE_FINAL_NORM] = "model.final_layernorm",
    [ST_ROLE_O] = "model.layers.%u.self_attn.dense",
    [ST_ROLE_Q_NORM] = "model.layers.%u.self_attn.q_layernorm",
    [ST_ROLE_K_NORM] = "model.layers.%u.self_attn.k_layernorm",
    [ST_ROLE_UP] = "model.layers.%u.mlp.fc1",
    [ST_ROLE_DOWN] = "model.layers.%u.mlp.fc2",
}};

// One norm per head: the second %u is the head.
const struct st_names st_stablelm_names = {{
    [ST_ROLE_Q_NORM] = "model.layers.%u.self_attn.q_layernorm.norms.%u",
    [ST_ROLE_K_NORM] = "model.layers.%u.self_attn.k_layernorm.norms.%u",
}};

const struct st_names st_opt_names = {{
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

#define LFM2                                                                                       \
    [ST_ROLE_FINAL_NORM] = "model.embedding_norm",                                                 \
    [ST_ROLE_ATTN_NORM] = "model.layers.%u.operator_norm",                                         \
    [ST_ROLE_O] = "model.layers.%u.self_attn.out_proj",                                            \
    [ST_ROLE_Q_NORM] = "model.layers.%u.self_attn.q_layernorm",                                    \
    [ST_ROLE_K_NORM] = "model.layers.%u.self_attn.k_layernorm",                                    \
    [ST_ROLE_FFN_NORM] = "model.layers.%u.ffn_norm",                                               \
    [ST_ROLE_GATE] = "model.layers.%u.feed_forward.w1",                                            \
    [ST_ROLE_UP] = "model.layers.%u.feed_forward.w3",                                              \
    [ST_ROLE_DOWN] = "model.layers.%u.feed_forward.w2",                                            \
    [ST_ROLE_CONV] = "model.layers.%u.conv.conv",                                                  \
    [ST_ROLE_CONV_IN] = "model.layers.%u.conv.in_proj",                                            \
    [ST_ROLE_CONV_OUT] = "model.layers.%u.conv.out_proj"

const struct st_names st_lfm2_names = {{LFM2}};

const struct st_names st_lfm2_moe_names = {{
    LFM2,
    [ST_ROLE_ROUTER] = "model.layers.%u.feed_forward.gate",
    [ST_ROLE_ROUTER_BIAS] = "model.layers.%u.feed_forward.expert_bias",
    [ST_ROLE_EXPERT_GATE] = "model.layers.%u.feed_forward.experts.%u.w1",
    [ST_ROLE_EXPERT_UP] = "model.layers.%u.feed_forward.experts.%u.w3",
    [ST_ROLE_EXPERT_DOWN] = "model.layers.%u.feed_forward.experts.%u.w2",
}};

// What layers with a recurrent state share.
#define STATE(of)                                                                                  \
    [ST_ROLE_CONV] = of ".conv1d", [ST_ROLE_CONV_OUT] = of ".out_proj",                            \
    [ST_ROLE_STATE_NORM] = of ".norm", [ST_ROLE_STATE_DECAY_BIAS] = of ".dt_bias",                 \
    [ST_ROLE_STATE_DECAY_SCALE] = of ".A_log"

// A layer that predicts a further token stands apart (st_bind_ahead).
#define AHEAD                                                                                      \
    [ST_ROLE_AHEAD_JOIN] = ST_AHEAD_PREFIX "fc",                                                   \
    [ST_ROLE_AHEAD_EMBED_NORM] = ST_AHEAD_PREFIX "pre_fc_norm_embedding",                          \
    [ST_ROLE_AHEAD_HIDDEN_NORM] = ST_AHEAD_PREFIX "pre_fc_norm_hidden",                            \
    [ST_ROLE_AHEAD_NORM] = ST_AHEAD_PREFIX "norm"

#define QWEN35_DELTA                                                                               \
    AHEAD, STATE("model.layers.%u.linear_attn"),                                                   \
        [ST_ROLE_CONV_IN] = "model.layers.%u.linear_attn.in_proj_qkv",                             \
        [ST_ROLE_STATE_GATE] = "model.layers.%u.linear_attn.in_proj_z",                            \
        [ST_ROLE_STATE_RATE] = "model.layers.%u.linear_attn.in_proj_b",                            \
        [ST_ROLE_STATE_DECAY] = "model.layers.%u.linear_attn.in_proj_a"

const struct st_names st_qwen35_names = {{QWEN35_DELTA}};

const struct st_names st_qwen35_moe_names = {{QWEN35_DELTA, EXPERTS_AND_GATED}};

const struct st_names st_qwen3next_names = {{
    EXPERTS_AND_GATED,
    AHEAD,
    STATE("model.layers.%u.linear_attn"),
    [ST_ROLE_CONV_IN] = "model.layers.%u.linear_attn.in_proj_qkvz",
    [ST_ROLE_STATE_RATE] = "model.layers.%u.linear_attn.in_proj_ba",
}};

#define MAMBA(of) STATE(of), [ST_ROLE_CONV_IN] = of ".in_proj", [ST_ROLE_STATE_SKIP] = of ".D"

// The block is called shared where there are no experts too.
#define GRANITE_MOE                                                                                \
    [ST_ROLE_ROUTER] = "model.layers.%u.block_sparse_moe.router.layer",                            \
    [ST_ROLE_EXPERTS_HALVES] = "model.layers.%u.block_sparse_moe.input_linear.weight",             \
    [ST_ROLE_EXPERTS_DOWN] = "model.layers.%u.block_sparse_moe.output_linear.weight",              \
    [ST_ROLE_SHARED_GATE_UP] = "model.layers.%u.shared_mlp.input_linear",                          \
    [ST_ROLE_SHARED_DOWN] = "model.layers.%u.shared_mlp.output_linear",                            \
    [ST_ROLE_GATE_UP] = "model.layers.%u.shared_mlp.input_linear",                                 \
    [ST_ROLE_DOWN] = "model.layers.%u.shared_mlp.output_linear"

const struct st_names st_granite_moe_names = {{GRANITE_MOE}};

const struct st_names st_granite_hybrid_names = {{
    GRANITE_MOE,
    MAMBA("model.layers.%u.mamba"),
}};

const struct st_names st_falcon_h1_names = {{
    [ST_ROLE_FINAL_NORM] = "model.final_layernorm",
    [ST_ROLE_FFN_NORM] = "model.layers.%u.pre_ff_layernorm",
    [ST_ROLE_GATE] = "model.layers.%u.feed_forward.gate_proj",
    [ST_ROLE_UP] = "model.layers.%u.feed_forward.up_proj",
    [ST_ROLE_DOWN] = "model.layers.%u.feed_forward.down_proj",
    MAMBA("model.layers.%u.mamba"),
}};

#define MIXER "backbone.layers.%u.mixer"

const struct st_names st_nemotron_h_names = {{
    [ST_ROLE_EMBED] = "backbone.embeddings",
    [ST_ROLE_FINAL_NORM] = "backbone.norm_f",
    [ST_ROLE_ATTN_NORM] = "backbone.layers.%u.norm",
    [ST_ROLE_FFN_NORM] = "backbone.layers.%u.norm",
    [ST_ROLE_Q] = MIXER ".q_proj",
    [ST_ROLE_K] = MIXER ".k_proj",
    [ST_ROLE_V] = MIXER ".v_proj",
    [ST_ROLE_O] = MIXER ".o_proj",
    [ST_ROLE_UP] = MIXER ".up_proj",
    [ST_ROLE_DOWN] = MIXER ".down_proj",
    [ST_ROLE_ROUTER] = MIXER ".gate",
    [ST_ROLE_ROUTER_BIAS] = MIXER ".gate.e_score_correction_bias",
    [ST_ROLE_EXPERT_UP] = MIXER ".experts.%u.up_proj",
    [ST_ROLE_EXPERT_DOWN] = MIXER ".experts.%u.down_proj",
    [ST_ROLE_SHARED_UP] = MIXER ".shared_experts.up_proj",
    [ST_ROLE_SHARED_DOWN] = MIXER ".shared_experts.down_proj",
    MAMBA(MIXER),
}};
