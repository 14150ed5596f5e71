#!/usr/bin/env python3
"""The page of `muc report`, drawn by a browser: what stands where. Prints TAP; skipped without Chromium.

    tests/test_report_page.py MUC
"""
import base64
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUC = pathlib.Path(sys.argv[1]).resolve()
# added to a copy of the page: what stands where
MEASURE = """<script>
function box(e) { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; }
const out = { pictures: [] };
for (const button of document.querySelectorAll('.tools button')) if (button.textContent === 'unfold') button.click();
for (const svg of document.querySelectorAll('svg')) {
    const groups = [...svg.querySelectorAll('g:not(.folded):not(.handle):has(> rect)')].map(g => ({
        rect: box(g.querySelector('rect')), title: g.querySelector('title').textContent,
        texts: [...g.querySelectorAll('text')].map(box) }));
    out.pictures.push({ frame: box(svg), groups, texts: [...svg.querySelectorAll('text')].filter(t => !t.closest('.folded')).map(box),
        arrows: [...svg.querySelectorAll('path.arrow')].filter(p => !p.closest('.folded')).map(p => {
            const n = p.getTotalLength(), a = p.getPointAtLength(0), b = p.getPointAtLength(n);
            const f = box(svg); return [f[0] + a.x, f[1] + a.y, f[0] + b.x, f[1] + b.y]; }) });
}
out.rows = document.querySelectorAll('#layers tbody tr').length;
out.beyond = document.documentElement.scrollWidth - document.documentElement.clientWidth;
out.loads = performance.getEntriesByType('resource').length;
document.body.innerHTML = '<pre id="measured">' + btoa(unescape(encodeURIComponent(JSON.stringify(out)))) + '</pre>';
</script>"""


# added to a copy of the page: it clicks, and writes down what stands there then
CLICK = """<script>
const column = (table, name) => [...table.tHead.rows[0].cells].findIndex(cell => cell.firstChild?.textContent === name);
const cells = (table, name) => [...table.tBodies[0].rows].map(row => row.cells[column(table, name)].textContent);
const sort = (table, name) => { table.tHead.rows[0].cells[column(table, name)].click(); return cells(table, name); };
const press = (picture, word) => [...picture.previousElementSibling.children].find(button => button.textContent === word).click();
const paper = () => getComputedStyle(document.body).backgroundColor;
const seen = n => [...n.querySelectorAll('.node')].filter(box => box.getClientRects().length).length;
const table = document.querySelector('#layers table'), graph = document.querySelector('.node').closest('.picture');
const svg = graph.querySelector('svg'), out = { before: cells(table, 'macs') };
out.down = sort(table, 'macs');
out.up = sort(table, 'macs');
out.names = sort(table, 'name');
out.bars = sort(document.querySelector('#time table'), 'share');
out.papers = [paper()];
document.querySelector('#dark').click();
out.papers.push(paper());
document.querySelector('#dark').click();
out.papers.push(paper());
press(graph, 'unfold');
out.open = [seen(graph), svg.viewBox.baseVal.height];
press(graph, 'fold');
out.folded = [seen(graph), svg.viewBox.baseVal.height, graph.querySelectorAll('.block').length];
graph.querySelector('.folded').dispatchEvent(new Event('click'));
out.one = seen(graph);
graph.querySelector('.handle').dispatchEvent(new Event('click'));
out.again = seen(graph);
const width = +svg.getAttribute('width');
press(graph, '+');
out.zoomed = +svg.getAttribute('width') / width;
document.body.innerHTML = '<pre id="measured">' + btoa(unescape(encodeURIComponent(JSON.stringify(out)))) + '</pre>';
</script>"""


def within(inner, outer, slack=1.0):
    return (inner[0] >= outer[0] - slack and inner[1] >= outer[1] - slack and inner[2] <= outer[2] + slack and
            inner[3] <= outer[3] + slack)


def overlap(a, b):
    return min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 1


def measure(browser, page, folder, width=1400, script=MEASURE):
    path = folder / "measured.html"
    path.write_text(page.read_text().replace("</body>", script + "</body>"))
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},1000", f"--user-data-dir={folder}/profile",
                           "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120)
    found = re.search(r'id="measured">([^<]+)<', done.stdout)
    assert found, done.stderr[-2000:]
    return json.loads(base64.b64decode(found.group(1)))


