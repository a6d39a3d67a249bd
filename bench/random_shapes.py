# SPDX-License-Identifier: Apache-2.0
"""What GGUF files of known models hold, for random_gguf.py: keys, and tensors with their sizes. A
tensor is ("linear", rows, k[, spread]), ("experts", type, n, rows, k), where a type of None is that
of linears, ("router", seed, n, k) or ("floats", dims, value); a value of None stands for random
ones."""
from gguf import RopeScalingType


def common(layers, hidden, heads, context, theta, epsilon=1e-6):
    return {"block_count": layers, "embedding_length": hidden, "head_count": heads,
            "context_length": context, "rope_freq_base": theta, "layer_norm_rms_eps": epsilon}


def norm(n):
    return "floats", (n,), 1.0


def zeros(*dims):
    return "floats", dims, 0.0


def gated_ffn(hidden, ffn):
    return {"ffn_gate.weight": ("linear", ffn, hidden), "ffn_up.weight": ("linear", ffn, hidden),
            "ffn_down.weight": ("linear", hidden, ffn)}


def attention(hidden, heads, kv_heads, dim, queries=1):
    """queries: 2 where q has gates, too."""
    return {"attn_q.weight": ("linear", queries * heads * dim, hidden),
            "attn_k.weight": ("linear", kv_heads * dim, hidden),
            "attn_v.weight": ("linear", kv_heads * dim, hidden),
            "attn_output.weight": ("linear", hidden, heads * dim)}


def ends(hidden, vocab, tied, norm_name="output_norm"):
    top = {"token_embd.weight": ("linear", vocab, hidden), norm_name + ".weight": norm(hidden)}
    return top if tied else {**top, "output.weight": ("linear", vocab, hidden)}


def qwen2(layers, hidden, heads, kv_heads, ffn, vocab):
    dim = hidden // heads
    layer = {**attention(hidden, heads, kv_heads, dim), **gated_ffn(hidden, ffn),
             "attn_norm.weight": norm(hidden), "ffn_norm.weight": norm(hidden),
             "attn_q.bias": zeros(hidden), "attn_k.bias": zeros(dim * kv_heads),
             "attn_v.bias": zeros(dim * kv_heads)}
    keys = {**common(layers, hidden, heads, 8192, 1e6), "head_count_kv": kv_heads,
            "feed_forward_length": ffn}
    return "qwen2", vocab, keys, ends(hidden, vocab, False), layers * [layer]


def gpt_oss(layers, hidden, heads, kv_heads, dim, ffn, experts, used, vocab):
    layer = attention(hidden, heads, kv_heads, dim)
    layer.update({name.replace("weight", "bias"): zeros(rows)
                  for name, (_, rows, _) in list(layer.items())})
    for name, rows, k in (("gate", ffn, hidden), ("up", ffn, hidden), ("down", hidden, ffn)):
        layer[f"ffn_{name}_exps.weight"] = ("experts", "MXFP4", experts, rows, k)
        layer[f"ffn_{name}_exps.bias"] = zeros(experts, rows)
    layer.update({"ffn_gate_inp.weight": ("floats", (experts, hidden), None),
                  "ffn_gate_inp.bias": zeros(experts), "attn_sinks.weight": zeros(heads),
                  "attn_norm.weight": norm(hidden), "post_attention_norm.weight": norm(hidden)})
    keys = {**common(layers, hidden, heads, 131072, 150000.0, 1e-5), "head_count_kv": kv_heads,
            "feed_forward_length": ffn, "expert_feed_forward_length": ffn, "key_length": dim,
            "value_length": dim, "expert_count": experts, "expert_used_count": used,
            "sliding_window": 128, "rope_scaling_type": RopeScalingType.YARN,
            "rope_scaling_factor": 32.0, "rope_scaling_orig_ctx_len": 4096}
    return "gpt-oss", vocab, keys, ends(hidden, vocab, False), layers * [layer]


def qwen3moe(layers, hidden, heads, kv_heads, dim, ffn, experts, used, vocab):
    layer = {**attention(hidden, heads, kv_heads, dim), "attn_q_norm.weight": norm(dim),
             "attn_k_norm.weight": norm(dim), "attn_norm.weight": norm(hidden),
             "ffn_norm.weight": norm(hidden)}
    for name, rows, k in (("gate", ffn, hidden), ("up", ffn, hidden), ("down", hidden, ffn)):
        layer[f"ffn_{name}_exps.weight"] = ("experts", None, experts, rows, k)
    keys = {**common(layers, hidden, heads, 32768, 1e6), "head_count_kv": kv_heads,
            "feed_forward_length": ffn, "expert_feed_forward_length": ffn, "key_length": dim,
            "value_length": dim, "expert_count": experts, "expert_used_count": used}
    # Else what blocks add, which all tokens share, would decide about experts after one layer.
    top = {**ends(hidden, vocab, False), "token_embd.weight": ("linear", vocab, hidden, 1.0)}
    return ("qwen3moe", vocab, keys, top,
            [{**layer, "ffn_gate_inp.weight": ("router", i, experts, hidden)}
             for i in range(layers)])


def lfm2(layers, hidden, heads, kv_heads, ffn, vocab, attends):
    both = {**gated_ffn(hidden, ffn), "attn_norm.weight": norm(hidden),
            "ffn_norm.weight": norm(hidden)}
    dim = hidden // heads
    full = {**both, **attention(hidden, heads, kv_heads, dim), "attn_q_norm.weight": norm(dim),
            "attn_k_norm.weight": norm(dim)}
    conv = {**both, "shortconv.conv.weight": ("floats", (hidden, 3), None),
            "shortconv.in_proj.weight": ("linear", 3 * hidden, hidden),
            "shortconv.out_proj.weight": ("linear", hidden, hidden)}
    keys = {**common(layers, hidden, heads, 128000, 1e6, 1e-5), "feed_forward_length": ffn,
            "head_count_kv": [kv_heads if i in attends else 0 for i in range(layers)],
            "shortconv_l_cache": 3}
    return ("lfm2", vocab, keys, ends(hidden, vocab, True, "token_embd_norm"),
            [full if i in attends else conv for i in range(layers)])


