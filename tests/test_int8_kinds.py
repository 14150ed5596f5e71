#!/usr/bin/env python3
"""Kinds of layers that --quant int8 computes in integers: no layer stays float32, the generated C has the bits of the
reference, here and on an emulated board, and the results are near those of real numbers by NumPy. Prints TAP.

    tests/test_int8_kinds.py MUC
"""
import json
import pathlib
import shutil
import sys
import tempfile

from files import muc, run_tests

try:
    import numpy as np
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)

BATCH, SAMPLES = 8, 6
BOARD = "m7" if shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm") else None
RNG = np.random.default_rng(5)


def draw(*dims, scale=1.0):
    return (RNG.standard_normal(dims) * scale).astype(np.float32)


def const(name, values):
    """A line of a graph."""
    values = np.asarray(values, np.float32)
    return f"tensor {name} = const f32 {list(values.shape)} values {', '.join(f'{v:.9g}' for v in values.ravel())}\n"


def run(folder, given, *how):
    muc("run", folder, "--input", given, "--output", folder / "y.npz", *how)
    return list(np.load(folder / "y.npz").values())


def reals(folder, name, y):
    """An output as the numbers that it stands for."""
    constants = dict(line.split()[1:3] for line in (folder / "net.h").read_text().splitlines() if line.startswith(f"#define NET_{name.upper()}_INT8_"))
    key = f"NET_{name.upper()}_INT8_"
    zero = int(constants[key + "ZERO_POINT"].strip("()"))
    return (y.astype(np.float64) - zero) * float(constants[key + "SCALE"].rstrip("f"))


def judge(text, arrays, real, decibels, stays_float=()):
    """arrays: of each input, of SAMPLES times its first dimension; real: its outputs of a sample."""
    with tempfile.TemporaryDirectory() as place:
        net, samples, given, folder = (pathlib.Path(place) / name for name in ("net.graph", "calib.npz", "in.npz", "net"))
        net.write_text("graph kinds\n" + text)
        np.savez(samples, **arrays)
        one = {name: array[:len(array) // SAMPLES] for name, array in arrays.items()}
        np.savez(given, **one)
        quantized = ("--quant", "int8", "--calib", samples)
        made = json.loads(muc("compile", net, "--target", "mcu", *quantized, "-o", folder, "--json"))
        found = {row["operator"] for row in made.get("float32", [])}
        assert found == set(stays_float), made["float32"]
        muc("verify", folder, net, *quantized, "--input", given)
        outputs = run(folder, given)
        for name, y, exact in zip("yz", outputs, real(**one)):
            noise = np.sum((reals(folder, name, y) - exact) ** 2)
            ratio = 10 * np.log10(np.sum(exact ** 2) / noise)
            assert y.shape == exact.shape and ratio >= decibels, (y.shape, exact.shape, ratio)
        if BOARD:
            for a, b in zip(run(folder, given, "--qemu", BOARD), outputs):
                assert np.array_equal(a, b), np.argwhere(a != b)[0]
        return [layer["operator"] for layer in json.loads((folder / "net.json").read_text())["steps"]]


def linear(x, w, b):
    return x @ w.T + b


def test_embeddings_are_rows_of_bytes():
    table, w, b = draw(50, 16), draw(4, 16, scale=0.3), draw(4)
    text = (f"tensor x = input i32 [{BATCH}, 12]\n" + const("t", table) + const("w", w) + const("b", b) +
            f"node e f32 [{BATCH}, 12, 16] = gather t, x axis=0\nnode m f32 [{BATCH}, 1, 16] = reduce_mean e axes=[1]\n"
            f"node y f32 [{BATCH}, 1, 4] = linear m, w, b\noutput y\n")
    tokens = RNG.integers(-50, 50, (SAMPLES * BATCH, 12)).astype(np.int32)
    judge(text, {"x": tokens}, lambda x: [linear(table[x].mean(1, keepdims=True), w, b)], 33)


def normalise(x, groups, gain, bias):
    """x [images, channels, ..]"""
    parts = x.reshape(len(x), groups, -1).astype(np.float64)
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    by = (-1,) + (1,) * (x.ndim - 2)
    return parts.reshape(x.shape) * gain.reshape(by) + bias.reshape(by)


def test_norms_of_channels_are_integers_wherever_the_channels_are():
    gain, bias = draw(8) + 1, draw(8)
    x = draw(SAMPLES * 2, 8, 9, 5) * (draw(8) + 2).reshape(-1, 1, 1) + draw(8).reshape(-1, 1, 1)
    for norm, groups in (("instance_norm", 8), ("group_norm", 2)):
        attribute = " groups=2" if norm == "group_norm" else ""
        head = const("g", gain) + const("b", bias)
        first = f"node y f32 [2, 8, 9, 5] = {norm} x, g, b epsilon=0.00001{attribute}\noutput y\n"
        judge("tensor x = input f32 [2, 8, 9, 5]\n" + head + first, {"x": x}, lambda x: [normalise(x, groups, gain, bias)], 35)
        last = first.replace("[2, 8, 9, 5]", "[2, 9, 5, 8]").replace("\n", " channels_last=1\n", 1)
        judge("tensor x = input f32 [2, 9, 5, 8]\n" + head + last, {"x": x.transpose(0, 2, 3, 1)},
              lambda x: [normalise(x.transpose(0, 3, 1, 2), groups, gain, bias).transpose(0, 2, 3, 1)], 35)


def test_a_group_norm_that_pytorch_wrote_is_one_layer():
    gain, bias, ones = draw(8, 1, 1) + 1, draw(8, 1, 1), np.ones(4)
    text = ("tensor x = input f32 [2, 8, 9, 5]\n" + const("o", ones) + const("n", ones * 0) + const("g", gain) + const("b", bias) +
            "node r f32 [2, 4, 90] = reshape x shape=[2, 4, 90]\nnode i f32 [2, 4, 90] = instance_norm r, o, n epsilon=0.00001\n"
            "node s f32 [2, 8, 9, 5] = reshape i shape=[2, 8, 9, 5]\nnode m f32 [2, 8, 9, 5] = mul s, g\n"
            "node y f32 [2, 8, 9, 5] = add m, b\noutput y\n")
    x = draw(SAMPLES * 2, 8, 9, 5) * (draw(8) + 2).reshape(-1, 1, 1)
    layers = judge(text, {"x": x}, lambda x: [normalise(x, 4, gain.ravel(), bias.ravel())], 35)
    assert [layer for layer in layers if layer != "transpose"] == ["group_norm"], layers  # channels are last inside


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
