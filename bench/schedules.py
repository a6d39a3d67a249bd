#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Average bits against quality: precision schedules, precision per token and simpler ways, on
prompts that calibration did not see. Prints markdown. For the tables of docs/BENCHMARKS.md:

    bench/schedules.py build/stint PACKAGE SOURCE DATA [--items 200] [--keep FOLDER]

SOURCE is the checkpoint that the package was made from; its float answers are the reference. DATA
holds dialogsum, iwslt2017, mt_bench, spec_bench and wikitext-2. Thresholds and static schedules
come from a mixture of all tasks' first items, the learned scheduler from wikitext-2's validation
text.
Bits are those that a weight has on average (`stint inspect` tells them), as precisions are budgets.
--keep writes what each command said, and reads it again the next time; schedules that were not
compared then run alone and join it. Prompts run in shards, the
tasks in turn, so that a stopped run leaves all tasks equally far; --report makes the table of what
is there, --plot a drawing of all its points. In brackets is the gain over the best mixture of other
uniform and random rows at the same bits, prompt by prompt, in standard errors.
--dns NAME=PACKAGE:BITS:MORE adds another package of the same source at one precision; MORE are the
bits that its outliers add to a weight."""
import argparse
import json
import os
import pathlib
import re
import subprocess

from schedule_tables import bound, join, label, plot, signed, table, weigh


def summaries(data):
    for line in (data / "dialogsum" / "dialogsum.dev.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        yield ("Summarize this conversation in one sentence.\n\n" + item["dialogue"],
               item["summary"])


def segments(path):
    return re.findall(r"<seg id=\"\d+\">(.*?)</seg>", path.read_text("utf-8"))


def translations(data):
    french = sorted((data / "iwslt2017" / "fr-en").glob("*.fr.xml"))
    english = sorted((data / "iwslt2017" / "en-fr").glob("*.en.xml"))
    pairs = [segments(path) for path in french], [segments(path) for path in english]
    for source, target in zip(sum(pairs[0], []), sum(pairs[1], [])):
        if len(source.split()) > 5:
            yield f"Translate French to English: {source.strip()}", target.strip()


SPEC_BENCH = ("rag", "math_reasoning", "qa", "summarization", "translation")


def answers(data):
    """Spec-Bench's prompts with sources and in mathematics, then those without references (""):
    its questions, and the first turns of MT-Bench."""
    lines = (data / "spec_bench" / "question.jsonl").read_text("utf-8").splitlines()
    items = [json.loads(line) for line in lines]
    for item in items:
        if item["category"] in ("rag", "math_reasoning"):
            reference = item["reference"][0]
            while isinstance(reference, list):
                reference = reference[0]
            yield item["turns"][0][-3000:], reference
    lines = (data / "mt_bench" / "question.jsonl").read_text("utf-8").splitlines()
    for item in items + [json.loads(line) for line in lines]:
        if item["category"] == "qa" or item["category"] not in SPEC_BENCH:
            yield item["turns"][0], ""


TASKS = (("summaries", summaries, "rouge-l"), ("translations", translations, "rouge-l"),
         ("answers", answers, "token-f1"))


class Runs:
    """Commands whose reports are kept."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.weight_bits = self.read_weight_bits(options.package)

    def times_of(self, package):
        """Only bits are asked for here: stated times save measuring them in each command."""
        bits = self.read_weight_bits(package) if package else self.weight_bits
        return ",".join(f"{name}:1:{mean}" for name, mean in bits.items())

    def read_weight_bits(self, package):
        """{precision: bits of a weight on average}"""
        done = subprocess.run([self.options.stint, "inspect", package, "--json"], check=True,
                              capture_output=True, encoding="utf-8")
        losses = json.loads(done.stdout)["nested"]["losses"]
        return {8: 8.0} | {loss["bits"]: loss["mean_bits"] for loss in losses}

    def call(self, action, *arguments, package=None):
        command = [self.options.stint, "schedule", package or self.options.package, action,
                   "-n", self.options.tokens, "--threads", self.options.threads, *arguments,
                   "--json"]
        if action != "train":
            command += ["--times", self.times_of(package)]
        done = subprocess.run([str(word) for word in command], check=True,
                              capture_output=True, encoding="utf-8")
        return json.loads(done.stdout)

    def keep(self, path, report):
        whole = path.with_suffix(f".{os.getpid()}")  # a stopped run leaves no half report
        whole.write_text(json.dumps(report), "utf-8")
        whole.rename(path)

    def schedule(self, name, action, *arguments, package=None):
        path = self.folder / f"{name}.json"
        if not path.exists():
            self.keep(path, self.call(action, *arguments, package=package))
        return json.loads(path.read_text("utf-8"))

    def prompts(self, name, items):
        path = self.folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"prompt": prompt, "reference": reference}) + "\n"
                                for prompt, reference in items), "utf-8")
        return path


