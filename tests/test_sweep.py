#!/usr/bin/env python3
"""muc sweep: every point is what its own compile, report and eval tell; any order of work gives the same bytes.

    tests/test_sweep.py MUC      from the source root
"""
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

from cli import WORK, has, muc
from files import IO, MALFORMED, MUC, ROOT, USAGE, run_tests

MODEL = ROOT / "models/rescue"
TEXT = WORK / "text.txt"
TEXT.write_text("search the north corridor for survivors and come back\n<|endoftext|>\ngo to the kitchen\n")
SWEEP = f"""; programs: bits; calls: positions and bandwidths
[sweep]
model = {MODEL}
bits = 4.6 4.8
position = 0 200   ; of 256
text = {TEXT}
[time]
dram_mbs = 800 3200
"""


def write(text, name="some.ini"):
    path = WORK / name
    path.write_text(text)
    return path


def sweep(name, *options, text=SWEEP, status=0):
    return muc("sweep", write(text), "-o", WORK / name, *options, status=status)


def results(name):
    return (WORK / name / "sweep.csv").read_bytes(), (WORK / name / "sweep.html").read_bytes()


def rows_of(name):
    return list(csv.DictReader(io.StringIO((WORK / name / "sweep.csv").read_text())))


def whole():
    """The sweep in one run, made once."""
    if not (WORK / "whole").is_dir():
        sweep("whole", "--threads", 1)
    return results("whole")


def test_every_point_is_what_compile_report_and_eval_tell():
    whole()
    rows = rows_of("whole")
    assert [(r["bits"], r["position"], r["dram_mbs"]) for r in rows] == [
        (bits, position, rate) for bits in ("4.6", "4.8") for rate in ("800", "3200") for position in ("0", "200")]
    base = (ROOT / "src/targets/uthinker/machines/uthinker.ini").read_text()
    assert "dram_mbs = 1600" in base
    for bits in ("4.6", "4.8"):
        program = WORK / f"{bits}.utp"
        for row in rows:
            if row["bits"] != bits:
                continue
            machine = write(base.replace("dram_mbs = 1600", f"dram_mbs = {row['dram_mbs']}"), "machine.ini")
            muc("compile", MODEL, "--bits", bits, "--machine", machine, "-o", program)  # the order of loads goes by the machine
            perplexity = json.loads(muc("eval", program, "--text", TEXT, "--json")[0])["perplexity"]
            report = json.loads(muc("report", program, "--machine", machine, "--position", row["position"], "--json")[0])
            assert float(row["perplexity"]) == perplexity, row
            assert int(row["program_bytes"]) == program.stat().st_size, row
            for key in ("seconds", "tokens_per_second", "millijoules_per_token", "first_token_seconds", "binding_share", "cpu_share"):
                assert float(row[key]) == report[key], (key, row[key], report[key])
            assert row["binding_roof"] == report["binding_roof"] and int(row["buffer_bytes"]) == 458752, row


def test_the_front_is_what_nothing_beats():
    whole()
    rows = rows_of("whole")
    cost = [(-float(r["tokens_per_second"]), float(r["millijoules_per_token"]), int(r["buffer_bytes"]), float(r["perplexity"])) for r in rows]
    beaten = [any(all(a <= b for a, b in zip(other, own)) and other != own for other in cost) for own in cost]
    assert [r["pareto"] == "yes" for r in rows] == [not b for b in beaten], beaten
    page = results("whole")[1].decode()
    assert page.count("<script") == 1 and "http:" not in page and "https:" not in page
    fastest = min(cost)[0]
    has(page, "What is fastest?", f"{-fastest:.7g} tokens/s", "What is most accurate?")
    for title in ("tokens/s over mJ a token", "tokens/s over bytes of buffers", "tokens/s over perplexity"):
        has(page, f">{title}</h2>")


def test_threads_do_not_change_a_byte():
    sweep("threads", "--threads", 3)
    assert results("threads") == whole()


def test_a_sweep_that_was_killed_goes_on_where_it_was():
    folder = WORK / "killed"
    running = subprocess.Popen([MUC, "sweep", write(SWEEP), "-o", folder, "--threads", "1"], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    made = lambda: sorted(folder.glob("programs/*.json"))
    while not made() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in [*made(), *folder.glob("points/*.json")]}
    assert before, "nothing was made before the sweep was killed"
    muc("sweep", write(SWEEP), "-o", folder)
    assert results("killed") == whole()
    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in before} == before, "it was made again"


def test_shards_in_any_order_give_the_same_bytes():
    for shard in (3, 1, 2):
        assert not (WORK / "shards" / "sweep.csv").exists()
        report = json.loads(sweep("shards", "--shard", f"{shard}/3", "--json")[0])
    assert report["missing"] == 0 and results("shards") == whole()
    report = json.loads(sweep("many", "--shard", "9/20", "--json")[0])  # more shards than points
    assert report["missing"] in (7, 8), report
    sweep("many")
    assert results("many") == whole()
    for wrong in ("0/3", "4/3", "3", "1/", "/3", "1/3x", "-1/3"):
        has(sweep("shards", "--shard", wrong, status=USAGE)[1], "--shard takes I/N")


