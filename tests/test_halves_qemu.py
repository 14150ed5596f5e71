#!/usr/bin/env python3
"""Networks of f16 on emulated Cortex-M55 and M85, by kernels of halves: the bits that a Cortex-M7 computes by floats, subnormal
numbers among them; and which operators take no such kernel.

    test_halves_qemu.py MUC
"""
import functools
import json
import math
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

from tap import need, run_cases, tools_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUC = pathlib.Path(sys.argv[1]).resolve()
BOARDS = {"m55": "mps3-an547", "m85": "ra8m1"}
CONV, DEPTHWISE, FLOATS = "mur_mve_conv_f16", "mur_mve_depthwise_f16", "mur_conv_f32_run"


def half(chance):
    """Mostly near 1; also subnormal, or 0 of either sign."""
    kind = chance.randrange(12)
    value = chance.uniform(-2, 2) if kind > 2 else 0.0 if kind else chance.uniform(-6e-5, 6e-5)
    return struct.unpack("<e", struct.pack("<e", -value if kind == 1 else value))[0]


class Net:
    """A graph's text; layers follow one another."""

    def __init__(self, dims, seed):
        self.chance, self.dims, self.at, self.nodes, self.functions = random.Random(seed), dims, "x", [], []
        self.lines = ["graph n", f"tensor x = input f16 {dims}"]

    def constant(self, dims, values=None):
        name, count = f"c{len(self.lines)}", 1
        for d in dims:
            count *= d
        values = [half(self.chance) + 0.0 for _ in range(count)] if values is None else values
        self.lines.append(f"tensor {name} = const f16 {dims} values {', '.join(map(repr, values))}")
        return name

    def node(self, op, dims, inputs="", attributes="", function=None):
        name = f"t{len(self.nodes)}"
        self.nodes.append(f"node {name} f16 {dims} = {op} {self.at}{inputs} {attributes}")
        self.at, self.dims = name, dims
        self.functions += [function] if function else []
        return self

    def conv(self, channels, kernel, stride=1, pads=(0, 0, 0, 0), groups=1, dilation=1, bias=None, function=CONV):
        (n, *size, depth), weights = self.dims, self.constant([channels, *kernel, self.dims[3] // groups])
        size = [(s + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilation - 1) // stride + 1 for i, s in enumerate(size)]
        return self.node("conv", [n, *size, channels], f", {weights}, {self.constant([channels], bias)}",
                         f"channels_last=1 strides=[{stride}, {stride}] pads={list(pads)} groups={groups} "
                         f"dilations=[{dilation}, {dilation}]", function)

    def depthwise(self, kernel, **options):
        return self.conv(self.dims[3], kernel, groups=self.dims[3], function=DEPTHWISE, **options)

    def linear(self, outputs):
        return self.node("linear", [*self.dims[:-1], outputs],
                         f", {self.constant([outputs, self.dims[-1]])}, {self.constant([outputs])}", function=CONV)

    def text(self):
        return "\n".join([*self.lines, *self.nodes, f"output {self.at}"]) + "\n"


def odd():
    net = Net([1, 12, 10, 1], 1).conv(7, (3, 3), pads=(1, 1, 1, 1)).node("relu", [1, 12, 10, 7])
    net.conv(8, (5, 3), 2, (2, 1, 1, 0)).depthwise((3, 3), stride=2, pads=(1, 0, 1, 1)).conv(9, (1, 1))
    net.node("clip", net.dims, f", {net.constant([], [0.0])}, {net.constant([], [6.0])}").depthwise((5, 5), pads=(2, 2, 2, 2))
    return net.node("relu", net.dims).conv(17, (1, 1)).node("reshape", [1, 17 * net.dims[1] * net.dims[2]],
                                                            attributes=f"shape=[1, {17 * net.dims[1] * net.dims[2]}]").linear(3)


def wide():
    net = Net([1, 4, 50, 5], 2).depthwise((3, 3), pads=(1, 1, 1, 1)).depthwise((1, 7), stride=2, pads=(0, 3, 0, 2))
    return net.node("clip", net.dims, f", {net.constant([], [-0.5])}").conv(6, (2, 2), pads=(0, 0, 1, 1))


def batches():
    """functions that call a kernel for each image"""
    net = Net([3, 6, 7, 5], 3).conv(8, (3, 2), pads=(1, 0, 1, 1), function="conv_0")
    net.conv(8, (2, 3), pads=(1, 1, 0, 1), groups=8, function="conv_1").node("relu", [3, 6, 7, 8])
    return net.conv(3, (1, 1)).node("reshape", [3, 126], attributes="shape=[3, 126]").linear(9)


def apart():
    net = Net([1, 11, 9, 6], 4).conv(10, (3, 3), groups=2, pads=(1, 1, 1, 1)).depthwise((3, 3), dilation=2, pads=(2, 2, 2, 2))
    return net.conv(4, (3, 3), dilation=2, pads=(0, 2, 1, 2), groups=2).conv(5, (3, 3), 2)


def elements():
    net = Net([2, 5, 7], 5)
    for op, function in (("add", "mur_mve_sums_f16"), ("mul", "mur_mve_products_f16"), ("sub", "mur_mve_differences_f16")):
        net.node(op, net.dims, f", {net.constant([2, 5, 7])}", function=function)
    net.node("relu", net.dims, function="mur_mve_rectified_f16")
    return net.node("clip", net.dims, f", {net.constant([], [0.25])}, {net.constant([], [2.5])}", function="mur_mve_limited_f16")


def pools():
    """windows at borders too, means of some and of all pixels"""
    net = Net([1, 11, 13, 5], 11)
    net.node("max_pool", [1, 6, 7, 5], attributes="kernel=[3, 3] strides=[2, 2] pads=[1, 1, 1, 1] channels_last=1", function="mur_mve_greatest_f16")
    net.node("average_pool", [1, 6, 6, 5], attributes="kernel=[3, 2] pads=[1, 0, 1, 0] channels_last=1", function="mur_mve_averages_f16")
    net.conv(9, (1, 1))
    return net.node("reduce_mean", [1, 1, 1, 9], attributes="axes=[1, 2]", function="mur_mve_averages_f16")


def infinite():
    """whose inputs and sums are infinite, or no numbers"""
    net = Net([1, 9, 9, 3], 9).conv(6, (3, 3), pads=(1, 1, 1, 1)).depthwise((3, 3), pads=(1, 1, 1, 1))
    return net.node("add", net.dims, f", {net.constant(net.dims)}", function="mur_mve_sums_f16")


def no_numbers():
    """relu and clip of what is no number, of either sign"""
    net = Net([1, 243], 10).node("relu", [1, 243], function="mur_mve_rectified_f16")
    return net.node("clip", net.dims, f", {net.constant([], [0.25])}, {net.constant([], [2.5])}", function="mur_mve_limited_f16")


def left_alone():
    """a bias of -0, a number that is broadcast, an operator without a kernel"""
    net = Net([1, 5, 5, 2], 6).conv(2, (3, 3), pads=(1, 1, 1, 1), bias=[-0.0, 0.5], function=FLOATS)
    return net.node("add", net.dims, f", {net.constant([2])}").node("sigmoid", net.dims)


def run(folder, text, board, machine, values):
    (folder / "n.graph").write_text(text)
    code, inputs, outputs = folder / board, folder / "in", folder / "out"
    subprocess.run([MUC, "compile", folder / "n.graph", "--target", "mcu", "--machine", machine, "-o", code], check=True, capture_output=True)
    inputs.write_bytes(values)
    subprocess.run([ROOT / "scripts/run_network", board, code, inputs, outputs], check=True, capture_output=True)
    return json.loads((code / "n.json").read_text()), outputs.read_bytes()


def without_payloads(data):
    """Halves; of a NaN neither sign nor fraction is told."""
    return [0x7e00 if bits & 0x7fff > 0x7c00 else bits for bits in struct.unpack(f"<{len(data) // 2}H", data)]


def check(place, make):
    need(*tools_of("m55"))
    net, chance = make(), random.Random(7)
    folder = pathlib.Path(place) / make.__name__
    folder.mkdir()
    start = net.lines[1].split("f16 ")[1].strip("[]").split(", ")
    count = 1
    for d in start:
        count *= int(d)
    values = [half(chance) for _ in range(count)]
    odd_ones = make in (infinite, no_numbers)
    if odd_ones:
        values[0], values[1], values[121], values[242] = math.inf, -math.nan, math.nan, 65504.0
    values = struct.pack(f"<{count}e", *values)
    expected = without_payloads(run(folder, net.text(), "m7", "mps2-an500", values)[1])
    assert len(set(expected)) > 2, "nearly all outputs are one number"
    assert (0x7e00 in expected) == odd_ones and bool({0x7c00, 0xfc00} & set(expected)) == (make is infinite), "not the numbers that were to be tried"
    for board, machine in BOARDS.items():
        facts, found = run(folder, net.text(), board, machine, values)
        assert without_payloads(found) == expected, f"other bits on {board}"
        functions = [step["function"] for step in facts["steps"]]
        assert [f for f in functions if f in net.functions] == net.functions, (functions, net.functions)
    return f"{len(net.functions)} kernels"


def check_verify(place):
    """muc verify makes operators on halves of the network's as muc compile did"""
    net = Net([1, 8, 7, 3], 8)
    net.node("cast", net.dims, attributes="to=f16").conv(9, (3, 3), pads=(1, 1, 1, 1)).node("relu", [1, 8, 7, 9]).node(
        "reshape", [8, 63], attributes="shape=[8, 63]")
    folder = pathlib.Path(place) / "verify"
    folder.mkdir()
    (folder / "n.graph").write_text(net.text().replace("x = input f16", "x = input f32"))
    subprocess.run([MUC, "compile", folder / "n.graph", "--machine", "mps3-an547", "-o", folder / "code"], check=True, capture_output=True)
    done = subprocess.run([MUC, "verify", folder / "code", folder / "n.graph", "--json"], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["layers"][1]["operator"] == "relu", done.stdout


def deep():
    """sums of 72 products, a few of which round to the other neighbour in another order, and then again"""
    net = Net([1, 24, 24, 8], 0)
    for _ in range(2):
        net.conv(24, (3, 3), pads=(1, 1, 1, 1)).node("sigmoid", net.dims).depthwise((3, 3), pads=(1, 1, 1, 1)).node("relu", net.dims)
    return net


def check_numbers(place, machine):
    """muc verify draws halves, takes rounding to a neighbour for right on the way, and finds a weight that is wrong"""
    folder = pathlib.Path(place) / machine
    folder.mkdir()
    source, code = folder / "n.graph", folder / "code"
    for make in (odd, left_alone, deep):
        source.write_text(make().text())
        subprocess.run([MUC, "compile", source, "--machine", machine, "-o", code], check=True, capture_output=True)
        done = subprocess.run([MUC, "verify", code, source, "--json"], check=True, capture_output=True, text=True)
    moved = [layer["node"] for layer in json.loads(done.stdout)["layers"] if layer["error"] > 1e-3]
    assert len(moved) > 1, done.stdout
    text, count = re.subn(r"(_weights\[\d+\] MUR_ALIGNED = \{\s*(?:\d+, ){7})(\d+)", lambda m: m[1] + str(int(m[2]) ^ 64), (code / "n.c").read_text(), count=1)
    assert count == 1
    (code / "n.c").write_text(text)
    done = subprocess.run([MUC, "verify", code, source], capture_output=True, text=True)
    assert done.returncode == 8 and "the code and the reference differ at 't0" in done.stderr, (done.returncode, done.stderr)
    return f"{len(moved)} layers with neighbours"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        cases = [(f"halves, {make.__name__}", functools.partial(check, place, make))
                 for make in (odd, wide, batches, apart, elements, pools, infinite, no_numbers, left_alone)]
        cases += [(f"muc verify of halves for {machine}", functools.partial(check_numbers, place, machine)) for machine in ("mps2-an500", "mps3-an547")]
        sys.exit(run_cases([*cases, ("muc verify", functools.partial(check_verify, place))]))
