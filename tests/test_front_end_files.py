"""muc frontend as a user calls it: features of recordings beside torchaudio's, ONNX Runtime's and TensorFlow's
definition, the folder of C beside muc itself, and MLPerf Tiny's keyword spotter fed by it. Prints TAP."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import wave

from files import DATA, MALFORMED, ROOT, UNSUPPORTED, USAGE, Skip, muc, run_tests

try:
    import numpy as np
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)
sys.path.insert(0, str(ROOT / "fuzz"))
from onnx_seeds import data, graph, node, number, tensor, value  # noqa: E402

PLACE = tempfile.TemporaryDirectory(prefix="muc-front-end-")
WORK = pathlib.Path(PLACE.name)
RNG = np.random.default_rng(5)
RATE = 16000


def record(path, samples, rate=RATE):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return path


def sound(seconds=1.0):
    """A chirp, a tone and noise, as 16-bit samples."""
    t = np.arange(int(RATE * seconds)) / RATE
    x = 0.3 * np.sin(2 * np.pi * (200 + 600 * t) * t) + 0.1 * np.sin(2 * np.pi * 2500 * t) + 0.02 * RNG.normal(size=t.size)
    return np.clip(np.round(x * 32768), -32768, 32767).astype(np.int16)


def features(samples, description, numbers="float"):
    given, got = record(WORK / "given.wav", samples), WORK / "got.npy"
    muc("frontend", given, "--features", f"{description},numbers={numbers}", "-o", got)
    return np.load(got)


def decibels(found, expected):
    expected = expected.astype(np.float64)
    return 10 * np.log10(((expected - expected.mean(0)) ** 2).sum() / ((found - expected) ** 2).sum())


TORCH = """
import sys, itertools, numpy, torch, torchaudio
torch.set_default_dtype(torch.float64)
given = numpy.load(sys.argv[1])
made = {}
for mel, norm, power, log, cepstra, window in itertools.product(["slaney", "htk"], [None, "slaney"], [1, 2], ["ln", "db"], [0, 13], [512, 400]):
    before = (512 - window) // 2
    x = torch.nn.functional.pad(torch.tensor(given / 32768.0), (before, 512 - window - before))
    settings = dict(n_fft=512, win_length=window, hop_length=160, f_min=20.0, f_max=8000.0, n_mels=40, power=power, norm=norm,
                    mel_scale=mel, center=False)
    if cepstra and power == 2 and log == "ln":
        y = torchaudio.transforms.MFCC(16000, n_mfcc=13, log_mels=True, melkwargs=settings)(x)
    else:
        y = torchaudio.transforms.MelSpectrogram(16000, **settings)(x)
        y = torch.log(y + 1e-6) if log == "ln" else torchaudio.transforms.AmplitudeToDB("power")(y)
        if cepstra:
            y = (y.T @ torchaudio.functional.create_dct(13, 40, "ortho")).T
    made[f"{mel},{norm},{power},{log},{cepstra},{window}"] = y.T.numpy()
numpy.savez(sys.argv[2], **made)
"""


def test_features_are_torchaudios():
    given, got = WORK / "torch.npy", WORK / "torch.npz"
    samples = sound()
    np.save(given, samples)
    done = subprocess.run(["/usr/bin/python3", "-c", TORCH, given, got], capture_output=True)
    if b"No module named" in done.stderr or b"cannot open shared object" in done.stderr:
        raise Skip("no torchaudio (scripts/setup sound)")
    assert done.returncode == 0, done.stderr
    for name, expected in np.load(got).items():
        mel, norm, power, log, cepstra, window = name.split(",")
        description = f"window={window},hop=160,fft=512,low=20,high=8000,mel={mel},norm={norm.lower()},power={power},log={log}," \
                      f"least={'1e-6' if log == 'ln' else '1e-10'},cepstra={cepstra},dct=ortho"
        found = features(samples, description)
        assert len(found) >= 97
        unit = 1 if log == "ln" else 10 / np.log(10)
        worst = abs(found - expected[:len(found)]).max() / unit
        assert worst < 1e-4, (name, worst)
        fixed = features(samples, description, "fixed")
        assert decibels(fixed, found) > 40, name


def onnx_network(samples, window, fft, hop, bands, low, high):
    """|STFT| times MelWeightMatrix, by ONNX's operators."""
    nodes = [node("HannWindow", ["size"], ["window"], periodic=1),
             node("STFT", ["signal", "hop", "window", "frame"], ["complex"], onesided=1),
             node("ReduceL2", ["complex"], ["magnitude"], axes=[3], keepdims=0),
             node("MelWeightMatrix", ["bands", "fft", "rate", "low", "high"], ["filters"]),
             node("MatMul", ["magnitude", "filters"], ["mel"])]
    whole = {"size": window, "hop": hop, "frame": fft, "bands": bands, "fft": fft, "rate": RATE}
    constants = [tensor(name, [], [v], 7) for name, v in whole.items()]
    constants += [tensor("low", [], [low]), tensor("high", [], [high])]
    frames = (len(samples) - fft) // hop + 1
    made = graph(nodes, [value("signal", [1, len(samples), 1])], [value("mel", [1, frames, bands])], constants)
    return number(1, 8) + data(7, made) + data(8, data(1, "") + number(2, 17))


