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
--keep writes what each command said, and reads it again the next time. Prompts run in shards, the
tasks in turn, so that a stopped run leaves all tasks equally far; --report makes the table of what
is there, --plot a drawing of all its points. In brackets is the gain over the best mixture of other
uniform and random rows at the same bits, prompt by prompt, in standard errors.
--dns NAME=PACKAGE:BITS:MORE adds another package of the same source at one precision; MORE are the
bits that its outliers add to a weight."""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess


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
        # Only bits are asked for here: stated times save measuring them in each command.
        self.times = ",".join(f"{bits}:1:{mean}" for bits, mean in self.weight_bits.items())

    def read_weight_bits(self, package):
        """{precision: bits of a weight on average}"""
        done = subprocess.run([self.options.stint, "inspect", package, "--json"], check=True,
                              capture_output=True, encoding="utf-8")
        losses = json.loads(done.stdout)["nested"]["losses"]
        return {8: 8.0} | {loss["bits"]: loss["mean_bits"] for loss in losses}

    def schedule(self, name, action, *arguments, package=None):
        path = self.folder / f"{name}.json"
        if not path.exists():
            command = [self.options.stint, "schedule", package or self.options.package, action,
                       "-n", self.options.tokens, "--threads", self.options.threads, *arguments,
                       "--json"]
            if action != "train":
                command += ["--times", self.times]
            done = subprocess.run([str(word) for word in command], check=True,
                                  capture_output=True, encoding="utf-8")
            whole = path.with_suffix(f".{os.getpid()}")  # a stopped run leaves no half report
            whole.write_text(done.stdout, "utf-8")
            whole.rename(path)
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
    # An epsilon that all keep: each point is needed.
    found = runs.schedule(f"solve-{kind}", "solve", "-d", mixture, "-m", "kl", "--chat",
                          "--reference", runs.options.source, "--high", runs.options.high,
                          "--signal", kind, "--candidates", runs.options.candidates,
                          "--epsilon", 1, "--minimize", "bits", "--seed", 1, "-o", example)
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
        # As `solve` has it: other prompts are to keep it, too.
        good = [point for point in points
                if point["quality"] + 1.64 * point["error"] <= runs.options.epsilon]
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


# ---- Statistics

def mean(values):
    return sum(values) / len(values)


def error(values):
    middle = mean(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1)
                     / len(values))


def mixture_at(points, bits):
    """Scores of the best mixture of two uniform precisions, selected at random for each prompt,
    that has these bits on average; None outside them."""
    best = None
    for low in points:
        for high in points:
            a, b = low["average_bits"], high["average_bits"]
            if not a <= bits <= b:
                continue
            weight = (bits - a) / (b - a) if b > a else 0.0
            scores = [x + weight * (y - x) for x, y in zip(low["scores"], high["scores"])]
            if best is None or mean(scores) > mean(best):
                best = scores
    return best


def oracle_at(points, bits):
    """The best mean score if each prompt takes the point that suits it, at these bits on average:
    the least bound over all prices of a bit."""
    n = len(points[0]["scores"])
    prices = [0.0] + [10 ** (power / 8) for power in range(-40, 9)]
    return min(sum(max(p["scores"][i] - price * p["bits"][i] for p in points)
                   for i in range(n)) / n + price * bits for price in prices)


def label(point):
    """What a point does: "static: 4, 3 from step 12", "entropy: 4, 3 (epsilon)"."""
    decode = point["schedule"] and point["schedule"]["decode"]
    if point["name"] == "uniform":
        return f"uniform {decode[0][0]}"
    stem = pathlib.Path(point["name"]).stem  # of a file
    kind, _, choice = stem.partition("-")
    if kind == "learned":
        return f"learned: {choice.replace('-', ', ')}"
    if kind not in ("static", "entropy", "margin"):
        return stem
    steps = [f"{bits} from step {start}" if start else f"{bits}" for bits, start in decode]
    return f"{kind}: {', '.join(steps)}" + (" (epsilon)" if choice == "epsilon" else "")


SIMPLE = ("uniform", "int8", "random", "random steps", "in turn")


def simple_mixture(point, points):
    """Scores of the best mixture of other uniform and random points at this one's bits."""
    base = [other for other in points if other["name"] in SIMPLE and other is not point]
    return mixture_at(base, point["average_bits"])


