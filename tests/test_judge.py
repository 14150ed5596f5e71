#!/usr/bin/env python3
"""Logits of each family beside llama.cpp's, from the same Hugging Face folder and from the GGUF file that llama.cpp's own script makes
of it; a feature that is left out must show. Prints TAP.

    MUC_LLAMA_CPP=FOLDER tests/test_judge.py MUC LOGITS_OF [--table]

FOLDER is one in which `npm install node-llama-cpp` ran; without it everything is skipped. LOGITS_OF is tests/logits_of.c, built. With
--table the differences are printed as in docs/LANGUAGE.md. What llama.cpp does not have is compared with families.py alone.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "oracle"))

import families
import gpt2

TEXT = "hello the world's worth: 42 hells"
PEER = os.environ.get("MUC_LLAMA_CPP")
EVEN = {"hidden_size": 32, "head_dim": "absent"}  # where llama.cpp takes heads of dim / heads
USUAL = {"rope_theta": "absent"}  # llama.cpp's script leaves it out: both take 10,000


LONG = {"type": "longrope", "short_factor": [1.0, 1.3, 1.6], "long_factor": [1.5, 2.0, 4.0],
        "original_max_position_embeddings": 12}


def like(name, **more):
    values = {**families.FAMILIES[name], **more}
    return {k: v for k, v in values.items() if v != "absent"}


# name: the configuration, what may be left out of it and must show, whether llama.cpp has its GELU from a table of halves
CASES = {
    "llama": (like("llama"), {"rope_theta": 10000.0}, False),
    "llama, biases": (like("llama-biases"), {}, False),
    "llama, linear RoPE": (like("llama-linear"), {"rope_scaling": None}, False),
    "llama, dynamic RoPE": (like("llama-dynamic"), {}, False),
    "llama, YaRN": (like("llama-yarn"), {"rope_scaling": None}, False),
    "llama, llama3 RoPE": (like("llama-llama3"), {"rope_scaling": None}, False),
    "mistral": (like("mistral", sliding_window=None), {}, False),
    "qwen2": (like("qwen2", **EVEN, use_sliding_window=False, sliding_window=None), {}, False),
    "qwen3": (like("qwen3"), {}, False),
    "gemma": (like("gemma", **USUAL), {}, True),
    "gemma2": (like("gemma2", **USUAL, query_pre_attn_scalar=8), {
        "sliding_window": 48, "attn_logit_softcapping": None, "final_logit_softcapping": None}, True),
    "gemma3": (like("gemma3", num_hidden_layers=6, sliding_window_pattern=6, query_pre_attn_scalar=8), {
        "sliding_window": 48, "rope_local_base_freq": 10000.0, "rope_scaling": None}, True),
    "phi3": (like("phi3", sliding_window=None, original_max_position_embeddings=48), {}, False),
    "phi3, longrope": (like("phi3", sliding_window=None, rope_scaling=LONG), {"rope_scaling": None}, False),
    "olmo2": (like("olmo2", **EVEN), {}, False),
    "granite": (like("granite", **EVEN), {"embedding_multiplier": 1.0, "residual_multiplier": 1.0,
                                          "attention_multiplier": 0.3, "logits_scaling": 1.0}, False),
    "smollm3": (like("smollm3", no_rope_layers=[1, 1, 1, 0]), {"no_rope_layers": [1, 1, 1, 1]}, False),
    "bitnet": (like("bitnet", **EVEN, tie_word_embeddings=True, hidden_act="silu"), {"hidden_act": "relu2"}, False),
    "gpt2": (gpt2.config_of(), {"layer_norm_epsilon": 0.5}, True),
    "gpt-neox": (like("gpt-neox"), {"rotary_pct": 0.5}, True),
    "gpt-neox, in turn": (like("gpt-neox-in-turn", **USUAL), {"use_parallel_residual": True}, True),
}
OTHERS = ["mobilellm-ls", "llama4", "gpt-neo", "opt"]  # llama.cpp has none of them, and Llama 4 with experts alone


def logits_of(path, ids):
    import numpy
    done = subprocess.run([sys.argv[2], path, *map(str, ids)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return numpy.frombuffer(done.stdout, "<f4").reshape(len(ids), -1)


def drawn(c):
    return gpt2.random_weights(c, 1) if c["model_type"] == "gpt2" else families.random_weights(c)


def write_folder(folder, c, weights):
    if c["model_type"] != "gpt2":
        return families.write_folder(folder, c, weights)
    gpt2.write_folder(folder, c, weights)
    gpt2.write_tokenizer(folder, one_file=True)


def second_opinion(c, weights, ids):
    import numpy
    if c["model_type"] == "gpt2":
        model = gpt2.Model(c, weights)
        return numpy.array([model.feed(token) for token in ids])
    model = families.Model({"rope_theta": 10000.0, **c}, weights)
    return numpy.array([model.logits(token) for token in ids])


def difference(a, b):
    return float(abs(a - b).max())


def named_for_llama_cpp(weights):
    """its script knows BitNet's norms by the names of another checkpoint"""
    return {name.replace("mlp.ffn_sub_norm", "mlp.ffn_layernorm").replace("attn_sub_norm", "inner_attn_ln"): t
            for name, t in weights.items()}


def ternary(weights):
    """its script also rounds BitNet's matrices to -1, 0, 1 times their mean magnitude"""
    out = dict(weights)
    for name, rows in weights.items():
        if "_proj" in name:
            mean = sum(abs(v) for v in gpt2.flat(rows)) / len(gpt2.flat(rows))
            out[name] = [gpt2.rounded([max(-1, min(1, round(v / mean))) * mean for v in row], "F32") for row in rows]
    return out


