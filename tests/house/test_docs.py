#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documents point to is there: links, files, and the functions and constants they name."""
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ.get("STINT_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PAGES = sorted([*SOURCE.glob("*.md"), *(SOURCE / "docs").glob("*.md"),
                SOURCE / "bindings" / "python" / "README.md"])
HISTORY = ("BENCHMARKS-history.md", "CHANGES.md", "DECISIONS.md")  # name what there was
FOLDERS = ("src", "hexagon", "tests", "bench", "docs", "scripts", "models", "examples", "include",
           "cmake", "fuzz", "share", "bindings", "debian")
CODE = ("src", "hexagon", "include", "tests", "bench", "fuzz", "bindings", "examples", "cmake")
# Files inside of packages and checkpoints, or that a command writes.
ELSEWHERE = ("json", "safetensors", "gguf", "stint")
ENDINGS = r"(?:c|h|py|md|ini|sh|cmake|txt|svg|jsonl)"


def paths_of(text):
    """Paths between backquotes, as `base/loader.c` or `src/kernels/`."""
    for quoted in re.findall(r"`([^`\s]+)`", text):
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)*\." + ENDINGS, quoted):
            yield quoted
        elif re.fullmatch(r"(" + "|".join(FOLDERS) + r")/[\w./-]*", quoted):
            if quoted.rsplit(".", 1)[-1] not in ELSEWHERE:
                yield quoted


def names_of(text):
    for quoted in re.findall(r"`([^`\n]+)`", text):
        yield from re.findall(r"\b((?:stint|st|ST|STINT)_\w+)\b", quoted)


class Docs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = [path.relative_to(SOURCE).as_posix() for folder in FOLDERS
                     for path in (SOURCE / folder).rglob("*")]
        cls.words = set()
        for folder in CODE:
            for path in (SOURCE / folder).rglob("*"):
                if path.is_file() and path.suffix in (".c", ".h", ".py", ".cmake", ".txt"):
                    cls.words |= set(re.findall(r"\w+", path.read_text("utf-8", "replace")))
        cls.words |= set(re.findall(r"\w+", (SOURCE / "CMakeLists.txt").read_text()))

    def is_there(self, path):
        path = path.rstrip("/")
        return (SOURCE / path).exists() or any(
            file == path or file.endswith("/" + path) for file in self.files)

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
                self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")

    def test_files_that_are_named_exist(self):
        gone = [f"{page.name}: {path}" for page in PAGES if page.name not in HISTORY
                for path in paths_of(page.read_text("utf-8")) if not self.is_there(path)]
        self.assertEqual(gone, [])

    def test_functions_that_are_named_exist(self):
        gone = [f"{page.name}: {name}" for page in PAGES if page.name not in HISTORY
                for name in names_of(page.read_text("utf-8"))
                if name not in self.words and not any(w.startswith(name) for w in self.words)]
        self.assertEqual(gone, [])

    def test_pages_that_are_named_exist(self):
        gone = [f"{page.name}: {name}" for page in PAGES
                for name in re.findall(r"\b([A-Z][A-Z-]+(?:-history)?\.md)\b",
                                       page.read_text("utf-8")) if not self.is_there(name)]
        self.assertEqual(gone, [])


if __name__ == "__main__":
    unittest.main()
