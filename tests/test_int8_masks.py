#!/usr/bin/env python3
"""Attention under masks that --quant int8 computes in integers, near real numbers by NumPy. Prints TAP.

    tests/test_int8_masks.py MUC
"""
import sys

from files import run_tests
from int8_judge import BATCH, RNG, SAMPLES, const, draw, judge  # ends here without NumPy

import numpy as np


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def check_attention(masked, inputs, mask, decibels=24):
    """masked: the nodes that make a f32 [BATCH, 7, 7] of scores s; mask: which scores count, of their inputs."""
    w = [draw(16, 16, scale=0.35) for _ in range(3)]
    shape = f"f32 [{BATCH}, 7, 16]"
    text = (f"tensor x = input {shape}\n" + "".join(const(f"w{i}", m) for i, m in enumerate(w)) +
            "".join(f"node {name} {shape} = linear x, w{i}\n" for i, name in enumerate("qkv")) +
            f"node t f32 [{BATCH}, 16, 7] = transpose k perm=[0, 2, 1]\nnode s f32 [{BATCH}, 7, 7] = matmul q, t\n" + masked +
            f"node p f32 [{BATCH}, 7, 7] = softmax a axis=2\nnode y {shape} = matmul p, v\noutput y\n")

    def real(x, **given):
        q, k, v = (x @ m.T for m in w)
        return [softmax(np.where(mask(**given), q @ k.transpose(0, 2, 1), -np.inf)) @ v]
    judge(text, {"x": draw(SAMPLES * BATCH, 7, 16), **inputs}, real, decibels)


def test_attention_under_masks_keeps_its_levels():
    causal, scores = np.tril(np.ones((7, 7))) > 0, f"f32 [{BATCH}, 7, 7]"
    for depth in (-1e4, np.finfo(np.float32).min):
        check_attention(const("m", np.where(causal, 0, depth)) + f"node a {scores} = add s, m\n", {}, lambda: causal)
    seen = np.arange(7) < RNG.integers(3, 8, (SAMPLES * BATCH, 1, 1))
    check_attention(f"tensor m = input f32 [{BATCH}, 1, 7]\nnode a {scores} = add s, m\n",
                    {"m": np.where(seen, 0, -1e4).astype(np.float32)}, lambda m: m == 0)
    check_attention(f"tensor m = input bool [{BATCH}, 1, 7]\ntensor f = const f32 [] values -1e9\n"
                    f"node a {scores} = where m, s, f\n", {"m": seen}, lambda m: m)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
