# SPDX-License-Identifier: Apache-2.0
"""For tests with the packages of build/frameworks: runs them by that environment's Python, or skips
them without it."""
import importlib.util
import os
import pathlib
import sys
import unittest

FOLDER = pathlib.Path(os.environ["STINT_SOURCE_DIR"]) / "build" / "frameworks" / "bin"


def enter():
    if not (FOLDER / "python").exists():
        print("no packages: scripts/bootstrap frameworks installs them into build/frameworks")
        sys.exit(77)
    if pathlib.Path(sys.prefix).resolve() != FOLDER.parent.resolve():
        os.execv(FOLDER / "python", [str(FOLDER / "python"), *sys.argv])


def needs(package):
    found = importlib.util.find_spec(package.partition(".")[0]) is not None
    return unittest.skipUnless(found, f"no package {package}")