NODE = """
const ort = require('onnxruntime-node'), fs = require('fs');
(async () => {
    const session = await ort.InferenceSession.create(process.argv[1]);
    const bytes = fs.readFileSync(process.argv[2]);
    const samples = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    const out = await session.run({signal: new ort.Tensor('float32', samples, [1, samples.length, 1])});
    fs.writeFileSync(process.argv[3], Buffer.from(out.mel.data.buffer, out.mel.data.byteOffset, out.mel.data.byteLength));
})();
"""


def test_bands_are_onnx_runtimes():
    if not shutil.which("npm"):
        raise Skip("no Node.js")
    root = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True).stdout.strip()
    if not (pathlib.Path(root) / "onnxruntime-node").is_dir():
        raise Skip("no onnxruntime-node (scripts/setup sound)")
    samples = sound()
    for fft, hop, bands, low, high in ((512, 160, 40, 20, 8000), (512, 512, 80, 0, 8000), (256, 100, 13, 100, 4000)):
        network, given, got = WORK / "mel.onnx", WORK / "samples", WORK / "mel"
        network.write_bytes(onnx_network(samples, fft, fft, hop, bands, low, high))
        given.write_bytes((samples / 32768).astype(np.float32).tobytes())
        done = subprocess.run(["node", "-e", NODE, network, given, got], capture_output=True, env={"NODE_PATH": root, "PATH": "/usr/bin:/bin:/usr/local/bin"})
        assert done.returncode == 0, done.stderr
        mel = np.frombuffer(got.read_bytes(), np.float32).reshape(-1, bands)
        description = f"window={fft},hop={hop},fft={fft},bands={bands},low={low},high={high},mel=onnx,cepstra=0"
        found = features(samples, description)
        assert found.shape == mel.shape, (found.shape, mel.shape)
        worst = abs(np.exp(found.astype(np.float64)) - 1e-6 - mel).max()  # of energies up to 70
        assert worst < 1e-4, (description, worst)


def tensorflows(samples):
    """MLPerf Tiny's features, by the definitions of tf.signal."""
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(480) / 480)
    frames = np.stack([samples[i:i + 480] / 32768 * hann for i in range(0, len(samples) - 479, 320)])
    spectrum = abs(np.fft.rfft(frames, 512))
    mel = 1127 * np.log1p(np.arange(257) * RATE / 512 / 700)
    edges = np.linspace(1127 * np.log1p(20 / 700), 1127 * np.log1p(4000 / 700), 42)
    filters = np.stack([np.maximum(0, np.minimum((mel - a) / (b - a), (c - mel) / (c - b)))
                        for a, b, c in zip(edges, edges[1:], edges[2:])], 1)
    filters[0] = 0
    log = np.log(spectrum @ filters + 1e-6)
    k, b = np.arange(10)[:, None], np.arange(40)[None]
    return log @ (np.cos(np.pi * k * (b + 0.5) / 40) * 2 / np.sqrt(80)).T


def test_by_default_they_are_tensorflows_for_mlperf_tiny():
    samples = sound()
    found = features(samples, "rate=16000")
    assert found.shape == (49, 10), found.shape
    assert abs(found - tensorflows(samples)).max() < 1e-4


