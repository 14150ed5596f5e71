#!/usr/bin/env python3
"""What a newcomer does wrong, and what muc says of it: the file, what was found, what was expected, what to do next. Prints TAP.

    tests/test_mistakes.py MUC      from the source root
"""
import gzip
import json
import re
import shutil
import sys

from cli import WORK, has, muc
from files import IO, MALFORMED, NOFIT, ROOT, UNSUPPORTED, USAGE, npy, run_tests

RESCUE, NETWORK = ROOT / "models/rescue", ROOT / "examples/cnnchip/small.graph"
OUT = ["-o", WORK / "out"]
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12\n"
PAGE = b"<!DOCTYPE html><html><title>404</title></html>"


def copy(name, **changes):
    """The built-in model with files changed (their bytes) or removed (None); _ is a dot."""
    folder = shutil.copytree(RESCUE, WORK / name, ignore=shutil.ignore_patterns("train", "*.txt"))
    for file, content in changes.items():
        path = folder / file.replace("_", ".")
        path.unlink() if content is None else path.write_bytes(content)
    return folder


def file(name, content):
    path = WORK / name
    path.write_bytes(content)
    return path


def architecture(name):
    config = json.loads((RESCUE / "config.json").read_text())
    return json.dumps({**config, "architectures": [name], "model_type": "falcon"}).encode()


WEIGHTS = (RESCUE / "model.safetensors").read_bytes()
NO_TOKENIZER = copy("no_tokenizer", tokenizer_model=None)
THREE = file("three.npy", npy([3], [1, 2, 3]))

# arguments, exit status, pieces of the message
MISTAKES = [
    (["evla"], USAGE, ["'evla'", "did you mean 'eval'?", "muc help"]),
    (["run", "--temperature", "1"], USAGE, ["--temperature", "did you mean '--temp'?"]),
    (["compile", "--target", "mcuu", *OUT], USAGE, ["'mcuu'", "uthinker, mcu or cnnchip", "did you mean 'mcu'?"]),
    (["compile", "--target", "mcu", "--quant", "int3", *OUT], USAGE,
     ["'int3'", "int8 or bd4", "did you mean 'int8'?"]),
    (["compress", "--quant", "int3", *OUT], USAGE, ["'int3'", "int8, int4, int2 or cb2", "did you mean"]),
    (["compile", "--target", "mcu", "--machine", "stm32f745", *OUT], USAGE,
     ["'stm32f745'", "nrf52840", "did you mean 'stm32f746'?"]),
    (["compile", NETWORK, "--target", "cnnchip", "--machine", "pe65", *OUT], USAGE, ["'pe65'", "did you mean 'pe64'?"]),
    (["run", WORK / "nosuch"], IO, ["nosuch", "No such file"]),
    (["inspect", WORK], IO, [str(WORK), "config.json"]),
    (["inspect", copy("no_weights", model_safetensors=None)], IO, ["no_weights/model.safetensors"]),
    (["inspect", copy("cut", model_safetensors=WEIGHTS[:1000])], MALFORMED,
     ["cut/model.safetensors", "needs 4336 bytes", "992 left"]),
    (["inspect", file("pointer.gguf", POINTER)], MALFORMED, ["pointer.gguf", "Git LFS", "git lfs pull"]),
    (["run", copy("pointer", model_safetensors=POINTER)], MALFORMED,
     ["pointer/model.safetensors", "Git LFS", "git lfs pull"]),
    (["run", copy("page", tokenizer_model=PAGE)], MALFORMED, ["page/tokenizer.model", "HTML", "download"]),
    (["inspect", file("page.onnx", PAGE)], MALFORMED, ["page.onnx", "HTML", "download"]),
    (["inspect", file("net.onnx.gz", gzip.compress(b"x"))], MALFORMED, ["net.onnx.gz", "gunzip"]),
    (["inspect", file("nothing.gguf", b"")], MALFORMED, ["nothing.gguf", "empty"]),
    (["inspect", copy("falcon", config_json=architecture("FalconForCausalLM"))], UNSUPPORTED,
     ["falcon/config.json", "FalconForCausalLM", "LlamaForCausalLM", "GPT2LMHeadModel"]),
    (["compile", NETWORK, "--target", "uthinker", *OUT], UNSUPPORTED, ["small.graph", "networks", "--target mcu does"]),
    (["compile", RESCUE, "--target", "cnnchip", *OUT], UNSUPPORTED, ["models/rescue", "--target uthinker does"]),
    (["report", RESCUE], USAGE, ["models/rescue", "report tells", "muc inspect"]),
    (["compile", NO_TOKENIZER, *OUT], USAGE, ["no_tokenizer", "--tokenizer FILE"]),
    (["compile", NO_TOKENIZER, "--target", "mcu", *OUT], USAGE, ["no_tokenizer", "--tokenizer FILE"]),
    (["run", NO_TOKENIZER], USAGE, ["no_tokenizer", "--tokenizer FILE"]),
    (["run", NETWORK], USAGE, ["'x'", "no array"]),
    (["run", NETWORK, "--input", THREE], USAGE, ["'x'", "f32 [1, 2, 6, 6]", "three.npy", "f32 [3]"]),
    (["run", NETWORK, "--prompt", "hello"], USAGE, ["small.graph", "--tokenizer FILE", "--input"]),
    (["run", RESCUE, "--prompt", "go to the lab " * 200], USAGE, ["models/rescue", "prompt has", "context 256"]),
    (["compile", NETWORK, "--target", "mcu", "--quant", "int8", *OUT], USAGE, ["small.graph", "--calib", ".npz"]),
    (["compress", "--budget-flash", "1K", "--calib", "none", *OUT], NOFIT, ["bytes of flash", "more than the budget"]),
    (["compile", *OUT[:1], WORK / "no/such/folder"], IO, ["no/such/folder", "No such file"]),
    (["compile", "-o", WORK], USAGE, [str(WORK), "is a folder", "name a file"]),
]


