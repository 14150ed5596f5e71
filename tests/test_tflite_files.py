"""TFLite files as a stranger has them: through the reference and through C, against NumPy."""
import json
import pathlib
import subprocess
import sys
import tempfile

from files import Skip, muc, run_tests

try:
    import numpy as np

    import tflite_files as tf
    from tflite_files import Model, clamp, multiplier, scaled, windows
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)

RNG = np.random.default_rng(7)


def run_both(model, arrays, machines=("host",), options=()):
    """Outputs of the reference and of C for each machine; and the C text of the last."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        file, given, got = folder / "net.tflite", folder / "in.npz", folder / "out.npz"
        file.write_bytes(model.bytes())
        np.savez(given, *arrays)
        muc("run", file, "--input", given, "--output", got)
        results = [list(np.load(got).values())]
        for machine in machines:
            code = folder / machine
            muc("compile", file, "--target", "mcu", "--machine", machine, "-o", code)
            muc("run", code, "--input", given, "--output", got)
            results.append(list(np.load(got).values()))
        return results, (code / "net.c").read_text()


def check(model, arrays, expected, machines=("host",), exact=True):
    """Reference and C give what is expected; gives the C text."""
    results, text = run_both(model, arrays, machines)
    for which, found in zip(("reference",) + tuple(machines), results):
        assert len(found) == len(expected), (which, len(found))
        for i, (a, b) in enumerate(zip(found, expected)):
            assert a.shape == b.shape, (which, i, a.shape, b.shape)
            if exact:
                wrong = int((a != b).sum())
                assert wrong == 0, (which, i, f"{wrong} of {a.size} differ", a.flat[:8], b.flat[:8])
            else:
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5, err_msg=f"{which} {i}")
    return text


# ---- uint8 ----

class Bytes:
    """A network of uint8 in the making, and what it computes. x: a tensor and its values."""

    def __init__(self):
        self.model = Model()

    def input(self, shape, scale, zero):
        x = RNG.integers(0, 256, shape, np.uint8)
        return self.model.input("x", shape, "uint8", scale=scale, zero=zero), x

    def out(self, name, values, low, high, scale, zero, kind, inputs, option, options):
        values = clamp(values + zero, low, high).astype(np.uint8)
        out = self.model.add(name, values.shape, "uint8", scale=scale, zero=zero)
        self.model.op(kind, inputs, out, option, options)
        return out, values

    def product(self, name, x, weights, zero_w, bias, sums, scale_w, scale, zero, kind, option,
                options, relu6=False):
        tensor, _ = x
        w = self.model.constant(name + "_w", weights, scale=scale_w, zero=zero_w)
        b = self.model.constant(name + "_b", bias, scale=float(tensor.scale[0]) * scale_w)
        product = np.float64(tensor.scale[0] * np.float32(scale_w))
        values = scaled(sums + bias, multiplier(product / np.float64(np.float32(scale))))
        high = min(255, zero + round(6 / scale)) if relu6 else 255
        return self.out(name, values, zero if relu6 else 0, high, scale, zero, kind,
                        [tensor, w, b], option, options)

    def conv(self, name, x, filters, size, stride, same, zero_w, scale, zero, relu6=True):
        values = x[1].astype(np.int64) - x[0].zero[0]
        w = spread((filters, size, size, values.shape[3]))
        taps, _ = windows(values, (size, size), (stride, stride), same)
        sums = np.einsum("nhwijc,oijc->nhwo", taps, w.astype(np.int64) - zero_w)
        return self.product(name, x, w, zero_w, numbers(filters), sums, 0.004, scale, zero,
                            "CONV_2D", 1, [(0, int(not same)), (1, stride), (2, stride),
                                           (3, 3 * relu6)], relu6)

    def depthwise(self, name, x, size, stride, zero_w, scale, zero):
        values = x[1].astype(np.int64) - x[0].zero[0]
        w = spread((1, size, size, values.shape[3]))
        taps, _ = windows(values, (size, size), (stride, stride), True)
        sums = np.einsum("nhwijc,ijc->nhwc", taps, w[0].astype(np.int64) - zero_w)
        return self.product(name, x, w, zero_w, numbers(values.shape[3]), sums, 0.02, scale, zero,
                            "DEPTHWISE_CONV_2D", 2, [(0, 0), (1, stride), (2, stride), (3, 1),
                                                     (4, 3)], True)

    def dense(self, name, x, units, zero_w, scale, zero):
        values = x[1].astype(np.int64).reshape(len(x[1]), -1) - x[0].zero[0]
        w = spread((units, values.shape[1]))
        sums = values @ (w.astype(np.int64) - zero_w).T
        return self.product(name, x, w, zero_w, numbers(units), sums, 0.01, scale, zero,
                            "FULLY_CONNECTED", 8, [(0, 0)])

    def add(self, name, a, b, scale, zero):
        most = np.float64(max(a[0].scale[0], b[0].scale[0])) * 2
        sides = [scaled((v.astype(np.int64) - t.zero[0]) << 20,
                        multiplier(np.float64(t.scale[0]) / most)) for t, v in (a, b)]
        out = multiplier(most / ((1 << 20) * np.float64(np.float32(scale))))
        return self.out(name, scaled(sides[0] + sides[1], out), 0, 255, scale, zero, "ADD",
                        [a[0], b[0]], 11, [(0, 0)])

    def mean_pool(self, name, x, size, stride, same=False):
        taps, inside = windows(x[1].astype(np.int64), (size, size), (stride, stride), same)
        count = inside.sum((3, 4))
        values = (taps.sum((3, 4)) + count // 2) // count
        return self.out(name, values - x[0].zero[0], 0, 255, x[0].scale[0], x[0].zero[0],
                        "AVERAGE_POOL_2D", [x[0]], 5,
                        [(0, int(not same)), (1, stride), (2, stride), (3, size), (4, size)])

    def max_pool(self, name, x, size, stride):
        taps, _ = windows(x[1].astype(np.int64), (size, size), (stride, stride), False)
        return self.out(name, taps.max((3, 4)) - x[0].zero[0], 0, 255, x[0].scale[0],
                        x[0].zero[0], "MAX_POOL_2D", [x[0]], 5,
                        [(0, 1), (1, stride), (2, stride), (3, size), (4, size)])


def spread(shape):
    """Weights of all bytes, as a minimum and a maximum make them."""
    w = clamp(np.round(RNG.normal(130, 40, shape)), 0, 255).astype(np.uint8)
    w.flat[0], w.flat[-1] = 0, 255
    return w


def numbers(count):
    return RNG.integers(-2000, 2000, count).astype(np.int32)


def test_a_uint8_network_is_exact_and_on_int8_kernels():
    n = Bytes()
    x = n.input((1, 13, 14, 3), 0.0078125, 128)
    y = n.conv("first", x, 8, 3, 2, True, 151, 0.0235, 0)
    y = n.depthwise("spatial", y, 3, 1, 110, 0.0235, 0)
    a = n.conv("point", y, 12, 1, 1, True, 122, 0.03, 131, relu6=False)
    b = n.conv("other", a, 12, 3, 1, True, 128, 0.04, 97, relu6=False)
    y = n.add("sum", a, b, 0.05, 120)
    y = n.mean_pool("mean", y, 2, 2, same=True)
    y = n.max_pool("most", y, 2, 1)
    y = n.dense("scores", y, 7, 140, 0.1, 77)
    n.model.outputs = [y[0]]
    text = check(n.model, [x[1]], [y[1]], ("host", "stm32f746", "nrf52840", "rv32", "mps3-an547"))
    assert "sum +=" not in text, text


def test_weights_near_their_zero_point_have_none():
    n = Bytes()
    x = n.input((1, 4, 4, 8), 0.01, 3)
    values = x[1].astype(np.int64) - 3
    w = RNG.integers(60, 240, (6, 1, 1, 8), np.uint8)
    sums = np.einsum("nhwc,oc->nhwo", values, w[:, 0, 0].astype(np.int64) - 150)
    y = n.product("y", x, w, 150, numbers(6), sums, 0.01, 0.05, 100, "CONV_2D", 1,
                  [(0, 0), (1, 1), (2, 1), (3, 0)])
    n.model.outputs = [y[0]]
    text = check(n.model, [x[1]], [y[1]], ("stm32f746",))
    assert "mur_dsp_conv_s8(" in text and "weight_zero" not in text, text


# ---- operators of real numbers and plain integers, one network each ----

def reals(*shape):
    return RNG.normal(0, 1, shape).astype(np.float32)


def one(kind, arrays, outputs, constants=(), option=0, options=(), first=(), version=1,
        machines=("host",)):
    """Checks an operator: inputs, then constants (first: constants before them)."""
    model = Model()
    before = [model.constant(f"a{i}", c) for i, c in enumerate(first)]
    inputs = [model.input(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
    after = [model.constant(f"c{i}", c) for i, c in enumerate(constants)]
    model.outputs = [model.add(f"y{i}", y.shape, y.dtype) for i, y in enumerate(outputs)]
    model.op(kind, before + inputs + after, model.outputs, option, options, version)
    check(model, arrays, outputs, machines, exact=outputs[0].dtype != np.float32)


def ints(*items):
    return np.array(items, np.int32)


def test_comparisons_and_quotients():
    a, b = RNG.integers(-20, 20, (3, 4), np.int32), RNG.integers(1, 6, (3, 4), np.int32)
    b *= RNG.choice([-1, 1], b.shape).astype(np.int32)
    one("NOT_EQUAL", [a, b], [a != b])
    one("FLOOR_DIV", [a, b], [a // b])
    one("FLOOR_MOD", [a, b], [np.mod(a, b)])
    x, y = reals(3, 4), abs(reals(4)) + 1
    one("FLOOR_DIV", [x, y], [np.floor(x / y)])
    kept = np.array([True, False, True])
    one("SELECT", [kept, x, -x], [np.where(kept[:, None], x, -x)], option=47)


def test_constants_of_a_shape():
    x = reals(2, 3)
    one("ZEROS_LIKE", [x], [x * 0], option=67)
    one("FILL", [np.float32([2.5]).reshape(())], [np.full((2, 3), 2.5, np.float32)],
        first=[ints(2, 3)], option=68)
    one("RANK", [x], [np.array(2, np.int32)], option=86)


def test_reductions_of_bools_and_running_sums():
    x = RNG.integers(0, 3, (3, 4, 2)) > 0
    one("REDUCE_ALL", [x], [x.all(1)], [ints(1)], 27, [(0, 0)])
    one("REDUCE_ANY", [~x], [(~x).any((0, 2), keepdims=True)], [ints(0, -1)], 27, [(0, 1)])
    y = reals(3, 5)
    one("CUMSUM", [y], [np.cumsum(y, 1)], [np.int32(1)], 102, [(0, 0), (1, 0)])
    before = np.cumsum(y[::-1], 0)[::-1] - y
    one("CUMSUM", [y], [before.astype(np.float32)], [np.int32(0)], 102, [(0, 1), (1, 1)])


def test_elements_found_and_put():
    x = reals(4, 6)
    order = np.argsort(-x, 1, kind="stable")[:, :3]
    one("TOPK_V2", [x], [np.take_along_axis(x, order, 1), order.astype(np.int32)],
        [np.int32(3)], 34)
    at = RNG.integers(0, 4, (5, 1), np.int32)
    one("GATHER_ND", [x, at], [x[at[:, 0]]], option=83)
    sums = np.zeros((4, 6), np.float32)
    updates = reals(5, 6)
    np.add.at(sums, at[:, 0], updates)
    one("SCATTER_ND", [at, updates], [sums], [ints(4, 6)], 97)
    one("EMBEDDING_LOOKUP", [at[:, 0]], [x[at[:, 0]]], [x])
    one("ONE_HOT", [at[:, 0]], [np.where(np.arange(7) == at, 2, -1).astype(np.float32)],
        [np.int32(7), np.float32(2), np.float32(-1)], 61, [(0, -1)])


def test_elements_reversed_and_mirrored():
    x = reals(3, 4, 5)
    one("REVERSE_V2", [x], [x[:, ::-1, ::-1]], [ints(1, -1)], 81)
    lengths = ints(2, 4, 1)
    turned = x.copy()
    for i, n in enumerate(lengths):
        turned[i, :n] = x[i, :n][::-1]
    one("REVERSE_SEQUENCE", [x, lengths], [turned], (), 87, [(0, 1), (1, 0)])
    one("MIRROR_PAD", [x], [np.pad(x, [(0, 0), (2, 1), (3, 4)], "symmetric")],
        [np.int32([[0, 0], [2, 1], [3, 4]])], 77, [(0, 1)])


def test_slices_with_all_masks():
    x = reals(3, 4, 5)
    one("STRIDED_SLICE", [x], [x[..., 1]], [ints(0, 1), ints(0, 2), ints(1, 1)], 32,
        [(2, 1), (4, 2)])
    one("STRIDED_SLICE", [x], [x[1:, None, ..., ::-2]],
        [ints(1, 0, 0, 0), ints(3, 0, 0, 0), ints(1, 1, 1, -2)], 32,
        [(0, 8), (1, 8), (2, 4), (3, 2)])
    one("STRIDED_SLICE", [x], [x[1:3, 2:3]], [ints(1, 2), ints(2, 1), ints(1, 1)], 32, [(5, 1)])


def test_norms_and_pools_of_squares():
    x = reals(1, 5, 6, 7)
    taps, inside = windows(x, (3, 2), (2, 1), True)
    mean = (taps.astype(np.float64) ** 2 * inside).sum((3, 4)) / inside.sum((3, 4))
    one("L2_POOL_2D", [x], [np.sqrt(mean).astype(np.float32)], (), 5,
        [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3)])
    squares = np.pad(x.astype(np.float64) ** 2, [(0, 0)] * 3 + [(2, 2)])
    sums = sum(squares[..., i:i + 7] for i in range(5))
    one("LOCAL_RESPONSE_NORMALIZATION", [x],
        [(x / (1.5 + 0.3 * sums) ** 0.75).astype(np.float32)], (), 13,
        [(0, 2), (1, 1.5), (2, 0.3), (3, 0.75)])


def to_batch(x, block, pads):
    x = np.pad(x, [(0, 0)] + pads + [(0, 0)])
    n, h, w, c = x.shape
    x = x.reshape(n, h // block[0], block[0], w // block[1], block[1], c)
    return x.transpose(2, 4, 0, 1, 3, 5).reshape(-1, h // block[0], w // block[1], c)


def to_space(x, block, crops):
    n, h, w, c = x.shape
    x = x.reshape(block[0], block[1], -1, h, w, c).transpose(2, 3, 0, 4, 1, 5)
    x = x.reshape(-1, h * block[0], w * block[1], c)
    return x[:, crops[0][0]:x.shape[1] - crops[0][1], crops[1][0]:x.shape[2] - crops[1][1]]


def resized(x, extent, linear, corners, half):
    """x [1, h, w, c] with extent rows and columns, as TFLite places them."""
    for axis in (1, 2):
        n, i = x.shape[axis], np.arange(extent)
        at = i * (n - 1) / (extent - 1) if corners else (i + 0.5) * n / extent if half else i * n / extent
        if linear:
            at = np.maximum(at - 0.5 if half else at, 0)
            low = np.floor(at).astype(int)
            part = (at - low).reshape([-1 if d == axis else 1 for d in range(4)])
            x = x.take(low, axis) * (1 - part) + x.take(np.minimum(low + 1, n - 1), axis) * part
        else:
            x = x.take(np.minimum(np.floor(at + 0.5 if corners else at).astype(int), n - 1), axis)
    return x.astype("f4")


def test_pictures_of_another_size():
    x = np.random.default_rng(7).normal(0, 1, (1, 3, 3, 2)).astype("f4")
    for kind, option, first in (("RESIZE_BILINEAR", 15, 2), ("RESIZE_NEAREST_NEIGHBOR", 74, 0)):
        for corners, half in ((0, 0), (0, 1), (1, 0)):
            expected = resized(x, 7, kind == "RESIZE_BILINEAR", corners, half)
            one(kind, [x], [expected], [np.int32([7, 7])], option, [(first, corners), (first + 1, half)])


def test_space_and_batch():
    x = reals(2, 5, 6, 3)
    pads = [(1, 0), (2, 1)]
    y = to_batch(x, (2, 3), pads)
    one("SPACE_TO_BATCH_ND", [x], [y], [ints(2, 3), np.int32(pads)], 25)
    one("BATCH_TO_SPACE_ND", [y], [x], [ints(2, 3), np.int32(pads)], 24)


def test_a_convolution_in_phases_is_a_dilated_one():
    for depthwise in (False, True):
        model, x = Model(), reals(1, 9, 10, 4)
        block, pads, crops = (2, 2), [(2, 3), (2, 2)], [(0, 1), (0, 0)]
        w = reals(1, 3, 3, 4) if depthwise else reals(6, 3, 3, 4)
        y = to_batch(x, block, pads)
        taps, _ = windows(y, (3, 3), (1, 1), False)
        z = np.einsum("nhwijc,ijc->nhwc", taps, w[0]) if depthwise else \
            np.einsum("nhwijc,oijc->nhwo", taps, w)
        z = np.maximum(z, 0)
        end = to_space(z, block, crops)
        given = model.input("x", x.shape)
        blocks = model.constant("block", ints(*block))
        spread = model.op("SPACE_TO_BATCH_ND",
                          [given, blocks, model.constant("pads", np.int32(pads))],
                          model.add("spread", y.shape))
        code = ("DEPTHWISE_CONV_2D", 2, [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]) if depthwise \
            else ("CONV_2D", 1, [(0, 1), (1, 1), (2, 1), (3, 1)])
        conv = model.op(code[0], [spread, model.constant("w", w), None],
                        model.add("conv", z.shape), *code[1:])
        model.outputs = [model.op("BATCH_TO_SPACE_ND",
                                  [conv, blocks, model.constant("crops", np.int32(crops))],
                                  model.add("y", end.shape))]
        text = check(model, [x], [end], exact=False)
        assert ".dilation_h = 2" in text and "transpose" not in text, text


# ---- integers by way of real numbers, int16, transposed convolutions ----

def quantized(real, dtype, scale, zero):
    info = np.iinfo(dtype)
    return clamp(np.round(np.float32(real) / np.float32(scale)) + zero, info.min,
                 info.max).astype(dtype)


def through(kind, function, inputs, dtype, scale, zero, out_scale, out_zero, option=0, options=(),
            constants=(), machines=("host",)):
    """An operator whose result is at most one step from the real one's."""
    model, arrays, values = Model(), [], []
    for i, low in enumerate(inputs):
        arrays.append(RNG.integers(low, np.iinfo(dtype).max, (3, 10)).astype(dtype))
        values.append((arrays[-1].astype(np.float64) - zero) * np.float32(scale))
    xs = [model.input(f"x{i}", a.shape, dtype, scale=scale, zero=zero)
          for i, a in enumerate(arrays)]
    real = function(*values)
    expected = real if real.dtype == bool else quantized(real, dtype, out_scale, out_zero)
    out = model.add("y", expected.shape, expected.dtype,
                    **({} if real.dtype == bool else {"scale": out_scale, "zero": out_zero}))
    consts = [model.constant(f"c{i}", c) for i, c in enumerate(constants)]
    model.outputs = [model.op(kind, xs + consts, out, option, options)]
    results, _ = run_both(model, arrays, machines)
    for found, in results:
        off = abs(found.astype(np.int64) - expected)
        assert off.max() <= 1 and (off > 0).mean() <= 0.05, (kind, dtype, found, expected)
    assert all((r[0] == results[0][0]).all() for r in results), kind


