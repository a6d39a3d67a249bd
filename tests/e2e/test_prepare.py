#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stint prepare as people meet it: interrupted, killed, on a full disk, over damaged packages."""
import os
import pathlib
import random
import resource
import signal
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

from built import setting
from command import COMMAND, MODEL, PROMPT, SMALL, SOURCE, stint, stint_json


QUICK = ("--bits", "none", "--calib-tokens", "512")  # where any package will do
HELD_OUT = ("--calib-tokens", "1024")  # enough for losses to be measured


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.package = self.folder / "novels.stint"

    def assert_fails(self, done, *pieces):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for piece in pieces:
            self.assertIn(piece, done.stderr)

    def names(self):
        return sorted(file.name for file in self.folder.iterdir())


class Prepare(Folder):
    def test_a_package_is_used_like_a_model(self):
        report = stint_json("prepare", MODEL, "-o", self.package, *HELD_OUT)
        self.assertEqual(set(report), {"source", "package", "bytes", "linears",
                                       "linears_shadowed", "pruned", "calibration_tokens",
                                       "weight_scale", "held_out_tokens", "float_perplexity",
                                       "perplexity", "top1_agreement", "divergence", "seconds",
                                       "peak_rss_bytes", "losses"})
        self.assertLess(report["divergence"], 0.003)
        self.assertGreater(report["top1_agreement"], 0.9)
        self.assertEqual((report["linears"], report["weight_scale"]), (49, "channel"))
        self.assertEqual(self.names(), ["novels.stint"])
        losses = report["losses"]
        self.assertEqual([loss["bits"] for loss in losses], [2, 3, 4])
        self.assertEqual(losses, sorted(losses, key=lambda loss: -loss["divergence"]))
        for loss in losses:
            self.assertTrue(loss["bits"] - 0.1 < loss["mean_bits"] < loss["bits"] + 1, loss)
        self.assertEqual(stint_json("inspect", self.package)["nested"]["losses"], losses)
        self.assertRegex(stint("inspect", self.package).stdout,
                         r"their loss +2 bits \(2\.[0-9] on average\): perplexity [+-][0-9.]+ %, "
                         r"divergence .*\n +3 bits \(")
        text = [stint("run", self.package, "-p", PROMPT, "-n", "20", *options).stdout
                for options in ((), ("--chunk", "32"), ("--chunk", "auto"), ("--threads", "1"),
                                ("--device", "cpu"), ("--exec", "npu"))]
        self.assertGreater(len(text[0]), 20)
        self.assertEqual(set(text), {text[0]})
        done = stint("chat", self.package, "-n", "8", text="Hello.\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        bench = stint_json("bench", self.package, "-p", "16", "-n", "2", "--reps", "1")
        self.assertEqual((bench["exec"], bench["decode"][0]["bits"]), ("npu", 8))
        self.assertEqual(bench["roofline"]["prefill_peak"], "int8")

    def test_int8_weights_are_made_of_nested_codes(self):
        apart = stint_json("prepare", SMALL, "-o", self.folder / "apart.stint", "--target", "sim",
                           *HELD_OUT)
        one = stint_json("prepare", SMALL, "-o", self.package, "--target", "sim", "--one-set", "8",
                         *HELD_OUT)
        self.assertLess(one["bytes"], 0.8 * apart["bytes"])
        for one_loss, loss in zip(one["losses"], apart["losses"], strict=True):
            self.assertEqual(one_loss["mean_bits"], loss["mean_bits"])
            # Steps read the same codes. Rows of the embedding, which is tied, are INT8 weights.
            self.assertAlmostEqual(one_loss["divergence"] / loss["divergence"], 1, delta=0.1)
        self.assertLess(one["divergence"], 0.003)
        text = [stint("run", self.package, "-p", PROMPT, "-n", "20", *options).stdout
                for options in ((), ("--chunk", "32"), ("--threads", "1"), ("--device", "sim"))]
        self.assertGreater(len(text[0]), 20)
        self.assertEqual(set(text), {text[0]})
        for options in (("--memory", "60M"), ("--memory", "500M")):
            done = stint("run", self.package, "-p", PROMPT, "-n", "20", "--ctx", "256", *options)
            self.assertEqual(done.stdout, text[0], done.stderr)

    def test_outliers_are_shown(self):
        made = stint("prepare", MODEL, "-o", self.package, "--target", "sim", "--bits", "none",
                     *HELD_OUT)
        self.assertEqual(made.returncode, 0)
        shown = stint("inspect", self.package, "--outliers").stdout.splitlines()
        self.assertEqual(len(shown), 1 + 49)
        notes = stint_json("inspect", self.package, "--outliers")
        shadowed = [line["linear"] for line in notes["linears"] if line["shadowed"]]
        self.assertEqual(len(notes["linears"]), 49)
        self.assertEqual(len(shadowed), sum("shadowed" in line for line in shown))
        self.assertTrue(0 < len(shadowed) < 49)
        importance = [float(line.split()[1]) for line in shown[1:]]
        self.assertEqual(importance, sorted(importance, reverse=True))
        ran = stint_json("run", self.package, "-p", PROMPT, "-n", "4")["shadow"]
        self.assertEqual(ran["linears_active"], len(shadowed))
        self.assertGreater(ran["hot_hits"] + ran["cold_reads"], 0)
        self.assertGreater(ran["seconds"], 0)
        self.assertGreater(ran["npu_seconds"], 0)
        self.assertTrue(0 < ran["resident_bytes"] < ran["all_float_bytes"] / 100)
        self.assert_fails(stint("inspect", MODEL, "--outliers"), "is not a package")
        picture = self.folder / "outliers.svg"
        self.assertEqual(stint("inspect", self.package, "--svg", picture).returncode, 0)
        drawn = xml.etree.ElementTree.parse(picture).getroot()
        svg = "{http://www.w3.org/2000/svg}"
        titles = [title.text for title in drawn.iter(svg + "title")]
        self.assertEqual(len(titles), 2 * 49)
        self.assertEqual(len([t for t in titles if t.endswith(", shadowed")]),
                         2 * len([l for l in notes["linears"] if l["shadowed"]]))
        self.assertEqual(len(list(drawn.iter(svg + "polyline"))), 49)
        for linear in notes["linears"]:
            self.assertEqual(linear["cover"], sorted(linear["cover"]))

    def test_a_line_is_enough_to_calibrate(self):
        for options, stdin in ((("--calib", "-"), "x\n"), (("--weight-scale", "tensor"), None),
                               (("--calib-tokens", "1"), None)):
            done = stint("prepare", SMALL, "-o", self.package, "--target", "sim", *QUICK, *options,
                         text=stdin)
            self.assertEqual(done.returncode, 0, done.stderr)
            ran = stint_json("run", self.package, "-p", PROMPT, "-n", "4")
            if "tensor" not in options: # scales of one line are too small for another text
                self.assertGreater(ran["clipped"], 0)

    def test_a_target_decides_how_inputs_are_quantized(self):
        tokens = {}
        for target in ("sim", "cpu"):
            made = stint("prepare", MODEL, "-o", self.package, *QUICK, "--target", target)
            self.assertEqual(made.returncode, 0, made.stderr)
            notes = stint_json("inspect", self.package, "--outliers")
            terms = {line["row_terms"] for line in notes["linears"]}
            self.assertTrue(terms <= {1, 2} if target == "cpu" else terms == {0})
            ran = [stint_json("run", self.package, "-p", PROMPT, "-n", "8", "--temp", "0",
                              "--device", device)["text"] for device in ("cpu", "sim")]
            self.assertEqual(*ran) # what a device cannot do, the CPU does
            # A bound counts what the thread sanitizer keeps for itself.
            bound = "200M" if setting("STINT_SANITIZE") == "thread" else "60M"
            bounded = stint_json("run", self.package, "-p", PROMPT, "-n", "8", "--temp", "0",
                                 "--memory", bound)
            self.assertEqual(bounded["text"], ran[0])
        self.assert_fails(stint("prepare", MODEL, "-o", self.package, "--target", "tpu"), "tpu")

    def test_what_is_wrong_is_said(self):
        self.assertEqual(stint("prepare", MODEL).returncode, 2)
        self.assertEqual(stint("prepare", MODEL, "-o", self.package, "--calib", "a", "--calib-ids",
                               "b").returncode, 2)
        self.assert_fails(stint("prepare", "/no/such", "-o", self.package), "/no/such")
        self.assert_fails(stint("prepare", MODEL, "-o", self.package, "--calib", "/no/text"),
                          "/no/text")
        self.assert_fails(stint("prepare", MODEL, "-o", self.folder / "no" / "x.stint"),
                          "No such file")
        self.assert_fails(stint("prepare", MODEL, "-o", self.folder),
                          "is a folder")
        self.assert_fails(stint("run", MODEL, "-p", PROMPT, "--exec", "npu"), "stint prepare")
        self.assertEqual(self.names(), [])

    def start(self):
        child = subprocess.Popen([COMMAND, "prepare", MODEL, "-o", self.package, "--calib-tokens",
                                  "100000", "--calib", SOURCE / "README.md", "--threads", "1"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not self.writes(child) and child.poll() is None:
            time.sleep(0.002)
        self.assertIsNone(child.poll(), "it ended before it could be disturbed")
        return child

    def writes(self, child):
        """True once it has a file in the folder, with a name or without."""
        for link in pathlib.Path(f"/proc/{child.pid}/fd").iterdir():
            try:
                if os.readlink(link).startswith(f"{self.package.parent}/"):
                    return True
            except OSError:
                continue
        return False

    def test_ctrl_c_and_sigterm_leave_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            child = self.start()
            child.send_signal(number)
            _, text = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 1)
            self.assertIn("canceled", text)
            self.assertEqual(self.names(), [])

    def test_a_killed_run_leaves_nothing(self):
        child = self.start()
        child.kill()
        child.communicate(timeout=60)
        self.assertEqual(self.names(), [])
        self.assertEqual(stint("prepare", SMALL, "-o", self.package, *QUICK).returncode, 0)
        self.assertEqual(stint("inspect", self.package).returncode, 0)

    def test_a_full_disk_keeps_what_was_there(self):
        def bound_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
        self.package.write_bytes(b"precious")
        done = stint("prepare", MODEL, "-o", self.package, *QUICK, preexec_fn=bound_files)
        self.assert_fails(done, "novels.stint: ", "File too large")
        self.assertEqual(self.package.read_bytes(), b"precious")
        self.assertEqual(self.names(), ["novels.stint"])


class Damage(Folder):
    def setUp(self):
        super().setUp()
        self.assertEqual(stint("prepare", SMALL, "-o", self.package, *QUICK).returncode, 0)
        self.data = self.package.read_bytes()

    def refused(self, data, *pieces):
        path = self.folder / "damaged.stint"
        path.write_bytes(data)
        for command in (("inspect", path), ("run", path, "-p", PROMPT, "-n", "1"),
                        ("tokenize", path)):
            self.assert_fails(stint(*command), "damaged.stint", *pieces)

    def test_every_kind_of_damage_is_one_error(self):
        data = self.data
        self.refused(data[:-1], "cut short")
        self.refused(data + b"\0", "too long")
        self.refused(data[:8] + b"\3" + data[9:], "version 3", "prepare the package again")
        self.refused(data[:12] + data[12:16][::-1] + data[16:], "byte order")
        self.refused(data[:4096], "cut short")
        order = random.Random(5)
        for _ in range(30):
            at = order.randrange(8, len(data))
            self.refused(data[:at] + bytes([data[at] ^ 1 << order.randrange(8)]) + data[at + 1:])
            self.refused(data[:order.randrange(8, len(data))])
        half = len(data) // 8192 * 4096
        self.refused(data[:4096] + data[half:half + 4096] + data[8192:half] + data[4096:8192]
                     + data[half + 4096:], "damaged")


if __name__ == "__main__":
    unittest.main()
