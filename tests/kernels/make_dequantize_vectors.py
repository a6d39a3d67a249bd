#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dequantize_vectors.h: per block type one block of random bits with sane scales and the
floats that the package `gguf` (pip) makes of it."""
import sys

import gguf
import gguf.quants
import numpy

# type, items, bytes, where its halves lie
TYPES = [("Q4_0", 32, 18, [0]), ("Q4_1", 32, 20, [0, 2]), ("Q5_0", 32, 22, [0]),
         ("Q5_1", 32, 24, [0, 2]), ("Q8_0", 32, 34, [0]), ("Q2_K", 256, 84, [80, 82]),
         ("Q3_K", 256, 110, [108]), ("Q4_K", 256, 144, [0, 2]), ("Q5_K", 256, 176, [0, 2]),
         ("Q6_K", 256, 210, [208]), ("IQ4_NL", 32, 18, [0]), ("IQ4_XS", 256, 136, [0]),
         ("TQ1_0", 256, 54, [52]), ("TQ2_0", 256, 66, [64]), ("MXFP4", 32, 17, [])]


def rows(values, form, per_line):
    lines = [values[i:i + per_line] for i in range(0, len(values), per_line)]
    return "\n".join("    " + ", ".join(form % v for v in line) + "," for line in lines)


def main():
    random = numpy.random.default_rng(2)
    out = ["// SPDX-License-Identifier: Apache-2.0",
           "// Written by make_dequantize_vectors.py: blocks and the bits of the floats that they "
           "mean.",
           "#ifndef TESTS_DEQUANTIZE_VECTORS_H", "#define TESTS_DEQUANTIZE_VECTORS_H", "",
           '#include "base/dtype.h"', ""]
    table = []
    for name, items, size, halves in TYPES:
        block = random.integers(0, 256, size, dtype=numpy.uint8)
        for at in halves:
            d = numpy.float16(random.uniform(0.5, 2.0) * random.choice([-1, 1]) / 64)
            block[at:at + 2] = numpy.frombuffer(d.tobytes(), numpy.uint8)
        if name == "MXFP4":
            block[0] = 121  # 2 to the power of -7
        kind = getattr(gguf.GGMLQuantizationType, name)
        floats = gguf.quants.dequantize(block.reshape(1, -1), kind).reshape(-1)
        assert floats.dtype == numpy.float32 and floats.size == items
        low = name.lower()
        out += [f"static const unsigned char {low}_block[{size}] = {{", rows(block, "0x%02x", 14),
                "};", f"static const uint32_t {low}_bits[{items}] = {{",
                rows(floats.view(numpy.uint32), "0x%08x", 7), "};", ""]
        table.append(f"    {{ST_DTYPE_{name}, {low}_block, {low}_bits}},")
    out += ["static const struct {", "    enum st_dtype dtype;", "    const unsigned char *block;",
            "    const uint32_t *bits;", "} dequantize_vectors[] = {", *table, "};", "", "#endif"]
    sys.stdout.write("\n".join(out) + "\n")


main()
