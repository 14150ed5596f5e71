#!/usr/bin/env python3
"""Programs of the µThinker as a user meets them: compiled, run, read, damaged. Prints TAP.

    tests/test_cli_programs.py MUC      from the source root
"""
import json
import re
import shutil
import subprocess
import sys

from cli import BRIEF, COMMAND, PLAN, STORIES, WORK, has, muc, need_data, program
from files import DATA, IO, MALFORMED, MISMATCH, NOFIT, ROOT, UNSUPPORTED, USAGE, run_tests


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
    if BRIEF:
        return
    out, _ = muc("eval", program("stories"), "--text", DATA / "text/tinystories_sample.txt",
                 "--reference", DATA / "llama/stories260K-hf", "--json")
    report = json.loads(out)
    assert report["tokens"] == 1804 and report["arithmetic"] == "uthinker", report
    assert report["perplexity"] <= 4.12 and report["bits_per_weight"] <= 4.8, report
    assert abs(report["reference_perplexity"] - 3.5482) < 0.0005, report
    assert report["kl"] < 0.2 and report["top1_agreement"] > 0.75, report


def test_the_first_hundred_plans_are_right_on_the_machine():
    count = 20 if BRIEF else 100
    report = json.loads(muc("eval", program(), "--task", "models/rescue/test.txt", "--limit", count,
                            "--json")[0])
    assert report["exact"] >= 0.98 * count, report


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


def test_report_tells_where_the_time_goes_and_what_to_change():
    report = json.loads(muc("report", program(), "--json", "--position", 200)[0])
    assert [row.get("layer") for row in report["layers"]] == [None, 0, 1, 2, 3], report["layers"]
    stages = [row["stage"] for row in report["stages"]]
    assert set(stages) >= {"EMBED", "NORM", "Q", "K", "V", "QK", "PV", "O", "UP+GATE", "DN", "LM head", "next token"}, stages
    for table in ("stages", "layers", "stage_layers"):  # each number is rounded by itself
        assert abs(sum(row["cycles"] for row in report[table]) - report["cycles"]) <= len(report[table]), table
    idle = {engine: sum(row["share"] for row in report["waits"] if row["engine"] == engine) for engine in ("DMA", "CPU")}
    busy = {row["engine"]: row["share"] for row in report["engines"]}
    assert all(abs(idle[e] + busy[e] - 1) < 1e-9 for e in idle), (idle, busy)
    classes = {row["class"]: row for row in report["dram"]}
    assert classes["K cache"]["read"] and classes["V tail"]["written"] and classes["logits"]["written"] == 2048, classes
    assert abs(sum(row["share"] for row in report["dram"]) - 1) < 1e-9
    tries = {row["keys"]: row["saved"] for row in report["what_if"]}
    assert tries["dram_mbs, dma_bytes"] > 0 and tries["cpu_khz"] > 0, tries


def test_report_ends_with_what_to_change():
    slow_dram = (ROOT / "src/targets/uthinker/machines/uthinker.ini").read_text().replace("dram_mbs = 1600", "dram_mbs = 100")
    slow_cpu = slow_dram.replace("dram_mbs = 100", "dram_mbs = 25600").replace("cpu_khz = 250000", "cpu_khz = 20000")
    for text, engine, idle, reason in ((slow_dram, "DRAM", "accelerator", "a transfer"),
                                       (slow_cpu, "CPU", "DMA", "the CPU interprets the program")):
        machine = WORK / "slow.ini"
        machine.write_text(text)
        lines = muc("report", program(), "--machine", machine)[0].split("what to change:\n")[1].splitlines()
        assert lines[1].startswith(f"The {engine} is the bottleneck"), lines
        waits = json.loads(muc("report", program(), "--machine", machine, "--json")[0])["waits"]
        longest = max((row for row in waits if row["engine"] == idle), key=lambda row: row["cycles"])
        assert longest["waits_for"] == reason and longest["share"] > 0.5, waits
    rows = muc("report", program(), "--format", "csv", "--table", "stage_layers")[0].splitlines()
    assert rows[0].startswith("stage,layer,cycles"), rows[0]
    has(muc("report", program())[0], f"{len(rows) - 1} rows: --format csv --table stage_layers")
    stripped = json.loads(muc("report", program("rescue", "--strip"), "--json")[0])  # no names: instructions
    assert {row["stage"] for row in stripped["stages"]} >= {"LD", "MM", "NORM", "next token"}, stripped["stages"]


