#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that two programs in a row could cut at different places: whatever is not plain ends the
connection, so that what follows it is never taken for a request; what is plain gives the same
replies however its bytes arrive. Random requests come last; STINT_CI_LONG=1 tries 20,000, and
STINT_SEED makes others."""
import json
import os
import pathlib
import random
import re
import socket
import tempfile
import threading
import time
import unittest

from built import setting
from command import MODEL, stint
from server import Server, read_all

LONG = os.environ.get("STINT_CI_LONG") == "1"
SEED = int(os.environ.get("STINT_SEED", "1"))
POST = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
SMUGGLED = b"GET /props HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
BODY = b'{"prompt":"It was","max_tokens":1,"temperature":0}'
END = b"\r\n0\r\n\r\n"


def statuses(reply):
    """Of all responses in a row."""
    return [int(code) for code in re.findall(rb"(?:^|[\n}])HTTP/1\.1 (\d{3}) ", reply)]


def chunk(data, size=None):
    return (b"%x" % len(data) if size is None else size) + b"\r\n" + data + b"\r\n"


class Shared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--slots", "2", "--timeout", "1").__enter__()
        cls.addClassCleanup(cls.server.__exit__)


class Cut(Shared):
    def refused(self, data):
        """At most one response, and not to the request behind."""
        reply = self.server.raw(data + SMUGGLED)
        self.assertLessEqual(len(statuses(reply)), 1, (data[:200], reply[:400]))
        self.assertNotIn(b" 200 OK", reply, data[:200])

    def test_sizes_of_chunks(self):
        n = b"%x" % len(BODY)
        for size in (b"0x" + n, b"-" + n, b"+" + n, b" " + n, b"g", b"", n + b" x", b"1_0",
                     b"f" * 16, b"f" * 17, b"1" + b"0" * 16 + n, b"\xb2", n + b"\0"):
            self.refused(CHUNKED + chunk(BODY, size) + b"0\r\n\r\n")

    def test_chunks_that_end_elsewhere(self):
        for data in (chunk(BODY)[:-2] + b"0\r\n\r\n", chunk(BODY)[:-2] + b"xx0\r\n\r\n",
                     chunk(BODY, b"5") + b"0\r\n\r\n", chunk(BODY, b"%x" % (len(BODY) + 1)) + END):
            self.refused(CHUNKED + data)

    def test_lines_that_are_folded(self):
        for head in (b"Content-Length: 0\r\n %d" % len(BODY), b"X: a\r\n Content-Length: 5",
                     b"Content-Length:\r\n 5", b"Transfer-Encoding:\r\n chunked",
                     b"Transfer-Encoding: x\r\n\tchunked", b"X: a\r\n\tb: c"):
            self.refused(POST + head + b"\r\n\r\n")

    def test_first_lines(self):
        for line in (b"GET /props", b"GET /props HTTP/1.1 x",
                     b"GET /props HTTP/11", b"GET /props http/1.1", b"GET /props HTTP/2.0",
                     b"PRI * HTTP/2.0", b"GET /props HTTP/0.9", b"GET\x0b/props HTTP/1.1",
                     b"\x16\x03\x01\x02\x00\x01"):
            self.refused(line + b"\r\nHost: localhost\r\n\r\n")


class Plain(Shared):
    ROW = (POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
           + CHUNKED + chunk(BODY[:10]) + chunk(BODY[10:], b"%X" % (len(BODY) - 10))
           + b"0\r\n\r\n" + b"HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
           + b"GET /nowhere/at/all HTTP/1.1\r\nHost: localhost\r\n\r\n" + SMUGGLED)

    def test_a_row_however_it_arrives(self):
        wanted = [200, 200, 200, 404, 200]
        self.assertEqual(statuses(self.server.raw(self.ROW)), wanted)
        chance = random.Random(SEED)
        for _ in range(200 if LONG else 12):
            cuts = sorted(chance.sample(range(1, len(self.ROW)), chance.choice((1, 2, 5))))
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for begin, end in zip([0, *cuts], [*cuts, len(self.ROW)]):
                    client.sendall(self.ROW[begin:end])
                    time.sleep(0.002)
                self.assertEqual(statuses(read_all(client)), wanted, cuts)

    def test_names_of_chunks_and_trailers_are_skipped(self):
        reply = self.server.raw(CHUNKED + chunk(BODY, b"%x;name=value" % len(BODY))
                                + b"0\r\nX-Trailer: a\r\n\r\n" + SMUGGLED)
        self.assertEqual(statuses(reply), [200, 200], reply[:400])


class Random(Shared):
    PIECES = [b"\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b":", b"0\r\n\r\n", b"\r\n\r\n", b"5\r\n",
              b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Expect: 100-continue",
              b"Host: a", b"HTTP/1.1", b"HTTP/1.0", b"GET ", b"POST ", b"%00", b"\xff", b"{",
              b"Connection: keep-alive", b"Connection: close", b"Upgrade: h2c", b"A" * 9000]

    def made(self, chance):
        data = bytearray(chance.choice((Plain.ROW, CHUNKED + chunk(BODY) + END, SMUGGLED)))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            if chance.random() < 0.4:
                del data[at:at + chance.randint(1, 9)]
            data[at:at] = chance.choice(self.PIECES)
        return bytes(data)

    def test_they_get_an_answer_or_an_end(self):
        chance = random.Random(SEED)
        for _ in range(20000 if LONG else 150):
            data = self.made(chance)
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as client:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                reply = read_all(client)
            self.assertTrue(reply == b"" or re.match(rb"HTTP/1\.[01] \d{3} ", reply), data)
        self.assertEqual(self.server.health()["busy"], 0)


class Memory(unittest.TestCase):
    """The worst request of each route, one after the other, under a bound."""
    MIB, BODY_MIB = 60, 24  # one body, read twice, and its values come on top
    KEPT_MIB = 6  # what is left of them all: tables of tokens, stacks

    def worst(self):
        long = "a " * 2000000
        many = [1] * 600000
        deep = {"type": "object", "properties": {f"p{i}": {"enum": list(range(50))}
                                                 for i in range(2000)}}
        chat = [{"role": "user", "content": "a"}]
        return [("/v1/completions", {"prompt": long}), ("/v1/completions", {"prompt": many}),
                ("/v1/completions", {"prompt": [[]] * 1000000}),
                ("/v1/completions", {"prompt": "a", "x": [{}] * 1000000}),
                ("/v1/completions", {"prompt": "a", "stop": ["b" * 100000] * 20}),
                ("/v1/completions", {"prompt": "a", "logit_bias": {str(i): 1 for i in
                                                                   range(200000)}}),
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": long}]}),
                ("/v1/chat/completions", {"messages": chat * 80000}),
                ("/v1/chat/completions", {"messages": chat, "max_tokens": 1, "response_format": {
                    "type": "json_schema", "json_schema": {"name": "x", "schema": deep}}}),
                ("/v1/slots/0/save", {"name": long}), ("/v1/slots/0/restore", {"name": long}),
                ("/v1/completions", {"prompt": "a", "grammar": "root::=" + "[a-b]" * 700000}),
                ("/v1/messages", {"model": "m", "max_tokens": 1, "system": long,
                                  "messages": chat}),
                ("/v1/responses", {"input": [{"role": "user", "content": [
                    {"type": "input_text", "text": "a"}] * 9000}]}),
                ("/v1/chat/completions", {"messages": chat + [
                    {"role": "assistant", "content": None, "tool_calls": [
                        {"id": "a", "type": "function", "function": {
                            "name": "f", "arguments": "{}"}}] * 9000}]}),
                ("/api/generate", {"model": "m", "prompt": long}),
                ("/infill", {"input_prefix": long[:1900000], "input_suffix": long[:1900000]}),
                ("/v1/embeddings", {"input": ["a"] * 150000}), ("/v1/embeddings", {"input": long}),
                ("/tokenize", {"content": long}), ("/detokenize", {"tokens": many})]

    def memory(self, server, field):
        text = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(rf"{field}:\s+(\d+) kB", text)[1]) / 1024

    def peak(self, server):
        return self.memory(server, "VmHWM")

    def several_at_once(self, server):
        """Eight of each; the peak of them all."""
        for path, body in self.worst():
            threads = [threading.Thread(target=server.ask, args=("POST", path, body))
                       for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return self.peak(server)

    def test_the_worst_request_of_each_route(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "m.stint"
            done = stint("prepare", MODEL, "-o", package, "--bits", "none", "--calib-tokens", 64,
                         "--outlier-prune", "off")
            self.assertEqual(done.returncode, 0, done.stderr)
            with Server("--memory", f"{self.MIB}M", "--ctx", "256", "--chunk", "32", "--slot-dir",
                        folder, model=package) as server:
                over = {}
                server.complete("It was", max_tokens=4)
                at_first = self.memory(server, "VmRSS")
                for path, body in self.worst():
                    before = self.peak(server)
                    status, _, text = server.ask("POST", path, body)
                    self.assertIn(status, (200, 400, 413, 503), text[:300])
                    if status != 200:
                        self.assertIn("error", json.loads(text))
                    if self.peak(server) > max(before, self.MIB + self.BODY_MIB):
                        over[f"{path} {str(body)[:60]}"] = round(self.peak(server), 1)
                kept = self.memory(server, "VmRSS") - at_first
                if not setting("STINT_SANITIZE"):  # whose own memory counts as the process's
                    self.assertEqual(over, {})
                    self.assertLess(kept, self.KEPT_MIB)
                    if LONG:
                        self.assertLess(self.several_at_once(server), self.MIB + 5 * self.BODY_MIB)


if __name__ == "__main__":
    unittest.main()
