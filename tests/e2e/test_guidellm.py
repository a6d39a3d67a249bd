#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""guidellm, unmodified, measures `stint serve` with SmolLM2 where real_models.py finds it, else
with the bundled model: each answer has the length that it asks for.
`scripts/bootstrap frameworks` puts it into build/frameworks; skips itself without."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from frameworks import FOLDER, enter, needs

enter()

# pylint: disable=wrong-import-position
from command import MODEL
from real_models import SMOLLM2
from server import Server


@needs("guidellm")
class Guidellm(unittest.TestCase):
    def test_requests_of_a_fixed_length(self):
        with Server(model=SMOLLM2 or MODEL) as server, tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            done = subprocess.run(
                [FOLDER / "guidellm", "benchmark", "--target", server.address,
                 "--rate-type", "synchronous", "--max-requests", "3", "--processor", MODEL,
                 "--data", '{"prompt_tokens": 24, "output_tokens": 12}', "--disable-progress",
                 "--output-path", report],
                env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": folder}, text=True,
                capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            benchmark, = json.loads(report.read_text())["benchmarks"]
        totals = benchmark["request_totals"]
        self.assertEqual((totals["successful"], totals["errored"]), (3, 0))
        for request in benchmark["requests"]["successful"]:
            self.assertEqual(request["output_tokens"], 12)


if __name__ == "__main__":
    unittest.main()