def test_integers_become_real_where_they_must():
    for dtype, zero in (("int8", 3), ("uint8", 128)):
        low = zero + 5  # above nothing
        through("SQUARED_DIFFERENCE", lambda a, b: (a - b) ** 2, [low - 20, low], dtype, 0.05,
                zero, 0.0973, zero)
        through("RSQRT", lambda x: 1 / np.sqrt(x), [low], dtype, 0.05, zero, 0.01, zero)
        through("DIV", lambda a, b: a / b, [low - 30, low], dtype, 0.05, zero, 0.05, zero)
    through("L2_NORMALIZATION", lambda x: x / np.sqrt((x ** 2).sum(-1, keepdims=True)), [-100],
            "int8", 0.05, 3, 1 / 128, 0, 12)
    through("LOG_SOFTMAX", lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)), [-100], "int8",
            0.05, 3, 16 / 256, 127)
    through("LESS", lambda a, b: a < b, [-100, -100], "int8", 0.05, 3, 0, 0)
    through("LOGISTIC", lambda x: 1 / (1 + np.exp(-x)), [-9000], "int16", 0.001, 0, 1 / 30000, 0)
    through("SOFTMAX", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), [-9000], "int16",
            0.0005, 0, 1 / 32768, 0, 9, [(0, 1.0)])


