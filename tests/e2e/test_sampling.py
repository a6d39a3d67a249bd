#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every sampling parameter that the library names is an option of run and chat, a field of requests
to the server, a parameter in Python, and in the docs; each of these takes it to the same text."""
import json
import os
import pathlib
import sys
import tempfile
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
        cls.server = Server("--slots", "1", "--top-p", 0).__enter__()
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
            shown = command(name, "--help", "all").stdout
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


class AsTheModelsMakerMeant(unittest.TestCase):
    """generation_config.json, then the options, then the request."""

    def model(self, **config):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for file in pathlib.Path(MODEL).iterdir():
            if file.name != "generation_config.json":
                (pathlib.Path(folder.name) / file.name).symlink_to(file.resolve())
        if config:
            path = pathlib.Path(folder.name) / "generation_config.json"
            path.write_text(json.dumps(config), "utf-8")
        return folder.name

    def props(self, model, *options):
        with Server(*options, model=model) as server:
            status, _, text = server.ask("GET", "/props")
        self.assertEqual(status, 200)
        return json.loads(text)["default_generation_settings"]["params"]

    def test_of_the_server(self):
        plain, own = self.model(), self.model(temperature=0.6, top_k=20, repetition_penalty=1.1)
        self.assertEqual({"temperature": 0.8, "top_p": 0.95, "min_p": 0.05},
                         {name: value for name, value in self.props(plain).items()
                          if name in ("temperature", "top_p", "min_p")})
        params = self.props(own, "--top-k", 0, "--min-p", 0.1)
        self.assertEqual([params[name] for name in ("temperature", "top_k", "repeat_penalty",
                                                    "top_p", "min_p", "repeat_last")],
                         [0.6, 0, 1.1, 0, 0.1, 64])

    def test_requests_go_before_options_before_the_model(self):
        greedy = self.model(do_sample=False)
        ask = {"max_tokens": 16, "seed": 3}
        with Server(model=greedy) as one, Server("--temp", "1.5", model=greedy) as other:
            texts = [server.complete(PROMPT, **ask, **more)["choices"][0]["text"]
                     for server, more in ((one, {}), (one, {"temperature": 1.5}), (other, {}),
                                          (other, {"temperature": 0}))]
        self.assertEqual(texts[0], texts[3])
        self.assertEqual(texts[1], texts[2])
        self.assertNotEqual(texts[0], texts[1])

    def test_of_a_chat(self):
        greedy, warm = self.model(do_sample=False), self.model(temperature=1.5, top_p=1.0)

        def chat(model, *options):
            return command("chat", model, "-n", 16, "--seed", 1, *options,
                           text=f"{PROMPT}\n").stdout

        self.assertEqual(chat(greedy), chat(warm, "--temp", 0))
        self.assertEqual(chat(warm), chat(greedy, "--temp", 1.5))
        self.assertNotEqual(chat(warm), chat(greedy))
        self.assertEqual(chat(self.model()),
                         chat(greedy, "--temp", 0.8, "--top-p", 0.95, "--min-p", 0.05))

    def test_run_is_greedy(self):
        warm = self.model(temperature=1.5)
        self.assertEqual(*(command("run", model, "-p", PROMPT, "-n", 16).stdout
                           for model in (warm, MODEL)))

    def test_inspect_and_python_and_packages_tell(self):
        own = self.model(temperature=0.6, top_k=20)
        package = f"{own}/own.stint"
        self.assertEqual(command("prepare", own, "-o", package, "--calib-tokens", 64).returncode, 0)
        for path in (own, package):
            self.assertEqual(stint_json("inspect", path)["sampling"],
                             {"temperature": 0.6, "top_k": 20})
            self.assertRegex(command("inspect", path).stdout, "--temp 0.6 --top-k 20\n")
            with stint.Model.open(path) as model:
                drawn = model.sampling()
            self.assertAlmostEqual(drawn.temperature, 0.6, 6)
            self.assertEqual((drawn.top_k, drawn.min_p), (20, 0))
        self.assertIsNone(stint_json("inspect", self.model())["sampling"])


if __name__ == "__main__":
    unittest.main()
