#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several answers to one prompt as one batch that shrinks as they end, beside one that keeps its
size: milliseconds of a step, the share of neurons computed and the bytes read, by the number of
answers that are left. Each turn is a session of its own; the two kinds alternate, medians count.
Prints a table of docs/BENCHMARKS.md.

    STINT_LIBRARY=build/libstint.so.0 bench/best_of.py MODEL.stint --memory 64 \\
        --lengths 32,42,48,160
"""
import argparse
import ctypes
import itertools
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("STINT_LIBRARY", str(ROOT / "build" / "libstint.so.0"))
sys.path.insert(0, str(ROOT / "bindings" / "python"))
import stint  # noqa: E402 (after the path is set)
from stint import _layout, _library  # noqa: E402 (steps are seen from the library's callback)
from stint._request import Request  # noqa: E402

PROMPT = [1, 2, 3, 4, 5, 6, 7, 8]


def state_of(pointer):
    """Nanoseconds, bytes read, and the share of neurons computed, by all steps so far."""
    info = _layout.MemoryInfo()
    _library.call(_library.lib.stint_session_memory, pointer, ctypes.byref(info))
    return time.perf_counter_ns(), info.bytes_read, info.computed


def run(session, lengths, seed):
    """The state after each step, from the one in which the first tokens are drawn."""
    pointer = session._open.pointer  # pylint: disable=protected-access
    counts, states = [0] * len(lengths), []

    def receive(_context, piece):
        answer = piece.contents.answer
        if piece.contents.id >= 0:
            counts[answer] += 1
        if len(states) < max(counts):
            states.append(state_of(pointer))
        return counts[answer] < lengths[answer]

    generation = Request(max(lengths), stint.Sampling(temperature=1.0, seed=seed), True, (), None,
                         answers=len(lengths)).struct()
    generation.text = _layout.TEXT(receive)
    results = (_layout.GenerationResult * len(lengths))()
    results[0].size = ctypes.sizeof(results[0])
    ids = (ctypes.c_int32 * len(PROMPT))(*PROMPT)
    _library.call(_library.lib.stint_generate, pointer, ids, len(PROMPT), generation, None, 0,
                  results)
    if counts != list(lengths):
        raise RuntimeError(f"answers of {counts} tokens, expected {lengths}")
    return states


def spans(states, ends):
    """For each span of steps between two ends: ms and bytes a step, share computed."""
    rows = []
    for begin, end in itertools.pairwise(ends):
        first, last = states[begin], states[end]
        n = end - begin
        # `computed` is a mean over all steps.
        computed = (last[2] * end - first[2] * begin) / n
        rows.append(((last[0] - first[0]) / n / 1e6, (last[1] - first[1]) / n, computed))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--memory", type=int, required=True, help="MiB")
    parser.add_argument("--lengths", default="32,42,48,160", help="of the answers, in tokens")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    lengths = sorted(int(n) for n in options.lengths.split(","))
    kinds = {"shrinks": lengths, "stays": [lengths[-1]] * len(lengths)}
    ends = [0] + sorted({n - 1 for n in lengths})
    tables, totals = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
    with stint.Model.open(options.model, tokenizer=False, lazy=True) as model:
        for number in range(options.rounds):
            print(f"round {number + 1}", file=sys.stderr)
            for kind, wanted in kinds.items():
                with model.session(context=options.context, memory=options.memory << 20,
                                   sequences=len(lengths), threads=options.threads) as session:
                    states = run(session, wanted, options.seed)
                tables[kind].append(spans(states, ends))
                totals[kind].append((states[-1][0] - states[0][0]) / 1e9)
    print("\n| steps | answers | ms a step | of the neurons computed | read a step | staying at "
          f"{len(lengths)}: ms a step | computed |\n" + "|---" * 7 + "|")
    for i, (begin, end) in enumerate(itertools.pairwise(ends)):
        left = sum(n > end for n in lengths)
        shrinks, stays = ([statistics.median(turn[i][k] for turn in tables[kind])
                           for k in range(3)] for kind in kinds)
        print(f"| {begin + 2} to {end + 1} | {left} | {shrinks[0]:.1f} | {shrinks[2]:.0%} | "
              f"{shrinks[1] / 1000:.0f} KB | {stays[0]:.1f} | {stays[2]:.0%} |")
    ratio = statistics.median(b / a for a, b in zip(totals["shrinks"], totals["stays"]))
    print(f"\nIn all {statistics.median(totals['shrinks']):.2f} s, and "
          f"{statistics.median(totals['stays']):.2f} s for the batch that stays: {ratio:.2f} times "
          f"(median of {options.rounds} ratios).")


if __name__ == "__main__":
    main()
