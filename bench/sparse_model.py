#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a checkpoint of a real model's shape whose feed-forward neurons are active rarely and
unevenly: about --active of them for a token, the i-th most active one with a probability that falls
as i ** -SKEW. What the blocks compute is random; which neurons are active follows from a few
directions of the input, as in trained models, so that it can be predicted. For measurements only.

    python3 bench/sparse_model.py OUT --shape turbosparse-7b --layers 16
"""
import argparse
import json
import pathlib
import statistics
import struct

import numpy as np

SHAPES = {  # hidden, layers, heads, kv heads, ffn, vocabulary
    "turbosparse-7b": (4096, 32, 32, 8, 14336, 32000),
    "llama-2-7b": (4096, 32, 32, 32, 11008, 32000),
    "small": (512, 4, 8, 4, 2048, 1000),
}
CONSTANT = 8.0  # element 0 of every hidden state, which gives the gates their offsets
DIRECTIONS = 48
LATENT = 256  # embeddings lie mostly in a subspace of so many dimensions, as trained ones do
SKEW = 1.0  # then 43 % of the neurons have 83 % of the activity; published are 26 to 43 % for 80 %


def bf16(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def rates(n, active, rng):
    ranks = np.arange(1, n + 1, dtype=np.float64) ** -SKEW
    low, high = 0.0, float(n)
    for _ in range(100):
        scale = (low + high) / 2
        if np.minimum(0.98, scale * ranks).mean() < active:
            low = scale
        else:
            high = scale
    return rng.permutation(np.minimum(0.98, scale * ranks))


def offsets(p):
    normal = statistics.NormalDist()
    table = np.array([normal.inv_cdf(1 - x) for x in np.linspace(1e-5, 1 - 1e-5, 20001)])
    return np.interp(p, np.linspace(1e-5, 1 - 1e-5, 20001), table)


class Writer:
    """A safetensors file, tensor by tensor: sizes first, then the data in the same order."""

    def __init__(self, path, shapes):
        header, at = {}, 0
        for name, shape in shapes:
            size = 2 * int(np.prod(shape))
            header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self.file = open(path, "wb")
        self.file.write(struct.pack("<Q", len(text)) + text)

    def add(self, x):
        bf16(x).tofile(self.file)


def layer_shapes(i, hidden, heads, kv, ffn):
    head = hidden // heads
    p = f"model.layers.{i}."
    return [(p + "input_layernorm.weight", (hidden,)),
            (p + "self_attn.q_proj.weight", (hidden, hidden)),
            (p + "self_attn.k_proj.weight", (kv * head, hidden)),
            (p + "self_attn.v_proj.weight", (kv * head, hidden)),
            (p + "self_attn.o_proj.weight", (hidden, hidden)),
            (p + "post_attention_layernorm.weight", (hidden,)),
            (p + "mlp.gate_proj.weight", (ffn, hidden)),
            (p + "mlp.up_proj.weight", (ffn, hidden)),
            (p + "mlp.down_proj.weight", (hidden, ffn))]


def write_layer(w, rng, basis, hidden, heads, kv, ffn, active):
    def random(rows, columns, scale):
        return rng.standard_normal((rows, columns), np.float32) * (scale / columns ** 0.5)

    head = hidden // heads
    w.add(np.ones(hidden))
    w.add(random(hidden, hidden, 1.0))
    w.add(random(kv * head, hidden, 1.0))
    w.add(random(kv * head, hidden, 1.0))
    o = random(hidden, hidden, 0.5)
    o[0] = 0  # the constant stays as it is
    w.add(o)
    w.add(np.ones(hidden))
    directions = random(DIRECTIONS, len(basis), (len(basis) / hidden) ** 0.5) @ basis
    mixture = random(ffn, DIRECTIONS, 1.0)
    gate = mixture @ directions + random(ffn, hidden, 0.05)
    gate[:, 0] = -offsets(rates(ffn, active, rng)) / CONSTANT
    up = random(ffn, hidden, 0.2)
    up[:, 0] = 1.0 / CONSTANT
    w.add(gate)
    w.add(up)
    down = random(hidden, ffn, 0.5 / active ** 0.5)
    down[0] = 0
    w.add(down)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--shape", choices=SHAPES, default="turbosparse-7b")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--active", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    hidden, layers, heads, kv, ffn, vocab = SHAPES[args.shape]
    layers = args.layers or layers
    rng = np.random.default_rng(args.seed)
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps({
        "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": hidden,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv,
        "intermediate_size": ffn, "vocab_size": vocab, "max_position_embeddings": 4096,
        "hidden_act": "drelu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16"}))
    shapes = [("model.embed_tokens.weight", (vocab, hidden))]
    for i in range(layers):
        shapes += layer_shapes(i, hidden, heads, kv, ffn)
    shapes += [("model.norm.weight", (hidden,)), ("lm_head.weight", (vocab, hidden))]
    w = Writer(out / "model.safetensors", shapes)
    latent = min(LATENT, hidden // 4)
    basis = np.linalg.qr(rng.standard_normal((hidden, latent)))[0].T.astype(np.float32)
    basis[:, 0] = 0
    embed = rng.standard_normal((vocab, latent), np.float32) @ basis * (hidden / latent) ** 0.5
    embed += 0.2 * rng.standard_normal((vocab, hidden), np.float32)
    embed[:, 0] = CONSTANT
    w.add(embed)
    for _ in range(layers):
        write_layer(w, rng, basis, hidden, heads, kv, ffn, args.active)
    w.add(np.ones(hidden))
    w.add(rng.standard_normal((vocab, hidden), np.float32) / hidden ** 0.5)


if __name__ == "__main__":
    main()
