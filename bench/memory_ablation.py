#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each part of a memory-bounded session gains (PowerInfer-2's ablation): rounds of
`stint bench --ablation --memory`, which runs all rows one after another; medians over the rounds,
and of the rounds' own ratios to the row before.

    bench/memory_ablation.py MODEL.stint --memory 40M --rounds 7 [-- --npu-threads 1 ...]

What stands behind -- goes to stint bench, e.g. --device sim:speed=N, --bits 4 or --predictor off.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

BOTH, SINGLE = "+ two processors", ("+ hot clusters", "the second one alone")


def one_round(options):
    done = subprocess.run(
        [options.stint, "bench", options.model, "--ablation", "--json", "-p", "16", "-n",
         str(options.tokens), "-r", "1", "--memory", options.memory, "--threads",
         str(options.threads), *options.more], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["ablation"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--memory", required=True)
    parser.add_argument("--stint", default="build/stint")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    given = sys.argv[1:] + ["--"]  # argparse takes nothing behind options for a list of arguments
    own = given.index("--")
    options = parser.parse_args(given[:own])
    options.more = given[own + 1:-1]
    rounds = []
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}, load "
              f"{pathlib.Path('/proc/loadavg').read_text().split()[0]}", file=sys.stderr)
        rounds.append(one_round(options))
    print("| | tokens/s | times the row before | hit rate | hidden | on the second processor |")
    print("|---" * 6 + "|")
    for i, row in enumerate(rounds[0]):
        samples = [r[i] for r in rounds]
        rates = [s["tokens_per_second"] for s in samples]
        before = [r[i - 1]["tokens_per_second"] for r in rounds]
        times = f"{statistics.median(b / a for a, b in zip(before, rates)):.2f}" if i else ""
        shares = (f"{100 * statistics.median(s[key] for s in samples):.0f} %"
                  for key in ("hit_rate", "hidden_fraction", "on_npu"))
        print(f"| {row['step']} | {statistics.median(rates):.3g} | {times} | " +
              " | ".join(shares) + " |")
    by_name = [{row["step"]: row["tokens_per_second"] for row in r} for r in rounds]
    singles = [name for name in SINGLE if name in by_name[0]]
    times = [r[BOTH] / max(r[name] for name in singles) for r in by_name]
    print(f"two processors, over the better one of: {', '.join(singles)}: "
          f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})")


if __name__ == "__main__":
    main()
