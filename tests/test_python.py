#!/usr/bin/env python3
"""The Python module: its wheel, installed somewhere, against NumPy and against the command.

    tests/test_python.py MUC BUILD      the command and its build folder
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from files import MUC, ROOT, Skip, run_tests

BUILD = pathlib.Path(sys.argv[2]).resolve()
PLACE = tempfile.TemporaryDirectory(prefix="muc-python-")
WORK = pathlib.Path(PLACE.name)
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's NumPy
GRAPH = """graph small
tensor x = input f32 [2, 4]
tensor w = const f32 [3, 4] values 0.5, -1.0, 0.25, 2.0, 1.5, 0.125, -0.5, 0.75, -2.0, 1.0, 0.5, -0.25
tensor b = const f32 [3] values 0.5, 0.0, -1.0
node l f32 [2, 3] = linear x, w, b
node y f32 [2, 3] = relu l
output y
"""
HEAD = f"""
import muc, numpy, pathlib, sys
work = pathlib.Path({str(WORK)!r})
x = numpy.arange(8, dtype=numpy.float32).reshape(2, 4) / 4 - 1
w = numpy.array([0.5, -1, 0.25, 2, 1.5, 0.125, -0.5, 0.75, -2, 1, 0.5, -0.25], numpy.float32).reshape(3, 4)
expected = numpy.maximum(x @ w.T + numpy.array([0.5, 0, -1], numpy.float32), 0)
"""


def installed():
    """Where the wheel is, as pip puts it there."""
    place = WORK / "site"
    if not place.exists():
        if subprocess.run([PYTHON, "-c", "import setuptools, numpy, wheel.bdist_wheel, pip"], capture_output=True).returncode != 0:
            raise Skip("numpy, pip, setuptools or wheel is missing: scripts/setup test")
        copy = WORK / "source"  # setuptools builds beside what it builds from
        subprocess.run(["cp", "-r", ROOT / "python", copy], check=True)
        pip = [PYTHON, "-m", "pip", "--disable-pip-version-check"]
        for command in (["wheel", "--no-build-isolation", "--no-deps", "-w", WORK, copy],
                        ["install", "--no-index", "--no-deps", "--target", place, "{wheel}"]):
            command = [next(map(str, WORK.glob("*.whl"))) if word == "{wheel}" else str(word) for word in command]
            done = subprocess.run([*pip, *command], capture_output=True, text=True, timeout=300, env=dict(os.environ, MUC_BUILD=str(BUILD)))
            assert done.returncode == 0, done.stderr[-2000:]
        (WORK / "small.graph").write_text(GRAPH)
    return place


def python(text, status=0):
    """What a program prints, its head before it."""
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "MUC_LIBRARY")}
    done = subprocess.run([PYTHON, "-c", HEAD + text], capture_output=True, text=True, timeout=300,
                          env=dict(environment, PYTHONPATH=str(installed())))
    assert done.returncode == status, done.stdout + done.stderr[-2000:]
    return done.stdout


def test_structures_are_those_of_the_headers():
    members = json.loads(python("""
import json
from muc import _api
print(json.dumps([[s.STRUCT, [n for n, _ in s._fields_], [getattr(s, n).offset for n, _ in s._fields_], _api.ctypes.sizeof(s)]
                  for s in _api.STRUCTURES]))"""))
    lines = ["#include <stdio.h>", "#include <muc/muc.h>", "int main(void) {"]
    for name, fields, _, _ in members:
        lines += [f'printf("%zu ", offsetof({name}, {field}));' for field in fields] + [f'printf("%zu\\n", sizeof({name}));']
    (WORK / "offsets.c").write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run(["cc", f"-I{ROOT / 'include'}", WORK / "offsets.c", "-o", WORK / "offsets"], check=True)
    printed = subprocess.run([WORK / "offsets"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert printed == [" ".join(map(str, [*offsets, size])) for _, _, offsets, size in members]


def test_a_network_runs_on_arrays():
    python("""
with muc.open(work / "small.graph") as network:
    assert network.is_network and network.inspect()["macs"] == 24
    for inputs in ({"x": x}, [x]):
        [y] = network.run(inputs).values()
        assert y.dtype == numpy.float32 and numpy.allclose(y, expected, atol=1e-6), y
""")


def test_what_is_compiled_runs_and_is_verified_and_reported():
    python("""
