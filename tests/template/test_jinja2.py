#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random expressions of the methods, filters and tests that templates use, against Jinja2 with
Hugging Face's settings: the same text, or an error where Jinja2 has one; what we do not support may
be refused. `scripts/bootstrap clients` puts Jinja2 into build/venv; skips itself without.
STINT_CI_LONG=1 tries 20,000, STINT_SEED makes others."""
import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

BUILD = pathlib.Path(os.environ["STINT_BUILD_DIR"])
VENV = pathlib.Path(os.environ["STINT_SOURCE_DIR"]) / "build" / "venv" / "bin" / "python"

try:
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError as missing:
    if VENV.exists() and pathlib.Path(sys.executable) != VENV:
        os.execv(VENV, [str(VENV), *sys.argv])
    print(f"skipped: {missing}: scripts/bootstrap clients installs it into build/venv")
    sys.exit(77)

N = 20000 if os.environ.get("STINT_CI_LONG") == "1" else 2000
SEED = int(os.environ.get("STINT_SEED", "1"))
VARIABLES = {"s": "hello World", "u": "Gr\u00fc\u00dfe x\n y ", "e": "", "l": [3, 1, 2, 1],
             "w": ["b", "a", "B", "a"], "m": [{"k": "B", "v": 2}, {"k": "a", "v": 1}],
             "o": [{"k": "b", "v": 1}, {"k": "B", "v": 0}, {"k": "a", "v": 1}],
             "d": {"k": "v", "b": 5, "a": [1, None]}, "i": 7, "f": 2.5, "t": True, "n": None}
TEXTS = ["''", "'o'", "'l'", "'lo'", "' '", "'x'", "'he'", "'ld'", "'\u00fc'", "'hel'"]
STRINGS = ["s", "u", "e", "'a-b-c'", "' pad  '", "'12'", "'Title Case'", "'x\\ny\\n'", "'ABC'"]
LISTS = ["l", "w", "[]", "[1, 2.5]", "['x']"]
NUMBERS = ["i", "f", "0", "-3", "2", "1.5", "t"]
METHODS = ["strip()", "strip({t})", "lstrip({t})", "rstrip({t})", "split()", "split({t})",
           "split({t}, 1)", "rsplit({t}, 1)", "splitlines()", "splitlines(true)",
           "startswith({t})", "endswith({t})", "startswith(({t}, {t}))", "endswith(({t}, {t}))",
           "upper()", "lower()", "title()", "capitalize()", "replace({t}, {t})",
           "replace({t}, {t}, 1)", "join(w)", "find({t})", "rfind({t})", "index({t})",
           "count({t})", "isdigit()", "removeprefix({t})", "removesuffix({t})"]
TEXT_FILTERS = ["upper", "lower", "capitalize", "title", "trim", "trim({t})",
                "replace({t}, {t})", "indent(2)", "indent(2, true)", "string", "safe", "escape",
                "e", "length", "list", "first", "last", "reverse", "int", "float", "tojson"]
LIST_FILTERS = ["length", "count", "list", "first", "last", "reverse|list", "join({t})", "sort",
                "sort(true)", "sort(reverse=true)", "min", "max", "unique|list", "sum", "tojson",
                "map('string')|list", "map('upper')|list", "select('odd')|list",
                "reject('even')|list", "select('string')|list", "select('in', w)|list",
                "tojson(indent=2)"]
TESTS = ["defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number",
         "string", "mapping", "sequence", "iterable", "callable", "odd", "even", "divisibleby(3)",
         "sameas(i)", "sameas(none)", "lower", "upper", "in(l)", "eq(7)", "equalto('o')", "ne(1)",
         "lt(3)", "lessthan(3)", "le(2)", "gt(2)", "greaterthan(2)", "ge(2)"]
OTHERS = ["d.keys()|list", "d.values()|list", "d.items()|list", "d.get('k')", "d.get('q', {t})",
          "d.copy()", "'\u0663'.isdigit()", "d|dictsort", "d|dictsort(reverse=true)",
          "d|items|list", "d|length",
          "m|map(attribute='k')|join({t})", "m|sort(attribute='k')", "m|min(attribute='v')",
          "o|sort(attribute='v,k')", "o|sort(attribute='k,v')", "o|sort(true, attribute='v,k')",
          "m|max(attribute='v')", "m|sum(attribute='v')", "m|unique(attribute='k')|list",
          "m|selectattr('k', 'eq', 'a')|list", "m|rejectattr('v', 'gt', 1)|list",
          "m|selectattr('k')|list", "d.pop('k')", "d.update({})", "d.clear()", "l.append(1)",
          "l.pop()", "l.index(1)", "l.index(9)", "l.count(1)", "w.count('a')", "l.sort()",
          "s[{n}]", "s[1:{n}]", "l[{n}:]", "range({n})|list", "{n} + {n}", "{n} * {n}", "{n} / {n}",
          "{n} // {n}", "{n} % {n}", "{n} ** 2", "{n} < {n}", "{n}|round", "{n}|round(1, 'floor')",
          "{n}|abs", "{n}|int", "{n}|float", "{t} ~ {n}", "{t} in {s}", "{t} < {s}", "{t} * 2",
          "zz.y", "zz|default({t})", "{n} if {n} else {t}", "not {n}", "dict(a=1)"]


class Makes:
    def __init__(self, seed):
        self.chance = random.Random(seed)

    def filled(self, form):
        for mark, choices in (("{t}", TEXTS), ("{n}", NUMBERS), ("{s}", STRINGS)):
            while mark in form:
                form = form.replace(mark, self.chance.choice(choices), 1)
        return form

    def expression(self):
        one = self.chance.choice
        kind = self.chance.randrange(5)
        if kind == 0:
            return self.filled(f"{one(STRINGS)}.{one(METHODS)}")
        if kind == 1:
            return self.filled(f"{one(STRINGS)}|{one(TEXT_FILTERS)}")
        if kind == 2:
            return self.filled(f"{one(LISTS)}|{one(LIST_FILTERS)}")
        if kind == 3:
            return f"{one(STRINGS + LISTS + NUMBERS + ['d', 'n', 'zz'])} is {one(TESTS)}"
        return self.filled(one(OTHERS))


def reference(environment, template):
    """The text, or None for an error."""
    try:
        return environment.from_string(template).render(**VARIABLES)
    except Exception:  # pylint: disable=broad-except  # whatever Python raises
        return None


class Jinja2(unittest.TestCase):
    def test_expressions(self):
        made = Makes(SEED)
        templates = ["{{ " + made.expression() + " }}" for _ in range(N)]
        lines = [json.dumps(VARIABLES), *map(json.dumps, templates)]
        done = subprocess.run([BUILD / "tests" / "render_template"], input="\n".join(lines) + "\n",
                              capture_output=True, encoding="utf-8", check=True, timeout=600)
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = lambda value, indent=None: json.dumps(
            value, ensure_ascii=False, indent=indent)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), N)
        wrong, n_refused, n_errors = {}, 0, 0
        for template, ours in zip(templates, answers):
            theirs = reference(environment, template)
            if isinstance(ours, int):
                n_refused += theirs is not None
                n_errors += theirs is None
            elif ours != theirs:
                wrong[template] = (ours, theirs)
        self.assertEqual(wrong, {})
        print(f"{N} expressions, {n_errors} errors in both, {n_refused} that Jinja2 renders")
        self.assertLess(n_errors, N // 4)
        self.assertLess(n_refused, N // 20)


if __name__ == "__main__":
    unittest.main()
