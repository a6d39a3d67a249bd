# SPDX-License-Identifier: Apache-2.0
"""include/stint.h in ctypes' words: the structs, choices and functions that this package uses.
tests/e2e/test_bindings.py compares every line with what the compiler makes of the header."""
from __future__ import annotations

import ctypes
from ctypes import (CFUNCTYPE, POINTER, c_bool, c_char, c_char_p, c_double, c_float, c_int,
                    c_int32, c_size_t, c_uint32, c_uint64, c_void_p)
from typing import Any

PROGRESS = CFUNCTYPE(None, c_void_p, c_char_p, c_uint64, c_uint64)
CANCELED = CFUNCTYPE(c_bool, c_void_p)
LOG = CFUNCTYPE(None, c_void_p, c_int, c_char_p)

UNSIGNED = {c_uint32: 32, c_uint64: 64, c_size_t: 8 * ctypes.sizeof(c_size_t)}


class Sized(ctypes.Structure):
    """A struct that begins with its size. An integer that does not fit is refused: ctypes alone
    would cut it short."""

    def __init__(self, **values: Any) -> None:
        for name, kind in self._fields_:  # type: ignore[misc]
            value = values.get(name, 0)
            if kind in UNSIGNED and not 0 <= value < 1 << UNSIGNED[kind]:
                raise ValueError(f"{name} is {value}: expected 0 to {(1 << UNSIGNED[kind]) - 1}")
        super().__init__(**values)
        self.size = ctypes.sizeof(self)


class ModelOptions(Sized):
    c_name = "stint_model_options"
    _fields_ = [
        ("size", c_size_t),
        ("progress", PROGRESS),
        ("progress_context", c_void_p),
        ("no_tokenizer", c_bool),
        ("exec", c_int),
        ("lazy", c_bool),
        ("nested_low", c_uint32),
        ("nested_high", c_uint32),
        ("nested", c_char_p),
    ]


class ModelInfo(Sized):
    c_name = "stint_model_info"
    _fields_ = [
        ("size", c_size_t),
        ("architecture", c_char_p),
        ("source", c_char_p),
        ("weight_type", c_char_p),
        ("activation", c_char_p),
        ("norm", c_char_p),
        ("rope_scaling", c_char_p),
        ("chat_template", c_char_p),
        ("n_layers", c_uint32),
        ("n_heads", c_uint32),
        ("n_kv_heads", c_uint32),
        ("head_dim", c_uint32),
        ("hidden", c_uint32),
        ("ffn", c_uint32),
        ("n_experts", c_uint32),
        ("n_experts_used", c_uint32),
        ("vocab", c_uint32),
        ("context", c_uint32),
        ("window", c_uint32),
        ("rope_dims", c_uint32),
        ("rope_theta", c_float),
        ("n_parameters", c_uint64),
        ("weight_bytes", c_uint64),
        ("linear_ops_per_token", c_uint64),
        ("bytes_per_decoded_token", c_uint64),
        ("kv_bytes_per_token_f32", c_uint64),
        ("exec", c_int),
        ("subgraphs_per_layer", c_uint32),
        ("static_subgraphs_per_layer", c_uint32),
        ("nested_low", c_uint32),
        ("nested_high", c_uint32),
        ("nested_bytes", c_uint64),
        ("embedding", c_uint32),
        ("n_conv_layers", c_uint32),
        ("conv_length", c_uint32),
        ("n_state_layers", c_uint32),
        ("state_heads", c_uint32),
        ("state_keys", c_uint32),
        ("state_values", c_uint32),
        ("left_out", c_char_p),
    ]


class Message(ctypes.Structure):
    c_name = "stint_message"
    _fields_ = [
        ("role", c_char_p),
        ("content", c_char_p),
        ("tool_calls", c_char_p),
        ("tool_call_id", c_char_p),
    ]


class ChatOptions(Sized):
    c_name = "stint_chat_options"
    _fields_ = [
        ("size", c_size_t),
        ("tools", c_char_p),
        ("thinking", c_int),
    ]


class PrepareOptions(Sized):
    c_name = "stint_prepare_options"
    _fields_ = [
        ("size", c_size_t),
        ("text", c_char_p),
        ("text_bytes", c_size_t),
        ("ids", POINTER(c_int32)),
        ("n_ids", c_size_t),
        ("n_tokens", c_uint32),
        ("weight_scale", c_int),
        ("outliers", c_int),
        ("outlier_prune", c_float),
        ("n_threads", c_uint32),
        ("bits_low", c_uint32),
        ("bits_high", c_uint32),
        ("sparse", c_float),
        ("quantizer", c_char_p),
        ("neurons", c_bool),
        ("recall", c_float),
        ("predictor_rank", c_uint32),
        ("progress", PROGRESS),
        ("progress_context", c_void_p),
        ("canceled", CANCELED),
        ("canceled_context", c_void_p),
        ("target", c_char_p),
        ("one_set", c_uint32),
    ]


