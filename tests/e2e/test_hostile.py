#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged and hostile model files: every command ends by itself with status 0 or 1, and says in
one clean line what is wrong. The checkpoint is made here, tiny; the tokenizer is the bundled one;
golden GGUF files join where they are. SEED chooses the random damage."""
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import unittest

from command import COMMAND, MODEL

SEED = int(os.environ.get("SEED", "1"))
SHARED = pathlib.Path(os.environ.get("STINT_SHARED_DATA", "/nonexistent")) / "fixtures" / "models"
N_DAMAGED = 60  # of each kind of file
MOST_SECONDS = 60
CONFIG = {"model_type": "qwen2", "hidden_size": 16, "intermediate_size": 32,
          "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
          "max_position_embeddings": 64, "vocab_size": 4096, "rms_norm_eps": 1e-6,
          "rope_theta": 10000.0, "tie_word_embeddings": True, "bos_token_id": 4093,
          "eos_token_id": 4093}
VALUES = [0, -1, 1, 3, 2**31 - 1, 2**63 - 1, 2**63, 1e308, -1.0, 1e-320, "te\x1b[2J\nxt", None, [],
          {}, True]
ROPES = [{"rope_type": kind, "factor": factor, "original_max_position_embeddings": context,
          "short_factor": [1.0], "long_factor": [1e-300] * 4}
         for kind in ("linear", "dynamic", "llama3", "yarn", "longrope", "other")
         for factor, context in ((0, 32), (8, 0), (1e12, 1))]


def safetensors(tensors):
    """The bytes of a file of F32 tensors {name: (shape, values)}."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tiny_weights(first=0.01):
    hidden, ffn, kv = 16, 32, 8
    shapes = {"model.embed_tokens.weight": [4096, hidden], "model.norm.weight": [hidden]}
    for name, shape in {"input_layernorm.weight": [hidden],
                        "post_attention_layernorm.weight": [hidden],
                        "self_attn.q_proj.weight": [hidden, hidden],
                        "self_attn.q_proj.bias": [hidden],
                        "self_attn.k_proj.weight": [kv, hidden], "self_attn.k_proj.bias": [kv],
                        "self_attn.v_proj.weight": [kv, hidden], "self_attn.v_proj.bias": [kv],
                        "self_attn.o_proj.weight": [hidden, hidden],
                        "mlp.gate_proj.weight": [ffn, hidden],
                        "mlp.up_proj.weight": [ffn, hidden],
                        "mlp.down_proj.weight": [hidden, ffn]}.items():
        shapes[f"model.layers.0.{name}"] = shape
    tensors = {}
    for name, shape in shapes.items():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[name] = (shape, [first] + [0.01 * (i % 7 - 3) for i in range(1, n)])
    return tensors


