#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The inner loops of the peaks stay in registers: the machine code of each has one loop that
multiplies, and nothing in it touches memory. A sum that is spilled halves what is measured."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(os.environ["STINT_BUILD_DIR"])
OBJDUMP = os.environ.get("OBJDUMP", "objdump")
SKIPPED = 77
MULTIPLIES = re.compile(r"^(?:\{vex\} )?(v?mulps|vfm(add|sub)\w+|v?pmadd\w+|vpdp(busd|wssd)\w*|"
                        r"vdpbf16ps|tdp\w+|fmla|fmul|smlal|sdot|udot|smmla)\b")
MEMORY = re.compile(r"\(%|\[(x\d+|sp)\b")
JUMP = re.compile(r"^(j\w+|b\.\w+|cbn?z)\s+(?:\w+,\s*)?([0-9a-f]+)\b")


def disassemble(path):
    """{function: [(address, instruction)]} of an object file."""
    text = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn", path], check=True,
                          capture_output=True, text=True).stdout
    functions, now = {}, None
    for line in text.splitlines():
        if head := re.match(r"[0-9a-f]+ <(\w+)>:$", line):
            now = functions.setdefault(head.group(1), [])
        elif (code := re.match(r"\s*([0-9a-f]+):\s+(.*)$", line)) and now is not None:
            now.append((int(code.group(1), 16), code.group(2).strip()))
    return functions


def loops(code):
    """The instructions of each innermost loop: from the target of a jump back to the jump."""
    spans = [(int(jump.group(2), 16), at) for at, text in code
             if (jump := JUMP.match(text)) and int(jump.group(2), 16) <= at]
    inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
    return [[text for at, text in code if first <= at <= last] for first, last in inner]


def find_objects():
    return sorted(BUILD.glob("CMakeFiles/stint_objects.dir/src/kernels/peak_*.c.o"))


class Registers(unittest.TestCase):
    def test_no_loop_that_multiplies_touches_memory(self):
        n_checked, spilled = 0, {}
        for path in find_objects():
            for name, code in disassemble(path).items():
                if not re.match(r"st_peak_(f32|bf16|int(4|8|16))_", name):
                    continue
                hot = [loop for loop in loops(code) if any(map(MULTIPLIES.match, loop))]
                self.assertEqual(len(hot), 1, f"{name}: loops that multiply")
                n_checked += 1
                spilled[name] = [text for text in hot[0] if MEMORY.search(text)]
        self.assertEqual({name: texts for name, texts in spilled.items() if texts}, {})
        self.assertGreaterEqual(n_checked, 2)


def reason_to_skip():
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    if re.search(r"^STINT_SANITIZE:\w+=.+", cache, re.M):
        return "sanitizers change the code"
    if re.search(r"^CMAKE_BUILD_TYPE:\w+=Debug", cache, re.M):
        return "this build is not optimised"
    try:
        subprocess.run([OBJDUMP, "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return "objdump is not there"
    return None if find_objects() else "no object files of the peaks are there"


if __name__ == "__main__":
    if why := reason_to_skip():
        print(f"skipped: {why}", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main()
