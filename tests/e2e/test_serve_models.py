#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`stint serve` with several models: loaded when a request names one, unloaded when idle or when
the memory is needed."""
import json
import pathlib
import subprocess
import tempfile
import threading
import time
import unittest

from command import COMMAND, MODEL
from server import Server, events

PROMPT = {"prompt": "The old man said", "max_tokens": 8, "temperature": 0}


class Several(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "org").mkdir()
        for name in ("a", "org/b", "c"):
            (cls.folder / name).symlink_to(MODEL)
        (cls.folder / "broken.gguf").write_bytes(b"GGUF and nothing else")
        (cls.folder / "half.gguf.part").write_bytes(b"GGUF")

    def serve(self, *options):
        server = Server("--threads", 1, "--ctx", 256, *options, model=self.folder)
        server.__enter__()
        self.addCleanup(server.__exit__)
        return server

    @staticmethod
    def states(server):
        return {model["id"]: model["stint"]["state"]
                for model in json.loads(server.get("/v1/models"))["data"]}

    def wait_for(self, server, name, state):
        until = time.monotonic() + 60
        while self.states(server)[name] != state:
            self.assertLess(time.monotonic(), until, self.states(server))
            time.sleep(0.02)


class TestNames(Several):
    def test_all_are_listed_and_none_is_loaded(self):
        server = self.serve()
        self.assertEqual(self.states(server), {"a": "unloaded", "broken": "unloaded",
                                               "c": "unloaded", "org/b": "unloaded"})
        tags = json.loads(server.get("/api/tags"))["models"]
        self.assertEqual({tag["name"] for tag in tags}, {"a", "broken", "c", "org/b"})
        self.assertEqual(json.loads(server.get("/api/ps")), {"models": []})
        health = server.health()
        self.assertEqual(health["models"], {"served": 4, "loaded": 0, "loading": 0})
        self.assertEqual(json.loads(server.get("/stint/last")), None)
        self.assertEqual(json.loads(server.get("/v1/models/org/b"))["id"], "org/b")

    def test_a_request_loads_the_model_that_it_names(self):
        server = self.serve()
        alone = server.complete(**PROMPT, model="a")
        self.assertEqual(alone["model"], "a")
        self.assertEqual(self.states(server)["a"], "loaded")
        self.assertEqual(self.states(server)["org/b"], "unloaded")
        other = server.complete(**PROMPT, model="org/b")
        self.assertEqual(other["choices"][0]["text"], alone["choices"][0]["text"])
        self.assertEqual(server.health()["slots"], 8)
        self.assertEqual([tag["name"] for tag in json.loads(server.get("/api/ps"))["models"]],
                         ["a", "org/b"])
        text = server.get("/metrics")
        self.assertIn('stint_generated_tokens_total{model="a"} 8\n', text)
        self.assertIn('stint_generated_tokens_total{model="c"} 0\n', text)
        self.assertIn('stint_model_loaded{model="org/b"} 1\n', text)
        info = json.loads(server.get("/v1/models/a"))["stint"]
        self.assertEqual((info["context"], info["slots"]), (256, 4))

    def test_each_protocol_names_its_model(self):
        server = self.serve()
        message = [{"role": "user", "content": "Hello"}]
        cases = (("/v1/chat/completions", {"messages": message, "max_tokens": 2}),
                 ("/v1/responses", {"input": "Hello", "max_output_tokens": 2}),
                 ("/v1/messages", {"messages": message, "max_tokens": 2}),
                 ("/api/chat", {"messages": message, "stream": False,
                                "options": {"num_predict": 2}}),
                 ("/v1/embeddings", {"input": "Hello"}),
                 ("/tokenize", {"content": "Hello"}))
        for path, body in cases:
            with self.subTest(path):
                status, answer = server.post(path, model="c", **body)
                self.assertEqual(status, 200, answer)
                status, answer = server.post(path, model="nobody", **body)
                self.assertEqual(status, 404, answer)
                status, answer = server.post(path, **body)
                self.assertEqual(status, 400, answer)
        status, answer = server.post("/api/chat", model="c:latest", messages=message, stream=False,
                                     options={"num_predict": 2})
        self.assertEqual((status, answer["model"]), (200, "c"))
        self.assertEqual(server.post("/api/show", model="c")[0], 200)
        self.assertEqual(self.states(server)["a"], "unloaded")

    def test_unknown_names_are_refused_with_those_that_there_are(self):
        server = self.serve()
        status, answer = server.post("/v1/completions", **PROMPT, model="x")
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))
        for name in ("'a'", "'c'", "'org/b'"):
            self.assertIn(name, answer["error"]["message"])
        self.assertEqual(server.ask("GET", "/v1/models/x")[0], 404)
        self.assertEqual(server.ask("GET", "/props")[0], 400)
        self.assertEqual(json.loads(server.get("/props?model=a"))["total_slots"], 4)
        self.assertEqual(json.loads(server.get("/stint/last?model=org/b")), None)

    def test_a_model_that_cannot_be_loaded_is_told(self):
        server = self.serve()
        for _ in range(2):
            status, answer = server.post("/v1/completions", **PROMPT, model="broken")
            self.assertEqual((status, answer["error"]["param"]), (500, "model"), answer)
            self.assertIn("cannot be loaded", answer["error"]["message"])
        self.assertEqual(server.complete(**PROMPT, model="a")["model"], "a")

    def test_command_line(self):
        def fails(*words):
            done = subprocess.run([COMMAND, "serve", "--port", "0", *map(str, words)], text=True,
                                  capture_output=True, timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0)
            return done.stderr
        self.assertIn("would both be called 'c'", fails(self.folder / "c", self.folder / "c"))
        self.assertIn("--name is for one model", fails(self.folder, "--name", "x"))
        with tempfile.TemporaryDirectory() as empty:
            self.assertIn("no model in this folder", fails(empty))
        self.assertIn("No such file", fails(self.folder / "a", self.folder / "nothing"))
        with Server("--threads", 1, self.folder / "a", model=self.folder / "c") as server:
            self.assertEqual(set(self.states(server)), {"a", "c"})


class TestMemory(Several):
    """Room for one of them."""

    def test_one_makes_room_for_the_other(self):
        server = self.serve("--memory", "64M", "--idle", 3600)
        texts = [server.complete(**PROMPT, model=name)["choices"][0]["text"]
                 for name in ("a", "c", "a")]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0], texts[2])
        self.assertEqual(self.states(server)["c"], "unloaded")
        self.assertIn('stint_model_loads_total{model="a"} 2\n', server.get("/metrics"))
        self.assertIn('stint_generated_tokens_total{model="a"} 16\n', server.get("/metrics"))

    def test_a_running_answer_is_not_disturbed(self):
        server = self.serve("--memory", "64M")
        plain = server.complete("Once", max_tokens=200, temperature=0, ignore_eos=True, model="a")
        with server.open_stream(prompt="Once", max_tokens=200, temperature=0, ignore_eos=True,
                                model="a") as stream:
            begun = stream.recv(1 << 16)
            others = []
            thread = threading.Thread(
                target=lambda: others.append(server.complete(**PROMPT, model="c")))
            thread.start()
            self.wait_for(server, "c", "loading")
            while b"[DONE]" not in begun:
                begun += stream.recv(1 << 16)
            thread.join()
        streamed = "".join(event["choices"][0]["text"]
                           for event in events(dechunked(begun)) if event["choices"])
        self.assertEqual(streamed, plain["choices"][0]["text"])
        self.assertEqual(others[0]["model"], "c")

    def test_draining_answers_whoever_waits_for_a_model(self):
        server = self.serve("--memory", "64M")
        server.complete(**PROMPT, model="a")
        answers = []
        threads = []
        for name, arrived in (("a", lambda: server.health()["busy"] > 0),
                              ("c", lambda: self.states(server)["c"] != "unloaded"),
                              ("org/b", lambda: self.states(server)["org/b"] != "unloaded")):
            threads.append(threading.Thread(target=lambda name=name: answers.append(
                server.post("/v1/completions", prompt="Once", max_tokens=60, ignore_eos=True,
                            model=name))))
            threads[-1].start()
            while threads[-1].is_alive() and not arrived():
                time.sleep(0.01)
        server.process.terminate()
        for thread in threads:
            thread.join()
        self.assertEqual([status for status, _ in answers], [200] * 3, answers)
        self.assertEqual(server.end(), 0)


class TestIdle(Several):
    def test_an_idle_model_is_unloaded_and_comes_back(self):
        server = self.serve("--idle", 1)
        first = server.complete(**PROMPT, model="a")
        self.wait_for(server, "a", "unloaded")
        self.assertEqual(server.complete(**PROMPT, model="a")["choices"], first["choices"])

    def test_a_single_model_too(self):
        with Server("--threads", 1, "--idle", 1) as server:
            self.wait_for(server, MODEL.name, "unloaded")
            self.assertEqual(server.health()["slots"], 0)
            self.assertEqual(server.complete(**PROMPT)["model"], MODEL.name)


def dechunked(reply):
    """The body of a reply in chunks."""
    body, out = reply.split(b"\r\n\r\n", 1)[1], b""
    while body:
        size, body = body.split(b"\r\n", 1)
        n = int(size, 16)
        out, body = out + body[:n], body[n + 2:]
        if n == 0 or len(body) < 3:
            break
    return out


if __name__ == "__main__":
    unittest.main()
