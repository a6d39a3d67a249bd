#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of stint beside llama.cpp and ik_llama.cpp on the same GGUF files: programs alternate,
medians count. Prints the tables of docs/BENCHMARKS.md. Nothing else should run on the machine.

    bench/peers.py --stint build/stint --peer llama.cpp=DIR/llama-bench \\
                   --peer ik_llama.cpp=DIR/llama-bench MODEL.gguf...

A peer whose llama-bench can repack weights as it loads them (-rtr) runs both ways, the better one
counts. llama-bench and stint bench each compute a prompt once unmeasured before they time it. For
all of them the file lies in memory as stint pull leaves it, in large pages.
"""
import argparse
import json
import math
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


def bench_stint(options, model):
    """{case: tokens/s}, with the share of plain reading that steps reach."""
    report = run_json([options.stint, "bench", model, "--json", "--threads", str(options.threads),
                       "-r", "1", "-p", options.prompts, "-n", str(STEPS)])
    rates = {row["tokens"]: row["tokens_per_second"] for row in report["prefill"]}
    rates["decode"] = report["decode"][0]["tokens_per_second"]
    rates["share"] = report["decode"][0]["bandwidth_fraction"]
    return rates


def bench_llama(command, options, model, extra):
    rows = run_json([command, "-m", model, "-t", str(options.threads), "-r", "1", "-o", "json",
                     "-p", options.prompts, "-n", str(STEPS), *extra])
    rates = {row["n_prompt"]: row["avg_ts"] for row in rows if row["n_prompt"]}
    rates["decode"] = next(row["avg_ts"] for row in rows if row["n_gen"])
    return rates


def has_option(command, option):
    text = subprocess.run([command, "--help"], capture_output=True, text=True, check=False)
    return option in text.stdout + text.stderr


def ways_of(command):
    """The options to try: none, and repacking where there is an option for it."""
    return ([], ["-rtr", "1"]) if has_option(command, "-rtr") else ([],)


def medians(samples):
    return {case: statistics.median(s[case] for s in samples) for case in samples[0]}


def best_way(by_way):
    """Of a peer's ways, case by case."""
    all_medians = [medians(samples) for samples in by_way]
    return {case: max(m[case] for m in all_medians) for case in all_medians[0]}


def read_anew(options, model):
    """Drops the file from memory and has stint read it: who wrote it left it in small pages."""
    with model.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    run_json([options.stint, "bench", model, "--json", "-r", "1", "-p", "64", "-n", "1"])


def measure(options, model):
    """The number of alternations; {program: {case: tokens/s}}, stint first."""
    read_anew(options, model)
    stint, peers = [], {name: [[] for _ in ways_of(path)] for name, path in options.peer}
    begun = time.monotonic()
    for number in range(options.rounds):
        if number and time.monotonic() - begun > 60 * options.minutes:
            break
        print(f"{model.name}: round {number + 1} of {options.rounds}", file=sys.stderr)
        for name, path in options.peer:
            for way, samples in zip(ways_of(path), peers[name]):
                samples.append(bench_llama(path, options, model, way))
        stint.append(bench_stint(options, model))
    rates = {name: best_way(by_way) for name, by_way in peers.items()}
    return len(stint), {"stint": medians(stint)} | rates


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


def print_tables(model, n_rounds, rates, first):
    prompts = [case for case in rates["stint"] if isinstance(case, int)]
    cases = (*prompts, "decode")
    print(f"\n{model.name}, {model.stat().st_size / 2 ** 20:.0f} MiB, {n_rounds} alternations\n")
    print("| | " + " | ".join(f"prefill {p:,}" for p in prompts) +
          " | decode | first token, s; peak, MiB |")
    print("|---" * (len(cases) + 2) + "|")
    peers = [name for name in rates if name != "stint"]
    for name in (*peers, "stint"):
        last = "{:.2f}; {:.0f}".format(*first[name]) if name in first else ""
        print(f"| {name} | " + " | ".join(number(rates[name][c]) for c in cases) + f" | {last} |")
    print("| times " + "; ".join(peers) + " | " + " | ".join(
        "; ".join(f"{rates['stint'][c] / rates[p][c]:.2f}" for p in peers) for c in cases) + " | |")
    print(f"\nSteps reach {100 * rates['stint']['share']:.0f} % of plain reading.", flush=True)


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
    parser.add_argument("--minutes", type=float, default=math.inf,
                        help="of each model, after which no further round begins")
    parser.add_argument("--prompts", default="64,256,1024")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-first-token", action="store_true",
                        help="for files without a vocabulary")
    options = parser.parse_args()
    for model in options.models:
        n_rounds, rates = measure(options, model)
        first = {} if options.no_first_token else first_tokens(options, model)
        print_tables(model, n_rounds, rates, first)


if __name__ == "__main__":
    main()
