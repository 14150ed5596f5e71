"""ONNX networks as ONNX Runtime's quantizers, optimisations and training write them: through the
reference and through C, against NumPy by the operators' definitions."""
import json
import pathlib
import sys
import tempfile

from files import MALFORMED, ROOT, UNSUPPORTED, muc, run_tests

try:
    import numpy as np
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)
sys.path.insert(0, str(ROOT / "fuzz"))
from onnx_seeds import data, node, number, value  # noqa: E402

RNG = np.random.default_rng(11)
KINDS = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
MICROSOFT = "com.microsoft"


def initializer(name, array):
    array = np.asarray(array)
    return b"".join(number(1, d) for d in array.shape) + number(2, KINDS[str(array.dtype)]) + \
        data(8, name) + data(9, array.tobytes())


class Net:
    """Nodes one after the other; constants are arrays in the places of inputs' names."""

    def __init__(self, **inputs):
        self.inputs, self.nodes, self.constants = inputs, [], []

    def op(self, kind, inputs, outputs="y", domain="", **attributes):
        names = []
        for i in inputs:
            if not isinstance(i, str):
                self.constants.append(initializer(f"c{len(self.constants)}", i))
                i = f"c{len(self.constants) - 1}"
            names.append(i)
        outputs = outputs.split()
        self.nodes.append(node(kind, names, outputs, domain, **attributes))
        return outputs[0]

    def bytes(self, outputs):
        ends = [value(name, shape, kind) for name, (shape, kind) in outputs.items()]
        starts = [value(k, a.shape, KINDS[str(a.dtype)]) for k, a in self.inputs.items()]
        graph = b"".join(data(1, n) for n in self.nodes) + data(2, "g") + \
            b"".join(data(5, c) for c in self.constants) + \
            b"".join(data(11, s) for s in starts) + b"".join(data(12, e) for e in ends)
        return number(1, 8) + data(7, graph) + data(8, data(1, "") + number(2, 17)) + \
            data(8, data(1, MICROSOFT) + number(2, 1))


