#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shadow execution where it is needed: twins of a trained model whose linears meet outliers, on
text that neither training nor calibration saw. Without shadow execution they are ruined.
STINT_CI_LONG=1 adds a twin whose outermost linears alone meet them, and all targets for each, and
calibrates on twice as much text."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import test_models as golden

TEXT = golden.SHARED / "data" / "novels" / "Corelli_Satan_1895.txt"
MODEL = golden.SHARED / "models" / "novels-10m"
PLANT = pathlib.Path(__file__).parent.parent / "tools" / "plant_outliers.py"
LONG = os.environ.get("STINT_CI_LONG") == "1"
WINDOWS, LENGTH, CALIBRATION = 5, 256, 2048 if LONG else 1024
TWINS = [(16, 1), (128, 1)]  # strength of the outliers, share of the linears
if LONG:
    TWINS.append((128, 0.15))


class Outliers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.text = cls.folder / "text"
        cls.text.write_bytes(TEXT.read_bytes()[200000:220000])
        cls.exact = cls.perplexity(MODEL)

    @classmethod
    def perplexity(cls, model):
        done = golden.run("eval", model, "--task", "ppl", "--data", cls.text, "--limit", WINDOWS,
                          "--window", LENGTH, "--json")
        return json.loads(done.stdout)["metrics"]["ppl"]

    def increase(self, twin, prune, target="sim"):
        """Relative increase of the perplexity over the float source's, and prepare's report, for
        a device: sim has static scales, cpu a scale for each token."""
        package = self.folder / "package.stint"
        done = golden.run("prepare", twin, "-o", package, "--outlier-prune", prune, "--bits",
                          "none", "--target", target, "--calib-tokens", CALIBRATION, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        increase = self.perplexity(package) / self.exact - 1
        report = json.loads(done.stdout)
        print(f"{twin.name} {prune} {target}: {100 * increase:+.2f} %, "
              f"{report['linears_shadowed']} shadowed", file=sys.stderr)
        return increase, report

    def plant(self, strength, share):
        twin = self.folder / f"twin-{strength}-{share}"
        subprocess.run([sys.executable, PLANT, MODEL, twin, "--strength", str(strength), "--share",
                        str(share)], check=True, stdout=subprocess.DEVNULL)
        return twin

    def test_twins_are_equivalent(self):
        twin = self.plant(128, 1)
        tokens = MODEL / "tokens.json"
        self.assertEqual(golden.logits(twin, tokens), golden.logits(MODEL, tokens))

    def test_outliers_ruin_plain_int8_and_not_shadow_execution(self):
        for strength, share in TWINS:
            with self.subTest(strength=strength, share=share):
                twin = self.plant(strength, share)
                plain, report = self.increase(twin, "off")
                self.assertGreater(plain, 0.05 if strength == 16 else 1.0)
                self.assertEqual(report["linears_shadowed"], 0)
                auto, report = self.increase(twin, "auto")
                self.assertLess(auto, 0.01)
                self.assertGreater(report["linears_shadowed"], 6)
                if strength == 16 and not LONG:
                    continue
                rows, report = self.increase(twin, "auto", "cpu")
                self.assertLess(rows, 0.012)
                unpruned, report = self.increase(twin, "0")
                self.assertLess(unpruned, 0.003)
                self.assertEqual(report["linears_shadowed"], 49)

    def test_a_model_without_outliers_keeps_its_quality(self):
        increase, report = self.increase(MODEL, "auto")
        self.assertLess(increase, 0.01)
        self.assertGreater(report["top1_agreement"], 0.9)


if __name__ == "__main__":
    if not TEXT.exists():
        print(f"1 skipped: no {TEXT}", file=sys.stderr)
        sys.exit(77)
    unittest.main()
