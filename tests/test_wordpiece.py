#!/usr/bin/env python3
"""WordPiece against BERT's rules as written here, over Python's unicodedata. Prints TAP.

    tests/test_wordpiece.py build/src/cli/muc
"""
import json
import random
import re
import sys
import unicodedata

from cli import WORK, has, muc
from files import MALFORMED, ROOT, Skip, UNSUPPORTED, run_tests

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
UNKNOWN, CLS, SEP = 1, 2, 3
IDEOGRAPHS = [(0x4e00, 0x9fff), (0x3400, 0x4dbf), (0x20000, 0x2a6df), (0x2a700, 0x2b73f), (0x2b740, 0x2b81f), (0x2b920, 0x2ceaf),
              (0xf900, 0xfaff), (0x2f800, 0x2fa1f)]
SPACES = "\t\n\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200b)))
THREE_PARTS = {chr(c) for c in [*range(0x1d160, 0x1d165), *range(0x1d1bd, 0x1d1c1)]}


# ---- BERT's rules ----

def is_control(c):
    return c not in "\t\n\r" and unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs")


def is_space(c):
    return c in SPACES or c in "\x0b\x0c\x85"


def is_punctuation(c):
    return (c.isascii() and c.isprintable() and not c.isalnum() and c != " ") or unicodedata.category(c)[0] == "P"


def normalized(text, rules):
    if rules["clean_text"]:
        text = "".join(" " if is_space(c) else c for c in text if not (c in "\0\ufffd" or is_control(c)))
    if rules["handle_chinese_chars"]:
        text = "".join(f" {c} " if any(a <= ord(c) <= b for a, b in IDEOGRAPHS) else c for c in text)
    strips = rules["lowercase"] if rules["strip_accents"] is None else rules["strip_accents"]
    if strips:  # character by character: marks of other kinds are not put in order
        text = "".join(d for c in text for d in unicodedata.normalize("NFD", c) if unicodedata.category(d) != "Mn")
    return "".join(c.lower() for c in text) if rules["lowercase"] else text


def words(text):
    word = ""
    for c in text:
        if is_space(c) or is_punctuation(c):
            yield word
            yield c if not is_space(c) else ""
            word = ""
        else:
            word += c
    yield word


def tokens(text, vocabulary, rules, most=100):
    out = []
    for word in words(normalized(text, rules)):
        pieces, at = [], 0
        while at < len(word) <= most:
            found = [e for e in range(len(word), at, -1) if ("##" if at else "") + word[at:e] in vocabulary]
            if not found:
                break
            pieces.append(vocabulary[("##" if at else "") + word[at:found[0]]])
            at = found[0]
        out += pieces if at == len(word) else [UNKNOWN]
    return out


# ---- files ----

def rules_of(**changed):
    return {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True, **changed}


def tokenizer_json(vocabulary, rules, **changed):
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}}],
                "special_tokens": {"[CLS]": {"ids": [CLS]}, "[SEP]": {"ids": [SEP]}}}
    return {"added_tokens": [{"id": i, "content": text, "special": True} for i, text in enumerate(SPECIAL)],
            "normalizer": rules and {"type": "BertNormalizer", **rules}, "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": template,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                      "vocab": vocabulary, **changed.pop("model", {})}, **changed}


def write(value, name="tokenizer.json"):
    path = WORK / name
    path.write_text(json.dumps(value))
    return path


def vocabulary_of(pieces):
    return {text: i for i, text in enumerate([*SPECIAL, *dict.fromkeys(pieces)])}


def ids(path, text, *options):
    (WORK / "text.txt").write_bytes(text.encode() if isinstance(text, str) else text)
    out = json.loads(muc("tokenize", path, "-f", WORK / "text.txt", "--json", *options)[0])
    return [row["id"] for row in out["tokens"]]


SMALL = ["un", "##aff", "##able", "##a", "##b", "a", "b", "##able##", "!", "中", "<", "e", "hello", "world", "##s", "##"]


# ---- tests ----

def test_words_become_their_longest_pieces():
    vocabulary = vocabulary_of(SMALL)
    path = write(tokenizer_json(vocabulary, rules_of()))
    text = "Unaffable  HÉLLO worlds!!a中b\u00ad\u200d unaffablec [SEP] a\ufffd≮\n" + "a" + 99 * "b" + " a" + 100 * "b"
    expected = [vocabulary[t] for t in ["un", "##aff", "##able", "hello", "world", "##s", "!", "!", "a", "中", "b", "[UNK]", "[SEP]", "a", "<", "a"]]
    expected += 99 * [vocabulary["##b"]] + [UNKNOWN]
    assert ids(path, text, "--no-bos") == expected
    assert ids(path, text) == [CLS, *expected, SEP]
    assert ids(path, "[SEP]", "--no-bos", "--no-special") == [UNKNOWN, UNKNOWN, UNKNOWN]
    assert ids(path, "a \xff b".encode("latin1"), "--no-bos") == [vocabulary["a"], vocabulary["b"]]
    assert ids(path, "") == [CLS, SEP]
    assert muc("tokenize", path, "--ids", f"2 5 6 7 {vocabulary['hello']} 3")[0].rstrip("\n") == "unaffable hello"


