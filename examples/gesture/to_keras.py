#!/usr/bin/env python3
"""Writes the gesture network as Keras 3 saves it, for docs/TUTORIAL.md: Keras itself is not in Debian.

    examples/gesture/to_keras.py      gesture.pt becomes gesture.keras; recordings get Keras's order, time before axes

The files are in the folder, so neither PyTorch nor h5py need be installed.
"""
import io
import json
import pathlib
import zipfile

import h5py
import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
DATE = (1980, 1, 1, 0, 0, 0)  # of the files in the archive: the same bytes at any time


def layers(state):
    """(class, settings, weights) in order."""
    def conv(name, filters, size, bias):
        kernel = state[f"{name}.weight"][:, :, 0].transpose(2, 1, 0)  # to size, channels, filters
        return [("ZeroPadding1D", {"name": f"pad_{name}", "padding": [size // 2, size // 2]}, []),
                ("Conv1D", {"name": name, "filters": filters, "kernel_size": [size], "strides": [2], "padding": "valid", "use_bias": bias,
                            "data_format": "channels_last"}, [kernel, *([state[f"{name}.bias"]] if bias else [])])]

    def norm(name):
        return [("BatchNormalization", {"name": name, "axis": -1, "epsilon": 1e-5},
                 [state[f"{name}.{part}"] for part in ("weight", "bias", "running_mean", "running_var")])]

    def relu(name):
        return [("ReLU", {"name": name}, [])]
    return [("InputLayer", {"name": "acceleration", "batch_shape": [None, 64, 3]}, []),
            *conv("conv1", 16, 5, False), *norm("bn1"), *relu("relu1"), *conv("conv2", 24, 5, False), *norm("bn2"), *relu("relu2"),
            *conv("conv3", 32, 3, True), *relu("relu3"), ("GlobalAveragePooling1D", {"name": "mean"}, []),
            ("Dense", {"name": "fc", "units": 4, "use_bias": True}, [state["fc.weight"].T, state["fc.bias"]])]


def weights_file(net):
    """model.weights.h5: a group for each layer with weights, numbered among those of its class."""
    names = {"Conv1D": "conv1d", "BatchNormalization": "batch_normalization", "Dense": "dense"}
    image, counts = io.BytesIO(), {}
    with h5py.File(image, "w") as file:
        for kind, _, weights in net:
            if weights:
                number = counts[kind] = counts.get(kind, -1) + 1
                group = file.create_group(f"layers/{names[kind]}" + (f"_{number}" if number else ""))
                for i, value in enumerate(weights):
                    group.create_dataset(f"vars/{i}", data=value.astype(numpy.float32))
    return image.getvalue()


def main():
    state = {name: value.numpy() for name, value in torch.load(HERE / "gesture.pt").items()}
    net = layers(state)
    model = {"module": "keras", "class_name": "Sequential",
             "config": {"name": "gesture", "layers": [{"module": "keras.layers", "class_name": kind, "config": settings}
                                                      for kind, settings, _ in net]}}
    with zipfile.ZipFile(HERE / "gesture.keras", "w") as file:
        for name, content in [("metadata.json", json.dumps({"keras_version": "3.3.3"})), ("config.json", json.dumps(model)),
                              ("model.weights.h5", weights_file(net))]:
            file.writestr(zipfile.ZipInfo(name, DATE), content)
    for name in "samples", "circle", "tap":
        numpy.save(HERE / f"{name}_keras.npy", numpy.ascontiguousarray(numpy.load(HERE / f"{name}.npy")[:, :, 0].transpose(0, 2, 1)))


if __name__ == "__main__":
    main()
