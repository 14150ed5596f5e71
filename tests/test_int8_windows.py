#!/usr/bin/env python3
"""Windows that --quant int8 computes in integers beside those over two dimensions: over three, and transposed ones in
groups and dilated. Near those of real numbers by NumPy, the same bits in C here and on emulated boards. Prints TAP.

    tests/test_int8_windows.py MUC
"""
import itertools
import sys

from files import run_tests
from int8_judge import BOARDS, SAMPLES, const, draw, judge  # ends here without NumPy

import numpy as np


def places(size, kernel, stride, dilation, pads):
    """Of a dimension: the first element of each window, and the elements of the first, padding before all."""
    whole = size + pads[0] + pads[1]
    return range(0, whole - (kernel - 1) * dilation, stride), range(0, kernel * dilation, dilation)


def correlate(x, w, b, groups, strides, dilations, pads):
    """x [N, C, spatial..] with w [out, in of a group, kernel..]."""
    spatial = x.ndim - 2
    pads = [(pads[d], pads[spatial + d]) for d in range(spatial)]
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *pads])
    firsts, taps = zip(*(places(x.shape[2 + d], w.shape[2 + d], strides[d], dilations[d], (0, 0)) for d in range(spatial)))
    y = np.zeros((len(x), len(w), *map(len, firsts)))
    each, inputs = len(w) // groups, w.shape[1]
    for tap in itertools.product(*(range(len(t)) for t in taps)):
        seen = x[(slice(None), slice(None), *(slice(t[k], t[k] + f[-1] + 1, f.step) for t, k, f in zip(taps, tap, firsts)))]
        for g in range(groups):
            y[:, g * each:(g + 1) * each] += np.einsum("nc...,oc->no...", seen[:, g * inputs:(g + 1) * inputs],
                                                       w[(slice(g * each, (g + 1) * each), slice(None), *tap)])
    return y + b.reshape(-1, *[1] * spatial)


def spread(x, w, b, groups, strides, dilations, pads):
    """The gradient of that, w [in, out of a group, kernel..], element by element."""
    spatial, each = x.ndim - 2, w.shape[1]
    whole = [(x.shape[2 + d] - 1) * strides[d] + (w.shape[2 + d] - 1) * dilations[d] + 1 for d in range(spatial)]
    y = np.zeros((len(x), each * groups, *whole))
    for c in range(x.shape[1]):
        g = c // (x.shape[1] // groups)
        for at in itertools.product(*map(range, x.shape[2:])):
            for tap in itertools.product(*map(range, w.shape[2:])):
                to = tuple(a * s + t * d for a, s, t, d in zip(at, strides, tap, dilations))
                y[(slice(None), slice(g * each, (g + 1) * each), *to)] += np.outer(x[(slice(None), c, *at)], w[(c, slice(None), *tap)])
    cut = tuple(slice(pads[d], whole[d] - pads[spatial + d]) for d in range(spatial))
    return y[(slice(None), slice(None), *cut)] + b.reshape(-1, *[1] * spatial)


def check(op, dims, weights, out, groups=1, strides=None, dilations=None, pads=None, boards=()):
    """One layer; what is not said of its window is 1 or 0."""
    spatial = len(dims) - 2
    strides, dilations, pads = strides or [1] * spatial, dilations or [1] * spatial, pads or [0] * 2 * spatial
    w, b, compute = draw(*weights, scale=0.3), draw(out), correlate if op == "conv" else spread
    x = draw(SAMPLES * dims[0], *dims[1:])
    y = compute(x[:dims[0]], w, b, groups, strides, dilations, pads)
    text = (f"tensor x = input f32 {list(dims)}\n" + const("w", w) + const("b", b) +
            f"node y f32 {list(y.shape)} = {op} x, w, b groups={groups} strides={strides} dilations={dilations} pads={pads}\n"
            "output y\n")
    layers = judge(text, {"x": x}, lambda x: [y], 33, boards=boards)
    assert op == "conv" or "conv_transpose" not in layers, layers
    return layers


