#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The curl commands of docs/SERVER.md and README.md run as they stand, but for the port. Skips
itself without curl."""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from command import COMMAND, SOURCE
from server import Server

TEXT = (SOURCE / "docs" / "SERVER.md").read_text(encoding="utf-8")


def commands():
    readme = (SOURCE / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```sh\n(curl.*?)^```", TEXT + readme, re.M | re.S):
        yield from re.split(r"\n(?=curl )", block.strip())


class Documented(unittest.TestCase):
    def test_commands_run(self):
        with tempfile.TemporaryDirectory() as folder:
            with Server("--slot-dir", folder) as server:
                for command in commands():
                    with self.subTest(command=command):
                        self.run_one(command, server)

    def run_one(self, command, server):
        self.assertIn("localhost:8080", command)
        done = subprocess.run(["sh", "-c", command.replace("localhost:8080",
                                                           f"localhost:{server.port}")],
                              capture_output=True, encoding="utf-8", timeout=1200, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        if "stream" in command:
            self.assertTrue(done.stdout.endswith("data: [DONE]\n\n"), done.stdout)
        elif "metrics" not in command:
            answer = json.loads(done.stdout)
            self.assertNotIn("error", answer or {})
            self.check_content(command, answer)

    def check_content(self, command, answer):
        if "json_schema" in command:
            json.loads(answer["choices"][0]["message"]["content"])
        if '"tools"' in command:
            self.assertEqual(answer["choices"][0]["finish_reason"], "tool_calls")

    def test_there_are_examples(self):
        self.assertGreaterEqual(len(list(commands())), 10)

    def test_options_and_metrics_are_those_of_the_program(self):
        shown = subprocess.run([COMMAND, "serve", "--help", "all"], capture_output=True,
                               encoding="utf-8", check=True).stdout
        for option in set(re.findall(r"(?<!-)--[a-z][a-z-]*", TEXT)):
            self.assertIn(option, shown)
        path = SOURCE / "src" / "server" / "api" / "metrics.c"
        source = path.read_text(encoding="utf-8")
        for name in set(re.findall(r"\bstint_[a-z_]+\b", TEXT)):
            self.assertIn(name, source)


if __name__ == "__main__":
    if not shutil.which("curl"):
        print("no curl")
        sys.exit(77)
    unittest.main()
