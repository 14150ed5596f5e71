#!/usr/bin/env python3
"""One program, four machines: what muc runs here, a Cortex-M4, a Cortex-M7 and an RV32 run under
QEMU, and print the same text. So do folders of C code that are the built-in model.

    test_qemu.py MUC
"""
import json
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
     "Once upon a time,\nthere was", 30),
]


# what the built-in model's C code is compiled for
FOLDERS = {"m7": "mps2-an500", "rv32": "rv32"}


def output(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} exits {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def check_folder(muc, folder, machine):
    """What differs between `muc run DIR` and `muc run DIR --qemu`, or None."""
    code = os.path.join(folder, machine)
    prompt = ["--prompt", MODELS[0][2]]
    output(muc, "compile", "models/rescue", "--target", "mcu", "--machine", FOLDERS[machine], "-o", code)
    for more in [[], ["-n", "5"]] if machine == "m7" else [["-n", "5"]]:
        here = json.loads(output(muc, "run", code, "--json", *prompt, *more))
        there = json.loads(output(muc, "run", code, "--json", *prompt, *more, "--qemu", machine))
        for key in ("prompt", "text", "prompt_tokens", "tokens", "end"):
            if here[key] != there[key]:
                return f"{key} is {there[key]!r}, here {here[key]!r}"
        if "return" not in here["text"] and not more:
            return f"the text is {here['text']!r}"
        if there["board"] != machine or not 0 < there["instructions"] < 20_000_000 * there["tokens"]:
            return f"{there['instructions']} instructions"
    for words in (["--temp", "1", "-p", "a"], ["--repeat-penalty", "1.5", "-p", "a"], ["-p", "a" * 3000]):
        done = subprocess.run([muc, "run", code, *words, "--qemu", machine], capture_output=True, text=True)
        if done.returncode != 7 or "boards take" not in done.stderr:
            return f"{words} end with {done.returncode}, {done.stderr}"
    return None


# what is broken in the machine, and the stage that the self test names
FAULTS = [("NORM.saddr", "embedding"), ("ROPE.saddr", "queries, rotated"), ("DIV.daddr", "attention"), ("GLU.uaddr", "up")]


def check_fault(program, machine, broken, stage):
    """What is wrong with a broken machine's self test, or None."""
    done = subprocess.run(["scripts/run_qemu", machine, program, "--break", broken], capture_output=True, text=True, cwd=ROOT)
    expected = f"self test: position 0, layer 0, stage: {stage}\nself test: an engine reported a fault\n"
    if done.returncode != 8 or not done.stderr.endswith(expected) or done.stdout:
        return f"{broken} ends with {done.returncode}: {done.stdout}{done.stderr}"
    return None


def check_faults(muc, folder, number):
    program = os.path.join(folder, "broken.utp")
    output(muc, "compile", "-o", program)
    failed = 0
    for machine in ("m4", "rv32"):
        number += 1
        line = f"{number} - the self test on {machine} names the stage that is broken"
        missing = [t for t in MACHINES[machine] if not shutil.which(t)]
        if missing:
            print(f"ok {line} # SKIP {', '.join(missing)} is missing")
            continue
        wrong = next(filter(None, (check_fault(program, machine, *fault) for fault in FAULTS)), None)
        failed += wrong is not None
        print(f"not ok {line}\n# {wrong}" if wrong else f"ok {line}")
        sys.stdout.flush()
    return failed


def check_folders(muc, folder, number):
    failed = 0
    for machine in FOLDERS:
        number += 1
        line = f"{number} - the built-in model's C code on {machine} says what it says here"
        missing = [t for t in MACHINES[machine] if not shutil.which(t)]
        if missing:
            print(f"ok {line} # SKIP {', '.join(missing)} is missing")
            continue
        try:
            wrong = check_folder(muc, folder, machine)
        except RuntimeError as error:
            wrong = str(error)
        failed += wrong is not None
        print(f"not ok {line}\n# {wrong}" if wrong else f"ok {line}")
        sys.stdout.flush()
    return failed


def main():
    muc = pathlib.Path(sys.argv[1]).resolve()
    failed = number = 0
    print(f"1..{len(MODELS) * len(MACHINES) + len(FOLDERS) + 2}")
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
        failed += check_folders(muc, folder, number)
        failed += check_faults(muc, folder, number + len(FOLDERS))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
