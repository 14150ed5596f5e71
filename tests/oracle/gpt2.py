"""A second GPT-2, in plain Python and from its paper and configuration alone: folders with random
weights as Hugging Face stores them, the two tokenizer files, and logits in double precision.
"""
import json
import math
import random
import re
import struct

MERGES = ["h e", "l l", "he ll", "hell o", "Ġ t", "Ġt he", "o r", "Ġ w", "Ġw or", "Ġ hello"]


def byte_characters():
    """GPT-2's character of each byte"""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, more = {}, 0
    for byte in range(256):
        table[byte] = chr(byte) if byte in plain else chr(256 + more)
        more += byte not in plain
    return table


CHARACTER = byte_characters()


def vocabulary():
    pieces = [CHARACTER[b] for b in sorted(range(256), key=lambda b: (b not in range(33, 127), b))]
    pieces += [m.replace(" ", "") for m in MERGES]
    return {piece: i for i, piece in enumerate(pieces + ["<|endoftext|>"])}


def write_tokenizer(folder, one_file=False):
    vocab = vocabulary()
    if not one_file:
        (folder / "vocab.json").write_text(json.dumps(vocab))
        (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n")
        return
    end = {"id": vocab["<|endoftext|>"], "content": "<|endoftext|>", "special": True}
    (folder / "tokenizer.json").write_text(json.dumps({
        "added_tokens": [end], "decoder": {"type": "ByteLevel"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "model": {"type": "BPE", "vocab": vocab, "merges": MERGES}}))


def encode(text):
    """of ASCII"""
    vocab, ids = vocabulary(), []
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+"
    for word in re.findall(pattern, text):
        parts = [CHARACTER[b] for b in word.encode()]
        for merge in MERGES:
            i, pair = 0, merge.split(" ")
            while i + 1 < len(parts):
                if parts[i:i + 2] == pair:
                    parts[i:i + 2] = ["".join(pair)]
                i += 1
        ids += [vocab[p] for p in parts]
    return ids


def decode(ids):
    names = {i: piece for piece, i in vocabulary().items()}
    byte = {c: b for b, c in CHARACTER.items()}
    return bytes(byte[c] for i in ids for c in names[i])


def config_of(**changes):
    """a few thousand weights"""
    return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 16, "n_layer": 2,
            "n_head": 4, "n_positions": 48, "n_ctx": 48, "n_inner": None,
            "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new",
            "vocab_size": len(vocabulary()), "bos_token_id": len(vocabulary()) - 1,
            "eos_token_id": len(vocabulary()) - 1, "attn_pdrop": 0.1, "summary_type": "cls_index",
            **changes}


def random_weights(config, seed):
    """as Conv1D has them, [in][out]"""
    chance, d = random.Random(seed), config["n_embd"]
    wide = config["n_inner"] or 4 * d

    def matrix(rows, columns, size):
        return [[chance.gauss(0, size) for _ in range(columns)] for _ in range(rows)]

    def vector(n, middle=0.0):
        return [middle + chance.gauss(0, 0.2) for _ in range(n)]

    w = {"wte.weight": matrix(config["vocab_size"], d, 0.5),
         "wpe.weight": matrix(config["n_positions"], d, 0.5),
         "ln_f.weight": vector(d, 1), "ln_f.bias": vector(d)}
    for i in range(config["n_layer"]):
        for name, rows, columns in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d),
                                    ("mlp.c_fc", d, wide), ("mlp.c_proj", wide, d)):
            w[f"h.{i}.{name}.weight"] = matrix(rows, columns, 1.5 / math.sqrt(rows))
            w[f"h.{i}.{name}.bias"] = vector(columns)
        for name in ("ln_1", "ln_2"):
            w[f"h.{i}.{name}.weight"], w[f"h.{i}.{name}.bias"] = vector(d, 1), vector(d)
    if not config.get("tie_word_embeddings", True):
        w["lm_head.weight"] = matrix(config["vocab_size"], d, 1)
    return w


def flat(t):
    return [x for row in t for x in flat(row)] if isinstance(t[0], list) else t


def shape(t):
    return [len(t), *(shape(t[0]) if isinstance(t[0], list) else [])]


def rounded(t, dtype):
    """what the file will hold"""
    if isinstance(t[0], list):
        return [rounded(row, dtype) for row in t]
    code = {"F32": "f", "F16": "e"}[dtype]
    return list(struct.unpack(f"<{len(t)}{code}", struct.pack(f"<{len(t)}{code}", *t)))


def write_folder(folder, config, weights, dtype="F32", prefix="transformer.", masks=False):
    header, data = {}, b""
    extra = {}
    for i in range(config["n_layer"] if masks else 0):
        extra[f"h.{i}.attn.bias"] = [[1.0, 0.0], [1.0, 1.0]]
        extra[f"h.{i}.attn.masked_bias"] = [-1e4]
    for name, t in {**weights, **extra}.items():
        code = {"F32": "f", "F16": "e"}[dtype]
        raw = struct.pack(f"<{len(flat(t))}{code}", *flat(t))
        header[("" if name.startswith("lm_head") else prefix) + name] = {
            "dtype": dtype, "shape": shape(t), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(config))


