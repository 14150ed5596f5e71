"""A second implementation of the Llama family and GPT-2, and of their training, in PyTorch: the judge of
muc train.

    torch_llama.py train JOB.json    trains as JOB says and prints losses, norms and the distance
                                     of the weights from those of another folder
    torch_llama.py speed JOB.json    prints the tokens a second of training steps
"""
import json
import math
import struct
import sys
import time

import torch
import torch.nn.functional as F


def read_folder(folder):
    with open(f"{folder}/config.json") as f:
        config = json.load(f)
    with open(f"{folder}/model.safetensors", "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        first, end = t["data_offsets"]
        assert t["dtype"] == "F32"
        values = torch.frombuffer(bytearray(data[8 + size + first:8 + size + end]),
                                  dtype=torch.float32)
        tensors[name] = values.reshape(t["shape"]).clone()
    return config, tensors


def norm(x, gain, epsilon):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * gain


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def gpt2_logits(config, w, tokens):
    """of Hugging Face's tensors, where matrices are [in, out]"""
    heads, epsilon = config["n_head"], config["layer_norm_epsilon"]
    batch, length = tokens.shape
    gelu = {"gelu_new": "tanh", "gelu": "none"}[config["activation_function"]]

    def layer_norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], epsilon)

    def conv1d(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][:length]
    for i in range(config["n_layer"]):
        p = f"transformer.h.{i}."
        q, k, v = (t.view(batch, length, heads, -1).transpose(1, 2)
                   for t in conv1d(layer_norm(x, p + "ln_1"), p + "attn.c_attn").chunk(3, dim=-1))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1)
        x = x + conv1d(mixed, p + "attn.c_proj")
        neurons = F.gelu(conv1d(layer_norm(x, p + "ln_2"), p + "mlp.c_fc"), approximate=gelu)
        x = x + conv1d(neurons, p + "mlp.c_proj")
    x = layer_norm(x, "transformer.ln_f")
    return F.linear(x, w.get("lm_head.weight", w["transformer.wte.weight"]))


def forget_key_biases(tensors):
    """They add the same to all scores of a query: what they become is chance."""
    for name, t in tensors.items():
        if name.endswith("c_attn.bias"):
            third = t.numel() // 3
            t.data[third:2 * third] = 0


def logits_of(config, w, tokens):
    """tokens [batch, length] of documents, padded at their end: no row sees what follows it"""
    if config["model_type"] == "gpt2":
        return gpt2_logits(config, w, tokens)
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    width = config.get("head_dim", config["hidden_size"] // heads)
    epsilon = config["rms_norm_eps"]
    batch, length = tokens.shape
    angles = torch.arange(length)[:, None].double() * config["rope_theta"] ** (
        -torch.arange(0, width, 2).double() / width)
    cos, sin = angles.cos().float(), angles.sin().float()
    x = w["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        n = norm(x, w[p + "input_layernorm.weight"], epsilon)
        q, k, v = (F.linear(n, w[p + f"self_attn.{c}_proj.weight"])
                   .view(batch, length, -1, width).transpose(1, 2) for c in "qkv")
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(width)
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1)
        x = x + F.linear(mixed, w[p + "self_attn.o_proj.weight"])
        n = norm(x, w[p + "post_attention_layernorm.weight"], epsilon)
        gated = F.silu(F.linear(n, w[p + "mlp.gate_proj.weight"])) * F.linear(
            n, w[p + "mlp.up_proj.weight"])
        x = x + F.linear(gated, w[p + "mlp.down_proj.weight"])
    x = norm(x, w["model.norm.weight"], epsilon)
    return F.linear(x, w.get("lm_head.weight", w["model.embed_tokens.weight"]))


def batch_of(documents):
    """documents (tokens, silent); targets before `silent` and in the padding are -100"""
    longest = max(len(tokens) for tokens, _ in documents) - 1
    tokens = torch.zeros(len(documents), longest, dtype=torch.long)
    targets = torch.full((len(documents), longest), -100)
    for row, (ids, silent) in enumerate(documents):
        tokens[row, :len(ids) - 1] = torch.tensor(ids[:-1])
        targets[row, :len(ids) - 1] = torch.tensor(
            [t if i >= silent else -100 for i, t in enumerate(ids)][1:])
    return tokens, targets


def rate_of(job, step):
    if step < job["warm_up"]:
        return job["rate"] * (step + 1) / job["warm_up"]
    share = (step - job["warm_up"]) / (job["steps"] - job["warm_up"])
    least = job["rate"] * job["least_rate"]
    return least + (job["rate"] - least) * 0.5 * (1 + math.cos(math.pi * share))


class Trainer:
    def __init__(self, job):
        self.job = job
        self.config, self.weights = read_folder(job["folder"])
        for t in self.weights.values():
            t.requires_grad_(True)
        matrices = [t for t in self.weights.values() if t.dim() == 2]
        gains = [t for t in self.weights.values() if t.dim() == 1]
        self.adam = torch.optim.AdamW([{"params": matrices, "weight_decay": job["decay"]},
                                       {"params": gains, "weight_decay": 0.0}],
                                      betas=(0.9, 0.95), eps=1e-8)

    def step(self, number, tokens, targets):
        for group in self.adam.param_groups:
            group["lr"] = rate_of(self.job, number)
        self.adam.zero_grad()
        logits = logits_of(self.config, self.weights, tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        length = torch.nn.utils.clip_grad_norm_(self.weights.values(), self.job["clip"])
        self.adam.step()
        return loss.item(), length.item()


def train(job):
    trainer = Trainer(job)
    tokens, targets = batch_of(job["documents"])
    losses, norms = zip(*(trainer.step(i, tokens, targets) for i in range(job["steps"])))
    _, other = read_folder(job["other"])
    _, start = read_folder(job["folder"])
    for tensors in (trainer.weights, other, start):
        forget_key_biases(tensors)
    moved = sum((start[n] - t).pow(2).sum().item() for n, t in other.items())
    apart = sum((trainer.weights[n] - t).pow(2).sum().item() for n, t in other.items())
    return {"losses": losses, "norms": norms, "distance": math.sqrt(apart / moved)}


def speed(job):
    torch.set_num_threads(job["threads"])
    trainer = Trainer(job)
    tokens, targets = batch_of(job["documents"])
    trainer.step(0, tokens, targets)
    start, cpu = time.monotonic(), time.process_time()
    for i in range(job["repeat"]):
        trainer.step(1 + i, tokens, targets)
    count = job["repeat"] * tokens.numel()
    return {"tokens_per_second": count / (time.monotonic() - start),
            "tokens_per_cpu_second": count / (time.process_time() - cpu)}


if __name__ == "__main__":
    with open(sys.argv[2]) as f:
        print(json.dumps({"train": train, "speed": speed}[sys.argv[1]](json.load(f))))
