#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perplexity of models over a text, in windows of equal length, from the logits that `stint logits`
writes. For the tables of docs/BENCHMARKS-history.md:

    bench/perplexity.py build/stint TEXT MODEL... [--windows 64] [--length 256]
"""
import argparse
import array
import json
import math
import pathlib
import subprocess
import tempfile


def window_loss(command, model, ids, folder):
    """Sum of -log p over a window's tokens but the first, and their number."""
    tokens, out = folder / "tokens.json", folder / "logits.f32"
    tokens.write_text(json.dumps({"tokens": ids}))
    subprocess.run([command, "logits", model, "--tokens", tokens, "-o", out], check=True,
                   stderr=subprocess.DEVNULL)
    logits = array.array("f")
    logits.frombytes(out.read_bytes())
    vocab = len(logits) // len(ids)
    loss = 0.0
    for i, wanted in enumerate(ids[1:]):
        row = logits[i * vocab:(i + 1) * vocab]
        most = max(row)
        loss += most + math.log(math.fsum(math.exp(x - most) for x in row)) - row[wanted]
    return loss, len(ids) - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--windows", type=int, default=64)
    parser.add_argument("--length", type=int, default=256)
    options = parser.parse_args()
    done = subprocess.run([options.command, "tokenize", options.models[0]], check=True,
                          input=options.text.read_bytes(), capture_output=True)
    ids = [int(word) for word in done.stdout.split()]
    starts = range(0, len(ids) - options.length + 1, options.length)[:options.windows]
    with tempfile.TemporaryDirectory() as name:
        for model in options.models:
            losses = [window_loss(options.command, model, ids[i:i + options.length],
                                  pathlib.Path(name)) for i in starts]
            mean = math.fsum(x for x, _ in losses) / sum(n for _, n in losses)
            print(f"{model}: {math.exp(mean):.3f} over {len(losses)} windows of {options.length}")


if __name__ == "__main__":
    main()
