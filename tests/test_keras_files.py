#!/usr/bin/env python3
"""Keras files of every version, made by keras_files.py, against NumPy; and hostile ones. TAP.

    tests/test_keras_files.py MUC

Skipped without h5py.
"""
import copy
import json
import os
import pathlib
import sys
import tempfile
import zipfile

from files import (MALFORMED, ROOT, UNSUPPORTED, USAGE, close, muc, run_network, run_tests,
                   write_npz)

try:
    import h5py  # noqa: F401
except ImportError:
    print("1..0 # SKIP no h5py")
    sys.exit(0)

import numpy as np  # noqa: E402

import keras_files as k  # noqa: E402
from keras_files import Layer, conv, dense, norm  # noqa: E402

sys.path.insert(0, str(ROOT / "fuzz"))
import keras_seeds as seeds  # noqa: E402

WORK = tempfile.TemporaryDirectory()


def put(name, data):
    path = pathlib.Path(WORK.name) / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def check(data, net, outputs, version, first=False, arch=None):
    """muc's results of a file are NumPy's of the network."""
    given, arrays = {}, []
    for layer in net:
        if layer.kind == "input":
            x = k.array(1, *layer.options["shape"])
            given[layer.name] = np.moveaxis(x, 1, -1) if first and x.ndim > 2 else x
            arrays.append((x.shape, x.ravel().tolist()))
    values = k.run(net, {n: x.astype("f8") for n, x in given.items()}, version)
    more = ["--arch", put("arch.json", arch)] if arch else []
    found = run_network(put("model", data), *more, inputs=arrays)
    assert len(found) == len(outputs)
    for (_, dims, got), name in zip(found, outputs):
        expected = values[name]
        if first and expected.ndim == 4:
            expected = np.moveaxis(expected, -1, 1)
        assert list(expected.shape) == dims, (name, expected.shape, dims)
        close(got, expected.ravel().tolist())


def plain(first=False):
    """A network whose every layer is there since Keras 1."""
    shape = (3, 9, 8) if first else (9, 8, 3)
    return [Layer("input", "in", [], shape=shape),
            Layer("zero_padding", "pad", "in", padding=[[1, 2], [0, 1]], first=first),
            conv("c1", "pad", 3, 6, padding="valid", activation="relu", strides=(2, 1), first=first),
            norm("n1", "c1", 6, first=first),
            Layer("max_pool", "p1", "n1", pool_size=(2, 2), strides=(1, 1), padding="same",
                  first=first),
            conv("c2", "p1", 6, 4, padding="same", first=first),
            Layer("activation", "a2", "c2", activation="tanh"),
            Layer("average_pool", "p2", "a2", pool_size=(2, 2), first=first),
            Layer("up_sampling", "u", "p2", size=(2, 1), first=first),
            Layer("dropout", "drop", "u"), Layer("flatten", "f", "drop", first=first),
            dense("d", "f", 4 * 3 * 4, 5, activation="hard_sigmoid"),
            Layer("activation", "s", "d", activation="softmax")]


def test_sequential_models_of_every_version_are_read():
    net = plain()
    layers = net[1:]
    check(k.h5(layers, 1, k.sequential_document(net, 1, as_list=True)), net, ["s"], 1)
    check(k.h5(layers, 2, k.sequential_document(net, 2, as_list=True)), net, ["s"], 2)
    check(k.h5(layers, 2, k.sequential_document(net, 2), fixed=True), net, ["s"], 2)
    check(k.h5(net, 3, k.sequential_document(net, 3), libver="latest"), net, ["s"], 3)
    check(k.keras(net, k.sequential_document(net, 3)), net, ["s"], 3)
    check(k.keras(net, k.sequential_document(net, 3), compression=zipfile.ZIP_DEFLATED), net, ["s"], 3)
    check(k.keras(net, k.sequential_document(net, 3), "_layer_checkpoint_dependencies",
                  version="2.12.0"), net, ["s"], 2)


def test_kernels_of_theano_are_turned():
    net = plain()
    check(k.h5(net[1:], 2, k.sequential_document(net, 2), theano=True), net, ["s"], 2)


