#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/SERVER.md's configuration of a load balancer: HAProxy in front of three servers, all on this
machine. Skips itself without HAProxy (`scripts/bootstrap balancer`)."""
import collections
import csv
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from command import SOURCE
from server import Server

N_CONVERSATIONS = 12


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Balanced(unittest.TestCase):
    """A balancer before three servers."""
    check_interval = "1s"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.control = str(pathlib.Path(folder.name) / "control")
        self.servers = {}
        for name in "abc":
            server = Server("--threads", 1, "--slots", 16, "--ctx", 512, "--lame-duck", 3)
            self.servers[name] = server.__enter__()
            self.addCleanup(server.__exit__)
        self.port = free_port()
        path = pathlib.Path(folder.name) / "haproxy.cfg"
        path.write_text(self.configuration(), encoding="utf-8")
        self.proxy = subprocess.Popen(["haproxy", "-db", "-f", path], stderr=subprocess.PIPE)
        self.addCleanup(self.end_proxy)
        until = time.monotonic() + 60
        while True:
            try:
                if self.ask("GET", "/health")[0] == 200:
                    break
            except OSError:
                pass
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def end_proxy(self):
        self.proxy.terminate()
        self.proxy.communicate(timeout=60)

    def configuration(self):
        """As it is in the docs, with the addresses of this test."""
        text = re.search(r"^```haproxy\n(.*?)^```", (SOURCE / "docs" / "SERVER.md").read_text(
            encoding="utf-8"), re.M | re.S)[1]
        text, n = re.subn(r"bind 127\.0\.0\.1:\d+", f"bind 127.0.0.1:{self.port}", text)
        self.assertEqual(n, 1)
        for name, server in self.servers.items():
            text, n = re.subn(rf"server {name} [0-9.:]+", f"server {name} 127.0.0.1:{server.port}",
                              text)
            self.assertEqual(n, 1)
        text, n = re.subn(r"check inter 1s", f"check inter {self.check_interval}", text)
        self.assertEqual(n, 1)
        # One thread: what the control socket says holds for the next request as well.
        more = f"    nbthread 1\n    stats socket {self.control}\n"
        return text.replace("global\n", "global\n" + more, 1)

    def wait_until_idle(self):
        """HAProxy counts a request for a while after its answer, and would balance by it."""
        until = time.monotonic() + 600
        while True:
            with socket.socket(socket.AF_UNIX) as control:
                control.connect(self.control)
                control.sendall(b"show stat\n")
                said = b"".join(iter(lambda: control.recv(1 << 16), b"")).decode()
            rows = csv.DictReader(said.removeprefix("# ").splitlines())
            if all(row["scur"] == "0" for row in rows if row["pxname"] == "machines"):
                return
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1200)
        try:
            connection.request(method, path, json.dumps(body) if body else None)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def chat(self, messages, **more):
        status, answer = self.ask("POST", "/v1/chat/completions", {
            "messages": messages, "max_tokens": 6, "temperature": 0, **more})
        self.assertEqual(status, 200, answer)
        return answer

    def served(self):
        """Requests that each server answered."""
        return {name: server.metric("stint_generated_tokens_total")
                for name, server in self.servers.items() if server.process.poll() is None}


class Affinity(Balanced):
    check_interval = "1h"  # no starved check takes a server out

    def test_a_conversation_stays_where_its_prefix_is(self):
        where = collections.Counter()
        for i in range(N_CONVERSATIONS):
            messages = [{"role": "user", "content": f"Tell me of the {i}th of the Dickens family."}]
            if i % 2:
                messages.insert(0, {"role": "system", "content": "You are a narrator."})
            machines = set()
            for turn in range(3):
                self.wait_until_idle()
                before = self.served()
                answer = self.chat(messages)
                after = self.served()
                machines.update(name for name in after if after[name] > before[name])
                cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
                if turn > 0:
                    self.assertGreaterEqual(cached, 8)
                messages += [{"role": "assistant",
                              "content": answer["choices"][0]["message"]["content"]},
                             {"role": "user", "content": "And then?"}]
            self.assertEqual(len(machines), 1, machines)
            where.update(machines)
        self.assertGreater(len(where), 1)  # not all on one

    def test_a_key_of_the_client_decides(self):
        before = self.served()
        for i in range(6):
            self.wait_until_idle()
            self.chat([{"role": "user", "content": f"Question {i}"}], prompt_cache_key="mine")
        after = self.served()
        self.assertEqual(sum(after[name] > before[name] for name in after), 1)


class Failures(Balanced):
    def run_clients(self, act):
        """The statuses and answers of clients that ask without a pause, while act(results) runs."""
        results, stop = [], threading.Event()

        def client(i):
            turn = 0
            while not stop.is_set():
                turn += 1
                try:
                    results.append(self.ask("POST", "/v1/completions", {
                        "prompt": f"The {i}th man said {turn} times", "max_tokens": 6,
                        "temperature": 0, "ignore_eos": True}))
                except (OSError, http.client.HTTPException) as error:
                    results.append((0, repr(error)))
        threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        try:
            act(results)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        return results

    def test_a_server_that_drains_loses_no_answer(self):
        leaving = self.servers["b"]

        def more(results, n=20):
            wanted = len(results) + n
            while len(results) < wanted:
                time.sleep(0.01)

        with leaving.open_stream(prompt="Once", max_tokens=300, ignore_eos=True) as stream:
            text = stream.recv(1 << 16)

            def act(results):
                nonlocal text
                more(results)
                leaving.process.send_signal(signal.SIGTERM)
                while part := stream.recv(1 << 16):
                    text += part
                self.assertEqual(leaving.end(), 0)
                more(results)
            results = self.run_clients(act)
        self.assertIn(b"[DONE]", text)
        self.assertEqual([result for result in results if result[0] != 200], [])
        for _, answer in results:
            self.assertEqual(answer["usage"]["completion_tokens"], 6)

    def test_a_server_that_dies_is_left_out(self):
        self.servers["c"].process.kill()
        self.servers["c"].process.wait()
        for i in range(12):
            self.chat([{"role": "user", "content": f"Question {i}"}])


if __name__ == "__main__":
    if not shutil.which("haproxy"):
        print("skipped: no haproxy; scripts/bootstrap balancer")
        sys.exit(77)
    unittest.main()
