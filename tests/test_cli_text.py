#!/usr/bin/env python3
"""The verbs by which a language model is used, as a user meets them. Prints TAP.

    tests/test_cli_text.py MUC      from the source root; tests of shared data are skipped without it
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib

from cli import BRIEF, COMMAND, PLAN, STORIES, WORK, compiled_code, has, muc, need_data, program
from files import DATA, MALFORMED, MISMATCH, MUC, ROOT, Skip, UNSUPPORTED, USAGE, run_tests

RESCUE = ROOT / "models/rescue"
CHATML = "{% for message in messages %}{{ '<|im_start|>' + message['role'] }}{% endfor %}"


def ids_of(model, *options):
    report = json.loads(muc("tokenize", *model, *options, "--json")[0])
    assert report["count"] == len(report["tokens"]), report
    return [row["id"] for row in report["tokens"]]


# ---- tokenize ----

def test_tokens_are_those_of_llama2c_in_every_form():
    need_data()
    expected = json.loads((DATA / "llama/reference/expected.json").read_text())
    for model in STORIES.values():
        path, *options = model
        assert ids_of([path, expected["prompt"]], *options) == expected["prompt_tokens"]
        whole = ids_of([path, expected["text"]], *options)
        assert whole == expected["tokens"][:len(whole)], whole
        text, _ = muc("tokenize", path, *options, "--ids", expected["tokens"])
        assert text == expected["text"] + "\n", text


def test_tokens_become_the_text_again():
    text = "café 😀\n\tend  of  text "
    for model in (RESCUE, program()):
        ids = ids_of([model, text])
        assert ids[0] == 1 and ids_of([model, text], "--no-bos") == ids[1:]
        for form in (str(ids), " ".join(map(str, ids))):
            assert muc("tokenize", model, "--ids", form)[0] == text + "\n"


def test_a_text_comes_from_an_argument_an_option_a_file_and_standard_input():
    (WORK / "text.txt").write_text("scan it")
    expected = ids_of([RESCUE, "scan it"])
    assert ids_of([RESCUE], "-p", "scan it") == expected
    assert ids_of([RESCUE], "--file", WORK / "text.txt") == expected
    out, _ = muc("tokenize", RESCUE, "-f", "-", "--format", "csv", stdin=b"scan it")
    assert [int(line.split(",")[0]) for line in out.splitlines()[1:]] == expected


def test_special_tokens_are_tokens_unless_they_are_to_be_text():
    assert ids_of([RESCUE, "</s>"], "--no-bos")[-1] == 2
    assert 2 not in ids_of([RESCUE, "</s>"], "--no-special")


def test_what_is_no_text_and_no_token_is_refused():
    has(muc("tokenize", RESCUE, status=USAGE)[1], "say which text")
    has(muc("tokenize", RESCUE, "a", "-p", "b", status=USAGE)[1], "given twice")
    has(muc("tokenize", RESCUE, "--ids", "1", "text", status=USAGE)[1], "takes no text")
    has(muc("tokenize", RESCUE, "--ids", "1,x2", status=USAGE)[1], "'x2'")
    for number in ("512", "99999999999999999999999", "1,4294967296"):
        has(muc("tokenize", RESCUE, "--ids", number, status=USAGE)[1], "0 to 511")


# ---- run: conversations ----

def lines_of(out):
    """The texts that came, piece by piece, and the reports, of --json-lines."""
    rows = [json.loads(line) for line in out.splitlines()]
    return [row["text"] for row in rows if list(row) == ["text"]], [row for row in rows if "end" in row]


def folder_with(name, files):
    folder = WORK / name
    shutil.copytree(RESCUE, folder)
    (folder / "prompt.txt").unlink()
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


def gguf_with_template(template):
    """The model's GGUF file with one more value; the data is aligned again."""
    old = (DATA / "llama/stories260K-f32.gguf").read_bytes()
    tensors, values = struct.unpack("<QQ", old[8:24])
    key = b"tokenizer.chat_template"
    value = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(template)) + template.encode()
    while len(value) % 32:  # a name may be as long as it likes
        template += " "
        value = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(template)) + template.encode()
    path = WORK / "chat.gguf"
    path.write_bytes(old[:8] + struct.pack("<QQ", tensors, values + 1) + value + old[24:])
    return path


