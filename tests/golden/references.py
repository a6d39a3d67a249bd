# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's tokenizers for our vocabularies: from a tokenizer.json as it lies, or built from a
vocabulary with the components that the family's published tokenizer.json has."""
import json
import mmap
import struct

import tokenizers

UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4  # tokenizer.ggml.token_type
PADDING = "[PAD"  # what converters call ids that the original's vocabulary does not have
GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTES = {**GPT2, "use_regex": False}
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
         r"\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK_WORDS = (
    r"A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}"
    r"\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}"
    r"\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}"
    r"\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}"
    r"\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}"
    r"\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}"
    r"\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}"
    r"\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}"
    r"\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}"
    r"\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}"
    r"\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}"
    r"\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}"
    r"\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}"
    r"\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}"
    r"\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}"
    r"\x{1e900}-\x{1e943}")


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated",
            "invert": False}


def digits(individual):
    return {"type": "Digits", "individual_digits": individual}


# What stands for a name in tokenizer.ggml.pre: normalizer, pre-tokenizers.
FAMILIES = {
    "gpt-2": (None, [GPT2]),
    "starcoder": (None, [digits(True), GPT2]),
    "smollm": (None, [digits(True), GPT2]),
    "qwen2": ({"type": "NFC"}, [split(QWEN2), BYTES]),
    "falcon": (None, [{"type": "Punctuation", "behavior": "Contiguous"}, GPT2, digits(False),
                      split("[0-9][0-9][0-9]")]),
    "deepseek-llm": (None, [split("[\r\n]"), split(rf"\s?[{DEEPSEEK_WORDS}]+"),
                            split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"), split(r"\s+$"),
                            split("[一-龥ࠀ-一가-퟿]+"), digits(True), BYTES]),
}


def sequence(kind, steps):
    return {"type": "Sequence", kind: steps} if steps else None


def added(ident, text, special, **flags):
    return {"id": ident, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": special, **flags}


def make(normalizer, pre_tokenizer, decoder, model, added_tokens):
    return tokenizers.Tokenizer.from_str(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "post_processor": None,
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder,
        "added_tokens": added_tokens, "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": False, **model}}))


def byte_level(pre, vocab, merges, added_tokens):
    normalizer, steps = FAMILIES[pre]
    return make(normalizer, sequence("pretokenizers", steps), GPT2,
                {"vocab": vocab, "merges": merges}, added_tokens)


def from_json(path):
    return tokenizers.Tokenizer.from_file(str(path))


def from_qwen2_files(folder):
    """vocab.json, merges.txt and the added tokens of tokenizer_config.json."""
    config = json.loads((folder / "tokenizer_config.json").read_text())
    merges = [line for line in (folder / "merges.txt").read_text(encoding="utf-8").split("\n")
              if line and not line.startswith("#version")]
    return byte_level("qwen2", json.loads((folder / "vocab.json").read_text(encoding="utf-8")),
                      merges, [{"id": int(ident), **token} for ident, token in
                               config["added_tokens_decoder"].items()])


def llama_merges(vocab, scores):
    """As transformers makes them from a SentencePiece model: every pair of tokens that makes a
    token, the best score first."""
    merges = []
    for token, ident in vocab.items():
        pairs = [(token[:i], token[i:]) for i in range(1, len(token))
                 if token[:i] in vocab and token[i:] in vocab]
        pairs.sort(key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
        merges += [(scores[ident], pair) for pair in pairs]
    merges.sort(key=lambda merge: merge[0], reverse=True)
    return [list(pair) for _, pair in merges]


def llama(vocab, scores, added_tokens):
    normalizers = [{"type": "Prepend", "prepend": "▁"},
                   {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
    decoders = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    return make(sequence("normalizers", normalizers), None, sequence("decoders", decoders),
                {"vocab": vocab, "merges": llama_merges(vocab, scores), "unk_token": "<unk>",
                 "fuse_unk": True, "byte_fallback": True}, added_tokens)


def scalars(data, kind, at, count):
    """`count` values of GGUF's type `kind` at an offset, and where they end."""
    code, size = {0: ("B", 1), 1: ("b", 1), 2: ("H", 2), 3: ("h", 2), 4: ("I", 4), 5: ("i", 4),
                  6: ("f", 4), 7: ("?", 1), 10: ("Q", 8), 11: ("q", 8), 12: ("d", 8)}[kind]
    return list(struct.unpack_from(f"<{count}{code}", data, at)), at + count * size


def strings(data, at, count):
    found = []
    for _ in range(count):
        start = at + 8
        at = start + struct.unpack_from("<Q", data, at)[0]
        found.append(data[start:at].decode("utf-8", "replace"))
    return found, at


def values(data, kind, at, count):
    if kind == 8:
        return strings(data, at, count)
    if kind != 9:
        return scalars(data, kind, at, count)
    inner, length = struct.unpack_from("<IQ", data, at)
    found, at = values(data, inner, at + 12, length)
    return [found], at


def metadata(path):
    """The key-value pairs of a GGUF file (version 2 or 3, little-endian)."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        pairs, at = {}, 24
        for _ in range(struct.unpack_from("<Q", data, 16)[0]):
            (key,), at = strings(data, at, 1)
            (pairs[key],), at = values(data, *struct.unpack_from("<I", data, at), at + 4, 1)
    return pairs


def from_gguf(path):
    read = {key.rpartition(".")[2]: value for key, value in metadata(path).items()
            if key.startswith("tokenizer.ggml.")}
    tokens, kinds = read["tokens"], read["token_type"]
    vocab = {token: ident for ident, token in enumerate(tokens) if not token.startswith(PADDING)}
    found = [added(ident, tokens[ident], kind != USER_DEFINED) for ident, kind in enumerate(kinds)
             if kind in (UNKNOWN, CONTROL, USER_DEFINED) and tokens[ident] in vocab]
    if read["model"] == "llama":  # these flags are Phi-3's, the only such vocabulary here
        for token in found:
            token["rstrip"] = token["content"] not in ("<unk>", "<s>", "<|endoftext|>")
        return llama(vocab, read["scores"], found)
    return byte_level(read["pre"], vocab, read["merges"], found)
