# SPDX-License-Identifier: Apache-2.0
"""The library's status codes as exceptions."""
from __future__ import annotations


class StintError(Exception):
    """A call failed. str() says what failed, where, and how to fix it; `status` is the code of
    stint.h."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class ArgumentError(StintError, ValueError):
    """An argument is out of its range."""


class OutOfMemoryError(StintError, MemoryError):
    """Not enough memory."""


class FileError(StintError):
    """A file could not be read or written."""


class FormatError(StintError):
    """A file is damaged or not what it says it is."""


class UnsupportedError(StintError):
    """Valid, but not something stint can run."""


class LimitError(StintError):
    """A memory or context bound was reached."""


class DeviceError(StintError):
    """A device failed."""


class CanceledError(StintError):
    """Canceled."""


class InternalError(StintError):
    """A bug in stint."""


# by the names of STINT_STATUS_LIST
BY_STATUS: dict[int, tuple[str, type[StintError]]] = {
    -1: ("E_ARG", ArgumentError),
    -2: ("E_NOMEM", OutOfMemoryError),
    -3: ("E_IO", FileError),
    -4: ("E_FORMAT", FormatError),
    -5: ("E_UNSUPPORTED", UnsupportedError),
    -6: ("E_LIMIT", LimitError),
    -7: ("E_DEVICE", DeviceError),
    -8: ("E_CANCELED", CanceledError),
    -9: ("E_INTERNAL", InternalError),
}


def error_of(status: int, text: str) -> StintError:
    """The exception of a status; StintError itself for a code of a newer library."""
    return BY_STATUS.get(status, ("", StintError))[1](text, status)
