#!/usr/bin/env python3
"""One program, four machines: what muc runs here, a Cortex-M4, a Cortex-M7 and an RV32 run under
QEMU, and print the same text. So do folders of C code that are the built-in model.

    test_qemu.py MUC
"""
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tap import Skip, need, run_cases, tools_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
MACHINES = ["m4", "m7", "rv32"]
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
    """`muc run DIR` and `muc run DIR --qemu` say the same."""
    need(*tools_of(machine))
    code = os.path.join(folder, machine)
    prompt = ["--prompt", MODELS[0][2]]
    output(muc, "compile", "models/rescue", "--target", "mcu", "--machine", FOLDERS[machine], "-o", code)
    for more in [[], ["-n", "5"]] if machine == "m7" else [["-n", "5"]]:
        here = json.loads(output(muc, "run", code, "--json", *prompt, *more))
        there = json.loads(output(muc, "run", code, "--json", *prompt, *more, "--qemu", machine))
        for key in ("prompt", "text", "prompt_tokens", "tokens", "end"):
            assert here[key] == there[key], f"{key} is {there[key]!r}, here {here[key]!r}"
        assert "return" in here["text"] or more, f"the text is {here['text']!r}"
        assert there["board"] == machine and 0 < there["instructions"] < 20_000_000 * there["tokens"], f"{there['instructions']} instructions"
    for words in (["--temp", "1", "-p", "a"], ["--repeat-penalty", "1.5", "-p", "a"], ["-p", "a" * 3000]):
        done = subprocess.run([muc, "run", code, *words, "--qemu", machine], capture_output=True, text=True)
        assert done.returncode == 7 and "boards take" in done.stderr, f"{words} end with {done.returncode}, {done.stderr}"


# what is broken in the machine, and the stage that the self test names
FAULTS = [("NORM.saddr", "embedding"), ("ROPE.saddr", "queries, rotated"), ("DIV.daddr", "attention"), ("GLU.uaddr", "up")]


def check_faults(muc, folder, machine):
    """Each broken machine's self test names the stage."""
    need(*tools_of(machine))
    program = os.path.join(folder, "broken.utp")
    output(muc, "compile", "-o", program)
    for broken, stage in FAULTS:
        done = subprocess.run(["scripts/run_qemu", machine, program, "--break", broken], capture_output=True, text=True, cwd=ROOT)
        expected = f"self test: position 0, layer 0, stage: {stage}\nself test: an engine reported a fault\n"
        assert done.returncode == 8 and done.stderr.endswith(expected) and not done.stdout, \
            f"{broken} ends with {done.returncode}: {done.stdout}{done.stderr}"


@functools.cache
def said_here(muc, folder, name, prompt, tokens, *model):
    """The program of a model, and what it says on this computer."""
    program = os.path.join(folder, name + ".utp")
    output(muc, "compile", *model, "-o", program)
    return program, output(muc, "run", program, "-p", prompt, "-n", tokens)


def check_model(muc, folder, name, model, prompt, tokens, machine):
    """A program says on the machine what it says here."""
    if os.environ.get("MUC_TESTS_SLOW") == "0":
        raise Skip("slow")
    if model and not model[0].exists():
        raise Skip("no shared data")
    need(*tools_of(machine))
    program, here = said_here(muc, folder, name, prompt, tokens, *model)
    there = output("scripts/run_qemu", machine, program, "-p", prompt, "-n", tokens)
    assert there.rstrip("\n") == here.rstrip("\n"), f"here: {here!r}, there: {there!r}"


def cases(muc, folder):
    for name, *rest in MODELS:
        for machine in MACHINES:
            yield f"{name} on {machine} says what it says here", functools.partial(check_model, muc, folder, name, *rest, machine)
    for machine in FOLDERS:
        yield f"the built-in model's C code on {machine} says what it says here", functools.partial(check_folder, muc, folder, machine)
    for machine in ("m4", "rv32"):
        yield f"the self test on {machine} names the stage that is broken", functools.partial(check_faults, muc, folder, machine)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(run_cases(cases(pathlib.Path(sys.argv[1]).resolve(), place)))
