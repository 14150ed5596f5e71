#!/usr/bin/env python3
"""Matrices as GPTQ, AWQ, compressed-tensors and BitNet pack them, against the numbers that NumPy packed. Prints TAP.

    tests/test_packed.py MUC      from the source root
"""
import filecmp
import json
import pathlib
import sys
import tempfile

from files import MALFORMED, ROOT, UNSUPPORTED, Skip, muc, run_tests

sys.path.insert(0, str(ROOT / "tests/oracle"))
try:
    import numpy as np
    import packed_weights
except ImportError:
    np = None
import families  # noqa: E402
import gpt2  # noqa: E402

WORK = tempfile.TemporaryDirectory()
TEXT = pathlib.Path(WORK.name) / "text.txt"
TEXT.write_text("hello the world's worth: 42 hells")
SIZES = {"hidden_size": 64, "head_dim": 16, "intermediate_size": 96}
LLAMA = families.config("LlamaForCausalLM", "llama", **SIZES)
BITNET = families.config("BitNetForCausalLM", "bitnet", **SIZES, hidden_act="relu2")
PHI = families.config("Phi3ForCausalLM", "phi3", **SIZES)
NEOX = families.config("GPTNeoXForCausalLM", "gpt_neox", **families.NO_KV, layer_norm_eps=1e-5,
                       hidden_size=64, intermediate_size=96, hidden_act="gelu", rotary_pct=0.25)
INT8 = {"quant_method": "muc", "weights": "int8", "embedding": "int8"}


