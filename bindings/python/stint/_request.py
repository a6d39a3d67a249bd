# SPDX-License-Identifier: Apache-2.0
"""What an answer is asked for, as the library takes it."""
from __future__ import annotations

import ctypes
import dataclasses
import json
from typing import Any, Mapping, Optional, Sequence, Union

from . import _layout
from ._library import c_string, choice
from ._sampling import Sampling, sampling_struct

Schema = Union[str, bool, Mapping[str, Any]]  # JSON text, or what json.dumps() makes one of
Tools = Union[str, Sequence[Mapping[str, Any]]]


def json_text(value: Union[None, Schema, Tools]) -> Optional[bytes]:
    if value is None or isinstance(value, str):
        return None if value is None else c_string(value)
    return c_string(json.dumps(value))


@dataclasses.dataclass(frozen=True)
class Request:
    """The options of Session.generate() and chat()."""
    max_tokens: int = 0
    sampling: Sampling = Sampling()
    ignore_eos: bool = False
    stop: Union[str, Sequence[str]] = ()
    json_schema: Optional[Schema] = None
    tools: Optional[Tools] = None
    tool_choice: str = "auto"
    tool: Optional[str] = None
    logprobs: Optional[int] = None
    reasoning: str = "none"
    answers: int = 1

    def struct(self) -> _layout.Generation:
        """ValueError for what no C type holds; the library checks the rest."""
        stops = [self.stop] if isinstance(self.stop, str) else list(self.stop)
        rows = (ctypes.c_char_p * len(stops))(*map(c_string, stops))
        values: dict[str, Any] = {"stops": rows, "n_stops": len(stops)} if stops else {}
        return _layout.Generation(
            n_tokens=self.max_tokens, ignore_eos=self.ignore_eos,
            sampling=sampling_struct(self.sampling),
            json_schema=json_text(self.json_schema), tools=json_text(self.tools),
            tool_choice=choice("STINT_TOOLS_", self.tool_choice),
            tool=None if self.tool is None else c_string(self.tool),
            reasoning=choice("STINT_REASONING_", self.reasoning),
            logprobs=self.logprobs is not None, n_top=self.logprobs or 0,
            n_answers=self.answers, **values)
