# SPDX-License-Identifier: Apache-2.0
"""Text to ids and back, and conversations as text, by a model's own tokenizer and template."""
from __future__ import annotations

import ctypes
from array import array
from typing import Any, Iterable, Mapping, Optional, Sequence

from . import _layout
from ._errors import LimitError, UnsupportedError
from ._library import Handle, c_string, call, choice, lib, optional
from ._request import Tools, json_text

# "role": "system", "user", "assistant" or "tool"; "content"; "tool_calls" as OpenAI has them;
# "tool_call_id"
Message = Mapping[str, Any]


def id_row(ids: Iterable[int]) -> tuple[Any, int]:
    """The ids as C has them, and their number. OverflowError for anything but a 32-bit integer."""
    values = array("i", ids)
    return (ctypes.c_int32 * len(values)).from_buffer(values), len(values)


def _tokenizer(handle: Handle) -> Any:
    pointer = lib.stint_model_tokenizer(handle.pointer)
    if not pointer:
        raise UnsupportedError("the model has no tokenizer: only token ids can be used", -5)
    return pointer


def tokenize(handle: Handle, text: str, flags: int) -> list[int]:
    tokenizer, data = _tokenizer(handle), text.encode("utf-8", "surrogatepass")
    capacity = len(data) + 16  # a token is hardly ever less than a byte
    while True:
        ids, count = (ctypes.c_int32 * capacity)(), ctypes.c_size_t()
        try:
            call(lib.stint_tokenize, tokenizer, data, len(data), flags, ids, capacity,
                 ctypes.byref(count))
            return list(ids[:count.value])
        except LimitError:
            if count.value <= capacity:
                raise
            capacity = count.value


def detokenize(handle: Handle, ids: Iterable[int], flags: int) -> str:
    tokenizer, (row, n) = _tokenizer(handle), id_row(ids)
    capacity = 8 * n + 16
    while True:
        text, count = ctypes.create_string_buffer(capacity), ctypes.c_size_t()
        try:
            call(lib.stint_detokenize, tokenizer, row, n, flags, text, capacity,
                 ctypes.byref(count))
            return text.raw[:count.value].decode("utf-8", "replace")
        except LimitError:
            if count.value < capacity:
                raise
            capacity = count.value + 1


def chat_format(handle: Handle, messages: Sequence[Message], tools: Optional[Tools] = None,
                thinking: Optional[bool] = None) -> tuple[str, str]:
    """The prompt, and how its answer begins."""
    rows = (_layout.Message * len(messages))()
    for row, message in zip(rows, messages):
        row.role, row.content = c_string(message["role"]), optional(message.get("content"))
        row.tool_calls = json_text(message.get("tool_calls"))
        row.tool_call_id = optional(message.get("tool_call_id"))
    word = "default" if thinking is None else "on" if thinking else "off"
    options = _layout.ChatOptions(tools=json_text(tools), thinking=choice("STINT_THINKING_", word))
    text, reasoning = ctypes.c_void_p(), ctypes.c_int()
    call(lib.stint_chat_format, handle.pointer, rows, len(messages), ctypes.byref(options),
         ctypes.byref(text), ctypes.byref(reasoning))
    words = {value: name for name, value in _layout.CHOICES["STINT_REASONING_"].items()}
    try:
        made = ctypes.string_at(text.value or 0).decode("utf-8", "replace")
        return made, words[reasoning.value]
    finally:
        lib.stint_free(text)
