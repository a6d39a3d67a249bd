# SPDX-License-Identifier: Apache-2.0
"""Text piece by piece. The library calls back for each piece, Python asks for the next one: a
thread stands between, and waits after each piece until the next is wanted. So the session holds
no token that was not asked for."""
from __future__ import annotations

import dataclasses
import json
import queue
import sys
import threading
from ctypes import byref, string_at
from typing import Any, Callable, Iterator, Optional

from . import _layout
from ._library import INTERRUPT_SECONDS, Handle, call, lib
from ._request import Request
from ._text import id_row

STOP_REASONS = {value: word for word, value in _layout.CHOICES["STINT_STOP_"].items()}
ANSWER, REASONING, TOOL_CALL = _layout.CHOICES["STINT_TEXT_"].values()


@dataclasses.dataclass(frozen=True)
class GenerationResult:
    """How a generation ended."""
    stop_reason: str  # "length", "eos", "text", "context", "callback" (it was closed), "canceled"
    prompt_tokens: int
    generated_tokens: int
    prefill_seconds: float
    decode_seconds: float
    average_bits: float
    reasoning_tokens: int
    tool_calls: int
    decode_steps: int  # after the prompt
    drafted_tokens: int  # computed in them as drafts
    accepted_tokens: int  # of those, part of the answer
    self_drafted_tokens: int  # of the drafts, those that weights made
    self_accepted_tokens: int
    mean_logprob: float  # 0 without log-probabilities
    step_median: float  # seconds of a decode step
    step_p90: float
    step_p99: float


def result_of(struct: _layout.GenerationResult) -> GenerationResult:
    values = {f.name: getattr(struct, f.name) for f in dataclasses.fields(GenerationResult)}
    values["stop_reason"] = STOP_REASONS[struct.stop_reason]
    return GenerationResult(**values)


@dataclasses.dataclass(frozen=True)
class TokenLogprob:
    """A token and the natural logarithm of its probability; `top`: the likeliest ones, as pairs of
    token and logarithm."""
    id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """A function that the model calls."""
    name: str
    arguments: dict[str, Any]


class Stream:
    """What the library's thread and the reader share."""

    def __init__(self, wants_logprobs: bool) -> None:
        self.wants_logprobs = wants_logprobs
        self.pieces: queue.SimpleQueue[Optional[str]] = queue.SimpleQueue()  # None is the last
        self.wanted = threading.Semaphore(0)
        self.stopped = False
        self.ended = threading.Event()
        self.ids: list[int] = []
        self.logprobs: list[TokenLogprob] = []
        self.reasoning = ""
        self.tool_calls: list[ToolCall] = []
        self.result: Optional[GenerationResult] = None
        self.error: Optional[BaseException] = None

    def receive(self, _context: Any, pointer: Any) -> bool:
        piece = pointer.contents
        text = string_at(piece.text, piece.n_bytes).decode("utf-8", "replace")
        if piece.id >= 0:
            self.ids.append(piece.id)
            if self.wants_logprobs:
                top = tuple((one.id, one.logprob) for one in piece.top[:piece.n_top])
                self.logprobs.append(TokenLogprob(piece.id, piece.logprob, top))
        if piece.kind == REASONING:
            self.reasoning += text
        elif piece.kind == TOOL_CALL:
            self.tool_calls.append(ToolCall(piece.function.decode(), json.loads(text)))
        elif text and not self.stopped:
            self.tell(text)
        return not self.stopped

    def tell(self, text: str) -> None:
        """Waits until the next piece is wanted."""
        self.pieces.put(text)
        self.wanted.acquire()

    def stop(self, handle: Handle) -> None:
        """Returns when the library is back."""
        self.stopped = True
        self.wanted.release()
        while not self.ended.is_set():
            lib.stint_session_cancel(handle.pointer)
            self.ended.wait(INTERRUPT_SECONDS)


def run(stream: Stream, handle: Handle, prompt: list[int], request: Request,
        done: Callable[[], None]) -> None:
    """The thread: one call of the library, then done()."""
    try:
        generation = request.struct()
        generation.text = _layout.TEXT(stream.receive)
        (row, n), result = id_row(prompt), _layout.GenerationResult()
        call(lib.stint_generate, handle.pointer, row, n, byref(generation), None, 0,
             byref(result))
        stream.result = result_of(result)
    except BaseException as error:  # raised where the text is read
        stream.error = error
    finally:
        done()
        stream.ended.set()
        stream.pieces.put(None)


class Generation(Iterator[str]):
    """An iterator of pieces of text, whole characters each. A reader that leaves early ends the
    generation, at the latest with close(); until the end the session is in use."""

    def __init__(self, stream: Stream, handle: Handle) -> None:
        self._stream = stream
        self._handle = handle
        self._reading = False
        self._at_end = False

    @property
    def ids(self) -> list[int]:
        """The tokens so far."""
        return list(self._stream.ids)

    @property
    def logprobs(self) -> list[TokenLogprob]:
        """Of the tokens so far, where they were asked for."""
        return list(self._stream.logprobs)

    @property
    def reasoning(self) -> str:
        """What the model thought so far, before its answer."""
        return self._stream.reasoning

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The functions that it calls, at the end."""
        return list(self._stream.tool_calls)

    @property
    def result(self) -> Optional[GenerationResult]:
        """After the end; None before, and after a failure."""
        return self._stream.result

    def __iter__(self) -> "Generation":
        return self

    def __next__(self) -> str:
        if self._at_end:
            raise StopIteration
        if self._reading:
            self._stream.wanted.release()
        self._reading = True
        try:
            piece = self._stream.pieces.get()
        except BaseException:  # Ctrl-C
            self.close()
            raise
        if piece is not None and not self._stream.stopped:
            return piece
        self._at_end = True
        if self._stream.error is not None and not self._stream.stopped:
            raise self._stream.error
        raise StopIteration

    def text(self) -> str:
        """All that is still to come."""
        return "".join(self)

    def close(self) -> None:
        """Ends it where it stands."""
        if not self._stream.ended.is_set():
            self._stream.stop(self._handle)
        self._at_end = True

    def __enter__(self) -> "Generation":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __del__(self) -> None:
        # At the interpreter's end its threads stand still for good.
        if not sys.is_finalizing():
            self.close()
