#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stint eval as a person meets it: several tasks in one run, on data written here."""
import collections
import json
import pathlib
import re
import string
import tempfile
import unittest

from command import SMALL, stint, stint_json


class Tasks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def jsonl(self, name, *objects):
        return self.write(name, "".join(json.dumps(item) + "\n" for item in objects))


class Several(Tasks):
    def setUp(self):
        super().setUp()
        self.lambada = self.jsonl("lambada/lambada_test.jsonl", {"text": "the old man was here"},
                                  {"text": "she went to the house"})
        self.winogrande = self.jsonl(
            "winogrande/dev.jsonl",
            {"sentence": "The man saw the dog, as _ was near.", "option1": "the man",
             "option2": "the dog", "answer": "2"})

    def test_a_folder_holds_the_data_of_each(self):
        for name in ("--task", "--tasks"):
            rows = stint_json("eval", SMALL, name, "lambada, winogrande", "-d",
                              self.data)["rows"]
            self.assertEqual([row["task"] for row in rows], ["lambada", "winogrande"])
            self.assertEqual([row["items"] for row in rows], [2, 1])
        for row, path in zip(rows, (self.lambada, self.winogrande)):
            one = stint_json("eval", SMALL, "-t", row["task"], "-d", path)
            self.assertEqual(one["metrics"], row["metrics"])
            own = stint_json("eval", SMALL, "-t", row["task"], "-d", path.parent)
            self.assertEqual(own["metrics"], row["metrics"])

    def test_a_list_of_files_is_in_the_order_of_tasks(self):
        out = self.data / "items"
        done = stint("eval", SMALL, "-t", "winogrande,lambada", "-d",
                     f"{self.winogrande},{self.lambada}", "--items", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        titles, *lines = done.stdout.splitlines()
        self.assertRegex(titles, r"^task +metric +\w+$")
        self.assertEqual([line.split()[:2] for line in lines],
                         [["winogrande", "acc"], ["winogrande", "acc_norm"], ["lambada", "acc"],
                          ["lambada", "ppl"]])
        items = [json.loads(line) for line in out.read_text().splitlines()]
        self.assertEqual([(item["task"], item["item"]) for item in items],
                         [("winogrande", 0), ("lambada", 0), ("lambada", 1)])

    def test_tasks_and_methods_make_one_table(self):
        options = ("eval", SMALL, "-t", "lambada,winogrande", "-d", self.data, "--methods",
                   "float,w8a8")
        rows = stint_json(*options)["rows"]
        self.assertEqual([(row["task"], row["method"]) for row in rows],
                         [("lambada", "float"), ("lambada", "w8a8"), ("winogrande", "float"),
                          ("winogrande", "w8a8")])
        titles, *lines = stint(*options).stdout.splitlines()
        self.assertEqual(titles.split(), ["task", "metric", "float", "w8a8"])
        self.assertEqual([line.split()[:2] for line in lines],
                         [["lambada", "acc"], ["lambada", "ppl"], ["winogrande", "acc"],
                          ["winogrande", "acc_norm"]])
        self.assertEqual([line.count("+-") for line in lines], [2] * 4)

    def test_what_is_wrong_names_task_and_file(self):
        bad = self.write("bad", "{\n")
        both = "lambada,winogrande"
        for tasks, data, status, pieces in (
                (both, f"{self.lambada},{bad}", 1, ("winogrande: ", f"{bad}: line 1: ")),
                ("lambada,hellaswag", self.data, 1, ("hellaswag: ", "hellaswag_val.txt")),
                (both, f"{self.lambada},/no/such", 1, ("winogrande: ", "/no/such")),
                (both, self.lambada, 2, ("1 files for 2 tasks",)),
                (both, ",".join(["x"] * 33), 2, ("at most 32",)),
                ("lambada,quiz", self.data, 2, ("'quiz' is not known",)),
                (" , ", self.data, 2, ("--task is empty",))):
            done = stint("eval", SMALL, "-t", tasks, "-d", data, "--json")
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
            for piece in pieces:
                self.assertIn(piece, done.stderr)


class Choices(Tasks):
    """Every ending of one word is scored as the last word of a passage (LAMBADA) is."""

    def test_arc_and_piqa_are_sums_over_the_ending(self):
        arc = [{"question": {"stem": "Which one is wet?", "choices": [
                   {"text": word, "label": label} for label, word in zip("ABCDE", words)]},
                "answerKey": key}
               for words, key in ((("rain", "sand", "fire"), "A"),
                                  (("dust", "snow", "salt", "wood", "rain"), "E"))]
        piqa = [{"goal": "To dry it.", "sol1": "sun", "sol2": "rain", "label": 0}]
        self.jsonl("arc/ARC-Easy/ARC-Easy-Test.jsonl", *arc)
        self.jsonl("arc/ARC-Challenge/ARC-Challenge-Test.jsonl", *arc[:1])
        self.jsonl("piqa/valid.jsonl", *piqa)
        out = self.data / "items"
        rows = stint_json("eval", SMALL, "-t", "arc_easy,arc_challenge,piqa", "-d", self.data,
                          "--items", out)["rows"]
        self.assertEqual([row["items"] for row in rows], [2, 1, 1])
        items = [json.loads(line) for line in out.read_text().splitlines()]
        self.assertEqual([item["answer"] for item in items], [0, 4, 0, 0])
        passages = [f"Question: {question}\nAnswer: {word}" for question, word in (
            *(("Which one is wet?", choice["text"])
              for item in (*arc, arc[0]) for choice in item["question"]["choices"]),
            ("To dry it.", "sun"), ("To dry it.", "rain"))]
        self.jsonl("lambada/lambada_test.jsonl", *({"text": text} for text in passages))
        words = self.data / "words"
        stint_json("eval", SMALL, "-t", "lambada", "-d", self.data, "--items", words)
        alone = [json.loads(line)["log_likelihood"][0] for line in words.read_text().splitlines()]
        together = [value for item in items for value in item["log_likelihood"]]
        self.assertEqual(len(alone), len(together))
        for a, b in zip(alone, together):
            self.assertAlmostEqual(a, b, delta=1e-4)

    def test_labels_may_be_in_their_own_file(self):
        piqa = [{"goal": f"goal {i}", "sol1": "a", "sol2": "b"} for i in range(3)]
        path = self.jsonl("piqa/valid.jsonl", *piqa)
        labels = self.write("piqa/valid-labels.lst", "1\n0\n1\n")
        out = self.data / "items"
        stint_json("eval", SMALL, "-t", "piqa", "-d", self.data, "--items", out)
        self.assertEqual([json.loads(line)["answer"] for line in out.read_text().splitlines()],
                         [1, 0, 1])
        labels.write_text("1\n0\n")
        done = stint("eval", SMALL, "-t", "piqa", "-d", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{labels}: has 2 labels for 3 items", done.stderr)


def words_of(text):
    """As SQuAD's evaluation script and LongBench's compare them."""
    plain = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def token_f1(text, reference):
    ours, theirs = words_of(text), words_of(reference)
    same = sum((collections.Counter(ours) & collections.Counter(theirs)).values())
    return 2 * same / (len(ours) + len(theirs)) if same else 0.0


class Answers(Tasks):
    def test_questions_are_scored_by_the_best_answer(self):
        """References that are words of the answer itself, so that there is something to score."""
        question = {"context": "The old man sat in the garden.", "input": "Where did he sit?"}
        self.jsonl("longqa/a.jsonl", question | {"answers": ["x"]})
        out = self.data / "items"
        first = stint_json("eval", SMALL, "-t", "longqa", "-d", self.data, "--items", out)
        self.assertEqual((first["items"], list(first["metrics"])), (1, ["token_f1"]))
        self.assertLessEqual(first["tokens"], 32)
        text = json.loads(out.read_text())["text"]
        words = text.split()
        self.assertGreater(len(words), 4)
        answers = [" ".join(words[:2]).upper(), "The " + " ".join(words[1:5]) + "!", "no"]
        self.jsonl("longqa/b.jsonl", question | {"answers": answers})
        report = stint_json("eval", SMALL, "-t", "longqa", "-d", self.data, "--items", out)
        a, b = (json.loads(line) for line in out.read_text().splitlines())
        self.assertEqual((a["text"], b["text"]), (text, text))
        self.assertEqual(set(b), {"item", "text", "token_f1"})
        wanted = max(token_f1(text, answer) for answer in answers)
        self.assertGreater(wanted, 0)
        self.assertAlmostEqual(b["token_f1"], wanted)
        self.assertAlmostEqual(report["metrics"]["token_f1"], (a["token_f1"] + wanted) / 2)
        longer = stint_json("eval", SMALL, "-t", "longqa", "-d", self.data, "-n", 40)
        self.assertEqual(longer["items"], 2)

    def test_steps_on_a_phone(self):
        """The model knows nothing of elements: what counts is who is asked what."""
        prompts = {"clock": {"a": ["Tap it.", "Is it done?"], "b": ["Type it."]}}
        label = lambda element, text: {"label": [element, text]}
        truth = {"clock": {"a": {"profile": [label(3, "null"), label(-1, "null")]},
                           "b": {"profile": [label(0, "John")]}}}
        self.write("droidtask/prompts_data.json", json.dumps(prompts))
        labels = self.write("droidtask/ground_truth.json", json.dumps(truth))
        out = self.data / "items"
        report = stint_json("eval", SMALL, "-t", "droidtask", "-d", self.data, "-n", 8, "--items",
                            out)
        self.assertEqual((report["items"], report["tokens"]), (3, 24))
        self.assertEqual(report["metrics"], {"acc": 0.0, "answered": 0.0, "task_acc": 0.0})
        items = [json.loads(line) for line in out.read_text().splitlines()]
        self.assertEqual([set(item) for item in items], [{"item", "text", "acc"}] * 3)
        done = stint("run", SMALL, "--chat", "-p", "Tap it.", "-n", 8, "--temp", 0, "--json")
        self.assertEqual(json.loads(done.stdout)["text"].strip(), items[0]["text"])
        one = stint_json("eval", SMALL, "-t", "droidtask", "-d",
                         self.data / "droidtask" / "prompts_data.json", "--limit", 1, "-n", 8)
        self.assertEqual(list(one["metrics"]), ["acc", "answered"]) # no task has ended
        labels.write_text("{}")
        done = stint("eval", SMALL, "-t", "droidtask", "-d", self.data)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{labels}: clock, task 'a': 'profile' has not one step", done.stderr)

    def test_answers_for_a_judge(self):
        """As FastChat's gen_model_answer.py writes them and its judge reads them."""
        self.jsonl("mt_bench/question.jsonl",
                   {"question_id": 81, "category": "writing", "turns": ["Write.", "Again."]},
                   {"question_id": 160, "category": "stem", "turns": ["Why?", "How?"]})
        out = self.data / "answers.jsonl"
        options = ("eval", SMALL, "-t", "mt_bench", "-d", self.data, "-n", 8)
        report = stint_json(*options, "--items", out)
        self.assertEqual((report["items"], report["tokens"]), (2, 32))
        self.assertEqual(report["metrics"], {"answer_tokens": 8.0})
        answers = [json.loads(line) for line in out.read_text().splitlines()]
        self.assertEqual([answer["question_id"] for answer in answers], [81, 160])
        for answer in answers:
            self.assertEqual(set(answer),
                             {"question_id", "answer_id", "model_id", "choices", "tstamp"})
            self.assertEqual(answer["model_id"], "novels-2")
            self.assertEqual([choice["index"] for choice in answer["choices"]], [0])
            self.assertEqual(len(answer["choices"][0]["turns"]), 2)
        done = stint("run", SMALL, "--chat", "-p", "Why?", "-n", 8, "--temp", 0, "--json")
        self.assertEqual(json.loads(done.stdout)["text"].strip(),
                         answers[1]["choices"][0]["turns"][0])
        stint_json(*options, "--items", out, "--method", "w8a8", "--limit", 1)
        self.assertEqual(json.loads(out.read_text())["model_id"], "novels-2-w8a8")
        for wrong in ((), ("--items", out, "--methods", "float,w8a8")):
            done = stint(*options, *wrong)
            self.assertEqual(done.returncode, 2)
            self.assertIn("mt_bench is answered alone", done.stderr)
        done = stint("eval", SMALL, "-t", "mt_bench,lambada", "-d", self.data, "--items", out)
        self.assertEqual(done.returncode, 2)

    def test_data_that_are_no_questions(self):
        path = self.jsonl("bad.jsonl", {"context": "c", "answers": ["a"]})
        done = stint("eval", SMALL, "-t", "longqa", "-d", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{path}: line 1: has no 'context' and 'input'", done.stderr)
        done = stint("eval", SMALL, "-t", "longqa", "-d", path, "-n", 5000)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
