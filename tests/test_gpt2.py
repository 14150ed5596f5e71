#!/usr/bin/env python3
"""GPT-2 checkpoints as a user meets them, against a second implementation. Prints TAP.

    tests/test_gpt2.py MUC      from the source root
"""
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "oracle"))

import gpt2
import test_train
from tap import tools_of
from test_train import MALFORMED, UNSUPPORTED, muc

TEXT = "hello the world's worth: 42 hells,\n  so the hello..."


def make(folder, seed=1, dtype="F32", one_file=False, prefix="transformer.", masks=False, **changes):
    config = gpt2.config_of(**changes)
    weights = {n: gpt2.rounded(t, dtype) for n, t in gpt2.random_weights(config, seed).items()}
    gpt2.write_folder(folder, config, weights, dtype, prefix, masks)
    gpt2.write_tokenizer(folder, one_file)
    (folder / "text.txt").write_text(TEXT)
    return config, weights


def run(folder, *options):
    """the bytes of a text, which may be no UTF-8"""
    done = subprocess.run([test_train.MUC, "run", folder, "-p", "hello wor", "-n", "12", *options],
                          capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def near(found, expected, tolerance):
    assert abs(found - expected) <= tolerance * abs(expected), f"{found}, expected {expected}"


def computes_what_the_oracle_computes(folder, **how):
    config, weights = make(folder, **how)
    ids = gpt2.encode(TEXT) # GPT-2 begins a text with nothing
    found = json.loads(muc("eval", folder, "--text", folder / "text.txt", "--json"))
    assert found["tokens"] == len(ids) - 1, found
    near(found["perplexity"], gpt2.perplexity(config, weights, ids), 2e-5)
    prompt = gpt2.encode("hello wor")
    expected = gpt2.greedy(config, weights, prompt, 12)
    if config["eos_token_id"] in expected:
        expected = expected[:expected.index(config["eos_token_id"])]
    assert run(folder) == b"hello wor" + gpt2.decode(expected) + b"\n", run(folder)


def logits_are_those_of_a_second_implementation(folder):
    computes_what_the_oracle_computes(folder)


def so_they_are_of_halves_by_erf_with_an_own_head(folder):
    computes_what_the_oracle_computes(folder, seed=2, dtype="F16", one_file=True, prefix="", masks=True,
                                      activation_function="gelu", n_inner=24,
                                      tie_word_embeddings=False)


def a_gguf_file_is_the_same_model(folder):
    gpt2.write_gguf(folder / "m.gguf", *make(folder, n_inner=20))
    text = ["--text", folder / "text.txt", "--json"]
    found = json.loads(muc("eval", folder / "m.gguf", "--tokenizer", folder / "vocab.json", *text))
    assert found["perplexity"] == json.loads(muc("eval", folder, *text))["perplexity"], found


def a_folder_is_shown_as_understood(folder):
    make(folder)
    shown = json.loads(muc("inspect", folder, "--json"))
    assert shown["architecture"] == "GPT2LMHeadModel" and shown["ffn_dim"] == 64, shown
    assert shown["norm"] == "LayerNorm" and shown["positions"] == "learned", shown
    assert shown["feed_forward"] == "gelu_new" and "rope_theta" not in shown, shown
    assert shown["tied_head"] and shown["head_dim"] == 4 and shown["context"] == 48, shown
    names = {t["name"]: t["shape"] for t in shown["tensors"]}
    assert names["model.embed_positions.weight"] == "48x16", names
    assert names["model.layers.1.mlp.up_proj.weight"] == "64x16", names


def what_is_no_gpt2_of_ours_is_refused_by_name(folder):
    config, weights = make(folder)

    def refuses(status, words, **changes):
        (folder / "config.json").write_text(json.dumps({**config, **changes}))
        assert words in muc("inspect", folder, status=status), words

    refuses(UNSUPPORTED, "there is no activation_function 'mish'", activation_function="mish")
    refuses(UNSUPPORTED, "\"add_cross_attention\": true", add_cross_attention=True)
    refuses(UNSUPPORTED, "\"scale_attn_weights\": false", scale_attn_weights=False)
    refuses(UNSUPPORTED, "scale_attn_by_inverse_layer_idx", scale_attn_by_inverse_layer_idx=True)
    refuses(MALFORMED, "has 48 outputs", n_embd=12, n_head=3)
    refuses(MALFORMED, "'model.embed_positions.weight' has rank 2", n_positions=47)
    refuses(MALFORMED, "is missing", n_layer=3)
    refuses(UNSUPPORTED, "has no place in a GPT2LMHeadModel of 1 layers", n_layer=1)
    weights["h.0.attn.c_attn.weight"] = [[0.0] * 47] * 16
    gpt2.write_folder(folder, config, weights)
    assert "has 47 outputs, expected those of q, k and v" in muc("inspect", folder, status=MALFORMED)
    weights["h.0.attn.c_attn.weight"] = [0.0] * 47
    gpt2.write_folder(folder, config, weights)
    assert "expected a matrix [in, out]" in muc("inspect", folder, status=MALFORMED)
    del weights["h.0.attn.c_attn.weight"]
    weights["h.0.attn.rotary"] = [0.0]
    gpt2.write_folder(folder, config, weights)
    assert "'transformer.h.0.attn.rotary' has no place" in muc("inspect", folder, status=UNSUPPORTED)


def two_files_are_one_tokenizer(folder):
    (folder / "one").mkdir()
    make(folder)
    make(folder / "one", one_file=True)
    both = [json.loads(muc("inspect", f, "--json"))["tokenizer"] for f in (folder, folder / "one")]
    assert both[0] == both[1] and both[0].startswith(f"{len(gpt2.vocabulary())} pieces"), both
    (folder / "merges.txt").write_text("h e\nhe r\n")
    assert "merge 1" in muc("inspect", folder, status=MALFORMED)
    (folder / "merges.txt").write_bytes(b"h e\n\xff\xfe x\n")
    assert "not UTF-8" in muc("inspect", folder, status=MALFORMED)
    (folder / "merges.txt").unlink()
    assert "merges.txt" in muc("inspect", folder, status=5)


def as_c_it_is_the_int8_reference_bit_for_bit(folder):
    make(folder, seed=3)
    code = folder / "c"
    made = json.loads(muc("compile", folder, "--target", "mcu", "-c", 40, "-o", code, "--json"))
    assert made["self_check"]["kl"] < 0.01 and made["context"] == 40, made
    assert made["weights"] == 267 * 16 + 40 * 16 + 2 * 12 * 16 * 16, made # positions that are left out are not there
    assert json.loads(muc("verify", code, folder, "--json"))["exact"]
    assert run(code)[:11] == run(folder)[:11]
    if all(map(shutil.which, tools_of("m7"))):
        assert run(code, "--qemu", "m7") == run(code)


def what_targets_cannot_do_is_told(folder):
    make(folder)
    for words in (["compile", folder], ["quantize", folder]):
        assert "LayerNorm, not RMSNorm" in muc(*words, "-o", folder / "x", status=UNSUPPORTED)


test_train.TESTS = [logits_are_those_of_a_second_implementation,
                    so_they_are_of_halves_by_erf_with_an_own_head,
                    a_gguf_file_is_the_same_model, a_folder_is_shown_as_understood,
                    what_is_no_gpt2_of_ours_is_refused_by_name, two_files_are_one_tokenizer,
                    as_c_it_is_the_int8_reference_bit_for_bit, what_targets_cannot_do_is_told]

if __name__ == "__main__":
    sys.exit(test_train.main())
