#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line itself: help, usage errors, exit status, bad files, the form of every --json."""
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

from built import setting
from command import COMMAND, MODEL, PROMPT, stint, stint_json

COMMANDS = ["inspect", "run", "chat", "logits", "tokenize", "bench"]


class Help(unittest.TestCase):
    def test_overview_names_every_command(self):
        done = stint("--help")
        self.assertEqual(done.returncode, 0)
        for name in COMMANDS:
            self.assertIn(f"\n  {name} ", done.stdout)

    def test_each_command_explains_itself_with_an_example(self):
        for name in COMMANDS:
            done = stint(name, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn(f"Usage: stint {name} ", done.stdout)
            self.assertRegex(done.stdout, rf"Example\n  .*stint {name} ")
            self.assertEqual(stint("help", name).stdout, done.stdout)
            whole = stint(name, "--help", "all")
            self.assertEqual(stint("help", name, "all").stdout, whole.stdout)
            self.assertLessEqual(max(map(len, whole.stdout.splitlines())), 100)
            self.assertLessEqual(set(re.findall(r" (--[a-z-]+)", done.stdout)),
                                 set(re.findall(r" (--[a-z-]+)", whole.stdout)))

    def test_help_is_short_until_all_is_asked_for(self):
        done, whole = stint("run", "--help").stdout, stint("run", "--help", "all").stdout
        more = re.search(r"'stint run --help all' explains (\d+) more options", done)[1]
        options = [len(re.findall(r"(?m)^  (?:-\w, |    )--[a-z-]+", text))
                   for text in (done, whole)]
        self.assertEqual(options[1] - options[0], int(more))
        self.assertLess(options[0], 20)
        self.assertNotIn("--npu-threads", done)
        self.assertIn("--npu-threads", whole)

    def test_version(self):
        self.assertRegex(stint("--version").stdout, r"^stint \d+\.\d+\.\d+\n$")


class UsageErrors(unittest.TestCase):
    CASES = [
        ([], "a command is missing"),
        (["bnech"], "did you mean 'bench'"),
        (["frobnicate"], "unknown command 'frobnicate'"),
        (["run"], "MODEL is missing"),
        (["run", MODEL, "--temprature", "1"], "did you mean --temp?"),
        (["run", MODEL, "--thread", "1"], "did you mean --threads?"),
        (["run", MODEL, "--zzz"], "unknown option '--zzz'"),
        (["run", MODEL, "-p"], "--prompt needs a value"),
        (["run", MODEL, "-p", "x", "-f", "y"], "-p and -f cannot be used together"),
        (["run", MODEL, "-p", "x", "-n", "-1"], "'-1' is not a whole number"),
        (["run", MODEL, "-p", "x", "-n", "12x"], "'12x' is not a whole number"),
        (["run", MODEL, "-p", "x", "--threads", "0"], "out of range"),
        (["run", MODEL, "-p", "x", "--top-p", "1.5"], "out of range"),
        (["run", MODEL, "-p", "x", "--temp", "nan"], "is not a number"),
        (["run", MODEL, "-p", "x", "--seed", "99999999999999999999"], "whole number"),
        (["run", MODEL, "-p", "x", "--memory", "12Q"], "is not a size"),
        (["run", MODEL, "-p", "x", "--kv", "f8"], "not one of f32|f16"),
        (["run", MODEL, "-p", "x", "--json=1"], "takes no value"),
        (["run", MODEL, "again", "and again"], "one argument too many"),
        (["run", MODEL, "again", "-p", "x"], "cannot be used together"),
        (["run", MODEL, "again", "-f", "x"], "cannot be used together"),
        (["inspect", MODEL, "again"], "one argument too many"),
        (["logits", MODEL], "--tokens FILE.json is missing"),
        (["bench"], "either a MODEL or --shape"),
        (["bench", MODEL, "-p", "64,,2"], "list of whole numbers"),
    ]

    def test_a_usage_error_is_one_line_and_exit_2(self):
        for arguments, part in self.CASES:
            with self.subTest(arguments=[str(a) for a in arguments]):
                done = stint(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertTrue(done.stderr.startswith("stint: "))
                self.assertIn(part, done.stderr)

    def test_options_take_their_value_in_every_usual_way(self):
        texts = {stint("run", MODEL, *options, "-p", PROMPT).stdout
                 for options in (["-n", "4"], ["-n4"], ["--tokens", "4"], ["--tokens=4"])}
        self.assertEqual(len(texts), 1)


class BadFiles(unittest.TestCase):
    def fails(self, *arguments, names=None, text="x"):
        done = stint(*arguments, text=text)
        self.assertEqual(done.returncode, 1, arguments)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        if names is not None:
            self.assertIn(str(names), done.stderr)
        return done.stderr

    def test_models_that_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "empty.gguf").write_bytes(b"")
            (folder / "noise.gguf").write_bytes(bytes(range(256)) * 64)
            (folder / "short.gguf").write_bytes(b"GGUF\3\0\0\0")
            (folder / "folder").mkdir()
            for name in ("missing", "missing.gguf", "empty.gguf", "noise.gguf", "short.gguf",
                         "folder"):
                for command in ("inspect", "run", "chat", "bench", "tokenize"):
                    with self.subTest(name=name, command=command):
                        self.fails(command, folder / name, names=name)
            self.fails("run", "a-name", "x", names="'stint list' shows which")

    def test_file_without_permission(self):
        as_nobody = {"user": 65534} if os.geteuid() == 0 else {}  # root reads everything
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            path = pathlib.Path(folder) / "locked.gguf"
            path.write_bytes(b"GGUF")
            path.chmod(0)
            try:
                done = stint("inspect", path, **as_nobody)
            except PermissionError:
                self.skipTest("only root reaches the command")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("ermission", done.stderr)
        self.assertIn("locked.gguf", done.stderr)

    def test_prompt_files_that_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            self.fails("run", MODEL, "-f", pathlib.Path(folder) / "missing", names="missing")
            self.fails("run", MODEL, "-f", folder, names=folder)

    def test_npu_needs_a_package(self):
        self.assertIn("needs a package", self.fails("run", MODEL, "-p", "x", "--exec", "npu"))

    def test_a_lost_write_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for arguments in (["run", MODEL, "-p", "x", "-n", "4"], ["inspect", MODEL], ["--help"],
                          ["inspect", MODEL, "--json"]):
            with open("/dev/full", "w", encoding="utf-8") as full, self.subTest(arguments):
                done = subprocess.run([COMMAND, *map(str, arguments)], stdout=full, check=False,
                                      stderr=subprocess.PIPE, encoding="utf-8")
                self.assertEqual(done.returncode, 1)
                self.assertIn("standard output: No space left", done.stderr)


class Logits(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.tokens = self.folder / "tokens.json"
        self.out = self.folder / "out.f32"

    def logits(self, text, *options):
        self.tokens.write_text(text, encoding="utf-8")
        return stint("logits", MODEL, "--tokens", self.tokens, "-o", self.out, *options)

    def test_writes_one_row_for_each_token(self):
        self.assertEqual(self.logits('{"tokens": [4093, 17, 300]}').returncode, 0)
        data = self.out.read_bytes()
        self.assertEqual(len(data), 3 * 4096 * 4)
        self.assertTrue(all(abs(x) < 1e4 for x in struct.unpack(f"<{3 * 4096}f", data)))

    def test_bad_tokens_leave_no_file(self):
        for text in ("", "[1]", "{}", '{"tokens": []}', '{"tokens": [1.5]}', '{"tokens": [-1]}',
                     '{"tokens": [4096]}', '{"tokens": [9999999999]}', '{"tokens": "1"}',
                     '{"tokens": [1], "tokens": [2]}', "[" * 100000):
            with self.subTest(text=text[:40]):
                done = self.logits(text)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["tokens.json"])

    def test_a_device_is_written_not_replaced(self):
        self.out = pathlib.Path("/dev/null")
        self.assertEqual(self.logits('{"tokens": [1]}').returncode, 0)
        self.assertTrue(self.out.is_char_device())


class Tokenize(unittest.TestCase):
    def test_text_comes_back(self):
        for text in ("It was a cold evening", "naïve — “quoted”\n\n\ttabs", "", "日本 🙂 e\u0301"):
            ids = stint("tokenize", MODEL, text=text).stdout
            self.assertRegex(ids, r"^[0-9 ]*\n$")
            self.assertEqual(stint("tokenize", MODEL, "--decode", text=ids).stdout, text)

    def test_json_goes_in_and_out(self):
        ids = stint_json("tokenize", MODEL, text="Hello there")
        self.assertEqual(list(ids), ["ids"])
        back = stint_json("tokenize", MODEL, "--decode", text=str(ids["ids"]))
        self.assertEqual(back, {"text": "Hello there"})

    def test_bos_and_special_tokens(self):
        plain = stint_json("tokenize", MODEL, text="a")["ids"]
        self.assertEqual(stint_json("tokenize", MODEL, "--bos", text="a")["ids"], [4093, *plain])
        self.assertEqual(stint_json("tokenize", MODEL, text="<|endoftext|>")["ids"], [4093])
        self.assertNotIn(4093, stint_json("tokenize", MODEL, "--plain",
                                          text="<|endoftext|>")["ids"])
        self.assertEqual(stint("tokenize", MODEL, "--decode", text="4093").stdout,
                         "<|endoftext|>")
        self.assertEqual(stint("tokenize", MODEL, "--decode", "--plain", text="4093").stdout, "")

    def test_what_is_no_id_is_refused(self):
        for text in ("1 two 3", "-1", "1.5", "99999999999999999999"):
            done = stint("tokenize", MODEL, "--decode", text=text)
            self.assertEqual(done.returncode, 1)
            self.assertIn("is not a token id", done.stderr)


class Json(unittest.TestCase):
    def test_run(self):
        done = stint_json("run", MODEL, "-p", PROMPT, "-n", "5")
        self.assertEqual(set(done), {"text", "drafts", "prompt_tokens", "generated_tokens",
                                     "prefill_tokens_per_second", "decode_tokens_per_second",
                                     "peak_rss_bytes", "stop_reason", "device", "clipped",
                                     "shadow", "step_seconds", "schedule", "energy", "bits",
                                     "average_bits"})
        self.assertEqual((done["generated_tokens"], done["stop_reason"]), (5, "length"))
        self.assertGreater(done["decode_tokens_per_second"], 0)
        self.assertGreater(done["peak_rss_bytes"], 1 << 20)

    def test_inspect(self):
        done = stint_json("inspect", MODEL)
        self.assertEqual((done["architecture"], done["layers"], done["hidden"], done["vocab"]),
                         ("qwen2", 12, 256, 4096))
        self.assertEqual(done["weight_type"], "bf16")
        memory, subgraphs = done["memory"], done["subgraphs"]
        # A sanitizer's build has bytes between keys and values.
        self.assertAlmostEqual(memory["kv_bytes_f32"], 2 * memory["kv_bytes_f16"],
                               delta=128 if setting("STINT_SANITIZE") else 0)
        self.assertGreater(memory["scratch_bytes"], 0)
        self.assertEqual((subgraphs["total"], subgraphs["shared"]), (12 * 6, 12 * 5))
        self.assertEqual(subgraphs["built_with_sharing"], 12 * 5 + 12 * 4)
        self.assertEqual(subgraphs["built_without_sharing"], 12 * 6 * 4)
        self.assertEqual(done["tokenizer"]["eos"], 4093)

    def test_parts_of_a_multimodal_checkpoint_that_are_left_out(self):
        text = json.loads((MODEL / "config.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for file in MODEL.iterdir():
                (folder / file.name).symlink_to(file)
            (folder / "config.json").unlink()
            for parts, named in ((("vision",), "vision"), (("vision", "audio"), "vision, audio")):
                whole = {"model_type": text["model_type"], "text_config": text,
                         **{f"{part}_config": {} for part in parts}}
                (folder / "config.json").write_text(json.dumps(whole))
                done = stint("run", folder, "-p", "It was", "-n", "2")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count(f"left out: {named};"), 1, done.stderr)
                self.assertEqual(stint_json("inspect", folder)["left_out"], named)
                self.assertRegex(stint("inspect", folder).stdout, rf"left out +{named}: ")
        self.assertNotIn("left out", stint("run", MODEL, "-p", "It was", "-n", "2").stderr)
        self.assertNotIn("left_out", stint_json("inspect", MODEL))

    def test_longer_context_takes_more_memory(self):
        short, long = (stint_json("inspect", MODEL, "--ctx", n)["memory"]["kv_bytes_f32"]
                       for n in (256, 1024))
        self.assertTrue(3.5 * short < long <= 4 * short, (short, long))

    def test_bench(self):
        done = stint_json("bench", MODEL, "-p", "8,16", "-n", "4", "--reps", "1", "--threads", "1")
        self.assertEqual((done["exec"], done["device"], done["threads"]), ("float", "cpu", 1))
        self.assertEqual([row["tokens"] for row in done["prefill"]], [8, 16])
        self.assertEqual(set(done["prefill"][0]), {"tokens", "depth", "seconds",
                                                   "tokens_per_second", "schedule"})
        self.assertEqual([(row["tokens"], row["bits"]) for row in done["decode"]], [(4, 16)])
        roofline = done["roofline"]
        for name in ("int8_ops_per_second", "float_flops_per_second", "bytes_per_second",
                     "prefill_fraction", "decode_fraction"):
            self.assertGreater(roofline[name], 0, name)
        self.assertIn(roofline["prefill_peak"], ("bf16", "float"))
        self.assertEqual([row["depth"] for row in done["prefill"] + done["decode"]], [0, 0, 16])

    def test_bench_behind_a_text(self):
        args = ["bench", MODEL, "-p", "8", "-n", "4", "--reps", "2", "--depth", "600"]
        done = stint_json(*args)
        self.assertEqual([row["depth"] for row in done["prefill"] + done["decode"]], [600, 600])
        self.assertIn("behind               600 tokens", stint(*args).stdout)
        refused = stint(*args, "--ablation")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("leave out --depth", refused.stderr)

    def test_ablation(self):
        done = stint_json("bench", MODEL, "-p", "40,70", "--chunk", "16", "--ablation", "--reps",
                          "1")
        self.assertEqual([row["tokens"] for row in done["ablation"]], 4 * [40] + 4 * [70])
        self.assertEqual(done["ablation"][3]["step"], "undivided")
        for row in done["ablation"]:
            self.assertGreater(row["tokens_per_second"], 0)
        table = stint("bench", MODEL, "-p", "40", "--ablation", "--reps", "1").stdout
        self.assertIn("+ out of order", table)

    def test_bench_of_an_unknown_shape_names_the_known(self):
        done = stint("bench", "--shape", "qwen-9000")
        self.assertEqual(done.returncode, 1)
        for name in stint("bench", "--shape", "list").stdout.split():
            self.assertIn(name, done.stderr)


if __name__ == "__main__":
    unittest.main()
