#!/usr/bin/env python3
"""ONNX networks that compile although their names or types fit no C as they are. Prints TAP.

    tests/test_networks.py MUC
"""
import json
import math
import pathlib
import random
import sys
import tempfile

import files
from files import ROOT, muc

sys.path.insert(0, str(ROOT / "fuzz"))
import onnx_seeds as onnx

DOUBLE = 11


def agrees(folder, network, dims, values):
    """The network's own results; those of its code are the same, compiled without a warning."""
    given, code = folder / "in.npy", folder / "code"
    given.write_bytes(files.npy(dims, values))
    muc("compile", network, "--target", "mcu", "-o", code)
    found = json.loads(muc("verify", code, network, "--input", given, "--json"))
    assert found["exact"] is True, found
    results = []
    for what in (network, code):
        muc("run", what, "--input", given, "--output", folder / "out.npz")
        results.append([values for _, _, values in files.read_npz(folder / "out.npz")])
    for a, b in zip(*results, strict=True):
        files.close(b, a)
    return results[0], code


def test_words_of_c_and_names_that_differ_by_case_are_outputs(folder):
    names = ["int", "INT", "class", "arena", "x", "main.c"]
    path = folder / "main.onnx"
    path.write_bytes(onnx.model([onnx.node("Mul", ["in", f"k{i}"], [name]) for i, name in enumerate(names)],
                                [onnx.value("in", [2])], [onnx.value(name, [2]) for name in names],
                                [onnx.tensor(f"k{i}", [1], [float(i)]) for i in range(len(names))]))
    results, code = agrees(folder, path, (2,), [1.0, -3.0])
    assert results == [[i * 1.0, i * -3.0] for i in range(len(names))], results
    assert (code / "main_network.h").exists() and (code / "main.c").exists()