def test_channels_may_come_first():
    net = plain(first=True)
    check(k.h5(net[1:], 1, k.sequential_document(net, 1, as_list=True)), net, ["s"], 1, first=True)
    check(k.h5(net[1:], 2, k.sequential_document(net, 2)), net, ["s"], 2, first=True)
    check(k.keras(net, k.sequential_document(net, 3)), net, ["s"], 3, first=True)
    net = [Layer("input", "in", [], shape=(4, 6, 6)),
           Layer("depthwise", "dw", "in", [("depthwise_kernel", k.array(3, 3, 4, 2)),
                                           ("bias", k.array(8))], padding="same", first=True),
           Layer("separable", "sep", "dw", [("depthwise_kernel", k.array(3, 3, 8, 1)),
                                            ("pointwise_kernel", k.array(1, 1, 8, 6)),
                                            ("bias", k.array(6))], first=True),
           conv("g", "sep", 6, 6, size=1, groups=3, first=True),
           Layer("conv_transpose", "up", "g", [("kernel", k.array(3, 2, 5, 6)), ("bias", k.array(5))],
                 strides=(2, 1), padding="same", first=True),
           Layer("cropping", "crop", "g", cropping=[[1, 0], [0, 1]], first=True),
           Layer("concatenate", "cat", ["crop", "crop"], first=True),
           Layer("global_average_pool", "gap", "cat", first=True),
           Layer("global_max_pool", "gmp", "cat", first=True)]
    out = ["gap", "gmp", "cat", "up"]
    check(k.h5(net, 2, k.functional_document(net, ["in"], out, 2)), net, out, 2, first=True)


def weights_alone(net, group):
    return k.h5(net, 2, None, group=group)


def test_weights_alone_take_a_configuration():
    import json
    net = plain()
    document = json.dumps(k.sequential_document(net, 2))
    check(weights_alone(net[1:], ""), net, ["s"], 2, arch=document)
    check(k.weights_h5(net), net, ["s"], 3,
          arch=json.dumps(k.sequential_document(net, 3) | {"module": "keras"}))
    muc("inspect", put("model", weights_alone(net[1:], "")), status=USAGE, message="--arch FILE")
    muc("inspect", put("model", k.h5(net[1:], 2, k.sequential_document(net, 2))), "--arch",
        put("arch.json", document), status=USAGE, message="a network of its own")


def everything():
    net = [Layer("input", "x", [], shape=(8, 8, 4)), Layer("input", "y", [], shape=(8, 8, 4))]
    out = []

    def add(layer):
        net.append(layer)
        return layer.name

    def output(layer):
        out.append(add(layer))

    for i, name in enumerate(["relu", "tanh", "relu6", "sigmoid", "elu", "softplus", "softsign", "swish",
                              "selu", "exponential", "softmax", "hard_sigmoid", "linear"]):
        output(Layer("activation", f"act{i}", "x", activation=name))
    for i, options in enumerate([{}, {"max_value": 0.5}, {"negative_slope": 0.25},
                                 {"negative_slope": 0.25, "max_value": 0.5}, {"threshold": 0.3}]):
        output(Layer("relu", f"relu{i}", "x", **options))
    output(Layer("leaky_relu", "leaky", "x", slope=0.3))
    output(Layer("elu", "elu", "x", alpha=0.7))
    output(Layer("prelu", "prelu", "x", [("alpha", k.array(1, 1, 4))], shared_axes=[1, 2]))
    output(Layer("prelu", "prelu_all", "x", [("alpha", k.array(8, 8, 4))]))
    output(Layer("softmax", "soft", "x"))
    for kind in k.MERGES:
        output(Layer(kind, kind, ["x", "y"]))
    output(Layer("add", "add3", ["x", "y", "leaky"]))
    depthwise = add(Layer("depthwise", "dw", "y", [("depthwise_kernel", k.array(3, 3, 4, 2)),
                                                   ("bias", k.array(8))],
                          strides=(2, 2), padding="same", activation="relu"))
    output(Layer("separable", "sep", depthwise,
                 [("depthwise_kernel", k.array(3, 3, 8, 1)), ("pointwise_kernel", k.array(1, 1, 8, 3)),
                  ("bias", k.array(3))], padding="same"))
    grouped = add(conv("grouped", "x", 4, 6, groups=2))
    for i, (size, strides, padding) in enumerate((((3, 3), (2, 2), "same"), ((2, 3), (1, 2), "valid"),
                                                  ((2, 1), (3, 2), "valid"), ((1, 2), (2, 2), "same"))):
        output(Layer("conv_transpose", f"up{i}", "x", [("kernel", k.array(*size, 5, 4)),
                                                       ("bias", k.array(5))],
                     strides=strides, padding=padding))
    dilated = conv("dilated", "y", 4, 3, dilation_rate=2)
    dilated.weights.pop()  # no bias
    output(dilated)
    output(norm("plain_norm", grouped, 6, epsilon=0.01))
    bare = norm("bare_norm", grouped, 6)
    bare.weights = bare.weights[2:]  # neither scale nor center
    output(bare)
    output(Layer("layer_norm", "ln", "x", [("gamma", k.array(4)), ("beta", k.array(4))]))
    output(Layer("zero_padding", "pad", "x", padding=[[1, 0], [2, 3]]))
    output(Layer("cropping", "crop", "x", cropping=[[1, 2], [0, 3]]))
    output(Layer("permute", "perm", "x", dims=[3, 1, 2]))
    output(Layer("reshape", "shape", "x", target_shape=[16, 16]))
    output(Layer("rescaling", "scaled", "x", scale=0.5, offset=-1))
    output(Layer("global_max_pool", "gmp", "x"))
    output(Layer("global_average_pool", "kept", "x", keepdims=True))
    output(dense("points", "x", 4, 2))
    output(dense("end", add(Layer("flatten", "flat", "x")), 256, 3, activation="sigmoid"))
    return net, out


