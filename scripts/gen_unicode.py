#!/usr/bin/env python3
"""Writes src/text/gen/unicode_categories.h, the general category of every character,
src/text/gen/unicode_lowercase.h, their small letters, and runtime/src/gen/mur_nfc.h, what the
normal form NFC needs.

The committed files were made with Python's Unicode 14 tables; another Unicode version gives other
files, which say so in their first line.

    gen_unicode.py            writes the files
    gen_unicode.py --check    compares them with what would be written
"""
import pathlib
import sys
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent
HANGUL = range(0xAC00, 0xAC00 + 11172)  # which are computed
SKIPPED = 77  # what Meson takes for a skipped test
# in the order of UNICODE_CATEGORY_NAMES
CATEGORIES = ("Cc Cf Cn Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp "
              "Zs").split()


def head(*lines):
    return [f"/* Made by scripts/gen_unicode.py from Unicode {unicodedata.unidata_version}; "
            "do not edit.", " *", *(f" * {line}" for line in lines[:-1]), f" * {lines[-1]} */"]


def array(declaration, entries, a_line=10):
    rows = [" ".join(f"{e}," for e in entries[i:i + a_line]) for i in range(0, len(entries), a_line)]
    return [f"static const {declaration} = {{", *(f"    {row}" for row in rows), "};"]


def runs(value_of, bits):
    entries, last = [], None
    for code in range(0x110000):
        here = value_of(code)
        if here != last:
            entries.append(f"0x{code << bits | here:x}")
            last = here
    return entries


def categories_file():
    return head("First character << 5 | category of each run of characters of one category, which is an index of",
                "UNICODE_CATEGORY_NAMES.") + \
        [f'#define UNICODE_CATEGORY_NAMES "{" ".join(CATEGORIES)}"'] + \
        array("uint32_t unicode_categories[]",
              runs(lambda code: CATEGORIES.index(unicodedata.category(chr(code))), 5))


def lowercase_file():
    """U+0130 becomes two characters, of which the second is a mark"""
    small = {code: ord(chr(code).lower()[0]) for code in range(0x110000)}
    entries = [f"{{ 0x{code:x}, 0x{other:x} }}" for code, other in small.items() if code != other]
    return head("Characters that have a small letter, ascending, and that letter, without the dot of U+0130.") + \
        array("uint32_t unicode_lowercase[][2]", entries, 5)


def nfc_file():
    """canonical decompositions into two, or one, by character; which of them compose, by their parts"""
    parts = {}
    for code in range(0x110000):
        mapping = unicodedata.decomposition(chr(code))
        if mapping and not mapping.startswith("<") and code not in HANGUL:
            first, second = ([int(c, 16) for c in mapping.split()] + [0])[:2]
            parts[code] = first, second
    decompositions = [f"{{ 0x{code | (second & 0x7ff) << 21:x}u, 0x{first | second >> 11 << 21:x}u }}"
                      for code, (first, second) in parts.items()]
    places = {code: place for place, code in enumerate(parts)}
    composites = sorted((pair, code) for code, pair in parts.items()
                        if pair[1] and unicodedata.normalize("NFC", chr(code)) == chr(code))
    return head("nfc_decompositions: character | low 11 bits of its second part << 21, first part | high bits of the second",
                "<< 21, by character; second part 0: the first alone. nfc_compositions: those that compose, by first and second",
                "part. nfc_classes: first character << 8 | combining class of each run of characters of one class.") + \
        array("uint32_t nfc_decompositions[][2]", decompositions, 5) + \
        array("uint16_t nfc_compositions[]", [str(places[code]) for _, code in composites], 20) + \
        array("uint32_t nfc_classes[]", runs(lambda code: unicodedata.combining(chr(code)), 8))


def main():
    files = {"src/text/gen/unicode_categories.h": categories_file(), "src/text/gen/unicode_lowercase.h": lowercase_file(),
             "runtime/src/gen/mur_nfc.h": nfc_file()}
    if sys.argv[1:] != ["--check"]:
        for name, lines in files.items():
            (ROOT / name).parent.mkdir(exist_ok=True)
            (ROOT / name).write_text("\n".join(lines) + "\n")
        return 0
    for name, lines in files.items():
        committed = (ROOT / name).read_text()
        if committed.splitlines()[0] != lines[0]:
            print(f"the tables are of another Unicode version than {unicodedata.unidata_version}")
            return SKIPPED
        if committed != "\n".join(lines) + "\n":
            return f"{ROOT / name} is not what this script writes"
    return 0


if __name__ == "__main__":
    sys.exit(main())
