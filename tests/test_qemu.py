#!/usr/bin/env python3
"""One program, four machines: what muc runs here, a Cortex-M4, a Cortex-M7 and an RV32 run under
QEMU, and print the same text.

    test_qemu.py MUC
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MACHINES = {"m4": ["arm-none-eabi-gcc", "qemu-system-arm"],
            "m7": ["arm-none-eabi-gcc", "qemu-system-arm"],
            "rv32": ["riscv64-unknown-elf-gcc", "qemu-system-riscv32"]}
STORIES = ROOT / "../shared/data/llama"
# name, what to compile (nothing: the built-in model), prompt, tokens
MODELS = [
    ("rescue", [], "search the north corridor for survivors, and come back", 40),
    ("stories260K", [STORIES / "stories260K.bin", "--tokenizer", STORIES / "tok512.bin"],
     "Once upon a time", 30),
]


def output(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} exits {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def main():
    muc = pathlib.Path(sys.argv[1]).resolve()
    failed = number = 0
    print(f"1..{len(MODELS) * len(MACHINES)}")
    with tempfile.TemporaryDirectory() as folder:
        for name, model, prompt, tokens in MODELS:
            program = os.path.join(folder, name + ".utp")
            absent = "no shared data" if model and not model[0].exists() else ""
            if os.environ.get("MUC_TESTS_SLOW") == "0":
                absent = "slow"
            if not absent:
                output(muc, "compile", *model, "-o", program)
                expected = output(muc, "run", program, "-p", prompt, "-n", tokens)
            for machine in MACHINES:
                number += 1
                line = f"{number} - {name} on {machine} says what it says here"
                missing = [t for t in MACHINES[machine] if not shutil.which(t)]
                if absent or missing:
                    print(f"ok {line} # SKIP {absent or ', '.join(missing) + ' is missing'}")
                    continue
                try:
                    text = output("scripts/run_qemu", machine, program, "-p", prompt, "-n", tokens)
                except RuntimeError as error:
                    text = str(error)
                good = text.rstrip("\n") == expected.rstrip("\n")
                failed += not good
                print(f"{'ok' if good else 'not ok'} {line}")
                if not good:
                    print(f"# here: {expected!r}\n# there: {text!r}")
                sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