# ---- Schedules from calibration

def nearest(points, bits):
    """Of the points that no other one beats in both bits and divergence, that nearest to bits."""
    best = [point for point in points
            if not any(other["true_bits"] <= point["true_bits"]
                       and other["quality"] < point["quality"] for other in points)]
    return min(best, key=lambda point: abs(point["true_bits"] - bits))


def add_true_bits(points, high, runs):
    """Answers and so their steps are equally many at all points, and a step's stated time is its
    bits: two known precisions give the number of steps and the time of the prompt."""
    eight, known = (next(point["seconds"] for point in points
                         if point["schedule"]["decode"] == [[bits, 0]]) for bits in (8, high))
    steps = (eight - known) / (8 - runs.weight_bits[high])
    for point in points:
        point["true_bits"] = 8 - (eight - point["seconds"]) / steps


def solved(runs, kind, mixture):
    """The points that were tried, and the package they belong to."""
    example = runs.folder / f"{kind}.solved"
    # To compare at given bits, each point is needed: an epsilon that all keep.
    epsilon = 1 if runs.options.bits else runs.options.epsilon
    found = runs.schedule(f"solve-{kind}", "solve", "-d", mixture, "-m", "kl", "--chat",
                          "--reference", runs.options.source, "--high", runs.options.high,
                          "--signal", kind, "--candidates", runs.options.candidates,
                          "--epsilon", epsilon, "--minimize", "bits", "--seed", 1, "-o", example)
    points = [point for point in found["curve"] if point["name"] in ("schedule", "signal", "pair")
              and point["items"] == found["items"] and point["schedule"]["prefill"] == 8]
    add_true_bits(points, runs.options.high, runs)
    return points, json.loads(example.read_text("utf-8"))["package"]


