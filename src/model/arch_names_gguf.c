// SPDX-License-Identifier: Apache-2.0
// What GGUF files call their tensors.
#include "model/arch_names.h"

const struct st_names st_gguf_names = {{
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
    [ST_ROLE_AHEAD_JOIN] = "blk.%u.nextn.eh_proj",
    [ST_ROLE_AHEAD_EMBED_NORM] = "blk.%u.nextn.enorm",
    [ST_ROLE_AHEAD_HIDDEN_NORM] = "blk.%u.nextn.hnorm",
    [ST_ROLE_AHEAD_NORM] = "blk.%u.nextn.shared_head_norm",
}};

const struct st_names st_post_norm_gguf_names = {{
    [ST_ROLE_FFN_NORM] = "blk.%u.post_attention_norm",
}};

#define LAYER_INPUTS                                                                               \
    [ST_ROLE_LAYER_EMBED] = "per_layer_token_embd",                                                \
    [ST_ROLE_LAYER_PROJECT] = "per_layer_model_proj",                                              \
    [ST_ROLE_LAYER_PROJECT_NORM] = "per_layer_proj_norm",                                          \
    [ST_ROLE_LAYER_GATE] = "blk.%u.inp_gate", [ST_ROLE_LAYER_OUT] = "blk.%u.proj",                 \
    [ST_ROLE_LAYER_OUT_NORM] = "blk.%u.post_norm"

const struct st_names st_gemma4_gguf_names = {{
    LAYER_INPUTS,
    [ST_ROLE_LAYER_SCALE] = "blk.%u.layer_output_scale",
    [ST_ROLE_ROUTER_SCALE] = "blk.%u.ffn_gate_inp",
    [ST_ROLE_EXPERT_SCALE] = "blk.%u.ffn_down_exps",
    [ST_ROLE_EXPERT_NORM] = "blk.%u.pre_ffw_norm_2",
    [ST_ROLE_EXPERT_OUT_NORM] = "blk.%u.post_ffw_norm_2",
    [ST_ROLE_SHARED_OUT_NORM] = "blk.%u.post_ffw_norm_1",
    [ST_ROLE_EXPERTS_HALVES] = "blk.%u.ffn_gate_up_exps",
    [ST_ROLE_SHARED_GATE] = "blk.%u.ffn_gate",
    [ST_ROLE_SHARED_UP] = "blk.%u.ffn_up",
    [ST_ROLE_SHARED_DOWN] = "blk.%u.ffn_down",
}};

const struct st_names st_gemma3n_gguf_names = {{
    LAYER_INPUTS,
    [ST_ROLE_STREAM_IN] = "altup_proj",
    [ST_ROLE_STREAM_OUT] = "altup_unembd_proj",
    [ST_ROLE_STREAM_ROUTER] = "blk.%u.altup_router",
    [ST_ROLE_STREAM_ROUTER_NORM] = "blk.%u.altup_router_norm",
    [ST_ROLE_STREAM_PREDICT] = "blk.%u.altup_predict_coef",
    [ST_ROLE_STREAM_CORRECT] = "blk.%u.altup_correct_coef",
    [ST_ROLE_STREAM_SCALE] = "blk.%u.altup_correct_scale",
    [ST_ROLE_LAUREL_IN] = "blk.%u.laurel_l",
    [ST_ROLE_LAUREL_OUT] = "blk.%u.laurel_r",
    [ST_ROLE_LAUREL_NORM] = "blk.%u.laurel_post_norm",
}};

const struct st_names st_bitnet_gguf_names = {{
    [ST_ROLE_O_NORM] = "blk.%u.attn_sub_norm",
    [ST_ROLE_DOWN_NORM] = "blk.%u.ffn_sub_norm",
}};

// What layers with a recurrent state share.
#define STATE                                                                                      \
    [ST_ROLE_CONV] = "blk.%u.ssm_conv1d", [ST_ROLE_CONV_OUT] = "blk.%u.ssm_out",                   \
    [ST_ROLE_STATE_NORM] = "blk.%u.ssm_norm", [ST_ROLE_STATE_DECAY_BIAS] = "blk.%u.ssm_dt.bias",   \
    [ST_ROLE_STATE_DECAY_SCALE] = "blk.%u.ssm_a"

#define DELTA                                                                                      \
    STATE, [ST_ROLE_FFN_NORM] = "blk.%u.post_attention_norm",                                      \
           [ST_ROLE_CONV_IN] = "blk.%u.attn_qkv", [ST_ROLE_STATE_GATE] = "blk.%u.attn_gate"

const struct st_names st_qwen35_gguf_names = {{
    DELTA,
    [ST_ROLE_STATE_RATE] = "blk.%u.ssm_beta",
    [ST_ROLE_STATE_DECAY] = "blk.%u.ssm_alpha",
}};

const struct st_names st_qwen3next_gguf_names = {{
    DELTA,
    [ST_ROLE_STATE_RATE] = "blk.%u.ssm_ba",
}};

#define MAMBA STATE, [ST_ROLE_CONV_IN] = "blk.%u.ssm_in", [ST_ROLE_STATE_SKIP] = "blk.%u.ssm_d"

const struct st_names st_mamba_gguf_names = {{MAMBA}};

const struct st_names st_nemotron_h_gguf_names = {{
    MAMBA,
    [ST_ROLE_FFN_NORM] = "blk.%u.attn_norm",
}};

const struct st_names st_lfm2_gguf_names = {{
    [ST_ROLE_FINAL_NORM] = "token_embd_norm",
}};
