#!/usr/bin/env python3
"""A trained int8 network as C, run by `muc run --qemu` on emulated boards: the recorded outputs, bit for bit, and no
more instructions than were once enough.

    test_network_qemu.py MUC [all]     all: every network on every board
"""
import functools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

from tap import Skip, all_boards, need, run_cases, tools_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared/data/tflite"
MUC = pathlib.Path(sys.argv[1]).resolve()
# board: its machine
BOARDS = {
    "m0": "rp2040",
    "m3": "mps2-an385",
    "m4": "mps2-an386",
    "m7": "mps2-an500",
    "m23": "ra2l1",
    "m33": "nrf5340",
    "m55": "mps3-an547",
    "m85": "ra8m1",
    "f405": "stm32f405",
    "rv32": "rv32",
    "rv32e": "rv32",
    "rv32f": "rv32f",
    "rv32v": "rv32v",
    "rv32v256": "rv32v",
    "rv32v512": "rv32v",
    "rv64": "k210",
    "rv64v": "rv32v",
}
# network: most instructions on m4, m7 (0.8 times what CMSIS-NN and TinyEngine take), rv32 (0.8 times CMSIS-NN), rv32v
# (0.25 times muRISCV-NN)
LIMITS = {
    "kws_ref_model": {"m4": 6200000, "m7": 6200000, "rv32": 13000000, "rv32v": 1000000},
    "vww_96_int8": {"m4": 15700000, "m7": 15700000, "rv32": 38800000, "rv32v": 3250000},
    "pretrainedResnet_quant": {"m4": 23900000, "m7": 23900000, "rv32": 52200000, "rv32v": 3770000},
    "vww": {"m4": 26700000, "m7": 26700000, "rv32": 69200000},
}


def shape_of(data):
    """The shape that a .npy file tells, and where its elements begin."""
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    return eval(re.search(r"shape': (\(.*?\))", data[10:begin].decode()).group(1)), begin


def first_of(archive, name):
    """The first row of an int8 array: its shape, its bytes."""
    data = archive.read(name + ".npy")
    shape, begin = shape_of(data)
    size = 1
    for extent in shape[1:]:
        size *= extent
    return (1,) + shape[1:], data[begin:begin + size]


