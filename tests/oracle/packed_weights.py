"""The inverse of what muc reads of GPTQ, AWQ, compressed-tensors and BitNet, in NumPy, from their authors' descriptions: matrices drawn
at random as codes, zeros and scales, packed as those projects pack them, and the same matrices as numbers.
"""
import json
import struct

import numpy as np

TYPES = {"float32": "F32", "float16": "F16", "int32": "I32", "int64": "I64", "int8": "I8", "uint8": "U8"}
AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)  # whose code is i-th in a word, from the low bits on


def words(codes, bits, order=None):
    """codes [rows][n], each word the next 32 / bits of a row; what lacks at the end is 0"""
    per = 32 // bits
    codes = np.pad(codes.astype(np.uint64), ((0, 0), (0, -codes.shape[1] % per)))
    codes = codes.reshape(codes.shape[0], -1, per)[:, :, list(order or range(per))]
    return (codes << np.arange(0, 32, bits, dtype=np.uint64)).sum(2).astype(np.uint32).view(np.int32)


def numbers(codes, zeros, scales, groups):
    """(code - zero) * scale in float32; zeros and scales [rows][groups]"""
    return (codes.astype(np.float32) - zeros.astype(np.float32)[:, groups]) * scales.astype(np.float32)[:, groups]


class Draw:
    """one matrix [rows][columns] of each kind: (tensors of the file, numbers, levels or None, scales)"""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def scales(self, *shape):
        return (2.0 ** self.rng.uniform(-7, -5, shape)).astype(np.float16)

    def gptq(self, name, rows, columns, bits=4, group=32, order=False, less_one=True, zero=None):
        count = 1 if group < 0 else columns // group
        codes = self.rng.integers(0, 1 << bits, (rows, columns))
        zeros = self.rng.integers(0, 1 << bits, (rows, count)) if zero is None else np.full((rows, count), zero)
        scales, groups = self.scales(rows, count), np.arange(columns) * count // columns
        if order:
            groups = self.rng.permutation(groups)
        stored = (zeros - less_one) % (1 << bits)
        base = name.removesuffix("weight")
        return {base + "qweight": words(codes, bits).T, base + "qzeros": words(stored.T, bits),
                base + "scales": scales.T, base + "g_idx": groups.astype(np.int32)}, \
            numbers(codes, zeros, scales, groups), codes - zeros[:, groups], scales

    def awq(self, name, rows, columns, group=32):
        count = columns // group
        codes, zeros = self.rng.integers(0, 16, (rows, columns)), self.rng.integers(0, 16, (rows, count))
        scales, groups = self.scales(rows, count), np.arange(columns) // group
        base = name.removesuffix("weight")
        return {base + "qweight": words(codes.T, 4, AWQ_COLUMNS), base + "qzeros": words(zeros.T, 4, AWQ_COLUMNS),
                base + "scales": scales.T}, numbers(codes, zeros, scales, groups), None, scales

    def compressed(self, name, rows, columns, bits=4, group=32, symmetric=True, packed=True, order=False):
        count = 1 if group is None else columns // group
        offset = 1 << bits - 1
        values = self.rng.integers(-offset, offset, (rows, columns))
        values = values if packed else np.maximum(values, -127)
        zeros = np.zeros((rows, count), int) if symmetric else self.rng.integers(-offset, offset, (rows, count))
        scales, groups = self.scales(rows, count), np.arange(columns) * count // columns
        out = {name + "_scale": scales}
        if order:
            groups = self.rng.permutation(groups)
            out[name + "_g_idx"] = groups.astype(np.int32)
        if packed:
            out[name + "_packed"] = words(values + offset, bits)
            out[name + "_shape"] = np.array([rows, columns])
        else:
            out[name] = values.astype(np.int8)
        if not symmetric:
            out[name + "_zero_point"] = words((zeros + offset).T, bits).T if packed else zeros.astype(np.int8)
        return out, numbers(values, zeros, scales, groups), values - zeros[:, groups], scales

    def bitnet(self, name, rows, columns, inverse=True):
        values = self.rng.integers(-1, 2, (rows, columns))
        power = np.float16(2.0 ** self.rng.integers(3, 6))  # whose inverse is exact
        quarter = (values + 1).reshape(4, rows // 4, columns)
        scale = 1 / power if inverse else power / 256
        return {name: sum(quarter[i] << 2 * i for i in range(4)).astype(np.uint8),
                name + "_scale": np.array([power if inverse else scale], np.float16)}, \
            numbers(values, np.zeros((rows, 1)), np.full((rows, 1), scale), np.zeros(columns, int)), values, \
            np.full((rows, 1), scale, np.float16)


def write(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array)
        header[name] = {"dtype": TYPES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
