#!/usr/bin/env python3
"""Writes the seeds of fuzz/corpus: the smallest Llama there is, in every form.

dim 2, ffn 1, 1 layer, 1 head of 2, vocabulary 3, context 4; every weight is 0.5.
Besides it, BlockDialect blocks of every kind, tokenizers in every form and small networks.
"""
import io
import json
import math
import pathlib
import struct
import sys
import zipfile
import zlib
from unittest import mock

import onnx_seeds

CORPUS = pathlib.Path(__file__).parent / "corpus"
DIM, FFN, VOCABULARY, CONTEXT = 2, 1, 3, 4
SIZES = (DIM, FFN, 1, 1, 1, VOCABULARY, CONTEXT)
LAYER = {"attn_norm": (DIM,), "attn_q": (DIM, DIM), "attn_k": (DIM, DIM), "attn_v": (DIM, DIM),
         "attn_output": (DIM, DIM), "ffn_norm": (DIM,), "ffn_gate": (FFN, DIM),
         "ffn_down": (DIM, FFN), "ffn_up": (FFN, DIM)}
TENSORS = {"token_embd.weight": (VOCABULARY, DIM),
           **{f"blk.0.{name}.weight": dims for name, dims in LAYER.items()},
           "output_norm.weight": (DIM,)}


def elements(dims):
    return dims[0] * (dims[1] if len(dims) > 1 else 1)


def floats(count):
    return struct.pack("<f", 0.5) * count