def write_npy(path, shape, data):
    header = str({"descr": "|i1", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data)


def compile_for(folder, network, board):
    subprocess.run([MUC, "compile", DATA / f"{network}.tflite", "--machine", BOARDS[board], "-o", folder],
                   check=True, capture_output=True, text=True)


def check(folder, network, board):
    code, inputs, outputs = folder / f"{network}_{board}", folder / "in.npy", folder / "out.npz"
    with zipfile.ZipFile(DATA / f"golden/{network}.npz") as archive:
        write_npy(inputs, *first_of(archive, "input"))
        expected = first_of(archive, "output")[1]
    compile_for(code, network, board)
    done = subprocess.run([MUC, "run", code, "--qemu", board, "--input", inputs, "--output", outputs, "--json"],
                          check=True, capture_output=True, text=True)
    assert not done.stderr, done.stderr  # no compiler warns
    with zipfile.ZipFile(outputs) as archive:
        data = archive.read(archive.namelist()[0])
    assert data[shape_of(data)[1]:] == expected, (data, expected)
    count = json.loads(done.stdout)["instructions"]
    assert 1000 < count <= LIMITS[network].get(board, count), f"{count} instructions"
    if board in ("m7", "rv32"):
        check_report(code, board, count)
    return f"{count} instructions"


def check_report(code, board, count):
    """The layers' instructions are those of the run, and what the files give is the image's size."""
    done = subprocess.run([MUC, "report", code, "--qemu", board, "--json"], check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    counted = sum(layer["instructions"] for layer in report["layers"])
    # on zeros, not on the recorded input: kernels of int8 hardly depend on the data
    assert report["instructions"] - counted < 100 and abs(counted - count) < count / 100, (report["instructions"], count)
    files = {row["file"]: row for row in report["sections"]}
    network = files[report["name"] + ".c"]
    assert network["constants"] >= report["constant_bytes"] and network["code"] > 0, network
    assert any(name.startswith("kernels/") for name in files) and "main.c" not in files, files
    size = subprocess.run([ROOT / "scripts/run_network", board, code, __file__, os.devnull, "--size"], check=True,
                          capture_output=True, text=True).stdout
    size = dict(line.split() for line in size.splitlines())
    assert 0 <= int(size["code"]) + int(size["constants"]) - report["flash_bytes"] < 4096, (size, report["flash_bytes"])


def check_patches(folder, network, board):
    """Of layers that run patch by patch each has its own instructions."""
    code = folder / "patches"
    subprocess.run([MUC, "compile", DATA / f"{network}.tflite", "--machine", BOARDS[board], "--patch", "least", "-o", code],
                   check=True, capture_output=True, text=True)
    patches = json.loads((code / f"{network.lower()}.json").read_text())["patches"]
    done = subprocess.run([MUC, "report", code, "--qemu", board, "--json"], check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    layers = report["layers"][patches["first"]:patches["first"] + patches["steps"]]
    for layer in layers:  # a product takes an instruction or a few
        assert layer["macs"] / 4 < layer["instructions"] < 20 * layer["macs"] + 10 ** 6, layer
    assert abs(report["instructions"] - sum(layer["instructions"] for layer in report["layers"])) < 100
    return f"{len(layers)} layers"


def check_float(folder, network, board):
    """Real numbers, softmax included, have the same bits on every board as on the host, without a C library."""
    code, inputs = folder / f"{network}_{board}", folder / "real.npy"
    values = struct.pack("<490f", *((i * 37 % 101 - 50) / 16 for i in range(490)))
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 49, 10, 1)}"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    inputs.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + values)
    compile_for(code, network, board)
    results = []
    for where in ([], ["--qemu", board]):
        output = folder / "real.npz"
        done = subprocess.run([MUC, "run", code, "--input", inputs, "--output", output, *where], check=True,
                              capture_output=True, text=True)
        assert "warning" not in done.stderr, done.stderr
        with zipfile.ZipFile(output) as archive:
            results.append(archive.read(archive.namelist()[0]))
    assert results[0] == results[1], "another result than the host's"
    return "the same bits"


def check_tiles(folder, network, board):
    """Code for a DMA and eight cores, on a board that has neither."""
    code, inputs, output = folder / "tiles", folder / "tiles.npy", folder / "tiles.npz"
    with zipfile.ZipFile(DATA / f"golden/{network}.npz") as archive:
        write_npy(inputs, *first_of(archive, "input"))
        expected = first_of(archive, "output")[1]
    subprocess.run([MUC, "compile", DATA / f"{network}.tflite", "--machine", "siracusa", "-o", code], check=True,
                   capture_output=True, text=True)
    done = subprocess.run([MUC, "run", code, "--qemu", board, "--input", inputs, "--output", output], check=True,
                          capture_output=True, text=True)
    assert not done.stderr, done.stderr
    with zipfile.ZipFile(output) as archive:
        data = archive.read(archive.namelist()[0])
    assert data[shape_of(data)[1]:] == expected, (data, expected)
    return "the same bits"


def check_speech(folder, network, board):
    """A language model's layers, of the token after a prompt; for a machine with tiles."""
    code, prompt = folder / "speech", folder / "prompt.txt"
    subprocess.run([MUC, "compile", ROOT / "models/rescue", "--target", "mcu", "--machine", "siracusa", "-o", code], check=True,
                   capture_output=True, text=True)
    spoken = subprocess.run([MUC, "run", ROOT / "models/rescue", "--prompt", "go to the lab", "--json"], check=True,
                            capture_output=True, text=True)
    tokens = json.loads(spoken.stdout)["prompt_tokens"]
    for text, position in ((None, None), ("command: go to the lab\nplan:", tokens)):
        options = [] if text is None else ["--input", prompt]
        prompt.write_text(text or "")
        done = subprocess.run([MUC, "report", code, "--qemu", board, "--json", *options], check=True, capture_output=True,
                              text=True)
        report = json.loads(done.stdout)
        layers = report["layers"]
        counted = sum(layer.get("instructions", 0) for layer in layers)
        assert 10 ** 6 < counted < report["instructions"] < counted * 1.1, (counted, report["instructions"])
        assert all(layer["instructions"] > 10 ** 4 for layer in layers if "linear" in layer["function"]), layers
        assert position is None or report["position"] == position, report["position"]
    prompt.write_bytes(b"")
    done = subprocess.run([MUC, "report", code, "--qemu", board, "--input", folder / "none"], capture_output=True, text=True)
    assert done.returncode == 5 and "none" in done.stderr, (done.returncode, done.stderr)
    return f"{len(layers)} layers"


def field(number, data):
    """A field of a protocol buffer: a number, or bytes."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def check_large(folder, network, board):
    """Weights of more than 4 MB, which come from a file of their own: y = x W of ONNX, on the board as in whole numbers."""
    size, code, inputs, output = 1100, folder / network, folder / "large.npy", folder / "large.npz"
    weights = [[(7 * i + 3 * j) % 5 - 2 for j in range(size)] for i in range(size)]
    x = [i % 7 - 3 for i in range(size)]
    tensor = b"".join((field(1, size), field(1, size), field(2, 1), field(8, b"w"),
                       field(9, struct.pack(f"<{size * size}f", *sum(weights, [])))))
    shape = field(1, field(1, 1)) + field(1, field(1, size))
    port = [field(1, name) + field(2, field(1, field(1, 1) + field(2, shape))) for name in (b"x", b"y")]
    graph = field(1, field(1, b"x") + field(1, b"w") + field(2, b"y") + field(4, b"MatMul"))
    graph += field(2, b"g") + field(5, tensor) + field(11, port[0]) + field(12, port[1])
    model = folder / f"{network}.onnx"
    model.write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 13)))
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (1, {size})}}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    inputs.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + struct.pack(f"<{size}f", *x))
    subprocess.run([MUC, "compile", model, "--machine", BOARDS[board], "-o", code], check=True, capture_output=True,
                   text=True)
    assert (code / f"{network}_weights.S").exists()
    subprocess.run([MUC, "run", code, "--qemu", board, "--input", inputs, "--output", output], check=True,
                   capture_output=True, text=True)
    with zipfile.ZipFile(output) as archive:
        data = archive.read(archive.namelist()[0])
    y = struct.unpack(f"<{size}f", data[shape_of(data)[1]:])
    assert list(y) == [sum(x[i] * weights[i][j] for i in range(size)) for j in range(size)]
    return f"{4 * size * size} bytes of weights"


def check_errors(folder, network, board):
    """Boards that are not known, and tools that are not there, are named."""
    code, tools, inputs = folder / "errors", folder / "tools", folder / "errors.npy"
    compile_for(code, network, board)
    with zipfile.ZipFile(DATA / f"golden/{network}.npz") as archive:
        write_npy(inputs, *first_of(archive, "input"))
    tools.mkdir()
    for tool in ("timeout", "realpath", "dirname"):
        (tools / tool).symlink_to(shutil.which(tool))
    for name, path, status, words in ((board, tools, 5, "scripts/setup test"), ("m9", None, 7, "m9")):
        environment = dict(os.environ, PATH=str(path)) if path else None
        done = subprocess.run([MUC, "run", code, "--qemu", name, "--input", inputs], capture_output=True, text=True,
                              env=environment)
        assert done.returncode == status and words in done.stderr, (done.returncode, done.stderr)
    described = subprocess.run([MUC, "help", "run"], check=True, capture_output=True, text=True).stdout
    for told in (done.stderr, described):
        assert not set(all_boards()) - set(re.findall(r"\w+", told)), told
    done = subprocess.run([MUC, "run", DATA / f"{network}.tflite", "--qemu", board, "--input", inputs],
                          capture_output=True, text=True)
    assert done.returncode == 7 and "--qemu" in done.stderr, (done.returncode, done.stderr)
    return "named"


def check_flash(folder, bits, board):
    """What compress and compile say of flash is what an image takes, and a budget of that much is kept."""
    small, code = folder / f"small_{board}", folder / f"flash_{board}"
    machine = ["--machine", BOARDS[board]]

    def ask(*command):
        done = subprocess.run([MUC, *map(str, command), "--json"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    ask("compress", ROOT / "models/rescue", "--bits", bits, "--calib", "none", "-o", small)
    told = ask("compile", small, "--target", "mcu", *machine, "-o", code)["flash_bytes"]
    taken = ask("report", code, "--qemu", board)["flash_bytes"]
    assert taken - 1500 <= told <= taken, (told, taken)
    fits = ask("compress", ROOT / "models/rescue", "--bits", bits, "--calib", "none", "--budget-flash", taken, *machine, "-o", small)
    assert fits["flash_bytes"] == told, (fits["flash_bytes"], told)
    return f"{told} of {taken}"


def run_case(function, folder, network, board):
    need(*tools_of(board))
    if not DATA.is_dir():
        raise Skip(f"{DATA} is missing")
    return function(folder, network, board)


def main():
    networks = list(LIMITS) if "all" in sys.argv else ["kws_ref_model"]
    cases = [(f"{network} on {board}", check, network, board) for network in networks for board in all_boards()
             if board != "m23" or network == "kws_ref_model"]  # the others are more than its machine has
    cases += [(f"a float network on {board}", check_float, "kws_ref_model_float32", board) for board in ("m7", "rv32", "rv64")]
    cases += [(f"large weights on {board}", check_large, f"large_{board}", board) for board in ("m7", "rv32")]
    cases.append(("the report of a network that runs by patches", check_patches, "pretrainedResnet_quant", "m7"))
    cases.append(("code with tiles", check_tiles, "kws_ref_model", "rv32"))
    cases.append(("the report of a language model", check_speech, "rescue", "rv32"))
    cases += [(f"flash of {bits} bits on {board}", check_flash, bits, board) for bits, board in
              (("2", "m4"), ("4", "m55"), ("8", "rv32"))]
    cases.append(("errors of muc run --qemu", check_errors, "kws_ref_model", "m4"))
    with tempfile.TemporaryDirectory() as folder:
        return run_cases((name, functools.partial(run_case, function, pathlib.Path(folder), network, board))
                         for name, function, network, board in cases)


if __name__ == "__main__":
    sys.exit(main())
