#!/usr/bin/env python3
"""bench/layers/count on emulated boards: every layer has the bits of the reference, and no board has more slow layers, a slower
worst layer or more large arenas than bench/layers.csv says; of layers drawn by chance, the bits. On Cortex-M4, M7 and M55 no layer takes
more modelled cycles than a peer's, and none that once was slower than on floats, or than before, is so again.

    test_layers_qemu.py MUC [BOARD...]
"""
import functools
import pathlib
import subprocess
import sys

from tap import Skip, need, run_cases, tools_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT.parent / "shared/data/baselines/layers.csv"
BOARDS = sys.argv[2:] or ["m0", "m3", "m4", "m7", "m55", "rv32", "rv32v"]
BUILD = pathlib.Path(sys.argv[1]).resolve().parent.parent.parent


def check(board, *options):
    need(*tools_of(board))
    done = subprocess.run([ROOT / "bench/layers/count", "--build", BUILD, "--worst", "3", *options, board], capture_output=True, text=True, cwd=ROOT)
    for line in (done.stdout + done.stderr).splitlines():
        print(f"# {line}")
    assert done.returncode == 0, f"bench/layers/count ends with {done.returncode}"


def check_table(board, option):
    if not TABLE.exists():
        raise Skip("no shared data")
    check(board, option)


def check_cycles(board):
    need(*(("arm-none-eabi-objdump",) if board == "m4" else ("llvm-mca-22", "llvm-objdump-22")))
    check_table(board, "--cycles")


def cases():
    for board in BOARDS:
        yield f"layers rows of the table on {board}", functools.partial(check_table, board, "--check")
        if board in ("m4", "m7", "m55"):
            yield f"layers rows of the table in cycles on {board}", functools.partial(check_cycles, board)
        yield f"layers drawn by chance on {board}", functools.partial(check, board, "--generated", "20")
        if board in ("m4", "m7", "m55"):
            yield f"layers that were too slow on {board}", functools.partial(check, board, "--cliffs")


if __name__ == "__main__":
    sys.exit(run_cases(cases()))