def put(form, name, data):
    folder = CORPUS / form
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def llama2c():
    total = sum(map(elements, TENSORS.values()))
    old = struct.pack("<7i", *SIZES) + floats(total + CONTEXT * DIM)
    put("llama2c", "version_0", old)
    untied = struct.pack("<7i", *SIZES[:5], -VOCABULARY, CONTEXT)
    put("llama2c", "version_0_untied", untied + old[28:] + floats(VOCABULARY * DIM))
    head = struct.pack("<II7iB", 0x616B3432, 1, *SIZES, 1)
    put("llama2c", "version_1", head.ljust(256, b"\0") + floats(total))
    norms = 3 * DIM
    head = struct.pack("<II7iBi", 0x616B3432, 2, *SIZES, 1, 2)
    data = head.ljust(256, b"\0") + floats(norms)
    for dims in (dims for dims in TENSORS.values() if len(dims) > 1):
        data += b"\x40" * elements(dims) + floats(elements(dims) // 2)
    put("llama2c", "version_2", data)


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_values(tokenizer):
    def number(key, value):
        return string(key) + struct.pack("<II", 4, value)

    values = [string("general.architecture") + struct.pack("<I", 8) + string("llama"),
              string("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-5),
              number("general.alignment", 8)]
    for key, value in (("embedding_length", DIM), ("feed_forward_length", FFN),
                       ("block_count", 1), ("attention.head_count", 1),
                       ("context_length", CONTEXT)):
        values.append(number("llama." + key, value))
    if tokenizer:
        words = b"".join(map(string, ("<unk>", "a", "b")))
        key = string("tokenizer.ggml.tokens")
        values += [string("tokenizer.ggml.model") + struct.pack("<I", 8) + string("llama"),
                   key + struct.pack("<IIQ", 9, 8, VOCABULARY) + words,
                   number("tokenizer.ggml.bos_token_id", 1)]
    return values


def gguf(version, tokenizer):
    values = gguf_values(tokenizer)
    out = b"GGUF" + struct.pack("<IQQ", version, len(TENSORS), len(values)) + b"".join(values)
    data = b""
    for name, dims in TENSORS.items():
        out += string(name) + struct.pack("<I", len(dims))
        out += struct.pack(f"<{len(dims)}Q", *reversed(dims)) + struct.pack("<IQ", 0, len(data))
        data += floats(elements(dims))
        data += b"\0" * (-len(data) % 8)
    return out + b"\0" * (-len(out) % 8) + data


# number, elements and bytes of each block type
GGUF_BLOCKS = [(2, 32, 18), (3, 32, 20), (6, 32, 22), (7, 32, 24), (8, 32, 34), (10, 256, 84),
               (11, 256, 110), (12, 256, 144), (13, 256, 176), (14, 256, 210), (20, 32, 18),
               (23, 256, 136), (34, 256, 54), (35, 256, 66), (39, 32, 17)]


def gguf_blocks():
    """A container of one tensor of each block type; no model."""
    out = b"GGUF" + struct.pack("<IQQ", 3, len(GGUF_BLOCKS), 0)
    data = b""
    for number, count, size in GGUF_BLOCKS:
        out += string(f"t{number}") + struct.pack("<IQIQ", 1, count, number, len(data))
        data += b"\0\x38" * 2 + bytes(range(size - 4))
        data += b"\0" * (-len(data) % 32)
    return out + b"\0" * (-len(out) % 32) + data


def gguf_families():
    """Architectures with windows, angles and fused tensors of their own, of vocabulary 3."""
    sys.path.append(str(pathlib.Path(__file__).parent.parent / "tests/oracle"))
    import families
    import gguf_families
    small = {"hidden_size": 4, "intermediate_size": 2, "num_hidden_layers": 2, "num_attention_heads": 2,
             "num_key_value_heads": 1, "head_dim": 4, "max_position_embeddings": 4, "sliding_window": 2}
    more = {"rope_factors_short.weight": [1.0, 2.0], "rope_factors_long.weight": [2.0, 3.0]}
    for name, changes, tensors in (
            ("gemma3", {"attention.sliding_window_pattern": [True, False]}, {}), ("olmo2", {}, {}),
            ("phi3", {"rope.scaling.type": "longrope", "rope.scaling.original_context_length": 2}, more),
            ("llama-yarn", {"rope.scaling.yarn_log_multiplier": 0.5}, {}), ("gpt-neox", {}, {})):
        with mock.patch("families.VOCAB", 3):
            c = {**families.FAMILIES[name], **small}
            if name == "gpt-neox":
                c = {key: v for key, v in c.items() if key not in families.NO_KV} | {
                    "hidden_size": 8, "sliding_window": None, "rotary_pct": 0.5}
            gguf_families.write(CORPUS / "gguf" / name, c, families.random_weights(c), changes=changes, more=tensors)


def safetensors(tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def bd_block(kind, payload, above=False):
    header = b"" if above else struct.pack("<H", 3 << 12 | 9 << 7 | kind << 4)
    size = len(header) + len(payload)
    return bytes([size | 0x80 if above else size]) + header + payload


def blockdialect():
    """The harness's four bytes, then: each kind of block alone (32 elements), and a sequence."""
    b4, b5 = bd_block(0, bytes(range(1, 17))), b"\x16\x10\x04" + bytes(range(20))
    kinds = {"zero": b"\0", "b4": b4, "b5": b5,
             "r": bd_block(2, bytes(range(1, 17)) + b"\x80\x04" + bytes(range(2, 18))),
             "shared": bd_block(0, bytes(range(16)), above=True)}
    for name, data in kinds.items():
        put("blockdialect", name, b"\x1f\x00\0\0" + data)
    pair = b4 + kinds["shared"]
    tail = bd_block(0, b"\x21\x43\x05")  # 5 elements
    tiles = [pair + kinds["r"] + b"\0", tail + b"\0"]
    first = 4 * (len(tiles) + 1)
    index = struct.pack("<3I", first, first + len(tiles[0]), first + sum(map(len, tiles)))
    sequence = index + b"".join(tiles)
    put("blockdialect", "sequence", bytes([0, 0, 2 - 1, 69 - 1]) + sequence)
    put("bdt", "model", bdt({"config": (0, 0, 0, b"{}"), "norm": (1, 1, 3, floats(3)),
                             "w": (2, 2, 69, sequence)}))
    put("bdt", "empty", bdt({}))
    merge(sequence)


def merge(sequence):
    """Parts of a model of two matrices, and of an evaluation of two documents; the size of the first part, then both."""
    def two(name, first, second):
        put("merge", name, struct.pack("<I", len(first)) + first + second)

    def blocks(i):
        sizes = [f" sequence {len(sequence)}" if i == k else "" for k in (1, 2)]
        graph = f"""graph t
tensor x = input f32 [1, 69]
tensor g = const f32 [69] bytes 276
tensor v = const f32 [2, 69] bytes 552{sizes[0]}
tensor w = const f32 [2, 69] bytes 552{sizes[1]}
node n f32 [1, 69] = rmsnorm x, g epsilon=1e-05
node a f32 [1, 2] = linear n, v
node b f32 [1, 2] = linear n, w
output a
output b
"""
        return bdt({"graph": (0, 0, 0, graph.encode()), "tokens": (0, 0, 0, bytes(16)),
                    "part": (0, 0, 0, f"{i}/2 kinds 3 price 7".encode()), "g": (1, 1, 69, floats(69)),
                    "vw"[i - 1]: (2, 2, 69, sequence)})

    def sums(i):
        facts = {"items": "documents", "arithmetic": "float32", "window": 8, "stride": 0, "tokenizer": 1, "bos": True,
                 "bits_per_weight": 0, "reference": False}
        row = {"item": i - 1, "tokens": 2, "agreed": 0, "right": 0, "nll": 3.5, "nll_squared": 7.0, "reference_nll": 0.0, "kl": 0.0}
        return json.dumps({"part_of": "eval", "shard": i, "shards": 2, "count": 2, "facts": facts, "sums": [row]}).encode()

    two("blocks", blocks(1), blocks(2))
    two("blocks_twice", blocks(1), blocks(1))
    two("sums", sums(1), sums(2))
    two("sums_alone", sums(1), b"")


def bdt(entries):
    """A quantized-model file of name: (encoding, n, k, payload), docs/FORMAT-bdt.md."""
    out, table = b"muc-bdt\0" + struct.pack("<II", 1, 0), b""
    for name, (encoding, n, k, payload) in entries.items():
        out += b"\0" * (-len(out) % 16)
        table += struct.pack("<4I2Q2I", len(name), encoding, n, k, len(out), len(payload),
                             zlib.crc32(payload), 0)
        out += payload
    out += b"\0" * (-len(out) % 16)
    names = "".join(entries).encode()
    table_offset = len(out)
    trailer = struct.pack("<Q5I", table_offset, len(entries), len(names),
                          zlib.crc32(table + names), 0, 0)
    return out + table + names + trailer + struct.pack("<I", zlib.crc32(trailer))


BYTE_PIECES = [f"<0x{b:02X}>" for b in range(256)]
LETTERS = {"\u2581": -3.0, "a": -4.0, "b": -5.0, "ab": -1.0, "\u2581ab": -2.0}


def field(number, content):
    return bytes([number << 3 | 2, len(content)]) + content


def tokenizer_sentencepiece():
    pieces = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3)] + [(b, 0, 6) for b in BYTE_PIECES]
    pieces += [(text, score, 1) for text, score in LETTERS.items()]
    out = b"".join(field(1, field(1, text.encode()) + struct.pack("<BfBB", 0x15, score, 0x18, kind))
                   for text, score, kind in pieces)
    return out + field(2, b"\x18\x02\x98\x02\x01") + field(3, b"\x20\x00")


def tokenizer_llama2c():
    pieces = [("<unk>", 0), ("\n<s>\n", 0), ("\n</s>\n", 0)] + [(b, 0) for b in BYTE_PIECES]
    pieces += [(text.replace("\u2581", " "), score) for text, score in LETTERS.items()]
    return struct.pack("<I", 6) + b"".join(
        struct.pack("<fI", score, len(text)) + text.encode() for text, score in pieces)


def tokenizer_json(cuts=({"type": "ByteLevel", "add_prefix_space": False},), normalizer=None):
    """Byte-level: GPT-2's characters for the bytes, two merges, added tokens of both kinds."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in visible]
    vocab = {chr(b if b in visible else 256 + hidden.index(b)): b for b in range(256)}
    vocab.update({"ab": 256, "\u0120ab": 257})
    return json.dumps({
        "added_tokens": [{"id": 258, "content": "<|endoftext|>", "special": True},
                         {"id": 259, "content": "  ", "special": False}],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cuts},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": ["a b", ["\u0120", "ab"]]}},
        separators=(",", ":"), ensure_ascii=False).encode()


def tokenizer_cuts():
    """Every kind of cut: by expressions with all that they may hold, by strings, by classes of characters."""
    words = (r"(?i:'s|'LL)|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]*\p{Ll}+|\p{N}{1,3}| ?[^\s\p{L}\x00-\x1f\u{3000}]++[\r\n]*+|"
             r"(?:ab?c*?)(?=\S)|\s*[\r\n]+|\s+(?!\S)|.|\s+$")
    return tokenizer_json([
        {"type": "Digits", "individual_digits": True},
        {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "Split", "pattern": {"String": "\n"}, "behavior": "MergedWithPrevious"},
        {"type": "Split", "pattern": {"Regex": words}, "behavior": "Isolated", "invert": False},
        {"type": "Split", "pattern": {"Regex": r"\s+|\S+"}, "behavior": "Removed", "invert": True},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}], {"type": "NFC"})


def tokenizer_wordpiece():
    """Pieces that begin a word and that go on, of letters, a syllable's parts and an ideograph."""
    special = ["[UNK]", "[CLS]", "[SEP]"]
    vocab = [*special, "ab", "##c", "a", "##b", "!", "\u4e2d", "\u1100", "##\u1161", "##"]
    return json.dumps({
        "added_tokens": [{"id": i, "content": text, "special": True} for i, text in enumerate(special)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
        "decoder": {"type": "WordPiece", "prefix": "##"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 9, "vocab": {text: i for i, text in enumerate(vocab)}}}).encode()


def gpt2():
    """The harness's one input: config.json, a zero byte, model.safetensors."""
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 4, "n_layer": 1,
              "n_head": 2, "n_positions": 3, "vocab_size": 5, "n_inner": 2}
    shapes = {"wte.weight": [5, 4], "wpe.weight": [3, 4], "ln_f.weight": [4], "ln_f.bias": [4],
              "h.0.attn.bias": [1, 1, 3, 3], "h.0.attn.c_attn.weight": [4, 12],
              "h.0.attn.c_attn.bias": [12], "h.0.attn.c_proj.weight": [4, 4],
              "h.0.attn.c_proj.bias": [4], "h.0.ln_1.weight": [4], "h.0.ln_1.bias": [4],
              "h.0.ln_2.weight": [4], "h.0.ln_2.bias": [4], "h.0.mlp.c_fc.weight": [4, 2],
              "h.0.mlp.c_fc.bias": [2], "h.0.mlp.c_proj.weight": [2, 4], "h.0.mlp.c_proj.bias": [4]}
    tensors = {f"transformer.{n}": ("F16", s, b"\0\x38" * math.prod(s)) for n, s in shapes.items()}
    return json.dumps(config, separators=(",", ":")).encode() + b"\0" + safetensors(tensors)


def packed(method, parts, **quantization):
    """A Llama or BitNet whose matrices, 32 by 32, are packed by another project: parts of each, (type, shape, bytes)."""
    bitnet = method == "bitnet"
    config = {"architectures": ["BitNetForCausalLM" if bitnet else "LlamaForCausalLM"], "hidden_size": 32,
              "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 2,
              "max_position_embeddings": 4, "hidden_act": "relu2" if bitnet else "silu",
              "quantization_config": {"quant_method": method, **quantization}}
    matrices = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
                "mlp.up_proj", "mlp.down_proj"]
    norms = ["input_layernorm", "post_attention_layernorm"]
    norms += ["self_attn.attn_sub_norm", "mlp.ffn_sub_norm"] if bitnet else []
    tensors = {"model.embed_tokens.weight": ("F16", [2, 32], b"\0\x38" * 64),
               "model.norm.weight": ("F16", [32], b"\0\x38" * 32)}
    tensors |= {f"model.layers.0.{n}.weight": ("F16", [32], b"\0\x38" * 32) for n in norms}
    for name in matrices:
        tensors |= {f"model.layers.0.{name}.{part}": value for part, value in parts.items()}
    return json.dumps(config, separators=(",", ":")).encode() + b"\0" + safetensors(tensors)


