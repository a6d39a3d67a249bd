#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The golden conversations of tests/chat/golden are what this machine's Jinja2 renders."""
import json
import sys
import unittest

import make_golden


class Golden(unittest.TestCase):
    def test_files_are_what_jinja2_renders(self):
        for name, value in make_golden.golden().items():
            with self.subTest(name):
                path = make_golden.HERE / "golden" / name
                self.assertEqual(json.loads(path.read_text(encoding="utf-8")), value)

    def test_each_template_renders_most_conversations(self):
        for name, value in make_golden.golden().items():
            self.assertEqual(len(value), 20, name)
            self.assertGreater(sum(text is not None for text in value), 5, name)


if __name__ == "__main__":
    try:
        import jinja2  # noqa: F401
    except ImportError:
        print("skipped: there is no Jinja2 for this Python")
        sys.exit(77)
    unittest.main()