def gain_of(point, points):
    """(mean, standard error) of the gain over the best simple mixture; None without one."""
    simple = simple_mixture(point, points)
    if simple is None or point["name"] == "int8":
        return None
    gains = [x - y for x, y in zip(point["scores"], simple)]
    return mean(gains), error(gains)


def cell(point, points, sign):
    """The quality of one task, and in brackets the gain in standard errors."""
    text = f"{sign * mean(point['scores']):.4f} +- {error(point['scores']):.4f}"
    gain = gain_of(point, points)
    return text + (f" ({gain[0] / gain[1]:+.1f})" if gain and gain[1] else "")


def row_of(i, columns, sign):
    """Point i in all columns, the last of which has all prompts: bits, quality, the gain, and
    what the best point for each prompt would have."""
    point, points = columns[-1][i], columns[-1]
    row = [label(point), f"{point['average_bits']:.2f}"]
    row += [cell(column[i], column, sign) for column in columns]
    gain = gain_of(point, points)
    if not gain:
        return row + ["", ""]
    best = oracle_at([other for other in points if other["name"] != "reference"],
                     point["average_bits"])
    return row + [f"{gain[0]:+.4f} +- {gain[1]:.4f}", f"{sign * best:.4f}"]


def table(columns, heads, sign):
    cells = [f"{head}, {len(column[-1]['scores'])} prompts" for head, column in zip(heads, columns)]
    print("\n| | bits | " + " | ".join(cells) + " | gain | best per prompt |\n"
          + "|---" * (len(cells) + 4) + "|")
    for i, point in enumerate(columns[-1]):
        if point["name"] != "reference":
            print("| " + " | ".join(row_of(i, columns, sign)) + " |")
    print()


# ---- Plot

FAMILIES = {"static": "o", "entropy": "s", "margin": "^", "learned": "P", "DNS: ": "X"}


def family(point):
    stem = label(point)
    return next((name for name in FAMILIES if stem.startswith(name)), None)


def plot(points, sign, path):
    """Bits against quality of all prompts: points with two standard errors, the line of the best
    simple mixtures, and that of the best point for each prompt."""
    from matplotlib import pyplot  # only who draws needs it

    pyplot.rcParams["svg.fonttype"] = "none"  # text stays text: a small file
    figure, axes = pyplot.subplots(figsize=(8, 5))
    free = [point for point in points if point["name"] != "reference"]
    simple = [point for point in free if point["name"] in SIMPLE]
    low, high = (edge(point["average_bits"] for point in simple if point["name"] != "int8")
                 for edge in (min, max))
    bits = [low + (high - low) * i / 200 for i in range(201)]
    axes.plot(bits, [sign * mean(mixture_at(simple, at)) for at in bits], color="0.5",
              label="best mixture of uniform and random")
    axes.plot(bits, [sign * oracle_at(free, at) for at in bits], color="0.5", linestyle=":",
              label="best for each prompt")
    shown = [point for point in free if low <= point["average_bits"] <= high]
    groups = [(name.strip(": "), mark, [p for p in shown if family(p) == name])
              for name, mark in FAMILIES.items()]
    groups += [("uniform, random, thirds", ".", [p for p in shown if family(p) is None])]
    for name, mark, group in groups:
        if group:
            axes.errorbar([p["average_bits"] for p in group],
                          [sign * mean(p["scores"]) for p in group],
                          yerr=[2 * error(p["scores"]) for p in group], fmt=mark, label=name)
    axes.set_yscale("log")
    axes.set_xlabel("bits of a weight, on average")
    axes.set_ylabel("divergence from the reference" if sign < 0 else "quality")
    axes.legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


# ---- All of it

def weigh(curve, weight_bits):
    """Bits of each prompt as the weights truly have them, and their mean."""
    for point in curve:
        point["bits"] = [sum(n * weight_bits.get(bits, 0.0) for bits, n in enumerate(steps))
                         / max(1, sum(steps)) for steps in point["steps"]]
        point["average_bits"] = mean(point["bits"])
    return curve


