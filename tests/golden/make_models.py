#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/models: tiny random checkpoints of the families and rope variants that have
no golden elsewhere, with the logits of Hugging Face's transformers in float64. Not run by the
tests; needs torch and transformers from PyPI: python3 tests/golden/make_models.py [NAME...]"""
import copy
import json
import pathlib
import shutil
import sys

import ahead
import ternary
import torch
import torch._dynamo
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from transformers.integrations import bitnet

torch._dynamo.config.disable = True  # of functions that are compiled by decorators
MODELS = pathlib.Path(__file__).parent / "models"
N_TOKENS, N_GREEDY = 40, 64
COMMON = {"vocab_size": 48, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 3,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
          "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LONG = {**COMMON, "max_position_embeddings": 128}  # with a greedy continuation
DELTA = {"head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
         "linear_key_head_dim": 8, "linear_value_head_dim": 8, "rope_parameters": {
             "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
             "mrope_section": [2, 1, 1], "mrope_interleaved": True}}
MIXTURE = {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"],
           "full_attention_interval": 2, "num_experts": 6, "num_experts_per_tok": 2,
           "moe_intermediate_size": 20, "shared_expert_intermediate_size": 28}
MULTIPLIERS = {"embedding_multiplier": 3.0, "attention_multiplier": 0.2,
               "residual_multiplier": 0.4, "logits_scaling": 2.5}
NEMOTRON = {"head_dim": 12, "mamba_num_heads": 4, "mamba_head_dim": 14, "n_groups": 2,
            "ssm_state_size": 10}
FALCON = {"embedding_multiplier": 3.0, "lm_head_multiplier": 0.4, "key_multiplier": 0.6,
          "attention_in_multiplier": 1.2, "attention_out_multiplier": 0.7,
          "ssm_in_multiplier": 1.3, "ssm_out_multiplier": 0.8, "mlp_multipliers": [0.9, 0.5],
          "ssm_multipliers": [0.7, 0.9, 0.6, 1.1, 0.8]}
GEMMA4 = {"head_dim": 12, "global_head_dim": 20, "sliding_window": 12}
KINDS = 3 * ["sliding_attention", "full_attention"]
OPT = {"vocab_size": 48, "hidden_size": 32, "ffn_dim": 56, "num_hidden_layers": 3,
       "num_attention_heads": 4, "max_position_embeddings": 64, "bos_token_id": 2,
       "eos_token_id": 2, "pad_token_id": 1}


def rope(kind, **values):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **values}}


# name: (transformers class, config, how the checkpoint is written: "new" is transformers 5's
# spelling of config.json, "old" is what earlier releases wrote, "multimodal" wraps the text model)
CASES = {
    "ahead-deepseek-v3": ("DeepseekV3", {
        **COMMON, "num_hidden_layers": 2, "q_lora_rank": 16, "kv_lora_rank": 20,
        "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 10, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 20, "n_shared_experts": 1,
        "first_k_dense_replace": 1, "num_key_value_heads": 4, "n_group": 2, "topk_group": 1},
                          "ahead"),
    "ahead-qwen35": ("Qwen3_5", {**COMMON, **DELTA, "num_hidden_layers": 4, "layer_types": 2 * [
        "linear_attention", "full_attention"]}, "ahead"),
    "arcee": ("Arcee", {**LONG, "head_dim": 12}, "new"),
    "bitnet": ("BitNet", LONG, "new"),
    "bitnet-online": ("BitNet", {**COMMON, "num_hidden_layers": 2, "tie_word_embeddings": True},
                      "online"),
    "bitnet-packed": ("BitNet", {**LONG, "num_hidden_layers": 2, "hidden_size": 256,
                                 "intermediate_size": 256, "tie_word_embeddings": True}, "packed"),
    "deepseek-v2": ("DeepseekV2", {
        **LONG, "q_lora_rank": None, "kv_lora_rank": 24, "qk_nope_head_dim": 12,
        "qk_rope_head_dim": 8, "v_head_dim": 10, "n_routed_experts": 6, "num_experts_per_tok": 2,
        "moe_intermediate_size": 20, "n_shared_experts": 2, "first_k_dense_replace": 1,
        "num_key_value_heads": 4, **rope("yarn", factor=8.0, original_max_position_embeddings=16,
                                         beta_fast=4.0, mscale=0.707, mscale_all_dim=0.707)},
                    "new"),
    "deepseek-v2-groups": ("DeepseekV2", {
        **COMMON, "num_attention_heads": 2, "q_lora_rank": 16, "kv_lora_rank": 18,
        "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 14, "n_routed_experts": 9,
        "num_experts_per_tok": 3, "moe_intermediate_size": 12, "n_shared_experts": 1,
        "num_hidden_layers": 2, "num_key_value_heads": 2, "topk_method": "group_limited_greedy",
        "n_group": 3, "topk_group": 2, "routed_scaling_factor": 4.0}, "new"),
    "deepseek-v3": ("DeepseekV3", {
        **LONG, "q_lora_rank": 16, "kv_lora_rank": 20, "qk_nope_head_dim": 12,
        "qk_rope_head_dim": 8, "v_head_dim": 12, "n_routed_experts": 8, "num_experts_per_tok": 3,
        "moe_intermediate_size": 20, "n_shared_experts": 1, "first_k_dense_replace": 1,
        "num_key_value_heads": 4, "n_group": 2, "topk_group": 1, "num_mtp_layers": 0,
        **rope("yarn", factor=8.0, original_max_position_embeddings=16, beta_fast=4.0, mscale=1.0,
               mscale_all_dim=1.0)}, "sigmoid"),
    "ernie4_5": ("Ernie4_5", {**LONG, "head_dim": 12}, "old"),
    "ernie4_5-moe": ("Ernie4_5_Moe", {**LONG, "head_dim": 12, "moe_num_experts": 6, "moe_k": 2,
                                      "moe_intermediate_size": 20, "moe_num_shared_experts": 2},
                     "new"),
    "falcon_h1": ("FalconH1", {
        **LONG, **FALCON, "num_hidden_layers": 2, "head_dim": 12, "mamba_d_ssm": 40,
        "mamba_n_heads": 4, "mamba_d_head": 10, "mamba_n_groups": 1, "mamba_d_state": 16}, "new"),
    "falcon_h1-norm": ("FalconH1", {
        **COMMON, **FALCON, "num_hidden_layers": 2, "hidden_size": 24, "num_attention_heads": 3,
        "num_key_value_heads": 1, "head_dim": 8, "mamba_d_ssm": 48, "mamba_n_heads": 6,
        "mamba_d_head": 8, "mamba_n_groups": 3, "mamba_d_state": 9, "mamba_d_conv": 3,
        "mamba_rms_norm": True, "mamba_norm_before_gate": False}, "new"),
    "glm4": ("Glm4", {**LONG, "head_dim": 16}, "old"),
    "glm4-moe": ("Glm4Moe", {
        **LONG, "head_dim": 16, "use_qk_norm": True, "attention_bias": True, "n_routed_experts": 6,
        "num_experts_per_tok": 2, "moe_intermediate_size": 20, "num_mtp_layers": 0,
        "routed_scaling_factor": 1.5}, "new"),
    "glm4-moe-lite": ("Glm4MoeLite", {
        **LONG, "q_lora_rank": 16, "kv_lora_rank": 20, "qk_nope_head_dim": 12,
        "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 6, "num_experts_per_tok": 2,
        "moe_intermediate_size": 20, "num_key_value_heads": 4}, "new"),
    "gpt-oss": ("GptOss", {**LONG, "num_hidden_layers": 4, "head_dim": 16, "intermediate_size": 64,
                           "num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": 12,
                           **rope("yarn", factor=8.0, original_max_position_embeddings=16,
                                  beta_fast=4.0, beta_slow=1.0, truncate=False)}, "mxfp4"),
    "gpt-oss-bf16": ("GptOss", {**COMMON, "num_attention_heads": 3, "num_key_value_heads": 1,
                                "head_dim": 10, "intermediate_size": 20, "num_local_experts": 3,
                                "num_experts_per_tok": 3, "sliding_window": 7,
                                **rope("yarn", factor=4.0, original_max_position_embeddings=16,
                                       truncate=False)}, "new"),
    "ministral3": ("Ministral3", {**LONG, "head_dim": 12, **rope(
        "yarn", factor=8.0, original_max_position_embeddings=16, mscale=1.0, mscale_all_dim=1.0,
        llama_4_scaling_beta=0.3)}, "new"),
    "olmoe": ("Olmoe", {**LONG, "intermediate_size": 24, "num_experts": 6,
                        "num_experts_per_tok": 3}, "new"),
    "olmo2": ("Olmo2", LONG, "old"),
    "olmo3": ("Olmo3", {**LONG, "num_hidden_layers": 5, "sliding_window": 12, "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
        "full_attention": {"rope_type": "yarn", "rope_theta": 5000.0, "factor": 8.0,
                           "original_max_position_embeddings": 16, "attention_factor": 1.2}}},
              "new"),
    "phi4-mini": ("Phi3", {**LONG, "head_dim": 16, "original_max_position_embeddings": 32,
                           "tie_word_embeddings": True, "num_attention_heads": 2,
                           "num_key_value_heads": 1,
                           **rope("longrope", original_max_position_embeddings=32,
                                  partial_rotary_factor=0.75,
                                  short_factor=[1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
                                  long_factor=[1.0, 1.5, 2.0, 3.0, 4.0, 6.0])}, "old"),
    "qwen2moe": ("Qwen2Moe", {**LONG, "num_experts": 6, "num_experts_per_tok": 2,
                              "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40},
                 "new"),
    "qwen2moe-dense": ("Qwen2Moe", {**COMMON, "num_experts": 4, "num_experts_per_tok": 2,
                                    "moe_intermediate_size": 20, "norm_topk_prob": True,
                                    "shared_expert_intermediate_size": 12,
                                    "mlp_only_layers": [1]}, "new"),
    "qwen3moe": ("Qwen3Moe", {**LONG, "head_dim": 12, "num_hidden_layers": 2, "num_experts": 6,
                              "num_experts_per_tok": 2, "moe_intermediate_size": 24,
                              "norm_topk_prob": True}, "new"),
    "qwen3moe-shares": ("Qwen3Moe", {**COMMON, "num_hidden_layers": 2, "num_experts": 6,
                                     "num_experts_per_tok": 3, "moe_intermediate_size": 24,
                                     "norm_topk_prob": False}, "new"),
    "smollm3": ("SmolLM3", {**LONG, "num_hidden_layers": 4}, "new"),
    "gemma2": ("Gemma2", {**COMMON, "head_dim": 12, "sliding_window": 12,
                          "query_pre_attn_scalar": 20, "attn_logit_softcapping": 5.0,
                          "final_logit_softcapping": 3.0}, "old"),
    "gemma4": ("Gemma4", {**LONG, **GEMMA4, "num_hidden_layers": 7, "num_kv_shared_layers": 3,
                          "use_double_wide_mlp": True, "hidden_size_per_layer_input": 10,
                          "vocab_size_per_layer_input": 48, "final_logit_softcapping": 3.0,
                          "layer_types": KINDS + ["full_attention"]}, "per-layer"),
    "gemma3n": ("Gemma3n", {**LONG, "head_dim": 12, "sliding_window": 12, "num_hidden_layers": 6,
                            "hidden_size_per_layer_input": 10, "vocab_size_per_layer_input": 44,
                            "num_kv_shared_layers": 2, "laurel_rank": 6, "altup_num_inputs": 3,
                            "intermediate_size": [56, 56, 56, 56, 72, 72],
                            "activation_sparsity_pattern": [0.8, 0.6, 0.0, 0.0, 0.3, 0.0],
                            "final_logit_softcapping": 5.0, "layer_types": KINDS}, "new"),
    "gemma4-moe": ("Gemma4", {**LONG, **GEMMA4, "num_hidden_layers": 4, "enable_moe_block": True,
                              "num_experts": 6, "top_k_experts": 2, "moe_intermediate_size": 20,
                              "attention_k_eq_v": True, "num_global_key_value_heads": 1,
                              "hidden_size_per_layer_input": 8, "final_logit_softcapping": 5.0,
                              "vocab_size_per_layer_input": 48, "layer_types": KINDS[:4]}, "new"),
    # Keys that are values too, and other numbers of heads in layers without a window.
    "gemma4-keys": ("Gemma4", {**COMMON, **GEMMA4, "num_hidden_layers": 6, "hidden_size": 24,
                               "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 10,
                               "global_head_dim": 14, "num_global_key_value_heads": 2,
                               "attention_k_eq_v": True, "hidden_size_per_layer_input": 0,
                               "sliding_window": 9, "layer_types": KINDS}, "multimodal4"),
    "gemma3-multimodal": ("Gemma3", {**COMMON, "head_dim": 12, "sliding_window": 12,
                                     "query_pre_attn_scalar": 20, "num_hidden_layers": 4,
                                     "sliding_window_pattern": 3}, "multimodal"),
    "llama-dynamic": ("Llama", {**COMMON, "max_position_embeddings": 16,
                                **rope("dynamic", factor=4.0)}, "old"),
    "llama-yarn": ("Llama", {**COMMON, "attention_bias": True, "mlp_bias": True, "head_dim": 16,
                             **rope("yarn", factor=8.0, original_max_position_embeddings=16,
                                    mscale=1.0, mscale_all_dim=0.5)}, "new"),
    "lfm2": ("Lfm2", {**LONG, "num_hidden_layers": 5, "block_auto_adjust_ff_dim": False,
                      "layer_types": ["conv", "conv", "full_attention", "conv", "full_attention"]},
             "new"),
    "lfm2-bias": ("Lfm2", {**COMMON, "num_hidden_layers": 4, "hidden_size": 20, "conv_L_cache": 4,
                           "conv_bias": True, "intermediate_size": 90, "block_multiple_of": 8,
                           "num_attention_heads": 2, "num_key_value_heads": 1,
                           "tie_word_embeddings": False, "full_attn_idxs": [1, 2]}, "lfm2"),
    "lfm2-vl": ("Lfm2", {**COMMON, "num_hidden_layers": 3, "hidden_size": 24, "conv_L_cache": 2,
                         "num_attention_heads": 3, "num_key_value_heads": 3,
                         "block_auto_adjust_ff_dim": False,
                         "layer_types": ["full_attention", "conv", "conv"]}, "vision"),
    "lfm2moe": ("Lfm2Moe", {
        **LONG, "num_hidden_layers": 4, "num_dense_layers": 1, "num_experts": 6,
        "num_experts_per_tok": 2, "moe_intermediate_size": 20,
        "layer_types": ["conv", "conv", "full_attention", "conv"]}, "new"),
    "granite": ("Granite", {**COMMON, "num_hidden_layers": 2, **MULTIPLIERS}, "new"),
    "granitehybrid": ("GraniteMoeHybrid", {
        **LONG, **MULTIPLIERS, "num_hidden_layers": 4, "shared_intermediate_size": 56,
        "num_local_experts": 0, "mamba_n_heads": 4, "mamba_n_groups": 1, "mamba_d_state": 16,
        "layer_types": 2 * ["linear_attention", "full_attention"]}, "new"),
    "granitehybrid-moe": ("GraniteMoeHybrid", {
        **LONG, **MULTIPLIERS, "num_local_experts": 6, "num_experts_per_tok": 3,
        "intermediate_size": 20, "shared_intermediate_size": 28, "mamba_n_heads": 4,
        "mamba_n_groups": 2, "mamba_d_state": 12,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"]}, "mamba"),
    "granitemoe": ("GraniteMoeShared", {
        **COMMON, **MULTIPLIERS, "num_hidden_layers": 2, "num_local_experts": 5,
        "num_experts_per_tok": 2, "intermediate_size": 20, "shared_intermediate_size": 24},
                   "new"),
    "nemotron_h": ("NemotronH", {
        **LONG, **NEMOTRON, "layers_block_type": [
            "linear_attention", "mlp", "linear_attention", "full_attention", "mlp",
            "linear_attention", "mlp"]}, "pattern"),
    "nemotron_h-moe": ("NemotronH", {
        **LONG, **NEMOTRON, "n_routed_experts": 6, "num_experts_per_tok": 2,
        "moe_intermediate_size": 20, "moe_shared_expert_intermediate_size": 28,
        "routed_scaling_factor": 2.5, "layers_block_type": [
            "linear_attention", "moe", "linear_attention", "full_attention", "moe"]}, "pattern"),
    # Of a hidden size of 20, not 24, token 24 would be ill-conditioned: embeddings that differ by
    # 6e-8 move its logits by 1.8e-4 in float64, those of other tokens by 2e-6. stint is 2.4e-4 off
    # there, the oracle all in float32 5e-5.
    "granitehybrid-bias": ("GraniteMoeHybrid", {
        **COMMON, "num_hidden_layers": 3, "shared_intermediate_size": 40, "num_local_experts": 0,
        "hidden_size": 24, "num_attention_heads": 2, "num_key_value_heads": 1,
        "mamba_n_heads": 6, "mamba_n_groups": 3, "mamba_d_state": 7,
        "mamba_expand": 3, "mamba_d_conv": 3, "mamba_proj_bias": True, "tie_word_embeddings": True,
        "position_embedding_type": "rope",
        "layer_types": ["linear_attention", "full_attention", "linear_attention"]}, "mamba"),
    "qwen35moe": ("Qwen3_5Moe", {**LONG, **DELTA, **MIXTURE}, "fused"),
    "qwen3next-moe": ("Qwen3Next", {**COMMON, **DELTA, **MIXTURE}, "new"),
    "qwen3next": ("Qwen3Next", {**LONG, **DELTA, "num_hidden_layers": 4, "num_experts": 0,
                                "layer_types": 2 * ["linear_attention", "full_attention"]}, "new"),
    "qwen35": ("Qwen3_5", {**LONG, **DELTA, "num_hidden_layers": 4,
                           "layer_types": 2 * ["linear_attention", "full_attention"]}, "new"),
    "qwen35-vl": ("Qwen3_5", {**COMMON, **DELTA, "num_hidden_layers": 4, "hidden_size": 20,
                              "linear_num_key_heads": 3, "linear_num_value_heads": 3,
                              "linear_key_head_dim": 7, "linear_value_head_dim": 20,
                              "linear_conv_kernel_dim": 3, "tie_word_embeddings": True},
                  "qwen3_5"),
    "mistral-window": ("Mistral", {**COMMON, "sliding_window": 12}, "old"),
    "mixtral-window": ("Mixtral", {**COMMON, "num_local_experts": 4, "num_experts_per_tok": 2,
                                   "num_hidden_layers": 2, "sliding_window": 12}, "old"),
    "opt-post": ("OPT", {**OPT, "do_layer_norm_before": False, "word_embed_proj_dim": 24}, "old"),
    "phi-qk-norm": ("Phi", {**COMMON, "qk_layernorm": True, "partial_rotary_factor": 0.5}, "old"),
    "phi3-longrope": ("Phi3", {**COMMON, "original_max_position_embeddings": 24,
                               "sliding_window": 30,
                               **rope("longrope", original_max_position_embeddings=24,
                                      short_factor=[1.0, 1.1, 1.3, 1.4],
                                      long_factor=[1.0, 1.5, 2.0, 3.0])}, "old"),
    "phi3-short": ("Phi3", {**COMMON, "head_dim": 8, "original_max_position_embeddings": 48,
                            **rope("longrope", original_max_position_embeddings=48,
                                   partial_rotary_factor=0.75, short_factor=[1.0, 1.2, 1.4],
                                   long_factor=[1.0, 2.0, 4.0])}, "new"),
    "qwen2-window": ("Qwen2", {**COMMON, "use_sliding_window": True, "sliding_window": 12,
                               "max_window_layers": 1}, "old"),
    "qwen3-window": ("Qwen3", {**COMMON, "head_dim": 12, "use_sliding_window": True,
                               "sliding_window": 12, "max_window_layers": 2}, "new"),
    "stablelm-parallel": ("StableLm", {**COMMON, "use_parallel_residual": True,
                                       "use_qkv_bias": True, "qk_layernorm": True,
                                       "partial_rotary_factor": 0.5}, "old"),
}


# Multimodal checkpoints: class, model_type, and what their tensors have in place of "model.".
WRAPPERS = {"multimodal": ("Gemma3", "gemma3", "model.", "language_model.model."),
            "multimodal4": ("Gemma4", "gemma4", "model.", "model.language_model."),
            "vision": ("Lfm2Vl", "lfm2_vl", "model.", "model.language_model."),
            "qwen3_5": ("Qwen3_5", "qwen3_5", "model.", "model.language_model.")}
# Families whose norms are stored less 1, and what their configuration classes end with.
ZERO_CENTRED = ("Gemma", "Qwen3_5", "Qwen3Next")
WHOLE = ("Gemma3n", "Gemma4")  # but not of these
TEXT_CONFIGS = ("Gemma3", "Gemma3n", "Gemma4", "Qwen3_5", "Qwen3_5Moe")


def centre(name, zero_centred):
    if name.endswith("A_log"):
        return -1.0  # states that last for a while
    if name.endswith(("linear_attn.norm.weight", "per_expert_scale")):
        return 1.0
    if name.endswith("router.scale"):  # so that experts' shares differ
        return 4.0
    return 1.0 if name.endswith("weight") and not zero_centred else 0.0


def randomize(model, zero_centred):
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=generator)
            if name.endswith("sinks"):
                parameter.copy_(values)
            elif name.endswith("gate_up_proj"):  # large enough for the clamps
                parameter.copy_(values * 0.7)
            elif name.endswith("_coefs.weight"):
                parameter.copy_(values * 0.3)
            elif parameter.ndim == 1:
                parameter.copy_(values * 0.2 + centre(name, zero_centred))
            else:
                scale = 0.5 if "embed" in name else 2 * parameter.shape[-1] ** -0.5
                parameter.copy_(values * scale)
        for name, tensor in [*model.named_buffers(), *model.named_parameters()]:
            if name.endswith(("e_score_correction_bias", "expert_bias")):
                tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.2)
            if name.endswith("layer_scalar"):  # Gemma 4's, whose scores have no scale either
                model.get_submodule(name.rpartition(".")[0]).self_attn.q_norm.weight.mul_(0.4)
                tensor.copy_(torch.rand(tensor.shape, generator=generator) * 0.5 + 0.6)


MXFP4 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def mxfp4(values):
    """Codes [..., n / 32, 32] and scales [..., n / 32] of values [..., n]."""
    blocks = values.float().unflatten(-1, (-1, 32))
    exponent = torch.floor(torch.log2(blocks.abs().amax(-1))) - 2
    steps = blocks / 2.0 ** exponent[..., None]
    codes = (steps.abs()[..., None] - MXFP4).abs().argmin(-1) + 8 * (steps < 0)
    return codes, exponent + 127


def mxfp4_values(values):
    codes, scales = mxfp4(values)
    blocks = MXFP4[codes % 8] * (1 - 2 * (codes // 8)) * 2.0 ** (scales[..., None] - 127)
    return blocks.flatten(-2)


def round_experts(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("gate_up_proj", "down_proj")):
                parameter.copy_(mxfp4_values(parameter.transpose(1, 2)).transpose(1, 2))


def store_mxfp4(weights):
    """As openai/gpt-oss-20b stores its experts."""
    tensors = {}
    with safe_open(weights, "pt") as stored:
        for key in stored.keys():
            values = stored.get_tensor(key)
            if key.endswith(("gate_up_proj", "down_proj")):
                codes, scales = mxfp4(values.transpose(1, 2))
                pairs = codes.unflatten(-1, (-1, 2))
                tensors[key + "_blocks"] = (pairs[..., 0] + 16 * pairs[..., 1]).to(torch.uint8)
                tensors[key + "_scales"] = scales.to(torch.uint8)
            else:
                tensors[key] = values
    save_file(tensors, weights, {"format": "pt"})


def fuse_experts(weights):
    """As Qwen/Qwen3.5-35B-A3B stores its experts: all of a layer together."""
    tensors, experts = {}, {}
    with safe_open(weights, "pt") as stored:
        for key in stored.keys():
            layer, _, rest = key.partition(".experts.")
            if rest:
                experts.setdefault(layer, {})[tuple(rest.split(".")[:2])] = stored.get_tensor(key)
            else:
                tensors[key] = stored.get_tensor(key)
    for layer, parts in experts.items():
        gate, up, down = (torch.stack([parts[str(e), kind] for e in range(len(parts) // 3)])
                          for kind in ("gate_proj", "up_proj", "down_proj"))
        tensors[layer + ".experts.gate_up_proj"] = torch.cat([gate, up], dim=1)
        tensors[layer + ".experts.down_proj"] = down
    save_file(tensors, weights, {"format": "pt"})


def greedy(model, tokens):
    ids = list(tokens)
    for _ in range(N_GREEDY):
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(tokens):]


def old_spelling(config):
    config = copy.deepcopy(config)
    config["torch_dtype"] = config.pop("dtype")
    config.pop("layer_types", None)
    values = config.pop("rope_parameters", {"rope_type": "default"})
    config["rope_theta"] = values.pop("rope_theta", 10000.0)
    if "partial_rotary_factor" in values:
        config["partial_rotary_factor"] = values.pop("partial_rotary_factor")
    kind = values.pop("rope_type")
    if kind == "longrope":
        config["original_max_position_embeddings"] = values.pop("original_max_position_embeddings")
    if kind != "default":
        config["rope_scaling"] = {"type": kind, **values}
    return config


def respell(folder, style, values):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    if style == "old":
        config = old_spelling(config)
    if style == "lfm2":  # as the family's first files had it
        config = old_spelling(config)
        config["block_ff_dim"] = config.pop("intermediate_size")
        config["tie_embedding"] = config.pop("tie_word_embeddings")
    if style == "sigmoid":  # as deepseek-ai's own files say it
        config.update({"scoring_func": "sigmoid", "topk_method": "noaux_tc"})
    if style == "fused":
        fuse_experts(folder / "model.safetensors")
    if style == "mxfp4":
        config["quantization_config"] = {"quant_method": "mxfp4"}
        store_mxfp4(folder / "model.safetensors")
    if style in ("packed", "online"):
        config["quantization_config"] = {
            "quant_method": "bitnet", "linear_class": "autobitlinear",
            "modules_to_not_convert": None,
            "quantization_mode": {"packed": "offline", "online": "online"}[style]}
    if style == "packed":
        ternary.store_ternary(folder / "model.safetensors")
    if style == "pattern":  # as NVIDIA's own files say it
        kinds = {"linear_attention": "M", "full_attention": "*", "moe": "E", "mlp": "-"}
        types = config.pop("layers_block_type")
        config["hybrid_override_pattern"] = "".join(kinds[kind] for kind in types)
        config["num_hidden_layers"] = len(types)
        config["time_step_limit"] = [0.0, float("inf")]
        config["mamba_d_head"] = config["mamba_head_dim"]  # where llama.cpp's converter looks
        if "moe" not in types:
            for key in [key for key in config if "expert" in key or key.startswith("moe_")]:
                del config[key]
    if style == "mamba":  # what transformers 4 called the kinds of layers
        kinds = {"linear_attention": "mamba", "full_attention": "attention"}
        config["layer_types"] = [kinds.get(kind, kind) for kind in config["layer_types"]]
    if "global_head_dim" in values and style != "per-layer":  # as google's own files say it
        del config["per_layer_config"]
        config.update({key: values[key] for key in ("global_head_dim", "num_global_key_value_heads")
                       if key in values})
    if style in WRAPPERS:
        kind, model_type, before, after = WRAPPERS[style]
        config = {"architectures": [kind + "ForConditionalGeneration"], "model_type": model_type,
                  "text_config": config, "vision_config": {}, "eos_token_id": [2, 5]}
        weights = folder / "model.safetensors"
        with safe_open(weights, "pt") as stored:
            tensors = {key.replace(before, after, 1): stored.get_tensor(key)
                       for key in stored.keys()}
        save_file(tensors, weights, {"format": "pt"})
    path.write_text(json.dumps(config, indent=1) + "\n")


def main():
    for name in sys.argv[1:] or CASES:
        family, values, style = CASES[name]
        folder = MODELS / name
        shutil.rmtree(folder, ignore_errors=True)
        text = "TextConfig" if family in TEXT_CONFIGS else "Config"
        config = getattr(transformers, family + text)(**values)
        family_class = getattr(transformers, family + "ForCausalLM")
        model = family_class(config)
        randomize(model, family.startswith(ZERO_CENTRED) and family not in WHOLE)
        if style == "mxfp4":
            round_experts(model)
        if style == "packed":
            ternary.round_linears(model)
        model.tie_weights()
        model.to(torch.bfloat16).save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        # Loaded anew: what rounding to BF16 did to the rope tables does not belong to the file.
        model = family_class.from_pretrained(folder, dtype=torch.float32,
                                             attn_implementation="eager",
                                             experts_implementation="eager").double().eval()
        if style == "online":
            with torch.no_grad():
                for weight in ternary.ternary_linears(model):
                    weight.copy_(bitnet.WeightQuant.apply(weight.float()))
        tokens = [(i * 37 + 11) % (values["vocab_size"] - 4) + 3 for i in range(N_TOKENS)]
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0]
        (folder / "tokens.json").write_text(json.dumps({"tokens": tokens}) + "\n")
        (folder / "logits.f32").write_bytes(logits.float().numpy().astype("<f4").tobytes())
        respell(folder, style, values)
        if style == "ahead":
            ahead.add(folder, model, tokens, lambda parts: randomize(
                parts, family.startswith(ZERO_CENTRED)))
        if values.get("max_position_embeddings") == LONG["max_position_embeddings"]:
            answer = {"tokens": greedy(model, tokens)}
            (folder / "greedy.json").write_text(json.dumps(answer) + "\n")
        print(name)


if __name__ == "__main__":
    main()
