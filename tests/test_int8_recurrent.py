#!/usr/bin/env python3
"""Layers with a state that --quant int8 computes in integers: near those of real numbers by NumPy, and exactly what
docs/INTEGER.md says, by loops of their own, in the reference and in generated C, here and on emulated boards. Prints
TAP.

    tests/test_int8_recurrent.py MUC
"""
import sys

from files import run_tests
from int8_judge import BATCH, BOARDS, RNG, SAMPLES, check_integers, const, draw, judge  # ends here without NumPy
from tflite_files import clamp, logistic, multiplier, scaled, tanh

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, h, c, w, r, wb, rb, _, peepholes=(0, 0, 0)):
    i, o, f, g = np.split(w @ x + wb + r @ h + rb, 4)
    seen_by_i, seen_by_o, seen_by_f = peepholes
    new = sigmoid(f + seen_by_f * c) * c + sigmoid(i + seen_by_i * c) * np.tanh(g)
    return sigmoid(o + seen_by_o * new) * np.tanh(new), new


def rnn(x, h, c, w, r, wb, rb, _):
    return np.tanh(w @ x + wb + r @ h + rb), c


def rnn_of_relu(x, h, c, w, r, wb, rb, _):
    return np.maximum(w @ x + wb + r @ h + rb, 0), c


def gru(x, h, c, w, r, wb, rb, before_reset):
    (wz, wr, wn), (rz, rr, rn) = np.split(w @ x + wb, 3), np.split(r @ h + rb, 3)
    z, reset = sigmoid(wz + rz), sigmoid(wr + rr)
    if not before_reset:
        rn = np.split(r, 3)[2] @ (reset * h) + np.split(rb, 3)[2]
    n = np.tanh(wn + (reset * rn if before_reset else rn))
    return (1 - z) * n + z * h, c


def recur(step, x, w, r, b, direction, lengths=None, h=None, c=None, before_reset=False, peepholes=None):
    """What ONNX says of RNN, GRU and LSTM: y [steps, directions, batch, hidden] and the states at the ends."""
    (steps, batch, _), (directions, _, hidden) = x.shape, r.shape
    y, ends = np.zeros((steps, directions, batch, hidden)), np.zeros((2, directions, batch, hidden))
    for d in range(directions):
        for n in range(batch):
            state = [0 * ends[0, d, n] if s is None else s[d, n] for s in (h, c)]
            length = steps if lengths is None else lengths[n]
            for t in range(length)[::-1 if d or "reverse" in direction else 1]:
                state = step(x[t, n], *state, w[d], r[d], *np.split(b[d], 2), before_reset,
                             *([np.split(peepholes[d], 3)] if peepholes is not None else []))
                y[t, d, n] = state[0]
            ends[:, d, n] = state
    return [y, *ends]


STEPS, INPUTS, HIDDEN = 10, 6, 12


def check_recurrent(kind, attributes="", before_reset=False, slow=0.0, outputs="y", given="", decibels=30, arrays=None, peeps=False,
                    boards=("m7",)):
    """given: what stands behind the biases; arrays: what that names, of a sample and all samples."""
    step, gates, states = {"lstm": (lstm, 4, "zc"), "gru": (gru, 3, "z"), "rnn": (rnn, 1, "z")}[kind]
    step = rnn_of_relu if "relu" in attributes else step
    directions = 2 if "bidirectional" in attributes else 1
    w = draw(directions, gates * HIDDEN, INPUTS, scale=0.5)
    r = draw(directions, gates * HIDDEN, HIDDEN, scale=0.2 if kind == "rnn" else 0.5)  # forgets: no error lasts
    b = draw(directions, 2 * gates * HIDDEN, scale=0.3)
    p = draw(directions, 3 * HIDDEN, scale=0.5) if peeps else None
    b[:, :HIDDEN] += slow  # of a gru's first gate: the state hardly changes
    state = f"f32 [{directions}, {BATCH}, {HIDDEN}]"
    x = np.cumsum(draw(SAMPLES, STEPS, BATCH, INPUTS, scale=0.5), 1).reshape(-1, BATCH, INPUTS)
    text = (f"tensor x = input f32 [{STEPS}, {BATCH}, {INPUTS}]\n" + const("w", w) + const("r", r) + const("b", b) +
            (const("p", p) if peeps else "") +
            "".join(f"tensor {name} = input {'i32' if name == 'n' else 'f32'} [{', '.join(map(str, dims))}]\n"
                    for name, (dims, _) in (arrays or {}).items()) +
            f"node y f32 [{STEPS}, {directions}, {BATCH}, {HIDDEN}], {', '.join(f'{name} {state}' for name in states)} = "
            f"{kind} x, w, r, b{given}{', *' * (3 - given.count(',')) + ', p' if peeps else ''} {attributes}\n" + "".join(f"output {name}\n" for name in outputs.split()))

    def real(x, n=None, h=None, k=None):
        found = recur(step, x, w, r, b, attributes, n, h, k, before_reset, p)
        return [found["yzc".index(name)] for name in outputs.split()]
    judge(text, {"x": x, **{name: array for name, (_, array) in (arrays or {}).items()}}, real, decibels, boards=boards)


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


