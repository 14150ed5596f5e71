"""Writes MLPerf Tiny's visual wake words network (MobileNet 0.25 on 96x96x3) in float32 or float16, and its keyword spotter in
float16, as ONNX files: their structure, with weights drawn by chance, for no trained ones are published so but inside other formats.
Instructions do not depend on them.
"""
import random
import struct

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


def port(field, name, kind, shape):
    dims = b"".join(piece(1, number(1, d)) for d in shape)
    return piece(field, piece(1, name) + piece(2, piece(1, number(1, kind) + piece(2, dims))))


class Network:
    def __init__(self, half):
        self.chance = random.Random(1)
        self.nodes, self.weights, self.at = [], [], "x"
        self.code, self.kind = ("e", 10) if half else ("f", 1)  # struct's letter of the elements and ONNX's number

    def constant(self, shape):
        count, name = 1, f"w{len(self.weights)}"
        for d in shape:
            count *= d
        reach = (6 / max(1, count // shape[0])) ** 0.5
        data = struct.pack(f"<{count}{self.code}", *(self.chance.uniform(-reach, reach) for _ in range(count)))
        self.weights.append(piece(5, b"".join(number(1, d) for d in shape) + number(2, self.kind) + piece(8, name) + piece(9, data)))
        return name

    def add(self, operator, inputs, **attributes):
        output = f"t{len(self.nodes)}"
        self.nodes.append(node(operator, [self.at] + inputs, output, **attributes))
        self.at = output

    def convolve(self, shape, stride, group=1):
        """as TensorFlow pads: at the right and the bottom first"""
        more = [max(kernel - stride, 0) for kernel in shape[2:]]
        pads = [m // 2 for m in more] + [m - m // 2 for m in more]
        self.add("Conv", [self.constant(shape), self.constant(shape[:1])], strides=[stride, stride], group=group, pads=pads)
        self.add("Relu", [])

    def separable(self, depth, channels, stride):
        self.convolve([depth, 1, 3, 3], stride, group=depth)
        self.convolve([channels, depth, 1, 1], 1)

    def finish(self, name, shape, depth, classes):
        self.add("GlobalAveragePool", [])
        self.add("Flatten", [])
        self.add("Gemm", [self.constant([classes, depth]), self.constant([classes])], transB=1)
        self.add("Softmax", [])
        graph = b"".join(self.nodes) + piece(2, name) + b"".join(self.weights)
        graph += port(11, "x", self.kind, shape) + port(12, self.at, self.kind, [1, classes])
        return number(1, 7) + piece(8, piece(1, "") + number(2, 13)) + piece(7, graph)


def mobilenet(half=False):
    net, depth = Network(half), 8
    net.convolve([8, 3, 3, 3], 2)
    for channels, stride in LAYERS:
        net.separable(depth, channels, stride)
        depth = channels
    return net.finish("vww_half" if half else "vww_float", [1, 3, 96, 96], depth, 2)


def mobilenet_half():
    return mobilenet(half=True)


def keywords_half():
    net = Network(half=True)
    net.convolve([64, 1, 10, 4], 2)
    for _ in range(4):
        net.separable(64, 64, 1)
    return net.finish("kws_half", [1, 1, 49, 10], 64, 12)
