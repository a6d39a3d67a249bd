#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stint run on the bundled model: the same text every time, every way to stop."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from command import COMMAND, MODEL, PROMPT, stint, stint_json


def with_template(folder, template):
    """The bundled model with another chat template."""
    for file in pathlib.Path(MODEL).iterdir():
        if file.name != "tokenizer_config.json":
            (pathlib.Path(folder) / file.name).symlink_to(file.resolve())
    config = json.loads((pathlib.Path(MODEL) / "tokenizer_config.json").read_text("utf-8"))
    (pathlib.Path(folder) / "tokenizer_config.json").write_text(
        json.dumps({**config, "chat_template": template}), "utf-8")
    return folder


def text(*options):
    return stint_json("run", MODEL, "-p", PROMPT, "-n", "24", *options)["text"]


class SameText(unittest.TestCase):
    def test_greedy_text_is_english_and_repeats(self):
        first = text()
        self.assertEqual(first, text())
        self.assertRegex(first, r"^ [a-z]+ [a-z]+ ")

    def test_threads_do_not_change_the_text(self):
        for options in ([], ["--temp", "0.9", "--top-p", "0.95", "--seed", "5"],
                        ["--temp", "1.2", "--top-k", "40", "--min-p", "0.02", "--kv", "f16"]):
            self.assertEqual(text("--threads", "1", *options), text("--threads", "2", *options))

    def test_batch_does_not_change_greedy_text(self):
        self.assertEqual(text("--chunk", "1"), text("--chunk", "256"))

    def test_seeds_differ_and_repeat(self):
        texts = [text("--temp", "1", "--seed", seed) for seed in (1, 2, 1)]
        self.assertEqual(texts[0], texts[2])
        self.assertNotEqual(texts[0], texts[1])

    def test_top_k_1_is_greedy(self):
        self.assertEqual(text("--temp", "2", "--top-k", "1", "--seed", "9"), text())

    def test_repeat_penalty_changes_the_text(self):
        long = ["-n", "80"]
        self.assertNotEqual(text(*long), text(*long, "--repeat-penalty", "1.5"))

    def test_streamed_text_is_the_json_text(self):
        streamed = stint("run", MODEL, "-p", PROMPT, "-n", "24")
        self.assertEqual(streamed.stdout, text() + "\n")
        self.assertRegex(streamed.stderr, r"^prompt \d+ tokens, [\d.]+ tokens/s; generated 24 "
                                          r"tokens, [\d.]+ tokens/s; peak memory [\d.]+ MiB\n$")


class BestOf(unittest.TestCase):
    """Several answers, of which the likeliest is shown."""

    def test_each_is_that_of_its_seed_and_the_likeliest_is_shown(self):
        drawn = ["--temp", "1.1", "--stop", ".", "-n", "30"]
        done = stint_json("run", MODEL, "-p", PROMPT, "--best-of", "4", "--seed", "7", *drawn)
        answers = done["answers"]
        scores = [one["mean_logprob"] for one in answers]
        self.assertEqual(done["best"], scores.index(max(scores)))
        self.assertEqual(done["text"], answers[done["best"]]["text"])
        for i, one in enumerate(answers):
            single = stint_json("run", MODEL, "-p", PROMPT, "--seed", str(7 + i), "--logprobs",
                                *drawn)
            self.assertEqual((one["text"], one["stop_reason"]),
                             (single["text"], single["stop_reason"]))
            mean = sum(token["logprob"] for token in single["logprobs"]) / len(single["logprobs"])
            self.assertAlmostEqual(one["mean_logprob"], mean, places=5)
        shown = stint("run", MODEL, "-p", PROMPT, "--best-of", "4", "--seed", "7", *drawn)
        self.assertEqual(shown.stdout, done["text"] + "\n")
        self.assertIn("(the best of 4 answers: -", shown.stderr)

    def test_steps_have_a_distribution(self):
        done = stint_json("run", MODEL, "-p", PROMPT, "-n", "12", "--ignore-eos")
        steps = done["step_seconds"]
        self.assertTrue(0 < steps["median"] <= steps["p90"] <= steps["p99"], steps)
        self.assertEqual(stint_json("run", MODEL, "-p", PROMPT, "-n", "1")["step_seconds"],
                         {"median": 0, "p90": 0, "p99": 0})

    def test_what_makes_no_sense_is_refused(self):
        for options in (["--best-of", "2"], ["--best-of", "0", "--temp", "1"],
                        ["--best-of", "2", "--temp", "1", "--show-bits"]):
            done = stint("run", MODEL, "-p", PROMPT, *options)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--best-of", done.stderr)


