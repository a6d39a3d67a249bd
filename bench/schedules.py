#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Average bits against quality: precision schedules, precision per token and simpler ways, on
prompts that calibration did not see. Prints markdown. For the tables of docs/BENCHMARKS.md:

    bench/schedules.py build/stint PACKAGE SOURCE DATA [--items 60] [--keep FOLDER]

SOURCE is the checkpoint that the package was made from; its float answers are the reference. DATA
holds dialogsum, iwslt2017, spec_bench and wikitext-2. Thresholds and static schedules come from a
mixture of all tasks' first items, the learned scheduler from wikitext-2's validation text.
--keep writes what each command said, and reads it again the next time. --dns NAME=PACKAGE adds
another package of the same source at one precision: NAME=PACKAGE:BITS."""
import argparse
import json
import math
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


def answers(data):
    for line in (data / "spec_bench" / "question.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        if item["category"] not in ("rag", "math_reasoning"):
            continue
        reference = item["reference"][0]
        while isinstance(reference, list):
            reference = reference[0]
        yield item["turns"][0][-3000:], reference


TASKS = (("summaries", summaries, "rouge-l"), ("translations", translations, "rouge-l"),
         ("answers", answers, "token-f1"))


class Runs:
    """Commands whose reports are kept."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def schedule(self, name, action, *arguments, package=None):
        path = self.folder / f"{name}.json"
        if not path.exists():
            command = [self.options.stint, "schedule", package or self.options.package, action,
                       "-n", self.options.tokens, "--threads", self.options.threads, *arguments,
                       "--json"]
            done = subprocess.run([str(word) for word in command], check=True,
                                  capture_output=True, encoding="utf-8")
            path.write_text(done.stdout, "utf-8")
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
            if not any(other["average_bits"] <= point["average_bits"]
                       and other["quality"] < point["quality"] for other in points)]
    return min(best, key=lambda point: abs(point["average_bits"] - bits))


def calibrate(runs, mixture, targets):
    """[(name, file)] of static schedules and of thresholds, at about the same bits."""
    given = []
    for kind in ("none", "entropy", "margin"):
        example = runs.folder / f"{kind}.solved"
        found = runs.schedule(f"solve-{kind}", "solve", "-d", mixture, "-m", "kl", "--chat",
                              "--reference", runs.options.source, "--high", runs.options.high,
                              "--signal", kind, "--candidates", runs.options.candidates,
                              "--epsilon", 1, "--minimize", "bits", "--seed", 1, "-o", example)
        points = [point for point in found["curve"] if point["name"] in ("schedule", "signal")
                  and point["items"] == found["items"]]
        owner = json.loads(example.read_text("utf-8"))
        for bits in targets:
            path = runs.folder / f"{'static' if kind == 'none' else kind}-{bits}.json"
            schedule = nearest(points, bits)["schedule"]
            path.write_text(json.dumps({"stint_schedule": 1, "package": owner["package"],
                                        **schedule}), "utf-8")
            if not any(json.loads(other.read_text("utf-8")) == json.loads(path.read_text("utf-8"))
                       for _, other in given):
                given.append((path.stem, path))
    return given


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


def label(point, names):
    decode = point["schedule"] and point["schedule"]["decode"]
    if point["name"] == "uniform":
        return f"uniform {decode[0][0]}"
    return names.get(point["name"], point["name"])


