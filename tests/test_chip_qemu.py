#!/usr/bin/env python3
"""The CNN chip driven by a master under QEMU: a network with a host step in the middle and one at its end, and a trained
one, give the bits that `muc run` gives here.

    test_chip_qemu.py MUC
"""
import functools
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

from tap import Skip, need, run_cases, tools_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERAS = ROOT.parent / "shared/data/keras"
BOARDS = ["m4", "rv32"]


def write_npy(path, shape, values):
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + values)


def muc(*arguments):
    subprocess.run([sys.argv[1], *map(str, arguments)], check=True, capture_output=True, text=True)


def read_only_array(path):
    """The elements of the one array of a stored .npz."""
    with zipfile.ZipFile(path) as archive:
        data = archive.read(archive.namelist()[0])
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


def check(folder, name, network, shape, board):
    if os.environ.get("MUC_TESTS_SLOW") == "0":
        raise Skip("slow")
    if not network.exists():
        raise Skip("no shared data")
    need(*tools_of(board))
    chip, raw = folder / f"{name}_{board}", folder / "in.bin"
    size = math.prod(shape)
    values = struct.pack(f"<{size}f", *(((i * 29) % 101) / 100 for i in range(size)))
    raw.write_bytes(values)
    write_npy(folder / "in.npy", shape, values)
    muc("compile", network, "--target", "cnnchip", "--pes", 16, "-o", chip)
    muc("run", chip, "--input", folder / "in.npy", "--output", folder / "out.npz")
    subprocess.run([ROOT / "scripts/run_chip", sys.argv[1], board, chip, raw, folder / "out.bin"], check=True, capture_output=True, text=True)
    assert (folder / "out.bin").read_bytes() == read_only_array(folder / "out.npz"), "other bits"


def cases(folder):
    for name, network, shape in (("small", ROOT / "examples/cnnchip/small.graph", (1, 2, 6, 6)), ("mnist_dw", KERAS / "mnist_dw.h5", (1, 28, 28, 1))):
        for board in BOARDS:
            yield f"{name} on {board} gives the bits that it gives here", functools.partial(check, folder, name, network, shape, board)


if __name__ == "__main__":
    sys.argv[1] = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as place:
        sys.exit(run_cases(cases(pathlib.Path(place))))
