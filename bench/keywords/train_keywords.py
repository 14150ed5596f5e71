#!/usr/bin/env python3
"""Trains the network of examples/keyword_spotter on synthetic speech, and measures the spotter on voices and noise that it was not trained on.

    bench/keywords/train_keywords.py train [FOLDER]     writes words.pt, cepstra.npy and words.wav there, by default into the example
    bench/keywords/train_keywords.py measure [FOLDER]   writes bench/keywords.csv
    (before the verb: --muc FILE, by default build/src/cli/muc; --keep FILE keeps the speech for the next run)

All speech is espeak-ng's and all noise computed: the figures say that the parts fit together, not how well a person is heard.
`measure` runs the example's own code, spotter.c with the folders that muc writes, compiled for this computer: the same integers as on
a board. Takes Debian's espeak-ng, python3-torch and python3-numpy (scripts/setup sound).
"""
import csv
import ctypes
import pathlib
import pickle
import subprocess
import sys
import tempfile
import wave

import numpy as np
import sounds
from sounds import RATE, WORDS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples/keyword_spotter"
SECOND, FRAMES, CEPSTRA, HOP, WINDOW = RATE, 49, 10, 320, 480
CLASSES = ["noise", "other", *WORDS]


# ---- sounds ----

def speech(keep):
    """((words, others) to train with, (words, others) to test with)"""
    if keep and keep.exists():
        return pickle.loads(keep.read_bytes())
    rng = np.random.default_rng(1)
    made = ((sounds.say_all(WORDS, sounds.TRAIN_VOICES, sounds.TRAIN_ACCENTS, 4, rng),
             sounds.say_all(sounds.OTHERS, sounds.TRAIN_VOICES[::3], sounds.TRAIN_ACCENTS, 1, rng)),
            (sounds.say_all(WORDS, sounds.TEST_VOICES, sounds.TEST_ACCENTS, 4, rng),
             sounds.say_all(sounds.TEST_OTHERS, sounds.TEST_VOICES, sounds.TEST_ACCENTS, 1, rng)))
    if keep:
        keep.write_bytes(pickle.dumps(made))
    return made


def of_any(lists, rng):
    some = lists[rng.integers(len(lists))]
    return sounds.loudness(some[rng.integers(len(some))])


def put(out, x, at):
    """Adds x from at on, as far as it is inside."""
    begin, end = max(at, 0), min(at + len(x), len(out))
    if end > begin:
        out[begin:end] += x[begin - at:end - at]


