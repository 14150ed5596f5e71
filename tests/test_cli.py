#!/usr/bin/env python3
"""The command as a user meets it: help, errors, results. Prints TAP.

    tests/test_cli.py MUC      from the source root; tests of shared data are skipped without it
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib

MUC = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
STORIES = {
    "llama2.c": [DATA / "llama/stories260K.bin", "--tokenizer", DATA / "llama/tok512.bin"],
    "Hugging Face": [DATA / "llama/stories260K-hf"],
    "Hugging Face in shards": [DATA / "llama/stories260K-hf/sharded"],
    "GGUF": [DATA / "llama/stories260K-f32.gguf"],
}
OK, MALFORMED, UNSUPPORTED, NOFIT, NOMEM, IO, BUG, USAGE, MISMATCH = range(9)
FROM_SANITIZER = re.compile(r"AddressSanitizer|runtime error:")


class Skip(Exception):
    pass


def muc(*args, status=OK, stdin=None, cwd=ROOT, raw=False):
    """Runs muc and checks its exit status; gives (stdout, stderr)."""
    done = subprocess.run([MUC, *map(str, args)], input=stdin, capture_output=True, cwd=cwd,
                          timeout=240)
    err = done.stderr.decode(errors="replace")
    out = done.stdout if raw else done.stdout.decode(errors="replace")
    if FROM_SANITIZER.search(err) or done.returncode < 0:
        raise AssertionError(f"muc {args} crashed ({done.returncode}): {err[-2000:]}")
    allowed = status if isinstance(status, (set, list, range)) else {status}
    if done.returncode not in allowed:
        raise AssertionError(f"muc {args} ended with {done.returncode}, expected {status}: {err}")
    return out, err


def need_data():
    if not DATA.is_dir():
        raise Skip("../shared/data is not at hand")


def has(text, *fragments):
    for fragment in fragments:
        assert fragment in text, f"{fragment!r} is not in {text!r}"


def verbs():
    out, _ = muc("help")
    return re.findall(r"^  (\w+) +\w", out.split("--help")[0], re.M)


# ---- help ----

def test_every_verb_explains_itself_with_an_example():
    assert len(verbs()) >= 6, verbs()
    for verb in verbs():
        out, err = muc(verb, "--help")
        has(out, f"usage: muc {verb}", f"example: muc {verb}")
        assert err == ""
        assert muc("help", verb)[0] == out
        assert max(map(len, out.splitlines()[4:-1])) <= 100


def test_the_manual_page_in_docs_is_the_one_that_muc_prints():
    assert muc("help", "--man")[0] == (ROOT / "docs/muc.1").read_text()


def test_the_completion_in_docs_is_the_one_that_muc_prints_and_bash_reads_it():
    out, _ = muc("help", "--completion")
    assert out == (ROOT / "docs/muc.bash").read_text()
    script = out + "\nCOMP_WORDS=(muc run --te); COMP_CWORD=2; _muc; echo ${COMPREPLY[@]}\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "--temp\n", done.stdout


# ---- a wrong command line ----

def test_no_arguments_print_the_help_and_fail():
    has(muc(status=USAGE)[0], "usage: muc VERB")


def test_a_misspelt_verb_is_guessed():
    has(muc("evla", status=USAGE)[1], "no verb 'evla'", "did you mean 'eval'?")


def test_a_misspelt_option_is_guessed():
    has(muc("run", "--promt", "x", status=USAGE)[1], "did you mean '--prompt'?")


def test_an_option_of_another_verb_is_told_as_such():
    has(muc("formats", "--prompt", "x", status=USAGE)[1], "belongs to other verbs")


def test_an_unknown_option_without_a_likeness_points_to_the_help():
    has(muc("run", "--zzzzzz", status=USAGE)[1], "muc run --help")
    has(muc("run", "-Z", status=USAGE)[1], "unknown option '-Z'")


def test_a_missing_a_second_and_an_unwanted_value_are_told():
    has(muc("run", "--prompt", status=USAGE)[1], "--prompt TEXT")
    has(muc("run", "-n", "1", "-n", "2", status=USAGE)[1], "given twice")
    has(muc("run", "--json=yes", status=USAGE)[1], "takes no value")


def test_numbers_out_of_range_name_the_range():
    has(muc("run", "-n", "0", status=USAGE)[1], "--n-predict 0", "from 1 to")
    has(muc("run", "--temp", "hot", status=USAGE)[1], "--temp hot", "from 0 to 100")
    has(muc("run", "--top-p", "1.5", status=USAGE)[1], "from 0 to 1")
    has(muc("run", "--temp", "nan", status=USAGE)[1], "from 0 to 100")
    has(muc("run", "--seed", "-1", status=USAGE)[1], "whole number")
    has(muc("run", "-t", "99999", status=USAGE)[1], "from 1 to 1024")


def test_too_many_operands_are_told():
    has(muc("formats", "x", status=USAGE)[1], "unexpected argument 'x'")


def test_eval_wants_one_of_text_and_task():
    has(muc("eval", status=USAGE)[1], "--text FILE or --task FILE")
    has(muc("eval", "--text", "a", "--task", "b", status=USAGE)[1], "--text FILE or --task FILE")


# ---- a wrong file ----

def test_a_missing_model_is_named():
    has(muc("run", "no/such/model", status=IO)[1], "no/such/model")


def test_a_file_of_no_known_format_is_refused():
    muc("inspect", ROOT / "LICENSE", status={MALFORMED, UNSUPPORTED})


def test_a_missing_text_is_named():
    has(muc("eval", "--text", "no/such/text", status=IO)[1], "no/such/text")


def test_a_task_without_answers_is_refused():
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as task:
        task.write("command: go\nplan: goto lab\n\njust a line")
        task.flush()
        has(muc("eval", "--task", task.name, status=MALFORMED)[1], "case 2", "LABEL: ANSWER")


def test_an_empty_text_is_refused():
    has(muc("eval", "--text", "/dev/null", status={IO, MALFORMED})[1], "/dev/null")


def test_a_prompt_longer_than_the_context_is_refused():
    has(muc("run", "--prompt", "go to the lab " * 200, status=USAGE)[1], "context 256")


def test_a_model_without_a_tokenizer_says_how_to_give_one():
    need_data()
    has(muc("run", DATA / "llama/stories260K.bin", "-p", "x", status=USAGE)[1],
        "--tokenizer FILE")


def test_a_tokenizer_of_another_model_is_refused():
    need_data()
    big = DATA / "tokenizers/llama2.tokenizer.model"
    for candidate in (DATA / "tokenizers").glob("*.model"):
        big = candidate
    muc("run", DATA / "llama/stories260K-hf", "--tokenizer", big, status={MALFORMED, UNSUPPORTED})


def test_cut_and_flipped_models_give_an_error_or_a_right_answer_but_no_crash():
    source = (ROOT / "models/rescue/model.safetensors").read_bytes()
    header = 8 + int.from_bytes(source[:8], "little")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in ("config.json", "tokenizer.model"):
            (folder / name).write_bytes((ROOT / "models/rescue" / name).read_bytes())
        for cut in [0, 1, 7, 8, 9, header // 2, header, header + 1, len(source) - 1]:
            (folder / "model.safetensors").write_bytes(source[:cut])
            has(muc("inspect", folder, status=MALFORMED)[1], "model.safetensors")
        for at in range(0, header, max(1, header // 40)):
            damaged = bytearray(source)
            damaged[at] ^= 0x41
            (folder / "model.safetensors").write_bytes(damaged)
            _, err = muc("inspect", folder, status={OK, MALFORMED, UNSUPPORTED})
            assert "muc: " in err or not err, err


def test_a_model_that_shrinks_while_it_runs_ends_with_a_message():
    need_data()
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.bin"
        text = pathlib.Path(folder) / "text.txt"
        model.write_bytes((DATA / "llama/stories260K.bin").read_bytes())
        text.write_bytes((DATA / "text/tinystories_sample.txt").read_bytes() * 200)
        process = subprocess.Popen([MUC, "eval", model, "--text", text, "--tokenizer",
                                    DATA / "llama/tok512.bin"], stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        os.truncate(model, 4096)
        _, err = process.communicate(timeout=200)
        assert process.returncode == IO, (process.returncode, err)
        has(err, "a file shrank")


def test_standard_output_that_cannot_be_written_is_an_error():
    for verb in ("formats", "ops"):  # less, and more than a buffer
        with open("/dev/full", "w") as full:
            done = subprocess.run([MUC, verb], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == IO, (verb, done)
        has(done.stderr, "standard output")


def test_a_pipe_is_written_and_not_replaced():
    path, source = WORK / "pipe", WORK / "rescue.s"
    program_file = program()
    with open(source, "wb") as text:
        subprocess.run([MUC, "dis", program_file], stdout=text, check=True)
    os.mkfifo(path)
    writer = subprocess.Popen([MUC, "as", source, "-o", path], stderr=subprocess.PIPE)
    with open(path, "rb") as reader:
        found = reader.read()
    assert writer.wait(timeout=60) == OK and stat.S_ISFIFO(path.stat().st_mode)
    assert found == program_file.read_bytes()


def test_a_signal_leaves_no_temporary_files():
    code, folder, compiler = compiled_code(), WORK / "temporary", WORK / "slow_cc"
    started = WORK / "started"
    compiler.write_text(f"#!/bin/sh\ntouch {started}\nexec sleep 60\n")
    compiler.chmod(0o755)
    folder.mkdir()
    for number in (signal.SIGINT, signal.SIGTERM):
        started.unlink(missing_ok=True)
        run = subprocess.Popen([MUC, "run", code, "--prompt", "x"], stderr=subprocess.PIPE, start_new_session=True,
                               env={**os.environ, "CC": str(compiler), "TMPDIR": str(folder)})
        end = time.time() + 60
        while not started.exists() and time.time() < end:
            time.sleep(0.02)
        assert any(folder.iterdir())
        run.send_signal(number)
        assert run.wait(timeout=60) == -number
        os.killpg(run.pid, signal.SIGKILL)  # the compiler, which a terminal would have told, too
        assert not any(folder.iterdir()), list(folder.iterdir())


def test_a_chip_program_that_claims_four_gigabytes_is_refused():
    chip = WORK / "greedy_chip"
    muc("compile", "examples/cnnchip/small.graph", "--target", "cnnchip", "--pes", 16, "-o", chip)
    head = bytearray((chip / "program.bin").read_bytes())
    struct.pack_into("<I", head, 28, 0xfffffff0)
    struct.pack_into("<I", head, 60, zlib.crc32(head[:60]))
    (chip / "program.bin").write_bytes(head)
    for verb in (["run", chip, "--input", chip / "frame.bin"], ["report", chip]):
        has(muc(*verb, status=UNSUPPORTED)[1], "program.bin", "4294967280 bytes of FRAME", "the simulator has")


# ---- right results ----

PLAN = "goto north corridor; scan survivor; return\n"
COMMAND = "search the north corridor for survivors and come back"


def test_the_built_in_model_answers_from_any_folder():
    out, err = muc("run", "--prompt", COMMAND, cwd="/")
    assert out == PLAN, out
    has(err, "tokens/s", "end of text")


def test_a_prompt_comes_from_standard_input_or_a_file():
    assert muc("run", "--prompt", "-", stdin=COMMAND.encode())[0] == PLAN
    assert muc("run", "-f", "-", stdin=COMMAND.encode())[0] == PLAN
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(COMMAND)
        file.flush()
        assert muc("run", f"--file={file.name}")[0] == PLAN


def test_a_raw_prompt_is_continued_as_it_is():
    raw = f"command: {COMMAND}\nplan:"
    assert muc("run", "--raw", "-p", raw)[0] == raw + " " + PLAN


def test_run_reports_as_json():
    report = json.loads(muc("run", "-p", COMMAND, "--json", "-n", "3")[0])
    assert report["tokens"] == 3 and report["end"] == "length", report
    assert PLAN.startswith(report["text"]), report


def test_the_first_fifty_plans_are_those_of_the_models_own_training():
    expected = json.loads((ROOT / "models/rescue/expected.json").read_text())
    report = json.loads(muc("eval", "--task", "models/rescue/test.txt", "--limit", 50,
                            "--json")[0])
    paragraphs = (ROOT / "models/rescue/test.txt").read_text().strip().split("\n\n")
    wrong = {row["case"] - 1: row["found"].strip() for row in report["wrong"]}
    for i, row in enumerate(expected["first50"]):
        held_out = paragraphs[i].split("plan:")[1].strip()
        assert wrong.get(i, held_out) == row["plan"].strip(), (i, row)


def test_every_form_of_stories260K_has_the_manifests_perplexity_at_any_thread_count():
    need_data()
    seen = set()
    for name, model in STORIES.items():
        for threads in (1, 2):
            out, _ = muc("eval", *model, "--text", DATA / "text/tinystories_sample.txt", "--json",
                         "-t", threads)
            report = json.loads(out)
            assert abs(report["perplexity"] - 3.5482) < 0.0005, (name, report)
            assert report["tokens"] == 1804, report
            seen.add(out)
    assert len(seen) == 1, seen


def test_greedy_text_of_stories260K_is_that_of_llama2c():
    need_data()
    expected = (DATA / "llama/reference/expected_greedy_60.txt").read_text()
    for model in STORIES.values():
        out, _ = muc("run", *model, "-p", "Once upon a time", "-n", 56)
        assert out.strip() == expected.strip(), out


def test_sampling_is_the_same_for_the_same_seed_and_differs_for_another():
    need_data()
    args = ["run", *STORIES["Hugging Face"], "-p", "Once", "-n", 40, "--temp", 1, "--top-p", 0.9,
            "--top-k", 40]
    first = muc(*args, "--seed", 7, "-t", 1)[0]
    assert first == muc(*args, "--seed", 7, "-t", 2)[0]
    assert first != muc(*args, "--seed", 8)[0]


def test_lists_are_the_tables():
    formats = json.loads(muc("formats", "--json")[0])["formats"]
    assert {"hf", "llama2c", "gguf"} <= {row["name"] for row in formats}, formats
    assert len(json.loads(muc("ops", "--json")[0])["operators"]) >= 8


def test_inspect_shows_the_architecture_as_understood():
    report = json.loads(muc("inspect", "--json")[0])
    assert (report["dim"], report["layers"], report["kv_heads"]) == (128, 4, 1), report
    assert sum(1 for row in report["tensors"] if row["name"].endswith("q_proj.weight")) == 4


# ---- compiled programs ----

WORK = pathlib.Path(tempfile.mkdtemp(prefix="muc-test-"))


def program(name="rescue", *options):
    """Compiles the built-in model, or stories260K, once for each set of options."""
    path = WORK / ("-".join([name, *map(str, options)]).replace("/", "_") + ".utp")
    if not path.exists():
        model = [ROOT / "models/rescue"] if name == "rescue" else STORIES["Hugging Face"]
        muc("compile", *model, *options, "-o", path)
    return path


# ---- networks ----

CONV = ROOT / "fuzz/corpus/onnx/conv"


def npy(dims, values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {dims!r}, }}"
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    return (b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() +
            struct.pack(f"<{len(values)}f", *values))


def npz(path, **arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (dims, values) in arrays.items():
            archive.writestr(name + ".npy", npy(dims, values))
    return path


def need_networks():
    if "onnx" not in muc("formats")[0]:
        raise Skip("this muc reads no ONNX")


def test_a_network_runs_on_arrays_by_name_or_by_position_and_writes_its_results():
    need_networks()
    ones = ((1, 1, 4, 4), [1.0] * 16)
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "out.npz"
        for arrays in ({"x": ones}, {"other": ones}, {"a": ((2,), [0.0, 0.0]), "x": ones}):
            out, _ = muc("run", CONV, "--input", npz(f"{folder}/in.npz", **arrays), "-o", result)
            has(out, "y     f32    [1, 2, 2, 2]")
            with zipfile.ZipFile(result) as archive:
                assert archive.namelist() == ["y.npy"]
                values = struct.unpack("<8f", archive.read("y.npy")[-32:])
            assert values == (9, 6, 6, 4, 9, 6, 6, 4), values


def test_wrong_inputs_of_a_network_are_named():
    need_networks()
    with tempfile.TemporaryDirectory() as folder:
        wrong = npz(f"{folder}/in.npz", x=((1, 1, 4, 5), [1.0] * 20))
        has(muc("run", CONV, status=USAGE)[1], "input 0, 'x', has no array: 0 are given")
        has(muc("run", CONV, "--input", wrong, status=USAGE)[1],
            "input 'x' is f32 [1, 1, 4, 4], the array 'x' is f32 [1, 1, 4, 5]")
        has(muc("run", CONV, "--input", CONV, status=MALFORMED)[1], "no .npy file")
        has(muc("eval", CONV, "--text", CONV, status=USAGE)[1], "runs on arrays")
        has(muc("inspect", CONV, "--dim", "a=2,b", status=USAGE)[1], "no list of NAME=N")
        has(muc("inspect", CONV, "--dim", "a=2", status=USAGE)[1], "no input has an open dimension 'a'")
        has(muc("run", CONV, "--prompt", "x", status=USAGE)[1], "runs on arrays (--input)")
        has(muc("inspect", "models/rescue", "--dim", "a=2", status=USAGE)[1], "is no network")
        cut = pathlib.Path(folder) / "cut.onnx"
        cut.write_bytes(CONV.read_bytes()[:100])
        has(muc("inspect", cut, status=MALFORMED)[1], "field 7 has 226 bytes, the file 95 more")


def test_a_network_is_shown_as_understood():
    need_networks()
    found = json.loads(muc("inspect", CONV, "--json")[0])
    assert (found["format"], found["nodes"], found["parameters"]) == ("onnx", 2, 18)
    assert found["macs"] == 2 * 2 * 2 * 9
    assert found["inputs"] == [{"name": "x", "shape": "f32 [1, 1, 4, 4]"}]
    shapes = ROOT / "fuzz/corpus/onnx/shapes"
    found = json.loads(muc("inspect", shapes, "--json", "--dim", "batch=2..5")[0])
    assert found["dimensions"] == [{"name": "batch", "least": 2, "most": 5}]
    assert found["outputs"] == [{"name": "y", "shape": "f32 [batch*2, 4, 3]"}]


def test_a_compiled_program_answers_as_the_checkpoint_does():
    out, err = muc("run", program(), "--prompt", COMMAND)
    assert out == PLAN, out
    has(err, "end of text")


def test_compile_reports_its_self_check_and_every_buffer():
    report = json.loads(muc("compile", "-o", WORK / "report.utp", "--json")[0])
    assert report["bytes"] == (WORK / "report.utp").stat().st_size
    assert report["bits_per_weight"] <= 4.8
    assert report["self_check"]["positions"] == 16 and 0 <= report["self_check"]["kl"] < 0.05
    memory = {row["place"]: row for row in report["memory"]}
    for buffer in ("I0", "I1", "W0", "W1", "GB"):
        assert 0 < memory[buffer]["bytes"] <= memory[buffer]["limit"], memory
    assert memory["flash"]["bytes"] == report["bytes"]


def test_every_form_of_stories260K_and_every_thread_count_give_the_same_program():
    need_data()
    seen = set()
    for name, model in STORIES.items():
        for threads in (1, 2):
            out = WORK / "form.utp"
            muc("compile", *model, "-o", out, "-t", threads)
            seen.add(out.read_bytes())
    assert len(seen) == 1


def test_a_bdt_file_compiles_to_the_same_bytes_as_its_checkpoint():
    blocks, out = WORK / "rescue.bdt", WORK / "from-bdt.utp"
    report = json.loads(muc("quantize", "-o", blocks, "--bits", 5.2, "--json")[0])
    assert report["bits_per_weight"] <= 5.2, report
    muc("compile", blocks, "-o", out)
    assert out.read_bytes() == program("rescue", "--bits", 5.2).read_bytes()
    has(muc("run", blocks, status=UNSUPPORTED)[1], "muc compile")
    has(muc("compile", blocks, "--bits", 5, "-o", out, status=USAGE)[1], "quantized already")


def test_stories260K_keeps_its_perplexity_on_the_machine():
    need_data()
    out, _ = muc("eval", program("stories"), "--text", DATA / "text/tinystories_sample.txt",
                 "--reference", DATA / "llama/stories260K-hf", "--json")
    report = json.loads(out)
    assert report["tokens"] == 1804 and report["arithmetic"] == "uthinker", report
    assert report["perplexity"] <= 4.12 and report["bits_per_weight"] <= 4.8, report
    assert abs(report["reference_perplexity"] - 3.5482) < 0.0005, report
    assert report["kl"] < 0.2 and report["top1_agreement"] > 0.75, report


def test_the_first_hundred_plans_are_right_on_the_machine():
    report = json.loads(muc("eval", program(), "--task", "models/rescue/test.txt", "--limit", 100,
                            "--json")[0])
    assert report["exact"] >= 98, report


def test_recomputed_keys_give_the_same_text_and_no_key_cache():
    need_data()
    args = ["-p", "Once upon a time", "-n", 150]
    cached = muc("run", program("stories"), *args)[0]
    assert muc("run", program("stories", "--attention", "recompute"), *args)[0] == cached


def test_a_stripped_program_runs_the_same():
    small, whole = program("rescue", "--strip"), program()
    assert small.stat().st_size < whole.stat().st_size
    assert muc("run", small, "-p", COMMAND)[0] == PLAN
    assert "placeholders" not in json.loads(muc("inspect", small, "--json")[0])


def test_inspect_shows_a_programs_sections_entries_and_placeholders():
    report = json.loads(muc("inspect", program(), "--json")[0])
    assert {row["name"] for row in report["sections"]} >= {"CODE", "WGTS", "TOKN", "GOLD", "PRMT"}
    assert [row["name"] for row in report["entries"]] == ["DECODE", "PREFILL"]
    assert any("pos" in row["label"] for row in report["placeholders"])


def test_verify_finds_every_stage_exact():
    for options in ([], ["--act-terms", "2,p=1,v=1"], ["--attention", "recompute"]):
        out, _ = muc("verify", program("rescue", *options), "--json", "--prompt",
                     f"command: {COMMAND} and then find fire in the lab and photo the lab and map "
                     "the south hall and scan gas and return and map "
                     "the north hall and wait ten seconds and then mark the lab\nplan:")
        report = json.loads(out)
        assert report["exact"] is True and report["positions"] > 64, report
        stages = {row["stage"]: row for row in report["stages"]}
        assert all(row["wrong"] == 0 for row in stages.values()), report
        assert stages["logits"]["values"] > 0 and stages["logits"]["snr_db"] > 10, report


def test_verify_names_the_first_stage_that_differs():
    model = WORK / "other"
    shutil.copytree(ROOT / "models/rescue", model)
    weights = bytearray((model / "model.safetensors").read_bytes())
    header = json.loads(weights[8:8 + int.from_bytes(weights[:8], "little")])
    start = 8 + int.from_bytes(weights[:8], "little")
    at = start + header["model.layers.2.post_attention_layernorm.weight"]["data_offsets"][0]
    weights[at:at + 2] = b"\x00\x40"  # a gain becomes 2.0
    (model / "model.safetensors").write_bytes(weights)
    out, err = muc("verify", program(), model, status=MISMATCH)
    has(out, "exact             no")
    has(err, "layer 2, gate, column 0")


def test_verify_refuses_a_program_of_another_model():
    need_data()
    has(muc("verify", program(), *STORIES["Hugging Face"], status=MISMATCH)[1], "another shape")


def test_a_program_survives_its_disassembly_byte_for_byte():
    for options in ([], ["--strip"]):
        source, text, back = program("rescue", *options), WORK / "text.s", WORK / "back.utp"
        text.write_text(muc("dis", source)[0])
        muc("as", text, "-o", back)
        assert back.read_bytes() == source.read_bytes()


def test_dis_lists_what_a_program_issues_at_a_position():
    first, _ = muc("dis", program(), "--position", 0)
    later, _ = muc("dis", program(), "--position", 100)
    batch, _ = muc("dis", program(), "--position", 100, "--call", 20)
    assert first.count("\n") > 100 and first != later != batch
    has(first, "MM ")
    has(muc("dis", program(), "--position", 256, status=USAGE)[1], "256")
    has(muc("dis", program(), "--call", 2, status=USAGE)[1], "--position")


def test_a_wrong_line_of_assembly_is_named():
    text = WORK / "wrong.s"
    lines = muc("dis", program())[0].splitlines()
    at = next(i for i, line in enumerate(lines) if line.lstrip().startswith("MM "))
    text.write_text("\n".join([*lines[:at], lines[at].replace("MM ", "MX "), *lines[at + 1:]]))
    has(muc("as", text, "-o", WORK / "never.utp", status=MALFORMED)[1], f"line {at + 1}")
    text.write_text("\n".join(line if not line.lstrip().startswith("MM ") else
                              re.sub(r" wait=[0-9,]+", "", line) for line in lines))
    has(muc("as", text, "-o", WORK / "never.utp", status=MALFORMED)[1], "verifier refuses")
    assert not (WORK / "never.utp").exists()


def test_wrong_compile_options_are_told():
    out = ["-o", WORK / "never.utp"]
    has(muc("compile", status=USAGE)[1], "-o FILE")
    has(muc("compile", "--act-terms", "3", *out, status=USAGE)[1], "expected 1 or 2")
    has(muc("compile", "--act-terms", "2,z=1", *out, status=USAGE)[1], "x q k p v o f h l")
    has(muc("compile", "--attention", "none", *out, status=USAGE)[1], "cache or recompute")
    has(muc("compile", "--target", "z80", *out, status=USAGE)[1], "muc targets")
    has(muc("compile", "--quant", "int1", *out, status=USAGE)[1], "bd4")
    has(muc("compile", "--bits", "0.5", *out, status=USAGE)[1], "from 1 to 16")
    has(muc("compile", "--ctx-size", "9999", *out, status=USAGE)[1], "256")
    has(muc("compile", program(), *out, status=USAGE)[1], "program already")
    has(muc("compile", "-o", "/no/such/folder/x.utp", status=IO)[1], "/no/such/folder/x.utp")
    assert not (WORK / "never.utp").exists()


def test_a_machine_too_small_is_refused_with_the_place_and_the_bytes():
    text = (ROOT / "src/targets/uthinker/machines/uthinker.ini").read_text()
    machine = WORK / "small.ini"
    machine.write_text(text.replace("gb = 262144", "gb = 1024"))
    has(muc("compile", "--machine", machine, "-o", WORK / "never.utp", status=NOFIT)[1], "GB")
    machine.write_text(text.replace("gb =", "bg ="))
    has(muc("compile", "--machine", machine, "-o", WORK / "never.utp", status=MALFORMED)[1],
        "small.ini", "line 10")


def damaged(source, name, step):
    """Cuts and flips of a file, spread over its length; all of the first 256 bytes are flipped."""
    path = WORK / name
    data = source.read_bytes()
    for cut in sorted({0, 1, 4, 63, 64, 100, len(data) // 2, len(data) - 1}):
        path.write_bytes(data[:cut])
        yield f"cut at {cut}", path
    for at in [*range(0, 256, 7), *range(256, len(data), step)]:
        broken = bytearray(data)
        broken[at] ^= 0x10
        path.write_bytes(broken)
        yield f"flipped at {at}", path


def test_damaged_programs_and_bdt_files_are_refused_by_name():
    for what, path in damaged(program(), "damaged.utp", 29989):
        _, err = muc("run", path, "-n", 1, "-p", "x", status={MALFORMED, UNSUPPORTED})
        assert "damaged.utp" in err, (what, err)
    blocks = WORK / "whole.bdt"
    muc("quantize", "-o", blocks)
    for what, path in damaged(blocks, "damaged.bdt", 29989):
        muc("inspect", path, status={MALFORMED, UNSUPPORTED})


# ---- report ----

def compiled_code():
    """The built-in model as C, made once; a language model needs no shared data."""
    code = WORK / "rescue_c"
    if not code.is_dir():
        muc("compile", "--target", "mcu", "--machine", "mps2-an500", "-o", code)
    return code


def test_report_is_text_json_csv_or_a_page():
    code = compiled_code()
    text = muc("report", code)[0]
    has(text, "arena bound", "layers:", "buffers:", "traffic:")
    report = json.loads(muc("report", code, "--format", "json")[0])
    assert report == json.loads(muc("report", code, "--json")[0])
    steps = json.loads((code / "rescue.json").read_text())["steps"]
    assert [row["name"] for row in report["layers"]] == [step["name"] for step in steps]
    assert report["macs"] == sum(step["macs"] for step in steps)
    rows = muc("report", code, "--format", "csv")[0].splitlines()
    assert rows[0].startswith("name,function,") and len(rows) == 1 + len(steps), rows[:2]
    has(muc("report", code, "--format", "csv", "--table", "buffers")[0].splitlines()[0], "name,bytes,address")
    page = muc("report", code, "--format", "html")[0]
    assert page.startswith("<!DOCTYPE html>") and page.count("<svg") == 2, page[:200]
    for word in ("<script", "http:", "https:", "src=", "@import", "url(http"):
        assert word not in page, word


def test_report_writes_a_file_whose_end_says_the_form():
    code = compiled_code()
    for form in ("json", "csv", "html"):
        path = WORK / f"report.{form}"
        out = muc("report", code, "-o", path)[0]
        assert out == "" and path.read_text().strip() == muc("report", code, "--format", form)[0].strip(), form
    muc("report", code, "-o", WORK / "report.txt", "--format", "json")
    json.loads((WORK / "report.txt").read_text())
    first = (WORK / "report.html").read_bytes()
    muc("report", code, "-o", WORK / "report.html")
    assert first == (WORK / "report.html").read_bytes()


def test_what_a_report_cannot_do_is_told():
    code = compiled_code()
    has(muc("report", code, "--format", "pdf", status=USAGE)[1], "pdf", "html")
    has(muc("report", code, "--format", "csv", "--table", "weights", status=USAGE)[1], "weights", "layers", "buffers")
    has(muc("report", code, "--input", "x.npz", status=USAGE)[1], "--qemu")
    has(muc("report", code, "-o", WORK / "no/such/report.html", status=IO)[1], "no/such")


def test_a_description_that_was_edited_is_reported_within_bounds():
    code = WORK / "edited"
    shutil.copytree(compiled_code(), code)
    path = code / "rescue.json"
    description = json.loads(path.read_text())
    description["steps"][1].update({"from": [7, -1, 10**12, "x"], "inputs": [99], "macs": -3, "traces": 10**15})
    description["buffers"][0].update({"first": 10**11, "last": -5, "address": 2**62, "bytes": 2**62})
    description["buffers"][1] = 7
    description["memories"].append({"use": "<b>", "memory": None})
    path.write_text(json.dumps(description))
    for form in ("text", "html", "csv", "json"):
        muc("report", code, "--format", form)
    description.update({"steps": 3, "buffers": {}, "memories": "no"})
    path.write_text(json.dumps(description))
    muc("report", code, "--format", "html")


def test_a_language_models_code_is_held_against_its_checkpoint_token_by_token():
    code = compiled_code()
    report = json.loads(muc("verify", code, ROOT / "models/rescue", "--prompt", "search the north corridor", "--json")[0])
    assert report["exact"] and report["positions"] == len(report["tokens"]) > 3 and report["top1_agreement"] > 0.7, report
    assert all(row["wrong"] == 0 for row in report["tokens"]) and 0 <= report["kl"] < 0.1, report
    assert "from `rescue`" in (code / "README.md").read_text()
    changed = WORK / "changed_c"
    shutil.copytree(code, changed)
    source = changed / "rescue.c"
    before = source.read_text()
    scale = re.search(r"_scales\[\d+\] = \{\s+(\S+),", before)
    source.write_text(before[:scale.start(1)] + "0.25f" + before[scale.end(1):])
    out, err = muc("verify", changed, ROOT / "models/rescue", "--json", status=MISMATCH)
    has(err, "differ at position")
    assert not json.loads(out)["exact"]


def write_npy(path, shape, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}f", *values))


def test_lengths_of_a_run_of_code_come_from_the_arrays_or_from_dim():
    code = WORK / "open_c"
    muc("compile", ROOT / "fuzz/corpus/onnx/shapes", "--target", "mcu", "-o", code)
    for batch in (1, 3, 1024):
        write_npy(WORK / "open.npy", (batch, 4, 6), [float(i) for i in range(24 * batch)])
        for more in ((), ("--dim", f"batch={batch}")):
            row = json.loads(muc("run", code, "--input", WORK / "open.npy", "--json", *more)[0])["outputs"][0]
            assert row["elements"] == 24 * batch and row["last"] == 24 * batch - 1, row
    has(muc("run", code, "--input", WORK / "open.npy", "--dim", "batch=7", status=USAGE)[1], "batch is 1024", "7 by --dim")
    has(muc("run", code, status=USAGE)[1], "--dim batch=N")
    write_npy(WORK / "open.npy", (1025, 4, 6), [0.0] * (24 * 1025))
    has(muc("run", code, "--input", WORK / "open.npy", status=USAGE)[1], "1 to 1024")


# ---- pictures ----

def test_a_picture_in_every_form_gives_the_same_classes():
    need_data()
    network = DATA / "tflite/mnist_valid_q.tflite"
    digits = gzip.open(DATA / "mnist/t10k-images-idx3-ubyte.gz").read()[16:16 + 784]
    array = b"{'descr': '|u1', 'fortran_order': False, 'shape': (28, 28), }".ljust(117) + b"\n"
    files = {"seven.pgm": b"P5\n28 28\n255\n" + digits, "seven.raw": digits,
             "seven.npy": b"\x93NUMPY\1\0" + struct.pack("<H", len(array)) + array + digits}
    (WORK / "labels").write_text("".join(f"digit {i}\n" for i in range(10)))
    answers = []
    for name, data in files.items():
        (WORK / name).write_bytes(data)
        answers.append(json.loads(muc("run", network, "--image", WORK / name, "--labels", WORK / "labels", "--json")[0]))
        assert answers[-1]["classes"][0]["label"] == "digit 7" and answers[-1]["classes"][0]["score"] > 0.9, answers[-1]
    assert all(answer == answers[0] for answer in answers)
    has(answers[0]["image"], "28 x 28 grey")
    code = WORK / "mnist_c"
    muc("compile", network, "--target", "mcu", "-o", code)
    found = json.loads(muc("run", code, "--image", WORK / "seven.pgm", "--labels", WORK / "labels", "--json")[0])
    assert found["classes"] == answers[0]["classes"] and found["image"] == answers[0]["image"], found
    muc("verify", code, network, "--image", WORK / "seven.pgm")
    chip = WORK / "mnist_chip"
    network_f32 = DATA / "keras/mnist_valid.h5"
    formats = json.loads(muc("formats", "--json")[0])["formats"]
    if any(row["name"] == "keras" for row in formats):
        muc("compile", network_f32, "--target", "cnnchip", "-o", chip)
        by_chip = json.loads(muc("run", chip, "--image", WORK / "seven.pgm", "--json")[0])["classes"]
        by_ref = json.loads(muc("run", network_f32, "--image", WORK / "seven.pgm", "--json")[0])["classes"]
        for a, b in zip(by_chip, by_ref):
            assert a["class"] == b["class"] and abs(a["score"] - b["score"]) < 1e-6, (by_chip, by_ref)
    other = json.loads(muc("run", network, "--image", WORK / "seven.pgm", "--preprocess", "scale=-1/255,mean=-1", "--json")[0])
    assert other["image"].endswith("(sample * -0.00392157 - -1) / 1") and other["classes"] != answers[0]["classes"]
    for words, arguments in ((("not both",), ("--input", WORK / "seven.npy")), (("not understood",), ("--preprocess", "x=1"))):
        has(muc("run", network, "--image", WORK / "seven.pgm", *arguments, status=USAGE)[1], *words)
    has(muc("run", network, "--image", WORK / "labels", status=UNSUPPORTED)[1], "784 bytes")
    has(muc("run", network, "--image", WORK / "no.png", status=IO)[1], "no.png")


def test_a_network_is_calibrated_on_a_folder_of_pictures():
    network, folder, samples = WORK / "small.graph", WORK / "pictures", []
    weights = ", ".join(str((i * 5 % 17 - 8) / 8) for i in range(18))
    network.write_text(f"""graph small
