"""The C library of muc: where it is, its structures (include/muc), and its failures as exceptions."""
from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import json
import os
import pathlib
from typing import Any, Mapping, Optional

_text, _flag, _count = ctypes.c_char_p, ctypes.c_bool, ctypes.c_uint32
TextFunction = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class ModelOptions(ctypes.Structure):
    STRUCT = "muc_model_options"
    _fields_ = [("tokenizer", _text), ("context", _count), ("dims", _text), ("one_sample", _flag), ("inputs", _text), ("image", _text), ("preprocess", _text),
                ("text", _text), ("no_special", _flag), ("exports", ctypes.c_void_p), ("export_count", ctypes.c_size_t), ("types", _text),
                ("arch", _text), ("quant", _text), ("calibration", _text), ("keep_float", _text), ("compile", ctypes.c_void_p),
                ("compile_path", _text)]


class WeightOptions(ctypes.Structure):
    STRUCT = "muc_weight_options"
    _fields_ = [("codec", _text), ("bits", ctypes.c_double), ("calibration", _text), ("shard", _count), ("shards", _count)]


class CompileOptions(ctypes.Structure):
    STRUCT = "muc_compile_options"
    _fields_ = [("weights", WeightOptions), ("target", _text), ("machine", _text), ("act_terms", _text), ("attention", _text),
                ("name", _text), ("package", _text), ("patch", _text), ("fuse", _text), ("pes", _text), ("element", _text), ("hex", _text),
                ("strip", _flag), ("weights_file", _flag), ("may_shorten", _flag)]


class Sampling(ctypes.Structure):
    STRUCT = "muc_sampling"
    _fields_ = [("repeat_penalty", ctypes.c_double), ("top_k", _count), ("top_p", ctypes.c_double), ("min_p", ctypes.c_double),
                ("temperature", ctypes.c_double), ("seed", ctypes.c_uint64)]


class RunOptions(ctypes.Structure):
    STRUCT = "muc_run_options"
    _fields_ = [("prompt", _text), ("raw", _flag), ("no_special", _flag), ("most_tokens", _count), ("chat", _text), ("system", _text),
                ("stops", ctypes.POINTER(_text)), ("stop_count", ctypes.c_size_t), ("sampling", Sampling), ("prompt_cache", _text),
                ("board", _text), ("machine", _text), ("text", TextFunction), ("arg", ctypes.c_void_p)]


class ArrayRun(ctypes.Structure):
    STRUCT = "muc_array_run"
    _fields_ = [("input", _text), ("image", _text), ("preprocess", _text), ("dims", _text), ("labels", _text), ("output", _text),
                ("dump", _text)]


class ReportOptions(ctypes.Structure):
    STRUCT = "muc_report_options"
    _fields_ = [("board", _text), ("cycles", _flag), ("input", _text), ("machine", _text), ("position", _count), ("tokens", _count),
                ("trace", _text), ("brief", _flag)]


STRUCTURES = [ModelOptions, WeightOptions, CompileOptions, Sampling, RunOptions, ArrayRun, ReportOptions]


def fill(structure: type, options: Mapping[str, Any]) -> Any:
    """A structure with these members, others zero. TypeError if it has no such member."""
    filled, known = structure(), {name for name, _ in structure._fields_}
    for name, value in options.items():
        if name not in known:
            raise TypeError(f"there is no option {name!r}; expected one of {', '.join(sorted(known))}")
        if isinstance(value, (str, os.PathLike)):
            value = os.fsencode(value)
        if value is not None:
            setattr(filled, name, value)
    return filled


# ---- failures ----

class Error(Exception):
    """A call failed; the text is the library's message. report: what was found all the same, or None."""

    def __init__(self, message: str, report: Optional[dict] = None):
        super().__init__(message)
        self.report = report


class Malformed(Error):
    """The input violates its file format."""


class Unsupported(Error):
    """Valid input that muc does not support."""