def test_a_chat_is_the_template_filled_in():
    folder = folder_with("chat", {"tokenizer_config.json": json.dumps({"chat_template": CHATML})})
    told = "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nscan it<|im_end|>\n<|im_start|>assistant\n"
    raw = json.loads(muc("run", folder, "--raw", "-p", told, "-n", 12, "--json")[0])
    expected = raw["text"][len(told):].lstrip()
    seen = []
    for options in (["--chat"], ["--chat-template", "chatml"]):
        report = json.loads(muc("run", folder, *options, "--system", "Be brief", "-p", "scan it", "-n", 12, "--json")[0])
        assert report["chat"] == "chatml" and report["prompt_tokens"] == raw["prompt_tokens"], report
        assert report["text"] == expected.split("<|im_end|>")[0], (report, raw)
        seen.append(report["text"])
    assert seen[0] and seen[0] == seen[1]


def test_the_template_is_found_where_models_carry_it():
    need_data()
    named = [{"name": "rag", "template": "x"}, {"name": "default", "template": CHATML}]
    for i, files in enumerate(({"tokenizer_config.json": json.dumps({"chat_template": named})}, {"chat_template.jinja": CHATML})):
        folder = folder_with(f"found{i}", files)
        assert json.loads(muc("run", folder, "--chat", "-p", "x", "-n", 1, "--json")[0])["chat"] == "chatml"
    out, _ = muc("run", gguf_with_template("{{ '<start_of_turn>' }}"), "--chat", "-p", "x", "-n", 1, "--json")
    assert json.loads(out)["chat"] == "gemma"


def test_a_template_that_is_not_known_says_what_to_do():
    has(muc("run", RESCUE, "--chat", "-p", "x", status=UNSUPPORTED)[1], "carries no chat template", "--chat-template NAME")
    folder = folder_with("unknown", {"chat_template.jinja": "{{ messages }}"})
    has(muc("run", folder, "--chat", "-p", "x", status=UNSUPPORTED)[1], "one that muc does not know", "--chat-template NAME")
    has(muc("run", RESCUE, "--chat-template", "lama3", "-p", "x", status=USAGE)[1], "did you mean 'llama3'?")
    has(muc("run", RESCUE, "--system", "x", "-p", "x", status=USAGE)[1], "--chat")
    has(muc("run", RESCUE, "--chat-template", "chatml", "--no-special", "-p", "x", status=USAGE)[1], "--no-special")
    folder = folder_with("broken", {"tokenizer_config.json": '{"chat_template": '})
    has(muc("run", folder, "--chat", "-p", "x", status=MALFORMED)[1], "tokenizer_config.json")
    muc("run", folder, "-p", "x", "-n", 1)  # who asks for no chat does not need it


def test_a_conversation_is_one_text():
    """What was said and answered is what the model sees of it."""
    need_data()
    for model in (STORIES["Hugging Face"], [program("stories")]):
        first, _ = muc("run", *model, "-p", "Once upon a time", "-n", 6)
        whole, _ = muc("run", *model, "-p", first.rstrip("\n") + " Then she", "-n", 9)
        out, _ = muc("run", *model, "-i", "-p", "Once upon a time", "-n", 6, stdin=b"")
        assert out == first, out
        pieces, reports = lines_of(muc("run", *model, "-i", "-p", "Once upon a time", "-n", 6, "--json-lines",
                                       stdin=b"Then she\n\n/clear\nOnce upon a time\n/exit\nmore\n")[0])
        assert len(reports) == 3 and "".join(pieces) == "".join(row["text"] for row in reports), reports
        assert reports[0]["text"] + "\n" == first and reports[2]["text"] + "\n" == first, reports
        told = (first.rstrip("\n") + " " + reports[1]["text"]).strip()
        assert whole.strip().startswith(told), (whole, reports)


