# SPDX-License-Identifier: Apache-2.0
"""A checkpoint whose answers are written beforehand, for tests of what models do that novels-10m
does not, such as reasoning. Its attention and feed-forward parts are zero, so that the next token
follows from the last one alone: an embedding is a unit vector, and the output matrix leads from it
to the next piece of the script."""
import array
import json
import struct

WIDTH, LAYER = 64, "model.layers.0."
END = "<|end|>"


def byte_letters():
    """The letters by which byte-level vocabularies write bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in plain}
    for byte in range(256):
        letters.setdefault(byte, chr(256 + byte - len([x for x in plain if x < byte])))
    return letters


LETTERS = byte_letters()


def spelled(text):
    return "".join(LETTERS[byte] for byte in text.encode())


def write_tensors(path, tensors):
    """tensors: {name: (shape, {index: value that is not 0})}"""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        count = 1
        for n in shape:
            count *= n
        floats = array.array("f", bytes(4 * count))
        for index, value in values.items():
            floats[index] = value
        begin = len(data)
        data += floats.tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def tensors_of(n_vocab, follows):
    """follows: {id: id of the token that comes next}"""
    used = sorted({*follows})
    assert len(used) <= WIDTH, "the scripts are too long"
    place = {token: i for i, token in enumerate(used)}
    ones = {i: 1.0 for i in range(WIDTH)}
    square = ([WIDTH, WIDTH], {})
    return {
        "model.embed_tokens.weight": ([n_vocab, WIDTH],
                                      {t * WIDTH + place[t]: 1.0 for t in used}),
        "lm_head.weight": ([n_vocab, WIDTH],
                           {n * WIDTH + place[t]: 8.0 for t, n in follows.items()}),
        "model.norm.weight": ([WIDTH], ones),
        **{LAYER + name + ".weight": ([WIDTH], ones)
           for name in ("input_layernorm", "post_attention_layernorm")},
        **{LAYER + f"self_attn.{x}_proj.weight": square for x in "qkvo"},
        **{LAYER + f"mlp.{x}_proj.weight": square for x in ("gate", "up", "down")},
    }


def write_model(folder, scripts, template, special=()):
    """scripts: {last byte of the prompt: pieces of the answer}; each piece has two bytes at least
    and is the only one of its text in all scripts; those in `special` are special tokens."""
    pieces = [piece for script in scripts.values() for piece in script]
    assert len(set(pieces)) == len(pieces) and all(len(piece.encode()) > 1 for piece in pieces)
    vocabulary = {letter: byte for byte, letter in LETTERS.items()}
    ids = {piece: 256 + i for i, piece in enumerate(pieces)}
    vocabulary.update({spelled(piece): i for piece, i in ids.items()})
    end = len(vocabulary)
    follows = {}
    for first, script in scripts.items():
        row = [ord(first), *(ids[piece] for piece in script), end]
        follows.update(zip(row, row[1:]))
    folder.mkdir(exist_ok=True)
    write_tensors(folder / "model.safetensors", tensors_of(end + 1, follows))
    files = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
            "intermediate_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 4,
            "num_key_value_heads": 4, "max_position_embeddings": 512, "vocab_size": end + 1,
            "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
            "tie_word_embeddings": False, "torch_dtype": "float32", "eos_token_id": end},
        "tokenizer.json": {
            "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
            "added_tokens": [{"id": id, "content": text, "single_word": False, "lstrip": False,
                              "rstrip": False, "normalized": False, "special": True}
                             for text, id in [*((piece, ids[piece]) for piece in special),
                                              (END, end)]],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                              "use_regex": True},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                        "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False,
                      "continuing_subword_prefix": "", "end_of_word_suffix": "",
                      "byte_fallback": False, "vocab": vocabulary, "merges": []}},
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END,
                                  "add_bos_token": False, "chat_template": template},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder
