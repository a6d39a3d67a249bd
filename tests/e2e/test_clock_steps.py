#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands and the server while the time of day jumps by a day at each look at it
(tests/tools/step_clock.c): answers are the same, nobody is late, and nothing waits for a day."""
import os
import platform
import sys
import tempfile
import unittest

from built import BUILD, skip_under_sanitizers
from command import MODEL, PROMPT, stint
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

    def test_a_server(self):
        with tempfile.TemporaryDirectory() as folder, Server(
                "--slots", 1, "--slot-dir", folder, "--timeout", 60, "--drain", 60,
                environment=STEPPED) as server:
            slow, body = server.connect(), b'{"prompt": "It was", "max_tokens": 1}'
            slow.putrequest("POST", "/v1/completions")
            slow.putheader("Content-Length", str(len(body)))
            slow.endheaders(body[:9])
            text = server.complete(PROMPT, max_tokens=4, temperature=0)["choices"][0]["text"]
            self.assertEqual(server.post("/v1/slots/0/save", name="a")[0], 200)
            self.assertEqual(server.post("/v1/slots/0/restore", name="a")[0], 200)
            again = server.complete(PROMPT, max_tokens=4, temperature=0)["choices"][0]["text"]
            self.assertEqual(again, text)
            slow.send(body[9:])
            self.assertEqual(slow.getresponse().status, 200)
            slow.close()
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