def run(net, expected, name="y", options=()):
    """The reference's and the code's result, and the text of the code."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        file, given, got, code = [folder / n for n in ("net.onnx", "in.npz", "out.npz", "code")]
        file.write_bytes(net.bytes({name: (expected.shape, KINDS[str(expected.dtype)])}))
        np.savez(given, **net.inputs)
        muc("run", file, "--input", given, "--output", got)
        reference, = np.load(got).values()
        muc("compile", file, "--target", "mcu", "-o", code)
        muc("run", code, "--input", given, "--output", got)
        made, = np.load(got).values()
        return reference, made, (code / "net.c").read_text()


def check(net, expected, name="y", step=0, tolerance=1e-5):
    """Within a step of integers; the reference as the definition says."""
    reference, made, text = run(net, expected, name)
    assert reference.shape == made.shape == expected.shape, (reference.shape, expected.shape)
    if expected.dtype == np.float32:
        np.testing.assert_allclose(reference, expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(made, expected, rtol=tolerance, atol=tolerance)
        return text
    wide = expected.astype(np.int64)
    assert (abs(reference - wide) > 0).sum() <= wide.size * 0.02, (reference, expected)
    assert abs(reference - wide).max() <= 1, (reference, expected)
    assert abs(made - wide).max() <= step, (made, expected)
    return text


def draw(*shape, dtype="uint8"):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def real(x, scale, zero):
    return (x.astype(np.float64) - zero) * np.float32(scale)


def stored(x, scale, zero, dtype="uint8"):
    info = np.iinfo(dtype)
    return np.clip(np.rint(np.float32(x) / np.float32(scale)) + zero, info.min, info.max).astype(dtype)


S, Z, F = np.float32(0.04), np.uint8(120), np.float32


def unary(kind, function, shape=(1, 4, 6, 6), scale=0.03, zero=90, **attributes):
    x = draw(*shape)
    net = Net(x=x)
    net.op(kind, ["x", S, Z, F(scale), np.uint8(zero)], domain=MICROSOFT, **attributes)
    return check(net, stored(function(real(x, S, 120)), scale, zero), step=1)


def test_sums_and_products_of_bytes():
    for kind, function, step in (("QLinearAdd", np.add, "mur_ref_line_s8("),
                                 ("QLinearMul", np.multiply, "(const int8_t *a, const int8_t *b, int8_t *y)")):
        a, b = draw(1, 3, 5, 5), draw(1, 3, 5, 5)
        net = Net(a=a, b=b)
        net.op(kind, ["a", S, Z, "b", F(0.02), np.uint8(7), F(0.09), np.uint8(60)],
               domain=MICROSOFT)
        y = stored(function(real(a, S, 120), real(b, 0.02, 7)), 0.09, 60)
        text = check(net, y, step=1)
        assert step in text, text


def test_pools_and_functions_of_bytes():
    unary("QLinearGlobalAveragePool", lambda x: x.mean((2, 3), keepdims=True))
    # nine bytes: their mean is never in the middle of two
    unary("QLinearAveragePool",
          lambda x: x.reshape(1, 4, 2, 3, 2, 3).mean((3, 5)), scale=0.04, zero=120,
          kernel_shape=[3, 3], strides=[3, 3])
    unary("QLinearLeakyRelu", lambda x: np.where(x > 0, x, 0.1 * x), alpha=0.1)
    unary("QLinearSigmoid", lambda x: 1 / (1 + np.exp(-x)), scale=1 / 256, zero=0)
    unary("QLinearSoftmax", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
          shape=(3, 10), scale=1 / 256, zero=0, axis=-1, opset=13)
    unary("QLinearReduceMean", lambda x: x.mean(1), shape=(3, 10), axes=[1], keepdims=0)


def test_bytes_are_joined():
    a, b = draw(2, 3), draw(2, 4)
    net = Net(a=a, b=b)
    net.op("QLinearConcat", [F(0.05), np.uint8(100), "a", S, Z, "b", F(0.02), np.uint8(7)],
           domain=MICROSOFT, axis=1)
    y = np.concatenate([real(a, S, 120), real(b, 0.02, 7)], 1)
    check(net, stored(y, 0.05, 100), step=1)


def test_a_product_of_matrices_of_bytes():
    for transposed in (0, 1):
        x, w = draw(2, 20), draw(20, 6, dtype="int8")
        scales, c = np.float32(RNG.uniform(0.01, 0.03, 6)), RNG.integers(-900, 900, 6).astype("i4")
        net = Net(x=x)
        net.op("QGemm", ["x", S, Z, w.T if transposed else w, scales, np.zeros(6, np.int8), c,
                         F(0.5), np.uint8(128)], domain=MICROSOFT, transB=transposed)
        y = real(x, S, 120) @ (w * scales.astype(np.float64)) + c * (S * scales).astype(np.float64)
        text = check(net, stored(y, 0.5, 128), step=1)
        assert "mur_ref_fc_coded_s8(" in text, text


def quantized(net, x, scale, zero, output=""):
    """a tensor that is quantized and dequantized"""
    q = net.op("QuantizeLinear", [x, F(scale), np.uint8(zero)], output or f"{x}_q")
    return q if output else net.op("DequantizeLinear", [q, F(scale), np.uint8(zero)], f"{x}_d")


def test_what_only_moves_numbers_parts_no_integers():
    """a pair of steps stands around products alone: reshapes and transposes between move integers"""
    x, w, scales = draw(1, 6, 4, 2), draw(48, 5, dtype="int8"), F(RNG.uniform(0.005, 0.01, 5))
    net = Net(x=x)
    net.op("DequantizeLinear", ["x", S, Z], "real")
    net.op("Transpose", ["real"], "turned", perm=[0, 2, 3, 1])
    net.op("Flatten", ["turned"], "flat")
    net.op("DequantizeLinear", [w, scales, np.zeros(5, np.int8)], "w", axis=1)
    net.op("MatMul", ["flat", "w"], "sums")
    quantized(net, "sums", 0.2, 130, "y")
    y = real(x, S, 120).transpose(0, 2, 3, 1).reshape(1, 48) @ (w * scales.astype(np.float64))
    text = check(net, stored(y, 0.2, 130), step=1)
    assert "mur_ref_fc_coded_s8(" in text, text


def is_of_integers(text):
    """but for what quantizes bytes of the network's input"""
    return "_f32(" not in text.replace("quantize_f32(", "")


