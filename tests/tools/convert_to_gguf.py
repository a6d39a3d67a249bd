#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes model.gguf into folders of tests/golden/models with llama.cpp's own converter, without a
vocabulary: tests/tools/convert_to_gguf.py LLAMA_CPP_SOURCE FOLDER... Not run by the tests; needs
what the converter needs (torch, transformers, gguf)."""
import json
import pathlib
import sys

import torch


def unpack_ternary(model):
    """Linears of AutoBitLinear: codes times the scale beside them."""
    stored = model.model_tensors
    for name in [name for name in stored if name.endswith(".weight_scale")]:
        scale, weight = stored.pop(name)(), stored[name[:-len("_scale")]]()
        codes = torch.cat([(weight >> 2 * i & 3).float() - 1 for i in range(4)])
        stored[name[:-len("_scale")]] = lambda codes=codes, scale=scale: codes * scale.float()


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
        if "quantization_config" in config and config["model_type"] == "bitnet":
            file_type = gguf.LlamaFileType.MOSTLY_TQ2_0
        with torch.inference_mode():
            model = kind(folder, file_type, out, eager=True)
            inner = getattr(model, "impl", model)  # a class that chooses among others
            inner.set_vocab = lambda: None
            inner.write()
        print(out)


if __name__ == "__main__":
    main()
