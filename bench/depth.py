#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps behind a long text, by type of the KV cache, beside those of llama.cpp and ik_llama.cpp.
Programs alternate; medians of tokens/s and of the alternations' own ratios. Prints a table of
docs/BENCHMARKS.md. Nothing else should run.

    bench/depth.py --stint build/stint --depth 4096 --peer llama.cpp=DIR/llama-bench MODEL.gguf...

Peers run with and without flash attention, and with and without -rtr if they have it; what is
fastest counts. A peer without a depth (-d) is timed behind a prompt (-gp)."""
import argparse
import itertools
import pathlib
import statistics
import sys

import peers

STEPS = 32


def depth_ways(command, depth):
    """The options to try."""
    has_depth = peers.has_option(command, "--n-depth")
    behind = ["-n", str(STEPS), "-d", str(depth)] if has_depth else \
        ["-n", "0", "-gp", f"{depth},{STEPS}"]
    values = ("on", "off") if peers.has_option(command, "on|off") else ("1", "0")
    return [[*behind, "-fa", fa, *way]
            for fa, way in itertools.product(values, peers.ways_of(command))]


def bench_peer(command, options, model, way):
    report = peers.run_json([command, "-m", model, "-t", str(options.threads), "-r", "1",
                             "-o", "json", "-p", "0", *way])
    return report[-1]["avg_ts"]


def bench_stint(options, model, kv):
    report = peers.run_json([options.stint, "bench", model, "--json", "--kv", kv,
                             "--threads", str(options.threads), "-r", "1", "-p", "1",
                             "--depth", str(options.depth), "-n", str(STEPS)])
    return report["decode"][0]["tokens_per_second"]


def measure(options, path):
    """Rates {program: [tokens/s of each alternation]}, of stint by type."""
    found = {name: [[] for _ in depth_ways(command, options.depth)]
             for name, command in options.peer}
    rates = {f"stint, {kv}": [] for kv in options.kv.split(",")}
    for number in range(options.rounds):
        print(f"{path.name}: {number + 1} of {options.rounds}", file=sys.stderr)
        for name, command in options.peer:
            for way, samples in zip(depth_ways(command, options.depth), found[name]):
                samples.append(bench_peer(command, options, path, way))
        for kv in options.kv.split(","):
            rates[f"stint, {kv}"].append(bench_stint(options, path, kv))
    return {name: peers.better_way(ways) for name, ways in found.items()} | rates


def print_table(options, path, rates):
    names = [name for name, _ in options.peer]
    print(f"\n{path.name}, behind {options.depth:,} tokens, {options.rounds} alternations\n")
    print("| | tokens/s | " + " | ".join(f"times {name}" for name in names) + " |")
    print("|---" * (len(names) + 2) + "|")
    for name, of in rates.items():
        times = (f"{statistics.median(a / b for a, b in zip(of, rates[n])):.2f}" for n in names)
        print(f"| {name} | {peers.number(statistics.median(of))} | " + " | ".join(times) + " |",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--stint", default="build/stint")
    parser.add_argument("--peer", type=peers.peer, action="append", default=[])
    parser.add_argument("--depth", type=int, default=4096)
    parser.add_argument("--kv", default="f16,q8")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for path in options.models:
        print_table(options, path, measure(options, path))


if __name__ == "__main__":
    main()
