#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random expressions of the methods, filters and tests that templates use, and random templates of
statements around them, against Jinja2 with Hugging Face's settings: the same text, or an error
where Jinja2 has one; what we do not support may be refused. `scripts/bootstrap clients` puts Jinja2
into build/venv; skips itself without. STINT_CI_LONG=1 tries 20,000 of each, STINT_SEED makes
others. Differences that are known, so that no template here has them:

- A name that is read in the scope that assigns it: where a template sets a variable of the request,
  or names a macro so, Jinja2 has it undefined before that, and stint has the request's value.
- What {% set %} assigns within {% generation %} is visible after it; with Hugging Face it is not.
"""
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
    from jinja2 import nodes
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError as missing:
    if VENV.exists() and pathlib.Path(sys.executable) != VENV:
        os.execv(VENV, [str(VENV), *sys.argv])
    print(f"skipped: {missing}: scripts/bootstrap clients installs it into build/venv")
    sys.exit(77)

LONG = os.environ.get("STINT_CI_LONG") == "1"
N, N_TEMPLATES = (20000, 20000) if LONG else (1000, 1000)
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


# Statements; {b} is a block of more of them, {x} an expression, {a} a list, {v} a variable.
PIECES = [" ", "\n", "  \n", "text", "a\n  b ", "<|im_start|>", "{{{{ {x} }}}}", "{{{{- {x} -}}}}",
          "{{{{ {x} }}}}\n", "{{# a note #}}", "{{#- a note -#}}\n"]
STATEMENTS = [
    "{{% if {c} %}}{b}{{% endif %}}", "{{%- if {c} -%}}{b}{{%- else %}}{b}{{%- endif %}}\n",
    "  {{% if {c} %}}\n{b}{{% elif {c} %}}\n{b}{{% else -%}}\n{b}  {{% endif %}}\n",
    "{{% for q in {a} %}}{b}{{% endfor %}}", "{{%- for q in {a} %}}\n{b}{{%- endfor -%}}\n",
    "{{% for q in {a} if q is defined %}}{b}{{% else %}}{b}{{% endfor %}}",
    "{{% for q in {a} %}}{{{{ loop.index }}}}{{{{ loop.first }}}}{{{{ loop.last }}}}"
    "{{{{ loop.revindex0 }}}}{{{{ loop.length }}}}{b}{{% endfor %}}",
    "{{% for q in {a} %}}{{{{ loop.previtem }}}}{{{{ loop.nextitem|default('-') }}}}{{% endfor %}}",
    "{{% for q in {a} %}}{{% if loop.index0 == 1 %}}{{% continue %}}{{% endif %}}{b}{{% endfor %}}",
    "{{% for q in {a} %}}{{% if {c} %}}{{% break %}}{{% endif %}}{b}{{% endfor %}}",
    "{{% for k, q in d.items() %}}{{{{ k }}}}={{{{ q }}}}{b}{{% endfor %}}",
    "{{% set {v} = {x} %}}{b}{{{{ {v} }}}}", "{{%- set {v} = {x} -%}}\n{b}{{{{ {v} }}}}",
    "{{% set v3 %}}{b}{{% endset %}}{{{{ v3|trim }}}}",
    "{{% set ns = namespace(z={x}) %}}{{% for q in {a} %}}{{% set ns.z = ns.z ~ q %}}{b}"
    "{{% endfor %}}{{{{ ns.z }}}}",
    "{{% macro g(p, r={x}) %}}[{{{{ p }}}}{{{{ r }}}}{b}]{{% endmacro %}}{{{{ g({x}) }}}}"
    "{{{{ g({x}, r={x}) }}}}",
    "{{% generation %}}\nsaid {{{{- {x} }}}}{{% endgeneration %}}\n",
    "{{% filter upper %}}{b}{{% endfilter %}}",
    "{{% if {c} and not {c} or {c} %}}{b}{{% endif %}}",
]
CONDITIONS = ["t", "not t", "i > 5", "s == 'x'", "q is defined", "'l' in s", "n is none", "e", "l",
              "d.k", "d['b'] == 5", "l|length > 3", "i % 2 == 1", "q is string", "m[0].k == 'B'"]
VALUES = ["q", "s", "i", "f", "t", "n", "u|trim", "zz", "d.k", "d['a'][1]", "l[0]", "m[0]['k']",
          "l[-1]", "s[1:3]", "s ~ i", "i + 1", "'a' if t else 'b'", "w|join(', ')", "l|tojson",
          "[q, 1]", "{'k': i}", "s.split(' ')[0]", "loop is defined", "v1|default('v')", "l[::-1]"]
ITERABLES = ["l", "w", "m", "[]", "range(3)", "range(1, i, 2)", "s", "l[1:]", "d", "l|sort",
             "m|selectattr('v', 'gt', 1)", "[[1, 2], []]", "w|reverse", "zz|default([7])"]


class Generation(Extension):
    """Hugging Face's mark around what the assistant says: it changes no text."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


class Writes(Makes):
    """Templates."""

    def block(self, depth):
        return "".join(self.piece(depth) for _ in range(self.chance.randrange(1, 3)))

    def piece(self, depth):
        one = self.chance.choice
        form = one(STATEMENTS if depth > 0 and self.chance.random() < 0.6 else PIECES)
        parts = {"b": lambda: self.block(depth - 1), "a": lambda: one(ITERABLES),
                 "c": lambda: one(CONDITIONS), "v": lambda: one(["v1", "v2"]),
                 "x": lambda: one(VALUES) if self.chance.random() < 0.8 else self.expression()}
        for name, make in parts.items():
            mark = "{" + name + "}"
            while mark in form:
                form = form.replace(mark, make().replace("{", "{{").replace("}", "}}"), 1)
        return form.replace("{{", "{").replace("}}", "}")


def reference(environment, template):
    """The text, or None for an error."""
    try:
        return environment.from_string(template).render(**VARIABLES)
    except Exception:  # pylint: disable=broad-except  # whatever Python raises
        return None


class Jinja2(unittest.TestCase):
    def compare(self, templates, options):
        """The numbers of errors in both, and of templates that only Jinja2 renders."""
        lines = [json.dumps(VARIABLES), *map(json.dumps, templates)]
        done = subprocess.run([BUILD / "tests" / "render_template"], input="\n".join(lines) + "\n",
                              capture_output=True, encoding="utf-8", check=True, timeout=600)
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, **options)
        environment.filters["tojson"] = lambda value, indent=None: json.dumps(
            value, ensure_ascii=False, indent=indent)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), len(templates))
        wrong, n_refused, n_errors = {}, 0, 0
        for template, ours in zip(templates, answers):
            theirs = reference(environment, template)
            if isinstance(ours, int):
                n_refused += theirs is not None
                n_errors += theirs is None
            elif ours != theirs:
                wrong[template] = (ours, theirs)
        self.assertFalse(wrong, min(wrong.items(), key=lambda item: len(item[0]), default=""))
        print(f"{len(templates)}: {n_errors} errors in both, {n_refused} that Jinja2 renders")
        self.assertLess(n_errors, len(templates) // 4)
        self.assertLess(n_refused, len(templates) // 20)

    def test_expressions(self):
        made = Makes(SEED)
        self.compare(["{{ " + made.expression() + " }}" for _ in range(N)], {})

    def test_templates(self):
        made = Writes(SEED)
        self.compare([made.block(2) + made.block(2) for _ in range(N_TEMPLATES)],
                     {"extensions": ["jinja2.ext.loopcontrols", Generation]})


if __name__ == "__main__":
    unittest.main()
