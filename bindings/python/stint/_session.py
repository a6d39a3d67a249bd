# SPDX-License-Identifier: Apache-2.0
"""Sessions: one conversation with a model, used by one thread at a time."""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import threading
from typing import Iterable, Iterator, Optional, Sequence, Union

from . import _layout, _text
from ._answers import Answer, generate_all
from ._generation import Generation, Stream, run
from ._info import describe
from ._library import Handle, c_string, call, choice, interruptible, lib
from ._request import Request, Sampling, Schema, Tools


@dataclasses.dataclass(frozen=True)
class MemoryInfo:
    """stint_memory_info of stint.h; zeros where the session has no bound."""
    budget_bytes: int
    peak_bytes: int
    fixed_bytes: int
    hot_bytes: int
    cold_bytes: int
    kv_bytes: int
    bytes_read: int
    reads: int
    hit_rate: float
    computed: float
    hidden_fraction: float
    bytes_per_step: float
    foreseen: float
    foreseen_used: float
    on_npu: float
    npu_block_seconds: float
    npu_neuron_seconds: float
    cpu_neuron_seconds: float


def forget_cancel(handle: Handle) -> None:
    """Takes back a cancel() that came after the last call had ended: evaluating nothing does."""
    lib.stint_session_eval(handle.pointer, 0, None, 0, False, None)


