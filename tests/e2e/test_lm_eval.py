#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""EleutherAI's harness, unmodified, scores texts over `stint serve` as `stint eval` does: the same
accuracies but for one item. It needs no more than the address: the server tokenizes for it.
`scripts/bootstrap frameworks` puts it into build/frameworks; skips itself without. STINT_CI_LONG=1
takes 200 items of each task, and SmolLM2 too where real_models.py finds it."""
import json
import os
import pathlib
import tempfile
import unittest

from frameworks import enter, needs

enter()

# pylint: disable=wrong-import-position,import-outside-toplevel,import-error
from command import MODEL, stint_json
from real_models import SMOLLM2
from server import Server

DATA = pathlib.Path(os.environ["STINT_SHARED_DATA"]) / "data"
LONG = os.environ.get("STINT_CI_LONG") == "1"
ITEMS = {"openbookqa": 60, "hellaswag": 12, "lambada": 40, "winogrande": 20, "arc_easy": 60,
         "piqa": 60}
if LONG:
    ITEMS = dict.fromkeys(ITEMS, 200)
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


def winogrande():
    """The text behind the gap, given each of both texts before it."""
    for line in (DATA / "winogrande" / "dev.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        before, _, after = item["sentence"].partition("_")
        yield {"answer": int(item["answer"]) - 1, "context": after.strip(),
               "choices": [before + item["option1"], before + item["option2"]]}


def arc_easy():
    """OpenBookQA's questions as rows of ARC, which its file has the form of."""
    for item in openbookqa():
        labels = "ABCD"[:len(item["choices"])]
        yield {"question": item["context"], "answerKey": labels[item["answer"]],
               "choices": {"text": item["choices"], "label": list(labels)}}


def piqa():
    """Their right choice and another one as rows of PIQA."""
    for i, item in enumerate(openbookqa()):
        right, n = item["answer"], len(item["choices"])
        two = [item["choices"][right], item["choices"][(right + 1 + i % (n - 1)) % n]]
        yield {"goal": item["context"], "sol1": two[i % 2], "sol2": two[1 - i % 2], "label": i % 2}


def task_of_harness(folder, name, items, path):
    """A task as the harness has it, prompts and all, with data from a local file."""
    import lm_eval
    import yaml
    task = yaml.safe_load((pathlib.Path(lm_eval.__file__).parent / "tasks" / folder /
                           f"{name}.yaml").read_text())
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    task.update(dataset_path="json", dataset_name=None, test_split="test", training_split=None,
                validation_split=None, dataset_kwargs={"data_files": {"test": str(path)}})
    task.pop("tag", None)
    return task


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
    if name == "winogrande":
        task.update(doc_to_text="{{answer}}", doc_to_target="{{context}}", metric_list=[])
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

    def harness(self, model):
        import lm_eval
        from lm_eval.tasks import TaskManager
        tasks = [task_of(read.__name__, list(read())[:ITEMS[read.__name__]],
                         self.folder / f"{read.__name__}.jsonl")
                 for read in (openbookqa, hellaswag, lambada, winogrande)]
        tasks += [task_of_harness(folder, read.__name__, list(read())[:ITEMS[read.__name__]],
                                  self.folder / f"{read.__name__}.jsonl")
                  for folder, read in (("arc", arc_easy), ("piqa", piqa))]
        with Server("--slots", 4, model=model) as server:
            return lm_eval.simple_evaluate(
                model="local-completions", batch_size=4, tasks=tasks, bootstrap_iters=0,
                task_manager=TaskManager(include_defaults=False),
                model_args={"model": model.stem, "base_url": server.address + "/v1/completions"}
            )["results"]

    def compare(self, model, ppl_delta):
        files = {"arc_easy": DATA / "openbookqa" / "test.jsonl", "piqa": self.folder / "piqa.jsonl"}
        got = self.harness(model)
        for name, n in ITEMS.items():
            ours = stint_json("eval", model, "--task", name, "--data", files.get(name, DATA),
                              "--limit", n)["metrics"]
            theirs = {key.partition(",")[0]: value for key, value in got[name].items()}
            with self.subTest(name):
                for metric in ("acc", "acc_norm"):
                    if metric in ours and metric in theirs:
                        items = round(abs(ours[metric] - theirs[metric]) * n)
                        self.assertLessEqual(items, 1, (metric, ours, theirs))
                if "ppl" in ours:
                    self.assertAlmostEqual(ours["ppl"] / theirs["perplexity"], 1, delta=ppl_delta)

    def test_results_are_those_of_stint_eval(self):
        self.compare(self.model, 5e-4)

    @unittest.skipUnless(LONG and SMOLLM2, "for STINT_CI_LONG=1, with SmolLM2")
    def test_results_of_a_real_model(self):
        self.compare(SMOLLM2, 2e-3)  # integer products, over another batch


if __name__ == "__main__":
    unittest.main()
