#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may ask stint serve, slots on disk, and the command itself."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from command import COMMAND, MODEL, PROMPT, QUICKLY, stint
from server import KEY, Server, Shared


class Keys(Shared):
    options = ("--key-file", "-")

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "key"
        path.write_text(KEY + "\n", encoding="utf-8")
        cls.options = ("--key-file", path)
        super().setUpClass()

    def test_wrong_keys_are_refused(self):
        for key in (None, "Bearer", "Bearer ", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}",
                    f"Basic {KEY}", KEY, "Bearer " + "x" * 5000):
            for path in ("/v1/models", "/metrics", "/stint/last"):
                headers = {} if key is None else {"Authorization": key}
                status, got, text = self.server.ask("GET", path, headers=headers)
                self.assertEqual(status, 401, (key, path))
                self.assertIn("Bearer", got["WWW-Authenticate"])
                self.assertEqual(json.loads(text)["error"]["type"], "authentication_error")

    def test_the_right_key_opens(self):
        self.server.get("/v1/models", Authorization=f"Bearer {KEY}")
        status, _, _ = self.server.ask("POST", "/v1/completions",
                                       {"prompt": PROMPT, "max_tokens": 1},
                                       {"authorization": f"bearer {KEY}"})
        self.assertEqual(status, 200)

    def test_health_and_page_need_none(self):
        for path in ("/health", "/"):
            self.server.get(path)

    def test_the_environment_has_the_key_too(self):
        with Server(environment={**os.environ, "STINT_API_KEY": "k2"}) as server:
            self.assertEqual(server.ask("GET", "/v1/models")[0], 401)
            server.get("/v1/models", Authorization="Bearer k2")


class Browsers(unittest.TestCase):
    """What pages of other sites may not do."""

    def test_other_names_and_origins_are_refused(self):
        with Server() as server:
            own = f"localhost:{server.port}"
            for headers, status in (({"Host": "evil.example"}, 403), ({"Host": own}, 200),
                                    ({"Host": "127.0.0.1"}, 200), ({"Host": "[::1]:99"}, 200),
                                    ({"Host": "localhost.evil.example"}, 403),
                                    ({"Origin": "https://evil.example"}, 403),
                                    ({"Origin": "null"}, 403),
                                    ({"Host": own, "Origin": f"http://{own}"}, 200)):
                got, answer, _ = server.ask("GET", "/v1/models", headers=headers)
                self.assertEqual(got, status, headers)
                self.assertNotIn("Access-Control-Allow-Origin", answer)

    def test_cors_permits_one_origin(self):
        origin = {"Origin": "https://app.example"}
        with Server("--cors", "https://app.example") as server:
            status, headers, _ = server.ask("OPTIONS", "/v1/completions", headers={
                **origin, "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization, content-type"})
            self.assertEqual(status, 204)
            self.assertEqual(headers["Access-Control-Allow-Origin"], "https://app.example")
            self.assertIn("authorization", headers["Access-Control-Allow-Headers"])
            status, headers, _ = server.ask("GET", "/v1/models", headers=origin)
            self.assertEqual(headers["Access-Control-Allow-Origin"], "https://app.example")
            other = {"Origin": "https://evil.example"}
            self.assertEqual(server.ask("GET", "/v1/models", headers=other)[0], 403)


class Owners(unittest.TestCase):
    def test_what_one_key_left_in_a_slot_is_not_anothers(self):
        """Also where no key is needed: clients send one anyway. Neither the number of cached
        tokens nor a saved slot tells what others have asked."""
        def ask(server, key):
            status, _, text = server.ask("POST", "/v1/completions", body,
                                         {"Authorization": f"Bearer {key}"} if key else None)
            self.assertEqual(status, 200)
            answer = json.loads(text)
            return (answer["usage"]["prompt_tokens_details"]["cached_tokens"],
                    answer["choices"][0]["text"])

        body = {"prompt": PROMPT * 5, "max_tokens": 2, "temperature": 0}
        with tempfile.TemporaryDirectory() as folder:
            with Server("--slots", "1", "--slot-dir", folder) as server:
                cached, text = ask(server, "one")
                self.assertEqual(cached, 0)
                self.assertGreater(ask(server, "one")[0], 20)
                for key in ("two", None):
                    status, _, _ = server.ask("POST", "/v1/slots/0/save", {"name": "stolen"},
                                              {"Authorization": f"Bearer {key}"})
                    self.assertEqual(status, 400)
                self.assertEqual(ask(server, "two"), (0, text))
                self.assertEqual(ask(server, None), (0, text))
                self.assertGreater(ask(server, None)[0], 20)
                self.assertEqual(ask(server, "one"), (0, text))
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


