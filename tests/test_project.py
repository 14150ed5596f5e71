#!/usr/bin/env python3
"""muc new and muc flash: a new firmware builds with the cross compiler and, where QEMU has the board, runs. Prints TAP.

    tests/test_project.py MUC
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys

from cli import COMMAND, PLAN, WORK, has, muc
from files import IO, MALFORMED, NOFIT, ROOT, Skip, UNSUPPORTED, USAGE, need, run_tests

SMALL = ROOT / "examples/cnnchip/small.graph"
EMULATED = ["mps2-an385", "mps2-an386", "mps2-an500", "mps3-an547", "stm32f405", "rv32", "rv32f"]
RISC_V = ["rv32", "rv32f", "ch32v006", "k210"]
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
    need("cmake", "riscv64-unknown-elf-gcc" if board in RISC_V else "arm-none-eabi-gcc")
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
    need("qemu-system-arm", "qemu-system-riscv32")
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


def test_a_language_model_gets_the_context_that_a_board_has_room_for():
    report = json.loads(muc("new", WORK / "shorter", "--board", "stm32f405", "--json")[0])
    assert report["context"] == 128, report
    assert json.loads(muc("inspect", WORK / "shorter/network", "--json")[0])["context"] == 128
    error = muc("new", WORK / "none", "--board", "stm32f405", "--ctx-size", "256", status=NOFIT)[1]
    has(error, "--ctx-size 128 would do")
    assert "context" not in json.loads(muc("new", WORK / "whole", "--board", "mps2-an500", "--json")[0])


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


def test_start_up_code_copies_what_is_initialized_and_clears_the_rest():
    for board, emulator in (("rv32", "qemu-system-riscv32"), ("mps2-an386", "qemu-system-arm")):
        need(emulator)
        folder = WORK / f"initialized_{board}"
        shutil.copytree(built(board, "--model", SMALL), folder)
        shutil.rmtree(folder / "build")
        (folder / "main.c").write_text('#include "semihosting.h"\n'
                                       "static volatile uint32_t kept[3] = { 7, 8, 9 }, cleared[5];\n"
                                       "int main(void)\n{\n    host_open();\n"
                                       "    host_print_number(HOST_STDOUT, 100 * kept[0] + 10 * kept[1] + kept[2] + cleared[4]);\n"
                                       "    cleared[4] = 1;\n    return 0;\n}\n", encoding="utf-8")
        run("cmake", "-S", folder, "-B", folder / "build")
        run("cmake", "--build", folder / "build")
        assert muc("flash", folder, "--run")[0].startswith("789"), board


def symbols_of(folder):
    return {name: int(value, 16) for value, name in
            re.findall(r"^([0-9a-f]+) \w (\w+)$", run("arm-none-eabi-nm", folder / "build/firmware.elf"), re.M)}


def image_of(folder):
    """What is flashed, byte by byte."""
    image = WORK / "image.bin"
    run("arm-none-eabi-objcopy", "-O", "binary", folder / "build/firmware.elf", image)
    return image.read_bytes()


def words(image, at, count):
    return list(struct.unpack_from(f"<{count}I", image, at))


def test_boards_that_nobody_emulates_get_an_image_at_their_addresses():
    for board, code, ram, vectors in (
            ("nrf52840", 0, 0x20000000, 0), ("stm32f746", 0x08000000, 0x20000000, 0), ("stm32h743", 0x08000000, 0x24000000, 0),
            ("stm32l4r5", 0x08000000, 0x20000000, 0), ("stm32u585", 0x08000000, 0x20000000, 0), ("rp2040", 0x10000000, 0x20000000, 256),
            ("rp2350", 0x10000000, 0x20000000, 0), ("ra2l1", 0, 0x20000000, 0), ("ra8m1", 0x02000000, 0x22000000, 0)):
        folder = built(board, "--model", SMALL)
        symbols = symbols_of(folder)
        assert code <= symbols["reset"] < code + (1 << 20) and ram < symbols["bss_end"] < symbols["stack_top"], (board, symbols)
        assert symbols["vectors"] == code + vectors, (board, symbols["vectors"])
        stack, start = words(image_of(folder), vectors, 2)
        assert (stack, start & ~1) == (symbols["stack_top"], symbols["reset"]), board
        binary = folder / "build/firmware.bin"
        assert binary.exists() == ("firmware.bin" in muc("flash", "--board", board)[0]), board
        assert not binary.exists() or binary.read_bytes() == image_of(folder), board


def test_risc_v_boards_that_nobody_emulates_start_at_the_begin_of_their_code():
    need("riscv64-unknown-elf-nm")
    for board, code, ram in (("ch32v006", 0, 0x20000000), ("k210", 0x80000000, 0x80400000)):
        folder = built(board, "--model", SMALL)
        symbols = {name: int(value, 16) for value, name in
                   re.findall(r"^([0-9a-f]+) \w (\w+)$", run("riscv64-unknown-elf-nm", folder / "build/firmware.elf"), re.M)}
        assert symbols["reset"] == code and ram < symbols["bss_end"] < symbols["stack_top"], (board, symbols)
        assert (folder / "build/firmware.bin").exists(), board


def crc32_not_reflected(data):
    """CRC-32 of the RP2040's datasheet, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1) & 0xFFFFFFFF ^ (0x04C11DB7 if crc >> 31 else 0)
    return crc