def test_channels_in_another_place_are_no_input(folder):
    path, code = folder / "net.onnx", folder / "code"
    path.write_bytes(onnx.model([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", [1, 3, 2, 2])],
                                [onnx.value("y", [1, 3, 2, 2])]))
    muc("compile", path, "--target", "mcu", "-o", code)
    for dims, status in (((1, 3, 2, 2), files.OK), ((12,), files.OK), ((3, 4), files.OK), ((3, 2, 2), files.OK),
                         ((1, 2, 2, 3), files.USAGE), ((2, 3, 2), files.USAGE)):
        given = folder / "x.npy"
        given.write_bytes(files.npy(dims, [1.0] * 12))
        muc("run", path, "--input", given, status=status, message="[1, 3, 2, 2], the array" if status else "")
        muc("run", code, "--input", given, status=status, message="in another order" if status else "")
    samples = folder / "samples.npy"
    samples.write_bytes(files.npy((4, 2, 2, 3), [1.0] * 48))
    muc("run", path, "--quant", "int8", "--calib", samples, "--input", folder / "x.npy", status=files.USAGE,
        message="[1, 3, 2, 2], the array")


def test_doubles_on_the_way_are_computed_as_floats(folder):
    path = folder / "wide.onnx"
    wide = onnx.data(5, onnx.number(1, 1) + onnx.number(2, DOUBLE) + onnx.data(9, files.struct.pack("<d", 0.1)))
    path.write_bytes(onnx.model(
        [onnx.node("Cast", ["x"], ["d"], to=DOUBLE), onnx.node("Constant", [], ["tenth"], value=wide + onnx.number(20, 4)),
         onnx.node("Mul", ["d", "tenth"], ["m"]), onnx.node("Reshape", ["m", "shape"], ["r"]),
         onnx.node("Tanh", ["r"], ["t"]), onnx.node("Cast", ["t"], ["y"], to=1)],
        [onnx.value("x", [2, 2])], [onnx.value("y", [4])], [onnx.tensor("shape", [1], [4], 7)]))
    results, code = agrees(folder, path, (2, 2), [1.0, -2.0, 3.0, 0.5])
    files.close(results[0], [0.09966799, -0.19737532, 0.29131261, 0.04995838])
    assert "double" not in (code / "wide.c").read_text()


def test_patches_that_leave_out_what_a_pool_drops_can_be_read_back(folder):
    """Keras's example for MNIST: its second pool drops a row and a column of 11."""
    draw = random.Random(1)
    path, samples, given, code = (folder / name for name in ("net.onnx", "samples.npy", "in.npy", "code"))

    def weights(name, *dims):
        return onnx.tensor(name, dims, [draw.gauss(0, 0.1) for _ in range(math.prod(dims))])

    path.write_bytes(onnx.model(
        [onnx.node("Conv", ["x", "w1"], ["c1"]), onnx.node("Relu", ["c1"], ["r1"]),
         onnx.node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
         onnx.node("Conv", ["p1", "w2"], ["c2"]), onnx.node("Relu", ["c2"], ["r2"]),
         onnx.node("MaxPool", ["r2"], ["p2"], kernel_shape=[2, 2], strides=[2, 2]),
         onnx.node("Flatten", ["p2"], ["f"]), onnx.node("MatMul", ["f", "w3"], ["y"])],
        [onnx.value("x", [1, 1, 28, 28])], [onnx.value("y", [1, 10])],
        [weights("w1", 32, 1, 3, 3), weights("w2", 64, 32, 3, 3), weights("w3", 1600, 10)]))
    given.write_bytes(files.npy((1, 1, 28, 28), [draw.random() for _ in range(784)]))
    samples.write_bytes(files.npy((4, 1, 28, 28), [draw.random() for _ in range(4 * 784)]))
    quant = ["--quant", "int8", "--calib", samples]
    told = json.loads(muc("compile", path, *quant, "--patch", "least", "-o", code, "--json"))
    whole = 26 * 26 * 9 * 32 + 11 * 11 * 9 * 32 * 64 + 16000
    assert told["macs"] - told["recomputed_macs"] == whole and told["recomputed_macs"] < 0, told
    assert json.loads(muc("verify", code, path, *quant, "--input", given, "--json"))["exact"] is True
    assert json.loads(muc("report", code, "--json"))["recomputed_macs"] == told["recomputed_macs"]
    muc("run", code, "--input", given)


def test_arrays_that_the_reference_refuses_end_a_comparison(folder):
    path, code, given = folder / "net.onnx", folder / "code", folder / "in.npz"
    path.write_bytes(onnx.model([onnx.node("Gather", ["x", "at"], ["y"])],
                                [onnx.value("x", [3, 2]), onnx.value("at", [2], onnx.INT64)],
                                [onnx.value("y", [2, 2])]))
    muc("compile", path, "--target", "mcu", "-o", code)
    files.write_npz(given, [((3, 2), [1.0] * 6), ((2,), [0.0, 3.0])])
    muc("verify", code, path, "--input", given, status=files.MALFORMED, message="'at' holds 3 at 1, expected -3..2")


def test_indices_that_a_tensor_does_not_have_are_refused_by_the_code_too(folder):
    path, code, given = folder / "net.onnx", folder / "code", folder / "in.npz"
    x, update = ((3, 2), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), ((2, 2), [7.0] * 4)
    for name, index, bad, more in (
            ("Gather", ((2,), [2.0, -3.0]), ((2,), [0.0, 3.0]), []),
            ("GatherElements", ((2, 2), [2.0, -3.0, 0.0, 1.0]), ((2, 2), [0.0, -4.0, 0.0, 0.0]), []),
            ("GatherND", ((2, 2), [2.0, -2.0, 0.0, 1.0]), ((2, 2), [0.0, 2.0, 0.0, 0.0]), []),
            ("ScatterElements", ((2, 2), [2.0, 0.0, 0.0, 1.0]), ((2, 2), [0.0, 5.0, 0.0, 0.0]), [update]),
            ("ScatterND", ((2, 1), [1.0, 0.0]), ((2, 1), [3.0, 0.0]), [update]),
            ("ReverseSequence", ((2,), [3.0, 2.0]), ((2,), [4.0, 1.0]), [])):
        inputs = ["x", "at"] + ["u"] * len(more)
        path.write_bytes(onnx.model(
            [onnx.node(name, inputs, ["y"])],
            [onnx.value("x", [3, 2]), onnx.value("at", list(index[0]), onnx.INT64)] +
            [onnx.value("u", list(u[0])) for u in more], [onnx.value("y", [])]))
        muc("compile", path, "--target", "mcu", "-o", code)
        assert "int net_run(void *arena);" in (code / "net.h").read_text(), name
        files.write_npz(given, [x, index, *more])
        muc("verify", code, path, "--input", given)
        files.write_npz(given, [x, bad, *more])
        muc("run", path, "--input", given, status=files.MALFORMED, message="node 'y'")
        muc("run", code, "--input", given, status=files.USAGE, message="node 'y': 'at' holds what is out of range")
    path.write_bytes(onnx.model([onnx.node("Gather", ["x", "at"], ["y"])], [onnx.value("x", [3, 2])],
                                [onnx.value("y", [])], [onnx.tensor("at", [2], [0, 3], onnx.INT64)]))
    muc("compile", path, "--target", "mcu", "-o", code, status=files.MALFORMED, message="'at' holds 3 at 1, expected -3..2")


def of_one_operator(folder, values, nodes, constants=(), opset=13, outputs=1, quant=()):
    """What ref makes of values [1, 1, N], exactly what the code does too."""
    path, given, code, out = (folder / name for name in ("net.onnx", "in.npy", "code", "out.npz"))
    path.write_bytes(onnx.model(nodes, [onnx.value("x", [1, 1, len(values)])],
                                [onnx.value(f"y{i}", []) for i in range(outputs)], constants, opset=opset))
    given.write_bytes(files.npy((1, 1, len(values)), values))
    muc("compile", path, *quant, "--target", "mcu", "-o", code)
    assert json.loads(muc("verify", code, path, *quant, "--input", given, "--json"))["exact"] is True, nodes
    muc("run", path, *quant, "--input", given, "--output", out)
    return files.read_npz(out)[0][2]


def test_of_bounds_that_cross_the_upper_one_wins(folder):
    """ONNX: Clip is min(max(x, low), high)."""
    values, samples = [0.0, 3.0, -1.0, 1.5], folder / "samples.npy"
    samples.write_bytes(files.npy((2, 1, 4), [-4.0, 4.0, 1.0, 0.0] * 2))
    clip, bounds = onnx.node("Clip", ["x", "low", "high"], ["y0"]), [onnx.tensor("low", [], [2.0]), onnx.tensor("high", [], [1.0])]
    weights = onnx.tensor("w", [1, 1, 1], [1.0])
    after_conv = [onnx.node("Conv", ["x", "w"], ["c"]), onnx.node("Clip", ["c", "low", "high"], ["y0"])]
    assert of_one_operator(folder, values, [clip], bounds) == [1.0] * 4
    assert of_one_operator(folder, values, [onnx.node("Clip", ["x"], ["y0"], min=2.0, max=1.0)], opset=9) == [1.0] * 4
    assert of_one_operator(folder, values, after_conv, [weights, *bounds]) == [1.0] * 4
    assert of_one_operator(folder, values, after_conv, [weights, *bounds],
                           quant=["--quant", "int8", "--calib", samples]) == [1.0] * 4
    integers = [onnx.node("Cast", ["x"], ["i"], to=7), onnx.node("Clip", ["i", "low", "high"], ["c"]),
                onnx.node("Cast", ["c"], ["y0"], to=1)]
    bounds = [onnx.tensor("low", [], [2], onnx.INT64), onnx.tensor("high", [], [1], onnx.INT64)]
    assert of_one_operator(folder, values, integers, bounds) == [1.0] * 4


def test_what_is_no_number_stays_so_in_code_too(folder):
    values = [math.nan, 1.0, -math.inf, 0.0, math.nan, 2.0]
    lowest = onnx.tensor("low", [], [0.0])
    assert str(of_one_operator(folder, values, [onnx.node("Clip", ["x", "low"], ["y0"])], [lowest])) == \
        "[nan, 1.0, 0.0, 0.0, nan, 2.0]"
    for name in ("Relu", "Max", "Min"):
        inputs = ["x"] if name == "Relu" else ["x", "low"]
        found = of_one_operator(folder, values, [onnx.node(name, inputs, ["y0"])], [lowest])
        assert math.isnan(found[0]) and math.isnan(found[4]), (name, found)
    for name in ("ReduceMax", "ReduceMin"):
        found = of_one_operator(folder, values, [onnx.node(name, ["x"], ["y0"])])
        assert math.isnan(found[0]), (name, found)
    assert math.isnan(of_one_operator(folder, values, [onnx.node("GlobalMaxPool", ["x"], ["y0"])])[0])
    for name, best in (("ArgMax", 0.0), ("ArgMin", 2.0)): # a NaN is above all
        found = of_one_operator(folder, values, [onnx.node(name, ["x"], ["i"], axis=2), onnx.node("Cast", ["i"], ["y0"], to=1)])
        assert found == [best], (name, found)


def decibels(exact, found):
    noise = sum((a - b) ** 2 for a, b in zip(exact, found))
    return 10 * math.log10(sum(a * a for a in exact) / noise) if noise else math.inf


def detection_head(draw, last):
    """Boxes up to 300 and scores up to 1 of one tensor of features, brought together."""
    def weights(name, *dims, scale=1.0):
        each = math.prod(dims[1:])
        return onnx.tensor(name, dims, [draw.gauss(0, scale / each ** 0.5) for _ in range(math.prod(dims))])

    nodes = [onnx.node("Conv", ["x", "w1"], ["c1"]), onnx.node("Relu", ["c1"], ["h"]),
             onnx.node("Conv", ["h", "wb"], ["b0"]), onnx.node("Relu", ["b0"], ["b1"]),
             onnx.node("Mul", ["b1", "k"], ["boxes"]), onnx.node("Conv", ["h", "ws"], ["s0"])]
    constants = [weights("w1", 8, 3, 3, 3, scale=2), weights("wb", 4, 8, 1, 1), weights("ws", 3, 8, 1, 1, scale=3),
                 weights("wm", 5, 7, 1, 1), onnx.tensor("k", [], [150.0]),
                 *(onnx.tensor(f"i{i}", [1], [i], onnx.INT64) for i in (0, 1, 4, 7))]
    return onnx.model(nodes + last, [onnx.value("x", [1, 3, 8, 8])], [onnx.value(n, []) for n in ("y", "z")], constants)


def test_the_scale_of_a_concat_stays_with_the_concat(folder):
    """Scores keep their own levels, whatever they stand beside."""
    path, code, samples, given, out = (folder / n for n in ("net.onnx", "code", "s.npy", "in.npy", "out.npz"))
    sigmoid, concat = onnx.node("Sigmoid", ["s0"], ["s1"]), onnx.node("Concat", ["boxes", "s1"], ["c"], axis=1)
    raw = onnx.node("Concat", ["boxes", "s0"], ["c"], axis=1)
    turned = onnx.node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1])
    heads = {  # names of scores alone: z; of the rest: y
        "together": [sigmoid, concat, onnx.node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]),
                     onnx.node("Identity", ["s1"], ["z"])],
        "apart again": [sigmoid, concat, turned, onnx.node("Slice", ["t", "i0", "i4", "i1"], ["y"]),
                        onnx.node("Slice", ["c", "i4", "i7", "i1"], ["z"])],
        "before the sigmoid": [raw, turned, onnx.node("Slice", ["c", "i0", "i4", "i1"], ["y"]),
                               onnx.node("Slice", ["c", "i4", "i7", "i1"], ["s2"]), onnx.node("Sigmoid", ["s2"], ["z"])],
        "for a convolution": [sigmoid, concat, onnx.node("Conv", ["c", "wm"], ["y"]), onnx.node("Identity", ["s1"], ["z"])],
        "the greater": [sigmoid, onnx.node("ReduceMax", ["boxes"], ["m"], axes=[1]), onnx.node("Max", ["m", "s1"], ["y"]),
                        onnx.node("Identity", ["s1"], ["z"])]}
    for name, last in heads.items():
        draw = random.Random(7)
        path.write_bytes(detection_head(draw, last))
        samples.write_bytes(files.npy((16, 3, 8, 8), [draw.random() for _ in range(16 * 192)]))
        given.write_bytes(files.npy((1, 3, 8, 8), [draw.random() for _ in range(192)]))
        quant = ["--quant", "int8", "--calib", samples]
        results = []
        for options in ([], quant):
            muc("run", path, *options, "--input", given, "--output", out)
            results.append({array: values for array, _, values in files.read_npz(out)})
        for array, least in (("y", 30), ("z", 40)):
            found = decibels(results[0][array], results[1][array])
            assert found > least, f"{name}: '{array}' has {found:.1f} dB"
        if name == "together":
            scores = [[v for i, v in enumerate(r["y"]) if i % 7 >= 4] for r in results]
            assert decibels(*scores) > 40, decibels(*scores)
        muc("compile", path, *quant, "--target", "mcu", "-o", code)
        assert json.loads(muc("verify", code, path, *quant, "--input", given, "--json"))["exact"] is True, name


