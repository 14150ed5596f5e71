"""What the tests of files share: muc run on files that they make, results as lists, TAP."""
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

from tap import Skip, need, run_cases  # noqa: F401, for the tests that import this file

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
MUC = pathlib.Path(sys.argv[1]).resolve()
OK, MALFORMED, UNSUPPORTED, NOFIT, NOMEM, IO, BUG, USAGE, MISMATCH = range(9)
FROM_SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:")


def muc(*args, status=OK, message="", env=None):
    """Runs muc, checks its exit status and that its errors hold the message; gives its output."""
    done = subprocess.run([MUC, *map(str, args)], capture_output=True, timeout=120, env=env)
    err = done.stderr.decode(errors="replace")
    if FROM_SANITIZER.search(err) or done.returncode < 0:
        raise AssertionError(f"muc {args} crashed ({done.returncode}): {err[-2000:]}")
    if done.returncode != status or message not in err:
        raise AssertionError(f"muc {args} ended with {done.returncode}, expected {status} and "
                             f"{message!r}: {err}")
    return done.stdout.decode()


def npy(dims, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(dims)}, }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + \
        struct.pack(f"<{len(values)}f", *values)


def write_npz(path, arrays):
    """arrays: (dims, values) by position."""
    with zipfile.ZipFile(path, "w") as file:
        for i, (dims, values) in enumerate(arrays):
            file.writestr(f"arr_{i}.npy", npy(dims, values))


def read_npz(path):
    """[(name, dims, values)] of f32."""
    arrays = []
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            data = file.read(name)
            end = 10 + struct.unpack_from("<H", data, 8)[0]
            dims = re.search(rb"'shape': \(([^)]*)\)", data[:end])[1]
            dims = [int(d) for d in dims.split(b",") if d.strip()]
            arrays.append((name[:-4], dims, list(struct.unpack_from(f"<{(len(data) - end) // 4}f",
                                                                    data, end))))
    return arrays


def run_network(*args, inputs):
    """The outputs of muc run on arrays (dims, values)."""
    with tempfile.TemporaryDirectory() as folder:
        given, got = pathlib.Path(folder) / "in.npz", pathlib.Path(folder) / "out.npz"
        write_npz(given, inputs)
        muc("run", *args, "--input", given, "--output", got)
        return read_npz(got)


def close(found, expected, tolerance=1e-5):
    """Within tolerance of the largest."""
    assert len(found) == len(expected), f"{len(found)} elements, expected {len(expected)}"
    largest = max(map(abs, expected), default=0)
    worst = max((abs(a - b) for a, b in zip(found, expected)), default=0)
    assert worst <= tolerance * largest, f"off by {worst} of {largest}"


def run_tests(tests):
    """Runs the functions named test_ of a module's globals."""
    return run_cases((name[len("test_"):], f) for name, f in tests.items() if name.startswith("test_"))
