#!/usr/bin/env python3
"""Each family of language models against a second implementation, and what each feature changes. Prints TAP.

    tests/test_families.py MUC      from the source root
"""
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "oracle"))

import families
import gpt2
import test_train
from test_train import muc

TEXT = "hello the world's worth: 42 hells"
# what a family has that another implementation could forget; each must change the perplexity
FEATURES = {
    "llama-biases": ["biases"], "llama-linear": ["rope_scaling"], "llama-yarn": ["rope_scaling"],
    "llama-llama3": ["rope_scaling"], "llama-longrope": ["rope_scaling"],
    "llama4": ["no_rope", "pairs", "head_norm"], "mobilellm-ls": ["layer_sharing"], "mistral": ["window"],
    "qwen2": ["window", "biases"], "qwen2-listed": ["window"], "qwen3": ["head_norm"],
    "gemma": ["embedding", "plus_one", "silu"],
    "gemma2": ["embedding", "plus_one", "window", "attention_cap", "logit_cap", "output_norms",
               "scale", "silu"],
    "gemma3": ["window", "local_theta", "rope_scaling", "head_norm", "scale"],
    "phi3": ["window"], "phi3-part": ["rotary_pct"], "olmo2": ["head_norm"], "olmo2-groups": ["head_norm"], "granite": ["factors"], "smollm3": ["no_rope"],
    "smollm3-window": ["window"],
    "bitnet": ["inner_norms", "relu"],
    "gpt-neox": ["parallel", "rotary_pct", "biases"], "gpt-neox-in-turn": ["rotary_pct"],
    "gpt-neo": ["window", "scale"], "opt": ["shift", "biases"],
}


def near(found, expected):
    return abs(found - expected) <= 2e-5 * abs(expected)


def check(name):
    c = families.FAMILIES[name]
    weights = families.random_weights(c)
    ids = gpt2.encode(TEXT)
    expected = families.perplexity(c, weights, ids)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        families.write_folder(folder, c, weights)
        (folder / "text.txt").write_text(TEXT)
        found = json.loads(muc("eval", folder, "--text", folder / "text.txt", "--json"))
    assert found["tokens"] == len(ids) - 1, found
    assert near(found["perplexity"], expected), f"{found['perplexity']}, expected {expected}"
    for feature in FEATURES.get(name, []):
        without = families.perplexity(c, weights, ids, feature)
        assert not near(without, expected), f"the perplexity without {feature} is the same"


def main():
    test_train.MUC = sys.argv[1]
    print(f"1..{len(families.FAMILIES)}")
    failed = False
    for i, name in enumerate(families.FAMILIES):
        try:
            check(name)
            print(f"ok {i + 1} - {name}", flush=True)
        except AssertionError as problem:
            failed = True
            print(f"not ok {i + 1} - {name}\n# {problem}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
