#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stint serve under load: 32 clients of some requests each get the answers that one client gets
alone, a full queue is told well-formed, killed clients leave nothing behind, memory stays flat.
Prints the time to the first token, which depends on the machine and decides nothing."""
import http.client
import json
import multiprocessing
import os
import pathlib
import signal
import threading
import time
import unittest

from command import PROMPT
from server import Server

CLIENTS, TOKENS = 32, 8
# Of each client; and of one client that is watched, first and then.
REQUESTS, FIRST, MORE = (20, 200, 1800) if os.environ.get("STINT_CI_LONG") == "1" else (8, 100, 250)
PROMPTS = [f"{PROMPT} {word}" for word in ("the", "a", "she", "old", "no", "it", "when", "so")]


class Client(threading.Thread):
    """Asks in a row on one connection, streaming, and again where the queue is full."""

    def __init__(self, server, number):
        super().__init__()
        self.server, self.number = server, number
        self.answers, self.first, self.refused, self.failure = [], [], 0, None

    def run(self):
        try:
            connection = self.server.connect(timeout=300)
            for i in range(REQUESTS):
                which = (self.number + i) % len(PROMPTS)
                self.answers.append((which, self.ask(connection, PROMPTS[which])))
            connection.close()
        except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
            self.failure = error

    def ask(self, connection, prompt):
        body = json.dumps({"prompt": prompt, "max_tokens": TOKENS, "temperature": 0,
                           "stream": True})
        while True:
            begin = time.monotonic()
            connection.request("POST", "/v1/completions", body)
            response = connection.getresponse()
            if response.status == 200:
                return self.read(response, begin)
            error = json.loads(response.read())["error"]
            if response.status != 429 or error["type"] != "rate_limit_error":
                raise ValueError(f"{response.status}: {error}")
            self.refused += 1
            time.sleep(0.05 * int(response.headers["Retry-After"]))

    def read(self, response, begin):
        text, done = "", False
        for line in response:
            if not line.startswith(b"data: {"):
                done = done or line == b"data: [DONE]\n"
                continue
            if not text:
                self.first.append(time.monotonic() - begin)
            text += json.loads(line[6:])["choices"][0]["text"]
        if not done:
            raise ValueError("a stream broke off")
        return text


def stream_for_ever(server):
    client = server.open_stream(prompt=PROMPT, max_tokens=1900, temperature=0)
    while client.recv(4096):
        time.sleep(0.001)


def resident_bytes(server):
    text = pathlib.Path(f"/proc/{server.process.pid}/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def maps(server):
    return pathlib.Path(f"/proc/{server.process.pid}/maps").read_bytes()


class Load(unittest.TestCase):
    def test_many_clients(self):
        with Server("--queue", "16") as server:
            alone = [server.complete(p, max_tokens=TOKENS, temperature=0)["choices"][0]["text"]
                     for p in PROMPTS]
            clients = [Client(server, i) for i in range(CLIENTS)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            self.assertEqual([c.failure for c in clients], [None] * CLIENTS)
            for client in clients:
                self.assertEqual(len(client.answers), REQUESTS)
                for which, text in client.answers:
                    self.assertEqual(text, alone[which])
            first = sorted(seconds for client in clients for seconds in client.first)
            print(f"{CLIENTS} clients x {REQUESTS}: first token "
                  f"p50 {first[len(first) // 2]:.3f} s, p99 {first[len(first) * 99 // 100]:.3f} s; "
                  f"refused and asked again {sum(client.refused for client in clients)} times")
            self.assertEqual(server.health()["busy"], 0)

    def test_killed_clients_leave_nothing(self):
        with Server() as server:
            for _ in range(3):
                clients = [multiprocessing.Process(target=stream_for_ever, args=(server,))
                           for _ in range(8)]
                for client in clients:
                    client.start()
                server.wait(lambda health: health["busy"] + health["queued"] == 8)
                for client in clients[::2]:
                    os.kill(client.pid, signal.SIGKILL)
                server.wait(lambda health: health["busy"] + health["queued"] <= 4)
                for client in clients:
                    client.kill()
                    client.join()
                server.wait(lambda health: health["busy"] + health["queued"] == 0)

    def test_memory_stays_flat(self):
        with Server("--slots", "2") as server:
            def ask(times):
                connection = server.connect(timeout=300)
                for i in range(times):
                    connection.request("POST", "/v1/completions", json.dumps(
                        {"prompt": PROMPTS[i % 8], "max_tokens": 2, "logprobs": 2, "n": 1 + i % 2}))
                    self.assertEqual(len(json.loads(connection.getresponse().read())["choices"]),
                                     1 + i % 2)
                connection.close()
            ask(FIRST)
            before = resident_bytes(server)
            ask(MORE)
            if b"libasan" in maps(server) or b"libtsan" in maps(server):
                self.skipTest("the sanitizer keeps what is freed")
            self.assertLess(resident_bytes(server) - before, (1 << 20) + (MORE << 11))


if __name__ == "__main__":
    unittest.main()
