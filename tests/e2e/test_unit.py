#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The unit for systemd: it is valid, its command serves a model, and SIGTERM ends it in time."""
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest

from command import COMMAND, MODEL, SOURCE, stint

UNIT = SOURCE / "share" / "systemd" / "stint@.service"


class Unit(unittest.TestCase):
    def setUp(self):
        self.text = UNIT.read_text("utf-8")

    def setting(self, name):
        return re.search(rf"^{name}=(.*)$", self.text, re.M)[1]

    def test_its_command_serves(self):
        options = "--port 0 --slots 2"
        line = self.setting("ExecStart").replace("/usr/bin/stint", COMMAND)
        line = line.replace("%I", pathlib.Path(MODEL).name).replace("$STINT_OPTIONS", options)
        with subprocess.Popen(shlex.split(line), cwd=pathlib.Path(MODEL).parent, text=True,
                              stdout=subprocess.PIPE) as process:
            self.assertIn(f"serving {pathlib.Path(MODEL).name} at", process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(60), 0)

    def test_answers_may_finish(self):
        help_text = stint("serve", "--help", "all").stdout
        drain = int(re.search(r"--drain S .*?\(default\s+(\d+)\)", help_text, re.S)[1])
        self.assertGreater(int(self.setting("TimeoutStopSec")), drain)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_systemd_reads_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "stint@model.service"
            path.write_text(self.text.replace("/usr/bin/stint", COMMAND), "utf-8")
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], check=False,
                                  capture_output=True, text=True, env={**os.environ})
        ours = [line for line in done.stderr.splitlines() if "stint@" in line]
        self.assertEqual(ours, [])


if __name__ == "__main__":
    unittest.main()
