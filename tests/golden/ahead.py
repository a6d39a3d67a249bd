# SPDX-License-Identifier: Apache-2.0
"""Of make_models.py: a layer that predicts a further token, and what it says."""
import copy

import torch
from safetensors import safe_open
from safetensors.torch import save_file


def capture(model, tokens):
    """What the last layer gives, and what it gets beside its input."""
    seen = {}
    layer = model.model.layers[-1]
    hooks = [layer.register_forward_pre_hook(
        lambda _, args, more: seen.update(more=more), with_kwargs=True),
             layer.register_forward_hook(lambda _, args, out: seen.update(out=out))]
    with torch.no_grad():
        model(torch.tensor([tokens]), use_cache=False)
    for hook in hooks:
        hook.remove()
    out = seen["out"]
    return out[0] if isinstance(out, tuple) else out, seen["more"]


def add(folder, model, tokens, randomize):
    """A layer that predicts a further token, which transformers does not run: the last layer's
    module with other weights, between the parts that DeepSeek-V3's report describes. Its logits for
    each of the tokens but the last go to ahead.f32."""
    inner, hidden = model.model, model.config.hidden_size
    parts = torch.nn.ModuleDict({
        "layer": copy.deepcopy(inner.layers[-1]), "enorm": copy.deepcopy(inner.norm),
        "hnorm": copy.deepcopy(inner.norm), "norm": copy.deepcopy(inner.norm),
        "fc": torch.nn.Linear(2 * hidden, hidden, bias=False)})
    randomize(parts)
    parts.to(torch.bfloat16).double()
    states, more = capture(model, tokens[:-1])
    with torch.no_grad():
        following = inner.embed_tokens(torch.tensor([tokens[1:]]))
        joined = torch.cat([parts["enorm"](following), parts["hnorm"](states)], -1)
        out = parts["layer"](parts["fc"](joined), **more)
        out = out[0] if isinstance(out, tuple) else out
        logits = model.lm_head(parts["norm"](out))[0]
    (folder / "ahead.f32").write_bytes(logits.float().numpy().astype("<f4").tobytes())
    apart = model.config.model_type.startswith("qwen3")
    behind = f"model.layers.{len(inner.layers)}."
    names = {"enorm": "mtp.pre_fc_norm_embedding", "hnorm": "mtp.pre_fc_norm_hidden",
             "norm": "mtp.norm", "fc": "mtp.fc"} if apart else {
                 "enorm": behind + "enorm", "hnorm": behind + "hnorm",
                 "norm": behind + "shared_head.norm", "fc": behind + "eh_proj"}
    weights = folder / "model.safetensors"
    with safe_open(weights, "pt") as stored:
        tensors = {key: stored.get_tensor(key) for key in stored.keys()}
    for key, value in parts.state_dict().items():
        part, rest = key.split(".", 1)
        layer = "mtp.layers.0." if apart else behind
        name = layer + rest if part == "layer" else f"{names[part]}.{rest}"
        tensors[name] = value.to(torch.bfloat16).contiguous()
    save_file(tensors, weights, {"format": "pt"})
