#!/usr/bin/env python3
"""Networks and their code as a user meets them: arrays, pictures, texts, reports. Prints TAP.

    tests/test_cli_networks.py MUC      from the source root
"""
import gzip
import json
import pathlib
import re
import shutil
import struct
import sys
import tempfile
import zipfile
import zlib

from cli import TOKENIZER, WORK, compiled_code, has, muc, need_data, write_npy
from files import DATA, IO, MALFORMED, MISMATCH, NOFIT, ROOT, Skip, UNSUPPORTED, USAGE, npy, run_tests

CONV = ROOT / "fuzz/corpus/onnx/conv"


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
        has(muc("run", CONV, status=USAGE)[1], "input 'x' has no array: give a .npz or .npy file")
        has(muc("run", CONV, "--input", wrong, status=USAGE)[1],
            "input 'x' is f32 [1, 1, 4, 4], the array 'x' is f32 [1, 1, 4, 5]")
        has(muc("run", CONV, "--input", CONV, status=MALFORMED)[1], "no .npy file")
        has(muc("eval", CONV, "--text", CONV, status=USAGE)[1], "runs on arrays")
        has(muc("inspect", CONV, "--dim", "a=2,b", status=USAGE)[1], "not a list of NAME=N")
        has(muc("inspect", CONV, "--dim", "a=2", status=USAGE)[1], "there is no open dimension 'a'")
        has(muc("run", CONV, "--prompt", "x", status=USAGE)[1], "runs on arrays (--input)")
        has(muc("inspect", "models/rescue", "--dim", "a=2", status=USAGE)[1], "is not a network")
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


def test_report_is_text_json_csv_or_a_page():
    code = compiled_code()
    text = muc("report", code)[0]
    has(text, "arena bound", "layers:", "buffers:", "traffic:")
    report = json.loads(muc("report", code, "--format", "json")[0])
    assert report == json.loads(muc("report", code, "--json")[0])
    steps = json.loads((code / "rescue.json").read_text())["steps"]
    assert [row["name"] for row in report["layers"]] == [step["name"] for step in steps]
    assert report["macs"] == sum(step["macs"] for step in steps)
    answers = {row["question"]: row for row in report["answers"]}
    assert answers["Does it fit?"]["answer"] == "Yes", answers
    largest = max(report["layers"], key=lambda row: row["macs"])
    assert answers["What costs most?"]["answer"].startswith(f"{largest['name']} {100 * largest['macs'] / report['macs']:.3g} %"), answers
    rows = muc("report", code, "--format", "csv")[0].splitlines()
    assert rows[0].startswith("name,function,") and len(rows) == 1 + len(steps), rows[:2]
    has(muc("report", code, "--format", "csv", "--table", "buffers")[0].splitlines()[0], "name,bytes,address")
    page = muc("report", code, "--format", "html")[0]
    assert page.startswith("<!DOCTYPE html>") and page.count("<svg") == 2, page[:200]
    assert page.count("<script") == 1, "the page's own"
    for word in ("http:", "https:", "src=", "@import", "url(http"):
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


def test_what_does_not_fit_says_by_how_much_and_what_would_do():
    code = WORK / "tight"
    shutil.copytree(compiled_code(), code)
    path = code / "rescue.json"
    description = json.loads(path.read_text())
    arena, constants = description["memories"]
    arena.update({"memory": "sram", "limit": arena["bytes"] + 1})
    constants.update({"memory": "flash", "limit": constants["bytes"] - 1234})
    path.write_text(json.dumps(description))
    report = json.loads(muc("report", code, "--json")[0])
    answer, = [row for row in report["answers"] if row["question"] == "Does it fit?"]
    assert answer["answer"] == "No" and "1,234 too many" in answer["detail"], answer
    advice = [row["advice"] for row in report["what_to_change"]]
    full = max(description["steps"], key=lambda step: step["arena"])
    has(advice[0], f"fullest in step '{full['name']}'", "'layers.0.k_cache' with 16384", "--ctx-size")
    has(advice[1], f"flash lacks 1234 bytes: {constants['bytes']} are constants", " has room")
    page = muc("report", code, "--format", "html")[0]
    assert page.index("1,234 too many") < page.index("<nav>") and 'class="over"' in page


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


def test_lengths_of_a_run_of_code_come_from_the_arrays_or_from_dim():
    code = WORK / "open_c"
    muc("compile", ROOT / "fuzz/corpus/onnx/shapes", "--target", "mcu", "--dim", "batch=1..1024", "-o", code)
    for batch in (1, 3, 1024):
        write_npy(WORK / "open.npy", (batch, 4, 6), [float(i) for i in range(24 * batch)])
        for more in ((), ("--dim", f"batch={batch}")):
            row = json.loads(muc("run", code, "--input", WORK / "open.npy", "--json", *more)[0])["outputs"][0]
            assert row["shape"] == f"[{2 * batch}, 4, 3]" and row["max"] == 24 * batch - 1, row
    has(muc("run", code, "--input", WORK / "open.npy", "--dim", "batch=7", status=USAGE)[1], "batch is 1024", "7 by --dim")
    has(muc("run", code, status=USAGE)[1], "--dim batch=N")
    write_npy(WORK / "open.npy", (1025, 4, 6), [0.0] * (24 * 1025))
    has(muc("run", code, "--input", WORK / "open.npy", status=USAGE)[1], "1 to 1024")


