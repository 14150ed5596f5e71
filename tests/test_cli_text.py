#!/usr/bin/env python3
"""The verbs by which a language model is used, as a user meets them. Prints TAP.

    tests/test_cli_text.py MUC      from the source root; tests of shared data are skipped without it
"""
import json
import sys

from cli import STORIES, WORK, has, muc, need_data, program
from files import DATA, ROOT, USAGE, run_tests

RESCUE = ROOT / "models/rescue"


def ids_of(model, *options):
    report = json.loads(muc("tokenize", *model, *options, "--json")[0])
    assert report["count"] == len(report["tokens"]), report
    return [row["id"] for row in report["tokens"]]


# ---- tokenize ----

def test_tokens_are_those_of_llama2c_in_every_form():
    need_data()
    expected = json.loads((DATA / "llama/reference/expected.json").read_text())
    for model in STORIES.values():
        path, *options = model
        assert ids_of([path, expected["prompt"]], *options) == expected["prompt_tokens"]
        whole = ids_of([path, expected["text"]], *options)
        assert whole == expected["tokens"][:len(whole)], whole
        text, _ = muc("tokenize", path, *options, "--ids", expected["tokens"])
        assert text == expected["text"] + "\n", text


def test_tokens_become_the_text_again():
    text = "café 😀\n\tend  of  text "
    for model in (RESCUE, program()):
        ids = ids_of([model, text])
        assert ids[0] == 1 and ids_of([model, text], "--no-bos") == ids[1:]
        for form in (str(ids), " ".join(map(str, ids))):
            assert muc("tokenize", model, "--ids", form)[0] == text + "\n"


def test_a_text_comes_from_an_argument_an_option_a_file_and_standard_input():
    (WORK / "text.txt").write_text("scan it")
    expected = ids_of([RESCUE, "scan it"])
    assert ids_of([RESCUE], "-p", "scan it") == expected
    assert ids_of([RESCUE], "--file", WORK / "text.txt") == expected
    out, _ = muc("tokenize", RESCUE, "-f", "-", "--format", "csv", stdin=b"scan it")
    assert [int(line.split(",")[0]) for line in out.splitlines()[1:]] == expected


def test_special_tokens_are_tokens_unless_they_are_to_be_text():
    assert ids_of([RESCUE, "</s>"], "--no-bos")[-1] == 2
    assert 2 not in ids_of([RESCUE, "</s>"], "--no-special")


def test_what_is_no_text_and_no_token_is_refused():
    has(muc("tokenize", RESCUE, status=USAGE)[1], "say which text")
    has(muc("tokenize", RESCUE, "a", "-p", "b", status=USAGE)[1], "given twice")
    has(muc("tokenize", RESCUE, "--ids", "1", "text", status=USAGE)[1], "takes no text")
    has(muc("tokenize", RESCUE, "--ids", "1,x2", status=USAGE)[1], "'x2'")
    for number in ("512", "99999999999999999999999", "1,4294967296"):
        has(muc("tokenize", RESCUE, "--ids", number, status=USAGE)[1], "0 to 511")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