def check_memory(picture, buffers):
    """A rectangle a buffer, none over another: at every step every byte is one buffer's."""
    groups = picture["groups"]
    assert len(groups) == sum(b["bytes"] > 0 for b in buffers), len(groups)
    for group in groups:
        assert within(group["rect"], picture["frame"]), group
    return groups


def check_graph(picture, inputs, steps):
    groups = picture["groups"]
    assert len(groups) == inputs + len(steps), len(groups)
    for i, group in enumerate(groups):
        assert within(group["rect"], picture["frame"]), group
        for text in group["texts"]:
            assert within(text, group["rect"]), (group["title"], text, group["rect"])
        for other in groups[:i]:
            assert not overlap(group["rect"], other["rect"]), (group["title"], other["title"])
    names = {group["title"].split("\n")[0]: group["rect"] for group in groups}
    assert all(step["name"] in names for step in steps), names
    # each arrow leaves a box's lower edge and meets another's upper edge
    lower = {(round((r[0] + r[2]) / 2), round(r[3])) for r in names.values()}
    upper = {(round((r[0] + r[2]) / 2), round(r[1])) for r in names.values()}
    near = lambda x, y, marks: any(abs(x - a) <= 2 and abs(y - b) <= 2 for a, b in marks)
    assert picture["arrows"]
    for x, y, to_x, to_y in picture["arrows"]:
        assert near(x, y, lower) and near(to_x, to_y, upper), (x, y, to_x, to_y)
    expected = sum(len(step["from"]) + len(step["inputs"]) for step in steps)
    assert len(picture["arrows"]) == expected, (len(picture["arrows"]), expected)


def find_browser():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def check_page(folder):
    browser = find_browser()
    if not browser:
        return "# SKIP no Chromium: scripts/setup test installs it"
    code, page = folder / "code", folder / "page.html"
    subprocess.run([MUC, "compile", ROOT / "models/rescue", "--target", "mcu", "-o", code], check=True, capture_output=True)
    subprocess.run([MUC, "report", code, "-o", page], check=True, capture_output=True)
    description = json.loads((code / "rescue.json").read_text())
    measured = measure(browser, page, folder)
    assert measured["loads"] == 0, "the page loads something"
    assert measured["rows"] == len(description["steps"])
    assert len(measured["pictures"]) == 2
    groups = check_memory(measured["pictures"][0], description["buffers"])
    check_graph(measured["pictures"][1], len(description["inputs"]), description["steps"])
    return f"# {len(groups)} buffers, {len(description['steps'])} steps"


def check_chip_page(folder):
    """The chip's page: a roofline, both memories, and a graph of x, conv, sigmoid (host), pool, linear, softmax (host)."""
    browser = find_browser()
    if not browser:
        return "# SKIP no Chromium: scripts/setup test installs it"
    code, page = folder / "code", folder / "page.html"
    subprocess.run([MUC, "compile", ROOT / "examples/cnnchip/small.graph", "--target", "cnnchip", "--pes", "9",
                    "-o", code], check=True, capture_output=True)
    subprocess.run([MUC, "report", code, "-o", page], check=True, capture_output=True)
    description = json.loads((code / "map.json").read_text())
    measured = measure(browser, page, folder)
    assert measured["loads"] == 0, "the page loads something"
    assert measured["rows"] == len(description["layers"]) == 3
    assert len(measured["pictures"]) == 4
    check_memory(measured["pictures"][1], description["buffers"])
    check_graph(measured["pictures"][3], 1, [
        {"name": name, "from": [before], "inputs": []}
        for name, before in (("c", "x"), ("host step 1", "c"), ("p", "host step 1"), ("l", "p"), ("host step 2", "l"))])
    assert [layer["from"] for layer in description["layers"]] == [["x"], ["s"], ["p"]]
    assert [host["from"] for host in description["host_steps"]] == [["c"], ["l"]]
    return ""


