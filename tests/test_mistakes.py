#!/usr/bin/env python3
"""What a newcomer does wrong, and what muc says of it: the file, what was found, what was expected, what to do next. Prints TAP.

    tests/test_mistakes.py MUC      from the source root
"""
import gzip
import json
import re
import resource
import shutil
import struct
import subprocess
import sys
import zipfile

from cli import WORK, has, muc
from files import IO, MALFORMED, MUC, NOFIT, ROOT, UNSUPPORTED, USAGE, npy, run_tests

sys.path.insert(0, str(ROOT / "fuzz"))
import onnx_seeds as seeds  # noqa: E402

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
BLOCKS = WORK / "blocks.bdt"
muc("quantize", NO_TOKENIZER, "-o", BLOCKS)
THREE = file("three.npy", npy([3], [1, 2, 3]))

def arrays(name, **columns):
    """An archive of arrays [1, N]."""
    path = WORK / f"{name}.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for key, count in columns.items():
            archive.writestr(f"{key}.npy", npy([1, count], range(count)))
    return path


TWO = file("two.onnx", seeds.model([seeds.node("Add", ["left", "right"], ["sum"])],
                                   [seeds.value("left", ["batch", 3]), seeds.value("right", ["batch", 3])],
                                   [seeds.value("sum", ["batch", 3])]))
WHOLE = file("whole.onnx", seeds.model([seeds.node("Neg", ["x"], ["y"])], [seeds.value("x", [2], seeds.INT64)],
                                       [seeds.value("y", [2], seeds.INT64)]))
