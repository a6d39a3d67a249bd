#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The texts that random walks of test_constraint.c end in follow their schemas, says the jsonschema
package, which was written by others. Skipped where it is not installed."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:
    print("skipped: the Python package jsonschema is not installed")
    sys.exit(77)

BUILD = os.environ.get("STINT_BUILD_DIR", "build")
WALKS = os.path.join(BUILD, "tests", "constraint_test_constraint")

# What ECMA-262 means by classes of which Python has other ideas; within brackets.
CLASSES = {"\\w": "A-Za-z0-9_",
           "\\s": "\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"}


def closed(schema):
    """The schema as ours is documented: declared properties are all there are."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    for name, members in CLASSES.items():
        if "pattern" in made:
            made["pattern"] = made["pattern"].replace(name, members)
    whole = not any(key in schema for key in ("allOf", "anyOf", "oneOf", "$ref"))
    if isinstance(schema.get("properties"), dict) and whole:
        made.setdefault("additionalProperties", False)
    return made


class Walks(unittest.TestCase):
    def test_they_follow_their_schemas(self):
        if not os.path.exists(WALKS):
            print("skipped: no", WALKS)
            sys.exit(77)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "samples")
            subprocess.run([WALKS], check=True, capture_output=True,
                           env={**os.environ, "STINT_CONSTRAINT_SAMPLES": path})
            with open(path, encoding="utf-8") as file:
                lines = file.read().split("\n")[:-1]
        self.assertGreater(len(lines), 1000)
        checker = jsonschema.FormatChecker()
        for schema, text in zip(lines[::2], lines[1::2]):
            schema, value = json.loads(schema), json.loads(text)
            # allOf with closed parts would close each to the other's names.
            strict = schema if "allOf" in str(schema) else closed(schema)
            validator = jsonschema.Draft202012Validator(strict, format_checker=checker)
            for error in validator.iter_errors(value):
                self.fail(f"{json.dumps(schema)}: {text}: {error.message}")


if __name__ == "__main__":
    unittest.main()
