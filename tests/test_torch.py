#!/usr/bin/env python3
"""PyTorch state dicts: with --arch (descriptions and ONNX files), and of language models. Prints TAP.

    tests/test_torch.py MUC

Files are made by fuzz/torch_seeds.py, without PyTorch; PyTorch itself judges ResNet-20 where it is.
"""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

from files import (DATA, IO, MALFORMED, ROOT, UNSUPPORTED, USAGE, Skip, close, muc, read_npz,
                   run_network, run_tests)

sys.path[:0] = [str(ROOT / "fuzz"), str(ROOT / "tests/oracle")]
import families  # noqa: E402
import gpt2  # noqa: E402
import onnx_seeds  # noqa: E402
import torch_seeds  # noqa: E402
from torch_seeds import Tensor  # noqa: E402

WORK = tempfile.TemporaryDirectory()
X = [1.0, -2.0, 3.0, 0.5]
RESNET, RESNET_ARCH = DATA / "torch/resnet20-12fca82f.th", ROOT / "examples/resnet20.arch"


def put(name, data):
    path = pathlib.Path(WORK.name) / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def expected():
    """What state() makes of X, written out."""
    planes = []
    for c, (w, b, scale, shift, mean, deviation) in enumerate(
            ((1, 0.5, 1, 0, 0.5, 1), (2, -1, 2, 1, 0, 2))):
        planes += [max(0, (w * x + b - mean) / deviation * scale + shift) for x in X]
    return [sum(v * (2 * i + row) for i, v in enumerate(planes)) for row in (0, 1)]


def run_state(data, arch=torch_seeds.ARCH):
    return run_network(put("state", data), "--arch", put("arch", arch),
                       inputs=[((1, 1, 2, 2), X)])


def test_both_containers_give_the_network_its_weights():
    state = torch_seeds.state()
    for data in (torch_seeds.legacy(state), torch_seeds.archive(state),
                 torch_seeds.legacy({"state_dict": torch_seeds.state("module.")}),
                 torch_seeds.archive({"net": [state], "epoch": 1})):
        [(_, dims, values)] = run_state(data)
        assert dims == [1, 2], dims
        close(values, expected())


def test_an_onnx_file_of_the_same_network_takes_the_weights():
    s = onnx_seeds
    blank = s.model(
        [s.node("Conv", ["x", "c.weight", "c.bias"], ["c"]),
         s.node("BatchNormalization", ["c", "n.weight", "n.bias", "n.running_mean",
                                       "n.running_var"], ["n"], epsilon=1e-12),
         s.node("Relu", ["n"], ["r"]), s.node("Flatten", ["r"], ["f"]),
         s.node("Gemm", ["f", "l.weight"], ["y"], transB=1)],
        [s.value("x", [1, 1, 2, 2])], [s.value("y", [1, 2])],
        [s.tensor("c.weight", [2, 1, 1, 1], [0.0] * 2), s.tensor("l.weight", [2, 8], [0.0] * 16),
         *(s.tensor(name, [2], [0.0] * 2) for name in
           ("c.bias", "n.weight", "n.bias", "n.running_mean", "n.running_var"))])
    [(_, _, values)] = run_state(torch_seeds.archive(torch_seeds.state()), blank)
    close(values, expected())
    other = torch_seeds.state() | {"d.weight": Tensor((1,), (1,))}
    muc("inspect", put("state", torch_seeds.archive(other)), "--arch", put("arch", blank),
        status=MALFORMED, message="'d.weight' is in the file, but the network has no place")


def refused(state, status, message, arch=torch_seeds.ARCH):
    muc("inspect", put("state", torch_seeds.legacy(state)), "--arch", put("arch", arch),
        status=status, message=message)


def test_a_wrong_description_names_line_and_word():
    good = torch_seeds.state()
    for change, status, message in (
            (("conv c", "conv d"), MALFORMED, "line 3, 'conv': "),
            (("conv c", "conv c stride=0"), MALFORMED, "'0' is not a number from 1"),
            (("conv c", "conv c size=2"), MALFORMED, "'size=2' is not expected here"),
            (("conv c", "convolve c"), UNSUPPORTED, "line 3, 'convolve': neither"),
            (("conv c", "conv c\nmax_pool 3"), MALFORMED, "spans 3 of 2"),
            (("input x 1 2 2\n", ""), MALFORMED, "before any 'input"),
            (("input x 1 2 2", "input x 1 2"), MALFORMED, "takes [1, channels, rows, columns]"),
            (("relu", "add y"), MALFORMED, "line 6, 'add': nothing is kept as 'y'"),
            (("$name", "$nane"), MALFORMED, "'$nane' is not a parameter"),
            (("end", ""), MALFORMED, "has no end"),
            (("tail . l", "tail . l m"), MALFORMED, "expected a prefix and 1 arguments"),
            (("flatten", "tail . l"), UNSUPPORTED, "deep"),
            (("norm n eps=0\n", ""), MALFORMED, "'n.bias' is in the file, but"),
            (("flatten", ""), MALFORMED, "expected 2")):
        assert change[0] in torch_seeds.ARCH
        refused(good, status, message, torch_seeds.ARCH.replace(*change))
    refused(good, UNSUPPORTED, "not text", "input\0")
    refused(good, MALFORMED, "has no statement", "# nothing\n")