def packed_models():
    words, halves = lambda *s: ("I32", list(s), b"\x87" * 4 * math.prod(s)), lambda *s: (
        "F16", list(s), b"\0\x38" * math.prod(s))
    order = ("I32", [32], b"".join(struct.pack("<I", i % 2) for i in range(32)))
    put("hf", "gptq", packed("gptq", {"qweight": words(4, 32), "qzeros": words(2, 4), "scales": halves(2, 32),
                                      "g_idx": order}, bits=4, group_size=16))
    put("hf", "awq", packed("awq", {"qweight": words(32, 4), "qzeros": words(1, 4), "scales": halves(1, 32)}, bits=4,
                            group_size=32, version="gemm"))
    groups = {"group_0": {"weights": {"num_bits": 4, "type": "int"}}}
    put("hf", "compressed", packed("compressed-tensors", {
        "weight_packed": words(32, 4), "weight_scale": halves(32, 2), "weight_zero_point": words(4, 2),
        "weight_shape": ("I64", [2], struct.pack("<2Q", 32, 32))}, format="pack-quantized", config_groups=groups))
    groups = {"group_0": {"weights": {"num_bits": 8, "type": "int"}}}
    put("hf", "bytes", packed("compressed-tensors", {
        "weight": ("I8", [32, 32], b"\x87" * 1024), "weight_scale": halves(32, 1)}, format="int-quantized",
        config_groups=groups))
    put("hf", "bitnet", packed("bitnet", {"weight": ("U8", [8, 32], b"\x64" * 256), "weight_scale": halves(1)}))


