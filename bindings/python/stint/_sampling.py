# SPDX-License-Identifier: Apache-2.0
"""Sampling parameters. The library names them, so this package has no list of its own."""
from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any, Mapping, Optional

from . import _layout
from ._library import lib

_TYPES: dict[int, tuple[Any, type]] = {
    value: kinds for value, kinds in zip(_layout.CHOICES["STINT_PARAMETER_"].values(), (
        (ctypes.c_float, float), (ctypes.c_uint32, int), (ctypes.c_uint64, int)))}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A sampling parameter: 0 is allowed in any case and stands for `standard`."""
    name: str
    alias: Optional[str]
    option: str
    help: str
    type: type
    min: float
    max: float
    standard: float


def _rows() -> list[_layout.Parameter]:
    rows, row = [], lib.stint_sampling_parameter(0)
    while row:
        rows.append(row.contents)
        row = lib.stint_sampling_parameter(len(rows))
    return rows


_ROWS = _rows()


def sampling_parameters() -> tuple[Parameter, ...]:
    """What Sampling() takes beside logit_bias, as the library that is loaded has it."""
    return tuple(Parameter(row.name.decode(), row.alias.decode() if row.alias else None,
                           row.option.decode(), row.help.decode(), _TYPES[row.type][1], row.min,
                           row.max, row.standard) for row in _ROWS)


class SamplingStruct(_layout.Sampling):
    """struct stint_sampling with all its members; they follow each other as in C."""
    _fields_ = [(row.name.decode(), _TYPES[row.type][0])
                for row in sorted(_ROWS, key=lambda row: row.offset)]


_DOC = """How a token is drawn; zero is "off", and greedy where the temperature is zero. The same
seed gives the same text for any number of threads. logit_bias: {token: what is added to its
logit}, -inf bans it. sampling_parameters() lists the others."""

if TYPE_CHECKING:
    class Sampling:
        """See _DOC."""
        def __init__(self, *, logit_bias: Mapping[int, float] = ..., **parameters: float) -> None:
            ...

        def __getattr__(self, name: str) -> Any:
            ...
else:
    Sampling = dataclasses.make_dataclass(
        "Sampling",
        [(one.name, one.type, one.type(0)) for one in sampling_parameters()]
        + [("logit_bias", Mapping[int, float], dataclasses.field(default_factory=dict))],
        frozen=True, namespace={"__doc__": _DOC, "__module__": __name__})


def sampling_struct(sampling: Sampling) -> Any:
    """A pointer to the struct, which it keeps."""
    values = {name.decode(): getattr(sampling, name.decode())
              for name in (row.name for row in _ROWS)}
    biases = sampling.logit_bias
    rows = (_layout.LogitBias * len(biases))()
    for row, (token, value) in zip(rows, biases.items()):
        if not -1 << 31 <= token < 1 << 31:
            raise ValueError(f"logit_bias: {token} is not a token")
        row.id, row.value = token, value
    if biases:
        values.update(biases=rows, n_biases=len(biases))
    return ctypes.cast(ctypes.pointer(SamplingStruct(**values)), ctypes.POINTER(_layout.Sampling))


def model_sampling(handle: Any) -> Sampling:
    struct = SamplingStruct()
    lib.stint_model_sampling(handle.pointer, ctypes.cast(ctypes.pointer(struct),
                                                         ctypes.POINTER(_layout.Sampling)))
    return Sampling(**{one.name: getattr(struct, one.name) for one in sampling_parameters()})