def test_rnns_are_integers():
    check_recurrent("rnn", outputs="y z", boards=BOARDS)
    check_recurrent("rnn", "direction=bidirectional")
    check_recurrent("rnn", "direction=reverse mode=relu", outputs="y z", boards=BOARDS)
    check_recurrent("rnn", given=", *, h", arrays={"h": states(1, 0.4)}, outputs="y z")


def test_peepholes_are_integers():
    check_recurrent("lstm", outputs="y z c", peeps=True, boards=BOARDS)
    check_recurrent("lstm", "direction=bidirectional", peeps=True)


# ---- by loops of their own ----

BYTE, SHORT = (-128, 127), (-32768, 32767)


def narrow(values):
    return clamp(values, *SHORT)


def sums(x, w, b, factor):
    """A part of gates: products, biases and a factor, of 16 bits."""
    return narrow(scaled(x @ w.astype(np.int64).T + b, factor))


def quotient(values):
    """Over 2^15, halves up."""
    return values + 2 ** 14 >> 15


class Layer:
    """A layer of integers whose tensors have such scales and zero points."""

    def __init__(self, kind, gates, steps=7, batch=3, columns=5, hidden=9, directions=1, relu=False, peeps=False, before_reset=False):
        self.kind, self.gates, self.relu, self.peeps, self.before_reset = kind, gates, relu, peeps, before_reset
        self.dims = steps, batch, columns, hidden, directions
        self.x_scale, self.h_scale, self.x_zero, self.h_zero = (np.float32(0.02), np.float32(0.03 if relu else 1 / 120), -5, 7)
        self.w_scale, self.r_scale, self.p_scale, self.c_scale = map(np.float32, (0.006, 0.005, 1 / 20000, 2.0 ** (-15 if kind == "gru" else -11)))
        rows = directions, gates * hidden
        self.x = RNG.integers(-128, 128, (steps, batch, columns)).astype(np.int8)
        self.w, self.r = (RNG.integers(-127, 128, (*rows, n)).astype(np.int8) for n in (columns, hidden))
        self.b = RNG.integers(-3000, 3000, (directions, 2 * gates * hidden)).astype(np.int32)
        self.h = RNG.integers(-60, 60, (directions, batch, hidden)).astype(np.int8)
        self.c = RNG.integers(-3000, 3000, (directions, batch, hidden)).astype(np.int16)
        if kind == "gru":
            self.c = RNG.integers(-32768, 32768, self.c.shape).astype(np.int16)
        self.p = RNG.integers(-32000, 32001, (directions, 3 * hidden)).astype(np.int16)

    def text(self, attributes):
        steps, batch, columns, hidden, directions = self.dims
        h = f"scale {self.h_scale:.9g} zero {self.h_zero}"
        c = f"scale {self.c_scale:.9g} zero 0"
        state = [directions, batch, hidden]

        def line(name, kind, values, scale=""):
            return f"tensor {name} = const {kind} {list(values.shape)} {scale} values {', '.join(map(str, values.ravel()))}\n"
        states = {"lstm": (("h", "z", "i8", h), ("c", "k", "i16", c)), "gru": (("h", "z", "i16", c),), "rnn": (("h", "z", "i8", h),)}
        names = "".join(f", {n} {kind} {state} {scale}" for _, n, kind, scale in states[self.kind])
        return (f"tensor x = input i8 [{steps}, {batch}, {columns}] scale {self.x_scale:.9g} zero {self.x_zero}\n" +
                "".join(f"tensor {n} = input {kind} {state} {scale}\n" for n, _, kind, scale in states[self.kind]) +
                line("w", "i8", self.w, f"scale {self.w_scale:.9g} zero 0") +
                line("r", "i8", self.r, f"scale {self.r_scale:.9g} zero 0") + line("b", "i32", self.b) +
                (line("p", "i16", self.p, f"scale {self.p_scale:.9g} zero 0") if self.peeps else "") +
                f"node y i8 [{steps}, {directions}, {batch}, {hidden}] {h}{names} = {self.kind} x, w, r, b, *, h"
                f"{', c' if self.kind == 'lstm' else ''}{', p' if self.peeps else ''} {attributes}\n" +
                "".join(f"output {n}\n" for n in ("y", "z", "k")[:3 if self.kind == "lstm" else 2]))

    def parts(self, d, x, h):
        """What x and h add to the gates."""
        rows = len(self.w[d])
        unit = float(self.h_scale) / 128 if self.relu else 2.0 ** -12
        wb, rb = self.b[d][:rows], self.b[d][rows:]
        of_x = sums(x.astype(np.int64) - self.x_zero, self.w[d], wb, multiplier(float(self.x_scale * self.w_scale) / unit))
        of_h = sums(h.astype(np.int64) - self.h_zero, self.r[d], rb, multiplier(float(self.h_scale * self.r_scale) / unit))
        return [np.split(part, self.gates, axis=-1) for part in (of_x, of_h)]

    def gate_sums(self, d, x, h):
        return [narrow(of_x + of_h) for of_x, of_h in zip(*self.parts(d, x, h))]

    def byte(self, values, unit):
        return clamp(scaled(values, multiplier(unit / float(self.h_scale))) + self.h_zero, *BYTE)

    def rnn(self, d, x, h, c):
        (gate,) = self.gate_sums(d, x, h)
        if self.relu:
            return self.byte(np.maximum(gate, 0), float(self.h_scale) / 128), c
        return self.byte(tanh(gate, 0), 2.0 ** -15), c

    def gru(self, d, x, _, c):
        h = self.byte(c, 2.0 ** -15)
        (x_z, x_r, x_n), (h_z, h_r, h_n) = self.parts(d, x, h)
        z, r = logistic(narrow(x_z + h_z)), logistic(narrow(x_r + h_r))
        left = quotient(r * h_n) if self.before_reset else self.parts(d, x, self.byte(quotient(r * c), 2.0 ** -15))[1][2]
        new = tanh(narrow(x_n + left), 0)
        c = new + quotient(z * (c - new))
        return self.byte(c, 2.0 ** -15), c

    def lstm(self, d, x, h, c):
        i, o, f, g = self.gate_sums(d, x, h)
        p_i, p_o, p_f = np.split(self.p[d].astype(np.int64), 3)

        def seen(gate, p, cell):
            factor = multiplier(float(self.p_scale * self.c_scale) * 2 ** 12)
            return narrow(gate + narrow(scaled(p * cell, factor))) if self.peeps else gate
        kept = narrow(scaled(logistic(seen(f, p_f, c)) * c, multiplier(2.0 ** -15)))
        new = narrow(kept + narrow(scaled(logistic(seen(i, p_i, c)) * tanh(g, 0), multiplier(2.0 ** -30 / float(self.c_scale)))))
        return self.byte(logistic(seen(o, p_o, new)) * tanh(new, 1), 2.0 ** -30), new

    def expected(self, backwards=False):
        steps, batch, _, hidden, directions = self.dims
        y = np.zeros((steps, directions, batch, hidden), np.int64)
        ends = np.zeros((2, directions, batch, hidden), np.int64)
        for d in range(directions):
            state = self.h[d].astype(np.int64), self.c[d].astype(np.int64)
            for t in range(steps)[::-1 if d or backwards else 1]:
                state = getattr(self, self.kind)(d, self.x[t], *state)
                y[t, d] = state[0]
            ends[:, d] = state
        h, c = ends[0].astype(np.int8), ends[1].astype(np.int16)
        return [y.astype(np.int8), *{"lstm": (h, c), "gru": (c,), "rnn": (h,)}[self.kind]]

    def check(self, attributes="", boards=BOARDS):
        expected = self.expected("reverse" in attributes)
        assert len(np.unique(expected[0])) > 50, "results alike would prove nothing"
        states = {"lstm": (self.h, self.c), "gru": (self.c,), "rnn": (self.h,)}[self.kind]
        return check_integers(self.text(attributes), [self.x, *states], expected, boards)


def test_an_rnn_of_integers_is_what_is_written_of_it():
    assert "mur_rnn_s8_run(" in Layer("rnn", 1).check()
    Layer("rnn", 1, directions=2).check("direction=bidirectional", ())
    Layer("rnn", 1, relu=True).check("mode=relu direction=reverse")


def test_an_lstm_of_integers_with_peepholes_is_what_is_written_of_it():
    assert "mur_lstm_peephole_s8_run(" in Layer("lstm", 4, peeps=True).check()
    Layer("lstm", 4, directions=2, peeps=True).check("direction=bidirectional", ())
    Layer("lstm", 4).check("", ())


def test_a_gru_of_integers_is_what_is_written_of_it():
    assert "mur_gru_s8_run(" in Layer("gru", 3).check()
    Layer("gru", 3, directions=2, before_reset=True).check("direction=bidirectional linear_before_reset=1", ())


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
