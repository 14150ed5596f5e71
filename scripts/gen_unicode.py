#!/usr/bin/env python3
"""Writes runtime/src/gen/mur_unicode.h: the classes of characters that pre-tokenizers tell apart.

The committed file was made with Python's Unicode 14 tables; another Unicode version gives another
file, which says so in its first line.

    gen_unicode.py            writes the file
    gen_unicode.py --check    compares it with what would be written
"""
import pathlib
import sys
import unicodedata

OUT = pathlib.Path(__file__).resolve().parent.parent / "runtime/src/gen/mur_unicode.h"
SKIPPED = 77  # what Meson takes for a skipped test
OTHER, LETTER, NUMBER, SPACE = range(4)
# the property White_Space, which is \\s in the regular expressions of the tokenizers
WHITE_SPACE = [*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
               0x202F, 0x205F, 0x3000]


def class_of(code):
    if code in WHITE_SPACE:
        return SPACE
    return {"L": LETTER, "N": NUMBER}.get(unicodedata.category(chr(code))[0], OTHER)


def main():
    entries, last = [], None
    for code in range(0x110000):
        here = class_of(code)
        if here != last:
            entries.append(code << 2 | here)
            last = here
    lines = [f"/* Made by scripts/gen_unicode.py from Unicode {unicodedata.unidata_version}; "
             "do not edit.",
             " *",
             " * First character << 2 | class of each run of characters of one class:",
             " * 0 other, 1 letter (L*), 2 number (N*), 3 white space. */",
             "static const uint32_t unicode_runs[] = {"]
    for i in range(0, len(entries), 10):
        lines.append("    " + " ".join(f"0x{e:x}," for e in entries[i:i + 10]))
    lines.append("};")
    text = "\n".join(lines) + "\n"
    if sys.argv[1:] != ["--check"]:
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(text)
        return 0
    committed = OUT.read_text()
    if committed.splitlines()[0] != lines[0]:
        print(f"the tables are of another Unicode version than {unicodedata.unidata_version}")
        return SKIPPED
    return 0 if committed == text else f"{OUT} is not what this script writes"


if __name__ == "__main__":
    sys.exit(main())
