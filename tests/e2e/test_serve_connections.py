#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections of stint serve: who is refused before a body is read, how many one address may hold,
who has to go when all places are taken, and requests whose length or address is ambiguous. The
limits are small here, so that no test waits for one."""
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import unittest

from command import COMMAND, MODEL, PROMPT
from server import KEY, Server, read_all

HEAD = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}\r\n"


def status_of(data):
    return int(data.split(b" ", 2)[1]) if data.startswith(b"HTTP/1.") else None


def body_of(**fields):
    return json.dumps({"prompt": PROMPT, "max_tokens": 1, "temperature": 0, **fields}).encode()


class Keys(unittest.TestCase):
    """A client without the key gets its answer before it sends a body."""
    environment = {**os.environ, "STINT_API_KEY": KEY}

    def test_401_before_the_body(self):
        with Server("--timeout", "3600", environment=self.environment) as server:
            for authorization in ("", "Authorization: Bearer wrong\r\n"):
                reply = server.raw(HEAD.format(1000, authorization).encode())
                self.assertEqual(status_of(reply), 401, reply[:200])
                chunked = HEAD.replace("Content-Length: {}", "Transfer-Encoding: chunked")
                reply = server.raw(chunked.format(authorization).encode())
                self.assertEqual(status_of(reply), 401, reply[:200])

    def test_a_client_that_sends_all_first_reads_it_too(self):
        """The connection is not reset while the rest of the body arrives."""
        with Server(environment=self.environment) as server:
            for n in (100, 100_000, 3_000_000, 20_000_000):
                status, _, text = server.ask("POST", "/v1/completions", b"x" * n)
                self.assertEqual(status, 401, n)
                self.assertEqual(json.loads(text)["error"]["code"], "invalid_api_key")

    def test_clients_that_are_refused_hold_no_place(self):
        """More of them than places, none of which reads its answer or closes."""
        with Server("--timeout", "3600", "--connections", "16", environment=self.environment) as s:
            clients = []
            for _ in range(64):
                clients.append(socket.create_connection(("127.0.0.1", s.port), timeout=60))
                clients[-1].sendall(HEAD.format(1000, "").encode())
            status, _, _ = s.ask("POST", "/v1/completions", body_of(),
                                 {"Authorization": f"Bearer {KEY}"})
            self.assertEqual(status, 200)
            for client in clients:
                client.close()

    def test_keys_that_no_header_can_carry(self):
        """A NUL would cut the key short; blanks at its ends are no part of a header's value."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "key"
            for key in (b"a\0bc\n", b" abc\n", b"abc \n", b"abc\t\n", b"a\x01b\n", b"\0\n",
                        b"a\xc3\xa4\n"):
                path.write_bytes(key)
                done = subprocess.run([COMMAND, "serve", str(MODEL), "--port", "0", "--key-file",
                                       str(path)], capture_output=True, text=True, check=False,
                                      timeout=60, stdin=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 1, key)
                self.assertIn("key", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Places(unittest.TestCase):
    """All places are taken; the time for a request is far longer than these tests."""

    def fill(self, data, n=64):
        with Server("--timeout", "3600", "--connections", "16") as server:
            clients = []
            for _ in range(n):
                clients.append(socket.create_connection(("127.0.0.1", server.port), timeout=60))
                clients[-1].sendall(data)
            for _ in range(3):
                self.assertEqual(server.health()["status"], "ok")
                self.assertEqual(server.post("/v1/completions", prompt=PROMPT, max_tokens=1)[0],
                                 200)
            self.assertIn(status_of(read_all(clients[0])), (408, None))
            for client in clients:
                client.close()

    def test_headers_without_a_body(self):
        self.fill(HEAD.format(1000, "").encode())

    def test_a_part_of_a_body(self):
        self.fill(HEAD.format(1000, "").encode() + b'{"prompt"')

    def test_a_part_of_a_chunk(self):
        chunked = HEAD.replace("Content-Length: {}", "Transfer-Encoding: chunked").format("")
        self.fill(chunked.encode() + b"100\r\n{")

    def test_nothing(self):
        self.fill(b"")

    def test_one_address_leaves_room_for_others(self):
        """Clients of 127.0.0.1 and one of 127.0.0.2."""
        with Server("--timeout", "3600", "--per-address", "4") as server:
            own = [socket.create_connection(("127.0.0.1", server.port), timeout=60)
                   for _ in range(4)]
            for client in own:
                client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertEqual(status_of(client.recv(1000)), 200)
            fifth = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            self.assertEqual(read_all(fifth), b"")
            other = socket.create_connection(("127.0.0.1", server.port), timeout=60,
                                             source_address=("127.0.0.2", 0))
            other.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(status_of(other.recv(1000)), 200)
            for client in (*own, fifth, other):
                client.close()


class Late(unittest.TestCase):
    def test_requests_that_stop_in_the_middle_get_408(self):
        """Also those that send nothing more at all, which the HTTP library closes by itself."""
        with Server("--timeout", "1") as server:
            for data in (b"GET /health HT", HEAD.format(1000, "").encode(),
                         HEAD.format(1000, "").encode() + b"{"):
                reply = server.raw(data)
                self.assertEqual(status_of(reply), 408, (data, reply[:100]))
                text = reply.split(b"\r\n\r\n", 1)[1]
                self.assertEqual(json.loads(text)["error"]["code"], "timeout")
                length = int(reply.split(b"Content-Length: ")[1].split(b"\r\n")[0])
                self.assertEqual(length, len(text))

    def test_a_connection_without_a_next_request_ends_in_silence(self):
        with Server("--timeout", "1") as server:
            reply = server.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(reply.count(b"HTTP/1.1 "), 1, reply)


class Ambiguous(unittest.TestCase):
    """Whatever two programs in a row could read as two different requests is refused, and the
    connection closed: what follows must not be taken for a request."""
    SMUGGLED = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

    @classmethod
    def setUpClass(cls):
        cls.server = Server().__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def check(self, head, body=b""):
        reply = self.server.raw(head + b"\r\n\r\n" + body + self.SMUGGLED)
        # The HTTP library closes without a word where the first line has blanks in between.
        self.assertIn(status_of(reply), (400, None), (head, reply[:200]))
        self.assertNotIn(b" 200 OK", reply, head)

    def test_lengths(self):
        body = body_of()
        start = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        n = b"%d" % len(body)
        for lines in (b"Content-Length: %b\r\nContent-Length: %b" % (n, n),
                      b"Content-Length: %b\r\nContent-Length: 5" % n,
                      b"Content-Length: 0\r\ncontent-length: %b" % n,
                      b"Content-Length: +%b" % n,
                      b"Content-Length: 0x10",
                      b"Content-Length: ",
                      b"Content-Length : %b" % n,
                      b"Content-Length: %b\r\nTransfer-Encoding: chunked" % n,
                      b"Transfer-Encoding: chunked\r\nContent-Length: %b" % n,
                      b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                      b"Transfer-Encoding: chunked, identity",
                      b"Transfer-Encoding: identity",
                      b"Transfer-Encoding: gzip, chunked",
                      b"Transfer-Encoding: xchunked",
                      b"Transfer-Encoding : chunked",
                      b"Transfer-Encoding:\x0bchunked"):
            self.check(start + lines, body)

    def test_hosts(self):
        for lines in (b"Host: localhost\r\nHost: localhost",
                      b"Host: localhost\r\nHost: evil.example",
                      b"Host: localhost\r\nhost: 127.0.0.1",
                      b"Accept: */*"):
            self.check(b"GET /health HTTP/1.1\r\n" + lines)

    def test_keys_and_origins_that_are_given_twice(self):
        for name in (b"Authorization", b"Origin"):
            self.check(b"GET /health HTTP/1.1\r\nHost: localhost\r\n%b: a\r\n%b: b" % (name, name))

    def test_malformed_headers(self):
        for line in (b"X\0Y: a", b"X Y: a", b"X\t: a", b"X: a\x01", b"X: a\rY: b", b"X", b" X: a",
                     b"X(: a"):
            self.check(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + line)

    def test_paths(self):
        for path in (b"/health%00", b"/health%00.js", b"/%00", b"/health x", b"/ health",
                     b"/health\tx", b"/health?a=%00", b"/health?a b", b"/a\x7fb"):
            self.check(b"GET " + path + b" HTTP/1.1\r\nHost: localhost")

    def test_what_is_plain_goes_through(self):
        for head in (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\nX: b",
                     b"GET /health?a=b%20c HTTP/1.1\r\nHost: localhost",
                     b"GET /%68ealth HTTP/1.1\r\nhost:localhost"):
            reply = self.server.raw(head + b"\r\nConnection: close\r\n\r\n")
            self.assertEqual(status_of(reply), 200, (head, reply[:200]))
        body = body_of()
        for line in (b"Transfer-Encoding: chunked", b"Transfer-Encoding: Chunked"):
            reply = self.server.raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n%b\r\n"
                                    b"Connection: close\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
                                    % (line, len(body), body))
            self.assertEqual(status_of(reply), 200, reply[:200])


if __name__ == "__main__":
    unittest.main()
