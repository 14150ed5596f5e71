"""What the tests in Python share whether they have a muc or not: cases as TAP, and programs that a case needs."""
import os
import pathlib
import re
import shutil
import subprocess
import xml.etree.ElementTree as tree

QEMU_BOARDS = pathlib.Path(__file__).resolve().parent.parent / "scripts/qemu_boards"


class Skip(Exception):
    """The case cannot run here; says why."""


def all_boards():
    """The names of scripts/qemu_boards."""
    return re.findall(r"^    (\w+)\)", QEMU_BOARDS.read_text(), re.MULTILINE)


def tools_of(board):
    """The compiler and the emulator of a board of scripts/qemu_boards."""
    if board.startswith("rv"):
        return ["riscv64-unknown-elf-gcc", f"qemu-system-riscv{board[2:4]}"]
    return ["arm-none-eabi-gcc", "qemu-system-arm"]


def need(*programs, hint=""):
    """Skips the case where one of the programs is missing."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        raise Skip(f"{', '.join(missing)} is missing{hint}")


def left_out(cases):
    """All cases, or those that an earlier run skipped: MUC_TESTS_SKIPPED names its testlog.junit.xml."""
    if "MUC_TESTS_SKIPPED" not in os.environ:
        return cases
    earlier = tree.parse(os.environ["MUC_TESTS_SKIPPED"]).iter("testcase")
    titles = {case.get("name").partition(" - ")[2] for case in earlier if case.find("skipped") is not None}
    return [case for case in cases if case[0] in titles]


def run_cases(cases):
    """Runs (title, function) by turns, prints TAP, and gives the exit status. A function may give words for its line."""
    cases, failed = left_out(list(cases)), 0
    print(f"1..{len(cases)}" + ("" if cases else " # SKIP nothing was left out"))
    for number, (title, function) in enumerate(cases, 1):
        try:
            words = function()
            print(f"ok {number} - {title}{f': {words}' if words else ''}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {title} # SKIP {reason}", flush=True)
        except Exception as problem:  # one broken case must not hide the others
            failed += 1
            print(f"not ok {number} - {title}", flush=True)
            output = getattr(problem, "stderr", "") if isinstance(problem, subprocess.CalledProcessError) else ""
            for line in f"{type(problem).__name__}: {problem}\n{output}".splitlines():
                print(f"# {line}", flush=True)
    return 1 if failed else 0
