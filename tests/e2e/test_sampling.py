#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every sampling parameter that the library names is an option of run and chat, a field of requests
to the server, a parameter in Python, and in the docs; each of these takes it to the same text."""
import os
import sys
import unittest

from built import LIBRARY, skip_under_sanitizers
from command import MODEL, PROMPT, SOURCE, stint as command, stint_json
from server import Server

os.environ["STINT_LIBRARY"] = str(LIBRARY)
sys.path.insert(0, str(SOURCE / "bindings/python"))
skip_under_sanitizers()

import stint  # noqa: E402 pylint: disable=wrong-import-position,wrong-import-order

# What changes the text of a warm sample, with what the parameter needs beside it.
VALUES = {"temperature": {"temperature": 1.5}, "top_k": {"top_k": 2}, "top_p": {"top_p": 0.3},
          "min_p": {"min_p": 0.5}, "repeat_penalty": {"repeat_penalty": 1.9},
          "repeat_last": {"repeat_penalty": 1.9, "repeat_last": 2}, "seed": {"seed": 77},
          "presence_penalty": {"presence_penalty": 2},
          "frequency_penalty": {"frequency_penalty": 2},
          "xtc_probability": {"xtc_probability": 0.9},
          "xtc_threshold": {"xtc_probability": 0.9, "xtc_threshold": 0.02},
          "dry_multiplier": {"dry_multiplier": 5},
          "dry_base": {"dry_multiplier": 1e-9, "dry_base": 90},
          "dry_allowed_length": {"dry_multiplier": 5, "dry_allowed_length": 1},
          "dry_penalty_last_n": {"dry_multiplier": 5, "dry_penalty_last_n": 6}}
WARM = {"temperature": 1, "seed": 5}
REPEATED = 3 * "He took the old road to the sea. " + "He took the old"


class Everywhere(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = stint.Model.open(MODEL)
        cls.server = Server("--slots", "1").__enter__()
        cls.parameters = stint.sampling_parameters()
        cls.option = {one.name: f"--{one.option}" for one in cls.parameters}

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)
        cls.model.close()

    def texts(self, **values):
        """The same 24 tokens from Python, the command and the server."""
        values = {**WARM, **values}
        with self.model.session() as session:
            yield session.generate(REPEATED, max_tokens=24,
                                   sampling=stint.Sampling(**values)).text()
        words = [word for name, value in values.items() for word in (self.option[name], value)]
        yield stint_json("run", MODEL, "-p", REPEATED, "-n", 24, *words)["text"]
        yield self.server.complete(REPEATED, max_tokens=24, **values)["choices"][0]["text"]

    def test_each_has_the_same_effect_from_everywhere(self):
        self.assertEqual([one.name for one in self.parameters if one.name not in VALUES], [])
        plain, *_ = self.texts()
        for name, values in VALUES.items():
            with self.subTest(parameter=name):
                ours, *others = self.texts(**values)
                self.assertEqual(others, [ours] * 2)
                without = {key: value for key, value in values.items() if key != name}
                self.assertNotEqual(ours, next(self.texts(**without)) if without else plain)

    def test_each_is_named_by_help_and_docs(self):
        for name in ("run", "chat"):
            shown = command(name, "--help").stdout
            for option in self.option.values():
                self.assertIn(f" {option} ", shown)
        docs = (SOURCE / "docs/SERVER.md").read_text(encoding="utf-8")
        table, = [part for part in docs.split("## ") if part.startswith("Fields of a request")]
        for one in self.parameters:
            self.assertIn(f"`{one.name}`", table)
            if one.alias:
                self.assertIn(f"`{one.alias}`", table)

    def test_each_is_refused_out_of_its_range(self):
        for one in self.parameters:
            with self.subTest(parameter=one.name):
                value = 1 << 64 if one.name == "seed" else one.max * 2 + 1
                if one.type is int:
                    value = int(value)
                done = command("run", MODEL, "-p", "x", self.option[one.name], value)
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"--{one.option}: ", done.stderr)
                if one.name == "seed":
                    continue  # no JSON number for the parser
                error = self.server.post("/v1/completions", prompt="x",
                                            **{one.name: value})[1]["error"]
                self.assertEqual(error["param"], one.name)
                with self.model.session() as session:
                    drawn = stint.Sampling(**{one.name: value})
                    with self.assertRaises(ValueError) as caught:
                        session.generate("x", sampling=drawn).text()
                    self.assertIn(one.name, str(caught.exception))

    def test_aliases(self):
        plain = self.server.complete(PROMPT, max_tokens=24, repeat_penalty=1.9, **WARM)
        other = self.server.complete(PROMPT, max_tokens=24, repetition_penalty=1.9, **WARM)
        self.assertEqual(plain["choices"][0]["text"], other["choices"][0]["text"])


if __name__ == "__main__":
    unittest.main()