def every_text(codes):
    """each character within a word and alone"""
    return "".join(f"x{c}y {c} " for c in codes)


def check_all(rules, codes, known):
    """known: of these characters and what comes of them there are pieces, others are unknown"""
    if unicodedata.unidata_version != re.search(r"Unicode (\S+);", (ROOT / "src/text/gen/unicode_lowercase.h").read_text())[1]:
        raise Skip("this Python has another version of Unicode")
    results = {d for c in known for d in [c, *normalized(c, rules)]} - THREE_PARTS
    vocabulary = vocabulary_of(p for c in sorted(results | set("xy")) if not c.isspace() for p in (c, "##" + c))
    path = write(tokenizer_json(vocabulary, rules))
    text = every_text(codes)
    found, expected = ids(path, text, "--no-bos"), tokens(text, vocabulary, rules)
    if found != expected:
        for c in codes:
            assert ids(path, every_text(c), "--no-bos") == tokens(every_text(c), vocabulary, rules), (hex(ord(c)), rules)
        assert found == expected, rules


def characters(step=1):
    musical = set(map(chr, range(0x1d158, 0x1d1c9)))  # three parts, see below
    codes = [*range(1, 0x3400, step), *range(0x3400, 0xac00, 61 * step), *range(0xac00, 0xd7a4, 7 * step), *range(0xd7a4, 0xd800),
             *range(0xe000, 0xf900, 211), *range(0xf900, 0x1f000, step), *range(0x1f000, 0x110000, 997 * step), 0x2f800, 0x2fa1d, 0x2b820, 0x2b920]
    return [c for c in map(chr, codes) if c not in musical]


def test_every_character_becomes_what_the_rules_say():
    check_all(rules_of(), characters(), characters())


def test_characters_without_pieces_change_nothing_of_the_others():
    check_all(rules_of(), characters(3), [c for c in characters(3) if random.Random(ord(c)).random() < 0.3])


def test_every_rule_may_be_off():
    for rules in (rules_of(lowercase=False), rules_of(strip_accents=False), rules_of(lowercase=False, strip_accents=True),
                  rules_of(clean_text=False), rules_of(handle_chinese_chars=False)):
        check_all(rules, characters(5), characters(5))


def test_words_by_chance():
    draw = random.Random(5)
    for _ in range(20):
        pieces = ["".join(draw.choice("abcé中") for _ in range(draw.randint(1, 5))) for _ in range(draw.randint(5, 80))]
        vocabulary = vocabulary_of(draw.choice(["", "##"]) + piece for piece in pieces)
        rules = rules_of(strip_accents=draw.choice([True, False]), handle_chinese_chars=draw.choice([True, False]))
        path = write(tokenizer_json(vocabulary, rules, model={"max_input_chars_per_word": 9}))
        text = " ".join("".join(draw.choice("abcABÉ中é.") for _ in range(draw.randint(1, 12))) for _ in range(300))
        assert ids(path, text, "--no-bos") == tokens(text, vocabulary, rules, 9), (vocabulary, rules)


def test_other_post_processors_put_the_same_tokens():
    for kind in ("BertProcessing", "RobertaProcessing"):
        path = write(tokenizer_json(vocabulary_of(SMALL), rules_of(), post_processor={"type": kind, "sep": ["[SEP]", SEP], "cls": ["[CLS]", CLS]}))
        assert ids(path, "") == [CLS, SEP]
    path = write(tokenizer_json(vocabulary_of(SMALL), None, post_processor=None))
    assert ids(path, "a A\x0bb") == [vocabulary_of(SMALL)["a"], UNKNOWN, vocabulary_of(SMALL)["b"]]


def test_what_is_not_wordpiece_as_bert_has_it_is_refused_by_name():
    vocabulary = vocabulary_of(SMALL)
    for changed, status, words_of_it in (
            ({"pre_tokenizer": {"type": "Whitespace"}}, UNSUPPORTED, "Whitespace"),
            ({"pre_tokenizer": None}, UNSUPPORTED, "BertPreTokenizer"),
            ({"normalizer": {"type": "NFC"}}, UNSUPPORTED, "NFC"),
            ({"model": {"continuing_subword_prefix": ""}}, UNSUPPORTED, "continuing_subword_prefix"),
            ({"model": {"max_input_chars_per_word": 0}}, UNSUPPORTED, "0 characters a word"),
            ({"model": {"unk_token": "[NONE]"}}, UNSUPPORTED, "unknown piece"),
            ({"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 9999], "cls": ["[CLS]", CLS]}}, MALFORMED, "sep"),
            ({"model": {"vocab": vocabulary_of([*SMALL, *map(chr, range(0x1d158, 0x1d173))])}}, UNSUPPORTED, "U+1D160")):
        has(muc("tokenize", write(tokenizer_json(vocabulary, rules_of(), **changed)), "-p", "a", status=status)[1], words_of_it)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
