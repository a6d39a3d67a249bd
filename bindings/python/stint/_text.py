# SPDX-License-Identifier: Apache-2.0
"""Text to ids and back, and conversations as text, by a model's own tokenizer and template."""
from __future__ import annotations

import ctypes
from array import array
from typing import Any, Iterable, Mapping, Sequence

from . import _layout
from ._errors import LimitError, UnsupportedError
from ._library import Handle, c_string, call, lib

Message = Mapping[str, str]  # "role": "system", "user" or "assistant"; "content"


def id_row(ids: Iterable[int]) -> tuple[Any, int]:
    """The ids as C has them, and their number. OverflowError for what is no 32-bit integer."""
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


def chat_format(handle: Handle, messages: Sequence[Message]) -> str:
    rows = (_layout.Message * len(messages))()
    for row, message in zip(rows, messages):
        row.role, row.content = c_string(message["role"]), c_string(message["content"])
    text = ctypes.c_void_p()
    call(lib.stint_chat_format, handle.pointer, rows, len(messages), ctypes.byref(text))
    try:
        return ctypes.string_at(text.value or 0).decode("utf-8", "replace")
    finally:
        lib.stint_free(text)
