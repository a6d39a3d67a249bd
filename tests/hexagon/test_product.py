#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the compiler makes of the INT8 product for Hexagon (docs/HEXAGON.md): of the two slots of a
packet that multiply, products fill 80 % or more in the inner loop, and nothing is spilled there."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ["STINT_SOURCE_DIR"])
FLAGS = pathlib.Path(os.environ["STINT_BUILD_DIR"], "hexagon_flags.txt")


def packets_of(loop):
    """Each a list of instructions."""
    packets = re.findall(r"\{([^}]*)\}", loop.split(":endloop0")[0])
    return [[line.strip() for line in packet.splitlines() if line.strip()] for packet in packets]


def inner_loop():
    """The packets of the loop for eight input rows."""
    text = subprocess.run(["clang", *FLAGS.read_text().split(), "-S", "-o", "-",
                           SOURCE / "hexagon/product_hvx.c"],
                          capture_output=True, text=True, check=True).stdout
    body = text.split("\nmultiply_8:")[1].split("\n.Lfunc_end")[0]
    label = re.search(r"loop0\((\.\w+),", body).group(1)
    return packets_of(body.split(f"\n{label}:")[1])


class Product(unittest.TestCase):
    def test_products_fill_the_packets(self):
        packets = inner_loop()
        code = [line for packet in packets for line in packet if line != "nop"]
        products = sum("vrmpy" in line for line in code)
        bare = [line for line in code if "vrmpy" not in line]
        print(f"{len(packets)} packets, {products} products, {len(code)} instructions",
              file=sys.stderr)
        self.assertEqual(products, 32)  # 8 input rows, 2 vectors, 8 elements of k
        self.assertGreaterEqual(products / (2 * len(packets)), 0.8)
        self.assertGreaterEqual(products / len(code), 0.6)
        self.assertEqual(sum("vmem" in line for line in bare), 4)  # all of them loads of weights
        self.assertNotIn("r29", " ".join(code))


if __name__ == "__main__":
    if not shutil.which("clang"):
        print("skipped: clang is missing; scripts/bootstrap hexagon", file=sys.stderr)
        sys.exit(77)
    unittest.main()