def calibrate(runs, mixture, targets):
    """[(name, file)] of static schedules and of thresholds: at about the same bits, and the
    cheapest whose divergence is at most epsilon."""
    given = []
    for kind in ("none", "entropy", "margin"):
        points, package = solved(runs, kind, mixture)
        name = "static" if kind == "none" else kind
        moving = [point for point in points if point["name"] != "pair"]
        found = [(f"{name}-{bits}", nearest(moving, bits)) for bits in targets]
        good = [point for point in points  # other prompts are to keep it, too
                if bound(point["quality"], point["error"], point["items"])
                <= runs.options.epsilon]
        if good:
            found.append((f"{name}-epsilon", min(good, key=lambda p: p["true_bits"])))
        for stem, point in found:
            print(f"{stem}: {json.dumps(point['schedule'])}; in calibration "
                  f"{point['true_bits']:.2f} bits, divergence {point['quality']:.4f} +- "
                  f"{point['error']:.4f}")
            if len(point["schedule"]["decode"]) == 1:  # one that is compared anyway
                continue
            path = runs.folder / f"{stem}.json"
            path.write_text(json.dumps({"stint_schedule": 1, "package": package,
                                        **point["schedule"]}), "utf-8")
            given.append((stem, path))
    path = runs.folder / "static-half.json"  # as the paper's small models: 3, then 2
    path.write_text(json.dumps({"stint_schedule": 1, "package": package, "prefill": 8,
                                "decode": [[3, 0], [2, runs.options.tokens // 2]]}), "utf-8")
    return given + [("static-half", path)]


# ---- All of it

def names_of(given):
    return ",".join(str(path) for _, path in given)


def is_of(point, path):
    """True if a point is that of a schedule as its file is now."""
    if pathlib.PurePath(point["name"]).name != path.name:
        return False
    now = json.loads(path.read_text("utf-8")) if path.suffix == ".json" else {}
    return all(now.get(key) == value for key, value in (point["schedule"] or {}).items())


def with_more(curve, more):
    """A curve whose points of given schedules are replaced by newer ones of the same files."""
    names = {pathlib.PurePath(point["name"]).name for point in more}
    curve = [point for point in curve if pathlib.PurePath(point["name"]).name not in names]
    end = next(i for i, point in enumerate(curve) if point["name"] == "random")
    return curve[:end] + more + curve[end:]


class Comparison:
    """One task under one metric, shard by shard."""

    def __init__(self, runs, task, metric, items):
        self.runs, self.task, self.metric = runs, task, metric
        self.items = [item for item in items if item[1] or metric == "kl"]
        size = runs.options.shard
        self.starts = range(0, len(items), size)

    def run(self, start, given):
        """All schedules on one shard. Those that its kept report lacks run alone and join it."""
        runs = self.runs
        name = f"{self.task}-{start}"
        data = runs.prompts(name, self.items[start:start + runs.options.shard])
        arguments = ["-d", data, "-m", self.metric, "--chat", "--reference", runs.options.source,
                     "--seed", 1 + start]
        whole = f"{name}-{self.metric}"
        report = runs.schedule(whole, "compare", *arguments, "-s", names_of(given), "--high",
                               runs.options.high, "--low", runs.options.low)
        lacking = [(stem, path) for stem, path in given
                   if not any(is_of(point, path) for point in report["curve"])]
        if lacking:
            more = runs.call("compare", *arguments, "-s", names_of(lacking), "--only")["curve"]
            runs.keep(runs.folder / f"{whole}.json",
                      {**report, "curve": with_more(report["curve"], more[1:])})
        for other, package, _, _ in map(dense_and_sparse, runs.options.dns):
            runs.schedule(f"{name}-{self.metric}-{other}", "compare", *arguments, package=package)

    def kept(self, suffix=""):
        """{shard's start: its curve} of those that were run."""
        paths = ((start, self.runs.folder / f"{self.task}-{start}-{self.metric}{suffix}.json")
                 for start in self.starts)
        return {start: json.loads(path.read_text("utf-8"))["curve"] for start, path in paths
                if path.exists()}


def dense_and_sparse(word):
    name, rest = word.split("=", 1)
    package, bits, more = rest.rsplit(":", 2)
    return name, package, int(bits), float(more)


def sparse_point(runs, word, curves):
    """The point of --dns on these shards."""
    name, package, bits, more = dense_and_sparse(word)
    weight_bits = {key: value + more for key, value in runs.read_weight_bits(package).items()}
    curve = weigh(join(curves), weight_bits)
    return next({**point, "name": f"DNS: {name}"} for point in curve
                if point["name"] == "uniform" and point["schedule"]["decode"][0][0] == bits)


def column(runs, kept, sparse):
    """The points of these shards, [{suffix: curve}]."""
    points = weigh(join([shard[""] for shard in kept]), runs.weight_bits)
    return points + [sparse_point(runs, word, [shard["-" + dense_and_sparse(word)[0]]
                                               for shard in kept]) for word in sparse]


def report(runs, comparisons, path, sparse=()):
    """One table of all prompts that these comparisons have under all of `sparse`, and a plot."""
    suffixes = [""] + ["-" + dense_and_sparse(word)[0] for word in sparse]
    tasks = []
    for each in comparisons:
        kept = {suffix: each.kept(suffix) for suffix in suffixes}
        tasks.append([{suffix: kept[suffix][start] for suffix in suffixes} for start in kept[""]
                      if all(start in kept[suffix] for suffix in suffixes)])
    if not all(tasks):
        return
    sign = -1.0 if comparisons[0].metric == "kl" else 1.0
    groups = tasks + [sum(tasks, [])]
    columns = [signed(column(runs, group, sparse), sign) for group in groups]
    for point in sum(columns, []):
        point["label"] = label(point, runs.options.high, runs.options.low)
    table(columns, [each.task for each in comparisons] + ["all"], sign)
    if path:
        plot(columns[-1], sign, path)


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("stint", "package", "source", "data"):
        parser.add_argument(name)
    parser.add_argument("--items", type=int, default=200, help="prompts of each task")
    parser.add_argument("--shard", type=int, default=4, help="prompts that run together")
    parser.add_argument("--calibration", type=int, default=8, help="prompts of each task, before")
    parser.add_argument("--calibration-behind", type=int, default=0, metavar="N",
                        help="and more behind the held-out ones, spread evenly over what is left")
    parser.add_argument("--samples", type=int, default=128, help="to train on")
    parser.add_argument("--tokens", type=int, default=24, help="longest answer")
    parser.add_argument("--candidates", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--high", type=int, default=4)
    parser.add_argument("--low", type=int, default=2)
    parser.add_argument("--learned", metavar="HIGH:LOW,...",
                        help="pairs to switch between (--high:--low); '' for none")
    parser.add_argument("--bits", default="3.55,3.85", help="averages to compare at; '' for none")
    parser.add_argument("--epsilon", type=float, default=0.02,
                        help="divergence that schedules may have in calibration")
    parser.add_argument("--dns", action="append", default=[])
    parser.add_argument("--metrics", default="kl")
    parser.add_argument("--tasks", default="", help="only these")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw it too; needs matplotlib")
    parser.add_argument("--keep", default="schedules.kept")
    return parser.parse_args()


def spread(items, n):
    """n of these, evenly apart."""
    return [items[i * len(items) // n] for i in range(min(n, len(items)))]


def read_tasks(options, data):
    """{task: held-out items}, and the calibration's mixture of all tasks: of each the first ones,
    and more from behind the held-out ones."""
    held_out, mixed = {}, []
    for name, read, _ in TASKS:
        items = list(read(data))
        end = options.calibration + options.items
        mixed += items[:options.calibration] + spread(items[end:], options.calibration_behind)
        held_out[name] = items[options.calibration:end]
    return held_out, mixed


def train(runs, data, high, low):
    """(name, package) of the learned schedule from `high` to `low`."""
    options, name = runs.options, f"learned-{high}-{low}"
    package = runs.folder / f"{name}.stint"
    found = runs.schedule(f"train-{high}-{low}", "train", "-d", data / "wikitext-2" /
                          "wiki.valid.tokens", "--limit", options.samples, "--high", high,
                          "--low", low, "--candidates", options.candidates, "--seed", 1, "-o",
                          package)
    print(f"{name}: {100 * found['validation_accuracy']:.0f} % of held-out samples right; the "
          f"most frequent choice {100 * found['majority']:.0f} %")
    return name, package


def run_all(comparisons, given):
    for start in max((each.starts for each in comparisons), key=len):
        for each in comparisons:
            if start in each.starts:
                each.run(start, given)


def compared(options, runs, held_out):
    tasks = options.tasks.split(",") if options.tasks else [name for name, _, _ in TASKS]
    return [Comparison(runs, name, own if metric == "task" else metric, held_out[name])
            for metric in options.metrics.split(",") for name, _, own in TASKS if name in tasks]


def main():
    options = parse()
    folder, data = pathlib.Path(options.keep), pathlib.Path(options.data)
    folder.mkdir(parents=True, exist_ok=True)
    runs = Runs(options, folder)
    held_out, mixed = read_tasks(options, data)
    given = calibrate(runs, runs.prompts("mixture", mixed),
                      [float(bits) for bits in options.bits.split(",") if bits])
    pairs = f"{options.high}:{options.low}" if options.learned is None else options.learned
    given += [train(runs, data, *map(int, pair.split(":"))) for pair in pairs.split(",") if pair]
    comparisons = compared(options, runs, held_out)
    if not options.report:
        run_all(comparisons, given)
    for metric in {each.metric for each in comparisons}:
        alike = [each for each in comparisons if each.metric == metric]
        report(runs, alike, options.plot)
        if options.dns:
            report(runs, alike, None, options.dns)


if __name__ == "__main__":
    main()
