#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stint pull, list and rm against a server that plays the hub, faults included. What is not
complete never has its final name."""
import json
import os
import pathlib
import resource
import socket
import subprocess
import tempfile
import threading
import unittest

from command import COMMAND, MODEL, PROMPT, QUICKLY, stint
from fault_hub import TOKEN, Hub

MIB = 1 << 20
# No two places look alike, so a wrong order shows.
WEIGHTS = b"GGUF" + b"".join(i.to_bytes(4, "little") for i in range(8 * MIB // 4 - 1)) + b"end"


class Pull(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.models = self.home / "models"

    def stint(self, hub, *arguments, **options):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("HF_") and not name.lower().endswith("_proxy")}
        environment |= {"STINT_MODELS": str(self.models), "HOME": str(self.home),
                        "HF_ENDPOINT": hub if isinstance(hub, str) else hub.url}
        environment.pop("XDG_CACHE_HOME", None)
        environment |= options.pop("env", {})
        return stint(*arguments, env=environment, **options)

    def pulls(self, hub, what="hf:org/model", **options):
        done = self.stint(hub, "pull", what, "--json", **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def fails(self, hub, part, what="hf:org/model", status=1, **options):
        done = self.stint(hub, "pull", what, **options)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(part, done.stderr)
        self.assertEqual(self.complete(), [])
        return done.stderr

    def complete(self):
        """The files that have their final names."""
        return sorted(str(path.relative_to(self.models)) for path in self.models.rglob("*")
                      if path.is_file() and ".part" not in str(path))

    def parts(self):
        return [path for path in self.models.rglob("*.part") if path.is_file()]


class Whole(Pull):
    def test_one_file(self):
        with Hub({"README.md": b"#", "model-q4_k_m.gguf": WEIGHTS}) as hub:
            told = self.pulls(hub)
            self.assertEqual(told["name"], "org/model/model-q4_k_m")
            self.assertEqual(told["licence"], "apache-2.0")
            self.assertEqual(told["fetched_bytes"], len(WEIGHTS))
            self.assertEqual(pathlib.Path(told["path"]).read_bytes(), WEIGHTS)
            self.assertEqual(self.parts(), [])
            asked = len(hub.requests)
            self.assertEqual(self.pulls(hub)["fetched_bytes"], 0)
            self.assertEqual(len(hub.requests), asked + 1)  # the listing alone

    def test_what_is_asked_for_of_several(self):
        files = {f"m-{kind}.gguf": b"GGUF" + kind.encode() for kind in ("Q4_K_M", "Q8_0", "F16")}
        with Hub(files) as hub:
            for what, name in ((":Q8_0", "m-Q8_0"), (":m-F16.gguf", "m-F16"), ("", "m-Q4_K_M")):
                self.assertEqual(self.pulls(hub, f"hf:org/model{what}")["name"],
                                 f"org/model/{name}")
            done = self.stint(hub, "pull", "hf:org/model:gguf")
            self.assertEqual(done.returncode, 2)
            self.assertIn("m-Q4_K_M.gguf, m-Q8_0.gguf, m-F16.gguf", done.stderr)

    def test_a_folder_answers_by_its_name_and_is_removed(self):
        files = {path.name: path.read_bytes() for path in MODEL.iterdir() if path.is_file()}
        with Hub({**files, "pytorch_model.bin": b"no", "onnx/model.onnx": b"no"}) as hub:
            told = self.pulls(hub)
            self.assertEqual(told["name"], "org/model")
            kept = {path.name for path in pathlib.Path(told["path"]).iterdir()}
            self.assertIn("config.json", kept)
            self.assertNotIn("pytorch_model.bin", kept)
            for name in ("org/model", "hf:org/model"):
                ran = self.stint(hub, "run", name, "-p", PROMPT, "-n", "4")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertEqual(ran.stdout, stint("run", MODEL, "-p", PROMPT, "-n", "4").stdout)
            ids = self.stint(hub, "tokenize", "org/model", text="a")
            self.assertEqual(ids.returncode, 0, ids.stderr)
            package = self.models / "packed.stint"
            ready = self.stint(hub, "prepare", "org/model", "-o", package, *QUICKLY)
            self.assertEqual(ready.returncode, 0, ready.stderr)
            self.assertEqual(self.stint(hub, "inspect", "packed").returncode, 0)
            listed = json.loads(self.stint(hub, "list", "--json").stdout)
            self.assertEqual([(m["name"], m["complete"]) for m in listed["models"]],
                             [("org/model", True), ("packed", True)])
            self.assertIn("smollm2-135m", [m["name"] for m in listed["tested"]])
            self.assertEqual(self.stint(hub, "rm", "org/model").returncode, 0)
            gone = self.stint(hub, "run", "hf:org/model", "-p", "x")
            self.assertIn("'stint pull hf:org/model' fetches it", gone.stderr)
            self.assertEqual(self.stint(hub, "rm", "org/model").returncode, 1)

    def test_a_url(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            url = f"{hub.url}/some/where/model.gguf?download=true"
            self.assertEqual(self.pulls(hub, url)["name"], "model")
            self.assertEqual(self.complete(), ["model.gguf"])

    def test_a_tested_model_is_asked_for_by_its_commit(self):
        with Hub({"SmolLM2-135M-Instruct.Q4_1.gguf": WEIGHTS}) as hub:
            self.fails(hub, "has not the 98362432 bytes", "smollm2-135m")  # these are not its bytes
            self.assertIn("/resolve/ab810cf6", hub.requests[0][0])
        done = self.stint(hub, "run", "smollm2-135m", "-p", "x")
        self.assertIn("'stint pull smollm2-135m' fetches it", done.stderr)


class Faults(Pull):
    def test_cut_at_every_mebibyte(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            hub.cut_every = MIB
            self.pulls(hub)
            self.assertEqual((self.models / "org/model/model.gguf").read_bytes(), WEIGHTS)
            begins = [headers.get("Range") for path, headers in hub.requests if "resolve" in path]
            self.assertEqual(begins, [None] + [f"bytes={i * MIB}-" for i in range(1, 9)])

    def test_killed_at_every_mebibyte_and_continued(self):
        for n in range(1, 8):
            part = self.models / "org/model/model.gguf.part"
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(WEIGHTS[:n * MIB])  # what a killed process leaves
            with Hub({"model.gguf": WEIGHTS}) as hub:
                unfinished = json.loads(self.stint(hub, "list", "--json").stdout)["models"]
                self.assertEqual([(m["name"], m["complete"]) for m in unfinished],
                                 [("org/model/model", False)])
                self.pulls(hub)
                self.assertEqual(hub.requests[-1][1]["Range"], f"bytes={n * MIB}-")
            final = self.models / "org/model/model.gguf"
            self.assertEqual(final.read_bytes(), WEIGHTS)
            final.unlink()

    def test_a_killed_process_leaves_no_final_name(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            hub.cut_every = MIB
            held = threading.Event()
            original = hub.listing
            hub.listing = lambda: (held.wait(30), original())[1]
            process = subprocess.Popen([COMMAND, "pull", "hf:org/model"],
                                       env={**os.environ, "STINT_MODELS": str(self.models),
                                            "HOME": str(self.home), "HF_ENDPOINT": hub.url})
            process.kill()
            process.wait()
            held.set()
            self.assertEqual(self.complete(), [])

    def test_a_server_without_ranges_starts_over(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            hub.ranges = False
            part = self.models / "org/model/model.gguf.part"
            part.parent.mkdir(parents=True)
            part.write_bytes(b"GGUF of another day")
            self.pulls(hub)
            self.assertEqual((self.models / "org/model/model.gguf").read_bytes(), WEIGHTS)

    def test_a_part_of_another_file_starts_over(self):
        part = self.models / "org/model/model.gguf.part"
        part.parent.mkdir(parents=True)
        part.write_bytes(bytes(MIB))
        with Hub({"model.gguf": WEIGHTS}) as hub:
            self.pulls(hub)
        self.assertEqual((self.models / "org/model/model.gguf").read_bytes(), WEIGHTS)

    def test_a_url_s_part_is_continued_only_with_its_tag(self):
        part = self.models / "model.gguf.part"
        self.models.mkdir()
        for tag, begin in (('"one"', WEIGHTS[:MIB]), ('"two"', bytes(MIB)), (None, bytes(MIB))):
            with self.subTest(tag=tag), Hub({"model.gguf": WEIGHTS}) as hub:
                part.write_bytes(begin)
                if tag is not None:
                    (self.models / "model.gguf.part.etag").write_text(tag, encoding="utf-8")
                self.pulls(hub, f"{hub.url}/model.gguf")
                final = self.models / "model.gguf"
                self.assertEqual(final.read_bytes(), WEIGHTS)
                final.unlink()

    def test_wrong_checksum(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            hub.wrong_sums = True
            self.fails(hub, "another SHA-256")
            self.assertEqual(self.parts(), [])
            hub.wrong_sums = False
            self.pulls(hub)

    def test_a_damaged_byte_is_noticed(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            hub.damaged = 1
            self.fails(hub, "another SHA-256")
            self.pulls(hub)

    def test_statuses(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            hub.status = {"/api": 404}
            self.fails(hub, "there is no such model")
            hub.status = {"/org": 404}
            self.fails(hub, "HTTP 404")
            hub.status = {"/org": 403}
            self.fails(hub, "HF_TOKEN")
            hub.status = {}
            hub.busy = 2
            self.pulls(hub)

    def test_a_server_that_stays_broken(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            hub.status = {"/org": 500}
            self.fails(hub, "HTTP 500")

    def test_more_bytes_or_other_ranges_than_promised(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            hub.sends_more = 7
            self.fails(hub, f"has not the {len(WEIGHTS)} bytes")
            hub.sends_more, hub.shifted, hub.cut_every = 0, True, MIB
            self.fails(hub, "another part of the file")

    def test_a_page_in_place_of_a_file(self):
        with Hub({"model.gguf": b"<!doctype html>" + bytes(100)}) as hub:
            self.fails(hub, "is not a GGUF file", f"{hub.url}/model.gguf")

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (3 * MIB, 3 * MIB))

        with Hub({"model.gguf": WEIGHTS}) as hub:
            self.fails(hub, "File too large", preexec_fn=limit)
            self.assertEqual([part.stat().st_size for part in self.parts()], [3 * MIB])
            self.pulls(hub)  # room was made: it goes on where it stopped
            self.assertEqual(hub.requests[-1][1]["Range"], f"bytes={3 * MIB}-")

    def test_full_disk(self):
        self.models.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(self.models)]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            self.skipTest("no right to mount a small disk")
        self.addCleanup(subprocess.run, ["umount", str(self.models)], check=True)
        with Hub({"model.gguf": WEIGHTS}) as hub:
            self.fails(hub, "MB are free")
            # Without a size in advance it is noticed while writing.
            self.fails(hub, "No space left", f"{hub.url}/model.gguf")

    def test_offline(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        text = self.fails(f"http://127.0.0.1:{port}", "is this machine online?")
        self.assertIn("give its path in place of the name", text)

    def test_names_that_lead_out_or_mean_nothing(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            for what in ("hf:../../etc", "hf:org/..", "hf:org/model:../x.gguf", "hf:org",
                         "hf:org/model:/etc/passwd", "nonsense", "ftp://host/model.gguf",
                         f"{hub.url}/model.txt", f"{hub.url}/.gguf", "hf:org/model:"):
                with self.subTest(what=what):
                    self.fails(hub, what.split(":")[-1][:4], what, status=2)
            self.assertEqual(hub.requests, [])
            self.assertEqual(self.stint(hub, "rm", "../models").returncode, 1)

    def test_listings_that_are_none(self):
        with Hub({"model.gguf": WEIGHTS}) as hub:
            for listing in ([], {}, {"siblings": 7}, {"sha": "../..", "siblings": []},
                            {"sha": "a", "siblings": [{"rfilename": "../../x.gguf"}]},
                            {"sha": "a", "siblings": [{"rfilename": "x.gguf", "size": -1}]},
                            {"sha": "a", "siblings": [{"rfilename": "x.gguf",
                                                       "lfs": {"sha256": "../x"}}]}):
                hub.listing = lambda answer=listing: answer
                with self.subTest(listing=listing):
                    done = self.stint(hub, "pull", "hf:org/model")
                    self.assertNotEqual(done.returncode, 0)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                    self.assertEqual(self.complete(), [])


class Parallel(Pull):
    """A file of three blocks, which come over as many connections."""
    LARGE = WEIGHTS * 2 + WEIGHTS[:4 * MIB + 5]

    def setUp(self):
        super().setUp()
        self.final = self.models / "org/model/model.gguf"

    def test_blocks_come_together(self):
        with Hub({"model.gguf": self.LARGE}) as hub:
            hub.together = threading.Barrier(3)  # one alone would wait in vain
            self.assertEqual(self.pulls(hub)["fetched_bytes"], len(self.LARGE))
            self.assertEqual(self.final.read_bytes(), self.LARGE)
            begins = {headers.get("Range") for path, headers in hub.requests if "resolve" in path}
            ends = [0, 8 * MIB, 16 * MIB, len(self.LARGE)]
            self.assertEqual(begins, {f"bytes={a}-{b - 1}" for a, b in zip(ends, ends[1:])})

    def test_cut_at_every_mebibyte(self):
        with Hub({"model.gguf": self.LARGE}) as hub:
            hub.cut_every = MIB
            self.pulls(hub)
        self.assertEqual(self.final.read_bytes(), self.LARGE)

    def test_what_came_is_a_beginning_and_is_continued(self):
        with Hub({"model.gguf": self.LARGE}) as hub:
            hub.has_until = 8 * MIB
            self.fails(hub, "HTTP 404")
            part, = self.parts()
            self.assertEqual(part.read_bytes(), self.LARGE[:8 * MIB])
            hub.has_until = None
            self.pulls(hub)
        self.assertEqual(self.final.read_bytes(), self.LARGE)

    def test_servers_that_do_not_keep_to_ranges(self):
        with Hub({"model.gguf": self.LARGE}) as hub:
            hub.shifted = True
            self.pulls(hub)  # in one piece then
            self.final.unlink()
            hub.shifted, hub.sends_more = False, 7
            self.fails(hub, f"has not the {len(self.LARGE)} bytes")
            hub.sends_more, hub.ranges = 0, False
            self.pulls(hub)
        self.assertEqual(self.final.read_bytes(), self.LARGE)

    def test_a_damaged_block_is_noticed(self):
        with Hub({"model.gguf": self.LARGE}) as hub:
            hub.damaged = 3  # of which one has the file's last byte
            self.fails(hub, "another SHA-256")
            self.assertEqual(self.parts(), [])
            self.pulls(hub)

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (3 * MIB, 3 * MIB))

        with Hub({"model.gguf": self.LARGE}) as hub:
            self.fails(hub, "File too large", preexec_fn=limit)
            self.assertEqual([part.stat().st_size for part in self.parts()], [3 * MIB])


class Secrets(Pull):
    def test_the_token_opens_the_hub_and_goes_nowhere_else(self):
        with Hub({"model.gguf": WEIGHTS}) as hub, Hub({"model.gguf": WEIGHTS}) as elsewhere:
            hub.private, hub.redirect_to = True, elsewhere
            self.fails(hub, "is not public")
            self.fails(hub, "the token is not accepted", env={"HF_TOKEN": "wrong"})
            self.pulls(hub, env={"HF_TOKEN": TOKEN})
            self.assertGreaterEqual(len(elsewhere.requests), 1)
            for _, headers in elsewhere.requests:
                self.assertNotIn("Authorization", headers)

    def test_places_of_the_token(self):
        usual = self.home / ".cache/huggingface/token"
        own = self.home / "own"
        for path, env in ((usual, {}), (own / "token", {"HF_HOME": str(own)}),
                          (own / "file", {"HF_TOKEN_PATH": str(own / "file")})):
            with self.subTest(path=path), Hub({"model.gguf": WEIGHTS}) as hub:
                hub.private = True
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(TOKEN + "\n", encoding="utf-8")
                self.pulls(hub, env=env)
                path.unlink()
                (self.models / "org/model/model.gguf").unlink()

    def test_the_token_is_not_for_urls_elsewhere(self):
        with Hub({"model.gguf": WEIGHTS}) as hub, Hub({"model.gguf": WEIGHTS}) as elsewhere:
            self.pulls(hub, f"{elsewhere.url}/model.gguf", env={"HF_TOKEN": TOKEN})
            self.assertNotIn("Authorization", elsewhere.requests[0][1])


if __name__ == "__main__":
    unittest.main()
