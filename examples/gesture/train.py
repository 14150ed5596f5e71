#!/usr/bin/env python3
"""Trains the gesture network of docs/TUTORIAL.md in PyTorch: a wrist's acceleration tells what the hand does.

    examples/gesture/train.py        writes gesture.pt, samples.npy and one file of each gesture beside itself

The recordings are synthetic: circles, shakes, taps and rest as formulas with noise. Ten seconds on one core.
"""
import pathlib

import numpy
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
GESTURES = ["rest", "circle", "shake", "tap"]
LENGTH = 64  # samples, at 50 Hz


def record(gesture, random):
    """Acceleration in g along three axes: [3, 1, LENGTH]."""
    time = numpy.arange(LENGTH) / 50
    signal = numpy.zeros((3, LENGTH))
    strength, phase, axis = random.uniform(0.5, 1.5), random.uniform(0, 6.28), random.integers(3)
    if gesture == "circle":
        rate = 6.28 * random.uniform(0.8, 2)
        signal[axis - 1] = strength * numpy.sin(rate * time + phase)
        signal[axis] = strength * numpy.cos(rate * time + phase)
    elif gesture == "shake":
        signal[axis] = strength * numpy.sin(6.28 * random.uniform(4, 7) * time + phase)
    elif gesture == "tap":
        for begin in random.uniform(0, time[-1], random.integers(1, 4)):
            signal[axis] += 2 * strength * numpy.exp(-((time - begin) / 0.03) ** 2)
    gravity = random.normal(size=3)
    signal += (gravity / numpy.linalg.norm(gravity))[:, None] + random.normal(0, 0.08, signal.shape)
    return signal[:, None, :].astype(numpy.float32)


def batch(count, random):
    labels = random.integers(len(GESTURES), size=count)
    return torch.from_numpy(numpy.stack([record(GESTURES[label], random) for label in labels])), torch.from_numpy(labels)


class Gesture(nn.Module):
    """gesture.arch is the same network for muc."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, (1, 5), stride=(1, 2), padding=(0, 2), bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 24, (1, 5), stride=(1, 2), padding=(0, 2), bias=False)
        self.bn2 = nn.BatchNorm2d(24)
        self.conv3 = nn.Conv2d(24, 32, (1, 3), stride=(1, 2), padding=(0, 1))
        self.fc = nn.Linear(32, len(GESTURES))

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        x = torch.relu(self.conv3(x))
        return self.fc(x.mean((2, 3)))


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    random = numpy.random.default_rng(1)
    network = Gesture()
    steps = 1500
    optimizer = torch.optim.Adam(network.parameters(), lr=0.004)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        x, labels = batch(64, random)
        loss = nn.functional.cross_entropy(network(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.eval()
    x, labels = batch(2000, numpy.random.default_rng(2))
    with torch.no_grad():
        print(f"{(network(x).argmax(1) == labels).float().mean():.4f} of 2000 new recordings right")
    torch.save(network.state_dict(), HERE / "gesture.pt")
    random = numpy.random.default_rng(3)
    numpy.save(HERE / "samples.npy", batch(32, random)[0].numpy())
    for gesture in GESTURES:
        numpy.save(HERE / f"{gesture}.npy", record(gesture, random)[None])


if __name__ == "__main__":
    main()
