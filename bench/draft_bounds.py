#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What drafts by n-grams could gain at best: with foresight. Prints markdown.

    PYTHONPATH=bindings/python STINT_LIBRARY=build/libstint.so \\
      bench/draft_bounds.py MODEL DATA --steps 1:4.6,3:8.4,8:15.6,16:26.8

Of each greedy answer to the prompts of bench/drafts.py it is known which of its tokens a piece of
the text before them repeats, behind the same 0, 1 or 2 tokens. A drafter that knew the answer would
draft those pieces alone, in the lengths that take least time. --steps says what a step takes by its
rows (`stint bench --batch`); between two of these a line is drawn. The second gain is of steps
that take the same time whatever their rows: no kernel gives more. Medians of prompts."""
import argparse
import itertools
import pathlib
import statistics

import drafts
import stint

MOST = 15  # drafts of a step


def step_times(text):
    """[rows] relative to a step of one row."""
    given = sorted((int(r), float(t)) for r, t in (x.split(":") for x in text.split(",")))
    if given[0][0] != 1 or given[-1][0] <= MOST:
        raise argparse.ArgumentTypeError(f"wants times from 1 to {MOST + 1} rows")
    times = [0.0, 1.0]
    for (r0, t0), (r1, t1) in itertools.pairwise(given):
        times += [(t0 + (t1 - t0) * (r - r0) / (r1 - r0)) / given[0][1]
                  for r in range(r0 + 1, r1 + 1)]
    return times


def longest_repeat(text, at, context):
    """How many tokens from `at` on repeat what follows an earlier place with the same context."""
    best, end = 0, min(len(text), at + MOST)
    for begin in range(context, at):
        if text[begin - context:begin] != text[at - context:at]:
            continue
        n = 0
        while at + n < end and text[begin + n] == text[at + n]:
            n += 1
        best = max(best, n)
    return best


def gain(repeats, times):
    """Of plain steps over the cheapest steps with drafts, found from the end."""
    n = len(repeats)
    rest = [0.0] * (n + 1)
    for i in reversed(range(n)):
        rest[i] = min(times[k + 1] + rest[min(n, i + k + 1)] for k in range(repeats[i] + 1))
    return n / rest[0]


def answers(model, options, kind):
    session = model.session(threads=options.threads, context=options.context)
    for _, ids in drafts.tokenized(model, options, kind):
        session.truncate(0)
        session.append(ids[:-1])
        answer, = session.answers(1, ids[-1:], max_tokens=options.tokens,
                                  sampling=stint.Sampling(temperature=0.0))
        if answer.ids:
            yield list(ids), list(answer.ids)
    session.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--steps", required=True, type=step_times, metavar="ROWS:MS,...")
    parser.add_argument("--kinds", type=drafts.kinds_of, default=",".join(drafts.KINDS),
                        help="default: %(default)s")
    parser.add_argument("--prompts", type=int, default=50, help="of each kind")
    parser.add_argument("--tokens", type=int, default=128, help="longest answer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=2048)
    options = parser.parse_args()
    free = [0.0] + [1.0] * (MOST + 1)
    print("| | prompts | tokens before | gain at most | where rows cost nothing |\n"
          "|---|---|---|---|---|")
    with stint.Model.open(options.model) as model:
        for kind in options.kinds:
            texts = list(answers(model, options, kind))
            for context in range(3):
                repeats = [[longest_repeat(p + a, len(p) + i, context) for i in range(len(a))]
                           for p, a in texts]
                most, freely = (statistics.median(gain(r, t) for r in repeats)
                                for t in (options.steps, free))
                print(f"| {kind} | {len(texts)} | {context} | {most:.2f} | {freely:.2f} |",
                      flush=True)


if __name__ == "__main__":
    main()