def test_a_chat_without_a_prompt_converses():
    out, _ = muc("run", RESCUE, "--chat-template", "llama2", "-n", 5, "--json-lines", stdin=b"scan it\nscan it\n")
    _, reports = lines_of(out)
    assert [row["chat"] for row in reports] == ["llama2"] * 2, reports
    assert reports[0]["prompt_tokens"] < reports[1]["prompt_tokens"] or reports[0]["text"] != reports[1]["text"]
    has(muc("run", RESCUE, "-i", "--json", status=USAGE)[1], "--json-lines")
    has(muc("run", RESCUE, "-i", "-n", 200, stdin=b"scan the north corridor\n" * 60, status=USAGE)[1], "the conversation has")


def test_generation_stops_before_a_stop_text():
    report = json.loads(muc("run", RESCUE, "-p", COMMAND, "--stop", "no such", "-r", "; ret", "--json")[0])
    assert report["end"] == "stop" and report["text"] == PLAN.split("; ret")[0], report
    assert muc("run", RESCUE, "-p", COMMAND, "--stop", "; ret")[0] == PLAN.split("; ret")[0] + "\n"
    assert muc("run", RESCUE, "-p", COMMAND, "--stop", "zzz")[0] == PLAN
    has(muc("run", RESCUE, "-p", "x", "--stop", "", status=USAGE)[1], "empty")
    has(muc("run", RESCUE, "-p", "x", *["--stop", "y"] * 65, status=USAGE)[1], "more than 64")


def test_lines_of_json_are_whole_characters():
    need_data()
    out, _ = muc("run", *STORIES["GGUF"], "-p", "😀 é", "-n", 3, "--temp", 5, "--json-lines")
    pieces, reports = lines_of(out)
    assert len(reports) == 1 and "".join(pieces) == reports[0]["text"], out
    has(muc("run", RESCUE, "-p", "x", "--json", "--json-lines", status=USAGE)[1], "not both")


def test_input_has_no_letter_any_more():
    has(muc("compile", "-i", "x", status=USAGE)[1], "unknown option '-i'")


# ---- run: the prompt cache ----

def test_a_cached_prompt_gives_the_same_text_and_is_not_computed_again():
    need_data()
    prompt = "Once upon a time, there was a little girl named Lily."
    models = [STORIES["Hugging Face"], [program("stories")], [RESCUE], [compiled_code()]]
    for number, model in enumerate(models):
        cache = WORK / f"{number}.cache"
        run = lambda prompt, *options: json.loads(muc("run", *model, "-p", prompt, "--raw", "-n", 12, "--json", *options)[0])
        for options in ([], ["--temp", 1, "--repeat-penalty", 1.2]):
            plain, first, second = run(prompt, *options), run(prompt, *options, "--prompt-cache", cache), run(prompt, *options, "--prompt-cache", cache)
            assert plain["text"] == first["text"] == second["text"], (plain, first, second)
            assert second["cached_tokens"] == second["prompt_tokens"] - 1, second
        shorter = run(prompt[:30], "--prompt-cache", cache)  # leaves the file for its own
        assert shorter["text"] == run(prompt[:30])["text"] and 0 < shorter["cached_tokens"] < shorter["prompt_tokens"], shorter
        longer = run(prompt + " She", "--prompt-cache", cache)
        assert longer["text"] == run(prompt + " She")["text"] and longer["cached_tokens"] > 3, longer


