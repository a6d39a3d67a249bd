#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes model.gguf into folders with LFM2 checkpoints by the gguf package alone, without a
vocabulary, with the keys and names that files of this family have:
tests/tools/write_lfm2_gguf.py FOLDER... Not run by the tests; needs gguf, safetensors and torch
from PyPI."""
import json
import pathlib
import sys

import gguf
import torch
from safetensors.torch import load_file

ARCH = gguf.MODEL_ARCH.LFM2


def layer_types(config):
    if config.get("layer_types"):
        return config["layer_types"]
    return ["full_attention" if i in config["full_attn_idxs"] else "conv"
            for i in range(config["num_hidden_layers"])]


def write_keys(writer, config, ffn):
    heads = config["num_key_value_heads"]
    rope = config.get("rope_parameters") or config
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv([0 if kind == "conv" else heads for kind in layer_types(config)])
    writer.add_layer_norm_rms_eps(config["norm_eps"])
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_shortconv_l_cache(config["conv_L_cache"])


def write_tensors(writer, config, tensors):
    names = gguf.get_tensor_name_map(ARCH, config["num_hidden_layers"])
    for name, tensor in tensors.items():
        to = names.get_name(name, try_suffixes=(".weight",))
        if to is None:
            raise SystemExit(f"{name}: GGUF has no such tensor in this family")
        if ".conv.conv" in name:
            tensor = tensor.squeeze(1)
        if tensor.ndim == 1 or ".conv.conv" in name:
            writer.add_tensor(to, tensor.float().numpy())
        else:
            bits = tensor.to(torch.bfloat16).contiguous().view(torch.uint8).numpy()
            writer.add_tensor(to, bits, raw_dtype=gguf.GGMLQuantizationType.BF16)


def main():
    for folder in map(pathlib.Path, sys.argv[1:]):
        config = json.loads((folder / "config.json").read_text())
        tensors = load_file(folder / "model.safetensors")
        writer = gguf.GGUFWriter(folder / "model.gguf", gguf.MODEL_ARCH_NAMES[ARCH])
        write_keys(writer, config, tensors["model.layers.0.feed_forward.w1.weight"].shape[0])
        write_tensors(writer, config, tensors)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        print(folder / "model.gguf")


if __name__ == "__main__":
    main()
