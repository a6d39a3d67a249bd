# SPDX-License-Identifier: Apache-2.0
"""Models: immutable, shared by threads and sessions."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Iterable, Optional, Sequence, Union

from . import _layout, _text
from ._info import ModelInfo, describe
from ._library import Handle, c_string, call, choice, lib, optional, progress_callback
from ._request import Tools
from ._sampling import Sampling, model_sampling
from ._session import Session
from ._text import Message

Path = Union[str, "os.PathLike[str]"]
Progress = Callable[[str, int, int], None]  # what, done, total


class Model:
    """A loaded checkpoint. Threads may share it. It stays open for its sessions, even where it
    is closed first."""

    def __init__(self, handle: Handle) -> None:
        self._handle: Optional[Handle] = handle

    @classmethod
    def open(cls, path: Path, *, exec: str = "default", tokenizer: bool = True,
             lazy: bool = False, nested: Optional[Path] = None,
             progress: Optional[Progress] = None) -> "Model":
        """A Hugging Face folder, a .gguf file, or a package of prepare(). nested: of a checkpoint,
        a package made from it, whose nested weights run drafts and schedules."""
        return cls._open(lib.stint_model_open, c_string(path), progress,
                         exec=choice("STINT_EXEC_", exec), no_tokenizer=not tokenizer,
                         lazy=lazy, nested=c_string(nested) if nested else None)

    @classmethod
    def open_preset(cls, name: str, *, exec: str = "default",
                   bits: Optional[tuple[int, int]] = None,
                   progress: Optional[Progress] = None) -> "Model":
        """Random weights of a model preset (a known model's shape), without a tokenizer."""
        low, high = bits or (0, 0)
        return cls._open(lib.stint_model_open_preset, c_string(name), progress,
                         exec=choice("STINT_EXEC_", exec), nested_low=low, nested_high=high)

    @classmethod
    def _open(cls, function: Any, name: bytes, progress: Optional[Progress],
              **options: Any) -> "Model":
        errors: list[BaseException] = []
        callback = progress_callback(progress, errors.append)
        pointer = ctypes.c_void_p()
        call(function, name, _layout.ModelOptions(progress=callback, **options),
             ctypes.byref(pointer))
        model = cls(Handle(pointer, lib.stint_model_close))
        if errors:
            raise errors[0]
        return model

    @property
    def handle(self) -> Handle:
        """For this package."""
        if self._handle is None:
            raise ValueError("the model is closed")
        return self._handle

    def close(self) -> None:
        """Frees it as soon as its sessions are closed too."""
        self._handle = None

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def describe(self) -> ModelInfo:
        return describe(self.handle)

    def sampling(self) -> Sampling:
        """What suits a conversation: what the model's maker recommends, or general values."""
        return model_sampling(self.handle)

    def tokenize(self, text: str, *, add_bos: bool = False, plain: bool = False) -> list[int]:
        """Ids of a text. plain: special tokens in it are ordinary characters."""
        flags = (_layout.ADD_BOS if add_bos else 0) | (_layout.PLAIN if plain else 0)
        return _text.tokenize(self.handle, text, flags)

    def detokenize(self, ids: Iterable[int], *, special: bool = False) -> str:
        """The text of ids; of special tokens nothing, unless `special`."""
        return _text.detokenize(self.handle, ids, _layout.SPECIAL if special else 0)

    def chat_format(self, messages: Sequence[Message], *, tools: Optional[Tools] = None,
                    thinking: Optional[bool] = None) -> str:
        """A conversation in the checkpoint's template, with the opening of the answer. Tokenize
        it without add_bos and plain."""
        return _text.chat_format(self.handle, messages, tools, thinking)[0]

    def session(self, *, threads: int = 0, context: int = 0, chunk: Union[int, str] = 0,
                kv: Optional[str] = None, memory: int = 0, device: Optional[str] = None,
                npu_threads: int = 0, cpu_threads: int = 0, schedule: Optional[str] = None,
                order: Optional[str] = None, npu_memory: int = 0, drafts: int = 0,
                draft_bits: int = 0, sequences: int = 0, npu_hot: float = 0.0) -> Session:
        """A conversation. All defaults are those of stint_session_options; chunk can be "auto",
        memory is in bytes. sequences: most answers to a prompt that answers() can give."""
        options = _layout.SessionOptions(
            n_threads=threads, n_context=context,
            chunk_len=_layout.CHUNK_AUTO if chunk == "auto" else chunk,
            kv=optional(kv), memory=memory, device=optional(device),
            npu_threads=npu_threads, cpu_threads=cpu_threads, schedule=optional(schedule),
            order=optional(order), npu_memory=npu_memory, n_drafts=drafts, draft_bits=draft_bits,
            n_sequences=sequences, npu_hot=npu_hot)
        return Session(self.handle, options)
