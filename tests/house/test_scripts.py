#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house's own scripts on small made-up inputs: each rule of check_style must be able to fail,
the bench history must compare like with like."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

SOURCE = pathlib.Path(os.environ.get("STINT_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
SCRIPTS = SOURCE / "scripts"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"

FAKE_BENCH = """#!/usr/bin/env python3
import json, os, sys
speed = float(os.environ["FAKE_SPEED"])
shape = "--shape" in sys.argv
lengths = sys.argv[sys.argv.index("-p") + 1].split(",")
print(json.dumps({"model": "shape" if shape else "novels", "exec": "float", "device": "cpu",
    "threads": int(os.environ.get("FAKE_THREADS", 2)), "cpu": "a <cpu>", "cpu_features": "avx2",
    "prefill": [{"tokens": int(n), "seconds": 1, "tokens_per_second": speed} for n in lengths],
    "decode": [{"tokens": 16, "bits": 16, "tokens_per_second": speed / 10}],
    "peak_rss_bytes": 1000, "roofline": {"int8_ops_per_second": 1, "float_flops_per_second": 1,
    "bytes_per_second": 1, "prefill_fraction": 0.5, "decode_fraction": 0.25}}))
"""


def run(*command, **environment):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, **environment}, check=False)


class Folder(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class StyleTest(Folder):
    def setUp(self):
        super().setUp()
        self.write("include/stint.h", SPDX.replace("//", "/*", 1).replace("\n", " */\n")
                   + "int stint_x(void);\n")
        self.write("src/base/good.c", SPDX + '#include "base/good.h"\n\nint st_good(int x) {\n'
                   '    return x; // exit(1) and printf("\\t") are only words here\n}\n')
        self.write("tests/base/test_good.c", SPDX)

    def check(self):
        return run(SCRIPTS / "check_style.py", "--root", self.folder, "--build", self.folder)

    def expect(self, name, text, complaint):
        self.write(name, text)
        done = self.check()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(complaint, done.stdout)
        self.assertIn(name + ":", done.stdout)

    def test_good_tree_passes(self):
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 violations", done.stdout)

    def test_licence_line_is_asked_for(self):
        self.expect("src/base/good.c", "int st_x;\n", "no SPDX line")

    def test_long_files_need_an_allowance(self):
        self.expect("tests/base/test_good.c", SPDX + "//\n" * 500, "501 lines, at most 500")
        self.write("scripts/style_allow.txt", "tests/base/test_good.c 600 a reason\n")
        self.assertEqual(self.check().returncode, 0)

    def test_long_functions_need_an_allowance(self):
        body = "    x++;\n" * 60
        text = SPDX + f"static struct a *\nlong_one(int x,\n         int y) {{\n{body}}}\n"
        self.expect("src/base/good.c", text, "long_one: 64 lines, at most 60")
        self.write("scripts/style_allow.txt", "src/base/good.c:long_one 64 a reason\n")
        self.assertEqual(self.check().returncode, 0)

    def test_short_functions_beside_long_tables_pass(self):
        rows, members = "    {1, 2},\n" * 80, "    int a;\n" * 80
        self.write("src/base/good.c", SPDX + f"static const struct pair rows[] = {{\n{rows}}};\n\n"
                   f"struct pairs {{\n{members}}};\nint st_a(void) {{ return 1; }}\n")
        self.assertEqual(self.check().returncode, 0)

    def test_includes_go_downwards(self):
        self.expect("src/base/good.c", SPDX + '#include "model/graph.h"\n', "base stands below")
        self.expect("src/base/good.c", SPDX + '#include "good.h"\n', "by folder and name")

    def test_command_line_sees_the_public_header_alone(self):
        self.expect("src/cli/main.c", SPDX + '#include "base/size.h"\n', "stint.h and hub")

    def test_forbidden_calls(self):
        for call in ("exit(1)", "abort()", 'printf("x")', "strcpy(a, b)", "system(a)", "atoi(a)",
                     'fprintf(stderr, "x")'):
            self.expect("src/base/good.c", SPDX + f"void st_x(void) {{\n    {call};\n}}\n", ":3: ")
        self.write("src/base/good.c", SPDX)
        self.expect("src/cli/main.c", SPDX + "int x(char *a) {\n    return atoi(a);\n}\n", "atoi")

    def test_tiles_are_loaded_in_one_place(self):
        self.expect("src/kernels/good_amx.c", SPDX + "void st_x(void) { _tile_loadd(0, x, 64); }\n",
                    "amx_tile.h")

    def test_unfinished_work_tabs_blanks_and_width(self):
        path = "tests/base/test_good.c"
        self.expect(path, SPDX + "// TO" + "DO\n", "unfinished")
        self.expect(path, SPDX + "\tint x;\n", "a tab")
        self.expect(path, SPDX + "int x; \n", "blanks at the end")
        self.expect(path, SPDX + "//" + "x" * 99 + "\n", "101 columns")

    def test_every_source_file_has_its_test(self):
        self.expect("src/base/lonely.c", SPDX, "no tests/base/test_lonely.c")
        self.write("tests/base/check_lonely.c", SPDX)
        self.write("src/base/lonely_avx2.c", SPDX)
        self.write("src/base/data_tables.c", SPDX)
        self.assertEqual(self.check().returncode, 0)

    def test_header_compiles_alone(self):
        self.expect("include/stint.h", "/* SPDX-License-Identifier: Apache-2.0 */\nsize_t x;\n",
                    "does not compile alone")

    def test_archive_keeps_its_names_and_no_state(self):
        source = self.write("x.c", "int st_a, other;\nstatic int n;\n"
                            "int st_f(void) { return ++n + other; }\n")
        subprocess.run(["cc", "-c", source, "-o", self.folder / "x.c.o"], check=True)
        subprocess.run(["ar", "rc", self.folder / "libstint.a", self.folder / "x.c.o"], check=True)
        done = self.check()
        self.assertIn("libstint.a exports other", done.stdout)
        self.assertIn("x.c keeps state in 'n'", done.stdout)


class HistoryTest(Folder):
    def setUp(self):
        super().setUp()
        self.command = self.write("stint", FAKE_BENCH)
        self.command.chmod(0o755)
        self.history = self.folder / "history.jsonl"

    def bench(self, speed, **environment):
        return run(SCRIPTS / "bench_history.py", "--history", self.history, "--runs", 1,
                   STINT_COMMAND=str(self.command), FAKE_SPEED=str(speed), **environment)

    def test_first_line_has_no_change_and_second_has(self):
        first, second = self.bench(100), self.bench(110)
        self.assertEqual((first.returncode, second.returncode), (0, 0), first.stderr)
        self.assertNotIn("against", first.stdout)
        self.assertIn("shape prefill 64", second.stdout)
        self.assertEqual(second.stdout.count("+10.0 %"), 5)
        self.assertIn("50.0 % of the limit", second.stdout)
        lines = [json.loads(line) for line in self.history.read_text().splitlines()]
        self.assertEqual(lines[1]["models"]["novels"]["prefill"], {"256": 110})
        self.assertEqual(lines[1]["models"]["shape"]["decode"], 11)

    def test_only_the_same_machine_is_compared(self):
        self.bench(100)
        self.bench(50, FAKE_THREADS="1")
        self.assertIn("+1.0 % (noise)", self.bench(101).stdout)

    def test_failing_bench_appends_nothing(self):
        self.command.write_text("#!/bin/sh\nexit 1\n")
        self.assertNotEqual(self.bench(1).returncode, 0)
        self.assertFalse(self.history.exists())

    def test_plot_is_one_picture_with_a_point_per_figure(self):
        for speed in (100, 120, 130):
            self.bench(speed)
        done = run(SCRIPTS / "bench_plot.py", "--history", self.history)
        self.assertEqual(done.returncode, 0, done.stderr)
        picture = (self.folder / "history.svg").read_text()
        tree = xml.fromstring(picture)
        points = tree.findall(".//{http://www.w3.org/2000/svg}circle")
        self.assertEqual(len(points), 1 + 3 * 5)
        self.assertNotIn("href", picture)

    def test_plot_of_nothing_says_what_to_do(self):
        done = run(SCRIPTS / "bench_plot.py", "--history", self.history)
        self.assertEqual(done.returncode, 1)
        self.assertIn("make bench", done.stderr)


class ShellTest(Folder):
    def test_bootstrap_is_silent_when_nothing_is_missing(self):
        done = run(SCRIPTS / "bootstrap")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_bootstrap_names_the_command_where_it_may_not_install(self):
        tools = self.folder / "bin"
        tools.mkdir()
        for name, text in (("id", "echo 1000"), ("apt-get", "exit 9")):
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o755)
        for name in ("bash", "dirname", "sort", "tr", "env"):
            (tools / name).symlink_to(f"/usr/bin/{name}")
        done = run(SCRIPTS / "bootstrap", PATH=str(tools))
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get install -y", done.stderr)
        for package in ("cmake", "ninja-build", "libjansson-dev", "libpcre2-dev", "libedit-dev"):
            self.assertIn(package, done.stderr)

    def test_bootstrap_refuses_unknown_sets(self):
        self.assertEqual(run(SCRIPTS / "bootstrap", "nonsense").returncode, 2)

    def test_skips_are_counted_over_all_kinds_of_tests(self):
        self.write("Testing/Temporary/LastTest.log",
                   "[  SKIPPED ] one\n[  SKIPPED ] two\n[  SKIPPED ] 2 test(s), listed below:\n"
                   "[  SKIPPED ] one\nno golden file /x\nOK (skipped=3)\nTest Skipped.\n")
        done = run(SCRIPTS / "count_skips", self.folder)
        self.assertEqual(done.stdout, "skipped tests: 6\nno golden file /x\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
