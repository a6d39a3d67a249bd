#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders the templates of recorded.json anew with Jinja2 (PyPI) and Hugging Face's settings. They
have every method, filter, test and function that templates have here."""
import json
import pathlib

from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.ext import loopcontrols

FILE = pathlib.Path(__file__).resolve().parent / "recorded.json"


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def main():
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                extensions=[loopcontrols])
    environment.filters["tojson"] = to_json
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    variables = recorded["variables"]
    rows = [[template, environment.from_string(template).render(**variables)]
            for template, _ in recorded["rows"]]
    text = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    FILE.write_text(f'{{"variables": {json.dumps(variables)},\n"rows": [\n{text}\n]}}\n',
                    encoding="utf-8")


if __name__ == "__main__":
    main()
