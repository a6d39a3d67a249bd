#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Precision schedules on tasks that generate: found on half of the items, compared on the others.
Prints markdown. For the tables of docs/BENCHMARKS-history.md:

    bench/schedules.py build/stint PACKAGE DATA SEED_TEXT [--items 100]

DATA holds dialogsum, iwslt2017 and novels; SEED_TEXT is what the learned scheduler is trained
on."""
import argparse
import json
import pathlib
import random
import re
import subprocess
import tempfile


def summaries(data):
    for line in (data / "dialogsum" / "dialogsum.dev.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        yield item["dialogue"] + "\nSummary:", item["summary"]


def segments(path):
    return re.findall(r"<seg id=\"\d+\">(.*?)</seg>", path.read_text("utf-8"))


def translations(data):
    french = sorted((data / "iwslt2017" / "fr-en").glob("*.fr.xml"))[0]
    english = sorted((data / "iwslt2017" / "en-fr").glob("*.en.xml"))[0]
    for source, target in zip(segments(french), segments(english)):
        yield f"French: {source.strip()}\nEnglish:", target.strip()


def continuations(data):
    words = (data / "novels" / "Blackmore_Erema_1877.txt").read_text("utf-8").split(" ")
    draw = random.Random(1)
    while True:
        at = draw.randrange(len(words) - 100)
        yield " ".join(words[at:at + 60]), " ".join(words[at + 60:at + 100])


TASKS = (("summaries", summaries, "rouge-l"), ("translations", translations, "bleu"),
         ("continuations", continuations, "rouge-l"), ("continuations", continuations, "agreement"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("stint", "package", "data", "seed_text"):
        parser.add_argument(name)
    parser.add_argument("--items", type=int, default=100, help="of each half")
    parser.add_argument("--high", default="4")
    parser.add_argument("--low", default="2")
    options = parser.parse_args()

    def stint(*arguments):
        done = subprocess.run([options.stint, "schedule", options.package, *map(str, arguments),
                               "--json"], check=True, capture_output=True, encoding="utf-8")
        return json.loads(done.stdout)

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        learned = folder / "learned.stint"
        pair = ("--high", options.high, "--low", options.low)
        report = stint("train", "-d", options.seed_text, "-o", learned, *pair)
        print(f"learned: {100 * report['training_accuracy']:.1f} % of the samples right, "
              f"{100 * report['validation_accuracy']:.1f} % of those held out (the most frequent "
              f"choice: {100 * report['majority']:.1f} %), {report['seconds']:.0f} s\n")
        for name, items, metric in TASKS:
            halves = [folder / "solve.jsonl", folder / "test.jsonl"]
            source = items(pathlib.Path(options.data))
            for half in halves:
                lines = (json.dumps({"prompt": p, "reference": r})
                         for (p, r), _ in zip(source, range(options.items)))
                half.write_text("\n".join(lines) + "\n", "utf-8")
            static = folder / "static.json"
            found = stint("solve", "-d", halves[0], "-m", metric, "-o", static)
            table = stint("compare", "-d", halves[1], "-m", metric, "-s", f"{static},{learned}",
                          *pair)
            print(f"| {name}, {metric} | bits | quality | of INT8 |\n|---|---|---|---|")
            for point in table["curve"]:
                label = point["name"]
                if point["name"] == str(static):
                    label = f"static: {found['schedule']['decode']}"
                if point["name"] == str(learned):
                    label = "learned"
                share = point["quality"] / table["reference"] if table["reference"] else 1
                print(f"| {label} | {point['average_bits']:.2f} | {point['quality']:.4f} | "
                      f"{100 * (share - 1):+.1f} % |")
            print()


if __name__ == "__main__":
    main()
