"""Small ONNX models, encoded by hand: seeds of fuzz_onnx and cases of tests/test_onnx.c."""
import struct


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


FLOAT, INT64 = 1, 7


def tensor(name, dims, values, kind=FLOAT):
    raw = struct.pack(f"<{len(values)}{'f' if kind == FLOAT else 'q'}", *values)
    return b"".join(number(1, d) for d in dims) + number(2, kind) + data(8, name) + data(9, raw)


def attribute(name, value):
    out = data(1, name)
    if isinstance(value, bytes):  # an encoded tensor or graph
        return out + value
    if isinstance(value, str):
        return out + data(4, value) + number(20, 3)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, int):
        return out + number(3, value) + number(20, 2)
    return out + b"".join(number(8, v) for v in value) + number(20, 7)


def node(op, inputs, outputs, domain="", **attributes):
    return (b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs) +
            data(4, op) + b"".join(data(5, attribute(k, v)) for k, v in attributes.items()) +
            (data(7, domain) if domain else b""))


def value(name, dims, kind=FLOAT):
    shape = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    return data(1, name) + data(2, data(1, number(1, kind) + data(2, shape)))


def graph(nodes, inputs, outputs, initializers=()):
    return (b"".join(data(1, n) for n in nodes) + data(2, "g") +
            b"".join(data(5, t) for t in initializers) + b"".join(data(11, i) for i in inputs) +
            b"".join(data(12, o) for o in outputs))


def model(nodes, inputs, outputs, initializers=(), opset=13, functions=(), domains=()):
    opsets = data(8, number(2, opset))
    opsets += b"".join(data(8, data(1, d) + number(2, 1)) for d in domains)
    return (number(1, 8) + data(7, graph(nodes, inputs, outputs, initializers)) + opsets +
            b"".join(data(25, f) for f in functions))


