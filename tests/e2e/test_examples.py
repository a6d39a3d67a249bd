#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples do what they say, and what the command does."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from built import BUILD, LIBRARY, call, setting
from command import MODEL, PROMPT, SOURCE, stint

PYTHON = {**os.environ, "STINT_LIBRARY": str(LIBRARY),
          "PYTHONPATH": str(SOURCE / "bindings/python")}
LINES = "It was a cold evening in November.\nWho are you?\nAnd then?\n"
ANSWER = ["-n", 48, "--temp", 0.7, "--top-p", 0.9, "--seed", 7]


def python(name, *words, **options):
    return call(sys.executable, SOURCE / "examples/python" / name, *words, env=PYTHON, **options)


class C(unittest.TestCase):
    def test_embed(self):
        self.assertEqual(call(BUILD / "examples/example_embed", MODEL, PROMPT),
                         stint("run", MODEL, "-p", PROMPT, *ANSWER).stdout)

    def test_chat(self):
        out = call(BUILD / "examples/example_chat", MODEL, 16, input=LINES)
        self.assertEqual(out, stint("chat", MODEL, "-n", 16, "--temp", 0, text=LINES).stdout)

    def test_schema(self):
        schema = {"type": "object", "required": ["season"], "additionalProperties": False,
                  "properties": {"season": {"enum": ["spring", "autumn"]}}}
        out = call(BUILD / "examples/example_schema", MODEL, PROMPT, json.dumps(schema))
        text, figures = out.rstrip("\n").rsplit("\n", 1)
        self.assertIn(json.loads(text)["season"], ("spring", "autumn"))
        self.assertRegex(figures, r"^\d+ tokens, ended by eos; the least likely one had [0-9.e-]+$")

    def test_failures_are_told(self):
        for name, words in (("embed", ["x"]), ("chat", []), ("schema", ["x", "{"])):
            program = BUILD / f"examples/example_{name}"
            for arguments in (words, ["/nowhere", *words]):
                done = subprocess.run([program, *arguments], capture_output=True, input="",
                                      encoding="utf-8", check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count("\n"), 1)


@unittest.skipIf(setting("STINT_SANITIZE"), "Python cannot load a library with sanitizers")
class Python(unittest.TestCase):
    def test_generate(self):
        self.assertEqual(python("generate.py", MODEL, PROMPT),
                         stint("run", MODEL, "-p", PROMPT, *ANSWER).stdout)

    def test_chat(self):
        self.assertEqual(python("chat.py", MODEL, 16, input=LINES),
                         stint("chat", MODEL, "-n", 16, "--temp", 0, text=LINES).stdout)

    def test_batch(self):
        results = []
        for workers in (1, 3):
            with tempfile.TemporaryDirectory() as folder:
                paths = [pathlib.Path(folder, f"{i}.txt") for i in range(5)]
                for i, path in enumerate(paths):
                    path.write_text(f"{PROMPT} chapter {i}", encoding="utf-8")
                python("batch.py", MODEL, workers, *paths)
                results.append([pathlib.Path(f"{path}.out").read_text(encoding="utf-8")
                                for path in paths])
        self.assertEqual(results[0], results[1])
        self.assertEqual(len(set(results[0])), 5)
        for i, text in enumerate(results[0]):
            self.assertTrue(text.startswith(f"{PROMPT} chapter {i}"))
            self.assertGreater(len(text), len(PROMPT) + 40)


if __name__ == "__main__":
    unittest.main()