def test_convolutions_over_three_dimensions_are_integers():
    check("conv", (1, 4, 5, 6, 7), (6, 4, 3, 3, 3), 6, boards=BOARDS)
    check("conv", (2, 4, 5, 6, 7), (6, 4, 3, 3, 3), 6, strides=[2, 2, 1], pads=[1, 1, 1, 1, 0, 1])
    check("conv", (1, 4, 7, 6, 7), (8, 2, 3, 2, 3), 8, groups=2, dilations=[2, 1, 2], pads=[2, 0, 0, 1, 1, 0])
    check("conv", (1, 6, 5, 6, 7), (6, 1, 3, 3, 3), 6, groups=6, pads=[1] * 6)


def test_convolutions_of_one_depth_or_one_pixel_are_integers():
    check("conv", (1, 4, 5, 6, 7), (6, 4, 1, 3, 3), 6, strides=[2, 1, 1], pads=[0, 1, 1, 0, 1, 1])
    check("conv", (1, 4, 5, 6, 7), (6, 4, 3, 1, 1), 6, pads=[1, 0, 0, 1, 0, 0])
    check("conv", (1, 4, 5, 6, 7), (6, 4, 1, 1, 1), 6)


def test_transposed_convolutions_in_groups_are_convolutions():
    check("conv_transpose", (1, 4, 5, 5), (4, 3, 3, 3), 6, groups=2, strides=[2, 2], pads=[1, 1, 0, 1], boards=BOARDS)
    check("conv_transpose", (2, 6, 5, 4), (6, 1, 4, 4), 6, groups=6, strides=[2, 2], pads=[1, 1, 1, 1])
    check("conv_transpose", (1, 4, 5, 4), (4, 2, 3, 2), 4, groups=2, strides=[2, 3])
    check("conv_transpose", (1, 4, 9), (4, 2, 4), 4, groups=2, strides=[2])
    check("conv_transpose", (1, 4, 9), (4, 2, 3), 4, groups=2)


def test_dilated_transposed_convolutions_are_convolutions():
    check("conv_transpose", (1, 4, 5, 5), (4, 6, 3, 3), 6, strides=[2, 2], dilations=[2, 3], pads=[1, 1, 0, 1])
    check("conv_transpose", (1, 4, 5, 5), (4, 3, 2, 3), 6, groups=2, strides=[1, 2], dilations=[2, 1])


def test_transposed_convolutions_over_three_dimensions_are_convolutions():
    check("conv_transpose", (1, 4, 3, 4, 5), (4, 6, 3, 3, 3), 6, strides=[2, 2, 2], pads=[1, 0, 1, 1, 1, 0])
    check("conv_transpose", (1, 4, 3, 4, 5), (4, 2, 2, 3, 3), 4, groups=2, strides=[2, 1, 3])


def test_pools_over_three_dimensions_are_integers():
    dims, pads = (1, 3, 6, 7, 8), [1, 0, 1, 0, 1, 1]
    for op, fill, reduce in (("max_pool", -np.inf, np.max), ("average_pool", np.nan, np.nanmean)):
        x = draw(SAMPLES, *dims[1:])

        def real(x):
            x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((pads[d], pads[3 + d]) for d in range(3))], constant_values=fill)
            firsts = [places(x.shape[2 + d], k, 2, 1, (0, 0))[0] for d, k in enumerate((2, 3, 2))]
            y = np.zeros((*x.shape[:2], *map(len, firsts)))
            for at in itertools.product(*map(enumerate, firsts)):
                window = tuple(slice(f, f + k) for (_, f), k in zip(at, (2, 3, 2)))
                y[(slice(None), slice(None), *(i for i, _ in at))] = reduce(x[(slice(None), slice(None), *window)], (2, 3, 4))
            return [y]
        y = real(x[:1])[0]
        judge(f"tensor x = input f32 {list(dims)}\nnode y f32 {list(y.shape)} = {op} x kernel=[2, 3, 2] strides=[2, 2, 2] "
              f"pads={pads}\noutput y\n", {"x": x}, real, 30, boards=BOARDS)  # a mean has its input's scale


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