class Slots(unittest.TestCase):
    def test_a_slot_goes_to_disk_and_back(self):
        body = {"prompt": PROMPT * 20, "max_tokens": 4, "temperature": 0}
        with tempfile.TemporaryDirectory() as folder:
            with Server("--slots", "1", "--slot-dir", folder) as server:
                text = server.complete(**body)["choices"][0]["text"]
                status, saved = server.post("/v1/slots/0/save", name="evening")
                self.assertEqual((status, saved["slot"]), (200, 0), saved)
            with Server("--slots", "1", "--slot-dir", folder) as server:
                status, restored = server.post("/v1/slots/0/restore", name="evening")
                self.assertEqual((status, restored), (200, saved))
                again = server.complete(**body)
                self.assertEqual(again["choices"][0]["text"], text)
                self.assertGreater(again["usage"]["prompt_tokens_details"]["cached_tokens"], 100)
                for path, name, status in (("/v1/slots/0/restore", "nothing", 404),
                                           ("/v1/slots/0/save", "../evening", 400),
                                           ("/v1/slots/0/save", "", 400),
                                           ("/v1/slots/0/save", "a" * 65, 400),
                                           ("/v1/slots/1/save", "a", 404),
                                           ("/v1/slots/-1/save", "a", 404),
                                           ("/v1/slots/00000000000/save", "a", 404)):
                    self.assertEqual(server.post(path, name=name)[0], status, (path, name))
            self.assertEqual([file.name for file in pathlib.Path(folder).iterdir()],
                             ["evening.slot"])

    def test_saved_slots_are_bounded_and_can_be_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            with Server("--slots", "1", "--slot-dir", folder, "--slot-files", "2") as server:
                server.complete(PROMPT, max_tokens=1)
                for name in ("a", "b", "a"):
                    self.assertEqual(server.post("/v1/slots/0/save", name=name)[0], 200)
                status, answer = server.post("/v1/slots/0/save", name="c")
                self.assertEqual((status, answer["error"]["code"]), (409, "slot_files_full"))
                saved = json.loads(server.get("/v1/slots/saved"))["data"]
                self.assertEqual(sorted(one["name"] for one in saved), ["a", "b"])
                for one in saved:
                    file = pathlib.Path(folder) / f"{one['name']}.slot"
                    self.assertEqual(file.stat().st_size, one["bytes"])
                    self.assertEqual(file.stat().st_mode & 0o777, 0o600)
                self.assertEqual(server.ask("DELETE", "/v1/slots/saved/a")[0], 200)
                self.assertEqual(server.ask("DELETE", "/v1/slots/saved/a")[0], 404)
                self.assertEqual(server.ask("DELETE", "/v1/slots/saved/..%2Fb")[0], 400)
                self.assertEqual(server.post("/v1/slots/0/save", name="c")[0], 200)
                bytes_of_one = saved[0]["bytes"]
            with Server("--slots", "1", "--slot-dir", folder, "--slot-bytes",
                        3 * bytes_of_one + 60000) as server:
                server.complete(PROMPT, max_tokens=1)
                self.assertEqual(server.post("/v1/slots/0/save", name="d")[0], 200)
                status, answer = server.post("/v1/slots/0/save", name="e")
                self.assertEqual((status, answer["error"]["code"]), (409, "slot_files_full"))
                self.assertEqual(server.post("/v1/slots/0/save", name="d")[0], 200)
            names = sorted(file.name for file in pathlib.Path(folder).iterdir())
            self.assertEqual(names, ["b.slot", "c.slot", "d.slot"])

    def test_prefixes_outlive_the_server_and_belong_to_a_key(self):
        body = {"prompt": PROMPT * 20, "max_tokens": 4, "temperature": 0}

        def ask(server, key):
            status, _, data = server.ask("POST", "/v1/completions", body,
                                         {"Authorization": f"Bearer {key}"})
            self.assertEqual(status, 200, data)
            answer = json.loads(data)
            return (answer["choices"][0]["text"],
                    answer["usage"]["prompt_tokens_details"]["cached_tokens"])

        with tempfile.TemporaryDirectory() as folder:
            options = ("--slots", "1", "--prefix-cache", folder)
            with Server(*options) as server:
                text, cached = ask(server, "one")
                self.assertEqual(cached, 0)
            file, = pathlib.Path(folder).glob("*.prefix")
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)
            with Server(*options) as server:
                self.assertEqual(ask(server, "two"), (text, 0))
                again, cached = ask(server, "one")
                self.assertEqual(again, text)
                self.assertGreater(cached, 100)
                self.assertEqual(server.metric("stint_prefix_loads_total"), 1)
                self.assertEqual(server.metric("stint_prefix_saves_total"), 1)
            with Server("--prefix-bytes", "1K", *options) as server:
                server.complete(**body)
            self.assertEqual(len(list(pathlib.Path(folder).glob("*.prefix"))), 2)

    def test_without_a_folder_nothing_is_kept(self):
        with Server() as server:
            self.assertEqual(server.post("/v1/slots/0/save", name="a")[0], 404)


