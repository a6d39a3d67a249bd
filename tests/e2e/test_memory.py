#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A memory bound as people meet it: kept, reported, refused where it is too small; on a slow
disk, on one that fails. GGUF files: test_memory_gguf.py. STINT_CI_LONG=1 has neurons of 8 bits on
those disks and in plans, too, and more bounds."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from built import setting
from command import COMMAND, MODEL, PROMPT, stint, stint_json

SPARSE = pathlib.Path(os.environ.get("STINT_SHARED_DATA", "")) / "models" / "novels-10m-drelu"
LONG = os.environ.get("STINT_CI_LONG") == "1"
RUN = ("-p", PROMPT, "-n", "24", "--ctx", "128", "--chunk", "32")
# Without a bound: no fewer bits than under one, whatever their loss is measured to be.
EXACT = ("--quality", "exact")
DISK = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t pread(int file, void *to, size_t n, off_t at) {
    static int reads;
    const char *delay = getenv("DISK_DELAY_US"), *last = getenv("DISK_LAST");
    if (delay) usleep(atoi(delay));
    if (last && __atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED) > atoi(last))
        return errno = EIO, -1;
    return syscall(SYS_pread64, file, to, n, at);
}
ssize_t pread64(int file, void *to, size_t n, off_t at) { return pread(file, to, n, at); }
"""


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        cls.packages = {}
        neurons = ("--neurons",)
        nested, none = ("--bits", "2..3", "--quantizer", "uniform"), ("--bits", "none")
        for name, source, options in (("dense", MODEL, none), ("sparse", SPARSE, neurons + nested),
                                      ("sparse8", SPARSE,
                                       (*neurons, *none, "--neuron-bits", "8"))):
            if source.is_dir():
                cls.packages[name] = cls.folder / f"{name}.stint"
                stint_json("prepare", source, "-o", cls.packages[name], "--calib-tokens", "512",
                           *options)
        cls.models = {**cls.packages, "folder": MODEL}
        # Neurons of 8 bits are read as those of 4 are.
        cls.some_models = dict(cls.models)
        if not LONG:
            cls.some_models.pop("sparse8", None)
        if "sparse" not in cls.packages:
            print(f"skipped in part: no {SPARSE}", file=sys.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def least(self, package, *more):
        refused = stint("run", package, *RUN, *more, "--memory", "1M")
        self.assertEqual(refused.returncode, 1)
        self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
        return int(re.search(r"at least (\d+) MiB", refused.stderr).group(1))

    def test_the_text_stays_and_the_bound_is_reported(self):
        for name, package in self.models.items():
            wanted = stint_json("run", package, *RUN, *EXACT)["text"]
            least = self.least(package)
            for memory in (least, *((least + 3,) if LONG else ()), 200):
                got = stint_json("run", package, *RUN, "--memory", f"{memory}M", "--predictor",
                                 "off")
                self.assertEqual(got["text"], wanted, f"{name} with {memory} MiB")
                bound = got["memory"]
                self.assertEqual(bound["budget_bytes"], memory << 20)
                if not setting("STINT_SANITIZE"):  # whose own memory counts as the process's
                    self.assertLessEqual(bound["peak_bytes"], memory << 20)
                self.assertLessEqual(sum(bound[key + "_bytes"] for key in
                                         ("fixed", "hot", "cold", "kv")), memory << 20)
                self.assertGreater(got["io"]["bytes_read"], 0)
                self.assertGreater(got["io"]["reads"], 0)
                for key in ("hit_rate", "hidden_fraction", "computed"):
                    self.assertTrue(0 <= got["io"][key] <= 1, key)
            self.assertNotIn("memory", stint_json("run", package, *RUN))

    def test_the_system_need_give_no_more_than_the_bound(self):
        """A group with that limit, whose processes are killed where they need more. Pages of files,
        which the system may count as theirs, leave when there is no room."""
        root = next((x for x in (pathlib.Path("/sys/fs/cgroup/memory"),
                                 pathlib.Path("/sys/fs/cgroup"))
                     if (x / "cgroup.procs").exists()), None)
        group = root / f"stint-test-{os.getpid()}" if root else None
        try:
            group.mkdir()
            limit = next(group / x for x in ("memory.limit_in_bytes", "memory.max")
                         if (group / x).exists())
        except (OSError, AttributeError, StopIteration):
            self.skipTest("no memory cgroup can be made here")
        if "asan" in COMMAND or "tsan" in COMMAND:
            group.rmdir()
            self.skipTest("sanitizers take memory of their own")
        try:
            for name, package in self.some_models.items():
                memory = self.least(package) + 6
                limit.write_text(str(memory << 20))
                done = subprocess.run(["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"',
                                       group, COMMAND, "run", package, "-p", PROMPT * 12, "-n",
                                       "40", "--ctx", "256", "--chunk", "32", "--memory",
                                       f"{memory}M"], capture_output=True)
                self.assertEqual(done.returncode, 0, f"{name} in {memory} MiB: {done.stderr}")
        finally:
            group.rmdir()

    def test_a_slow_disk_slows_and_a_failing_one_is_an_error(self):
        source, library = self.folder / "disk.c", self.folder / "disk.so"
        source.write_text(DISK, encoding="utf-8")
        built = subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=False,
                               capture_output=True)
        environment = {**os.environ, "LD_PRELOAD": str(library)}
        works = built.returncode == 0 and subprocess.run(
            [COMMAND, "--version"], env=environment, capture_output=True, check=False)
        if not works or works.returncode != 0 or works.stderr:
            self.skipTest("this build takes no other pread")
        for package in self.some_models.values():
            arguments = [COMMAND, "run", package, *RUN, "--memory", f"{self.least(package) + 1}M",
                         "--predictor", "off"]
            wanted = stint("run", package, *RUN, *EXACT).stdout
            slow = subprocess.run(arguments, env={**environment, "DISK_DELAY_US": "500"},
                                  capture_output=True, text=True, check=True)
            self.assertEqual(slow.stdout, wanted)
            failing = subprocess.run(arguments, env={**environment, "DISK_LAST": "1000"},
                                     capture_output=True, text=True, check=False)
            self.assertEqual(failing.returncode, 1)
            self.assertIn("cannot be read at byte", failing.stderr)
            self.assertIn(str(package), failing.stderr)
            self.assertTrue(wanted.startswith(failing.stdout.rstrip("\n")))
            opening = subprocess.run(arguments, env={**environment, "DISK_LAST": "2"},
                                     capture_output=True, text=True, check=False)
            self.assertEqual(opening.returncode, 1)
            self.assertIn("cannot be read", opening.stderr)

    def test_neurons_are_shown(self):
        if "sparse" not in self.packages:
            self.skipTest("no sparse model")
        shown = stint("inspect", self.packages["sparse"], "--neurons").stdout
        self.assertEqual(len(shown.splitlines()), 1 + 12)
        notes = stint_json("inspect", self.packages["sparse"], "--neurons")
        for layer in notes["neurons"]:
            self.assertTrue(0.01 < layer["active"] < 0.5)
            self.assertAlmostEqual(sum(layer["skew"]), 1, places=3)
            self.assertEqual(layer["skew"], sorted(layer["skew"], reverse=True))
            self.assertTrue(0.95 < layer["found"] <= 1)
            self.assertEqual(layer["bits"], 4)
        notes = stint_json("inspect", self.packages["sparse8"], "--neurons")
        self.assertEqual({layer["bits"] for layer in notes["neurons"]}, {8})
        picture = self.folder / "neurons.svg"
        stint("inspect", self.packages["sparse"], "--neurons", "--svg", picture)
        xml.etree.ElementTree.parse(picture)

    def test_a_schedule_writes_the_same_under_a_bound(self):
        if "sparse" not in self.packages:
            self.skipTest("no sparse model")
        package, written = self.packages["sparse"], set()
        for bits in (2, 3, 8):
            options = (*RUN, "--schedule", f"uniform:{bits}")
            wanted = stint_json("run", package, *options)
            for memory in (200, self.least(package, "--schedule", f"uniform:{bits}")):
                got = stint_json("run", package, *options, "--memory", f"{memory}M", "--predictor",
                                 "off")
                self.assertEqual(got["text"], wanted["text"])
                self.assertEqual(got["bits"], wanted["bits"])
            written.add(got["text"])
        self.assertGreater(len(written), 1)
        refused = stint("run", package, *RUN, "--memory", "200M", "--schedule", "uniform:4")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("2 to 3 bits", refused.stderr)

    def test_a_bound_is_planned_before_it_is_used(self):
        for name, package in self.some_models.items():
            sparse, memory = name.startswith("sparse"), self.least(package) + 4
            options = ("--memory", f"{memory}M", "--ctx", "128", "--chunk", "32", "--predictor",
                       "off", "--schedule", "uniform:3" if name == "sparse" else "none")
            plan = stint_json("inspect", package, "--neurons", *options)["plan"]
            got = stint_json("run", package, *RUN[:2], "-n", "80", "--ignore-eos", *options)
            for key in ("budget_bytes", "fixed_bytes", "hot_bytes", "cold_bytes", "kv_bytes"):
                # What opening the model took differs by pages between processes.
                self.assertAlmostEqual(plan["memory"][key], got["memory"][key], delta=1 << 18)
            expected = plan["expected"]
            self.assertLess(abs(expected["hit_rate"] - got["io"]["hit_rate"]), 0.2, name)
            self.assertGreater(expected["tokens_per_second"], 0)
            storage = plan["storage"]
            file = package if package.is_file() else package / "model.safetensors"
            self.assertEqual(storage["file_bytes"], file.stat().st_size)
            self.assertEqual(len(storage["sequential"]), 4)
            self.assertEqual(len(storage["random"]), 16)
            for read in storage["sequential"] + storage["random"]:
                self.assertGreater(read["bytes_per_second"], 0)
            self.assertEqual(storage["neuron_seconds"] > 0, sparse)
            self.assertEqual(len(plan["layers"]), 12 if sparse else 0)
            if name not in ("dense", "sparse"):
                continue
            shown = stint("inspect", package, *options).stdout
            self.assertIn("tokens/s", shown)
            self.assertEqual("with drafts" in shown, expected["drafted_per_second"] > 0)
            self.assertIn("in memory", shown)
            picture = self.folder / "plan.svg"
            stint("inspect", package, "--neurons", *options, "--svg", picture)
            text = "".join(xml.etree.ElementTree.parse(picture).getroot().itertext())
            self.assertIn("fixed", text)
            self.assertEqual("expected misses" in text, sparse)

    def test_bench_says_what_a_bound_did(self):
        if "sparse" not in self.packages:
            self.skipTest("no sparse model")
        shown = stint("bench", self.packages["sparse"], "-p", "8", "-n", "4", "-r", "1", "--memory",
                      "200M", "--bits", "8,3").stdout
        self.assertEqual(re.findall(r"tokens/s, (\d) bits", shown), ["8", "3"])
        self.assertRegex(shown, r"peak memory +[0-9.]+ MiB of 200.0 MiB, .* read")
        self.assertNotIn("bandwidth", shown)  # which was not measured

    @unittest.skipUnless(SPARSE.is_dir(), "shared/ is not there")
    def test_an_ablation_ends_with_two_processors(self):
        package = self.packages["sparse"]
        memory = f"{self.least(package) + 1}M"
        rows = stint_json("bench", package, "--ablation", "--memory", memory, "-n", "3", "-r", "1",
                          "--bits", "3", "--device", "sim:speed=1000")["ablation"]
        self.assertEqual([row["step"] for row in rows[4:]],
                         ["+ hot clusters", "+ two processors", "the second one alone"])
        self.assertEqual([row["on_npu"] for row in rows[:5]], [0] * 5)
        self.assertGreater(rows[6]["on_npu"], 0)
        for row in rows:
            self.assertGreater(row["tokens_per_second"], 0)

    def test_what_cannot_be_planned_says_so(self):
        refused = stint("inspect", self.packages["dense"], "--memory", "1M")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("memory: at least", refused.stderr)
        self.assertEqual(refused.stdout, "")

    def test_what_has_no_neurons_says_so(self):
        refused = stint("prepare", MODEL, "-o", self.folder / "none.stint", "--neurons")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("every neuron of this model is active", refused.stderr)
        refused = stint("inspect", self.packages["dense"], "--neurons")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("stint prepare --neurons", refused.stderr)

    def test_predictors_leave_most_neurons_out(self):
        if "sparse" not in self.packages:
            self.skipTest("no sparse model")
        got = stint_json("run", self.packages["sparse"], *RUN, "--memory", "100M")
        self.assertTrue(0.1 < got["io"]["computed"] < 0.9)


if __name__ == "__main__":
    unittest.main()
