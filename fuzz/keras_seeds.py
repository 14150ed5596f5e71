#!/usr/bin/env python3
"""Writes the seeds of fuzz/corpus/keras: Keras files as small as HDF5 allows, and refused ones.

Needs h5py. The models are a dense layer of two weights.
"""
import io
import json
import pathlib
import zipfile

import h5py
import numpy

CORPUS = pathlib.Path(__file__).parent / "corpus" / "keras"
KERNEL, BIAS = numpy.array([[0.5], [2]], "<f4"), numpy.array([1], "<f4")


def new_file(libver):
    image = io.BytesIO()
    return h5py.File(image, "w", libver=libver), image


def finish(file, image):
    file.close()
    return image.getvalue()


def dense(name):
    return {"class_name": "Dense",
            "config": {"name": name, "activation": "relu", "batch_input_shape": [None, 2]}}


def activation(name):
    return {"class_name": "Activation", "config": {"name": name, "activation": "tanh"}}


def model(layers):
    return json.dumps({"class_name": "Sequential", "config": layers}, separators=(",", ":"))


def plain(group, name, array):
    group.create_dataset(name, data=array)


def h5(libver="earliest", put=plain, config=str, more=0):
    """A dense layer and `more` activations. put(group, name, array) makes the kernel; config is str
    (which lies in a global heap), numpy.bytes_ (which lies in the attribute) or None."""
    file, image = new_file(libver)
    names = [f"a{i}" for i in range(more)]
    if config:
        file.attrs["model_config"] = config(model([dense("d"), *map(activation, names)]))
    weights = file.create_group("model_weights")
    layer = weights.create_group("d")
    layer.attrs["weight_names"] = numpy.array([b"k", b"b"])
    put(layer, "k", KERNEL)
    plain(layer, "b", BIAS)
    for name in names:
        weights.create_group(name)
    return finish(file, image)


def chunked(group, name, array):
    group.create_dataset(name, data=array, chunks=(1,) * array.ndim, compression="gzip",
                         shuffle=True)


def one_chunk(group, name, array):
    group.create_dataset(name, data=array, chunks=array.shape, compression="gzip")


def compact(group, name, array):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(group.id, name.encode(), h5py.h5t.IEEE_F32LE,
                    h5py.h5s.create_simple(array.shape), plist).write(h5py.h5s.ALL, h5py.h5s.ALL,
                                                                      array)


def big_endian(group, name, array):
    group.create_dataset(name, data=array.astype(">f8"))


def outside(group, name, array):
    group.create_dataset(name, shape=array.shape, dtype=array.dtype,
                         external=[("/etc/passwd", 0, 64)])


def virtual(group, name, array):
    layout = h5py.VirtualLayout(shape=array.shape, dtype=array.dtype)
    layout[...] = h5py.VirtualSource("other.h5", "x", shape=array.shape)
    group.create_virtual_dataset(name, layout)


def soft(group, name, array):
    group[name] = h5py.SoftLink("/model_weights")


def external(group, name, array):
    group[name] = h5py.ExternalLink("/etc/passwd", "/")


def unwritten(group, name, array):
    group.create_dataset(name, shape=array.shape, dtype=array.dtype)


def fletcher(group, name, array):
    group.create_dataset(name, data=array, chunks=array.shape, fletcher32=True)


def keras():
    file, image = new_file("earliest")
    inside = file.create_group("layers/dense/vars")
    inside.create_dataset("0", data=KERNEL)
    inside.create_dataset("1", data=BIAS)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        for name, data in (("metadata.json", b"{}"),
                           ("config.json", model([dense("d")]).encode()),
                           ("model.weights.h5", finish(file, image))):
            out.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return archive.getvalue()


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, data in {
            "heap": h5(), "chunks": h5(put=chunked, config=numpy.bytes_),
            "links": h5("latest", put=compact, config=numpy.bytes_, more=8),
            "one_chunk": h5("latest", put=one_chunk, config=numpy.bytes_),
            "archive": keras()}.items():
        (CORPUS / name).write_bytes(data)


if __name__ == "__main__":
    main()