def wide(sums, factor):
    """TFLite's multiplication of sums of 64 bits, which int16 has."""
    mantissa, shift = factor
    high = (mantissa + (1 << 15)) >> 16 if mantissa < 0x7FFF0000 else 0x7FFF
    return (sums * high + (1 << (14 - shift))) >> (15 - shift)


def test_activations_of_16_bits():
    model = Model()
    x = RNG.integers(-30000, 30000, (1, 6, 7, 4)).astype(np.int16)
    w, b = RNG.integers(-127, 128, (5, 3, 3, 4), np.int8), numbers(5).astype(np.int64) * 100
    given = model.input("x", x.shape, "int16", scale=0.0003)
    scales = np.float32([0.01, 0.02, 0.005, 0.03, 0.011])
    taps, _ = windows(x.astype(np.int64), (3, 3), (1, 1), True)
    sums = np.einsum("nhwijc,oijc->nhwo", taps, w.astype(np.int64)) + b
    out = np.float64(np.float32(0.001))
    y = np.stack([wide(sums[..., c], multiplier(np.float64(np.float32(0.0003)) *
                                                np.float64(scales[c]) / out))
                  for c in range(5)], -1)
    y = clamp(y, 0, 32767).astype(np.int16)
    conv = model.op("CONV_2D", [given, model.constant("w", w, scale=scales),
                                model.constant("b", b, scale=scales * np.float32(0.0003))],
                    model.add("conv", y.shape, "int16", scale=0.001), 1,
                    [(0, 0), (1, 1), (2, 1), (3, 1)])
    taps, _ = windows(y.astype(np.int64), (2, 2), (2, 2), False)
    best = taps.max((3, 4)).astype(np.int16)
    model.outputs = [model.op("MAX_POOL_2D", [conv],
                              model.add("best", best.shape, "int16", scale=0.001), 5,
                              [(0, 1), (1, 2), (2, 2), (3, 2), (4, 2)])]
    check(model, [x], [best])