def test_a_prompt_cache_of_something_else_is_refused():
    cache = WORK / "refused.cache"
    options = ["-p", COMMAND, "-n", 2, "--prompt-cache", cache]
    muc("run", RESCUE, *options)
    whole = cache.read_bytes()
    has(muc("run", program(), *options, status=MISMATCH)[1], "another model or context")
    muc("run", RESCUE, *options, "-c", 100, status=MISMATCH)
    folder = folder_with("changed", {})
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    muc("run", folder, *options, status=MISMATCH)
    for changed in (whole[:7], whole[:27], whole[:60], whole[:-1], whole + b"x", whole[:8] + b"\2" + whole[9:], b"text"):
        cache.write_bytes(changed)
        muc("run", RESCUE, *options, status=MALFORMED)
        assert cache.read_bytes() == changed  # and stays
    for at in (20, 30, len(whole) // 2):
        cache.write_bytes(whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1:])
        muc("run", RESCUE, *options, status={MALFORMED, MISMATCH})


# ---- bench ----

def test_bench_times_prompts_and_generation():
    report = json.loads(muc("bench", RESCUE, program(), "-p", "16,0", "-n", "4", "-d", 3, "-r", 2, "-t", 1, "--json")[0])
    assert report["threads"] == 1
    assert [(row["model"], row["test"]) for row in report["tests"]] == \
        [(str(model), test) for model in (RESCUE, program()) for test in ("pp16 @ d3", "tg4 @ d3")], report
    for row in report["tests"]:
        assert row["tokens_per_second"] > 0 and row["deviation"] >= 0 and row["repetitions"] == 2, row
        assert 0 < row["processor_ms"] < 1e5, row
    assert report["tests"][0]["weights"] > 0


def test_bench_prints_tables():
    out, _ = muc("bench", RESCUE, "-p", 0, "-n", 2, "-r", 1, "--format", "md")
    table = [line for line in out.splitlines() if line.startswith("| ")][-2:]
    assert len({line.count("|") for line in table}) == 1 and "tg2" in table[1] and "pp" not in out, out
    out, _ = muc("bench", RESCUE, "-p", 2, "-n", 0, "-r", 1, "--format", "csv")
    assert out.splitlines()[0].split(",")[0] == "model" and ",pp2," in out.splitlines()[1], out


def test_bench_refuses_what_it_cannot_time():
    has(muc("bench", RESCUE, "-p", "100000", status=USAGE)[1], "exceed the context")
    has(muc("bench", RESCUE, "-p", "12,x", status=USAGE)[1], "not a list of numbers")
    has(muc("bench", RESCUE, "-p", "0", "-n", "0", status=USAGE)[1], "no test")
    has(muc("bench", RESCUE, "-n", ",".join("1" * 33), status=USAGE)[1], "more than 32")


# ---- eval: windows, files of logits, choices ----

STORY = DATA / "text/tinystories_sample.txt"


def measured(*options, **how):
    return json.loads(muc("eval", *options, "--json", **how)[0])


def choices(text):
    """A choice for each two sentences that follow one another: the other endings come from elsewhere."""
    sentences = re.findall(r"[A-Z][^.!?\n\"]{15,90}[.]", text)
    lines = []
    for i in range(0, len(sentences) - 1, 2):
        endings = [sentences[(i + 1 + 7 * k) % len(sentences)] for k in range(4)]
        right = i // 2 % 4
        endings[0], endings[right] = endings[right], endings[0]
        lines += [sentences[i], str(right), *endings]
    return "\n".join(lines) + "\n"


def test_windows_give_llama_perplexitys_figures():
    """llama-perplexity -c 128 -fa off -ctk f32 -ctv f32 on the same file: PPL = 6.845286 +/- 0.742138"""
    need_data()
    report = measured(*STORIES["GGUF"], "--text", STORY, "--window", 128, "--stride", 128)
    assert abs(report["perplexity"] - 6.845286) < 2e-5, report
    assert abs(report["perplexity_error"] - 0.742138) < 2e-5, report
    assert report["windows"] == 14 and report["tokens"] == 14 * 63, report
    overlapping = measured(*STORIES["GGUF"], "--text", STORY, "--window", 128, "--stride", 32)
    assert overlapping["tokens"] == overlapping["windows"] * 32 and overlapping["windows"] > 50, overlapping


