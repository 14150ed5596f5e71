#!/usr/bin/env python3
"""muc new and muc flash: a new firmware builds with the cross compiler and, where QEMU has the board, runs. Prints TAP.

    tests/test_project.py MUC
"""
import json
import os
import re
import shutil
import subprocess
import sys

from cli import COMMAND, PLAN, WORK, has, muc
from files import IO, MALFORMED, NOFIT, ROOT, Skip, UNSUPPORTED, USAGE, need, run_tests

SMALL = ROOT / "examples/cnnchip/small.graph"
EMULATED = ["mps2-an385", "mps2-an386", "mps2-an500", "mps3-an547", "stm32f405"]
OWN = """[machine]
name = Mine
core = cortex-m4
clock_mhz = 10
{flash}
[memory]
name = flash
bytes = 65536
origin = 0x00100000
cycles_per_kb = 256
holds = weights
[memory]
name = sram
bytes = 32768
origin = {ram}
cycles_per_kb = 256
holds = arena state
"""


def run(*command):
    done = subprocess.run(list(map(str, command)), cwd=WORK, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout


def built(board, *model):
    """A new project for a board, built by README.md's commands."""
    need("cmake", "arm-none-eabi-gcc")
    folder = WORK / f"project_{os.path.basename(board).partition('.')[0]}_{len(model)}"
    if folder.exists():
        return folder
    report = json.loads(muc("new", folder, "--board", board, *model, "--json")[0])
    commands = [row["command"] for row in report["next"]]
    has((folder / "README.md").read_text(encoding="utf-8"), "    " + "\n    ".join(commands) + "\n",
        "run under QEMU" if report["emulated"] else "untested")
    assert commands == ["cmake -S . -B build", "cmake --build build", "muc flash --run"]
    run("cmake", "-S", folder, "-B", folder / "build")
    run("cmake", "--build", folder / "build")
    return folder


def test_a_new_firmware_passes_its_self_test_on_every_emulated_board():
    need("qemu-system-arm")
    for board in EMULATED:
        folder = built(board, "--model", SMALL)
        linked = (folder / "build/CMakeFiles/firmware.elf.dir/link.txt").read_text(encoding="utf-8")
        assert linked.rindex("libmur_kernels.a") < linked.rindex("-lgcc"), "kernels need what computes floats where the core has none"
        commands = [row["command"] for row in json.loads(muc("flash", folder, "--json")[0])["commands"]]
        emulator, = (command for command in commands if command.startswith("qemu-"))
        if commands[0] == emulator:
            has(muc("flash", folder, "--run")[0], "self test: right\n")
        else:
            assert run("sh", "-c", f"cd '{folder}/build' && {emulator}") == "self test: right\n", board


def test_a_new_firmware_of_a_language_model_says_what_muc_says():
    need("qemu-system-arm")
    folder = built("mps2-an500")
    has((folder / "main.c").read_text(encoding="utf-8"), f'"{COMMAND}"')
    has(muc("flash", folder, "--run")[0], PLAN)


def test_a_network_in_a_firmware_that_was_changed_fails_its_self_test():
    need("qemu-system-arm")
    folder = WORK / "changed"
    shutil.copytree(built("mps2-an386", "--model", SMALL), folder)
    shutil.rmtree(folder / "build")
    source = folder / "network/network.c"
    text = source.read_text(encoding="utf-8")
    changed = text.replace("0, 0, 128, 62,", "0, 0, 128, 63,", 1)
    assert changed != text
    source.write_text(changed, encoding="utf-8")
    run("cmake", "-S", folder, "-B", folder / "build")
    run("cmake", "--build", folder / "build")
    has(muc("flash", folder, "--run", status=IO)[0], "self test: wrong\n")


def test_boards_that_nobody_emulates_get_an_image_at_their_addresses():
    for board, code, ram in (("nrf52840", 0, 0x20000000), ("stm32f746", 0x08000000, 0x20000000),
                             ("stm32h743", 0x08000000, 0x24000000), ("stm32l4r5", 0x08000000, 0x20000000), ("stm32u585", 0x08000000, 0x20000000)):
        folder = built(board, "--model", SMALL)
        symbols = {name: int(value, 16) for value, name in
                   re.findall(r"^([0-9a-f]+) \w (\w+)$", run("arm-none-eabi-nm", folder / "build/firmware.elf"), re.M)}
        assert code <= symbols["reset"] < code + (1 << 20) and ram < symbols["bss_end"] < symbols["stack_top"], (board, symbols)
        assert symbols["vectors"] == code, (board, symbols["vectors"])
        binary = folder / "build/firmware.bin"
        assert binary.exists() == ("firmware.bin" in muc("flash", "--board", board)[0]), board
        if binary.exists():
            stack, start = (int.from_bytes(binary.read_bytes()[i:i + 4], "little") for i in (0, 4))
            assert (stack, start & ~1) == (symbols["stack_top"], symbols["reset"]), board


def test_flash_prints_a_boards_commands_and_runs_the_first_that_is_installed():
    folder = built("stm32f746", "--model", SMALL)
    rows = json.loads(muc("flash", folder, "--json")[0])["commands"]
    assert [row["tool"] for row in rows] == ["openocd", "st-flash"] and "target/stm32f7x.cfg" in rows[0]["command"], rows
    tools = WORK / "tools"
    tools.mkdir()
    tool = tools / "st-flash"
    tool.write_text('#!/bin/sh\necho "in $(basename "$PWD"): $*"\n', encoding="utf-8")
    tool.chmod(0o755)
    if shutil.which("openocd"):
        raise Skip("openocd is installed: nothing is to be flashed by chance")
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{tools}:{path}"
    try:
        has(muc("flash", folder, "--run")[0], "in build: --reset write firmware.bin 0x08000000\n")
        tool.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
        has(muc("flash", folder, "--run", status=IO)[1], "failed with status 3")
    finally:
        os.environ["PATH"] = path
    has(muc("flash", folder, "--run", status=IO)[1], "none of the programs that flash it is installed")
    has(muc("flash", "--board", "rp2040")[0], "picotool load -v -x firmware.elf")
    has(muc("flash", "--board", "host", status=UNSUPPORTED)[1], "does not say how the board is flashed")


def test_flash_wants_a_built_image():
    folder = WORK / "not_built"
    muc("new", folder, "--board", "mps2-an386", "--model", SMALL)
    need("qemu-system-arm")
    has(muc("flash", folder, "--run", status=IO)[1], "build/firmware.elf: is not there: build the project first")


def test_a_board_of_ones_own_is_described_in_the_project():
    board = WORK / "mine.ini"
    board.write_text(OWN.format(flash="flash = echo to my board: firmware.elf", ram="0x20004000"), encoding="utf-8")
    folder = built(str(board), "--model", SMALL)
    assert (folder / "board.ini").read_bytes() == board.read_bytes()
    has((folder / "board/link.ld").read_text(encoding="utf-8"), "CODE (rx) : ORIGIN = 0x00100000, LENGTH = 65536",
        "RAM (rwx) : ORIGIN = 0x20004000, LENGTH = 32768", 'REGION_ALIAS("PROGRAM", CODE)')
    has(muc("flash", folder, "--run")[0], "to my board: firmware.elf\n")
    board.write_text(OWN.format(flash="flash = x\n" * 5, ram="0x20000000"), encoding="utf-8")
    has(muc("flash", "--board", board, status=MALFORMED)[1], "line 9, column 1: more than 4 commands")
    board.write_text(OWN.format(flash="", ram="0x2000000g"), encoding="utf-8")
    has(muc("flash", "--board", board, status=MALFORMED)[1], "column 19: not a digit")


def test_what_cannot_begin_leaves_nothing():
    for board, status, message in (("rp2040", UNSUPPORTED, "memory 'flash' has no origin"), ("rv32", UNSUPPORTED, "of Cortex-M alone"),
                                   ("host", UNSUPPORTED, "of Cortex-M alone"), ("nowhere", USAGE, "there is no 'nowhere'")):
        has(muc("new", WORK / "none", "--board", board, "--model", SMALL, status=status)[1], message)
    board = WORK / "tiny.ini"
    board.write_text(OWN.format(flash="", ram="0x20000000"), encoding="utf-8")
    muc("new", WORK / "none", "--board", board, status=NOFIT)
    assert not (WORK / "none").exists()
    has(muc("new", WORK, "--board", "mps2-an386", status=USAGE)[1], "is there already")
    has(muc("new", WORK / "none", status=USAGE)[1], "say for which board")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
