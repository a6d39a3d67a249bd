#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files under a memory bound: the same logits, bit for bit, of one file and of a split one."""
import os
import pathlib
import re
import struct
import tempfile
import unittest

from command import MODEL, stint, stint_json

QUANTIZED = (pathlib.Path(os.environ.get("STINT_SHARED_DATA", "")) / "fixtures" / "models" /
             "llama-q")
GGUF_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
GGUF_TEXT, GGUF_ARRAY, ALIGNMENT = 8, 9, 32


class Gguf:
    """A GGUF file in its parts, as they stand there."""

    def __init__(self, path):
        self.data, self.at = path.read_bytes(), 8
        n_tensors, n_keys = self.number(), self.number()
        begin = self.at
        for _ in range(n_keys):
            self.text()
            self.value(self.number("<I"))
        self.n_keys, self.keys, self.tensors = n_keys, self.data[begin:self.at], []
        for _ in range(n_tensors):
            begin = self.at
            self.text()
            self.skip(8 * self.number("<I") + 4)
            head = self.data[begin:self.at]
            self.tensors.append((self.number(), head))
        first = -(-self.at // ALIGNMENT) * ALIGNMENT
        begins = sorted(offset for offset, _ in self.tensors)
        ends = dict(zip(begins, begins[1:] + [len(self.data) - first]))
        self.tensors = [(head, self.data[first + offset:first + ends[offset]])
                        for offset, head in self.tensors]

    def number(self, kind="<Q"):
        self.skip(struct.calcsize(kind))
        return struct.unpack_from(kind, self.data, self.at - struct.calcsize(kind))[0]

    def skip(self, n_bytes):
        self.at += n_bytes

    def text(self):
        self.skip(self.number())

    def value(self, kind):
        if kind == GGUF_TEXT:
            self.text()
        elif kind == GGUF_ARRAY:
            kind = self.number("<I")
            for _ in range(self.number()):
                self.value(kind)
        else:
            self.skip(GGUF_SIZES[kind])

    def write_part(self, path, number, count, tensors):
        """As llama.cpp splits files: keys in the first part, some tensors in each."""
        keys, n_keys = (self.keys, self.n_keys) if number == 0 else (b"", 0)
        infos, data = b"", b""
        for key, value in (("split.no", number), ("split.count", count),
                           ("split.tensors.count", len(self.tensors))):
            keys += struct.pack("<Q", len(key)) + key.encode() + struct.pack("<II", 4, value)
        for head, content in tensors:
            infos += head + struct.pack("<Q", len(data))
            data += content + bytes(-len(content) % ALIGNMENT)
        file = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), n_keys + 3) + keys + infos
        path.write_bytes(file + bytes(-len(file) % ALIGNMENT) + data)


class Memory(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.holder.name)

    def tearDown(self):
        self.holder.cleanup()

    def test_gguf_files_whole_and_split_give_the_same(self):
        if not QUANTIZED.is_dir():
            self.skipTest(f"no {QUANTIZED}")
        tokens, out = QUANTIZED / "tokens.json", self.folder / "out.f32"
        for kind in ("q4_k_m", "q8_0", "f16"):
            whole = QUANTIZED / f"{kind}.gguf"
            parts = Gguf(whole)
            middle = len(parts.tensors) // 2
            for i, tensors in enumerate((parts.tensors[:middle], parts.tensors[middle:])):
                parts.write_part(self.folder / f"{kind}-{i + 1:05}-of-00002.gguf", i, 2, tensors)
            split = self.folder / f"{kind}-00001-of-00002.gguf"
            options = ("--tokens", tokens, "-o", out, "--chunk", "16")
            stint_json("logits", whole, *options)
            wanted = out.read_bytes()
            refused = stint("logits", split, *options, "--memory", "1M").stderr
            least = re.search(r"at least (\d+) MiB", refused).group(1)
            for model in (whole, split):
                for bound in ((), ("--memory", f"{least}M"), ("--memory", "200M")):
                    out.unlink()
                    stint_json("logits", model, *options, *bound)
                    self.assertEqual(out.read_bytes(), wanted, (model, bound))

    def test_methods_are_compared_without_a_bound(self):
        refused = stint("eval", MODEL, "--task", "ppl", "--data", MODEL / "config.json", "--method",
                        "group", "--memory", "200M")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("leave out --memory", refused.stderr)


if __name__ == "__main__":
    unittest.main()
