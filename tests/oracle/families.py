"""A second implementation of the decoders that muc reads, in plain Python and double precision, from
the definitions of their authors: folders with random weights as Hugging Face stores them, and logits.

Sizes are small and weights large, so that windows, caps, factors and angles all matter.
"""
import json
import math
import random

import gpt2

VOCAB, DIM, LAYERS, HEADS, KV, WIDTH, FFN, CONTEXT = len(gpt2.vocabulary()), 24, 4, 4, 2, 8, 20, 48
BASE = {"vocab_size": VOCAB, "hidden_size": DIM, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": KV, "head_dim": WIDTH,
        "intermediate_size": FFN, "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5,
        "hidden_act": "silu", "tie_word_embeddings": False, "rope_theta": 1000.0,
        "bos_token_id": VOCAB - 1, "eos_token_id": VOCAB - 1}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 12, "beta_fast": 4.0}


def config(architecture, kind, **more):
    values = {**BASE, "architectures": [architecture], "model_type": kind, **more}
    return {k: v for k, v in values.items() if v != "absent"}


NO_KV = {"num_key_value_heads": "absent", "head_dim": "absent", "rms_norm_eps": "absent"}
FAMILIES = {
    "llama": config("LlamaForCausalLM", "llama"),
    "llama-biases": config("LlamaForCausalLM", "llama", attention_bias=True, mlp_bias=True),
    "llama-linear": config("LlamaForCausalLM", "llama",
                           rope_scaling={"type": "linear", "factor": 3.0}),
    "llama-dynamic": config("LlamaForCausalLM", "llama",
                            rope_scaling={"type": "dynamic", "factor": 3.0}),
    "llama-yarn": config("LlamaForCausalLM", "llama", rope_scaling=YARN),
    "llama-llama3": config("LlamaForCausalLM", "llama", rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32}),
    "mobilellm-ls": config("MobileLLMForCausalLM", "mobilellm", layer_sharing=True,
                           num_hidden_layers=2),
    "llama-longrope": config("LlamaForCausalLM", "llama", rope_scaling={
        "type": "longrope", "short_factor": [1.0, 1.3, 1.6, 2.0], "long_factor": [1.5, 2.0, 4.0, 8.0],
        "original_max_position_embeddings": 12}),
    "llama4": config("Llama4ForCausalLM", "llama4_text", no_rope_layers=[1, 1, 0, 1, 1, 1], use_qk_norm=True,
                     intermediate_size=999, intermediate_size_mlp=FFN, num_local_experts=0,
                     attn_temperature_tuning=False, attention_chunk_size=64,
                     layer_types=["chunked_attention"] * 4),
    "mistral": config("MistralForCausalLM", "mistral", sliding_window=5),
    "qwen2": config("Qwen2ForCausalLM", "qwen2", use_sliding_window=True, sliding_window=5,
                    max_window_layers=2),
    "qwen2-listed": config("Qwen2ForCausalLM", "qwen2", use_sliding_window=True, sliding_window=5,
                           layer_types=["sliding_attention", "full_attention"] * 2),
    "qwen2-off": config("Qwen2ForCausalLM", "qwen2", use_sliding_window=False, sliding_window=5,
                        layer_types=["sliding_attention", "full_attention"] * 2),
    "qwen3": config("Qwen3ForCausalLM", "qwen3"),
    "gemma": config("GemmaForCausalLM", "gemma", tie_word_embeddings="absent",
                    hidden_act="gelu", hidden_activation=None),
    "gemma2": config("Gemma2ForCausalLM", "gemma2", tie_word_embeddings="absent",
                     hidden_activation="gelu_pytorch_tanh", sliding_window=5,
                     query_pre_attn_scalar=13, attn_logit_softcapping=2.0,
                     final_logit_softcapping=3.0),
    "gemma3": config("Gemma3ForCausalLM", "gemma3_text", tie_word_embeddings="absent",
                     hidden_activation="gelu_pytorch_tanh", sliding_window=5,
                     sliding_window_pattern=3, query_pre_attn_scalar=13,
                     rope_local_base_freq=50.0, rope_scaling={"rope_type": "linear", "factor": 4.0}),
    "phi3": config("Phi3ForCausalLM", "phi3", sliding_window=5, head_dim=DIM // HEADS),
    "phi3-part": config("Phi3ForCausalLM", "phi3", sliding_window=None, head_dim=DIM // 3,
                        num_attention_heads=3, num_key_value_heads=1, partial_rotary_factor=0.75),
    "olmo2": config("Olmo2ForCausalLM", "olmo2"),
    "olmo2-groups": config("Olmo2ForCausalLM", "olmo2", num_attention_heads=6, num_key_value_heads=3,
                           head_dim="absent"),
    "granite": config("GraniteForCausalLM", "granite", embedding_multiplier=3.0,
                      residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=2.5),
    "smollm3": config("SmolLM3ForCausalLM", "smollm3", no_rope_layers=[1, 0, 1, 0],
                      tie_word_embeddings="absent"),
    "smollm3-window": config("SmolLM3ForCausalLM", "smollm3", no_rope_layers=[1, 0, 1, 0],
                             use_sliding_window=True, sliding_window=5, tie_word_embeddings="absent"),
    "bitnet": config("BitNetForCausalLM", "bitnet", hidden_act="relu2"),
    "gpt-neox": config("GPTNeoXForCausalLM", "gpt_neox", **NO_KV, layer_norm_eps=1e-5,
                       hidden_size=32, hidden_act="gelu", rotary_pct=0.25,
                       use_parallel_residual=True),
    "gpt-neox-in-turn": config("GPTNeoXForCausalLM", "gpt_neox", **NO_KV, layer_norm_eps=1e-5,
                               hidden_size=32, hidden_act="gelu", rotary_pct=0.5,
                               use_parallel_residual=False),
    "gpt-neo": config("GPTNeoForCausalLM", "gpt_neo", **NO_KV, layer_norm_epsilon=1e-5,
                      num_layers=LAYERS, num_heads=HEADS, window_size=5, intermediate_size=None,
                      attention_types=[[["global", "local"], 2]], activation_function="gelu_new",
                      tie_word_embeddings="absent"),
    "opt": config("OPTForCausalLM", "opt", **NO_KV, ffn_dim=FFN, do_layer_norm_before=True,
                  word_embed_proj_dim=DIM, activation_function="relu",
                  tie_word_embeddings="absent"),
}
GEMMAS = ("gemma", "gemma2", "gemma3_text")


