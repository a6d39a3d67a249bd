#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every stint command that README.md shows in a block runs; every file it links to exists; its
figures are those of docs/BENCHMARKS.md, its options those of the command, its sentences short. What
calibrates does so on little text and what measures does so once, with STINT_CI_LONG=1 as shown."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from command import COMMAND, PATIENCE, SOURCE
from server import Server

LONG = os.environ.get("STINT_CI_LONG") == "1"
README = (SOURCE / "README.md").read_text(encoding="utf-8")


def shown_commands():
    """Lines of sh blocks; in console blocks those after the prompt sign."""
    for kind, block in re.findall(r"^```(sh|console)\n(.*?)^```", README, re.M | re.S):
        lines = block.replace("\\\n", " ").splitlines()
        for line in lines:
            if kind == "console":
                if not line.startswith("$ "):
                    continue
                line = line[2:]
            line = line.split("  #")[0].strip()
            if re.search(r"\bstint (?!\.)", line) and not line.startswith(("make", "cc ")):
                yield line


def shortened(command):
    """Calibrates on less text or measures once, and is the command otherwise."""
    if command.startswith("stint prepare "):
        return command + " --calib-tokens 1024"
    if command.startswith("stint bench ") and "--shape" not in command:
        return command + " -r 1"
    return command + " --calib text" if " --methods " in command else command


class Readme(unittest.TestCase):
    def test_commands_run(self):
        commands = list(shown_commands())
        self.assertGreaterEqual(len(commands), 5)
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            (work / "models").symlink_to(SOURCE / "models")
            (work / "README.md").symlink_to(SOURCE / "README.md")
            (work / "text").write_text(README[:1000], encoding="utf-8")
            (work / "build").mkdir()
            (work / "build" / "stint").symlink_to(shutil.which(COMMAND) or COMMAND)
            environment = {**os.environ, "PATH": f"{work / 'build'}:{os.environ['PATH']}"}
            for command in commands:
                with self.subTest(command=command):
                    if command.startswith("stint serve "):
                        model, *options = command.split()[2:]
                        with Server(*options, model=work / model) as server:
                            self.assertEqual(server.health()["status"], "ok")
                        continue
                    shell = ["sh", "-c", command if LONG else shortened(command)]
                    done = subprocess.run(shell, cwd=work, env=environment,
                                          input="", capture_output=True, encoding="utf-8",
                                          timeout=PATIENCE, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_figures_are_those_of_the_benchmarks(self):
        benchmarks = (SOURCE / "docs" / "BENCHMARKS.md").read_text(encoding="utf-8")

        def figures(line):
            return tuple(cell.strip() for cell in line.split("|")[2:-1])

        measured = {figures(line) for line in benchmarks.splitlines() if line.startswith("|")}
        shown = [line for line in README.splitlines()
                 if re.match(r"\|[^|]*(llama\.cpp|stint)[^|]*\| \d", line)]
        self.assertGreaterEqual(len(shown), 4)
        for line in shown:
            self.assertIn(figures(line), measured)
        for percent in re.findall(r"[\d.]+ %(?=[ ,.])", README.split("## How it compares")[1]):
            self.assertIn(f"+{percent}", benchmarks)

    def test_commands_and_options_exist(self):
        for block in re.findall(r"^```text\n(.*?)^```", README, re.M | re.S):
            for line in re.findall(r"^\$ stint (.*)", block, re.M):
                command, *words = line.split()
                shown = subprocess.run([COMMAND, command, "--help", "all"], capture_output=True,
                                       text=True, check=True).stdout
                for option in (word for word in words if re.match(r"--?[a-z]", word)):
                    self.assertRegex(shown, rf"(?m)(^|[ ,]){re.escape(option)}\b", line)

    def test_sentences_are_short(self):
        prose = re.sub(r"^```.*?^```", "", README, flags=re.M | re.S)
        lines = [line for line in prose.splitlines() if not line.startswith(("|", "#"))]
        text = re.sub(r"\]\([^)]*\)", "]", "\n".join(lines))
        for sentence in re.split(r"(?<=[.!?])\s|\n\s*\n|\n- ", text):
            self.assertLessEqual(len(sentence.split()), 25, sentence)

    def test_links_lead_somewhere(self):
        for target in re.findall(r"\]\(([^)#:]+)\)", README):
            self.assertTrue((SOURCE / target).exists(), target)


if __name__ == "__main__":
    unittest.main()
