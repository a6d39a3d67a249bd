#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeddings in Python: a text has one, whether it comes as text or as ids."""
import os
import sys
import unittest

from built import LIBRARY, skip_under_sanitizers
from command import MODEL, PROMPT, SOURCE

os.environ["STINT_LIBRARY"] = str(LIBRARY)
sys.path.insert(0, str(SOURCE / "bindings/python"))
skip_under_sanitizers()

import stint  # noqa: E402 pylint: disable=wrong-import-position,wrong-import-order


class Embeddings(unittest.TestCase):
    def test_a_text_and_its_ids(self):
        with stint.Model.open(MODEL) as model, model.session(context=64) as session:
            text = session.embed(PROMPT)
            self.assertEqual(len(text), model.describe().embedding)
            self.assertAlmostEqual(sum(x * x for x in text), 1, places=5)
            ids = model.tokenize(PROMPT, add_bos=True)
            self.assertEqual(session.tokens, ids)
            self.assertEqual(session.embed(ids).tolist(), text.tolist())
            self.assertEqual(session.embed(ids, pooling="mean").tolist(), text.tolist())
            last, first = [session.embed(ids, pooling=kind).tolist() for kind in ("last", "first")]
            self.assertEqual(session.embed(ids[:1]).tolist(), first)
            self.assertNotEqual(last, first)
            for wrong, options in ((ValueError, {"pooling": "max"}), (stint.ArgumentError, {})):
                with self.assertRaises(wrong):
                    session.embed(ids if options else [], **options)
            with self.assertRaises(stint.LimitError):
                session.embed([5] * 65)


if __name__ == "__main__":
    unittest.main()