def join(curves):
    """The points of several shards as one curve, without prompts that had no step."""
    joined = []
    for points in zip(*curves):
        one = {"name": points[0]["name"], "schedule": points[0]["schedule"]}
        for key in ("scores", "steps"):
            one[key] = [value for point in points for value in point[key]]
        joined.append(one)
    stepped = [any(sum(point["steps"][i]) for point in joined[1:])
               for i in range(len(joined[0]["scores"]))]
    for point in joined:
        for key in ("scores", "steps"):
            point[key] = [value for value, keep in zip(point[key], stepped) if keep]
    return joined


class Comparison:
    """One task under one metric, shard by shard."""

    def __init__(self, runs, task, metric, items):
        self.runs, self.task, self.metric = runs, task, metric
        self.items = [item for item in items if item[1] or metric == "kl"]
        size = runs.options.shard
        self.starts = range(0, len(items), size)

    def run(self, start, given):
        runs = self.runs
        name = f"{self.task}-{start}"
        data = runs.prompts(name, self.items[start:start + runs.options.shard])
        arguments = ["-d", data, "-m", self.metric, "--chat", "--reference", runs.options.source,
                     "--seed", 1 + start]
        runs.schedule(f"{name}-{self.metric}", "compare", *arguments, "-s",
                      ",".join(str(path) for _, path in given), "--high", runs.options.high,
                      "--low", runs.options.low)
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


def signed(curve, sign):
    """Points whose greater scores are better."""
    return [{**point, "scores": [sign * score for score in point["scores"]]} for point in curve]


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
    parser.add_argument("--samples", type=int, default=128, help="to train on")
    parser.add_argument("--tokens", type=int, default=24, help="longest answer")
    parser.add_argument("--candidates", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--high", type=int, default=4)
    parser.add_argument("--low", type=int, default=2)
    parser.add_argument("--learned", metavar="HIGH:LOW,...",
                        help="pairs that learned schedules switch between (--high:--low)")
    parser.add_argument("--bits", default="3.55,3.85", help="averages to compare at")
    parser.add_argument("--epsilon", type=float, default=0.02,
                        help="divergence that schedules may have in calibration")
    parser.add_argument("--dns", action="append", default=[])
    parser.add_argument("--metrics", default="kl")
    parser.add_argument("--tasks", default="", help="only these run")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw it too; needs matplotlib")
    parser.add_argument("--keep", default="schedules.kept")
    return parser.parse_args()


def read_tasks(options, data):
    """{task: held-out items}, and the calibration's mixture of all tasks."""
    held_out, mixed = {}, []
    for name, items, _ in TASKS:
        source = [item for item, _ in zip(items(data), range(options.calibration + options.items))]
        mixed += source[:options.calibration]
        held_out[name] = source[options.calibration:]
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


def run_all(comparisons, given, only):
    for start in max((each.starts for each in comparisons), key=len):
        for each in comparisons:
            if start in each.starts and (not only or each.task in only.split(",")):
                each.run(start, given)


def main():
    options = parse()
    folder, data = pathlib.Path(options.keep), pathlib.Path(options.data)
    folder.mkdir(parents=True, exist_ok=True)
    runs = Runs(options, folder)
    held_out, mixed = read_tasks(options, data)
    given = calibrate(runs, runs.prompts("mixture", mixed),
                      [float(bits) for bits in options.bits.split(",")])
    pairs = options.learned or f"{options.high}:{options.low}"
    given += [train(runs, data, *map(int, pair.split(":"))) for pair in pairs.split(",")]
    comparisons = [Comparison(runs, name, own if metric == "task" else metric, held_out[name])
                   for metric in options.metrics.split(",") for name, _, own in TASKS]
    if not options.report:
        run_all(comparisons, given, options.tasks)
    for metric in {each.metric for each in comparisons}:
        alike = [each for each in comparisons if each.metric == metric]
        report(runs, alike, options.plot)
        if options.dns:
            report(runs, alike, None, options.dns)


if __name__ == "__main__":
    main()
