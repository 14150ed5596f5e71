"""What the tests of the command share: muc run as a user does, models compiled once, TAP."""
import os
import pathlib
import subprocess
import tempfile

from files import DATA, FROM_SANITIZER, MUC, OK, ROOT, Skip, npy

STORIES = {
    "llama2.c": [DATA / "llama/stories260K.bin", "--tokenizer", DATA / "llama/tok512.bin"],
    "Hugging Face": [DATA / "llama/stories260K-hf"],
    "Hugging Face in shards": [DATA / "llama/stories260K-hf/sharded"],
    "GGUF": [DATA / "llama/stories260K-f32.gguf"],
}
TOKENIZER = ROOT / "models/rescue/tokenizer.model"
COMMAND = "search the north corridor for survivors and come back"
PLAN = "goto north corridor; scan survivor; return\n"  # what the built-in model answers
BRIEF = os.environ.get("MUC_TESTS_SLOW") == "0"  # brief() of check.h
PLACE = tempfile.TemporaryDirectory(prefix="muc-test-")  # until the end of the tests
WORK = pathlib.Path(PLACE.name)


def muc(*args, status=OK, stdin=None, cwd=ROOT, raw=False):
    """Runs muc and checks its exit status; gives (stdout, stderr)."""
    done = subprocess.run([MUC, *map(str, args)], input=stdin, capture_output=True, cwd=cwd,
                          timeout=240)
    err = done.stderr.decode(errors="replace")
    out = done.stdout if raw else done.stdout.decode(errors="replace")
    if FROM_SANITIZER.search(err) or done.returncode < 0:
        raise AssertionError(f"muc {args} crashed ({done.returncode}): {err[-2000:]}")
    allowed = status if isinstance(status, (set, list, range)) else {status}
    if done.returncode not in allowed:
        raise AssertionError(f"muc {args} ended with {done.returncode}, expected {status}: {err}")
    return out, err


def need_data():
    if not DATA.is_dir():
        raise Skip("../shared/data is not at hand")


def has(text, *fragments):
    for fragment in fragments:
        assert fragment in text, f"{fragment!r} is not in {text!r}"


def program(name="rescue", *options):
    """Compiles the built-in model, or stories260K, once for each set of options."""
    path = WORK / ("-".join([name, *map(str, options)]).replace("/", "_") + ".utp")
    if not path.exists():
        model = [ROOT / "models/rescue"] if name == "rescue" else STORIES["Hugging Face"]
        muc("compile", *model, *options, "-o", path)
    return path


def compiled_code():
    """The built-in model as C, made once; a language model needs no shared data."""
    code = WORK / "rescue_c"
    if not code.is_dir():
        muc("compile", "--target", "mcu", "--machine", "mps2-an500", "-o", code)
    return code


def write_npy(path, shape, values):
    path.write_bytes(npy(shape, values))
