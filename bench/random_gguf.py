#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file with random quantized weights in a known model's shape, to compare engines
where no such file is at hand. Blocks are drawn as they lie, not quantized, so it takes seconds.
Rows that blocks of 256 do not divide are Q5_0, as llama-quantize does it; experts of gpt-oss are
MXFP4. Routers prefer some experts (ROUTER_SKEW). The vocabulary comes from another file, and must
have the shape's size, or there is none:

    bench/random_gguf.py qwen1.5-1.8b Q4_K VOCABULARY.gguf OUT.gguf
    bench/random_gguf.py gpt-oss-20b Q8_0 none OUT.gguf
"""
import argparse

import gguf
import numpy as np
from random_shapes import SHAPES

SPREAD = 0.02  # roughly, of the weights
# Of the logarithm of the norms of a router's rows: the busiest quarter of 128 experts, of which a
# token uses 8, has 56 % of the uses, where it would have 25 % if all were used alike.
ROUTER_SKEW = 0.4


def half(value, n):
    return np.full((n, 1), value, np.float16).view(np.uint8)


def block_parts(kind, random, n, spread):
    """The parts of n blocks, as columns of bytes, in the order in which they lie."""
    def draw(width):
        return random.integers(0, 256, (n, width), np.uint8)
    if kind == "Q4_K":  # 6-bit scales average 32; the minimum takes the mean of the codes away
        scale = spread / (32 * 4.6)
        return half(scale, n), half(7.5 * scale, n), draw(12), draw(128)
    if kind == "Q4_0":
        return half(spread / 4.6, n), draw(16)
    if kind == "Q5_0":
        return half(spread / 9.2, n), draw(4), draw(16)
    if kind == "MXFP4":  # codes are up to 6 times 2^-7
        return np.full((n, 1), 120, np.uint8), draw(16)
    return half(spread / 74, n), draw(32)  # Q8_0


def type_of(kind, k):
    type_id = gguf.GGMLQuantizationType[kind]
    fits = k % gguf.GGML_QUANT_SIZES[type_id][0] == 0
    return type_id if fits else gguf.GGMLQuantizationType.Q5_0


def random_rows(kind, random, n_rows, k, spread=SPREAD):
    type_id = type_of(kind, k)
    items, size = gguf.GGML_QUANT_SIZES[type_id]
    blocks = np.concatenate(
        block_parts(type_id.name, random, n_rows * k // items, spread), axis=1)
    assert blocks.shape[1] == size
    return blocks.reshape(n_rows, k // items * size)


def copy_vocabulary(writer, path, size):
    """The tokenizer's keys as they are; 'none' if there is to be no vocabulary."""
    if path == "none":
        writer.add_tokenizer_model("no_vocab")
        writer.add_vocab_size(size)
        return
    for field in gguf.GGUFReader(path).fields.values():
        if not field.name.startswith("tokenizer."):
            continue
        kind = field.types[0]
        value = field.contents()
        if field.name == "tokenizer.ggml.tokens" and len(value) != size:
            raise SystemExit(f"{path}: {len(value)} tokens, not {size}")
        writer.add_key_value(field.name, value, kind,
                             sub_type=field.types[-1] if len(field.types) > 1 else None)


def make(entry, kind, random):
    """The array and the type of a tensor."""
    what, *sizes = entry
    if what == "floats":
        dims, value = sizes
        data = random.normal(0.0, SPREAD, dims) if value is None else np.full(dims, value)
        return data.astype(np.float32), None
    if what == "experts":
        own, n, rows, k = sizes
        blocks = random_rows(own or kind, random, n * rows, k)
        return blocks.reshape(n, rows, -1), type_of(own or kind, k)
    if what == "router":
        seed, n, k = sizes
        own = np.random.default_rng(seed)
        norms = np.exp(ROUTER_SKEW * own.standard_normal((n, 1)))
        return (norms * own.normal(0.0, SPREAD, (n, k))).astype(np.float32), None
    return random_rows(kind, random, *sizes), type_of(kind, sizes[1])


def add_tensors(writer, top, layers, kind):
    """Tensors of one size have the same weights, each at its own place in the file."""
    random, made = np.random.default_rng(1), {}
    named = [*top.items(), *((f"blk.{i}.{name}", entry) for i, layer in enumerate(layers)
                             for name, entry in layer.items())]
    for name, entry in named:
        if entry not in made:
            made[entry] = make(entry, kind, random)
        writer.add_tensor(name, made[entry][0], raw_dtype=made[entry][1])


def write(shape, kind, vocabulary, out):
    arch, vocab, keys, top, layers = SHAPES[shape]()
    writer = gguf.GGUFWriter(out, arch)
    for name, value in keys.items():
        getattr(writer, "add_" + name)(value)
    copy_vocabulary(writer, vocabulary, vocab)
    add_tensors(writer, top, layers, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("type", choices=("Q4_0", "Q4_K", "Q8_0"))
    parser.add_argument("vocabulary")
    parser.add_argument("out")
    options = parser.parse_args()
    write(options.shape, options.type, options.vocabulary, options.out)


if __name__ == "__main__":
    main()
