# SPDX-License-Identifier: Apache-2.0
"""What tests of `stint serve` share: a server on a free port, and requests to it."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
import unittest

from command import COMMAND, MODEL

KEY = "a key with some letters"


class Server:
    """`stint serve` as a context; ends it with SIGTERM and keeps what it said."""

    def __init__(self, *options, model=MODEL, environment=None):
        self.command = [COMMAND, "serve", str(model), "--port", "0", *map(str, options)]
        self.environment = environment
        self.process, self.port, self.said = None, 0, ""

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=self.environment)
        line = self.process.stdout.readline()
        match = re.search(r" at http://[^ ]*:(\d+)$", line)
        if not match:
            raise AssertionError(f"no address: {line!r}, {self.process.stderr.read()!r}")
        self.port = int(match.group(1))
        return self

    def __exit__(self, kind=None, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            status = self.end()
            if status != 0 and kind is None:  # a leak, under a sanitizer
                raise AssertionError(f"exit status {status}: {self.said}")

    @contextlib.contextmanager
    def held(self):
        """The process does nothing meanwhile: what it is at does not end."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def end(self, timeout=600):
        """Waits for its end and returns its exit status."""
        try:
            self.said += self.process.communicate(timeout=timeout)[1]
        finally:
            self.process.kill()
        return self.process.returncode

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, bytes) of one request on a connection of its own."""
        connection = self.connect()
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json",
                                                    **(headers or {})})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def post(self, path, **body):
        status, _, text = self.ask("POST", path, body)
        return status, json.loads(text)

    def chat(self, text, **body):
        """The choices of an answer."""
        status, answer = self.post("/v1/chat/completions",
                                   messages=[{"role": "user", "content": text}], **body)
        if status != 200:
            raise AssertionError(f"{status}: {answer}")
        return answer

    def complete(self, prompt, **body):
        status, answer = self.post("/v1/completions", prompt=prompt, **body)
        if status != 200:
            raise AssertionError(f"{status}: {answer}")
        return answer

    def get(self, path, **headers):
        status, _, text = self.ask("GET", path, headers=headers)
        if status != 200:
            raise AssertionError(f"{status}: {text}")
        return text.decode()

    def health(self):
        return json.loads(self.get("/health"))

    def metric(self, name):
        """The sum of a metric's lines."""
        found = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", self.get("/metrics"), re.M)
        return sum(map(float, found))

    def wait(self, condition, seconds=60):
        """Until what /health says fulfils the condition."""
        until = time.monotonic() + seconds
        while not condition(health := self.health()):
            if time.monotonic() > until:
                raise AssertionError(f"still {health}")
            time.sleep(0.02)

    def open_files(self):
        """Files and sockets."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def wait_for_files(self, n_files, seconds=60):
        """Until no more are open."""
        until = time.monotonic() + seconds
        while (n := self.open_files()) > n_files:
            if time.monotonic() > until:
                raise AssertionError(f"{n} files are open, {n_files} before")
            time.sleep(0.02)

    def raw(self, data, seconds=60):
        """Sends bytes as they are and returns all that comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as client:
            client.sendall(data)
            return read_all(client)

    def open_stream(self, path="/v1/completions", **body):
        """A socket on which a stream has begun."""
        text = json.dumps({"stream": True, **body}).encode()
        client = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}"
                       "\r\n\r\n".encode() + text)
        return client


def read_all(client):
    """Until the end of the stream, also by a reset."""
    data = b""
    try:
        while more := client.recv(65536):
            data += more
    except ConnectionResetError:
        pass
    return data


def events(text):
    """The objects of a stream; it must end as streams do."""
    lines = [line for line in text.decode().split("\n") if line]
    assert all(line.startswith("data: ") for line in lines), lines
    assert lines[-1] == "data: [DONE]", lines[-1]
    return [json.loads(line[6:]) for line in lines[:-1]]


class Shared(unittest.TestCase):
    """Tests on one server."""
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options).__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def stream(self, path, **body):
        status, headers, text = self.server.ask("POST", path, {**body, "stream": True})
        self.assertEqual(status, 200, text)
        self.assertIn("text/event-stream", headers["Content-Type"])
        return events(text)

    def refused(self, path, status=400, **body):
        got, answer = self.server.post(path, **body)
        self.assertEqual(got, status, answer)
        self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
        return answer["error"]