def language_model():
    """A Llama of dim 4 for the tokenizer that the harness has: config.json, a zero byte, model.safetensors."""
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4, "intermediate_size": 4,
              "num_hidden_layers": 1, "num_attention_heads": 1, "max_position_embeddings": 4, "vocab_size": 260,
              "rms_norm_eps": 1e-5, "tie_word_embeddings": True}
    layer = {"self_attn.q_proj": [4, 4], "self_attn.k_proj": [4, 4], "self_attn.v_proj": [4, 4],
             "self_attn.o_proj": [4, 4], "mlp.gate_proj": [4, 4], "mlp.up_proj": [4, 4], "mlp.down_proj": [4, 4],
             "input_layernorm": [4], "post_attention_layernorm": [4]}
    shapes = {"embed_tokens": [260, 4], "norm": [4], **{f"layers.0.{n}": s for n, s in layer.items()}}
    tensors = {f"model.{n}.weight": ("BF16", s, b"\0\x3f" * math.prod(s)) for n, s in shapes.items()}
    return json.dumps(config, separators=(",", ":")).encode() + b"\0" + safetensors(tensors)


CHIP_GRAPH = b"""graph tiny
tensor x = input f32 [1, 4, 4, 2]
tensor w = const f32 [3, 2, 2, 2] values """ + b", ".join(b"%d" % i for i in range(-12, 12)) + b"""
node c f32 [1, 3, 3, 3] = conv x, w channels_last=1
node r f32 [1, 3, 3, 3] = relu c
node p f32 [1, 1, 1, 3] = max_pool r kernel=[2, 2] strides=[2, 2] channels_last=1
node s f32 [1, 1, 1, 3] = softmax p axis=3
output s
"""


