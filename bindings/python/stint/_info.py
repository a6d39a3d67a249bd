# SPDX-License-Identifier: Apache-2.0
"""What a model says about itself."""
from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

from . import _layout
from ._library import Handle, call, lib


@dataclasses.dataclass(frozen=True)
class ModelInfo:
    """stint_model_info of stint.h, where each field is explained."""
    architecture: str
    source: str
    weight_type: str
    activation: str
    norm: str
    rope_scaling: str
    chat_template: str
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    hidden: int
    ffn: int
    n_experts: int
    n_experts_used: int
    vocab: int
    context: int
    window: int
    rope_dims: int
    rope_theta: float
    n_parameters: int
    weight_bytes: int
    linear_ops_per_token: int
    bytes_per_decoded_token: int
    kv_bytes_per_token_f32: int
    exec: str
    subgraphs_per_layer: int
    static_subgraphs_per_layer: int
    nested_low: int
    nested_high: int
    nested_bytes: int
    embedding: int
    n_conv_layers: int
    conv_length: int
    n_state_layers: int
    state_heads: int
    state_keys: int
    state_values: int
    left_out: str


def describe(handle: Handle) -> ModelInfo:
    info = _layout.ModelInfo()
    call(lib.stint_model_describe, handle.pointer, ctypes.byref(info))
    values: dict[str, Any] = {}
    for field in dataclasses.fields(ModelInfo):
        value = getattr(info, field.name)
        values[field.name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    names = {value: word for word, value in _layout.CHOICES["STINT_EXEC_"].items()}
    values["exec"] = names[info.exec]
    return ModelInfo(**values)
