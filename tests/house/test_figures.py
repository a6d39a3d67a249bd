#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""house_figures.py on a small made-up tree: every figure is one that was counted by hand."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("STINT_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
SCRIPT = SOURCE / "scripts" / "house_figures.py"

DECIDE = "session files that decide on the execution path (conditions)"
SESSION_H = """// A comment of one line.
struct stint_session {
    int a, *b; // two
    struct st_op *const *ops;
    bool bounded;
};

"""
# a and b call each other; c calls a; d is called through a table of b's alone.
FILES = {
    "session/session.h": SESSION_H,
    "session/a.c": """int st_a(struct stint_session *s) {
    return s->bounded ? st_b(s) : 0;
}
""",
    "session/linear/b.c": """int st_b(struct stint_session *s) {
    return st_a(s) + st_table[0](s);
}
""",
    "session/c.c": """static int st_a(int x);
static int only_here(void) {
    // if (s->bounded)
    int bounded = 1;
    return bounded;
}
int st_c(struct stint_session *s) {
    for (int phase = 0; only_here(); phase++)
        st_a(s);
    return 1;
}
""",
    "session/d.c": """st_fn *const st_table[2] = {
    [ST_SUBGRAPH_QKV] = qkv, [ST_SUBGRAPH_O] = st_shared
};
int st_d(void) {
    st_b(0);
    return 1;
}
""",
    "session/e.c": """static st_fn *const other[] = {
    [ST_SUBGRAPH_QKV] = qkv, [ST_SUBGRAPH_O] = st_shared};
""",
    "session/generate.c": """int st_generate(void) {
    if (s->npu.device) return 1;
    return 2;
}
""",
    "device/device.c": "int st_device;\n\n",
}


class FiguresTest(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.tree = pathlib.Path(kept.name) / "tree"
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.tree / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_script(self, *arguments):
        return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def rows(self, *arguments):
        done = self.run_script(self.tree, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = dict(line.strip("| ").split(" | ", 1) for line in done.stdout.splitlines()[2:]
                    if line.startswith("|"))
        return rows, done.stdout

    def test_lines_with_and_without_comments(self):
        rows, _ = self.rows()
        lines = [text for name, text in FILES.items() if name.startswith("session/")]
        everything = sum(text.count("\n") for text in lines)
        self.assertEqual(rows["src/session: code lines (all lines)"],
                         f"{everything - 3} ({everything})")  # two comments, an empty line
        self.assertEqual(rows["src/device: code lines (all lines)"], "1 (2)")

    def test_generation_loop_is_counted_wherever_it_is(self):
        before, _ = self.rows()
        (self.tree / "src" / "session" / "generate.c").unlink()
        self.write("generate/generate.c", FILES["session/generate.c"])
        after, _ = self.rows()
        for row in ("the same without the generation loop", "generation loop, wherever it is",
                    DECIDE):
            self.assertEqual(before[row], after[row])
        self.assertEqual(after["generation loop, wherever it is"], "4 (4)")

    def test_members_of_the_session(self):
        self.assertEqual(self.rows()[0]["members of struct stint_session"], "4")

    def test_files_that_decide_ask_in_a_condition(self):
        rows, text = self.rows("--files")
        self.assertEqual(rows[DECIDE], "1 of 5 (1)")
        self.assertIn("tree: decide: session/a.c\n", text)
        self.write("session/c.c", "int st_c(struct st_run *r) {\n    while (r->bits) r++;\n}\n")
        self.assertIn("tree: decide: session/a.c session/c.c\n", self.rows("--files")[1])

    def test_shared_functions_implement_a_subgraph_once(self):
        self.assertEqual(self.rows()[0]["implementations of a subgraph"], "o 1, qkv 2")

    def test_circles_with_and_without_tables(self):
        rows, text = self.rows("--files")
        self.assertEqual(rows["session files in circles, by circle"], "2 of 6")
        self.assertEqual(rows["the same with tables of functions"], "3 of 6")
        self.assertIn("tree: circle: session/a.c session/linear/b.c\n", text)
        self.assertIn("session/a.c session/d.c session/linear/b.c\n", text)
        self.write("session/a.c", "int st_a(void) {\n    return 0;\n}\n")
        self.assertEqual(self.rows()[0]["session files in circles, by circle"], "none of 6")

    def test_largest_file_and_function(self):
        rows, _ = self.rows()
        self.assertEqual(rows["largest file, lines"], "11 (session/c.c)")
        self.assertEqual(rows["largest function, lines"], "5 (st_c in session/c.c)")

    def test_several_trees_are_columns(self):
        done = self.run_script(self.tree, self.tree)
        self.assertEqual(done.stdout.splitlines()[0], "| | tree | tree |")
        self.assertIn("| 4 | 4 |", done.stdout)

    def test_what_is_no_tree_is_refused(self):
        self.assertEqual(self.run_script(self.tree / "src").returncode, 2)


if __name__ == "__main__":
    unittest.main()