def test_what_the_reference_refuses_in_every_run_is_not_compiled():
    for name, lines, words in (
            ("softmax", ["tensor x = input i8 [1, 5000] scale 1 zero 0",
                         "node y i8 [1, 5000] scale 0.00390625 zero -128 = softmax x axis=1"], "a quantized softmax of 5000"),
            ("linear", ["tensor x = input f32 [1, 2]", "tensor w = const f32 [1, 2] values 1, nan",
                        "node y f32 [1, 1] = linear x, w"], "constant 'w': element 1 is not finite")):
        network = WORK / f"{name}.graph"
        network.write_text("\n".join(["graph n", *lines, "output y\n"]))
        has(muc("compile", network, "--target", "mcu", "-o", WORK / "refused_c", status=MALFORMED)[1], words)
        assert not (WORK / "refused_c").exists()


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


def chip_network(name, weight):
    weights = ", ".join(str((i * weight % 17 - 8) / 8) for i in range(54))
    (WORK / name).write_text(f"""graph small
tensor x = input f32 [1, 1, 12, 12]
tensor w = const f32 [6, 1, 3, 3] values {weights}
node c f32 [1, 6, 12, 12] = conv x, w pads=[1, 1, 1, 1]
node r f32 [1, 6, 12, 12] = relu c
node p f32 [1, 6, 6, 6] = max_pool r kernel=[2, 2] strides=[2, 2]
output p
""")
    return WORK / name


def test_a_chip_folder_is_checked_and_knows_its_network():
    network, chip = chip_network("chip_a.graph", 5), WORK / "checked_chip"
    made = json.loads(muc("compile", network, "--target", "cnnchip", "--pes", 4, "-o", chip, "--json")[0])
    assert made["self_check"]["layers"] == "2 of 2" and made["self_check"]["worst_relative_error"] < 1e-5, made
    assert made["cycles_bound"] <= made["cycles"]
    report = json.loads(muc("report", chip, "--json")[0])
    assert (report["cycles"], report["cycles_bound"]) == (made["cycles"], made["cycles_bound"])
    found = json.loads(muc("verify", chip, network, "--json")[0])
    assert found["compared"] == 2 and found["worst_relative_error"] < 1e-5, found
    has(muc("verify", chip, chip_network("chip_b.graph", 7), status=MISMATCH)[1], "made of another network than", "chip_b.graph")


def test_what_the_host_puts_into_the_frame_it_reads_back_in_another_step():
    network, chip, arrays = WORK / "back.graph", WORK / "back_chip", WORK / "back.npz"
    network.write_text("""graph back
tensor x = input f32 [7, 5, 1]
tensor z = input f32 []
tensor w = const f32 [5, 2, 1] values 0.75, 0.5, 0.25, -0.5, -0.25, -0.5, -1, 2, -3, 4
tensor b = const f32 [2] values -0.5, 0.25
tensor lo = const f32 [] values -5
tensor hi = const f32 [] values 5
node h f32 [7, 5, 1] = hard_swish x
node r f32 [7, 5] = reduce_max h axes=[2] keep_dims=0
node t f32 [7, 2, 1] = conv_transpose h, w, b strides=[2]
node c f32 [] = clip z, lo, hi
node e f32 [] = exp c
output e
output t
output r
""")
    npz(arrays, x=((7, 5, 1), [(i * 13 % 35 - 17) / 8 for i in range(35)]), z=((), [0.5]))
    muc("compile", network, "--target", "cnnchip", "--pes", 9, "-o", chip)
    found = []
    for program in (network, chip):
        muc("run", program, "--input", arrays, "-o", WORK / "back_out.npz")
        with zipfile.ZipFile(WORK / "back_out.npz") as archive:
            data = archive.read("t.npy")[-14 * 4:]
        found.append(struct.unpack("<14f", data))
    assert all(abs(a - b) < 1e-5 for a, b in zip(*found)), found


def bytes_of_hex(path, digits):
    lines = path.read_text().split()
    assert all(len(line) == digits for line in lines), lines[:2]
    return b"".join(bytes.fromhex(line)[::-1] for line in lines)


def floats_at(frame, place):
    """A [1, c, h, w] tensor out of FRAME."""
    return [struct.unpack_from("<f", frame, place["address"] + 4 * ((c * place["rows"] + y) * place["pitch"] + x))[0]
            for c in range(place["c"]) for y in range(place["h"]) for x in range(place["w"])]


