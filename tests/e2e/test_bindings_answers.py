#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several answers to a prompt in Python: the likeliest first, each one that of its seed."""
import os
import sys
import unittest

from built import LIBRARY, skip_under_sanitizers
from command import MODEL, PROMPT, SOURCE

os.environ["STINT_LIBRARY"] = str(LIBRARY)
sys.path.insert(0, str(SOURCE / "bindings/python"))
skip_under_sanitizers()

import stint  # noqa: E402 pylint: disable=wrong-import-position,wrong-import-order


class Answers(unittest.TestCase):
    def test_several_answers(self):
        drawn = {"max_tokens": 12, "sampling": stint.Sampling(temperature=0.9, seed=11),
                 "logprobs": 1}
        with stint.Model.open(MODEL) as model:
            with model.session(sequences=3) as session:
                answers = session.answers(3, PROMPT, **drawn)
                with self.assertRaises(stint.ArgumentError):
                    session.answers(4, PROMPT)
                with self.assertRaises(ValueError):
                    session.answers(0, PROMPT)
            with model.session() as session:
                single = session.generate(PROMPT, **drawn).text()
        scores = [one.result.mean_logprob for one in answers]
        self.assertEqual(scores, sorted(scores, reverse=True))
        for one in answers:
            mean = sum(token.logprob for token in one.logprobs) / len(one.logprobs)
            self.assertAlmostEqual(one.result.mean_logprob, mean, places=5)
            self.assertEqual(tuple(token.id for token in one.logprobs), one.ids)
        self.assertIn(single, [one.text for one in answers])


if __name__ == "__main__":
    unittest.main()