def test_saved_logits_are_compared_as_llama_perplexity_compares_them():
    """It gives 6.339222 +/- 0.584213 for the file of the same windows: rows are cut at exp(-16)."""
    need_data()
    base = WORK / "base.kld"
    saved = measured(*STORIES["GGUF"], "--text", STORY, "--window", 128, "--save-logits", base)
    assert base.stat().st_size == 20 + 14 * 128 * 4 + 14 * 63 * (512 + 4) * 2
    same = measured(*STORIES["GGUF"], "--kl", base)
    assert same["perplexity"] == saved["perplexity"] and same["top1_agreement"] == 1, same
    assert abs(same["reference_perplexity"] - 6.339222) < 2e-5, same
    assert abs(same["kl"]) < 1e-5 and same["probability_rms"] < 2e-5, same
    other = measured(program("stories"), "--kl", base)
    assert other["kl"] > 1e-3 and other["top1_agreement"] < 1, other
    direct = measured(program("stories"), "--text", STORY, "--window", 128, "--stride", 128, "--reference",
                      *STORIES["GGUF"])
    assert abs(other["kl"] - direct["kl"]) < 0.05 * direct["kl"], (other, direct)
    assert other["perplexity"] == direct["perplexity"], (other, direct)
    rows = {row["quantile"]: row["kl"] for row in other["quantiles"]}
    assert rows["least"] <= rows["median"] <= rows["99 %"] <= rows["greatest"], rows


def test_a_file_of_logits_that_is_cut_or_changed_is_refused():
    base = WORK / "rescue.kld"
    muc("eval", RESCUE, "--text", RESCUE / "test.txt", "--window", 16, "--limit", 2, "--save-logits", base)
    whole = base.read_bytes()
    broken = WORK / "broken.kld"
    for size in [*range(24), 20 + 2 * 16 * 4 + 100, len(whole) - 1]:
        broken.write_bytes(whole[:size])
        muc("eval", RESCUE, "--kl", broken, status=MALFORMED)
    for at, value in ((8, 0), (8, 1 << 31), (16, 0), (16, (1 << 32) - 1), (20, 512)):
        broken.write_bytes(whole[:at] + struct.pack("<I", value) + whole[at + 4:])
        muc("eval", RESCUE, "--kl", broken, status={MALFORMED, USAGE})
    broken.write_bytes(whole[:12] + struct.pack("<I", 511) + whole[16:])
    has(muc("eval", RESCUE, "--kl", broken, status=MISMATCH)[1], "511", "512")
    for options in (["--kl", base, "--window", 16], ["--kl", base, "--reference", RESCUE], ["--kl", base, "--shard", "1/2"],
                    ["--text", base, "--window", 16, "--stride", 17], ["--text", base, "--stride", 4, "--save-logits", broken],
                    ["--text", RESCUE / "test.txt", "--stride", 100000]):
        muc("eval", RESCUE, *options, status=USAGE)


def test_choices_are_llama_perplexitys():
    """llama-perplexity --hellaswag on the same file: 30.00000000% [16.6647%, 47.8758%]"""
    need_data()
    path = WORK / "choices.txt"
    path.write_text(choices(STORY.read_text()))
    report = measured(*STORIES["GGUF"], "--choices", path)
    assert (report["choices"], report["right"]) == (30, 9), report
    assert abs(report["accuracy_low"] - 0.166647) < 1e-6 and abs(report["accuracy_high"] - 0.478758) < 1e-6, report


def test_choices_that_are_none_are_refused():
    path = WORK / "choices.txt"
    for text, part in (("a\n4\nb\nc\nd\ne\n", "line 2 is '4'"), ("a\n\n", "line 2"), ("a\n0\nb\nc\n", "within choice 1"), ("", "no text")):
        path.write_text(text)
        has(muc("eval", RESCUE, "--choices", path, status=MALFORMED)[1], part)
    path.write_text("scan\n0\nit\nit\nit\nit")
    assert measured(RESCUE, "--choices", path)["right"] == 1  # equals: the first


# ---- shards ----