def test_a_frame_image_holds_the_input_and_hex_lines_have_the_buss_width():
    network, array, chip, plain = chip_network("chip_a.graph", 5), WORK / "in_frame.npy", WORK / "frame_chip", WORK / "plain_chip"
    values = [i % 23 / 4 - 2 for i in range(144)]
    write_npy(array, (1, 1, 12, 12), values)
    options = (network, "--target", "cnnchip", "--pes", 4)
    muc("compile", *options, "-o", plain)
    muc("compile", *options, "--input", array, "--hex", "bus", "-o", chip)
    frame, place = (chip / "frame.bin").read_bytes(), json.loads((chip / "map.json").read_text())["inputs"][0]
    assert floats_at(frame, place) == values, place
    assert sum(frame) > 0 == sum((plain / "frame.bin").read_bytes())
    for name in ("program", "frame", "filter"):
        stored = (chip / f"{name}.bin").read_bytes()
        shown = bytes_of_hex(chip / f"{name}.hex", 32)
        assert shown[:len(stored)] == stored and not any(shown[len(stored):]) and len(shown) - len(stored) < 16
        assert bytes_of_hex(plain / f"{name}.hex", 8)[:len(stored)] == (plain / f"{name}.bin").read_bytes()
    with_input = json.loads(muc("run", plain, "--input", array, "--json")[0])
    assert json.loads(muc("run", chip, "--json")[0]) == with_input
    has(muc("run", plain, status=USAGE)[1], "input 'x' has no array")
    muc("compile", *options, "--hex", "none", "-o", plain)
    assert not list(plain.glob("*.hex"))
    for width in ("7", "bits", "0"):
        has(muc("compile", *options, "--hex", width, "-o", plain, status=USAGE)[1], f"'{width}': expected a multiple of 8")
    has(muc("compile", network, "--target", "mcu", "--input", array, "-o", WORK / "no", status=USAGE)[1], "target cnnchip", "mcu")
    need_data()
    muc("compile", DATA / "onnx/light_squeezenet.onnx", "--target", "cnnchip", "-o", WORK / "large_chip")
    assert bytes_of_hex(WORK / "large_chip/filter.hex", 8) == (WORK / "large_chip/filter.bin").read_bytes()
    assert (WORK / "large_chip/filter.bin").stat().st_size > 4 << 20