def test_a_tensor_that_is_not_what_it_says_is_refused():
    def changed(**tensors):
        return torch_seeds.state() | {k.replace("_", ".", 1): v for k, v in tensors.items()}

    refused(changed(c_bias=Tensor((3,), (1, 2, 3))), MALFORMED, "dimension 0 of 'c.bias' is 3")
    refused(changed(c_bias=Tensor((2,), (1,))), MALFORMED, "'c.bias' reaches beyond its storage")
    refused(changed(c_bias=Tensor((2,), (1,), strides=(1 << 62,))), MALFORMED, "'c.bias'")
    refused(changed(c_bias=Tensor((1 << 40,), (1,), strides=(0,))), MALFORMED, "'c.bias'")
    refused(changed(c_bias=Tensor((2,), (1, 2), "LongStorage")), MALFORMED, "no weights 'c.bias'")
    refused({"weights": 1}, UNSUPPORTED, "no state dict")
    refused(torch_seeds.state() | {"x": 1}, UNSUPPORTED, "'x' of the state dict is not a tensor")


class Attack:
    def __reduce__(self):
        return os.system, ("touch " + str(pathlib.Path(WORK.name) / "attacked"),)


def test_nothing_of_a_pickle_is_executed():
    refused({"c.weight": Attack()}, UNSUPPORTED, "the pickle names 'posix system'")
    assert not (pathlib.Path(WORK.name) / "attacked").exists()
    whole = torch_seeds.stand_in("nets", "Net")()
    refused(whole, UNSUPPORTED, "the pickle names 'nets Net'")


def test_a_file_that_is_cut_off_is_refused():
    for data in (torch_seeds.legacy(torch_seeds.state()), torch_seeds.archive(torch_seeds.state())):
        for size in range(32, len(data), 61):
            done = subprocess.run([sys.argv[1], "inspect", put("state", data[:size]), "--arch",
                                   put("arch", torch_seeds.ARCH)], capture_output=True)
            assert done.returncode in (MALFORMED, UNSUPPORTED), (size, done)
    memo = pickle.dumps(1, 2)[:2] + b"j\xff\xff\xff\x7f."
    head = torch_seeds.legacy({})[:14] + b"."
    muc("inspect", put("state", head + memo), "--arch", put("arch", torch_seeds.ARCH),
        status=MALFORMED, message="memo 2147483647 was never put")


def test_weights_alone_ask_for_their_network():
    muc("inspect", put("state", torch_seeds.archive(torch_seeds.state())), status=USAGE,
        message="give it with --arch FILE")
    muc("inspect", ROOT / "fuzz/corpus/onnx/conv", "--arch", RESNET_ARCH, status=USAGE,
        message="the file holds a network of its own")


def sharing(weights, kind="FloatStorage", shift=0):
    """Of a model's weights the tensors: one stored transposed, the last behind another's elements."""
    out = {}
    for name, rows in weights.items():
        dims, values = gpt2.shape(rows), gpt2.flat(rows)
        out[name] = Tensor(dims, values, kind)
        if name.endswith("o_proj.weight"):
            columns = [row[j] for j in range(dims[1]) for row in rows]
            out[name] = Tensor(dims, columns, kind, strides=(1, dims[0]))
        if name == "model.norm.weight":
            out[name] = Tensor(dims, None, offset=shift,
                               storage=torch_seeds.Storage(kind, [7.0] * shift + values))
    return out


def write_shards(folder, tensors, write, total=1):
    """Every other tensor in a file of its own; what the index says of sizes is not exact."""
    parts = [dict(list(tensors.items())[i::2]) for i in range(2)]
    names = [f"pytorch_model-0000{i + 1}-of-00002.bin" for i in range(2)]
    for name, part in zip(names, parts):
        (folder / name).write_bytes(write(part))
    where = {tensor: name for name, part in zip(names, parts) for tensor in part}
    (folder / "pytorch_model.bin.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": where}))


def evaluated(folder):
    """Without what names the folder."""
    report = json.loads(muc("eval", folder, "--text", put("text", TEXT), "--json"))
    return report["perplexity"], report["tokens"]


def folder_of_a_model(name, tied=False):
    folder = pathlib.Path(tempfile.mkdtemp(dir=WORK.name))
    c = families.FAMILIES[name]
    weights = families.random_weights(c)
    if tied:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    families.write_folder(folder, c, weights)
    return folder, weights


