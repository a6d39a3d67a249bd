#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every block of docs/EMBEDDING.md works as it stands there, against an installed tree."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

from built import BUILD, LIBRARY, call, setting, skip_under_sanitizers
from command import SOURCE, code_blocks

PAGE = (SOURCE / "docs/EMBEDDING.md").read_text(encoding="utf-8")
CC = setting("CMAKE_C_COMPILER") or "cc"
HEAD = "".join(f"#include <{name}.h>\n" for name in ("stint", "math", "signal", "stdio", "unistd"))
# What a block without main() stands in.
BODY = """int main(void) {
    stint_model *model;
    if (stint_model_open("models/novels-10m", NULL, &model) != STINT_OK) return 1;
    {
%s
    }
    stint_model_close(model);
    return 0;
}
"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.folder.name)
        (cls.work / "models").symlink_to(SOURCE / "models")
        cls.prefix = cls.work / "prefix"
        call("cmake", "--install", BUILD, "--prefix", cls.prefix)
        pc = next(cls.prefix.rglob("stint.pc")).parent
        cls.environment = {**os.environ, "PKG_CONFIG_PATH": str(pc), "CC": CC,
                           "LD_LIBRARY_PATH": str(pc.parent)}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def call(self, *words):
        return call(*words, cwd=self.work, env=self.environment)

    def test_c(self):
        outs = []
        for i, block in enumerate(code_blocks(PAGE, "c")):
            with self.subTest(block=block):
                source = self.work / f"block{i}.c"
                whole = block if "main(" in block else BODY % block
                source.write_text(whole if "#include" in whole else HEAD + whole)
                flags = self.call("pkg-config", "--cflags", "--libs", "stint").split()
                self.call(CC, "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", source, "-o",
                          source.with_suffix(""), *flags)
                outs.append(self.call(source.with_suffix("")))
        self.assertRegex(outs[0], r"^ [a-z]+ [a-z]+ ")
        self.assertIn("canceled\n", outs)
        self.assertRegex("".join(outs), r"\d+\.\d MiB\n")

    def test_building(self):
        (self.work / "embed.c").write_text(code_blocks(PAGE, "c")[0])
        for block in code_blocks(PAGE, "sh"):
            self.call("sh", "-ec", block)
        (self.work / "CMakeLists.txt").write_text(code_blocks(PAGE, "cmake")[0])
        self.call("cmake", "-S", ".", "-B", "with-cmake", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                  f"-DCMAKE_C_COMPILER={CC}")
        self.call("cmake", "--build", "with-cmake")
        outs = {self.call(self.work / name)
                for name in ("embed", "embed-static", "with-cmake/embed")}
        self.assertEqual(len(outs), 1)

    def test_python(self):
        source = self.work / "blocks.py"
        source.write_text("\n".join(code_blocks(PAGE, "python")))
        self.environment |= {"STINT_LIBRARY": str(LIBRARY),
                             "PYTHONPATH": str(SOURCE / "bindings/python")}
        out = self.call(sys.executable, source)
        self.assertIn("callback", out)
        self.assertIn("/no/such/model", out)
        self.assertIn("49 linears", out)

    def test_links_lead_somewhere(self):
        for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
            self.assertTrue((SOURCE / "docs" / target).exists(), target)


if __name__ == "__main__":
    skip_under_sanitizers()
    unittest.main()
