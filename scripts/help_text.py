# SPDX-License-Identifier: Apache-2.0
"""Reads the command's --help texts (src/cli/help.c lays them out) back into their parts, for the
man pages and the completion that are made from them."""
import re
import subprocess
from typing import NamedTuple

COLUMN = 28  # where the right-hand side of an option begins


class Option(NamedTuple):
    letter: str  # "" for none
    name: str
    value: str  # "" for a flag
    help: str


class Page(NamedTuple):
    usage: str  # without "Usage: "
    about: str
    groups: dict  # title: [Option]
    examples: list


class Overview(NamedTuple):
    version: str
    about: str
    usage: str
    commands: dict  # name: summary
    notes: str
    examples: list


def ask(command, *words):
    """Standard output of `command WORDS`; `command` is a list, an emulator may stand before it."""
    done = subprocess.run([*command, *words], capture_output=True, encoding="utf-8", check=True)
    return done.stdout


def sections(text):
    """{title: [lines]}; "" is what stands before the first title."""
    parts, title = {"": []}, ""
    for line in text.splitlines():
        if re.match(r"(Commands|Options.*|Examples?)$", line):
            title = line
            parts[title] = []
        else:
            parts[title].append(line)
    return parts


def paragraphs(lines):
    return [" ".join(block.split()) for block in "\n".join(lines).split("\n\n") if block.strip()]


def read_options(lines):
    options = []
    for line in lines:
        left, right = line[:COLUMN], line[COLUMN:]
        if left.strip() and not left.endswith(" ") and len(line) >= COLUMN:
            left, right = line, ""  # too long for its column: the help begins on the next line
        match = re.match(r"  (?:-(\w), |    )--([\w-]+)(?: (.*\S))?\s*$", left)
        if match:
            options.append(Option(match[1] or "", match[2], match[3] or "", right.strip()))
        elif line.strip():
            if left.strip() or not options:
                raise ValueError(f"not a line of an option: {line!r}")
            last = options[-1]
            options[-1] = last._replace(help=f"{last.help} {right.strip()}".strip())
    return options


def read_page(text):
    parts = sections(text)
    usage, *about = paragraphs(parts.pop(""))
    examples = [line.strip() for line in parts.pop("Example", []) if line.strip()]
    return Page(usage.removeprefix("Usage: "), "\n\n".join(about),
                {title: read_options(lines) for title, lines in parts.items()}, examples)


def read_overview(text):
    parts = sections(text)
    head, usage = paragraphs(parts[""])
    name, about = head.split(": ", 1)
    lines = parts["Commands"]
    commands = dict(line.split(None, 1) for line in lines if line.startswith("  "))
    notes = paragraphs(line for line in lines if not line.startswith("  "))
    return Overview(name.removeprefix("stint "), about, usage.removeprefix("Usage: "), commands,
                    "\n\n".join(notes), [line.strip() for line in parts["Example"] if line])