GGUF_NAMES = {"attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up",
              "mlp.c_proj": "ffn_down", "ln_1": "attn_norm", "ln_2": "ffn_norm"}


def write_gguf(path, config, weights):
    """as llama.cpp has it: matrices [out][in], q, k and v in one"""
    def string(text):
        return struct.pack("<Q", len(text)) + text.encode()

    values = [string("general.architecture") + struct.pack("<I", 8) + string("gpt2"),
              string("gpt2.attention.layer_norm_epsilon") + struct.pack("<If", 6, config["layer_norm_epsilon"])]
    for key, value in (("embedding_length", config["n_embd"]), ("block_count", config["n_layer"]),
                       ("feed_forward_length", config["n_inner"] or 4 * config["n_embd"]),
                       ("attention.head_count", config["n_head"]),
                       ("context_length", config["n_positions"])):
        values.append(string("gpt2." + key) + struct.pack("<II", 4, value))
    header = struct.pack("<IQQ", 3, len(weights), len(values)) + b"".join(values)
    data = b""
    for name, t in weights.items():
        if ".c_" in name and name.endswith("weight"):
            t = [list(column) for column in zip(*t)]
        name = {"wte.weight": "token_embd.weight", "wpe.weight": "position_embd.weight"}.get(name, name)
        name = name.replace("ln_f", "output_norm").replace("lm_head", "output")
        name = re.sub(r"^h\.(\d+)\.", r"blk.\1.", name)
        for ours, theirs in GGUF_NAMES.items():
            name = name.replace(ours, theirs)
        dims = shape(t)[::-1]
        header += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, 0, len(data))
        data += struct.pack(f"<{len(flat(t))}f", *flat(t))
        data += b"\0" * (-len(data) % 32)
    header = b"GGUF" + header
    path.write_bytes(header + b"\0" * (-len(header) % 32) + data)


def norm(x, gain, bias, epsilon):
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    return [(v - mean) / math.sqrt(variance + epsilon) * g + b for v, g, b in zip(x, gain, bias)]


def gelu(x, name):
    if name == "gelu":
        return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def product(x, w, bias):
    return [b + sum(v * row[j] for v, row in zip(x, w)) for j, b in enumerate(bias)]


class Model:
    """one token after the other"""

    def __init__(self, config, weights):
        self.config, self.w = config, weights
        self.keys = [[] for _ in range(config["n_layer"])]
        self.values = [[] for _ in range(config["n_layer"])]

    def attend(self, layer, q, k, v):
        heads = self.config["n_head"]
        width = len(q) // heads
        self.keys[layer].append(k)
        self.values[layer].append(v)
        out = []
        for first in range(0, len(q), width):
            part = slice(first, first + width)
            scores = [math.exp(sum(a * b for a, b in zip(q[part], key[part])) / math.sqrt(width))
                      for key in self.keys[layer]]
            for i in range(first, first + width):
                out.append(sum(s * value[i] for s, value in zip(scores, self.values[layer]))
                           / sum(scores))
        return out

    def feed(self, token):
        """logits after it"""
        w, d, position = self.w, self.config["n_embd"], len(self.keys[0])
        epsilon = self.config["layer_norm_epsilon"]
        x = [a + b for a, b in zip(w["wte.weight"][token], w["wpe.weight"][position])]
        for i in range(self.config["n_layer"]):
            def layer(name, y):
                return product(y, w[f"h.{i}.{name}.weight"], w[f"h.{i}.{name}.bias"])

            n = norm(x, w[f"h.{i}.ln_1.weight"], w[f"h.{i}.ln_1.bias"], epsilon)
            qkv = layer("attn.c_attn", n)
            mixed = self.attend(i, qkv[:d], qkv[d:2 * d], qkv[2 * d:])
            x = [a + b for a, b in zip(x, layer("attn.c_proj", mixed))]
            n = norm(x, w[f"h.{i}.ln_2.weight"], w[f"h.{i}.ln_2.bias"], epsilon)
            neurons = [gelu(v, self.config["activation_function"]) for v in layer("mlp.c_fc", n)]
            x = [a + b for a, b in zip(x, layer("mlp.c_proj", neurons))]
        x = norm(x, w["ln_f.weight"], w["ln_f.bias"], epsilon)
        return [sum(a * b for a, b in zip(x, row))
                for row in w.get("lm_head.weight", w["wte.weight"])]


def perplexity(config, weights, ids):
    """of the tokens after the first"""
    model, loss = Model(config, weights), 0.0
    for token, following in zip(ids, ids[1:]):
        logits = model.feed(token)
        most = max(logits)
        loss += most - logits[following] + math.log(sum(math.exp(v - most) for v in logits))
    return math.exp(loss / (len(ids) - 1))


def greedy(config, weights, ids, count):
    model, out = Model(config, weights), []
    for token in ids:
        logits = model.feed(token)
    while len(out) < count:
        out.append(max(range(len(logits)), key=logits.__getitem__))
        logits = model.feed(out[-1])
    return out
