"""TFLite files made from lists of tensors and operators, and NumPy's idea of TFLite's arithmetic.

Model() collects tensors and operators; bytes() is the file. Every slot of a table has 8 bytes; a
parent is written before its children.
"""
import re
import struct

import numpy as np

from files import ROOT

FORMATS = ROOT / "src" / "formats" / "tflite"
CODES = {name: int(code) for code, name in
         re.findall(r"TFLITE_\w+\((\d+), (\w+)", (FORMATS / "tflite_ops.def").read_text())}
TYPES = {"float32": 0, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "int8": 9, "resource": 13}


class Flat:
    def __init__(self):
        self.data = bytearray(8)
        self.data[4:8] = b"TFL3"

    def reserve(self, size):
        at = len(self.data)
        self.data += bytes(size)
        return at

    def table(self, slots):
        vtable = self.reserve(4 + 2 * slots)
        at = self.reserve(4 + 8 * slots)
        struct.pack_into("<HH", self.data, vtable, 4 + 2 * slots, 4 + 8 * slots)
        struct.pack_into("<i", self.data, at, at - vtable)
        return at

    def slot(self, table, slot):
        vtable = table - struct.unpack_from("<i", self.data, table)[0]
        struct.pack_into("<H", self.data, vtable + 4 + 2 * slot, 4 + 8 * slot)
        return table + 4 + 8 * slot

    def put(self, table, slot, value):
        real = isinstance(value, float)
        struct.pack_into("<f" if real else "<q", self.data, self.slot(table, slot), value)

    def link(self, table, slot, target):
        at = self.slot(table, slot)
        struct.pack_into("<I", self.data, at, target - at)

    def vector(self, table, slot, items, form):
        at = self.reserve(4)
        self.data += struct.pack(f"<{len(items)}{form}", *items)
        struct.pack_into("<I", self.data, at, len(items))
        self.link(table, slot, at)

    def blob(self, table, slot, data):
        at = self.reserve(4)
        self.data += data
        struct.pack_into("<I", self.data, at, len(data))
        self.link(table, slot, at)

    def tables(self, table, slot, count, slots):
        vector = self.reserve(4 + 4 * count)
        struct.pack_into("<I", self.data, vector, count)
        self.link(table, slot, vector)
        made = []
        for i in range(count):
            made.append(self.table(slots))
            cell = vector + 4 + 4 * i
            struct.pack_into("<I", self.data, cell, made[i] - cell)
        return made


class Tensor:
    """dtype and shape; data of a constant; scale and zero point, of one or of several along axis."""

    def __init__(self, name, shape, dtype="float32", data=None, scale=None, zero=0, axis=0,
                 variable=False):
        self.name, self.shape, self.dtype, self.data = name, tuple(shape), str(dtype), data
        self.scale = None if scale is None else np.float32(np.atleast_1d(scale))
        self.zero = np.broadcast_to(np.int64(zero), np.shape(self.scale) if scale is not None else 1)
        self.axis, self.variable = axis, variable


class Model:
    def __init__(self):
        self.tensors, self.operators, self.inputs, self.outputs = [], [], [], []
        self.others = []

    def add(self, *args, **options):
        self.tensors.append(Tensor(*args, **options))
        return self.tensors[-1]

    def input(self, *args, **options):
        self.inputs.append(self.add(*args, **options))
        return self.inputs[-1]

    def constant(self, name, data, **options):
        data = np.asarray(data)
        return self.add(name, data.shape, data.dtype, data=data, **options)

    def op(self, kind, inputs, outputs, option=0, options=(), version=1):
        """option: number in the union; options: (slot, value). Returns the first output."""
        outputs = outputs if isinstance(outputs, list) else [outputs]
        self.operators.append((kind, inputs, outputs, option, options, version))
        return outputs[0] if outputs else None

    def bytes(self):
        """The file; graphs in others are its further subgraphs."""
        graphs = [self] + self.others
        flat = Flat()
        root = flat.table(8)
        struct.pack_into("<I", flat.data, 0, root)
        flat.put(root, 0, 3)
        codes = flat.tables(root, 1, sum(len(g.operators) for g in graphs), 4)
        tables = flat.tables(root, 2, len(graphs), 5)
        buffers = flat.tables(root, 4, sum(len(g.tensors) for g in graphs) + 1, 3)
        first, code = 1, 0
        for graph, table in zip(graphs, tables):
            graph.write(flat, table, codes, code, buffers, first)
            first, code = first + len(graph.tensors), code + len(graph.operators)
        return bytes(flat.data)

    def write(self, flat, graph, codes, first_code, buffers, first_buffer):
        index = {id(t): i for i, t in enumerate(self.tensors)}
        where = lambda ts: [-1 if t is None else index[id(t)] for t in ts]
        tensors = flat.tables(graph, 0, len(self.tensors), 8)
        flat.vector(graph, 1, where(self.inputs), "i")
        flat.vector(graph, 2, where(self.outputs), "i")
        operators = flat.tables(graph, 3, len(self.operators), 5)
        for i, (t, at) in enumerate(zip(self.tensors, tensors)):
            flat.vector(at, 0, t.shape, "i")
            flat.put(at, 1, TYPES[t.dtype])
            flat.vector(at, 3, t.name.encode(), "B")
            if t.scale is not None:
                q = flat.table(7)
                flat.link(at, 4, q)
                flat.vector(q, 2, t.scale, "f")
                flat.vector(q, 3, t.zero, "q")
                flat.put(q, 6, t.axis)
            if t.variable:
                flat.put(at, 5, 1)
            if t.data is not None:
                flat.put(at, 2, first_buffer + i)
                flat.blob(buffers[first_buffer + i], 0, np.ascontiguousarray(t.data).tobytes())
        for i, (kind, inputs, outputs, option, options, version) in enumerate(self.operators):
            code, at = codes[first_code + i], operators[i]
            flat.put(code, 0, min(CODES[kind], 127))
            flat.put(code, 2, version)
            flat.put(code, 3, CODES[kind])
            flat.put(at, 0, first_code + i)
            flat.vector(at, 1, where(inputs), "i")
            flat.vector(at, 2, where(outputs), "i")
            if option:
                flat.put(at, 3, option)
                table = flat.table(max(8, 1 + max((slot for slot, _ in options), default=0)))
                flat.link(at, 4, table)
                for slot, value in options:
                    if isinstance(value, str):
                        flat.blob(table, slot, value.encode())
                    elif isinstance(value, (list, tuple)):
                        flat.vector(table, slot, value, "i")
                    else:
                        flat.put(table, slot, value)