def test_a_product_with_a_turned_matrix_and_its_softmax_are_integers():
    q, k = draw(1, 7, 16), draw(1, 9, 16)
    net = Net(q=q, k=k)
    net.op("DequantizeLinear", ["q", S, Z], "q_d")
    net.op("DequantizeLinear", ["k", S, Z], "k_d")
    net.op("Transpose", ["k_d"], "turned", perm=[0, 2, 1])
    net.op("MatMul", ["q_d", "turned"], "sums")
    net.op("Softmax", [quantized(net, "sums", 0.125, 128)], "parts", axis=2)
    quantized(net, "parts", 1 / 256, 0, "y")
    sums = real(stored(real(q, S, 120) @ real(k, S, 120).transpose(0, 2, 1), 0.125, 128), 0.125, 128)
    text = check(net, stored(softmax(sums), 1 / 256, 0), step=1)
    assert "mur_ref_softmax_s8(" in text and is_of_integers(text), text


def test_a_turned_matrix_and_a_sum_behind_it_are_a_linear_of_integers():
    """what PyTorch writes of a Linear whose weights are fake quantized, for more than two dimensions"""
    x, w, bias = draw(2, 3, 12), draw(5, 12, dtype="int8"), F(RNG.normal(0, 1, 5))
    for scales in (F(RNG.uniform(0.005, 0.01, 5)), F(0.007)):
        net = Net(x=x)
        net.op("DequantizeLinear", ["x", S, Z], "real")
        net.op("DequantizeLinear", [w, scales, np.zeros(scales.shape, np.int8)], "w", axis=0)
        net.op("Transpose", ["w"], "turned", perm=[1, 0])
        net.op("MatMul", ["real", "turned"], "sums")
        net.op("Add", [bias, "sums"], "moved")
        quantized(net, "moved", 0.1, 130, "y")
        y = real(x, S, 120) @ (w * scales.reshape(-1, 1).astype(np.float64)).T + bias
        text = check(net, stored(y, 0.1, 130), step=1)
        assert "linear_2" in text and is_of_integers(text), text


def test_functions_written_in_steps_between_integers_are_tables():
    for steps, function in (((("Sigmoid", ["real"], "s"), ("Mul", ["real", "s"], "f")), lambda x: x / (1 + np.exp(-x))),
                            ((("Relu", ["real"], "s"), ("Clip", ["s", F(0), F(2)], "f")), lambda x: np.clip(x, 0, 2))):
        x = draw(2, 150)
        net = Net(x=x)
        net.op("DequantizeLinear", ["x", S, Z], "real")
        for step in steps:
            net.op(*step)
        quantized(net, "f", 0.03, 20, "y")
        text = check(net, stored(function(real(x, S, 120)), 0.03, 20), step=1)
        assert "mur_ref_table_s8(" in text and is_of_integers(text), text


def test_transposed_convolutions_have_a_scale_a_channel():
    x, w, scales = draw(1, 4, 3, 3), draw(4, 5, 2, 2, dtype="int8"), F(RNG.uniform(0.005, 0.01, 5))
    net = Net(x=x)
    net.op("DequantizeLinear", ["x", S, Z], "real")
    net.op("DequantizeLinear", [w, scales, np.zeros(5, np.int8)], "w", axis=1)
    net.op("ConvTranspose", ["real", "w"], "sums", strides=[2, 2])
    quantized(net, "sums", 0.1, 128, "y")
    y = np.einsum("nchw,coij->nohiwj", real(x, S, 120), w * scales.reshape(-1, 1, 1).astype(np.float64)).reshape(1, 5, 6, 6)
    text = check(net, stored(y, 0.1, 128), step=1)
    assert "mur_ref_conv_pairs_s8(" in text, text


def test_what_stays_real_among_integers_is_named():
    net = Net(x=draw(2, 12))
    net.op("DequantizeLinear", ["x", S, Z], "real")
    net.op("CumSum", ["real", np.int32(1)], "sums")
    net.op("Sigmoid", [quantized(net, "sums", 0.1, 128)], "s")
    quantized(net, "s", 1 / 256, 0, "y")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "net.onnx"
        file.write_bytes(net.bytes({"y": ((2, 12), KINDS["uint8"])}))
        made = json.loads(muc("compile", file, "--target", "mcu", "-o", pathlib.Path(folder) / "code", "--json"))
    found = {row["operator"] for row in made["float32"]}  # bytes without a scale are also read and written as real numbers
    assert found == {"dequantize_linear", "cum_sum", "quantize_linear"}, made


