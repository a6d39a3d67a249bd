#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stint chat: a session through pipes, and one on a terminal."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import time
import unittest

from command import COMMAND, MODEL, QUICKLY, stint, stint_json


class Piped(unittest.TestCase):
    def chat(self, *lines, options=("-n", "8", "--temp", "0"), returncode=0):
        done = stint("chat", MODEL, *options, text="".join(f"{line}\n" for line in lines))
        self.assertEqual(done.returncode, returncode, done.stderr)
        return done

    def test_answers_alone_go_to_standard_output(self):
        done = self.chat("The old man said", "/quit", "never read")
        self.assertRegex(done.stdout, r"\w")
        self.assertNotIn("> ", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_turns_evaluate_only_what_is_new(self):
        done = self.chat("The old man said", "/stats", "Then she", "/stats")
        (new_1, kept_1), (new_2, kept_2) = re.findall(r"(\d+) new tokens after (\d+) kept",
                                                      done.stderr)
        self.assertEqual(kept_1, "0")
        self.assertGreaterEqual(int(kept_2), int(new_1))
        self.assertLess(int(new_2), int(new_1) + 8)

    def test_kept_tokens_do_not_change_the_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "chat.json"
            whole = self.chat("The old man said", "Then she", f"/save {path}")
            messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"] * 2)
        contents = [m["content"] for m in messages]
        self.assertEqual(contents[::2], ["The old man said", "Then she"])
        self.assertEqual(whole.stdout, f"{contents[1]}\n{contents[3]}\n")
        # The whole conversation as one prompt, with the raw format's line ends.
        prompt = "".join(f"{content}\n" for content in contents[:3])
        afresh = stint("run", MODEL, "-n", "8", "-p", prompt)
        self.assertEqual(afresh.stdout, f"{contents[3]}\n")

    def test_clear_forgets(self):
        done = self.chat("The old man said", "/clear", "The old man said")
        out = done.stdout
        self.assertEqual(out[:len(out) // 2], out[len(out) // 2:])

    def test_retry_answers_anew(self):
        done = self.chat("The old man said", "/retry", "/retry",
                         options=("-n", "12", "--temp", "1.5", "--seed", "3"))
        self.assertNotEqual(len(done.stdout), 0)
        sampled = self.chat("The old man said", options=("-n", "12", "--temp", "1.5", "--seed",
                                                         "4"))
        self.assertIn(sampled.stdout, done.stdout)

    def test_each_answer_has_a_seed_of_its_own(self):
        hot = ("-n", "12", "--temp", "1.5")
        with tempfile.TemporaryDirectory() as folder:
            saved = [pathlib.Path(folder) / f"{answer}.json" for answer in range(3)]
            first, *retries = (f"/save {path}" for path in saved)
            self.chat("The old man said", first,
                      *(line for save in retries for line in ("/retry", save)), options=hot)
            # An answer may have lines that are alike, so whole ones are compared.
            answers = [json.loads(path.read_text(encoding="utf-8"))["messages"][-1]["content"]
                       for path in saved]
        self.assertEqual(len(set(answers)), len(answers))
        again = self.chat("The old man said", options=hot).stdout
        self.assertNotEqual(again, answers[0] + "\n")  # nobody chose one

    def test_quotes_enclose_a_message_of_several_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "chat.json"
            self.chat('"""The old', "", 'man said"""', '"""one"""', f"/save {path}")
            messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
        self.assertEqual([m["content"] for m in messages if m["role"] == "user"],
                         ["The old\n\nman said", "one"])

    def test_full_context_drops_the_oldest_turns(self):
        done = self.chat(*["She looked at the long grey road"] * 6,
                         options=("-n", "8", "--temp", "0", "--ctx", "48"))
        self.assertIn("the context is full", done.stderr)

    def test_a_message_too_long_is_refused_and_the_chat_goes_on(self):
        done = self.chat("word " * 100, "The old man", options=("-n", "4", "--ctx", "32"),
                         returncode=1)
        self.assertIn("the context 32", done.stderr)
        self.assertRegex(done.stdout, r"\w")

    def test_unknown_command_is_an_error(self):
        self.assertIn("unknown command '/frob'", self.chat("/frob", returncode=1).stderr)

    def test_save_needs_a_place(self):
        self.chat("/save", returncode=1)
        self.chat("/save /nonexistent/folder/file", returncode=1)


class Template(unittest.TestCase):
    """The bundled model with a chat template put into its tokenizer_config.json."""

    def test_the_checkpoint_s_template_is_used(self):
        jinja = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
                 "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}")
        rendered = "<|im_start|>user\nThe old man<|im_end|>\n<|im_start|>assistant\n"
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder)
            for file in MODEL.iterdir():
                (model / file.name).symlink_to(file)
            config = json.loads((MODEL / "tokenizer_config.json").read_text(encoding="utf-8"))
            (model / "tokenizer_config.json").unlink()
            (model / "tokenizer_config.json").write_text(
                json.dumps({**config, "chat_template": jinja}), encoding="utf-8")
            self.assertEqual(stint_json("inspect", model)["chat_template"], "chatml")
            ids = stint_json("tokenize", model, text=rendered)["ids"]
            chat = stint_json("run", model, "--chat", "-p", "The old man", "-n", "12")
            self.assertEqual(chat["prompt_tokens"], len(ids))
            piped = stint("chat", model, "-n", "12", "--temp", "0", text="The old man\n")
            self.assertEqual(piped.stdout, chat["text"] + "\n")
            package = model / "model.stint"
            self.assertEqual(stint("prepare", model, "-o", package, *QUICKLY).returncode, 0)
            packed = stint_json("run", package, "--chat", "-p", "The old man", "-n", "1")
            self.assertEqual(packed["prompt_tokens"], len(ids))


class Terminal(unittest.TestCase):
    """Typed into a pseudo-terminal."""

    def setUp(self):
        state = tempfile.TemporaryDirectory()
        self.addCleanup(state.cleanup)
        self.state = pathlib.Path(state.name)
        self.master, slave = pty.openpty()
        self.addCleanup(os.close, self.master)
        # libedit does not free the names of functions that are added to it.
        leaks = self.state / "leaks"
        leaks.write_text("leak:wcsdup\n", encoding="ascii")
        environment = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": state.name,
                       "LSAN_OPTIONS": f"suppressions={leaks}:print_suppressions=0"}
        self.process = subprocess.Popen([COMMAND, "chat", MODEL, "-n", "300"], stdin=slave,
                                        stdout=slave, stderr=slave, env=environment,
                                        preexec_fn=lambda: self.take_terminal(slave))
        os.close(slave)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.shown = self.log = ""

    @staticmethod
    def take_terminal(slave):
        os.setsid()
        os.close(os.open(os.ttyname(slave), os.O_RDWR))

    def wait_for(self, pattern, seconds=60):
        """Reads until what is shown after the last match matches."""
        until = time.monotonic() + seconds
        while not (match := re.search(pattern, self.shown)):
            self.assertLess(time.monotonic(), until, f"no {pattern!r} in {self.shown!r}")
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    more = os.read(self.master, 4096).decode("utf-8", "replace")
                    self.shown += more
                    self.log += more
                except OSError:  # the other side is closed
                    self.assertRegex(self.shown, pattern)
        self.shown = self.shown[match.end():]

    def wait_for_prompt(self):
        """The line editor shows its prompt a moment before it takes the terminal over."""
        self.wait_for("> ")
        until = time.monotonic() + 60
        while termios.tcgetattr(self.master)[3] & termios.ICANON:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    def type(self, text):
        os.write(self.master, text.encode())

    def test_interrupts_stop_answers_and_control_d_ends(self):
        self.wait_for("Ctrl-D ends")
        self.wait_for_prompt()
        self.type("The old man said\n")
        self.wait_for(r"said\r\n[^>]*\w+ \w+")  # the answer has begun, and would take long
        self.type("\x03")
        self.wait_for_prompt()
        self.type("never sent\x03")
        # The hint comes once: with the first interrupt where the answer was over by then.
        if "Ctrl-D or /quit ends" not in self.log:
            self.wait_for("Ctrl-D or /quit ends")
        self.wait_for_prompt()
        self.type("/stats\n")
        self.wait_for(r"generated \d+ tokens")
        self.wait_for_prompt()
        self.type("\x04")
        self.assertEqual(self.process.wait(timeout=60), 0)
        history = (self.state / "stint" / "history").read_text(encoding="utf-8")
        self.assertIn("said", history)
        self.assertNotIn("never", history)

    def saved(self):
        """What /save writes of the conversation."""
        path = self.state / "chat.json"
        self.type(f"/save {path}\n")
        self.wait_for_prompt()
        until = time.monotonic() + 60
        while not path.exists():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
        return [message["content"] for message in messages if message["role"] == "user"]

    def test_a_paste_of_several_lines_is_one_message(self):
        self.wait_for("Ctrl-D ends")
        self.wait_for(r"\x1b\[\?2004h")
        self.wait_for_prompt()
        self.type("Say: \x1b[200~one\rtw\u00f6\r\x07/quit\r\x1b[201~!\n")
        self.wait_for("!")
        self.wait_for_prompt()
        self.assertEqual(self.saved(), ["Say: one\ntw\u00f6\n/quit!"])
        history = (self.state / "stint" / "history").read_text(encoding="utf-8")
        self.assertIn("Say:", history)  # saved before the end

    def test_tab_completes_commands(self):
        self.wait_for("Ctrl-D ends")
        self.wait_for_prompt()
        self.type("/st\t\n")
        self.wait_for("ats")
        self.wait_for("context 0 of")
        self.wait_for_prompt()
        self.type("/s\t")
        self.wait_for("/system  /save  /stats")
        self.type("\x15")
        self.type('"""The old\n')
        self.wait_for(r"\. ")
        self.type('man said"""\n')
        self.wait_for_prompt()
        self.assertEqual(self.saved(), ["The old\nman said"])

    def test_words_stay_whole_in_a_narrow_window(self):
        self.wait_for("Ctrl-D ends")
        self.wait_for_prompt()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 24, 0, 0))
        self.type("The man said\n")
        self.wait_for(r"said\r\n(\x1b\[[^m]*[lhm])*")
        self.wait_for(r"([^\n]*\n){6}")
        self.type("\x03")
        self.wait_for_prompt()
        answer = re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", self.log.split("said\r\n", 1)[1])
        lines = answer.split("\r\n")[:6]  # the terminal's echo of Ctrl-C comes after these
        self.assertLessEqual(max(map(len, lines)), 24, lines)
        self.assertGreater(max(map(len, lines)), 8, lines)  # as many as there is room for


if __name__ == "__main__":
    unittest.main()
