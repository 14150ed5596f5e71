#!/usr/bin/env python3
"""Networks whose lengths a run decides, from the command line: several exports of one network that become one program
with caches and calibration records, and dimensions that a file leaves open. Prints TAP.

    tests/test_lengths.py MUC [boards]     boards: on an emulated board instead, where its tools are at hand
"""
import io
import json
import pathlib
import random
import sys
import tempfile
import zipfile

import files
import tap
from files import MISMATCH, ROOT, USAGE, muc

sys.path.insert(0, str(ROOT / "fuzz"))
import onnx_seeds as onnx

SHAPES = ROOT / "fuzz/corpus/onnx/shapes"
OPEN = ["--dim", "batch=1..1024"]  # as the file leaves it; code is for one sample otherwise
WIDTH = 4
# rows in the cache, new rows, factor of the requantization: what calibrating at that length gave
EXPORTS = {"short": (1, 1, 3000), "long": (7, 1, 2500), "prompt": (0, 5, 2000)}


def export(folder, name):
    """A layer of attention without a softmax in QuantLib's integers: new rows go to a cache, x is multiplied by it."""
    pos, m, factor = EXPORTS[name]
    weights = [1, -2, 3, 4, 5, 6, -7, 8, 9, -1, 2, 3, -4, 5, 6, 7]

    def scalar(value):
        return onnx.data(5, onnx.tensor("", [], [float(value)])) + onnx.number(20, 4)

    def requant(x, y, mul):
        return onnx.node("RequantShift", [x, mul, "none"], [y], n_levels=scalar(256), signed=scalar(1),
                         div=scalar(1 << 16))

    nodes = [onnx.node("MatMul", ["x", "w"], ["p"]), requant("p", "k", "mul"),
             onnx.node("Concat", ["cache", "k"], ["all"], axis=1), requant("all", "same", "one"),
             onnx.node("Transpose", ["same"], ["t"], perm=[0, 2, 1]), onnx.node("MatMul", ["x", "t"], ["scores"])]
    path = folder / f"{name}.onnx"
    path.write_bytes(onnx.model(
        nodes, [onnx.value("x", [1, m, WIDTH]), onnx.value("cache", [1, pos, WIDTH])],
        [onnx.value("scores", [1, m, pos + m]), onnx.value("same", [1, pos + m, WIDTH])],
        [onnx.tensor("w", [WIDTH, WIDTH], [float(w) for w in weights]), onnx.tensor("mul", [], [float(factor)]),
         onnx.tensor("one", [], [65536.0]), onnx.tensor("none", [], [0.0])]))
    return path


def inputs(folder, pos, m):
    draw = random.Random(100 * pos + m)
    path = folder / f"in_{pos}_{m}.npz"
    files.write_npz(path, [((1, rows, WIDTH), [float(draw.randint(-128, 127)) for _ in range(rows * WIDTH)])
                           for rows in (m, pos)])
    return path


def results(folder, *arguments):
    path = folder / "out.npz"
    path.unlink(missing_ok=True)
    muc("run", *arguments, "--output", path)
    return path.read_bytes()


def all_exports(folder):
    return [export(folder, name) for name in EXPORTS]


def test_exports_run_as_one_network_at_the_length_that_the_arrays_have(folder):
    paths = all_exports(folder)
    for path, (pos, m, _) in zip(paths, EXPORTS.values()):
        given = inputs(folder, pos, m)
        alone, together = results(folder, path, "--input", given), results(folder, *paths, "--input", given)
        assert shapes_and_values(alone) == shapes_and_values(together), path


