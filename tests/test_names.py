#!/usr/bin/env python3
"""Names that do harm where they are printed: on terminals, in spreadsheets, in JSON, in pages and in C. Prints TAP.

    tests/test_names.py MUC      from the source root
"""
import csv
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from html.parser import HTMLParser

from cli import WORK, has, muc
from files import BUG, MALFORMED, MUC, ROOT, UNSUPPORTED, USAGE, npy, run_tests

sys.path.insert(0, str(ROOT / "fuzz"))
from onnx_seeds import data, graph, node, number, tensor, value  # noqa: E402

# the name in a file, and as muc prints it
EVIL = {
    b"esc\x1b[2J\x07": r"esc\x1b[2J\x07",
    b"line\n# end\r\t": r"line\n# end\r\t",
    b"raw\x9b2J\xff\xc3": r"raw\x9b2J\xff\xc3",
    "c1\u009b2J\u0085".encode(): r"c1\u009b2J\u0085",
    "turn\u202eagain\u2066".encode(): r"turn\u202eagain\u2066",
    b"\x7f\xed\xa0\x80\xc0\x80": r"\x7f\xed\xa0\x80\xc0\x80",
    b"=cmd()|' /C calc'!A0": "=cmd()|' /C calc'!A0",
    b'@SUM("1","2")': '@SUM("1","2")',
    b"-1,+2": "-1,+2",
    b"</script><script>alert(1)</script>": "</script><script>alert(1)</script>",
    b"]]>--><!--&amp;": "]]>--><!--&amp;",
    b"*/ int evil; /*": "*/ int evil; /*",
    b"what??/": "what??/",
    b"end\\": "end\\",
    b"%s%n": "%s%n",
    "größe 漢".encode(): "größe 漢",
}
HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def clean(raw, what):
    text = raw.decode() if isinstance(raw, bytes) else raw  # valid UTF-8
    found = HARMFUL.search(text)
    assert not found, f"{what}: {found[0]!r} in {text[max(0, found.start() - 40):found.end() + 20]!r}"
    return text


def onnx(nodes, inputs, output, constants=()):
    return number(1, 8) + data(8, number(2, 13)) + data(7, graph(nodes, inputs, [output], constants))


def network(*names):
    """Of each name x [1, 2, 4, 4] -> Conv -> Relu, one after another."""
    nodes, constants, last = [], [], names[0] + b"x"
    for name in names:
        constants.append(tensor(name + b"w", [2, 2, 3, 3], [i / 36 for i in range(36)]))
        nodes.append(node("Conv", [last, name + b"w"], [name + b"c"], pads=[1, 1, 1, 1]) + data(3, name))
        nodes.append(node("Relu", [name + b"c"], [name]) + data(3, name + b"r"))
        last = name
    return onnx(nodes, [value(names[0] + b"x", [1, 2, 4, 4])], value(last, [1, 2, 4, 4]), constants)


def gguf(name):
    """A GGUF file whose architecture, key and only tensor have this name."""
    string = struct.pack("<Q", len(name)) + name
    architecture = b"general.architecture"
    out = b"GGUF" + struct.pack("<IQQQ", 3, 1, 2, len(architecture)) + architecture + struct.pack("<I", 8) + string
    out += string + struct.pack("<I", 8) + string + string + struct.pack("<IQIQ", 1, 1, 0, 0)
    return out + bytes(-len(out) % 32 + 4)


def checkpoint(name):
    """The built-in model with a tensor renamed."""
    folder = WORK / "evil"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "models/rescue", folder, ignore=shutil.ignore_patterns("train", "*.txt"))
    content = (folder / "model.safetensors").read_bytes()
    end = 8 + struct.unpack_from("<Q", content)[0]
    quoted = json.dumps(name.decode(errors="surrogateescape"), ensure_ascii=False)
    header = content[8:end].replace(b'"model.norm.weight"', os.fsencode(quoted))
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + content[end:])
    return folder


def file(name, content):
    path = WORK / os.fsdecode(name)
    path.write_bytes(content)
    return path


IN = file("in.npy", npy([1, 2, 4, 4], [i / 8 - 2 for i in range(32)]))


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.texts, self.tags = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, text):
        self.texts.append(text)


def forms(shown, *arguments, table=None):
    """The forms of a verb's report: each does no harm and has all the names; gives what JSON says."""
    def form(*more):
        return clean(muc(*arguments, *more, raw=True)[0], arguments)

    has(form(), *shown)
    page = form("--format", "html")
    parsed = Page(page)
    assert parsed.tags.count("script") == 1 and page.endswith("</script>\n</body></html>\n"), page[-300:]  # the page's own
    has("".join(parsed.texts), *shown)
    rows = form("--format", "csv", *(["--table", table] if table else []))
    cells = [cell for row in csv.reader(io.StringIO(rows)) for cell in row]
    for name in shown:
        named = [cell for cell in cells if name in cell]
        assert named and not any(cell[0] in "=+-@" for cell in named), (name, rows)
    report = form("--json")
    assert report.isascii()
    return json.loads(report)


