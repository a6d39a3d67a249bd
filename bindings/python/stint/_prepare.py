# SPDX-License-Identifier: Apache-2.0
"""Packages: a checkpoint for the integer units."""
from __future__ import annotations

import ctypes
import dataclasses
import os
import threading
from typing import Callable, Optional, Sequence, Union

from . import _layout
from ._library import c_string, call, choice, interruptible, lib, optional, progress_callback
from ._text import id_row

Path = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class PrepareSummary:
    """stint_prepare_summary of stint.h, where each field is explained."""
    bytes: int
    n_linears: int
    n_shadowed: int
    pruned: float
    n_tokens: int
    held_out_tokens: int
    float_perplexity: float
    perplexity: float
    divergence: float
    top1_agreement: float
    seconds: float


def prepare(source: Path, package: Path, *, text: Optional[str] = None,
            ids: Optional[Sequence[int]] = None, tokens: int = 0, weight_scale: str = "channel",
            outliers: str = "auto", outlier_prune: float = 0.0, threads: int = 0,
            bits: Optional[tuple[int, int]] = None, sparse: float = 0.0,
            quantizer: Optional[str] = None, neurons: bool = False, recall: float = 0.0,
            predictor_rank: int = 0, target: Optional[str] = None,
            progress: Optional[Callable[[str, int, int], None]] = None) -> PrepareSummary:
    """Turns a checkpoint into a package; it appears complete or not at all. The arguments are
    those of stint_prepare_options, `bits` the lowest and the highest nested precision. Ctrl-C, or
    an exception of `progress`, cancels it."""
    stopped, errors = threading.Event(), []

    def fail(error: BaseException) -> None:
        errors.append(error)
        stopped.set()

    data = None if text is None else text.encode("utf-8", "surrogatepass")
    row, n_ids = (None, 0) if ids is None else id_row(ids)
    low, high = bits or (0, 0)
    options = _layout.PrepareOptions(
        text=data, text_bytes=0 if data is None else len(data),
        ids=ctypes.cast(row, _layout.IDS) if row is not None else None, n_ids=n_ids,
        n_tokens=tokens, weight_scale=choice("STINT_SCALE_", weight_scale),
        outliers=choice("STINT_OUTLIERS_", outliers), outlier_prune=outlier_prune,
        n_threads=threads, bits_low=low, bits_high=high, sparse=sparse,
        quantizer=optional(quantizer), neurons=neurons, recall=recall,
        predictor_rank=predictor_rank, progress=progress_callback(progress, fail),
        canceled=_layout.CANCELED(lambda _context: stopped.is_set()),
        target=optional(target))
    summary = _layout.PrepareSummary()
    paths = c_string(source), c_string(package)
    try:
        interruptible(lambda: call(lib.stint_prepare, *paths, ctypes.byref(options),
                                   ctypes.byref(summary)), stopped.set)
    except Exception:
        if errors:
            raise errors[0] from None
        raise
    return PrepareSummary(**{f.name: getattr(summary, f.name)
                             for f in dataclasses.fields(PrepareSummary)})
