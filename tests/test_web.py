#!/usr/bin/env python3
"""What scripts/web made: the page, clicked in a browser, and the npm package, installed and used. Prints TAP.

    tests/test_web.py MUC FOLDER     MUC is the command, FOLDER what scripts/web wrote
"""
import contextlib
import gzip
import http.server
import json
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUC, WEB = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
COMMAND = "search the lab for gas, then go home"
# added to a copy of the page: it clicks as a user does, and writes down what stands there then
CLICKS = """<script>
const until = async test => { while (!test()) await new Promise(go => setTimeout(go, 50)); };
(async () => {
    document.querySelector('#builtin').click();
    await until(() => document.querySelectorAll('#machines tbody tr').length > 5);
    await until(() => /fits \\d+ of/.test(document.querySelector('#status').textContent));
    const rows = [...document.querySelectorAll('#machines tbody tr')].map(row => [...row.cells].map(cell => cell.textContent));
    let lit = 0;
    new MutationObserver(seen => { lit += seen.filter(one => one.target.className === 'lit').length; }).observe(
        document.querySelector('#stages'), { subtree: true, attributes: true });
    document.querySelector('#speak').click();
    await until(() => !document.querySelector('#speak').disabled);
    [...document.querySelectorAll('#machines tbody tr')].find(row => row.cells[0].textContent === 'uthinker').querySelector('button').click();
    await until(() => !document.querySelector('#details').hidden);
    const seen = { rows, lit, weights: getComputedStyle(document.querySelector('#machines td:nth-child(2)')).display, answer: document.querySelector('#answer').textContent, spoken: document.querySelector('#spoken').textContent,
        report: document.querySelector('#report').srcdoc.length, loads: performance.getEntriesByType('resource').map(one => one.name) };
    await fetch('http://127.0.0.1:@PORT@/', { method: 'POST', mode: 'no-cors', body: JSON.stringify(seen) });
})();
</script>"""


def native(*words):
    return subprocess.run([MUC, *words], check=True, capture_output=True, text=True).stdout


def clicked(place):
    """What stands on the page after the clicks; place: gives, of its file, a context of its address."""
    heard = queue.Queue()

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            heard.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Listener) as server, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = pathlib.Path(folder) / "page.html"
        clicks = CLICKS.replace("@PORT@", str(server.server_port))
        page.write_text((WEB / "muc.html").read_text().replace("</body>", clicks + "</body>"))
        with place(page) as address:
            browser = subprocess.Popen(["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                                        "--remote-debugging-port=0", address], stderr=subprocess.PIPE, text=True)
            try:
                return heard.get(timeout=300)
            except queue.Empty:
                browser.kill()
                raise AssertionError("the page does not answer: " + browser.communicate()[1][-1500:]) from None
            finally:
                browser.kill()
                browser.wait()
                server.shutdown()


@contextlib.contextmanager
def on_disk(page):
    yield page.as_uri()


@contextlib.contextmanager
def in_playground(page):
    server = subprocess.Popen([MUC, "playground", "--port", "0", "--page", page], stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()


def test_a_page_answers_as_the_command_does():
    seen = clicked(on_disk)
    told = json.loads(subprocess.run([MUC, "fit", ROOT / "models/rescue", "--json"], capture_output=True, text=True).stdout)
    assert [(row[0], row[2]) for row in seen["rows"]] == [(row["machine"], row["fits"]) for row in told["machines"]]
    assert seen["weights"] == "none", "of a language model no row says how weights are stored"
    assert seen["answer"] == native("run", ROOT / "models/rescue", "--prompt", COMMAND).strip(), seen["answer"]
    assert seen["spoken"] == "every bit is the machine's" and seen["lit"] > 45 and seen["report"] > 10000, seen
    assert not [name for name in seen["loads"] if not name.startswith("blob:")], seen["loads"]
    served = clicked(in_playground)
    assert {**served, "lit": 0, "loads": []} == {**seen, "lit": 0, "loads": []}, served  # how often a stage is lit depends on the clock
    assert not [name for name in served["loads"] if not name.startswith("blob:")], served["loads"]


def test_the_package_is_installed_and_compiles_to_the_same_bytes():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        packed = subprocess.run(["npm", "pack", "--silent", WEB / "package"], cwd=folder, check=True, capture_output=True, text=True)
        subprocess.run(["npm", "install", "--offline", "--no-audit", "--no-fund", folder / packed.stdout.strip()], cwd=folder, check=True,
                       capture_output=True)
        (folder / "use.js").write_text("""
            const { run } = require('ucompiler');
            (async () => {
                const made = await run(['compile', '/models/rescue', '-o', '/rescue.utp'], {}, '/rescue.utp');
                require('fs').writeFileSync('rescue.utp', made.files['/rescue.utp']);
                const said = await run(['run', '/rescue.utp', '--prompt', process.argv[2]], made.files);
                const code = await run(['compile', '/models/rescue', '--machine', 'nrf52840', '--target', 'mcu', '-o', '/code'], {}, '/code');
                for (const [name, bytes] of Object.entries(code.files)) {
                    require('fs').mkdirSync(require('path').dirname('.' + name), { recursive: true });
                    require('fs').writeFileSync('.' + name, bytes);
                }
                const wrong = await run(['inspect', '/none.onnx']);
                console.log(JSON.stringify({ status: made.status, said: said.text, wrong: [wrong.status, wrong.errors] }));
            })();""")
        done = subprocess.run(["node", "use.js", COMMAND], cwd=folder, check=True, capture_output=True, text=True)
        told = json.loads(done.stdout)
        native("compile", ROOT / "models/rescue", "-o", folder / "native.utp")
        assert told["status"] == 0 and told["said"] == native("run", folder / "native.utp", "--prompt", COMMAND), told
        assert (folder / "rescue.utp").read_bytes() == (folder / "native.utp").read_bytes()
        native("compile", ROOT / "models/rescue", "--machine", "nrf52840", "--target", "mcu", "-o", folder / "native")
        subprocess.run(["diff", "-r", folder / "code", folder / "native"], check=True, capture_output=True, text=True)
        assert told["wrong"][0] == 5 and "/none.onnx" in told["wrong"][1], told


def test_the_page_is_small():
    assert len(gzip.compress((WEB / "muc.html").read_bytes(), 9)) <= 3_000_000


def main():
    tests = [(name, function) for name, function in globals().items() if name.startswith("test_")]
    failed = 0
    print(f"1..{len(tests)}")
    for number, (name, function) in enumerate(tests, 1):
        tool = "chromium" if "page_answers" in name else "npm" if "package" in name else None
        if tool and not shutil.which(tool):
            print(f"ok {number} {name} # SKIP {tool} is missing")
            continue
        try:
            function()
            print(f"ok {number} {name}", flush=True)
        except (AssertionError, subprocess.CalledProcessError) as error:
            failed += 1
            print(f"not ok {number} {name}\n# {error} {getattr(error, 'stderr', '')}"[:2000], flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