class PrepareSummary(Sized):
    c_name = "stint_prepare_summary"
    _fields_ = [
        ("size", c_size_t),
        ("bytes", c_uint64),
        ("n_linears", c_uint32),
        ("n_shadowed", c_uint32),
        ("pruned", c_double),
        ("n_tokens", c_uint32),
        ("held_out_tokens", c_uint32),
        ("float_perplexity", c_double),
        ("perplexity", c_double),
        ("divergence", c_double),
        ("top1_agreement", c_double),
        ("seconds", c_double),
    ]


class SessionOptions(Sized):
    c_name = "stint_session_options"
    _fields_ = [
        ("size", c_size_t),
        ("n_threads", c_uint32),
        ("n_context", c_uint32),
        ("chunk_len", c_uint32),
        ("kv", c_char_p),
        ("memory", c_uint64),
        ("device", c_char_p),
        ("npu_threads", c_uint32),
        ("cpu_threads", c_uint32),
        ("schedule", c_char_p),
        ("leave_out", c_uint32),
        ("order", c_char_p),
        ("n_sequences", c_uint32),
        ("npu_memory", c_uint64),
        ("n_drafts", c_uint32),
        ("draft_bits", c_uint32),
        ("npu_hot", c_float),
    ]


class MemoryInfo(Sized):
    c_name = "stint_memory_info"
    _fields_ = [
        ("size", c_size_t),
        ("budget_bytes", c_uint64),
        ("peak_bytes", c_uint64),
        ("fixed_bytes", c_uint64),
        ("hot_bytes", c_uint64),
        ("cold_bytes", c_uint64),
        ("kv_bytes", c_uint64),
        ("bytes_read", c_uint64),
        ("reads", c_uint64),
        ("hit_rate", c_double),
        ("computed", c_double),
        ("hidden_fraction", c_double),
        ("bytes_per_step", c_double),
        ("foreseen", c_double),
        ("foreseen_used", c_double),
        ("on_npu", c_double),
        ("npu_block_seconds", c_double),
        ("npu_neuron_seconds", c_double),
        ("cpu_neuron_seconds", c_double),
    ]


class LogitBias(ctypes.Structure):
    c_name = "stint_logit_bias"
    _fields_ = [("id", c_int32), ("value", c_float)]


class Sampling(Sized):
    """The head; _sampling.py adds the parameters that the library names."""
    c_name = "stint_sampling"
    _fields_ = [
        ("size", c_size_t),
        ("biases", POINTER(LogitBias)),
        ("n_biases", c_size_t),
    ]


class Parameter(ctypes.Structure):
    c_name = "stint_parameter"
    _fields_ = [
        ("name", c_char_p),
        ("alias", c_char_p),
        ("option", c_char_p),
        ("value", c_char_p),
        ("help", c_char_p),
        ("type", c_int),
        ("offset", c_size_t),
        ("min", c_double),
        ("max", c_double),
        ("request_min", c_double),
        ("request_max", c_double),
        ("standard", c_double),
        ("conversation", c_double),
        ("gguf", c_char_p),
    ]


class Alternative(ctypes.Structure):
    c_name = "stint_alternative"
    _fields_ = [("id", c_int32), ("logprob", c_float)]


class Piece(ctypes.Structure):
    c_name = "stint_piece"
    _fields_ = [
        ("kind", c_int),
        ("text", POINTER(c_char)),
        ("n_bytes", c_size_t),
        ("id", c_int32),
        ("function", c_char_p),
        ("logprob", c_float),
        ("top", POINTER(Alternative)),
        ("n_top", c_uint32),
        ("answer", c_uint32),
    ]


TEXT = CFUNCTYPE(c_bool, c_void_p, POINTER(Piece))


class Generation(Sized):
    c_name = "stint_generation"
    _fields_ = [
        ("size", c_size_t),
        ("n_tokens", c_uint32),
        ("ignore_eos", c_bool),
        ("sampling", POINTER(Sampling)),
        ("text", TEXT),
        ("context", c_void_p),
        ("progress", PROGRESS),
        ("progress_context", c_void_p),
        ("sequence", c_uint32),
        ("stops", POINTER(c_char_p)),
        ("n_stops", c_size_t),
        ("json_schema", c_char_p),
        ("tools", c_char_p),
        ("tool_choice", c_int),
        ("tool", c_char_p),
        ("single_call", c_bool),
        ("reasoning", c_int),
        ("logprobs", c_bool),
        ("n_top", c_uint32),
        ("n_answers", c_uint32),
    ]


class GenerationResult(Sized):
    c_name = "stint_generation_result"
    _fields_ = [
        ("size", c_size_t),
        ("stop_reason", c_int),
        ("prompt_tokens", c_size_t),
        ("generated_tokens", c_size_t),
        ("prefill_seconds", c_double),
        ("decode_seconds", c_double),
        ("average_bits", c_double),
        ("reasoning_tokens", c_size_t),
        ("tool_calls", c_size_t),
        ("decode_steps", c_size_t),
        ("drafted_tokens", c_size_t),
        ("accepted_tokens", c_size_t),
        ("self_drafted_tokens", c_size_t),
        ("self_accepted_tokens", c_size_t),
        ("mean_logprob", c_double),
        ("step_median", c_double),
        ("step_p90", c_double),
        ("step_p99", c_double),
    ]


