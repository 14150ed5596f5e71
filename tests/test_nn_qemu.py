#!/usr/bin/env python3
"""Kernels of mur_nn.def and a decoder's matrices and attention on every emulated board, every bit: the cases that tests/*_cases.c also run on the host;
kernels of halves on boards with Helium.

    test_nn_qemu.py BUILD [BOARD...]     BUILD keeps the kernels' objects
"""
import functools
import pathlib
import subprocess
import sys
import tempfile

from tap import all_boards, need, run_cases, tools_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = pathlib.Path(sys.argv[1]).resolve() / "qemu_kernels"
# several, as the smallest board has 128 KB
PROGRAMS = {
    "kernels": ["nn_qemu", "nn_cases", "nn_row_cases"],
    "kernels of floats": ["nn_f32_qemu", "nn_f32_cases", "half_cases"],
    "matrices of a decoder": ["low_qemu", "low_cases"],
    "attention of a decoder": ["attention_qemu", "attention_cases"],
    "kernels of halves": ["nn_f16_qemu", "nn_f16_cases", "nn_f32_cases"],
}

# boards whose compiler is the same share its objects
BUILD_AND_RUN = """
set -euo pipefail
. scripts/qemu_boards
board "$1"
kernels="$(scripts/qemu_kernels "$1" "$3")" root="$PWD" objects="$2/${compiler//[^a-z0-9]/_}"
if [ ! -d "$objects" ]; then
    mkdir -p "$2/new"
    (cd "$2/new"
    $compiler -std=c11 -O2 -ffreestanding -ffp-contract=off -ffunction-sections -Wall -Wextra -Werror \
        -isystem "$root/runtime/freestanding" -I"$root/runtime/include" -I"$root/examples/qemu" -I"$root/tests" -c \
        "$root"/tests/*_cases.c "$root"/tests/{nn,nn_f32,nn_f16,low,attention}_qemu.c)
    mv "$2/new" "$objects"
fi
cd "$objects"
$compiler -nostdlib -Wl,--gc-sections,--no-warn-rwx-segments -L "$root/examples/qemu" -T "$script" "${@:4}" "$kernels"/*.o -lgcc -o "$2/image.elf"
$emulator -display none -monitor none -serial none -kernel "$2/image.elf" -semihosting-config enable=on,target=native
"""


def check(folder, board, program):
    need(*tools_of(board))
    objects = [f"{source}.o" for source in PROGRAMS[program]]
    done = subprocess.run(["bash", "-c", BUILD_AND_RUN, "bash", board, folder, KERNELS, *objects], capture_output=True, text=True, cwd=ROOT)
    for line in (done.stdout + done.stderr).splitlines():
        print(f"# {line}")
    assert done.returncode == 0, f"the program ends with {done.returncode}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(run_cases((f"{program} on {board}, every bit", functools.partial(check, place, board, program))
                           for board in sys.argv[2:] or all_boards() for program in PROGRAMS
                           if program != "kernels of halves" or board in ("m55", "m85")))
