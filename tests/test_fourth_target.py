#!/usr/bin/env python3
"""A target of the test's own, a row and a file beside the house, used through the command; and rows that lack functions.

    tests/test_fourth_target.py MUC      the command with tests/fourth_target.c
"""
import pathlib
import subprocess
import sys
import tempfile

from files import MISMATCH, ROOT, USAGE, run_tests

PLACE = tempfile.TemporaryDirectory(prefix="muc-fourth-")
WORK = pathlib.Path(PLACE.name)


def fourth(*args, status=0):
    done = subprocess.run([sys.argv[1], *map(str, args)], capture_output=True, text=True, timeout=100)
    assert done.returncode == status, (args, done.stdout, done.stderr)
    return done.stdout + done.stderr


def test_a_fourth_target_is_a_row_and_its_functions():
    network, out = ROOT / "examples/cnnchip/small.graph", WORK / "notes"
    told = fourth("targets")
    assert "notes" in told and "as large as needed" in told and "uthinker" in told, told
    told = fourth("compile", network, "--target", "notes", "-o", out)
    assert "folder" in told and str(out) in told, told
    told = fourth("run", out)
    assert "outputs" in told, told
    fourth("verify", out, network)
    told = fourth("report", out)
    assert str(out) in told, told
    text = (out / "notes.graph").read_text()
    (out / "notes.graph").write_text(text.replace("sigmoid", "tanh"))
    told = fourth("verify", out, network, status=MISMATCH)
    assert "differs" in told, told
    told = fourth("compile", network, "--target", "note", "-o", out, status=USAGE)
    assert "notes" in told, told


def test_a_row_of_the_targets_without_its_functions_does_not_link():
    place = WORK / "rows"
    place.mkdir()
    (place / "row.def").write_text('MUC_TARGET(other, KIND(NETWORK), folder, NETWORK, true, "another")\n')
    (place / "main.c").write_text('#include "targets/target.h"\nint main(void) { return !muc_target_get(0); }\n')
    include = [place, ROOT / "src", ROOT / "include", ROOT / "runtime/include"]
    done = subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", '-DMUC_MORE_TARGETS="row.def"', *(f"-I{path}" for path in include),
                           place / "main.c", ROOT / "src/targets/targets.c", "-o", place / "main"], capture_output=True, text=True)
    assert done.returncode != 0
    for function in ("compile", "machine_at", "recognise", "report", "prepare", "run", "verify"):
        assert f"muc_{function}_other" in done.stderr, (function, done.stderr)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
