# SPDX-License-Identifier: Apache-2.0
"""Several answers to one prompt, decoded as one batch."""
from __future__ import annotations

import dataclasses
from typing import Any

from . import _layout
from ._generation import GenerationResult, Stream, TokenLogprob, ToolCall, result_of
from ._library import Handle, call, interruptible, lib
from ._request import Request
from ._text import id_row


@dataclasses.dataclass(frozen=True)
class Answer:
    """One of the answers to a prompt."""
    text: str
    ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...]  # where they were asked for
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    result: GenerationResult


class Collected(Stream):
    """An answer that is read at its end."""
    text = ""

    def tell(self, text: str) -> None:
        self.text += text

    def answer(self, result: _layout.GenerationResult) -> Answer:
        return Answer(self.text, tuple(self.ids), tuple(self.logprobs), self.reasoning,
                      tuple(self.tool_calls), result_of(result))


def generate_all(handle: Handle, prompt: list[int], request: Request) -> list[Answer]:
    """The likeliest first."""
    n = request.answers
    streams = [Collected(request.logprobs is not None) for _ in range(n)]

    def receive(context: Any, pointer: Any) -> bool:
        return streams[pointer.contents.answer].receive(context, pointer)

    generation = request.struct()
    generation.text = _layout.TEXT(receive)
    (row, n_ids), results = id_row(prompt), (_layout.GenerationResult * n)()
    results[0].size = _layout.GenerationResult().size
    interruptible(
        lambda: call(lib.stint_generate, handle.pointer, row, n_ids, generation, None, 0, results),
        lambda: lib.stint_session_cancel(handle.pointer))
    answers = [stream.answer(result) for stream, result in zip(streams, results)]
    return sorted(answers, key=lambda one: -one.result.mean_logprob)
