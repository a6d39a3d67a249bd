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
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "models"
INPUTS = GOLDEN / "gemma4-moe" / "model.gguf"

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
# Layers' inputs, streams, latents, gated delta nets, Mamba-2, short convolutions.
FORMS = ["gemma4", "gemma3n", "deepseek-v3", "qwen35", "falcon_h1", "lfm2"]
STEPS = "--chunk", "3", "--kv", "f32"  # prompts of so few tokens are computed as steps
TOKENS = [1, *range(3, 40)]


def is_linear(tensor):
    return tensor.name.startswith("blk.") and len(tensor.shape) == 2


def is_whole_blocks(tensor):
    return is_linear(tensor) and tensor.shape[0] % 32 == 0 and "conv" not in tensor.name


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


def write_both(folder, name, model=MODEL, chosen=is_linear):
    """The model with the chosen tensors in blocks, and with the floats that these mean."""
    kind = getattr(gguf.GGMLQuantizationType, name)
    reader = gguf.GGUFReader(model)
    blocks, floats = f"{folder}/{name}.gguf", f"{folder}/{name}-floats.gguf"
    write(blocks, reader, lambda x: (gguf.quants.quantize(x, kind), kind), chosen)
    write(floats, reader, lambda x: (gguf.quants.dequantize(gguf.quants.quantize(x, kind), kind),
                                     gguf.GGMLQuantizationType.F32), chosen)
    return blocks, floats


def logits(model, tokens, mode, *options):
    out = tokens.with_name(f"{pathlib.Path(model).name}.{mode}.f32")
    subprocess.run([os.environ["STINT_COMMAND"], "logits", model, "--tokens", tokens, "-o", out,
                    "--exec", mode, *options], check=True, capture_output=True, timeout=120)
    return numpy.fromfile(out, numpy.float32)


class Requantized(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.tokens = pathlib.Path(self.folder, "tokens.json")
        self.tokens.write_text(json.dumps({"tokens": TOKENS}))

    def assert_near(self, got, wanted, bound, what):
        size = numpy.sqrt(numpy.mean(wanted ** 2))
        self.assertGreater(size, 0)
        error = numpy.sqrt(numpy.mean((got - wanted) ** 2)) / size
        print(f"{what}: {error:.2g} of the logits", file=sys.stderr)
        self.assertLess(error, bound, what)

    def test_every_type(self):
        for name in TYPES:
            with self.subTest(name):
                blocks, floats = write_both(self.folder, name)
                wanted = logits(floats, self.tokens, "float")
                for mode, bound in ("float", 1e-5), ("fast", 3e-2):
                    self.assert_near(logits(blocks, self.tokens, mode), wanted, bound,
                                     f"{name} --exec {mode}")

    def test_steps_of_every_form(self):
        for name in FORMS:
            with self.subTest(name):
                blocks, floats = write_both(self.folder, "Q8_0", GOLDEN / name / "model.gguf",
                                            is_whole_blocks)
                wanted = logits(floats, self.tokens, "float", *STEPS)
                got = logits(blocks, self.tokens, "fast", *STEPS)
                self.assertTrue((got != wanted).any())
                self.assert_near(got, wanted, 1e-3, name)

    def test_a_table_of_rows_is_read_as_it_lies(self):
        exact = logits(INPUTS, self.tokens, "float")
        for name in ("F16", "BF16", "Q8_0", "Q5_0", "Q4_0", "MXFP4"):
            blocks, floats = write_both(self.folder, name, INPUTS, is_table)
            wanted = logits(floats, self.tokens, "float")
            numpy.testing.assert_array_equal(logits(blocks, self.tokens, "float"), wanted, name)
            if name.startswith("Q"):
                self.assertGreater(numpy.abs(wanted - exact).max(), 0.0, name)


if __name__ == "__main__":
    unittest.main()
