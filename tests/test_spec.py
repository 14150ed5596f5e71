#!/usr/bin/env python3
"""The tables of the machines' SPEC.md name what the tables of the code name: instructions, sections, faults, elements. TAP.

    tests/test_spec.py
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
UTHINKER = (ROOT / "src/targets/uthinker/SPEC.md").read_text()
CHIP = (ROOT / "src/targets/cnnchip/SPEC.md").read_text()


def rows(path, macro):
    """The arguments of a macro's rows, strings without their quotes."""
    text = (ROOT / path).read_text()
    found = re.findall(rf"^{macro}\((.*)\)\s*$", text, re.M)
    return [[part.strip().strip('"') for part in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', row)] for row in found]


def section(text, number):
    return re.search(rf"^## {number}\. .*?(?=^## |\Z)", text, re.M | re.S)[0]


def table(text, head):
    """First cells of the table whose head begins so."""
    body = text[text.index(head):].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]


def same(name, found, expected):
    assert sorted(found) == sorted(expected), f"{name}: SPEC.md has {sorted(found)}, the code {sorted(expected)}"
    assert expected, f"{name}: the code's table was not found"


def test_every_instruction_of_the_tile_machine_is_specified():
    described = [name for group in re.findall(r"^\*\*([A-Z, ]+)\*\*", section(UTHINKER, 4), re.M) for name in group.split(", ")]
    same("instructions", described, [row[0] for row in rows("runtime/include/mur_isa.def", "MUR_INSN")])


def test_every_section_of_a_program_is_specified():
    described = [name for row in table(UTHINKER, "| type | content |") for name in row[0].split(", ")]
    same("sections", described, [row[0] for row in rows("runtime/include/mur_sections.def", "MUR_SECTION")])


def test_the_faults_of_the_cnn_chip_have_their_numbers():
    described = [row[0] for row in table(CHIP, "| fault | when |")]
    same("faults", described, [f"{number} {name}" for name, number, *_ in
                               rows("src/targets/cnnchip/isa/chip_isa.def", "MUC_CNNCHIP_FAULT")])


def test_the_elements_of_the_cnn_chip_have_their_numbers_and_bytes():
    described = [(row[0], row[1].split(":")[0], row[2]) for row in table(CHIP, "| number | element |")]
    same("elements", described, [(number, name, size) for name, number, size, *_ in
                                 rows("src/targets/cnnchip/isa/chip_isa.def", "MUC_CNNCHIP_ELEMENT")])


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    failed = 0
    print(f"1..{len(tests)}")
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} {name[len('test_'):]}")
        except Exception as problem:  # each fact by itself
            failed += 1
            print(f"not ok {number} {name[len('test_'):]}")
            print(problem, file=sys.stderr)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