def test_mlperf_tinys_keyword_spotter_takes_them():
    model = DATA / "tflite/kws_ref_model.tflite"
    if not model.exists():
        raise Skip("../shared/data is not at hand")
    given = record(WORK / "second.wav", sound())
    muc("frontend", given, "-o", WORK / "second.npy")
    muc("compile", model, "--target", "mcu", "-o", WORK / "kws")
    results = []
    for network in (model, WORK / "kws"):
        muc("run", network, "--input", WORK / "second.npy", "--output", WORK / "scores.npz")
        results += np.load(WORK / "scores.npz").values()
    assert results[0].shape == (1, 12) and (results[0] == results[1]).all(), results


def test_several_recordings_are_one_array():
    paths = [record(WORK / f"{i}.wav", sound()) for i in range(3)]
    out = json.loads(muc("frontend", *paths, "-o", WORK / "three.npy", "--json"))
    assert out["frames"] == 49 and len(out["recordings"]) == 3, out
    three = np.load(WORK / "three.npy")
    assert three.shape == (3, 49, 10)
    muc("frontend", paths[1], "-o", WORK / "one.npy")
    assert (np.load(WORK / "one.npy") == three[1]).all()
    longer = record(WORK / "longer.wav", sound(1.5))
    muc("frontend", paths[0], longer, "-o", WORK / "no.npy", status=USAGE, message="equally long")
    assert not (WORK / "no.npy").exists()


def test_what_is_no_recording_is_refused():
    muc("frontend", ROOT / "README.md", status=UNSUPPORTED, message="RIFF WAVE")
    short = record(WORK / "short.wav", sound()[:100])
    muc("frontend", short, status=USAGE, message="fewer than a window")
    other = record(WORK / "other.wav", sound(), rate=22050)
    muc("frontend", other, status=USAGE, message="rate=22050")
    cut = WORK / "cut.wav"
    cut.write_bytes(short.read_bytes()[:30])
    muc("frontend", cut, status=MALFORMED)
    muc("frontend", status=USAGE, message="-o FILE")
    muc("frontend", short, "--features", "window=7", status=USAGE, message="from 16 to 4096")


def test_the_folder_computes_what_muc_computes():
    samples = sound()
    for description in ("rate=16000", "window=400,hop=400,mel=slaney,norm=slaney,power=2,cepstra=0"):
        code = WORK / "front"
        muc("frontend", "--features", description, "--name", "ears", "--force", "-o", code)
        made = subprocess.run(f"cc -std=c99 -O1 -Wall -Wextra -Werror -ffp-contract=off -I{code}/include -I{code} {code}/main.c {code}/ears*.c "
                              f"{code}/kernels/signal/*.c -o {code}.exe", shell=True, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        for numbers, arguments in (("float", []), ("fixed", ["fixed"])):
            out = subprocess.run([f"{code}.exe", *arguments], input=samples.tobytes(), capture_output=True, check=True).stdout
            printed = np.array([[float(x) for x in line.split()] for line in out.decode().splitlines()])
            expected = features(samples, description, numbers)
            assert printed.shape == expected.shape
            np.testing.assert_allclose(printed, expected, rtol=6e-6, atol=1e-6)
        assert (code / "README.md").read_text().count("ears_q16") > 0


def test_the_folder_shares_a_firmware_with_a_network():
    if not shutil.which("cmake"):
        raise Skip("no CMake")
    place = WORK / "together"
    place.mkdir()
    muc("frontend", "--name", "ears", "-o", place / "ears")
    muc("compile", ROOT / "examples/gesture/gesture.pt", "--arch", ROOT / "examples/gesture/gesture.arch", "--target", "mcu", "--name", "net",
        "-o", place / "net")
    (place / "main.c").write_text('#include "ears.h"\n#include "mur_ring.h"\n#include "net.h"\n'
                                  "int main(void)\n{\n    static int16_t frame[EARS_WINDOW];\n    static int64_t scratch[EARS_SCRATCH_BYTES / 8 + 1];\n"
                                  "    int32_t out[EARS_FEATURES];\n    mur_ring ring;\n    (void)net_run;\n    mur_ring_open(&ring, frame, 2, 256);\n"
                                  "    mur_front_end_q16_run(&ears_q16, frame, scratch, out);\n    return out[0] == 0;\n}\n")
    (place / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.10)\nproject(x C)\nadd_subdirectory(ears)\nadd_subdirectory(net)\n"
                                          "add_executable(x main.c)\ntarget_link_libraries(x ears net)\n")
    for command in (["cmake", "-S", place, "-B", place / "build"], ["cmake", "--build", place / "build"], [place / "build/x"]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
