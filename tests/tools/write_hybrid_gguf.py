#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes model.gguf into folders with checkpoints of hybrid families, and of Arcee, by the gguf
package alone, without a vocabulary, with the keys, names and layouts that their files have:
tests/tools/write_hybrid_gguf.py FOLDER... Not run by the tests; needs gguf, safetensors and torch
from PyPI."""
import json
import pathlib
import sys

import gguf
import torch
from safetensors.torch import load_file


def layer_types(config):
    if config.get("layer_types"):
        return config["layer_types"]
    return ["full_attention" if i in config["full_attn_idxs"] else "conv"
            for i in range(config["num_hidden_layers"])]


def attention_only(config, kinds):
    """The number of key-value heads of each layer: 0 where there is no attention."""
    heads = config["num_key_value_heads"]
    return [heads if kind in kinds else 0 for kind in layer_types(config)]


# ---- LFM2

def lfm2_keys(writer, config, tensors):
    writer.add_feed_forward_length(tensors["model.layers.0.feed_forward.w1.weight"].shape[0])
    writer.add_head_count_kv(attention_only(config, ["full_attention"]))
    writer.add_layer_norm_rms_eps(config["norm_eps"])
    writer.add_shortconv_l_cache(config["conv_L_cache"])


def lfm2_tensors(config, name, tensor):
    yield name, tensor.squeeze(1) if ".conv.conv" in name else tensor


# ---- Gated delta nets

def delta_keys(writer, config, tensors):
    value_heads = config["linear_num_value_heads"]
    rope = config["rope_parameters"]
    if "intermediate_size" in config:
        writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(int(config["head_dim"] * rope["partial_rotary_factor"]))
    if "mrope_section" in rope:
        writer.add_rope_dimension_sections([*rope["mrope_section"], 0])
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(config["linear_key_head_dim"])
    writer.add_ssm_group_count(config["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(value_heads)
    writer.add_ssm_inner_size(config["linear_value_head_dim"] * value_heads)
    writer.add_full_attention_interval(layer_types(config).index("full_attention") + 1)


def stored_norm(name, tensor):
    """Norms are stored whole; that of a delta net always was."""
    zero_centred = name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight")
    return tensor.float() + 1 if zero_centred else tensor


def tiled(config, tensor, dim, width):
    """Value heads, of `width` along `dim`: from those of each key head to those of each place."""
    groups = config["linear_num_key_heads"]
    each = config["linear_num_value_heads"] // groups
    shape = list(tensor.shape)
    split = tensor.reshape(*shape[:dim], groups, each, width, *shape[dim + 1:])
    return split.transpose(dim, dim + 1).reshape(shape)


def qwen3next_tensors(config, name, tensor):
    """Queries, keys and values of all heads follow each other, and their gates are apart."""
    tensor = stored_norm(name, tensor)
    if ".conv1d" in name:
        tensor = tensor.squeeze(1)
    if name.endswith(".A_log"):
        tensor = -torch.exp(tensor.float())
    if ".in_proj_qkvz" not in name:
        yield name.replace(".dt_bias", ".dt_proj.bias"), tensor
        return
    groups, keys = config["linear_num_key_heads"], config["linear_key_head_dim"]
    values = config["linear_num_value_heads"] // groups * config["linear_value_head_dim"]
    heads = tensor.reshape(groups, -1, tensor.shape[1]).split([keys, keys, values, values], dim=1)
    parts = [part.reshape(-1, tensor.shape[1]) for part in heads]
    yield name.replace("in_proj_qkvz", "in_proj_qkv"), torch.cat(parts[:3])
    yield name.replace("in_proj_qkvz", "in_proj_z"), parts[3]


def qwen35_tensors(config, name, tensor):
    keys = 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"]
    width = config["linear_value_head_dim"]
    tensor = stored_norm(name, tensor)
    if ".conv1d" in name or ".in_proj_qkv" in name:
        tensor = tensor.squeeze(1)
        tensor = torch.cat([tensor[:keys], tiled(config, tensor[keys:], 0, width)])
    elif ".in_proj_z" in name:
        tensor = tiled(config, tensor, 0, width)
    elif ".out_proj" in name:
        tensor = tiled(config, tensor, 1, width)
    elif "linear_attn" in name and ".norm" not in name:
        tensor = tiled(config, tensor, 0, 1)
    if name.endswith(".A_log"):
        tensor = -torch.exp(tensor.float())
    yield name.replace(".dt_bias", ".dt_proj.bias"), tensor


# ---- Granite 4 with Mamba-2

def mamba_keys(writer, config, tensors):
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_expert_shared_feed_forward_length(config["shared_intermediate_size"])
    writer.add_head_count_kv(attention_only(config, ["full_attention", "attention"]))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_attention_scale(config["attention_multiplier"])
    writer.add_embedding_scale(config["embedding_multiplier"])
    writer.add_residual_scale(config["residual_multiplier"])
    writer.add_logit_scale(config["logits_scaling"])
    writer.add_ssm_conv_kernel(config["mamba_d_conv"])
    writer.add_ssm_state_size(config["mamba_d_state"])
    writer.add_ssm_group_count(config["mamba_n_groups"])
    writer.add_ssm_inner_size(config["mamba_expand"] * config["hidden_size"])
    writer.add_ssm_time_step_rank(config["mamba_n_heads"])
    writer.add_rope_scaling_finetuned(False)


def interleaved(tensor, heads):
    """Rows of q or k, with the two halves of each head in turn."""
    return tensor.reshape(heads, 2, -1, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)


def mamba_tensors(config, name, tensor):
    if ".self_attn.q_proj" in name:
        tensor = interleaved(tensor, config["num_attention_heads"])
    elif ".self_attn.k_proj" in name:
        tensor = interleaved(tensor, config["num_key_value_heads"])
    elif ".conv1d.weight" in name:
        tensor = tensor.squeeze(1)
    elif name.endswith(".A_log"):
        tensor = -torch.exp(tensor.float()).unsqueeze(-1)
    elif name.endswith(".mamba.D"):
        tensor = tensor.float().unsqueeze(-1)
    elif ".mamba.norm" in name:
        tensor = tensor.float().reshape(config["mamba_n_groups"], -1)
    if ".shared_mlp.input_linear" in name:
        for part, rows in zip(("gate_proj", "up_proj"), tensor.chunk(2)):
            yield name.replace("shared_mlp.input_linear", "mlp." + part), rows
        return
    name = name.replace("shared_mlp.output_linear", "mlp.down_proj")
    yield name.replace(".dt_bias", ".dt_proj.bias"), tensor


# ---- Gemma 4

def gemma4_keys(writer, config, tensors):
    sliding = [kind == "sliding_attention" for kind in layer_types(config)]
    others = config.get("per_layer_config", {}).get(str(sliding.index(False)), {})
    full_dim = others.get("head_dim", config.get("global_head_dim"))
    full_heads = config.get("num_global_key_value_heads", config["num_key_value_heads"])
    shared = config["num_kv_shared_layers"]
    widths = [tensors[f"model.layers.{i}.mlp.up_proj.weight"].shape[0]
              for i in range(config["num_hidden_layers"])]
    rope = config["rope_parameters"]
    writer.add_rope_freq_base(rope["full_attention"]["rope_theta"])
    writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_sliding_window(config["sliding_window"])
    writer.add_sliding_window_pattern(sliding)
    writer.add_head_count_kv([config["num_key_value_heads"] if slides else full_heads
                              for slides in sliding])
    writer.add_key_length(full_dim)
    writer.add_value_length(full_dim)
    writer.add_key_length_swa(config["head_dim"])
    writer.add_value_length_swa(config["head_dim"])
    writer.add_rope_dimension_count(full_dim)
    writer.add_rope_dimension_count_swa(config["head_dim"])
    writer.add_feed_forward_length(widths if len(set(widths)) > 1 else widths[0])
    writer.add_shared_kv_layers(shared)
    writer.add_embedding_length_per_layer_input(config["hidden_size_per_layer_input"])
    if config.get("enable_moe_block"):
        writer.add_expert_count(config["num_experts"])
        writer.add_expert_used_count(config["top_k_experts"])
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if config["final_logit_softcapping"]:
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    turned = int(full_dim * rope["full_attention"]["partial_rotary_factor"] / 2)
    factors = torch.tensor(turned * [1.0] + (full_dim // 2 - turned) * [1e30])
    writer.add_tensor("rope_freqs.weight", factors.numpy())


# Of a mixture, beside names with an ending of their own.
GEMMA4_SCALES = {"router.scale": "ffn_gate_inp.scale",
                 "router.per_expert_scale": "ffn_down_exps.scale"}


def gemma4_tensors(config, name, tensor):
    for ending, to in GEMMA4_SCALES.items():
        if name.endswith(ending):
            name = f"blk.{name.split('.')[2]}.{to}"
    unended = name.endswith(("layer_scalar", "experts.gate_up_proj", "experts.down_proj"))
    yield name + ".weight" if unended else name, tensor


# ---- Gemma 3n

def gemma3n_keys(writer, config, tensors):
    widths = config["intermediate_size"]
    rope = config["rope_parameters"]
    quantile = torch.distributions.normal.Normal(0, 1).icdf
    writer.add_rope_freq_base(rope["full_attention"]["rope_theta"])
    writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_sliding_window(config["sliding_window"])
    writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in layer_types(config)])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_feed_forward_length(widths if len(set(widths)) > 1 else widths[0])
    writer.add_shared_kv_layers(config["num_kv_shared_layers"])
    writer.add_embedding_length_per_layer_input(config["hidden_size_per_layer_input"])
    writer.add_altup_active_idx(config["altup_active_idx"])
    writer.add_altup_num_inputs(config["altup_num_inputs"])
    writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    writer.add_activation_sparsity_scale(
        [quantile(torch.tensor(share)).item() for share in config["activation_sparsity_pattern"]])
    for kind in ("altup_projections", "altup_unembed_projections"):
        parts = [tensors[f"model.{kind}.{i}.weight"] for i in range(config["altup_num_inputs"] - 1)]
        tensors[f"model.{kind}.weight"] = torch.stack(parts)


def gemma3n_tensors(config, name, tensor):
    if name.split(".")[1].startswith("altup") and name.count(".") > 2:
        return  # one of those that are together in one tensor
    if name.endswith("correct_output_scale"):
        name += ".weight"
        tensor = tensor if config["altup_correct_scale"] else torch.ones_like(tensor)
    yield name, tensor


# ---- Arcee

def arcee_keys(writer, config, tensors):
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["head_dim"])


def arcee_tensors(config, name, tensor):
    for part, heads in (("q", "num_attention_heads"), ("k", "num_key_value_heads")):
        if f".self_attn.{part}_proj" in name:
            tensor = interleaved(tensor, config[heads])
    yield name, tensor


# ---- A layer that predicts a further token

AHEAD = {"mtp.fc.": "eh_proj.", "mtp.pre_fc_norm_embedding.": "enorm.",
         "mtp.pre_fc_norm_hidden.": "hnorm.", "mtp.norm.": "shared_head.norm.",
         "mtp.layers.0.": ""}


def numbered(config, name):
    """Such a layer's names where it is one more behind the others, as in GGUF files."""
    for apart, behind in AHEAD.items():
        if name.startswith(apart):
            return name.replace(apart, f"model.layers.{config['num_hidden_layers']}.{behind}", 1)
    return name