def road():
    """A byte for the target and its options, then a file of another harness's corpus or a language model."""
    for name in ("onnx/conv", "onnx/attention", "onnx/shapes", "tflite/conv", "tflite/lstm", "tflite/svdf",
                 "keras/one_chunk", "keras/heap"):
        put("road", name.replace("/", "_"), b"\0" + (CORPUS / name).read_bytes())
    for way in (0, 1, 3, 5):
        put("road", f"graph_{way}", bytes([way]) + CHIP_GRAPH)
    put("road", "language_model", b"\4" + language_model())


def folder():
    """The name of a file, a line end, what it holds instead."""
    put("folder", "code", b"mcu/tiny.json\n{}")
    put("folder", "files", b"mcu/FILES\n0 tiny.json\n")
    put("folder", "host", b"chip/host_0.graph\ngraph host\ntensor a = input f32 [1, 1, 2, 2]\n"
                          b"node t f32 [1, 1, 2, 2] = tanh a\noutput t\n")


def tokenizer_two_files():
    """vocab.json, a zero byte, merges.txt."""
    whole = json.loads(tokenizer_json())
    vocab = {**whole["model"]["vocab"], "<|endoftext|>": 258}
    merges = "#version: 0.2\na b\n\u0120 ab\r\n"
    return json.dumps(vocab, separators=(",", ":")).encode() + b"\0" + merges.encode()


def tokenizer_form():
    """The compiled form, from its descriptions in mur_tokenizer.h and mur_split.h: the bytes, ab, and <s>; text
    is cut before spaces."""
    texts = [bytes([b]) for b in range(256)] + [b"ab", b"<s>"]
    pieces, start = b"", 0
    for i, text in enumerate(texts):
        kind = 3 if text == b"<s>" else 1
        pieces += struct.pack("<II", start | kind << 28, 1 if i > ord("a") else 0)
        start += len(text)
    pieces += struct.pack("<II", start, 1)
    merges = struct.pack("<II", ord("b") | (256 & 0xFFF) << 20, 256 >> 12)
    rest = struct.pack("<256I", *range(256)) + struct.pack("<II", 257 | 3 << 20, 258)
    text = b"".join(texts) + b"\0" * (-start % 4)
    match, other, space = 0x8000, 0, 1  # after the start: any character; then none but others
    split = struct.pack("<7I", 1, 3, 2, other, ord(" ") << 8 | space, (ord(" ") + 1) << 8 | other, 3)
    split += struct.pack("<10H", 0, 0, 0, 2, 2, 0, 2, match, match, 0)
    size = 52 + len(pieces) + len(merges) + len(rest) + len(split) + len(text)
    byte_alphabet, add_bos, none = 1, 8, 0xFFFFFFFF
    return struct.pack("<13I", 0x4B4F544D, 2, size, len(texts), 1, 0, 1, len(split) // 4, start,
                       byte_alphabet | add_bos, 257, none, none) + pieces + merges + rest + split + text