class NoFit(Error):
    """The plan exceeds the memory of the machine."""


class NoMemory(Error):
    """Out of memory on this computer."""


class IOFailure(Error):
    """A read or write failed."""


class Bug(Error):
    """The verifier refuses the output of muc."""


class Usage(Error):
    """The call is wrong."""


class Mismatch(Error):
    """Two results that must agree differ."""


FAILURES = [None, Malformed, Unsupported, NoFit, NoMemory, IOFailure, Bug, Usage, Mismatch]  # by muc_status


# ---- the library ----

def _bundled() -> Optional[str]:
    """The wheel's library, whose needs are loaded first; they may need each other."""
    here = pathlib.Path(__file__).resolve().parent / "lib"
    own, others = sorted(here.glob("libmuc.so.*")), [path for path in here.glob("*") if not path.name.startswith("libmuc.")]
    for _ in range(len(others)):
        for path in list(others):
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
                others.remove(path)
    return str(own[-1]) if own else None


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    found = os.environ.get("MUC_LIBRARY") or _bundled() or ctypes.util.find_library("muc")
    if not found:
        raise ImportError("libmuc is not installed: install muc's packages, or name the library in MUC_LIBRARY")
    lib = ctypes.CDLL(found)
    lib.muc_context_new.restype = ctypes.c_void_p
    lib.muc_error_message.restype = ctypes.c_char_p
    for name in ("muc_model_is_network", "muc_is_language_folder", "muc_is_code_folder"):
        getattr(lib, name).restype = ctypes.c_bool
    return lib


class Context:
    """The error sink and the thread count of a use of the library; not for two threads at once."""

    def __init__(self, threads: int):
        self._handle = ctypes.c_void_p(library().muc_context_new(ctypes.c_uint(threads)))
        if not self._handle:
            raise NoMemory("there is no memory for a context")

    def close(self) -> None:
        if self._handle:
            library().muc_context_free(self._handle)
            self._handle = ctypes.c_void_p()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fail(self, status: int, report: Optional[dict]) -> None:
        message = library().muc_error_message(self._handle).decode(errors="replace")
        library().muc_error_clear(self._handle)
        raise FAILURES[status](message, report)

    def call(self, function: str, *arguments: Any) -> None:
        status = getattr(library(), function)(self._handle, *arguments)
        if status != 0:
            self._fail(status, None)

    def report(self, function: str, *arguments: Any, save: Any = None) -> dict:
        """Calls a function whose last argument is the report that it makes."""
        made, text, found = ctypes.c_void_p(), ctypes.c_void_p(), None
        status = getattr(library(), function)(self._handle, *arguments, ctypes.byref(made))
        try:
            if made:
                self._free_after(library().muc_report_as_json, made, text)
                found = json.loads(ctypes.string_at(text))
                ctypes.CDLL(None).free(text)
            if made and save is not None and status == 0:
                self._save(made, save)
        finally:
            library().muc_report_free(made)
        if status != 0:
            self._fail(status, found)
        return found or {}

    def _free_after(self, form: Any, made: Any, text: Any, *more: Any) -> None:
        status = form(self._handle, made, *more, ctypes.byref(text))
        if status != 0:
            self._fail(status, None)

    def _save(self, made: Any, save: Any) -> None:
        path, text, lib = os.fsencode(save), ctypes.c_void_p(), library()
        forms = {".html": (lib.muc_report_as_html, [path]), ".json": (lib.muc_report_as_json, []), ".csv": (lib.muc_report_as_csv, [None])}
        end = os.path.splitext(os.fspath(save))[1]
        if end not in forms:
            raise Usage(f"{save}: a report is saved as .html, .json or .csv")
        form, more = forms[end]
        self._free_after(form, made, text, *more)
        try:
            self.call("muc_report_save", path, ctypes.c_char_p(ctypes.string_at(text)))
        finally:
            ctypes.CDLL(None).free(text)
