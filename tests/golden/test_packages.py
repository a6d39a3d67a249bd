#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every golden checkpoint prepared as a package: it runs, its logits stay near the float goldens,
and no bit of them depends on how the prompt is cut. The tiny random models of the fixtures say
nothing about accuracy; the bound on them finds wrong wiring. Ways to run are tried on each
checkpoint in turn, and nested codes are made of folders, of one trained model and of some types of
blocks; with STINT_CI_LONG=1 all of them on each."""
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

import test_models as golden

SHARED = golden.SHARED
CHANNEL_BOUND = 0.1  # root mean square of the difference, in standard deviations of the logits
NESTED_BOUND = 0.1  # of half of the tokens: a mixture's others may have got other experts
MIXTURE_BOUND = 0.12  # the same of CLOSE_CALLS
CLOSE_CALLS = ("gpt-oss", "glm4-moe", "qwen2moe", "ernie4_5-moe", "deepseek", "qwen35moe",
               "qwen3next-moe", "lfm2moe", "granitehybrid-moe",
               "nemotron_h-moe")  # INT8 moves some too
TRAINED_BOUND = 0.05
ORDERS = (("inorder", 1, 1), ("ooo", 1, 3), ("heft", 2, 1))
CHUNKS = ("11", "4")  # of four, tokens take the way of those that are written one by one


LONG = os.environ.get("STINT_CI_LONG") == "1"


def ways(i, all_of_them):
    """The i-th, or all of them in the long mode."""
    if LONG:
        return all_of_them
    return (all_of_them[i % len(all_of_them)],)


def is_nested(i, name):
    """A GGUF file beside a folder has the same weights, and one trained model is like another."""
    if name.startswith("llama-q/"):
        return LONG or i % 4 == 0
    return LONG or not name.endswith((".gguf", "drelu"))


def rms_difference(got, wanted):
    if len(got) != len(wanted):
        raise AssertionError(f"{len(got)} logits, expected {len(wanted)}")
    mean = math.fsum(wanted) / len(wanted)
    power = math.fsum((x - mean) ** 2 for x in wanted)
    error = math.fsum((a - b) ** 2 for a, b in zip(got, wanted))
    return math.sqrt(error / power) if error == error else math.inf


def median_difference(got, wanted, n_tokens):
    """Of rms_difference over the tokens."""
    if len(got) != len(wanted):
        raise AssertionError(f"{len(got)} logits, expected {len(wanted)}")
    vocab = len(wanted) // n_tokens
    rows = [slice(t * vocab, (t + 1) * vocab) for t in range(n_tokens)]
    return statistics.median(rms_difference(got[row], wanted[row]) for row in rows)


class Packages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def prepare(self, model, *options):
        package = self.folder / "model.stint"
        done = golden.run("prepare", model, "-o", package, "--json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["bytes"], package.stat().st_size)
        self.assertEqual([file.name for file in self.folder.iterdir()], ["model.stint"])
        return package, report

    def test_every_checkpoint_prepares_and_runs(self):
        for i, (name, model, tokens, logits, _) in enumerate(golden.checkpoints()):
            with self.subTest(name):
                # The tokens of the goldens themselves: what is calibrated on is what is run.
                trained, nested = name.startswith("novels"), is_nested(i, name)
                package, report = self.prepare(model, "--calib-ids", tokens,
                                               "--bits", "7..7" if nested else "none",
                                               *(("--quantizer", "uniform") if trained else ()))
                n_tokens = len(json.loads(tokens.read_text())["tokens"])
                self.assertEqual(report["calibration_tokens"], n_tokens)
                got = golden.logits(package, tokens)
                wanted = golden.read_floats(logits)
                difference = rms_difference(got, wanted)
                if name.startswith(CLOSE_CALLS):
                    difference = median_difference(got, wanted, n_tokens)
                print(f"{name:24} {difference:.3f}", file=sys.stderr)
                self.assertLess(difference, TRAINED_BOUND if trained else CHANNEL_BOUND)
                if nested:
                    codes = golden.logits(package, tokens, "--schedule", "uniform:7")
                    difference = median_difference(codes, wanted, n_tokens)
                    print(f"{name:24} {difference:.3f} with nested codes", file=sys.stderr)
                    bound = MIXTURE_BOUND if name.startswith(CLOSE_CALLS) else NESTED_BOUND
                    self.assertLess(difference, TRAINED_BOUND if trained else bound)
                self.assertEqual(golden.logits(package, tokens, "--chunk", "11", "--threads", "1"),
                                 got)
                for order, npu, cpu in ways(i, ORDERS):
                    self.assertEqual(golden.logits(package, tokens, "--chunk", "7", "--order",
                                                   order, "--npu-threads", str(npu),
                                                   "--cpu-threads", str(cpu)), got)

    def test_a_bound_of_memory_changes_nothing(self):
        for i, (name, model, tokens, logits, _) in enumerate(golden.checkpoints()):
            if name.startswith("novels"):
                continue  # tests/session/test_bounded.c and its like have them
            if not LONG and (model.parent / "config.json").exists():
                continue  # as the folder beside it
            shown = json.loads(golden.run("inspect", model, "--json").stdout)
            # Neurons are not for mixtures, nor where some layers have no feed-forward block, or
            # one with a norm behind its activation.
            sparse = (shown["activation"] in ("relu", "relu2", "drelu") and
                      shown["architecture"] not in ("nemotron_h", "nemotron_h_moe", "bitnet"))
            neurons = (("--neurons", "--neuron-bits", "8"), ("--neurons",))
            for options in neurons if sparse else ((),):
                with self.subTest(f"{name} {options}"):
                    package, _ = self.prepare(model, "--calib-ids", tokens, "--bits", "none",
                                              *options)
                    got = self.compare_with_bound(package, tokens, ways(i, CHUNKS))
                    if not options:
                        wanted = golden.read_floats(logits)
                        n_tokens = len(json.loads(tokens.read_text())["tokens"])
                        self.assertLess(median_difference(got, wanted, n_tokens), CHANNEL_BOUND)

    def compare_with_bound(self, package, tokens, chunks):
        for chunk in chunks:
            wanted = golden.logits(package, tokens, "--chunk", chunk)
            refused = golden.run("logits", package, "--tokens", tokens, "--chunk", chunk, "-o",
                                 self.folder / "none", "--memory", "1M")
            self.assertEqual(refused.returncode, 1)
            least = int(re.search(r"at least (\d+) MiB", refused.stderr).group(1))
            for memory in (least, 2000):
                got = golden.logits(package, tokens, "--chunk", chunk, "--predictor", "off",
                                    "--memory", f"{memory}M")
                self.assertEqual(got, wanted, f"chunk {chunk}, {memory} MiB")
        return wanted

    def test_instruction_sets_agree(self):
        tokens = SHARED / "models" / "novels-10m" / "tokens.json"
        package, _ = self.prepare(SHARED / "models" / "novels-10m", "--calib-tokens", "512",
                                  "--bits", "none")
        whole = golden.read_floats(SHARED / "models" / "novels-10m" / "logits.f32")
        for flags in ("avx2", "none"):
            got = golden.logits(package, tokens, STINT_CPU=flags)
            self.assertLess(rms_difference(got, whole), TRAINED_BOUND)

    def test_a_package_describes_itself_as_its_source(self):
        for model in (SHARED / "models" / "novels-10m",
                      golden.MODELS / "llama3" / "model.gguf"):
            package, _ = self.prepare(model, "--calib-tokens", "32", "--bits", "none")
            shown = [json.loads(golden.run("inspect", path, "--json").stdout)
                     for path in (model, package)]
            for key in ("architecture", "source", "layers", "hidden", "vocab", "context",
                        "parameters", "tokenizer", "chat_template", "rope_scaling"):
                self.assertEqual(shown[0][key], shown[1][key], key)
            self.assertEqual((shown[0]["exec"], shown[1]["exec"]), ("float", "npu"))
            graphs = shown[1]["graphs"]
            self.assertEqual(graphs["bytes_unshared"], 4 * graphs["bytes_shared"])

    def test_tokenizers_survive(self):
        text = "It was 3 o'clock;\n  nobody came \u2014 na\u00efve \u671d.".encode()
        weights = golden.MODELS / "llama3"
        for tokenizer in sorted((SHARED / "fixtures" / "tokenizers").iterdir()):
            if tokenizer.name.startswith("gguf"):
                continue
            with self.subTest(tokenizer.name), tempfile.TemporaryDirectory() as folder:
                for file in (weights / "config.json", weights / "model.safetensors",
                             *(x for x in tokenizer.iterdir() if x.name != "config.json")):
                    (pathlib.Path(folder) / file.name).symlink_to(file)
                package, _ = self.prepare(folder, "--calib-ids", weights / "tokens.json")
                ids = [subprocess.run([golden.COMMAND, "tokenize", path], input=text, check=True,
                                      capture_output=True).stdout for path in (folder, package)]
                self.assertGreater(len(ids[0]), 10)
                self.assertEqual(ids[0], ids[1])


if __name__ == "__main__":
    if not golden.MODELS.is_dir():
        print(f"skipped: no golden files at {SHARED}", file=sys.stderr)
        sys.exit(77)
    unittest.main()
