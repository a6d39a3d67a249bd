# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the command under test, the bundled model, and
a small one for what any weights show."""
import json
import os
import pathlib
import re
import subprocess

COMMAND = os.environ["STINT_COMMAND"]
SOURCE = pathlib.Path(os.environ["STINT_SOURCE_DIR"])
MODEL = SOURCE / "models" / "novels-10m"
SMALL = pathlib.Path(os.environ["STINT_BUILD_DIR"]) / "tests/models/novels-2"  # 2 of its layers
PROMPT = "It was a cold evening in November, and"
QUICKLY = ("--bits", "none", "--calib-tokens", "64")  # how to prepare what nobody measures
PATIENCE = 1200  # seconds until a command is thought to hang


def stint(*arguments, text=None, timeout=PATIENCE, **options):
    """Runs the command; standard input is `text`, never the terminal."""
    return subprocess.run([COMMAND, *map(str, arguments)], input=text or "", capture_output=True,
                          encoding="utf-8", timeout=timeout, check=False, **options)


def code_blocks(page, language):
    """What stands in the fenced blocks of a document."""
    found = re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)
    assert found, language
    return found


def stint_json(*arguments, **options):
    """Runs the command with --json and returns its one object."""
    done = stint(*arguments, "--json", **options)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: exit {done.returncode}: {done.stderr.strip()}")
    if done.stdout.count("\n") != 1:
        raise AssertionError(f"{arguments}: not one line: {done.stdout!r}")
    return json.loads(done.stdout)
