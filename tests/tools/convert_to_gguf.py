#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes model.gguf into folders of tests/golden/models with llama.cpp's own converter, without a
vocabulary: tests/tools/convert_to_gguf.py LLAMA_CPP_SOURCE FOLDER... Not run by the tests; needs
what the converter needs (torch, transformers, gguf)."""
import json
import pathlib
import sys

import torch


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
        kind.no_mtp = True  # tiny checkpoints have no heads that predict further tokens
        out = folder / "model.gguf"
        with torch.inference_mode():
            model = kind(folder, gguf.LlamaFileType.MOSTLY_BF16, out)
            inner = getattr(model, "impl", model)  # a class that chooses among others
            inner.set_vocab = lambda: None
            inner.write()
        print(out)


if __name__ == "__main__":
    main()
