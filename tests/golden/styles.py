# SPDX-License-Identifier: Apache-2.0
"""Small tokenizers in the style of families whose own files are not here: the family's normalizer,
pre-tokenizer, decoder and kinds of special tokens, over a vocabulary that `tokenizers` learns from
our texts. Some of its merges are left out, so that there are tokens that only `ignore_merges`
reaches."""
import json
import random

import references
import tokenizers
from references import BYTES, GPT2, digits, sequence, split
from tokenizers import trainers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CL100K = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN35 = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
WORD = r"[^\r\n\p{L}\p{N}]?"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (f"{WORD}{UPPER}*{LOWER}+{CONTRACTIONS}?|{WORD}{UPPER}+{LOWER}*{CONTRACTIONS}?|"
         rf"\p{{N}}{{1,3}}|{REST}")
TEKKEN = rf"{WORD}{UPPER}*{LOWER}+|{WORD}{UPPER}+{LOWER}*|\p{{N}}|{REST}"
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"
             r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|"
             r"\s+(?!\S)|\s+")
NFC = {"type": "NFC"}

# name: normalizer, pre-tokenizers, whether whole words are looked up first, special tokens, other
# added tokens with their flags, what GGUF files call it
STYLES = {
    "gpt-oss": (None, [split(O200K), BYTES], False,
                ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>", "<|call|>"],
                {}, "gpt-4o"),
    "qwen3.5": (NFC, [split(QWEN35), BYTES], False, ["<|im_start|>", "<|im_end|>", "<|endoftext|>"],
                {"<think>": {}, "</think>": {}, "<tool_call>": {}, "</tool_call>": {}}, "qwen35"),
    "qwen2-moe": (NFC, [split(references.QWEN2), BYTES], False, ["<|im_start|>", "<|im_end|>"], {},
                  "qwen2"),
    "lfm2": (None, [split(CL100K), BYTES], True,
             ["<|startoftext|>", "<|im_start|>", "<|im_end|>", "<|tool_call_start|>",
              "<|tool_call_end|>"], {}, "lfm2"),
    "granite-4": (None, [split(CL100K), BYTES], False,
                  ["<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"],
                  {"<tool_call>": {}}, "dbrx"),
    "phi-4-mini": (None, [split(O200K), BYTES], False, ["<|endoftext|>"],
                   {"<|end|>": {"rstrip": True}, "<|assistant|>": {"rstrip": True},
                    "<|/tool_call|>": {"rstrip": True}}, None),
    "smollm3": (None, [split(CL100K), BYTES], True, ["<|im_start|>", "<|begin_of_text|>"],
                {"<think>": {}, "</think>": {}}, "llama-bpe"),
    "olmo-2": (None, [split(CL100K), BYTES], False, ["<|endoftext|>"],
               {"|||IP_ADDRESS|||": {"normalized": True}, "<functions>": {}}, "dbrx"),
    "deepseek-v3": (None, [split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK3), BYTES],
                    False, ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
                    {"<｜User｜>": {}, "<think>": {}, "<｜tool▁sep｜>": {}}, "deepseek-v3"),
    "ministral-3": (None, [split(TEKKEN), BYTES], True,
                    ["<unk>", "<s>", "</s>", "[INST]", "[THINK]", "[/THINK]", "[TOOL_CALLS]"], {},
                    "tekken"),
    "glm-4": (None, [split(CL100K), BYTES], True, ["[gMASK]", "<sop>", "<|user|>", "<|endoftext|>"],
              {"<tool_call>": {}, "<arg_key>": {}}, None),
    "falcon-h1": (None, [{"type": "Punctuation", "behavior": "Contiguous"}, digits(True), GPT2],
                  False, ["<|im_start|>", "<|end_of_text|>"], {">>TITLE<<": {"lstrip": True}},
                  None),
    "bitnet": (None, [split(CL100K), BYTES], True, ["<|begin_of_text|>", "<|eot_id|>"], {},
               "llama-bpe"),
    "nemotron-h": (None, [split(TEKKEN), BYTES], False, ["<SPECIAL_10>", "<SPECIAL_11>"],
                   {"<TOOLCALL>": {}}, None),
    # a SentencePiece model as Hugging Face writes one, without a space in front
    "ernie-4.5": ({"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, None, False,
                  ["<unk>", "<s>", "</s>", "<|begin_of_sentence|>"], {"<mask:1>": {}}, None),
}


def learn(normalizer, steps, texts):
    """The vocabulary and merges of a tokenizer with these parts."""
    made = references.make(normalizer, sequence("pretokenizers", steps), None, {
        "vocab": {}, "merges": []}, [])
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet() if steps else []
    made.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=1500, min_frequency=1, initial_alphabet=alphabet, show_progress=False,
        max_token_length=12))
    model = json.loads(made.to_str())["model"]
    return model["vocab"], model["merges"]


def style(name, texts):
    """{tokenizer.json}"""
    normalizer, steps, whole, specials, others, _ = STYLES[name]
    vocab, merges = learn(normalizer, steps, texts)
    rng = random.Random(name)
    merges = [merge for merge in merges if rng.random() < 0.9]
    model = {"vocab": vocab, "merges": merges, "ignore_merges": whole}
    decoder = GPT2
    if not steps:
        for value in range(256):
            vocab[f"<0x{value:02X}>"] = len(vocab)
        vocab["<unk>"] = len(vocab)
        model.update(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
        decoder = sequence("decoders", [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}])
    added = [references.added(vocab.get(text, len(vocab) + i), text, True)
             for i, text in enumerate(specials)]
    first = max(token["id"] for token in added) + 1
    added += [references.added(first + i, text, False, **flags)
              for i, (text, flags) in enumerate(others.items())]
    made = references.make(normalizer, sequence("pretokenizers", steps or []), decoder, model,
                           added)
    return json.loads(made.to_str())


def write_gguf(path, style_json, pre):
    """The same vocabulary as a GGUF file without weights."""
    import gguf
    model, added = style_json["model"], {t["id"]: t for t in style_json["added_tokens"]}
    tokens = {ident: text for text, ident in model["vocab"].items()}
    tokens.update({ident: token["content"] for ident, token in added.items()})
    kinds = [gguf.TokenType.NORMAL if ident not in added else
             gguf.TokenType.CONTROL if added[ident]["special"] else gguf.TokenType.USER_DEFINED
             for ident in range(len(tokens))]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([tokens[ident] for ident in range(len(tokens))])
    writer.add_token_types(kinds)
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge)
                             for merge in model["merges"]])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