def test_shards_side_by_side_give_the_same_bytes():
    command = [MUC, "sweep", write(SWEEP, "beside.ini"), "-o", WORK / "beside", "--threads", "1", "--shard"]
    running = [subprocess.Popen([*command, f"{shard}/4"], stdout=subprocess.DEVNULL) for shard in range(1, 5)]
    assert [shard.wait(timeout=200) for shard in running] == [0] * 4
    # the page has the sweep's name
    assert (WORK / "beside" / "sweep.csv").read_bytes() == whole()[0]


def test_progress_is_told_where_it_is_asked_for():
    _, err = sweep("progress", "--progress", "--threads", 2)
    lines = [line.split()[:4] for line in err.splitlines()]
    whole_steps = [["programs:", "0", "of", "4"], ["programs:", "4", "of", "4"], ["points:", "0", "of", "8"], ["points:", "8", "of", "8"]]
    assert [line for line in lines if line in whole_steps] == whole_steps, err
    assert sweep("progress")[1] == ""
    assert results("progress") == whole()
    next((WORK / "progress").glob("points/*.json")).unlink()
    _, err = sweep("progress", "--progress")  # what is there counts as done
    assert [line.split()[:4] for line in err.splitlines()] == [["programs:", "0", "of", "1"], ["programs:", "1", "of", "1"],
                                                               ["points:", "7", "of", "8"], ["points:", "8", "of", "8"]], err


def test_a_list_that_grows_makes_the_new_points_alone():
    longer = SWEEP.replace("dram_mbs = 800 3200", "dram_mbs = 800 1600 3200")
    sweep("longer")
    before = {path: path.stat().st_ino for path in (WORK / "longer").glob("p*/*")}
    assert len(before) == 8 + 4 * 2
    sweep("longer", text=longer)
    after = {path: path.stat().st_ino for path in (WORK / "longer").glob("p*/*")}
    assert len(after) == 12 + 6 * 2 and all(after[path] == inode for path, inode in before.items())
    assert len(rows_of("longer")) == 12


def test_machines_that_differ_in_time_have_programs_of_their_own():
    text = f"[sweep]\nmodel = {MODEL}\nmachine = uthinker uthinker-6400\n"
    report = json.loads(sweep("machines", "--json", text=text)[0])
    assert len(list((WORK / "machines").glob("programs/*.utp"))) == 2
    assert [row["machine"] for row in report["points"]] == ["uthinker", "uthinker-6400"]
    assert report["points"][0]["seconds"] > report["points"][1]["seconds"], report
    assert "perplexity" not in report["points"][0] and report["missing"] == 0


def test_what_does_not_fit_is_a_row_that_says_why():
    text = f"[sweep]\nmodel = {MODEL}\nact_terms = 2 2,k=1,v=1\n[machine]\nwbuf0 = 49152 128\n"
    report = json.loads(sweep("narrow", "--json", text=text)[0])
    assert report["refused"] == 2 and report["missing"] == 0, report
    for row in report["points"]:
        assert ("seconds" in row) == (row["wbuf0"] == 49152) == ("refused" not in row), row
        assert row["act_terms"] in (2, "2,k=1,v=1"), row
    has(next(row["refused"] for row in report["points"] if "refused" in row), "rescue")


def test_mistakes_are_told_with_line_and_column():
    head = f"[sweep]\nmodel = {MODEL}\n"
    for text, words in ((head + "bitz = 4\n", "did you mean 'bits'"), (head + "bits = 4.6 x\n", "'x' is not a number"),
                        (head + "bits = 4.6 4.6\n", "in the list twice"), (head + "bits = 4\nbits = 5\n", "there twice"),
                        (head + "position = 1.5\n", "'1.5' is not a whole number"), (head + "limit = 1 2\n", "at most 1 value"),
                        (head + "[time]\ndram_mbs =\n", "has no value"), ("model = x\n", "expected [sweep]")):
        _, err = sweep("mistake", text=text, status=MALFORMED)
        has(err, words, "some.ini", "line")
    has(sweep("mistake", text="[sweep]\nbits = 4\n", status=MALFORMED)[1], "'model' is missing")
    has(sweep("mistake", text=head + "[tiem]\ndram_mbs = 1\n", status=MALFORMED)[1], "no section [tiem]")
    has(sweep("mistake", text=head + "[time]\ndram_mbz = 1\n", status=MALFORMED)[1], "did you mean 'dram_mbs'")
    has(sweep("mistake", text=head + "machine = nosuch\n", status=IO)[1], "nosuch")
    has(sweep("mistake", text=head.replace("rescue", "nosuch"), status=IO)[1], "nosuch")
    has(sweep("mistake", text=head + "position = 300\n", status=USAGE)[1], "the context has 256")
    has(muc("sweep", write(SWEEP), status=USAGE)[1], "-o")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
