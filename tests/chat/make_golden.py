#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders 20 conversations by each template of tests/chat/golden with Python's Jinja2, set up as
Hugging Face does, and writes tests/chat/golden/<template>.json: a list of texts, null where the
template raises an exception. The conversations go to tests/chat/golden/conversations.json.

  make_golden.py [FOLDER]     default: tests/chat/golden
Templates of checkpoints (Qwen2.5) are read from STINT_SHARED_DATA; without it theirs are left."""
import copy
import datetime
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SHARED = pathlib.Path(os.environ.get("STINT_SHARED_DATA", HERE.parents[2] / "shared"))
QWEN = SHARED / "fixtures/tokenizers/qwen2.5/tokenizer_config.json"
NOON = 1722081600  # 27 Jul 2024, 12:00 UTC

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Today's weather \"there\".\n", "parameters": {
        "type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": " Name of the city (Köln, 東京) "},
            "days": {"type": "integer", "description": "How many", "default": 1},
            "units": {"type": "array", "items": {"type": "string", "enum": ["°C", "°F"]}}}}}}
SUM = {"type": "function", "function": {
    "name": "add", "description": "a + b", "return": {"type": "number"}, "parameters": {
        "type": "object", "required": ["a", "b"], "properties": {
            "b": {"type": "number", "description": "<b>"},
            "a": {"type": ["integer", "number"], "description": "it's \\ \"a\""},
            "options": {"type": "object", "additionalProperties": {"type": "boolean"}}}}}}
CLOCK = {"type": "function", "function": {
    "name": "now", "description": "Time", "parameters": {"type": "object", "properties": {}}}}


def turn(role, content, **more):
    return {"role": role, "content": content, **more}


def calls(*named, content=None, text=False):
    made = [{"type": "function", "id": f"call{i:05}", "function": {
        "name": name, "arguments": json.dumps(arguments) if text else arguments}}
        for i, (name, arguments) in enumerate(named)]
    return turn("assistant", content, tool_calls=made)


def result(content, i=0):
    return turn("tool", content, tool_call_id=f"call{i:05}", name="get_weather")


HELLO = turn("user", "Hello")
ASK = turn("user", "What is the weather in Köln?")
KIND = turn("system", "Be kind.")
CALL = calls(("get_weather", {"city": "Köln", "days": 2, "units": ["°C"], "x": None}))
THOUGHT = turn("assistant", "<think>\nHm, 1 < 2.\n</think>\n\nYes.")

CONVERSATIONS = [
    ("one user message", [HELLO], {}),
    ("system", [KIND, HELLO], {}),
    ("multi-turn", [KIND, HELLO, turn("assistant", "Hi!"), turn("user", "How are you?")], {}),
    ("without a system message", [HELLO, turn("assistant", "Hi!"), turn("user", "Und?")], {}),
    ("unicode", [turn("system", "Sei nett — ☕"), turn("user", "日本語 🙂 e\u0301 \u00a0ß")], {}),
    ("empty content", [turn("system", ""), turn("user", "")], {}),
    ("blanks around", [turn("system", " \n Be kind.\t\n"), turn("user", "\n\n Hi  \u00a0"),
                       turn("assistant", "  there \n"), turn("user", " ?\r\n")], {}),
    ("quotes", [turn("user", "Say \"it's\" \\n {{ 1 }} {% if %} <|im_end|> '''"),
                turn("assistant", "'\"'"), HELLO], {}),
    ("ends with the answer", [HELLO, turn("assistant", "Hi!")], {"add_generation_prompt": False}),
    ("two users in a row", [HELLO, turn("user", "Are you there?")], {}),
    ("tools", [ASK], {"tools": [WEATHER, SUM, CLOCK]}),
    ("tools and system", [KIND, ASK], {"tools": [SUM]}),
    ("a call and its result", [ASK, CALL, result("{\"temp\": 21.5}")], {"tools": [WEATHER]}),
    ("two calls", [KIND, ASK, calls(("get_weather", {"city": "東京"}), ("add", {"a": 1, "b": -2.5})),
                   result("rain\n"), result("-1.5", 1), turn("assistant", "It rains."),
                   turn("user", "Thanks")], {"tools": [WEATHER, SUM]}),
    ("a call with text", [ASK, calls(("add", {"b": [1, {"c": "\"é\n"}]}), content=" Let me see "),
                          result("")], {"tools": [SUM]}),
    ("arguments as text", [ASK, calls(("get_weather", {"city": "Bonn"}), text=True),
                           result("sun")], {"tools": [WEATHER]}),
    ("a call without tools told", [ASK, calls(("now", {})), result("12:00")], {}),
    ("thoughts", [HELLO, THOUGHT, turn("user", "Why?"), THOUGHT], {}),
    ("thoughts between calls", [ASK, calls(("now", {}), content="<think>\nWhen?\n</think>\n\n"),
                                result("12:00"), turn("assistant", "Noon.",
                                                      reasoning_content="\nIt is.\n"),
                                turn("user", "<tool_response>no</tool_response>")],
     {"tools": [CLOCK], "enable_thinking": False}),
    ("no message", [], {"tools": None}),
]


def contexts():
    for _, messages, more in CONVERSATIONS:
        yield {"messages": copy.deepcopy(messages), "tools": None, "add_generation_prompt": True,
               "bos_token": "<s>", "eos_token": "</s>", "stint_now": NOON, **more}


def environment():
    # Only here, so that the test that skips without Jinja2 can import this file.
    from jinja2 import TemplateError
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        tags = {"generation"}

        def parse(self, parser):
            next(parser.stream)
            return parser.parse_statements(["name:endgeneration"], drop_needle=True)

    def raise_exception(message):
        raise TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                         extensions=[Generation, "jinja2.ext.loopcontrols"])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = datetime.datetime.fromtimestamp(NOON).strftime
    return made


def templates():
    """{name: source} of those that are here."""
    found = {path.stem: path.read_text(encoding="utf-8")
             for path in sorted((HERE / "golden").glob("*.jinja"))}
    if QWEN.exists():
        found["qwen2.5"] = json.loads(QWEN.read_text(encoding="utf-8"))["chat_template"]
    return found


def render(template, context):
    try:
        return template.render(**context)
    except Exception:  # whatever Python raises there, the conversation cannot be rendered
        return None


def golden():
    """{file name: JSON value}"""
    jinja = environment()
    files = {"conversations.json": [{"name": name, "context": context} for (name, _, _), context
                                    in zip(CONVERSATIONS, contexts())]}
    for name, source in templates().items():
        template = jinja.from_string(source)
        files[f"{name}.json"] = [render(template, context) for context in contexts()]
    return files


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "golden"
    for name, value in golden().items():
        text = json.dumps(value, ensure_ascii=False, indent=1)
        (folder / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