def test_shards_merged_are_one_run():
    text, path = RESCUE / "test.txt", WORK / "choices.txt"
    (WORK / "documents.txt").write_text(text.read_text().replace("\n\n", "\n<|endoftext|>\n"))
    path.write_text(choices("Scan the lab and go home. Go to the lab and scan it. Rescue the man. Find the red supply. " * 6))
    for name, options in (("documents", ["--text", WORK / "documents.txt", "--limit", 20, "--reference", RESCUE]),
                          ("windows", ["--text", text, "--window", 32, "--stride", 8, "--limit", 9]), ("choices", ["--choices", path])):
        parts = []
        for shard in (3, 1, 2):
            parts.append(WORK / f"{name}{shard}.json")
            parts[-1].write_text(muc("eval", program(), *options, "--shard", f"{shard}/3", "--json")[0])
        whole, _ = muc("eval", program(), *options, "--json")
        assert muc("merge", *parts, "--json")[0] == whole, name
        has(muc("merge", *parts[:2], status=USAGE)[1], "shard 2 of 3 is missing")
        has(muc("merge", *parts, parts[0], status=USAGE)[1], "given twice")
    has(muc("merge", WORK / "windows1.json", WORK / "choices2.json", status=MISMATCH)[1], "parts of one evaluation")
    has(muc("merge", RESCUE / "config.json", status=MALFORMED)[1], "not a part")
    has(muc("eval", RESCUE, "--text", text, "--shard", "3/2", status=USAGE)[1], "I/N")
    has(muc("eval", RESCUE, "--task", text, "--shard", "1/2", status=USAGE)[1], "--shard")


def test_shards_of_blocks_merged_are_one_run():
    whole, options = WORK / "whole.bdt", ["--bits", 5]
    muc("quantize", RESCUE, "-o", whole, *options)
    for shards in (2, 3, 40):  # there are 29 matrices
        parts = []
        for shard in range(shards, 0, -1):
            parts.append(WORK / f"blocks{shard}of{shards}.bdt")
            muc("quantize", RESCUE, "-o", parts[-1], *options, "--shard", f"{shard}/{shards}")
        muc("merge", *parts, "-o", WORK / "merged.bdt")
        assert (WORK / "merged.bdt").read_bytes() == whole.read_bytes(), shards
    first, second, third = (WORK / f"blocks{shard}of3.bdt" for shard in (1, 2, 3))
    other, cut, refused = WORK / "other.bdt", WORK / "cut.bdt", WORK / "refused.bdt"
    muc("quantize", RESCUE, "-o", other, "--bits", 4.7, "--shard", "2/3")
    cut.write_bytes(second.read_bytes()[:9000])
    for parts, status, message in (
            ((first, third), USAGE, "shard 2 of 3 is missing"), ((first, second, third, second), USAGE, "shard 2 of 3 is given twice"),
            ((first, other, third), MISMATCH, "parts of one model"), ((first, WORK / "blocks2of2.bdt"), MISMATCH, "parts of one model"),
            ((first, cut, third), MALFORMED, "damaged or cut short"), ((whole,), MALFORMED, "not a part"),
            ((RESCUE / "config.json",), MALFORMED, "not a part")):
        has(muc("merge", *parts, "-o", refused, status=status)[1], message)
        assert not refused.exists()
    has(muc("compile", second, "-o", refused, status=USAGE)[1], "muc merge PART")
    has(muc("quantize", RESCUE, "-o", refused, "--calib", "auto", "--shard", "1/2", status=USAGE)[1], "--calib")


# ---- synth ----

def synth(shape, name, *options):
    return json.loads(muc("synth", "--shape", shape, "-o", WORK / name, *options, "--force", "--json")[0])


def test_synthetic_checkpoints_have_the_published_number_of_parameters():
    """Of all layers, from the numbers of one and of two."""
    for shape, layers, published in (("smollm2-135m", 30, 134515008), ("smollm2-360m", 32, 361821120), ("mobilellm-125m", 30, 124635456)):
        one, two = (synth(shape, "counted", "--layers", n)["parameters"] for n in (1, 2))
        assert one + (layers - 1) * (two - one) == published, shape
    shutil.rmtree(WORK / "counted")


