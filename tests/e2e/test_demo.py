#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make demo` shows and the C example, with few tokens. The one end-to-end test that also
runs where the programs are another processor's: STINT_EMULATOR then holds what runs them."""
import os
import pathlib
import tempfile
import unittest

from built import BUILD, call
from command import COMMAND, MODEL, PROMPT

EMULATOR = [word for word in os.environ.get("STINT_EMULATOR", "").split(";") if word]
DRAWN = ("--temp", 0.7, "--top-p", 0.9, "--seed", 7)


def run(program, *words):
    return call(*EMULATOR, program, *words)


class Demo(unittest.TestCase):
    def test_prepare_and_run(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "novels.stint"
            run(COMMAND, "prepare", MODEL, "-o", package, "--calib-tokens", 64)
            ask = ("run", package, "-p", PROMPT, "-n", 8, *DRAWN)
            text = run(COMMAND, *ask)
            self.assertRegex(text, r"^[\w ,.;'\"-]{12,}\n$")
            self.assertEqual(run(COMMAND, *ask, "--threads", 1), text)

    def test_example(self):
        text = run(BUILD / "examples/example_embed", MODEL, PROMPT)
        self.assertEqual(text, run(COMMAND, "run", MODEL, "-p", PROMPT, "-n", 48, *DRAWN))


if __name__ == "__main__":
    unittest.main()
