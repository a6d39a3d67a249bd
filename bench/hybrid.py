#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hybrid steps beside those of each processor alone (PowerInfer-2, section 4.1), for a package with
neurons: sessions under one bound, which take turns over the same tokens, drawn evenly from the
vocabulary. Prints markdown.

    STINT_LIBRARY=build/libstint.so bench/hybrid.py MODEL.stint --memory 1900 \\
        --device sim:speed=20000 --threads 1 --schedule uniform:4

"CPU" computes all neurons on the host's threads, "device" all of them on the device, named or not;
"hybrid" divides them by measured speeds. Everything else is the host's in all three.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("STINT_LIBRARY", str(ROOT / "build" / "libstint.so.0"))
sys.path.insert(0, str(ROOT / "bindings" / "python"))
import stint  # noqa: E402 (after the path is set)

SHARES = {"CPU": -1.0, "device": 2.0, "hybrid": 0.0}


def steps(session, ids, answers):
    """Tokens a second, one by one; or of so many answers that are a batch."""
    session.truncate(0)
    session.eval(ids[:1])
    begun = time.perf_counter()
    if answers > 1:
        session.answers(answers, ids[1:2], max_tokens=len(ids), ignore_eos=True,
                        sampling=stint.Sampling(temperature=1.0, seed=ids[0]))
        return answers * len(ids) / (time.perf_counter() - begun)
    for token in ids[1:]:
        session.eval([token])
    return (len(ids) - 1) / (time.perf_counter() - begun)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--memory", type=int, required=True, help="MiB")
    parser.add_argument("--device", default="sim")
    parser.add_argument("--schedule")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=16, help="of a turn")
    parser.add_argument("--warm", type=int, default=96, help="before the first one")
    parser.add_argument("--answers", type=int, default=1, help="at a time")
    options = parser.parse_args()
    drawn = random.Random(1)
    with stint.Model.open(options.model, tokenizer=False, lazy=True) as model:
        vocab, context = model.describe().vocab, max(options.warm, options.tokens) + 8
        sessions = {name: model.session(context=context, memory=options.memory << 20, chunk=32,
                                        threads=options.threads, device=options.device,
                                        schedule=options.schedule, npu_hot=share,
                                        sequences=options.answers)
                    for name, share in SHARES.items()}
        rates = {name: [] for name in sessions}
        for number in range(options.rounds + 1):
            n = options.tokens if number else options.warm
            ids = [drawn.randrange(vocab) for _ in range(n)]
            for name, session in sessions.items():
                rates[name].append(steps(session, ids, options.answers))
        memories = {name: session.memory() for name, session in sessions.items()}
        for session in sessions.values():
            session.close()
    print("| | tokens/s | hybrid, times | neurons computed | of these on the device |\n"
          "|---|---|---|---|---|")
    for name, found in rates.items():
        times = statistics.median(h / f for h, f in zip(rates["hybrid"][1:], found[1:]))
        m = memories[name]
        print(f"| {name} | {statistics.median(found[1:]):.3g} | {times:.2f} | "
              f"{100 * m.computed:.0f} % | {100 * m.on_npu:.0f} % |")
    m = memories["hybrid"]
    print(json.dumps({"npu_block_us": m.npu_block_seconds * 1e6,
                      "npu_neuron_us": m.npu_neuron_seconds * 1e6,
                      "cpu_neuron_us": m.cpu_neuron_seconds * 1e6}), file=sys.stderr)


if __name__ == "__main__":
    main()
