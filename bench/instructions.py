#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions of a decode step and of a prompt's token, of builds of stint, counted by Valgrind
on one thread. Differences of two runs take off what opening a model costs. Prints markdown:

    bench/instructions.py MODEL --build STINT PACKAGE [--build STINT PACKAGE ...] [--memory SIZE]

MODEL runs in float, each build's own PACKAGE of it as INT8, nested and bounded. Valgrind before
3.22 has no AVX-512, so these are the kernels of AVX2."""
import argparse
import concurrent.futures
import re
import subprocess

TEXT = ("It was a cold evening and the rain had not stopped since the morning when the old man "
        "came to the door of the house and asked for a room and a fire and something to eat "
        "because he had walked all the way from the town by the sea where his brother lived ")
STEPS = 16


def instructions(stint, arguments):
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no",
               "--cachegrind-out-file=/dev/null", stint, "run", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8",
                          errors="replace")
    return int(re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)[1].replace(",", ""))


def count(stint, arguments, prompt):
    common = [*arguments, "--threads", "1", "--ignore-eos", "--temp", "0", "--ctx", "512"]
    known = subprocess.run([stint, "run", "--help", "all"], capture_output=True, encoding="utf-8")
    if "--drafts" in known.stdout:
        common += ["--drafts", "0"]
    runs = ((TEXT, 1), (2 * TEXT, 1)) if prompt else ((TEXT[:20], STEPS), (TEXT[:20], 3 * STEPS))
    first, second = (instructions(stint, [*common, "-p", text, "-n", str(n)]) for text, n in runs)
    return (second - first) / (1 if prompt else 2 * STEPS)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--build", nargs=2, action="append", required=True)
    parser.add_argument("--memory", default="64M", help="of the bounded runs")
    options = parser.parse_args()
    cases = {"float": None, "INT8": ("none",), "INT8, bounded": ("none", options.memory)}
    for bits in "432":
        cases[f"nested, {bits} bits"] = (f"uniform:{bits}",)
    cases["nested, 4 bits, bounded"] = ("uniform:4", options.memory)

    def arguments(package, case):
        if not case:
            return [options.model, "--kv", "f32"]
        return [package, "--schedule", case[0], *(["--memory", case[1]] if len(case) > 1 else [])]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for kind in ("step", "prompt"):
            for name, case in cases.items():
                counts = list(pool.map(lambda build: count(
                    build[0], arguments(build[1], case), kind == "prompt"), options.build))
                ratios = [f"{100 * (c / counts[0] - 1):+.1f} %" for c in counts[1:]]
                print(" | ".join([f"| {name}, {kind}", *(f"{c / 1e6:.2f}" for c in counts),
                                  *ratios]) + " |", flush=True)


main()
