#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Precision schedules as people meet them: found, trained, compared, used, refused. A preset with
random weights of few bits is measured with STINT_CI_LONG=1."""
import json
import os
import pathlib
import pty
import subprocess
import tempfile
import unittest

from command import COMMAND, PROMPT, SMALL, SOURCE, stint, stint_json

TEXT = (SOURCE / "README.md").read_text(encoding="utf-8")
LONG = os.environ.get("STINT_CI_LONG") == "1"
PAIRS = [[prompt, steps] for prompt in (8, 4, 3, 2) for steps in (8, 4, 3, 2)]


class Schedules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        cls.package = cls.folder / "novels.stint"
        cls.summary = stint_json("prepare", SMALL, "-o", cls.package, "--calib-tokens", "1024")
        cls.prompts = cls.folder / "prompts.jsonl"
        lines = [line for line in TEXT.splitlines() if len(line) > 40][:6]
        cls.prompts.write_text("".join(json.dumps({"prompt": line[:30], "reference": line[30:]})
                                       + "\n" for line in lines), encoding="utf-8")
        cls.text = cls.folder / "text.txt"
        cls.text.write_text(TEXT, encoding="utf-8")

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def schedule(self, action, *options):
        return stint_json("schedule", self.package, action, *options)

    def assert_refused(self, done, *pieces, code=1):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for piece in pieces:
            self.assertIn(piece, done.stderr)

    def test_a_checkpoint_runs_with_its_packages_bits(self):
        options = ["-p", PROMPT, "-n", "24", "--ignore-eos", "--temp", "0"]
        plain = stint_json("run", SMALL, *options, "--drafts", "0")
        drafted = stint_json("run", SMALL, *options, "--nested", self.package)
        self.assertEqual(drafted["text"], plain["text"])
        fewer = stint_json("run", SMALL, *options, "--nested", self.package, "--schedule",
                           "uniform:3")
        self.assertEqual(fewer["average_bits"], 3)
        # The reference is the package alone, which would refuse --nested.
        compared = stint_json("eval", SMALL, "--nested", self.package, "-t", "agreement",
                              "--reference", self.package, "-d", self.text, "--limit", "1")
        self.assertEqual(compared["items"], 1)
        self.assert_refused(stint("run", self.package, "-p", "x", "--nested", self.package),
                            "nested weights of its own")

    def test_solve_finds_what_run_follows(self):
        out = self.folder / "fast.json"
        found = self.schedule("solve", "-d", self.prompts, "-m", "agreement", "--epsilon", "0.6",
                              "-n", "16", "--minimize", "bits", "-o", out)
        self.assertEqual(found["items"], 6)
        self.assertEqual(found["reference"], 1.0)
        self.assertGreaterEqual(found["quality"], 0.4)
        self.assertLess(found["average_bits"], 8)
        curve = found["curve"]
        self.assertEqual(curve[0]["name"], "int8")
        pairs = [[point["schedule"]["prefill"], point["schedule"]["decode"][0][0]]
                 for point in curve if point["name"] in ("int8", "pair")]
        self.assertEqual(pairs, PAIRS)
        for point in curve:
            steps = point["schedule"]["decode"]
            self.assertEqual(steps, sorted(steps, key=lambda step: (-step[0], step[1])))
        best = min((point["average_bits"], point["schedule"]["prefill"]) for point in curve
                   if point["quality"] >= 0.4 and point["items"] == 6)
        self.assertAlmostEqual(found["average_bits"], best[0])
        self.assertEqual(found["schedule"]["prefill"], best[1])
        written = json.loads(out.read_text(encoding="utf-8"))
        self.assertEqual(written["decode"], found["schedule"]["decode"])
        self.assertEqual(written["prefill"], found["schedule"]["prefill"])
        ran = stint_json("run", self.package, "-p", PROMPT, "-n", "16", "--ignore-eos",
                         "--schedule", out)
        steps = found["schedule"]["decode"]
        expected = [[bits for bits, start in steps if start <= i][-1] for i in range(15)]
        self.assertEqual(ran["bits"], [found["schedule"]["prefill"]] + expected)
        self.assertAlmostEqual(ran["average_bits"], sum(expected) / 15, places=6)
        shown = stint("schedule", self.package, "show", "-s", out).stdout
        self.assertTrue(shown.startswith(f"{best[1]} | {steps[0][0]}"), shown)

    def test_the_prompt_gets_the_precision_that_costs_least(self):
        def solve(times, *options):
            return self.schedule("solve", "-d", self.prompts, "--limit", "2", "-n", "6",
                                 "--candidates", "2", "--epsilon", "1", "--times", times, *options)
        # Any quality will do: INT8 where it is stated to be fast, for prompts, steps or both.
        for times, prompt in (("8:1:9,4:90:4,3:90:3,2:90:2", 8), ("8:90:1,4:90:4,3:1:3,2:90:5", 3)):
            found = solve(times)
            self.assertEqual(found["schedule"]["prefill"], prompt)
            self.assertAlmostEqual(found["answer_seconds"],
                                   min(point["seconds"] for point in found["curve"]))
        found = solve("8:90:1,4:90:4,3:1:3,2:90:5", "--minimize", "bits")
        self.assertEqual(found["schedule"], {"prefill": 2, "decode": [[2, 0]]})
        self.assert_refused(stint("schedule", self.package, "solve", "-d", self.prompts, "--times",
                                  "8:1:1"), "precision 2 is missing")
        self.assert_refused(stint("schedule", self.package, "solve", "-d", self.prompts,
                                  "--minimize", "pain"), "time or bits")

    def test_the_reference_may_be_in_float(self):
        found = self.schedule("solve", "-d", self.prompts, "--limit", "3", "-n", "8", "-m", "kl",
                              "--epsilon", "0.05", "--reference", SMALL, "--minimize", "bits",
                              "--candidates", "2")
        curve = found["curve"]
        self.assertEqual(curve[0]["name"], "reference")
        self.assertEqual(curve[0]["quality"], 0)
        self.assertEqual(len(curve[1:17]), len(PAIRS))
        uniform = {point["schedule"]["decode"][0][0]: point["quality"] for point in curve[1:17]
                   if point["schedule"]["prefill"] == 8}
        self.assertGreater(uniform[8], 0)
        self.assertLess(uniform[8], uniform[4])
        self.assertLess(uniform[4], uniform[2])
        self.assertLessEqual(found["quality"], 0.05)
        self.assert_refused(stint("schedule", self.package, "solve", "-d", self.prompts,
                                  "--reference", "/no/model"), "/no/model")

    def test_a_signal_selects_the_bits_of_each_token(self):
        out = self.folder / "signal.json"
        found = self.schedule("solve", "-d", self.prompts, "-m", "kl", "--epsilon", "0.0025", "-n",
                              "12", "--signal", "margin", "--minimize", "bits", "-o", out)
        signals = [point for point in found["curve"] if point["name"] == "signal"]
        self.assertGreater(len(signals), 3)
        for point in signals:
            thresholds = point["schedule"]["thresholds"]
            self.assertEqual(thresholds, sorted(thresholds, reverse=True))
            self.assertEqual(len(thresholds) + 1, len(point["schedule"]["decode"]))
        # Thresholds keep epsilon as steps do: with the 95 % bound of six prompts.
        good = [point for point in found["curve"]
                if point["items"] == 6 and point["quality"] + 2.015 * point["error"] <= 0.0025]
        self.assertAlmostEqual(found["average_bits"],
                               min(point["average_bits"] for point in good))
        written = json.loads(out.read_text(encoding="utf-8"))
        if "signal" not in found["schedule"]:  # a pair of precisions was good enough
            written |= signals[0]["schedule"]
            out.write_text(json.dumps(written), encoding="utf-8")
        bits = {step[0] for step in written["decode"]}
        ran = stint_json("run", self.package, "-p", PROMPT, "-n", "40", "--ignore-eos",
                         "--schedule", out, "--drafts", "4")
        self.assertEqual(set(ran["bits"][1:]), bits)
        self.assertIn("below margin",
                      stint("schedule", self.package, "show", "-s", out).stdout)
        table = self.schedule("compare", "-d", self.prompts, "-n", "9", "--limit", "3", "-s", out)
        point = next(point for point in table["curve"] if point["name"] == str(out))
        self.assertEqual(len(point["scores"]), 3)
        self.assertGreater(point["average_bits"], min(bits))
        self.assertLess(point["average_bits"], max(bits))
        alone = self.schedule("compare", "-d", self.prompts, "-n", "9", "--limit", "3", "-m",
                              "bleu", "-s", out, "--only")
        self.assertEqual([point["name"] for point in alone["curve"]], ["int8", str(out)])
        self.assertEqual(len(alone["curve"][1]["scores"]), 3)
        self.assert_refused(stint("schedule", self.package, "solve", "-d", self.prompts,
                                  "--signal", "mood"), "'mood'", code=2)

    def test_a_schedule_is_given_up_for_its_own_items_alone(self):
        # INT8 writes the last reference and none of the others, and so does nothing else: no
        # schedule falls short on enough items to be given up.
        own = stint("run", self.package, "-p", PROMPT, "-n", "12").stdout.strip().split("\n")[0]
        items = [{"prompt": f"{PROMPT} {i}", "reference": "zzqx"} for i in range(20)]
        prompts = self.folder / "last.jsonl"
        prompts.write_text("".join(json.dumps(item) + "\n" for item in
                                   items + [{"prompt": PROMPT, "reference": own}]))
        found = self.schedule("solve", "-d", prompts, "-n", "12")
        self.assertGreater(found["reference"], 0)
        schedules = [point for point in found["curve"] if point["name"] == "schedule"]
        self.assertGreater(len(schedules), 0)
        self.assertEqual({point["items"] for point in schedules}, {21})

    def test_training_is_deterministic_and_is_used(self):
        files = [self.folder / name for name in ("a.stint", "b.stint", "c.stint")]
        for file, seed in zip(files, (1, 1, 2)):
            report = self.schedule("train", "-d", self.text, "--limit", "20", "-n", "8",
                                   "--epochs", "3", "--seed", seed, "--high", "4", "--low", "2",
                                   "-o", file)
            self.assertEqual(report["items"], 20)
        data = [file.read_bytes() for file in files]
        self.assertEqual(data[0], data[1])
        self.assertNotEqual(data[0], data[2])
        ran = stint_json("run", self.package, "-p", PROMPT, "-n", "8", "--ignore-eos",
                         "--schedule", files[0])
        self.assertEqual(len(ran["bits"]), 8)
        self.assertTrue(set(ran["bits"][1:]) <= {4, 2}, ran["bits"])
        self.assertIn("learned", stint("schedule", self.package, "show", "-s", files[0]).stdout)
        table = self.schedule("compare", "-d", self.prompts, "-n", "9", "--limit", "3", "-m",
                              "token-f1", "-s", files[0])
        names = [point["name"] for point in table["curve"]]
        self.assertEqual(names, ["int8", "uniform", "uniform", "uniform", str(files[0]), "random",
                                 "random steps", "in turn", "high first", "high in the middle",
                                 "high last"])
        for damaged in (data[0][:5000], data[0][:-1]):
            files[1].write_bytes(damaged)
            self.assert_refused(stint("run", self.package, "-p", "x", "--schedule", files[1]),
                                "b.stint")

    def test_what_does_not_fit_is_refused(self):
        other = self.folder / "other.stint"
        stint_json("prepare", SMALL, "-o", other, "--calib-tokens", "64", "--bits", "3..4",
                   "--quantizer", "uniform")
        out = self.folder / "s.json"
        self.schedule("solve", "-d", self.prompts, "--limit", "1", "-n", "4", "-o", out)
        self.assert_refused(stint("run", other, "-p", "x", "--schedule", out), "another package")
        self.assert_refused(stint("run", other, "-p", "x", "--schedule", "uniform:2"),
                            "precision 2: this package has 3 to 4 bits")
        self.assert_refused(stint("run", SMALL, "-p", "x", "--schedule", "uniform:4"),
                            "no nested weights", "--bits 2..4")
        self.assert_refused(stint("run", self.package, "-p", "x", "--schedule", self.package),
                            "not a precision schedule")
        for words in (("schedule", self.package), ("schedule", self.package, "solve"),
                      ("schedule", self.package, "sing", "-d", "x"),
                      ("schedule", self.package, "show"),
                      ("prepare", SMALL, "-o", out, "--bits", "4..2"),
                      ("prepare", SMALL, "-o", out, "--bits", "1..4")):
            self.assert_refused(stint(*words), code=2)
        self.assert_refused(stint("schedule", SMALL, "solve", "-d", self.prompts), "--bits 2..4")
        self.assert_refused(stint("schedule", self.package, "solve", "-d", "/no/file"), "/no/file")
        self.assert_refused(stint("schedule", self.package, "solve", "-d", self.prompts, "-m",
                                  "beauty"), "'beauty' is not known")
        self.assert_refused(stint("schedule", self.package, "train", "-d", self.text, "--low", "4"),
                            "nothing to choose")
        self.assert_refused(stint("prepare", SMALL, "-o", out, "--quantizer", "x"), "descent")
        stint_json("prepare", SMALL, "-o", other, "--calib-tokens", "64", "--bits", "2..8",
                   "--quantizer", "uniform")
        self.assertIn("2 to 7 bits", stint("inspect", other).stdout)
        self.assert_refused(stint("schedule", other, "solve", "-d", self.prompts, "--limit", "1",
                                  "-n", "40", "--candidates", "8", "-m", "agreement", "--json"),
                            "try fewer candidates")

    def test_quality_is_said_in_words(self):
        def bits(*options):
            return stint_json("run", self.package, "-p", PROMPT, "-n", "4", "--ignore-eos",
                              *options)["bits"][1:]
        losses = {loss["bits"]: max(loss["perplexity_ratio"] - 1, loss["divergence"])
                  for loss in self.summary["losses"]}
        self.assertEqual(sorted(losses), [2, 3, 4])
        for word, limit in (("exact", 0), ("high", 0.01), ("fast", 0.1)):
            fewest = min((n for n, loss in losses.items() if loss < limit), default=8)
            self.assertEqual(bits("--quality", word), [fewest] * 3, word)
        self.assertLess(bits("--quality", "fast")[0], 8)
        self.assertEqual(bits(), bits("--quality", "high"))
        self.assertEqual(bits("--memory", "200M"), bits())
        self.assertEqual(bits("--quality", "fast", "--schedule", "uniform:4"), [4] * 3)
        self.assert_refused(stint("run", self.package, "-p", "x", "--quality", "best"), "exact",
                            code=2)

    def test_drafts_of_fewer_bits_change_nothing(self):
        def text(bits):
            return stint_json("run", self.package, "-p", PROMPT, "-n", "32", "--ignore-eos",
                              "--quality", "exact", "--draft-bits", bits)["text"]
        plain = text("0")
        for bits in ("2", "4"):
            self.assertEqual(text(bits), plain)

    def test_bench_has_an_entry_per_precision(self):
        report = stint_json("bench", self.package, "-p", "16", "-n", "4", "--reps", "1", "--bits",
                            "8,4,3,2")
        decode = report["decode"]
        self.assertEqual([entry["bits"] for entry in decode], [8, 4, 3, 2])
        size = [entry["bytes_per_token"] for entry in decode]
        self.assertEqual(size, sorted(size, reverse=True))
        self.assertLess(size[3] / size[1], 0.75)  # 2.9 and 4.5 bits on average, and 0.5 for scales
        for entry in decode:
            self.assertGreater(entry["read_bytes_per_second"], 0)
            self.assertGreater(entry["bandwidth_fraction"], 0)
        if LONG:  # half a billion random weights; else tests/model/test_weights_nested.c has them
            shape = stint_json("bench", "--shape", "qwen1.5-0.5b", "-p", "8", "-n", "2", "--reps",
                               "1", "--bits", "2")
            self.assertEqual([entry["bits"] for entry in shape["decode"]], [2])

    def test_evaluation_runs_at_a_precision(self):
        def metrics(task, how, *options):
            return stint_json("eval", self.package, "-t", task, "-d", self.text, "--window", "128",
                              "--limit", "6", "--schedule", how, *options)["metrics"]
        ppl = [metrics("ppl", how)["ppl"] for how in ("none", "uniform:4")]
        self.assertLess(ppl[1] / ppl[0], 1.1)
        near, far = (metrics("agreement", how, "--reference", SMALL)
                     for how in ("uniform:4", "uniform:2"))
        self.assertGreater(near["top1"], 0.7)
        self.assertGreater(near["top1"], far["top1"])
        self.assertLess(near["kl"], far["kl"])

    def test_nesting_costs_little_space(self):
        alone, flat = self.folder / "alone.stint", self.folder / "flat.stint"
        one = stint_json("prepare", SMALL, "-o", alone, "--calib-tokens", "64", "--bits", "4..4",
                         "--quantizer", "uniform")
        none = stint_json("prepare", SMALL, "-o", flat, "--calib-tokens", "64", "--bits", "none")
        self.assertLess(none["bytes"], one["bytes"])
        self.assertLess(self.summary["bytes"], 1.1 * one["bytes"])
        self.assertIn("2 to 4 bits", stint("inspect", self.package).stdout)

    def test_other_quantizers_and_outliers_run(self):
        for options in (("--quantizer", "uniform"), ("--sparse", "0.01")):
            package = self.folder / "q.stint"
            stint_json("prepare", SMALL, "-o", package, "--calib-tokens", "64", *options)
            ran = stint_json("run", package, "-p", PROMPT, "-n", "6", "--schedule", "uniform:4")
            self.assertGreater(len(ran["text"]), 5)

    def test_show_bits_colours_a_terminal_alone(self):
        command = [COMMAND, "run", self.package, "-p", PROMPT, "-n", "8", "--show-bits",
                   "--schedule", "uniform:3"]
        leader, follower = pty.openpty()
        environment = {**os.environ, "TERM": "xterm"}
        environment.pop("NO_COLOR", None)
        with subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, env=environment) as process:
            self.assertEqual(process.wait(timeout=1200), 0)
        os.close(follower)
        shown = os.read(leader, 1 << 16).decode("utf-8")
        os.close(leader)
        self.assertIn("\033[33m", shown)
        plain = stint(*command[1:]).stdout
        self.assertNotIn("\033", plain)


if __name__ == "__main__":
    unittest.main()
