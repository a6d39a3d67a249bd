#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bindings/python/stint/_layout.py is what a compiler makes of include/stint.h: sizes, offsets
and kinds of all fields, the values of the constants, and the functions' arguments."""
import ctypes
import dataclasses
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from built import LIBRARY, call, setting, skip_under_sanitizers
from command import SOURCE

os.environ["STINT_LIBRARY"] = str(LIBRARY)
sys.path.insert(0, str(SOURCE / "bindings/python"))
skip_under_sanitizers()

# pylint: disable=wrong-import-position
import stint  # noqa: E402
from stint import _errors, _layout, _sampling  # noqa: E402

CC = setting("CMAKE_C_COMPILER") or "cc"
KINDS = """#define KIND(x) _Generic((x), bool: "b", float: "f4", double: "f8", uint32_t: "u4", \\
    uint64_t: "u8", int32_t: "u4", default: sizeof(x) == 4 ? "u4" : "p8")
"""
# Fields of an enum are unsigned in C and int here, where an int32_t is the same type: both are 4
# bytes, and no value of an enum is negative.
SHOW = """#include <stint.h>
#include <cstdio>
#include <type_traits>
template <class T> static void show() {
    std::printf(" %c%zu", std::is_void<T>::value ? 'v' : std::is_pointer<T>::value ? 'p' :
        std::is_floating_point<T>::value ? 'f' : std::is_same<T, bool>::value ? 'b' : 'i',
        sizeof(typename std::conditional<std::is_void<T>::value, char, T>::type));
}
template <class R, class... A> static void function(const char *name, R (*)(A...)) {
    std::printf("%s", name);
    show<R>();
    (show<A>(), ...);
    std::printf("\\n");
}
"""


def kind_of(kind, of_enum="u4"):
    names = {ctypes.c_bool: "b", ctypes.c_float: "f4", ctypes.c_double: "f8",
             ctypes.c_uint32: "u4", ctypes.c_int32: "i4"}
    if kind is ctypes.c_int:
        return of_enum
    return names.get(kind) or ("u8" if kind in _layout.UNSIGNED else "p8")


def argument_of(kind):
    if kind is None:
        return "v1"
    word = kind_of(kind, of_enum="i4")
    return {"b": "b1"}.get(word, word.replace("u", "i"))


class Layout(unittest.TestCase):
    def run_c(self, source, name, *compiler):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.write_text(source)
            program = path.with_suffix("")
            call(*compiler, "-I", SOURCE / "include", path, "-o", program, LIBRARY)
            return call(program, env={**os.environ, "LD_LIBRARY_PATH": str(LIBRARY.parent)})

    def test_structs(self):
        lines, expected = [], []
        for struct in (*_layout.STRUCTS, _sampling.SamplingStruct):
            lines.append(f"struct {struct.c_name} {struct.__name__};")
            for name, kind in struct._fields_:
                field = getattr(struct, name)
                expected.append(f"{struct.__name__}.{name} {field.offset} {kind_of(kind)}")
                lines.append(f'printf("{struct.__name__}.{name} %zu %s\\n", '
                             f'offsetof(struct {struct.c_name}, {name}), '
                             f'KIND({struct.__name__}.{name}));')
            lines.append(f'printf("{struct.__name__} %zu\\n", sizeof {struct.__name__});')
            expected.append(f"{struct.__name__} {ctypes.sizeof(struct)}")
        out = self.run_c("#include <stint.h>\n#include <stdio.h>\n" + KINDS + "int main(void) {\n"
                         + "\n".join(lines) + "\n}\n", "structs.c", CC)
        for line, wanted in zip(out.splitlines(), expected, strict=True):
            with self.subTest(field=wanted.split()[0]):
                # A newer header may have grown at the end: `size` tells the library who asks.
                if "." not in wanted:
                    self.assertGreaterEqual(int(line.split()[1]), int(wanted.split()[1]))
                else:
                    self.assertEqual(line, wanted)

    def test_constants(self):
        values = {prefix + word.upper(): value for prefix, words in _layout.CHOICES.items()
                  for word, value in words.items()}
        values |= {f"STINT_{name}": code for code, (name, _) in _errors.BY_STATUS.items()}
        values |= {"STINT_TOKENIZE_ADD_BOS": _layout.ADD_BOS, "STINT_TOKENIZE_PLAIN": _layout.PLAIN,
                   "STINT_DETOKENIZE_SPECIAL": _layout.SPECIAL,
                   "STINT_CHUNK_AUTO": _layout.CHUNK_AUTO}
        lines = [f'printf("{name} %lld\\n", (long long){name});' for name in values]
        lines.append('#define X(id, value, sentence) n++;\nint n = 0; STINT_STATUS_LIST(X)')
        lines.append('printf("statuses %d\\n", n);')
        out = self.run_c("#include <stint.h>\n#include <stdio.h>\nint main(void) {\n"
                         + "\n".join(lines) + "\n}\n", "constants.c", CC)
        expected = [f"{name} {value}" for name, value in values.items()]
        self.assertEqual(out.splitlines(), expected + [f"statuses {len(_errors.BY_STATUS) + 1}"])

    @unittest.skipUnless(shutil.which("g++"), "no g++")
    def test_functions(self):
        lines = "".join(f'function("{name}", {name});\n' for name in _layout.FUNCTIONS)
        out = self.run_c(SHOW + "int main() {\n" + lines + "}\n", "functions.cpp", "g++",
                         "-std=c++17")
        expected = [" ".join([name, argument_of(result), *map(argument_of, arguments)])
                    for name, (result, arguments) in _layout.FUNCTIONS.items()]
        self.assertEqual(out.splitlines(), expected)

    def test_dataclasses_have_the_structs_fields(self):
        for shown, struct in ((stint.ModelInfo, _layout.ModelInfo),
                              (stint.MemoryInfo, _layout.MemoryInfo),
                              (stint.PrepareSummary, _layout.PrepareSummary),
                              (stint.GenerationResult, _layout.GenerationResult)):
            names = [name for name, _ in struct._fields_ if name != "size"]
            self.assertEqual([field.name for field in dataclasses.fields(shown)], names)


if __name__ == "__main__":
    unittest.main()
