#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/PHONES.md, on a phone that is a folder: `adb` copies into it and runs there.
What is pushed is build/phone/stint under qemu-aarch64 where `make phone` has made it, else the same
command of this processor, which has neither network nor line editor either."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import real_models
from command import MODEL, PROMPT, QUICKLY, SMALL, SOURCE, code_blocks, stint

BUILD = pathlib.Path(os.environ["STINT_BUILD_DIR"])
PAGE = (SOURCE / "docs/PHONES.md").read_text(encoding="utf-8")
SLIM = BUILD / "tests/stint_slim"
PHONE = SOURCE / "build/phone/stint"
MOCK = BUILD / "tests/libmock_cdsprpc.so"  # in place of the phone's own
EMULATOR = shutil.which("qemu-aarch64")
HOME = "/data/local/tmp"
ADB = """#!/bin/sh
# A phone that is the folder $PHONE_ROOT.
set -e
command=$1; shift
case $command in
push)
    for last; do :; done
    mkdir -p "$PHONE_ROOT$last"
    while [ $# -gt 1 ]; do cp -rL "$1" "$PHONE_ROOT$last"; shift; done ;;
shell)
    exec sh -c "$(printf %s "$*" | sed "s|/data/local|$PHONE_ROOT/data/local|g")" ;;
*)
    echo "adb: $command?" >&2; exit 1 ;;
esac
"""
NOT_HERE = ("make phone", "cmake --preset android", "cmake --build --preset android")


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.folder.name)
        (cls.work / "models").symlink_to(SOURCE / "models")
        (cls.work / "build/phone/examples").mkdir(parents=True)
        for name in ("stint", "examples/example_chat"):
            cls.put(name)
        adb = cls.work / "bin/adb"
        adb.parent.mkdir()
        adb.write_text(ADB)
        adb.chmod(0o755)
        cls.environment = {**os.environ, "STINT_CDSPRPC": str(MOCK),
                           "PHONE_ROOT": str(cls.work / "phone"),
                           "PATH": f"{adb.parent}:{os.environ['PATH']}"}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def put(cls, name):
        """What the page pushes, as a script that runs it."""
        made, words = PHONE.parent / name, [SLIM if name == "stint" else BUILD / name]
        if made.exists() and EMULATOR:
            words = [EMULATOR, "-cpu", "max", made]
        script = cls.work / "build/phone" / name
        script.write_text(f'#!/bin/sh\nexec {" ".join(map(str, words))} "$@"\n')
        script.chmod(0o755)

    def put_package(self):
        """Two layers stand for SmolLM2: this is about the way, not the model."""
        package = self.work / "smollm2-135m.stint"
        shutil.copy(BUILD / "libstint_skel.so", self.work / "build")
        if not package.exists():
            done = stint("prepare", SMALL, "-o", package, *QUICKLY)
            self.assertEqual(done.returncode, 0, done.stderr)

    def shell(self, line):
        done = subprocess.run(["sh", "-ec", line], cwd=self.work, env=self.environment,
                              input="Hello\n", capture_output=True, encoding="utf-8",
                              timeout=1200, check=False)
        self.assertEqual(done.returncode, 0, f"{line}\n{done.stderr}")
        return done.stdout

    def test_commands(self):
        outs, lines = {}, [line for block in code_blocks(PAGE, "sh") for line in block.splitlines()]
        if real_models.SMOLLM2:
            (self.work / "smollm2-135m.gguf").symlink_to(real_models.SMOLLM2)
        for line in lines:
            if line.startswith(NOT_HERE) or line.startswith("#"):
                continue
            if line.startswith("adb push build/libstint_skel") or "smollm2-135m.stint" in line:
                if not MOCK.exists() or not shutil.which("qemu-hexagon"):
                    continue
                self.put_package()
            elif "smollm2" in line and not real_models.SMOLLM2:
                print("skipped:", line)
                continue
            with self.subTest(line=line):
                outs[line] = self.shell(line)
        self.assertTrue((self.work / "phone" / HOME[1:] / "libstint_skel.so").exists()
                        or not MOCK.exists())
        run = [out for line, out in outs.items() if " run novels-10m" in line]
        self.assertEqual(run[:1], [stint("run", MODEL, "-p", PROMPT, "-n", 16).stdout])
        self.assertTrue(all(out for line, out in outs.items() if "adb shell" in line))

    @unittest.skipUnless(os.environ.get("STINT_CI_LONG") == "1", "long")
    def test_phone_layout(self):
        """An Arm engine drives the DSP, both emulated, as the page shows."""
        tools = EMULATOR and shutil.which("qemu-hexagon") and PHONE.exists()
        if not tools or not real_models.SMOLLM2:
            self.skipTest("needs make phone, both emulators and SmolLM2")
        package = self.work / "smollm2.stint"
        made = stint("prepare", real_models.SMOLLM2, "-o", package, "--bits", "none")
        self.assertEqual(made.returncode, 0, made.stderr)
        words = ["run", package, "-p", "The capital of France is", "-n", "12", "--temp", "0",
                 "--threads", "2"]
        there = subprocess.run([EMULATOR, "-cpu", "max", PHONE, *words, "--device", "hexagon"],
                               capture_output=True, encoding="utf-8", check=False, timeout=1200)
        self.assertEqual(there.stdout, stint(*words).stdout, there.stderr)
        self.assertIn(there.stdout, PAGE)

    def test_targets_exist(self):
        makefile = (SOURCE / "Makefile").read_text()
        presets = (SOURCE / "CMakePresets.json").read_text()
        for target in re.findall(r"`?make (\w+)", PAGE):
            self.assertRegex(makefile, rf"(?m)^{target}:")
        for preset in re.findall(r"--preset (\w+)", PAGE):
            self.assertIn(f'"name": "{preset}"', presets)

    def test_links_lead_somewhere(self):
        for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
            self.assertTrue((SOURCE / "docs" / target).exists(), target)


