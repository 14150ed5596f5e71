"""MLPerf Tiny's streaming wakeword network with seeded weights, as the text of a graph: depthwise windows of one column, valid
padding, each with a pointwise layer behind, on 30 frames of 40 features."""
import math
import random

BLOCKS = ((3, 128), (5, 128), (10, 128), (15, 32))  # rows of the depthwise window, channels


def listed(values):
    return ", ".join(map(str, values))


class Graph:
    def __init__(self, rows, channels):
        self.chance, self.lines, self.nodes = random.Random(1), ["graph wakeword"], []
        self.scale, self.zero, self.name = 0.05, -3, "x"
        self.lines.append(f"tensor x = input i8 [1, {rows}, 1, {channels}] scale {self.scale} zero {self.zero}")

    def layer(self, name, op, dims, shape, inputs, each, attributes=""):
        """weights of dims, with a scale for each output channel or for all, and a bias; outputs spread over some 40 steps"""
        chance, count = self.chance, dims[0]
        scales = [f"{chance.uniform(.002, .004):.9g}" for _ in range(count if each else 1)]
        axis = " axis 0" if each else ""
        self.lines.append(f"tensor {name}_w = const i8 {list(dims)} scale {listed(scales)} zero {listed('0' for _ in scales)}{axis} values "
                          f"{listed(chance.randrange(-127, 128) for _ in range(math.prod(dims)))}")
        self.lines.append(f"tensor {name}_b = const i32 [{count}] values {listed(chance.randrange(-500, 500) for _ in range(count))}")
        self.scale *= .003 * math.sqrt(inputs) * 73 * 40 / 40
        self.nodes.append(f"node {name} i8 {list(shape)} scale {self.scale:.9g} zero {self.zero} = {op} {self.name}, {name}_w, "
                          f"{name}_b{attributes}")
        self.name = name


def wakeword():
    rows, channels = 30, 40
    graph = Graph(rows, channels)
    for i, (window, wide) in enumerate(BLOCKS):
        rows -= window - 1
        graph.layer(f"depthwise{i}", "conv", (channels, window, 1, 1), (1, rows, 1, channels), window, True,
                    f" groups={channels} channels_last=1")
        graph.layer(f"pointwise{i}", "conv", (wide, 1, 1, channels), (1, rows, 1, wide), channels, True, " channels_last=1")
        channels = wide
    graph.nodes.append(f"node flat i8 [1, {channels}] scale {graph.scale:.9g} zero {graph.zero} = reshape {graph.name} shape=[1, {channels}]")
    graph.name = "flat"
    graph.layer("linear", "linear", (3, channels), (1, 3), channels, False)
    graph.nodes.append("node y i8 [1, 3] scale 0.00390625 zero -128 = softmax linear axis=1")
    return "\n".join([*graph.lines, *graph.nodes, "output y"]) + "\n"
