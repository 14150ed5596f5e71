#!/usr/bin/env python3
"""Kernels of mur_nn.def and a decoder's matrices and attention on emulated boards, every bit: the cases of tests/nn_cases.c,
tests/low_cases.c and tests/attention_cases.c."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOARDS = sys.argv[1:] or ["m0", "m3", "m4", "m7", "m23", "m55", "rv32", "rv32e", "rv32v", "rv32v256", "rv32v512", "rv64", "rv64v"]  # m33 runs what m4 does, m85 what m55 does

BUILD_AND_RUN = """
set -euo pipefail
. scripts/qemu_boards
board "$1"
$compiler -std=c11 -O2 -ffreestanding -ffp-contract=off -ffunction-sections -Wall -Wextra -Werror \
    -isystem runtime/freestanding -Iruntime/include -Iexamples/qemu -Itests -nostdlib \
    -Wl,--gc-sections,--no-warn-rwx-segments -L examples/qemu -T "$script" tests/nn_qemu.c \
    tests/nn_cases.c tests/nn_f32_cases.c tests/low_cases.c tests/attention_cases.c runtime/kernels/*/*.c runtime/freestanding/string.c \
    examples/qemu/semihosting.c examples/qemu/$start -lgcc -o "$2"
$emulator -display none -monitor none -serial none -kernel "$2" \
    -semihosting-config enable=on,target=native
"""


def main():
    failed = 0
    print(f"1..{len(BOARDS)}")
    with tempfile.TemporaryDirectory() as folder:
        for number, board in enumerate(BOARDS, 1):
            line = f"{number} - kernels on {board} equal their definition"
            tools = (["riscv64-unknown-elf-gcc", f"qemu-system-riscv{board[2:4]}"] if board.startswith("rv") else
                     ["arm-none-eabi-gcc", "qemu-system-arm"])
            missing = [t for t in tools if not shutil.which(t)]
            if missing:
                print(f"ok {line} # SKIP {', '.join(missing)} is missing")
                continue
            done = subprocess.run(["bash", "-c", BUILD_AND_RUN, "bash", board, f"{folder}/{board}.elf"],
                                  capture_output=True, text=True, cwd=ROOT)
            failed += done.returncode != 0
            print(f"{'ok' if done.returncode == 0 else 'not ok'} {line}")
            for text in (done.stdout + done.stderr).splitlines():
                print(f"# {text}")
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