# ---- Files

# Of a model_type: the architecture's name in GGUF, its keys beside the common ones, and the tensors
# that one of the checkpoint's becomes.
FAMILIES = {
    "gemma3n_text": (gguf.MODEL_ARCH.GEMMA3N, gemma3n_keys, gemma3n_tensors),
    "gemma4_text": (gguf.MODEL_ARCH.GEMMA4, gemma4_keys, gemma4_tensors),
    "lfm2": (gguf.MODEL_ARCH.LFM2, lfm2_keys, lfm2_tensors),
    "granitemoehybrid": (gguf.MODEL_ARCH.GRANITE_HYBRID, mamba_keys, mamba_tensors),
    "arcee": (gguf.MODEL_ARCH.ARCEE, arcee_keys, arcee_tensors),
    "qwen3_next": (gguf.MODEL_ARCH.QWEN3NEXT, delta_keys, qwen3next_tensors),
    "qwen3_5_text": (gguf.MODEL_ARCH.QWEN35, delta_keys, qwen35_tensors),
}


def write_common(writer, config, n_ahead):
    rope = config.get("rope_parameters") or config
    writer.add_block_count(config["num_hidden_layers"] + n_ahead)
    if n_ahead:
        writer.add_nextn_predict_layers(n_ahead)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_vocab_size(config["vocab_size"])
    if "rope_theta" in rope:
        writer.add_rope_freq_base(rope["rope_theta"])