def test_every_layer_gives_what_numpy_gives():
    net, out = everything()
    for version, make in ((2, k.h5), (3, k.h5)):
        check(make(net, version, k.functional_document(net, ["x", "y"], out, version)), net, out,
              version)
    check(k.keras(net, k.functional_document(net, ["x", "y"], out, 3)), net, out, 3)


def test_functional_models_of_keras_1_are_read():
    net = [Layer("input", "x", [], shape=(6, 6, 3)), conv("c", "x", 3, 4, padding="same"),
           conv("d", "x", 3, 4, padding="same", activation="relu")]
    net += [Layer(kind, kind, ["c", "d"]) for kind in k.MODES]
    check(k.h5(net, 1, k.functional_document(net, ["x"], list(k.MODES), 1)), net, list(k.MODES), 1)


def nested():
    """A model that is called twice, inside of another that has two outputs; a layer called twice."""
    core = [Layer("input", "i", [], shape=(6, 6, 4)), conv("c", "i", 4, 4, padding="same"),
            norm("n", "c", 4), Layer("add", "sum", ["i", "n"])]
    middle = [Layer("input", "m", [], shape=(6, 6, 4)),
              Layer("model", "core", "m", net=core, inputs=["i"], outputs=["sum"]).again("core"),
              conv("c", "core@1", 4, 2)]
    net = [Layer("input", "x", [], shape=(6, 6, 4)), conv("c", "x", 4, 4, size=1).again("c"),
           Layer("model", "middle", "c@1", net=middle, inputs=["m"], outputs=["c", "core"]),
           Layer("flatten", "f", "middle"), dense("d", "f", 32, 3),
           Layer("global_average_pool", "g", "middle:1")]
    return net, ["d", "g"]


def test_models_in_models_and_shared_layers_share_their_weights():
    net, out = nested()
    check(k.keras(net, k.functional_document(net, ["x"], out, 3)), net, out, 3)
    net[2].options["net"][2].name = "last"  # names in a group of a .h5 are those of layers alone
    net[2].options["outputs"][0] = "last"
    for version in (2, 3):
        check(k.h5(net, version, k.functional_document(net, ["x"], out, version)), net, out, version)
    text = muc("inspect", put("model", k.h5(net, 2, k.functional_document(net, ["x"], out, 2))))
    assert f"parameters    {16 + 4 + 3 * 3 * 16 + 4 + 16 + 3 * 3 * 8 + 2 + 96 + 3}\n" in text, text


def test_groups_of_many_members_are_found():
    net = [Layer("input", "x", [], shape=(3,))]
    for i in range(300):
        net.append(dense(f"d{i}", net[-1].name, 3, 3) if i % 100 == 7 else
                   Layer("activation", f"a{i}", net[-1].name, activation="tanh"))
    for libver in ("earliest", "latest"):
        data = k.h5(net, 2, k.functional_document(net, ["x"], [net[-1].name], 2), libver=libver)
        check(data, net, [net[-1].name], 2)


