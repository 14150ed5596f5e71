"""What the tests of --quant int8 share: networks as text, and the comparison of their integers with real numbers, and of
the reference's with those of generated C, here and on emulated boards."""
import json
import pathlib
import shutil
import sys
import tempfile

from files import muc
from tap import tools_of

try:
    import numpy as np
except ImportError as missing:  # for every test that imports this
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)

BATCH, SAMPLES = 8, 6
BOARDS = ("m4", "m7", "m55", "rv32")  # an instruction set each
RNG = np.random.default_rng(5)


def draw(*dims, scale=1.0):
    return (RNG.standard_normal(dims) * scale).astype(np.float32)


def const(name, values):
    """A line of a graph."""
    values = np.asarray(values, np.float32)
    return f"tensor {name} = const f32 {list(values.shape)} values {', '.join(f'{v:.9g}' for v in values.ravel())}\n"


def run(network, given, *how):
    """The outputs of a graph, as real numbers, or of a folder of C, as they are."""
    muc("run", network, "--input", given, "--output", given.parent / "y.npz", *how)
    return list(np.load(given.parent / "y.npz").values())


def same(found, expected):
    """Bit for bit."""
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b), np.argwhere(a != b)[0]


def judge(text, arrays, real, decibels, stays_float=(), boards=("m7",)):
    """Compiles a network with --quant int8 and compares. arrays: of each input, of SAMPLES times its first dimension;
    real: its outputs of a sample; gives the operators of its layers."""
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
        for y, exact in zip(run(net, given, *quantized), real(**one)):
            noise = np.sum((y.astype(np.float64) - exact) ** 2)
            ratio = 10 * np.log10(np.sum(exact ** 2) / noise)
            assert y.shape == exact.shape and ratio >= decibels, (y.shape, exact.shape, ratio)
        outputs = run(folder, given) if boards else ()
        for board in boards:
            if all(map(shutil.which, tools_of(board))):
                same(run(folder, given, "--qemu", board), outputs)
        return [layer["operator"] for layer in json.loads((folder / "net.json").read_text())["steps"]]


def check_integers(text, arrays, expected, boards=BOARDS):
    """A network of integers, whose inputs are these arrays: the reference and the generated C have the expected ones;
    gives the text of the C."""
    with tempfile.TemporaryDirectory() as place:
        net, given, got, folder = (pathlib.Path(place) / name for name in ("net.graph", "in.npz", "out.npz", "net"))
        net.write_text("graph integers\n" + text)
        np.savez(given, *arrays)
        muc("run", net, "--input", given, "--output", got)
        same(list(np.load(got).values()), expected)
        muc("compile", net, "--target", "mcu", "-o", folder)
        same(run(folder, given), expected)
        for board in boards:
            if all(map(shutil.which, tools_of(board))):
                same(run(folder, given, "--qemu", board), expected)
        return (folder / "net.c").read_text()
