#!/usr/bin/env python3
"""The CNN chip driven by a master under QEMU: a network with a host step in the middle and one at its end, and a trained
one, give the bits that `muc run` gives here.

    test_chip_qemu.py MUC
"""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERAS = ROOT.parent / "shared/data/keras"
BOARDS = {"m4": ["arm-none-eabi-gcc", "qemu-system-arm"],
          "rv32": ["riscv64-unknown-elf-gcc", "qemu-system-riscv32"]}
def write_npy(path, shape, values):
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + values)


def muc(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"muc {arguments[0]} exits {done.returncode}: {done.stderr.strip()}")


def read_only_array(path):
    """The elements of the one array of a stored .npz."""
    import zipfile
    with zipfile.ZipFile(path) as archive:
        data = archive.read(archive.namelist()[0])
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


def check(folder, name, network, shape, board):
    chip, raw = folder / f"{name}_{board}", folder / "in.bin"
    size = 1
    for dim in shape:
        size *= dim
    values = struct.pack(f"<{size}f", *(((i * 29) % 101) / 100 for i in range(size)))
    raw.write_bytes(values)
    write_npy(folder / "in.npy", shape, values)
    muc("compile", network, "--target", "cnnchip", "--pes", 16, "-o", chip)
    muc("run", chip, "--input", folder / "in.npy", "--output", folder / "out.npz")
    done = subprocess.run([ROOT / "scripts/run_chip", sys.argv[1], board, chip, raw, folder / "out.bin"],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return (folder / "out.bin").read_bytes() == read_only_array(folder / "out.npz")


def main():
    sys.argv[1] = str(pathlib.Path(sys.argv[1]).resolve())
    failed = number = 0
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        networks = [("small", ROOT / "examples/cnnchip/small.graph", (1, 2, 6, 6)), ("mnist_dw", KERAS / "mnist_dw.h5", (1, 28, 28, 1))]
        print(f"1..{len(networks) * len(BOARDS)}")
        for name, network, shape in networks:
            for board, tools in BOARDS.items():
                number += 1
                line = f"{number} - {name} on {board} gives the bits that it gives here"
                missing = [t for t in tools if not shutil.which(t)]
                absent = "no shared data" if not network.exists() else ""
                if os.environ.get("MUC_TESTS_SLOW") == "0":
                    absent = "slow"
                if absent or missing:
                    print(f"ok {line} # SKIP {absent or ', '.join(missing) + ' is missing'}")
                    continue
                try:
                    good = check(folder, name, network, shape, board)
                except RuntimeError as error:
                    good = False
                    print("#", str(error).replace("\n", "\n# "))
                failed += not good
                print(f"{'ok' if good else 'not ok'} {line}", flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