def test_a_u_net_becomes_code_that_verifies():
    """Skips, pools, transposed convolutions and repeated pixels, in float32 and in int8."""
    net = [Layer("input", "x", [], shape=(8, 8, 3)),
           conv("c1", "x", 3, 4, padding="same", activation="relu"),
           Layer("max_pool", "p", "c1", pool_size=(2, 2)), norm("n", "p", 4),
           Layer("conv_transpose", "t", "n", [("kernel", k.array(2, 2, 5, 4)), ("bias", k.array(5))],
                 strides=(2, 2), padding="same"),
           Layer("up_sampling", "u", "n", size=(2, 2)), Layer("concatenate", "cat", ["c1", "t", "u"]),
           conv("end", "cat", 13, 2, size=1, activation="sigmoid")]
    model = put("unet", k.keras(net, k.functional_document(net, ["x"], ["end"], 3)))
    image, samples = put("x.npz", b""), put("samples.npz", b"")
    write_npz(image, [((1, 8, 8, 3), k.array(192).tolist())])
    write_npz(samples, [((4, 8, 8, 3), k.array(768).tolist())])
    for quant in ([], ["--quant", "int8", "--calib", samples]):
        code = pathlib.Path(WORK.name) / f"code{len(quant)}"
        muc("compile", model, *quant, "--target", "mcu", "--machine", "stm32f746", "-o", code)
        muc("verify", code, model, *quant, "--input", image)


# ---- files that are refused ----

def refused(data, status, message, **more):
    muc("run", put("model", data), status=status, message=message, **more)


def test_nothing_outside_of_a_file_is_opened():
    for make, message in ((seeds.outside, "in another file"), (seeds.soft, "a soft link"),
                          (seeds.external, "an external link"), (seeds.fletcher, "filter 3")):
        refused(seeds.h5(put=make), UNSUPPORTED, message)
    refused(seeds.h5("latest", put=seeds.virtual), UNSUPPORTED, "a virtual array")
    refused(seeds.h5("latest", put=seeds.external), UNSUPPORTED, "an external link")
    refused(seeds.h5(put=seeds.unwritten), MALFORMED, "array at")
    plugin = os.environ | {"HDF5_PLUGIN_PATH": WORK.name}
    refused(seeds.h5(put=seeds.fletcher), UNSUPPORTED, "filter 3", env=plugin)


def test_a_changed_byte_of_a_header_shows_in_its_checksum():
    data = bytearray(seeds.h5("latest"))
    for at, name in ((8 + 3, "superblock"), (data.index(b"OHDR") + 8, "object header")):
        data[at] ^= 1
        refused(bytes(data), MALFORMED, f"the {name} at")
        data[at] ^= 1
    muc("inspect", put("model", bytes(data)))


def test_every_storage_of_reals_gives_the_same():
    net = [Layer("input", "x", [], shape=(2,)),
           Layer("dense", "d", "x", [("kernel", seeds.KERNEL), ("bias", seeds.BIAS)], activation="relu")]
    for make in (seeds.plain, seeds.chunked, seeds.compact, seeds.big_endian, seeds.one_chunk):
        for libver in ("earliest", "latest"):
            if make is seeds.chunked and libver == "latest":
                refused(seeds.h5(libver, put=make), UNSUPPORTED, "chunks with an index of kind")
            else:
                check(seeds.h5(libver, put=make), net, ["d"], 2)


def changed(change, net=None, outputs=("s",)):
    """A file of a sequential or given functional model whose configuration was changed."""
    net = net or plain()
    document = copy.deepcopy(k.functional_document(net, ["in"], list(outputs), 2))
    change(document["config"])
    return k.h5(net, 2, document)


