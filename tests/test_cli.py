#!/usr/bin/env python3
"""The command as a user meets it: help, errors, models that speak. Prints TAP.

    tests/test_cli.py MUC      from the source root; tests of shared data are skipped without it
"""
import contextlib
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
import zlib

from cli import COMMAND, PLAN, STORIES, WORK, compiled_code, has, muc, need_data, program
from files import DATA, IO, MALFORMED, MUC, OK, ROOT, UNSUPPORTED, USAGE, Skip, run_tests


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


def beside_muc():
    """An environment whose path leads to muc."""
    return dict(os.environ, PATH=f"{MUC.parent}:{os.environ['PATH']}")


def test_bash_completes_machines_and_boards():
    for words, name in ("compile --machine stm32h74", "stm32h743"), ("new x --board stm32h74", "stm32h743"), ("new x --board pe6", ""):
        script = muc("help", "--completion")[0] + f"\nCOMP_WORDS=(muc {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _muc; echo ${{COMPREPLY[@]}}\n"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=beside_muc())
        assert done.stdout == name + "\n", done.stdout


def completed(shell, script, line):
    """What a shell makes of a line, by muc's completion for it."""
    if not shutil.which(shell):
        raise Skip(f"{shell} is missing")
    with tempfile.NamedTemporaryFile("w", suffix=f".{shell}") as file:
        file.write(muc("help", "--completion", shell)[0])
        file.flush()
        done = subprocess.run([shell, "-c", script.format(file=file.name, line=line)], capture_output=True, text=True, check=True,
                              env=beside_muc())
    return done.stdout


FISH = "source {file}; complete -C '{line}'"
# what zsh's own functions would list is printed
ZSH = """_describe() {{ print -rl -- ${{(P)2}} }}
compadd() {{ shift; print -rl -- $@ }}
_files() {{ }}
words=({line}) CURRENT=${{#words}}
source {file}"""


def test_fish_and_zsh_complete_verbs_options_and_machines():
    for shell, script, dashes in (("fish", FISH, "--"), ("zsh", ZSH, "--")):
        has(completed(shell, script, "muc comp"), "compress", "write a checkpoint with weights of 8, 4 or 2 bits")
        options = completed(shell, script, "muc tokenize --no-")
        has(options, "--no-bos")
        assert "--steps" not in options, options
        has(completed(shell, script, "muc compile --machine stm"), "stm32h743")
        has(completed(shell, script, "muc new x --board stm"), "stm32h743")


def test_completion_of_another_shell_is_refused():
    has(muc("help", "--completion", "tcsh", status=USAGE)[1], "no completion for 'tcsh'; expected bash, zsh or fish")


def test_the_doctor_finds_programs_on_the_path_and_says_what_brings_the_others():
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "qemu-system-arm"
        program.write_text("")
        program.chmod(0o755)
        done = subprocess.run([MUC, "doctor", "--json"], capture_output=True, text=True, check=True,
                              env={"PATH": f"/nowhere:{folder}"})
        rows = {row["name"]: row for row in json.loads(done.stdout)["programs"]}
        assert rows["qemu-system-arm"]["found"] and rows["qemu-system-arm"]["where"] == str(program), rows
        assert not rows["cc"]["found"] and rows["cc"]["missing"] == "install gcc", rows


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
        with contextlib.suppress(ProcessLookupError):  # the compiler, which muc ended, may be gone
            os.killpg(run.pid, signal.SIGKILL)
        assert not any(folder.iterdir()), list(folder.iterdir())


def test_the_compiler_may_be_several_words():
    def run(compiler):
        return subprocess.run([MUC, "run", compiled_code(), "--prompt", COMMAND], env={**os.environ, "CC": compiler}, capture_output=True, text=True, timeout=300)

    assert run(" env  cc -O1").stdout == run("").stdout == PLAN
    blank, other = run(" "), run("env no-such-compiler")
    assert blank.returncode == USAGE and "blanks alone" in blank.stderr, blank
    assert other.returncode != OK and "no-such-compiler" in other.stderr, other


