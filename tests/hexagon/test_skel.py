#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libstint_skel.so, which a phone's DSP loads, needs what that DSP has and nothing else. It is not
run here: tests/device/test_fastrpc.c runs the same sources in a program for QEMU."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SKEL = pathlib.Path(os.environ["STINT_BUILD_DIR"]) / "libstint_skel.so"
FROM_THE_DSP = {"dspqueue_import", "dspqueue_close", "dspqueue_read_noblock", "dspqueue_write",
                "HAP_mmap_get", "HAP_mmap_put"}


def read(*words):
    return subprocess.run(["readelf", "-W", *words, SKEL], capture_output=True, encoding="utf-8",
                          check=True).stdout


class Skel(unittest.TestCase):
    def test_kind(self):
        head = read("-h")
        self.assertRegex(head, r"Type:\s+DYN")
        self.assertRegex(head, r"Machine:\s+QUALCOMM DSP6")

    def test_symbols(self):
        needed, offered = set(), set()
        for line in read("--dyn-syms").splitlines():
            found = re.match(r"\s*\d+: \w+\s+\d+ \w+\s+(GLOBAL|WEAK)\s+DEFAULT\s+(\w+) (\w+)", line)
            if found:
                (needed if found[2] == "UND" else offered).add(found[3])
        self.assertEqual(needed, FROM_THE_DSP)
        self.assertEqual(offered, {"stint_skel_handle_invoke"})

    def test_code_can_lie_anywhere(self):
        dynamic = read("-d")
        self.assertNotIn("TEXTREL", dynamic)
        self.assertNotIn("NEEDED", dynamic)
        self.assertRegex(dynamic, r"SONAME.*libstint_skel\.so")


if __name__ == "__main__":
    if not SKEL.exists() or not shutil.which("readelf"):
        print("skipped: built without clang and lld, or no readelf; scripts/bootstrap hexagon")
        sys.exit(77)
    unittest.main()
