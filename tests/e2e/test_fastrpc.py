#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command on a DSP behind FastRPC, with a library of the tests in its place: the same answers,
and the CPU takes over from a session that is lost, which one line says."""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from command import PROMPT, QUICKLY, SMALL, stint

MOCK = pathlib.Path(os.environ["STINT_BUILD_DIR"]) / "tests/libmock_cdsprpc.so"


class FastRpc(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.package = pathlib.Path(cls.folder.name) / "m.stint"
        done = stint("prepare", SMALL, "-o", cls.package, *QUICKLY)
        assert done.returncode == 0, done.stderr
        cls.answer = stint("run", cls.package, "-p", PROMPT, "-n", 6).stdout

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_on(self, device, **environment):
        return stint("run", self.package, "-p", PROMPT, "-n", 6, "--device", device,
                     env={**os.environ, "STINT_CDSPRPC": str(MOCK), **environment})

    def test_the_same_answer(self):
        done = self.run_on("hexagon:patience=60000")
        self.assertEqual((done.returncode, done.stdout), (0, self.answer), done.stderr)
        self.assertNotIn("lost", done.stderr)

    def test_a_lost_session_is_said_once(self):
        for fault in ("die=7", "spin=7", "sleep=7"):
            done = self.run_on(f"hexagon:{fault}")
            self.assertEqual((done.returncode, done.stdout), (0, self.answer), done.stderr)
            self.assertEqual(done.stderr.count("its program "), 1, done.stderr)

    def test_a_refused_session_is_one_error(self):
        done = self.run_on("hexagon", STINT_MOCK_FAULT="remote_handle64_open")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\A[^\n]*libstint_skel\.so does not load[^\n]*\n\Z")


if __name__ == "__main__":
    if not MOCK.exists() or not shutil.which("qemu-hexagon"):
        print("skipped: no clang with lld or no qemu-hexagon; scripts/bootstrap hexagon")
        sys.exit(77)
    unittest.main()