with muc.open(work / "small.graph") as network:
    made = network.compile(work / "small", target="mcu", name="tiny")
[y] = muc.run_folder(work / "small", [x]).values()
assert numpy.allclose(y.reshape(2, 3), expected, atol=1e-6), y
assert muc.verify(work / "small", work / "small.graph")["exact"] is True
assert muc.report(work / "small", save=work / "small.html")["arena_bytes"] == made["arena_bytes"]
assert "<svg" in (work / "small.html").read_text()
""")


def test_reports_are_those_of_the_command():
    python('with muc.open(work / "small.graph") as network:\n    network.compile(work / "same", target="mcu", name="tiny")')
    printed = json.loads(subprocess.run([MUC, "report", WORK / "same", "--json"], check=True, capture_output=True).stdout)
    assert json.loads(python('import json\nprint(json.dumps(muc.report(work / "same")))')) == printed


def test_the_built_in_model_speaks_and_is_interrupted():
    out = python("""
with muc.open() as model:
    pieces = []
    assert model.say("find fire in the lab", on_text=pieces.append)["text"] == "goto lab; scan fire"
    assert b"".join(pieces) == b"goto lab; scan fire", pieces
    assert model.say("find fire in the lab", on_text=lambda piece: False)["end"] == "caller"
    assert model.say("find fire in the lab", stops=["; "])["text"] == "goto lab"
    try:
        model.say("find fire in the lab", on_text=lambda piece: 1 / 0)
    except ZeroDivisionError:
        print("raised")
""")
    assert out == "raised\n"


def test_failures_are_exceptions_with_the_commands_message():
    python("""
def fails(kind, words, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as problem:
        assert words in str(problem), problem
        return problem
    raise AssertionError(f"{kind} was not raised")

fails(muc.IOFailure, "cannot open", muc.open, "/nowhere")
fails(TypeError, "there is no option 'tokeniser'", muc.open, tokeniser="x")
with muc.open(work / "small.graph") as network:
    fails(muc.Usage, "did you mean 'host'?", network.compile, work / "none", target="mcu", machine="hots")
    fails(muc.Usage, "x", network.run, {"x": x[:, :2]})
    network.compile(work / "wrong", target="mcu")
(work / "other.graph").write_text((work / "small.graph").read_text().replace("0.5, -1.0, 0.25", "0.5, -1.0, 0.75"))
fails(muc.Mismatch, "", muc.verify, work / "wrong", work / "other.graph")
fails(muc.Usage, "is saved as", muc.report, work / "wrong", save=work / "wrong.xls")
""")


def test_networks_of_pytorch_give_its_results():
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        raise Skip("PyTorch is missing: scripts/setup sound")
    python("""
import torch
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                              torch.nn.Conv2d(8, 8, 3, padding=1, groups=8), torch.nn.Hardswish(), torch.nn.AdaptiveAvgPool2d(1),
                              torch.nn.Flatten(), torch.nn.Linear(8, 5), torch.nn.Softmax(1))
with torch.no_grad():
    for _ in range(4):  # so that the norm's statistics are not those of the beginning
        network(torch.randn(8, 3, 16, 16) * 2 + 1)
    network.eval()
    images = torch.randn(32, 3, 16, 16)
    answers = network(images).numpy()
torch.onnx.export(network, images[:1], work / "net.onnx", input_names=["image"], output_names=["classes"])
image = images[:1].numpy()
with muc.open(work / "net.onnx") as net:
    assert numpy.allclose(net.run({"image": image})["classes"], answers[:1], atol=1e-6)
    net.compile(work / "net", target="mcu", machine="stm32f746", name="net")
[classes] = muc.run_folder(work / "net", [image]).values()
assert numpy.allclose(classes.reshape(1, 5), answers[:1], atol=1e-6), classes
numpy.savez(work / "images.npz", image=images.numpy())
with muc.open(work / "net.onnx", quant="int8", calibration=str(work / "images.npz")) as net:
    rounded = numpy.concatenate([net.run([images[i:i + 1].numpy()])["classes"].reshape(1, 5) for i in range(8)])
error = ((rounded - answers[:8]) ** 2).mean() / (answers[:8] ** 2).mean()
assert 0 < error < 1e-3, error  # of 8 bits: 30 dB at least, and not float32 by mistake
""")


run_tests(globals())
