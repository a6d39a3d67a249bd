#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands and the server while the time of day jumps by a day at each look at it
(tests/tools/step_clock.c): answers are the same, nobody is late, and nothing waits for a day."""
import os
import platform
import pty
import re
import subprocess
import sys
import tempfile
import time
import unittest

from built import BUILD, skip_under_sanitizers
from command import COMMAND, MODEL, PROMPT, stint
from server import Server

skip_under_sanitizers()
SHIM = BUILD / "tests" / "libstep_clock.so"
if platform.machine() != "x86_64" or not SHIM.exists():
    print("skipped: the clock is stepped on x86-64 only")
    sys.exit(77)

STEPPED = {**os.environ, "LD_PRELOAD": str(SHIM)}


class ClockSteps(unittest.TestCase):
    def test_commands(self):
        words = ("run", MODEL, "-p", PROMPT, "-n", 4, "--temp", 0, "--threads", 2)
        sound, stepped = stint(*words), stint(*words, env=STEPPED)
        self.assertEqual((stepped.returncode, stepped.stdout), (0, sound.stdout), stepped.stderr)

    def shown(self, *words, text=None, **environment):
        """Standard output, and what a terminal shows of standard error."""
        master, slave = pty.openpty()
        done = subprocess.run([COMMAND, *map(str, words)], input=text, stdout=subprocess.PIPE,
                              stderr=slave, encoding="utf-8", check=True,
                              env={**STEPPED, **environment})
        os.close(slave)
        shown = b""
        try:
            while more := os.read(master, 4096):
                shown += more
        except OSError:  # all has been read
            pass
        os.close(master)
        return done.stdout, shown.decode("utf-8")

    def test_a_bar_shows_while_a_prompt_is_read(self):
        prompt = PROMPT * 12
        common = ("--temp", 0, "--threads", 2, "--chunk", 32)
        for words, text in ((("run", MODEL, "-p", prompt, "-n", 2), None),
                            (("chat", MODEL, "-n", 2), prompt + "\n")):
            answer, _ = self.shown(*words, *common, text=text)
            hurried, shown = self.shown(*words, *common, text=text, CLOCK_RATE="100000")
            self.assertEqual(hurried, answer)
            bars = re.findall(r"\r([^\r]*)\[([#.]{28})\] +(\d+) %  \d+ s left", shown)
            self.assertGreater(len(bars), 1, shown)
            shares = [int(share) for _, _, share in bars]
            self.assertEqual(shares, sorted(shares), shown)
            self.assertIn("\r\x1b[K", shown[shown.rindex("s left"):])  # erased for the answer

    def begin(self, server, body):
        """A connection on which a part of the body has been sent."""
        client = server.connect()
        client.putrequest("POST", "/v1/completions")
        client.putheader("Content-Length", str(len(body)))
        client.endheaders(body[:9])
        return client

    def test_a_server(self):
        with tempfile.TemporaryDirectory() as folder, Server(
                "--slots", 1, "--slot-dir", folder, "--timeout", 60, "--drain", 60,
                environment=STEPPED) as server:
            body = b'{"prompt": "It was", "max_tokens": 1}'
            slow = [self.begin(server, body) for _ in range(8)]
            text = server.complete(PROMPT, max_tokens=4, temperature=0)["choices"][0]["text"]
            self.assertEqual(server.post("/v1/slots/0/save", name="a")[0], 200)
            self.assertEqual(server.post("/v1/slots/0/restore", name="a")[0], 200)
            again = server.complete(PROMPT, max_tokens=4, temperature=0)["choices"][0]["text"]
            self.assertEqual(again, text)
            time.sleep(1)  # the server looks for late clients four times a second
            for client in slow:
                client.send(body[9:])
                self.assertEqual(client.getresponse().status, 200)
                client.close()
            stream = server.open_stream(prompt=PROMPT, max_tokens=40, temperature=0)
            self.assertIn(b"200 OK", stream.recv(100))
            server.process.terminate()  # the stream is finished first
            self.assertEqual(server.end(), 0, server.said)
            self.assertNotIn("aborted", server.said)
            rest = b""
            while more := stream.recv(65536):
                rest += more
            self.assertIn(b"[DONE]", rest)
            stream.close()


if __name__ == "__main__":
    unittest.main()
