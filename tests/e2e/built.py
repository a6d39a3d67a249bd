# SPDX-License-Identifier: Apache-2.0
"""What the tests of embedding share: the build folder, and programs that are compiled and run."""
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ["STINT_BUILD_DIR"])
LIBRARY = BUILD / "libstint.so"


def setting(name):
    """Of the build's CMakeCache.txt; "" if it is not there."""
    match = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    return match[1] if match else ""


def skip_under_sanitizers():
    """Another program cannot take a sanitizer's library in without its runtime."""
    if setting("STINT_SANITIZE"):
        print("skipped: a build with sanitizers is not to be embedded")
        sys.exit(77)


def call(*words, **options):
    """Runs a program that must succeed; its standard output."""
    done = subprocess.run([*map(str, words)], capture_output=True, encoding="utf-8", timeout=1200,
                          check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
