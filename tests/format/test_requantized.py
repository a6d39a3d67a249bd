#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Block types that no golden file has: the package `gguf` quantizes a model to each of them, and
writes the floats that the blocks mean beside it. Both files have the same logits in float, and
nearly the same in --exec fast. `scripts/bootstrap clients` puts the package into build/venv; skips
itself without."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

VENV = pathlib.Path(os.environ["STINT_SOURCE_DIR"]) / "build" / "venv" / "bin" / "python"
MODEL = pathlib.Path(os.environ.get("STINT_SHARED_DATA", "")) / "fixtures/models/llama-q/f16.gguf"
INPUTS = pathlib.Path(__file__).parents[1] / "golden/models/gemma4-moe/model.gguf"

try:
    import gguf
    import numpy
except ImportError as missing:
    if VENV.exists() and pathlib.Path(sys.executable) != VENV:
        os.execv(VENV, [str(VENV), *sys.argv])
    print(f"skipped: {missing}: scripts/bootstrap clients installs it into build/venv")
    sys.exit(77)
if not MODEL.exists():
    print("no golden files: skipped")
    sys.exit(77)

TYPES = ["MXFP4", "TQ1_0", "TQ2_0"]
TOKENS = [1, *range(3, 40)]


def is_linear(tensor):
    return tensor.name.startswith("blk.") and len(tensor.shape) == 2


def is_table(tensor):
    return tensor.name == "per_layer_token_embd.weight"


def write(path, reader, convert, chosen=is_linear):
    """The model with the chosen tensors as convert(floats) gives them: array and type."""
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name != "general.architecture" and not field.name.startswith("GGUF."):
            sub_type = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type)
    for tensor in reader.tensors:
        data, kind = tensor.data, tensor.tensor_type
        if chosen(tensor):
            data, kind = convert(gguf.quants.dequantize(data, kind))
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def logits(model, tokens, mode):
    out = f"{model}.{mode}.f32"
    subprocess.run([os.environ["STINT_COMMAND"], "logits", model, "--tokens", tokens, "-o", out,
                    "--exec", mode], check=True, capture_output=True, timeout=120)
    return numpy.fromfile(out, numpy.float32)


class Requantized(unittest.TestCase):
    def compare(self, folder, name):
        kind = getattr(gguf.GGMLQuantizationType, name)
        reader = gguf.GGUFReader(MODEL)
        blocks, floats = f"{folder}/{name}.gguf", f"{folder}/{name}-floats.gguf"
        tokens = pathlib.Path(folder, "tokens.json")
        tokens.write_text(json.dumps({"tokens": TOKENS}))
        write(blocks, reader, lambda x: (gguf.quants.quantize(x, kind), kind))
        write(floats, reader,
              lambda x: (gguf.quants.dequantize(gguf.quants.quantize(x, kind), kind),
                         gguf.GGMLQuantizationType.F32))
        wanted = logits(floats, tokens, "float")
        size = numpy.sqrt(numpy.mean(wanted ** 2))
        self.assertGreater(size, 0)
        for mode, bound in ("float", 1e-5), ("fast", 3e-2):
            error = numpy.sqrt(numpy.mean((logits(blocks, tokens, mode) - wanted) ** 2)) / size
            print(f"{name} --exec {mode}: {error:.2g} of the logits", file=sys.stderr)
            self.assertLess(error, bound, f"{name} --exec {mode}")

    def test_every_type(self):
        for name in TYPES:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                self.compare(folder, name)


    def test_a_table_of_rows_is_read_as_it_lies(self):
        reader = gguf.GGUFReader(INPUTS)
        with tempfile.TemporaryDirectory() as folder:
            tokens = pathlib.Path(folder, "tokens.json")
            tokens.write_text(json.dumps({"tokens": TOKENS}))
            exact = logits(INPUTS, tokens, "float")
            for name in ("F16", "BF16", "Q8_0", "Q5_0", "Q4_0", "MXFP4"):
                kind = getattr(gguf.GGMLQuantizationType, name)
                blocks, floats = f"{folder}/{name}.gguf", f"{folder}/{name}-floats.gguf"
                write(blocks, reader, lambda x, kind=kind: (gguf.quants.quantize(x, kind), kind),
                      is_table)
                write(floats, reader, lambda x, kind=kind: (
                    gguf.quants.dequantize(gguf.quants.quantize(x, kind), kind),
                    gguf.GGMLQuantizationType.F32), is_table)
                wanted = logits(floats, tokens, "float")
                numpy.testing.assert_array_equal(logits(blocks, tokens, "float"), wanted, name)
                if name.startswith("Q"):
                    self.assertGreater(numpy.abs(wanted - exact).max(), 0.0, name)


if __name__ == "__main__":
    unittest.main()