def shapes_and_values(archive):
    """The arrays of a .npz file, whatever their names."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        return [file.read(name) for name in file.namelist()]


def test_the_code_of_exports_runs_at_every_length_of_theirs(folder):
    paths = all_exports(folder)
    muc("compile", *paths, "--machine", "host", "-o", folder / "code")
    for path, (pos, m, _) in zip(paths, EXPORTS.values()):
        given = inputs(folder, pos, m)
        alone, code = results(folder, path, "--input", given), results(folder, folder / "code", "--input", given)
        assert shapes_and_values(alone) == shapes_and_values(code), path
    header = (folder / "code/short.h").read_text()
    assert "SHORT_CACHE_OFFSET" in header, header


def test_verify_compares_the_code_with_each_export(folder):
    paths = all_exports(folder)
    muc("compile", *paths, "--machine", "host", "-o", folder / "code")
    found = json.loads(muc("verify", folder / "code", *paths, "--json"))
    assert found["exact"] is True, found
    assert [(row["pos"], row["m"], row["wrong"]) for row in found["exports"]] == \
        [(pos, m, 0) for pos, m, _ in EXPORTS.values()], found
    one = json.loads(muc("verify", folder / "code", *paths, "--input", inputs(folder, 7, 1), "--json"))
    assert one["exact"] is True and "exports" not in one and len(one["layers"]) > 4, one
    # code that was made of others is found out
    other = EXPORTS["long"]
    try:
        EXPORTS["long"] = (7, 1, 2600)
        changed = export(folder, "long")
    finally:
        EXPORTS["long"] = other
    source = folder / "code/record_1_pos7_m1.i32"
    assert source.stat().st_size == 4, "one factor differs"
    muc("verify", folder / "code", paths[0], changed, paths[2], status=MISMATCH, message="differ at")


def test_a_length_that_no_export_has_needs_a_record(folder):
    paths = all_exports(folder)
    given = inputs(folder, 3, 2)
    muc("compile", *paths, "--machine", "host", "--ctx-size", 20, "-o", folder / "code")
    for where in (paths, [folder / "code"]):
        muc("run", *where, "--input", given, status=USAGE, message="calibration record")


def test_what_takes_no_exports_says_so(folder):
    short, long, _ = all_exports(folder)
    muc("run", ROOT / "models/rescue", short, "--prompt", "x", status=USAGE, message="only a network has exports")
    muc("verify", short, long, status=USAGE, message="muc verify FOLDER NETWORK")
    muc("run", short, short, "--input", inputs(folder, 1, 1), status=USAGE)
    muc("compile", short, long, "--machine", "host", "-o", folder / "code")
    muc("run", folder / "code", short, status=USAGE, message="unexpected argument")
    muc("verify", folder / "code", status=USAGE, message="muc verify FOLDER NETWORK")
    muc("run", folder, status=files.IO, message="neither a checkpoint, which has a config.json, nor code")
    muc("report", folder / "nothing", status=files.IO, message="nothing: is not a folder")


def test_open_dimensions_follow_from_the_arrays(folder):
    given = folder / "x.npy"
    given.write_bytes(files.npy((3, 4, 6), [i / 4 for i in range(72)]))
    muc("compile", SHAPES, *OPEN, "--machine", "host", "-o", folder / "code")
    alone, code = (results(folder, what, "--input", given) for what in (SHAPES, folder / "code"))
    assert shapes_and_values(alone) == shapes_and_values(code)
    for arguments in ([], ["--input", given]):
        found = json.loads(muc("verify", folder / "code", SHAPES, *OPEN, *arguments, "--json"))
        assert found["exact"] is True and found["tensors"] >= 1, found
    given.write_bytes(files.npy((3, 4, 5), [0.0] * 60))
    for what in (SHAPES, folder / "code"):
        muc("run", what, "--input", given, status=USAGE, message="x")


def refused_by_both(folder, model, dims, good, bad, message):
    """The reference and the code agree on arrays that fit, and both name the node where they do not."""
    path, code, given = folder / "net.onnx", folder / "code", folder / "in.npz"
    path.write_bytes(model)
    muc("compile", path, "--target", "mcu", *dims, "-o", code)
    for arrays, status in ((good, files.OK), (bad, USAGE)):
        files.write_npz(given, arrays)
        muc("verify", code, path, *dims, "--input", given, status=status, message=message if status else "")
        for what in ([path, *dims], [code]):
            muc("run", *what, "--input", given, status=status, message=message if status else "")
    return code


def test_lengths_with_which_shapes_do_not_fit_are_refused_by_the_code_too(folder):
    dims, x, out = ["--dim", "N=1..8"], [onnx.value("x", ["N", 4])], [onnx.value("y", [])]

    def array(n, width=4):
        return [((n, width), [i / 4 for i in range(n * width)])]

    def reshape(*shape):
        return onnx.model([onnx.node("Reshape", ["x", "s"], ["y"])], x, out,
                          [onnx.tensor("s", [len(shape)], list(shape), onnx.INT64)])

    code = refused_by_both(folder, reshape(1, 8), dims, array(2), array(3), "node 'y': as many elements")
    muc("verify", code, folder / "net.onnx", *dims)  # on arrays that it makes: N = 2
    header, main = ((code / name).read_text() for name in ("net.h", "main.c"))
    assert "int net_run(void *arena, uint32_t dim_N);" in header and "N is not 2" in main, main
    refused_by_both(folder, reshape(-1, 8), dims, array(4), array(5), "node 'y': as many elements")
    pieces = [onnx.tensor("p", [2], [2, 3], onnx.INT64)]
    split = onnx.model([onnx.node("Split", ["x", "p"], ["y", "z"])], x, out + [onnx.value("z", [])], pieces)
    refused_by_both(folder, split, dims, array(5), array(4), "the sum of sizes")
    (folder / "net.onnx").write_bytes(reshape(1, 6))
    for verb in (["inspect"], ["compile", "-o", folder / "none"]):
        muc(verb[0], folder / "net.onnx", *verb[1:], *dims, status=files.MALFORMED, message="expected 3")


def test_the_code_of_a_network_with_an_open_batch_is_made_for_one_image(folder):
    path, given = folder / "net.onnx", folder / "x.npy"
    path.write_bytes(onnx.model([onnx.node("Conv", ["x", "w"], ["y"])], [onnx.value("x", ["N", 1, 4, 4])],
                                [onnx.value("y", ["N", 2, 2, 2])],
                                [onnx.tensor("w", [2, 1, 3, 3], [i / 4 for i in range(18)])]))
    given.write_bytes(files.npy((1, 1, 4, 4), [float(i) for i in range(16)]))
    muc("compile", path, "--target", "mcu", "--dim", "N=1..1024", "-o", folder / "code", status=files.UNSUPPORTED,
        message="dimension 'N' is open, 1..1024; --dim N=1 sets it, --dim N=1..16 narrows it")
    muc("compile", path, "--target", "mcu", "-o", folder / "code", message="N=1")
    for dims in [], ["--dim", "N=1"]:
        found = json.loads(muc("verify", folder / "code", path, *dims, "--input", given, "--json"))
        assert found["exact"] is True, found
    muc("verify", folder / "code", path, "--dim", "N=1..2", "--input", given, status=MISMATCH, message="given --dim N=1")
    assert shapes_and_values(results(folder, path, "--input", given)) == \
        shapes_and_values(results(folder, folder / "code", "--input", given))


def test_a_length_is_a_sum_of_others(folder):
    path, given = ROOT / "fuzz/corpus/onnx/cache", folder / "in.npz"
    dims = ("--dim", "past=0..9,new=1..4")
    files.write_npz(given, [((7,), [0.5] * 7), ((4, 4), [1.0] * 16), ((3, 4), [2.0] * 12)])
    muc("compile", path, "--target", "mcu", *dims, "-o", folder / "code")
    found = json.loads(muc("verify", folder / "code", path, *dims, "--input", given, "--json"))
    assert found["exact"] is True, found
    files.write_npz(given, [((6,), [0.5] * 6), ((4, 4), [1.0] * 16), ((3, 4), [2.0] * 12)])
    muc("run", path, *dims, "--input", given, status=USAGE, message="[past + new]")
    muc("run", path, "--dim", "new=past..4", "--input", given, status=USAGE, message="NAME=FORMULA")
    muc("run", path, "--dim", "new=other+1", "--input", given, status=USAGE,
        message="'other+1' is not a sum or product of numbers and of the inputs' other dimensions")


def test_code_of_other_weights_or_options_is_refused_before_it_runs(folder):
    def network(weight):
        path = folder / f"net{weight}.onnx"
        path.write_bytes(onnx.model([onnx.node("MatMul", ["x", "w"], ["y"])], [onnx.value("x", [3, 2])],
                                    [onnx.value("y", [3, 2])], [onnx.tensor("w", [2, 2], [1.0, 2.0, 3.0, weight])]))
        return path
    samples = folder / "samples.npy"
    samples.write_bytes(files.npy((3, 2), [1.0, -1.0, 0.5, 2.0, -2.0, 0.25]))
    quantized = ("--quant", "int8", "--calib", samples)
    muc("compile", network(4.0), *quantized, "--machine", "host", "-o", folder / "code")
    muc("verify", folder / "code", network(4.0), *quantized)
    muc("verify", folder / "code", network(4.5), *quantized, status=MISMATCH, message="another network than")
    muc("verify", folder / "code", network(4.0), status=MISMATCH, message="given --quant int8 --calib samples.npy")


def boards_run_at_every_length(folder):
    tap.need(*tap.tools_of("m7"))
    paths = all_exports(folder)
    muc("compile", *paths, "--machine", "mps2-an500", "-o", folder / "code")
    for pos, m, _ in list(EXPORTS.values())[1:]:
        given = inputs(folder, pos, m)
        host, board = results(folder, folder / "code", "--input", given), \
            results(folder, folder / "code", "--input", given, "--qemu", "m7")
        assert host == board, (pos, m)
    report = json.loads(muc("report", folder / "code", "--qemu", "m7", "--json"))
    assert report["instructions"] > 0, report
    muc("compile", SHAPES, *OPEN, "--machine", "mps2-an500", "-o", folder / "open")
    given = folder / "x.npy"
    given.write_bytes(files.npy((3, 4, 6), [i / 4 for i in range(72)]))
    assert results(folder, SHAPES, "--input", given) == results(folder, folder / "open", "--input", given, "--qemu", "m7")


def test_dimensions_may_be_called_as_anything_in_c(folder):
    """What generated code calls its own, and words of C: the same results under every name."""
    path, code, given = folder / "net.onnx", folder / "code", folder / "x.npy"
    given.write_bytes(files.npy((3, 4), [i / 4 for i in range(12)]))
    for name in ("n", "y", "a", "x", "i0", "sum", "int", "for", "arena", "inputs", "argc", "refused", "memory", "dim_n"):
        path.write_bytes(onnx.model(
            [onnx.node("ReduceMean", ["x"], ["means"], axes=[0], keepdims=0),
             onnx.node("Clip", ["x", "low", "high"], ["clipped"]),
             onnx.node("Concat", ["x", "clipped"], ["both"], axis=0)],
            [onnx.value("x", [name, 4])], [onnx.value("means", [4]), onnx.value("both", [name, 4])],
            [onnx.tensor("low", [], [0.5]), onnx.tensor("high", [], [2.0])]))
        muc("compile", path, "--target", "mcu", "--dim", f"{name}=1..8", "-o", code)
        assert results(folder, path, "--input", given) == results(folder, code, "--input", given), name


def in_a_folder(test):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            test(pathlib.Path(folder))
    return run


if __name__ == "__main__":
    boards = {"test_boards_run_at_every_length": boards_run_at_every_length}
    tests = boards if sys.argv[2:] == ["boards"] else {k: v for k, v in globals().items() if k.startswith("test_")}
    sys.exit(files.run_tests({name: in_a_folder(test) for name, test in tests.items()}))