def judge(name, folder, peer):
    """differences of muc on the folder and on the GGUF file from llama.cpp, of muc from families.py, largest logit"""
    import llama_cpp
    c, left_out, is_coarse = CASES[name]
    ids, weights = gpt2.encode(TEXT), drawn(c)
    write_folder(folder, c, named_for_llama_cpp(weights))
    llama_cpp.convert(peer, folder, folder / "model.gguf")
    weights = ternary(weights) if name == "bitnet" else weights
    write_folder(folder, c, weights)
    expected = llama_cpp.logits(peer, folder / "model.gguf", ids)
    mine, from_gguf = logits_of(folder, ids), logits_of(folder / "model.gguf", ids)
    largest, limit = float(abs(expected).max()), (2e-3 if is_coarse else 2e-5)
    rows = difference(mine, expected), difference(from_gguf, expected), difference(mine, second_opinion(c, weights, ids))
    for what, found in zip(("the folder", "the GGUF file"), rows):
        assert found <= limit * largest, f"{what} differs from llama.cpp by {found} of {largest}"
    assert rows[2] <= 2e-5 * largest, f"the folder differs from families.py by {rows[2]} of {largest}"
    for key, value in left_out.items():
        write_folder(folder, {**c, key: value}, weights)
        found = difference(logits_of(folder, ids), expected)
        assert found > 3 * limit * largest, f"without {key} the logits differ by {found} of {largest} only"
    return (*rows, largest)


def packings():
    """name: quantization_config, how matrices are drawn and packed, whether products take activations of 8 bits"""
    from test_packed import compressed, gptq
    bitnet = {"quant_method": "bitnet", "linear_class": "bitlinear", "quantization_mode": "offline"}
    rows = compressed(8, "int-quantized", strategy="channel")
    return {
        "gptq": (gptq(), lambda d, *m: d.gptq(*m, zero=5), False),
        "gptq, desc_act": (gptq(desc_act=True), lambda d, *m: d.gptq(*m, zero=8, order=True), False),
        "gptq, 8 bits": (gptq(8), lambda d, *m: d.gptq(*m, bits=8, zero=100), False),
        "gptq_v2": (gptq(checkpoint_format="gptq_v2"), lambda d, *m: d.gptq(*m, less_one=False), False),
        "compressed-tensors": (compressed(group_size=32), lambda d, *m: d.compressed(*m), False),
        "compressed-tensors, zeros": (compressed(group_size=32, symmetric=False),
                                      lambda d, *m: d.compressed(*m, symmetric=False), False),
        "compressed-tensors, rows": (rows, lambda d, *m: d.compressed(*m, bits=8, group=None, packed=False), True),
        "bitnet, packed": (bitnet, lambda d, *m: d.bitnet(*m), True),
    }


def judge_packing(peer, config, pack, is_coarse):
    """llama.cpp's script unpacks the same matrices: as the packed folder, and as one of the numbers that were packed"""
    import llama_cpp
    from test_packed import LLAMA, folders

    def numbers(*drawn):
        _, values, _, scales = pack(*drawn)
        return {drawn[1]: values}, values, None, scales

    def long_order(tensors):  # older versions of PyTorch index by these alone
        tensors |= {name: t.astype("int64") for name, t in tensors.items() if name.endswith("g_idx")}

    ids, theirs = gpt2.encode(TEXT), folders(LLAMA, config, pack, change=long_order)[0]
    llama_cpp.convert(peer, theirs, theirs / "model.gguf")
    expected = llama_cpp.logits(peer, theirs / "model.gguf", ids)
    largest = float(abs(expected).max())
    packed = difference(logits_of(folders(LLAMA, config, pack)[0], ids), expected)
    unpacked = difference(logits_of(folders(LLAMA, None, numbers)[0], ids), expected)
    assert unpacked <= 2e-5 * largest, f"the numbers differ from llama.cpp's by {unpacked} of {largest}"
    assert is_coarse or packed <= 2e-5 * largest, f"the folder differs from llama.cpp by {packed} of {largest}"
    return None if is_coarse else packed, difference(logits_of(theirs / "model.gguf", ids), expected), unpacked, largest


def compare_alone(name, folder):
    c, ids = families.FAMILIES[name], gpt2.encode(TEXT)
    weights = families.random_weights(c)
    families.write_folder(folder, c, weights)
    mine, expected = logits_of(folder, ids), second_opinion(c, weights, ids)
    return None, None, difference(mine, expected), float(abs(expected).max())


def main():
    if not PEER:
        print("1..0 # SKIP MUC_LLAMA_CPP names no folder with node-llama-cpp")
        return 0
    packed = packings()
    names = [*CASES, *OTHERS, *packed]
    table = "--table" in sys.argv
    print("| family | folder | GGUF file | second implementation | largest logit |\n|---|---|---|---|---|" if table
          else f"1..{len(names)}")
    failed = False
    for i, name in enumerate(names):
        try:
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                rows = judge(name, folder, pathlib.Path(PEER)) if i < len(CASES) else compare_alone(name, folder) \
                    if name in OTHERS else judge_packing(pathlib.Path(PEER), *packed[name])
            if table:
                print(f"| {name} | " + " | ".join("-" if v is None else f"{v:.1e}" for v in rows[:3]) + f" | {rows[3]:.1f} |",
                      flush=True)
            else:
                print(f"ok {i + 1} - {name}", flush=True)
        except AssertionError as problem:
            failed = True
            print(f"not ok {i + 1} - {name}\n# " + str(problem).replace("\n", "\n# "), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
