#!/usr/bin/env python3
"""muc train as a user meets it, and against PyTorch where there is one. Prints TAP.

    tests/test_train.py MUC      from the source root
"""
import csv
import json
import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time

MUC = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent
OK, MALFORMED, UNSUPPORTED, USAGE = 0, 1, 2, 7
SHAPE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32,
         "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 260,
         "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
         "tie_word_embeddings": False, "hidden_act": "silu"}


GPT2 = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 32, "n_layer": 2,
        "n_head": 4, "n_positions": 128, "n_inner": 48, "vocab_size": 260,
        "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}


class Skip(Exception):
    pass


def muc(*args, status=OK):
    done = subprocess.run([MUC, *map(str, args)], capture_output=True, text=True, timeout=240)
    assert "Sanitizer" not in done.stderr and done.returncode >= 0, done.stderr[-2000:]
    assert done.returncode == status, f"{args}: {done.returncode}, {done.stderr}"
    return done.stdout if status == OK else done.stderr


def need_torch():
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
        raise Skip("no PyTorch")


def oracle(job, folder):
    need_torch()
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    out = subprocess.run([sys.executable, ROOT / "tests/oracle/torch_llama.py", "train", path],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def setup(folder, shape=SHAPE, **changes):
    """a configuration and 24 cases, which together are less than one batch"""
    chance = random.Random(5)
    (folder / "config.json").write_text(json.dumps({**shape, **changes}))
    words = ["go", "scan", "report", "wait", "the hall", "the lab"]
    cases = ["say: " + " ".join(chance.choices(words, k=chance.randint(1, 4))) for _ in range(24)]
    (folder / "cases.txt").write_text("\n\n".join(f"{c}\ndo: {c[5:].upper()}" for c in cases))
    return folder / "config.json", folder / "cases.txt"


def rows(folder):
    with open(folder / "train.csv", newline="") as f:
        return list(csv.DictReader(f))


def token_ids(text):
    """of the tokenizer "bytes": a token a byte, a space is a piece of its own"""
    return [1] + [259 if b == 32 else 3 + b for b in text.encode()]


def as_documents(cases):
    return [(token_ids(case) + [2], len(token_ids(case[:case.rindex(":") + 1])))
            for case in cases.read_text().split("\n\n")]


def agrees_with_torch(folder, **changes):
    config, cases = setup(folder, **changes)
    documents = as_documents(cases)
    muc("train", config, "--data", cases, "--cases", "--tokenizer", "bytes", "--steps", 1,
        "--rate", 1e-9, "--batch", 4096, "-o", folder / "first")
    job = {"folder": str(folder / "first"), "other": str(folder / "second"), "steps": 20,
           "rate": 3e-3, "least_rate": 0.1, "warm_up": 4, "decay": 0.2, "clip": 0.7,
           "documents": documents}
    muc("train", folder / "first", "--data", cases, "--cases", "--steps", 20, "--rate", 3e-3,
        "--least-rate", 0.1, "--warm-up", 4, "--decay", 0.2, "--clip", 0.7, "--batch", 4096,
        "-o", folder / "second")
    found, log = oracle(job, folder), rows(folder / "second")
    for step, (loss, norm) in enumerate(zip(found["losses"], found["norms"])):
        near(float(log[step]["loss"]), loss, 1e-5)
        near(float(log[step]["norm"]), norm, 1e-3)
    assert float(log[0]["norm"]) > 0.7 and found["losses"][-1] < found["losses"][0] - 0.5
    assert found["distance"] < 1e-3, found["distance"]


def near(found, expected, tolerance):
    assert abs(found - expected) <= tolerance * abs(expected), f"{found}, expected {expected}"


def losses_norms_and_weights_are_those_of_pytorch(folder):
    agrees_with_torch(folder)


def so_they_are_with_a_tied_head(folder):
    agrees_with_torch(folder, tie_word_embeddings=True, num_key_value_heads=1)


def so_are_those_of_a_gpt2(folder):
    agrees_with_torch(folder, shape=GPT2)
    names = set(tensors_of(folder / "second"))
    assert {"transformer.wpe.weight", "transformer.h.1.attn.c_attn.bias"} <= names, names
    assert tensors_of(folder / "second")["transformer.h.0.mlp.c_fc.weight"] == [32, 48]
    config = json.loads((folder / "second/config.json").read_text())
    assert {**config, **GPT2, "n_inner": 48} == config, config


def so_are_those_of_one_by_erf_with_a_head_of_its_own(folder):
    agrees_with_torch(folder, shape=GPT2, activation_function="gelu", tie_word_embeddings=False)


def tensors_of(folder):
    """shapes by name"""
    data = (folder / "model.safetensors").read_bytes()
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    return {name: t["shape"] for name, t in header.items() if name != "__metadata__"}


def a_run_that_was_killed_goes_on_to_the_same_bytes(folder):
    goes_on(folder)


def weights_of(folder, config, data, *emulator, **environment):
    """what three steps make of them, under an emulator and with the environment's variables changed"""
    args = ["train", config, "--data", data, "--tokenizer", "bytes", "--steps", 3, "--batch", 256, "-t", 2, "-o", folder / "out"]
    subprocess.run([*emulator, MUC, *map(str, args)], check=True, capture_output=True, env={**os.environ, **environment})
    return (folder / "out/model.safetensors").read_bytes()


def the_environment_changes_no_byte(folder):
    """neither threads that OpenBLAS may start nor which of its functions the C library takes"""
    for shape in SHAPE, GPT2:
        config, data = setup(folder, shape)
        expected = weights_of(folder, config, data)
        assert expected == weights_of(folder, config, data, OPENBLAS_NUM_THREADS="2")
        assert expected == weights_of(folder, config, data, GLIBC_TUNABLES="glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable")


def another_processor_changes_no_byte(folder):
    """of those with AVX2 and FMA; one without them gives the bytes of its kernels, whatever else it lacks"""
    emulator = shutil.which("qemu-x86_64")
    if not emulator or platform.machine() != "x86_64":
        raise Skip("no qemu-x86_64")
    if b"__asan_init" in MUC.read_bytes():
        raise Skip("AddressSanitizer is not emulated")
    config, data = setup(folder)
    assert weights_of(folder, config, data, OPENBLAS_CORETYPE="Haswell") == \
        weights_of(folder, config, data, emulator, "-cpu", "Haswell")
    assert weights_of(folder, config, data, OPENBLAS_CORETYPE="Nehalem") == \
        weights_of(folder, config, data, emulator, "-cpu", "Nehalem")


def so_does_one_that_prunes(folder):
    goes_on(folder, "--prune", 0.5)


def so_does_a_gpt2(folder):
    goes_on(folder, shape=GPT2)


def goes_on(folder, *options, shape=SHAPE):
    config, cases = setup(folder, shape)
    args = [*options, config, "--data", cases, "--cases", "--tokenizer", "bytes", "--steps", 200, "--every",
            3, "--batch", 256, "--prompt-loss", "0.5", "--seed", 3]
    muc("train", *args, "-o", folder / "whole", "-t", 1)
    out, state = folder / "parts", folder / "parts/train.state"
    run = subprocess.Popen([MUC, "train", *map(str, args), "-o", out], stdout=subprocess.DEVNULL)
    while not state.exists() and run.poll() is None:
        time.sleep(0.002)
    run.kill()
    run.wait()
    assert state.exists() and not (out / "model.safetensors").exists(), "the run was too quick"
    assert "--resume" in muc("train", *args, "-o", out, status=USAGE)
    assert "other options" in muc("train", *args[:-1], 4, "-o", out, "--resume", status=MALFORMED)
    muc("train", *args, "-o", out, "--resume")
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (out / name).read_bytes() == (folder / "whole" / name).read_bytes(), name
    assert not state.exists()
    whole, parts = rows(folder / "whole"), rows(out)
    assert len(whole) == len(parts) == 200
    assert [r["loss"] for r in whole] == [r["loss"] for r in parts]
    assert "no unfinished run" in muc("train", *args, "-o", out, "--resume", status=USAGE)


def the_result_is_a_model_that_knows_its_answers(folder):
    config, cases = setup(folder)
    report = json.loads(muc("train", config, "--data", cases, "--cases", "--held-out", cases,
                            "--tokenizer", "bpe", "--vocab", 280, "--steps", 150, "--rate", 1e-2,
                            "-o", folder / "out", "--json"))
    assert report["held_out_perplexity"] < 1.1, report
    assert [r["step"] for r in report["held_out"]] == list(range(15, 151, 15))
    done = json.loads(muc("eval", folder / "out", "--task", cases, "--json"))
    assert done["exact"] >= 22, done


def a_pruned_model_goes_everywhere(folder):
    config, cases = setup(folder)
    out = folder / "out"
    report = json.loads(muc("train", config, "--data", cases, "--cases", "--tokenizer", "bytes",
                            "--steps", 60, "--rate", 1e-2, "--seed", 2, "--prune", 0.5, "-o", out, "--json"))
    layers = report["layers"]
    assert sum(r["kv_heads"] for r in layers) == 2 and sum(r["neurons"] for r in layers) == 48
    assert all(r["heads"] == 2 * r["kv_heads"] for r in layers)
    assert all(r["neurons"] % 4 == 0 for r in layers), layers
    assert layers[0]["neurons"] != layers[1]["neurons"], layers
    muc("inspect", out)
    muc("compile", out, "-o", folder / "out.utp")
    assert json.loads(muc("verify", folder / "out.utp", out, "--json"))["exact"]
    made = json.loads(muc("compile", out, "--target", "mcu", "-o", folder / "c", "--json"))
    assert made["self_check"]["kl"] < 0.05, made
    assert muc("run", folder / "c", "-p", "say: go", "--raw", "-n", 8).startswith("say: go")
    config_of = json.loads((out / "config.json").read_text())
    config_of["intermediate_size"] = config_of["intermediate_size"][:1]
    (out / "config.json").write_text(json.dumps(config_of))
    assert "1 numbers for 2 layers" in muc("inspect", out, status=MALFORMED)
    config_of["intermediate_size"] = [48, -1]
    (out / "config.json").write_text(json.dumps(config_of))
    assert "layer 1 is not a number" in muc("inspect", out, status=MALFORMED)


def so_does_a_pruned_gpt2(folder):
    config, cases = setup(folder, GPT2)
    out = folder / "out"
    report = json.loads(muc("train", config, "--data", cases, "--cases", "--tokenizer", "bytes",
                            "--steps", 60, "--rate", 1e-2, "--prune", 0.5, "-o", out, "--json"))
    layers, shapes = report["layers"], tensors_of(out)
    assert sum(r["heads"] for r in layers) == 4 and sum(r["neurons"] for r in layers) == 48
    for i, r in enumerate(layers):
        assert shapes[f"transformer.h.{i}.attn.c_attn.weight"] == [32, 24 * r["heads"]], shapes
        assert shapes[f"transformer.h.{i}.mlp.c_proj.weight"] == [r["neurons"], 32], shapes
    made = json.loads(muc("compile", out, "--target", "mcu", "-o", folder / "c", "--json"))
    assert made["self_check"]["kl"] < 0.05, made
    assert json.loads(muc("verify", folder / "c", out, "--json"))["exact"]


def a_page_shows_the_loss(folder):
    config, cases = setup(folder)
    page = muc("train", config, "--data", cases, "--held-out", cases, "--tokenizer", "bytes",
               "--steps", 4, "-o", folder / "out", "--format", "html")
    assert "<svg" in page and "loss over steps" in page and "held out" in page


def tokenizers_are_made_of_a_text(folder):
    config, _ = setup(folder, vocab_size=1)
    text = "the cat sat on the mat. the café has a hat.\n" * 40
    (folder / "text.txt").write_text(text)
    muc("train", config, "--data", folder / "text.txt", "--tokenizer", "bpe", "--vocab", 300,
        "--steps", 1, "-o", folder / "out")
    made = json.loads((folder / "out/tokenizer.json").read_text())["model"]
    vocab, pieces = made["vocab"], list(made["vocab"])
    assert pieces[:3] == ["<unk>", "<s>", "</s>"] and pieces[3 + 65] == "<0x41>"
    assert pieces[259:263] == ["\u2581", "a", "t", "h"], pieces[259:]
    assert "é" in vocab and "\n" not in vocab
    # merges, by a count of ours: the best pair of what the ones before it leave
    words = [w.replace(" ", "\u2581") for line in text.split("\n")
             for w in line.replace(" ", "\n ").split("\n") if w]
    words = [list(w) for w in words]
    for number, merge in enumerate(made["merges"]):
        counts = {}
        for w in words:
            for pair in zip(w, w[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        best = max(counts, key=lambda p: (counts[p], -vocab[p[0]], -vocab[p[1]]))
        assert best == tuple(merge), f"merge {number} is {merge}, expected {best}"
        for w in words:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == best:
                    w[i:i + 2] = [w[i] + w[i + 1]]
                i += 1
    assert json.loads((folder / "out/config.json").read_text())["vocab_size"] == len(pieces)


def what_cannot_be_is_refused(folder):
    config, cases = setup(folder)
    out = folder / "out"
    train = ["train", config, "--tokenizer", "bytes", "-o", out]
    assert "--data" in muc(*train, status=USAGE)
    assert "windows of 129" in muc(*train, "--data", cases, "--window", 129, status=USAGE)
    assert "warm-up" in muc(*train, "--data", cases, "--steps", 2, "--warm-up", 3, status=USAGE)
    (folder / "broken.txt").write_text("no label here\n\nand: one")
    assert "LABEL: ANSWER" in muc(*train, "--data", folder / "broken.txt", "--cases",
                                  status=MALFORMED)
    assert "no tokenizer" in muc("train", config, "--data", cases, "-o", out, status=USAGE)
    assert "259 pieces" in muc(*train[:3], "bpe", "--vocab", 259, "-o", out, "--data", cases,
                               status=USAGE)
    assert "not finite" in muc(*train, "--data", cases, "--rate", 900, "--clip", 0,
                               status=MALFORMED)


TESTS = [losses_norms_and_weights_are_those_of_pytorch, so_they_are_with_a_tied_head,
         so_are_those_of_a_gpt2, so_are_those_of_one_by_erf_with_a_head_of_its_own,
         the_environment_changes_no_byte, another_processor_changes_no_byte, a_run_that_was_killed_goes_on_to_the_same_bytes, so_does_one_that_prunes, so_does_a_gpt2,
         a_pruned_model_goes_everywhere, so_does_a_pruned_gpt2,
         the_result_is_a_model_that_knows_its_answers, a_page_shows_the_loss, tokenizers_are_made_of_a_text,
         what_cannot_be_is_refused]


def main():
    failed = 0
    print(f"1..{len(TESTS)}")
    for number, test in enumerate(TESTS, 1):
        name, note = test.__name__, ""
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(pathlib.Path(folder))
                result = "ok"
            except Skip as reason:
                result, note = "ok", f" # SKIP {reason}"
            except Exception as error:  # a failure is a line, not the end
                result, failed = "not ok", 1
                print(f"# {type(error).__name__}: {error}")
        print(f"{result} {number} {name}{note}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