class Shape:
    """what the folder's names and sizes follow from"""

    def __init__(self, c):
        self.c, self.kind = c, c["model_type"]
        self.d = c["hidden_size"]
        self.heads = c["num_heads"] if self.kind == "gpt_neo" else c["num_attention_heads"]
        self.kv = c.get("num_key_value_heads", self.heads)
        self.width = c.get("head_dim", self.d // self.heads)
        self.ffn = c["ffn_dim"] if self.kind == "opt" else c.get(
            "intermediate_size_mlp", c["intermediate_size"]) or 4 * self.d
        self.layers = c["num_layers"] if self.kind == "gpt_neo" else c["num_hidden_layers"]
        self.mlp = "feed_forward." if self.kind == "llama4_text" else "mlp."
        self.tied = c.get("tie_word_embeddings", self.kind in (*GEMMAS, "smollm3", "gpt_neo", "opt"))


def names(c):
    """every tensor of the file: name to its dimensions"""
    s = Shape(c)
    q, kv, d = s.heads * s.width, s.kv * s.width, s.d
    out = {}

    def linear(name, rows, columns, bias=False):
        out[name + ".weight"] = (rows, columns)
        if bias:
            out[name + ".bias"] = (rows,)

    def layer_norm(name):
        out[name + ".weight"] = out[name + ".bias"] = (d,)

    if s.kind == "gpt_neox":
        out["gpt_neox.embed_in.weight"] = (VOCAB, d)
        for i in range(s.layers):
            at = f"gpt_neox.layers.{i}."
            layer_norm(at + "input_layernorm")
            layer_norm(at + "post_attention_layernorm")
            linear(at + "attention.query_key_value", 3 * d, d, True)
            linear(at + "attention.dense", d, d, True)
            linear(at + "mlp.dense_h_to_4h", s.ffn, d, True)
            linear(at + "mlp.dense_4h_to_h", d, s.ffn, True)
        layer_norm("gpt_neox.final_layer_norm")
        out["embed_out.weight"] = (VOCAB, d)
        return out
    if s.kind == "gpt_neo":
        out["transformer.wte.weight"] = (VOCAB, d)
        out["transformer.wpe.weight"] = (CONTEXT, d)
        for i in range(s.layers):
            at = f"transformer.h.{i}."
            layer_norm(at + "ln_1")
            layer_norm(at + "ln_2")
            for name in ("q_proj", "k_proj", "v_proj"):
                linear(at + "attn.attention." + name, d, d)
            linear(at + "attn.attention.out_proj", d, d, True)
            linear(at + "mlp.c_fc", s.ffn, d, True)
            linear(at + "mlp.c_proj", d, s.ffn, True)
        layer_norm("transformer.ln_f")
        return out
    if s.kind == "opt":
        out["model.decoder.embed_tokens.weight"] = (VOCAB, d)
        out["model.decoder.embed_positions.weight"] = (CONTEXT + 2, d)
        for i in range(s.layers):
            at = f"model.decoder.layers.{i}."
            layer_norm(at + "self_attn_layer_norm")
            layer_norm(at + "final_layer_norm")
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                linear(at + "self_attn." + name, d, d, True)
            linear(at + "fc1", s.ffn, d, True)
            linear(at + "fc2", d, s.ffn, True)
        layer_norm("model.decoder.final_layer_norm")
        return out
    out["model.embed_tokens.weight"] = (VOCAB, d)
    bias = c.get("attention_bias", False)
    for i in range(s.layers):
        at = f"model.layers.{i}."
        if s.kind == "phi3":
            linear(at + "self_attn.qkv_proj", q + 2 * kv, d)
            linear(at + "mlp.gate_up_proj", 2 * s.ffn, d)
        else:
            for name, rows in (("q_proj", q), ("k_proj", kv), ("v_proj", kv)):
                linear(at + "self_attn." + name, rows, d, bias or s.kind == "qwen2")
            for name in ("gate_proj", "up_proj"):
                linear(at + s.mlp + name, s.ffn, d, c.get("mlp_bias", False))
        linear(at + "self_attn.o_proj", d, q, bias)
        linear(at + s.mlp + "down_proj", d, s.ffn, c.get("mlp_bias", False))
        norms = {"olmo2": ["post_attention", "post_feedforward"],
                 "gemma2": ["input", "post_attention", "pre_feedforward", "post_feedforward"]}
        norms["gemma3_text"] = norms["gemma2"]
        for name in norms.get(s.kind, ["input", "post_attention"]):
            out[f"{at}{name}_layernorm.weight"] = (d,)
        if s.kind == "bitnet":
            out[at + "self_attn.attn_sub_norm.weight"] = (q,)
            out[at + "mlp.ffn_sub_norm.weight"] = (s.ffn,)
        if s.kind in ("qwen3", "gemma3_text", "olmo2"):
            out[at + "self_attn.q_norm.weight"] = (q if s.kind == "olmo2" else s.width,)
            out[at + "self_attn.k_norm.weight"] = (kv if s.kind == "olmo2" else s.width,)
    out["model.norm.weight"] = (d,)
    if not s.tied:
        out["lm_head.weight"] = (VOCAB, d)
    return out


def random_weights(c, seed=1):
    chance, out = random.Random(seed), {}
    for name, dims in names(c).items():
        is_gain = len(dims) == 1 and name.endswith("weight")
        size = 0.3 if len(dims) == 1 else 1.0 if "embed" in name or "wte" in name else \
            2 / math.sqrt(dims[1])
        middle = 1.0 if is_gain and c["model_type"] not in GEMMAS else 0.0
        row = lambda n: gpt2.rounded([middle + chance.gauss(0, size) for _ in range(n)], "F32")
        out[name] = row(dims[0]) if len(dims) == 1 else [row(dims[1]) for _ in range(dims[0])]
    return out


def write_folder(folder, c, weights):
    folder.mkdir(parents=True, exist_ok=True)
    gpt2.write_folder(folder, {**c, "n_layer": 0}, weights, prefix="")
    (folder / "config.json").write_text(json.dumps(c))
    gpt2.write_tokenizer(folder, one_file=True)


# ---- the arithmetic ----

def times(w, x, bias=None):
    y = [sum(a * b for a, b in zip(row, x)) for row in w]
    return [a + b for a, b in zip(y, bias)] if bias else y


def rms(x, gain, epsilon):
    factor = 1 / math.sqrt(sum(v * v for v in x) / len(x) + epsilon)
    return [v * factor * g for v, g in zip(x, gain)]


def activation(name, x):
    return {"silu": lambda: x / (1 + math.exp(-x)), "relu": lambda: max(x, 0),
            "relu2": lambda: max(x, 0) ** 2,
            "gelu": lambda: gpt2.gelu(x, "gelu"), "gelu_new": lambda: gpt2.gelu(x, "gelu_new"),
            "gelu_pytorch_tanh": lambda: gpt2.gelu(x, "gelu_new")}[name]()


def cap(x, c):
    return c * math.tanh(x / c) if c else x


def frequencies(theta, dim, scaling, context):
    """of each pair, and the factor of cos and sin"""
    plain = [theta ** (-2 * i / dim) for i in range(dim // 2)]
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
    if kind in ("default", "dynamic"): # dynamic: only beyond the model's own context
        return plain, 1
    if kind == "longrope":
        old = scaling["original_max_position_embeddings"]
        factors = scaling["long_factor" if context > old else "short_factor"]
        return [f / by for f, by in zip(plain, factors)], math.sqrt(1 + math.log(context / old) / math.log(old))
    factor = scaling["factor"]
    if kind == "linear":
        return [f / factor for f in plain], 1
    old = scaling.get("original_max_position_embeddings", context)
    if kind == "llama3":
        out = []
        for f in plain:
            wave = 2 * math.pi / f
            low, high = old / scaling["low_freq_factor"], old / scaling["high_freq_factor"]
            smooth = (old / wave - scaling["low_freq_factor"]) / (
                scaling["high_freq_factor"] - scaling["low_freq_factor"])
            out.append(f if wave < high else f / factor if wave > low else
                       (1 - smooth) * f / factor + smooth * f)
        return out, 1
    assert kind == "yarn"

    def place(rotations):
        return dim * math.log(old / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low = max(math.floor(place(scaling.get("beta_fast", 32))), 0)
    high = min(math.ceil(place(scaling.get("beta_slow", 1))), dim - 1)
    high += 0.001 if low == high else 0
    ramp = [min(max((i - low) / (high - low), 0), 1) for i in range(dim // 2)]
    return ([f / factor * r + f * (1 - r) for f, r in zip(plain, ramp)],
            0.1 * math.log(factor) + 1)


class Model:
    """one token after the other; broken: a feature that is left out, for tests of the tests"""

    def __init__(self, c, weights, broken=None):
        self.c, self.w, self.s, self.broken = c, weights, Shape(c), broken
        self.times = 2 if c.get("layer_sharing") and broken != "layer_sharing" else 1
        self.keys = [[] for _ in range(self.s.layers * self.times)]
        self.values = [[] for _ in range(self.s.layers * self.times)]

    def has(self, feature, value):
        return None if self.broken == feature else value

    def gain(self, name):
        w = self.w[name]
        plus = self.s.kind in GEMMAS and self.broken != "plus_one"
        return [v + 1 for v in w] if plus else w

    def linear(self, name, x):
        return times(self.w[name + ".weight"], x, self.has("biases", self.w.get(name + ".bias")))

    def layer_norm(self, name, x):
        epsilon = self.c.get("layer_norm_eps", self.c.get("layer_norm_epsilon", 1e-5))
        return gpt2.norm(x, self.w[name + ".weight"], self.w[name + ".bias"], epsilon)

    def rms(self, name, x):
        return rms(x, self.gain(name + ".weight"), self.c["rms_norm_eps"])

    def window(self, layer):
        c, kind = self.c, self.s.kind
        window = self.has("window", c.get("window_size" if kind == "gpt_neo" else "sliding_window"))
        if not window or not c.get("use_sliding_window", kind not in ("qwen2", "qwen3", "smollm3")):
            return CONTEXT
        if "layer_types" in c:
            return window if c["layer_types"][layer] == "sliding_attention" else CONTEXT
        slides = {"mistral": True, "phi3": True, "gemma2": layer % 2 == 0,
                  "gpt_neo": layer % 2 == 1,
                  "qwen2": layer >= c.get("max_window_layers", 28),
                  "smollm3": kind == "smollm3" and c["no_rope_layers"][layer] == 0,
                  "gemma3_text": (layer + 1) % c.get("sliding_window_pattern", 6) != 0}
        return window if slides.get(kind) else CONTEXT

    def turn(self, x, position, layer):
        c, kind, width = self.c, self.s.kind, self.s.width
        if kind in ("gpt_neo", "opt"):
            return x
        if kind in ("smollm3", "llama4_text") and self.has("no_rope", c["no_rope_layers"][layer] == 0):
            return x
        theta, scaling = c["rope_theta"], self.has("rope_scaling", c.get("rope_scaling"))
        if kind == "gemma3_text" and (layer + 1) % c["sliding_window_pattern"] != 0:
            theta, scaling = self.has("local_theta", c["rope_local_base_freq"]) or theta, None
        share = c.get("rotary_pct", c.get("partial_rotary_factor"))
        dim = int(width * (self.has("rotary_pct", share) or 1))
        turns, magnitude = frequencies(theta, dim, scaling, CONTEXT)
        out = list(x)
        for first in range(0, len(x), width):
            for i, f in enumerate(turns):
                pairs = kind == "llama4_text" and self.broken != "pairs" # adjacent columns turn
                one, other = (first + 2 * i, first + 2 * i + 1) if pairs else (first + i, first + i + dim // 2)
                a, b = x[one], x[other]
                cosine, sine = math.cos(position * f) * magnitude, math.sin(position * f) * magnitude
                out[one] = a * cosine - b * sine
                out[other] = b * cosine + a * sine
            if kind == "llama4_text" and self.has("head_norm", c["use_qk_norm"]):
                out[first:first + width] = rms(out[first:first + width], [1.0] * width, c["rms_norm_eps"])
        return out

    def qkv(self, layer, x):
        s, at = self.s, f"model.layers.{layer}.self_attn."
        if s.kind == "gpt_neox":
            y = self.linear(f"gpt_neox.layers.{layer}.attention.query_key_value", x)
            parts = [y[i:i + s.width] for i in range(0, len(y), s.width)]
            return [sum(parts[which::3], []) for which in range(3)]
        if s.kind == "phi3":
            y = self.linear(at + "qkv_proj", x)
            q, kv = s.heads * s.width, s.kv * s.width
            return [y[:q], y[q:q + kv], y[q + kv:]]
        at = {"gpt_neo": f"transformer.h.{layer}.attn.attention.",
              "opt": f"model.decoder.layers.{layer}.self_attn."}.get(s.kind, at)
        q, k, v = (self.linear(at + name, x) for name in ("q_proj", "k_proj", "v_proj"))
        if s.kind == "olmo2" and self.broken != "head_norm":
            q, k = self.rms(at + "q_norm", q), self.rms(at + "k_norm", k)
        if s.kind in ("qwen3", "gemma3_text") and self.broken != "head_norm":
            q, k = (sum((self.rms(at + name, x[i:i + s.width])
                         for i in range(0, len(x), s.width)), [])
                    for name, x in (("q_norm", q), ("k_norm", k)))
        return [q, k, v]

    def attend(self, layer, place, x):
        c, s = self.c, self.s
        q, k, v = self.qkv(layer, x)
        position = len(self.keys[place])
        q, k = self.turn(q, position, layer), self.turn(k, position, layer)
        self.keys[place].append(k)
        self.values[place].append(v)
        scale = 1 / math.sqrt(s.width)
        if s.kind == "gpt_neo":
            scale = self.has("scale", 1) or scale
        scale = self.has("factors", c.get("attention_multiplier")) or scale
        if self.has("scale", c.get("query_pre_attn_scalar")):
            scale = 1 / math.sqrt(c["query_pre_attn_scalar"])
        first, out = max(0, position + 1 - self.window(layer)), []
        soft = self.has("attention_cap", c.get("attn_logit_softcapping"))
        for head in range(s.heads):
            kv = head // (s.heads // s.kv) * s.width
            mine = q[head * s.width:(head + 1) * s.width]
            scores = [cap(scale * sum(a * b for a, b in zip(mine, k[kv:kv + s.width])), soft)
                      for k in self.keys[place][first:]]
            shares = [math.exp(v - max(scores)) for v in scores]
            total = sum(shares)
            out += [sum(p * v[kv + i] for p, v in zip(shares, self.values[place][first:])) / total
                    for i in range(s.width)]
        if s.kind == "bitnet" and self.broken != "inner_norms":
            out = self.rms(f"model.layers.{layer}.self_attn.attn_sub_norm", out)
        return self.linear({"gpt_neox": f"gpt_neox.layers.{layer}.attention.dense",
                            "gpt_neo": f"transformer.h.{layer}.attn.attention.out_proj",
                            "opt": f"model.decoder.layers.{layer}.self_attn.out_proj"}.get(
                                s.kind, f"model.layers.{layer}.self_attn.o_proj"), out)

    def plain(self, x, up, down):
        act = self.c.get("activation_function", self.c["hidden_act"])
        return self.linear(down, [activation(act, v) for v in self.linear(up, x)])

    def gated(self, layer, x):
        c, s, at = self.c, self.s, f"model.layers.{layer}.{self.s.mlp}"
        if s.kind == "phi3":
            y = self.linear(at + "gate_up_proj", x)
            gate, up = y[:s.ffn], y[s.ffn:]
        else:
            gate, up = self.linear(at + "gate_proj", x), self.linear(at + "up_proj", x)
        act = "gelu_pytorch_tanh" if s.kind in GEMMAS else c["hidden_act"]
        act = self.broken if self.broken in ("silu", "relu") else act
        y = [activation(act, g) * u for g, u in zip(gate, up)]
        if s.kind == "bitnet" and self.broken != "inner_norms":
            y = self.rms(at + "ffn_sub_norm", y)
        return self.linear(at + "down_proj", y)

    def layer(self, layer, place, x):
        s, at = self.s, f"model.layers.{layer}."
        plus = lambda a, b: [u + v for u, v in zip(a, b)]
        if s.kind == "gpt_neox":
            at = f"gpt_neox.layers.{layer}."
            y = self.attend(layer, place, self.layer_norm(at + "input_layernorm", x))
            side = self.has("parallel", self.c["use_parallel_residual"])
            z = self.layer_norm(at + "post_attention_layernorm", x if side else plus(x, y))
            return plus(plus(x, y), self.plain(z, at + "mlp.dense_h_to_4h", at + "mlp.dense_4h_to_h"))
        if s.kind in ("gpt_neo", "opt"):
            at = f"transformer.h.{layer}." if s.kind == "gpt_neo" else f"model.decoder.layers.{layer}."
            first, second, up, down = ("ln_1", "ln_2", "mlp.c_fc", "mlp.c_proj") \
                if s.kind == "gpt_neo" else ("self_attn_layer_norm", "final_layer_norm", "fc1", "fc2")
            x = plus(x, self.attend(layer, place, self.layer_norm(at + first, x)))
            return plus(x, self.plain(self.layer_norm(at + second, x), at + up, at + down))
        if s.kind == "olmo2":
            x = plus(x, self.rms(at + "post_attention_layernorm", self.attend(layer, place, x)))
            return plus(x, self.rms(at + "post_feedforward_layernorm", self.gated(layer, x)))
        y = self.attend(layer, place, self.rms(at + "input_layernorm", x))
        sandwich = s.kind in ("gemma2", "gemma3_text")
        if sandwich and self.broken != "output_norms":
            y = self.rms(at + "post_attention_layernorm", y)
        factor = self.has("factors", self.c.get("residual_multiplier")) or 1
        x = [a + factor * b for a, b in zip(x, y)]
        z = self.gated(layer, self.rms(
            at + ("pre_feedforward" if sandwich else "post_attention") + "_layernorm", x))
        if sandwich and self.broken != "output_norms":
            z = self.rms(at + "post_feedforward_layernorm", z)
        return [a + factor * b for a, b in zip(x, z)]

    def logits(self, token):
        c, s = self.c, self.s
        table = {"gpt_neox": "gpt_neox.embed_in.weight", "gpt_neo": "transformer.wte.weight",
                 "opt": "model.decoder.embed_tokens.weight"}.get(s.kind, "model.embed_tokens.weight")
        x = list(self.w[table][token])
        if s.kind in GEMMAS and self.broken != "embedding":
            x = [v * math.sqrt(s.d) for v in x]
        x = [v * (self.has("factors", c.get("embedding_multiplier")) or 1) for v in x]
        positions = {"gpt_neo": ("transformer.wpe.weight", 0),
                     "opt": ("model.decoder.embed_positions.weight", 2)}.get(s.kind)
        if positions:
            shift = 0 if self.broken == "shift" else positions[1]
            x = [a + b for a, b in zip(x, self.w[positions[0]][len(self.keys[0]) + shift])]
        for place in range(s.layers * self.times):
            x = self.layer(place // self.times, place, x)
        if s.kind in ("gpt_neox", "gpt_neo", "opt"):
            x = self.layer_norm({"gpt_neox": "gpt_neox.final_layer_norm",
                                 "gpt_neo": "transformer.ln_f",
                                 "opt": "model.decoder.final_layer_norm"}[s.kind], x)
        else:
            x = self.rms("model.norm", x)
        head = "embed_out.weight" if s.kind == "gpt_neox" else "lm_head.weight"
        y = times(self.w.get(head, self.w[table]), x)
        y = [v / (self.has("factors", c.get("logits_scaling")) or 1) for v in y]
        return [cap(v, self.has("logit_cap", c.get("final_logit_softcapping"))) for v in y]


def perplexity(c, weights, ids, broken=None):
    model, loss = Model(c, weights, broken), 0
    for now, then in zip(ids, ids[1:]):
        y = model.logits(now)
        loss += math.log(sum(math.exp(v - max(y)) for v in y)) + max(y) - y[then]
    return math.exp(loss / (len(ids) - 1))
