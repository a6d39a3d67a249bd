#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden checkpoints as packages on devices that are processors of their own (the Hexagon DSP that
qemu-hexagon emulates, OpenCL's first device): every logit has the bits of the host's cores, in one
chunk and in three, in every order, and where the device fails. Without STINT_CI_LONG=1 only some
checkpoints are run.

What OpenCL computes as it is stored (float checkpoints; a GGUF's blocks and nested weights in
steps) has the goldens' logits, and in the order of the scalar kernels the bits of the CPU."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

import test_models as golden

# With static scales and shadow execution, as for a real NPU; the others scale each token.
STATIC = ("--target", "sim")
SOME = {"llama2": STATIC, "qwen3": (), "gemma": STATIC, "gemma3n": STATIC}


def chosen():
    for name, model, tokens, _, _ in golden.checkpoints():
        if os.environ.get("STINT_CI_LONG") == "1" or name in SOME:
            yield name, model, tokens, SOME.get(name, STATIC)


class Device:
    """What holds for each of them."""
    name = hint = None
    faults = ()  # (setting, why the CPU takes over)

    @classmethod
    def setUpClass(cls):
        """Unlike a package, a missing device is what this command complains of first."""
        model = golden.SHARED / "models" / "novels-10m"
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "model.stint"
            golden.run("prepare", model, "-o", package, "--calib-tokens", "16", "--bits", "none")
            done = golden.run("run", package, "-p", "a", "-n", "1", "--device", cls.name)
        if "this machine has none" in done.stderr:
            raise unittest.SkipTest(f"skipped: {cls.hint}")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.package = pathlib.Path(folder.name) / "model.stint"

    def prepare(self, model, tokens, options):
        done = golden.run("prepare", model, "-o", self.package, "--calib-ids", tokens, "--bits",
                          "none", *options)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_logit_has_the_bits_of_the_host(self):
        for name, model, tokens, options in chosen():
            with self.subTest(name):
                self.prepare(model, tokens, options)
                n = len(json.loads(tokens.read_text())["tokens"])
                third = str(max(5, -(-n // 3)))
                wanted = golden.logits(self.package, tokens, "--device", "cpu")
                for ways in (("--chunk", "256"), ("--chunk", third),
                             *(("--chunk", third, "--order", order, "--npu-threads", "1",
                                "--cpu-threads", "1") for order in ("inorder", "ooo"))):
                    got = golden.logits(self.package, tokens, "--device", self.name, *ways)
                    self.assertEqual(got.tobytes(), wanted.tobytes(), ways)

    def test_a_prompt_is_answered(self):
        model = golden.SHARED / "models" / "novels-10m"
        self.prepare(model, model / "tokens.json", STATIC)
        run = ("run", self.package, "-p", "It was a cold evening in November, and the old man",
               "-n", "1", "--temp", "0", "--json")
        wanted = json.loads(golden.run(*run, "--device", "cpu").stdout)
        name, settings = self.name.partition(":")[::2]
        for options in (("--chunk", "6"), ("--npu-memory", "20M", "--threads", "2")):
            done = golden.run(*run, "--device", self.name, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("takes over", done.stderr)
            got = json.loads(done.stdout)
            self.assertEqual((got["text"], got["device"]), (wanted["text"], name))

        for fault, why in self.faults:
            done = golden.run(*run, "--device", f"{self.name}{',' if settings else ':'}{fault}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["text"], wanted["text"])
            self.assertEqual(done.stderr.count(f"device '{name}'"), 1, done.stderr)
            self.assertRegex(done.stderr, f"{why}.*: the CPU takes over")


class Hexagon(Device, unittest.TestCase):
    name, hint = "hexagon", "no Hexagon program or emulator: scripts/bootstrap hexagon"
    faults = (("die=9", "its program has ended"), ("spin=9", "does not get on"),
              ("garbage=9", "wrote what cannot be"))


class Attention(Device, unittest.TestCase):
    """Attention of prompts on the device, too; none of these is so long that the CPU's kernels
    would round to BF16 (docs/OPENCL.md)."""
    name, hint = "opencl:attention=1", "OpenCL finds no device: scripts/bootstrap opencl"
    faults = (("lose=900", "CL_DEVICE_NOT_AVAILABLE"),
              ("error=900", "(CL_OUT_OF_RESOURCES|found no memory)"),
              ("hang=3,timeout=50", "does not end a job"))


class OpenCL(Device, unittest.TestCase):
    name, hint = "opencl", "OpenCL finds no device: scripts/bootstrap opencl"
    faults = (("lose=900", "CL_DEVICE_NOT_AVAILABLE"),
              ("error=900", "(CL_OUT_OF_RESOURCES|found no memory)"),  # of a copy, or of a job
              ("hang=1,timeout=50", "does not end a job"))


class Stored(unittest.TestCase):
    """Linears of float checkpoints, of quantized blocks and of nested weights on OpenCL."""
    WARNING = "device 'opencl'"

    @classmethod
    def setUpClass(cls):
        done = cls.run_on(golden.SHARED / "models" / "novels-10m", "opencl")
        if "this machine has none" in done.stderr:
            raise unittest.SkipTest(f"skipped: {OpenCL.hint}")

    @staticmethod
    def run_on(model, device, *options, **environment):
        return golden.run("run", model, "-p", "It was a cold evening", "-n", "6", "--temp", "0",
                          "--json", "--device", device, *options, **environment)

    def check_bits(self, model, tokens, *options):
        """Of the scalar kernels, whose floats are added in the same order."""
        wanted, got = (golden.logits(model, tokens, "--device", device, *options,
                                     STINT_CPU="scalar") for device in ("cpu", "opencl"))
        self.assertEqual(got.tobytes(), wanted.tobytes(), options)

    def test_float_checkpoints_have_the_goldens_logits(self):
        for name, model, tokens, logits, _ in golden.checkpoints():
            if os.environ.get("STINT_CI_LONG") != "1" and name not in {*SOME, "mixtral", "phi2"}:
                continue
            for device, chunk in (("opencl", "256"), ("opencl", "1"),
                                  ("opencl:attention=1", "256"), ("opencl:attention=1", "7")):
                with self.subTest(name, device=device, chunk=chunk):
                    got = golden.logits(model, tokens, "--exec", "float", "--chunk", chunk,
                                        "--device", device)
                    worst = golden.worst_difference(got, golden.read_floats(logits))
                    self.assertLess(worst, golden.TOLERANCE)

    def test_steps_over_quantized_blocks_have_the_scalar_kernels_bits(self):
        folder = golden.MODELS / "llama-q"
        for model in sorted(folder.glob("*q*.gguf")):
            with self.subTest(model.stem):
                self.check_bits(model, folder / "tokens.json", "--exec", "fast", "--chunk", "3")

    def test_steps_over_nested_weights_have_the_scalar_kernels_bits(self):
        for name in ("llama2", "mixtral"):
            model = golden.MODELS / name
            with tempfile.TemporaryDirectory() as folder:
                package = pathlib.Path(folder) / "model.stint"
                done = golden.run("prepare", model, "-o", package, "--calib-ids",
                                  model / "tokens.json", "--bits", "2..5")
                self.assertEqual(done.returncode, 0, done.stderr)
                for bits in (2, 3, 4, 5):
                    with self.subTest(name, bits=bits):
                        self.check_bits(package, model / "tokens.json", "--chunk", "3",
                                        "--schedule", f"uniform:{bits}")

    def test_a_limit_leaves_linears_to_the_cpu(self):
        model = golden.MODELS / "llama3"
        for limit in ("4K", "300K"):  # less than the buffers, than the weights
            got = golden.logits(model, model / "tokens.json", "--exec", "float", "--device",
                                "opencl", "--npu-memory", limit)
            worst = golden.worst_difference(got, golden.read_floats(model / "logits.f32"))
            self.assertLess(worst, golden.TOLERANCE)

    def test_the_cpu_goes_on_and_says_so_once(self):
        model = golden.SHARED / "models" / "novels-10m"
        wanted = json.loads(self.run_on(model, "cpu").stdout)
        whole = json.loads(self.run_on(model, "opencl").stdout)
        self.assertEqual((whole["text"], whole["device"]), (wanted["text"], "opencl"))
        for fault, why in OpenCL.faults:
            done = self.run_on(model, f"opencl:{fault}")
            self.assertEqual(json.loads(done.stdout)["text"], wanted["text"], done.stderr)
            self.assertEqual(done.stderr.count(self.WARNING), 1, done.stderr)
            self.assertRegex(done.stderr, f"{why}.*: the CPU takes over")

    def test_the_cpu_goes_on_where_there_is_no_device(self):
        model = golden.SHARED / "models" / "novels-10m"
        wanted = json.loads(self.run_on(model, "cpu").stdout)
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "model.stint"
            golden.run("prepare", model, "-o", package, "--calib-tokens", "16", "--bits", "none")
            for subject in (model, package):
                done = self.run_on(subject, "opencl", OCL_ICD_VENDORS=folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count(self.WARNING), 1, done.stderr)
                self.assertIn("this machine has none", done.stderr)
                if subject == model:
                    self.assertEqual(json.loads(done.stdout)["text"], wanted["text"])


if __name__ == "__main__":
    if not golden.MODELS.is_dir():
        print(f"skipped: no golden files at {golden.SHARED}", file=sys.stderr)
        sys.exit(77)
    unittest.main()