def flat_table(fields):
    """A writer of a flatbuffer's table: fields is {slot: (format, scalar) or a writer}."""
    def write(out):
        slots, size = max(fields, default=-1) + 1, 4
        inline, entries = b"", [0] * slots
        for slot, field in fields.items():
            entries[slot] = size
            cell = struct.pack("<" + field[0], field[1]) if isinstance(field, tuple) else bytes(4)
            inline += cell
            size += len(cell)
        vtable = struct.pack(f"<{2 + slots}H", 4 + 2 * slots, size, *entries)
        out += vtable
        at = len(out)
        out += struct.pack("<i", len(vtable)) + inline
        for slot, field in fields.items():
            if not isinstance(field, tuple):
                cell = at + entries[slot]
                struct.pack_into("<I", out, cell, field(out) - cell)
        return at
    return write


def flat_vector(form, items):
    """A writer of a vector: of scalars of the format, or of writers where it is None."""
    def write(out):
        at = len(out)
        out += struct.pack("<I", len(items))
        out += bytes(4 * len(items)) if form is None else struct.pack(f"<{len(items)}{form}", *items)
        for i, item in enumerate(items if form is None else ()):
            cell = at + 4 + 4 * i
            struct.pack_into("<I", out, cell, item(out) - cell)
        return at
    return write


def flat_text(text):
    return flat_vector("B", text.encode())


VARIABLE = object()  # data of a tensor that a network keeps


def tflite_graph(tensors, operators, inputs, outputs, buffers, all_codes):
    """As tflite's; adds to buffers, of which the first is empty."""
    tables = []
    for name, kind, shape, scales, zeros, data in tensors:
        fields = {0: flat_vector("i", shape), 1: ("b", kind), 3: flat_text(name),
                  7: flat_vector("i", [-1] + shape[1:])}
        if scales:
            fields[4] = flat_table({2: flat_vector("f", scales), 3: flat_vector("q", zeros)})
        if data is VARIABLE:
            fields[5] = ("B", 1)
        elif data is not None:
            fields[2] = ("I", len(buffers))
            buffers.append(flat_table({0: flat_vector("B", data)}))
        tables.append(flat_table(fields))
    rows = [flat_table({0: ("I", all_codes.index((code, version))), 1: flat_vector("i", reads),
                        2: flat_vector("i", writes), 3: ("B", option), 4: flat_table(options)})
            for code, version, reads, writes, option, options in operators]
    return flat_table({0: flat_vector(None, tables), 1: flat_vector("i", inputs),
                       2: flat_vector("i", outputs), 3: flat_vector(None, rows)})


def tflite(*graphs):
    """graphs: tensors, operators, inputs and outputs of each; tensors: (name, type, shape, scales,
    zero points, data); operators: (code, version, inputs, outputs, option, options)."""
    buffers = [flat_table({})]
    codes = sorted({(code, version) for _, operators, *_ in graphs for code, version, *_ in operators})
    tables = [flat_vector(None, [tflite_graph(*g, buffers, codes) for g in graphs])]
    codes = [flat_table({0: ("b", min(code, 127)), 2: ("i", version), 3: ("i", code)})
             for code, version in codes]
    model = flat_table({0: ("I", 3), 1: flat_vector(None, codes), 2: tables[0],
                        4: flat_vector(None, buffers)})
    out = bytearray(b"\0\0\0\0TFL3")
    struct.pack_into("<I", out, 0, model(out))
    return bytes(out)


def tflite_models():
    """An int8 convolution 2x2 with a fused ReLU, then a softmax; a float addition."""
    int8, int32, float32 = 9, 2, 0
    put("tflite", "conv", tflite((
        [("x", int8, [1, 3, 3, 1], [0.5], [-3], None),
         ("w", int8, [2, 2, 2, 1], [0.25, 0.125], [0, 0], bytes(range(250, 256)) + b"\1\2"),
         ("b", int32, [2], [0.125, 0.0625], [0, 0], struct.pack("<2i", 5, -7)),
         ("y", int8, [1, 2, 2, 2], [0.75], [4], None),
         ("z", int8, [1, 2, 2, 2], [1 / 256], [-128], None)],
        [(3, 3, [0, 1, 2], [3], 1, {0: ("b", 1), 1: ("i", 1), 2: ("i", 1), 3: ("b", 1)}),
         (25, 2, [3], [4], 9, {0: ("f", 1.0)})], [0], [4])))
    put("tflite", "add", tflite((
        [("a", float32, [2, 3], [], [], None), ("b", float32, [3], [], [], floats(3)),
         ("c", float32, [2, 3], [], [], None)],
        [(0, 1, [0, 1], [2], 11, {0: ("b", 3)})], [0], [2])))
    tflite_states(int8, int32, float32)


