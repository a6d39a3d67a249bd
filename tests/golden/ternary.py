# SPDX-License-Identifier: Apache-2.0
"""Of make_models.py: linears of BitNet, whose weights are -1, 0 and 1 times a scale."""
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers.integrations import bitnet


def ternary_linears(model):
    return [parameter for name, parameter in model.named_parameters()
            if ".layers." in name and name.endswith("_proj.weight")]


def round_linears(model):
    with torch.no_grad():
        for weight in ternary_linears(model):
            scale = weight.abs().mean().bfloat16().float()
            weight.copy_((weight / scale).round().clamp(-1, 1) * scale)


def store_ternary(weights):
    """As microsoft/bitnet-b1.58-2B-4T stores its linears."""
    tensors = {}
    with safe_open(weights, "pt") as stored:
        for key in stored.keys():
            values = tensors[key] = stored.get_tensor(key)
            if key.endswith("_proj.weight"):
                scale = values.abs().max()
                tensors[key] = bitnet.pack_weights(values.sign())
                tensors[key + "_scale"] = scale[None]
                unpacked = bitnet.unpack_weights(tensors[key], torch.bfloat16) * scale
                assert torch.equal(unpacked, values)
    save_file(tensors, weights, {"format": "pt"})
