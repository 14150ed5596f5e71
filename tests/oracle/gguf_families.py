"""The folders of families.py as GGUF files, in the names and orders of llama.cpp, float32; test_judge.py holds the reader of such files against
llama.cpp's own.
"""
import math
import re
import struct

import families
import gpt2

ARCHITECTURES = {"mistral": "llama", "gemma3_text": "gemma3", "gpt_neox": "gptneox"}  # where it is not the model type
PAIRED = ("llama", "granite", "smollm3")  # turn adjacent pairs
NAMES = {
    "embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.qkv_proj": "attn_qkv", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.attn_sub_norm": "attn_sub_norm", "mlp.ffn_sub_norm": "ffn_sub_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "post_attention_layernorm": "ffn_norm",
    "embed_in": "token_embd", "final_layer_norm": "output_norm", "embed_out": "output", "attention.query_key_value": "attn_qkv",
    "attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down",
}
SANDWICH = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
            "post_feedforward_layernorm": "post_ffw_norm"}
KEYS = {  # of config.json
    "hidden_size": "embedding_length", "num_hidden_layers": "block_count", "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count", "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length", "head_dim": "attention.key_length", "rms_norm_eps":
    "attention.layer_norm_rms_epsilon", "layer_norm_eps": "attention.layer_norm_epsilon", "rope_theta": "rope.freq_base",
    "rope_local_base_freq": "rope.freq_base_swa", "sliding_window": "attention.sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping",
    "embedding_multiplier": "embedding_scale", "residual_multiplier": "residual_scale", "attention_multiplier": "attention.scale",
    "logits_scaling": "logit_scale", "use_parallel_residual": "use_parallel_residual",
}


def architecture(c):
    return ARCHITECTURES.get(c["model_type"], c["model_type"])


def paired(rows, width):
    """each head's two halves interleaved"""
    out = []
    for first in range(0, len(rows), width):
        half = width // 2
        out += [rows[first + i // 2 + (i % 2) * half] for i in range(width)]
    return out


def by_part(rows, width):
    """[head][q, k, v] to [q, k, v][head]"""
    parts = [rows[i:i + width] for i in range(0, len(rows), width)]
    return sum((row for which in range(3) for row in parts[which::3]), [])


def tensors(c, weights):
    s, arch = families.Shape(c), architecture(c)
    names = {**NAMES, **SANDWICH} if arch in ("gemma2", "gemma3", "olmo2") else NAMES
    for name, rows in weights.items():
        stem, kind = re.sub(r"^(model|gpt_neox)\.", "", name).rsplit(".", 1)
        layer = re.match(r"layers\.(\d+)\.(.*)", stem)
        if arch in PAIRED and ("q_proj" in stem or "k_proj" in stem):
            rows = paired(rows, s.width)
        if "query_key_value" in stem:
            rows = by_part(rows, s.width)
        if c["model_type"] in families.GEMMAS and kind == "weight" and "norm" in stem:
            rows = gpt2.rounded([v + 1 for v in rows], "F32")
        yield (f"blk.{layer[1]}.{names[layer[2]]}.{kind}" if layer else f"{names[stem]}.{kind}"), rows


def facts(c):
    scaling = c.get("rope_scaling") or {}
    out = {KEYS[key]: value for key, value in c.items() if key in KEYS and value is not None}
    if "head_dim" in c:
        out["attention.value_length"] = c["head_dim"]
    if "rotary_pct" in c:
        out["rope.dimension_count"] = int(families.Shape(c).width * c["rotary_pct"])
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind in ("linear", "yarn"):
        out |= {"rope.scaling.type": kind, "rope.scaling.factor": scaling["factor"]}
    if kind == "yarn":
        out |= {"rope.scaling.original_context_length": scaling["original_max_position_embeddings"],
                "rope.scaling.yarn_beta_fast": scaling["beta_fast"]}
    if "layer_types" in c:
        out["attention.sliding_window_pattern"] = [t == "sliding_attention" for t in c["layer_types"]]
    return out


def value(v):
    if isinstance(v, list):
        return struct.pack(f"<IIQ{len(v)}?", 9, 7, len(v), *v)
    if isinstance(v, bool):
        return struct.pack("<I?", 7, v)
    if isinstance(v, str):
        return struct.pack("<IQ", 8, len(v)) + v.encode()
    return struct.pack("<II", 4, v) if isinstance(v, int) else struct.pack("<If", 6, v)


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def llama3_factors(c):
    """what llama.cpp's script writes in place of the rule"""
    plain, _ = families.frequencies(c["rope_theta"], families.Shape(c).width, None, 0)
    turned, _ = families.frequencies(c["rope_theta"], families.Shape(c).width, c["rope_scaling"], 0)
    return gpt2.rounded([a / b for a, b in zip(plain, turned)], "F32")


def write(path, c, weights, changes=None, more=None):
    """changes: metadata in place of what follows from c, None to leave it out; more: further tensors"""
    metadata = {"general.architecture": architecture(c)}
    metadata |= {f"{architecture(c)}.{key}": v for key, v in {**facts(c), **(changes or {})}.items() if v is not None}
    items = [*tensors(c, weights), *(more or {}).items()]
    if (c.get("rope_scaling") or {}).get("rope_type") == "llama3":
        items.append(("rope_freqs.weight", llama3_factors(c)))
    header, data = b"GGUF" + struct.pack("<IQQ", 3, len(items), len(metadata)), b""
    header += b"".join(string(key) + value(v) for key, v in metadata.items())
    for name, t in items:
        dims = gpt2.shape(t)[::-1]
        header += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, 0, len(data))
        data += struct.pack(f"<{math.prod(dims)}f", *gpt2.flat(t))
        data += b"\0" * (-len(data) % 32)
    path.write_bytes(header + b"\0" * (-len(header) % 32) + data)