def test_a_transposed_convolution_of_bytes():
    for dtype, zero, weight_zero in (("int8", 5, 0), ("uint8", 120, 131)):
        model, x = Model(), RNG.integers(0, 127, (1, 4, 5, 3)).astype(dtype)
        w = RNG.integers(0, 128, (6, 3, 3, 3)).astype(dtype)
        b = numbers(6)
        full = np.zeros((1, 4 * 2 + 1, 5 * 2 + 1, 6), np.int64)
        for i in range(4):
            for j in range(5):
                full[0, 2 * i:2 * i + 3, 2 * j:2 * j + 3] += np.einsum(
                    "c,oklc->klo", x[0, i, j].astype(np.int64) - zero,
                    w.astype(np.int64) - weight_zero)
        sums = full[:, :8, :10] + b  # SAME pads at the end alone
        product = np.float32(0.05) * np.float32(0.02) if dtype == "uint8" else \
            np.float64(np.float32(0.05)) * np.float64(np.float32(0.02))
        info = np.iinfo(dtype)
        y = clamp(scaled(sums, multiplier(np.float64(product) / np.float64(np.float32(0.3)))) +
                  zero, info.min, info.max).astype(dtype)
        shape = model.constant("shape", ints(1, 8, 10, 6))
        weights = model.constant("w", w, scale=0.02, zero=weight_zero)
        given = model.input("x", x.shape, dtype, scale=0.05, zero=zero)
        bias = model.constant("b", b, scale=float(product))
        model.outputs = [model.op("TRANSPOSE_CONV", [shape, weights, given, bias],
                                  model.add("y", y.shape, dtype, scale=0.3, zero=zero), 49,
                                  [(0, 0), (1, 2), (2, 2)], version=3)]
        check(model, [x], [y])