class Answer(unittest.TestCase):
    """What an answer can be asked for."""

    def test_stop_texts_end_it(self):
        whole = text("-n", "40")
        stop = whole[20:25]
        done = stint_json("run", MODEL, "-p", PROMPT, "-n", "40", "--stop", "never to be seen",
                          "--stop", stop)
        self.assertEqual(done["text"], whole[:whole.index(stop)])
        self.assertEqual(done["stop_reason"], "text")
        chat = stint("chat", MODEL, "-n", "40", "--seed", "0", text=PROMPT + "\n").stdout
        stop = chat[10:14]
        cut = stint("chat", MODEL, "-n", "40", "--seed", "0", "--stop", stop,
                    text=PROMPT + "\n").stdout
        self.assertEqual(cut, chat[:chat.index(stop)] + "\n")

    def test_schema_is_followed(self):
        schema = ('{"type":"object","required":["a"],"properties":{"a":{"enum":["x","yes",true]}},'
                  '"additionalProperties":false}')
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "schema.json"
            path.write_text(schema, encoding="utf-8")
            for given in (schema, path):
                done = stint_json("run", MODEL, "-p", PROMPT, "--json-schema", given)
                self.assertIn(json.loads(done["text"])["a"], ("x", "yes", True))
                self.assertEqual(done["stop_reason"], "eos")
        for wrong, why in (('{"contains":{}}', "'contains'"), ("{", "not valid JSON"),
                           ("/nowhere", "/nowhere")):
            done = stint("run", MODEL, "-p", PROMPT, "--json-schema", wrong)
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_biases_and_logprobs(self):
        options = ["run", MODEL, "-p", PROMPT, "-n", "5", "--logprobs", "--top-logprobs", "2"]
        tokens = stint_json(*options)["logprobs"]
        self.assertEqual(len(tokens), 5)
        for token in tokens:
            self.assertEqual(token["top"][0], {"id": token["id"], "logprob": token["logprob"]})
        banned = tokens[0]["id"]
        other = stint_json(*options, "--logit-bias", f"{banned}=-inf", "--logit-bias=7=0.5")
        self.assertNotIn(banned, [token["id"] for token in other["logprobs"]])
        self.assertEqual(other["logprobs"][0]["top"][0]["id"], banned)

    def test_penalties_change_the_text(self):
        for name in ("--presence-penalty", "--frequency-penalty"):
            self.assertNotEqual(text("-n", "80"), text("-n", "80", name, "2"))

    def test_a_tool_is_called(self):
        tools = ('[{"type":"function","function":{"name":"weather","parameters":{"type":"object",'
                 '"properties":{"sunny":{"type":"boolean"}},"required":["sunny"]}}}]')
        with tempfile.TemporaryDirectory() as folder:
            model = with_template(folder, "{% if tools %}{{ tools | length }}<tool_call>{% endif %}"
                                          "{% for m in messages %}{{ m.content }}{% endfor %}:")
            options = ["run", model, "--chat", "-p", "Sunny?", "--tools", tools]
            line = stint(*options, "--tool", "weather").stdout
            done = stint_json(*options, "--tool", "weather")
            self.assertEqual(json.loads(line), done["tool_calls"][0])
            self.assertEqual(done["tool_calls"][0]["name"], "weather")
            self.assertIn(done["tool_calls"][0]["arguments"]["sunny"], (True, False))
            self.assertEqual(done["text"], "")
            self.assertEqual(stint(*options, "--tool", "other").returncode, 1)
        done = stint_json("run", MODEL, "--chat", "-p", "x", "-n", "1", "--tools", tools)
        self.assertGreater(done["prompt_tokens"], 50)  # a system text tells of them

    def test_reasoning_is_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            model = with_template(folder, "{% for m in messages %}{{ m.content }}{% endfor %}"
                                          "{% if enable_thinking %}<think>{% endif %}")
            options = ["run", model, "--chat", "-p", PROMPT, "-n", "20"]
            done = stint_json(*options, "--thinking", "on")
            self.assertEqual(done["text"], "")
            self.assertGreater(len(done["reasoning"]), 10)
            shown = stint(*options, "--thinking", "on")
            self.assertEqual(shown.stdout, "\n")
            self.assertTrue(shown.stderr.startswith(done["reasoning"] + "\n"))
            self.assertNotIn("reasoning", stint_json(*options, "--thinking", "off"))

    def test_what_does_not_go_together_is_refused(self):
        for words, why in ((["--logprobs"], "--json"), (["--top-logprobs", "2"], "--logprobs"),
                           (["--tools", "[]"], "--chat"), (["--chat", "--tool", "x"], "--tools"),
                           (["--logit-bias", "5"], "TOKEN=VALUE"),
                           (["--logit-bias", "x=1"], "TOKEN=VALUE"),
                           (["--logit-bias", "5=1x"], "TOKEN=VALUE")):
            done = stint("run", MODEL, "-p", "x", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(why, done.stderr)


class Prompt(unittest.TestCase):
    def test_comes_from_option_file_or_pipe(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "prompt"
            path.write_text(PROMPT, encoding="utf-8")
            outs = {stint("run", MODEL, "-n", "6", "-p", PROMPT).stdout,
                    stint("run", MODEL, "-n", "6", "-f", path).stdout,
                    stint("run", MODEL, "-n", "6", "-f", "-", text=PROMPT).stdout,
                    stint("run", MODEL, PROMPT, "-n", "6").stdout,
                    stint("run", MODEL, "-n", "6", text=PROMPT).stdout}
        self.assertEqual(len(outs), 1)

    def test_the_newline_that_ends_piped_text_is_none_of_the_prompt(self):
        n = stint_json("run", MODEL, PROMPT, "-n", "1")["prompt_tokens"]
        for end, more in (("\n", 0), ("\r\n", 0), ("\n\n", 1)):
            piped = stint_json("run", MODEL, "-n", "1", text=PROMPT + end)
            self.assertEqual(piped["prompt_tokens"], n + more)

    def test_chat_template_is_the_checkpoint_s(self):
        plain = stint_json("run", MODEL, "-p", PROMPT, "-n", "1")
        chat = stint_json("run", MODEL, "-p", PROMPT, "-n", "1", "--chat")
        self.assertGreater(chat["prompt_tokens"], plain["prompt_tokens"])

    def test_a_context_beyond_the_model_s_is_said(self):
        most = stint_json("inspect", MODEL)["context"]
        for context, said in ((most, False), (most + 1, True)):
            done = stint("run", MODEL, PROMPT, "-n", "2", "--ctx", context)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(f"made for {most} tokens" in done.stderr, said, done.stderr)

    def test_longer_than_the_context_is_refused(self):
        done = stint("run", MODEL, "-p", "word " * 200, "--ctx", "32")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--ctx", done.stderr)


class Stop(unittest.TestCase):
    def test_length(self):
        self.assertEqual(stint_json("run", MODEL, "-p", "x", "-n", "3")["stop_reason"], "length")

    def test_context(self):
        done = stint_json("run", MODEL, "-p", PROMPT, "--ctx", "32", "--ignore-eos")
        self.assertEqual(done["stop_reason"], "context")
        self.assertIn(done["prompt_tokens"] + done["generated_tokens"], (32, 33))

    def test_memory_bound(self):
        done = stint("run", MODEL, "-p", "x", "--memory", "1M")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1)

    def start(self):
        process = subprocess.Popen([COMMAND, "run", MODEL, "-p", PROMPT, "--ignore-eos"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL)
        self.assertEqual(len(process.stdout.read(20)), 20)  # it generates now
        return process

    def test_interrupt_ends_the_text_with_its_figures(self):
        process = self.start()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(out.endswith(b"\n"))
        self.assertIn(b"generated", err)

    def test_a_reader_that_leaves_ends_the_text(self):
        process = self.start()
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn(b"closed by its reader", err)

    def test_second_interrupt_ends_the_program(self):
        process = self.start()
        # Stopped, it cannot answer the first one in between.
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
        try:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        except ProcessLookupError:
            process.communicate()
        self.assertIn(process.returncode, (0, 130, -signal.SIGINT))


if __name__ == "__main__":
    os.environ.pop("STINT_CPU", None)
    unittest.main()