def check_program_page(folder):
    """A program's page: roofline, two timelines, shares of buffers, buffers; readable on a phone and in the dark."""
    browser = find_browser()
    if not browser:
        return "# SKIP no Chromium: scripts/setup test installs it"
    program, page = folder / "rescue.utp", folder / "page.html"
    subprocess.run([MUC, "compile", ROOT / "models/rescue", "-o", program], check=True, capture_output=True)
    subprocess.run([MUC, "report", program, "--position", "100", "-o", page], check=True, capture_output=True)
    text = page.read_text()
    assert "http:" not in text and "https:" not in text and len(text) < 1000000, len(text)
    assert text.index("How fast is it?") < text.index("is the bottleneck") < text.index("<nav>"), "the first screen"
    for width in (390, 1400):
        measured = measure(browser, page, folder, width)
        assert measured["loads"] == 0, "the page loads something"
        assert measured["rows"] == 5, measured["rows"]  # of layers
        assert measured["beyond"] <= 0, "tables and pictures scroll by themselves, the page does not"
        roofline, call, layer, shares, buffers = measured["pictures"]
        for picture in (roofline, call, layer, shares, buffers):
            for rect in picture["texts"] + [group["rect"] for group in picture["groups"]]:
                assert within(rect, picture["frame"]), (rect, picture["frame"])
        for i, one in enumerate(roofline["texts"]):
            assert not any(overlap(one, other) for other in roofline["texts"][:i]), (one, [o for o in roofline["texts"][:i] if overlap(one, o)])
        for timeline in (call, layer):
            bars = [group["rect"] for group in timeline["groups"]]
            assert len(bars) > 10
            for i, one in enumerate(bars):
                assert not any(overlap(one, other) for other in bars[:i]), one
        for i, one in enumerate(buffers["groups"]):
            for other in buffers["groups"][:i]:
                assert not overlap(one["rect"], other["rect"]), (one["title"], other["title"])
    return f"# {len(text)} bytes"


def check_clicks(folder):
    """Tables sort, blocks fold, pictures zoom, the switch changes the colours; the script is small and loads nothing."""
    browser = find_browser()
    if not browser:
        return "# SKIP no Chromium: scripts/setup test installs it"
    code, page = folder / "code", folder / "page.html"
    subprocess.run([MUC, "compile", ROOT / "models/rescue", "--target", "mcu", "-o", code], check=True, capture_output=True)
    subprocess.run([MUC, "report", code, "-o", page], check=True, capture_output=True)
    script = re.findall(r"<script>(.*?)</script>", page.read_text(), re.S)
    assert len(script) == 1 and len(script[0]) <= 100_000, [len(one) for one in script]
    assert "default-src 'none'" in page.read_text()
    assert ">multiply-accumulates</th>" in page.read_text() and ">MACs</th>" not in page.read_text()  # once, where they stand for time
    told = measure(browser, page, folder, script=CLICK)
    steps = json.loads((code / "rescue.json").read_text())["steps"]
    number = lambda text: float(text.replace(",", "").replace(" %", ""))
    macs = [step["macs"] for step in steps]
    assert [number(one) for one in told["before"]] == macs
    assert [number(one) for one in told["down"]] == sorted(macs, reverse=True) and [number(one) for one in told["up"]] == sorted(macs)
    assert told["names"] == sorted(step["name"] for step in steps), told["names"]
    shares = [number(one) for one in told["bars"]]
    assert shares == sorted(shares, reverse=True) and abs(sum(shares) - 100) < 0.1 * len(shares), shares
    light, dark, again = told["papers"]
    assert light == again != dark, told["papers"]
    boxes = 1 + len(steps)
    left, height, blocks = told["folded"]
    assert told["open"][0] == boxes and blocks == 8 and left < boxes / 2 and height < told["open"][1] / 2, told
    assert left < told["one"] < boxes and told["again"] == left and 1.3 < told["zoomed"] < 1.5, told
    return f"# {len(script[0])} bytes of script"


def main():
    checks = ((check_page, "the page of a report"), (check_chip_page, "the page of the CNN chip's report"),
              (check_program_page, "the page of a program's report"), (check_clicks, "a page that is clicked"))
    failed = 0
    print(f"1..{len(checks)}")
    for number, (check, name) in enumerate(checks, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"ok {number} - {name}, in Chromium {check(pathlib.Path(folder))}")
            except (AssertionError, subprocess.SubprocessError) as error:
                failed = 1
                print(f"not ok {number} - {name}, in Chromium")
                for line in f"{error}\n{getattr(error, 'stderr', '')}".splitlines():
                    print(f"# {line}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
