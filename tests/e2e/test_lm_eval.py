#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""EleutherAI's harness, unmodified, scores texts over `stint serve` as `stint eval` does: the same
accuracies but for one item. It needs no more than the address: the server tokenizes for it.
`scripts/bootstrap frameworks` puts it into build/frameworks; skips itself without."""
import json
import os
import pathlib
import tempfile
import unittest

from frameworks import enter, needs

enter()

# pylint: disable=wrong-import-position,import-outside-toplevel,import-error
from command import MODEL, stint_json
from server import Server

DATA = pathlib.Path(os.environ["STINT_SHARED_DATA"]) / "data"
ITEMS = {"openbookqa": 60, "hellaswag": 12, "lambada": 40}
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TQDM_DISABLE="1")


def openbookqa():
    for line in (DATA / "openbookqa" / "test.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        choices = item["question"]["choices"]
        labels = [choice["label"] for choice in choices]
        yield {"context": item["question"]["stem"], "answer": labels.index(item["answerKey"]),
               "choices": [choice["text"] for choice in choices]}


def hellaswag():
    lines = (DATA / "hellaswag" / "hellaswag_val.txt").read_text("utf-8").splitlines()
    for i in range(0, len(lines) - 5, 6):
        yield {"context": lines[i], "answer": int(lines[i + 1]), "choices": lines[i + 2:i + 6]}


def lambada():
    for line in (DATA / "lambada" / "lambada_test.jsonl").read_text("utf-8").splitlines():
        context, _, word = json.loads(line)["text"].rpartition(" ")
        yield {"context": context, "answer": " " + word}


def task_of(name, items, path):
    """A task of the harness as its YAML files say it, with data from a local file."""
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    task = {"task": name, "dataset_path": "json", "test_split": "test",
            "dataset_kwargs": {"data_files": {"test": str(path)}},
            "doc_to_text": "{{context}}", "output_type": "loglikelihood",
            "doc_to_target": "{{answer}}", "metric_list": [{"metric": "perplexity"}]}
    if "choices" in items[0]:
        task.update(doc_to_target="answer", doc_to_choice="{{choices}}",
                    output_type="multiple_choice", metric_list=[{"metric": "acc_norm"}])
    task["metric_list"].append({"metric": "acc"})
    return task


@needs("lm_eval")
class Harness(unittest.TestCase):
    def setUp(self):
        """The bundled model without a token in front of texts: the harness adds none."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        os.environ["HF_HOME"] = str(self.folder / "cache")
        self.model = self.folder / "model"
        self.model.mkdir()
        for file in pathlib.Path(MODEL).iterdir():
            (self.model / file.name).symlink_to(file.resolve())
        config = self.model / "tokenizer_config.json"
        changed = {**json.loads(config.read_text()), "add_bos_token": False}
        config.unlink()
        config.write_text(json.dumps(changed))

    def harness(self):
        import lm_eval
        from lm_eval.tasks import TaskManager
        tasks = [task_of(read.__name__, list(read())[:ITEMS[read.__name__]],
                         self.folder / f"{read.__name__}.jsonl")
                 for read in (openbookqa, hellaswag, lambada)]
        with Server("--slots", 4, model=self.model) as server:
            return lm_eval.simple_evaluate(
                model="local-completions", batch_size=4, tasks=tasks, bootstrap_iters=0,
                task_manager=TaskManager(include_defaults=False),
                model_args={"model": "model", "base_url": server.address + "/v1/completions"}
            )["results"]

    def test_results_are_those_of_stint_eval(self):
        files = {"openbookqa": "test.jsonl", "hellaswag": "hellaswag_val.txt",
                 "lambada": "lambada_test.jsonl"}
        got = self.harness()
        for name, n in ITEMS.items():
            ours = stint_json("eval", self.model, "--task", name, "--data",
                              DATA / name / files[name], "--limit", n)["metrics"]
            theirs = {key.partition(",")[0]: value for key, value in got[name].items()}
            with self.subTest(name):
                for metric in ("acc", "acc_norm"):
                    if metric in ours:
                        items = round(abs(ours[metric] - theirs[metric]) * n)
                        self.assertLessEqual(items, 1, (metric, ours, theirs))
                if "ppl" in ours:
                    self.assertAlmostEqual(ours["ppl"] / theirs["perplexity"], 1, places=3)


if __name__ == "__main__":
    unittest.main()