tensor x = input f32 [1, 1, 6, 6]
tensor w = const f32 [2, 1, 3, 3] values {weights}
node c f32 [1, 2, 6, 6] = conv x, w pads=[1, 1, 1, 1]
node y f32 [1, 2, 6, 6] = relu c
output y
""")
    (folder / "more").mkdir(parents=True)
    for i, name in enumerate(("a.pgm", "b.pgm", "more/c.pgm")):
        pixels = bytes((i * 67 + j * 29) % 256 for j in range(36))
        (folder / name).write_bytes(b"P5\n%d %d\n255\n" % (6, 6) + pixels)
        samples += [(p * (1 / 255) - 0.5) / 0.25 for p in pixels]
    (folder / ".hidden").write_text("no picture")
    write_npy(WORK / "samples.npy", (3, 1, 6, 6), samples)
    prepare = ["--preprocess", "scale=1/255,mean=0.5,std=0.25"]
    source = []
    for name, calibration in (("by_pictures", [folder, *prepare]), ("by_array", [WORK / "samples.npy"])):
        muc("compile", network, "--target", "mcu", "--quant", "int8", "--calib", *calibration, "-o", WORK / name)
        source.append((WORK / name / "small.c").read_text())
    assert source[0] == source[1]
    muc("verify", WORK / "by_pictures", network, "--quant", "int8", "--calib", f"{folder}/", *prepare, "--image", folder / "b.pgm")
    has(muc("verify", WORK / "by_pictures", network, "--quant", "int8", "--calib", folder, "--image", folder / "b.pgm",
            status=MISMATCH)[1], "--preprocess")
    (folder / "text").write_text("no picture")
    has(muc("compile", network, "--quant", "int8", "--calib", folder, "-o", WORK / "no", status=UNSUPPORTED)[1], "text")
    (WORK / "empty").mkdir()
    has(muc("compile", network, "--quant", "int8", "--calib", WORK / "empty", "-o", WORK / "no", status=USAGE)[1], "no pictures")


# ---- texts ----

TOKENIZER = ROOT / "models/rescue/tokenizer.model"


def test_a_network_of_tokens_runs_on_a_text():
    network = WORK / "echo.graph"  # the token itself comes next, as long as the mask has tokens
    network.write_text("""graph echo
