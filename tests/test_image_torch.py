"""Pictures scaled by the runtime's mur_image.c, beside PyTorch's interpolate. Prints TAP."""
import ctypes
import pathlib
import subprocess
import sys
import tempfile

from files import ROOT, Skip, run_tests

try:
    import numpy as np
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)

PLACE = tempfile.TemporaryDirectory(prefix="muc-image-")
WORK = pathlib.Path(PLACE.name)
RNG = np.random.default_rng(3)
NEAREST, BILINEAR, MEAN = range(3)


class Image(ctypes.Structure):
    _fields_ = [("pixels", ctypes.c_void_p), ("width", ctypes.c_uint16), ("height", ctypes.c_uint16), ("pitch", ctypes.c_uint32),
                ("channels", ctypes.c_uint8)]


class Part(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint16) for name in ("x", "y", "width", "height")]


class Target(ctypes.Structure):
    _fields_ = [("pixels", ctypes.c_void_p), ("width", ctypes.c_uint16), ("height", ctypes.c_uint16), ("flipped", ctypes.c_uint8)]


def scaled(library, picture, height, width, how):
    out, scratch = np.empty((height, width, picture.shape[2]), np.uint8), np.empty(width * picture.shape[2], np.uint32)
    rows, columns, channels = picture.shape
    status = library.mur_image_scale(
        ctypes.byref(Image(picture.ctypes.data, columns, rows, columns * channels, channels)),
        ctypes.byref(Part(0, 0, columns, rows)), how, ctypes.c_void_p(scratch.ctypes.data),
        ctypes.byref(Target(out.ctypes.data, width, height, 0)))
    assert status == 0
    return out


TORCH = """
import sys, numpy, torch
from torch.nn.functional import interpolate
given, made = numpy.load(sys.argv[1]), {}
for name, picture in given.items():
    size = [int(n) for n in name.split(",")[1:]]
    x = torch.tensor(picture.astype(numpy.float64)).permute(2, 0, 1)[None]
    for how, options in enumerate([dict(mode="nearest-exact"), dict(mode="bilinear"), dict(mode="bilinear", antialias=True)]):
        made[f"{name},{how}"] = interpolate(x, size=size, **options)[0].permute(1, 2, 0).numpy()
numpy.savez(sys.argv[2], **made)
"""


def test_pictures_are_scaled_as_pytorch_scales_them():
    sizes = [(97, 131, 40, 30), (240, 320, 96, 96), (32, 32, 64, 48), (51, 50, 8, 98), (12, 9, 12, 9)]
    pictures = {f"{i},{to_rows},{to_columns}": RNG.integers(0, 256, (rows, columns, 1 + i % 3), np.uint8)
                for i, (rows, columns, to_rows, to_columns) in enumerate(sizes)}
    np.savez(WORK / "given.npz", **pictures)
    done = subprocess.run(["/usr/bin/python3", "-c", TORCH, WORK / "given.npz", WORK / "made.npz"], capture_output=True)
    if b"No module named" in done.stderr or b"cannot open shared object" in done.stderr:
        raise Skip("no PyTorch (scripts/setup sound)")
    assert done.returncode == 0, done.stderr
    subprocess.run(["cc", "-std=c99", "-O2", "-shared", "-fPIC", f"-I{ROOT}/runtime/include", ROOT / "runtime/kernels/signal/mur_image.c", "-o",
                    WORK / "image.so"], check=True)
    library = ctypes.CDLL(str(WORK / "image.so"))
    for name, expected in np.load(WORK / "made.npz").items():
        i, rows, columns, how = map(int, name.split(","))
        found = scaled(library, pictures[f"{i},{rows},{columns}"], rows, columns, how)
        worst = abs(found - expected).max()
        assert worst == 0 if how == NEAREST else worst < 0.6, (name, worst)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