def test_a_dump_has_the_memories_after_each_instruction():
    network, array, chip, dump = chip_network("chip_a.graph", 5), WORK / "dumped.npy", WORK / "dumped_chip", WORK / "dump"
    write_npy(array, (1, 1, 12, 12), [i % 19 / 8 - 1 for i in range(144)])
    made = json.loads(muc("compile", network, "--target", "cnnchip", "--pes", 4, "-o", chip, "--json")[0])
    muc("run", chip, "--input", array, "--dump", dump, "-o", WORK / "dumped.npz")
    with zipfile.ZipFile(WORK / "dumped.npz") as archive:
        expected = archive.read("p.npy")
    pixels = struct.unpack("<216f", (dump / "layer_002.npy").read_bytes()[-4 * 216:])  # of p/last: channels last
    assert struct.pack("<216f", *(pixels[i % 36 * 6 + i // 36] for i in range(216))) == expected[-4 * 216:]
    place = json.loads((chip / "map.json").read_text())["outputs"][0]
    hexes = sorted(dump.glob("*_*.hex"), key=lambda path: path.stem[-5:])
    assert len(hexes) == made["instructions"] - 1 and hexes[-1].name.startswith("frame")  # all but END
    frame = bytes_of_hex(hexes[-1], 8)
    assert struct.pack("<216f", *floats_at(frame, place)) == expected[-4 * 216:]
    rows = (dump / "index.csv").read_text().splitlines()
    assert len(rows) == 1 + len(hexes) + 2 and rows[1] == "0,CONV,1,0,3,scratch_00000.hex,", rows[:3]


def numbers(count, step=37):
    return ", ".join(str((i * step % 61 - 30) / 30) for i in range(count))


# every operator that the chip has for int8, between tensors of several scales
MANY = f"""graph many
tensor x = input f32 [1, 2, 8, 8]
tensor w1 = const f32 [4, 2, 3, 2] values {numbers(48)}
tensor b1 = const f32 [4] values {numbers(4)}
tensor k1 = const f32 [4, 1, 1] values {numbers(4)}
tensor k2 = const f32 [1] values 0.37
tensor k3 = const f32 [1, 4, 1, 1] values {numbers(4)}
tensor wt = const f32 [4, 2, 2, 2] values {numbers(32)}
tensor wl = const f32 [3, 4] values {numbers(12)}
tensor wd = const f32 [4, 1, 3, 3] values {numbers(36)}
node c f32 [1, 4, 8, 8] = conv x, w1, b1 pads=[1, 0, 1, 1]
node l f32 [1, 4, 8, 8] = leaky_relu c alpha=0.3
node a f32 [1, 4, 8, 8] = add l, k1
node m f32 [1, 4, 8, 8] = mul a, k3
node s f32 [1, 4, 8, 8] = sub l, m
node n f32 [1, 4, 8, 8] = sub k2, s
node d f32 [1, 4, 8, 8] = div n, k2
node r f32 [1, 4, 8, 8] = relu d
node dw f32 [1, 4, 8, 8] = conv r, wd pads=[1, 1, 1, 1] groups=4
node p f32 [1, 4, 4, 4] = max_pool dw kernel=[3, 3] strides=[2, 2] pads=[1, 1, 0, 0]
node v f32 [1, 4, 4, 4] = average_pool l kernel=[3, 3] strides=[2, 2] pads=[1, 1, 0, 0]
node i f32 [1, 4, 4, 4] = average_pool s kernel=[3, 3] strides=[2, 2] pads=[1, 1, 0, 0] count_include_pad=1
node j f32 [1, 8, 4, 4] = concat p, v axis=1
node z f32 [1, 4, 4, 4] = slice j axes=[1] starts=[3] sizes=[4]
node u f32 [1, 2, 8, 8] = conv_transpose z, wt strides=[2, 2]
node e f32 [1, 4, 8, 8] = resize z sizes=[1, 4, 8, 8] mode=nearest coordinates=asymmetric rounding=floor
node g f32 [1, 4, 8, 8] = add e, a
node h f32 [1, 4] = reduce_mean g axes=[2, 3] keep_dims=0
node y f32 [1, 3] = linear h, wl
output y
output u
output g
output i
"""


def test_a_chip_of_int8_is_judged_bit_for_bit_and_by_its_distance_from_float32():
    network, samples, chip = WORK / "many.graph", WORK / "many.npy", WORK / "many_chip"
    network.write_text(MANY)
    write_npy(samples, (4, 2, 8, 8), [(i * 29 % 101 - 50) / 30 for i in range(512)])
    quantized = ("--quant", "int8", "--calib", samples)
    for pes in ("unlimited", 9, 4):
        made = json.loads(muc("compile", network, "--target", "cnnchip", *quantized, "--pes", pes, "-o", chip, "--json")[0])
        count = int(made["self_check"]["layers"].split()[0])  # a concatenation in place has no instruction
        assert made["self_check"]["exact"] and (count, made["layers"]) == (15, 16), made
        assert {row["operator"] for row in made["host_steps"]} == {"lookup", "depth_to_space", "transpose", "dequantize"}, made
        assert [row["operator"] for row in made["below_25_db"]] == ["conv", "depth_to_space", "transpose"], made  # of output u
        found = json.loads(muc("verify", chip, network, *quantized, "--json")[0])
        assert found["exact"] and found["compared_exactly"] == count and not any(row["wrong"] for row in found["layers"]), found
        operators = {row["operator"] for row in found["layers"]}
        assert operators >= {"conv", "leaky_relu", "add", "mul", "sub", "max_pool", "average_pool", "reduce_mean", "linear"}, operators
        assert all(row["rms_error"] < row["bound"] for row in found["outputs"]), found
    has(muc("verify", chip, network, status=MISMATCH)[1], "with other options", "--quant int8 --calib many.npy")
    ones = WORK / "ones.npy"
    write_npy(ones, (1, 2, 8, 8), [1e4] * 128)
    has(muc("verify", chip, network, *quantized, "--input", ones, status=MISMATCH)[1], "is off at RMS by", "more than 0.25")
    filters, program = bytearray((chip / "filter.bin").read_bytes()), bytearray((chip / "program.bin").read_bytes())
    filters[20] ^= 1  # a weight, by one step
    struct.pack_into("<I", program, 52, zlib.crc32(filters))
    struct.pack_into("<I", program, 60, zlib.crc32(program[:60]))
    (chip / "filter.bin").write_bytes(filters)
    (chip / "program.bin").write_bytes(program)
    out, err = muc("verify", chip, network, *quantized, "--json", status=MISMATCH)
    assert not json.loads(out)["exact"]
    has(err, "chip's arithmetic differ at 'c'")


# q has r's integers, for a hundredth of the numbers
RESCALED = f"""graph rescaled
tensor x = input f32 [1, 2, 4, 4]
tensor k = const f32 [1] values 0.01
tensor w = const f32 [2, 2, 1, 1] values {numbers(4)}
node r f32 [1, 2, 4, 4] = max_pool x kernel=[1, 1]
node q f32 [1, 2, 4, 4] = mul r, k
node c f32 [1, 2, 4, 4] = conv q, w
node s f32 [1, 2, 4, 4] = sigmoid c
output s
"""


def test_the_same_integers_on_another_scale_are_other_numbers_on_the_chip():
    network, samples, chip = WORK / "rescaled.graph", WORK / "rescaled.npy", WORK / "rescaled_chip"
    network.write_text(RESCALED)
    write_npy(samples, (4, 2, 4, 4), [(i * 29 % 101 - 50) / 30 for i in range(128)])
    quantized = ("--quant", "int8", "--calib", samples)
    made = json.loads(muc("compile", network, "--target", "cnnchip", *quantized, "-o", chip, "--json")[0])
    assert made["self_check"]["exact"] and "float32" not in made, made
    found = json.loads(muc("verify", chip, network, *quantized, "--json")[0])
    assert found["exact"] and all(row["rms_error"] < row["bound"] for row in found["outputs"]), found
    kept = json.loads(muc("compile", network, "--target", "cnnchip", *quantized, "--keep-float", "sigmoid", "-o", chip, "--force", "--json")[0])
    assert {"node": "s/last", "operator": "sigmoid"} in kept["float32"], kept


def test_integers_of_a_quantized_input_are_what_they_stand_for():
    network, samples, code = WORK / "reals.graph", WORK / "reals.npy", WORK / "reals_c"
    network.write_text(f"graph reals\ntensor x = input f32 [1, 8]\ntensor w = const f32 [8, 8] values {numbers(64)}\n"
                       "node y f32 [1, 8] = matmul x, w\noutput y\n")
    write_npy(samples, (4, 1, 8), [(i * 29 % 101 - 50) / 30 for i in range(32)])
    quantized = ("--quant", "int8", "--calib", samples)
    muc("compile", network, "--target", "mcu", *quantized, "-o", code)
    integers = WORK / "integers.npy"
    integers.write_bytes(npy((1, 8), [0] * 8).replace(b"<f4", b"|i1")[:-32] + bytes([0, 1, 60, 127, 128, 200, 250, 255]))
    assert json.loads(muc("verify", code, network, *quantized, "--input", integers, "--json")[0])["exact"]


# 0 / 0 is not a number that an int8 could be: the chip's master divides
DIVIDED = """graph divided
tensor x = input i8 [1, 8] scale 0.02 zero -19
tensor k = const i8 [8] scale 0.01 zero 3 values 5, 3, -7, 100, 60, -90, 3, 20
node r i8 [1, 8] scale 0.02 zero -19 = relu x
node d i8 [1, 8] scale 0.2 zero 0 = div r, k
output d
"""


def test_the_chip_leaves_a_division_by_zero_to_its_master():
    network, chip = WORK / "divided.graph", WORK / "divided_chip"
    network.write_text(DIVIDED)
    made = json.loads(muc("compile", network, "--target", "cnnchip", "--element", "int8", "-o", chip, "--json")[0])
    assert made["self_check"]["exact"], made
    assert json.loads(muc("verify", chip, network, "--json")[0])["exact"]


# b is merged with c, and s computed with channels last
MERGED = f"""graph merged
tensor x = input f32 [1, 2, 4, 4]
tensor w = const f32 [2, 2, 1, 1] values {numbers(4)}
tensor k = const f32 [2] values 0.5, 2
node c f32 [1, 2, 4, 4] = conv x, w
node b f32 [1, 2, 4, 4] = batch_norm c, k, k, k, k epsilon=0.001
node s f32 [1, 2, 4, 4] = sigmoid b
output s
"""


def test_what_stays_float_has_the_name_that_the_network_gives_it():
    network, samples, code = WORK / "merged.graph", WORK / "merged.npy", WORK / "merged"
    network.write_text(MERGED)
    write_npy(samples, (4, 2, 4, 4), [(i * 29 % 101 - 50) / 30 for i in range(128)])
    for name, convolves in (("c", True), ("b", True), ("s", False)):
        made = json.loads(muc("compile", network, "--target", "mcu", "--quant", "int8", "--calib", samples, "--keep-float", name,
                              "-o", code, "--force", "--json")[0])
        assert {"node": "s/last", "operator": "sigmoid"} in made["float32"], (name, made["float32"])
        assert ({"node": "b", "operator": "conv"} in made["float32"]) == convolves, (name, made["float32"])


# m stays float32, and x is read by it and by a
SHARED = f"""graph shared
tensor x = input f32 [1, 2, 4, 4]
tensor k = const f32 [1, 2, 4, 4] values {numbers(32)}
tensor w = const f32 [2, 2, 1, 1] values {numbers(4)}
node m f32 [1, 2, 4, 4] = mul x, k
node a f32 [1, 2, 4, 4] = add x, m
node c f32 [1, 2, 4, 4] = conv a, w
output c
"""


def test_a_program_of_the_chip_has_no_positions():
    network, chip = ROOT / "examples/cnnchip/small.graph", WORK / "listed_chip"
    muc("compile", network, "--target", "cnnchip", "-o", chip)
    has(muc("dis", chip / "program.bin")[0], ".element")
    has(muc("dis", chip / "program.bin", "--position", 3, status=USAGE)[1], "program.bin", "without --position")


def test_what_the_master_reads_of_an_int8_input_is_what_frame_holds():
    network, samples, chip = WORK / "shared.graph", WORK / "shared.npy", WORK / "shared_chip"
    network.write_text(SHARED)
    write_npy(samples, (4, 2, 4, 4), [(i * 29 % 101 - 50) / 30 for i in range(128)])
    quantized = ("--quant", "int8", "--calib", samples, "--keep-float", "mul")
    made = json.loads(muc("compile", network, "--target", "cnnchip", *quantized, "-o", chip, "--json")[0])
    assert made["self_check"]["exact"] and {"node": "m", "operator": "mul"} in made["float32"], made
    found = json.loads(muc("verify", chip, network, *quantized, "--json")[0])
    assert found["exact"] and [row["wrong"] for row in found["layers"]] == [0, 0], found


# s stays float, x becomes x.int8
TWO_INPUTS = """graph two
tensor x = input f32 [1, 4]
tensor s = input f32 [1, 2]
tensor w = const f32 [2, 4] values 0.5, -1, 1, 0.25, 1, 1, -0.5, 0.75
node p f32 [1, 2] = linear x, w
node y f32 [1, 2] = cum_sum s axis=1
output p
output y
"""


def test_an_input_that_int8_has_renamed_takes_the_array_of_its_name():
    network, samples, code = WORK / "two.graph", WORK / "two.npz", WORK / "two_code"
    network.write_text(TWO_INPUTS)
    npz(samples, x=((3, 1, 4), [i / 4 - 1 for i in range(12)]), s=((3, 1, 2), [i / 4 for i in range(6)]))
    given = npz(WORK / "two_in.npz", s=((1, 2), [0.5, 0.25]), x=((1, 4), [1.0, -1.0, 0.5, 1.5]))
    muc("compile", network, "--target", "mcu", "--quant", "int8", "--calib", samples, "-o", code, "--force")
    out = muc("run", code, "--input", given)[0]
    has(out, "p.int8", "y ")
    row = json.loads(muc("run", code, "--input", given, "-o", WORK / "two_out.npz", "--json")[0])["outputs"][0]
    integers = struct.unpack("2b", zipfile.ZipFile(WORK / "two_out.npz").read("p.int8.npy")[-2:])
    real = [(integer - row["zero point"]) * row["scale"] for integer in integers]
    assert all(abs(float(shown) - value) < 1e-5 for shown, value in zip(row["values"].split(), real)), row
    assert abs(real[0] - 2.375) < row["scale"] and abs(real[1] - 0.875) < row["scale"], (integers, row)
    other = npz(WORK / "two_no.npz", s=((1, 2), [0.5, 0.25]), x8=((1, 4), [1.0, -1.0, 0.5, 1.5]))
    has(muc("run", code, "--input", other, status=USAGE)[1], "input 'x.int8' has no array")


# z, and the parts of p, have c's integers on scales of their own
MOVED = f"""graph moved
tensor x = input f32 [1, 2, 4, 4]
tensor w = const i8 [2, 2, 1, 1] scale 0.01 zero 0 values 50, -25, 12, 100
tensor v = const i8 [1, 1, 1, 1] scale 0.01 zero 0 values 50
tensor u = const i8 [1, 2, 1, 1] scale 0.01 zero 0 values 50, 20
node q i8 [1, 2, 4, 4] scale 0.02 zero 3 = quantize x to=i8
node c i8 [1, 2, 4, 4] scale 0.02 zero 3 = conv q, w
node z i8 [1, 1, 4, 4] scale 0.05 zero -4 = slice c axes=[1] starts=[1] sizes=[1]
node s i8 [1, 1, 4, 4] scale 0.04 zero 7, t i8 [1, 1, 4, 4] scale 0.03 zero -4 = split c axis=1 sizes=[1, 1]
node r i8 [1, 2, 4, 4] scale 0.01 zero 5 = reshape c shape=[1, 2, 4, 4]
node dz i8 [1, 1, 4, 4] scale 0.02 zero 0 = conv z, v
node ds i8 [1, 1, 4, 4] scale 0.02 zero 0 = conv s, v
node dt i8 [1, 1, 4, 4] scale 0.02 zero 0 = conv t, v
node dr i8 [1, 1, 4, 4] scale 0.02 zero 0 = conv r, u
node yz f32 [1, 1, 4, 4] = dequantize dz
node ys f32 [1, 1, 4, 4] = dequantize ds
node yt f32 [1, 1, 4, 4] = dequantize dt
node yr f32 [1, 1, 4, 4] = dequantize dr
output yz
output ys
output yt
output yr
"""


def test_what_is_moved_has_the_scale_that_the_network_gives_it():
    network, chip = WORK / "moved.graph", WORK / "moved_chip"
    network.write_text(MOVED)
    made = json.loads(muc("compile", network, "--target", "cnnchip", "-o", chip, "--json")[0])
    assert made["self_check"] == {"layers": "5 of 5", "exact": True}, made


def board(flash, sram):
    path = WORK / "board.ini"
    path.write_text(f"""[machine]
name = test
core = cortex-m7
clock_mhz = 400
[memory]
name = flash
bytes = {flash}
cycles_per_kb = 100
holds = weights
[memory]
name = SRAM
bytes = {sram}
cycles_per_kb = 10
holds = arena state
""")
    return ["--target", "mcu", "--machine", path]


def int8_chip(frame, weights):
    path = WORK / "chip.ini"
    path.write_text(f"""[machine]
name = test
element = int8
pes = 64
bus_bytes = 16
clock_mhz = 200
frame_bytes = {frame}
filter_bytes = {weights}
""")
    return ["--target", "cnnchip", "--machine", path]


def test_what_cannot_fit_is_refused_before_it_is_calibrated():
    network, samples, folder = WORK / "many.graph", WORK / "many.npy", WORK / "fits"
    network.write_text(MANY)
    write_npy(samples, (4, 2, 8, 8), [(i * 29 % 101 - 50) / 30 for i in range(512)])
    # the scales of the samples add a step between two scales, whose table takes 256 bytes
    for make, needed, ends in ((board, (1020 + 256, 848), ("constants take 1020 bytes", "SRAM needs 848 bytes")),
                               (int8_chip, (1492, 1352), ("FRAME needs 1492 bytes", "of 1352 bytes, FILTER has"))):
        for i, message in enumerate(ends):
            limits = [0, 0]
            limits[i] = 128
            err = muc("compile", network, *make(*limits), "--quant", "int8", "--calib", WORK / "unread.npy", "-o", folder,
                      status=NOFIT)[1]
            has(err, message)
        # what the samples' scales need is never refused
        muc("compile", network, *make(*needed), "--quant", "int8", "--calib", samples, "-o", folder, "--force")
        for i in range(2):
            limits = [n - (k == i) * 16 for k, n in enumerate(needed)]
            muc("compile", network, *make(*limits), "--quant", "int8", "--calib", samples, "-o", folder, "--force", status=NOFIT)


def test_what_stands_in_the_way_is_told_before_it_is_calibrated():
    network, taken, others = WORK / "many.graph", WORK / "taken", WORK / "others"
    network.write_text(MANY)
    taken.write_text("mine")
    others.mkdir()
    (others / "letter").write_text("mine")
    calibrated = ("--quant", "int8", "--calib", WORK / "unread.npy")
    for target in ("mcu", "cnnchip"):
        for output, name in ((taken, "taken"), (others, "letter")):
            has(muc("compile", network, "--target", target, *calibrated, "-o", output, status=USAGE)[1], name)
        has(muc("compile", network, "--target", target, *calibrated, "--keep-float", "cc", "-o", WORK / "no", status=USAGE)[1], "'cc'")
        has(muc("compile", network, "--target", target, *calibrated, "--machine", WORK / "none.ini", "-o", WORK / "no",
                status=USAGE)[1], "none.ini")
        has(muc("compile", network, "--target", target, *calibrated, "-o", WORK / "no", status=IO)[1], "unread.npy")
    assert taken.read_text() == "mine"


EXPORT = """graph export
tensor x = input f32 [{m}, 16]
tensor one = const f32 [1] values 1.0
node w f32 [64, 16] = expand one shape=[64, 16]
node l f32 [{m}, 64] = linear x, w
node y f32 [{m}, 64] = relu l
output y
"""


def test_several_exports_are_refused_before_they_are_calibrated():
    short, long, calibrated = WORK / "two.graph", WORK / "five.graph", ("--quant", "int8", "--calib", WORK / "unread.npy")
    short.write_text(EXPORT.format(m=2))
    long.write_text(EXPORT.format(m=5))
    has(muc("compile", short, long, "--target", "mcu", *calibrated, "-o", WORK / "no", status=UNSUPPORTED)[1],
        "no kernel for linear of i8 [m, 16]")
    has(muc("compile", short, long, "--target", "cnnchip", *calibrated, "-o", WORK / "no", status=UNSUPPORTED)[1], "open")


def test_a_memory_of_the_chip_that_is_too_small_is_told_with_what_would_do():
    network, folder = WORK / "small.graph", WORK / "no"
    network.write_text((ROOT / "examples/cnnchip/small.graph").read_text().replace("graph small", "graph " + network.name))
    machine = WORK / "tiny.ini"
    for key in ("frame_bytes", "filter_bytes", "program_bytes"):
        text = f"[machine]\nname = t\nelement = fp32\npes = 16\nclock_mhz = 1\n{key} = "
        machine.write_text(text + "8\n")
        err = muc("compile", network, "--target", "cnnchip", "--machine", machine, "-o", folder, status=NOFIT)[1]
        has(err, network.name, "--machine FILE", key, "--pes" if key == "program_bytes" else "--element fp16")
        machine.write_text(text + re.search(key + r" of (\d+) would do", err)[1] + "\n")
        muc("compile", network, "--target", "cnnchip", "--machine", machine, "-o", folder, "--force")


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


def field(number, data):
    """A field of a protocol buffer: a number, or bytes."""
    def varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)
    return varint(number << 3) + varint(data) if isinstance(data, int) else varint(number << 3 | 2) + varint(len(data)) + data


def write_doubles(path, arrays):
    with zipfile.ZipFile(path, "w") as file:
        for name, values in arrays.items():
            header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': (1, {len(values)}), }}".ljust(117) + "\n"
            file.writestr(f"{name}.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode()
                          + struct.pack(f"<{len(values)}d", *values))


def onnx_of_floats(folder, factor, op, a, b, golden, type=(1, "f")):
    """y = (a + b) * factor, or op of it, every value of a type of ONNX, FLOAT by default, with arrays beside it as Deeploy has them"""
    folder.mkdir()
    count = len(a)

    def port(name):
        shape = field(1, field(1, 1)) + field(1, field(1, count))
        return field(1, name) + field(2, field(1, field(1, type[0]) + field(2, shape)))

    def node(kind, inputs, output):
        return field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind))

    graph = node(b"Add", [b"A", b"B"], b"s") + node(b"Mul", [b"s", b"c"], b"m") + node(op, [b"m"], b"y")
    graph += field(2, b"g") + field(5, field(1, 1) + field(2, type[0]) + field(8, b"c") + field(9, struct.pack("<" + type[1], factor)))
    graph += field(11, port(b"A")) + field(11, port(b"B")) + field(12, port(b"y"))
    (folder / "network.onnx").write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 13)))
    write_doubles(folder / "inputs.npz", {"A": a, "B": b})
    if golden:
        write_doubles(folder / "outputs.npz", {"y": golden})
    return folder / "network.onnx"