tensor input_ids = input i64 [1, 12]
tensor attention_mask = input i64 [1, 12]
tensor position_ids = input i64 [1, 12]
tensor pair = const f32 [2] values 0.0, 3.5
node h f32 [1, 12, 512] = one_hot input_ids, pair axis=2 size=512
node m i64 [1, 12] = mul attention_mask, position_ids
node f f32 [1, 12] = cast m to=f32
node g f32 [1, 12, 1] = reshape f shape=[1, 12, 1]
node y f32 [1, 12, 512] = mul h, g
output y
""")
    found = json.loads(muc("run", network, "--prompt", "go home", "--tokenizer", TOKENIZER, "--json")[0])
    first, second = found["next"][:2]
    assert "go home".endswith(first["text"].strip()) and first["text"] and second["score"] == 0, found["next"]
    last = first["score"] / 3.5  # the position of the last token
    assert last == int(last) and 1 <= last < 6, found["next"]
    longer = "go home and come back to the lab"
    has(muc("run", network, "--prompt", longer, "--tokenizer", TOKENIZER, status=USAGE)[1], "12 at most")
    has(muc("run", network, "--prompt", longer, status=USAGE)[1], "--tokenizer")
    network.write_text(network.read_text().replace("position_ids", "depth"))
    has(muc("run", network, "--prompt", "go", "--tokenizer", TOKENIZER, status=USAGE)[1], "'depth'")
    has(muc("run", ROOT / "examples/cnnchip/small.graph", "--prompt", "go", "--tokenizer", TOKENIZER, status=USAGE)[1],
        "no input takes tokens")


def test_a_network_of_tokens_is_calibrated_on_a_text():
    network, text = WORK / "tokens.graph", WORK / "text.txt"
    weights = ", ".join(str((i * 5 % 17 - 8) / 8) for i in range(24))
    network.write_text(f"""graph tokens