def dynamic(x):
    """DynamicQuantizeLinear."""
    low, high = min(0, x.min()), max(0, x.max())
    scale = F(F(high - low) / F(255))
    zero = np.clip(np.rint(F(-low / scale)), 0, 255)
    return np.clip(np.rint(x / scale) + zero, 0, 255), scale, zero


def test_a_layer_quantized_when_it_runs():
    x, w, bias = RNG.normal(0, 1, (3, 24)).astype("f4"), draw(24, 5), RNG.normal(0, 1, 5).astype("f4")
    net = Net(x=x)
    net.op("DynamicQuantizeLinear", ["x"], "q scale zero")
    net.op("MatMulInteger", ["q", w, "zero", np.uint8(117)], "sums")
    net.op("Cast", ["sums"], "real", to=1)
    net.op("Mul", ["scale", F(0.013)], "scales")
    net.op("Mul", ["real", "scales"], "scaled")
    net.op("Add", ["scaled", bias])
    q, scale, zero = dynamic(x)
    y = (q - zero) @ (w.astype(np.float64) - 117) * (scale * F(0.013)) + bias
    check(net, y.astype("f4"), tolerance=1e-4)
    fused = Net(x=x)
    fused.op("DynamicQuantizeMatMul", ["x", w, F(0.013), np.uint8(117), bias], domain=MICROSOFT)
    check(fused, y.astype("f4"), tolerance=1e-4)


def test_a_convolution_quantized_when_it_runs():
    x, w = RNG.normal(0, 1, (1, 3, 6, 6)).astype("f4"), draw(4, 3, 3, 3)
    net = Net(x=x)
    net.op("DynamicQuantizeLinear", ["x"], "q scale zero")
    net.op("ConvInteger", ["q", w, "zero", np.uint8(130)], "sums", pads=[1, 1, 1, 1])
    net.op("Cast", ["sums"], "real", to=1)
    net.op("Mul", ["scale", F(0.02)], "scales")
    net.op("Mul", ["real", "scales"])
    q, scale, zero = dynamic(x)
    q = np.pad(q - zero, [(0, 0), (0, 0), (1, 1), (1, 1)])
    taps = np.stack([np.stack([q[:, :, i:i + 6, j:j + 6] for j in range(3)], -1)
                     for i in range(3)], -2)
    y = np.einsum("nchwij,ocij->nohw", taps, w.astype(np.float64) - 130) * (scale * F(0.02))
    check(net, y.astype("f4"), tolerance=1e-4)


def gelu(x):
    from math import erf
    return x / 2 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def test_fused_operators():
    x, b = RNG.normal(0, 1, (2, 3, 8)).astype("f4"), RNG.normal(0, 1, 8).astype("f4")
    g = RNG.normal(1, 0.1, 8).astype("f4")
    net = Net(x=x)
    net.op("BiasGelu", ["x", b], domain=MICROSOFT)
    check(net, gelu(x + b).astype("f4"))
    net = Net(x=x)
    net.op("FastGelu", ["x", b], domain=MICROSOFT)
    s = x.astype("f8") + b
    check(net, (s / 2 * (1 + np.tanh(0.7978845608 * (s + 0.044715 * s ** 3)))).astype("f4"))
    net = Net(x=x)
    net.op("QuickGelu", ["x"], domain=MICROSOFT, alpha=1.702)
    check(net, (x / (1 + np.exp(-1.702 * x.astype("f8")))).astype("f4"))
    net = Net(x=x, k=x)
    net.op("FusedMatMul", ["x", "k"], domain=MICROSOFT, transB=1, alpha=0.25)
    check(net, (0.25 * x.astype("f8") @ x.transpose(0, 2, 1)).astype("f4"))
    for kind, extra in (("SkipLayerNormalization", [b]), ("SkipSimplifiedLayerNormalization", [])):
        net = Net(x=x, s=x)
        net.op(kind, ["x", "s", g] + extra, domain=MICROSOFT, epsilon=1e-5)
        y = 2 * x.astype("f8")
        y -= y.mean(-1, keepdims=True) if extra else 0
        y = y / np.sqrt((y ** 2).mean(-1, keepdims=True) + 1e-5) * g + (b if extra else 0)
        check(net, y.astype("f4"))
    image, w = RNG.normal(0, 1, (1, 2, 4, 4)).astype("f4"), RNG.normal(0, 1, (3, 2, 1, 1)).astype("f4")
    net = Net(x=image)
    net.op("FusedConv", ["x", w], domain=MICROSOFT, activation="Relu")
    check(net, np.maximum(np.einsum("nchw,oc->nohw", image, w[:, :, 0, 0]), 0))
    net = Net(x=image)
    net.op("FusedConv", ["x", w], domain=MICROSOFT, activation="Neg")
    refused(net, image.shape, "activation 'Neg'")


