#!/usr/bin/env python3
"""muc fit: its figures are those of muc compile, muc report and the measured networks. Prints TAP.

    tests/test_fit.py MUC      from the source root
"""
import csv
import filecmp
import json
import re
import sys

from cli import WORK, has, muc, need_data, program, write_npy
from files import DATA, MISMATCH, NOFIT, ROOT, USAGE, run_tests

KWS = DATA / "tflite/kws_ref_model.tflite"


def fit(*args, status=0):
    return json.loads(muc("fit", *args, "--json", status=status)[0])


def rows_of(report, target):
    return [row for row in report["machines"] if row["target"] == target]


def measured():
    """cycles of a multiply-accumulate and of a run, by core and network"""
    with open(ROOT / "bench/cycles.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def counted_core(core):
    """The core of bench/cycles that stands for one of cores.def."""
    return {"RV32IMC": "e31", "RV32IMAFC": "e31"}.get(core, core.lower().replace("_", "-"))


def test_cycles_of_cores_are_the_extremes_of_the_measured_networks():
    table = (ROOT / "src/targets/mcu/machines/core_cycles.def").read_text(encoding="utf-8")
    rows = {(core, of): (int(a), int(b)) for core, of, a, b in re.findall(r"^MUC_MCU_CORE_CYCLES\((\w+), (\w+), (\d+), (\d+)\)", table, re.M)}
    assert len(rows) == 22
    kinds = {"float": "F32", "float16": "F16"}  # of a network's last word; of others int8
    for (core, of), extremes in rows.items():
        name = counted_core(core)
        figures = [round(1000 * int(row["cycles"]) / int(row["computed"])) for row in measured()
                   if row["core"] == name and kinds.get(row["network"].split()[-1], "I8") == of]
        assert extremes == (min(figures), max(figures)), (core, of, extremes, figures)


def test_cycles_of_tokens_are_the_extremes_of_the_measured_models():
    table = (ROOT / "src/targets/mcu/machines/token_cycles.def").read_text(encoding="utf-8")
    rows = re.findall(r"^MUC_MCU_TOKEN_CYCLES\((\w+), (\d+), (\d+)\)", table, re.M)
    assert len(rows) == 7
    with open(ROOT / "bench/token_cycles.csv", newline="", encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    for core, least, most in rows:
        figures = [round(1000 * int(row["cycles"]) / int(row["products"])) for row in told if row["core"] == counted_core(core)]
        assert (int(least), int(most)) == (min(figures), max(figures)), (core, least, most, figures)


def test_a_token_of_a_language_model_takes_its_products_times_the_cycles_of_one():
    need_data()
    model = DATA / "llama/stories260K-hf"
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    dim, hidden, layers = (config[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers"))
    kv = dim * config["num_key_value_heads"] // config["num_attention_heads"]
    matrices = layers * (2 * dim * dim + 2 * dim * kv + 3 * dim * hidden) + dim * config["vocab_size"]
    products = [matrices + layers * 2 * dim * length for length in (1, config["max_position_embeddings"])]
    with open(ROOT / "bench/token_cycles.csv", newline="", encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    assert {row["products"] for row in told if row["model"] == "stories260k" and row["position"] == "0"} == {str(products[0])}
    by_machine = {row["machine"]: row for row in rows_of(fit(model), "mcu")}
    for machine, core, megahertz, milliwatts in (("nrf52840", "cortex-m4", 64, 10), ("rp2040", "cortex-m0plus", 133, 0), ("esp32c3", "e31", 160, 76)):
        rates = [round(1000 * int(row["cycles"]) / int(row["products"])) / 1e3 for row in told if row["core"] == core]
        row = by_machine[machine]
        for key, count, rate in (("least", products[0], min(rates)), ("most", products[1], max(rates))):
            ms = count * rate / (megahertz * 1e3)
            assert abs(row[f"ms_{key}"] / ms - 1) < 1e-9, (machine, row, ms)
            assert abs(row.get(f"mj_{key}", 0) - ms * milliwatts / 1e3) < 1e-9, (machine, row)
        assert row.get("power_source") == ("memory, unchecked" if milliwatts else None), row
    assert "ms_least" not in by_machine["host"] and "ms_least" not in by_machine["siracusa"] and "ms_least" not in by_machine["rv32f"]


def test_rates_of_layers_are_the_medians_of_the_measured_ones():
    table = (ROOT / "src/targets/mcu/machines/layer_rates.def").read_text(encoding="utf-8")
    rows = {core: tuple(map(int, rates)) for core, *rates in re.findall(r"^MUC_MCU_LAYER_RATES\((\w+), (\d+), (\d+), (\d+)\)", table, re.M)}
    board_of = {"CORTEX_M0PLUS": "m0", "CORTEX_M85": "m55", "RV32EMC": "rv32e", "RV32IMC_ZVE32X": "rv32v", "RV64IMAFDC": "rv64",
                "RV64IMAFDCV": "rv32v"}
    with open(ROOT / "bench/layers.csv", newline="", encoding="utf-8") as file:
        measured_ones = {row["board"]: row for row in csv.DictReader(file)}
    boards = {core: board_of.get(core) or ("rv32" if core.startswith("RV32") else core.lower().replace("cortex_", "")) for core in rows}
    assert len(rows) == 12 and set(boards.values()) == set(measured_ones), boards
    for core, rates in rows.items():
        medians = tuple(round(100 * float(measured_ones[boards[core]][f"{kind} a product"])) for kind in ("conv", "depthwise", "linear"))
        assert rates == medians, (core, rates, medians)


def test_a_network_needs_what_compile_says_on_every_machine():
    need_data()
    machines = rows_of(fit(KWS), "mcu")
    assert [row["machine"] for row in machines] == [row["name"] for row in json.loads(muc("targets", "--json")[0])["machines"]
                                                    if row["target"] == "mcu"]
    assert {row["fits"] for row in machines} == {"yes", "no"}
    for row in machines:
        out = WORK / ("kws_" + row["machine"])
        status = 0 if row["fits"] == "yes" else NOFIT
        told, err = muc("compile", KWS, "--machine", row["machine"], "-o", out, "--json", status=status)
        if status == NOFIT:
            has(err, f"needs {row['ram_bytes']} bytes, {row['ram_bytes'] - row['ram_limit']} more than it has")
            continue
        made = json.loads(told)
        memory = {part["use"]: part for part in made["memory"]}
        assert (row["flash_bytes"], row["ram_bytes"]) == (memory["constants"]["bytes"], memory["arena"]["bytes"]), row
        assert (row.get("flash_limit"), row.get("ram_limit")) == (memory["constants"].get("limit"), memory["arena"].get("limit")), row


def test_the_time_of_a_measured_network_lies_between_the_extremes():
    need_data()
    clocks = {"nrf52840": ("cortex-m4", 64), "stm32f746": ("cortex-m7", 216), "rp2040": ("cortex-m0plus", 133)}
    by_machine = {row["machine"]: row for row in rows_of(fit(KWS), "mcu")}
    for machine, (core, megahertz) in clocks.items():
        cycles = next(int(row["cycles"]) for row in measured() if (row["network"], row["core"]) == ("KWS", core))
        row = by_machine[machine]
        assert row["ms_least"] < cycles / megahertz / 1e3 < row["ms_most"], (row, cycles)
    assert "ms_least" not in by_machine["host"] and "ms_least" not in by_machine["siracusa"]


def test_a_network_of_halves_has_the_time_of_halves_on_every_core():
    (WORK / "halves.graph").write_text("graph n\ntensor x = input f16 [1, 8, 8, 3]\ntensor w = const f16 [4, 1, 1, 3] values 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12\n"
                                       "node y f16 [1, 8, 8, 4] = conv x, w channels_last=1\noutput y\n", encoding="utf-8")
    by_machine = {row["machine"]: row for row in rows_of(fit(WORK / "halves.graph"), "mcu")}
    for machine, core, megahertz in (("nrf52840", "cortex-m4", 64), ("stm32h743", "cortex-m7", 480), ("rp2350", "cortex-m4", 150),
                                     ("rp2040", "cortex-m0plus", 133), ("esp32c3", "e31", 160), ("mps3-an547", "cortex-m55", 32)):
        rates = [int(row["cycles"]) / int(row["computed"]) for row in measured() if row["core"] == core and row["network"].endswith("float16")]
        row = by_machine[machine]
        for key, rate in (("least", min(rates)), ("most", max(rates))):
            assert abs(row[f"ms_{key}"] * megahertz * 1e3 / (8 * 8 * 3 * 4 * rate) - 1) < 1e-3, (machine, row)


def test_a_float_network_that_does_not_fit_is_planned_as_int8_too():
    need_data()
    report = fit(DATA / "keras/ad01.h5", "--machine", "nrf52840")
    real, integer = report["machines"]
    assert (real["weights"], real["fits"], integer["weights"], integer["fits"]) == ("float32", "no", "int8", "yes"), report
    assert real["flash_bytes"] > real["flash_limit"] and 1 < real["ms_least"] / integer["ms_most"] < real["ms_most"] / integer["ms_least"], report
    has(report["why_not"][0]["reason"], "constants take %d bytes" % real["flash_bytes"], "--quant int8")


def test_samples_that_a_file_leaves_open_are_one():
    net = ROOT / "fuzz/corpus/onnx/shapes"
    report = fit(net)
    assert report.pop("dim") == "batch=1" and report == fit(net, "--dim", "batch=1")
    assert "dim" not in fit(net, "--dim", "batch=1..4")


def test_compile_and_verify_take_one_sample_as_fit_does():
    net, code, said = ROOT / "fuzz/corpus/onnx/shapes", WORK / "one_c", WORK / "said_c"
    err = muc("compile", net, "--target", "mcu", "-o", code)[1]
    has(err, "shapes leaves open how many samples a run takes: batch=1; --dim says otherwise, as in --dim batch=1..16")
    assert muc("compile", net, "--target", "mcu", "--dim", "batch=1", "-o", said)[1] == ""
    compare = filecmp.dircmp(code, said)
    assert not (compare.diff_files or compare.left_only or compare.right_only or compare.funny_files), compare.diff_files
    write_npy(WORK / "one.npy", (1, 4, 6), [float(i) for i in range(24)])
    assert json.loads(muc("verify", code, net, "--input", WORK / "one.npy", "--json")[0])["exact"]
    assert json.loads(muc("compile", net, "--target", "mcu", "--dim", "batch=1..4", "-o", WORK / "open_c", "--json")[0])
    has(muc("verify", WORK / "open_c", net, "--input", WORK / "one.npy", status=MISMATCH)[1], "--dim batch=1..4")


def test_a_machine_chooses_its_target():
    report = fit("--machine", "nrf52840")
    assert [(row["target"], row["machine"]) for row in report["machines"]] == [("mcu", "nrf52840")]
    assert json.loads(muc("compile", "--machine", "nrf52840", "-o", WORK / "chosen_c", "--json")[0])["machine"] == "nRF52840"
    assert fit("--machine", "uthinker-6400")["machines"][0]["target"] == "uthinker"


def test_a_model_that_fits_no_machine_ends_with_3_and_the_figures():
    need_data()
    machine = WORK / "small.ini"
    machine.write_text("[machine]\nname = Small\ncore = cortex-m4\nclock_mhz = 10\nmilliwatts = 20\n"
                       "[memory]\nname = flash\nbytes = 65536\ncycles_per_kb = 256\nholds = weights\n"
                       "[memory]\nname = sram\nbytes = 4096\ncycles_per_kb = 256\nholds = arena state\n", encoding="utf-8")
    report = fit(KWS, "--machine", machine, status=NOFIT)
    row, = report["machines"]
    assert row["fits"] == "no" and row["ram_limit"] == 4096 < row["ram_bytes"] and row["flash_bytes"] < row["flash_limit"], row
    assert abs(row["mj_most"] - row["ms_most"] * 20 / 1e3) < 1e-9, row
    has(report["why_not"][0]["reason"], "sram needs")
    has(muc("fit", KWS, "--machine", machine, status=NOFIT)[1], "does not fit machine " + str(machine))
    assert muc("fit", KWS, "--machine", "nowhere", status=USAGE)[0] == ""


def test_a_language_model_takes_a_token_as_long_as_report_says():
    report = fit("--target", "uthinker")
    for row in report["machines"]:
        made = program("rescue", "--machine", row["machine"])
        told = json.loads(muc("report", made, "--position", "128", "--machine", row["machine"], "--json")[0])
        assert abs(row["ms_least"] / 1e3 - told["seconds"]) < 1e-9, (row, told["seconds"])
        assert abs(row["mj_least"] - told["millijoules"]) < 1e-9, row
    assert {row["target"] for row in report["machines"]} == {"uthinker"}


def test_a_language_model_takes_the_flash_and_ram_that_compile_says():
    row, = fit("--target", "mcu", "--machine", "nrf52840")["machines"]
    made = json.loads(muc("compile", ROOT / "models/rescue", "--target", "mcu", "--machine", "nrf52840", "-o", WORK / "fit_rescue",
                          "--json")[0])
    assert (row["flash_bytes"], row["ram_bytes"]) == (made["flash_bytes"], made["arena_bytes"]), (row, made)


def test_a_report_has_the_same_bytes_at_any_number_of_threads():
    assert muc("fit", "-t", "1")[0] == muc("fit", "-t", "3")[0]


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