def damage(data, draw, limit):
    """A copy cut short, or with some bytes of its first `limit` changed."""
    if draw.random() < 0.15:
        return data[:draw.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        at = draw.randrange(min(limit, len(data)))
        number = draw.choice((0, 1, 2**31, 2**32 - 1, 2**60, 2**64 - 1))
        new = draw.choice((bytes([draw.randrange(256)]), bytes([draw.choice(b'0159"[]{},:-e')]),
                           struct.pack("<Q", number)))
        changed[at:at + len(new)] = new
    return bytes(changed[:len(data)])


class Hostile(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.model = self.folder / "model"
        self.model.mkdir()
        self.draw = random.Random(SEED)
        self.write("config.json", json.dumps(CONFIG).encode())
        self.write("model.safetensors", safetensors(tiny_weights()))
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(MODEL / name, self.model / name)
        self.tokens = self.folder / "tokens.json"
        self.tokens.write_text('{"tokens": [3, 5, 7]}')

    def write(self, name, data):
        (self.model / name).write_bytes(data)

    def run_command(self, command, model=None):
        model = str(model or self.model)
        arguments = {"inspect": ["inspect", model], "tokenize": ["tokenize", model],
                     "run": ["run", model, "-p", "hi", "-n", "2", "--threads", "1"],
                     "logits": ["logits", model, "-t", str(self.tokens), "--threads", "1", "-o",
                                str(self.folder / "logits.f32")]}[command]
        return subprocess.run([COMMAND, *arguments], input=b"hi <a> 7\n\0\xff", check=False,
                              capture_output=True, timeout=MOST_SECONDS)

    def holds(self, case, *commands, model=None, status=None):
        """Runs each command; the case and the seed are in the message of what fails."""
        for command in commands:
            with self.subTest(seed=SEED, case=case, command=command):
                done = self.run_command(command, model)
                self.assertIn(done.returncode, (0, 1) if status is None else (status,),
                              done.stderr[:2000])
                self.assertNotIn(b"runtime error", done.stderr)
                if done.returncode == 1:
                    self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr[:2000])
                    self.assertRegex(done.stderr[:-1], rb"^stint: [^\x00-\x1f\x7f]+$")

    def test_the_model_is_good_when_whole(self):
        self.holds("whole", "inspect", "tokenize", "run", "logits", status=0)

    def test_any_value_in_the_config(self):
        extra = ["head_dim", "sliding_window", "partial_rotary_factor", "layer_types",
                 "rope_scaling", "hidden_act", "final_logit_softcapping"]
        for key in [*CONFIG, *extra]:
            for value in self.draw.sample(VALUES, 7):
                self.write("config.json", json.dumps({**CONFIG, key: value}).encode())
                self.holds((key, value), self.draw.choice(("inspect", "run", "logits")))
        for rope in ROPES:
            self.write("config.json", json.dumps({**CONFIG, "rope_scaling": rope}).encode())
            self.holds(rope, "logits")

    def test_random_damage(self):
        for name, limit in (("config.json", 400), ("model.safetensors", 1500),
                            ("tokenizer.json", 1500), ("tokenizer_config.json", 300)):
            data = (self.model / name).read_bytes()
            commands = ("tokenize", "run") if "tokenizer" in name else ("inspect", "logits")
            for i in range(N_DAMAGED):
                self.write(name, damage(data, self.draw, limit if i % 4 else len(data)))
                self.holds((name, i), self.draw.choice(commands))
            self.write(name, data)

    def test_a_folder_or_nothing_in_place_of_a_file(self):
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            path = self.model / name
            data = path.read_bytes()
            path.write_bytes(b"")
            self.holds((name, "empty"), "run", status=1)
            path.unlink()
            self.holds((name, "missing"), "run", status=1)
            path.mkdir()
            self.holds((name, "folder"), "run", status=1)
            self.assertIn(name.encode(), self.run_command("run").stderr)
            path.rmdir()
            path.write_bytes(data)

    def test_weights_that_are_no_numbers(self):
        for value in (float("nan"), float("inf")):
            self.write("model.safetensors", safetensors(tiny_weights(value)))
            self.holds(value, "logits", status=1)
            self.assertIn(b"not finite", self.run_command("logits").stderr)

    def test_a_tokenizer_beyond_the_vocabulary(self):
        tensors = tiny_weights()
        tensors["model.embed_tokens.weight"] = ([8, 16], [0.01] * 128)
        self.write("model.safetensors", safetensors(tensors))
        self.write("config.json", json.dumps({**CONFIG, "vocab_size": 8}).encode())
        self.holds("vocabulary of 8", "run", status=1)
        self.assertIn(b"vocabulary has 8", self.run_command("run").stderr)

    def test_random_damage_to_gguf(self):
        files = sorted(SHARED.glob("*/*.gguf"))
        if not files:
            self.skipTest("no golden files: STINT_SHARED_DATA")
        damaged = self.folder / "x.gguf"
        for i in range(2 * N_DAMAGED):
            path = self.draw.choice(files)
            damaged.write_bytes(damage(path.read_bytes(), self.draw, 3000))
            self.holds((path.name, i), self.draw.choice(("inspect", "logits", "run", "tokenize")),
                       model=damaged)


if __name__ == "__main__":
    print(f"SEED={SEED}")
    unittest.main()
