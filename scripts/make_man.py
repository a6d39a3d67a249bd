#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes stint.1, and stint-COMMAND.1 for each command, from what --help prints.
Use: make_man.py FOLDER COMMAND... (an emulator may stand before the command)."""
import pathlib
import re
import sys

from help_text import ask, read_overview, read_page


def escape(text):
    """Text that roff takes literally: no request, no escape, no dash that is not one."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti").replace("`", "\\(ga").replace("'", "\\(aq")
    return re.sub(r"^(?=\.)", r"\\&", text, flags=re.M)


def bold(text):
    return f"\\fB{escape(text)}\\fR"


def head(name, about, version):
    title = escape(name.upper())
    return [f'.TH {title} 1 "" "stint {version}" "User Commands"',
            ".nh", ".ad l", ".SH NAME", f"{escape(name)} \\- {escape(about)}"]


def synopsis(usage):
    """`stint run MODEL [options]`: what is typed in bold, the rest as it stands."""
    words = [bold(word) if re.match(r"[a-z]+$", word) and word != "options" else escape(word)
             for word in usage.split()]
    return [".SH SYNOPSIS", " ".join(words)]


def body(text):
    lines = []
    for paragraph in text.split("\n\n"):
        lines += [".PP", escape(paragraph)]
    return lines


def examples(rows):
    return [".SH EXAMPLE", ".RS", ".nf", *map(escape, rows), ".fi", ".RE"]


def option(row):
    names = ([bold("-" + row.letter)] if row.letter else []) + [bold("--" + row.name)]
    value = f" \\fI{escape(row.value)}\\fR" if row.value else ""
    return [".TP", ", ".join(names) + value, escape(row.help)]


def command_page(name, summary, page, version):
    lines = head(f"stint-{name}", summary, version) + synopsis(page.usage)
    lines += [".SH DESCRIPTION"] + body(page.about)
    for title, options in page.groups.items():
        lines.append(".SH OPTIONS" if title == "Options" else f".SS {escape(title)}")
        for row in options:
            lines += option(row)
    lines += examples(page.examples)
    lines += [".SH EXIT STATUS", "0 done, 1 failed, 2 wrong use.",
              ".SH SEE ALSO", f"{bold('stint')}(1)"]
    return "\n".join(lines) + "\n"


def overview_page(view):
    lines = head("stint", view.about, view.version) + synopsis(view.usage)
    lines += [".SH DESCRIPTION"] + body(view.notes) + [".SH COMMANDS"]
    for name, summary in view.commands.items():
        lines += [".TP", f"{bold('stint-' + name)}(1)", escape(summary)]
    lines += examples(view.examples)
    lines += [".SH SEE ALSO"]
    names = [f"{bold('stint-' + name)}(1)" for name in view.commands]
    return "\n".join(lines + [",\n".join(names)]) + "\n"


def main():
    folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    view = read_overview(ask(command, "--help"))
    pages = {"stint": overview_page(view)}
    for name, summary in view.commands.items():
        page = read_page(ask(command, name, "--help", "all"))
        pages[f"stint-{name}"] = command_page(name, summary, page, view.version)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("stint*.1"):
        old.unlink()
    for name, text in pages.items():
        (folder / f"{name}.1").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
