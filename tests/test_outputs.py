#!/usr/bin/env python3
"""What muc writes: inputs stay as they are, folders that were edited too, and whatever ends a run leaves nothing
behind. Prints TAP.

    tests/test_outputs.py MUC      from the source root
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time
import zlib

from cli import BRIEF, COMMAND, PLAN, WORK, compiled_code, has, muc, program, write_npy
from files import IO, MUC, OK, ROOT, UNSUPPORTED, USAGE, run_tests

NETWORK = ROOT / "examples/cnnchip/small.graph"
CODE = ["--target", "mcu", "--machine", "mps2-an500"]


def place(name):
    """An empty folder."""
    path = WORK / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path


def model(folder):
    """A copy of the built-in model."""
    return pathlib.Path(shutil.copytree(ROOT / "models/rescue", folder / "model",
                                        ignore=shutil.ignore_patterns("train", "*.txt")))


def contents(folder):
    return {path.relative_to(folder): path.is_dir() or path.read_bytes() for path in sorted(folder.rglob("*"))}


def is_whole(folder):
    """Every file of the list FILES is there with the checksum that it says, and nothing else is."""
    rows = [line.split("  ", 1) for line in (folder / "FILES").read_text().splitlines()]
    for crc, name in rows:
        assert zlib.crc32((folder / name).read_bytes()) == int(crc, 16), name
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {"FILES", *(name for _, name in rows)}, files


# ---- inputs ----

def refuse(folder, *args):
    """muc refuses, names a file of the folder, and changes nothing in it."""
    before = contents(folder)
    _, err = muc(*args, status=USAGE)
    assert str(folder) in err and "input" in err and "write to another" in err, err
    assert contents(folder) == before


def sample():
    """small.graph and an input for it."""
    folder = place("sample")
    shape = next(port["dims"] for port in json.loads((network_code() / "small.json").read_text())["inputs"])
    count = 1
    for dim in shape:
        count *= dim
    write_npy(folder / "in.npy", shape, [0.5] * count)
    shutil.copy(NETWORK, folder / "small.graph")
    return folder


def network_code():
    code = WORK / "small_c"
    if not code.is_dir():
        muc("compile", NETWORK, "--target", "mcu", "-o", code)
    return code


def test_no_verb_overwrites_a_file_that_it_reads():
    folder = place("files")
    checkpoint, source = model(folder), folder / "rescue.s"
    for name in ("model.safetensors", "config.json", "tokenizer.model"):
        refuse(folder, "quantize", checkpoint, "-o", checkpoint / name)
        refuse(folder, "compile", checkpoint, "-o", checkpoint / name)
    source.write_text(muc("dis", program())[0])
    refuse(folder, "as", source, "-o", source)
    shutil.copy(program(), folder / "rescue.utp")
    muc("quantize", checkpoint, "-o", folder / "rescue.bdt")
    refuse(folder, "compile", folder / "rescue.bdt", "-o", folder / "rescue.bdt")
    machine = shutil.copy(ROOT / "src/targets/uthinker/machines/uthinker.ini", folder / "machine.ini")
    refuse(folder, "compile", checkpoint, "--machine", machine, "-o", machine)
    text = folder / "text.txt"
    text.write_text("go to the lab\n" * 40)
    refuse(folder, "quantize", checkpoint, "--calib", text, "-o", text)


def test_nor_does_a_run_or_a_report():
    folder = sample()
    network, given = folder / "small.graph", folder / "in.npy"
    refuse(folder, "run", network, "--input", given, "--output", given)
    refuse(folder, "run", network, "--input", given, "--output", network)
    labels = folder / "labels.txt"
    labels.write_text("\n".join(map(str, range(10))))
    refuse(folder, "run", network, "--input", given, "--labels", labels, "--output", labels)
    code = pathlib.Path(shutil.copytree(network_code(), folder / "code"))
    refuse(folder, "run", code, "--input", given, "--output", given)
    for name in ("small.c", "FILES/../main.c", "include/../small.json"):
        refuse(folder, "report", code, "-o", code / name.split("/")[-1])
    chip = folder / "chip"
    muc("compile", network, "--target", "cnnchip", "--pes", 16, "-o", chip)
    for name in ("frame.bin", "program.asm", "map.json"):
        refuse(folder, "verify", chip, network, "--input", given, "--trace", chip / name)
    refuse(folder, "verify", chip, network, "--input", given, "--trace", network)


def test_a_file_is_known_by_other_names_too():
    folder = place("names")
    checkpoint = model(folder)
    weights = checkpoint / "model.safetensors"
    os.link(weights, folder / "hard")
    os.symlink(weights, folder / "soft")
    os.symlink(checkpoint, folder / "link")
    for name in ("hard", "soft", "link/model.safetensors", "model/../model/model.safetensors"):
        refuse(folder, "quantize", checkpoint, "-o", folder / name)
    refuse(folder, "quantize", folder / "link", "-o", weights)
    muc("quantize", checkpoint, "-o", folder / "link/rescue.bdt")  # beside it is another matter
    muc("quantize", checkpoint, "-o", folder / "link/rescue.bdt")


def test_an_input_that_is_a_folder_or_lies_in_one_is_not_replaced():
    folder = place("folders")
    checkpoint = model(folder)
    small = folder / "small"
    muc("compress", checkpoint, "--bits", 8, "--calib", "none", "-o", small)
    is_whole(small)
    for force in ([], ["--force"]):
        refuse(folder, "compress", small, "--bits", 4, "--calib", "none", "-o", small, *force)
        refuse(folder, "compile", checkpoint, *CODE, "-o", checkpoint, *force)
        refuse(folder, "compile", small / "model.safetensors", *CODE, "-o", small, *force)
    muc("compress", checkpoint, "--bits", 4, "--calib", "none", "-o", small)  # nothing reads it: it is replaced


def test_standard_output_is_no_input():
    folder = place("standard")
    copy = folder / "rescue.utp"
    shutil.copy(program(), copy)
    with open(copy, "ab") as out:
        done = subprocess.run([MUC, "dis", copy], stdout=out, stderr=subprocess.PIPE, text=True)
    assert done.returncode == USAGE, done
    has(done.stderr, str(copy), "standard output")
    assert copy.read_bytes() == program().read_bytes()


# ---- folders ----

def test_a_folder_that_was_edited_is_replaced_by_force_alone():
    for name, args in [("code", ["compile", *CODE]), ("chip", ["compile", NETWORK, "--target", "cnnchip"]),
                       ("small", ["compress", "--bits", 8, "--calib", "none"])]:
        folder = place("edited") / name
        muc(*args, "-o", folder)
        is_whole(folder)
        whole = contents(folder)
        muc(*args, "-o", folder)
        edited = next(path for path in sorted(folder.iterdir()) if path.is_file() and path.name != "FILES")
        edited.write_bytes(edited.read_bytes() + b"\n")
        has(muc(*args, "-o", folder, status=USAGE)[1], str(edited), "was edited", "--force")
        assert edited.read_bytes().endswith(b"\n")
        muc(*args, "-o", folder, "--force")
        assert contents(folder) == whole
        edited.unlink()  # nothing is lost
        muc(*args, "-o", folder)
        assert contents(folder) == whole


def test_what_muc_did_not_write_is_never_removed():
    folder = place("extra") / "code"
    args = ["compile", *CODE, "-o", folder]
    muc(*args)
    for name, make in [("notes.txt", lambda path: path.write_text("mine")),
                       ("src/notes.txt", lambda path: path.write_text("mine")),
                       ("mine", lambda path: path.mkdir()),
                       ("link", lambda path: path.symlink_to("/etc"))]:
        make(folder / name)
        for force in ([], ["--force"]):
            before = contents(folder)
            has(muc(*args, *force, status=USAGE)[1], str(folder / name), "no earlier run wrote it")
            assert contents(folder) == before
        path = folder / name
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    muc(*args)
    other = place("other")
    (other / "notes.txt").write_text("mine")
    has(muc(*args[:-1], other, "--force", status=USAGE)[1], "notes.txt")
    has(muc(*args[:-1], other / "notes.txt", status=USAGE)[1], "no folder")


def test_a_link_to_a_folder_stays_a_link():
    folder = place("linked")
    (folder / "link").symlink_to("code")
    muc("compile", *CODE, "-o", folder / "code")
    muc("compile", *CODE, "-o", folder / "link/")
    assert (folder / "link").is_symlink()
    is_whole(folder / "code")


def test_a_training_replaces_no_files_of_others():
    folder = place("train")
    config, data = folder / "config.json", folder / "data.txt"
    config.write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "hidden_size": 16, "intermediate_size": 16,
                                  "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
                                  "vocab_size": 259, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
                                  "hidden_act": "silu"}))
    data.write_text("go to the lab and come back\n" * 20)
    args = ["train", config, "--data", data, "--tokenizer", "bytes", "--steps", 2, "--batch", 16]
    if "OpenBLAS" in muc(*args, "-o", folder, status={USAGE, UNSUPPORTED})[1]:
        return
    refuse(folder, *args, "-o", folder)
    out = folder / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")  # stays
    muc(*args, "-o", out)
    assert (out / "notes.txt").read_text() == "mine"
    refuse(folder, "train", out, "--data", data, "--steps", 2, "--batch", 16, "-o", out)
    muc(*args, "-o", out)  # an earlier run's
    (out / "tokenizer.json").write_text("{}")
    has(muc(*args, "-o", out, status=USAGE)[1], "tokenizer.json", "--force")
    muc(*args, "-o", out, "--force")
    (out / "tokenizer.json").unlink()
    (out / "model.safetensors").unlink()
    muc(*args, "-o", out)
    precious = shutil.copytree(ROOT / "models/rescue", folder / "precious")
    has(muc(*args, "-o", precious, "--force", status=USAGE)[1], "precious/config.json")


def test_what_cannot_be_written_is_told_before_the_work():
    said = muc("compile", "-o", WORK / "no/such/x.utp", status=IO)[1]
    assert f"there is no folder '{WORK / 'no/such'}'; make it first" in said, said
    muc("compile", "-o", WORK, status=USAGE)
    muc("compile", *CODE, "-o", WORK / "no/such/folder", status=IO)
    muc("compress", "-o", WORK / "no/such/folder", "--bits", 2, "--text", ROOT / "README.md", status=IO)


# ---- limits and signals ----

def jobs(folder):
    """Verbs that write into a folder; what they write is there already."""
    return [["quantize", "-o", folder / "rescue.bdt"],
            ["compile", "-o", folder / "rescue.utp"],
            ["compile", *CODE, "-o", folder / "code"],
            ["compress", "--bits", 8, "--calib", "none", "-o", folder / "small"],
            ["compile", NETWORK, "--target", "cnnchip", "-o", folder / "chip"],
            ["as", WORK / "rescue.s", "-o", folder / "as.utp"],
            ["run", NETWORK, "--input", WORK / "sample/in.npy", "--output", folder / "out.npz"],
            ["report", network_code(), "-o", folder / "report.html"]]


def prepare(name):
    folder = place(name)
    sample()
    (WORK / "rescue.s").write_text(muc("dis", program())[0])
    for job in jobs(folder):
        muc(*job)
    return folder


def test_a_limit_of_file_sizes_leaves_what_was_there():
    folder = prepare("limits")
    whole = contents(folder)
    for job in jobs(folder):
        failed = 0
        for limit in [0, 1, 500, 20000, 60000, 300000]:
            done = subprocess.run([MUC, *map(str, job)], capture_output=True, text=True, cwd=ROOT, preexec_fn=lambda:
                                  resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)))
            assert done.returncode in (OK, IO), (job, limit, done)
            if done.returncode == IO:
                failed += 1
                has(done.stderr, str(folder), "File too large")
            assert contents(folder) == whole, (job, limit)
        assert failed > 1, job


def interrupt(job, after, number, env=None):
    """Ends a job by a signal after some seconds, unless it has ended; gives its status."""
    run = subprocess.Popen([MUC, *map(str, job)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT,
                           env={**os.environ, **(env or {})})
    try:
        run.wait(timeout=after)
    except subprocess.TimeoutExpired:
        run.send_signal(number)
    return run.wait(timeout=60)


def test_a_signal_at_any_moment_leaves_what_was_there():
    folder = prepare("signals")
    whole = contents(folder)
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU]
    for job in jobs(folder)[:2 if BRIEF else None]:
        started = time.monotonic()
        muc(*job)
        takes = time.monotonic() - started
        for i in range(12):
            status = interrupt(job, takes * (i + 0.5) / 12, numbers[i % len(numbers)])
            assert status in (OK, *(-number for number in numbers)), (job, status)
            assert contents(folder) == whole, (job, i)


def test_a_folder_is_there_at_every_moment_of_its_replacement():
    folder = place("exchange") / "chip"
    job = [MUC, "compile", NETWORK, "--target", "cnnchip", "-o", folder]
    subprocess.run(job, check=True, stdout=subprocess.DEVNULL)
    looks = 0
    for _ in range(10):
        run = subprocess.Popen(job, stdout=subprocess.DEVNULL)
        while run.poll() is None:
            assert (folder / "FILES").exists()
            looks += 1
        assert run.returncode == OK
    assert looks > 100, looks
    assert [path.name for path in folder.parent.iterdir()] == ["chip"]


def test_one_who_reads_no_further_leaves_no_temporary_folder():
    code, folder = compiled_code(), place("broken_pipe")
    reader, writer = os.pipe()
    os.close(reader)  # before muc begins: it may be done with its output before one closes it later
    run = subprocess.Popen([MUC, "run", code, "--prompt", COMMAND], stdout=writer, stderr=subprocess.PIPE,
                           env={**os.environ, "TMPDIR": str(folder)}, restore_signals=True)
    run.stderr.read()
    assert run.wait(timeout=100) == -signal.SIGPIPE, run.returncode
    assert not any(folder.iterdir())
    run = subprocess.Popen([MUC, "ops"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert run.stderr.read() == b"" and run.wait(timeout=60) == -signal.SIGPIPE


def is_running(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except OSError:
        return False


def test_a_signal_ends_the_compiler_too():
    code, folder, compiler = compiled_code(), place("child"), WORK / "waiting_cc"
    started = WORK / "waiting"
    compiler.write_text(f"#!/bin/sh\necho $$ > {started}.new\nmv {started}.new {started}\nexec sleep 60\n")
    compiler.chmod(0o755)
    run = subprocess.Popen([MUC, "run", code, "--prompt", "x"], stderr=subprocess.PIPE,
                           env={**os.environ, "CC": str(compiler), "TMPDIR": str(folder)})
    end = time.monotonic() + 60
    while not started.exists() and time.monotonic() < end:
        time.sleep(0.02)
    child = int(started.read_text())
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=60) == -signal.SIGTERM and not any(folder.iterdir())
    while is_running(child):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_signal_that_is_ignored_stays_so():
    run = subprocess.Popen([MUC, "run", "--prompt", COMMAND], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    for _ in range(20):
        run.send_signal(signal.SIGHUP)
        time.sleep(0.005)
    assert run.communicate(timeout=60)[0].decode() == PLAN and run.returncode == OK


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
