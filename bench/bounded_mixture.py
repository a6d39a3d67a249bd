#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of a mixture of experts, or of another sparse model, in less memory than its file takes,
over tokens drawn evenly from the vocabulary, beside llama.cpp and its fork with the file mapped,
each in a control group of its own with the same limit, alternating; no page of the file is in
memory at the beginning. For files without a vocabulary, e.g. of random_gguf.py. Needs root, for
control groups.

    bench/bounded_mixture.py MODEL.gguf --shares 50,25 --peer llama.cpp=DIR/llama-bench
    bench/bounded_mixture.py MODEL.stint --limits 1900 --schedule uniform:4 \
        --peer llama.cpp=DIR/llama-bench=MODEL-Q8_0.gguf

All count the same number of steps from the first one on (--tokens); of stint also those behind it
(--more), when the cache is full. No token comes twice on purpose.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

from bounded_steps import MIB, run_in

ROOT = pathlib.Path(__file__).resolve().parent.parent
MMAP = {"llama.cpp": ["--no-warmup", "-lm", "mmap", "--repack", "0"], "ik": ["--warmup", "0"]}


def worker(options):
    """Runs in the group: seconds of each step, and what the session read meanwhile."""
    os.environ.setdefault("STINT_LIBRARY", str(ROOT / "build" / "libstint.so.0"))
    sys.path.insert(0, str(ROOT / "bindings" / "python"))
    import stint  # after the path is set
    drawn = random.Random(options.seed)
    with stint.Model.open(options.model, tokenizer=False, lazy=True) as model:
        vocab, n = model.describe().vocab, options.tokens + options.more
        ids = [drawn.randrange(vocab) for _ in range(n)]
        with model.session(context=n + 8, memory=options.worker, threads=options.threads,
                           chunk=32, schedule=options.schedule) as session:
            seconds, reads = [], [session.memory().bytes_read]
            for token in ids:
                begun = time.perf_counter()
                session.eval([token])
                seconds.append(time.perf_counter() - begun)
                reads.append(session.memory().bytes_read)
            memory = session.memory()
    print(json.dumps({"seconds": seconds, "reads": reads, "hit_rate": memory.hit_rate,
                      "hidden": memory.hidden_fraction, "foreseen": memory.foreseen,
                      "foreseen_used": memory.foreseen_used, "computed": memory.computed}))


def stint_steps(options, limit, seed):
    bound = limit - options.spare * MIB
    return run_in(limit, options.model, [
        sys.executable, __file__, options.model, "--worker", str(bound), "--tokens",
        str(options.tokens), "--more", str(options.more), "--threads", str(options.threads),
        "--seed", str(seed), *(["--schedule", options.schedule] if options.schedule else [])])


def peer_steps(options, limit, name, program, model):
    rows, peak = run_in(limit, model, [
        program, "-m", model, "-t", str(options.threads), "-p", "0", "-n",
        str(options.tokens), "-r", "1", "-o", "json", *MMAP[name.split("-")[0]]])
    return rows[0]["avg_ts"], peak


def one_round(options, limit, peers, number):
    report, peak = stint_steps(options, limit, number)
    n = options.tokens
    first, rest = report["seconds"][:n], report["seconds"][n:]
    found = {"stint": n / sum(first), "peak": peak / MIB, "hidden": report["hidden"],
             "hit_rate": report["hit_rate"], "foreseen": report["foreseen"],
             "foreseen_used": report["foreseen_used"], "computed": report["computed"]}
    if rest:
        found["later"] = len(rest) / sum(rest)
        found["later_median"] = 1 / statistics.median(rest)
        found["read"] = (report["reads"][-1] - report["reads"][n]) / len(rest) / MIB
    for name, (program, model) in peers.items():
        found[name], found[f"{name} peak"] = peer_steps(options, limit, name, program, model)
        found[f"{name} peak"] /= MIB
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--shares", default="50,25", help="of the file, in percent")
    parser.add_argument("--peer", action="append", default=[], help="NAME=LLAMA-BENCH, or "
                        "NAME=LLAMA-BENCH=FILE; a name begins with llama.cpp or ik, whose options "
                        "differ")
    parser.add_argument("--limits", default="", help="MiB of the groups, in place of shares")
    parser.add_argument("--schedule", help="as `stint run` takes it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--more", type=int, default=64)
    parser.add_argument("--spare", type=int, default=40, help="MiB of the limit beside the bound")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options)
        return
    peers = {}
    for peer in options.peer:
        name, program, *file = peer.split("=")
        peers[name] = program, file[0] if file else options.model
    size = pathlib.Path(options.model).stat().st_size
    limits = [int(m) * MIB for m in options.limits.split(",") if m]
    for limit in limits or [size * int(s) // 100 // MIB * MIB for s in options.shares.split(",")]:
        rounds = []
        for number in range(options.rounds):
            rounds.append(one_round(options, limit, peers, options.seed + number))
            print(f"{limit // MIB} MiB: {json.dumps(rounds[-1])}", file=sys.stderr, flush=True)
        print(f"group of {limit // MIB} MiB ({100 * limit / size:.0f} % of the file)")
        for key in rounds[0]:
            values = [r[key] for r in rounds]
            print(f"  {key}: {statistics.median(values):.3g} ({min(values):.3g} to "
                  f"{max(values):.3g})")
        for name in peers:
            times = [r["stint"] / r[name] for r in rounds]
            print(f"  stint / {name}: {statistics.median(times):.1f} ({min(times):.1f} to "
                  f"{max(times):.1f})", flush=True)


if __name__ == "__main__":
    main()
