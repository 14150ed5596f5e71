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
from tap import tools_of

try:
    import numpy as np
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)

BATCH, SAMPLES = 8, 6
BOARD = "m7" if all(map(shutil.which, tools_of("m7"))) else None
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


def reals(folder, outputs):
    """Outputs as the numbers that they stand for."""
    known = json.loads((folder / "net.json").read_text())["outputs"]
    return [(y.astype(np.float64) - row.get("zero", 0)) * row.get("scale", 1) for y, row in zip(outputs, known)]


def judge(text, arrays, real, decibels, stays_float=()):
    """arrays: of each input, of SAMPLES times its first dimension; real: its outputs of a sample."""
    with tempfile.TemporaryDirectory() as place:
        net, samples, given, folder = (pathlib.Path(place) / name for name in ("net.graph", "calib.npz", "in.npz", "net"))
        net.write_text("graph kinds\n" + text)
        np.savez(samples, **arrays)
        one = {name: array[:len(array) // SAMPLES] for name, array in arrays.items()}
        np.savez(given, *one.values())
        quantized = ("--quant", "int8", "--calib", samples)
        made = json.loads(muc("compile", net, "--target", "mcu", *quantized, "-o", folder, "--json"))
        found = {row["operator"] for row in made.get("float32", [])}
        assert found == set(stays_float), made["float32"]
        muc("verify", folder, net, *quantized, "--input", given)
        outputs = run(folder, given)
        for y, exact in zip(reals(folder, outputs), real(**one)):
            noise = np.sum((y - exact) ** 2)
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


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, h, c, w, r, wb, rb, _):
    i, o, f, g = np.split(w @ x + wb + r @ h + rb, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(x, h, c, w, r, wb, rb, before_reset):
    (wz, wr, wn), (rz, rr, rn) = np.split(w @ x + wb, 3), np.split(r @ h + rb, 3)
    z, reset = sigmoid(wz + rz), sigmoid(wr + rr)
    if not before_reset:
        rn = np.split(r, 3)[2] @ (reset * h) + np.split(rb, 3)[2]
    n = np.tanh(wn + (reset * rn if before_reset else rn))
    return (1 - z) * n + z * h, c


def recur(step, x, w, r, b, direction, lengths=None, h=None, c=None, before_reset=False):
    """What ONNX says of LSTM and GRU: y [steps, directions, batch, hidden] and the states at the ends."""
    (steps, batch, _), (directions, _, hidden) = x.shape, r.shape
    y, ends = np.zeros((steps, directions, batch, hidden)), np.zeros((2, directions, batch, hidden))
    for d in range(directions):
        for n in range(batch):
            state = [0 * ends[0, d, n] if s is None else s[d, n] for s in (h, c)]
            length = steps if lengths is None else lengths[n]
            for t in range(length)[::-1 if d or "reverse" in direction else 1]:
                state = step(x[t, n], *state, w[d], r[d], *np.split(b[d], 2), before_reset)
                y[t, d, n] = state[0]
            ends[:, d, n] = state
    return [y, *ends]


STEPS, INPUTS, HIDDEN = 10, 6, 12


def check_recurrent(kind, attributes="", before_reset=False, slow=0.0, outputs="y", given="", decibels=30, arrays=None):
    """given: what stands behind the biases; arrays: what that names, of a sample and all samples."""
    step, gates, states = (lstm, 4, "zc") if kind == "lstm" else (gru, 3, "z")
    directions = 2 if "bidirectional" in attributes else 1
    w, r = (draw(directions, gates * HIDDEN, columns, scale=0.5) for columns in (INPUTS, HIDDEN))
    b = draw(directions, 2 * gates * HIDDEN, scale=0.3)
    b[:, :HIDDEN] += slow  # of a gru's first gate: the state hardly changes
    state = f"f32 [{directions}, {BATCH}, {HIDDEN}]"
    x = np.cumsum(draw(SAMPLES, STEPS, BATCH, INPUTS, scale=0.5), 1).reshape(-1, BATCH, INPUTS)
    text = (f"tensor x = input f32 [{STEPS}, {BATCH}, {INPUTS}]\n" + const("w", w) + const("r", r) + const("b", b) +
            "".join(f"tensor {name} = input {'i32' if name == 'n' else 'f32'} [{', '.join(map(str, dims))}]\n"
                    for name, (dims, _) in (arrays or {}).items()) +
            f"node y f32 [{STEPS}, {directions}, {BATCH}, {HIDDEN}], {', '.join(f'{name} {state}' for name in states)} = "
            f"{kind} x, w, r, b{given} {attributes}\n" + "".join(f"output {name}\n" for name in outputs.split()))

    def real(x, n=None, h=None, k=None):
        found = recur(step, x, w, r, b, attributes, n, h, k, before_reset)
        return [found["yzc".index(name)] for name in outputs.split()]
    judge(text, {"x": x, **{name: array for name, (_, array) in (arrays or {}).items()}}, real, decibels)


def states(directions, scale):
    return (directions, BATCH, HIDDEN), np.clip(draw(SAMPLES * directions, BATCH, HIDDEN, scale=scale), -1, 1)


def test_lstms_are_integers():
    check_recurrent("lstm")
    check_recurrent("lstm", "direction=bidirectional")
    check_recurrent("lstm", "direction=reverse", outputs="y z c")


def test_grus_are_integers():
    check_recurrent("gru", outputs="y z")
    check_recurrent("gru", "linear_before_reset=1", before_reset=True)
    check_recurrent("gru", "direction=bidirectional linear_before_reset=1", before_reset=True)


def test_sequences_end_where_their_lengths_say():
    lengths = {"n": ((BATCH,), RNG.integers(0, STEPS + 1, SAMPLES * BATCH).astype(np.int32))}
    check_recurrent("lstm", "direction=bidirectional", given=", n", arrays=lengths, outputs="y z")
    check_recurrent("gru", "direction=bidirectional", given=", n", arrays=lengths, outputs="y z")


def test_states_come_in_and_go_out():
    check_recurrent("lstm", given=", *, h, k", arrays={"h": states(1, 0.4), "k": states(1, 0.8)}, outputs="y z c")
    check_recurrent("gru", given=", *, h", arrays={"h": states(1, 0.4)}, outputs="y z")


def test_a_slow_gru_moves_for_its_state_has_16_bits():
    check_recurrent("gru", slow=5.0, outputs="y z", decibels=25)


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