def test_compare_puts_two_reports_beside_each_other():
    slow, fast = WORK / "slow.json", WORK / "fast.json"
    a = json.loads(muc("report", program(), "--json")[0])
    muc("report", program(), "-o", slow)
    muc("report", program(), "--machine", "uthinker-6400", "-o", fast)
    b = json.loads(fast.read_text())
    report = json.loads(muc("report", "--compare", slow, fast, "--json")[0])
    figures = {row["figure"]: row for row in report["figures"]}
    assert figures["seconds"]["a"] == a["seconds"] and figures["seconds"]["b"] == b["seconds"], figures
    assert abs(figures["seconds"]["change"] - (b["seconds"] / a["seconds"] - 1)) < 1e-12
    assert figures["machine"]["a"] == "uthinker" and figures["machine"]["b"] == "uthinker-6400", figures
    differs = {(row["row"], row["figure"]) for row in report["stages"]}
    assert ("UP+GATE", "dma") in differs and not any("macs" in key for key in differs), differs
    calls = [row for row in report["calls"] if row["figure"] == "seconds"]  # two of them begin at position 0
    assert [row["row"] for row in calls] == ["position 0", "position 127", "position 255", "position 0 (2)"], calls
    has(report["what_changed"][0]["sentence"], "% less")
    has(muc("report", "--compare", program(), slow)[0], "b takes as long as a.")
    other = json.loads(muc("report", "--compare", program(), program("rescue", "--bits", 5.2), "--json")[0])
    assert all(row["change"] > 0 for row in other["figures"] if row["figure"] in ("seconds", "dram bytes")), other["figures"]
    has(muc("report", "--compare", program(), status=USAGE)[1], "--compare A B")
    has(muc("report", program(), program(), status=USAGE)[1], "did you mean --compare?")
    fast.write_text("[1]")
    has(muc("report", "--compare", slow, fast, status=MALFORMED)[1], "fast.json")


def check_trace(events, report):
    """The rules of the trace event format: an X has ts and dur in microseconds, and those of a thread nest."""
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert list(names.values()) == ["DMA", "array", "vector unit", "CPU", "stages"], names
    rows = {name: [e for e in events if e["ph"] == "X" and e["tid"] == tid] for tid, name in names.items()}
    assert len(events) == sum(map(len, rows.values())) + sum(e["ph"] == "M" for e in events)
    for event in events:
        wanted = {"name", "cat", "ph", "ts", "dur", "pid", "tid"} if event["ph"] == "X" else {"name", "ph", "pid", "args"}
        assert wanted <= event.keys() and event["pid"] == 1, event
        assert all(isinstance(event[key], (int, float)) and event[key] >= 0 for key in ("ts", "dur", "tid") if key in wanted), event
    ps = lambda number: round(number * 1e6)
    for name, row in rows.items():
        open_ends = []
        for event in sorted(row, key=lambda e: (ps(e["ts"]), -ps(e["dur"]))):
            begin, end = ps(event["ts"]), ps(event["ts"]) + ps(event["dur"])
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or (name == "stages" and end <= open_ends[-1]), (name, event, open_ends)
            assert end <= ps(report["seconds"] * 1e6), event
            open_ends.append(end)
    busy = {row["engine"]: row["busy_seconds"] for row in report["engines"]}
    for name in ("DMA", "array", "vector unit"):
        assert abs(sum(e["dur"] for e in rows[name]) / 1e6 - busy[name]) < 1e-9, name
    works = sum(e["dur"] for e in rows["CPU"] if e["cat"] == "work") / 1e6
    assert abs(works - busy["CPU"]) < 1e-9, works
    assert abs(sum(e["dur"] for e in rows["CPU"]) / 1e6 - report["seconds"]) < 1e-9
    assert abs(sum(e["dur"] for e in rows["stages"] if e["cat"] == "stage") / 1e6 - report["seconds"]) < 1e-9
    assert sum(e["args"]["bytes"] for e in rows["DMA"]) == sum(r["read"] + r["written"] for r in report["dram"])
    assert [e["name"] for e in rows["stages"] if e["cat"] == "layer"][:4] == [f"layer {i}" for i in range(4)]


def trace_of(path, position):
    trace = WORK / "trace_of.json"
    muc("report", path, "--position", position, "--trace", trace)
    return json.loads(trace.read_text())["traceEvents"]


def test_a_trace_shows_what_each_engine_does():
    trace = WORK / "trace.json"
    for options in (["--position", 130], ["--call", 100]):
        report = json.loads(muc("report", program(), "--json", "--trace", trace, *options)[0])
        check_trace(json.loads(trace.read_text())["traceEvents"], report)
    has(muc("report", program(), "--trace", program(), status=USAGE)[1], "input")
    has(muc("report", program(), "--trace", WORK / "nowhere" / "trace.json", status=IO)[1], "nowhere")


