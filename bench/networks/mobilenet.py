"""Writes MLPerf Tiny's visual wake words network (MobileNet 0.25 on 96x96x3) in float32 as an ONNX file: its structure, with
weights drawn by chance, for no trained one is published in float32 but inside other formats. Instructions do not depend on them.
"""
import array
import random

LAYERS = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)] + [(128, 1)] * 5 + [(256, 2), (256, 1)]  # channels, stride


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def piece(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name, values):
    if isinstance(values, int):
        return piece(5, piece(1, name) + number(3, values) + number(20, 2))
    return piece(5, piece(1, name) + b"".join(number(8, v) for v in values) + number(20, 7))


def node(operator, inputs, output, **attributes):
    return piece(1, b"".join(piece(1, i) for i in inputs) + piece(2, output) + piece(4, operator) +
                 b"".join(attribute(*a) for a in attributes.items()))


def port(field, name, shape):
    dims = b"".join(piece(1, number(1, d)) for d in shape)
    return piece(field, piece(1, name) + piece(2, piece(1, number(1, 1) + piece(2, dims))))


class Network:
    def __init__(self):
        self.chance = random.Random(1)
        self.nodes, self.weights, self.at, self.side = [], [], "x", 96

    def constant(self, shape):
        count, name = 1, f"w{len(self.weights)}"
        for d in shape:
            count *= d
        reach = (6 / max(1, count // shape[0])) ** 0.5
        data = array.array("f", (self.chance.uniform(-reach, reach) for _ in range(count)))
        self.weights.append(piece(5, b"".join(number(1, d) for d in shape) + number(2, 1) + piece(8, name) +
                                  piece(9, data.tobytes())))
        return name

    def add(self, operator, inputs, **attributes):
        output = f"t{len(self.nodes)}"
        self.nodes.append(node(operator, [self.at] + inputs, output, **attributes))
        self.at = output

    def convolve(self, shape, stride, group=1):
        """as TensorFlow pads: at the right and the bottom first"""
        kernel = shape[2]
        more = kernel - stride if kernel > 1 else 0
        pads = [more // 2, more // 2, more - more // 2, more - more // 2]
        self.add("Conv", [self.constant(shape), self.constant(shape[:1])], strides=[stride, stride], group=group, pads=pads)
        self.add("Relu", [])


def mobilenet():
    net, depth = Network(), 8
    net.convolve([8, 3, 3, 3], 2)
    for channels, stride in LAYERS:
        net.convolve([depth, 1, 3, 3], stride, group=depth)
        net.convolve([channels, depth, 1, 1], 1)
        depth = channels
    net.add("GlobalAveragePool", [])
    net.add("Flatten", [])
    net.add("Gemm", [net.constant([2, depth]), net.constant([2])], transB=1)
    net.add("Softmax", [])
    graph = b"".join(net.nodes) + piece(2, "vww_float") + b"".join(net.weights)
    graph += port(11, "x", [1, 3, 96, 96]) + port(12, net.at, [1, 2])
    return number(1, 7) + piece(8, piece(1, "") + number(2, 13)) + piece(7, graph)
