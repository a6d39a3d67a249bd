#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites a checkpoint into an equivalent one whose linears meet outliers, as real models have
them: what feeds a channel of a linear's input is multiplied by a power of two, the weights that
read the channel are divided by it, which BF16 does exactly.

    tests/tools/plant_outliers.py FROM TO [--strength 64] [--channels 3] [--share 0.15] [--seed 1]

FROM is a Hugging Face folder of a Llama- or Qwen2-like model in one BF16 file. --share 0.15 takes
the linears nearest to input and output, --share 1 all of them (the head, tied to the embedding,
never).
"""
import argparse
import array
import json
import math
import pathlib
import random
import shutil
import struct


def scale_item(item, power):
    """A BF16 number times 2^power; exact, or an error."""
    exponent = item >> 7 & 0xff
    if item & 0x7fff == 0:
        return item
    if not 0 < exponent < 255 or not 0 < exponent + power < 255:
        raise ValueError("a weight leaves BF16's range: take a smaller strength")
    return item & 0x807f | exponent + power << 7


class Weights:
    def __init__(self, path):
        data = path.read_bytes()
        length, = struct.unpack_from("<Q", data)
        self.header = json.loads(data[8:8 + length])
        self.items = array.array("H")
        self.items.frombytes(data[8 + length:])

    def scale(self, name, power, row=None, column=None):
        """One row, one column, or the one element of a vector."""
        tensor = self.header[name]
        if tensor["dtype"] != "BF16":
            raise ValueError(f"{name} is {tensor['dtype']}, not BF16")
        begin = tensor["data_offsets"][0] // 2
        width = tensor["shape"][-1]
        if len(tensor["shape"]) == 1:
            places = (begin + (row if column is None else column),)
        elif row is not None:
            places = range(begin + row * width, begin + (row + 1) * width)
        else:
            places = range(begin + column, begin + tensor["shape"][0] * width, width)
        for i in places:
            self.items[i] = scale_item(self.items[i], power)

    def write(self, path):
        text = json.dumps(self.header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + self.items.tobytes())


def linears(config):
    """(distance from the nearer end, what is scaled up, what is scaled down, input width)"""
    n = config["num_hidden_layers"]
    hidden, ffn = config["hidden_size"], config["intermediate_size"]
    for i in range(n):
        p = f"model.layers.{i}."
        distance = min(i, n - 1 - i)
        attention, mlp = p + "self_attn.", p + "mlp."
        yield (distance, [p + "input_layernorm.weight"],
               [attention + x + "_proj.weight" for x in "qkv"], hidden)
        yield (distance, [p + "post_attention_layernorm.weight"],
               [mlp + "gate_proj.weight", mlp + "up_proj.weight"], hidden)
        yield distance, [mlp + "up_proj.weight"], [mlp + "down_proj.weight"], ffn


def plant(weights, config, options):
    """The planted linears and their channels."""
    order = random.Random(options.seed)
    power = round(math.log2(options.strength))
    chosen = sorted(linears(config), key=lambda linear: linear[0])
    chosen = chosen[:max(1, round(options.share * len(chosen)))]
    for _, up, down, width in chosen:
        for channel in order.sample(range(width), min(options.channels, width)):
            for name in up:
                weights.scale(name, power, row=channel)
            for name in down:
                weights.scale(name, -power, column=channel)
    return len(chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--strength", type=float, default=64)
    parser.add_argument("--channels", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.15)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.target.mkdir(parents=True, exist_ok=True)
    for file in options.source.iterdir():
        if file.suffix == ".json":
            shutil.copy(file, options.target)
    weights = Weights(options.source / "model.safetensors")
    config = json.loads((options.source / "config.json").read_text())
    n = plant(weights, config, options)
    weights.write(options.target / "model.safetensors")
    print(f"{n} linears with {options.channels} outlier channels each, times {options.strength:g}")


if __name__ == "__main__":
    main()
