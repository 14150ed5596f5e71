"""llama.cpp as a second opinion: folders converted by its own convert_hf_to_gguf.py, and its logits.

PEER is a folder in which `npm install node-llama-cpp` ran: the package has a prebuilt library and a bundle of llama.cpp's repository with
the script. What the script imports and a machine may lack (transformers, tqdm, yaml) is replaced by as much of it as folders
of families.py need; tokenizers are written as GPT-2's, which theirs are.
"""
import functools
import json
import pathlib
import platform
import subprocess
import sys
import types

import numpy

HERE = pathlib.Path(__file__).resolve().parent


def package(peer):
    return peer / "node_modules" / "node-llama-cpp"


def libraries(peer):
    name = "linux-" + {"x86_64": "x64", "aarch64": "arm64", "armv7l": "armv7l"}[platform.machine()]
    return peer / "node_modules" / "@node-llama-cpp" / name / "bins" / name


@functools.cache
def sources(peer):
    """the repository of the bundle, cloned beside the package"""
    folder = peer / "llama.cpp"
    if not folder.exists():
        subprocess.run(["git", "clone", "--quiet", package(peer) / "llama" / "gitRelease.bundle", folder], check=True)
    base = folder / "conversion" / "base.py"
    base.write_text(base.read_text().replace("qweight.dtype.itemsize", "qweight.element_size()"))  # before PyTorch 2.1
    return folder


@functools.cache
def program(peer):
    """tests/oracle/llama_logits.c with the library of the package"""
    bins, out = libraries(peer), peer / "llama_logits"
    names = [p for p in bins.glob("lib*.so") if p.name.startswith(("libllama.", "libggml.", "libggml-base"))]
    top = sources(peer)
    subprocess.run(["cc", "-O1", "-o", out, HERE / "llama_logits.c", "-I", top / "include", "-I", top / "ggml/include", *names,
                    f"-Wl,-rpath,{bins}"], check=True)
    return out


def logits(peer, path, ids):
    """[tokens][vocabulary]"""
    done = subprocess.run([program(peer), path, libraries(peer), *map(str, ids)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return numpy.frombuffer(done.stdout, "<f4").reshape(len(ids), -1)


class Config(dict):
    @classmethod
    def from_pretrained(cls, folder, **_):
        return cls(json.loads((pathlib.Path(folder) / "config.json").read_text()))

    def to_dict(self):
        return dict(self)


def stand_ins():
    for name in ("transformers", "tqdm", "yaml", "requests"):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = types.ModuleType(name)
    if not hasattr(sys.modules["transformers"], "AutoConfig"):
        sys.modules["transformers"].AutoConfig = Config
    if not hasattr(sys.modules["tqdm"], "tqdm"):
        sys.modules["tqdm"].tqdm = lambda **_: types.SimpleNamespace(update=lambda n: None)
    import torch
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "uint16", "uint32", "uint64"):
        if not hasattr(torch, name):  # before version 2.3
            setattr(torch, name, object())


def set_vocabulary(model):
    """of tokenizer.json as gpt2.py writes it"""
    tokenizer = json.loads((model.dir_model / "tokenizer.json").read_text())
    pieces = [piece for piece, _ in sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])]
    special = {added["id"] for added in tokenizer["added_tokens"]}
    w = model.gguf_writer
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(pieces)
    w.add_token_types([3 if i in special else 1 for i in range(len(pieces))])
    w.add_token_merges(tokenizer["model"]["merges"])
    w.add_bos_token_id(max(special))
    w.add_eos_token_id(max(special))
    w.add_add_bos_token(False)


def convert(peer, folder, path):
    """runs in a process of its own: see main"""
    done = subprocess.run([sys.executable, __file__, peer, folder, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def main(peer, folder, path):
    top = sources(peer)
    sys.path[:0] = [str(top), str(top / "gguf-py")]
    stand_ins()
    import gguf
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class
    hparams = ModelBase.load_hparams(folder, False)
    model_class = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    model_class.set_vocab = set_vocabulary
    model_class(folder, gguf.LlamaFileType.ALL_F32, path, eager=True).write()


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
