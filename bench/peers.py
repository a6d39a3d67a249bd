#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of stint beside llama.cpp and ik_llama.cpp on the same GGUF files. Programs alternate case
by case, as a machine may change its speed every few seconds; medians of the rates and of the
alternations' own ratios. Prints the tables of docs/BENCHMARKS.md. Nothing else should run.

    bench/peers.py --stint build/stint --peer llama.cpp=DIR/llama-bench \\
                   --peer ik_llama.cpp=DIR/llama-bench MODEL.gguf...

A peer whose llama-bench can repack weights as it loads them (-rtr) runs both ways, the better one
counts. llama-bench and stint bench each compute a prompt once unmeasured before they time it. For
all of them the file lies in memory as stint pull leaves it, in large pages.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

STEPS = 32
FIRST_PROMPT = "The capital of France is"


def run_json(command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def lengths(case, least):
    """Tokens of the prompt, before steps the fewest a program takes, and of the answer."""
    return (least, STEPS) if case == "decode" else (case, 0)


def bench_stint(options, model, case):
    """Tokens/s, and of steps the share of plain reading."""
    prompt, steps = lengths(case, 64)
    report = run_json([options.stint, "bench", model, "--json", "--threads", str(options.threads),
                       "-r", "1", "-p", str(prompt), "-n", str(steps)])
    row = (report["decode"] if steps else report["prefill"])[0]
    return row["tokens_per_second"], row.get("bandwidth_fraction")


def bench_llama(command, options, model, case, extra):
    prompt, steps = lengths(case, 0)
    return run_json([command, "-m", model, "-t", str(options.threads), "-r", "1", "-o", "json",
                     "-p", str(prompt), "-n", str(steps), *extra])[0]["avg_ts"]


def has_option(command, option):
    text = subprocess.run([command, "--help"], capture_output=True, text=True, check=False)
    return option in text.stdout + text.stderr


def ways_of(command):
    """The options to try: none, and repacking where there is an option for it."""
    return ([], ["-rtr", "1"]) if has_option(command, "-rtr") else ([],)


def read_anew(options, model):
    """Drops the file from memory and has stint read it: who wrote it left it in small pages."""
    with model.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    bench_stint(options, model, 64)


def better_way(by_way):
    return max(by_way, key=statistics.median)


def measure_case(options, model, case):
    """Rates {program: [tokens/s of each alternation]}, stint first, and shares of reading."""
    stint, shares = [], []
    peers = {name: [[] for _ in ways_of(path)] for name, path in options.peer}
    for number in range(options.rounds):
        print(f"{model.name}, {case}: {number + 1} of {options.rounds}", file=sys.stderr)
        for name, path in options.peer:
            for way, samples in zip(ways_of(path), peers[name]):
                samples.append(bench_llama(path, options, model, case, way))
        rate, share = bench_stint(options, model, case)
        stint.append(rate)
        shares.append(share)
    return {"stint": stint} | {name: better_way(ways) for name, ways in peers.items()}, shares


def timed(command):
    """Wall seconds and peak MiB of a whole process."""
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return time.monotonic() - begun, usage.ru_maxrss / 1024


def first_token(command, repeats=3):
    runs = [timed(command) for _ in range(repeats)]
    return min(s for s, _ in runs), max(m for _, m in runs)


def first_tokens(options, model):
    """{program: (seconds, MiB)} of a prompt of five tokens and one of answer, warm."""
    n_threads = str(options.threads)
    rows = {"stint": first_token([options.stint, "run", model, "-p", FIRST_PROMPT, "-n", "1",
                                  "--threads", n_threads])}
    for name, path in options.peer:
        cold = ["--no-warmup"] if has_option(path, "--no-warmup") else ["-w", "0"]
        rows[name] = first_token([path, "-m", model, "-p", "5", "-n", "1", "-r", "1",
                                  *cold, "-t", n_threads])
    return rows


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratios(rates, name):
    """stint's over those of a peer, of each alternation."""
    return [ours / theirs for ours, theirs in zip(rates["stint"], rates[name])]


def print_tables(options, model, rates, shares, first):
    """rates: {case: {program: [tokens/s]}}"""
    print(f"\n{model.name}, {model.stat().st_size / 2 ** 20:.0f} MiB, "
          f"{options.rounds} alternations\n")
    print("| | " + " | ".join(c if c == "decode" else f"prefill {c:,}" for c in rates) +
          " | first token, s; peak, MiB |")
    print("|---" * (len(rates) + 2) + "|")
    peers = [name for name, _ in options.peer]
    for name in (*peers, "stint"):
        last = "{:.2f}; {:.0f}".format(*first[name]) if name in first else ""
        medians = (number(statistics.median(of[name])) for of in rates.values())
        print(f"| {name} | " + " | ".join(medians) + f" | {last} |")
    print("| times " + "; ".join(peers) + " | " + " | ".join(
        "; ".join(f"{statistics.median(ratios(of, name)):.2f}" for name in peers)
        for of in rates.values()) + " | |")
    print(f"\nSteps reach {100 * statistics.median(shares):.0f} % of plain reading.", flush=True)


def peer(text):
    name, _, path = text.partition("=")
    if not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f"{text}: NAME=PATH of a llama-bench")
    return name, path


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--stint", default="build/stint")
    parser.add_argument("--peer", type=peer, action="append", default=[])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prompts", default="64,256,1024")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-first-token", action="store_true",
                        help="for files without a vocabulary")
    options = parser.parse_args()
    for model in options.models:
        read_anew(options, model)
        rates = {}
        for case in (*map(int, options.prompts.split(",")), "decode"):
            rates[case], shares = measure_case(options, model, case)  # at last those of steps
        first = {} if options.no_first_token else first_tokens(options, model)
        print_tables(options, model, rates, shares, first)


if __name__ == "__main__":
    main()