def test_a_synthetic_checkpoint_is_the_same_on_every_machine_and_at_any_thread_count():
    synth("stories-260k", "a", "--seed", 7, "-t", 1)
    synth("stories-260k", "b", "--seed", 7, "-t", 2)
    synth("stories-260k", "c", "--seed", 8)
    weights = [(WORK / name / "model.safetensors").read_bytes() for name in "abc"]
    assert weights[0] == weights[1] != weights[2]
    assert "%08x" % zlib.crc32(weights[0]) == "eded9a8c"


def test_synthetic_weights_have_tails_scales_and_channels_that_stand_out():
    synth("stories-15m", "a", "--layers", 2)
    data = (WORK / "a/model.safetensors").read_bytes()
    size, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + size])

    def rows(name):
        begin, end = head[name]["data_offsets"]
        numbers = struct.unpack(f"<{(end - begin) // 2}H", data[8 + size + begin:8 + size + end])
        columns = head[name]["shape"][-1]
        values = [struct.unpack("<f", struct.pack("<I", n << 16))[0] for n in numbers]
        return [values[i:i + columns] for i in range(0, len(values), columns)]

    def power(values, n):
        return sum(v ** n for v in values) / len(values)

    matrix = rows("model.layers.1.self_attn.q_proj.weight")
    kurtoses = sorted(power(row, 4) / power(row, 2) ** 2 for row in matrix)
    assert 3.8 < kurtoses[len(kurtoses) // 2] < 7, kurtoses  # 3 of the normal distribution
    scales = sorted(power(row, 2) ** 0.5 for row in matrix)
    assert scales[-len(scales) // 20] > 1.8 * scales[len(scales) // 20], scales
    gains, = rows("model.layers.1.input_layernorm.weight")
    outliers = [c for c, gain in enumerate(gains) if abs(gain) > 3]
    assert 0 < len(outliers) < 10 and max(gains) > 3 * power(gains, 2) ** 0.5, gains
    weak = power([row[c] for row in matrix for c in outliers], 2)
    assert weak < 0.5 * power([v for row in matrix for v in row], 2), weak


def test_every_shape_runs():
    for shape in ("mobilellm-125m-ls", "stories-15m"):
        synth(shape, "runs", "--layers", 2)
        out, _ = muc("run", WORK / "runs", "-p", "Once upon a time", "-n", 3, "-c", 32)
        assert out.startswith("Once upon a time"), out
        assert measured(WORK / "runs", "--text", RESCUE / "test.txt", "--window", 16, "--stride", 16, "--limit", 1, "-c", 16)["perplexity"] < 1e8
    config = json.loads((RESCUE / "config.json").read_text())
    (WORK / "config.json").write_text(json.dumps(config))
    synth(WORK / "config.json", "runs")
    muc("run", WORK / "runs", "-p", "scan it", "-n", 3)
    shutil.rmtree(WORK / "runs")


def most_resident(*command):
    """Bytes that the command held in memory at most; MALLOC_PERTURB_, which Meson sets, writes to all that is allocated."""
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}
    child = subprocess.Popen([MUC, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, (command, child.returncode)
    return usage.ru_maxrss * 1024


def test_a_checkpoint_runs_in_its_own_size_and_its_caches():
    """Its weights in the type of the file, mapped; of activations only what is still to be read."""
    if BRIEF:
        raise Skip("sanitizers have memory of their own")
    synth("mobilellm-125m", "resident")
    resident = most_resident("run", WORK / "resident", "--raw", "-c", "512", "-p", "~" * 400, "-n", "2", "-t", "2")
    caches = 30 * 2 * 512 * 192 * 4  # layers, keys and values, positions, columns, float32
    most = (WORK / "resident" / "model.safetensors").stat().st_size + caches + (64 << 20)
    shutil.rmtree(WORK / "resident")
    assert resident <= most, (resident, most)


def test_programs_are_made_and_verified_in_the_size_of_their_files():
    """Neither decoded weights, nor sequences on the way, nor the whole of a long context's caches."""
    if BRIEF:
        raise Skip("sanitizers have memory of their own")
    config = json.loads((RESCUE / "config.json").read_text())
    config.update(hidden_size=512, intermediate_size=4096, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4,
                  max_position_embeddings=65536)
    (WORK / "config.json").write_text(json.dumps(config))
    folder, program = WORK / "resident", WORK / "resident.utp"
    synth(WORK / "config.json", "resident")
    resident = [most_resident("compile", folder, "--machine", "uthinker-1b", "-o", program, "-t", "2"),
                most_resident("verify", program, folder, "-t", "2")]
    most = (folder / "model.safetensors").stat().st_size + program.stat().st_size + (160 << 20)
    shutil.rmtree(folder)
    program.unlink()
    assert max(resident) <= most, (resident, most)


def test_compiled_forms_of_large_tokenizers_are_kept_and_damaged_ones_are_not_taken():
    home, before = WORK / "home", os.environ.get("XDG_CACHE_HOME")
    synth("stories-260k", "spoken", "--layers", 1)
    text = (WORK / "spoken" / "tokenizer.json").read_text()
    swapped = json.loads(text)
    vocabulary = swapped["model"]["vocab"]
    vocabulary["s"], vocabulary["c"] = vocabulary["c"], vocabulary["s"]
    texts = [text + " " * (4 << 20) for text in (text, json.dumps(swapped), text[1:])]  # spaces make them large
    paths = [WORK / f"{i}.tokenizer.json" for i in range(3)]
    for path, text in zip(paths, texts):
        path.write_text(text)

    def tokens(i=0):
        return muc("tokenize", paths[i], "scan it")[0]

    def kept():
        return sorted((home / "muc").glob("*")) if home.exists() else []

    os.environ["XDG_CACHE_HOME"] = str(home)
    try:
        expected = tokens()
        first, = kept()
        form = first.read_bytes()
        assert tokens() == expected and kept() == [first]
        other = tokens(1)  # another file, another form
        second, = set(kept()) - {first}
        assert other != expected and tokens(1) == other
        second.write_bytes(form)  # it is what is read, where it is whole
        assert tokens(1) == expected
        for damaged in (b"", form[:40], form[:-1], form[:200] + b"?" + form[201:], form[:8] + b"?" + form[9:]):
            first.write_bytes(damaged)
            assert tokens() == expected and first.read_bytes() == form
        muc("tokenize", paths[2], "scan it", status=MALFORMED)
        assert len(kept()) == 2
        shutil.rmtree(home)
        home.write_text("")  # no folder: nothing is kept, and nothing is said
        out, err = muc("tokenize", paths[0], "scan it")
        assert out == expected and not err
    finally:
        os.environ.pop("XDG_CACHE_HOME") if before is None else os.environ.update(XDG_CACHE_HOME=before)
        shutil.rmtree(WORK / "spoken")
        for path in paths + [home]:
            path.unlink(missing_ok=True)


def test_shapes_that_are_none_are_refused():
    out = WORK / "none"
    has(muc("synth", "--shape", "smollm2-135", "-o", out, status=USAGE)[1], "did you mean 'smollm2-135m'?", "llama-3.2-1b")
    has(muc("synth", "-o", out, status=USAGE)[1], "--shape NAME")
    has(muc("synth", "--shape", "stories-15m", status=USAGE)[1], "-o FILE")
    gpt2 = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 64, "n_layer": 1, "n_head": 2, "vocab_size": 300, "n_positions": 64}
    (WORK / "config.json").write_text(json.dumps(gpt2))
    has(muc("synth", "--shape", WORK / "config.json", "-o", out, status=UNSUPPORTED)[1], "together or transposed")
    (WORK / "config.json").write_text("[]")
    muc("synth", "--shape", WORK / "config.json", "-o", out, status=MALFORMED)
    assert not out.exists()


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
