#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads quantized GGUF tensors by the tables of docs/FORMAT.md alone and holds them against the
same weights in F16: a wrong nibble, bit or scale shows as an error of the size of the weights."""
import os
import struct
import sys

V = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]


def half(b, at):
    return struct.unpack_from("<e", b, at)[0]


def nibbles(b, at):
    return [b[at + e] & 15 if e < 16 else b[at + e - 16] >> 4 for e in range(32)]


def pairs(b, at, e):
    return b[at + 32 * (e // 128) + e % 32] >> 2 * (e // 32 % 4) & 3


def five(b, at, codes):
    h = struct.unpack_from("<I", b, at)[0]
    return [c + 16 * (h >> e & 1) for e, c in enumerate(codes)]


def scales_3(s):
    return [(s[j] & 15 if j < 8 else s[j - 8] >> 4) + 16 * (s[8 + j % 4] >> 2 * (j // 4) & 3)
            for j in range(16)]


def scales_4(s):
    big = [s[j] % 64 for j in range(4)]
    small = [s[j + 4] % 64 for j in range(4)]
    big += [(s[j + 4] & 15) + 16 * (s[j - 4] >> 6) for j in range(4, 8)]
    small += [(s[j + 4] >> 4) + 16 * (s[j] >> 6) for j in range(4, 8)]
    return big, small


def q2_k(b):
    return [half(b, 80) * (b[e // 16] & 15) * pairs(b, 16, e) - half(b, 82) * (b[e // 16] >> 4)
            for e in range(256)]


def q3_k(b):
    s = scales_3(b[96:108])
    return [half(b, 108) * (s[e // 16] - 32)
            * (pairs(b, 32, e) - (0 if b[e % 32] >> e // 32 & 1 else 4)) for e in range(256)]


def q4_k(b, at=16, fifth=None):
    s, m = scales_4(b[4:16])
    out = []
    for e in range(256):
        code = b[at + 32 * (e // 64) + e % 32] >> (0 if e % 64 < 32 else 4) & 15
        if fifth is not None:
            code += 16 * (b[fifth + e % 32] >> e // 32 & 1)
        out.append(half(b, 0) * s[e // 32] * code - half(b, 2) * m[e // 32])
    return out


def q6_k(b):
    s = struct.unpack_from("<16b", b, 192)
    out = []
    for e in range(256):
        low = b[64 * (e // 128) + e % 64] >> (0 if e % 128 < 64 else 4) & 15
        out.append(half(b, 208) * s[e // 16] * (low + 16 * pairs(b, 128, e) - 32))
    return out


def iq4_xs(b):
    h = struct.unpack_from("<H", b, 2)[0]
    out = []
    for j in range(8):
        scale = (b[4 + j // 2] >> 4 * (j % 2) & 15) + 16 * (h >> 2 * j & 3)
        out += [half(b, 0) * (scale - 32) * V[c] for c in nibbles(b, 8 + 16 * j)]
    return out


# number -> items, bytes, reader of a block, largest root mean square error over that of the weights
TYPES = {
    0: (1, 4, lambda b: struct.unpack("<f", b), 1e-3),
    1: (1, 2, lambda b: [half(b, 0)], 1e-6),
    30: (1, 2, lambda b: struct.unpack("<f", b"\0\0" + b), 1e-2),
    2: (32, 18, lambda b: [half(b, 0) * (c - 8) for c in nibbles(b, 2)], 0.12),
    3: (32, 20, lambda b: [half(b, 0) * c + half(b, 2) for c in nibbles(b, 4)], 0.12),
    6: (32, 22, lambda b: [half(b, 0) * (c - 16) for c in five(b, 2, nibbles(b, 6))], 0.06),
    7: (32, 24, lambda b: [half(b, 0) * c + half(b, 2) for c in five(b, 4, nibbles(b, 8))], 0.06),
    8: (32, 34, lambda b: [half(b, 0) * c for c in struct.unpack_from("<32b", b, 2)], 0.01),
    20: (32, 18, lambda b: [half(b, 0) * V[c] for c in nibbles(b, 2)], 0.12),
    10: (256, 84, q2_k, 0.40),
    11: (256, 110, q3_k, 0.25),
    12: (256, 144, q4_k, 0.12),
    13: (256, 176, lambda b: q4_k(b, 48, 16), 0.06),
    14: (256, 210, q6_k, 0.03),
    23: (256, 136, iq4_xs, 0.12),
}


class Gguf:
    """Just enough of a reader to find the tensors."""

    SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 8
        n_tensors, n_keys = self.take("QQ")
        for _ in range(n_keys):
            self.text()
            self.value(self.take("I")[0])
        self.tensors = {}
        for _ in range(n_tensors):
            name = self.text()
            dims = self.take("Q" * self.take("I")[0])
            self.tensors[name] = (dims, *self.take("IQ"))
        self.start = -(-self.at // 32) * 32

    def take(self, fields):
        values = struct.unpack_from("<" + fields, self.data, self.at)
        self.at += struct.calcsize("<" + fields)
        return values

    def text(self):
        n = self.take("Q")[0]
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, number):
        if number == 8:
            self.text()
        elif number == 9:
            element, count = self.take("IQ")
            for _ in range(count):
                self.value(element)
        else:
            self.at += self.SIZES[number]

    def first(self, name, n):
        """The first n elements of a tensor and its type."""
        _, number, offset = self.tensors[name]
        items, size, read, _ = TYPES[number]
        at = self.start + offset
        out = []
        while len(out) < n:
            out += read(self.data[at:at + size])
            at += size
        return out[:n], number


def main():
    folder = os.path.join(os.environ.get("STINT_SHARED_DATA", ""), "fixtures/models/llama-q")
    if not os.path.isdir(folder):
        print("no golden files: skipped")
        return 77
    exact = Gguf(os.path.join(folder, "f16.gguf"))
    seen, bad = set(), 0
    for file in sorted(f for f in os.listdir(folder) if f.endswith(".gguf")):
        model = Gguf(os.path.join(folder, file))
        for name in model.tensors:
            n = min(2048, model.tensors[name][0][0] * 8)
            if len(model.tensors[name][0]) < 2:
                continue
            got, number = model.first(name, n)
            want, _ = exact.first(name, n)
            error = sum((a - b) ** 2 for a, b in zip(got, want))
            ratio = (error / sum(b * b for b in want)) ** 0.5
            seen.add(number)
            if not ratio <= TYPES[number][3]:
                print(f"{file}: {name}: type {number}: error {ratio:.4f} of the weights")
                bad += 1
    missing = sorted(set(TYPES) - seen - {0})
    if missing:
        print(f"types that no file has: {missing}")
    print(f"types {sorted(seen)} read, {bad} tensors wrong")
    return 1 if bad or missing else 0


sys.exit(main())
