#!/usr/bin/env python3
"""muc compress as a user meets it. Prints TAP.

    tests/test_compress.py MUC      from the source root
"""
import json
import pathlib
import random
import sys

import test_train
from test_train import USAGE, muc, setup

NOFIT = 3
RESCUE = pathlib.Path(__file__).parent.parent / "models/rescue"


def two_bits_know_the_answers_too_once_trained(folder):
    config, cases = setup(folder)
    model, small = folder / "model", folder / "small"
    muc("train", config, "--data", cases, "--cases", "--tokenizer", "bpe", "--vocab", 280, "--steps", 120,
        "--rate", 1e-2, "-o", model)
    report = json.loads(muc("compress", model, "--bits", 2, "--calib", "none", "--data", cases, "--cases", "--steps", 100,
                            "--rate", 5e-3, "--task", cases, "-o", small, "--json"))
    real, rounded, trained = (stage["exact"] for stage in report["stages"])
    assert real >= 22 and trained >= 20 and trained > rounded, report["stages"]
    assert report["matrix_bits_per_weight"] < 2.6, report
    muc("compile", small, "--target", "mcu", "-o", folder / "c")
    assert json.loads(muc("eval", folder / "c", "--task", cases, "--json"))["exact"] >= trained - 1
    assert "more than the budget" in muc("compress", model, "--calib", "none", "--budget-flash", "1K", "-o",
                                         small, status=NOFIT)
    assert "--data" in muc("compress", model, "--steps", 5, "--cases", "-o", small, status=USAGE)


def a_model_learns_two_bits_from_what_it_writes_itself(folder):
    """texts with a rule: a letter follows from the two before it, but for one in eight"""
    config, _ = setup(folder)
    chance, texts = random.Random(3), []
    for _ in range(300):
        codes = [chance.randrange(20), chance.randrange(20)]
        for _ in range(20):
            codes.append(chance.randrange(20) if chance.random() < 0.125 else (5 * codes[-1] + 3 * codes[-2] + 1) % 20)
        texts.append("".join(chr(ord("a") + code) for code in codes))
    data, other, model, small = (folder / name for name in ("data.txt", "other.txt", "model", "small"))
    data.write_text("<|endoftext|>".join(texts[:260]))
    other.write_text("<|endoftext|>".join(texts[260:]))
    muc("train", config, "--data", data, "--tokenizer", "bytes", "--steps", 200, "--rate", 2e-2, "--batch", 1024, "-o", model)
    report = json.loads(muc("compress", model, "--bits", 2, "--calib", "none", "--steps", 60, "--rate", 5e-3, "--batch", 512,
                            "--text", other, "-o", small, "--json"))
    real, rounded, trained = (stage["perplexity"] for stage in report["stages"])
    assert trained < 0.9 * rounded and trained < 1.2 * real, report["stages"]


def heads_and_neurons_go_before_bits_do(folder):
    config, cases = setup(folder)
    model, small = folder / "model", folder / "small"
    muc("train", config, "--data", cases, "--cases", "--tokenizer", "bpe", "--vocab", 280, "--steps", 60,
        "--rate", 1e-2, "-o", model)
    (folder / "small.pruned").mkdir()
    (folder / "small.pruned/train.state").write_text("of a run that was interrupted")
    report = json.loads(muc("compress", model, "--bits", 4, "--calib", "none", "--data", cases, "--cases", "--steps", 40,
                            "--rate", 5e-3, "--prune", 0.5, "--teacher", model, "-o", small, "--json"))
    assert "tokens" in muc("compress", model, "--steps", 5, "--teacher", RESCUE, "-o", small, status=USAGE)
    assert [s["bytes"] for s in report["stages"][:2]] == sorted((s["bytes"] for s in report["stages"][:2]), reverse=True)
    assert "pruned" in report["stages"][1]["stage"] and len(report["stages"]) == 4, report["stages"]
    pruned = json.loads((folder / "small.pruned/config.json").read_text())
    assert json.loads((small / "config.json").read_text())["intermediate_size"] == pruned["intermediate_size"]
    assert muc("run", small, "-p", "say: go", "--raw", "-n", 8).startswith("say: go")
    assert "--steps" in muc("compress", model, "--prune", 0.5, "--data", cases, "-o", small, status=USAGE)
    assert "--data" in muc("compress", model, "--prune", 0.5, "--steps", 5, "-o", small, status=USAGE)
    assert "give one" in muc("compress", model, "--bits", 2, "--quant", "cb2", "-o", small, status=USAGE)


def a_gpt2_gets_small_too(folder):
    config, cases = setup(folder, test_train.GPT2)
    model, small = folder / "model", folder / "small"
    muc("train", config, "--data", cases, "--cases", "--tokenizer", "bpe", "--vocab", 280, "--steps", 60,
        "--rate", 1e-2, "-o", model)
    report = json.loads(muc("compress", model, "--bits", 2, "--calib", "none", "--data", cases, "--cases", "--steps", 40,
                            "--rate", 5e-3, "--prune", 0.25, "--task", cases, "-o", small, "--json"))
    assert len(report["stages"]) == 4 and report["stages"][3]["exact"] >= report["stages"][2]["exact"], report
    names = {t["name"]: t["dtype"] for t in json.loads(muc("inspect", small, "--json"))["tensors"]}
    assert names["model.embed_positions.weight"] == names["model.layers.0.mlp.up_proj.weight"] == "i8", names
    muc("compile", small, "--target", "mcu", "-o", folder / "c")
    assert json.loads(muc("verify", folder / "c", small, "--json"))["exact"]


test_train.TESTS = [two_bits_know_the_answers_too_once_trained, heads_and_neurons_go_before_bits_do,
                    a_model_learns_two_bits_from_what_it_writes_itself, a_gpt2_gets_small_too]

if __name__ == "__main__":
    sys.exit(test_train.main())