tensor input_ids = input i32 [1, 8]
tensor w = const f32 [3, 8] values {weights}
node f f32 [1, 8] = cast input_ids to=f32
node y f32 [1, 3] = linear f, w
output y
""")
    words = "search the north corridor for survivors, then come back and go to the lab"
    text.write_text(words)
    spell = WORK / "spell.graph"  # what the tokens are
    spell.write_text("""graph spell
tensor input_ids = input i32 [1, 64]
node y f32 [1, 64] = cast input_ids to=f32
output y
""")
    muc("run", spell, "--prompt", words, "--tokenizer", TOKENIZER, "-o", WORK / "tokens.npz")
    with zipfile.ZipFile(WORK / "tokens.npz") as archive:
        data = archive.read(archive.namelist()[0])
    tokens = [int(x) for x in struct.unpack("<64f", data[-256:])]
    count = max(i for i, token in enumerate(tokens) if token) + 1
    assert count >= 16, tokens
    rows = count // 8
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({rows}, 8), }}".encode().ljust(117) + b"\n"
    (WORK / "tokens.npy").write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header
                                      + struct.pack(f"<{8 * rows}i", *tokens[:8 * rows]))
    source = []
    for name, calibration in (("by_text", [text, "--tokenizer", TOKENIZER]), ("by_tokens", [WORK / "tokens.npy"])):
        muc("compile", network, "--target", "mcu", "--quant", "int8", "--calib", *calibration, "-o", WORK / name)
        source.append((WORK / name / "tokens.c").read_text())
    assert source[0] == source[1]


def main():
    tests = [(name, f) for name, f in globals().items() if name.startswith("test_")]
    print(f"1..{len(tests)}")
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        title = name[len("test_"):]
        try:
            test()
            print(f"ok {number} {title}", flush=True)
        except Skip as reason:
            print(f"ok {number} {title} # SKIP {reason}", flush=True)
        except Exception as problem:  # one broken test must not hide the others
            failed += 1
            print(f"not ok {number} {title}", flush=True)
            print(f"{title}: {problem!r}", file=sys.stderr, flush=True)
    shutil.rmtree(WORK)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
