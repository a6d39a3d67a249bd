# SPDX-License-Identifier: Apache-2.0
"""Large language models on one small device: libstint for Python, without dependencies.

    with stint.Model.open("models/novels-10m") as model, model.session() as session:
        for piece in session.generate("It was a cold evening", max_tokens=64):
            print(piece, end="", flush=True)

A Model is shared by threads; a Session is one conversation, used by one thread at a time. Failures
are exceptions, all of them StintError. docs/EMBEDDING.md has more.
"""
from ._answers import Answer
from ._errors import (ArgumentError, CanceledError, DeviceError, FileError, FormatError,
                      InternalError, LimitError, OutOfMemoryError, StintError, UnsupportedError)
from ._generation import Generation, GenerationResult, TokenLogprob, ToolCall
from ._info import ModelInfo
from ._library import set_log, version
from ._model import Model
from ._prepare import PrepareSummary, prepare
from ._sampling import Parameter, Sampling, sampling_parameters
from ._session import MemoryInfo, Session

__all__ = [
    "Answer", "ArgumentError", "CanceledError", "DeviceError", "FileError", "FormatError",
    "Generation", "GenerationResult", "InternalError", "LimitError", "MemoryInfo", "Model",
    "ModelInfo", "OutOfMemoryError", "Parameter", "PrepareSummary", "Sampling", "Session",
    "StintError", "TokenLogprob", "ToolCall", "UnsupportedError", "prepare",
    "sampling_parameters", "set_log", "version",
]
