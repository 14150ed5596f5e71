#!/usr/bin/env python3
"""A trained int8 network as C on emulated boards: the recorded outputs, bit for bit, and no more instructions
than were once enough.

    test_network_qemu.py MUC [all]     all: every network on every board
"""
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared/data/tflite"
MUC = pathlib.Path(sys.argv[1]).resolve()
# board: its machine and the tools it takes
BOARDS = {
    "m4": ("mps2-an386", ["arm-none-eabi-gcc", "qemu-system-arm"]),
    "m7": ("mps2-an500", ["arm-none-eabi-gcc", "qemu-system-arm"]),
    "m55": ("mps3-an547", ["arm-none-eabi-gcc", "qemu-system-arm"]),
    "rv32": ("rv32", ["riscv64-unknown-elf-gcc", "qemu-system-riscv32"]),
}
# network: most instructions on m4, m7 (0.8 times what CMSIS-NN and TinyEngine take), rv32 (0.8 times CMSIS-NN)
LIMITS = {
    "kws_ref_model": {"m4": 6200000, "m7": 6200000, "rv32": 13000000},
    "vww_96_int8": {"m4": 15700000, "m7": 15700000, "rv32": 38800000},
    "pretrainedResnet_quant": {"m4": 23900000, "m7": 23900000, "rv32": 52200000},
    "vww": {"m4": 26700000, "m7": 26700000, "rv32": 69200000},
}


def first_of(archive, name):
    """The bytes of the first row of an int8 array."""
    data = archive.read(name + ".npy")
    length = struct.unpack("<H", data[8:10])[0]
    shape = eval(re.search(r"shape': (\(.*?\))", data[10:10 + length].decode()).group(1))
    size = 1
    for extent in shape[1:]:
        size *= extent
    return data[10 + length:10 + length + size]


def check(folder, network, board):
    code, inputs, outputs = folder / f"{network}_{board}", folder / "in", folder / "out"
    with zipfile.ZipFile(DATA / f"golden/{network}.npz") as archive:
        inputs.write_bytes(first_of(archive, "input"))
        expected = first_of(archive, "output")
    subprocess.run([MUC, "compile", DATA / f"{network}.tflite", "--machine", BOARDS[board][0], "-o", code],
                   check=True, capture_output=True, text=True)
    done = subprocess.run([ROOT / "scripts/run_network", board, code, inputs, outputs, "--count"], check=True,
                          capture_output=True, text=True)
    assert not done.stderr, done.stderr  # no compiler warns
    assert outputs.read_bytes() == expected, (outputs.read_bytes(), expected)
    count = int(done.stdout)
    assert count <= LIMITS[network].get(board, count), f"{count} instructions"
    return count


def main():
    networks = list(LIMITS) if "all" in sys.argv else ["kws_ref_model"]
    cases = [(network, board) for network in networks for board in BOARDS]
    failed = 0
    print(f"1..{len(cases)}")
    with tempfile.TemporaryDirectory() as folder:
        for number, (network, board) in enumerate(cases, 1):
            line = f"{number} - {network} on {board}"
            missing = [tool for tool in BOARDS[board][1] if not shutil.which(tool)]
            if not DATA.is_dir():
                missing.append(str(DATA))
            if missing:
                print(f"ok {line} # SKIP {', '.join(missing)} is missing")
                continue
            try:
                print(f"ok {line}: {check(pathlib.Path(folder), network, board)} instructions")
            except (AssertionError, subprocess.CalledProcessError) as error:
                failed += 1
                print(f"not ok {line}")
                for text in f"{error}\n{getattr(error, 'stderr', '')}".splitlines():
                    print(f"# {text}")
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
