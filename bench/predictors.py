#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What predictors change: tokens of a text one by one under a bound of memory, with all neurons and
with those that predictors name. For the table of docs/BENCHMARKS-history.md (needs NumPy):

    bench/predictors.py build/stint TEXT PACKAGE... [--windows 6] [--length 510] [--memory 64M]
                        [--schedule uniform:4]
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np


def logits(options, package, ids, predictor, folder):
    tokens, out = folder / "tokens.json", folder / "logits.f32"
    tokens.write_text(json.dumps({"tokens": ids}))
    subprocess.run([options.command, "logits", package, "--tokens", tokens, "-o", out, "--chunk",
                    "1", "--memory", options.memory, "--predictor", predictor, "--schedule",
                    options.schedule], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return np.fromfile(out, np.float32).reshape(len(ids), -1).astype(np.float64)


def loss(rows, ids):
    rows = rows[:-1] - rows[:-1].max(axis=1, keepdims=True)
    return (np.log(np.exp(rows).sum(axis=1)) - rows[np.arange(len(ids) - 1), ids[1:]]).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--windows", type=int, default=6)
    parser.add_argument("--length", type=int, default=510)
    parser.add_argument("--memory", default="64M")
    parser.add_argument("--schedule", default="none")
    options = parser.parse_args()
    for package in options.packages:
        done = subprocess.run([options.command, "tokenize", package, "--json"], check=True,
                              input=options.text.read_bytes(), stdout=subprocess.PIPE)
        ids = json.loads(done.stdout)["ids"]
        same, losses, n = 0, np.zeros(2), 0
        with tempfile.TemporaryDirectory() as folder:
            for at in range(0, options.windows * options.length, options.length):
                window = ids[at:at + options.length]
                rows = [logits(options, package, window, predictor, pathlib.Path(folder))
                        for predictor in ("off", "on")]
                same += (rows[0].argmax(axis=1) == rows[1].argmax(axis=1)).sum()
                losses += [loss(x, window) for x in rows]
                n += len(window)
        off, on = np.exp(losses / (n - options.windows))
        print(f"{package}: {n} tokens, same first choice {100 * same / n:.2f} %, perplexity "
              f"{off:.2f} with all neurons, {on:.2f} with those named ({100 * (on / off - 1):+.2f} "
              "%)")


if __name__ == "__main__":
    main()