# ---- integers ----

def multiplier(real):
    """TFLite's QuantizeMultiplier: mantissa of 31 bits, shift."""
    if real == 0:
        return 0, 0
    mantissa, shift = np.frexp(np.float64(real))
    mantissa, shift = int(np.floor(mantissa * 2 ** 31 + 0.5)), int(shift)
    if mantissa == 2 ** 31:
        mantissa, shift = mantissa // 2, shift + 1
    return (0, 0) if shift < -31 else (mantissa, shift)


def scaled(x, factor):
    """MultiplyByQuantizedMultiplier: a doubling high product, then a rounding shift."""
    mantissa, shift = factor
    x = np.int64(x) << max(shift, 0)
    product = x * mantissa
    nudge = np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    high = product + nudge
    high = np.where(high >= 0, high >> 31, -(-high >> 31))  # toward zero
    right = max(-shift, 0)
    mask, rest = (1 << right) - 1, high & ((1 << right) - 1)
    return (high >> right) + (rest > (mask >> 1) + (high < 0))


def clamp(x, low, high):
    return np.minimum(np.maximum(x, low), high)


def windows(x, kernel, stride, same, dilation=(1, 1), fill=0):
    """Patches [N, OH, OW, KH, KW, C] of x [N, H, W, C], and whether each tap is inside."""
    inside = np.ones(x.shape[:3] + (1,), bool)
    pads, sizes = [], []
    for i in range(2):
        span = (kernel[i] - 1) * dilation[i] + 1
        size = -(-x.shape[1 + i] // stride[i]) if same else -(-(x.shape[1 + i] - span + 1) // stride[i])
        total = max((size - 1) * stride[i] + span - x.shape[1 + i], 0) if same else 0
        pads.append((total // 2, total - total // 2))
        sizes.append(size)
    pads = [(0, 0)] + pads + [(0, 0)]
    x, inside = np.pad(x, pads, constant_values=fill), np.pad(inside, pads)
    rows = (np.arange(sizes[0]) * stride[0])[:, None] + np.arange(kernel[0]) * dilation[0]
    columns = (np.arange(sizes[1]) * stride[1])[:, None] + np.arange(kernel[1]) * dilation[1]
    pick = lambda a: a[:, rows[:, None, :, None], columns[None, :, None, :]]
    return pick(x), pick(inside)


def sigmoid_table():
    """TFLite's, from what it is: sigmoid(i / 24) less a sixteenth of its second derivative."""
    i = np.arange(256) / 24
    s = 1 / (1 + np.exp(-i))
    table = np.floor(65536 * (s - s * (1 - s) * (1 - 2 * s) / 24 ** 2 / 16) + 0.5).astype(np.int64)
    table[255] = 65535
    # a few entries as they stand in TFLite's source
    assert list(table[[0, 1, 2, 33, 100, 200, 254]]) == [32768, 33451, 34133, 52311, 64536, 65520,
                                                         65534]
    return table


TABLE = sigmoid_table()


def logistic(x):
    """reference_integer_ops::Logistic of int16, Q3.12 to Q0.15"""
    x = 3 * x
    size = np.abs(x)
    at = np.minimum(size >> 9, 254)
    line = (TABLE[at] << 9) + (size & 0x1FF) * (TABLE[at + 1] - TABLE[at])
    result = np.where(size >> 9 >= 255, 0x7FFF << 10, line)
    return np.where(x >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1) >> 10


def tanh(x, left_shift):
    """reference_integer_ops::Tanh of int16"""
    x = x * (3 << left_shift) if left_shift >= 0 else (x * 3 + (1 << (-left_shift - 1))) >> -left_shift
    size = np.abs(x)
    at = np.minimum(size >> 8, 254)
    line = (TABLE[at] << 8) + (size & 0xFF) * (TABLE[at + 1] - TABLE[at])
    result = np.where(size >> 8 >= 255, 0xFFFF << 8, line)
    up, half = 1 << 23, 1 << 7
    return np.where(x >= 0, result - up + half, -result + up + half - 1) >> 8