def qwen35(layers, hidden, heads, kv_heads, ffn, vocab, value_heads):
    dim, state, key_heads = 256, 128, 16
    inner, mixed = value_heads * state, (2 * key_heads + value_heads) * state
    both = {**gated_ffn(hidden, ffn), "attn_norm.weight": norm(hidden),
            "post_attention_norm.weight": norm(hidden)}
    full = {**both, **attention(hidden, heads, kv_heads, dim, 2), "attn_q_norm.weight": norm(dim),
            "attn_k_norm.weight": norm(dim)}
    delta = {**both, "ssm_a": ("floats", (value_heads,), -1.0),
             "ssm_conv1d.weight": ("floats", (mixed, 4), None), "ssm_dt.bias": zeros(value_heads),
             "ssm_alpha.weight": ("linear", value_heads, hidden),
             "ssm_beta.weight": ("linear", value_heads, hidden),
             "attn_qkv.weight": ("linear", mixed, hidden),
             "attn_gate.weight": ("linear", inner, hidden), "ssm_norm.weight": norm(state),
             "ssm_out.weight": ("linear", hidden, inner)}
    keys = {**common(layers, hidden, heads, 262144, 1e7), "head_count_kv": kv_heads,
            "feed_forward_length": ffn, "key_length": dim, "value_length": dim,
            "rope_dimension_count": 64, "rope_dimension_sections": [11, 11, 10, 0],
            "ssm_conv_kernel": 4, "ssm_state_size": state, "ssm_group_count": key_heads,
            "ssm_time_step_rank": value_heads, "ssm_inner_size": inner,
            "full_attention_interval": 4}
    return ("qwen35", vocab, keys, ends(hidden, vocab, True),
            [full if i % 4 == 3 else delta for i in range(layers)])


def gemma4_layer(hidden, heads, kv_heads, dim, ffn, inputs, shares):
    layer = {**attention(hidden, heads, kv_heads, dim), **gated_ffn(hidden, ffn),
             "layer_output_scale.weight": ("floats", (1,), 1.0),
             "inp_gate.weight": ("linear", inputs, hidden),
             "proj.weight": ("linear", hidden, inputs), "attn_q_norm.weight": norm(dim),
             "attn_k_norm.weight": norm(dim)}
    for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm"):
        layer[name + ".weight"] = norm(hidden)
    for name in ("attn_k.weight", "attn_v.weight", "attn_k_norm.weight") if shares else ():
        del layer[name]
    return layer


def gemma4(layers, hidden, heads, kv_heads, ffn, vocab, every, n_shared):
    dim, full_dim, inputs, own = 256, 512, 256, layers - n_shared
    sliding = [(i + 1) % every != 0 for i in range(layers)]
    widths = [ffn if i < own else 2 * ffn for i in range(layers)]
    keys = {**common(layers, hidden, heads, 131072, 1e6), "rope_freq_base_swa": 1e4,
            "sliding_window": 512, "sliding_window_pattern": sliding,
            "head_count_kv": layers * [kv_heads], "key_length": full_dim, "value_length": full_dim,
            "key_length_swa": dim, "value_length_swa": dim, "rope_dimension_count": full_dim,
            "rope_dimension_count_swa": dim, "feed_forward_length": widths,
            "shared_kv_layers": n_shared, "embedding_length_per_layer_input": inputs,
            "final_logit_softcapping": 30.0}
    top = {**ends(hidden, vocab, True),
           "rope_freqs.weight": ("floats", (full_dim // 2,), 1.0),
           "per_layer_token_embd.weight": ("linear", vocab, layers * inputs),
           "per_layer_model_proj.weight": ("linear", layers * inputs, hidden),
           "per_layer_proj_norm.weight": norm(inputs)}
    return "gemma4", vocab, keys, top, [
        gemma4_layer(hidden, heads, kv_heads, dim if sliding[i] else full_dim, widths[i], inputs,
                     i >= own) for i in range(layers)]


SHAPES = {
    "qwen1.5-1.8b": lambda: qwen2(24, 2048, 16, 16, 5504, 151936),
    "gpt-oss-20b": lambda: gpt_oss(24, 2880, 64, 8, 64, 2880, 32, 4, 201088),
    # the matrices of sparse_model.py's shape of this name, dense: 2.0 and 3.75 G parameters
    "turbosparse-7b-8": lambda: qwen2(8, 4096, 32, 8, 14336, 32000),
    "turbosparse-7b-16": lambda: qwen2(16, 4096, 32, 8, 14336, 32000),
    # 12 of 48 layers: 8.1 G parameters
    "qwen3-30b-a3b-12": lambda: qwen3moe(12, 2048, 32, 4, 128, 768, 128, 8, 151936),
    "lfm2.5-1.2b": lambda: lfm2(16, 2048, 32, 8, 8192, 65536, (2, 5, 8, 10, 12, 14)),
    "qwen3.5-0.8b": lambda: qwen35(24, 1024, 8, 2, 3584, 248320, 16),
    "qwen3.5-4b": lambda: qwen35(32, 2560, 16, 4, 9216, 248320, 32),
    "gemma-4-e2b": lambda: gemma4(35, 1536, 8, 1, 6144, 262144, 5, 20),
}