def test_report_tells_what_a_programs_calls_take():
    report = json.loads(muc("report", program(), "--json")[0])
    assert report["machine"] == "uthinker" and report["position"] == 0 and report["tokens"] == 1, report
    assert 0 < report["dram_share"] < 1 and 0 < report["cpu_share"] < 1 and report["millijoules"] > 0, report
    assert report["least_dram_bytes"] <= report["dram_bytes"], report
    assert [(row["position"], row["tokens"]) for row in report["calls"]] == [(0, 1), (127, 1), (255, 1), (0, 64)]
    last = json.loads(muc("report", program(), "--json", "--position", 255)[0])
    assert last["seconds"] == report["calls"][2]["seconds"] > report["seconds"], last
    call = json.loads(muc("report", program(), "--json", "--call", 100)[0])
    assert call["tokens"] == 100 and call["tokens_per_second"] > report["tokens_per_second"], call
    fast = json.loads(muc("report", program(), "--json", "--machine", "uthinker-6400")[0])
    assert fast["machine"] == "uthinker-6400" and fast["seconds"] < report["seconds"], fast
    assert {row["part"] for row in report["energy"]} == {"DRAM", "buffers", "array", "vector unit", "CPU", "at rest"}
    assert report["binding_roof"] == "DRAM" and report["binding_share"] == report["dram_share"], report
    assert report["first_token_seconds"] == report["seconds"] < last["first_token_seconds"], last
    for told in (report, last, call):
        assert all(0 < row["mean_share"] <= row["most_share"] <= 1 and row["most"] % 64 == 0 for row in told["buffers"]), told["buffers"]
        assert 1 < sum(row["dram_bytes"] for row in told["layers"] if "layer" in row) / max(row["dram_bytes"] for row in told["layers"]), told["layers"]
    # a line holds what the longest load brings, of any layer
    longest = max(event["args"]["bytes"] for event in trace_of(program(), 255) if event["name"] == "LD" and event["args"]["stage"] == "UP+GATE")
    assert max(row["most"] for row in last["buffers"] if row["buffer"] in ("W0", "W1")) >= longest, (longest, last["buffers"])
    has(muc("report", program(), "--position", 256, status=USAGE)[1], "the context has 256")
    has(muc("report", program(), "--machine", "uthinker-robot", status=MISMATCH)[1], "another array, other buffers or rows")
    has(muc("report", program(), "--machine", "uthinker-rob", status=USAGE)[1], "did you mean 'uthinker-robot'")
    has(muc("report", program(), "--qemu", "m4", status=USAGE)[1], "is a program")


def test_a_token_that_is_drawn_takes_the_cpu_longer():
    likeliest, drawn = (json.loads(muc("run", program(), "-p", COMMAND, "-n", 4, "--json", "--temp", t)[0])["machine_prompt"] for t in (0, 0.8))
    assert drawn["seconds"] > likeliest["seconds"], (likeliest, drawn)


def test_a_machine_without_times_compiles_and_is_not_timed():
    text = (ROOT / "src/targets/uthinker/machines/uthinker.ini").read_text().replace("ibuf1 = 32768", "ibuf1 = 65536")
    quiet, timed = WORK / "quiet.ini", WORK / "timed.ini"
    quiet.write_text(text.split("; SPEC.md section 9")[0])
    timed.write_text(text)
    made = program("rescue", "--machine", quiet)
    out, err = muc("run", made, "-p", COMMAND)
    assert out == PLAN and "uthinker" not in err, err
    has(muc("run", program(), "-p", COMMAND)[1], "uthinker: prompt 0.0", "tokens/s), ", " mJ")
    has(muc("report", made, status=USAGE)[1], "not built in")
    has(muc("report", made, "--machine", quiet, status=USAGE)[1], "no section [time]")
    assert json.loads(muc("report", made, "--machine", timed, "--json")[0])["seconds"] > 0
    short = WORK / "short.ini"
    short.write_text(text.replace("mm_start = 16\n", ""))
    has(muc("compile", "-o", WORK / "short.utp", "--machine", short, status=MALFORMED)[1], "'mm_start' is missing in [time]")


def array(name, tile_k, tile_n, tokens, rows):
    """The default machine with another array, as a file."""
    text = (ROOT / "src/targets/uthinker/machines/uthinker.ini").read_text()
    path = WORK / f"{name}.ini"
    path.write_text(text.replace("rows = 64", f"rows = {rows}").replace(
        "isa = 1\n", f"isa = 1\ntile_k = {tile_k}\ntile_n = {tile_n}\ntokens = {tokens}\n"))
    return path


