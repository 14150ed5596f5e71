"""Compiles trained networks for very small machines, and runs, compares and reports on them.

    import muc
    with muc.open("kws.tflite") as network:
        outputs = network.run({"input_1": samples})                 # NumPy arrays in and out
        network.compile("kws", machine="stm32f746")                 # a folder of C; the report as a dictionary
    muc.report("kws")["arena_bytes"]
    muc.verify("kws", "kws.tflite")["exact"]
    with muc.open() as model:                                       # the built-in language model
        print(model.say("find fire in the lab")["text"])

What a function returns is the report that the verb of the same name prints with --json: a dictionary, whose tables are lists of
dictionaries. A failure raises a subclass of muc.Error with the message of the command. docs/PYTHON.md has the options.
"""
from __future__ import annotations

import ctypes
import os
import tempfile
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from muc import _api
from muc._api import Bug, Error, IOFailure, Malformed, Mismatch, NoFit, NoMemory, Unsupported, Usage

__all__ = ["open", "Model", "verify", "report", "run_folder", "targets", "formats", "operators", "doctor", "Error", "Malformed",
           "Unsupported", "NoFit", "NoMemory", "IOFailure", "Bug", "Usage", "Mismatch"]
Path = Union[str, "os.PathLike[str]"]
Report = dict
Arrays = Union[Mapping[str, Any], Sequence[Any]]


def _save(arrays: Arrays, folder: str) -> str:
    """Arrays by name, or by position, as a .npz file."""
    import numpy

    path = os.path.join(folder, "inputs.npz")
    if isinstance(arrays, Mapping):
        numpy.savez(path, **{name: numpy.asarray(array) for name, array in arrays.items()})
    else:
        numpy.savez(path, *(numpy.asarray(array) for array in arrays))
    return path


def _load(path: str) -> dict:
    import numpy

    with numpy.load(path) as file:
        return {name: file[name] for name in file.files}


class Model:
    """What muc.open opened: a language model (a checkpoint or a program) or a network. To be closed, or used in `with`."""

    def __init__(self, path: Optional[Path], threads: int, options: Mapping[str, Any]):
        self.path = None if path is None else os.fspath(path)
        self._threads, self._options = threads, dict(options)
        self._context = _api.Context(threads)
        self._handle = ctypes.c_void_p()
        try:
            self._context.call("muc_model_open", self._path(), self._settings(self._options), ctypes.byref(self._handle))
        except BaseException:
            self.close()
            raise

    def _path(self) -> Optional[bytes]:
        return None if self.path is None else os.fsencode(self.path)

    @staticmethod
    def _settings(options: Mapping[str, Any]) -> Any:
        return ctypes.byref(_api.fill(_api.ModelOptions, options))

    def close(self) -> None:
        if self._handle:
            _api.library().muc_model_close(self._handle)
            self._handle = ctypes.c_void_p()
        self._context.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_network(self) -> bool:
        """Whether it runs on arrays, not on text."""
        return bool(_api.library().muc_model_is_network(self._handle))

    def inspect(self) -> Report:
        """What the file holds, as understood."""
        return self._context.report("muc_inspect", self._handle)

    def compile(self, output: Path, **options: Any) -> Report:
        """Compiles to a file or folder. Options: target, machine, name, package, act_terms, attention, patch, fuse, pes, element, hex, strip,
        weights_file;
        for a language model also codec, bits and calibration."""
        weights = {key: options.pop(key) for key in ("codec", "bits", "calibration") if key in options}
        settings = _api.fill(_api.CompileOptions, options)
        settings.weights = _api.fill(_api.WeightOptions, weights)
        return self._context.report("muc_compile", self._handle, ctypes.byref(settings), os.fsencode(output))

    def run(self, inputs: Arrays) -> dict:
        """Runs a network in float32 and exact integers: arrays by name or by position in, arrays by name out."""
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "outputs.npz")
            options = dict(self._options, inputs=_save(inputs, folder))
            with Model(self.path, self._threads, options) as network:
                how = _api.fill(_api.ArrayRun, {"output": output})
                network._context.report("muc_run_network", network._handle, ctypes.byref(how))
            return _load(output)

    def say(self, prompt: str, on_text: Optional[Callable[[bytes], Optional[bool]]] = None, stops: Sequence[str] = (),
            **options: Any) -> Report:
        """Continues a prompt; the key "text" of the result has what came. on_text is called with each piece, and ends the run by returning
        False. Options: raw, no_special, most_tokens, chat, system, prompt_cache, board, machine; repeat_penalty, top_k, top_p, min_p,
        temperature, seed."""
        names = [name for name, _ in _api.Sampling._fields_]
        sampling = {key: options.pop(key) for key in names if key in options}
        settings = _api.fill(_api.RunOptions, dict(options, prompt=prompt))
        settings.sampling = _api.fill(_api.Sampling, sampling)
        words = (ctypes.c_char_p * len(stops))(*(word.encode() for word in stops))
        settings.stops, settings.stop_count = words, len(stops)
        failed = []

        def pass_on(_: object, text: int, size: int) -> bool:
            try:
                return on_text is None or on_text(ctypes.string_at(text, size)) is not False
            except BaseException as problem:  # goes on outside of the library
                failed.append(problem)
                return False

        settings.text = _api.TextFunction(pass_on)
        result = self._context.report("muc_run", self._handle, ctypes.byref(settings))
        if failed:
            raise failed[0]
        return result


