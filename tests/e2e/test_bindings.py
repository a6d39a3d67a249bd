#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package writes what the command writes, piece by piece, ends when its reader does,
raises what fails, and survives every order of closing and every thread."""
import array
import gc
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from built import LIBRARY, skip_under_sanitizers
from command import MODEL, PROMPT, SOURCE, stint as command, stint_json

os.environ["STINT_LIBRARY"] = str(LIBRARY)
sys.path.insert(0, str(SOURCE / "bindings/python"))
skip_under_sanitizers()

import stint  # noqa: E402 pylint: disable=wrong-import-position,wrong-import-order

DRAWN = stint.Sampling(temperature=0.9, top_k=50, top_p=0.95, min_p=0.01, repeat_penalty=1.1,
                       repeat_last=32, seed=11)
OPTIONS = ("--temp", 0.9, "--top-k", 50, "--top-p", 0.95, "--min-p", 0.01, "--repeat-penalty", 1.1,
           "--repeat-last", 32, "--seed", 11)


class WithModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = stint.Model.open(MODEL)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()


TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"sunny": {"type": "boolean"}}, "required": ["sunny"]}}}


class WhatCanBeAskedFor(WithModel):
    def generate(self, **options):
        with self.model.session() as session:
            generation = session.generate(PROMPT, **options)
            return generation.text(), generation

    def test_stop_texts(self):
        text, _ = self.generate(max_tokens=40)
        stop = text[20:25]
        cut, generation = self.generate(max_tokens=40, stop=["never to be seen", stop])
        self.assertEqual(cut, text[:text.index(stop)])
        self.assertEqual(generation.result.stop_reason, "text")
        self.assertEqual(self.generate(max_tokens=40, stop=stop)[0], cut)

    def test_logprobs_and_biases(self):
        _, generation = self.generate(max_tokens=5, logprobs=2)
        self.assertEqual([one.id for one in generation.logprobs], generation.ids)
        for one in generation.logprobs:  # greedy
            self.assertEqual(one.top[0], (one.id, one.logprob))
            self.assertEqual(len(one.top), 2)
        banned = generation.ids[0]
        drawn = stint.Sampling(logit_bias={banned: float("-inf")})
        _, other = self.generate(max_tokens=5, logprobs=2, sampling=drawn)
        self.assertNotIn(banned, other.ids)
        self.assertEqual(other.logprobs[0].top[0][0], banned)
        self.assertEqual(self.generate(max_tokens=5)[1].logprobs, [])

    def test_a_schema(self):
        schema = {"type": "object", "properties": {"a": {"enum": ["x", "yes", True]}},
                  "required": ["a"]}
        for given in (schema, json.dumps(schema)):
            text, generation = self.generate(json_schema=given)
            self.assertIn(json.loads(text)["a"], ["x", "yes", True])
            self.assertEqual(generation.result.stop_reason, "eos")
        with self.assertRaises(stint.UnsupportedError):
            self.generate(json_schema={"contains": {}})
        with self.assertRaises(stint.ArgumentError):
            self.generate(json_schema="{")

    def test_tools_without_a_template_for_them_are_told_in_a_system_text(self):
        question = [{"role": "user", "content": "Is it sunny?"}]
        lengths = []
        for tools in ([TOOL], None):
            with self.model.session() as session:
                session.chat(question, tools=tools, max_tokens=1).text()
                lengths.append(len(session))
        self.assertGreater(lengths[0], lengths[1])


class WithAToolTemplate(unittest.TestCase):
    """The bundled model's weights with a template that knows tools and reasoning."""
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(cls.folder.name)
        for file in pathlib.Path(MODEL).iterdir():
            if file.name not in ("tokenizer_config.json", "chat_template.jinja"):
                (path / file.name).symlink_to(file.resolve())
        config = json.loads((pathlib.Path(MODEL) / "tokenizer_config.json").read_text("utf-8"))
        config["chat_template"] = (
            "{% if tools %}Tools: {{ tools | length }}<tool_call>\n{% endif %}"
            "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
            "{% if enable_thinking %}<think>{% endif %}")
        (path / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
        cls.model = stint.Model.open(path)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()
        cls.folder.cleanup()

    def ask(self, **options):
        with self.model.session() as session:
            answer = session.chat([{"role": "user", "content": "Is it sunny?"}], **options)
            return answer.text(), answer

    def test_a_required_call(self):
        text, answer = self.ask(tools=[TOOL], tool="weather", max_tokens=200)
        self.assertEqual((text, answer.result.tool_calls), ("", 1))
        self.assertEqual(answer.tool_calls[0].name, "weather")
        self.assertIn(answer.tool_calls[0].arguments["sunny"], (True, False))

    def test_reasoning(self):
        text, answer = self.ask(thinking=True, max_tokens=20)
        self.assertEqual(text, "")
        self.assertGreater(len(answer.reasoning), 10)
        self.assertEqual(answer.result.reasoning_tokens, 20)
        text, answer = self.ask(thinking=False, max_tokens=20)
        self.assertGreater(len(text), 10)
        self.assertEqual(answer.reasoning, "")


class SameAsTheCommand(WithModel):
    def test_text(self):
        for sampling, options in ((stint.Sampling(), ()), (DRAWN, OPTIONS)):
            done = stint_json("run", MODEL, "-p", PROMPT, "-n", 40, *options)
            with self.model.session() as session:
                generation = session.generate(PROMPT, max_tokens=40, sampling=sampling)
                pieces = list(generation)
            self.assertEqual("".join(pieces), done["text"])
            self.assertGreater(len(pieces), 20)
            self.assertEqual(generation.result.stop_reason, done["stop_reason"])
            self.assertEqual(generation.result.prompt_tokens, done["prompt_tokens"])
            self.assertEqual(generation.result.generated_tokens, len(generation.ids))

    def test_chat(self):
        done = stint_json("run", MODEL, "--chat", "-p", "Who are you?", "-n", 20)
        with self.model.session() as session:
            message = {"role": "user", "content": "Who are you?"}
            self.assertEqual(session.chat([message], max_tokens=20).text(), done["text"])

    def test_description(self):
        info, shown = self.model.describe(), stint_json("inspect", MODEL)
        self.assertEqual(info.architecture, shown["architecture"])
        self.assertEqual((info.exec, info.vocab, info.source), ("float", 4096, "huggingface"))
        self.assertEqual(stint.version(), command("--version").stdout.split()[1])

    def test_ids(self):
        text = "It was, as “ever”, a cold night.\n" * 3
        shown = command("tokenize", MODEL, text=text).stdout.split()
        ids = self.model.tokenize(text)
        self.assertEqual(ids, [int(word) for word in shown])
        self.assertEqual(self.model.detokenize(ids), text)
        self.assertEqual(self.model.tokenize(""), [])
        self.assertEqual(self.model.detokenize([]), "")
        self.assertEqual(len(self.model.tokenize("x", add_bos=True)),
                         len(self.model.tokenize("x")) + 1)

    def test_prepare(self):
        seen = []
        with tempfile.TemporaryDirectory() as folder:
            ours = f"{folder}/ours.stint"
            summary = stint.prepare(MODEL, ours, tokens=300, outliers="none", bits=(3, 4),
                                    progress=lambda what, done, total: seen.append((done, total)))
            with stint.Model.open(ours) as model, model.session(schedule="uniform:3") as session:
                self.assertEqual((model.describe().exec, model.describe().nested_low), ("npu", 3))
                generation = session.generate(PROMPT, max_tokens=8)
                self.assertNotEqual(generation.text(), "")
                self.assertEqual(generation.result.average_bits, 3)
            self.assertEqual(summary.bytes, os.path.getsize(ours))
            self.assertEqual((summary.n_tokens, summary.n_shadowed), (300, 0))
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(seen[-1][0], seen[-1][1])


class Streaming(WithModel):
    def test_the_session_holds_no_token_that_was_not_asked_for(self):
        with self.model.session() as session:
            generation = session.generate(PROMPT)
            first = [next(generation) for _ in range(5)]
            n = len(generation.ids)
            generation.close()
            self.assertEqual(generation.result.stop_reason, "callback")
            self.assertEqual(list(generation), [])
            self.assertEqual(len(generation.ids), n)
            self.assertEqual(len(session), len(session.tokens))
            # What follows is what would have followed.
            rest = session.generate(generation.ids[-1:], max_tokens=10).text()
            session.truncate(0)
            whole = session.generate(PROMPT, max_tokens=n + 10).text()
        self.assertEqual("".join(first) + rest, whole)

    def test_a_reader_that_leaves_ends_it(self):
        with self.model.session() as session:
            for piece in session.generate(PROMPT, ignore_eos=True):
                if "." in piece:
                    break
            gc.collect()  # of Pythons that do not count references
            self.assertNotEqual(session.generate("And", max_tokens=2).text(), "")

    def test_eval_is_refused_meanwhile(self):
        with self.model.session() as session:
            with session.generate(PROMPT) as generation:
                next(generation)
                for work in (lambda: session.eval([1]), lambda: session.truncate(0),
                             lambda: session.generate("x")):
                    self.assertRaises(RuntimeError, work)
            session.eval([1])

    def test_cancel_from_another_thread(self):
        with self.model.session() as session:
            generation = session.generate(PROMPT, ignore_eos=True)
            next(generation)
            threading.Thread(target=session.cancel).start()
            generation.text()
            self.assertEqual(generation.result.stop_reason, "canceled")
            session.cancel()  # nothing runs: nothing happens
            self.assertEqual(len(session.eval([1])), 4096)

    def test_chat_computes_only_what_is_new(self):
        messages = [{"role": "user", "content": "It was a cold evening in November."}]
        with self.model.session() as session, self.model.session() as fresh:
            answer = session.chat(messages, max_tokens=12).text()
            messages += [{"role": "assistant", "content": answer},
                         {"role": "user", "content": "And then?"}]
            second = session.chat(messages, max_tokens=12)
            text = second.text()
            again = fresh.chat(messages, max_tokens=12)
            self.assertEqual(text, again.text())
            self.assertLess(second.result.prompt_tokens, again.result.prompt_tokens)


class Logits(WithModel):
    def test_are_those_of_the_likeliest_text(self):
        ids = self.model.tokenize(PROMPT, add_bos=True)
        with self.model.session() as session:
            last = session.eval(ids)
            self.assertEqual((last.format, last.shape), ("f", (4096,)))
            session.truncate(0)
            rows = session.eval_all(ids)
            self.assertEqual(rows.shape, (len(ids), 4096))
            # One row and many are added up in another order.
            self.assertLess(max(abs(a - b) for a, b in zip(rows.tolist()[-1], last)), 1e-3)
            self.assertEqual(session.tokens, ids)
            session.truncate(0)
            generation = session.generate(ids, max_tokens=1)
            generation.text()
            self.assertEqual(generation.ids, [max(range(4096), key=last.__getitem__)])

    def test_append_and_truncate_keep_count(self):
        with self.model.session(context=64) as session:
            self.assertEqual((len(session), session.context), (0, 64))
            session.append(array.array("i", [1, 2, 3]))
            session.append([])
            session.truncate(2)
            self.assertEqual((len(session), session.tokens), (2, [1, 2]))
            self.assertRaises(stint.ArgumentError, session.truncate, 3)
            self.assertRaises(ValueError, session.truncate, -1)
            self.assertRaises(ValueError, session.eval, [])


class Kept(WithModel):
    def test_a_saved_session_goes_on(self):
        with tempfile.TemporaryDirectory() as folder, self.model.session() as first, \
                self.model.session() as second:
            first.generate(PROMPT, max_tokens=8).text()
            first.save(f"{folder}/kept")
            second.load(f"{folder}/kept")
            self.assertEqual(second.tokens, first.tokens)
            again = [session.generate("He", max_tokens=8).text() for session in (first, second)]
            self.assertEqual(again[0], again[1])
            self.assertRaises(stint.FileError, second.load, f"{folder}/other")
            pathlib.Path(folder, "other").write_text("{}", encoding="utf-8")
            self.assertRaises(stint.FormatError, second.load, f"{folder}/other")


class Errors(WithModel):
    def test_statuses_are_classes(self):
        with self.assertRaises(stint.FileError) as caught:
            stint.Model.open("/nowhere/at/all")
        self.assertEqual(caught.exception.status, -3)
        self.assertIn("/nowhere/at/all", str(caught.exception))
        with self.assertRaises(stint.ArgumentError) as caught:
            stint.Model.open_preset("no-such-preset")
        self.assertIsInstance(caught.exception, ValueError)
        with self.model.session(context=16) as session:
            self.assertRaises(stint.LimitError, session.eval, [1] * 17)
            self.assertRaises(stint.ArgumentError, session.eval, [4096])
            generation = session.generate([1] * 17)
            self.assertRaises(stint.LimitError, next, generation)
            self.assertEqual(list(generation), [])
            self.assertRaises(stint.ArgumentError, session.generate([]).text)
        self.assertRaises(stint.UnsupportedError, stint.Model.open, MODEL, exec="npu")

    def test_values_out_of_range_do_not_wrap(self):
        with self.model.session() as session:
            self.assertRaises(ValueError, session.generate, "x", max_tokens=1 << 32)
            self.assertRaises(ValueError, session.generate, "x",
                              sampling=stint.Sampling(top_k=-1))
            self.assertRaises(ValueError, session.generate, "x", logprobs=-1)
            self.assertRaises(ValueError, session.generate, "x",
                              sampling=stint.Sampling(logit_bias={1 << 40: 1.0}))
            self.assertRaises(OverflowError, session.eval, [1 << 32])
            self.assertRaises(OverflowError, session.generate, [1 << 32])
            session.eval([1])  # nothing holds it
        self.assertRaises(ValueError, self.model.session, threads=-1)
        self.assertRaises(stint.ArgumentError, self.model.session, kv="f64")
        self.assertRaises(ValueError, stint.Model.open, "models\0novels")

    def test_closed_is_closed(self):
        session = self.model.session()
        session.close()
        session.close()
        session.cancel()
        for work in (lambda: len(session), lambda: session.generate("x"),
                     lambda: session.eval([1])):
            self.assertRaises(ValueError, work)
        model = stint.Model.open(MODEL)
        model.close()
        self.assertRaises(ValueError, model.describe)


class Lifetimes(unittest.TestCase):
    def test_a_session_keeps_its_model(self):
        model = stint.Model.open(MODEL)
        session = model.session()
        model.close()
        del model
        gc.collect()
        generation = session.generate(PROMPT, max_tokens=5)
        del session
        self.assertNotEqual(generation.text(), "")

    def test_closing_a_session_ends_its_generation(self):
        with stint.Model.open(MODEL) as model:
            session = model.session()
            generation = session.generate(PROMPT, ignore_eos=True)
            next(generation)
            session.close()
            self.assertEqual(list(generation), [])

    def test_cycles_of_garbage(self):
        for _ in range(5):
            model = stint.Model.open(MODEL)
            session = model.session()
            knot = [model, session, session.generate("x", ignore_eos=True)]
            knot.append(knot)
        del model, session, knot
        gc.collect()


class Threads(WithModel):
    def test_two_sessions_of_one_model(self):
        with self.model.session() as one, self.model.session() as two:
            left, right = one.generate(PROMPT, max_tokens=12), two.generate("The", max_tokens=12)
            woven = ["", ""]
            for a, b in zip(left, right):
                woven[0] += a
                woven[1] += b
            woven[0] += left.text()
            woven[1] += right.text()
        with self.model.session() as session:
            self.assertEqual(session.generate(PROMPT, max_tokens=12).text(), woven[0])
            session.truncate(0)
            self.assertEqual(session.generate("The", max_tokens=12).text(), woven[1])

    def test_a_session_per_thread(self):
        texts, failed = {}, []

        def work(i):
            try:
                with self.model.session(threads=1) as session:
                    sampling = stint.Sampling(temperature=1.0, seed=i % 2)
                    texts[i] = session.generate(PROMPT, max_tokens=20, sampling=sampling).text()
                with self.assertRaises(stint.FileError) as caught:
                    stint.Model.open(f"/nowhere/{i}")
                self.assertIn(f"/nowhere/{i}", str(caught.exception))
            except BaseException as error:  # shown by the test
                failed.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(len(set(texts.values())), 2)
        self.assertEqual({texts[0]}, {texts[2], texts[4]})

    def test_one_session_admits_one_thread(self):
        busy, done = 0, 0
        with self.model.session() as session:
            def work():
                nonlocal busy, done
                for _ in range(20):
                    try:
                        session.eval([1, 2])
                        done += 1
                    except RuntimeError:
                        busy += 1

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(len(session), 2 * done)
        self.assertEqual(busy + done, 80)
        self.assertGreater(done, 0)


INTERRUPTED = """
import os, signal, stint, sys, threading
model = stint.Model.open(sys.argv[1])
session = model.session(threads=1)
long = [i % 4000 for i in range(1500)]
def interrupt(): os.kill(os.getpid(), signal.SIGINT)
def expect(work):
    try: work()
    except KeyboardInterrupt: print("interrupted")
def reads():
    for piece in session.generate("x", ignore_eos=True): interrupt()
def evaluates():
    threading.Timer(0.02, interrupt).start()
    while True:
        session.truncate(0)
        session.eval(long)
def prepares():
    progress = lambda *_: interrupt()
    stint.prepare(sys.argv[1], sys.argv[2], progress=progress, threads=1)
expect(reads)
expect(evaluates)
expect(prepares)
print(os.path.exists(sys.argv[2]), len(session.eval([1])))
endless = session.generate("x", ignore_eos=True)
print(bool(next(endless)))
"""


class Interrupts(unittest.TestCase):
    def test_each_long_call_and_the_end_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", INTERRUPTED, MODEL, f"{folder}/p.stint"],
                                  env={**os.environ, "PYTHONPATH": str(SOURCE / "bindings/python")},
                                  capture_output=True, encoding="utf-8", timeout=1200, check=False)
        self.assertEqual(done.stdout, "interrupted\n" * 3 + "False 4096\nTrue\n", done.stderr)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_progress_may_raise(self):
        def refuse(*_):
            raise LookupError("enough")
        with tempfile.TemporaryDirectory() as folder:
            self.assertRaisesRegex(LookupError, "enough", stint.prepare, MODEL, f"{folder}/p",
                                   progress=refuse)
            self.assertEqual(os.listdir(folder), [])


class WithoutTokenizer(unittest.TestCase):
    def test_says_so_and_takes_ids(self):
        lines = []
        stint.set_log(lambda level, text: lines.append((level, text)), "info")
        try:
            with tempfile.TemporaryDirectory() as folder:
                for name in ("config.json", "model.safetensors"):
                    os.symlink(MODEL / name, f"{folder}/{name}")
                model = stint.Model.open(folder)
        finally:
            stint.set_log(None)
        self.assertEqual(lines, [("info", f"{folder}: no tokenizer")])
        with model, model.session() as session:
            self.assertRaises(stint.UnsupportedError, session.generate, "x")
            self.assertRaises(stint.UnsupportedError, model.tokenize, "x")
            generation = session.generate([1, 2], max_tokens=3)
            self.assertEqual(list(generation), [])
            self.assertEqual(len(generation.ids), 3)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main()
