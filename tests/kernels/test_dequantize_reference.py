#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random blocks of every type that stint reads, through every row of dequantize that this CPU has,
against the package `gguf`: the same bits, or both NaN. `scripts/bootstrap clients` puts the package
into build/venv; skips itself without. STINT_CI_LONG=1 tries 20,000 blocks each, STINT_SEED makes
others."""
import os
import pathlib
import subprocess
import sys
import unittest

VENV = pathlib.Path(os.environ["STINT_SOURCE_DIR"]) / "build" / "venv" / "bin" / "python"

try:
    import gguf
    import gguf.quants
    import numpy
except ImportError as missing:
    if VENV.exists() and pathlib.Path(sys.executable) != VENV:
        os.execv(VENV, [str(VENV), *sys.argv])
    print(f"skipped: {missing}: scripts/bootstrap clients installs it into build/venv")
    sys.exit(77)

PROGRAM = pathlib.Path(os.environ["STINT_BUILD_DIR"]) / "tests" / "dequantize_blocks"
N_BLOCKS = 20000 if os.environ.get("STINT_CI_LONG") == "1" else 500
SEED = int(os.environ.get("STINT_SEED", "1"))


def run(*arguments, blocks=b""):
    return subprocess.run([PROGRAM, *arguments], input=blocks, stdout=subprocess.PIPE,
                          check=True, timeout=300).stdout


def random_blocks(random, n_bytes):
    """Any bits, so scales are any halves, some of them infinite or NaN; and blocks in which every
    byte is the same, so that codes and scales reach their ends."""
    blocks = random.integers(0, 256, (N_BLOCKS, n_bytes), dtype=numpy.uint8)
    blocks[::8] = random.integers(0, 256, (len(blocks[::8]), 1), dtype=numpy.uint8)
    return blocks


class Blocks(unittest.TestCase):
    def compare(self, row, name, n_items, n_bytes):
        random = numpy.random.default_rng([SEED, *name.encode()])
        blocks = random_blocks(random, n_bytes)
        with numpy.errstate(all="ignore"):
            wanted = gguf.quants.dequantize(blocks, getattr(gguf.GGMLQuantizationType,
                                                            name.upper()))
        wanted = numpy.ascontiguousarray(wanted, numpy.float32).reshape(N_BLOCKS, n_items)
        got = numpy.frombuffer(run(row, name, blocks=blocks.tobytes()), numpy.float32)
        got = got.reshape(N_BLOCKS, n_items)
        same = (got.view(numpy.uint32) == wanted.view(numpy.uint32)) | (
            numpy.isnan(got) & numpy.isnan(wanted))
        for block, item in numpy.argwhere(~same)[:3]:
            print(f"{row} {name}: item {item} of {blocks[block].tobytes().hex()} is "
                  f"{got[block, item]!r}, not {wanted[block, item]!r}")
        self.assertEqual(int((~same).sum()), 0, f"{row} {name}")

    def test_every_row_and_type(self):
        lines = run().decode().splitlines()
        self.assertGreaterEqual(len(lines), 15)
        for line in lines:
            row, name, n_items, n_bytes = line.split()
            with self.subTest(line):
                self.compare(row, name, int(n_items), int(n_bytes))
        print(f"{len(lines)} rows and types, {N_BLOCKS} blocks each", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