class Slim(unittest.TestCase):
    """The command without network and line editor."""

    def call(self, *words, **options):
        return subprocess.run([SLIM, *map(str, words)], capture_output=True, encoding="utf-8",
                              check=False, timeout=600, **options)

    def test_the_network_is_said_to_be_absent(self):
        for command in ("serve", "pull"):
            done = self.call(command, "anything")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"\A[^\n]*no network[^\n]*\n\Z")
            self.assertIn("not in this build", self.call("--help").stdout)

    def test_chat_reads_plain_lines(self):
        words = ("chat", MODEL, "-n", 8, "--temp", 0)
        lines = "Who are you?\nAnd then?\n"
        self.assertEqual(self.call(*words, input=lines).stdout, stint(*words, text=lines).stdout)


class Android(unittest.TestCase):
    """cmake/toolchains/android.cmake, with a folder that stands for the NDK."""

    def configure(self, work, **environment):
        (work / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\n"
            'message(STATUS "${ANDROID_ABI} ${ANDROID_PLATFORM} ${FROM_NDK} '
            '$ENV{PKG_CONFIG_LIBDIR}")\n')
        unset = {k: v for k, v in os.environ.items() if "ANDROID" not in k}
        return subprocess.run(
            ["cmake", "-S", work, "-B", work / "build",
             f"-DCMAKE_TOOLCHAIN_FILE={SOURCE}/cmake/toolchains/android.cmake"],
            env={**unset, **{k: str(v) for k, v in environment.items()}}, capture_output=True,
            encoding="utf-8", check=False)

    def test_toolchain_file(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            ndk, libraries = work / "ndk", work / "libraries"
            done = self.configure(work)
            self.assertIn("set ANDROID_NDK", done.stderr)
            file = ndk / "build/cmake/android.toolchain.cmake"
            file.parent.mkdir(parents=True)
            file.write_text('set(FROM_NDK "found:${ANDROID_ABI}")\n')
            done = self.configure(work, ANDROID_NDK=ndk)
            self.assertIn("STINT_ANDROID_LIBRARIES", done.stderr)
            (libraries / "lib/pkgconfig").mkdir(parents=True)
            done = self.configure(work, ANDROID_NDK=ndk, STINT_ANDROID_LIBRARIES=libraries)
            self.assertIn(f"arm64-v8a android-30 found:arm64-v8a {libraries}/lib/pkgconfig",
                          done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
