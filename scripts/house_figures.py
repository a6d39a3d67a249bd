#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of how src/session and src/device of a source tree are built: their size, how many files
decide on the execution path, and which files call each other in a circle. Prints a Markdown table
with a column per tree, as in docs/ARCHITECTURE.md; --files names the files behind the figures.

A file decides on the execution path if a condition in it (of if, while, for or ?:) asks what
PATH matches: which weights, device, memory or phase there is. A circle is a strongly connected
component of the graph of files, with an edge from each file to those whose st_* functions it names;
a second count also has an edge for their constant tables of functions."""
import argparse
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_style import blank_comments_and_strings, functions  # noqa: E402

PATH = re.compile(r"\b(?:bounded|resident|sparse|phase|split\.on|npu(?:\.|->)device|"
                  r"int8(?:\.|->)layers|neurons(?:\.|->)layers|nested(?:\.|->)high|"
                  r"(?:fine|two_term)(?:\.|->)graphs)\b|(?:->|\.)(?:bits|prompt)\b|^!?bits$")
FUNCTION = re.compile(r"^(?!static|typedef|extern)[a-z][\w *]*?\b(st_\w+)\([^;{]*\)\s*{", re.M)
TABLE = re.compile(r"^(?!static|typedef|extern)[\w *]*?\bconst\b[\w *]*?\b(st_\w+)(?:\[\w*\])* = {",
                   re.M)


class Room:
    """The C files below one or more folders, or some of a folder's."""

    def __init__(self, root, *paths):
        self.root, self.code, self.lines = root, {}, {}
        for path in paths:
            folder = root / path
            for file in sorted(folder.rglob("*.[ch]")) if folder.is_dir() else [folder]:
                if file.is_file():
                    text = file.read_text()
                    name = file.relative_to(root / "src").as_posix()
                    self.lines[name] = text.count("\n")
                    self.code[name] = blank_comments_and_strings(text)

    def all_lines(self):
        return sum(self.lines.values())

    def code_lines(self):
        return sum(1 for code in self.code.values() for line in code.splitlines() if line.strip())

    def largest_file(self):
        return max(((n, name) for name, n in self.lines.items()), default=(0, "none"))

    def largest_function(self):
        return max(((last - first + 1, f"{function} in {name}")
                    for name, code in self.code.items() if name.endswith(".c")
                    for function, first, last in functions(code)), default=(0, "none"))


def inside(code, start):
    """What stands in the bracket that opens at `start`."""
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if depth == 0:
            return code[start + 1:at]
    return code[start + 1:]


def conditions(code):
    for match in re.finditer(r"\b(if|while|switch|for)\s*\(", code):
        text = inside(code, match.end() - 1)
        yield text if match.group(1) != "for" else (text.split(";") + ["", ""])[1]
    for match in re.finditer(r"\?", code):  # up to where the expression before it begins
        yield re.split(r"[;{}]|[^=!<>]=(?!=)|\breturn\b", code[:match.start()])[-1]


def decisions(code):
    """How many conditions ask for the execution path."""
    return sum(bool(PATH.search(" ".join(text.split()))) for text in conditions(code))


def members(root, struct, header):
    """How many members a struct has: `*a, *b;` are two."""
    path = root / header
    code = blank_comments_and_strings(path.read_text()) if path.is_file() else ""
    match = re.search(r"struct " + struct + r" \{(.*?)\n\};", code, re.S)
    return sum(line.count(",") + 1 for line in match.group(1).split(";") if line.strip()) \
        if match else 0


def subgraphs(room):
    """How many functions stand in tables for each subgraph of a layer; globals count once."""
    found = {}
    for name, code in room.code.items():
        for kind, function in re.findall(r"\[ST_SUBGRAPH_(\w+)\]\s*=\s*([a-z]\w+)", code):
            owner = "" if function.startswith("st_") else name
            found.setdefault(kind.lower(), set()).add((owner, function))
    return {kind: len(those) for kind, those in sorted(found.items())}


