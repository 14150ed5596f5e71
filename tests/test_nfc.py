#!/usr/bin/env python3
"""The runtime's normal form NFC against Python's unicodedata. Prints TAP.

    tests/test_nfc.py      from the source root
"""
import ctypes
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent


def load(folder):
    """mur_nfc(bytes), in memory of the size that the header names and not a word more"""
    library = pathlib.Path(folder) / "nfc.so"
    subprocess.run([*os.environ.get("CC", "cc").split(), "-std=c99", "-O2", "-shared", "-fPIC", f"-I{ROOT}/runtime/include",
                    ROOT / "runtime/src/mur_normalize.c", "-o", library], check=True)
    function = ctypes.CDLL(str(library)).mur_nfc

    def nfc(data):
        words, size = 3 * len(data) + 10, ctypes.c_size_t()
        room = (ctypes.c_uint32 * (words + 1))()
        room[words] = 0xdeadbeef
        text = (ctypes.c_uint8 * (len(data) + 1))(*data)
        ok = function(text, ctypes.c_size_t(len(data)), room, ctypes.c_size_t(words), ctypes.byref(size))
        assert ok == 1 and room[words] == 0xdeadbeef, data
        assert size.value <= 3 * len(data), data
        return bytes(room)[:size.value]
    return nfc


def expected(text):
    return unicodedata.normalize("NFC", text).encode()


def check(nfc, text):
    found = nfc(text.encode())
    assert found == expected(text), (text.encode(), found, expected(text))


def every_character_alone_and_between_marks(nfc):
    for code in range(0x110000):
        if 0xd800 <= code < 0xe000:
            continue
        check(nfc, chr(code))
        if unicodedata.decomposition(chr(code)) or unicodedata.combining(chr(code)):
            for text in ("a" + chr(code), "a\u0323\u0307" + chr(code) + "\u0323\u0301x",
                         unicodedata.normalize("NFD", chr(code)), unicodedata.normalize("NFD", chr(code)) + "\u0300\u0345",
                         chr(code) + unicodedata.normalize("NFD", chr(code))):
                check(nfc, text)


def hangul_and_marks_by_chance(nfc):
    chance = random.Random(7)
    marks = [chr(c) for c in range(0x110000) if unicodedata.combining(chr(c))]
    bases = [chr(c) for c in range(0x110000) if unicodedata.decomposition(chr(c))] + list("aeoAEO<=>")
    jamo = [chr(c) for c in (*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11a7, 0x11c3), 0xac00, 0xac01, 0xd7a3)]
    for _ in range(30000):
        pool = chance.choice((marks, marks, bases, jamo))
        check(nfc, "".join(chance.choice(chance.choice((pool, marks, bases))) for _ in range(chance.randrange(1, 12))))
        check(nfc, "".join(chance.choice(jamo) for _ in range(chance.randrange(1, 8))))
    check(nfc, "a" + "".join(chance.choice(marks) for _ in range(20000)))


def bytes_that_are_no_text_stay(nfc):
    chance = random.Random(8)
    for data in (b"\xff", b"e\xcc", b"e\xcc\x81", b"\xed\xa0\x80", b"\xc1\x81\xcc\x81", b"\xf4\x90\x80\x80", b"\xe0\x80\x80"):
        good = data.decode(errors="surrogateescape")
        want = unicodedata.normalize("NFC", good).encode(errors="surrogateescape")
        assert nfc(data) == want, (data, nfc(data), want)
    for _ in range(20000):
        data = bytes(chance.choice((0x65, 0xcc, 0x81, 0xc3, 0xa9, 0xe1, 0x84, 0x80, 0xea, 0xb0, 0xff, 0xf0)) for _ in range(9))
        want = unicodedata.normalize("NFC", data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        assert nfc(data) == want, (data, nfc(data), want)


def main():
    tests = [every_character_alone_and_between_marks, hangul_and_marks_by_chance, bytes_that_are_no_text_stay]
    made_from = re.search(r"Unicode (\S+);", (ROOT / "runtime/src/gen/mur_nfc.h").read_text())[1]
    failed = 0
    print(f"1..{len(tests)}")
    with tempfile.TemporaryDirectory() as folder:
        for number, test in enumerate(tests, 1):
            if unicodedata.unidata_version != made_from:
                print(f"ok {number} - {test.__name__} # SKIP the tables are of Unicode {made_from}")
                continue
            if not shutil.which(os.environ.get("CC", "cc").split()[0]):
                print(f"ok {number} - {test.__name__} # SKIP no C compiler")
                continue
            try:
                test(load(folder))
                print(f"ok {number} - {test.__name__}")
            except AssertionError as error:
                failed += 1
                print(f"not ok {number} - {test.__name__}\n# {error}")
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