def test_a_mistake_is_told_with_what_to_do():
    for arguments, status, pieces in MISTAKES:
        out, err = muc(*arguments, status=status)
        has(err, *pieces)
        assert len(err.splitlines()) <= 2, err


def test_targets_lists_the_machines_of_each():
    report = json.loads(muc("targets", "--json")[0])
    machines = {(row["target"], row["name"]) for row in report["machines"]}
    assert {("mcu", "stm32f746"), ("cnnchip", "pe64")} <= machines
    assert {target for target, _ in machines} == {row["name"] for row in report["targets"]}


def test_help_of_a_verb_has_only_its_own_text():
    verbs = re.findall(r"^  (?!muc )([a-z]+) ", muc("--help")[0], re.M)
    assert "compress" in verbs, verbs
    for verb in verbs:
        options = muc(verb, "--help")[0].partition("\n  ")[2]
        other = re.search(r"\bof (%s)\b" % "|".join(v for v in verbs if v != "report"), options)
        assert not other, (verb, other)
    assert "--budget-flash is for" in muc("compress", "--help")[0]
    assert "--budget-flash" not in muc("compile", "--help")[0]


# ---- operators that muc does not have ----

def field(number, content):
    """A field of a protobuf message: a number, or bytes with their length."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n % 128 + 128]) + varint(n // 128)

    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def onnx(nodes, functions=()):
    """A model from x [N, 3] to the last node's result; a node: (name, operator, domain, inputs, output)."""
    def node(name, kind, domain, inputs, output):
        return b"".join(field(1, i.encode()) for i in inputs) + field(2, output.encode()) + \
            field(3, name.encode()) + field(4, kind.encode()) + field(7, domain.encode())

    def port(name):
        dims = field(1, field(2, b"N")) + field(1, field(1, 3))
        return field(1, name.encode()) + field(2, field(1, field(1, 1) + field(2, dims)))

    opsets = [field(8, field(1, domain) + field(2, version)) for domain, version in ((b"", 13), (b"my.lab", 1))]
    graph = b"".join(field(1, node(*n)) for n in nodes) + field(2, b"g") + \
        field(11, port("x")) + field(12, port(nodes[-1][4]))
    bodies = [field(25, field(1, name.encode()) + field(4, b"a") + field(5, b"b") + field(7, node(*body)) +
                    field(9, field(1, b"") + field(2, 13)) + field(10, b"my.lab")) for name, body in functions]
    return field(1, 8) + field(7, graph) + b"".join(opsets + bodies)


LACKING = onnx([("first", "Wobble", "", ["x"], "a"), ("plain", "Relu", "", ["a"], "b"),
                ("second", "Wobble", "", ["b"], "c"), ("third", "Spin", "my.lab", ["c"], "d"),
                ("call", "Body", "my.lab", ["d"], "e")],
               [("Body", ("inner", "Twist", "", ["a"], "b")), ("Unused", ("none", "Nothing", "", ["a"], "b"))])


def test_all_operators_that_muc_lacks_are_named_at_once():
    _, err = muc("compile", file("lacking.onnx", LACKING), "--target", "mcu", *OUT, status=UNSUPPORTED)
    has(err, "lacking.onnx", "Wobble (2 nodes, the first 'first')", "my.lab.Spin (1 node, 'third')",
        "Twist (1 node, 'inner')", "muc ops")
    assert "Relu" not in err and "Nothing" not in err, err


def test_a_network_that_lacks_operators_is_shown():
    report = json.loads(muc("inspect", file("lacking.onnx", LACKING), "--json")[0])
    assert [(row["name"], row["shape"]) for row in report["inputs"]] == [("x", "f32 [N, 3]")]
    assert [(row["name"], row["shape"]) for row in report["outputs"]] == [("e", "f32 [N, 3]")]
    assert {row["operator"]: (row["nodes"], row["supported"]) for row in report["operators"]} == {
        "Wobble": (2, False), "Relu": (1, True), "my.lab.Spin": (1, False), "my.lab.Body": (1, True), "Twist": (1, False)}
    many = onnx([(f"n{i}", f"Kind{i}", "", ["x" if i == 0 else f"v{i - 1}"], f"v{i}") for i in range(300)])
    rows = json.loads(muc("inspect", file("many.onnx", many), "--json")[0])["operators"]
    assert sum(row["nodes"] for row in rows) == 300
    _, err = muc("run", WORK / "many.onnx", status=UNSUPPORTED)
    has(err, "Kind0 ", "Kind15 ", "more; muc ops")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
