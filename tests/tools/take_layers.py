#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a copy of a checkpoint with some of its layers: for tests of what any weights show, in a
fraction of the time.

  take_layers.py [--context N] SOURCE TARGET LAYER..."""
import argparse
import json
import os
import pathlib
import re
import shutil
import struct


def name_of(tensor, layers):
    """The tensor's name in the copy; None: it is left out."""
    layer = re.search(r"\.layers\.(\d+)\.", tensor)
    if not layer:
        return tensor
    if int(layer[1]) not in layers:
        return None
    return tensor.replace(layer[0], f".layers.{layers.index(int(layer[1]))}.")


def take(source, target, layers, context):
    data = (source / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header, body, tensors = json.loads(data[8:8 + length]), data[8 + length:], {}
    kept, at = [], 0
    for tensor, entry in header.items():
        name = name_of(tensor, layers)
        if name is None or tensor == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = {**entry, "data_offsets": [at, at + end - begin]}
        kept.append(body[begin:end])
        at += end - begin
    text = json.dumps(tensors).encode()
    text += b" " * (-len(text) % 8)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config["num_hidden_layers"] = len(layers)
    config["max_position_embeddings"] = context or config["max_position_embeddings"]
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (target / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(kept))
    for file in source.iterdir():
        if file.name.startswith(("tokenizer", "generation", "special", "chat")):
            shutil.copyfile(file, target / file.name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("layers", type=int, nargs="+")
    parser.add_argument("--context", type=int, help="in tokens; default: the source's")
    o = parser.parse_args()
    o.target.mkdir(parents=True, exist_ok=True)
    take(o.source, o.target, o.layers, o.context)
    os.utime(o.target / "config.json")


if __name__ == "__main__":
    main()