# ---- integers of 16 bits, and forms of 8 that have no kernel of their own ----

def bytes_between(shape, low=-128, high=128):
    return RNG.integers(low, high, shape).astype(np.int8)


def narrow(kind, arrays, outputs, scales, zeros, constants=(), option=0, options=(), dtype="int8"):
    """Checks an operator of integers: scales and zero points of the inputs, then of the outputs;
    constants: of plain i32, or of dtype with the next scale."""
    model, at, inputs = Model(), 0, []
    for a in arrays:
        inputs.append(model.input(f"x{at}", a.shape, dtype, scale=scales[at], zero=zeros[at]))
        at += 1
    for c in constants:
        plain = c.dtype != np.dtype(dtype)
        inputs.append(model.constant(f"c{len(inputs)}", c, **({} if plain else
                                                                {"scale": scales[at], "zero": zeros[at]})))
        at += not plain
    for y in outputs:
        model.outputs.append(model.add(f"y{at}", y.shape, dtype, scale=scales[at], zero=zeros[at]))
        at += 1
    model.op(kind, inputs, model.outputs, option, options, 2)
    check(model, arrays, outputs)


def rescaled(sums, scale_in, scale_out, zero):
    factor = multiplier(np.float64(np.float32(scale_in)) / np.float64(np.float32(scale_out)))
    return clamp(scaled(sums, factor) + zero, -128, 127).astype(np.int8)