def test_an_array_of_another_size_takes_an_ini_file_alone():
    text = f"command: {COMMAND} and then find fire in the lab and photo the lab and map the south hall and scan gas\nplan:"
    shapes = {"a32x16": (32, 16, 32, 32), "a128x8": (128, 8, 64, 64), "a96x1": (96, 1, 32, 20), "a64x64": (64, 64, 64, 64)}
    for name, shape in shapes.items():
        machine = array(name, *shape)
        for options in ([], ["--attention", "recompute"])[:1 if BRIEF and name[1] == "9" else 2]:
            made = program("rescue", "--machine", machine, *options)
            report = json.loads(muc("verify", made, "--json", "--prompt", text)[0])
            assert report["exact"] is True and report["positions"] > 32, (name, report)
            listed = WORK / "listed.s"
            listed.write_text(muc("dis", made)[0])
            muc("as", listed, "-o", WORK / "again.utp")
            assert (WORK / "again.utp").read_bytes() == made.read_bytes(), name
            if shape[2] == 64:  # only the step of attention may change bits
                assert muc("run", made, "-p", COMMAND)[0] == PLAN, name
        assert json.loads(muc("report", made, "--machine", machine, "--json")[0])["seconds"] > 0
        has(muc("report", made, "--machine", "uthinker", status=MISMATCH)[1], "another array")


def test_arrays_that_there_are_not_are_refused():
    refused = {(48, 8, 32, 32): "'tile_k' is 48, expected a multiple of 32: a BlockDialect block",
               (160, 8, 32, 32): "expected 32..128", (64, 12, 64, 64): "expected a power of two",
               (64, 8, 48, 32): "'tokens' is 48, expected a multiple of 32", (32, 8, 64, 32): "tokens is at most tile_k",
               (64, 8, 32, 64): "a call has at most as many tokens"}
    for shape, message in refused.items():
        machine = array("refused", *shape)
        has(muc("compile", "-o", WORK / "refused.utp", "--machine", machine, status=MALFORMED)[1], message)
    need_data()
    has(muc("compile", *STORIES["Hugging Face"], "-o", WORK / "refused.utp", "--machine", array("wide", 32, 16, 32, 32),
            status=UNSUPPORTED)[1], "heads of 8 columns do not begin with tiles of 16")


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


def test_verify_puts_rows_in_parts_together():
    shape, machine, made = WORK / "parts.json", WORK / "parts.ini", WORK / "parts.utp"
    shape.write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 768,
        "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 64, "vocab_size": 512,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
        "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2}))
    text = (ROOT / "src/targets/uthinker/machines/uthinker.ini").read_text()
    for key, old, new in (("gb", 262144, 98304), ("ibuf0", 65536, 16384), ("ibuf1", 32768, 16384)):
        text = text.replace(f"{key} = {old}", f"{key} = {new}")
    machine.write_text(text)
    muc("synth", "--shape", shape, "-o", WORK / "parts", "--force")
    muc("compile", WORK / "parts", "--machine", machine, "-o", made, "--force")
    listed = muc("dis", made)[0]
    assert "ffn_parts = 1\n" not in listed and "o_parts = 3\n" in listed, listed[:2000]
    report = json.loads(muc("verify", made, WORK / "parts", "--json")[0])
    assert report["exact"] is True and all(row["wrong"] == 0 for row in report["stages"]), report


def test_terms_are_chosen_by_what_they_cost():
    need_data()
    made = {}
    for threads in (1, 2):
        path = WORK / f"auto{threads}.utp"
        report = json.loads(muc("compile", *STORIES["Hugging Face"], "--act-terms", "auto", "-t", threads, "-o", path, "--json")[0])
        made[threads] = path.read_bytes()
    assert made[1] == made[2]
    first, *trials = report["terms"]
    assert first["place"] == "none" and first["kept"] == "yes", first
    assert {row["place"] for row in trials} == set("xqkpvofhl"), trials
    kept = [(row["place"], row["layers"]) for row in trials if row["kept"] == "yes"]
    assert ("v", "all") in kept and ("k", "all") not in kept, kept  # keys in four bits double the perplexity
    last = first
    for row in trials:
        gains = row["dram_bytes"] < last["dram_bytes"] or row["prefill"] >= 1.005 * last["prefill"]
        assert (row["kept"] == "yes") == (gains and row["divergence"] <= 1.05 * first["divergence"]), (row, last)
        last = row if row["kept"] == "yes" else last
    # layers of what is refused of all are tried, and the figures are those of the program
    assert {row["layers"] for row in trials if row["place"] == "k"} == {"all", "0-1", "0", "1", "2-4", "2", "3-4", "3", "4"}, trials
    told = json.loads(muc("report", WORK / "auto1.utp", "--position", 511, "--json")[0])
    assert told["dram_bytes"] == last["dram_bytes"] and abs(told["tokens_per_second"] / last["decode"] - 1) < 1e-9, (told, last)
    muc("compile", *STORIES["Hugging Face"], "--act-terms", report["act_terms"], "-o", WORK / "hand.utp")
    assert (WORK / "hand.utp").read_bytes() == made[1]
    muc("quantize", *STORIES["Hugging Face"], "-o", WORK / "stories.bdt")
    has(muc("compile", WORK / "stories.bdt", "--act-terms", "auto", "-o", WORK / "never.utp", status=USAGE)[1], "compile the checkpoint")