def write_tensor(writer, maps, name, tensor):
    found = (names.get_name(name, try_suffixes=(".weight", ".bias")) for names in maps)
    to = name if name.startswith("blk.") else next(filter(None, found), None)
    if to is None:
        raise SystemExit(f"{name}: GGUF has no such tensor in this family")
    if tensor.ndim == 1 or tensor.dtype == torch.float32 or "conv" in name:
        writer.add_tensor(to, tensor.float().contiguous().numpy())
        return
    bits = tensor.to(torch.bfloat16).contiguous().view(torch.uint8).numpy()
    writer.add_tensor(to, bits, raw_dtype=gguf.GGMLQuantizationType.BF16)


def main():
    for folder in map(pathlib.Path, sys.argv[1:]):
        config = json.loads((folder / "config.json").read_text())
        config = config.get("text_config", config)
        arch, keys, convert = FAMILIES[config["model_type"]]
        tensors = {name.replace("model.language_model.", "model.", 1): tensor
                   for name, tensor in load_file(folder / "model.safetensors").items()}
        writer = gguf.GGUFWriter(folder / "model.gguf", gguf.MODEL_ARCH_NAMES[arch])
        n_ahead = int(any(name.startswith("mtp.") for name in tensors))
        write_common(writer, config, n_ahead)
        keys(writer, config, tensors)
        # Qwen3-Next is only known as a mixture; what it has beyond that is called as in Qwen3.5,
        # and what predicts a further token as in GLM-4.5.
        maps = [gguf.get_tensor_name_map(one, config["num_hidden_layers"] + n_ahead)
                for one in (arch, gguf.MODEL_ARCH.QWEN35, gguf.MODEL_ARCH.GLM4_MOE)]
        for name, tensor in tensors.items():
            for to, values in convert(config, numbered(config, name), tensor):
                write_tensor(writer, maps, to, values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        print(folder / "model.gguf")


if __name__ == "__main__":
    main()
