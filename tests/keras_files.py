"""Keras files in the layouts of every version, made with h5py, and NumPy's idea of their results.

A network is a list of Layers in the order of their calls. Data are [batch, rows, columns, channels];
with channels first they are moved for the layer and back.
"""
import io
import json
import zipfile

import h5py
import numpy as np

RNG = np.random.default_rng(5)


def array(*dims):
    return (RNG.standard_normal(dims) * 0.5).astype("f4")


class Layer:
    """kind: a function of this module below; weights: [(suffix, array)]."""

    def __init__(self, kind, name, sources, weights=(), first=False, **options):
        self.kind, self.name, self.weights, self.options = kind, name, list(weights), options
        self.first = first  # channels
        self.calls = [sources if isinstance(sources, list) else [sources]]

    def again(self, *sources):
        """Another call, whose result is "name@1", .."""
        self.calls.append(list(sources))
        return self


def conv(name, x, channels, filters, size=3, groups=1, **options):
    return Layer("conv", name, x, [("kernel", array(size, size, channels // groups, filters)),
                                   ("bias", array(filters))], groups=groups, **options)


def norm(name, x, channels, **options):
    return Layer("norm", name, x, [("gamma", array(channels)), ("beta", array(channels)),
                                   ("moving_mean", array(channels)),
                                   ("moving_variance", abs(array(channels)) + 0.5)], **options)


def dense(name, x, units, outputs, **options):
    return Layer("dense", name, x, [("kernel", array(units, outputs)), ("bias", array(outputs))],
                 **options)


# ---- results ----

ACTIVATIONS = {
    None: lambda x: x, "linear": lambda x: x, "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh,
    "relu6": lambda x: np.clip(x, 0, 6), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)), "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + abs(x)), "swish": lambda x: x / (1 + np.exp(-x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "exponential": np.exp, "softmax": lambda x: softmax(x),
    "hard_sigmoid": lambda x: np.clip(x * 0.2 + 0.5, 0, 1),
    "hard_sigmoid_3": lambda x: np.clip(x / 6 + 0.5, 0, 1),
}


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def padded(x, size, strides, padding, dilation, value):
    if padding == "valid":
        return x
    around = []
    for d in (0, 1):
        span, n = (size[d] - 1) * dilation + 1, x.shape[1 + d]
        whole = max((-(-n // strides[d]) - 1) * strides[d] + span - n, 0)
        around.append((whole // 2, whole - whole // 2))
    return np.pad(x, [(0, 0), *around, (0, 0)], constant_values=value)


def windows(x, size, strides, dilation=1):
    """Each pixel of the window with all its places."""
    out = [(x.shape[1 + d] - (size[d] - 1) * dilation - 1) // strides[d] + 1 for d in (0, 1)]
    for i in range(size[0]):
        for j in range(size[1]):
            y, z = i * dilation, j * dilation
            yield i, j, x[:, y:y + out[0] * strides[0]:strides[0], z:z + out[1] * strides[1]:strides[1]]


def convolve(x, kernel, strides=(1, 1), padding="valid", dilation=1, groups=1):
    x = padded(x, kernel.shape, strides, padding, dilation, 0)
    n, m = x.shape[-1] // groups, kernel.shape[-1] // groups
    parts = []
    for g in range(groups):
        parts.append(sum(w[..., g * n:(g + 1) * n] @ kernel[i, j, :, g * m:(g + 1) * m]
                         for i, j, w in windows(x, kernel.shape, strides, dilation)))
    return np.concatenate(parts, -1)


def convolve_transposed(x, kernel, strides, padding):
    """Each pixel adds the kernel, times it, to the result; "same" cuts it to size * stride."""
    (kh, kw), (sh, sw) = kernel.shape[:2], strides
    n, h, w = x.shape[:3]
    y = np.zeros((n, h * sh + max(kh - sh, 0), w * sw + max(kw - sw, 0), kernel.shape[2]))
    for i in range(h):
        for j in range(w):
            y[:, i * sh:i * sh + kh, j * sw:j * sw + kw] += np.einsum("nc,hwoc->nhwo", x[:, i, j],
                                                                     kernel)
    top, left = max(kh - sh, 0) // 2, max(kw - sw, 0) // 2
    return y[:, top:top + h * sh, left:left + w * sw] if padding == "same" else y


def depthwise(x, kernel, **how):
    n, m = kernel.shape[2:]
    spread = np.zeros((*kernel.shape[:2], n, n * m))
    for c in range(n):
        spread[:, :, c, c * m:(c + 1) * m] = kernel[:, :, c]
    return convolve(x, spread, **how)


def pool(x, o, reduce, empty):
    size, strides = o["pool_size"], o.get("strides") or o["pool_size"]
    x = padded(x, size, strides, o.get("padding", "valid"), 1, empty)
    return reduce(np.stack([w for _, _, w in windows(x, size, strides)]))


def evaluate(layer, xs, version):
    o, w = layer.options, {k: v.astype("f8") for k, v in layer.weights}
    x = xs[0]
    window = {k: o[k] for k in ("strides", "padding", "groups") if k in o}
    if layer.kind == "conv":
        x = convolve(x, w["kernel"], dilation=o.get("dilation_rate", 1), **window) + w.get("bias", 0)
    elif layer.kind == "conv_transpose":
        x = convolve_transposed(x, w["kernel"], o["strides"], o["padding"]) + w["bias"]
    elif layer.kind == "depthwise":
        x = depthwise(x, w["depthwise_kernel"], **window) + w["bias"]
    elif layer.kind == "separable":
        x = convolve(depthwise(x, w["depthwise_kernel"], **window), w["pointwise_kernel"]) + w["bias"]
    elif layer.kind == "dense":
        x = x @ w["kernel"] + w.get("bias", 0)
    elif layer.kind == "norm":
        x = ((x - w["moving_mean"]) / np.sqrt(w["moving_variance"] + o.get("epsilon", 1e-3)) *
             w.get("gamma", 1) + w.get("beta", 0))
    elif layer.kind == "layer_norm":
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
        x = x * w["gamma"] + w["beta"]
    elif layer.kind == "max_pool":
        x = pool(x, o, lambda s: s.max(0), -np.inf)
    elif layer.kind == "average_pool":
        x = pool(x, o, lambda s: np.nanmean(s, 0), np.nan)
    elif layer.kind == "global_average_pool":
        x = x.mean((1, 2), keepdims=o.get("keepdims", False))
    elif layer.kind == "global_max_pool":
        x = x.max((1, 2))
    elif layer.kind == "relu":
        y = np.where(x >= o.get("threshold", 0), x, o.get("negative_slope", 0) * x)
        x = np.minimum(y, o["max_value"]) if o.get("max_value") is not None else y
    elif layer.kind == "leaky_relu":
        x = np.where(x > 0, x, o["slope"] * x)
    elif layer.kind == "prelu":
        x = np.where(x > 0, x, w["alpha"] * x)
    elif layer.kind == "elu":
        x = np.where(x > 0, x, o["alpha"] * np.expm1(x))
    elif layer.kind == "softmax":
        x = softmax(x)
    elif layer.kind == "zero_padding":
        x = np.pad(x, [(0, 0), *o["padding"], (0, 0)])
    elif layer.kind == "cropping":
        (t, b), (l, r) = o["cropping"]
        x = x[:, t:x.shape[1] - b, l:x.shape[2] - r]
    elif layer.kind == "up_sampling":
        x = x.repeat(o["size"][0], 1).repeat(o["size"][1], 2)
    elif layer.kind == "flatten":
        if layer.first and version == 1:
            x = np.moveaxis(x, -1, 1)
        x = x.reshape(len(x), -1)
    elif layer.kind == "reshape":
        x = x.reshape(len(x), *o["target_shape"])
    elif layer.kind == "permute":
        x = x.transpose(0, *o["dims"])
    elif layer.kind == "rescaling":
        x = x * o["scale"] + o["offset"]
    elif layer.kind in MERGES:
        x = MERGES[layer.kind](xs)
    elif layer.kind == "activation":
        pass
    elif layer.kind != "dropout":
        raise KeyError(layer.kind)
    name = o.get("activation")
    return ACTIVATIONS[f"{name}_3" if name == "hard_sigmoid" and version == 3 else name](x)


MERGES = {"add": sum, "multiply": lambda xs: xs[0] * xs[1], "subtract": lambda xs: xs[0] - xs[1],
          "average": lambda xs: sum(xs) / len(xs), "maximum": lambda xs: np.maximum(*xs),
          "minimum": lambda xs: np.minimum(*xs), "concatenate": lambda xs: np.concatenate(xs, -1)}


def run(net, given, version=2):
    """Values of every call's result: {"name", "name@1", ..}; given: of the inputs."""
    values = dict(given)
    places = [(layer, i, call) for layer in net for i, call in enumerate(layer.calls)]
    while places:
        layer, i, call = next(p for p in places if all(x in values for x in p[2]))
        places.remove((layer, i, call))
        key = layer.name + (f"@{i}" if i else "")
        xs = [values[x] for x in call]
        if layer.kind == "model":
            inner = run(layer.options["net"], dict(zip(layer.options["inputs"], xs)), version)
            for n, output in enumerate(layer.options["outputs"]):
                values[f"{key}:{n}" if n else key] = inner[output]
        elif layer.kind != "input":
            values[key] = evaluate(layer, xs, version)
    return values


# ---- configurations ----

CLASSES = {  # kind: class, class of Keras 1
    "input": ("InputLayer",), "conv": ("Conv2D", "Convolution2D"), "depthwise": ("DepthwiseConv2D",),
    "conv_transpose": ("Conv2DTranspose",),
    "separable": ("SeparableConv2D", "SeparableConvolution2D"), "dense": ("Dense",),
    "norm": ("BatchNormalization",), "layer_norm": ("LayerNormalization",),
    "max_pool": ("MaxPooling2D",), "average_pool": ("AveragePooling2D",),
    "global_average_pool": ("GlobalAveragePooling2D",), "global_max_pool": ("GlobalMaxPooling2D",),
    "relu": ("ReLU",), "leaky_relu": ("LeakyReLU",), "prelu": ("PReLU",), "elu": ("ELU",),
    "softmax": ("Softmax",), "zero_padding": ("ZeroPadding2D",), "cropping": ("Cropping2D",),
    "up_sampling": ("UpSampling2D",), "flatten": ("Flatten",), "reshape": ("Reshape",),
    "permute": ("Permute",), "dropout": ("Dropout",), "rescaling": ("Rescaling",),
    "activation": ("Activation",), "add": ("Add", "Merge"), "multiply": ("Multiply", "Merge"),
    "subtract": ("Subtract",), "average": ("Average", "Merge"), "maximum": ("Maximum", "Merge"),
    "minimum": ("Minimum",), "concatenate": ("Concatenate", "Merge"), "model": ("Functional", "Model"),
}
MODES = {"add": "sum", "multiply": "mul", "average": "ave", "maximum": "max", "concatenate": "concat"}
OLD = {"padding": "border_mode", "strides": "subsample", "use_bias": "bias"}


def class_of(layer, version):
    return CLASSES[layer.kind][-1 if version == 1 else 0]


def config(layer, version):
    o = dict(layer.options)
    if layer.kind == "model":
        return functional(o["net"], o["inputs"], o["outputs"], version) | {"name": layer.name}
    if layer.kind == "input":
        key = "batch_shape" if version == 3 else "batch_input_shape"
        return {"name": layer.name, key: [None, *o["shape"]]}
    w = dict(layer.weights)
    if layer.kind == "leaky_relu":
        o["negative_slope" if version == 3 else "alpha"] = o.pop("slope")
    if layer.kind == "norm":
        o |= {"axis": 1 if layer.first else -1, "epsilon": o.get("epsilon", 1e-3),
              "scale": "gamma" in w, "center": "beta" in w}
    if layer.kind in ("conv", "conv_transpose", "dense", "depthwise", "separable"):
        o["use_bias"] = "bias" in w
    if version > 1:
        if layer.kind == "conv":
            o |= {"filters": w["kernel"].shape[-1], "kernel_size": list(w["kernel"].shape[:2])}
        if layer.kind in ("conv", "conv_transpose", "flatten", "max_pool", "average_pool", "up_sampling",
                          "zero_padding", "cropping", "depthwise", "separable") or "pool" in layer.kind:
            o["data_format"] = "channels_first" if layer.first else "channels_last"
    else:
        if layer.kind == "conv":
            o |= {"nb_filter": w["kernel"].shape[-1], "nb_row": w["kernel"].shape[0],
                  "nb_col": w["kernel"].shape[1]}
            o.pop("groups", None)
        if layer.kind == "zero_padding":
            o["padding"] = [side for pair in o["padding"] for side in pair]
        if layer.kind in MODES:
            o |= {"mode": MODES[layer.kind], "concat_axis": 1 if layer.first else -1}
        if layer.kind in ("conv", "separable", "max_pool", "average_pool", "zero_padding",
                          "up_sampling", "global_average_pool", "global_max_pool"):
            o["dim_ordering"] = "th" if layer.first else "tf"
        pools = layer.kind in ("max_pool", "average_pool")
        o = {OLD.get(k, k) if layer.kind != "zero_padding" and not (pools and k == "strides") else k: v
             for k, v in o.items()}
    if layer.kind == "concatenate" and version > 1:
        o["axis"] = 1 if layer.first else -1
    return {"name": layer.name, **o}


def reference(key):
    name, _, output = key.partition(":")
    name, _, node = name.partition("@")
    return [name, int(node or 0), int(output or 0)]


def inbound(call, version):
    if version < 3:
        return [reference(x) + ([{}] if version == 2 else []) for x in call]
    tensors = [{"class_name": "__keras_tensor__",
                "config": {"shape": [None], "keras_history": reference(x)}} for x in call]
    return {"args": tensors if len(call) == 1 else [tensors], "kwargs": {"training": False}}


def functional(net, inputs, outputs, version):
    layers = [{"class_name": class_of(layer, version), "config": config(layer, version),
               "name": layer.name,
               "inbound_nodes": [] if layer.kind == "input" else
               [inbound(call, version) for call in layer.calls]} for layer in net]
    return {"name": "model", "layers": layers, "input_layers": [reference(x) for x in inputs],
            "output_layers": [reference(x) for x in outputs]}


def functional_document(net, inputs, outputs, version):
    return {"class_name": "Model" if version == 1 else "Functional",
            "config": functional(net, inputs, outputs, version)}


def sequential_document(net, version, as_list=False):
    """The input's shape stands on the first layer, in Keras 3 in a layer of its own."""
    layers = []
    for layer in net:
        if layer.kind == "input" and version < 3:
            shape = [None, *layer.options["shape"]]
            continue
        layers.append({"class_name": class_of(layer, version), "config": config(layer, version)})
        if version < 3 and len(layers) == 1:
            layers[0]["config"]["batch_input_shape"] = shape
    return {"class_name": "Sequential",
            "config": layers if as_list else {"name": "sequential", "layers": layers}}


# ---- files ----

OLD_WEIGHTS = {"kernel": "W", "bias": "b", "moving_mean": "running_mean",
               "moving_variance": "running_std", "alpha": "alphas"}


def named_weights(layer, version, theano=False):
    """[(name, array)] of a layer; of a model first what is trained, then what is not."""
    if layer.kind == "model":
        inner = [w for part in layer.options["net"] for w in named_weights(part, version)]
        return ([w for w in inner if "moving" not in w[0]] + [w for w in inner if "moving" in w[0]])
    out = []
    for suffix, value in layer.weights:
        if version == 1:
            if layer.kind == "conv" and suffix == "kernel" and layer.first:
                value = value.transpose(3, 2, 0, 1)
            out.append((f"{layer.name}_{OLD_WEIGHTS.get(suffix, suffix)}", value))
        else:
            if theano and layer.kind == "conv" and suffix == "kernel":
                value = value[::-1, ::-1]
            out.append((f"{layer.name}/{suffix}" + (":0" if version == 2 else ""), value))
    return out


def h5(net, version, document, group="model_weights", theano=False, libver="earliest", fixed=False):
    image = io.BytesIO()
    with h5py.File(image, "w", libver=libver) as file:
        if version > 1:
            file.attrs["keras_version"] = {2: b"2.4.0", 3: "3.3.3"}[version]
            file.attrs["backend"] = "theano" if theano else "tensorflow"
        if document:
            text = json.dumps(document)
            file.attrs["model_config"] = np.bytes_(text) if fixed else text
        root = file.create_group(group) if group else file
        root.attrs["layer_names"] = np.array([layer.name.encode() for layer in net])
        for layer in net:
            inside, weights = root.create_group(layer.name), named_weights(layer, version, theano)
            inside.attrs["weight_names"] = np.array([n.encode() for n, _ in weights])
            for name, value in weights:
                inside.create_dataset(name, data=value)
    return image.getvalue()


def snake(name):
    return {"InputLayer": "input_layer", "Conv2D": "conv2d", "DepthwiseConv2D": "depthwise_conv2d",
            "SeparableConv2D": "separable_conv2d", "Conv2DTranspose": "conv2d_transpose", "PReLU": "p_re_lu", "Dense": "dense",
            "BatchNormalization": "batch_normalization", "Functional": "functional",
            "LayerNormalization": "layer_normalization"}[name]


def put_numbered(root, container, net):
    counts = {}
    for layer in net:
        if not layer.weights and layer.kind != "model":
            continue
        name = snake(class_of(layer, 3))
        k = counts[name] = counts.get(name, -1) + 1
        inside = root.create_group(f"{container}/{name}_{k}" if k else f"{container}/{name}")
        if layer.kind == "model":
            put_numbered(inside, container, layer.options["net"])
        for i, (_, value) in enumerate(layer.weights):
            inside.create_dataset(f"vars/{i}", data=value)


def weights_h5(net, container="layers"):
    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        put_numbered(file, container, net)
    return image.getvalue()


def keras(net, document, container="layers", compression=zipfile.ZIP_STORED, version="3.3.3"):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", compression) as file:
        file.writestr("metadata.json", json.dumps({"keras_version": version}))
        file.writestr("config.json", json.dumps(document | {"module": "keras"}))
        file.writestr("model.weights.h5", weights_h5(net, container))
    return archive.getvalue()