def models():
    yield "attention", attention()
    yield "cache", cache()
    # a sum over two letters, a stack of products, and a result that the equation does not name
    yield "einsum", model(
        [node("Einsum", ["x", "w"], ["q"], equation="btd, hdk -> bhtk"),
         node("Einsum", ["q", "q"], ["scores"], equation="bhtk,bhsk->bhts"),
         node("Einsum", ["scores", "q", "v"], ["y"], equation="bhts,bhsk,ht->bk"),
         node("Einsum", ["v"], ["z"], equation="ji")],
        [value("x", [1, "t", 4]), value("v", [2, "t"])], [value("y", []), value("z", [])],
        [tensor("w", [2, 4, 3], [0.5] * 24)])
    # gradients, and a step of training
    yield "gradients", model(
        [node("ConvGrad", ["d", "x", "w"], ["dx", "dw", "db"], strides=[2, 1], pads=[1, 0, 0, 0], group=2),
         node("LayerNormalizationGrad", ["dx", "x", "g", "g"], ["dn"], epsilon=0.01),
         node("SoftmaxGrad_13", ["dn", "x"], ["ds"], axis=1), node("GeluGrad", ["ds", "x"], ["y"]),
         node("SGD", ["w", "dw"], ["new"], lr=0.5)],
        [value("d", [1, 2, 2, 2]), value("x", [1, 2, 3, 4])], [value("y", []), value("new", [])],
        [tensor("w", [2, 1, 2, 3], [0.5] * 12), tensor("g", [4], [1.0] * 4)])
    # a convolution, its nodes in the wrong order, its padding automatic
    yield "conv", model(
        [node("Relu", ["c"], ["y"]),
         node("Conv", ["x", "w"], ["c"], auto_pad="SAME_UPPER", strides=[2, 2])],
        [value("x", [1, 1, 4, 4])], [value("y", [1, 2, 2, 2])],
        [tensor("w", [2, 1, 3, 3], [1.0] * 18)])
    # a reshape whose shape is computed of an open dimension
    yield "shapes", model(
        [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"], axis=0),
         node("Mul", ["n", "two"], ["m"]), node("Unsqueeze", ["m", "axis"], ["u"]),
         node("Concat", ["u", "rest"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"])],
        [value("x", ["batch", 4, 6])], [value("y", [])],
        [tensor("zero", [], [0], INT64), tensor("two", [], [2], INT64),
         tensor("axis", [1], [0], INT64), tensor("rest", [2], [-1, 3], INT64)])
    # pads as torch computes them: axes the other way round, their ends turned into pairs
    yield "pads", model(
        [node("ConstantOfShape", ["two"], ["z"], value=data(5, tensor("", [1], [0], INT64)) + number(20, 4)),
         node("Concat", ["given", "z"], ["c"], axis=0), node("Reshape", ["c", "pairs"], ["r"]),
         node("Slice", ["r", "last", "first", "axis", "last"], ["f"]), node("Transpose", ["f"], ["t"], perm=[1, 0]),
         node("Reshape", ["t", "last"], ["l"]), node("Cast", ["l"], ["p"], to=INT64), node("Pad", ["x", "p"], ["y"])],
        [value("x", [4, 6])], [value("y", [])],
        [tensor("two", [1], [2], INT64), tensor("given", [2], [1, 2], INT64),
         tensor("pairs", [2], [-1, 2], INT64), tensor("last", [1], [-1], INT64),
         tensor("first", [1], [-(1 << 63) + 1], INT64), tensor("axis", [1], [0], INT64)])
    # old versions: a flat softmax, bounds as attributes, a list of axes
    yield "old", model(
        [node("Clip", ["x"], ["c"], min=0.0, max=6.0), node("Softmax", ["c"], ["s"], axis=1),
         node("ReduceSum", ["s"], ["r"], axes=[-1], keepdims=0),
         node("Slice", ["r"], ["y"], starts=[-1], ends=[1 << 40], axes=[1])],
        [value("x", [2, 3, 4])], [value("y", [])], opset=9)
    # a bound that no integer reaches
    yield "great_bound", model([node("Clip", ["x"], ["y"], min=-1e20, max=1e20)], [value("x", [2])],
                               [value("y", [2])], opset=9)
    # a function of the model, called twice, whose attribute is the caller's
    twice = (data(1, "Twice") + data(4, "a") + data(5, "b") + data(6, "slope") +
             data(7, data(1, "a") + data(2, "t") + data(4, "LeakyRelu") +
                  data(5, data(1, "alpha") + number(20, 1) + data(21, "slope"))) +
             data(7, node("Add", ["t", "t"], ["b"])) + data(9, number(2, 13)) + data(10, "mine"))
    yield "function", model(
        [node("Twice", ["x"], ["h"], "mine", slope=0.5),
         node("Twice", ["h"], ["y"], "mine", slope=0.25)],
        [value("x", [2])], [value("y", [2])], functions=[twice], domains=["mine"])
    # a condition that is known; both branches use the graph's x
    branches = {f"{name}_branch": data(6, graph([node(op, ["x"], ["b"])], [], [value("b", [2])])) +
                number(20, 5) for name, op in (("then", "Neg"), ("else", "Abs"))}
    yield "branch", model(
        [node("Constant", [], ["five"], value_int=5),
         node("Greater", ["five", "five"], ["c"]), node("If", ["c"], ["y"], **branches)],
        [value("x", [2])], [value("y", [2])])
    # constants in every form, a slice backwards, and an output that is an input
    yield "constants", model(
        [node("Constant", [], ["f"], value_float=1.5),
         node("Constant", [], ["i"], value_ints=[-1]), node("Constant", [], ["e"], value_ints=[-9]),
         node("Constant", [], ["zero"], value=data(5, tensor("", [1], [0], INT64)) + number(20, 4)),
         node("Slice", ["x", "i", "e", "zero", "i"], ["r"]), node("Mul", ["r", "f"], ["y"]),
         node("ConstantOfShape", ["three"], ["z"],
              value=data(5, tensor("", [1], [2.0])) + number(20, 4))],
        [value("x", [4, "n"])], [value("y", []), value("z", []), value("x", [])],
        [tensor("three", [1], [3], INT64)])


def attention():
    """Attention of any number of images and tokens, as PyTorch writes it out."""
    def c(name, values, dims=None):
        return tensor(name, [len(values)] if dims is None else dims, values, INT64)

    one = data(5, tensor("", [1], [1], INT64)) + number(20, 4)
    nodes = [
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "i0"], ["b"], axis=0),
        node("Gather", ["s", "i1"], ["t"], axis=0), node("Unsqueeze", ["b", "a0"], ["bu"]),
        node("Unsqueeze", ["t", "a0"], ["tu"]),
        node("Concat", ["bu", "tu", "heads"], ["qs"], axis=0), node("MatMul", ["x", "w"], ["q0"]),
        node("Reshape", ["q0", "qs"], ["q1"]), node("Transpose", ["q1"], ["q"], perm=[0, 2, 1, 3]),
        node("Transpose", ["q1"], ["k"], perm=[0, 2, 3, 1]), node("MatMul", ["q", "k"], ["scores"]),
        node("Range", ["i0", "t", "i1"], ["at"]), node("Unsqueeze", ["at", "a0"], ["row"]),
        node("Unsqueeze", ["at", "a1"], ["column"]), node("LessOrEqual", ["row", "column"], ["m"]),
        node("Concat", ["bu", "a1", "tu", "tu"], ["ms"], axis=0), node("Shape", ["ms"], ["mr"]),
        node("ConstantOfShape", ["mr"], ["ones"], value=one), node("Mul", ["ones", "minus"], ["neg"]),
        node("Equal", ["ms", "neg"], ["open"]), node("Where", ["open", "ones", "ms"], ["ms2"]),
        node("Expand", ["m", "ms2"], ["mask"]), node("Where", ["mask", "scores", "low"], ["masked"]),
        node("Softmax", ["masked"], ["p"], axis=-1), node("MatMul", ["p", "q"], ["o"]),
        node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        node("Concat", ["bu", "tu", "minus"], ["os"], axis=0), node("Reshape", ["ot", "os"], ["all"]),
        node("Slice", ["all", "minus", "end", "a1"], ["last"]), node("Squeeze", ["last", "a1"], ["y"]),
        node("Sub", ["tu", "a1"], ["t1"]), node("Slice", ["all", "a0", "t1", "a1"], ["rest"])]
    return model(nodes, [value("x", ["batch", "seq", 16])], [value("y", []), value("rest", [])],
                 [c("i0", [0], []), c("i1", [1], []), c("a0", [0]), c("a1", [1]), c("heads", [2, 8]),
                  c("minus", [-1]), c("end", [(1 << 63) - 1]), tensor("low", [], [-1e4]),
                  tensor("w", [16, 16], [0.25] * 256)], opset=17)


def cache():
    """The mask and positions of new tokens behind a cache, a mask's length a sum of both."""
    def c(name, values, dims=None):
        return tensor(name, [len(values)] if dims is None else dims, values, INT64)

    one = data(5, tensor("", [1], [1], INT64)) + number(20, 4)
    low = data(5, tensor("", [1], [-8.0])) + number(20, 4)
    nodes = [
        node("Shape", ["p"], ["ps"]), node("Gather", ["ps", "i0"], ["past"], axis=0), node("Shape", ["x"], ["xs"]),
        node("Gather", ["xs", "i0"], ["new"], axis=0), node("Add", ["past", "new"], ["all"]),
        node("Range", ["past", "all", "i1"], ["at"]), node("Add", ["past", "i1"], ["diagonal"]),
        node("Unsqueeze", ["new", "a0"], ["nu"]), node("Unsqueeze", ["all", "a0"], ["au"]),
        node("Concat", ["nu", "au"], ["square"], axis=0), node("ConstantOfShape", ["square"], ["full"], value=low),
        node("Trilu", ["full", "diagonal"], ["upper"]), node("Add", ["upper", "mask"], ["y"]),
        # expand(new, -1), as PyTorch writes it
        node("Concat", ["nu", "minus"], ["es"], axis=0), node("Shape", ["es"], ["er"]),
        node("ConstantOfShape", ["er"], ["ones"], value=one), node("Mul", ["ones", "minus"], ["neg"]),
        node("Equal", ["es", "neg"], ["open"]), node("Where", ["open", "ones", "es"], ["es2"]),
        node("Expand", ["row", "es2"], ["rows"]), node("Add", ["rows", "x"], ["z"])]
    return model(nodes, [value("mask", ["past + new"]), value("p", ["past", 4]), value("x", ["new", 4])],
                 [value("at", [], INT64), value("y", []), value("z", [])],
                 [c("i0", [0], []), c("i1", [1], []), c("a0", [0]), c("minus", [-1]), tensor("row", [1, 4], [0.5] * 4)],
                 opset=14)


def refused():
    x, y = [value("x", [2])], [value("y", [2])]
    yield "bad_cycle", model([node("Add", ["x", "b"], ["a"]), node("Abs", ["a"], ["b"]),
                              node("Neg", ["b"], ["y"])], x, y)
    yield "bad_operator", model([node("Frobnicate", ["x"], ["y"])], x, y)
    yield "bad_version", model([node("Add", ["x", "x"], ["y"])], x, y, opset=6)
    yield "bad_attribute", model([node("Relu", ["x"], ["y"], alpha=1.0)], x, y)
    yield "bad_name", model([node("Abs", ["x"], ["y"]), node("Neg", ["x"], ["y"])], x, y)
    yield "bad_domain", model([node("Abs", ["x"], ["y"], "elsewhere")], x, y)
    yield "bad_shape", model([node("Reshape", ["x", "s"], ["y"])], x + [value("s", [1], INT64)], y)
    yield "bad_type", model([node("Abs", ["x"], ["y"])], [value("x", [2], 8)], y)
    endless = (data(1, "F") + data(4, "a") + data(5, "b") + data(7, node("F", ["a"], ["b"], "mine"))
               + data(9, data(1, "mine") + number(2, 1)) + data(10, "mine"))
    yield "bad_depth", model([node("F", ["x"], ["y"], "mine")], x, y, functions=[endless],
                             domains=["mine"])
