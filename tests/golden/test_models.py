#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every golden checkpoint, as a Hugging Face folder and as GGUF: logits within 2e-4 of their
standard deviation, the same greedy continuation, and the same again for chunked prompts, F16 keys
and values (looser) and every instruction set. Steps of quantized blocks in integers stay close."""
import array
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.environ["STINT_COMMAND"]
SHARED = pathlib.Path(os.environ["STINT_SHARED_DATA"])
MODELS = SHARED / "fixtures" / "models"
OWN = pathlib.Path(__file__).parent / "models"  # written by make_models.py
TOLERANCE = 2e-4  # of the logits' standard deviation
CLOSE = 2e-3  # the same, with the inputs of linears in 15 bits


def read_floats(path):
    values = array.array("f")
    values.frombytes(pathlib.Path(path).read_bytes())
    return values


def worst_difference(got, golden):
    if len(got) != len(golden):
        raise AssertionError(f"{len(got)} logits, expected {len(golden)}")
    mean = math.fsum(golden) / len(golden)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in golden) / len(golden))
    worst = max(abs(a - b) for a, b in zip(got, golden))
    return worst / deviation if worst == worst else math.inf


def run(*arguments, **environment):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **environment}, check=False)


def logits(model, tokens, *options, **environment):
    if "--kv" not in options and not str(model).endswith(".stint"):
        options += ("--kv", "f32")  # goldens are exact
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.f32"
        done = run("logits", model, "--tokens", tokens, "-o", out, *options, **environment)
        if done.returncode != 0:
            raise AssertionError(f"{model}: {done.stderr.strip()}")
        return read_floats(out)


def checkpoints():
    """(name, model, tokens, golden, greedy or None)"""
    for folder in sorted([*MODELS.iterdir(), *OWN.iterdir()]):
        if folder.name == "llama-q" or not folder.is_dir():
            continue
        greedy = folder / "greedy.json"
        for model in (folder, folder / "model.gguf"):
            if model.exists():
                yield (f"{folder.name}{'' if model == folder else '.gguf'}", model,
                       folder / "tokens.json", folder / "logits.f32",
                       greedy if greedy.exists() else None)
    for model in sorted((MODELS / "llama-q").glob("*.gguf")):
        yield (f"llama-q/{model.stem}", model, MODELS / "llama-q" / "tokens.json",
               MODELS / "llama-q" / f"logits-{model.stem}.f32", None)
    for folder in sorted((SHARED / "models").iterdir()):
        if folder.is_dir():
            yield (folder.name, folder, folder / "tokens.json", folder / "logits.f32", None)


class Golden(unittest.TestCase):
    def test_logits_agree_with_the_goldens(self):
        for name, model, tokens, golden, _ in checkpoints():
            with self.subTest(name):
                values = logits(model, tokens, "--exec", "float")
                worst = worst_difference(values, read_floats(golden))
                print(f"{name:24} {worst:.2e}", file=sys.stderr)
                self.assertLess(worst, TOLERANCE)

    def test_greedy_continuation_is_the_golden_one(self):
        for name, model, tokens, _, greedy in checkpoints():
            if greedy is None:
                continue
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                ids = json.loads(tokens.read_text())["tokens"]
                expected = json.loads(greedy.read_text())["tokens"]
                # Position by position, as a decoder meets them: each best logit is the next id.
                path = pathlib.Path(folder) / "tokens.json"
                path.write_text(json.dumps({"tokens": ids + expected[:-1]}))
                # A chunk of one token runs the decode kernels.
                for chunk in ("64", "1"):
                    values = logits(model, path, "--chunk", chunk, "--exec", "float")
                    vocab = len(values) // (len(ids) + len(expected) - 1)
                    got = []
                    for i in range(len(expected)):
                        row = values[(len(ids) - 1 + i) * vocab:(len(ids) + i) * vocab]
                        got.append(max(range(vocab), key=row.__getitem__))
                    self.assertEqual(got, expected)

    def test_chunks_do_not_change_the_result(self):
        for name in ("llama3", "gemma3", "mixtral", "phi2", "opt"):
            tokens = MODELS / name / "tokens.json"
            golden = read_floats(MODELS / name / "logits.f32")
            whole = logits(MODELS / name, tokens)
            with self.subTest(name):
                # All of them, however short, run the kernels for prompts.
                for chunk in ("6", "7", "16"):
                    self.assertEqual(logits(MODELS / name, tokens, "--chunk", chunk), whole)
                for chunk in ("1", "3"):
                    got = logits(MODELS / name, tokens, "--chunk", chunk)
                    self.assertLess(worst_difference(got, golden), TOLERANCE)

    def test_threads_do_not_change_a_bit(self):
        for name in ("qwen2", "gemma3", "mixtral"):
            tokens = MODELS / name / "tokens.json"
            one = logits(MODELS / name, tokens, "--threads", "1")
            for threads in ("2", "3"):
                with self.subTest(name, threads=threads):
                    self.assertEqual(logits(MODELS / name, tokens, "--threads", threads), one)

    def test_every_instruction_set_agrees(self):
        for flags in ("scalar", "avx2", "avx512", "neon"):
            for name in ("llama3", "gemma", "phi2"):
                with self.subTest(name, flags=flags):
                    got = logits(MODELS / name, MODELS / name / "tokens.json", STINT_CPU=flags)
                    golden = read_floats(MODELS / name / "logits.f32")
                    self.assertLess(worst_difference(got, golden), TOLERANCE)

    def test_steps_over_quantized_blocks_stay_close(self):
        folder = MODELS / "llama-q"
        tokens, steps = folder / "tokens.json", ("--chunk", "3")
        for model in sorted(folder.glob("*q*.gguf")):
            golden = read_floats(folder / f"logits-{model.stem}.f32")
            described = json.loads(run("inspect", model, "--json").stdout)
            chosen = logits(model, tokens, *steps, "--exec", described["exec"])
            self.assertEqual(logits(model, tokens, *steps), chosen)
            for flags in ("", "scalar", "avx2", "avxvnni", "neon"):
                with self.subTest(model.stem, flags=flags):
                    got = logits(model, tokens, *steps, "--exec", "fast", STINT_CPU=flags)
                    worst = worst_difference(got, golden)
                    print(f"fast, {model.stem:8} {flags:8} {worst:.2e}", file=sys.stderr)
                    self.assertLess(worst, CLOSE)

    def test_fast_needs_quantized_blocks(self):
        for model in (MODELS / "llama2", MODELS / "llama-q" / "f16.gguf"):
            done = run("run", model, "--exec", "fast", "-p", "a", "-n", "1")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("--exec fast needs a GGUF file with quantized weights", done.stderr)

    def test_f16_cache_stays_close(self):
        for name in ("llama3", "gemma3"):
            with self.subTest(name):
                tokens = MODELS / name / "tokens.json"
                got = logits(MODELS / name, tokens, "--kv", "f16")
                worst = worst_difference(got, read_floats(MODELS / name / "logits.f32"))
                self.assertLess(worst, 2e-2)
                self.assertNotEqual(got, logits(MODELS / name, tokens))


if __name__ == "__main__":
    if not MODELS.is_dir():
        print("1 skipped: no golden files", file=sys.stderr)
        sys.exit(77)
    unittest.main()
