#!/usr/bin/env python3
"""Kernels of mur_nn.def and a decoder's matrices and attention on emulated boards, every bit: the cases of tests/nn_cases.c,
tests/nn_row_cases.c, tests/low_cases.c and tests/attention_cases.c; kernels of halves, of tests/nn_f16_cases.c, on those with Helium."""
import functools
import pathlib
import subprocess
import sys
import tempfile

from tap import need, run_cases, tools_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOARDS = sys.argv[1:] or ["m0", "m3", "m4", "m7", "m23", "m33", "m55", "m85", "rv32", "rv32e", "rv32f", "rv32v", "rv32v256", "rv32v512", "rv64",
                          "rv64v"]  # f405, an m4, has no room for the cases

KERNELS = "tests/nn_qemu.c tests/nn_cases.c tests/nn_row_cases.c tests/nn_f32_cases.c tests/low_cases.c tests/attention_cases.c"
HALVES = "tests/nn_f16_qemu.c tests/nn_f16_cases.c tests/nn_f32_cases.c"  # one program has no room for all

BUILD_AND_RUN = """
set -euo pipefail
. scripts/qemu_boards
board "$1"
$compiler -std=c11 -O2 -ffreestanding -ffp-contract=off -ffunction-sections -Wall -Wextra -Werror \
    -isystem runtime/freestanding -Iruntime/include -Iexamples/qemu -Itests -nostdlib \
    -Wl,--gc-sections,--no-warn-rwx-segments -L examples/qemu -T "$script" $3 \
    runtime/kernels/*/*.c runtime/freestanding/string.c \
    examples/qemu/semihosting.c examples/qemu/$start -lgcc -o "$2"
$emulator -display none -monitor none -serial none -kernel "$2" \
    -semihosting-config enable=on,target=native
"""


def check(folder, sources, board):
    need(*tools_of(board))
    done = subprocess.run(["bash", "-c", BUILD_AND_RUN, "bash", board, f"{folder}/{board}.elf", sources], capture_output=True, text=True, cwd=ROOT)
    for line in (done.stdout + done.stderr).splitlines():
        print(f"# {line}")
    assert done.returncode == 0, f"the program ends with {done.returncode}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        cases = [(f"kernels on {board} equal their definition", functools.partial(check, place, KERNELS, board)) for board in BOARDS]
        cases += [(f"kernels of halves on {board}", functools.partial(check, place, HALVES, board)) for board in BOARDS if board in ("m55", "m85")]
        sys.exit(run_cases(cases))