def compressed(bits=4, form="pack-quantized", **more):
    weights = {"num_bits": bits, "type": "int", "symmetric": True, "strategy": "group"}
    return {"quant_method": "compressed-tensors", "format": form,
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": {**weights, **more}}}}


def gptq(bits=4, **more):
    return {"quant_method": "gptq", "bits": bits, "group_size": 32, "desc_act": False, **more}


def is_matrix(name):
    return name.endswith(".weight") and ".layers." in name and "norm" not in name


def folders(c, config, pack, seed=1, change=None):
    """The model with its matrices packed, and beside it with their numbers (or with levels and scales as muc has them,
    where a row has one scale)."""
    if np is None:
        raise Skip("no NumPy")
    draw = packed_weights.Draw(seed)
    rows, files = families.random_weights(c), ({}, {})
    levels_too = True
    for name, t in rows.items():
        if not is_matrix(name):
            for tensors in files:
                tensors[name] = np.array(t, np.float32)
            continue
        stored, dense, levels, scales = pack(draw, name, len(t), len(t[0]))
        files[0].update(stored)
        levels_too = levels is not None and scales.shape[1] == 1 and abs(levels).max() <= 127
        files[1].update({name: levels.astype(np.int8), name + "_scale": scales[:, 0]} if levels_too
                        else {name: dense})
    if change:
        change(files[0])
    out = []
    for tensors, quantization in zip(files, (config, INT8 if levels_too else None)):
        folder = pathlib.Path(tempfile.mkdtemp(dir=WORK.name)) / "model"
        folder.mkdir()
        packed_weights.write(folder / "model.safetensors", tensors)
        text = {**c, "quantization_config": quantization} if quantization else c
        (folder / "config.json").write_text(json.dumps(text))
        gpt2.write_tokenizer(folder, one_file=True)
        out.append(folder)
    return out


def perplexity(folder):
    return json.loads(muc("eval", folder, "--text", TEXT, "--json"))["perplexity"]


def same(c, config, pack, **more):
    packed, numbers = folders(c, config, pack, **more)
    found, expected = perplexity(packed), perplexity(numbers)
    assert found == expected, f"{config}: {found}, expected {expected}"
    return packed, numbers


def is_shown(folder, kind):
    shown = muc("inspect", folder)
    assert f" {kind}" in shown, f"no {kind} in {shown}"


def test_gptq_has_zeros_less_one_in_its_first_version():
    for bits in (2, 4, 8):
        for less_one, form in ((True, "gptq"), (False, "gptq_v2")):
            same(LLAMA, gptq(bits, checkpoint_format=form), seed=bits,
                 pack=lambda d, *m: d.gptq(*m, bits=bits, less_one=less_one))


def test_gptq_orders_columns_and_has_rows_of_one_group():
    same(LLAMA, gptq(desc_act=True), lambda d, *m: d.gptq(*m, order=True))
    same(LLAMA, gptq(group_size=-1), lambda d, *m: d.gptq(*m, group=-1))
    same(LLAMA, gptq(8, group_size=-1), lambda d, *m: d.gptq(*m, bits=8, group=-1))
    same(LLAMA, gptq(8, group_size=-1, sym=True),
         lambda d, *m: d.gptq(*m, bits=8, group=-1, zero=128))
    same(LLAMA, gptq(group_size=16), lambda d, *m: d.gptq(*m, group=16))


def test_symmetric_groups_stay_blocks():
    folder, _ = same(LLAMA, gptq(), lambda d, *m: d.gptq(*m, zero=8))
    is_shown(folder, "q4_0")
    folder, _ = same(LLAMA, gptq(8), lambda d, *m: d.gptq(*m, bits=8, zero=128))
    is_shown(folder, "q8_0")
    folder, _ = same(LLAMA, compressed(), lambda d, *m: d.compressed(*m))
    is_shown(folder, "q4_0")


def test_awq_takes_its_columns_by_turns():
    same(LLAMA, {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True},
         lambda d, *m: d.awq(*m))
    same(LLAMA, {"quant_method": "awq", "w_bit": 4, "q_group_size": 16, "version": "GEMM"},
         lambda d, *m: d.awq(*m, group=16))


def test_compressed_tensors_are_words_or_bytes():
    for bits in (4, 8):
        same(LLAMA, compressed(bits), lambda d, *m: d.compressed(*m, bits=bits))
        same(LLAMA, compressed(bits, symmetric=False),
             lambda d, *m: d.compressed(*m, bits=bits, symmetric=False))
        same(LLAMA, compressed(bits, strategy="channel"),
             lambda d, *m: d.compressed(*m, bits=bits, group=None))
        same(LLAMA, compressed(bits, actorder="group"),
             lambda d, *m: d.compressed(*m, bits=bits, order=True))
    for symmetric in (True, False):
        same(LLAMA, compressed(8, "int-quantized", strategy="channel"),
             lambda d, *m: d.compressed(*m, bits=8, group=None, packed=False, symmetric=symmetric))
    odd = {**LLAMA, "intermediate_size": 92}  # a row's last word is not full
    same(odd, compressed(strategy="channel"), lambda d, *m: d.compressed(*m, group=None))


def test_packed_matrices_reach_code():
    for group in (32, -1):
        packed, _ = folders(LLAMA, gptq(group_size=group), lambda d, *m: d.gptq(*m, group=group))
        code = packed / "c"
        muc("compile", packed, "--target", "mcu", "-o", code)
        muc("verify", code, packed)
        assert abs(perplexity(code) / perplexity(packed) - 1) < 0.05, group


def test_bitnet_divides_by_its_scale_or_multiplies():
    for linear, inverse in (("bitlinear", True), ("autobitlinear", False)):
        config = {"quant_method": "bitnet", "linear_class": linear, "quantization_mode": "offline"}
        packed, numbers = same(BITNET, config, lambda d, *m: d.bitnet(*m, inverse=inverse))
    # the same code and weights for a microcontroller, also of the numbers as floats: no second rounding
    def pack_floats(d, name, *sizes):
        _, values, _, scales = d.bitnet(name, *sizes, inverse=False)
        return {name: values}, values, None, scales

    floats, _ = folders(BITNET, None, pack_floats)
    for folder in (packed, numbers, floats):
        muc("compile", folder, "--target", "mcu", "-o", folder / "c")
    for folder in (numbers, floats):
        assert filecmp.cmp(packed / "c/model.c", folder / "c/model.c", shallow=False)
    assert "mur_host_linear_bd(" in (packed / "c/model.c").read_text()


def test_bitnet_before_it_is_packed_is_rounded():
    config = {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "online"}

    def pack(d, name, rows, columns):
        w = d.rng.normal(0, 0.1, (rows, columns)).astype(np.float32)
        mean = np.abs(w.astype(np.float64)).mean().astype(np.float32)
        # as a fp16 scale, for muc's own form: 3 significant digits of the mean are moved into w
        w *= np.float32(np.float16(mean)) / mean
        levels = np.clip(np.rint(w / np.abs(w.astype(np.float64)).mean()), -1, 1).astype(int)
        return {name: w}, None, levels, np.full((rows, 1), mean, np.float16)

    packed, numbers = folders(BITNET, config, pack)
    found, expected = perplexity(packed), perplexity(numbers)
    assert abs(found / expected - 1) < 1e-3, f"{found}, expected {expected}"


def test_joint_matrices_are_parted_with_their_scales():
    same(PHI, gptq(group_size=-1), lambda d, *m: d.gptq(*m, group=-1))
    same(PHI, gptq(), lambda d, *m: d.gptq(*m, zero=8))
    same(NEOX, gptq(group_size=-1), lambda d, *m: d.gptq(*m, group=-1))


def test_biases_of_zeros_go():
    def add(tensors, value=0.0):
        tensors["model.layers.1.self_attn.o_proj.bias"] = np.full(64, value, np.float16)

    same(LLAMA, gptq(), lambda d, *m: d.gptq(*m), change=add)
    packed, _ = folders(LLAMA, gptq(), lambda d, *m: d.gptq(*m), change=lambda t: add(t, 1.0))
    muc("inspect", packed, status=UNSUPPORTED, message="'model.layers.1.self_attn.o_proj.bias' has no place")


def test_what_does_not_belong_together_is_refused():
    q = "model.layers.0.self_attn.q_proj."

    def without(key):
        return lambda t: t.pop(q + key)

    def with_value(key, edit):
        def change(t):
            t[q + key] = edit(t[q + key])
        return change

    cases = [
        (gptq(), "gptq", without("qzeros"), MALFORMED, "has no zeros beside it"),
        (gptq(), "gptq", without("scales"), MALFORMED, "has no scales beside it"),
        (gptq(), "gptq", without("qweight"), MALFORMED, "q_proj.weight' is missing"),
        (gptq(), "gptq", with_value("g_idx", lambda v: v + 1), MALFORMED, "is of group 2, expected 0 to 1"),
        (gptq(), "gptq", with_value("g_idx", lambda v: v[1:]), MALFORMED, "g_idx' has type i32 and dimensions 63"),
        (gptq(), "gptq", with_value("qzeros", lambda v: v[:, 1:]), MALFORMED, "expected i32 and 2, 8"),
        (gptq(), "gptq", with_value("qweight", lambda v: v[1:]), MALFORMED, "expected i32 and 56"),
        (gptq(), "gptq", with_value("qweight", lambda v: v.view(np.float32)), MALFORMED, "expected i32"),
        (gptq(group_size=48), "gptq", without("g_idx"), None, ""),
        (gptq(group_size=64), "gptq", without("g_idx"), MALFORMED, "expected groups of 64"),
        (gptq(), "gptq", with_value("scales", lambda v: v * np.float16(np.inf)), MALFORMED, "not finite"),
        (compressed(), "compressed", without("weight_shape"), MALFORMED, "has no weight_shape beside it"),
        (compressed(), "compressed", with_value("weight_shape", lambda v: v * 2), MALFORMED, "words a row of 128"),
        (compressed(8), "compressed", None, MALFORMED, "has 12 words a row of 96 columns"),
        (compressed(), "compressed", with_value("weight_scale", lambda v: v[1:]), MALFORMED, "expected f16 and 64, 2"),
        (gptq(3), "gptq", None, UNSUPPORTED, "\"bits\" is 3, expected 2, 4 or 8"),
        (gptq(checkpoint_format="marlin"), "gptq", None, UNSUPPORTED, "\"checkpoint_format\" is 'marlin'"),
        (gptq(dynamic={"x": {"bits": 8}}), "gptq", None, UNSUPPORTED, "\"dynamic\" is not empty"),
        (gptq(group_size=0), "gptq", None, MALFORMED, "\"group_size\" is not a number of columns"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "awq", None, UNSUPPORTED, "\"version\" is 'gemv'"),
        (compressed(form="float-quantized"), "compressed", None, UNSUPPORTED, "\"format\" is 'float-quantized'"),
        (compressed(type="float"), "compressed", None, UNSUPPORTED, "weights of type 'float'"),
        ({"quant_method": "bitsandbytes"}, "gptq", None, UNSUPPORTED, "weights quantized by 'bitsandbytes'"),
    ]
    for config, pack, change, status, message in cases:
        packed, _ = folders(LLAMA, config, lambda d, *m: getattr(d, pack)(*m), change=change)
        if status is not None:
            muc("inspect", packed, status=status, message=message)
    packed, _ = folders(BITNET, {"quant_method": "bitnet"}, lambda d, *m: d.bitnet(*m),
                        change=with_value("weight", lambda v: v | 3))
    muc("inspect", packed, status=MALFORMED, message="holds code 3, expected 0 to 2")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