class Package(unittest.TestCase):
    """Weights in INT8, and a memory bound."""

    def test_a_package_under_a_bound(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "small.stint"
            self.assertEqual(stint("prepare", MODEL, "-o", package, *QUICKLY).returncode, 0)
            with Server("--memory", "96M", "--slots", "2", model=package) as server:
                model, = json.loads(server.get("/v1/models"))["data"]
                self.assertEqual(model["id"], "small")
                self.assertEqual(model["stint"]["exec"], "npu")
                self.assertEqual(model["stint"]["memory_budget"], 96 << 20)
                alone = server.complete(PROMPT, seed=1)["choices"]
                both = server.complete([PROMPT, PROMPT], seed=1)["choices"]
                self.assertEqual([c["text"] for c in both], [alone[0]["text"]] * 2)
                last = json.loads(server.get("/stint/last"))
                self.assertEqual(last["memory"]["budget_bytes"], 96 << 20)
                self.assertGreater(last["io"]["bytes_read"], 0)
                self.assertEqual({token["bits"] for token in last["tokens"]}, {8})
                self.assertGreater(server.metric("stint_weight_bytes_read_total"), 0)


class Command(unittest.TestCase):
    def test_other_machines_need_a_key(self):
        done = stint("serve", MODEL, "--host", "0.0.0.0", "--port", "0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--key-file", done.stderr)
        self.assertIn("--no-key", done.stderr)

    def test_a_port_in_use(self):
        with Server() as server:
            done = stint("serve", MODEL, "--port", server.port)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"port {server.port}", done.stderr)

    def test_bad_options(self):
        for options in (("--slot-dir", "/nonexistent"), ("--prefix-cache", "/nonexistent"),
                        ("--key-file", "/nonexistent"), ("--host", "no such host")):
            done = stint("serve", MODEL, "--port", "0", *options)
            self.assertEqual(done.returncode, 1, options)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_verbose_tells_each_request(self):
        with Server("--verbose", "--name", "mine") as server:
            server.ask("GET", "/health%0a%1b[31mred")
            server.complete(PROMPT, max_tokens=1, model="mine")
        self.assertRegex(server.said, r"(?m)POST /v1/completions 200 \d+\.\d+ s$")
        self.assertIn("GET /health??[31mred 404", server.said)

    def test_signals_end_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Server() as server:
                server.process.send_signal(number)
                self.assertEqual(server.end(), 0)
        self.assertEqual(subprocess.run([COMMAND, "serve", "--help"], capture_output=True,
                                        check=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