SAMPLE = file("sample.npy", npy([1, 2, 6, 6], [i / 36 - 1 for i in range(72)]))
INT8 = ["--quant", "int8", "--calib", SAMPLE]
GGUF = file("falcon.gguf", b"GGUF" + struct.pack("<IQQQ20sIQ6s", 3, 0, 1, 20, b"general.architecture", 8, 6, b"falcon"))
MOE = file("moe.gguf", b"GGUF" + struct.pack("<IQQQ20sIQ8sQ21sII", 3, 0, 2, 20, b"general.architecture", 8, 8, b"qwen3moe",
                                             21, b"qwen3moe.expert_count", 4, 8))

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
    (["compile", "--machine", "stm32f745", *OUT], USAGE,
     ["'stm32f745'", "expected uthinker, ", "did you mean 'stm32f746'?"]),
    (["compile", NETWORK, "--target", "cnnchip", "--machine", "pe65", *OUT], USAGE, ["'pe65'", "did you mean 'pe64'?"]),
    (["run", WORK / "nosuch"], IO, ["nosuch", "No such file"]),
    (["inspect", WORK], IO, [str(WORK), "config.json"]),
    (["inspect", copy("no_weights", model_safetensors=None)], IO, ["no_weights: holds no weights: expected model.safetensors"]),
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
    (["run", BLOCKS], UNSUPPORTED, ["blocks.bdt", "muc compile FILE"]),
    (["eval", BLOCKS, "--text", RESCUE / "test.txt"], UNSUPPORTED, ["blocks.bdt", "muc compile FILE"]),
    (["run", NETWORK], USAGE, ["'x'", "no array"]),
    (["run", NETWORK, "--input", THREE], USAGE, ["'x'", "f32 [1, 2, 6, 6]", "three.npy", "f32 [3]"]),
    (["run", NETWORK, "--prompt", "hello"], USAGE, ["small.graph", "--tokenizer FILE", "--input"]),
    (["run", RESCUE, "--prompt", "go to the lab " * 200], USAGE, ["models/rescue", "prompt has", "context 256"]),
    (["compile", NETWORK, "--target", "mcu", "--quant", "int8", *OUT], USAGE, ["small.graph", "--calib", ".npz"]),
    (["compress", "--budget-flash", "1K", "--calib", "none", "-o", WORK / "small"], NOFIT, ["bytes of flash", "more than the budget"]),
    (["run", TWO, "--input", arrays("one", left=3)], USAGE, ["two.onnx", "'right' has no array", "has 'left'"]),
    (["run", TWO, "--input", arrays("typo", left=3, rigth=3)], USAGE, ["two.onnx", "'right' has no array", "is 'rigth' meant"]),
    (["run", TWO, "--input", arrays("long", left=4, right=3)], USAGE, ["two.onnx", "'left'", "[batch, 3]", "[1, 4]"]),
    (["run", TWO, "--input", file("text.npy", npy([1, 3], [1, 2, 3]).replace(b"<f4", b"<U4"))], UNSUPPORTED,
     ["text.npy", "'<U4'", "'<f4'", "'|u1'"]),
    (["run", WHOLE, "--input", file("half.npy", npy([2], [0.5, 1]))], USAGE, ["half.npy", "0.5", "not a number of type i64"]),
    (["run", TWO, "--dim", "bach=1"], USAGE, ["two.onnx", "open dimension 'bach'", "expected batch", "did you mean 'batch'?"]),
    (["run", TWO, "--type", "lft=u8"], USAGE, ["two.onnx", "input 'lft'", "left or right", "did you mean 'left'?"]),
    (["run", TWO, "--type", "left=u88"], USAGE, ["--type", "'u88'", "u8 or bool", "did you mean 'u8'?"]),
    (["run", NETWORK, "--dim", "n=1"], USAGE, ["small.graph", "--dim", "ONNX"]),
    (["compile", TWO, "--target", "cnnchip", "--dim", "batch=1..16", *OUT], UNSUPPORTED,
     ["two.onnx", "dimension 0 of 'left' is open", "--dim batch=1"]),
    (["compile", WHOLE, "--target", "cnnchip", *OUT], UNSUPPORTED, ["whole.onnx", "nothing of it", "neg", "--target mcu"]),
    (["compile", "--attention", "recompte", *OUT], USAGE, ["--attention", "cache or recompute", "did you mean 'recompute'?"]),
    (["compile", NETWORK, "--target", "mcu", "--patch", "leest", *OUT], USAGE,
     ["--patch", "auto, least or off", "did you mean 'least'?"]),
    (["compile", NETWORK, "--target", "mcu", "--fuse", "of", *OUT], USAGE, ["--fuse", "did you mean 'off'?"]),
    (["compile", NETWORK, "--target", "cnnchip", "--element", "fp61", *OUT], USAGE,
     ["--element", "fp32, fp16 or int8", "did you mean 'fp"]),
    (["compile", NETWORK, "--target", "mcu", "--quant", "int4", "--calib", SAMPLE, *OUT], USAGE,
     ["'int4'", "expected int8", "did you mean 'int8'?"]),
    (["compile", NETWORK, "--target", "mcu", *INT8, "--keep-float", "sofmax", *OUT], USAGE,
     ["small: ", "'sofmax'", "conv, sigmoid", "did you mean 'softmax'?"]),
    (["inspect", NETWORK, "--format", "jsn"], USAGE, ["text, json, csv, html or md", "'jsn'", "did you mean 'json'?"]),
    (["inspect", NETWORK, "--format", "csv", "--table", "inptus"], USAGE,
     ["table 'inptus'", "inputs, outputs", "did you mean 'inputs'?"]),
    (["compile", "--target", "mcu", "--machine", file("z80.ini", b"[machine]\nname = z\ncore = cortex-m44\n"), *OUT],
     MALFORMED, ["z80.ini", "line 3", "core 'cortex-m44'", "did you mean 'cortex-m4'?"]),
    (["compile", "--target", "mcu", "--machine", file("kore.ini", b"[machine]\nname = z\nkore = cortex-m4\n"), *OUT],
     MALFORMED, ["kore.ini", "line 3", "key 'kore'", "did you mean 'core'?"]),
    (["inspect", MOE], UNSUPPORTED, ["moe.gguf", "a mixture of 8 experts"]),
    (["inspect", GGUF], UNSUPPORTED, ["falcon.gguf", "'falcon'", "llama", "qwen3"]),
    (["compile", *OUT[:1], WORK / "no/such/folder"], IO, ["no/such/folder", "there is no folder"]),
    (["compile", "-o", WORK], USAGE, [str(WORK), "is a folder", "name a file"]),
]


def test_a_mistake_is_told_with_what_to_do():
    for arguments, status, pieces in MISTAKES:
        out, err = muc(*arguments, status=status)
        assert not (WORK / "out").exists(), arguments
        has(err, *pieces)
        assert len(err.splitlines()) <= 2, err