def derivative(function, x, dy, step=1e-5):
    """of the sum of function(x) dy, by differences"""
    x, out = x.astype("f8"), np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[i] += sign * step
            ends.append((function(moved) * dy).sum())
        out[i] = (ends[0] - ends[1]) / (2 * step)
    return out.astype("f4")


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def test_gradients_are_the_derivatives_of_what_they_are_of():
    x, dy = RNG.normal(0, 1, (2, 3, 4)).astype("f4"), RNG.normal(0, 1, (2, 3, 4)).astype("f4")
    relu, sigmoid = lambda x: np.maximum(x, 0), lambda x: 1 / (1 + np.exp(-x))
    logarithms = lambda axis: lambda x: np.log(softmax(x, axis))
    middle = lambda x: softmax(x, 1)
    for kind, function, of_y, attributes in (
            ("ReluGrad", relu, True, {}), ("ReluGrad", relu, False, {}), ("SigmoidGrad", sigmoid, True, {}),
            ("TanhGrad", np.tanh, True, {}), ("GeluGrad", gelu, False, {}), ("SoftmaxGrad", softmax, True, {"axis": 2}),
            ("SoftmaxGrad_13", middle, True, {"axis": 1}), ("LogSoftmaxGrad", logarithms(-1), True, {"axis": -1}),
            ("LogSoftmaxGrad_13", logarithms(1), True, {"axis": 1})):
        y = function(x.astype("f8")).astype("f4")
        net = Net(dy=dy, x=y if of_y else x)
        net.op(kind, ["dy", "x"], domain=MICROSOFT, **attributes)
        check(net, derivative(function, x, dy), tolerance=1e-4)


def convolved(x, w, strides, dilations, pads, groups):
    """of images [N, C, H, W], by the definition"""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, w.shape[2:])]
    size = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, strides)]
    out = np.zeros((x.shape[0], w.shape[0], *size))
    each, filters = x.shape[1] // groups, w.shape[0] // groups
    for m in range(w.shape[0]):
        part = x[:, m // filters * each:][:, :each]
        for i, j in np.ndindex(*size):
            top, left = i * strides[0], j * strides[1]
            patch = part[:, :, top:top + reach[0]:dilations[0], left:left + reach[1]:dilations[1]]
            out[:, m, i, j] = (patch * w[m]).sum((1, 2, 3))
    return out


def test_the_gradients_of_convolutions():
    for shape, wide, strides, dilations, pads, groups in (
            ((2, 3, 5, 6), (4, 3, 3, 2), (1, 1), (1, 1), (0, 0, 0, 0), 1), ((1, 2, 7, 6), (3, 2, 3, 3), (2, 2), (1, 1), (1, 1, 1, 1), 1),
            ((2, 4, 6, 8), (4, 1, 3, 3), (2, 3), (1, 1), (1, 0, 0, 2), 4), ((2, 4, 7, 7), (6, 2, 2, 3), (1, 2), (2, 1), (0, 1, 1, 0), 2),
            ((1, 3, 6, 6), (2, 3, 1, 1), (4, 4), (1, 1), (0, 0, 0, 0), 1)):
        x, w = RNG.normal(0, 1, shape).astype("f4"), RNG.normal(0, 1, wide).astype("f4")
        of = (strides, dilations, pads, groups)
        dy = RNG.normal(0, 1, convolved(x, w, *of).shape).astype("f4")
        for output, expected in (("dx", derivative(lambda x: convolved(x, w, *of), x, dy)),
                                 ("dw", derivative(lambda w: convolved(x, w, *of), w, dy)), ("db", dy.sum((0, 2, 3)))):
            net = Net(dy=dy, x=x, w=w)
            net.op("ConvGrad", ["dy", "x", "w"], "dx dw db", MICROSOFT, strides=list(strides), dilations=list(dilations),
                   pads=list(pads), group=groups, kernel_shape=list(wide[2:]))
            check(net, expected, output, tolerance=1e-4)


def test_the_gradients_of_a_layer_norm_in_both_forms():
    x, dy = RNG.normal(0, 1, (2, 3, 4)).astype("f4"), RNG.normal(0, 1, (2, 3, 4)).astype("f4")
    scale, bias = RNG.normal(1, 0.2, 4).astype("f4"), RNG.normal(0, 1, 4).astype("f4")

    def norm(x, scale=scale.astype("f8"), bias=0):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-3) * scale + bias

    net = Net(dy=dy, x=x)
    net.op("LayerNormalizationGrad", ["dy", "x", scale, bias], domain=MICROSOFT, axis=-1, epsilon=1e-3)
    check(net, derivative(norm, x, dy), tolerance=1e-4)
    mean = x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-3)
    for output, expected in (("dx", derivative(norm, x, dy)),
                             ("dscale", derivative(lambda s: norm(x, s), scale, dy)),
                             ("dbias", derivative(lambda b: norm(x, 1, b), bias, dy))):
        net = Net(dy=dy, x=x, mean=mean, inverse=inverse)
        net.op("LayerNormalizationGrad", ["dy", "x", scale, "mean", "inverse"], "dx dscale dbias", MICROSOFT, axis=-1)
        check(net, expected, output, tolerance=1e-4)


