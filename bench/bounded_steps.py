#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of a model in less memory than its file takes: their latency, the peak by the kernel's own
counter, and llama.cpp with the file mapped under the same limit. Prints tables of
docs/BENCHMARKS.md. Needs root, for control groups; works on a copy of the file, so that no other
program's pages of it count.

    bench/bounded_steps.py MODEL.gguf --shares 50,75 --tokens 2000 --llama-bench DIR/llama-bench

Other models of stint that run beside it, e.g. a package of the same: --also MODEL.stint, with
--schedule as run takes it. Texts go on from one of code; with --chat FILE, of MT-bench's
question.jsonl, each round answers another question.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

PROMPT = "def quicksort(values):"
MIB = 1 << 20
CONTROLLERS = pathlib.Path("/sys/fs/cgroup")


class Group:
    """A control group with a limit of memory, of either version of the kernel's interface."""

    def __init__(self, name, limit):
        self.old = (CONTROLLERS / "memory").is_dir()
        self.path = (CONTROLLERS / "memory" if self.old else CONTROLLERS) / name
        self.path.mkdir(exist_ok=True)
        (self.path / ("memory.limit_in_bytes" if self.old else "memory.max")).write_text(str(limit))
        if not self.old:
            (self.path / "memory.swap.max").write_text("0")

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        name = "memory.max_usage_in_bytes" if self.old else "memory.peak"
        return int((self.path / name).read_text())

    def close(self):
        self.path.rmdir()


def forget(path):
    """No page of the file stays in memory."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run_in(limit, path, command):
    """Its JSON, and the peak of the group that it ran in."""
    forget(path)
    group = Group(f"stint-bench-{os.getpid()}", limit)
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True,
                              preexec_fn=group.enter)
        return json.loads(done.stdout), group.peak()
    finally:
        group.close()


def stint(options, path, limit, tokens, extra=(), number=0):
    bound = limit - options.spare * MIB
    prompt = ["-p", PROMPT] if not options.chat else [
        "-c", "--temp", "0", "-p",
        json.loads(options.chat.read_text().splitlines()[10 * number % 80])["turns"][0]]
    return run_in(limit, path, [
        options.stint, "run", path, *prompt, "-n", str(tokens), "--ignore-eos", "--ctx",
        str(options.context), "--threads", str(options.threads), "--memory", f"{bound // MIB}M",
        "--json", *extra])


def llama(options, path, limit):
    rows, peak = run_in(limit, path, [
        options.llama_bench, "-m", path, "-t", str(options.threads), "-p", "0", "-n",
        str(options.llama_tokens), "-r", "1", "--no-warmup", "-lm", "mmap", "--repack", "0",
        "-o", "json"])
    return rows[0]["avg_ts"], peak


def rate(report):
    return report["decode_tokens_per_second"]


def print_latency(options, subjects, limits):
    print("| | group | read a step | median, ms | p90 | p99 | peak of the group, MiB |")
    print("|---" * 7 + "|")
    for name, path, extra in subjects:
        for share, limit in limits:
            report, peak = stint(options, path, limit, options.tokens, extra)
            steps = report["step_seconds"]
            print(f"| {name} | {limit // MIB} MiB ({share} %) | "
                  f"{report['io']['bytes_per_step'] / MIB:.0f} MiB | {1e3 * steps['median']:.0f} | "
                  f"{1e3 * steps['p90']:.0f} | {1e3 * steps['p99']:.0f} | {peak / MIB:.0f} |",
                  flush=True)


def print_beside(options, subjects, limits, gguf):
    print("\n| | group | llama.cpp, mapped | stint | times | peaks, MiB |")
    print("|---" * 6 + "|")
    for name, path, extra in subjects:
        for share, limit in limits:
            pairs, peaks = [], []
            for number in range(options.rounds):
                print(f"{name}, {share} %: round {number + 1}", file=sys.stderr)
                theirs, their_peak = llama(options, gguf, limit)
                report, peak = stint(options, path, limit, options.round_tokens, extra, number)
                pairs.append((theirs, rate(report)))
                peaks.append((their_peak, peak))
            medians = [statistics.median(p[i] for p in pairs) for i in range(2)]
            times = statistics.median(ours / theirs for theirs, ours in pairs)
            print(f"| {name} | {limit // MIB} MiB ({share} %) | {medians[0]:.2f} | "
                  f"{medians[1]:.2f} | {times:.1f} | "
                  f"{max(p[0] for p in peaks) / MIB:.0f}; {max(p[1] for p in peaks) / MIB:.0f} |",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--also", type=pathlib.Path)
    parser.add_argument("--schedule", default="none")
    parser.add_argument("--chat", type=pathlib.Path)
    parser.add_argument("--stint", default="build/stint")
    parser.add_argument("--llama-bench")
    parser.add_argument("--shares", default="50,75", help="of the file, in percent")
    parser.add_argument("--tokens", type=int, default=2000, help="for the latency; 0: none")
    parser.add_argument("--rounds", type=int, default=7, help="beside llama.cpp")
    parser.add_argument("--round-tokens", type=int, default=32)
    parser.add_argument("--llama-tokens", type=int, default=8)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--spare", type=int, default=4, help="MiB of the limit beside the bound")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        gguf = shutil.copy(options.model, folder)
        subjects = [("the file as it lies", gguf, [])]
        if options.also:
            subjects.append(("a package", shutil.copy(options.also, folder),
                             ["--schedule", options.schedule]))
        size = options.model.stat().st_size
        limits = [(int(s), size * int(s) // 100 // MIB * MIB) for s in options.shares.split(",")]
        print("load:", pathlib.Path("/proc/loadavg").read_text().split()[0], file=sys.stderr)
        if options.tokens:
            print_latency(options, subjects, limits)
        if options.llama_bench:
            print_beside(options, subjects, limits, gguf)


if __name__ == "__main__":
    main()