def test_a_full_disk_is_told_and_leaves_nothing():
    made = {"model.utp": ["compile"], "model.bdt": ["quantize"], "model.c": ["compile", "--target", "mcu"],
            "model-8": ["compress", "--bits", "8", "--calib", "none"]}
    for name, verb in made.items():
        place = WORK / "full"
        place.mkdir()
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
        done = subprocess.run([MUC, *verb, "-o", place / name], capture_output=True, timeout=200, preexec_fn=limit)
        err = done.stderr.decode()
        assert done.returncode == IO, (name, err)
        has(err, str(place / name.split(".")[0]), "cannot write", "File too large")
        assert not list(place.iterdir()), list(place.iterdir())
        place.rmdir()
    with open("/dev/full", "wb") as full:
        done = subprocess.run([MUC, "targets"], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == IO and b"standard output cannot be written" in done.stderr, done


def test_a_model_without_tokenizer_has_one_rule():
    """What reads or writes text asks for one, in one sentence; what does not writes a model without one again."""
    model, tokenizer = NO_TOKENIZER, ["--tokenizer", RESCUE / "tokenizer.model"]
    blocks, folder, text = WORK / "none.bdt", WORK / "none-8", file("none.txt", b"go to the lab\n")
    muc("inspect", model)
    muc("quantize", model, "-o", blocks)
    muc("compress", model, "--bits", "8", "--calib", "none", "-o", folder)
    for carrier in model, folder, blocks:
        asks = [["compile", carrier, *OUT]]
        if carrier != blocks:
            asks += [["compile", carrier, "--target", "mcu", *OUT], ["run", carrier], ["eval", carrier, "--text", text]]
        if carrier == model:
            asks += [["quantize", carrier, "--calib", text, *OUT], ["compress", carrier, "--bits", "8", "--text", text, *OUT],
                     ["train", carrier, "--data", text, "--steps", "1", *OUT]]
        for arguments in asks:
            has(muc(*arguments, status=USAGE)[1], str(carrier), "carries no tokenizer", "--tokenizer FILE")
    muc("compile", model, *tokenizer, "-o", WORK / "given.utp")
    muc("compile", blocks, *tokenizer, "-o", WORK / "late.utp")
    own = copy("own_tokenizer")
    muc("compile", own, "-o", WORK / "whole.utp")
    whole = (WORK / "whole.utp").read_bytes()
    assert whole == (WORK / "given.utp").read_bytes() == (WORK / "late.utp").read_bytes()
    muc("compress", model, "--bits", "8", "--calib", "none", *tokenizer, "-o", folder)
    muc("compress", own, "--bits", "8", "--calib", "none", "-o", WORK / "whole-8")
    assert muc("run", folder, "--prompt", "scan the lab")[0] == muc("run", WORK / "whole-8", "--prompt", "scan the lab")[0]
    has(muc("run", WORK / "whole.utp", *tokenizer, status=USAGE)[1], "carries its tokenizer", "models without one")


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
    assert "the program for --budget-flash" in " ".join(muc("compress", "--help")[0].split())
    assert "--budget-flash" not in muc("compile", "--help")[0]


# ---- operators that muc does not have ----

def branching(condition, then, other):
    """y = If(condition) of x [3]: operators of the branches."""
    def branch(operators):
        last, nodes = "x", []
        for i, operator in enumerate(operators):
            nodes.append(seeds.node(operator, [last], [f"{operators[0]}{i}"]))
            last = f"{operators[0]}{i}"
        return seeds.data(6, seeds.graph(nodes, [], [seeds.value(last, [3])])) + seeds.number(20, 5)

    chosen = seeds.data(5, seeds.data(1, "then_branch") + branch(then)) + \
        seeds.data(5, seeds.data(1, "else_branch") + branch(other))
    taken = seeds.number(2, 9) + seeds.data(8, "c") + seeds.data(9, bytes([condition]))
    return seeds.model([seeds.node("If", ["c"], ["y"]) + chosen], [seeds.value("x", [3])], [seeds.value("y", [3])], [taken])


def test_operators_of_branches_are_named_with_all_others():
    net = file("branch.onnx", branching(True, ["Wobble", "Relu", "Twist"], ["Spin"]))
    has(muc("run", net, "--input", THREE, status=UNSUPPORTED)[1], "branch.onnx", "Wobble (1 node", "Twist (1 node", "Spin (1 node")
    rows = json.loads(muc("inspect", net, "--json")[0])["operators"]
    assert {row["operator"]: row["supported"] for row in rows} == {
        "If": True, "Wobble": False, "Relu": True, "Twist": False, "Spin": False}
    # the branch that is not taken refuses nothing
    muc("run", file("branch.onnx", branching(False, ["Wobble"], ["Relu"])), "--input", THREE)


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
