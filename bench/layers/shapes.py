"""The layers of bench/layers/count: rows of a table or drawn by chance, each as the text of a graph with seeded weights."""
import csv
import dataclasses
import math
import random

import operators

COLUMNS = ["kind", "in_h", "in_w", "in_c", "out_c", "k_h", "k_w", "stride_h", "stride_w", "dilation", "multiplier_or_groups", "pad"]
WINDOWS = ("depthwise", "conv", "pointwise", "average_pool", "max_pool")
REPEATED = ("add_short", "mul_short")  # whose second operand has k_w elements, again and again


@dataclasses.dataclass(frozen=True)
class Shape:
    kind: str
    in_h: int
    in_w: int
    in_c: int
    out_c: int
    k_h: int = 1
    k_w: int = 1
    stride_h: int = 1
    stride_w: int = 1
    dilation: int = 1
    multiplier_or_groups: int = 1
    pad: str = "valid"
    batch: int = 1

    def pads(self):
        """Rows and columns before and behind the image, as TFLite has them."""
        pads = []
        for size, kernel, stride in ((self.in_h, self.k_h, self.stride_h), (self.in_w, self.k_w, self.stride_w)):
            span = (kernel - 1) * self.dilation + 1
            total = max((math.ceil(size / stride) - 1) * stride + span - size, 0) if self.pad == "same" else 0
            pads.append((total // 2, total - total // 2))
        return pads

    def extents(self):
        """Rows and columns of the output."""
        if self.kind == "transpose_conv":
            return self.in_h * self.stride_h, self.in_w * self.stride_w
        if self.kind not in WINDOWS:
            return self.in_h, self.in_w
        return tuple((size + sum(pads) - (kernel - 1) * self.dilation - 1) // stride + 1
                     for size, kernel, stride, pads in ((self.in_h, self.k_h, self.stride_h, self.pads()[0]),
                                                        (self.in_w, self.k_w, self.stride_w, self.pads()[1])))

    def groups(self):
        return self.in_c if self.kind == "depthwise" else self.multiplier_or_groups if self.kind == "conv" else 1

    def bytes(self):
        """of input (of both, for a sum) and output, as int8"""
        out_h, out_w = self.extents()
        first = self.in_h * self.in_w * self.in_c
        second = {"add": first, "matmul": self.in_c * self.out_c}.get(self.kind, self.k_w if self.kind in REPEATED else 0)
        return self.batch * (first + second + out_h * out_w * self.out_c)

    def products(self):
        out_h, out_w = self.extents()
        if self.kind == "matmul":
            return self.in_h * self.in_c * self.out_c
        if self.kind == "transpose_conv":
            return self.batch * self.in_h * self.in_w * self.in_c * self.k_h * self.k_w * self.out_c
        if self.kind in REPEATED:
            return self.in_h * self.in_w * self.in_c
        taps = self.k_h * self.k_w * (self.in_c // self.groups() if self.kind in ("conv", "pointwise", "fully_connected") else 1)
        return self.batch * out_h * out_w * self.out_c * taps

    def __str__(self):
        words = f"{self.kind} {self.in_h}x{self.in_w}x{self.in_c}>{self.out_c} k {self.k_h}x{self.k_w}"
        words += f" s {self.stride_h}x{self.stride_w} {self.pad}"
        for value, name in ((self.dilation, "dilation"), (self.multiplier_or_groups, "times"), (self.batch, "batch")):
            words += f" {name} {value}" if value > 1 else ""
        return words


# What once took more instructions as int8 than as floats, or than before, and how many times those on floats it may take on boards
CLIFFS = {Shape("average_pool", 1, 100, 8, 8, 1, 2, 1, 2): {"m55": 1}, Shape("average_pool", 16, 20, 3, 3, 1, 2, 1, 2): {"m4": 1.1, "m7": 1.1, "m55": 1},
          Shape("average_pool", 100, 1, 4, 4, 2, 1, 2, 1): {"m55": 1},
          Shape("average_pool", 52, 9, 11, 11, 2, 2, 2, 2): {"m4": 1.1, "m7": 1.1},
          Shape("max_pool", 16, 20, 3, 3, 1, 2, 1, 2): {"m4": 1, "m7": 1, "m55": .8},
          Shape("average_pool", 26, 12, 3, 3, 2, 2, 2, 1, pad="same"): {"m55": .6}, Shape("average_pool", 56, 23, 1, 1, 7, 7, 7, 7): {"m55": .7},
          Shape("average_pool", 30, 3, 1, 1, 13, 3): {"m55": .5},
          Shape("add_short", 64, 1, 64, 64): {"m55": 1}, Shape("mul_short", 64, 1, 64, 64): {"m55": 1},
          Shape("add_short", 60, 1, 33, 33, k_w=33): {"m55": 1}, Shape("matmul", 7, 1, 300, 1): {"m55": .1},
          Shape("matmul", 64, 1, 64, 1): {"m55": .2}, Shape("matmul", 1, 1, 64, 64): {"m55": .1},
          Shape("depthwise", 1, 7, 6, 12, 5, 1, 2, 1, 1, 2, "same", 3): {"m4": .6, "m7": .6},
          Shape("depthwise", 31, 15, 8, 8, 9, 9, 1, 2, pad="same"): {"m4": .9, "m7": 1.3},
          Shape("depthwise", 6, 4, 64, 64, 5, 1, 2, 1, batch=3): {"m4": 1, "m7": 1.3, "m55": .8},
          Shape("depthwise", 32, 9, 16, 16, 1, 9, 2, 2): {"m55": .8}, Shape("depthwise", 21, 2, 3, 3, 1, 9, 1, 2, pad="same"): {"m55": .6},
          Shape("depthwise", 18, 9, 1, 2, 3, 1, 2, 1, 2, 2): {"m4": 1, "m7": 1.2, "m55": .6},
          Shape("conv", 26, 6, 3, 102, 5, 1, 1, 1, 2, 3): {"m55": .5},
          Shape("depthwise", 25, 8, 64, 64, 4, 3, 1, 2, pad="same"): {"m4": .7, "m7": .9},
          Shape("depthwise", 6, 22, 8, 8, 4, 3, 2, 1, batch=3): {"m4": .7, "m7": .95},
          Shape("depthwise", 40, 16, 18, 18, 2, 2, 2, 2, pad="same"): {"m4": .65, "m7": .75},
          Shape("depthwise", 3, 3, 72, 72, 5, 5, pad="same"): {"m4": 1.8, "m7": 2.3},
          Shape("conv", 16, 13, 56, 32, 1, 9, 1, 2, 1, 4): {"m7": 1.1}, Shape("conv", 28, 28, 1, 16, 3, 3, pad="same"): {"m55": .4},
          Shape("conv", 6, 11, 1, 24, 1, 3, 2, 2, 2): {"m55": .7}, Shape("conv", 8, 22, 1, 25, 1, 3, 2, 1): {"m55": .7},
          Shape("transpose_conv", 13, 23, 1, 2, 3, 1, 2, 1, pad="same", batch=3): {"m55": .6},
          Shape("transpose_conv", 21, 2, 8, 4, 3, 2, 2, 2, pad="same", batch=3): {"m7": .9}}


def cliffs(board):
    """Of a board: layers that once were too slow there, and their bars."""
    layers = {shape: bars[board] for shape, bars in CLIFFS.items() if board in bars}
    return {**layers, **{"m4": operators.CLIFFS, "m7": operators.CLIFFS, "m55": operators.VECTOR_CLIFFS}.get(board, {})}


def read(path):
    """The shapes of a table, and of each core what its peer takes: {core: {shape: (instructions, scratch bytes)}}."""
    shapes, peers = {}, {}
    with open(path) as file:
        for row in csv.DictReader(file):
            shape = Shape(*(row[c] if c in ("kind", "pad") else int(row[c]) for c in COLUMNS))
            shapes[shape] = None
            peers.setdefault(row["core"], {})[shape] = int(row["instructions"]), int(row["scratch_bytes"])
    return list(shapes), peers


def draw(count, seed):
    """Shapes drawn by chance: every kind, windows of any form, odd sizes, few channels, 1-D, batches."""
    chance, shapes = random.Random(seed), []
    kinds = ("depthwise", "depthwise", "depthwise", "conv", "conv", "pointwise", "transpose_conv", "fully_connected", "average_pool",
             "max_pool", "add")
    while len(shapes) < count:
        kind = kinds[len(shapes) % len(kinds)]
        window = chance.choice(((1, 3), (3, 1), (5, 1), (1, 9), (13, 1), (2, 2), (3, 3), (4, 3), (5, 5), (6, 2), (7, 7), (9, 9)))
        in_h, in_w = (chance.choice((chance.randint(1, 60), chance.randint(4, 24))), chance.randint(1, 24))
        in_c = chance.choice((1, 3, chance.randint(1, 20), 8 * chance.randint(1, 8)))
        out_c, strides, dilation, times = in_c, (chance.randint(1, 2), chance.randint(1, 2)), chance.choice((1, 1, 1, 2)), 1
        if kind == "transpose_conv":
            window, dilation = (max(window[0], strides[0]), max(window[1], strides[1])), 1
        if kind in ("pointwise", "fully_connected", "add"):
            window, strides, dilation = (1, 1), (1, 1), 1
        if kind == "fully_connected":
            in_h, in_w, in_c = 1, 1, chance.choice((chance.randint(1, 64), chance.randint(64, 600)))
        if kind.endswith("_pool"):
            dilation = 1
            strides = chance.choice((strides, window))
        if kind == "depthwise" and chance.random() < .2:
            times = 2
        if kind == "conv" and chance.random() < .3:
            times = chance.choice((2, 3, 4))
            in_c = times * chance.randint(1, 16)
        if kind in ("conv", "pointwise", "transpose_conv", "fully_connected"):
            out_c = times * chance.randint(1, 48)
        if kind == "depthwise":
            out_c = in_c * times
        shape = Shape(kind, in_h, in_w, in_c, out_c, *window, *strides, dilation, times,
                      "valid" if window == (1, 1) else chance.choice(("same", "valid")),
                      chance.choice((1, 1, 1, 3)) if kind != "add" else 1)
        if kind == "transpose_conv":
            shape = dataclasses.replace(shape, pad="same")
        if min(shape.extents()) > 0 and shape.bytes() < 60000 and 200 < shape.products() < 400000:
            shapes.append(shape)
    return shapes


def listed(values):
    return ", ".join(map(str, values))


def graph(shape, seed, is_float=False):
    """The text of the layer's graph: full-range int8, zero points within 20, scales that spread outputs over some 40 steps."""
    if isinstance(shape, operators.Operator):
        return shape.graph(seed, is_float)
    chance = random.Random(seed)
    out_h, out_w = shape.extents()
    inputs, outputs = [shape.batch, shape.in_h, shape.in_w, shape.in_c], [shape.batch, out_h, out_w, shape.out_c]
    if shape.kind in ("fully_connected", "softmax"):
        inputs, outputs = [shape.batch, shape.in_c], [shape.batch, shape.out_c]
    elif shape.kind == "matmul":
        inputs, outputs = [shape.in_h, shape.in_c], [shape.in_h, shape.out_c]
    zeros = [chance.randint(-20, 19) for _ in range(3)]
    dtype = "f32" if is_float else "i8"
    scaled = lambda scale, zero: "" if is_float else f" scale {scale:.9g} zero {zero}"
    x_scale = y_scale = 0.02
    x_scale = 0.2 if shape.kind == "softmax" else x_scale
    lines = [f"graph layer", f"tensor x = input {dtype} {inputs}{scaled(x_scale, zeros[0])}"]
    attributes, names = "", "x"
    (top, bottom), (left, right) = shape.pads()
    if shape.kind in ("depthwise", "conv", "pointwise", "fully_connected", "transpose_conv"):
        taps = shape.k_h * shape.k_w * shape.in_c // shape.groups()
        dims = [shape.out_c, taps] if shape.kind == "fully_connected" else [
            shape.out_c, shape.k_h, shape.k_w, shape.in_c // shape.groups()]
        scales = [chance.uniform(.002, .004) for _ in range(1 if shape.kind in ("fully_connected",) else shape.out_c)]
        each = f" scale {listed(f'{s:.9g}' for s in scales)} zero {listed('0' for _ in scales)}"
        each += " axis 0" if len(scales) > 1 else ""
        weights = listed(chance.randrange(-127, 128) for _ in range(shape.out_c * taps))
        bias = listed(chance.randrange(-2000, 2000) for _ in range(shape.out_c))
        lines.append(f"tensor w = const {dtype} {dims}{'' if is_float else each} values {weights}")
        lines.append(f"tensor b = const {'f32' if is_float else 'i32'} [{shape.out_c}] values {bias}")
        overlap = shape.k_h * shape.k_w / (shape.stride_h * shape.stride_w) if shape.kind == "transpose_conv" else 1
        y_scale = x_scale * .003 * math.sqrt(taps if overlap == 1 else shape.in_c * overlap) * 73 * 73 / 40
        names = "x, w, b"
    op = {"fully_connected": "linear", "transpose_conv": "conv_transpose"}.get(shape.kind, shape.kind)
    if shape.kind in ("depthwise", "conv", "pointwise"):
        op, attributes = "conv", f" strides=[{shape.stride_h}, {shape.stride_w}] pads=[{top}, {left}, {bottom}, {right}]"
        attributes += f" dilations=[{shape.dilation}, {shape.dilation}] groups={shape.groups()} channels_last=1"
    elif shape.kind == "transpose_conv":
        pads = [(k - s) for k, s in ((shape.k_h, shape.stride_h), (shape.k_w, shape.stride_w))]
        attributes = f" strides=[{shape.stride_h}, {shape.stride_w}] pads=[{pads[0] // 2}, {pads[1] // 2}, "
        attributes += f"{pads[0] - pads[0] // 2}, {pads[1] - pads[1] // 2}] channels_last=1"
    elif shape.kind.endswith("_pool"):
        zeros[2] = zeros[0]
        attributes = f" kernel=[{shape.k_h}, {shape.k_w}] strides=[{shape.stride_h}, {shape.stride_w}]"
        attributes += f" pads=[{top}, {left}, {bottom}, {right}] channels_last=1"
    elif shape.kind == "add":
        lines.append(f"tensor x2 = input {dtype} {inputs}{scaled(0.031, zeros[1])}")
        names, y_scale = "x, x2", 0.05
    elif shape.kind in REPEATED:
        lines.append(f"tensor x2 = input {dtype} [{shape.k_w}]{scaled(0.031, zeros[1])}")
        op, names, y_scale = shape.kind.removesuffix("_short"), "x, x2", 0.05
    elif shape.kind == "matmul":
        lines.append(f"tensor x2 = input {dtype} {[shape.in_c, shape.out_c]}{scaled(0.031, zeros[1])}")
        names, y_scale = "x, x2", .031 * .02 * 73 * 73 * math.sqrt(shape.in_c) / 40
    elif shape.kind == "softmax":
        y_scale, zeros[2], attributes = 1 / 256, -128, " axis=1"
    lines.append(f"node y {dtype} {outputs}{scaled(y_scale, zeros[2])} = {op} {names}{attributes}")
    return "\n".join(lines + ["output y"]) + "\n"