def tflite_states(int8, int32, float32):
    """Networks that keep something: SVDF and LSTM of integers and of floats, resource variables."""
    int16, resource = 7, 13
    put("tflite", "svdf", tflite((
        [("x", int8, [1, 3], [0.5], [-3], None), ("f", int8, [4, 3], [0.25], [0], bytes(range(12))),
         ("t", int16, [4, 2], [0.125], [0], bytes(range(16))),
         ("b", int32, [2], [0.5], [0], struct.pack("<2i", 5, -7)),
         ("s", int16, [1, 8], [4.0], [0], VARIABLE), ("y", int8, [1, 2], [8.0], [1], None)],
        [(27, 3, [0, 1, 2, 3, 4], [5], 6, {0: ("i", 2), 1: ("b", 1)})], [0], [5])))
    put("tflite", "svdf_float", tflite((
        [("x", float32, [1, 3], [], [], None), ("f", float32, [4, 3], [], [], floats(12)),
         ("t", float32, [4, 2], [], [], floats(8)), ("s", float32, [1, 8], [], [], VARIABLE),
         ("y", float32, [1, 4], [], [], None)],
        [(27, 1, [0, 1, 2, -1, 3], [4], 6, {0: ("i", 1), 1: ("b", 0)})], [0], [4])))
    for name, kind, cell, scale in (("lstm", int8, int16, [2 ** -6]), ("lstm_float", float32, float32,
                                                                         [])):
        data = (lambda n: bytes(range(1, n + 1))) if scale else floats
        bias = int32 if scale else float32
        zero = [0] * len(scale)
        put("tflite", name, tflite((
            [("x", kind, [1, 2, 2], scale, zero, None)] +
            [(f"w{i}", kind, [2, 2], scale, zero, data(4)) for i in range(8)] +
            [(f"b{i}", bias, [2], [], [], struct.pack("<2i", 9, -9) if scale else floats(2))
             for i in range(4)] +
            [("h", kind, [1, 2], scale, zero, VARIABLE),
             ("c", cell, [1, 2], [2 ** -12] if scale else [], zero, VARIABLE),
             ("y", kind, [1, 2, 2], scale, zero, None)],
            [(44, 1, list(range(9)) + [-1] * 3 + list(range(9, 13)) + [-1, -1, 13, 14] + [-1] * 4,
              [15], 71, {0: ("b", 4), 1: ("f", 10.0), 2: ("f", 0.0), 3: ("B", 0)})], [0], [15])))
    handle = (142, 1, [], [1], 111, {1: flat_text("kept")})
    put("tflite", "variable", tflite(
        ([("x", float32, [2], [], [], None), ("v", resource, [1], [], [], None),
          ("r", float32, [2], [], [], None), ("y", float32, [2], [], [], None)],
         [(129, 1, [], [], 103, {0: ("i", 1)}), handle, (143, 1, [1], [2], 112, {}),
          (0, 1, [0, 2], [3], 11, {}), (144, 1, [1, 3], [], 113, {})], [0], [3]),
        ([("z", float32, [2], [], [], bytes(8)), ("v", resource, [1], [], [], None)],
         [handle, (144, 1, [1, 0], [], 113, {})], [], [])))


def npz():
    def npy(descr, dims, data):
        head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims!r}, }}"
        head += " " * (-(10 + len(head) + 1) % 16) + "\n"
        return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data

    def archive(method, **arrays):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as z:
            for name, data in arrays.items():
                z.writestr(zipfile.ZipInfo(name + ".npy"), data, method)
        return out.getvalue()

    x, y = npy("<f4", (2,), floats(2)), npy("|i1", (), b"\x7f")
    put("npz", "stored", archive(zipfile.ZIP_STORED, x=x, y=y))
    put("npz", "deflated", archive(zipfile.ZIP_DEFLATED, x=x))


