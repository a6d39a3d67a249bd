#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the hand-made seeds of fuzz/corpus/safetensors, gguf, schema, jinja, chat and request:
small files, right ones and wrong ones, that reach every branch of the readers. Inputs that once
failed lie beside them under other names and are not touched."""
import json
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))


def write(parser, name, data):
    folder = os.path.join(HERE, "corpus", parser)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "seed-" + name), "wb") as file:
        file.write(data)


def safetensors(header, data_bytes):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(range(data_bytes))


def member(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def make_safetensors():
    good = {"__metadata__": {"format": "pt"}, "a": member("F32", [2, 2], 0, 16),
            "b": member("BF16", [], 16, 18), "h": member("F16", [1, 1, 1, 3], 18, 24)}
    aside = {"ids": member("I64", [1], 0, 8), "none": member("F32", [0], 8, 8),
             "patch": member("F16", [1] * 5, 8, 10)}
    write("safetensors", "good", safetensors(good, 24))
    write("safetensors", "aside", safetensors(aside, 10))
    write("safetensors", "overlap",
          safetensors({"a": member("F32", [2], 0, 8), "b": member("F32", [1], 4, 8)}, 8))
    write("safetensors", "past-end", safetensors({"a": member("F32", [2], 0, 8)}, 4))
    write("safetensors", "wrap", safetensors({"a": member("F32", [1 << 32, 1 << 32], 0, 0)}, 0))
    write("safetensors", "twice", safetensors(b'{"a":{},"a":{}}', 0))
    write("safetensors", "length", b"\xff" * 8 + b"{}")


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def key(name, number, value):
    return text(name) + struct.pack("<I", number) + value


def array(name, number, count, values):
    return key(name, 9, struct.pack("<IQ", number, count) + values)


def tensor(name, dims, number, offset):
    return (text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
            + struct.pack("<IQ", number, offset))


def gguf(keys, tensors=(), data_bytes=0, version=3, alignment=32, counts=None):
    n_tensors, n_keys = counts or (len(tensors), len(keys))
    out = b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_keys) + b"".join(keys)
    out += b"".join(tensors)
    if data_bytes:
        out += bytes(-len(out) % alignment) + bytes(i & 255 for i in range(data_bytes))
    return out


def make_gguf():
    scalars = [key("k", n, bytes([1]) + bytes(size - 1))
               for n, size in ((0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (10, 8), (11, 8))]
    words = text("<s>") + text("") + text("hello")
    keys = [key("general.architecture", 8, text("llama")),
            key("general.alignment", 4, struct.pack("<I", 64)),
            key("llama.block_count", 4, struct.pack("<I", 2)),
            key("llama.rope.freq_base", 6, struct.pack("<f", 1e4)),
            key("tokenizer.ggml.add_bos", 7, b"\1"),
            array("tokenizer.ggml.tokens", 8, 3, words),
            array("tokenizer.ggml.scores", 6, 3, struct.pack("<3f", 0, -1, 2))]
    tensors = [tensor("embed", [8, 2], 0, 0), tensor("q", [256, 1], 12, 64)]
    write("gguf", "good", gguf(keys, tensors, 64 + 144, alignment=64))
    write("gguf", "v2", gguf(keys[:1], [tensor("t", [32], 8, 0)], 34, version=2))
    for i, scalar in enumerate(scalars):
        write("gguf", f"scalar-{i}", gguf([scalar]))
    write("gguf", "f64", gguf([key("k", 12, struct.pack("<d", float("nan")))]))
    write("gguf", "i8-array", gguf([array("k", 1, 3, b"\1\2\xff")]))
    write("gguf", "nested", gguf([array("k", 9, 1, bytes(24))]))
    write("gguf", "twice", gguf([scalars[0], scalars[1]]))
    write("gguf", "alignment-0", gguf([key("general.alignment", 4, bytes(4))]))
    write("gguf", "many-tensors", gguf([], counts=(1 << 60, 0)))
    write("gguf", "many-words", gguf([array("k", 8, 1 << 61, words)]))
    write("gguf", "past-end", gguf([], [tensor("t", [1 << 20], 0, 0)], 64))
    write("gguf", "wrap", gguf([], [tensor("t", [1 << 32, 1 << 32], 0, 0)], 64))
    write("gguf", "offset", gguf([], [tensor("t", [8], 0, (1 << 64) - 32)], 64))
    write("gguf", "overlap", gguf([], [tensor("a", [16], 0, 0), tensor("b", [8], 0, 32)], 96))
    write("gguf", "type", gguf([], [tensor("t", [256], 99, 0)], 64))
    write("gguf", "big-endian", gguf([], version=0x03000000))


def schema(name, value, document):
    write("schema", name, json.dumps(value).encode() + b"\0" + document.encode())


def make_schema():
    node = {"type": "object", "properties": {"v": {"type": "integer", "minimum": -7},
                                             "next": {"anyOf": [{"$ref": "#/$defs/n"},
                                                                {"type": "null"}]}},
            "required": ["v", "next"], "additionalProperties": False}
    schema("any", True, '\n{"a": [1, -2.5e+3, "x\\ud83d\\ude00", null, true, false]}')
    schema("list", {"$ref": "#/$defs/n", "$defs": {"n": node}}, '{"v":1,"next":{"v":-5,')
    schema("more", {"properties": {"ab": {"const": 1}, "a\u00e9": {}}, "required": ["ab", "z"],
                    "additionalProperties": {"type": ["string", "null"], "maxLength": 2}},
           '{"ab":1,"z":"x","abc":null}')
    schema("array", {"prefixItems": [{"enum": ["a", "ab", 1, {"x": [None]}]}], "minItems": 2,
                     "maxItems": 4, "items": {"type": "number", "exclusiveMinimum": 0,
                                              "maximum": 12}}, '["ab", 0.5, 12.0]')
    schema("pattern", {"type": "string", "minLength": 2, "maxLength": 9,
                       "pattern": r"^([^\W\d]{1,3}-?|\u00e9*?)+\.$|b.d"}, '"ab-c."')
    schema("formats", {"prefixItems": [{"type": "string", "format": f} for f in
                                       ("date", "time", "date-time", "uuid", "ipv4", "email")]},
           '["2024-02-28","23:59:59Z"')
    schema("merge", {"allOf": [{"$ref": "#/$defs/a"}, {"type": ["object", "null"]}],
                     "anyOf": [{"required": ["x"]}, {"required": ["y"]}],
                     "$defs": {"a": {"properties": {"x": {"minimum": 1}, "y": {}}}}}, '{"x":3')
    schema("loop", {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "null")
    schema("endless", {"items": {"$ref": "#"}, "minItems": 1, "type": "array"}, "[[")


def make_jinja():
    bools = "{{ 1 if a is defined and not b or c in 'x' else [1, (2,), {'k': none}][-1].k }}"
    loop = ("{%- for m, x in messages|items if m -%} {{ loop.index }}{% continue %}{% else %}x"
            "{% endfor +%}")
    names = ("{% set ns = namespace(a=1) %}{% set ns.a = ns.a ~ 'b' * 3 %}"
             "{% set q | upper %}{{ ns.a }}{% endset %}"
             "{% macro f(x, y=2) %}{{ x + y }}{% endmacro %}{{ f(1, y=-2 ** 3) }}")
    text = ("{{ ' a-b '.strip().split('-', 1)[::-1]|join(', ')|title }}{{ messages|tojson(indent"
            "=2) }}{{ '%s\\u00e9\\n' | replace('s', 'ss') | indent | e }}{# c #}{% raw %}{{"
            "{% endraw %}")
    lists = ("{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list|sort|"
             "unique|list|length }}{{ range(9)|select('odd')|sum / 2 // 1 % 3 }}{{ d|dictsort }}")
    for name, source in (("bools", bools), ("loop", loop), ("names", names), ("text", text),
                         ("lists", lists)):
        write("jinja", name, source.encode() + b'\n---\n{"messages": [{"role": "user", "content": '
              b'"Gr\xc3\xbc\xc3\x9fe 1.5"}], "d": {"b": 1, "a": [null, true, 2.5]}}')
    write("jinja", "alone", b"{{ messages }}{{ strftime_now('%d') }}{{ raise_exception('x') }}")
    write("jinja", "deep", b"{{ " + b"(" * 200)
    write("jinja", "recursive", b"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")


def request(name, body):
    write("request", name, body if isinstance(body, bytes) else json.dumps(body).encode())


def make_request():
    user = [{"role": "user", "content": "Hi"}]
    tool = {"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {"a": {"enum": [1, "b"]}}, "required": ["a"]}}}
    sampling = {"temperature": 0.5, "top_p": 0.9, "top_k": 3, "min_p": 0.1, "seed": -5,
                "presence_penalty": -1, "frequency_penalty": 2, "n": 2, "max_tokens": 9}
    request("chat", {"messages": user, "model": "m", "stop": ["a", "bc"], "logprobs": True,
                     "top_logprobs": 4, **sampling})
    request("roles", {"messages": [{"role": "developer", "content": "a"}, {
        "role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {}}]}, {
            "role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "b"}]}]})
    request("tools", {"messages": user, "tools": [tool, tool], "tool_choice": "required",
                      "parallel_tool_calls": False})
    request("named", {"messages": user, "tools": [tool], "tool_choice": {
        "type": "function", "function": {"name": "f"}}})
    request("schema", {"messages": user, "response_format": {
        "type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array", "items": {
            "$ref": "#/$defs/d"}, "$defs": {"d": {"type": "integer"}}}}}})
    request("json", {"messages": user, "response_format": {"type": "json_object"},
                     "stream": True, "stream_options": {"include_usage": True}})
    request("text", {"prompt": ["a", [1, 2]], "logprobs": 3, "echo": False, "suffix": "",
                     "logit_bias": {}, "best_of": 1, "stop": "x"})
    request("ids", {"prompt": [1, 2, 3], "stream": True})
    request("unsupported", {"prompt": "a", "echo": True})
    request("bias", {"prompt": "a", "logit_bias": {"1": -100, "20": 1.5, "01": 1}})
    request("thinking", {"messages": user, "chat_template_kwargs": {"enable_thinking": False}})
    request("twice", b'{"prompt":"a","prompt":"b"}')
    request("deep", b'{"prompt":' + b"[" * 3000)
    request("not-utf8", b'{"prompt":"\xc3("}')


def make_chat():
    turns = ("{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ m.tool_calls|d|tojson }}"
             "{% endfor %}{{ tools }}{# MARK #}")
    texts = "{{ messages[1].content + messages[2].tool_calls[0].function.arguments }}{# tools #}"
    talk = [{"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "a"}] * 2},
            {"role": "assistant", "content": None, "tool_calls": [
                {"function": {"name": "f", "arguments": "{\"x\": 1.5}"}}]},
            {"role": "tool", "content": "1", "name": None}]
    tools = [{"type": "function", "function": {"name": "f"}}]
    call = '{"name": "f", "arguments": {"x": [1, null]}}'
    answers = {"<tool_call>": f"a <tool_call>{call}</tool_call>", "[TOOL_CALLS]":
               f"[TOOL_CALLS][{call}] [TOOL_CALLS]f[ARGS]{{}}", "<|start_header_id|>":
               call.replace("arguments", "parameters"), "Action:":
               'Action:\n```json\n[{"tool_name": "f", "parameters": {}}]```', "":
               "<\uff5ctool\u2581call\u2581begin\uff5c>f<\uff5ctool\u2581sep\uff5c>{}"}
    for i, (mark, answer) in enumerate(answers.items()):
        source = texts if i == 1 else turns.replace("MARK", mark)
        body = {"messages": talk, "tools": tools, "answer": answer}
        write("chat", f"{i}", (source + "\n---\n" + json.dumps(body)).encode())
    write("chat", "built-in", b"{% include %}<|im_start|>\n---\n" + json.dumps(
        {"messages": talk[:2], "tools": []}).encode())


make_safetensors()
make_gguf()
make_schema()
make_jinja()
make_request()
make_chat()