STRUCTS = (ModelOptions, ModelInfo, Message, ChatOptions, PrepareOptions, PrepareSummary,
           SessionOptions, MemoryInfo, LogitBias, Sampling, Parameter, Alternative, Piece,
           Generation, GenerationResult)

# What a word of this package is in C: {prefix: {word: value}}, the constant is PREFIX + WORD.
CHOICES = {
    "STINT_EXEC_": {"default": 0, "float": 1, "npu": 2, "fast": 3},
    "STINT_SCALE_": {"channel": 0, "tensor": 1},
    "STINT_OUTLIERS_": {"auto": 0, "share": 1, "none": 2},
    "STINT_LOG_": {"error": 1, "warning": 2, "info": 3, "debug": 4},
    "STINT_STOP_": {"length": 0, "eos": 1, "context": 2, "callback": 3, "canceled": 4,
                    "text": 5},
    "STINT_TEXT_": {"answer": 0, "reasoning": 1, "tool_call": 2},
    "STINT_TOOLS_": {"auto": 0, "required": 1, "none": 2},
    "STINT_REASONING_": {"none": 0, "possible": 1, "open": 2},
    "STINT_PARAMETER_": {"float": 0, "uint": 1, "uint64": 2},
    "STINT_THINKING_": {"default": 0, "on": 1, "off": 2},
    "STINT_POOLING_": {"default": 0, "mean": 1, "last": 2, "first": 3},
}
CHUNK_AUTO = (1 << 32) - 1
# STINT_TOKENIZE_ADD_BOS, _PLAIN, STINT_DETOKENIZE_SPECIAL, STINT_TOKENIZE_ADD_END
ADD_BOS, PLAIN, SPECIAL, ADD_END = 1, 2, 4, 8

IDS, HANDLE, STATUS = POINTER(c_int32), c_void_p, c_int

# name: (what it returns, its arguments)
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "stint_version": (c_char_p, ()),
    "stint_error_copy": (c_size_t, (c_char_p, c_size_t)),
    "stint_log_set": (None, (LOG, c_void_p, c_int)),
    "stint_model_open": (STATUS, (c_char_p, POINTER(ModelOptions), POINTER(HANDLE))),
    "stint_model_open_preset": (STATUS, (c_char_p, POINTER(ModelOptions), POINTER(HANDLE))),
    "stint_model_close": (None, (HANDLE,)),
    "stint_model_describe": (STATUS, (HANDLE, POINTER(ModelInfo))),
    "stint_model_tokenizer": (HANDLE, (HANDLE,)),
    "stint_tokenize": (STATUS, (HANDLE, c_char_p, c_size_t, c_uint32, IDS, c_size_t,
                                POINTER(c_size_t))),
    "stint_detokenize": (STATUS, (HANDLE, IDS, c_size_t, c_uint32, c_char_p, c_size_t,
                                  POINTER(c_size_t))),
    "stint_chat_format": (STATUS, (HANDLE, POINTER(Message), c_size_t, POINTER(ChatOptions),
                                   POINTER(c_void_p), POINTER(c_int))),
    "stint_free": (None, (c_void_p,)),
    "stint_prepare": (STATUS, (c_char_p, c_char_p, POINTER(PrepareOptions),
                               POINTER(PrepareSummary))),
    "stint_session_open": (STATUS, (HANDLE, POINTER(SessionOptions), POINTER(HANDLE))),
    "stint_session_close": (None, (HANDLE,)),
    "stint_session_length": (c_size_t, (HANDLE, c_uint32)),
    "stint_session_tokens": (IDS, (HANDLE, c_uint32)),
    "stint_session_save": (STATUS, (HANDLE, c_uint32, c_char_p)),
    "stint_session_load": (STATUS, (HANDLE, c_uint32, c_char_p)),
    "stint_session_context": (c_size_t, (HANDLE,)),
    "stint_session_memory": (STATUS, (HANDLE, POINTER(MemoryInfo))),
    "stint_session_trace": (STATUS, (HANDLE, c_char_p)),
    "stint_session_truncate": (STATUS, (HANDLE, c_uint32, c_size_t)),
    "stint_session_eval": (STATUS, (HANDLE, c_uint32, IDS, c_size_t, c_bool,
                                    POINTER(c_float))),
    "stint_session_embed": (STATUS, (HANDLE, c_uint32, IDS, c_size_t, c_int, POINTER(c_float))),
    "stint_session_cancel": (None, (HANDLE,)),
    "stint_sampling_parameter": (POINTER(Parameter), (c_size_t,)),
    "stint_model_sampling": (c_uint64, (HANDLE, POINTER(Sampling))),
    "stint_generate": (STATUS, (HANDLE, IDS, c_size_t, POINTER(Generation), IDS, c_size_t,
                                POINTER(GenerationResult))),
}