def images():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def png(width, height, depth, colour, rows, *more):
        head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(more) +
                chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))

    put("image", "grey.png", png(3, 2, 8, 0, [b"\0\x80\xff", b"\1\2\3"]))
    put("image", "colour.png", png(2, 2, 8, 2, [b"\xff\0\0\0\xff\0", b"\0\0\xff\x40\x50\x60"]))
    put("image", "alpha.png", png(1, 2, 8, 6, [b"\x11\x22\x33\0", b"\x11\x22\x33\xff"]))
    put("image", "palette.png", png(2, 1, 1, 3, [b"\x40"], chunk(b"PLTE", b"\x10\x20\x30\x40\x50\x60")))
    put("image", "bits_16.png", png(1, 1, 16, 0, [b"\x80\x00"]))
    put("image", "cut_off.png", png(3, 2, 8, 0, [b"\0\x80\xff"]))
    put("image", "enormous.png", png(1 << 30, 1 << 30, 8, 2, [b"\0"]))
    put("image", "grey.pgm", b"P5 # a comment\n3 2\n255\n\0\x80\xff\1\2\3")
    put("image", "text.ppm", b"P3\n1 1\n15\n0 7\t15\n")
    put("image", "bits_16.ppm", b"P6 1 1 65535\n\x80\0\xff\xff\0\0")
    put("image", "cut_off.pgm", b"P5 60000 60000 255\n\0")
    put("image", "too_great.pgm", b"P2 1 1 99999 3")


def recordings():
    def wav(coding, channels, bits, data, *more, says=None):
        form = struct.pack("<HHIIHH", coding, channels, 16000, 16000 * channels * bits // 8, channels * bits // 8, bits)
        chunks = b"".join(more) + b"fmt " + struct.pack("<I", len(form)) + form
        return b"RIFF\0\0\0\0WAVE" + chunks + b"data" + struct.pack("<I", len(data) if says is None else says) + data

    put("wav", "mono.wav", wav(1, 1, 16, b"\1\0\2\0\xff\x7f\0\x80"))
    put("wav", "stereo.wav", wav(1, 2, 16, b"\1\0\2\0\xff\x7f\0\x80", b"LIST\3\0\0\0abc\0"))
    put("wav", "of_a_pipe.wav", wav(1, 1, 16, b"\1\0\2\0", says=0xffffffff))
    put("wav", "float.wav", wav(3, 1, 32, b"\0\0\x80\x3f"))
    put("wav", "no_format.wav", b"RIFF\0\0\0\0WAVEdata\2\0\0\0\1\0")
    put("wav", "long_chunk.wav", b"RIFF\0\0\0\0WAVEjunk\xff\xff\xff\xff")


def requests():
    put("http", "browser", b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: text/html,*/*;q=0.8\r\nConnection: keep-alive\r\n\r\n")
    put("http", "old_head", b"HEAD / HTTP/1.0\r\n\r\n")
    put("http", "two_hosts", b"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n")
    put("http", "no_field", b"GET / HTTP/1.1\r\nHost\r\n\r\n")
    put("http", "another_path", b"GET /favicon.ico?x HTTP/1.1\r\nHost: x\r\n\r\nmore")
    put("http", "cut_off", b"GET / HTTP/1.1\r\nHost: x\r\n\r")


def main():
    npz()
    images()
    recordings()
    requests()
    for name, data in [*onnx_seeds.models(), *onnx_seeds.refused()]:
        put("onnx", name, data)
    tflite_models()
    put("tokenizer", "sentencepiece", tokenizer_sentencepiece())
    put("tokenizer", "llama2c", tokenizer_llama2c())
    put("tokenizer", "huggingface", tokenizer_json())
    put("tokenizer", "cuts", tokenizer_cuts())
    put("tokenizer", "wordpiece", tokenizer_wordpiece())
    put("tokenizer", "two_files", tokenizer_two_files())
    put("tokenizer", "form", tokenizer_form())
    put("hf", "gpt2", gpt2())
    packed_models()
    road()
    folder()
    blockdialect()
    llama2c()
    put("gguf", "model", gguf(3, True))
    put("gguf", "model_version_2", gguf(2, False))
    gguf_families()
    put("gguf", "blocks", gguf_blocks())
    put("safetensors", "empty", safetensors({}))
    put("safetensors", "floats", safetensors({
        "a": ("F32", [2, 1], floats(2)), "b": ("BF16", [3], b"\0\x3f" * 3),
        "c": ("F16", [], b"\0\x38"), "d": ("F32", [0, 7], b"")}, {"format": "pt"}))
    put("safetensors", "integers", safetensors({
        "i8": ("I8", [3], b"\1\2\3"), "i64": ("I64", [1], b"\1" * 8), "bool": ("BOOL", [1], b"\1")}))


if __name__ == "__main__":
    main()