def test_a_chip_program_that_claims_four_gigabytes_is_refused():
    chip = WORK / "greedy_chip"
    muc("compile", "examples/cnnchip/small.graph", "--target", "cnnchip", "--pes", 16, "-o", chip)
    head = bytearray((chip / "program.bin").read_bytes())
    struct.pack_into("<I", head, 28, 0xfffffff0)
    struct.pack_into("<I", head, 60, zlib.crc32(head[:60]))
    (chip / "program.bin").write_bytes(head)
    for verb in (["run", chip, "--input", chip / "frame.bin"], ["report", chip]):
        has(muc(*verb, status=UNSUPPORTED)[1], "program.bin", "4294967280 bytes of FRAME", "the simulator has")


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


def byte_tokenizer(eos):
    """tokenizer.json of bytes from id 3 on, and the token </s>, special or not, where the built-in model ends a text"""
    codes = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in codes]
    alphabet = {b: chr(b) if b in codes else chr(256 + others.index(b)) for b in range(256)}
    path = WORK / f"bytes_{eos}.json"
    path.write_text(json.dumps({
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": 2, "content": "</s>", "special": eos == "special"}],
        "model": {"type": "BPE", "vocab": {alphabet[b]: 3 + b for b in range(256)}, "merges": []}}))
    return path


def test_special_tokens_are_read_in_prompts_and_nowhere_else():
    text = WORK / "special.txt"
    text.write_text("ab</s>cd")
    for tokenizer, begins in ((None, 1), (byte_tokenizer("special"), 0), (byte_tokenizer("user"), 0)):
        options = ["--tokenizer", tokenizer] if tokenizer else []
        count = {}
        for name, prompt, more in (("none", "abcd", []), ("special", "ab</s>cd", []), ("plain", "ab</s>cd", ["--no-special"])):
            report = json.loads(muc("run", *options, "--prompt", prompt, "--raw", "-n", 1, *more, "--json")[0])
            count[name] = report["prompt_tokens"]
        predicted = json.loads(muc("eval", *options, "--text", text, "--json")[0])["tokens"]
        assert count["special"] <= count["none"] + 2 < count["plain"] == predicted + 1, (tokenizer, count, predicted)
        if tokenizer:
            assert (count["special"], count["plain"]) == (5, 8), count


def test_the_generated_main_reads_special_tokens_too():
    code = WORK / "special_c"
    shutil.copytree(compiled_code(), code)
    told = {prompt: json.loads(muc("run", code, "--prompt", prompt, "--raw", "-n", 4, "--json")[0])["text"][len(prompt):]
            for prompt in ("go</s>lab", "golab")}
    description = next(code.glob("*.json"))
    name = json.loads(description.read_text())["name"]
    sources = [code / f"{name}.c", code / "main.c", *(code / s for s in json.loads(description.read_text())["sources"])]
    (code / f"{name}_lm.c").write_text(re.sub(r'(_prompt\[\w*\] = )".*"', r'\1""', (code / f"{name}_lm.c").read_text()))
    subprocess.run(["cc", "-std=c99", "-O1", "-ffp-contract=off", f"-I{code}", f"-I{code}/include", *sources, "-o", WORK / "main"],
                   check=True)
    for prompt, text in told.items():
        done = subprocess.run([WORK / "main", prompt, "4"], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == (prompt + text).strip(), (done.stdout, prompt, text)


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
    operators = {row["name"]: row for row in json.loads(muc("ops", "--json")[0])["operators"]}
    assert operators["linear"]["tflite"] == "FULLY_CONNECTED", operators["linear"]
    assert {"CONV_2D", "DEPTHWISE_CONV_2D"} <= set(operators["conv"]["tflite"].split()), operators["conv"]
    if "keras" in {row["name"] for row in formats}:
        assert operators["linear"]["keras"] == "Dense" and "ReLU" in operators["relu"]["keras"], operators["linear"]


def test_inspect_shows_the_architecture_as_understood():
    report = json.loads(muc("inspect", "--json")[0])
    assert (report["dim"], report["layers"], report["kv_heads"]) == (128, 4, 1), report
    assert sum(1 for row in report["tensors"] if row["name"].endswith("q_proj.weight")) == 4


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
