# SPDX-License-Identifier: Apache-2.0
"""Finds libstint.so.0 and calls it: a failing status becomes an exception, long calls can be
interrupted, and what was opened is closed when nobody refers to it any more."""
from __future__ import annotations

import ctypes
import os
import pathlib
import queue
import threading
import weakref
from typing import Any, Callable, Optional, TypeVar, Union

from . import _layout
from ._errors import error_of

T = TypeVar("T")
NAME = "libstint.so.0"
INTERRUPT_SECONDS = 0.05  # between two requests to stop


def _load() -> ctypes.CDLL:
    """$STINT_LIBRARY, else the one in this package (a wheel), else the system's."""
    here = pathlib.Path(__file__).parent / NAME
    path = os.environ.get("STINT_LIBRARY") or (str(here) if here.exists() else NAME)
    library = ctypes.CDLL(path)  # releases the interpreter's lock during each call
    for name, (result, arguments) in _layout.FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = _load()


def call(function: Any, *arguments: Any) -> None:
    """Raises what a failing status means. The text belongs to the calling thread."""
    status = function(*arguments)
    if status != 0:
        text = ctypes.create_string_buffer(lib.stint_error_copy(None, 0) + 1)
        lib.stint_error_copy(text, len(text))
        raise error_of(status, text.value.decode("utf-8", "replace"))


def interruptible(work: Callable[[], T], cancel: Callable[[], None]) -> T:
    """work(), so that Ctrl-C ends it: Python handles signals in the main thread only, and only
    between two of its own instructions, so the work is done in another one meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    outcome: queue.SimpleQueue[tuple[Any, Optional[BaseException]]] = queue.SimpleQueue()

    def body() -> None:
        try:
            outcome.put((work(), None))
        except BaseException as error:  # raised again where it belongs
            outcome.put((None, error))

    threading.Thread(target=body, name="stint", daemon=True).start()
    try:
        result, error = outcome.get()
    except BaseException:
        _end(outcome, cancel)
        raise
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def _end(outcome: queue.SimpleQueue[Any], cancel: Callable[[], None]) -> None:
    """Waits for the end, however often the user asks: the library still works on our memory."""
    while True:
        try:
            cancel()
            outcome.get(timeout=INTERRUPT_SECONDS)
            return
        except (queue.Empty, KeyboardInterrupt):
            pass


class Handle:
    """A pointer of the library, closed when nobody refers to it. `keeps` is closed later."""

    def __init__(self, pointer: ctypes.c_void_p, close: Any,
                 keeps: Optional["Handle"] = None) -> None:
        self.pointer = pointer
        self.keeps = keeps
        # The finalizer refers to `keeps` too: in a cycle of garbage the order would be any.
        weakref.finalize(self, _close, close, pointer, keeps).atexit = False


def _close(close: Any, pointer: ctypes.c_void_p, _keeps: Optional[Handle]) -> None:
    close(pointer)


def version() -> str:
    """Of the library that is loaded."""
    text: bytes = lib.stint_version()
    return text.decode()


_log: Any = None  # the callback in use: the library holds a pointer to it


def set_log(receive: Optional[Callable[[str, str], None]], level: str = "warning") -> None:
    """receive(level, text) gets the library's messages up to `level` ("error" to "debug"), from
    any thread, one at a time; None drops them. To be set before other calls."""
    global _log  # pylint: disable=global-statement
    levels = _layout.CHOICES["STINT_LOG_"]
    names = {value: name for name, value in levels.items()}

    def forward(_context: Any, value: int, text: bytes) -> None:
        if receive is not None:
            receive(names.get(value, "debug"), text.decode("utf-8", "replace"))

    callback = _layout.LOG(forward) if receive is not None else _layout.LOG()
    lib.stint_log_set(callback, None, choice("STINT_LOG_", level))
    _log = callback


def c_string(text: Union[str, "os.PathLike[str]"]) -> bytes:
    """For a char pointer: there a character 0 would end it unnoticed."""
    data = os.fspath(text).encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise ValueError(f"a character 0 in {text!r}")
    return data


def optional(text: Union[None, str, "os.PathLike[str]"]) -> Optional[bytes]:
    return None if text is None else c_string(text)


def choice(prefix: str, word: str) -> int:
    """The value of one of CHOICES' words."""
    words = _layout.CHOICES[prefix]
    if word not in words:
        raise ValueError(f"'{word}': expected one of {', '.join(words)}")
    return words[word]


def progress_callback(receive: Optional[Callable[[str, int, int], None]],
                      failed: Callable[[BaseException], None]) -> Any:
    """receive(what, done, total) for C; what it raises goes to `failed`."""
    if receive is None:
        return _layout.PROGRESS()
    tell = receive

    def forward(_context: Any, what: bytes, done: int, total: int) -> None:
        try:
            tell(what.decode("utf-8", "replace"), done, total)
        except BaseException as error:  # must not cross the library
            failed(error)

    return _layout.PROGRESS(forward)
