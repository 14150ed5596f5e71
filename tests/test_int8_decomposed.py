#!/usr/bin/env python3
"""Operators without integers of their own that --quant int8 writes as others which have them, and those that move what
indices say: no layer stays float32, near real numbers by NumPy, the same bits in C. Prints TAP.

    tests/test_int8_decomposed.py MUC
"""
import sys

from files import run_tests
from int8_judge import BOARDS, RNG, SAMPLES, const, draw, judge  # ends here without NumPy

import numpy as np

ROWS, COLUMNS = 6, 8
WEIGHTS = {name: np.eye(COLUMNS, dtype=np.float32) + draw(COLUMNS, COLUMNS, scale=0.1) for name in "xzw"}


def text_of(name, dims):
    """An input that a layer of weights makes a computed tensor, whose name it has."""
    return (f"tensor {name}_ = input f32 {list(dims)}\n" + const(f"{name}w", WEIGHTS[name]) +
            f"node {name} f32 {list(dims)} = linear {name}_, {name}w\n")


def computed(name, x):
    return x.astype(np.float64) @ WEIGHTS[name].T


def check(line, real, inputs=None, more="", decibels=30, boards=(), given=None, shift=0.0, outputs="y"):
    """line: attributes and all of the node y; real: its result of the computed inputs, which are x [ROWS, COLUMNS] or
    of other shapes; given: inputs as they are."""
    inputs, given = inputs or {"x": (ROWS, COLUMNS)}, given or {}
    arrays = {f"{name}_": draw(SAMPLES * dims[0], *dims[1:]) + np.float32(shift) for name, dims in inputs.items()}
    arrays.update(given)

    def results(**sample):
        found = real(*(computed(name, sample[f"{name}_"]) for name in inputs), *(sample[name] for name in given))
        return found if isinstance(found, list) else [found]
    first = results(**{name: array[:len(array) // SAMPLES] for name, array in arrays.items()})
    shapes = [f"f32 {list(y.shape)}" if y.dtype.kind == "f" else f"i64 {list(y.shape)}" for y in first]
    names = outputs.split()
    kinds = {np.dtype(np.float32): "f32", np.dtype(np.int32): "i32", np.dtype(bool): "bool"}
    text = ("".join(text_of(name, dims) for name, dims in inputs.items()) +
            "".join(f"tensor {name} = input {kinds[a.dtype]} {[len(a) // SAMPLES, *a.shape[1:]]}\n" for name, a in given.items()) +
            more + f"node {', '.join(f'{n} {s}' for n, s in zip(names, shapes))} = {line}\n" +
            "".join(f"output {name}\n" for name, y in zip(names, first) if y.dtype.kind == "f"))
    return judge(text, arrays, lambda **sample: [y for y in results(**sample) if y.dtype.kind == "f"], decibels, boards=boards)


TWO = {"x": (ROWS, COLUMNS), "z": (ROWS, COLUMNS)}
THREE = {**TWO, "w": (ROWS, COLUMNS)}
ROW, OTHER = draw(COLUMNS), draw(COLUMNS) + 3


def test_sums_and_extremes_of_many_are_pairs():
    check("sum x, z, w", lambda x, z, w: x + z + w, THREE)
    check("mean x, z, w", lambda x, z, w: (x + z + w) / 3, THREE)
    check("mean x, z", lambda x, z: (x + z) / 2, TWO)
    check("sum x, k", lambda x: x + ROW, more=const("k", ROW))
    check("max x, z, w", lambda x, z, w: np.maximum(np.maximum(x, z), w), THREE)
    check("min x, z, w", lambda x, z, w: np.minimum(np.minimum(x, z), w), THREE)
    check("min x, k", lambda x: np.minimum(x, ROW), more=const("k", ROW))


def test_operands_that_both_repeat_are_widened():
    shapes = {"x": (ROWS, 1, COLUMNS), "z": (1, 5, COLUMNS)}
    for op, of in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        check(f"{op} x, z", of, shapes)
    check("div x, z", np.divide, shapes, shift=12)


def test_constants_less_x_and_over_x_are_integers():
    check("sub k, x", lambda x: ROW - x, more=const("k", ROW))
    check("div k, x", lambda x: OTHER / x, more=const("k", OTHER), shift=12)


def test_truths_and_integers_become_levels():
    truths = RNG.integers(0, 2, (SAMPLES * ROWS, COLUMNS)) > 0
    k = "node k f32 [6, 8] = cast t to=f32\n"
    check("mul x, k", lambda x, t: x * t, given={"t": truths}, more=k)
    check("mul x, k", lambda x, t: x * t, given={"t": truths.astype(np.int32)}, more=k)
    check("linear k, zw", lambda z, t: t @ WEIGHTS["z"].T + 0 * z, {"z": (ROWS, COLUMNS)},
          given={"t": RNG.integers(-8, 9, (SAMPLES * ROWS, COLUMNS)).astype(np.int32)}, more=k)
    indices = RNG.integers(-COLUMNS, COLUMNS, SAMPLES * ROWS).astype(np.int32)
    check("add x, k", lambda x, t: x + np.eye(COLUMNS)[t], given={"t": indices},
          more=const("v", [0, 1]) + "node k f32 [6, 8] = one_hot t, v axis=1 size=8\n")


def test_a_mask_of_integers_keeps_scores_their_levels():
    mask = (np.arange(COLUMNS) < RNG.integers(3, 9, (SAMPLES, 1))).astype(np.int32)
    more = (const("o", 1) + const("d", -1e4) + "node c f32 [1, 8] = cast m to=f32\nnode s f32 [1, 8] = sub o, c\n"
            "node f f32 [1, 8] = mul s, d\nnode a f32 [6, 8] = add x, f\n")

    def real(x, m):
        e = np.exp(x) * m
        return e / e.sum(1, keepdims=True)
    check("softmax a axis=1", real, given={"m": mask}, more=more)


def test_products_of_computed_matrices_and_by_constants_are_integers():
    a, b = draw(5, 4), draw(4)
    check("matmul a, x", lambda x: a @ x, {"x": (3, 4, COLUMNS)}, more=const("a", a))
    check("linear x, z", lambda x, z: x @ z.T, {"x": (ROWS, COLUMNS), "z": (4, COLUMNS)})
    check("linear x, z, b", lambda x, z: x @ z.T + b, {"x": (ROWS, COLUMNS), "z": (4, COLUMNS)}, more=const("b", b))
    check("gemm x, z, b alpha=0.5 beta=2 transpose_b=1", lambda x, z: 0.5 * x @ z.T + 2 * b,
          {"x": (ROWS, COLUMNS), "z": (4, COLUMNS)}, more=const("b", b))
    check("gemm x, z transpose_a=1 alpha=3", lambda x, z: 3 * x.T @ z, {"x": (4, COLUMNS), "z": (4, COLUMNS)})


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def test_rows_along_any_dimension_are_integers():
    shape = {"x": (3, 5, COLUMNS)}
    for axis in (0, 1):
        check(f"softmax x axis={axis}", lambda x: softmax(x, axis), shape)
        check(f"log_softmax x axis={axis}", lambda x: np.log(softmax(x, axis)), shape)


def test_norms_of_length_are_integers():
    for axis in (0, 1):
        check(f"lp_norm x p=2 axis={axis}", lambda x: x / np.sqrt(np.sum(x * x, axis, keepdims=True)))
        check(f"lp_norm x p=1 axis={axis}", lambda x: x / np.sum(np.abs(x), axis, keepdims=True))
    zeros = const("k", np.float32([[0]] * 3 + [[1]] * 3))
    check("lp_norm a p=2 axis=1", lambda x: np.concatenate([0 * x[:3], x[3:] / np.sqrt(np.sum(x[3:] ** 2, 1, keepdims=True))]),
          more=zeros + "node a f32 [6, 8] = mul x, k\n")


def test_reductions_are_sums_of_functions():
    for axes, axis, keep in (([1], 1, 1), ([0, 1], (0, 1), 0)):
        how = f"axes={axes} keep_dims={keep}"
        check(f"reduce_l1 x {how}", lambda x: np.sum(np.abs(x), axis, keepdims=bool(keep)))
        check(f"reduce_l2 x {how}", lambda x: np.sqrt(np.sum(x * x, axis, keepdims=bool(keep))))
        check(f"reduce_sum_square x {how}", lambda x: np.sum(x * x, axis, keepdims=bool(keep)))
        check(f"reduce_log_sum x {how}", lambda x: np.log(np.sum(x, axis, keepdims=bool(keep))), shift=4)
        check(f"reduce_log_sum_exp x {how}", lambda x: np.log(np.sum(np.exp(x), axis, keepdims=bool(keep))))


def test_local_response_norms_are_pools_of_squares():
    dims, n = (1, 6, 5, COLUMNS), 3

    def real(x):
        squares = np.pad(x * x, ((0, 0), ((n - 1) // 2, n // 2), (0, 0), (0, 0)))
        return x / (1 + 0.3 / n * sum(squares[:, i:i + 6] for i in range(n))) ** 0.75
    check(f"lrn x alpha=0.3 beta=0.75 bias=1 window={n}", real, {"x": dims})


def lines(x, axis, size, at):
    """Linear between neighbours along a dimension; at(i): where element i lies."""
    places = np.clip([at(i) for i in range(size)], 0, x.shape[axis] - 1)
    low = np.floor(places).astype(int)
    high, part = np.minimum(low + 1, x.shape[axis] - 1), (places - low).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    return np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part


def test_linear_resizes_of_lines_and_as_pytorch_has_them_are_integers():
    def halves(n, m):
        return lambda i: (i + 0.5) * n / m - 0.5
    check("resize x sizes=[2, 3, 13] mode=linear", lambda x: lines(x, 2, 13, halves(8, 13)), {"x": (2, 3, COLUMNS)})
    check("resize x sizes=[2, 7, 8] mode=linear coordinates=align_corners", lambda x: lines(x, 1, 7, lambda i: i * 4 / 6),
          {"x": (2, 5, COLUMNS)})
    check("resize x sizes=[1, 3, 10, 13] mode=linear coordinates=pytorch_half_pixel",
          lambda x: lines(lines(x, 2, 10, halves(5, 10)), 3, 13, halves(8, 13)), {"x": (1, 3, 5, COLUMNS)})


def test_what_indices_say_moves_bytes():
    i = RNG.integers(0, COLUMNS, (ROWS, 3))
    index = f"tensor i = const i32 [{ROWS}, 3] values {', '.join(map(str, i.ravel()))}\n"
    check("gather_elements x, i axis=1", lambda x: np.take_along_axis(x, i, 1), more=index, boards=BOARDS)
    pairs = "tensor i = const i32 [3, 2] values 0, 1, 5, 7, 2, 0\n"
    check("gather_nd x, i", lambda x: x[[0, 5, 2], [1, 7, 0]], more=pairs)

    def put(x, z):
        x = x.copy()
        x[[0, 5, 2], [1, 7, 0]] = z[0, :3]
        return x
    first = "node u f32 [1, 3] = slice z axes=[1] starts=[0] sizes=[3]\nnode v f32 [3] = reshape u shape=[3]\n"
    check("scatter_nd x, i, v", put, {"x": (ROWS, COLUMNS), "z": (1, COLUMNS)}, more=pairs + first, boards=BOARDS)
    lengths = np.int32([1, 6, 3, 0, 2, 5, 4, 6] * SAMPLES)

    def turn(x, n):
        return np.stack([np.concatenate([x[:k, b][::-1], x[k:, b]]) for b, k in enumerate(n)], 1)
    check("reverse_sequence x, n batch_axis=1 time_axis=0", turn, given={"n": lengths}, boards=BOARDS)


def test_the_greatest_and_padding_with_a_number_are_bytes():
    def greatest(x):
        order = np.argsort(-x, 1, kind="stable")[:, :3]
        return [np.take_along_axis(x, order, 1), order]
    check("top_k x axis=1 k=3", greatest, outputs="y o", boards=BOARDS)
    check("pad x, f pads=[0, 1, 1, 2]", lambda x: np.pad(x, ((0, 1), (1, 2)), constant_values=0.75), more=const("f", 0.75),
          boards=BOARDS)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