def test_reports_show_names_and_do_no_harm():
    for name, shown in EVIL.items():
        report = forms([shown], "inspect", file("evil.onnx", network(name)), table="outputs")
        held = name.decode(errors="backslashreplace")  # a string of JSON may hold any character
        assert report["inputs"][0]["name"] == held + "x", report
    forms(EVIL.values(), "verify", file("evil.onnx", network(*EVIL)), "--quant", "int8", "--calib", IN, "--input", IN)


def test_messages_show_names_and_do_no_harm():
    three = file("three.npy", npy([3], [1, 2, 3]))
    for name, shown in EVIL.items():
        net = file("evil.onnx", network(name))
        has(clean(muc("run", net, "--input", three, status=USAGE)[1], name), shown + "x")


def test_generated_code_has_names_and_is_the_same_code():
    net, out = file("evil.onnx", network(*EVIL)), WORK / "code"
    clean("".join(muc("compile", net, "--target", "mcu", "-o", out)), net)
    for made in out.iterdir():
        if made.is_file() and made.suffix != ".bin":
            clean(made.read_bytes(), made)
    source = (out / "evil.c").read_text()
    has(source, *(shown.replace("*/", "* /").replace("/*", "/ *") for shown in EVIL.values()))
    subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Iinclude", "-c", "evil.c", "-o", "/dev/null"],
                   cwd=out, check=True)
    assert "int evil" not in re.sub(r"/\*.*?\*/", "", source, flags=re.S), source
    forms(EVIL.values(), "verify", out, net, "--input", IN)
    forms(EVIL.values(), "report", out)


def test_generated_code_refuses_in_the_names_of_its_network():
    indices = WORK / "indices.npz"
    with zipfile.ZipFile(indices, "w") as arrays:
        arrays.writestr("x.npy", npy([2, 4], range(8)))
        arrays.writestr("i.npy", npy([1], [9]))
    for name in b"raw\x9b2J\xff", b'"what??/%s\\', b"line\nend":
        gather = node("Gather", [name + b"x", name + b"i"], [name], axis=0)
        net = file("gather.onnx", onnx([gather], [value(name + b"x", [2, 4]), value(name + b"i", [1], 6)], value(name, [1, 4])))
        muc("compile", net, "--target", "mcu", "-o", WORK / "gather")
        shown = name.decode(errors="backslashreplace").replace("\n", "\\n")
        has(clean(muc("run", WORK / "gather", "--input", indices, status=USAGE)[1], name), shown + "i")


def test_dimensions_metadata_and_tensors_of_checkpoints_do_no_harm():
    for name, shown in EVIL.items():
        net = file("open.onnx", onnx([node("Relu", ["x"], ["y"])], [value("x", [name, 4])], value("y", [name, 4])))
        for made in muc("inspect", net, raw=True)[0], muc("inspect", net, "--json", raw=True)[0]:
            clean(made, name)
        clean("".join(muc("compile", net, "--target", "mcu", "-o", WORK / "open", status=range(9))), name)
        has(clean(muc("inspect", file("evil.gguf", gguf(name)), status=UNSUPPORTED)[1], name), shown)
        clean(muc("inspect", checkpoint(name), status=MALFORMED)[1], name)


def words(*arguments):
    """What muc says of a mistake in words of the command line."""
    done = subprocess.run([MUC, *arguments], capture_output=True, timeout=60)
    assert done.returncode not in (0, BUG) and done.returncode > 0, done
    return done.stdout + done.stderr


def test_words_of_the_command_line_do_no_harm():
    net, none = file("plain.onnx", network(b"plain")), WORK / "none"
    for name, shown in EVIL.items():
        for arguments in [[name], ["run", b"--" + name], ["run", b"no/" + name], ["run", "--temp", name],
                          ["inspect", file(name.replace(b"/", b":"), b"nothing")], ["inspect", net, "--dim", name + b"=0"],
                          ["compile", "--target", name, "-o", none], ["compile", net, "--target", "mcu", "--patch", name, "-o", none],
                          ["compile", net, "--target", "mcu", "--machine", name, "-o", none]]:
            has(clean(words(*arguments), name), shown if "inspect" not in arguments else "muc")


def test_the_chip_shows_names_and_does_no_harm():
    net, out = file("evil.onnx", network(*EVIL)), WORK / "chip"
    clean("".join(muc("compile", net, "--target", "cnnchip", "-o", out)), net)
    for made in "map.json", "FILES":
        clean((out / made).read_bytes(), made)
    json.loads((out / "map.json").read_text())
    report = forms(EVIL.values(), "verify", out, net, "--input", IN)
    assert report["compared"] >= len(EVIL), report
    forms(EVIL.values(), "report", out)
    muc("run", out, "--input", IN, "--dump", WORK / "dump")
    index = clean((WORK / "dump/index.csv").read_bytes(), "index.csv")
    has(" ".join(row["tensor"] for row in csv.DictReader(io.StringIO(index))), *EVIL.values())


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
