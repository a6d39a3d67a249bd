#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random schemas and answers against the jsonschema package, which was written by others: what a
constraint writes or allows must be valid. STINT_CI_LONG=1 takes 30,000 schemas; STINT_SEED others.
Skipped where the package is not installed."""
import decimal
import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("STINT_SOURCE_DIR", "."))
VENV = SOURCE / "build" / "venv" / "bin" / "python"

try:
    import jsonschema
except ImportError:
    if VENV.exists() and pathlib.Path(sys.executable) != VENV:
        os.execv(VENV, [str(VENV), *sys.argv])
    print("skipped: the Python package jsonschema is not installed")
    sys.exit(77)

PROGRAM = pathlib.Path(os.environ.get("STINT_BUILD_DIR", "build")) / "tests" / "walk_schemas"
COUNT = 30000 if os.environ.get("STINT_CI_LONG") == "1" else 3000
WALKS = 6

VALUES = [None, True, False, 0, 1, 2, 3, 7, -4, 10, 2.5, 0.1, -0.75, "", "a", "ab", "abc", "red",
          [], [1], [1, 1], [1, 2, 3], ["a", None], {}, {"a": 1}, {"b": "x"}, {"a": 1, "b": "x"},
          {"kind": "x", "a": 2}, {"kind": "y", "b": []}]


def is_integer(_, value):
    whole = isinstance(value, decimal.Decimal) and value == value.to_integral_value()
    return whole or isinstance(value, int) and not isinstance(value, bool)


# Decimal numbers, so that 0.3 is a multiple of 0.1.
BASE = jsonschema.Draft202012Validator
Validator = jsonschema.validators.extend(
    BASE, type_checker=BASE.TYPE_CHECKER.redefine("integer", is_integer))


decimal.getcontext().prec = 200  # remainders of 1e99


def exact(text):
    return json.loads(text, parse_float=decimal.Decimal)


class Maker:
    """Random schemas of what constraints support, above all of what combines others."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def maybe(self, made, key, value, chance=0.3):
        if self.random.random() < chance:
            made[key] = value() if callable(value) else value

    def number(self, kind):
        rng, made = self.random, {"type": kind}
        self.maybe(made, "minimum", lambda: rng.choice([-5, 0, 0.5, 2, 10]))
        self.maybe(made, "maximum", lambda: rng.choice([3, 10, 99.75, 1000]))
        self.maybe(made, "exclusiveMinimum", lambda: rng.choice([-1, 0, 0.25]), 0.1)
        self.maybe(made, "exclusiveMaximum", lambda: rng.choice([1, 7, 12.5]), 0.1)
        self.maybe(made, "multipleOf", lambda: rng.choice([1, 2, 3, 5, 7, 10, 100, 0.5, 0.1, 0.01,
                                                           0.25, 1.5]), 0.5)
        return made

    def string(self):
        rng, made = self.random, {"type": "string"}
        self.maybe(made, "minLength", lambda: rng.randrange(4), 0.2)
        self.maybe(made, "maxLength", lambda: rng.randrange(1, 8), 0.2)
        return made

    def array(self, depth):
        rng, made = self.random, {"type": "array"}
        self.maybe(made, "items", lambda: self.schema(depth - 1), 0.7)
        self.maybe(made, "prefixItems", lambda: [self.schema(depth - 1)
                                                 for _ in range(rng.randrange(1, 3))], 0.2)
        self.maybe(made, "minItems", lambda: rng.randrange(3))
        self.maybe(made, "maxItems", lambda: rng.randrange(1, 5), 0.4)
        if rng.random() < 0.3:
            made["uniqueItems"] = True
            made["items"] = rng.choice([{"enum": rng.sample(range(9), 4)}, {"type": "boolean"},
                                        {"enum": ["a", "b", None]}, {"type": ["null", "boolean"]}])
        return made

    def object(self, depth):
        rng, made = self.random, {"type": "object", "properties": {}}
        for name in rng.sample(["a", "b", "kind", "z\"q"], rng.randrange(1, 4)):
            made["properties"][name] = self.schema(depth - 1)
        if rng.random() < 0.3:
            made["properties"]["kind"] = {"const": rng.choice("xy")}
        self.maybe(made, "required", lambda: rng.sample(sorted(made["properties"]), 1), 0.6)
        self.maybe(made, "additionalProperties",
                   lambda: rng.choice([False, True, {"type": "integer"}]), 0.5)
        return made

    def fixed(self):
        rng = self.random
        if rng.random() < 0.3:
            return {"const": rng.choice(VALUES)}
        return {"enum": rng.sample(VALUES[:18], rng.randrange(1, 5))}

    def schema(self, depth):
        rng = self.random
        kinds = [lambda: self.number("integer"), lambda: self.number("number"), self.string,
                 self.fixed, lambda: {"type": rng.choice(["null", "boolean"])},
                 lambda: {"type": rng.sample(["null", "integer", "string", "number"], 2)}]
        if depth > 0:
            kinds += [lambda: self.array(depth), lambda: self.object(depth)] * 2
            kinds += [lambda: self.combined(depth)] * 4
        return rng.choice(kinds)()

    def combined(self, depth):
        rng = self.random
        list_of = lambda: [self.schema(depth - 1) for _ in range(rng.randrange(2, 4))]
        kind = rng.choice(["oneOf", "oneOf", "oneOf", "anyOf", "allOf", "not", "required", "ref"])
        if kind == "not":
            return {**self.schema(depth - 1), "not": self.schema(depth - 1)}
        if kind == "required":
            made = self.object(depth)
            made["oneOf"] = [{"required": [name]} for name in made["properties"]]
            return made
        if kind == "ref":
            return {"oneOf": [{"$ref": "#/$defs/d"}, self.schema(depth - 1)]}
        return {kind: list_of()}

    def whole(self):
        return {**self.schema(2), "$defs": {"d": self.schema(1)}}


def ask(questions):
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([PROGRAM], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class RandomSchemas(unittest.TestCase):
    def test_what_is_written_and_allowed_is_valid(self):
        seed = int(os.environ.get("STINT_SEED", "1"))
        maker = Maker(seed)
        schemas = [maker.whole() for _ in range(COUNT)]
        texts = [json.dumps(value) for value in VALUES]
        taken = stuck = 0
        wrong = []
        for schema, got in zip(schemas, ask([schema, texts, WALKS] for schema in schemas)):
            if "refused" in got:
                continue
            taken += 1
            validator = Validator(exact(json.dumps(schema)))
            stuck += got["walks"].count(None)
            answers = [walk for walk in got["walks"] if walk is not None]
            answers += [text for text, allowed in zip(texts, got["allowed"]) if allowed]
            wrong += [(schema, answer) for answer in answers
                      if not validator.is_valid(exact(answer))]
        print(f"seed {seed}: {taken} of {COUNT} schemas, {stuck} walks without an end")
        self.assertEqual([json.dumps(pair) for pair in wrong], [])
        self.assertGreater(taken, COUNT // 3)
        self.assertLess(stuck, COUNT * WALKS // 50)  # long ones; test_constraint.c excludes others


if __name__ == "__main__":
    unittest.main()
