#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file with random quantized weights in a known model's shape, to compare engines
where no such file is at hand. Blocks are drawn as they lie, not quantized, so it takes seconds.
Rows that blocks of 256 do not divide are Q5_0, as llama-quantize does it. The vocabulary comes
from another file, and must have the shape's size:

    bench/random_gguf.py qwen1.5-1.8b Q4_K VOCABULARY.gguf OUT.gguf
"""
import argparse

import gguf
import numpy as np

SHAPES = {
    "qwen1.5-1.8b": {"arch": "qwen2", "layers": 24, "hidden": 2048, "heads": 16, "kv_heads": 16,
                     "ffn": 5504, "vocab": 151936, "context": 8192, "theta": 1e6},
}
SPREAD = 0.02  # roughly, of the weights


def half(value, n):
    return np.full((n, 1), value, np.float16).view(np.uint8)


def block_parts(kind, random, n):
    """The parts of n blocks, as columns of bytes, in the order in which they lie."""
    def draw(width):
        return random.integers(0, 256, (n, width), np.uint8)
    if kind == "Q4_K":  # 6-bit scales average 32; the minimum takes the mean of the codes away
        scale = SPREAD / (32 * 4.6)
        return half(scale, n), half(7.5 * scale, n), draw(12), draw(128)
    if kind == "Q4_0":
        return half(SPREAD / 4.6, n), draw(16)
    if kind == "Q5_0":
        return half(SPREAD / 9.2, n), draw(4), draw(16)
    return half(SPREAD / 74, n), draw(32)  # Q8_0


def type_of(kind, k):
    type_id = gguf.GGMLQuantizationType[kind]
    fits = k % gguf.GGML_QUANT_SIZES[type_id][0] == 0
    return type_id if fits else gguf.GGMLQuantizationType.Q5_0


def random_rows(kind, random, n_rows, k):
    type_id = type_of(kind, k)
    items, size = gguf.GGML_QUANT_SIZES[type_id]
    blocks = np.concatenate(block_parts(type_id.name, random, n_rows * k // items), axis=1)
    assert blocks.shape[1] == size
    return blocks.reshape(n_rows, k // items * size)


def copy_vocabulary(writer, path, size):
    """The tokenizer's keys as they are."""
    for field in gguf.GGUFReader(path).fields.values():
        if not field.name.startswith("tokenizer."):
            continue
        kind = field.types[0]
        value = field.contents()
        if field.name == "tokenizer.ggml.tokens" and len(value) != size:
            raise SystemExit(f"{path}: {len(value)} tokens, not {size}")
        writer.add_key_value(field.name, value, kind,
                             sub_type=field.types[-1] if len(field.types) > 1 else None)


def add_shape(writer, shape):
    writer.add_block_count(shape["layers"])
    writer.add_context_length(shape["context"])
    writer.add_embedding_length(shape["hidden"])
    writer.add_feed_forward_length(shape["ffn"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_rope_freq_base(shape["theta"])
    writer.add_layer_norm_rms_eps(1e-6)


def add_tensors(writer, shape, kind):
    random = np.random.default_rng(1)
    hidden, ffn = shape["hidden"], shape["ffn"]
    width = hidden // shape["heads"] * shape["kv_heads"]
    linears = {"attn_q": (hidden, hidden), "attn_k": (width, hidden), "attn_v": (width, hidden),
               "attn_output": (hidden, hidden), "ffn_gate": (ffn, hidden), "ffn_up": (ffn, hidden),
               "ffn_down": (hidden, ffn)}
    # Every layer has the same weights, each at its own place in the file.
    layer = {name: random_rows(kind, random, *size) for name, size in linears.items()}
    rows = random_rows(kind, random, shape["vocab"], hidden)
    ones, biases = np.ones(hidden, np.float32), {"q": hidden, "k": width, "v": width}
    writer.add_tensor("token_embd.weight", rows, raw_dtype=type_of(kind, hidden))
    writer.add_tensor("output.weight", rows, raw_dtype=type_of(kind, hidden))
    writer.add_tensor("output_norm.weight", ones)
    for i in range(shape["layers"]):
        for name, weights in layer.items():
            writer.add_tensor(f"blk.{i}.{name}.weight", weights,
                              raw_dtype=type_of(kind, linears[name][1]))
        for name, n in biases.items():
            writer.add_tensor(f"blk.{i}.attn_{name}.bias", np.zeros(n, np.float32))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{name}.weight", ones)


def write(shape, kind, vocabulary, out):
    writer = gguf.GGUFWriter(out, shape["arch"])
    add_shape(writer, shape)
    copy_vocabulary(writer, vocabulary, shape["vocab"])
    add_tensors(writer, shape, kind)
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
    write(SHAPES[options.shape], options.type, options.vocabulary, options.out)


if __name__ == "__main__":
    main()