def table(curve, names, less, extra=()):
    """Rows of one metric; where less is better, scores change sign."""
    sign = -1.0 if less else 1.0
    points = [{**point, "scores": [sign * score for score in point["scores"]]} for point in curve]
    uniform = [point for point in points if point["name"] in ("uniform", "int8")
               and point["average_bits"] > 0]
    free = [point for point in points if point["name"] != "reference"]
    print("| | bits | quality | +- | against the best mixture of uniform | +- | standard errors |"
          " best per prompt |\n|---|---|---|---|---|---|---|---|")
    for point in points:
        row = [label(point, names), f"{point['average_bits']:.2f}",
               f"{sign * mean(point['scores']):.4f}", f"{error(point['scores']):.4f}"]
        base = mixture_at(uniform, point["average_bits"])
        if base is None or point["name"] in ("uniform", "int8", "reference"):
            row += ["", "", "", ""]
        else:
            less_or_more = [x - y for x, y in zip(point["scores"], base)]
            gain, spread = mean(less_or_more), error(less_or_more)
            row += [f"{gain:+.4f}", f"{spread:.4f}", f"{gain / spread if spread else 0:+.1f}",
                    f"{sign * oracle_at(free, point['average_bits']):.4f}"]
        print("| " + " | ".join(row) + " |")
    for name, point in extra:
        scores = point["scores"]
        print(f"| {name} | | {mean(scores):.4f} | {error(scores):.4f} | | | | |")
    print()


# ---- All of it

def compare(runs, task, metric, data, given, names):
    arguments = ["-d", data, "-m", metric, "--chat", "--reference", runs.options.source, "--seed",
                 1]
    schedules = ",".join(str(path) for _, path in given)
    report = runs.schedule(f"{task}-{metric}", "compare", *arguments, "-s", schedules, "--high",
                           runs.options.high, "--low", runs.options.low)
    extra = []
    for word in runs.options.dns:
        name, rest = word.split("=", 1)
        package, bits = rest.rsplit(":", 1)
        other = runs.schedule(f"{task}-{metric}-{name}", "compare", *arguments, package=package)
        extra.append((f"DNS: {name}", next(
            point for point in other["curve"] if point["name"] == "uniform"
            and point["schedule"]["decode"][0][0] == int(bits))))
    print(f"\n{task}, {metric}, {report['items']} prompts:\n")
    table(report["curve"], names, metric == "kl", extra)


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("stint", "package", "source", "data"):
        parser.add_argument(name)
    parser.add_argument("--items", type=int, default=60, help="prompts of each task")
    parser.add_argument("--calibration", type=int, default=8, help="prompts of each task, before")
    parser.add_argument("--samples", type=int, default=128, help="to train on")
    parser.add_argument("--tokens", type=int, default=32, help="longest answer")
    parser.add_argument("--candidates", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--high", type=int, default=4)
    parser.add_argument("--low", type=int, default=2)
    parser.add_argument("--bits", default="2.5,3,3.5", help="averages to compare at")
    parser.add_argument("--dns", action="append", default=[])
    parser.add_argument("--metrics", default="kl,task")
    parser.add_argument("--keep", default="schedules.kept")
    return parser.parse_args()


def main():
    options = parse()
    folder, data = pathlib.Path(options.keep), pathlib.Path(options.data)
    folder.mkdir(parents=True, exist_ok=True)
    runs = Runs(options, folder)
    held_out, mixed = {}, []
    for name, items, _ in TASKS:
        source = [item for item, _ in zip(items(data), range(options.calibration + options.items))]
        mixed += source[:options.calibration]
        held_out[name] = runs.prompts(name, source[options.calibration:])
    given = calibrate(runs, runs.prompts("mixture", mixed),
                      [float(bits) for bits in options.bits.split(",")])
    learned = folder / "learned.stint"
    report = runs.schedule("train", "train", "-d", data / "wikitext-2" / "wiki.valid.tokens",
                           "--limit", options.samples, "--high", options.high, "--low",
                           options.low, "--seed", 1, "-o", learned)
    print(f"learned: {100 * report['validation_accuracy']:.0f} % of held-out samples right; the "
          f"most frequent choice {100 * report['majority']:.0f} %")
    names = {str(path): name for name, path in given} | {str(learned): "learned"}
    for name, path in given:
        schedule = json.loads(path.read_text("utf-8"))
        print(f"{name}: decode {schedule['decode']} {schedule.get('thresholds', '')}")
    given.append(("learned", learned))
    for metric in options.metrics.split(","):
        for name, _, own in TASKS:
            compare(runs, name, own if metric == "task" else metric, held_out[name], given, names)


if __name__ == "__main__":
    main()