def test_convolutions_in_groups_are_of_int8_too(folder):
    draw = random.Random(11)
    path, samples, given, out = (folder / n for n in ("net.onnx", "s.npy", "in.npy", "out.npz"))
    weights = [onnx.tensor(name, dims, [draw.gauss(0, 1 / math.prod(dims[1:]) ** 0.5) for _ in range(math.prod(dims))])
               for name, dims in (("w1", (12, 4, 3, 3)), ("w2", (8, 3, 1, 1)))]
    path.write_bytes(onnx.model(
        [onnx.node("Conv", ["x", "w1"], ["c"], group=2, pads=[1, 1, 1, 1], strides=[2, 2]), onnx.node("Relu", ["c"], ["h"]),
         onnx.node("Conv", ["h", "w2"], ["y"], group=4)],
        [onnx.value("x", [1, 8, 7, 6])], [onnx.value("y", [])], weights))
    samples.write_bytes(files.npy((16, 8, 7, 6), [draw.gauss(0, 1) for _ in range(16 * 336)]))
    given.write_bytes(files.npy((1, 8, 7, 6), [draw.gauss(0, 1) for _ in range(336)]))
    quant, results = ["--quant", "int8", "--calib", samples], []
    for options in ([], quant):
        muc("run", path, *options, "--input", given, "--output", out)
        results.append(files.read_npz(out)[0][2])
    assert decibels(*results) > 30, decibels(*results)
    for target in ("mcu", "cnnchip"):
        told = json.loads(muc("compile", path, *quant, "--target", target, "-o", folder / target, "--json"))
        assert not told.get("float32"), told["float32"]
        assert json.loads(muc("verify", folder / target, path, *quant, "--input", given, "--json"))["exact"] is True, target


