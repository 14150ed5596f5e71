"""examples/keyword_spotter as its README.md says: from a recording to words on emulated boards, and on this computer with the
same bits. Prints TAP."""
import pathlib
import re
import subprocess
import sys
import tempfile

from files import ROOT, muc, need, run_tests
from tap import tools_of

EXAMPLE = ROOT / "examples/keyword_spotter"
PLACE = tempfile.TemporaryDirectory(prefix="muc-spotter-")
WORK = pathlib.Path(PLACE.name)


def folders(machine):
    place = WORK / machine
    if not place.is_dir():
        place.mkdir()
        muc("frontend", "--machine", machine, "--name", "ears", "-o", place / "ears")
        muc("compile", EXAMPLE / "words.pt", "--arch", EXAMPLE / "words.arch", "--quant", "int8", "--calib", EXAMPLE / "cepstra.npy", "--machine",
            machine, "--name", "words", "-o", place / "words")
    return place


def heard(machine, board):
    """What the firmware prints."""
    need("cmake", *tools_of("m4"))
    build = WORK / f"firmware_{board}"
    emulate = ["qemu-system-arm", "-M", machine, "-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", build / "firmware.elf"]
    for command in (["cmake", "-S", EXAMPLE, "-B", build, f"-DNETWORKS={folders(machine)}", f"-DBOARD={board}", "--toolchain",
                     ROOT / "examples/two_networks/cortex-m.cmake"], ["cmake", "--build", build], emulate):
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_boards_hear_the_words():
    printed = heard("mps2-an386", "an386")
    assert re.findall(r"^\d+ ms: (\w+)$", printed, re.M) == ["stop", "forward", "right"], printed
    assert heard("mps2-an500", "an500") == printed


def test_the_readme_prints_what_it_says():
    text = (EXAMPLE / "README.md").read_text()
    assert heard("mps2-an386", "an386") in text.replace("    ", ""), "README.md"


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
