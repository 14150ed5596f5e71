"""Builds the wheel: the module, libmuc, the libraries that it needs, and what is installed with it (share/muc).

MUC_BUILD names a folder of Meson that has been built; otherwise one is made.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

ROOT = pathlib.Path(__file__).resolve().parent.parent
OF_THE_SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread)\.so|ld-linux)")


def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=sys.stderr)


def needed(library):
    """The libraries that one needs, but for the system's: names and paths."""
    lines = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    return [(name, path) for name, path in re.findall(r"(\S+) => (/\S+)", lines) if not OF_THE_SYSTEM.match(name)]


class WithLibrary(build_py):
    def run(self):
        super().run()
        module = pathlib.Path(self.build_lib) / "muc"
        with tempfile.TemporaryDirectory() as folder:
            build = os.environ.get("MUC_BUILD")
            if not build:
                build = pathlib.Path(folder) / "build"
                run("meson", "setup", build, ROOT, "-Dtests=disabled")
                run("ninja", "-C", build)
            run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", pathlib.Path(folder) / "tree")
            [library] = (p for p in (pathlib.Path(folder) / "tree").rglob("libmuc.so.*") if not p.is_symlink())
            (module / "lib").mkdir(parents=True, exist_ok=True)
            for name, path in [(library.name, library), *needed(library)]:
                shutil.copyfile(path, module / "lib" / name)
            [data] = (p for p in (pathlib.Path(folder) / "tree").rglob("share/muc") if p.is_dir())
            shutil.copytree(data, module / "share/muc", dirs_exist_ok=True)


class ForAnyPython(bdist_wheel):
    """It has no code of Python's own, only this platform's."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(packages=["muc"], package_data={"muc": ["py.typed"]}, cmdclass={"build_py": WithLibrary, "bdist_wheel": ForAnyPython},
      distclass=Binary)
