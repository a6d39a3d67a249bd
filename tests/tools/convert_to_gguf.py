#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes model.gguf into folders of tests/golden/models with llama.cpp's own converter, without a
vocabulary: tests/tools/convert_to_gguf.py LLAMA_CPP_SOURCE FOLDER... Not run by the tests; needs
what the converter needs (torch, transformers, gguf)."""
import json
import pathlib
import sys

import torch
import torch._dynamo
from transformers.integrations import bitnet

torch._dynamo.config.disable = True  # of functions that are compiled by decorators
I2_S = 36


def unpack_ternary(model):
    """Linears of AutoBitLinear: codes times the scale beside them."""
    stored = model.model_tensors
    for name in [name for name in stored if name.endswith(".weight_scale")]:
        scale, weight = stored.pop(name)(), stored[name[:-len("_scale")]]()
        codes = torch.cat([(weight >> 2 * i & 3).float() - 1 for i in range(4)])
        stored[name[:-len("_scale")]] = lambda codes=codes, scale=scale: codes * scale.float()


def i2_s(values):
    """Microsoft's ternary type: blocks of 128 elements, then the scale."""
    scale = values.abs().max()
    codes = (values.sign() + 1).to(torch.uint8).reshape(-1, 4, 32)
    packed = sum(codes[:, i] << 6 - 2 * i for i in range(4)).flatten()
    tail = torch.tensor([scale] + 7 * [0.0]).view(torch.uint8)
    return torch.cat([packed, tail]).view(torch.int8).numpy()


def add_as_i2_s(writer, add):
    """Linears of layers become I2_S, whose number the package gguf does not know."""
    def add_tensor(name, tensor, raw_dtype=None, **_):
        if name.startswith("blk.") and tensor.ndim == 2:
            values = bitnet.WeightQuant.apply(torch.from_numpy(tensor).float())
            add(name, i2_s(values), raw_shape=tensor.shape, raw_dtype=I2_S)
        else:
            add(name, tensor, raw_dtype=raw_dtype)
    writer.add_tensor = add_tensor


def as_microsoft_does(gguf, kind):
    """Names of its converter for BitNet, and weights as they are; llama.cpp's own knows the models
    from before 2025."""
    old_names = {"attn_sub_norm": "inner_attn_ln", "ffn_sub_norm": "ffn_layernorm"}
    gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH.BITNET] = "bitnet-b1.58"
    gguf.MODEL_TENSORS[gguf.MODEL_ARCH.BITNET].append(gguf.MODEL_TENSOR.OUTPUT)
    kind.weight_quant = lambda _, weight: weight
    kind.dequant_model = unpack_ternary
    kind.map_tensor_name = lambda self, name, base=kind.map_tensor_name: base(
        self, ".".join(old_names.get(part, part) for part in name.split(".")))


def main():
    sys.path.insert(0, sys.argv[1])
    sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "gguf-py"))
    # pylint: disable=import-outside-toplevel,import-error
    import gguf
    from conversion import get_model_class
    from conversion.base import ModelBase, ModelType, get_model_architecture
    for folder in map(pathlib.Path, sys.argv[2:]):
        config = json.loads((folder / "config.json").read_text())
        if config["model_type"] == "nemotron_h":  # transformers gives dense ones a mixture's keys
            ModelBase.load_hparams = staticmethod(lambda *_, config=config, **__: dict(config))
        family = get_model_architecture(ModelBase.load_hparams(folder, False), ModelType.TEXT)
        kind = get_model_class(family)
        if config["model_type"] == "bitnet":
            as_microsoft_does(gguf, kind)
        kind.no_mtp = True  # tiny checkpoints have no heads that predict further tokens
        out = folder / "model.gguf"
        file_type = gguf.LlamaFileType.MOSTLY_BF16
        mode = config.get("quantization_config", {}).get("quantization_mode")
        if config["model_type"] == "falcon_h1":  # weights get factors that BF16 would round
            file_type = gguf.LlamaFileType.ALL_F32
        if mode:
            file_type = {"offline": gguf.LlamaFileType.MOSTLY_TQ2_0,
                         "online": gguf.LlamaFileType.ALL_F32}[mode]
        with torch.inference_mode():
            model = kind(folder, file_type, out, eager=True)
            inner = getattr(model, "impl", model)  # a class that chooses among others
            inner.set_vocab = lambda: None
            if mode == "online":
                add_as_i2_s(inner.gguf_writer, inner.gguf_writer.add_tensor)
            inner.write()
        print(out)


if __name__ == "__main__":
    main()
