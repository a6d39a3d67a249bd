#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file with random quantized weights in a known model's shape, to compare engines
where no such file is at hand. Blocks are drawn as they lie, not quantized, so it takes seconds.
Rows that blocks of 256 do not divide are Q5_0, as llama-quantize does it; experts of gpt-oss are
MXFP4. The vocabulary comes from another file, and must have the shape's size, or there is none:

    bench/random_gguf.py qwen1.5-1.8b Q4_K VOCABULARY.gguf OUT.gguf
    bench/random_gguf.py gpt-oss-20b Q8_0 none OUT.gguf
"""
import argparse

import gguf
import numpy as np

SHAPES = {
    "qwen1.5-1.8b": {"arch": "qwen2", "layers": 24, "hidden": 2048, "heads": 16, "kv_heads": 16,
                     "ffn": 5504, "vocab": 151936, "context": 8192, "theta": 1e6},
    "gpt-oss-20b": {"arch": "gpt-oss", "layers": 24, "hidden": 2880, "heads": 64, "kv_heads": 8,
                    "head_dim": 64, "ffn": 2880, "vocab": 201088, "context": 131072,
                    "theta": 150000.0, "experts": 32, "experts_used": 4, "window": 128},
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
    if kind == "MXFP4":  # codes are up to 6 times 2^-7
        return np.full((n, 1), 120, np.uint8), draw(16)
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


def add_shape(writer, shape):
    writer.add_block_count(shape["layers"])
    writer.add_context_length(shape["context"])
    writer.add_embedding_length(shape["hidden"])
    writer.add_feed_forward_length(shape["ffn"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_rope_freq_base(shape["theta"])
    writer.add_layer_norm_rms_eps(1e-6)
    if "experts" not in shape:
        return
    writer.add_key_length(shape["head_dim"])
    writer.add_value_length(shape["head_dim"])
    writer.add_expert_count(shape["experts"])
    writer.add_expert_used_count(shape["experts_used"])
    writer.add_expert_feed_forward_length(shape["ffn"])
    writer.add_sliding_window(shape["window"])
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(32.0)
    writer.add_rope_scaling_orig_ctx_len(4096)


def layer_linears(shape):
    """Outputs and inputs of the linears that an expert has not."""
    hidden, ffn = shape["hidden"], shape["ffn"]
    dim = shape.get("head_dim", hidden // shape["heads"])
    width, narrow = dim * shape["heads"], dim * shape["kv_heads"]
    linears = {"attn_q": (width, hidden), "attn_k": (narrow, hidden), "attn_v": (narrow, hidden),
               "attn_output": (hidden, width)}
    if "experts" not in shape:
        linears.update({"ffn_gate": (ffn, hidden), "ffn_up": (ffn, hidden),
                        "ffn_down": (hidden, ffn)})
    return linears


def expert_tensors(shape, random):
    """What a layer of gpt-oss has beside these: experts in MXFP4, floats."""
    n, hidden, ffn = shape["experts"], shape["hidden"], shape["ffn"]
    for name, (rows, k) in {"gate": (ffn, hidden), "up": (ffn, hidden),
                            "down": (hidden, ffn)}.items():
        blocks = random_rows("MXFP4", random, n * rows, k).reshape(n, rows, -1)
        yield f"ffn_{name}_exps.weight", blocks, gguf.GGMLQuantizationType.MXFP4
        yield f"ffn_{name}_exps.bias", np.zeros((n, rows), np.float32), None
    router = random.normal(0.0, SPREAD, (n, hidden)).astype(np.float32)
    yield "ffn_gate_inp.weight", router, None
    yield "ffn_gate_inp.bias", np.zeros(n, np.float32), None
    yield "attn_sinks.weight", np.zeros(shape["heads"], np.float32), None


def layer_tensors(shape, kind, random):
    """(name, data, type); biases as the family has them."""
    mixture = "experts" in shape
    for name, (rows, k) in layer_linears(shape).items():
        yield name + ".weight", random_rows(kind, random, rows, k), type_of(kind, k)
        if name != "attn_output" and name.startswith("attn_") or mixture:
            yield name + ".bias", np.zeros(rows, np.float32), None
    for name in ("attn_norm", "post_attention_norm" if mixture else "ffn_norm"):
        yield name + ".weight", np.ones(shape["hidden"], np.float32), None
    if mixture:
        yield from expert_tensors(shape, random)


def add_tensors(writer, shape, kind):
    random = np.random.default_rng(1)
    hidden = shape["hidden"]
    # Every layer has the same weights, each at its own place in the file.
    layer = list(layer_tensors(shape, kind, random))
    rows = random_rows(kind, random, shape["vocab"], hidden)
    writer.add_tensor("token_embd.weight", rows, raw_dtype=type_of(kind, hidden))
    writer.add_tensor("output.weight", rows, raw_dtype=type_of(kind, hidden))
    writer.add_tensor("output_norm.weight", np.ones(hidden, np.float32))
    for i in range(shape["layers"]):
        for name, weights, type_id in layer:
            writer.add_tensor(f"blk.{i}.{name}", weights, raw_dtype=type_id)


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
