#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A wheel is built and installed without a network, holds the library, and runs the example."""
import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import zipfile

from built import LIBRARY, call, skip_under_sanitizers
from command import MODEL, PROMPT, SOURCE, stint

OFFLINE = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
           "PIP_ROOT_USER_ACTION": "ignore", "STINT_LIBRARY": str(LIBRARY)}


class Wheel(unittest.TestCase):
    def test_built_installed_and_used(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shutil.copytree(SOURCE / "bindings/python", folder / "source",
                            ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
            call(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps",
                 "--wheel-dir", folder, folder / "source", env=OFFLINE)
            wheel, = folder.glob("*.whl")
            version = stint("--version").stdout.split()[1]
            self.assertRegex(wheel.name, rf"^stint-{version}-py3-none-linux_\w+\.whl$")
            with zipfile.ZipFile(wheel) as archive:
                names = set(archive.namelist())
                self.assertEqual(archive.read("stint/libstint.so.0"), LIBRARY.read_bytes())
            self.assertLessEqual({"stint/__init__.py", "stint/_layout.py", "stint/py.typed"}, names)

            call(sys.executable, "-m", "venv", folder / "venv")
            python = folder / "venv/bin/python"
            call(python, "-m", "pip", "install", "--no-index", wheel, env=OFFLINE)
            plain = {key: value for key, value in os.environ.items()
                     if key not in ("STINT_LIBRARY", "PYTHONPATH")}
            out = call(python, SOURCE / "examples/python/generate.py", MODEL, PROMPT, env=plain,
                       cwd=folder)
            self.assertEqual(out, stint("run", MODEL, "-p", PROMPT, "-n", 48, "--temp", 0.7,
                                        "--top-p", 0.9, "--seed", 7).stdout)


if __name__ == "__main__":
    skip_under_sanitizers()
    missing = [x for x in ("pip", "setuptools", "wheel", "venv", "ensurepip")
               if importlib.util.find_spec(x) is None]
    if missing:
        print(f"skipped: Python here has no {', '.join(missing)}")
        sys.exit(77)
    unittest.main()
