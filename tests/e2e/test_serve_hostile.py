#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stint serve among clients that do harm: each gets a clear answer or none, and the others do not
notice. Whatever happens, no slot stays taken and the server ends as it should."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from command import COMMAND, MODEL, PROMPT
from server import Server, events, read_all

LONG = {"prompt": PROMPT, "temperature": 0, "max_tokens": 1900}


def status_of(data):
    return int(data.split(b" ", 2)[1]) if data.startswith(b"HTTP/1.") else None


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--timeout", "2").__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.answer = cls.server.complete(PROMPT, max_tokens=8, temperature=0)["choices"]

    def tearDown(self):
        """Others are answered as ever, and nothing is left behind."""
        self.server.wait(lambda health: health["busy"] == 0 and health["queued"] == 0)
        again = self.server.complete(PROMPT, max_tokens=8, temperature=0)["choices"]
        self.assertEqual(again, self.answer)
        self.assertIsNone(self.server.process.poll())

    def test_bodies_that_are_too_long(self):
        for n in ((4 << 20) + 1, 10_000_000, 40_000_000):
            status, headers, text = self.server.ask("POST", "/v1/completions", b"x" * n)
            self.assertEqual(status, 413, n)
            self.assertEqual(json.loads(text)["error"]["code"], "body_too_large")
            self.assertEqual(headers["Content-Type"], "application/json")

    def test_a_length_that_no_body_follows(self):
        head = ("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}\r\n")
        for n in ("99999999999", "18446744073709551616"):
            reply = self.server.raw(head.format(n, "").encode())
            self.assertIn(status_of(reply), (400, 413), reply[:200])
        reply = self.server.raw(head.format(10_000_000, "Expect: 100-continue\r\n").encode())
        self.assertEqual(status_of(reply), 413)
        for n in ("-1", "abc", "5, 6"):
            self.assertEqual(status_of(self.server.raw(head.format(n, "").encode())), 400, n)

    def test_chunked_bodies_are_bounded_too(self):
        head = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        body = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
        self.assertEqual(status_of(self.server.raw(head + body * 6 + b"0\r\n\r\n")), 413)
        good = json.dumps({"prompt": PROMPT, "max_tokens": 1}).encode()
        reply = self.server.raw(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(good), good))
        self.assertEqual(status_of(reply), 200)
        self.assertIn(status_of(self.server.raw(head + b"zz\r\n")), (400, None))

    def test_broken_texts(self):
        for body in (b"", b"{", b"\xff\xfe", b'{"prompt":"\xff"}', b'{"prompt":"\xc3"}',
                     b'{"prompt":"\xed\xa0\x80"}', b'{"prompt":"\\ud800"}',
                     b'{"prompt":"a\\u0000"}',
                     b"[1]", b"null", b'{"prompt":"a"}{}', b'{"prompt":"a","prompt":"b"}',
                     b'{"prompt":1e999}', b"\0" * 1000, b"[" * 10_000,
                     b'{"prompt":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
                     b'{"a":' * 10_000 + b"1" + b"}" * 10_000):
            for path in ("/v1/completions", "/v1/chat/completions"):
                status, _, text = self.server.ask("POST", path, body)
                self.assertEqual(status, 400, body[:40])
                self.assertEqual(json.loads(text)["error"]["type"], "invalid_request_error")

    def test_schemas_and_tools_that_are_deep_or_many(self):
        deep = {"type": "string"}
        for _ in range(200):
            deep = {"type": "object", "properties": {"a": deep}}
        user = [{"role": "user", "content": "a"}]
        for body in ({"response_format": {"type": "json_schema", "json_schema": {"schema": deep}}},
                     {"tool_choice": "required", "tools": [{"type": "function", "function": {
                         "name": "f", "parameters": deep}}]},
                     {"tools": [{"type": "function", "function": {"name": "f"}}] * 200}):
            status, answer = self.server.post("/v1/chat/completions", messages=user, max_tokens=2,
                                              **body)
            self.assertIn(status, (200, 400))
            self.assertTrue(status == 200 or answer["error"]["param"])

    def test_header_floods(self):
        lines = "".join(f"X-{i}: {'a' * 100}\r\n" for i in range(5000))
        for head in (f"GET /health HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n",
                     f"GET /health HTTP/1.1\r\nHost: localhost\r\nX: {'a' * 500_000}\r\n\r\n",
                     f"GET /{'a' * 500_000} HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            self.assertIn(status_of(self.server.raw(head.encode())), (400, 413, 414, 431, None))

    def test_headers_that_are_too_long(self):
        """Up to some size beyond the limit the answer is of the same form as all others."""
        head = "{} /health{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n"
        for rest in ((("?" + "a" * 40_000), ""), ("", f"X: {'a' * 90_000}\r\n"),
                     ("", "".join(f"X-{i}: {'a' * 90}\r\n" for i in range(400)))):
            for method in ("GET", "POST"):
                reply = self.server.raw(head.format(method, *rest).encode())
                self.assertEqual(status_of(reply), 431)
                error = json.loads(reply.split(b"\r\n\r\n")[1])["error"]
                self.assertEqual(error["code"], "headers_too_large")
        fits = head.format("GET", "", f"X: {'a' * 32_000}\r\n")
        self.assertEqual(status_of(self.server.raw(fits.encode())), 200)

    def test_what_is_no_http(self):
        for data in (b"\r\n" * 100, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n",
                     b"GET /health HTTP/9.9\r\n\r\n", b"\0\0\0\0\r\n\r\n",
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            self.assertIn(status_of(self.server.raw(data)), (400, 404, 405, 505, 408, None), data)

    def test_paths_lead_nowhere(self):
        for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd",
                     "//etc/passwd", "/app.js/../../etc/passwd", "/v1/models/..%2f..%2fetc",
                     "/index.html%00.js", "/v1/slots/..%2f0/save", "/~root", "/.", "/..",
                     "/" + "../" * 1000, "/%ff%fe", "/page/app.js", "/server.h"):
            reply = self.server.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n"
                                    "Connection: close\r\n\r\n".encode())
            self.assertIn(status_of(reply), (404, 405) if "%00" not in path else (400,), path)
            self.assertNotIn(b"root:", reply)

    def test_slow_senders_are_let_go(self):
        """A byte now and then keeps no connection; the time is the server's --timeout."""
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
        for begin in (head, head + b"\r\n{"):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as client:
                client.sendall(begin)
                stop = threading.Event()
                thread = threading.Thread(target=self.trickle, args=(client, stop))
                thread.start()
                reply = read_all(client)
                stop.set()
                thread.join()
            self.assertEqual(status_of(reply), 408, reply[:100])
            self.assertEqual(json.loads(reply.split(b"\r\n\r\n")[1])["error"]["code"], "timeout")

    @staticmethod
    def trickle(client, stop):
        try:
            while not stop.wait(0.1):
                client.sendall(b"X")
        except OSError:
            pass

    def test_many_idle_connections_leave_room(self):
        clients = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(150)]
        for client in clients[::2]:
            client.sendall(b"GET /hea")
        self.assertEqual(self.server.health()["status"], "ok")
        for client in clients:
            client.close()

    def test_a_client_that_goes_away_frees_its_slot(self):
        """With a close, with a reset, in the middle of a stream and before the first byte."""
        for stream in (True, False):
            for reset in (True, False):
                client = self.server.open_stream(**{**LONG, "stream": stream})
                self.server.wait(lambda health: health["busy"] == 1)
                if stream:
                    client.recv(100)
                if reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                before = self.server.metric("stint_generated_tokens_total")
                client.close()
                self.server.wait(lambda health: health["busy"] == 0)
                # It did not just come to its end.
                self.assertLess(self.server.metric("stint_generated_tokens_total") - before, 1900)
        self.assertGreaterEqual(self.server.metric('stint_requests_total'), 4)
        self.assertIn('route="/v1/completions",code="499"', self.server.get("/metrics"))

    def test_clients_in_the_queue_go_away_too(self):
        clients = [self.server.open_stream(**LONG) for _ in range(12)]
        self.server.wait(lambda health: health["queued"] == 8)
        for client in clients[4:]:
            client.close()
        self.server.wait(lambda health: health["queued"] == 0)
        for client in clients:
            client.close()

    def test_a_client_that_does_not_read(self):
        """What it may leave unread is bounded, and so is the time."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", self.server.port))
        body = json.dumps({**LONG, "n": 4, "logprobs": 20, "stream": True}).encode()
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d"
                       b"\r\n\r\n" % len(body) + body)
        self.server.wait(lambda health: health["busy"] == 4)
        self.server.wait(lambda health: health["busy"] == 0, seconds=300)
        self.assertNotIn(b"[DONE]", read_all(client))
        client.close()

    def test_requests_in_a_row_on_one_connection(self):
        one = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        reply = self.server.raw(one * 50 + last)
        self.assertEqual(reply.count(b"HTTP/1.1 200 OK"), 51)

    def test_http_1_0(self):
        body = json.dumps({"prompt": PROMPT, "max_tokens": 3, "stream": True}).encode()
        reply = self.server.raw(b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n"
                                % len(body) + body)
        self.assertEqual(len(events(reply.split(b"\r\n\r\n", 1)[1])), 4)


class Busy(unittest.TestCase):
    def test_a_full_queue_says_when_to_come_back(self):
        # Answers that outlast this test on any machine, however busy it is.
        endless = {**LONG, "max_tokens": 60000}
        with Server("--slots", "1", "--queue", "2", "--ctx", "65536") as server:
            clients = [server.open_stream(**endless) for _ in range(3)]
            server.wait(lambda health: health["queued"] == 2)
            for path, body in (("/v1/completions", {"prompt": "a"}), ("/v1/chat/completions", {
                    "messages": [{"role": "user", "content": "a"}]})):
                status, headers, text = server.ask("POST", path, body)
                self.assertEqual(status, 429)
                self.assertGreaterEqual(int(headers["Retry-After"]), 1)
                self.assertEqual(json.loads(text)["error"]["type"], "rate_limit_error")
            # Of several answers none is begun where not all have room.
            clients.pop().close()
            server.wait(lambda health: health["queued"] == 1)
            self.assertEqual(server.post("/v1/completions", prompt="a", n=2)[0], 429)
            server.wait(lambda health: health["queued"] == 1)
            for client in clients:
                client.close()
            server.wait(lambda health: health["busy"] == 0)
            self.assertEqual(server.post("/v1/completions", prompt="a")[0], 200)

    def test_answers_are_the_same_whoever_else_asks(self):
        """Clients at once; half of them leave in the middle."""
        with Server("--queue", "64") as server:
            prompts = [f"{PROMPT} {word}" for word in ("the", "a", "she", "old")]
            alone = [server.complete(p, max_tokens=24, temperature=0)["choices"][0]["text"]
                     for p in prompts]
            got, failed = [], []

            def ask(i):
                try:
                    if i % 2 == 1:
                        client = server.open_stream(**LONG)
                        client.recv(500)
                        client.close()
                    else:
                        answer = server.complete(prompts[i // 2 % 4], max_tokens=24, temperature=0)
                        got.append((i // 2 % 4, answer["choices"][0]["text"]))
                except (AssertionError, OSError) as error:
                    failed.append(error)

            threads = [threading.Thread(target=ask, args=(i,)) for i in range(32)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failed, [])
            self.assertEqual(len(got), 16)
            for i, text in got:
                self.assertEqual(text, alone[i])
            server.wait(lambda health: health["busy"] == 0 and health["queued"] == 0)


class Crowd(unittest.TestCase):
    def test_connections_that_say_nothing_keep_nobody_out(self):
        """All places are taken, some by halves of headers and some by clients that had an answer
        before; the time for a request is far longer than this test waits."""
        one = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with Server("--timeout", "3600") as server:
            slow = server.open_stream(**LONG)
            server.wait(lambda health: health["busy"] == 1)
            clients = []
            for i in range(300):
                clients.append(socket.create_connection(("127.0.0.1", server.port), timeout=60))
                clients[-1].sendall((b"", b"GET /hea", one)[i % 3])
            for _ in range(3):
                self.assertEqual(server.health()["status"], "ok")
            self.assertIn(status_of(read_all(clients[0])), (408, None))
            # Who waits for an answer is not silent.
            data = b""
            while b"data: " not in data:
                more = slow.recv(1000)
                self.assertTrue(more, data)
                data += more
            for client in [slow, *clients]:
                client.close()


class Model(unittest.TestCase):
    """The model's file is cut, written or replaced while it is in use."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = pathlib.Path(folder.name) / "model"
        shutil.copytree(MODEL, self.model)

    def cut(self):
        for file in self.model.glob("*.safetensors"):
            os.truncate(file, 4096)

    def write(self):
        """What is in the middle becomes something else, where it lies."""
        for file in self.model.glob("*.safetensors"):
            with open(file, "r+b") as opened:
                opened.seek(file.stat().st_size // 4)
                opened.write(bytes([0x3c, 0x11]) * (file.stat().st_size // 4))

    def bound(self):
        """The least bound, under which weights are read again and again."""
        refused = subprocess.run([COMMAND, "serve", self.model, "--port", "0", "--slots", "2",
                                  "--memory", "1M"], capture_output=True, text=True, check=False)
        return ("--memory", re.search(r"at least (\d+) MiB", refused.stderr).group(1) + "M")

    def all_are_told(self, harm, *options):
        with Server("--slots", "2", *options, model=self.model) as server:
            stream = server.open_stream(**LONG)
            whole = server.open_stream(**{**LONG, "stream": False})
            server.wait(lambda health: health["busy"] == 2)
            stream.recv(100)
            harm()
            reply = read_all_of(whole)
            self.assertEqual(status_of(reply), 500, reply[:200])
            error = json.loads(reply.split(b"\r\n\r\n")[1])["error"]
            self.assertIn("its file was cut", error["message"])
            self.assertIn(b"its file was cut", read_all_of(stream))
            self.assertEqual(server.end(), 1)
        self.assertEqual(server.said.count("\n"), 1, server.said)
        self.assertIn(str(self.model), server.said)

    def test_all_clients_are_told_and_the_server_ends(self):
        for harm in (self.cut, self.write):
            with self.subTest(harm=harm.__name__):
                shutil.copytree(MODEL, self.model, dirs_exist_ok=True)
                self.all_are_told(harm)

    def test_also_under_a_bound(self):
        for harm in (self.cut, self.write):
            with self.subTest(harm=harm.__name__):
                shutil.copytree(MODEL, self.model, dirs_exist_ok=True)
                self.all_are_told(harm, *self.bound())

    def test_a_model_that_is_replaced_is_served_on(self):
        for options in ((), self.bound()):
            shutil.copytree(MODEL, self.model, dirs_exist_ok=True)
            with Server("--slots", "2", *options, model=self.model) as server:
                before = server.complete(PROMPT, max_tokens=8, temperature=0)["choices"]
                for file in self.model.glob("*.safetensors"):
                    other = file.with_suffix(".new")
                    other.write_bytes(bytes(file.stat().st_size))
                    other.rename(file)
                for prompt in (PROMPT, "The", PROMPT):
                    after = server.complete(prompt, max_tokens=8, temperature=0)["choices"]
                self.assertEqual(after, before)

    def test_a_command_says_so_too(self):
        child = subprocess.Popen([COMMAND, "run", self.model, "-p", PROMPT, "-n", "1900"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child.stdout.read(1)
        self.cut()
        _, said = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 1, said)
        self.assertIn(f"stint: run: {self.model}: a part of the model cannot be read", said)


class Ends(unittest.TestCase):
    def test_running_answers_are_finished(self):
        with Server() as server:
            client = server.open_stream(**{**LONG, "max_tokens": 300})
            client.recv(100)
            server.process.send_signal(signal.SIGTERM)
            # Nobody new is let in, also by a connection that was there. Until the port is closed
            # the server says that it drains.
            until = time.monotonic() + 60
            while time.monotonic() < until:
                try:
                    self.assertIn(server.ask("GET", "/health")[0], (200, 503))
                except OSError:
                    break
            self.assertIn(b"[DONE]", read_all_of(client))
            self.assertEqual(server.end(), 0)
        self.assertEqual(server.said, "")

    def test_but_not_longer_than_allowed(self):
        with Server("--drain", "0") as server:
            client = server.open_stream(**LONG)
            client.recv(100)
            server.process.send_signal(signal.SIGTERM)
            self.assertIn(b"aborted", read_all_of(client))
            self.assertEqual(server.end(), 0)
        self.assertIn("aborted", server.said)

    def test_a_second_signal_ends_at_once(self):
        with Server() as server:
            client = server.open_stream(**LONG)
            client.recv(100)
            server.process.send_signal(signal.SIGTERM)
            until = time.monotonic() + 60
            while time.monotonic() < until and server.process.poll() is None:
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.05)
            self.assertEqual(server.end(), -signal.SIGTERM)
            client.close()


def read_all_of(client):
    with client:
        return read_all(client)


if __name__ == "__main__":
    unittest.main()