def test_a_step_of_training():
    """a linear classifier: loss, gradients, new weights"""
    x, w = RNG.normal(0, 1, (3, 5)).astype("f4"), RNG.normal(0, 1, (4, 5)).astype("f4")
    labels, dy = np.array([2, 0, 3]), np.array(1, dtype="f4")
    loss = lambda w: -np.log(softmax(x @ w.T))[np.arange(3), labels].mean()
    net = Net(x=x, w=w, labels=labels, dy=dy)
    net.op("Gemm", ["x", "w"], "logits", transB=1)
    net.op("SoftmaxCrossEntropyLoss", ["logits", "labels"], "loss log_prob")
    net.op("SoftmaxCrossEntropyLossGrad", ["dy", "log_prob", "labels"], "dlogits", MICROSOFT)
    net.op("Gemm", ["dlogits", "x"], "dw", transA=1)
    net.op("SGD", ["w", "dw"], "new", lr=0.5)
    net.op("DebugPrint", ["new"], domain="Deeploy")
    check(net, (w - 0.5 * derivative(loss, w, 1.0)).astype("f4"), tolerance=1e-4)
    net = Net(x=x)
    net.op("SoftmaxGrad", ["x", "x"], domain=MICROSOFT, axis=0)
    refused(net, x.shape, "axis 0 of 2 is not the last")
    net = Net(x=x)
    net.op("SGD", ["x", "x"])
    refused(net, x.shape, "'lr' is missing", MALFORMED)


def refused(net, shape, message, status=UNSUPPORTED):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "net.onnx"
        file.write_bytes(net.bytes({"y": (shape, 1)}))
        muc("run", file, status=status, message=message)


def test_a_pool_of_all_pixels_by_a_norm():
    x = RNG.normal(0, 1, (2, 3, 4, 5)).astype("f4")
    for p, attributes in ((1, {"p": 1}), (2, {"p": 2}), (2, {})):
        net = Net(x=x)
        net.op("GlobalLpPool", ["x"], **attributes)
        check(net, ((np.abs(x.astype("f8")) ** p).sum((2, 3), keepdims=True) ** (1 / p)).astype("f4"))
    net = Net(x=x)
    net.op("GlobalLpPool", ["x"], p=3)
    refused(net, (2, 3, 1, 1), "attribute 'p' is not 2")


def test_what_is_not_known_is_named():
    x = RNG.normal(0, 1, (1, 2, 8)).astype("f4")
    for kind, message in (("QAttention", "QAttention"), ("DynamicQuantizeLSTM", "DynamicQuantizeLSTM")):
        net = Net(x=x)
        net.op(kind, ["x"], domain=MICROSOFT)
        refused(net, x.shape, message)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