def test_int8_sums_extremes_concatenations_and_slices():
    x = bytes_between((2, 5, 3))
    sums = (x.astype(np.int64) - 7).sum(1)
    narrow("SUM", [x], [rescaled(sums, 0.04, 0.1, -9)], [0.04, 0.1], [7, -9], [ints(1)], 27, [(0, 0)])
    a, b = bytes_between((3, 4)), bytes_between((4,))
    narrow("MAXIMUM", [a, b], [np.maximum(a, b)], [0.5] * 3, [3] * 3, option=39)
    narrow("MINIMUM", [a], [np.minimum(a, b)], [0.5] * 3, [3] * 3, [b], option=39)
    c = bytes_between((2, 4))
    narrow("CONCATENATION", [a], [np.concatenate([a, c])], [0.5] * 3, [3] * 3, [c], 10,
           [(0, 0), (1, 0)])
    other = np.concatenate([a, rescaled(c.astype(np.int64) - 20, 0.3, 0.5, 3)])
    narrow("CONCATENATION", [a], [other], [0.5, 0.3, 0.5], [3, 20, 3], [c], 10, [(0, 0), (1, 0)])
    narrow("GATHER", [x], [x[:, 3]], [0.5] * 2, [3] * 2, [np.int32(3)], 23, [(0, 1), (1, 0)])
    narrow("GATHER", [x], [x[:, 1:4]], [0.5] * 2, [3] * 2, [ints(1, 2, 3)], 23, [(0, 1), (1, 0)])


