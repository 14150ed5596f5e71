#!/usr/bin/env python3
"""muc compress as a user meets it. Prints TAP.

    tests/test_compress.py MUC      from the source root
"""
import json
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "oracle"))

import families
import test_train
from test_train import MALFORMED, UNSUPPORTED, USAGE, muc, setup

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
                                         folder / "none", status=NOFIT)
    assert not (folder / "none").exists()
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


def stored(folder):
    """tensors of a folder's model.safetensors: type, shape and bytes of each"""
    data = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    return {name: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in header.items() if name != "__metadata__"}


def two_bits_are_up_to_two_and_a_half(folder):
    """the first down projections have 4 bits, and what is stored is near to what was given"""
    small, config = folder / "small", folder / "small/config.json"
    report = json.loads(muc("compress", RESCUE, "--bits", 2, "--calib", "none", "-o", small, "--json"))
    formats = json.loads(config.read_text())["quantization_config"]
    finer = [f"model.layers.{layer}.mlp.down_proj.weight" for layer in range(report["finer_matrices"])]
    assert formats["finer"] == finer and formats["weights"] == "int2" and len(finer) == 2, formats
    before, after = stored(RESCUE), stored(small)
    bits = weights = 0
    for name, (dtype, shape, data) in before.items():
        if len(shape) != 2:
            continue
        n, k = shape
        width = 4 if name in finer or "embed" in name else 2
        codes, scales = after[name], after[name + "_scale"]
        assert codes[0] == "U8" and codes[1] == [n, k * width // 8] and scales[:2] == ("F16", [n]), name
        bits, weights = bits + 8 * (len(codes[2]) + len(scales[2])), weights + n * k
        row, most = n // 2, 2 ** width - 1
        real = struct.unpack(f"<{k}e", data[2 * k * row:2 * k * (row + 1)])
        scale, = struct.unpack("<e", scales[2][2 * row:2 * row + 2])
        for i, x in enumerate(real):
            byte = codes[2][(row * k + i) * width // 8]
            level = 2 * (byte >> i * width % 8 & most) - most
            assert abs(x - scale * level) <= scale * 1.001 or (abs(level) == most and x * level > 0), (name, i)
    assert 2.2 < bits / weights <= 2.5 and abs(bits / weights - report["stages"][-1]["bits_per_weight"]) < 1e-9
    muc("compile", small, "--target", "mcu", "-o", folder / "c")
    assert json.loads(muc("verify", folder / "c", small, "--json"))["exact"]
    assert "finer" not in json.loads(muc("compress", RESCUE, "--quant", "int2", "--calib", "none", "-o", folder / "pure",
                                         "--json")) and "finer" not in (folder / "pure/config.json").read_text()
    text = config.read_text()
    for old, new, message, status in (("layers.1.mlp", "layers.9.mlp", "not a matrix", MALFORMED), ('"finer": [', '"finer": [7, ', "not a name", UNSUPPORTED),
                              ('"weights": "int2"', '"weights": "int4"', "int2 weights", UNSUPPORTED),
                              (', "model.layers.1.mlp.down_proj.weight"', "", "expected", MALFORMED)):
        assert old in text
        config.write_text(text.replace(old, new))
        assert message in muc("inspect", small, status=status), message


def bits_per_weight_are_one_figure_everywhere(folder):
    """by hand: bytes of every matrix and of its scales; in C an int8 row has a scale of four bytes, others one of two"""
    for quant, stored_width, c_bits in (("int8", 8, lambda n, k: 8 * (k + 4)), ("int4", 4, lambda n, k: 4 * k + 16),
                                        ("int2", None, lambda n, k: (4 if n == 512 else 2) * k + 16)):
        small, code = folder / f"of_{quant}", folder / f"c_{quant}"
        report = json.loads(muc("compress", RESCUE, "--quant", quant, "--calib", "none", "-o", small, "--json"))
        bits = weights = in_c = 0
        tensors = stored(small)
        for name, (_, shape, data) in stored(RESCUE).items():
            if len(shape) == 2:
                n, k = shape
                bits += 8 * (len(tensors[name][2]) + len(tensors[name + "_scale"][2]))
                weights, in_c = weights + n * k, in_c + n * c_bits(n, k)
        assert stored_width is None or bits == stored_width * weights + 16 * sum(
            shape[0] for _, shape, _ in stored(RESCUE).values() if len(shape) == 2)
        compiled = json.loads(muc("compile", small, "--target", "mcu", "-o", code, "--json"))
        figures = {"compress": report["stages"][-1], "inspect": json.loads(muc("inspect", small, "--json")),
                   "compile": compiled, "report": json.loads(muc("report", code, "--json"))}
        for verb, found in figures.items():
            expected = (bits if verb in ("compress", "inspect") else in_c) / weights
            assert abs(found["bits_per_weight"] - expected) < 1e-12, (quant, verb, found["bits_per_weight"], expected)
        assert compiled["weights"] == weights
    blocks = json.loads(muc("compile", RESCUE, "--target", "mcu", "--quant", "bd4", "-o", folder / "bd", "--json"))
    assert 4.25 < blocks["bits_per_weight"] < 4.5, blocks
    assert json.loads(muc("inspect", RESCUE, "--json"))["bits_per_weight"] == 16


def half(value):
    return struct.unpack("<e", struct.pack("<e", value))[0]


def families_keep_their_folders(folder):
    """config.json, names and what is stored less one stay; matrices are near, and the C code computes what is written"""
    text = folder / "text.txt"
    text.write_text("hello the world's worth: 42 hells")
    for name in ("gemma2", "olmo2", "granite", "llama-yarn", "mistral", "mobilellm-ls", "gpt-neox"):
        c = families.FAMILIES[name]
        weights, model, small = families.random_weights(c), folder / name, folder / f"{name}-8"
        families.write_folder(model, c, weights)
        muc("compress", model, "--quant", "int8", "--calib", "none", "-o", small)
        config = json.loads((small / "config.json").read_text())
        assert config.pop("quantization_config")["weights"] == "int8" and config == c, (name, config)
        tensors = stored(small)
        own = name == "gpt-neox" # whose matrices lie together: muc's names
        assert own or set(tensors) == set(weights) | {n + "_scale" for n, w in weights.items() if isinstance(w[0], list)}, name
        for tensor, values in weights.items() if not own else ():
            _, shape, data = tensors[tensor]
            if len(shape) == 1:
                found = struct.unpack(f"<{shape[0]}e", data)
                assert all(abs(f - half(v)) <= 1e-3 for f, v in zip(found, values, strict=True)), (name, tensor)
                continue
            scales = struct.unpack(f"<{shape[0]}e", tensors[tensor + "_scale"][2])
            codes = struct.unpack(f"<{shape[0] * shape[1]}b", data)
            for row, scale in enumerate(scales):
                for column, value in enumerate(values[row]):
                    assert abs(codes[row * shape[1] + column] * scale - value) <= 0.51 * scale + 1e-4, (name, tensor, row, column)
        muc("compile", small, "--target", "mcu", "-o", folder / f"{name}-c")
        report = json.loads(muc("verify", folder / f"{name}-c", small, "-p", text.read_text(), "--json"))
        assert report["exact"], (name, report)
        near = [json.loads(muc("eval", m, "--text", text, "--json"))["perplexity"] for m in (model, small)]
        assert abs(near[1] / near[0] - 1) < 0.2, (name, near)
    assert "without --steps" in muc("compress", folder / "granite", "--steps", 5, "--data", text, "-o", folder / "none",
                                    status=UNSUPPORTED)
    families.write_folder(folder / "phi3", families.FAMILIES["phi3"], families.random_weights(families.FAMILIES["phi3"]))
    assert "store matrices one by one" in muc("compress", folder / "phi3", "-o", folder / "none", status=UNSUPPORTED)


test_train.TESTS = [bits_per_weight_are_one_figure_everywhere, two_bits_are_up_to_two_and_a_half, two_bits_know_the_answers_too_once_trained,
                    heads_and_neurons_go_before_bits_do, a_model_learns_two_bits_from_what_it_writes_itself,
                    a_gpt2_gets_small_too, families_keep_their_folders]

if __name__ == "__main__":
    sys.exit(test_train.main())
