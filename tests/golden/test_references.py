#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random text through the tokenizers of the fixtures, of the real models and of families' styles
(styles.py: as tokenizer.json and, where llama.cpp has a name for it, as GGUF), both ways, against
Hugging Face's package `tokenizers`: no id and no character may differ. `scripts/bootstrap clients`
puts the package into build/venv; skips itself without. STINT_CI_LONG=1 tries 20,000 texts each,
STINT_SEED makes others, and STINT_REAL_MODELS is the folder of the real models."""
import ctypes
import json
import os
import pathlib
import random
import sys
import tempfile
import unicodedata
import unittest

SOURCE = pathlib.Path(os.environ["STINT_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["STINT_BUILD_DIR"])
VENV = SOURCE / "build" / "venv" / "bin" / "python"

try:
    import references
    import styles
except ImportError as missing:
    if VENV.exists() and pathlib.Path(sys.executable) != VENV:
        os.execv(VENV, [str(VENV), *sys.argv])
    print(f"skipped: {missing}: scripts/bootstrap clients installs it into build/venv")
    sys.exit(77)
if "STINT_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text():
    print("skipped: Python cannot load a library that was built with sanitizers")
    sys.exit(77)

N_TEXTS = 20000 if os.environ.get("STINT_CI_LONG") == "1" else 200
SEED = int(os.environ.get("STINT_SEED", "1"))
FIXTURES = pathlib.Path(os.environ["STINT_SHARED_DATA"]) / "fixtures" / "tokenizers"
REAL = pathlib.Path(os.environ.get("STINT_REAL_MODELS", "~/.cache/stint/real-models")).expanduser()
PLAIN, SPECIAL = 2, 4  # STINT_TOKENIZE_PLAIN, STINT_DETOKENIZE_SPECIAL

# What is opened, the file of the reference, and whether special tokens are searched for in text.
CASES = [
    ("smollm2/tokenizer.json", references.from_json, "smollm2/tokenizer.json", True),
    ("novels/tokenizer.json", references.from_json, "novels/tokenizer.json", True),
    ("llama2-hf/tokenizer.json", references.from_json, "llama2-hf/tokenizer.json", True),
    ("openllama-hf/tokenizer.json", references.from_json, "openllama-hf/tokenizer.json", True),
    ("llama2-spm/tokenizer.model", references.from_json, "llama2-hf/tokenizer.json", False),
    ("gguf-llama-spm/vocab.gguf", references.from_json, "llama2-hf/tokenizer.json", True),
    ("qwen2.5", references.from_qwen2_files, "qwen2.5", True),
    *((f"gguf-{name}/vocab.gguf", references.from_gguf, f"gguf-{name}/vocab.gguf", True)
      for name in ("gpt-2", "starcoder", "falcon", "deepseek-llm", "phi-3")),
]
MODELS = ["smollm2-135m-instruct.Q4_1.gguf", "qwen2.5-coder-0.5b-instruct.Q4_K_M.gguf"]


class Ours:
    """A tokenizer of libstint.so."""
    library = ctypes.CDLL(str(BUILD / "libstint.so"))
    library.stint_error_text.restype = ctypes.c_char_p

    def __init__(self, path):
        self.pointer = ctypes.c_void_p()
        self.call("tokenizer_open", os.fsencode(path), ctypes.byref(self.pointer))

    def close(self):
        self.library.stint_tokenizer_close(self.pointer)

    def call(self, name, *arguments):
        if getattr(self.library, "stint_" + name)(*arguments) != 0:
            raise AssertionError(self.library.stint_error_text().decode())

    def encode(self, data, flags):
        capacity, count = 16 * len(data) + 16, ctypes.c_size_t()
        ids = (ctypes.c_int32 * capacity)()
        self.call("tokenize", self.pointer, data, ctypes.c_size_t(len(data)), flags, ids,
                  ctypes.c_size_t(capacity), ctypes.byref(count))
        return ids[:count.value]

    def decode(self, ids, flags):
        capacity, count = 4096 * len(ids) + 16, ctypes.c_size_t()
        text = ctypes.create_string_buffer(capacity)
        self.call("detokenize", self.pointer, (ctypes.c_int32 * len(ids))(*ids),
                  ctypes.c_size_t(len(ids)), flags, text, ctypes.c_size_t(capacity),
                  ctypes.byref(count))
        return text.raw[:count.value].decode()


# Characters of Unicode 3.2: all libraries at work here know more than that, but not equally much.
ANY = [c for c in map(chr, range(1, 0x30000)) if unicodedata.ucd_3_2_0.category(c) not in
       ("Cn", "Cs", "Co")]
MARKS = [c for c in ANY if unicodedata.combining(c)]
DIGITS = [c for c in ANY if unicodedata.category(c)[0] == "N"]
SPACES = [*" \t\n\r\f\v\x1c\x1f\x85\xa0\u1680\u180e\u2003\u200b\u2028\u2029\u202f\u3000\ufeff"]
POOLS = [
    [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"], [*"etaoin  shrdlu"],
    [*"0123456789"], [*"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"], [*" \n"], SPACES, ANY, MARKS, DIGITS,
    list(map(chr, range(0, 0x20))), list(map(chr, range(0x7f, 0x100))),
    [*"áàâäãåçéèêëíîïñóôöõøúùûüßÆŒğışłžŸ"], [*"абвгдежзийклмнопрстуфхцчшщъыьэюя"],
    [*"αβγδεζηθικλμνξοπρστυφχψωάέήίόύώ"], [*"的一是不了人我在有他这为之大来以个中上们，。！？"],
    [*"こんにちはカタカナゕヶ々〆が゛゜"], [*"한국어가각힣ᄀᄁ각ᆨ"], [*"אבגדהוזשׁ֑֖"], [*"العربيةَُِّ٠١٢٣"],
    [*"हिन्दीकाक्षत्र१२३"], [*"ไทยก็ำ๑๒"],
    [*"\ufb01\ufb03\u00bd\u2167\u2460\u33a1\uff21\u212b\u1e9b\u0323\u0344"],
    [*"😀🎉🚀👩🏽‍💻🇩🇪❤️👨‍👩‍👧‍👦🤷‍♂️☺"], ["\ufffd", "\u2581", "\u0120", "\u010a", "\u200d", "\ufe0f"],
]
WORDS = ["'s", "'RE", "n't", " the", "don't", "http://", "foo_bar", "  ", "\n\n", "\r\n", "\t\t",
         "1234567", "3.14", "…", "—", "Ünïcödé", "e\u0301", "A\u030a", "<0x0A>", "<0xE4>",
         "\u2581a", "<unk>", "[PAD", "<|", "|>", "<s", "    ", "\u1100\u1161\u11a8",
         "'\u017f", "\u212aelvin"]


def random_text(rng, specials):
    parts = []
    for _ in range(rng.choice((1, 2, 4, 8))):
        kind = rng.random()
        if kind < 0.12 and specials:
            parts.append(rng.choice(specials))
        elif kind < 0.3:
            parts.append(rng.choice(WORDS))
        elif kind < 0.4:
            parts.append(rng.choice(rng.choice(POOLS)) * rng.randint(1, 9))
        else:
            pool = rng.choice(POOLS)
            parts.append("".join(rng.choice(pool) for _ in range(rng.randint(1, 12))))
    return "".join(parts)


def random_bytes(rng, specials):
    """Text, whose UTF-8 is damaged in one case of four."""
    data = bytearray(random_text(rng, specials).encode())
    if rng.random() < 0.25:
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            data[at:at + rng.randrange(2)] = rng.randbytes(rng.randrange(3))
    return bytes(data)


def random_ids(rng, encoded, known, single_bytes, specials):
    """Ids as text gives them, and any others between them: above all bytes that are no text."""
    ids = encoded[:rng.randint(0, 20)] if rng.random() < 0.7 else []
    for _ in range(rng.choice((0, 1, 2, 5))):
        pool = rng.choice((known, known, single_bytes, single_bytes, specials)) or known
        at = rng.randint(0, len(ids))
        ids[at:at] = [rng.choice(pool) for _ in range(rng.randint(1, 6))]
    return ids


class Differences:
    """Counts, and shows the first ones."""

    def __init__(self, name):
        self.name, self.count = name, 0

    def check(self, what, given, got, wanted):
        if got == wanted:
            return
        self.count += 1
        if self.count <= 5:
            print(f"{self.name}: {what} {given!r}\n  gives {got!r}\n  not   {wanted!r}")


class References(unittest.TestCase):
    def compare(self, name, path, theirs, searched):
        ours, found = Ours(path), Differences(name)
        rng = random.Random(f"{SEED} {name}")
        added = theirs.get_added_tokens_decoder()
        vocab = theirs.get_vocab(with_added_tokens=True)
        specials, known = sorted(added), sorted(vocab.values())
        texts = [added[ident].content for ident in specials] if searched else []
        single = [ident for token, ident in vocab.items()
                  if len(token) == 1 or token.startswith("<0x")]
        for _ in range(N_TEXTS):
            data = random_bytes(rng, texts)
            for flags in (0, PLAIN) if searched else (PLAIN,):
                theirs.encode_special_tokens = flags == PLAIN
                wanted = theirs.encode(data.decode(errors="replace"), add_special_tokens=False).ids
                found.check(f"encoding ({flags})", data, ours.encode(data, flags), wanted)
            ids = random_ids(rng, wanted, known, single, specials)
            for flags in (0, SPECIAL):
                found.check(f"decoding ({flags})", ids, ours.decode(ids, flags),
                            theirs.decode(ids, skip_special_tokens=flags == 0))
        ours.close()
        print(f"{name}: {N_TEXTS} texts, {found.count} differences", file=sys.stderr)
        self.assertEqual(found.count, 0, name)

    def test_fixtures(self):
        for name, make, original, searched in CASES:
            with self.subTest(name):
                self.compare(name, FIXTURES / name, make(FIXTURES / original), searched)

    def test_styles(self):
        pages = sorted((SOURCE / "docs").glob("*.md"))
        texts = [path.read_text(encoding="utf-8") for path in pages]
        texts += ["".join(pool).replace("\0", "") for pool in POOLS if len(pool) < 500]
        lines = [line for text in texts for line in text.splitlines()]
        with tempfile.TemporaryDirectory() as folder:
            for name, (_, _, _, _, _, pre) in styles.STYLES.items():
                made = styles.style(name, lines)
                own = pathlib.Path(folder) / name / "tokenizer.json"
                own.parent.mkdir()
                own.write_text(json.dumps(made), encoding="utf-8")
                theirs = references.from_json(own)
                with self.subTest(name):
                    self.compare(name, own, theirs, True)
                if pre:
                    packed = own.parent / "vocab.gguf"
                    styles.write_gguf(packed, made, pre)
                    with self.subTest(f"{name}.gguf"):
                        self.compare(f"{name}.gguf", packed, theirs, True)

    def test_real_models(self):
        there = [name for name in MODELS if (REAL / name).exists()]
        for name in there:
            with self.subTest(name):
                self.compare(name, REAL / name, references.from_gguf(REAL / name), True)
        if len(there) < len(MODELS):
            self.skipTest(f"{len(MODELS) - len(there)} of {len(MODELS)} real models are not in "
                          f"{REAL}")


if __name__ == "__main__":
    unittest.main()