def run_second_stage(code, firmware):
    """Executes the few instructions of Thumb that set up the RP2040's flash: what they store, the stack, and where they jump to."""
    registers, stored, at, stack = [0] * 8, {}, 0, None
    while True:
        op, = struct.unpack_from("<H", code, at)
        to, base, offset = op & 7, op >> 3 & 7, (op >> 6 & 31) * 4
        if op >> 11 == 0b00100:  # movs
            registers[op >> 8 & 7] = op & 255
        elif op >> 11 == 0b01001:  # ldr from a literal
            registers[op >> 8 & 7], = struct.unpack_from("<I", code, (at + 4 & ~3) + (op & 255) * 4)
        elif op >> 11 == 0b01100:  # str
            stored.setdefault(registers[base] + offset, []).append(registers[to])
        elif op >> 11 == 0b01101:  # ldr: of the firmware's vectors
            registers[to], = struct.unpack_from("<I", firmware, registers[base] + offset - 0x10000100)
        elif op & 0xFFF0 == 0xF380:  # msr msp
            assert struct.unpack_from("<H", code, at + 2) == (0x8808,)
            stack = registers[op & 15]
            at += 2
        else:
            assert op & 0xFF87 == 0x4700, hex(op)  # bx
            return stored, stack, registers[op >> 3 & 15]
        at += 2


def test_rp2040_starts_by_a_second_stage_that_its_rom_accepts():
    assert crc32_not_reflected(b"123456789") == 0x0376E6E7  # CRC-32/MPEG-2 of the catalogues
    folder = built("rp2040", "--model", SMALL)
    image, symbols = image_of(folder), symbols_of(folder)
    assert words(image, 252, 1) == [crc32_not_reflected(image[:252])]
    stored, stack, start = run_second_stage(image[:252], image[256:])
    ssi = 0x18000000
    assert stored == {ssi + 0x08: [0, 1], ssi + 0x14: [4], ssi: [31 << 16 | 3 << 8], ssi + 0x04: [0], ssi + 0xF4: [0x03 << 24 | 2 << 8 | 6 << 2],
                      0xE000ED08: [0x10000100]}, stored
    assert (stack, start) == (symbols["stack_top"], symbols["reset"] | 1)


def test_rp2350_finds_what_its_image_is_in_the_first_4_kib():
    image = image_of(built("rp2350", "--model", SMALL))
    at = image.index(struct.pack("<I", 0xFFFFDED3))
    begin, kind, last, link, end = words(image, at, 5)
    assert at % 4 == 0 and at + 20 <= 4096 and (begin, link, end) == (0xFFFFDED3, 0, 0xAB123579)
    size = kind >> 8 & 255  # in words, of the only item
    assert kind & 255 == 0x42 and size == 1 and last & 255 == 0xFF and last >> 8 & 0xFFFF == size, "IMAGE_TYPE, and the last item"
    flags = kind >> 16
    assert (flags & 15, flags >> 4 & 3, flags >> 8 & 7, flags >> 12 & 7) == (1, 2, 0, 1), "executable, secure, Arm, RP2350"


def test_ra2l1_has_its_options_as_erased():
    image = image_of(built("ra2l1", "--model", SMALL))
    assert image[0x400:0x43C] == b"\xff" * 0x3C


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


def test_flash_wants_a_project():
    has(muc("flash", WORK / "nothing", status=IO)[1], "nothing/board.ini: is not there: give the folder that muc new wrote, or --board")


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
    board.write_text(OWN.format(flash="boot = rp2041", ram="0x20000000"), encoding="utf-8")
    has(muc("flash", "--board", board, status=MALFORMED)[1], "rp2041", "rp2040")


def test_a_board_without_a_project_names_the_command_that_packages_the_network():
    for board, kit in (("esp32c3", "esp-idf"), ("esp32c6", "esp-idf"), ("esp32s3", "esp-idf"), ("apollo4", "zephyr"), ("stm32n657", "zephyr"),
                       ("rv32v", "cmake")):
        error = muc("new", WORK / "none", "--board", board, "--model", SMALL, status=UNSUPPORTED)[1]
        command = re.search(r"muc (compile MODEL .* FOLDER) makes", error)[1]
        assert f"--package {kit} " in command, command
        folder = WORK / f"kit_{board}"
        muc(*command.replace("MODEL", str(SMALL)).replace("FOLDER", str(folder)).split())
        assert (folder / {"esp-idf": "idf_component.yml", "zephyr": "zephyr/module.yml", "cmake": "CMakeLists.txt"}[kit]).exists(), board


def test_what_cannot_begin_leaves_nothing():
    for board, status, message in (("host", UNSUPPORTED, "start-up code of its core"), ("nowhere", USAGE, "there is no 'nowhere'")):
        has(muc("new", WORK / "none", "--board", board, "--model", SMALL, status=status)[1], message)
    board = WORK / "tiny.ini"
    board.write_text(OWN.format(flash="", ram="0x20000000"), encoding="utf-8")
    muc("new", WORK / "none", "--board", board, status=NOFIT)
    assert not (WORK / "none").exists()
    has(muc("new", WORK, "--board", "mps2-an386", status=USAGE)[1], "is there already")
    has(muc("new", WORK / "none", status=USAGE)[1], "say for which board")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
