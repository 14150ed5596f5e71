#!/usr/bin/env python3
"""Prints what ggml makes of made-up blocks of each type that GGUF files hold: the rows of tests/ggml_blocks.def.

    tests/oracle/ggml_blocks.py LIBGGML-BASE.SO

The library is llama.cpp's own; the npm package node-llama-cpp brings one. The bytes are the high bytes of a 32-bit linear congruential
generator that starts at the type's number; the checksum is the FNV-1a hash of the bits of the floats, every NaN counted as 0x7fc00000.
"""
import array
import ctypes
import sys

BLOCKS = 64
TYPES = [  # our name, ggml's function, number in GGUF, elements and bytes a block
    ("Q4_0", "q4_0", 2, 32, 18), ("Q4_1", "q4_1", 3, 32, 20), ("Q5_0", "q5_0", 6, 32, 22),
    ("Q5_1", "q5_1", 7, 32, 24), ("Q8_0", "q8_0", 8, 32, 34), ("Q2_K", "q2_K", 10, 256, 84),
    ("Q3_K", "q3_K", 11, 256, 110), ("Q4_K", "q4_K", 12, 256, 144), ("Q5_K", "q5_K", 13, 256, 176),
    ("Q6_K", "q6_K", 14, 256, 210), ("IQ4_NL", "iq4_nl", 20, 32, 18),
    ("IQ4_XS", "iq4_xs", 23, 256, 136), ("TQ1_0", "tq1_0", 34, 256, 54),
    ("TQ2_0", "tq2_0", 35, 256, 66), ("MXFP4", "mxfp4", 39, 32, 17),
]


def made_up(number, size):
    state, out = number, bytearray()
    for _ in range(size):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(state >> 24)
    return bytes(out)


def checksum(values):
    value = 0x811C9DC5
    for bits in array.array("I", bytes(values)):
        if bits & 0x7FFFFFFF > 0x7F800000:
            bits = 0x7FC00000
        for byte in bits.to_bytes(4, "little"):
            value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def main():
    library = ctypes.CDLL(sys.argv[1])
    for name, function, number, elements, size in TYPES:
        values = (ctypes.c_float * (elements * BLOCKS))()
        decode = getattr(library, "dequantize_row_" + function)
        decode.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64]
        decode(made_up(number, size * BLOCKS), values, elements * BLOCKS)
        print(f"GGML_BLOCKS({number}, {name}, 0x{checksum(values):08x})")


if __name__ == "__main__":
    sys.exit(main())