TEXT = "hello the world's worth: 42 hells"


def test_a_language_model_has_the_same_weights_in_both_kinds_of_files():
    folder, weights = folder_of_a_model("llama")
    expected = evaluated(folder)
    (folder / "model.safetensors").unlink()
    muc("inspect", folder, status=IO, message="holds no weights: expected model.safetensors or")
    for write in (torch_seeds.legacy, torch_seeds.archive,
                  lambda v: torch_seeds.archive(v, long_offsets=True)):
        (folder / "pytorch_model.bin").write_bytes(write(sharing(weights, shift=3)))
        assert evaluated(folder) == expected
        (folder / "pytorch_model.bin").unlink()
        write_shards(folder, sharing(weights), write)
        assert evaluated(folder) == expected
        (folder / "pytorch_model.bin.index.json").unlink()
    write_shards(folder, sharing(weights | {"more": [1.0]}), torch_seeds.archive)
    muc("inspect", folder, status=UNSUPPORTED, message="'more' has no place in a LlamaForCausalLM")


def test_half_precision_stays_and_buffers_go():
    folder, weights = folder_of_a_model("gpt-neo")
    expected = evaluated(folder)
    (folder / "model.safetensors").unlink()
    halves = sharing(weights, "HalfStorage")
    for layer in range(families.LAYERS):
        at = f"transformer.h.{layer}.attn.attention."
        halves[at + "bias"] = Tensor((1, 1, 2, 2), (1, 0, 1, 1), "LongStorage")
        halves[at + "masked_bias"] = Tensor((), (-1e9,))
    (folder / "pytorch_model.bin").write_bytes(torch_seeds.archive(halves))
    found = evaluated(folder)
    assert found != expected and abs(found[0] / expected[0] - 1) < 0.02, (found, expected)
    assert "f16" in muc("inspect", folder)


def test_pytorch_writes_what_is_read():
    folder, weights = folder_of_a_model("llama", tied=True)
    c = json.loads((folder / "config.json").read_text()) | {"tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(c))
    expected = evaluated(folder)
    (folder / "model.safetensors").unlink()
    (folder / "weights.json").write_text(json.dumps(weights))
    done = subprocess.run(["/usr/bin/python3", "-c", """
import json, sys, torch
weights = {k: torch.tensor(v) for k, v in json.load(open(sys.argv[1] + "/weights.json")).items()}
weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
torch.save(weights, sys.argv[1] + "/pytorch_model.bin")
""", folder], capture_output=True)
    if b"No module named" in done.stderr or b"cannot open shared object" in done.stderr:
        raise Skip("no PyTorch")
    assert done.returncode == 0, done.stderr
    assert evaluated(folder) == expected


ORACLE = """
import sys, torch
from torch.nn.functional import batch_norm, conv2d, linear, pad, relu
state = torch.load(sys.argv[1], map_location="cpu")["state_dict"]
w = {name[len("module."):]: tensor for name, tensor in state.items()}
def conv(x, name, stride): return conv2d(x, w[name + ".weight"], None, stride, 1)
def norm(x, name):
    return batch_norm(x, *(w[f"{name}.{k}"] for k in ("running_mean", "running_var", "weight", "bias")))
torch.manual_seed(1)
image = torch.randn(1, 3, 32, 32)
x = relu(norm(conv(image, "conv1", 1), "bn1"))
for layer in (1, 2, 3):
    for block in (0, 1, 2):
        name, stride = f"layer{layer}.{block}", 2 if layer > 1 and block == 0 else 1
        y = relu(norm(conv(x, name + ".conv1", stride), name + ".bn1"))
        y = norm(conv(y, name + ".conv2", 1), name + ".bn2")
        if stride == 2:
            x = pad(x[:, :, ::2, ::2], (0, 0, 0, 0, x.shape[1] // 2, x.shape[1] // 2))
        x = relu(x + y)
y = linear(x.mean((2, 3)), w["linear.weight"], w["linear.bias"])
import numpy
numpy.savez(sys.argv[2], image.numpy(), y.numpy())
"""


def test_resnet_20_gives_what_pytorch_gives():
    if not RESNET.exists():
        raise Skip("../shared/data is not at hand")
    recorded = pathlib.Path(WORK.name) / "oracle.npz"
    done = subprocess.run(["/usr/bin/python3", "-c", ORACLE, RESNET, recorded], capture_output=True)
    if b"No module named" in done.stderr or b"cannot open shared object" in done.stderr:
        raise Skip("no PyTorch")
    assert done.returncode == 0, done.stderr
    (_, dims, image), (_, _, scores) = read_npz(recorded)
    [(name, found_dims, found)] = run_network(RESNET, "--arch", RESNET_ARCH,
                                              inputs=[(dims, image)])
    assert (name, found_dims) == ("linear", [1, 10])
    close(found, scores)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
