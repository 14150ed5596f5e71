#!/usr/bin/env python3
"""Trains the network of examples/keyword_spotter on synthetic speech, and measures the spotter on voices and noise that it was not trained on.

    bench/keywords/train_keywords.py train [FOLDER]     writes words.pt, cepstra.npy and words.wav there, by default into the example
    bench/keywords/train_keywords.py choose [FOLDER]    prints words and alarms of held-out voices by SPOTTER_LEAD
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
    """By use: (words, others) to train with, to choose the threshold with, to test with."""
    if keep and keep.exists():
        return pickle.loads(keep.read_bytes())
    rng = np.random.default_rng(1)
    train, accents, held_out = sounds.TRAIN_VOICES, sounds.TRAIN_ACCENTS, sounds.HELD_OUT_VOICES
    made = {"train": (sounds.say_all(WORDS, train, accents, 6, rng),
                      sounds.say_all(sounds.OTHERS, train[::3], accents, 1, rng) +
                      [[x] for x in sounds.say_sentences(6000, train, accents, rng)]),
            "choose": (sounds.say_all(WORDS, held_out, accents, 4, rng), [[x] for x in sounds.say_sentences(600, held_out, accents, rng)]),
            "test": (sounds.say_all(WORDS, sounds.TEST_VOICES, sounds.TEST_ACCENTS, 4, rng),
                     sounds.say_all(sounds.TEST_OTHERS, sounds.TEST_VOICES, sounds.TEST_ACCENTS, 1, rng))}
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


def among_noise(out, others, test, decibels, rng):
    """16-bit samples of `out` among noise that is so many decibels below, from and to."""
    around = sounds.noise(len(out), test, others, rng)
    if not test:
        out, around = sounds.coloured_by_a_room(out, rng), sounds.coloured_by_a_room(around, rng)
    return sounds.mix(out, around, rng.uniform(*decibels), rng.uniform(-18, 0))


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
    return among_noise(out, [x for some in others for x in some], test, (5, 25) if test else (3, 30), rng), label


def other_speech(others, test, seconds, rng):
    """16-bit samples of continuous speech without a word among noise."""
    out = talk(seconds * RATE, others, rng)
    if not test:
        out = np.resize(sounds.of_another_size(out, rng), seconds * RATE)
    return among_noise(out, [x for some in others for x in some], test, (5, 25) if test else (3, 30), rng)


# ---- code ----

class Code:
    """The front end, and with a network the spotter, compiled for this computer."""

    def __init__(self, muc, work, network=None, lead=None):
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
        defined = [f"-DSPOTTER_LEAD={lead}f"] if lead is not None else []
        built = work / f"code{lead}.so"
        subprocess.run(["cc", "-O2", "-ffp-contract=off", "-shared", "-fPIC", *defined, *includes, *sources, "-o", built], check=True)
        self.library = ctypes.CDLL(str(built))

    def features(self, samples):
        """[frames][10], of a second 49."""
        frames = (len(samples) - WINDOW) // HOP + 1
        out = np.empty((frames, CEPSTRA), np.int32)
        samples = np.ascontiguousarray(samples, np.int16)
        self.library.features_of(samples.ctypes.data_as(ctypes.c_void_p), frames, out.ctypes.data_as(ctypes.c_void_p))
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


def mistakes(net, code, others, minutes, rng):
    """Windows of other speech that the network takes for a word, or nearly, and some that it does not: [n][49][10]."""
    import torch
    found = []
    for _ in range(minutes):
        rows = torch.from_numpy(code.features(other_speech(others, False, 60, rng)))
        windows = rows.unfold(0, FRAMES, 3).transpose(1, 2)
        with torch.no_grad():
            scores = net(windows[:, None])
        lead = scores[:, 2:].amax(1) - scores[:, :2].amax(1)
        worst = lead.argsort(descending=True)[:40]
        found += [windows[worst[lead[worst] > -2]], windows[torch.from_numpy(rng.integers(0, len(windows), 10))]]
    return torch.cat(found)


def train(muc, folder, keep):
    import torch
    torch.manual_seed(1)
    torch.set_num_threads(1)
    spoken = speech(keep)
    words, others = spoken["train"]
    rng = np.random.default_rng(2)
    count, epochs, size = 30000, 18, 64
    with tempfile.TemporaryDirectory() as work:
        code = Code(muc, pathlib.Path(work))
        made = [example(words, others, False, rng) for _ in range(count)]
        x = torch.from_numpy(np.stack([code.features(samples) for samples, _ in made])[:, None])
        labels = torch.tensor([label for _, label in made])
        for_scales = x[:48].numpy()
        net = network()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
        for epoch in range(epochs):
            if epoch in (4, 7, 10, 13):
                net.eval()
                wrong = mistakes(net, code, others, 150, rng)
                net.train()
                x, labels = torch.cat([x, wrong[:, None]]), torch.cat([labels, torch.ones(len(wrong), dtype=torch.int64)])
                print(f"{len(wrong)} windows of other speech added", flush=True)
            order, right = torch.randperm(len(x)), 0
            for begin in range(0, len(x) - size + 1, size):
                some = order[begin:begin + size]
                scores = net(x[some])
                loss = torch.nn.functional.cross_entropy(scores, labels[some], label_smoothing=0.02)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                right += int((scores.argmax(1) == labels[some]).sum())
            schedule.step()
            print(f"epoch {epoch + 1}: {right / len(x):.4f} of the training's seconds right", flush=True)
    torch.save(net.state_dict(), folder / "words.pt")
    np.save(folder / "cepstra.npy", for_scales)
    with wave.open(str(folder / "words.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(stream(spoken["test"], [1, 0, 3], 5, True, np.random.default_rng(4))[0].tobytes())


# ---- measuring ----

def stream(spoken, order, seconds, test, rng):
    """Words in this order among noise, and where each ends."""
    words, others = spoken
    out, ends, at = np.zeros(seconds * RATE), [], RATE // 2
    for word in order:
        x = sounds.loudness(words[word][rng.integers(len(words[word]))])
        put(out, x, at)
        at += len(x) + RATE
        ends.append((at - RATE) / RATE)
    return among_noise(out, [x for some in others for x in some], test, (10, 25), rng), ends


def streams_of_words(spoken, count, test, rng):
    """[(samples, words in their order, where each ends)]"""
    orders = [[int(w) for w in rng.integers(0, 4, 3)] for _ in range(count)]
    return [(samples, order, ends) for order in orders for samples, ends in [stream(spoken, order, 8, test, rng)]]


def hear_words(code, streams):
    """(words spoken, heard, heard as others)"""
    count = right = wrong = 0
    for samples, order, ends in streams:
        found = code.hear(samples)
        for word, end in zip(order, ends):
            close = [w for second, w in found if end - 0.6 < second < end + 0.9]
            right += word in close
            wrong += any(w != word for w in close)
        count += len(order)
    return count, right, wrong


def choose(muc, folder, keep):
    """By voices that are held out from training, and by its kinds of noise, as those of the tests are not to be seen before."""
    spoken, rng, minutes = speech(keep)["choose"], np.random.default_rng(6), 20
    streams = streams_of_words(spoken, 60, False, rng)
    others = [other_speech(spoken[1], False, 60, rng) for _ in range(minutes)]
    for lead in np.arange(-2, 1.1, 0.5):
        with tempfile.TemporaryDirectory() as work:
            code = Code(muc, pathlib.Path(work), folder, lead)
            count, right, wrong = hear_words(code, streams)
            alarms = sum(len(code.hear(samples)) for samples in others)
            print(f"lead {lead}: {right} of {count} words, {wrong} heard as others, {alarms} alarms in {minutes} minutes", flush=True)


def measure(muc, folder, keep):
    import torch
    spoken = speech(keep)["test"]
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
        count, right, wrong = hear_words(code, streams_of_words(spoken, 150, True, rng))
        minutes = 60
        alarms = sum(len(code.hear(other_speech(spoken[1], True, 60, rng))) for _ in range(minutes))
    found = {"seconds_right_float": f"{float(merged.mean()):.4f}", "words_spoken": count, "words_heard": right, "words_heard_as_others": wrong,
             "minutes_of_other_speech": minutes, "false_alarms": alarms}
    with (ROOT / "bench/keywords.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(found)
        writer.writerow(found.values())
    print(found)


def main():
    arguments, muc, keep = sys.argv[1:], ROOT / "build/src/cli/muc", None
    while arguments and arguments[0] in ("--muc", "--keep"):
        if arguments[0] == "--muc":
            muc = pathlib.Path(arguments[1]).resolve()
        else:
            keep = pathlib.Path(arguments[1])
        arguments = arguments[2:]
    verbs = {"train": train, "choose": choose, "measure": measure}
    if not arguments or arguments[0] not in verbs:
        sys.exit(__doc__)
    verbs[arguments[0]](muc, pathlib.Path(arguments[1]) if len(arguments) > 1 else EXAMPLE, keep)


main()