def open(path: Optional[Path] = None, *, threads: int = 0, **options: Any) -> Model:
    """Opens a model or a network; None: the built-in model. threads 0: one a processor. Options: tokenizer, context, dims, one_sample, image, preprocess,
    text, no_special, types, arch, quant, calibration, keep_float, as the command has them."""
    return Model(path, threads, options)


def verify(made: Path, model: Path, *, threads: int = 0, prompt: Optional[str] = None, inputs: Optional[Arrays] = None,
           **options: Any) -> Report:
    """Compares what muc compiled with the model that it was made of. Raises Mismatch, whose attribute report has the details, if they differ.
    Options are those of open for the model."""
    with tempfile.TemporaryDirectory() as folder:
        if inputs is not None:
            options["inputs"] = _save(inputs, folder)
        with open(model, threads=threads, **options) as other:
            context, words = other._context, None if prompt is None else prompt.encode()
            path, library = os.fsencode(made), _api.library()
            if library.muc_is_language_folder(path):
                return context.report("muc_verify_language_folder", path, other._handle, words)
            if library.muc_is_code_folder(path):
                return context.report("muc_verify_folder", path, other._handle, None)
            with open(made, threads=threads) as program:
                return context.report("muc_verify", program._handle, other._handle, words)


def report(path: Path, *, threads: int = 0, save: Optional[Path] = None, **options: Any) -> Report:
    """What a folder of C code needs, or where a program's time goes. save: a file to write as well, in the form of its end (.html, .json,
    .csv). Options: board, cycles, input, machine, position, tokens, trace, brief."""
    with _api.Context(threads) as context:
        settings = _api.fill(_api.ReportOptions, options)
        return context.report("muc_report_folder", os.fsencode(path), ctypes.byref(settings), save=save)


def run_folder(path: Path, inputs: Arrays, *, threads: int = 0, board: Optional[str] = None, dims: Optional[str] = None) -> dict:
    """Builds a folder of C code with this computer's compiler, or for an emulated board, and runs it once: arrays in and out."""
    with tempfile.TemporaryDirectory() as folder, _api.Context(threads) as context:
        output = os.path.join(folder, "outputs.npz")
        how = _api.fill(_api.ArrayRun, {"input": _save(inputs, folder), "dims": dims, "output": output})
        context.report("muc_run_folder", os.fsencode(path), ctypes.byref(how), None if board is None else board.encode())
        return _load(output)


def _list(function: str) -> Report:
    with _api.Context(1) as context:
        return context.report(function)


def targets() -> Report:
    """The targets, and the machines of each."""
    return _list("muc_list_targets")


def formats() -> Report:
    """The formats that are read."""
    return _list("muc_list_formats")


def operators() -> Report:
    """The operators of the graph, and what becomes one of them."""
    return _list("muc_list_operators")


def doctor() -> Report:
    """What is there, and what each missing thing would make possible."""
    return _list("muc_doctor")