def calls(room, tables=False):
    """{file: the files whose functions it names}"""
    owners = {}
    for name, code in room.code.items():
        for pattern in (FUNCTION, TABLE) if tables else (FUNCTION,):
            if name.endswith(".c"):
                owners.update({defined: name for defined in pattern.findall(code)})
    graph = {}
    for name, code in room.code.items():
        if name.endswith(".c"):
            graph[name] = {owners[word] for word in set(re.findall(r"\bst_\w+", code))
                           if owners.get(word, name) != name}
    return graph


def circles(graph):
    """Strongly connected components of two files and more, the largest first (Tarjan 1972)."""
    number, low, stack, found = {}, {}, [], []

    def visit(name):
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            at = stack.index(name)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return sorted((those for those in found if len(those) > 1), key=lambda those: -len(those))


def sizes(found):
    return ", ".join(str(len(those)) for those in found) or "none"


def figures(root):
    session, device = Room(root, "src/session"), Room(root, "src/device")
    both = Room(root, "src/session", "src/device")
    # The generation loop stood in src/session before it had a folder of its own.
    loop = Room(root, "src/generate", *(f"src/session/{name}" for name in (
        "generate.c", "generate.h", "sample.c", "sample.h")))
    without = Room(root, "src/session")
    for name in loop.code:
        without.code.pop(name, None)
        without.lines.pop(name, None)
    decided = {name: decisions(code) for name, code in sorted(without.code.items())
               if name.endswith(".c")}
    deciding = [name for name, n in decided.items() if n > 0]
    written = subgraphs(session)
    plain, with_tables = circles(calls(session)), circles(calls(session, tables=True))
    n_files = sum(name.endswith(".c") for name in session.code)
    file_lines, file = both.largest_file()
    function_lines, function = both.largest_function()
    rows = {
        "src/session: code lines (all lines)":
            f"{session.code_lines()} ({session.all_lines()})",
        "the same without the generation loop":
            f"{without.code_lines()} ({without.all_lines()})",
        "generation loop, wherever it is":
            f"{loop.code_lines()} ({loop.all_lines()})",
        "src/device: code lines (all lines)": f"{device.code_lines()} ({device.all_lines()})",
        "members of struct stint_session":
            str(members(root, "stint_session", "src/session/session.h")),
        "session files that decide on the execution path (conditions)":
            f"{len(deciding)} of {len(decided)} ({sum(decided.values())})",
        "implementations of a subgraph":
            ", ".join(f"{kind} {n}" for kind, n in written.items()) or "none",
        "session files in circles, by circle": f"{sizes(plain)} of {n_files}",
        "the same with tables of functions": f"{sizes(with_tables)} of {n_files}",
        "largest file, lines": f"{file_lines} ({file})",
        "largest function, lines": f"{function_lines} ({function})",
    }
    names = {"decide": [deciding], "circle": plain, "circle with tables": with_tables}
    return rows, names


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=pathlib.Path, metavar="TREE",
                        default=[pathlib.Path(__file__).resolve().parents[1]])
    parser.add_argument("--files", action="store_true", help="name the files behind the figures")
    parser.add_argument("--check", action="store_true",
                        help="fail if more than two files of src/session call each other")
    options = parser.parse_args()
    found = []
    for tree in options.trees:
        if not (tree / "src").is_dir():
            parser.error(f"{tree}: has no folder src")
        found.append(figures(tree))
    print("| | " + " | ".join(tree.resolve().name for tree in options.trees) + " |")
    print("|---" * (len(found) + 1) + "|")
    for row in found[0][0]:
        print(f"| {row} | " + " | ".join(rows[row] for rows, _ in found) + " |")
    for tree, (_, names) in zip(options.trees, found):
        for what, groups in names.items():
            for group in groups if options.files else []:
                print(f"{tree.resolve().name}: {what}: {' '.join(group)}")
    too_long = [group for _, names in found for group in names["circle with tables"]
                if len(group) > 2]
    if options.check and too_long:
        raise SystemExit("these files call each other in a circle: " + " ".join(too_long[0]))


if __name__ == "__main__":
    main()
