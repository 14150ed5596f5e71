#!/usr/bin/env python3
"""The device runtime as one pair of files: compiled for cores, it defines and computes what the separate files do. Prints TAP.

    tests/test_amalgamation.py MUC MUR_C MUR_H     from the source root
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from cli import COMMAND, PLAN, WORK, muc, program
from files import ROOT, Skip, run_tests

MUR = pathlib.Path(sys.argv[2]).resolve()
FLAGS = ["-std=c99", "-O1", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra", "-Werror"]
FREESTANDING = ["-ffreestanding", "-isystem", ROOT / "runtime/freestanding"]
M4 = ["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
RV32 = ["riscv64-unknown-elf-gcc", "-mabi=ilp32"]
CORES = {"m4": M4, "rv32imc": [*RV32, "-march=rv32imc"], "rv32imc_zve32x": [*RV32, "-march=rv32imc_zve32x"]}
SOURCES = sorted([*(ROOT / "runtime/src").glob("*.c"), *(ROOT / "runtime/kernels").glob("*/mur_*.c")])


def run(*command, status=0):
    if not shutil.which(str(command[0])):
        raise Skip(f"{command[0]} is missing")
    done = subprocess.run(list(map(str, command)), cwd=WORK, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, f"{command[0]} ended with {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout


def compiled(name, *compiler):
    """mur.c by itself: it needs no file but mur.h."""
    place = WORK / f"mur_{name}"
    if not place.exists():
        place.mkdir()
        for file in (MUR, MUR.with_suffix(".h")):
            shutil.copy(file, place)
        run(*compiler, *FLAGS, "-c", place / "mur.c", "-o", place / "mur.o")
    return place / "mur.o"


def defined(objects):
    return set(re.findall(r"^[0-9a-f]+ [TRDB] (\w+)$", run("nm", *objects), re.M))


def test_it_defines_what_the_separate_files_define():
    for name, compiler in CORES.items():
        whole = defined([compiled(name, *compiler, *FREESTANDING)])
        folder = WORK / f"separate_{name}"
        folder.mkdir()
        os.chdir(folder)
        run(*compiler, *FLAGS[:3], "-O0", "-w", *FREESTANDING, "-I", ROOT / "runtime/include", "-r", "-nostdlib", *SOURCES, "-o", folder / "all.o")
        assert whole == defined([folder / "all.o"]) and "mur_run" in " ".join(whole), sorted(whole ^ defined([folder / "all.o"]))


def image(objects):
    """The example's firmware around the built-in model."""
    board = ROOT / "examples/qemu"
    file = program("rescue")
    elf = WORK / "image.elf"
    run(*M4, "-std=c11", "-O2", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections", *FREESTANDING, "-I", ROOT / "runtime/include",
        "-I", ROOT / "src", "-I", board, f'-DPROGRAM_FILE="{file}"', "-nostdlib", "-Wl,--gc-sections,--no-warn-rwx-segments", "-L", board, "-T",
        board / "an386.ld", board / "main.c", board / "semihosting.c", board / "start_arm.c", board / "program.S", *objects,
        ROOT / "runtime/freestanding/string.c", *sorted((ROOT / "src/targets/uthinker/sim").glob("uthinker_sim*.c")), "-lgcc", "-o", elf)
    return elf


def test_a_board_runs_a_program_with_it():
    elf = image([compiled("m4", *M4, *FREESTANDING)])
    told = run("qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-monitor", "none", "-serial", "none", "-kernel", elf, "-semihosting-config",
               f"enable=on,target=native,arg=64,arg={COMMAND}")
    assert told == PLAN, told


def test_a_network_takes_its_kernels_from_it():
    folder = WORK / "net"
    muc("compile", ROOT / "examples/cnnchip/small.graph", "--target", "mcu", "--name", "net", "-o", folder)
    (WORK / "main.c").write_text('#include "net.h"\nstatic uint8_t arena[NET_ARENA_BYTES] __attribute__((aligned(16)));\n'
                                 "int main(void)\n{\n    return net_selftest(arena);\n}\n", encoding="utf-8")
    run("cc", "-std=c99", "-O2", "-ffp-contract=off", "-I", folder, "-I", folder / "include", "main.c", folder / "net.c", folder / "net_selftest.c",
        compiled("host", "cc"), "-Wl,--gc-sections", "-o", "with_mur")
    run(WORK / "with_mur")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