def talk(count, others, rng):
    """Other words one after another."""
    out, at = np.zeros(count), -int(rng.integers(0, RATE // 2))
    while at < count:
        x = of_any(others, rng)
        put(out, x, at)
        at += len(x) + int(rng.integers(0, RATE // 2))
    return out


def example(words, others, test, rng):
    """16-bit samples of a second, and its class."""
    kind = rng.integers(8)
    out, label = np.zeros(SECOND), 0
    if kind < 4:  # a word, whole, perhaps with others beside it
        x = sounds.loudness(words[kind][rng.integers(len(words[kind]))])
        x = (x if test else sounds.of_another_size(x, rng))[:SECOND - 1]
        at, label = int(rng.integers(0, SECOND - len(x))), 2 + int(kind)
        if rng.random() < 0.3:
            put(out, talk(SECOND, others, rng)[:max(at - 1600, 0)], 0)
            put(out, talk(SECOND, others, rng), at + len(x) + 1600)
        put(out, x, at)
    elif kind < 6:
        out, label = talk(SECOND, others, rng), 1
        if not test:
            out = np.resize(sounds.of_another_size(out, rng), SECOND)
    elif kind < 7:  # less than half of a word
        x, label = of_any(words, rng), 1
        inside = int(rng.uniform(0.1, 0.4) * len(x))
        put(out, x, SECOND - inside if rng.random() < 0.5 else inside - len(x))
    flat = [x for some in others for x in some]
    around = sounds.noise(SECOND, test, flat, rng)
    if not test:
        out, around = sounds.coloured_by_a_room(out, rng), sounds.coloured_by_a_room(around, rng)
    return sounds.mix(out, around, rng.uniform(5, 25) if test else rng.uniform(3, 30), rng.uniform(-18, 0)), label


# ---- code ----

class Code:
    """The front end, and with a network the spotter, compiled for this computer."""

    def __init__(self, muc, work, network=None):
        self.ears = work / "ears"
        subprocess.run([muc, "frontend", "--name", "ears", "--force", "-o", self.ears], check=True, capture_output=True)
        folders, sources = [self.ears], [ROOT / "bench/keywords/features.c"]
        if network:
            folders.append(work / "words")
            subprocess.run([muc, "compile", network / "words.pt", "--arch", EXAMPLE / "words.arch", "--quant", "int8", "--calib",
                            network / "cepstra.npy", "--target", "mcu", "--name", "words", "--force", "-o", folders[1]], check=True,
                           capture_output=True)
            sources.append(EXAMPLE / "spotter.c")
        for folder in folders:
            sources += [s for s in folder.rglob("*.c") if s.name != "main.c" and "kernels" not in s.parts]
        sources += {s.name: s for folder in folders for s in (folder / "kernels").rglob("*.c")}.values()
        includes = [f"-I{p}" for folder in folders for p in (folder, folder / "include")]
        subprocess.run(["cc", "-O2", "-ffp-contract=off", "-shared", "-fPIC", *includes, *sources, "-o", work / "code.so"], check=True)
        self.library = ctypes.CDLL(str(work / "code.so"))

    def features(self, samples):
        """[49][10] of a second."""
        out = np.empty((FRAMES, CEPSTRA), np.int32)
        samples = np.ascontiguousarray(samples, np.int16)
        self.library.features_of(samples.ctypes.data_as(ctypes.c_void_p), FRAMES, out.ctypes.data_as(ctypes.c_void_p))
        return (out / 65536).astype(np.float32)

    def hear(self, samples):
        """(second, word's number) of what the spotter hears, from its start."""
        samples, found, word = np.ascontiguousarray(samples, np.int16), [], ctypes.c_int()
        self.library.spotter_open()
        for at in range(0, len(samples) - 159, 160):
            self.library.spotter_put(ctypes.c_void_p(samples.ctypes.data + 2 * at), 160)
            while self.library.spotter_next(ctypes.byref(word)):
                if word.value >= 0:
                    found.append((at / RATE, word.value))
        return found


# ---- training ----

def network():
    from torch import nn

    class Words(nn.Module):
        """examples/keyword_spotter/words.arch is the same for muc."""

        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 32, (10, 4), stride=2, padding=(4, 1), bias=False)
            self.bn1 = nn.BatchNorm2d(32)
            self.conv2 = nn.Conv2d(32, 40, 3, stride=(2, 1), padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(40)
            self.conv3 = nn.Conv2d(40, 48, 3, stride=(2, 1), padding=1, bias=False)
            self.bn3 = nn.BatchNorm2d(48)
            self.fc = nn.Linear(48, len(CLASSES))

        def forward(self, x):
            x = self.bn1(self.conv1(x)).relu()
            x = self.bn2(self.conv2(x)).relu()
            x = self.bn3(self.conv3(x)).relu()
            return self.fc(x.mean((2, 3)))

    return Words()


def train(muc, folder, keep):
    import torch
    torch.manual_seed(1)
    torch.set_num_threads(1)
    (words, others), _ = speech(keep)
    rng = np.random.default_rng(2)
    count, epochs, size = 22000, 14, 64
    with tempfile.TemporaryDirectory() as work:
        code = Code(muc, pathlib.Path(work))
        made = [example(words, others, False, rng) for _ in range(count)]
        x = torch.from_numpy(np.stack([code.features(samples) for samples, _ in made])[:, None])
    labels = torch.tensor([label for _, label in made])
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * (count // size))
    for epoch in range(epochs):
        order, right = torch.randperm(count), 0
        for begin in range(0, count - size + 1, size):
            some = order[begin:begin + size]
            scores = net(x[some])
            loss = torch.nn.functional.cross_entropy(scores, labels[some], label_smoothing=0.02)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            right += int((scores.argmax(1) == labels[some]).sum())
        print(f"epoch {epoch + 1}: {right / count:.4f} of the training's seconds right", flush=True)
    torch.save(net.state_dict(), folder / "words.pt")
    np.save(folder / "cepstra.npy", x[:48].numpy())
    with wave.open(str(folder / "words.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(stream(speech(keep)[1], [1, 0, 3], 5, np.random.default_rng(3))[0].tobytes())


# ---- measuring ----

def stream(spoken, order, seconds, rng):
    """A test voice's words in this order among noise of the tests, and where each ends."""
    words, others = spoken
    out, ends, at = np.zeros(seconds * RATE), [], RATE // 2
    for word in order:
        x = sounds.loudness(words[word][rng.integers(len(words[word]))])
        put(out, x, at)
        at += len(x) + RATE
        ends.append((at - RATE) / RATE)
    flat = [x for some in others for x in some]
    return sounds.mix(out, sounds.noise(len(out), True, flat, rng), rng.uniform(10, 25), rng.uniform(-18, 0)), ends


def measure(muc, folder, keep):
    import torch
    (_, spoken) = speech(keep)
    rng = np.random.default_rng(5)
    net = network()
    net.load_state_dict(torch.load(folder / "words.pt"))
    net.eval()
    with tempfile.TemporaryDirectory() as work:
        code = Code(muc, pathlib.Path(work), folder)
        made = [example(*spoken, True, rng) for _ in range(1000)]
        with torch.no_grad():
            scores = net(torch.from_numpy(np.stack([code.features(s) for s, _ in made])[:, None])).argmax(1).numpy()
        merged = np.maximum(scores, 1) == np.maximum([label for _, label in made], 1)  # noise and other words are both no word
        seconds_right = float(merged.mean())
        spoken_words = heard_right = heard_wrong = 0
        for _ in range(150):
            order = [int(w) for w in rng.integers(0, 4, 3)]
            samples, ends = stream(spoken, order, 8, rng)
            found = code.hear(samples)
            for word, end in zip(order, ends):
                close = [w for second, w in found if end - 0.6 < second < end + 0.9]
                heard_right += word in close
                heard_wrong += any(w != word for w in close)
            spoken_words += len(order)
        print(f"{heard_right} of {spoken_words} words heard", flush=True)
        minutes, alarms = 60, 0
        for _ in range(minutes):
            out = talk(60 * RATE, spoken[1], rng)
            flat = [x for some in spoken[1] for x in some]
            samples = sounds.mix(out, sounds.noise(len(out), True, flat, rng), rng.uniform(5, 25), rng.uniform(-18, 0))
            alarms += len(code.hear(samples))
    return {"seconds_right_float": f"{seconds_right:.4f}", "words_spoken": spoken_words, "words_heard": heard_right,
            "words_heard_as_others": heard_wrong, "minutes_of_other_speech": minutes, "false_alarms": alarms}


def main():
    arguments, muc, keep = sys.argv[1:], ROOT / "build/src/cli/muc", None
    while arguments and arguments[0] in ("--muc", "--keep"):
        if arguments[0] == "--muc":
            muc = pathlib.Path(arguments[1]).resolve()
        else:
            keep = pathlib.Path(arguments[1])
        arguments = arguments[2:]
    if not arguments or arguments[0] not in ("train", "measure"):
        sys.exit(__doc__)
    folder = pathlib.Path(arguments[1]) if len(arguments) > 1 else EXAMPLE
    if arguments[0] == "train":
        train(muc, folder, keep)
        return
    found = measure(muc, folder, keep)
    with (ROOT / "bench/keywords.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(found)
        writer.writerow(found.values())
    print(found)


main()
