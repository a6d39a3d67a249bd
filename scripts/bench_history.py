#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fixed set of benches, appends one line of JSON (commit, CPU, medians, fractions of the
measured roofline) to bench/history.jsonl, and prints the change against the last line of the same
CPU and thread count. Every speed commit shows that change in its message."""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = os.path.abspath(os.environ.get("STINT_COMMAND", ROOT / "build" / "stint"))
FIXED_SET = (
    ["--shape", "qwen1.5-1.8b", "-p", "64,256", "-n", "16"],
    ["models/novels-10m", "-p", "256", "-n", "64"],
)
NOISE = 0.03  # a smaller change is not called one


def fail(text):
    sys.exit(f"bench_history: {text}")


def bench_once(arguments):
    try:
        done = subprocess.run([COMMAND, "bench", *arguments, "--json"], cwd=ROOT,
                              stdout=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        fail(f"{COMMAND}: {error.strerror}; build it with: make")
    if done.returncode:
        fail(f"{COMMAND} bench {' '.join(arguments)}: exit status {done.returncode}")
    return json.loads(done.stdout)


def medians(results):
    """One record from the JSON objects of several runs of the same bench."""
    def median(values):
        return float(f"{statistics.median(values):.6g}")

    def each(read):
        return median([read(result) for result in results])

    first = results[0]
    record = {"prefill": {}, "decode": None}
    for i, case in enumerate(first["prefill"]):
        record["prefill"][str(case["tokens"])] = each(
            lambda r, i=i: r["prefill"][i]["tokens_per_second"])
    if first["decode"]:
        record["decode"] = each(lambda r: r["decode"][0]["tokens_per_second"])
    for key in ("prefill_fraction", "decode_fraction", "bytes_per_second"):
        record[key] = each(lambda r, key=key: r["roofline"][key])
    record["prefill_peak"] = first["roofline"].get("prefill_peak")
    record["peak_rss_bytes"] = int(each(lambda r: r["peak_rss_bytes"]))
    return record


def current_commit():
    def git(*arguments):
        if not shutil.which("git"):
            return ""
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True,
                              check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "include", "cmake",
                  "CMakeLists.txt", "CMakePresets.json")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if changed else "")


def measure(n_runs):
    models, first = {}, None
    for arguments in FIXED_SET:
        results = [bench_once(arguments) for _ in range(n_runs)]
        first = first or results[0]
        models[pathlib.PurePath(results[0]["model"]).name] = medians(results)
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"commit": current_commit(), "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "cpu": first["cpu"], "features": first.get("cpu_features", ""),
            "threads": first["threads"], "runs": n_runs, "models": models}


def read_history(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.strip()]


def figures(record):
    """{label: (value, fraction of the machine's limit or None)} of a line of the history."""
    rows = {}
    for model, figure in record["models"].items():
        best = max(figure["prefill"].values(), default=0)
        for tokens, speed in figure["prefill"].items():
            share = figure["prefill_fraction"] if speed == best else None
            rows[f"{model} prefill {tokens}"] = (speed, share)
        if figure["decode"] is not None:
            rows[f"{model} decode"] = (figure["decode"], figure["decode_fraction"])
    return rows


def print_change(record, before):
    old = figures(before) if before else {}
    print(f"{record['commit']} on {record['cpu']}, {record['threads']} threads" +
          (f", against {before['commit']} of {before['date'][:10]}" if before else ""))
    for label, (speed, share) in figures(record).items():
        text = f"  {label:<36} {speed:10.1f} tokens/s"
        text += f" {100 * share:5.1f} % of the limit" if share is not None else " " * 21
        if old.get(label, (0, None))[0] > 0:
            change = speed / old[label][0] - 1
            text += f" {100 * change:+7.1f} %" + (" (noise)" if abs(change) < NOISE else "")
        print(text.rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--history", type=pathlib.Path, default=ROOT / "bench" / "history.jsonl")
    parser.add_argument("--runs", type=int, default=3, help="runs per bench; medians are kept")
    parser.add_argument("--dry", action="store_true", help="print, but append nothing")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs is at least 1")
    history = read_history(options.history)
    record = measure(options.runs)
    same = [line for line in history
            if (line["cpu"], line["threads"]) == (record["cpu"], record["threads"])]
    print_change(record, same[-1] if same else None)
    if not options.dry:
        options.history.parent.mkdir(parents=True, exist_ok=True)
        with options.history.open("a") as out:
            out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
