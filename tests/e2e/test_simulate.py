#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stint simulate, and pictures of real and predicted runs."""
import json
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

from command import MODEL, PROMPT, stint, stint_json

SVG = "{http://www.w3.org/2000/svg}"


class Simulate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_phone(self):
        done = stint_json("simulate", "--soc", "sd8gen3", "--shape", "qwen1.5-1.8b", "-p",
                          "256,1024")
        self.assertTrue(done["modelled"])
        self.assertEqual([row["tokens"] for row in done["prefill"]], [256, 1024])
        self.assertEqual([row["chunks"] for row in done["prefill"]], [1, 4])
        # What went in comes out: 315 ms of a first chunk on the NPU.
        self.assertAlmostEqual(done["prefill"][0]["npu_seconds"], 0.315, delta=0.002)
        self.assertEqual(done["decode"], [])  # the paper states no bandwidth
        table = stint("simulate", "--soc", "sd8gen3", "--shape", "qwen1.5-1.8b", "-p", "512",
                      "--ablation").stdout
        for step in ("naive", "+ chunk sharing", "+ shadow outliers", "+ out of order"):
            self.assertIn(step, table)

    def test_decoding_is_bound_by_reading(self):
        done = stint_json("simulate", "--soc", "flightllm-4k", "--shape", "phi-2", "-p", "64")
        speedups = {row["bits"]: row["speedup"] for row in done["decode"]}
        self.assertEqual({16, 8, 4, 3, 2}, set(speedups))
        self.assertAlmostEqual(speedups[4], 4, delta=0.01)

    def test_this_machine_and_a_model(self):
        done = stint_json("simulate", MODEL, "--soc", "host", "-p", "100", "--chunk", "20")
        self.assertEqual(done["prefill"][0]["chunks"], 5)
        self.assertGreater(done["prefill"][0]["tokens_per_second"], 0)

    def test_pictures(self):
        for order in ("inorder", "ooo", "heft"):
            names = {}
            for ending in ("json", "svg"):
                path = self.folder / f"{order}.{ending}"
                for arguments in (("simulate", MODEL, "--soc", "sd8gen2", "-p", "100", "--chunk",
                                   "25"),
                                  ("run", MODEL, "-p", 3 * PROMPT, "-n", "1", "--npu-threads", "1",
                                   "--chunk", "5")):
                    done = stint(*arguments, "--order", order, "--trace", path)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    names[ending] = path
                    if ending == "json":
                        events = json.loads(path.read_text())["traceEvents"]
                        lanes = {e["tid"] for e in events if e["ph"] == "X"}
                        self.assertEqual(lanes, {1, 2})
                        self.assertGreater(len(events), 4 * 12 * 6)
                        continue
                    root = xml.etree.ElementTree.parse(path).getroot()
                    titles = [title.text for title in root.iter(SVG + "title")]
                    self.assertTrue(any(t.startswith("waiting") for t in titles))
                    self.assertTrue(any(t.startswith("attention, chunk 3") for t in titles))

    def test_an_undivided_run_is_drawn_too(self):
        path = self.folder / "run.json"
        done = stint_json("run", MODEL, "-p", PROMPT, "-n", "3", "--trace", path)
        events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(len(events), 12 * 6)
        self.assertEqual(done["schedule"]["order"], "undivided")
        self.assertEqual(done["schedule"]["subgraphs"], 12 * 6)

    def test_what_is_wrong_is_said(self):
        shape = ("--shape", "phi-2")
        for arguments, status, piece in (
                ((*shape,), 2, "--soc NAME is missing"),
                (("--soc", "host"), 2, "either a MODEL or --shape"),
                (("--soc", "phone", *shape), 1, "known are: flightllm-16k"),
                (("--soc", "sd8gen3", *shape, "--float", "gpu"), 1, "has no GPU"),
                (("--soc", "sd8gen3", *shape, "--trace", "x.png"), 1, ".json or an .svg")):
            done = stint("simulate", *arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(piece, done.stderr)
        done = stint("run", MODEL, "-p", PROMPT, "-n", "1", "--order", "best")
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
