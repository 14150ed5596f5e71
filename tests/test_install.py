#!/usr/bin/env python3
"""What `meson install` puts in place, used as its users do: the command, the library by pkg-config and by CMake, the
runtime's sources, the bill of materials.

    tests/test_install.py MUC BUILD      the command and its build folder
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from files import ROOT, need, run_tests

BUILD = pathlib.Path(sys.argv[2]).resolve()
PLACE = tempfile.TemporaryDirectory(prefix="muc-install-")
WORK = pathlib.Path(PLACE.name)
PROMPT = "find fire in the lab"  # of README's C program
NO_LIBC = "riscv64-unknown-elf-gcc -march=rv32imc -mabi=ilp32 -ffreestanding"
FIRMWARE = """#include <string.h>
#include "mur.h"
#include "mur_nn.h"
int start(mur_program *program, const void *flash) { return mur_open(program, flash, 64); }
"""


os.environ.pop("LD_LIBRARY_PATH", None)  # meson's, which leads to the build folder


def run(*command, **environment):
    done = subprocess.run(list(map(str, command)), cwd=WORK, env=dict(os.environ, **environment), capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout


def installed():
    """The installed tree, somewhere else than it was configured for."""
    tree = WORK / "moved"
    if not tree.exists():
        run("meson", "install", "-C", BUILD, "--no-rebuild", DESTDIR=str(WORK / "staged"))
        options = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
        prefix = next(option["value"] for option in options if option["name"] == "prefix")
        (WORK / "staged" / prefix.lstrip("/")).rename(tree)
    return tree


def only(folder, pattern):
    [found] = folder.rglob(pattern)
    return found


def static_tree():
    """The same with the static library alone."""
    tree = WORK / "static"
    if not tree.exists():
        shutil.copytree(installed(), tree, symlinks=True)
        for library in tree.rglob("libmuc.so*"):
            library.unlink()
    return tree


def program():
    source = WORK / "x.c"
    source.write_text(next(block for block in re.findall(r"```c\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
                           if "muc/muc.h" in block))
    return source


def pkg_config(tree, *options):
    return run("pkg-config", *options, "--cflags", "--libs", "muc",
               PKG_CONFIG_PATH=str(only(tree, "muc.pc").parent)).split()


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))


def check_answer(*command, **environment):
    """The program says what the command of the build folder says."""
    expected = run(pathlib.Path(sys.argv[1]).resolve(), "run", "--prompt", PROMPT)
    found = run(*command, **environment)
    assert found.strip() == expected.strip() != "", (found, expected)


def test_the_command_finds_its_model_where_the_tree_was_moved_to():
    check_answer(installed() / "bin/muc", "run", "--prompt", PROMPT)


def test_readmes_program_builds_by_pkg_config():
    run("cc", program(), *pkg_config(installed()), "-o", "shared")
    assert "libmuc.so.0.1" in needed(WORK / "shared")
    check_answer("./shared", LD_LIBRARY_PATH=str(only(installed(), "libmuc.so").parent))


def test_so_it_does_with_the_static_library():
    run("cc", program(), *pkg_config(static_tree(), "--static"), "-o", "static/bin/program")
    assert not any("muc" in name for name in needed(WORK / "static/bin/program"))
    check_answer("static/bin/program")


def test_the_labs_example_names_the_stage_that_is_broken():
    sim = ROOT / "src/targets/uthinker/sim"
    runtime = only(installed(), "mur_embed.c").parents[1]
    run("cc", "-O2", "-ffp-contract=off", ROOT / "examples/lab/lab_test.c", *sim.glob("uthinker_sim*.c"),
        *(runtime / "src" / name for name in ("mur_embed.c", "mur_block.c", "mur_sampler.c")), "-I", sim, "-I", ROOT / "src", "-I", runtime / "include", *pkg_config(installed()), "-o", "lab_test")
    library = {"LD_LIBRARY_PATH": str(only(installed(), "libmuc.so").parent)}
    run(pathlib.Path(sys.argv[1]).resolve(), "compile", "-o", "lab.utp")
    report = json.loads(run("./lab_test", "lab.utp", "--json", **library))
    assert report["exact"] and report["positions"] == 66 and all(row["values"] and not row["wrong"] for row in report["stages"])
    for broken, stage in (("33:1", "queries, rotated"), ("37:3", "attention"), ("38:2", "up")):
        done = subprocess.run(["./lab_test", "lab.utp", "--json", "--break", broken], cwd=WORK, env=dict(os.environ, **library),
                              capture_output=True, text=True)
        report = json.loads(done.stdout)
        assert done.returncode != 0 and not report["exact"], broken
        assert (report["position"], report["layer"], report["stage"]) == (0, 0, stage), report
        assert report["first_divergence"] in done.stderr


def test_a_cplusplus_program_builds_too():
    need("c++")
    (WORK / "x.cc").write_text('#include "muc/muc.h"\nint main() { muc_context_free(muc_context_new(1)); }\n')
    run("c++", "-Wall", "-Wextra", "-Werror", "x.cc", *pkg_config(installed()), "-o", "cplusplus")
    run("./cplusplus", LD_LIBRARY_PATH=str(only(installed(), "libmuc.so").parent))


def test_readmes_program_builds_by_cmake():
    need("cmake")
    folder = WORK / "cmake"
    folder.mkdir()
    shutil.copy(program(), folder)
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nfind_package(muc 0.1 REQUIRED COMPONENTS static)\n"
        "add_executable(shared x.c)\ntarget_link_libraries(shared muc::muc)\n"
        "add_executable(static x.c)\ntarget_link_libraries(static muc::static)\n"
        "find_package(muc 0.2 QUIET)\nif(muc_FOUND)\nmessage(FATAL_ERROR \"0.1 passes for 0.2\")\nendif()\n")
    run("cmake", "-S", folder, "-B", folder / "b", f"-DCMAKE_PREFIX_PATH={installed()}")
    run("cmake", "--build", folder / "b")
    check_answer(folder / "b/shared")
    shutil.copy(folder / "b/static", installed() / "bin")  # the model is found beside the program
    check_answer(installed() / "bin/static")
    (installed() / "bin/static").unlink()


def build_firmware(name, compiler, *options):
    """The runtime as a part of a firmware, kernels included, for another core."""
    need("cmake", compiler.split()[0])
    folder = WORK / name
    folder.mkdir()
    command, *flags = compiler.split()
    (folder / "main.c").write_text(FIRMWARE)
    (folder / "toolchain.cmake").write_text(
        f"set(CMAKE_SYSTEM_NAME Generic)\nset(CMAKE_C_COMPILER {command})\nset(CMAKE_C_FLAGS_INIT \"{' '.join(flags)}\")\n"
        "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\nproject(firmware C)\nfind_package(mur 0.1 REQUIRED)\n"
        "add_library(firmware STATIC main.c)\ntarget_link_libraries(firmware mur::mur)\n"
        "add_custom_target(everything ALL DEPENDS firmware mur)\n")
    run("cmake", "-S", folder, "-B", folder / "b", f"-DCMAKE_TOOLCHAIN_FILE={folder / 'toolchain.cmake'}",
        f"-DCMAKE_PREFIX_PATH={installed()}", *options)
    run("cmake", "--build", folder / "b", "-j2")
    return run(re.sub("gcc$", "nm", command), "--defined-only", "-A", only(folder, "libmur.a"))


def test_the_runtime_builds_for_cortex_m_by_cmake():
    names = build_firmware("arm", "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb")
    for name in ("mur_open", "mur_ref_conv_s8", "mur_dsp_conv_s8", "mur_tiles_run"):
        assert f" T {name}\n" in names, name


def test_the_runtime_builds_without_a_c_library():
    assert " T memcpy\n" in build_firmware("riscv", NO_LIBC, "-DMUR_FREESTANDING=ON")


def test_the_library_shows_what_its_headers_declare():
    shown = set(re.findall(r" [A-Z] (\w+)", run("nm", "-D", "--defined-only", only(installed(), "libmuc.so.0.1"))))
    text = "".join(path.read_text() for path in (installed() / "include/muc").glob("*.h"))
    declared = set(re.findall(r"^[a-z][\w *]*?\b(muc_\w+)\(", re.sub(r"/\*.*?\*/|typedef[^;{]*;", "", text, flags=re.S), re.M))
    assert shown == declared, shown ^ declared


def test_what_is_installed_knows_nothing_of_where_it_was_built():
    for path in (installed() / "bin/muc", only(installed(), "libmuc.so.0.1.0")):
        constants = WORK / "constants"
        run("objcopy", "-O", "binary", "-j", ".rodata", path, constants)
        assert str(ROOT).encode() not in constants.read_bytes(), path
    assert str(ROOT) not in only(installed(), "muc.pc").read_text()


def test_programs_are_hardened():
    for path in (installed() / "bin/muc", only(installed(), "libmuc.so.0.1.0")):
        header, parts, dynamic = (run("readelf", option, path) for option in ("-hW", "-lW", "-dW"))
        assert re.search(r"Type: +DYN", header), "it has a fixed address"
        assert "GNU_RELRO" in parts and re.search(r"FLAGS_1\).*NOW", dynamic), "addresses of functions stay writable"
        assert re.search(r"GNU_STACK .* RW ", parts), "its stack is executable"
        symbols = run("nm", "-D", "-u", path)
        assert "__stack_chk_fail" in symbols, "its stack is not guarded"
        assert re.search(r"__(memcpy|snprintf|vsnprintf|fprintf)_chk", symbols), "the C library does not check sizes"
    assert re.search(r"FLAGS_1\).*PIE", run("readelf", "-dW", installed() / "bin/muc"))


def test_the_bill_of_materials_names_every_library():
    path = only(installed(), "muc.cdx.json")
    bom = json.loads(path.read_text())
    assert bom["bomFormat"] == "CycloneDX" and bom["metadata"]["component"]["name"] == "muc"
    listed = {}
    for part in bom["components"]:
        assert part["version"] and part["licenses"][0]["license"]["id"], part
        for entry in part.get("properties", []):
            listed[entry["value"]] = part["name"]
    libraries = {*needed(installed() / "bin/muc"), *needed(only(installed(), "libmuc.so.0.1.0"))}
    assert set(listed) == libraries, set(listed) ^ libraries
    names = {part["name"] for part in bom["components"]}
    assert {"mur", "jansson", "glibc"} <= names
    assert bom["dependencies"][0]["dependsOn"] == sorted(names)
    assert str(ROOT) not in path.read_text()


def test_uninstall_leaves_no_file():
    place = WORK / "removed"
    run("meson", "install", "-C", BUILD, "--no-rebuild", DESTDIR=str(place))
    assert only(place, "muc.pc")
    run("ninja", "-C", BUILD, "uninstall")
    left = [path for path in place.rglob("*") if not path.is_dir() or path.is_symlink()]
    assert not left, left


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