class Session:
    """Made by Model.session(). A second thread that comes while the first is at work gets a
    RuntimeError; cancel() and close() may come from anywhere."""

    def __init__(self, model: Handle, options: _layout.SessionOptions) -> None:
        pointer = ctypes.c_void_p()
        call(lib.stint_session_open, model.pointer, ctypes.byref(options), ctypes.byref(pointer))
        self._handle: Optional[Handle] = Handle(pointer, lib.stint_session_close, model)
        self._model = model
        info = describe(model)
        self._vocab, self._embedding = info.vocab, info.embedding
        self._lock = threading.Lock()  # held while the library works
        self._stream: Optional[Stream] = None  # of the newest generation

    @property
    def _open(self) -> Handle:
        if self._handle is None:
            raise ValueError("the session is closed")
        return self._handle

    def _acquire(self) -> Handle:
        handle = self._open
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("the session is in use: end its generation first, or open a "
                               "session for each thread")
        return handle

    @contextlib.contextmanager
    def _use(self) -> Iterator[Handle]:
        handle = self._acquire()
        try:
            forget_cancel(handle)
            yield handle
        finally:
            self._lock.release()

    def __len__(self) -> int:
        """Tokens held."""
        return int(lib.stint_session_length(self._open.pointer, 0))

    def __bool__(self) -> bool:
        return True  # also while it is empty

    @property
    def context(self) -> int:
        """Most tokens it can hold."""
        return int(lib.stint_session_context(self._open.pointer))

    @property
    def tokens(self) -> list[int]:
        """Those that are held."""
        pointer = self._open.pointer
        return list(lib.stint_session_tokens(pointer, 0)[:len(self)])

    def _evaluate(self, ids: list[int], want_all: bool, n_rows: int) -> bytearray:
        row, n = _text.id_row(ids)
        logits = bytearray(4 * self._vocab * n_rows)
        target = (ctypes.c_float * (self._vocab * n_rows)).from_buffer(logits) if n_rows else None
        with self._use() as handle:
            interruptible(
                lambda: call(lib.stint_session_eval, handle.pointer, 0, row, n, want_all, target),
                lambda: lib.stint_session_cancel(handle.pointer))
        return logits

    def append(self, ids: Iterable[int]) -> None:
        """Takes tokens in, as if they had been said."""
        self._evaluate(list(ids), False, 0)

    def eval(self, ids: Iterable[int]) -> memoryview[float]:
        """Takes tokens in, at least one; the logits after the last one, float32 [vocab]."""
        ids = list(ids)
        if not ids:
            raise ValueError("no tokens: logits follow at least one")
        return memoryview(self._evaluate(ids, False, 1)).cast("f")

    def eval_all(self, ids: Iterable[int]) -> memoryview[float]:
        """The same with the logits after each token, float32 [number of ids, vocab]."""
        ids = list(ids)
        if not ids:
            raise ValueError("no tokens: logits follow at least one")
        shape = [len(ids), self._vocab]
        return memoryview(self._evaluate(ids, True, len(ids))).cast("f", shape=shape)

    def embed(self, text: Union[str, Iterable[int]], *,
              pooling: str = "default") -> memoryview[float]:
        """The embedding of a text, or ids: float32, of length 1. It replaces what is held.
        pooling: "mean", "last" or "first"; by default what the checkpoint says, or else mean."""
        if isinstance(text, str):
            text = _text.tokenize(self._model, text, _layout.ADD_BOS | _layout.ADD_END)
        row, n = _text.id_row(text)
        vector = bytearray(4 * self._embedding)
        target = (ctypes.c_float * self._embedding).from_buffer(vector)
        kind = choice("STINT_POOLING_", pooling)
        with self._use() as handle:
            interruptible(
                lambda: call(lib.stint_session_embed, handle.pointer, 0, row, n, kind, target),
                lambda: lib.stint_session_cancel(handle.pointer))
        return memoryview(vector).cast("f")

    def truncate(self, length: int) -> None:
        """Forgets all tokens from `length` on."""
        if length < 0:
            raise ValueError(f"length is {length}: expected 0 to {len(self)}")
        with self._use() as handle:
            call(lib.stint_session_truncate, handle.pointer, 0, length)

    def generate(self, prompt: Union[str, Sequence[int]] = "", *, max_tokens: int = 0,
                 sampling: Sampling = Sampling(), ignore_eos: bool = False,
                 stop: Union[str, Sequence[str]] = (), json_schema: Optional[Schema] = None,
                 logprobs: Optional[int] = None) -> Generation:
        """Text that goes on after what is held and the prompt: a text, or ids. max_tokens 0: until
        the model ends or the context is full. stop: texts that end it and are not part of it.
        json_schema: the text is JSON that follows it; True allows any value. logprobs: how many of
        the likeliest tokens are told beside each one. It begins at once, in a thread of its
        own."""
        return self._start(prompt, Request(max_tokens, sampling, ignore_eos, stop, json_schema,
                                           logprobs=logprobs))

    def answers(self, n: int, prompt: Union[str, Sequence[int]] = "", *, max_tokens: int = 0,
                sampling: Sampling = Sampling(temperature=1.0), ignore_eos: bool = False,
                stop: Union[str, Sequence[str]] = (), json_schema: Optional[Schema] = None,
                logprobs: Optional[int] = None) -> list[Answer]:
        """n answers, with sampling.seed and the seeds after it, the likeliest (by the mean of its
        tokens' log-probabilities) first. The prompt is computed once, and they are decoded as one
        batch; the session must have been opened with so many sequences. Otherwise as generate()."""
        if n < 1:
            raise ValueError(f"n is {n}: expected at least 1")
        ids = list(prompt) if not isinstance(prompt, str) else self._ids(prompt)
        request = Request(max_tokens, sampling, ignore_eos, stop, json_schema, logprobs=logprobs,
                          answers=n)
        with self._use() as handle:
            return generate_all(handle, ids, request)

    def _start(self, prompt: Union[str, Sequence[int]], request: Request) -> Generation:
        ids = list(prompt) if not isinstance(prompt, str) else self._ids(prompt)
        request.struct()  # refuses numbers out of range here and now
        _text.id_row(ids)
        handle, stream = self._acquire(), Stream(request.logprobs is not None)
        done = self._lock.release
        thread = threading.Thread(target=run, args=(stream, handle, ids, request, done),
                                  name="stint generation", daemon=True)
        try:
            forget_cancel(handle)
            self._stream = stream
            thread.start()
            return Generation(stream, handle)
        except BaseException:
            stream.stopped = True
            stream.wanted.release()
            if thread.ident is None:  # it never began, so it cannot do this
                done()
            raise

    def _ids(self, text: str) -> list[int]:
        flags = _layout.ADD_BOS if len(self) == 0 else 0
        return _text.tokenize(self._model, text, flags) if text else []

    def chat(self, messages: Sequence[_text.Message], *, max_tokens: int = 0,
             sampling: Sampling = Sampling(), stop: Union[str, Sequence[str]] = (),
             json_schema: Optional[Schema] = None, tools: Optional[Tools] = None,
             tool_choice: str = "auto", tool: Optional[str] = None,
             logprobs: Optional[int] = None, thinking: Optional[bool] = None) -> Generation:
        """The answer to a conversation. Of it only what is not held yet is computed. tools: the
        functions that may be called, as OpenAI has them; tool_choice: "auto", "required" or
        "none"; tool: the one that is required. thinking: whether a model that can reason first
        does; None: as it does by itself."""
        text, reasoning = _text.chat_format(self._model, messages, tools, thinking)
        ids = _text.tokenize(self._model, text, 0)
        shared = 0
        for held, wanted in zip(self.tokens, ids[:-1]):
            if held != wanted:
                break
            shared += 1
        self.truncate(shared)
        return self._start(ids[shared:], Request(max_tokens, sampling, False, stop, json_schema,
                                                 tools, tool_choice, tool, logprobs, reasoning))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes what is held, computed as it is, to a file."""
        with self._use() as handle:
            call(lib.stint_session_save, handle.pointer, 0, c_string(path))

    def load(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Takes what save() wrote, of the same model, in place of what is held."""
        with self._use() as handle:
            call(lib.stint_session_load, handle.pointer, 0, c_string(path))

    def memory(self) -> MemoryInfo:
        """Of a session with a memory bound: where it goes, and what was read."""
        info = _layout.MemoryInfo()
        with self._use() as handle:
            call(lib.stint_session_memory, handle.pointer, ctypes.byref(info))
        return MemoryInfo(**{f.name: getattr(info, f.name) for f in dataclasses.fields(MemoryInfo)})

    def trace(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Draws the last prompt's work: .json for Perfetto, or .svg."""
        with self._use() as handle:
            call(lib.stint_session_trace, handle.pointer, c_string(path))

    def cancel(self) -> None:
        """Stops what runs soon: eval() raises CanceledError, a generation ends. From any thread."""
        handle = self._handle
        if handle is not None:
            lib.stint_session_cancel(handle.pointer)

    def close(self) -> None:
        """Ends what runs and frees it."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        while not self._lock.acquire(timeout=0.05):
            lib.stint_session_cancel(handle.pointer)
            if self._stream is not None and not self._stream.ended.is_set():
                self._stream.stop(handle)
        self._lock.release()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
