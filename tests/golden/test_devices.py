#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden checkpoints as packages on devices that are processors of their own (the Hexagon DSP that
qemu-hexagon emulates, OpenCL's first device): every logit has the bits of the host's cores, in one
chunk and in three, in every order, and where the device fails. Without STINT_CI_LONG=1 only some
checkpoints are run."""
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
        for options in (("--chunk", "6"), ("--chunk", "256", "--npu-memory", "20M")):
            done = golden.run(*run, "--device", self.name, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("takes over", done.stderr)
            got = json.loads(done.stdout)
            self.assertEqual((got["text"], got["device"]), (wanted["text"], self.name))

        for fault, why in self.faults:
            done = golden.run(*run, "--device", f"{self.name}:{fault}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["text"], wanted["text"])
            self.assertEqual(done.stderr.count(f"device '{self.name}'"), 1, done.stderr)
            self.assertRegex(done.stderr, f"{why}.*: the CPU takes over")


class Hexagon(Device, unittest.TestCase):
    name, hint = "hexagon", "no Hexagon program or emulator: scripts/bootstrap hexagon"
    faults = (("die=9", "its program has ended"), ("spin=9", "does not get on"),
              ("garbage=9", "wrote what cannot be"))


class OpenCL(Device, unittest.TestCase):
    name, hint = "opencl", "OpenCL finds no device: scripts/bootstrap opencl"
    faults = (("lose=900", "CL_DEVICE_NOT_AVAILABLE"), ("error=900", "CL_OUT_OF_RESOURCES"),
              ("hang=1,timeout=50", "does not end a job"))


if __name__ == "__main__":
    if not golden.MODELS.is_dir():
        print(f"skipped: no golden files at {golden.SHARED}", file=sys.stderr)
        sys.exit(77)
    unittest.main()