def line_table():
    """TFLite's sigmoid(i / 24) in Q0.16, less a sixteenth of its curvature"""
    s = 1 / (1 + np.exp(-np.arange(256) / 24))
    table = np.floor(65536 * (s - s * (1 - s) * (1 - 2 * s) / 24 ** 2 / 16) + 0.5).astype(np.int64)
    table[255] = 65535
    return table


def lines(x, scale, is_tanh):
    """Logistic and Tanh of int16, and what their Prepare makes of the scale"""
    log2 = np.log2(np.float32(scale))
    power = int(np.round(log2)) + 12
    if abs(log2 - np.round(log2)) < 1e-3 and 0 <= power <= is_tanh:
        x = x.astype(np.int64) * (3 << power)
    else:
        factor, shift = np.float64(np.float32(scale)) * 4096 * 3, 0
        while factor <= 32767 / 2 and shift <= 30:
            factor, shift = factor * 2, shift + 1
        x = (x.astype(np.int64) * int(factor) + (1 << shift - 1 if shift else 0)) >> shift
    size, by, table = np.abs(x), 8 if is_tanh else 9, line_table()
    at = np.minimum(size >> by, 254)
    line = (table[at] << by) + (size & (1 << by) - 1) * (table[at + 1] - table[at])
    if is_tanh:
        y = np.where(size >> 8 >= 255, 0xFFFF << 8, line)
        return np.where(x >= 0, y - (1 << 23) + 128, -y + (1 << 23) + 127) >> 8
    y = np.where(size >> 9 >= 255, 0x7FFF << 10, line)
    return np.where(x >= 0, y + 512, (1 << 25) - y + 511) >> 10


def test_int16_sigmoid_and_tanh_are_exact():
    x = np.concatenate([RNG.integers(-32768, 32768, 300), [-32768, 32767, 0, 1, -1]]).astype(np.int16)
    for scale in (2.0 ** -12, 2.0 ** -11, 0.00031, 1e-6, 2.0):
        for kind, is_tanh in (("LOGISTIC", False), ("TANH", True)):
            narrow(kind, [x], [lines(x, scale, is_tanh).astype(np.int16)], [scale, 2.0 ** -15],
                   [0, 0], dtype="int16")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