def test_layers_may_have_terms_of_their_own():
    need_data()
    made, model = WORK / "layers.utp", STORIES["Hugging Face"]
    muc("compile", *model, "--act-terms", "1,k=2,v:2=2,k:3-4=1,q:0=2", "-o", made)
    report = json.loads(muc("verify", made, *model, "--json")[0])
    assert report["exact"] is True, report
    # places x q k p v o f h with one term from bit 0, where META has two: q, k, v
    listed = [line.split("one_term=")[1] for line in muc("dis", made)[0].splitlines() if line.startswith("layer ")]
    assert listed == ["16", "18", "2", "22", "22"], listed
    text, wrong = muc("dis", made)[0], WORK / "wrong.utp"
    for old, new, words in (("window=512 ", "window=0 ", "window of layer 0 is 0, expected 1 to"), ("one_term=18", "one_term=256", "one_term of layer 1 is 256"),
                            ("layer window=512 rotary=8 rope=0 norms=1 vectors=0 one_term=2\n", "", "96 bytes, expected 24 for each of 5 layers")):
        assert old in text
        (WORK / "wrong.s").write_text(text.replace(old, new, 1))
        err = muc("as", WORK / "wrong.s", "-o", wrong, status={0, MALFORMED})[1]
        has(err or muc("inspect", wrong, status=MALFORMED)[1], words)
        wrong.unlink(missing_ok=True)
    told = json.loads(muc("report", made, "--position", 511, "--json")[0])
    assert len(told["layers"]) >= 5 and told["least_dram_bytes"] <= told["dram_bytes"] < 1.03 * told["least_dram_bytes"], told
    muc("quantize", *model, "-o", WORK / "layers.bdt")
    muc("compile", WORK / "layers.bdt", "--act-terms", "1,k=2,v:2=2,k:3-4=1,q:0=2", "-o", WORK / "blocks.utp")
    assert (WORK / "blocks.utp").read_bytes() == made.read_bytes()
    for wrong in ("k:5=1", "k:1-=1", "k:2-1=1", "l:0=1", "2,", "2k=1", "k:=1", "k:99999999999=1", "x=1=2"):
        has(muc("compile", *model, "--act-terms", wrong, "-o", WORK / "never.utp", status=USAGE)[1], "layers 0 to 4")


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
    has(muc("compile", "--target", "z80", *out, status=USAGE)[1], "uthinker, mcu or cnnchip")
    has(muc("compile", "--quant", "int1", *out, status=USAGE)[1], "bd4")
    has(muc("compile", "--bits", "0.5", *out, status=USAGE)[1], "from 1 to 16")
    has(muc("compile", "--ctx-size", "9999", *out, status=USAGE)[1], "256")
    has(muc("compile", program(), *out, status=USAGE)[1], "compiled already")
    has(muc("compile", "-o", "/no/such/folder/x.utp", status=IO)[1], "/no/such/folder/x.utp")
    assert not (WORK / "never.utp").exists()


def test_a_target_does_what_its_row_says():
    network, model = ROOT / "examples/cnnchip/small.graph", ROOT / "models/rescue"
    for target, takes, refuses in [("uthinker", model, network), ("mcu", network, program()),
                                   ("cnnchip", network, model)]:
        out = WORK / f"of_{target}"
        has(muc("compile", refuses, "--target", target, "-o", out, status={UNSUPPORTED, USAGE})[1], str(refuses))
        assert not out.exists()
        muc("compile", takes, "--target", target, "-o", out)
        made = {"uthinker": out, "mcu": out / "small.c", "cnnchip": out / "program.bin"}[target]
        assert made.is_file(), list(out.iterdir())


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


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
