#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stint eval against sums over the logits that `stint logits` writes: four items of each task (20
with STINT_CI_LONG=1), and a text; prompts are written here once more, from the definitions of
lm-evaluation-harness."""
import csv
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import test_models as golden

DATA = golden.SHARED / "data"
MODEL = golden.SHARED / "models" / "novels-10m"
ITEMS = 20 if os.environ.get("STINT_CI_LONG") == "1" else 4


def lines(*path):
    return DATA.joinpath(*path).read_text(encoding="utf-8").split("\n")


def lambada():
    for line in filter(None, lines("lambada", "lambada_test.jsonl")):
        context, _, word = json.loads(line)["text"].rpartition(" ")
        yield [(context, " " + word)], 0


def hellaswag():
    text = lines("hellaswag", "hellaswag_val.txt")
    for i in range(0, len(text) - 5, 6):
        yield [(text[i], " " + ending) for ending in text[i + 2:i + 6]], int(text[i + 1])


def winogrande():
    for line in filter(None, lines("winogrande", "dev.jsonl")):
        item = json.loads(line)
        before, after = item["sentence"].split("_", 1)
        yield [(before + item[o], after) for o in ("option1", "option2")], int(item["answer"]) - 1


def openbookqa():
    for line in filter(None, lines("openbookqa", "test.jsonl")):
        item = json.loads(line)
        choices = item["question"]["choices"]
        yield ([(item["question"]["stem"], " " + c["text"]) for c in choices],
               [c["label"] for c in choices].index(item["answerKey"]))


def mmlu():
    with (DATA / "mmlu" / "test" / "astronomy_test.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    for row in rows:
        prompt = f"{row[0]}\n" + "".join(f"{x}. {text}\n" for x, text in zip("ABCD", row[1:5]))
        yield [(prompt + "Answer:", f" {x}") for x in "ABCD"], int(row[5])


TASKS = {"lambada": (lambada, DATA / "lambada" / "lambada_test.jsonl"),
         "hellaswag": (hellaswag, DATA / "hellaswag" / "hellaswag_val.txt"),
         "winogrande": (winogrande, DATA / "winogrande" / "dev.jsonl"),
         "openbookqa": (openbookqa, DATA / "openbookqa" / "test.jsonl"),
         "mmlu": (mmlu, DATA / "mmlu" / "test" / "astronomy_test.csv")}


def longest_common(a, b):
    """Of the longest common subsequence."""
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + longest_common(a[1:], b[1:])
    return max(longest_common(a[1:], b), longest_common(a, b[1:]))


def tokenize(text):
    done = subprocess.run([golden.COMMAND, "tokenize", MODEL], input=text.encode(), check=True,
                          capture_output=True)
    return [int(word) for word in done.stdout.split()]


def log_probabilities(ids, folder, first=1):
    """ln p of every id from the one at `first` on."""
    tokens = folder / "tokens.json"
    tokens.write_text(json.dumps({"tokens": ids}))
    logits = golden.logits(MODEL, tokens)
    vocab = len(logits) // len(ids)
    out = []
    for i, wanted in enumerate(ids[first:], first - 1):
        row = logits[i * vocab:(i + 1) * vocab]
        most = max(row)
        out.append(row[wanted] - most - math.log(sum(math.exp(x - most) for x in row)))
    return out


class Eval(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def evaluate(self, *options):
        done = golden.run("eval", MODEL, "--json", "--kv", "f32", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def calibration(self):
        """A short text; the one that ships with stint takes longer than what is tested here."""
        path = self.folder / "calibration"
        path.write_bytes((DATA / "novels" / "Corelli_Satan_1895.txt").read_bytes()[100000:101500])
        return path

    def bos(self):
        """What a prompt of this model begins with."""
        text = "a"
        ids = tokenize(text)
        done = golden.run("inspect", MODEL, "--json")
        bos = json.loads(done.stdout)["tokenizer"]["bos"]
        return [] if ids[0] == bos else [bos]

    def test_items_are_the_sums_of_logits(self):
        bos = self.bos()
        for task, (items, data) in TASKS.items():
            with self.subTest(task):
                out = self.folder / "items.jsonl"
                report = self.evaluate("--task", task, "--data", data, "--limit", ITEMS, "--items",
                                       out)
                self.assertEqual(report["items"], ITEMS)
                got = [json.loads(line) for line in out.read_text().splitlines()]
                right = right_norm = 0
                for item, (choices, answer) in zip(got, items()):
                    self.assertEqual(item["answer"], answer)
                    sums = []
                    for context, ending in choices:
                        ids = bos + tokenize(context + ending)
                        n_context = len(bos) + len(tokenize(context))
                        sums.append(sum(log_probabilities(ids, self.folder, n_context)))
                    for a, b in zip(item["log_likelihood"], sums):
                        self.assertAlmostEqual(a, b, delta=2e-3)
                    norm = [s / len(e[1].removeprefix(" ")) for s, e in zip(sums, choices)]
                    right += sums.index(max(sums)) == answer
                    right_norm += norm.index(max(norm)) == answer
                if task == "lambada":
                    continue
                self.assertAlmostEqual(report["metrics"]["acc"], right / ITEMS)
                self.assertAlmostEqual(report["metrics"]["acc_norm"], right_norm / ITEMS)

    def test_perplexity_of_windows(self):
        text = (DATA / "novels" / "Corelli_Satan_1895.txt").read_text(encoding="utf-8")[:2500]
        path = self.folder / "text"
        path.write_text(text, encoding="utf-8")
        bos, ids = self.bos(), tokenize(text)
        for window, stride in ((128, 128 - len(bos)), (128, 50), (200, 200 - len(bos))):
            room = window - len(bos)
            loss, n, seen, start = 0.0, 0, 0, 0
            while True:
                part = ids[start:start + room]
                new = log_probabilities(bos + part, self.folder,
                                        max(len(bos) + seen - start, 1))
                loss, n, seen = loss - sum(new), n + len(new), start + len(part)
                if seen == len(ids):
                    break
                start += stride
            report = self.evaluate("--task", "ppl", "--data", path, "--window", window, "--stride",
                                   stride)
            self.assertEqual(report["tokens"], n)
            self.assertAlmostEqual(math.log(report["metrics"]["ppl"]), loss / n, delta=1e-4)

    def test_generated_texts_are_those_of_run(self):
        prompts = [("It was a cold evening in November, and", "the night was cold"),
                   ("The old man", "was in the garden")]
        data = self.folder / "prompts.jsonl"
        data.write_text("".join(json.dumps({"prompt": p, "reference": r}) + "\n"
                                for p, r in prompts))
        out = self.folder / "items.jsonl"
        report = self.evaluate("--task", "generate", "--data", data, "--tokens", 12, "--items",
                               out)
        self.assertEqual(set(report["metrics"]), {"rouge_l", "token_f1", "bleu"})
        scores = []
        for line, (prompt, reference) in zip(out.read_text().splitlines(), prompts):
            item = json.loads(line)
            self.assertEqual(set(item), {"item", "text", "rouge_l", "token_f1", "bleu"})
            done = golden.run("run", MODEL, "-p", prompt, "-n", 12, "--json")
            written = json.loads(done.stdout)["text"]
            self.assertEqual(item["text"], written.strip("\n ").split("\n")[0])
            words = [re.findall("[a-z0-9]+", text.lower()) for text in (item["text"], reference)]
            common = longest_common(*words)
            scores.append(2 * common / (len(words[0]) + len(words[1])))
            self.assertAlmostEqual(item["rouge_l"], scores[-1])
        self.assertAlmostEqual(report["metrics"]["rouge_l"], sum(scores) / 2)

    def test_a_model_agrees_with_itself(self):
        report = self.evaluate("--task", "agreement", "--reference", MODEL, "--data",
                               DATA / "novels" / "Corelli_Satan_1895.txt", "--limit", 2)
        self.assertEqual(report["metrics"]["top1"], 1.0)
        self.assertLess(abs(report["metrics"]["kl"]), 1e-9)
        self.assertAlmostEqual(report["metrics"]["ppl_ratio"], 1, delta=1e-9)

    def test_the_ratio_is_that_of_perplexities(self):
        common = ("--data", DATA / "novels" / "Corelli_Satan_1895.txt", "--limit", 2, "--window",
                  128)
        coarse = (*common, "--method", "w8a8", "--calib", self.calibration())
        both = [self.evaluate("--task", "ppl", *options)["metrics"]["ppl"]
                for options in (coarse, common)]
        report = self.evaluate("--task", "agreement", "--reference", MODEL, *coarse)
        self.assertAlmostEqual(report["metrics"]["ppl_ratio"], both[0] / both[1], delta=1e-5)
        self.assertNotAlmostEqual(report["metrics"]["ppl_ratio"], 1, delta=1e-5)

    def test_windows_are_items(self):
        """Weighted by their tokens, they are the whole."""
        common = ("--data", DATA / "novels" / "Corelli_Satan_1895.txt", "--limit", 3, "--window",
                  128, "--stride", 50, "--method", "w8a8", "--calib", self.calibration())
        out = self.folder / "items.jsonl"
        ppl = []
        for task, names in (("ppl", ["ppl"]), ("agreement", ["top1", "kl", "ppl_ratio"])):
            report = self.evaluate("--task", task, *common, "--items", out)
            items = [json.loads(line) for line in out.read_text().splitlines()]
            self.assertEqual([item["item"] for item in items], [0, 1, 2])
            self.assertEqual(items[1]["tokens"], 50)
            self.assertEqual(sum(item["tokens"] for item in items), report["tokens"])
            self.assertEqual(list(report["metrics"]), names)
            for name in names:
                by = math.log if name.startswith("ppl") else float
                mean = sum(by(item[name]) * item["tokens"] for item in items) / report["tokens"]
                # Both are written with nine digits.
                self.assertAlmostEqual(by(report["metrics"][name]), mean, delta=1e-8)
                self.assertNotEqual(items[0][name], items[1][name])

    def test_methods_are_compared(self):
        names = ("float", "w8a8", "clip", "shadow", "smoothquant", "int8()", "group", "awq",
                 "rotation", "prefix")
        data = DATA / "novels" / "Corelli_Satan_1895.txt"
        common = ("--task", "agreement", "--data", data, "--limit", 2, "--window", 128, "--calib",
                  self.calibration())
        rows = self.evaluate(*common, "--methods", ",".join(names))["rows"]
        self.assertEqual([row["method"] for row in rows], list(names))
        for row in rows:
            exact = row["method"] == "float"
            self.assertEqual(row["metrics"]["top1"] == 1.0 and row["metrics"]["kl"] < 1e-9, exact)
            self.assertGreater(row["metrics"]["top1"], 0.85, row["method"])
        one = self.evaluate(*common, "--method", "group")
        self.assertEqual(one["metrics"], rows[6]["metrics"])
        done = golden.run("eval", MODEL, *common, "--methods", "float,group")
        self.assertRegex(done.stdout, r"method +top1 +kl +ppl_ratio\nfloat +1 .*\ngroup +0\.9")

    def test_what_is_wrong_is_said(self):
        text = self.folder / "text"
        text.write_text("Some words.")
        for options, piece in ((("--task", "quiz", "--data", text), "known are: ppl"),
                               (("--task", "lambada", "--data", text), "line 1: is not a JSON"),
                               (("--task", "ppl", "--data", "/no/such"), "/no/such"),
                               (("--task", "agreement", "--data", text), "needs a reference"),
                               (("--task", "ppl", "--data", text, "--method", "magic"),
                                "known are: float, w8a8"),
                               (("--task", "ppl", "--data", text, "--window", "1"), "window 1")):
            done = golden.run("eval", MODEL, *options)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(piece, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(golden.run("eval", MODEL, "--task", "ppl").returncode, 2)


if __name__ == "__main__":
    if not DATA.is_dir():
        print(f"1 skipped: no data at {DATA}", file=sys.stderr)
        sys.exit(77)
    unittest.main()