def test_what_stays_float_or_loses_much_is_named_and_kept_on_demand(folder):
    """One convolution makes boxes and scores, whose scale is that of the boxes."""
    draw = random.Random(3)
    path, code, samples, given, out = (folder / n for n in ("net.onnx", "code", "s.npy", "in.npy", "out.npz"))
    rows = [draw.gauss(0, 100 if i < 32 else 1) / 3 for i in range(56)]
    path.write_bytes(onnx.model(
        [onnx.node("Conv", ["x", "w"], ["head"]), onnx.node("Slice", ["head", "i4", "i7", "i1"], ["s"]),
         onnx.node("Sigmoid", ["s"], ["scores"]), onnx.node("Slice", ["head", "i0", "i4", "i1"], ["boxes"]),
         onnx.node("CumSum", ["scores", "i1"], ["last"])],
        [onnx.value("x", [1, 8, 4, 4])], [onnx.value(n, []) for n in ("boxes", "scores", "last")],
        [onnx.tensor("w", [7, 8, 1, 1], rows),
         *(onnx.tensor(f"i{i}", [1], [i], onnx.INT64) for i in (0, 1, 4, 7))]))
    samples.write_bytes(files.npy((8, 8, 4, 4), [draw.random() for _ in range(8 * 128)]))
    given.write_bytes(files.npy((1, 8, 4, 4), [draw.random() for _ in range(128)]))
    muc("run", path, "--input", given, "--output", out)
    exact = files.read_npz(out)[1][2]
    quant = ["--quant", "int8", "--calib", samples]
    for keep, least in ([], 5), (["--keep-float", "head"], 45), (["--keep-float", "Conv,boxes"], 45):
        told = json.loads(muc("compile", path, *quant, *keep, "--target", "mcu", "-o", code, "--json"))
        low = {row["node"]: row["snr_db"] for row in told.get("below_25_db", [])}
        real = {row["node"]: row["operator"] for row in told["float32"]}
        assert real["last"] == "cum_sum" and ("head" in real) == bool(keep), real
        assert ("s" in low) != bool(keep) and all(db < 25 for db in low.values()), low
        muc("run", path, *quant, *keep, "--input", given, "--output", out)
        found = decibels(exact, files.read_npz(out)[1][2])
        assert found > least, (keep, found)
        assert json.loads(muc("verify", code, path, *quant, *keep, "--input", given, "--json"))["exact"] is True
    text = muc("compile", path, *quant, "--target", "mcu", "-o", code)
    assert "below 25 db:" in text and "float32:" in text, text
    muc("verify", code, path, *quant, *keep, "--input", given, status=files.MISMATCH, message="other options")
    muc("compile", path, *quant, "--keep-float", "heed", "-o", code, status=files.USAGE, message="did you mean 'head'?")
    muc("compile", path, "--keep-float", "head", "-o", code, status=files.USAGE, message="--quant int8")


def in_a_folder(test):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            test(pathlib.Path(folder))
    return run


if __name__ == "__main__":
    tests = {k: v for k, v in globals().items() if k.startswith("test_")}
    sys.exit(files.run_tests({name: in_a_folder(test) for name, test in tests.items()}))
