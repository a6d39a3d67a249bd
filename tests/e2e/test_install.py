#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An installed tree serves other programs: through pkg-config, shared and static, and through
CMake; from C and C++. Its man pages and completion say what --help says."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from built import BUILD, call, setting, skip_under_sanitizers
from command import MODEL, PROMPT, SOURCE, stint

CC = setting("CMAKE_C_COMPILER") or "cc"
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(embedder LANGUAGES C)
find_package(stint {version} REQUIRED COMPONENTS shared static)
add_executable(shared {source})
target_link_libraries(shared PRIVATE stint::stint)
add_executable(static {source})
target_link_libraries(static PRIVATE stint::static)
"""


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.top = pathlib.Path(cls.folder.name)
        call("cmake", "--install", BUILD, "--prefix", "/opt/stint",
             env={**os.environ, "DESTDIR": cls.top / "staged"})
        # Moved, to see that no file holds the place it was installed to.
        cls.prefix = cls.top / "moved"
        (cls.top / "staged/opt/stint").rename(cls.prefix)
        cls.pc = next(cls.prefix.rglob("stint.pc")).parent
        cls.library = cls.pc.parent
        cls.expected = stint("run", MODEL, "-p", PROMPT, "-n", 48, "--temp", 0.7, "--top-p", 0.9,
                             "--seed", 7).stdout

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_example(self, program, **environment):
        return call(program, MODEL, PROMPT, env={**os.environ, **environment})

    def flags(self, *options):
        path = f"{self.pc}:{os.environ.get('PKG_CONFIG_PATH', '')}"
        return call("pkg-config", *options, "stint",
                    env={**os.environ, "PKG_CONFIG_PATH": path}).split()

    def compile(self, name, *flags, source=SOURCE / "examples/embed.c", compiler=CC):
        program = self.top / name
        call(compiler, "-Wall", "-Wextra", "-Werror", source, "-o", program, *flags)
        return program

    def test_pkg_config_shared(self):
        program = self.compile("shared", *self.flags("--cflags", "--libs"))
        self.assertIn("libstint.so.0", call("readelf", "-d", program))
        self.assertEqual(self.run_example(program, LD_LIBRARY_PATH=str(self.library)),
                         self.expected)

    def test_pkg_config_static(self):
        flags = self.flags("--static", "--cflags", "--libs")
        program = self.compile("static", "-static", *flags)
        self.assertNotIn("NEEDED", call("readelf", "-d", program))
        self.assertEqual(self.run_example(program), self.expected)

    def test_cmake(self):
        project = self.top / "project"
        project.mkdir()
        version = re.search(r"#define STINT_VERSION \"(.*)\"",
                            (self.prefix / "include/stint.h").read_text())[1]
        (project / "CMakeLists.txt").write_text(PROJECT.format(
            version=version, source=SOURCE / "examples/embed.c"))
        call("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_C_COMPILER={CC}",
             f"-DCMAKE_PREFIX_PATH={self.prefix}")
        call("cmake", "--build", project / "build")
        for name, needs_library in (("shared", True), ("static", False)):
            program = project / "build" / name
            self.assertEqual("libstint.so.0" in call("readelf", "-d", program), needs_library)
            self.assertEqual(self.run_example(program), self.expected)

    def test_cmake_refuses_another_version(self):
        project = self.top / "newer"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(PROJECT.format(version="99.0", source="x.c"))
        done = subprocess.run(["cmake", "-S", project, "-B", project / "build",
                               f"-DCMAKE_PREFIX_PATH={self.prefix}"], capture_output=True,
                              encoding="utf-8", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("99.0", done.stderr)

    @unittest.skipUnless(shutil.which("g++"), "no g++")
    def test_cpp(self):
        source = self.top / "embed.cpp"
        source.write_text('#include <stint.h>\n#include <cstdio>\n'
                          'int main() { std::puts(stint_version()); }\n')
        program = self.compile("cpp", *self.flags("--cflags", "--libs"), source=source,
                               compiler="g++")
        version = call(program, env={**os.environ, "LD_LIBRARY_PATH": str(self.library)})
        self.assertEqual(version, stint("--version").stdout.removeprefix("stint "))

    def test_soname_and_symbols(self):
        shared = self.library / "libstint.so"
        self.assertRegex(call("readelf", "-d", shared), r"SONAME.*\[libstint\.so\.0\]")
        self.assertTrue((self.library / "libstint.so.0").exists())
        rows = [line.split() for line in call("nm", "-D", "--defined-only", shared).splitlines()]
        names = {row[-1] for row in rows}
        self.assertEqual({name for name in names if not name.startswith("stint_")}, set())
        header = (SOURCE / "include/stint.h").read_text()
        declared = set(re.findall(r"^STINT_API[^;(]*?(\w+)\(", header, re.M))
        self.assertGreater(len(declared), 40)
        self.assertEqual(names, declared)

    def test_man_pages_say_what_help_says(self):
        overview = stint("--help").stdout
        commands = re.findall(r"^  ([a-z]+)  +\S", overview, re.M)
        self.assertIn("run", commands)
        folder = self.prefix / "share/man/man1"
        self.assertEqual({page.name for page in folder.iterdir()},
                         {"stint.1"} | {f"stint-{name}.1" for name in commands})
        for name in commands:
            page = (folder / f"stint-{name}.1").read_text().replace("\\-", "-")
            self.assertIn(f"stint-{name}", (folder / "stint.1").read_text().replace("\\-", "-"))
            options = re.findall(r"^  (?:-(\w), |    )--([\w-]+)",
                                 stint(name, "--help", "all").stdout, re.M)
            self.assertIn(("h", "help"), options)
            for letter, option in options:
                with self.subTest(command=name, option=option):
                    row = rf"\\fB--{option}\\fR"
                    self.assertRegex(page, rf"\\fB-{letter}\\fR, {row}" if letter else row)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_man_pages_are_clean(self):
        for page in sorted((self.prefix / "share/man/man1").iterdir()):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True,
                                  encoding="utf-8", check=True)
            self.assertEqual(done.stderr, "", page.name)
            self.assertIn("SYNOPSIS", re.sub(r"\x1b\[[\d;]*m|.\x08", "", done.stdout))

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_completion(self):
        script = self.prefix / "share/bash-completion/completions/stint"
        ask = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stint; '
               'echo "${COMPREPLY[*]}"')
        for words, answer in ((("stint", "in"), "inspect"), (("stint", "run", "--see"), "--seed"),
                              (("stint", "run", "--kv", "f"), "f32 f16"),
                              (("stint", "run", "x"), "")):
            out = call("bash", "-c", ask, "bash", script, *words)
            self.assertEqual(out.strip(), answer, words)


if __name__ == "__main__":
    skip_under_sanitizers()
    unittest.main()
