#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README.md lets a newcomer type first, from the clone to a chat and to an agent with a
tool, in its order. The hub is a local server. It has SmolLM2 where this machine has it
(real_models.py); else the bundled model stands in for the names. Of `make demo` only the build is
left out: it is here. The agent needs build/venv (scripts/bootstrap clients)."""
import ast
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from command import COMMAND, MODEL, SOURCE
from fault_hub import Hub
from real_models import SMOLLM2
from server import Server

README = (SOURCE / "README.md").read_text(encoding="utf-8")
NAME, FILE = "smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf"


def transcript():
    """The commands of the first block, each with the lines that are typed into it."""
    section = README.split("## The first five minutes")[1].split("\n## ")[0]
    block = re.search(r"^```text\n(.*?)^```", section, re.M | re.S)[1]
    steps = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append([line[2:], ""])
        elif line.startswith("> "):
            steps[-1][1] += line[2:] + "\n"
    return steps


def real_files():
    return {FILE: SMOLLM2.read_bytes()} if SMOLLM2 else None


class Newcomer(unittest.TestCase):
    def test_the_first_five_minutes(self):
        real = real_files()
        files = real or {path.name: path.read_bytes() for path in MODEL.iterdir()
                         if path.is_file()}
        name = NAME if real else "org/model"
        with tempfile.TemporaryDirectory() as folder, Hub(files) as hub:
            home = pathlib.Path(folder)
            clone = self.clone(home)
            environment = {**os.environ, "HOME": folder, "HF_ENDPOINT": hub.url,
                           "PIP_NO_INDEX": "1", "STINT_MODELS": str(home / "models")}
            environment.pop("PIP_FIND_LINKS", None)
            outs = {}
            for command, typed in transcript():
                if re.search(r" &$|bootstrap|agent\.py", command):
                    continue  # below
                if command.startswith("export "):
                    environment["PATH"] = f"{clone / 'build'}:{environment['PATH']}"
                    continue
                words = self.words(command.replace("pull " + NAME, f"pull {self.source(real)}")
                                   .replace(NAME, name))
                done = subprocess.run(words, cwd=clone, env=environment, input=typed,
                                      capture_output=True, encoding="utf-8", timeout=1200,
                                      check=False)
                self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
                outs[command] = done.stdout
            self.assertEqual(list(outs), ["make demo", "stint list", f"stint pull {NAME}",
                                          f"stint chat {NAME}"])
            self.assertIn("Paris" if real else "no real model", outs["make demo"])
            self.assertIn("qwen2.5-coder-0.5b", outs["stint list"])
            self.assertIn(f"stint chat {name}", outs[f"stint pull {NAME}"])
            self.assertRegex(outs[f"stint chat {NAME}"], r"\w+")
            if (SOURCE / "build" / "venv" / "complete").exists():
                self.agent(clone, environment, name)

    def agent(self, clone, environment, name):
        """The rest: the server in the background, on a free port, and the agent that asks it."""
        (clone / "build" / "venv").symlink_to((SOURCE / "build" / "venv").resolve())
        serve, bootstrap, ask = [command for command, _ in transcript()][-3:]
        self.assertEqual(serve, f"stint serve {NAME} &")
        with Server("--ctx", 1024, model=name, environment=environment) as server:
            environment["OPENAI_BASE_URL"] = server.address + "/v1"
            done = subprocess.run(["sh", "-ec", f"{bootstrap}\n{ask}"], cwd=clone, env=environment,
                                  capture_output=True, encoding="utf-8", timeout=300, check=False)
            calls = server.metric('stint_requests_total{route="/v1/chat/completions",code="200"}')
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        call, result = re.match(r"calculate (\{.*?\}) = (-?\d+)\n", done.stdout).groups()
        call = ast.literal_eval(call)
        a, b = call["a"], call["b"]
        self.assertEqual(int(result), {"add": a + b, "subtract": a - b,
                                       "multiply": a * b}[call["operation"]])
        self.assertEqual(calls, 2)

    @staticmethod
    def source(real):
        return NAME if real else "hf:org/model"

    @staticmethod
    def clone(home):
        clone = home / "stint"
        if (SOURCE / ".git").exists() and shutil.which("git"):
            subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{SOURCE}", clone],
                           check=True)
        else:
            shutil.copytree(SOURCE, clone, ignore=shutil.ignore_patterns("build", ".git"))
        (clone / "build").mkdir()
        (clone / "build" / "stint").symlink_to(COMMAND)
        return clone

    @staticmethod
    def words(command):
        """`make demo` without its build is the script that it runs last."""
        if command != "make demo":
            return command.split()
        rule = re.search(r"^demo: build/stint.*\n\t@(.*)$", (SOURCE / "Makefile").read_text(),
                         re.M)
        return rule[1].split()


if __name__ == "__main__":
    unittest.main()
