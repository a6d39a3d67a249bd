#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command with its n-th input or output call failing (EIO, ENOSPC, EINTR, too many files),
or all from there on, done by half, or killed there, with what was not synced lost: the right result
or one clear error, nothing half under a final name, nothing left behind, and the next run works.
What finds the remains of a killed run meets a fault as well (failures that compound).
tests/tools/fail_io.c injects the faults.

Tries some n of each command, the same for the same STINT_SEED; with STINT_CI_LONG=1 all of them."""
import http.client
import json
import os
import pathlib
import platform
import random
import re
import shutil
import signal
import struct
import sys
import tempfile
import unittest

from built import BUILD, skip_under_sanitizers
from command import MODEL, SMALL, stint
from server import Server, events

skip_under_sanitizers()
SHIM = BUILD / "tests" / "libfail_io.so"
if platform.machine() != "x86_64" or not SHIM.exists():
    print("skipped: faults are injected on x86-64 only")
    sys.exit(77)

LONG = os.environ.get("STINT_CI_LONG") == "1"
SEED = int(os.environ.get("STINT_SEED", "1"))
LAST_CALLS = 8
HOWS = (":EIO", ":ENOSPC", ":EINTR", ":EMFILE", ":short", ":kill", "+:EIO", "+:ENOSPC", ":unplug")
ENDS = (":kill", ":unplug")  # of the process
TEXT = "The old man looked at the sea, and it was as cold as the evening before. " * 20


def environment(counter, fault, under=None):
    counter.write_bytes(bytes(8))
    more = {"STINT_IO_UNDER": str(under)} if under else {}
    return {**os.environ, "LD_PRELOAD": str(SHIM), "STINT_IO_FAULT": fault,
            "STINT_IO_COUNTER": str(counter), **more}


def counted(counter):
    return struct.unpack("<Q", counter.read_bytes())[0]


def numbers(n_calls, how):
    """Which calls fail: all, or one anywhere and one of the last, where files are finished."""
    if LONG and n_calls <= 400:
        return range(1, n_calls + 1)
    chance = random.Random(f"{SEED}.{n_calls}.{how}")
    first_of_last = max(1, n_calls - LAST_CALLS)
    if how[0] == "+" and not LONG:
        return [chance.randint(1, n_calls)]
    anywhere = {chance.randint(1, n_calls) for _ in range(200 if LONG else 1)}
    last = set(range(first_of_last, n_calls + 1)) if LONG else {
        chance.randint(first_of_last, n_calls)}
    return sorted(anywhere | last)


class Faults(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.base = pathlib.Path(holder.name).resolve()
        self.work = self.base / "work"
        self.counter = self.base / "counter"
        self.n_tried = 0
        (self.base / "text").write_text(TEXT, encoding="utf-8")
        (self.base / "ids.json").write_text('{"tokens": [1, 2, 3, 4]}', encoding="utf-8")

    def package(self, bits="none", model=SMALL):
        path = self.base / "model.stint"
        if not path.exists():
            done = stint("prepare", model, "-o", path, "--calib", self.base / "text",
                         "--calib-tokens", 64, "--outlier-prune", "off", "--bits", bits)
            self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def fresh(self):
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()

    def files(self):
        return {path.name: path.read_bytes() for path in self.work.iterdir()}

    def call(self, words, text, fault):
        return stint(*words, text=text, cwd=self.work,
                     env=environment(self.counter, fault))

    def same(self, got, wanted, normal):
        """Files with times in them are compared by what remains."""
        self.assertEqual({name: normal(data) for name, data in got.items()},
                         {name: normal(data) for name, data in wanted.items()})

    def check(self, *words, text=None, normal=lambda data: data, old=None):
        """`old`: a file that is there before, and must stay whole."""
        self.fresh()
        whole = self.call(words, text, "0:unplug")  # what was reported as done survives it
        self.assertEqual(whole.returncode, 0, whole.stderr)
        wanted, n_calls = self.files(), counted(self.counter)
        self.assertIn(old, [None, *wanted])
        self.assertGreater(n_calls, 0)
        chance = random.Random(f"{SEED}.{words[0]}")
        for how in HOWS:
            for n in numbers(n_calls, how):
                with self.subTest(words=words[0], how=how, n=n):
                    self.fresh()
                    if old:
                        (self.work / old).write_bytes(b"old")
                    done = self.call(words, text, f"{n}{how}")
                    self.n_tried += 1
                    if how in ENDS and done.returncode == -signal.SIGKILL:
                        for name, data in self.files().items():
                            if name in wanted and data != b"old":
                                self.assertEqual(normal(data), normal(wanted[name]))
                        again = f"{chance.randint(1, n_calls)}{chance.choice(HOWS[:5])}"
                        done = self.call(words, text, again)
                        self.assertIn(done.returncode, (0, 1), (again, done.stderr))
                        done = self.call(words, text, "0:none")
                        self.assertEqual(done.returncode, 0, done.stderr)
                    if done.returncode == 0 and words[0] == "chat" and done.stderr:
                        self.assertEqual(self.files(), {old: b"old"})  # said, and the chat goes on
                    elif done.returncode == 0:
                        self.assertEqual(normal(done.stdout.encode()),
                                         normal(whole.stdout.encode()))
                        self.same(self.files(), wanted, normal)
                    else:
                        self.assertNotEqual(how, ":short", done.stderr)
                        self.assertEqual(done.returncode, 1, done.stderr)
                        said = re.findall("(?m)^stint: ", done.stderr)
                        self.assertIn(len(said), (1, 2) if how[0] == "+" else (1,), done.stderr)
                        rest = self.files()
                        if old and rest.get(old) != b"old":
                            self.assertEqual(normal(rest[old]), normal(wanted[old]))
                        rest.pop(old, None)
                        for name, data in rest.items():
                            self.assertIn(name, wanted, "left behind")
                            self.assertEqual(normal(data), normal(wanted[name]))
        print(f"{words[0]}: {n_calls} calls, {self.n_tried} runs with a fault")

    def test_run(self):
        self.check("run", SMALL, "-p", "It was", "-n", 2, "--temp", 0, "--threads", 1)

    def test_run_from_a_file_with_a_timeline(self):
        self.check("run", SMALL, "-f", self.base / "text", "-n", 2, "--temp", 0, "--threads", 2,
                   "--npu-threads", 1, "--cpu-threads", 1, "--trace", "t.json", old="t.json",
                   normal=lambda data: re.sub(rb"[-0-9.]+", b"", data)[:200] + data[-4:])

    def test_run_under_a_bound(self):
        package = self.package(model=MODEL)
        self.check("run", package, "-p", "It", "-n", 2, "--temp", 0, "--threads", 1,
                   "--memory", "30M", "--ctx", 128, "--chunk", 16)

    def test_run_that_streams_nested_weights(self):
        package = self.package("2..3", MODEL)
        words = ("run", package, "-p", "It", "-n", 3, "--temp", 0, "--threads", 1,
                 "--schedule", "uniform:3", "--ctx", 128, "--chunk", 16, "--memory")
        least = re.search(r"at least (\d+) MiB", stint(*words, "1M").stderr).group(1)
        self.check(*words, f"{least}M")

    def test_prepare(self):
        self.check("prepare", SMALL, "-o", "m.stint", "--calib", self.base / "text", "--bits",
                   "none", "--calib-tokens", 64, "--outlier-prune", "off", old="m.stint",
                   normal=lambda data: data)

    def test_logits(self):
        self.check("logits", SMALL, "--tokens", self.base / "ids.json", "-o", "l.f32", old="l.f32")

    def test_eval(self):
        self.check("eval", SMALL, "--task", "ppl", "--data", self.base / "text", "--limit", 1,
                   "--window", 32, "--items", "i.jsonl", old="i.jsonl",
                   normal=lambda data: re.sub(rb"[0-9.]+ tokens/s", b"", data))

    def test_tokenize(self):
        self.check("tokenize", SMALL, text=TEXT)

    def test_inspect(self):
        self.check("inspect", self.package(),
                   normal=lambda data: re.sub(rb"compiled in [0-9.]+", b"", data))

    def test_chat(self):
        self.check("chat", self.package(), text="/system Be kind.\n/save c.json\n/quit\n",
                   old="c.json")

    def test_schedule(self):
        self.check("schedule", self.package("2..4"), "train", "-d", self.base / "text", "-o",
                   "s.stint", "--limit", 10, "--epochs", 1, "-n", 4, "--threads", 1,
                   normal=lambda data: re.sub(rb"[0-9.]+ s\n", b"", data), old="s.stint")

    def test_simulate(self):
        self.check("simulate", "--soc", "sd8gen3", "--shape", "qwen1.5-1.8b", "-p", 64, "--trace",
                   "t.svg", old="t.svg")


class Served(unittest.TestCase):
    """Slots are saved and restored with faults in their folder; the server goes on."""

    def answer(self, server):
        return server.complete("It was a cold evening", max_tokens=4,
                               temperature=0)["choices"][0]["text"]

    def act(self, server, action):
        return server.post(f"/v1/slots/0/{action}", name="evening")

    def round(self, folder, counter, fault):
        """What saving and restoring said, with the fault in between."""
        slots = folder / "slots"
        shutil.rmtree(slots, ignore_errors=True)
        slots.mkdir()
        with Server("--slot-dir", str(slots), "--slots", 1,
                    environment=environment(counter, fault, slots)) as server:
            text = self.answer(server)
            said = [self.act(server, "save"), self.act(server, "restore")]
            self.assertEqual(self.answer(server), text)
            again = [self.act(server, "save")[0], self.act(server, "restore")[0]]
            self.assertEqual(self.answer(server), text)
            self.assertEqual(again, [200, 200])
            self.assertEqual([path.name for path in slots.iterdir()], ["evening.slot"])
        return said

    def test_slots(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            counter = folder / "counter"
            said = self.round(folder, counter, "0:none")
            self.assertEqual([status for status, _ in said], [200, 200])
            n_calls = counted(counter) // 2
            for how in HOWS[:5]:
                for n in numbers(n_calls, how):
                    with self.subTest(how=how, n=n):
                        for status, answer in self.round(folder, counter, f"{n}{how}"):
                            if status != 200:
                                self.assertNotEqual(how, ":short")
                                self.assertIn(status, (404, 500, 507), answer)
                                self.assertTrue(answer["error"]["message"])
            print(f"saving and restoring: {n_calls} calls")

    def test_a_kill_leaves_the_old_slot_or_the_new(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            counter, slots = folder / "counter", folder / "slots"
            self.round(folder, counter, "0:none")
            n_calls = counted(counter) // 2
            first = (slots / "evening.slot").read_bytes()
            for n in range(1, n_calls + 1, 1 if LONG else 7):
                with self.subTest(n=n):
                    server = Server("--slot-dir", str(slots), "--slots", 1,
                                    environment=environment(counter, f"{n}:kill", slots))
                    with server:
                        self.answer(server)
                        try:
                            self.act(server, "save")
                            self.act(server, "restore")
                        except OSError:
                            pass
                        server.process.kill()
                        server.process.wait()
                    self.assertEqual((slots / "evening.slot").read_bytes(), first)
            with Server("--slot-dir", str(slots), "--slots", 1) as server:
                self.assertEqual(self.act(server, "restore")[0], 200)
                self.assertEqual(self.act(server, "save")[0], 200)
                self.assertEqual([path.name for path in slots.iterdir()], ["evening.slot"])


class Prefixes(unittest.TestCase):
    """What a slot gives up is saved and loaded with faults in the folder: no answer changes."""
    TALKS = ("It was a cold evening. " * 12, "The old man looked at the sea. " * 12)
    HOWS = (":EIO", ":ENOSPC", ":EMFILE", ":short", ":kill", "+:EIO", "+:ENOSPC")

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.base = pathlib.Path(holder.name).resolve()
        self.counter, self.kept = self.base / "counter", self.base / "kept"

    def talk(self, fault):
        """The answers of a server to both conversations and the first one again, or fewer where a
        fault killed it; then it ends, and saves what its slot holds."""
        texts = []
        with Server("--prefix-cache", str(self.kept), "--slots", 1,
                    environment=environment(self.counter, fault, self.kept)) as server:
            try:
                for prompt in (*self.TALKS, self.TALKS[0]):
                    answer = server.complete(prompt, max_tokens=4, temperature=0)
                    texts.append(answer["choices"][0]["text"])
            except (OSError, http.client.HTTPException):
                self.assertEqual(server.end(60), -signal.SIGKILL)
            if fault.endswith(":kill") and server.process.returncode is None:
                server.process.send_signal(signal.SIGTERM)
                self.assertIn(server.end(60), (0, -signal.SIGKILL))
        return texts

    def names(self):
        return sorted(path.name for path in self.kept.iterdir() if path.name != "lock")

    def fresh(self):
        shutil.rmtree(self.kept, ignore_errors=True)
        self.kept.mkdir()

    def test_no_fault_changes_an_answer(self):
        self.fresh()
        wanted, n_calls, n_tried = self.talk("0:none"), counted(self.counter), 0
        names = self.names()
        self.assertEqual([name[-7:] for name in names], [".prefix"] * 2)
        for how in self.HOWS:
            for n in numbers(n_calls, how):
                with self.subTest(how=how, n=n):
                    self.fresh()
                    got = self.talk(f"{n}{how}")
                    n_tried += 1
                    self.assertEqual(got, wanted[:len(got)])
                    self.assertTrue(how == ":kill" or len(got) == len(wanted))
                    if how != ":kill":
                        self.assertLessEqual(set(self.names()), set(names), "left behind")
                    self.assertEqual(self.talk("0:none"), wanted)
                    self.assertEqual(self.names(), names)
        print(f"prefixes: {n_calls} calls, {n_tried} runs with a fault")


class Sockets(unittest.TestCase):
    """Each n-th call on a socket fails: a client may see its connection break off, but what arrives
    is right, and the server goes on."""
    HOWS = ("ECONNRESET", "EPIPE", "EINTR", "EMFILE", "short")
    HARMLESS = ("EINTR", "short")
    # An answer takes up to a dozen calls. More than two take lie between faults that break it off,
    # so that one of them arrives, wherever the first fault falls.
    EACH, EACH_HARMLESS = (25, 35), (3, 9)

    def ask(self, server):
        """Text of a whole answer and of a stream, or None where the connection broke off."""
        try:
            whole = server.complete("It was", max_tokens=4, temperature=0)["choices"][0]["text"]
        except (OSError, http.client.HTTPException):
            whole = None
        try:
            status, _, data = server.ask("POST", "/v1/completions", {
                "prompt": "It was", "max_tokens": 4, "temperature": 0, "stream": True})
            self.assertEqual(status, 200)
            streamed = "".join(e["choices"][0]["text"] for e in events(data))
        except (OSError, http.client.HTTPException):
            streamed = None
        return whole, streamed

    def test_a_server_outlives_its_connections(self):
        rounds = 60 if LONG else 8
        with tempfile.TemporaryDirectory() as name, Server("--slots", 1) as sound:
            counter = pathlib.Path(name) / "counter"
            right = self.ask(sound)[0]
            for how in self.HOWS:
                each = random.Random(f"{SEED}.{how}").randint(
                    *(self.EACH_HARMLESS if how in self.HARMLESS else self.EACH))
                with self.subTest(how=how, each=each), Server(
                        "--slots", 1, environment=environment(counter, f"{each}*:{how}",
                                                              "sockets")) as server:
                    server.health()
                    n_files = server.open_files()
                    got = [text for _ in range(rounds) for text in self.ask(server)]
                    self.assertLessEqual(set(got), {right, None})
                    self.assertIn(right, got)
                    if how in self.HARMLESS:
                        self.assertNotIn(None, got)
                    self.assertGreater(counted(counter), each)
                    server.wait_for_files(n_files)


class Starting(unittest.TestCase):
    def test_a_server_starts_or_says_why_not(self):
        with tempfile.TemporaryDirectory() as name:
            counter = pathlib.Path(name) / "counter"
            with Server("--slots", 1, environment=environment(counter, "0:none")):
                n_calls = counted(counter)
            for how in HOWS[:5]:
                for n in numbers(n_calls, how):
                    with self.subTest(how=how, n=n):
                        server = Server("--slots", 1,
                                        environment=environment(counter, f"{n}{how}"))
                        try:
                            with server:
                                server.health()
                        except AssertionError as error:
                            self.assertNotEqual(how, ":short", error)
                            self.assertEqual(server.process.wait(60), 1, error)
                            self.assertIn("stint: ", str(error))


if __name__ == "__main__":
    unittest.main()
