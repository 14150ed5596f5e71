#!/usr/bin/env python3
"""bench/layers/count on emulated boards: every layer has the bits of the reference, and no board has more slow layers, a slower
worst layer or more large arenas than bench/layers.csv says; of layers drawn by chance, the bits.

    test_layers_qemu.py MUC [BOARD...]
"""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT.parent / "shared/data/baselines/layers.csv"
BOARDS = sys.argv[2:] or ["m0", "m3", "m4", "m7", "m55", "rv32", "rv32v"]
BUILD = pathlib.Path(sys.argv[1]).resolve().parent.parent.parent


def main():
    failed, number = 0, 0
    trials = [(board, kind) for board in BOARDS for kind in (["rows of the table"] if TABLE.exists() else []) + ["drawn by chance"]]
    print(f"1..{len(trials)}")
    for number, (board, kind) in enumerate(trials, 1):
        line = f"{number} - layers {kind} on {board}"
        tools = ["riscv64-unknown-elf-gcc", "qemu-system-riscv32"] if board.startswith("rv") else ["arm-none-eabi-gcc", "qemu-system-arm"]
        missing = [t for t in tools if not shutil.which(t)]
        if missing:
            print(f"ok {line} # SKIP {', '.join(missing)} is missing")
            continue
        options = ["--generated", "20"] if kind == "drawn by chance" else ["--check"]
        done = subprocess.run([ROOT / "bench/layers/count", "--build", BUILD, "--worst", "3", *options, board], capture_output=True,
                              text=True, cwd=ROOT)
        failed += done.returncode != 0
        print(f"{'ok' if done.returncode == 0 else 'not ok'} {line}")
        for text in (done.stdout + done.stderr).splitlines():
            print(f"# {text}")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
