#!/usr/bin/env python3
"""Each architecture of GGUF files against the folder of the same weights; what no graph does is refused. Prints TAP.

    tests/test_gguf_families.py MUC      from the source root
"""
import json
import pathlib
import sys
import tempfile

from files import MALFORMED, ROOT, UNSUPPORTED, muc, run_tests

sys.path.insert(0, str(ROOT / "tests/oracle"))
import families  # noqa: E402
import gguf_families  # noqa: E402

WORK = tempfile.TemporaryDirectory()
TEXT = pathlib.Path(WORK.name) / "text.txt"
TEXT.write_text("hello the world's worth: 42 hells")
EVEN = {"hidden_size": 32, "head_dim": 8}


def like(name, **more):
    return {k: v for k, v in {**families.FAMILIES[name], **more}.items() if v != "absent"}


CASES = {name: like(name) for name in (
    "llama", "llama-biases", "llama-linear", "llama-yarn", "llama-llama3", "mistral", "qwen3", "gemma", "phi3", "olmo2", "granite",
    "gpt-neox", "gpt-neox-in-turn")}
CASES |= {
    "qwen2": like("qwen2", use_sliding_window=False, sliding_window=None),
    "gemma2": like("gemma2", query_pre_attn_scalar=8),
    "gemma3": like("gemma3", num_hidden_layers=6, sliding_window_pattern=6, query_pre_attn_scalar=8),
    "gemma2 of 46 layers": like("gemma2", num_hidden_layers=46, query_pre_attn_scalar=6),
    "smollm3": like("smollm3", no_rope_layers=[1, 1, 1, 0]),
    "smollm3 with a head": like("smollm3", no_rope_layers=[1, 1, 1, 0], tie_word_embeddings=False),
    "bitnet": like("bitnet", tie_word_embeddings=True, hidden_act="silu"),
}


def perplexity(path, tokenizer):
    return json.loads(muc("eval", path, "--text", TEXT, "--tokenizer", tokenizer, "--json"))["perplexity"]


def files_of(c, **more):
    folder = pathlib.Path(tempfile.mkdtemp(dir=WORK.name))
    weights = families.random_weights(c)
    families.write_folder(folder, c, weights)
    gguf_families.write(folder / "model.gguf", c, weights, **more)
    return folder, folder / "model.gguf"


def close(found, expected):
    return abs(found - expected) <= 2e-6 * expected  # factors of RoPE have 24 bits there


def test_each_architecture_is_its_folder():
    for name, c in CASES.items():
        folder, file = files_of(c)
        expected = perplexity(folder, folder / "tokenizer.json")
        found = perplexity(file, folder / "tokenizer.json")
        assert close(found, expected), f"{name}: {found}, expected {expected}"


def test_windows_are_listed_or_counted():
    def differs(c, listed, pattern):
        folder, file = files_of(c, changes={"attention.sliding_window_pattern": listed})
        found = perplexity(file, folder / "tokenizer.json")
        folder, file = files_of(c, changes={"attention.sliding_window_pattern": pattern})
        assert close(found, perplexity(file, folder / "tokenizer.json"))
        other, file = files_of(c)
        assert not close(found, perplexity(file, other / "tokenizer.json"))

    differs(CASES["gemma3"], [True, False] * 3, 2)
    differs(CASES["mistral"], [True, True, True, False], 4)


def test_long_factors_are_of_long_contexts():
    c = like("phi3", sliding_window=None)
    short, far = [1.0, 1.5, 2.0], [2.0, 3.0, 5.0]
    tensors = {"rope_factors_short.weight": short, "rope_factors_long.weight": far}
    found = {}
    for original in (12, 48):
        folder, file = files_of(c, more=tensors, changes={"rope.scaling.original_context_length": original})
        found[original] = perplexity(file, folder / "tokenizer.json")
    for original, factors in ((12, far), (48, short)):
        _, file = files_of(c, more={"rope_freqs.weight": factors})
        assert close(perplexity(file, folder / "tokenizer.json"), found[original])
    assert not close(found[12], found[48])


def test_what_no_graph_does_is_refused():
    for name, changes, more, status, message in (
            ("llama", {"expert_count": 8}, {}, UNSUPPORTED, "a mixture of 8 experts"),
            ("llama", {"rope.scaling.type": "su"}, {}, UNSUPPORTED, "RoPE scaling of type 'su'"),
            ("llama", {"rope.scaling.type": "longrope"}, {}, UNSUPPORTED, "longrope without its factors"),
            ("llama", {"rope.dimension_count": 4}, {}, UNSUPPORTED, "RoPE over 4 of 8 elements of a head"),
            ("llama", {"attention.value_length": 4}, {}, UNSUPPORTED, "keys of 8, values of 4"),
            ("llama", {"rope.scaling.factor": -1.0}, {}, MALFORMED, "RoPE scaling by a factor of -1"),
            ("llama", {"sliding_window_pattern": None, "attention.sliding_window": 5,
                       "attention.sliding_window_pattern": [True]}, {}, MALFORMED, "has 1 elements for 4 layers"),
            ("granite", {"attention.sliding_window": 5}, {}, UNSUPPORTED, "a window of 5 in a context of 48"),
            ("granite", {"logit_scale": -2.0}, {}, UNSUPPORTED, "'logit_scale' is -2"),
            ("llama-yarn", {"rope.scaling.yarn_attn_factor": 2.0}, {}, UNSUPPORTED, "an attention factor of 2"),
            ("llama-yarn", {"rope.scaling.yarn_ext_factor": 0.5}, {}, UNSUPPORTED, "extrapolation factor of 0.5"),
            ("llama-yarn", {}, {"rope_freqs.weight": [1.0] * 4}, UNSUPPORTED, "beside another RoPE scaling"),
            ("llama", {}, {"rope_freqs.weight": [1.0] * 3}, MALFORMED, "has 3 factors for 4 frequencies"),
            ("llama", {}, {"rope_freqs.weight": [0.0] * 4}, MALFORMED, "factor 0 of RoPE is 0"),
            ("llama", {}, {"rope_factors_long.weight": [1.0] * 4}, UNSUPPORTED, "without short ones"),
            ("llama", {}, {"blk.0.attn_sub_norm.weight": [1.0] * 32}, UNSUPPORTED, "has no place"),
            ("llama", {"embedding_length": None}, {}, MALFORMED, "dim is 0")):
        _, file = files_of(like(name), changes=changes, more=more)
        muc("inspect", file, status=status, message=message)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
