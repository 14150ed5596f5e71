#!/usr/bin/env python3
"""Kinds of layers that --quant int8 computes in integers: no layer stays float32, the generated C has the bits of the
reference, here and on an emulated board, and the results are near those of real numbers by NumPy. Prints TAP.

    tests/test_int8_kinds.py MUC
"""
import sys

from files import run_tests
from int8_judge import BATCH, RNG, SAMPLES, const, draw, judge  # ends here without NumPy

import numpy as np


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


def test_networks_of_functions_alone_are_tables():
    x = draw(SAMPLES * 4, 96)
    for operator, real, decibels in (("neg x", np.negative, 38), ("mul x, x", np.square, 30), ("softsign x", lambda x: x / (1 + abs(x)), 35)):
        text = f"tensor x = input f32 [4, 96]\nnode y f32 [4, 96] = {operator}\noutput y\n"
        assert "lookup" in judge(text, {"x": x}, lambda x: [real(x)], decibels), operator


def test_truths_of_real_numbers_are_named():
    x, v = draw(SAMPLES * 4, 16), draw(16, 16)
    text = ("tensor x = input f32 [4, 16]\n" + const("w", np.eye(16)) + const("v", v) + "node a f32 [4, 16] = linear x, w\n"
            "node b f32 [4, 16] = linear x, v\nnode t bool [4, 16] = greater a, b\nnode y f32 [4, 16] = where t, a, b\noutput y\n")
    judge(text, {"x": x}, lambda x: [np.maximum(x, x @ v.T)], 30, stays_float=["greater"])


def test_the_greatest_is_found_among_integers():
    x = draw(SAMPLES * 4, 12)
    x[np.arange(len(x)), RNG.integers(0, 12, len(x))] += 6  # greater by many steps
    text = ("tensor x = input f32 [4, 12]\n" + const("w", np.eye(12)) + "node a f32 [4, 12] = linear x, w\n"
            "node y i64 [4, 1] = arg_max a axis=1\noutput y\n")
    layers = judge(text, {"x": x}, lambda x: [x.argmax(1)[:, None]], 100)
    assert layers == ["linear", "arg_max"], layers


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