def test_a_wrong_configuration_names_file_and_layer():
    def layer(config, name):
        return next(item for item in config["layers"] if item["name"] == name)

    def option(name, key, value):
        return lambda config: layer(config, name)["config"].update({key: value})

    def inputs(name, *keys):
        return lambda config: layer(config, name).update(
            {"inbound_nodes": [[k.reference(key) + [{}] for key in keys]]})

    def kind(name, value):
        return lambda config: layer(config, name).update({"class_name": value})

    for change, status, message in (
            (kind("p1", "LSTM"), UNSUPPORTED, "an operator of the network: LSTM (1 node, 'p1'); muc ops"),
            (inputs("c1", "c2"), MALFORMED, "depends on itself"),
            (inputs("c1", "nobody"), MALFORMED, "its input 'nobody' is not a layer"),
            (inputs("c1", "pad@7"), MALFORMED, "a call that its layer does not have"),
            (inputs("c1", "pad:1"), MALFORMED, "output 1 of a layer that has 1"),
            (inputs("c1", "pad", "pad"), MALFORMED, "2 inputs, expected 1 to 1"),
            (option("c1", "strides", [0, 1]), MALFORMED, "\"strides|subsample|subsample_length\""),
            (option("c1", "strides", [1, 1 << 40]), MALFORMED, "of integers in range"),
            (option("c1", "padding", "full"), UNSUPPORTED, "padding 'full'"),
            (option("c1", "activation", "fancy"), UNSUPPORTED, "activation 'fancy'"),
            (option("c1", "data_format", "sideways"), UNSUPPORTED, "data_format 'sideways'"),
            (option("c1", "use_bias", False), MALFORMED, "2 arrays of weights, expected 1"),
            (option("c1", "groups", 2), MALFORMED, "'c1/linear'"),
            (option("n1", "axis", 2), UNSUPPORTED, "axis 2"),
            (option("pad", "padding", [[1, 1], [1, -1]]), MALFORMED, "\"padding\""),
            (option("u", "size", [1 << 19, 1]), UNSUPPORTED, "65536"),
            (option("in", "batch_input_shape", [None, None, 8, 3]), UNSUPPORTED, "dimension 1"),
            (lambda c: c["layers"].append(c["layers"][1]), MALFORMED, "two layers of this name"),
            (lambda c: c.update(output_layers=[]), UNSUPPORTED, "\"output_layers\""),
            (lambda c: c.update(layers=[]), UNSUPPORTED, "1 to 4096 layers")):
        refused(changed(change), status, message)
    refused(k.h5([], 2, {"class_name": "Subclassed", "config": {}}), UNSUPPORTED, "'Subclassed'")
    refused(k.h5([], 2, {"class_name": "Sequential"}), MALFORMED, "no class_name or config")


def test_a_model_with_unknown_layers_is_shown():
    net = [Layer("input", "in", [], shape=(2,)), Layer("activation", "a", "in", activation="relu")]
    document = k.functional_document(net, ["in"], ["a"], 2)
    document["config"]["layers"][1]["class_name"] = "Fancy"
    out = muc("inspect", put("model", k.h5(net, 2, document)), "--json", status=0)
    found = {(row["operator"], row["supported"]) for row in json.loads(out)["operators"]}
    assert found == {("InputLayer", True), ("Fancy", False)}, found


def test_calls_that_multiply_are_counted():
    net = [Layer("input", "i0", [], shape=(2,)), Layer("activation", "a", "i0", activation="relu")]
    last = "a"
    for i in range(1, 12):  # four calls of what is below, twelve times
        inner = Layer("model", f"m{i}", f"i{i}", net=net, inputs=[f"i{i - 1}"], outputs=[last])
        last = inner.name
        for _ in range(3):
            inner.again(last if len(inner.calls) == 1 else f"{last}@{len(inner.calls) - 1}")
        net = [Layer("input", f"i{i}", [], shape=(2,)), inner]
        last = f"{last}@3"
    refused(k.h5([], 2, k.functional_document(net, ["i11"], [last], 2)), UNSUPPORTED,
            "more than 16384 calls of layers")


def test_arrays_of_wrong_shapes_are_refused():
    for name, suffix, value in (("c1", "kernel", k.array(3, 3, 3)), ("c1", "kernel", k.array(3, 3, 2, 6)),
                                ("c1", "bias", k.array(5)), ("n1", "gamma", k.array(7)),
                                ("d", "kernel", k.array(47, 5))):
        net = plain()
        layer = next(item for item in net if item.name == name)
        layer.weights = [(s, value if s == suffix else w) for s, w in layer.weights]
        refused(k.h5(net, 2, k.functional_document(net, ["in"], ["s"], 2)), MALFORMED, name)


def test_a_file_that_is_cut_off_is_refused():
    net = plain()
    for data in (k.h5(net[1:], 2, k.sequential_document(net, 2)),
                 k.keras(net, k.sequential_document(net, 3))):
        for size in range(64, len(data) - 1, len(data) // 12):
            refused(data[:size], MALFORMED, "model")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
