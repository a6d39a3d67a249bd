#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""soak.py MINUTES [--model M] [--disk FAULT] [options of stint serve]: 32 clients ask a server at
random for so long. Some go away in the middle, send what is broken, save slots, restore them, also
damaged ones. Every complete answer must be the one that was given alone, no slot may be lost, no
file or socket stay open, and memory must be flat: the line through its samples after the first
fifth rises by less than 4 MiB.
`make soak` runs it. With a fault of tests/tools/fail_io.c (9*:EIO, each ninth call) the disk of the
slots fails all the time; with `--model PACKAGE --device sim:fail=1000` a device does, once."""
import argparse
import http.client
import json
import os
import pathlib
import random
import socket
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("STINT_SOURCE_DIR", str(HERE.parent.parent))
os.environ.setdefault("STINT_BUILD_DIR", str(HERE.parent.parent / "build"))
os.environ.setdefault("STINT_COMMAND", str(HERE.parent.parent / "build" / "stint"))

from command import MODEL, PROMPT  # pylint: disable=wrong-import-position
from server import Server  # pylint: disable=wrong-import-position

CLIENTS, SLOTS, TOKENS, MAX_RISE = 32, 4, 12, 4 << 20
PROMPTS = [f"{PROMPT} {word}" * (1 + i % 4) for i, word in enumerate(
    "the a she old no it when so he one but never sea his cold night".split())]
BROKEN = [b"", b"{", b'{"prompt":', b'{"prompt":1}', b'{"prompt":"a","max_tokens":-1}',
          b'{"prompt":"\xff"}', b"[" * 5000, b'{"prompt":"' + b"a " * 200000 + b'"}',
          b'{"messages":[{"role":"user","content":"a"}],"response_format":{"type":"x"}}',
          b'{"prompt":"a","temperature":9e99}']


class Client(threading.Thread):
    """One client: a random action after the other until the time is over."""

    def __init__(self, soak, number):
        super().__init__(daemon=True)
        self.soak, self.chance = soak, random.Random(f"{soak.seed}.{number}")
        self.number, self.failures = number, []

    def run(self):
        actions = [self.answer] * 6 + [self.stream] * 3 + [self.leave, self.break_off, self.broken,
                                                           self.slot, self.look]
        while time.monotonic() < self.soak.until:
            action = self.chance.choice(actions)
            try:
                action()
                self.soak.count(action.__name__)
            except (OSError, ValueError, KeyError, http.client.HTTPException,
                    AssertionError) as error:
                self.failures.append(f"{action.__name__}: {error!r}")
                return

    def body(self, which, **more):
        return {"prompt": PROMPTS[which], "max_tokens": TOKENS, "temperature": 0, **more}

    def expect(self, which, text):
        if text != self.soak.alone[which]:
            raise ValueError(f"prompt {which}: {text!r}, alone {self.soak.alone[which]!r}")

    def answer(self):
        which = self.chance.randrange(len(PROMPTS))
        status, answer = self.soak.server.post("/v1/completions", **self.body(which))
        if status == 429:
            return time.sleep(0.1)
        if status != 200:
            raise ValueError(f"{status}: {answer}")
        return self.expect(which, answer["choices"][0]["text"])

    def stream(self):
        which = self.chance.randrange(len(PROMPTS))
        status, _, data = self.soak.server.ask("POST", "/v1/completions",
                                               self.body(which, stream=True))
        if status == 429:
            return time.sleep(0.1)
        lines = data.decode().strip().split("\n\n")
        if status != 200 or lines[-1] != "data: [DONE]":
            raise ValueError(f"{status}: {data[-300:]}")
        return self.expect(which, "".join(json.loads(line[6:])["choices"][0]["text"]
                                          for line in lines[:-1]))

    def leave(self):
        """In the middle of a long answer."""
        client = self.soak.server.open_stream(**self.body(self.chance.randrange(len(PROMPTS)),
                                                          max_tokens=1000))
        client.recv(self.chance.choice((1, 100, 2000)))
        client.close()

    def break_off(self):
        """In the middle of a request."""
        text = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n{}"
        with socket.create_connection(("127.0.0.1", self.soak.server.port)) as client:
            client.sendall(text[:self.chance.randrange(len(text))])

    def broken(self):
        status, _, text = self.soak.server.ask("POST", self.chance.choice(
            ("/v1/completions", "/v1/chat/completions")), self.chance.choice(BROKEN))
        if status not in (400, 413, 429) or "error" not in json.loads(text):
            raise ValueError(f"{status}: {text[:300]}")

    def slot(self):
        """Saves a slot, or restores one; now and then the file is damaged first."""
        name, what = f"s{self.chance.randrange(6)}", self.chance.choice(("save", "restore"))
        file = self.soak.folder / f"{name}.slot"
        if what == "restore" and self.chance.random() < 0.3 and file.exists():
            data = bytearray(file.read_bytes())
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
            other = self.soak.folder / f"copy-{self.number}"
            other.write_bytes(data)
            other.rename(file)
        status, answer = self.soak.server.post(
            f"/v1/slots/{self.chance.randrange(SLOTS)}/{what}", name=name)
        if status not in (200, 400, 404, 409, 422) and not (self.soak.disk and status >= 500):
            raise ValueError(f"{what}: {status}: {answer}")
        if status >= 500:
            self.soak.count("fault")

    def look(self):
        self.soak.server.get(self.chance.choice(("/health", "/metrics", "/v1/models", "/")))


def slope(samples):
    """Of the line of least squares through (seconds, bytes): bytes per second."""
    n = len(samples)
    mean_x, mean_y = (sum(s[i] for s in samples) / n for i in (0, 1))
    below = sum((x - mean_x) ** 2 for x, _ in samples)
    return sum((x - mean_x) * (y - mean_y) for x, y in samples) / below


class Soak:
    """The server, its clients, and what they counted."""

    def __init__(self, minutes, model=MODEL, disk=None, options=()):
        self.seed = os.environ.get("STINT_SEED", "1")
        self.seconds, self.model, self.disk, self.options = 60 * minutes, model, disk, options
        self.counts, self.lock = {}, threading.Lock()
        self.server = self.folder = self.until = self.alone = None

    def count(self, name):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1

    def resident(self):
        text = pathlib.Path(f"/proc/{self.server.process.pid}/statm").read_text(encoding="ascii")
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def run(self):
        """True: nothing was wrong."""
        with tempfile.TemporaryDirectory() as folder:
            self.folder = pathlib.Path(folder)
            with Server("--slots", SLOTS, "--queue", CLIENTS, "--slot-dir", folder, *self.options,
                        model=self.model, environment=self.environment()) as self.server:
                self.alone = [self.server.complete(p, max_tokens=TOKENS, temperature=0)
                              ["choices"][0]["text"] for p in PROMPTS]
                n_files = self.server.open_files()
                samples, failures = self.ask_all()
                self.server.wait_for_files(n_files)
                return self.report(samples, failures)

    def environment(self):
        library = HERE.parent.parent / "build" / "tests" / "libfail_io.so"
        return {**os.environ, "LD_PRELOAD": str(library), "STINT_IO_FAULT": self.disk,
                "STINT_IO_UNDER": str(self.folder)} if self.disk else None

    def ask_all(self):
        begin = time.monotonic()
        self.until = begin + self.seconds
        clients = [Client(self, i) for i in range(CLIENTS)]
        samples = []
        for client in clients:
            client.start()
        while (now := time.monotonic()) < self.until:
            samples.append((now - begin, self.resident()))
            time.sleep(min(2, self.seconds / 60))
        for client in clients:
            client.join(120)
        failures = [f for client in clients for f in client.failures]
        failures += ["a client hangs"] * sum(client.is_alive() for client in clients)
        return samples[len(samples) // 5:], failures

    def report(self, samples, failures):
        self.server.wait(lambda health: health["busy"] + health["queued"] == 0)
        for i, prompt in enumerate(PROMPTS):  # the slots are all there, and right
            text = self.server.complete(prompt, max_tokens=TOKENS, temperature=0)
            if text["choices"][0]["text"] != self.alone[i]:
                failures.append(f"prompt {i} after all: {text}")
        rise = slope(samples) * (samples[-1][0] - samples[0][0])
        low, high = (pick(s[1] for s in samples) / 2**20 for pick in (min, max))
        print(f"{self.seconds / 60:g} minutes, {CLIENTS} clients, seed {self.seed}: "
              + ", ".join(f"{n} {name}" for name, n in sorted(self.counts.items())))
        print(f"resident {low:.1f} to {high:.1f} MiB, the line rises by {rise / 2**20:+.2f} MiB; "
              f"{self.server.metric('stint_requests_total'):g} requests served")
        for failure in failures[:20]:
            print("FAILED:", failure)
        return not failures and rise < MAX_RISE


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--disk")
    known, options = parser.parse_known_args()
    return Soak(known.minutes, known.model, known.disk, options).run()


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
