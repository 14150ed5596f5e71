#!/usr/bin/env python3
"""Writes the seeds of fuzz/corpus/torch: state dicts as torch.save writes them, without PyTorch."""
import collections
import io
import pathlib
import pickle
import struct
import sys
import types
import zipfile
from unittest import mock

CORPUS = pathlib.Path(__file__).parent / "corpus" / "torch"
MAGIC, VERSION = 0x1950a86a20f9469cfc6c, 1001
FORMATS = {"DoubleStorage": "d", "FloatStorage": "f", "HalfStorage": "e", "LongStorage": "q"}


def stand_in(module, name):
    """A global of that name which the pickler can refer to."""
    parts = module.split(".")
    for i in range(len(parts)):
        sys.modules.setdefault(".".join(parts[:i + 1]), types.ModuleType(parts[i]))
    made = type(name, (), {"__module__": module})
    return sys.modules[module].__dict__.setdefault(name, made)


class Storage:
    def __init__(self, kind, values):
        self.kind, self.values = kind, list(values)

    def bytes(self):
        return struct.pack(f"<{len(self.values)}{FORMATS[self.kind]}", *self.values)


class Tensor:
    """Row-major unless strides are given; two may have the same storage."""

    def __init__(self, dims, values, kind="FloatStorage", strides=None, offset=0, storage=None):
        self.storage = storage or Storage(kind, values)
        row_major = [1] * len(dims)
        for i in range(len(dims) - 1, 0, -1):
            row_major[i - 1] = row_major[i] * dims[i]
        self.args = offset, tuple(dims), tuple(strides or row_major)

    def __reduce__(self):
        return (stand_in("torch._utils", "_rebuild_tensor_v2"),
                (self.storage, *self.args, False, collections.OrderedDict()))


def pickled(value):
    """The pickle, and the storages that it refers to by their places."""
    out, storages = io.BytesIO(), []

    class Pickler(pickle._Pickler):
        def persistent_id(self, thing):
            if not isinstance(thing, Storage):
                return None
            if thing not in storages:
                storages.append(thing)
            return ("storage", stand_in("torch", thing.kind), str(storages.index(thing)), "cpu",
                    len(thing.values))

    Pickler(out, 2).dump(value)
    return out.getvalue(), storages


def legacy(value):
    data, storages = pickled(value)
    out = b"".join(pickled(v)[0] for v in (MAGIC, VERSION, {"little_endian": True})) + data
    out += pickled([str(i) for i in range(len(storages))])[0]
    return out + b"".join(struct.pack("<q", len(s.values)) + s.bytes() for s in storages)


def archive(value, long_offsets=False):
    data, storages = pickled(value)
    out = io.BytesIO()
    limit = 0 if long_offsets else zipfile.ZIP64_LIMIT  # as if it were larger than 4 GiB
    with mock.patch("zipfile.ZIP64_LIMIT", limit), zipfile.ZipFile(out, "w") as file:
        for name, member in (("a/data.pkl", data),
                             *((f"a/data/{i}", s.bytes()) for i, s in enumerate(storages))):
            file.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), member)
    return out.getvalue()


def state(prefix=""):
    """A convolution, a norm in half precision and a matrix that is stored transposed."""
    return collections.OrderedDict((prefix + name, tensor) for name, tensor in {
        "c.weight": Tensor((2, 1, 1, 1), (1, 2)), "c.bias": Tensor((2,), (0.5, -1)),
        "n.weight": Tensor((2,), (1, 2), "HalfStorage"), "n.bias": Tensor((2,), (0, 1)),
        "n.running_mean": Tensor((2,), (0.5, 0)), "n.running_var": Tensor((2,), (1, 4), "DoubleStorage"),
        "n.num_batches_tracked": Tensor((), (7,), "LongStorage"),
        "l.weight": Tensor((2, 8), range(16), strides=(1, 2))}.items())


ARCH = """# what state() is of
input x 1 2 2
conv c
norm n eps=0
block tail name
    relu
    flatten
    linear $name
end
tail . l
"""


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, data in {"legacy": legacy({"epoch": 3, "state_dict": state("module.")}),
                       "archive": archive(state()),
                       "archive_64": archive(state(), long_offsets=True), "description": ARCH.encode()}.items():
        (CORPUS / name).write_bytes(data)


if __name__ == "__main__":
    main()
