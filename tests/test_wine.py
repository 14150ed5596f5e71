#!/usr/bin/env python3
"""muc.exe of scripts/windows, run by Wine: answers, bytes and errors are those of the command here. Prints TAP.

    tests/test_wine.py MUC FOLDER     MUC is the command, FOLDER what scripts/windows wrote; Wine keeps its own files in FOLDER/wine
"""
import atexit
import functools
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

from cli import COMMAND, PLAN, WORK
from files import IO, MALFORMED, MUC, ROOT, UNSUPPORTED, USAGE, Skip, run_tests

WINDOWS = pathlib.Path(sys.argv[2]).resolve()
EXE = WINDOWS / "package/muc.exe"
ENVIRONMENT = {**os.environ, "WINEPREFIX": str(WINDOWS / "wine"), "WINEDEBUG": "-all", "LC_ALL": "C.UTF-8",
               "WINEDLLOVERRIDES": "mscoree,mshtml="}  # Wine asks for neither of these two on a terminal
ENVIRONMENT.pop("DISPLAY", None)
FORMATS = ["gguf", "keras", "llama2c", "onnx", "tflite", "torch"]


@functools.cache
def keep_services():
    """Wine starts services with its first program and ends them with its last; they write errors of their own where that one does. So one
    program waits for the end of the tests, and what muc.exe says is muc's."""
    waiting = subprocess.Popen(["wine", "cmd", "/c", "echo ready & pause"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    assert waiting.stdout.readline().startswith(b"ready")
    atexit.register(waiting.kill)


def windows(*words, stdin=b""):
    """Status, standard output and standard error of muc.exe in WORK."""
    if not shutil.which("wine"):
        raise Skip("wine is missing: scripts/setup windows")
    if not EXE.exists():
        raise Skip(f"{EXE} is missing: scripts/windows")
    keep_services()
    done = subprocess.run(["wine", EXE, *map(str, words)], input=stdin, capture_output=True, cwd=WORK, env=ENVIRONMENT, timeout=600)
    return done.returncode, done.stdout, done.stderr


def here(*words, stdin=b""):
    done = subprocess.run([MUC, *map(str, words)], input=stdin, capture_output=True, cwd=WORK, timeout=600)
    return done.returncode, done.stdout, done.stderr


def content(path):
    """Of a file, or of all files of a folder by their names."""
    if path.is_dir():
        return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    return path.read_bytes() if path.exists() else None


def made(name, *words):
    """What both make of the same words at the same place: statuses and messages are the same, and so are the bytes."""
    results = []
    for run in here, windows:
        path = WORK / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        results.append((run(*words, "-o", name), content(path)))
    assert results[0] == results[1], f"{words}: {str(results[0])[:600]}\nis on Windows {str(results[1])[:600]}"
    return results[1]


def test_the_built_in_model_answers():
    status, out, err = windows("run", "--prompt", COMMAND)
    assert (status, out.decode()) == (0, PLAN), (status, out, err)
    status, out, err = windows("run", "--prompt", "-", stdin=COMMAND.encode())
    assert (status, out.decode()) == (0, PLAN), (status, out, err)


def test_the_built_in_model_compiles_to_the_same_bytes():
    (status, *_), program = made("rescue.utp", "compile")
    assert status == 0 and len(program) > 100000
    assert windows("run", "rescue.utp", "--prompt", COMMAND)[:2] == (0, PLAN.encode())
    status, out, err = windows("verify", "rescue.utp", EXE.parent / "share/muc/models/rescue")
    assert status == 0 and b"exact" in out, (out, err)
    for machine in "mps2-an386", "nrf52840":
        (status, *_), folder = made("code", "compile", "--target", "mcu", "--machine", machine, "--name", "net")
        assert status == 0 and len(folder) > 5, folder and folder.keys()


def test_files_of_every_format_give_the_same_bytes_or_errors():
    statuses = []
    for file in sorted(path for form in FORMATS for path in (ROOT / "fuzz/corpus" / form).iterdir()):
        copy = WORK / f"{file.parent.name}.{file.name}"
        shutil.copy(file, copy)
        (status, *_), folder = made("code", "compile", copy.name, "--target", "mcu", "--name", "net")
        assert (status == 0) == bool(folder), (file, status)
        statuses.append(status)
    shutil.copytree(ROOT / "models/rescue", WORK / "large")
    statuses.append(made("small", "compile", "large", "--machine", "ch32v006")[0][0])  # what does not fit
    assert statuses.count(0) > 15 and len(set(statuses)) > 4, statuses  # or nothing was compared


def test_networks_of_the_chip_and_their_results_are_the_same():
    shutil.copy(ROOT / "examples/cnnchip/small.graph", WORK)
    (status, *_), folder = made("chip", "compile", "small.graph", "--target", "cnnchip")
    assert status == 0 and folder
    for words in ("run", "chip"), ("run", "small.graph"), ("report", "chip", "--json"), ("inspect", "small.graph"), ("fit", "small.graph", "--json"):
        assert here(*words) == windows(*words), words


def test_names_are_unicode_and_folders_may_be_told_by_backslashes():
    folder = WORK / "größe 日本"
    folder.mkdir()
    (folder / "тест.txt").write_text(COMMAND)
    assert windows("run", "--file", "größe 日本\\тест.txt")[:2] == (0, PLAN.encode())
    status, _, err = windows("compile", "-o", "größe 日本\\план.utp")
    assert status == 0, err
    assert sorted(path.name for path in folder.iterdir()) == ["план.utp", "тест.txt"]  # and nothing temporary
    status, _, err = windows("inspect", "größe 日本\\нет.onnx")
    assert status == IO and "größe 日本/нет.onnx: cannot open: No such file" in err.decode(), err


def test_outputs_replace_what_muc_wrote_and_nothing_else():
    net = WORK / "tflite.add"
    shutil.copy(ROOT / "fuzz/corpus/tflite/add", net)
    words = "compile", net.name, "--target", "mcu", "-o"
    assert windows(*words, "again")[0] == 0 and windows(*words, "again")[0] == 0
    (WORK / "again/net.txt").write_text("mine")
    before = content(WORK / "again")
    status, _, err = windows(*words, "again")
    assert status == USAGE and b"no earlier run wrote it" in err and content(WORK / "again") == before, err
    status, _, err = windows("compile", "-o", net.name)
    assert status == 0, err
    program = content(net)
    status, _, err = windows("dis", net.name, "-o", net.name)
    assert status == USAGE and content(net) == program, err
    assert not [path.name for path in WORK.iterdir() if path.name.startswith(("again.", "tflite.add."))]


def test_files_of_a_model_cannot_lead_out_of_its_folder():
    folder = WORK / "shards"
    shutil.copytree(ROOT / "models/rescue", folder)
    data = (folder / "model.safetensors").read_bytes()
    names = json.loads(data[8:8 + struct.unpack_from("<Q", data)[0]])
    names.pop("__metadata__", None)
    (folder / "model.safetensors").rename(WORK / "outside.safetensors")
    for path in "..\\outside.safetensors", "C:outside.safetensors", "../outside.safetensors":
        index = {"metadata": {}, "weight_map": dict.fromkeys(names, path)}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        status, _, err = windows("inspect", "shards")
        assert status == MALFORMED and b"not inside" in err, (path, status, err)


def test_what_needs_another_program_is_refused():
    assert windows("compile", "--target", "mcu", "-o", "unrun")[0] == 0
    status, _, err = windows("run", "unrun", "--prompt", COMMAND)
    assert status == UNSUPPORTED and b"starts no other program on Windows" in err, (status, err)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