def read_numbers(path):
    with zipfile.ZipFile(path) as file:
        data = file.read(file.namelist()[0])
    end = 10 + struct.unpack_from("<H", data, 8)[0]
    kind = {b"<f2": "e", b"<f4": "f", b"<i4": "i"}[re.search(rb"'descr': '(...)'", data[:end])[1]]
    return kind, list(struct.unpack(f"<{(len(data) - end) // struct.calcsize(kind)}{kind}", data[end:]))


def test_whole_numbers_called_float_are_computed_as_integers():
    """sums beyond 2^24, which float32 rounds; everything whole and closed over integers, or else floats as the file says"""
    a, b = [2 ** 27 + 7919 * i * i for i in range(125)], [3 * i - 99 for i in range(125)]
    y = [3 * (p + q) for p, q in zip(a, b)]
    out = WORK / "whole.npz"
    net = onnx_of_floats(WORK / "whole", 3, b"Relu", a, b, y)
    has(muc("inspect", net)[0], "integers, as inputs.npz and outputs.npz")
    muc("run", net, "--input", WORK / "whole/inputs.npz", "--output", out)
    assert read_numbers(out) == ("i", y)
    muc("compile", net, "--target", "mcu", "-o", WORK / "whole_c")
    muc("run", WORK / "whole_c", "--input", WORK / "whole/inputs.npz", "--output", out)
    assert read_numbers(out) == ("i", y)
    muc("run", net, "--type", "A=f32,B=f32", "--input", WORK / "whole/inputs.npz", "--output", out)
    kind, numbers = read_numbers(out)
    assert kind == "f" and sum(p != q for p, q in zip(numbers, y)) > 60
    pixels = [i % 256 for i in range(125)]
    for name, factor, op, golden in (("fractions", 0.5, b"Relu", [float(p) for p in pixels]),
                                     ("open", 3, b"Sigmoid", [1.0] * 125), ("real", 3, b"Relu", [6.5 * p for p in pixels]),
                                     ("alone", 3, b"Relu", None)):
        net = onnx_of_floats(WORK / name, factor, op, pixels, pixels, golden)
        muc("run", net, "--input", WORK / name / "inputs.npz", "--output", out)
        assert read_numbers(out)[0] == "f" and "integers" not in muc("inspect", net)[0], name
    muc("compile", WORK / "fractions/network.onnx", "--target", "mcu", "--quant", "int8", "--calib", WORK / "fractions/inputs.npz",
        "-o", WORK / "pixels_c")


def test_halves_of_onnx_go_in_and_out():
    """inputs and outputs of float16, from arrays of any type of real numbers, rounded after every operator"""
    def half(x):
        return struct.unpack("<e", struct.pack("<e", x))[0]

    a, b, out = [i / 37 for i in range(125)], [1e-3 * i * i for i in range(125)], WORK / "halves.npz"
    expected = [half(half(half(p) + half(q)) * 0.75) for p, q in zip(a, b)]
    net = onnx_of_floats(WORK / "halves", 0.75, b"Relu", a, b, None, (10, "e"))
    muc("compile", net, "--target", "mcu", "-o", WORK / "halves_c")
    for what in (net, WORK / "halves_c"):
        muc("run", what, "--input", WORK / "halves/inputs.npz", "--output", out)
        assert read_numbers(out) == ("e", expected), what
    for arrays in ([], ["--input", WORK / "halves/inputs.npz"]):
        found = json.loads(muc("verify", WORK / "halves_c", net, *arrays, "--json")[0])
        assert found["exact"] and {layer["error"] for layer in found["layers"]} == {0}, found


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
