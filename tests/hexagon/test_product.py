#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the compiler makes of the INT8 product for Hexagon (docs/HEXAGON.md): of the two slots of a
packet that multiply, products fill 80 % or more in the inner loop, and nothing is spilled there.
The page's table of loops is what this counts."""
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


def inner_loop(n_rows=8):
    """The packets of the loop for so many input rows."""
    text = subprocess.run(["clang", *FLAGS.read_text().split(), "-S", "-o", "-",
                           SOURCE / "hexagon/product_hvx.c"],
                          capture_output=True, text=True, check=True).stdout
    body = text.split(f"\nmultiply_{n_rows}:")[1].split("\n.Lfunc_end")[0]
    label = re.search(r"loop0\((\.\w+),", body).group(1)
    return packets_of(body.split(f"\n{label}:")[1])


def counts(n_rows):
    """Packets, products of vectors, bytes that are loaded."""
    packets = inner_loop(n_rows)
    code = [line for packet in packets for line in packet]
    n_bytes = sum(128 * ("vmem(" in line) + 8 * ("memd(" in line) for line in code)
    return len(packets), sum("vrmpy" in line for line in code), n_bytes


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

    def test_the_page_has_the_counts(self):
        page = (SOURCE / "docs/HEXAGON.md").read_text()
        for n_rows in (8, 4, 2, 1):
            packets, products, n_bytes = counts(n_rows)
            row = (f"| {n_rows} | {packets} | {products} | {n_bytes:,} | "
                   f"{50 * products / packets:.0f} % | {128 * products / n_bytes:.1f} |")
            print(row, file=sys.stderr)
            self.assertIn(row, page)


if __name__ == "__main__":
    if not shutil.which("clang"):
        print("skipped: clang is missing; scripts/bootstrap hexagon", file=sys.stderr)
        sys.exit(77)
    unittest.main()
