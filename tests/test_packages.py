#!/usr/bin/env python3
"""Folders of C code as packages: what each build system would compile, two networks in one firmware, C++, the self test.

    tests/test_packages.py MUC
"""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree

from files import ROOT, USAGE, muc, need, run_tests

PLACE = tempfile.TemporaryDirectory(prefix="muc-packages-")
WORK = pathlib.Path(PLACE.name)
SMALL = ROOT / "examples/cnnchip/small.graph"
OTHER = """graph other
tensor x = input f32 [2, 4]
tensor w = const f32 [3, 4] values 0.5, -1.0, 0.25, 2.0, 1.5, 0.125, -0.5, 0.75, -2.0, 1.0, 0.5, -0.25
node l f32 [2, 3] = linear x, w
node y f32 [2, 3] = tanh l
output y
"""
FLAGS = ["-std=c99", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
KINDS = ["cmake", "zephyr", "arduino", "esp-idf", "platformio", "cmsis-pack"]


def run(*command, status=0):
    done = subprocess.run(list(map(str, command)), cwd=WORK, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, f"{command} ended with {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout + done.stderr


def compiled(name, *options, network=SMALL):
    folder = WORK / name
    if not folder.exists():
        muc("compile", network, "--target", "mcu", "--name", name.replace("-", "_"), "-o", folder, *options)
    return folder


def self_test(folder, name, sources, includes, status=0):
    """Compiles a test of the network from the sources, and runs it."""
    main = WORK / "self_test.c"
    main.write_text(f'#include "{name}.h"\nstatic uint8_t arena[{name.upper()}_ARENA_BYTES] __attribute__((aligned(16)));\n'
                    f"int main(void)\n{{\n    return {name}_selftest(arena);\n}}\n")
    run("cc", *FLAGS, *(f"-I{folder / include}" for include in includes), main, *(folder / s for s in sources), "-o", "self_test")
    run(WORK / "self_test", status=status)


def sources_of_cmake(folder):
    """What idf_component_register of CMakeLists.txt is told, by CMake itself."""
    need("cmake")
    script = WORK / "component.cmake"
    script.write_text("set(ESP_PLATFORM 1)\nmacro(target_compile_options)\nendmacro()\n"
                      'function(idf_component_register)\n  message("${ARGN}")\nendfunction()\n'
                      f"include({folder / 'CMakeLists.txt'})\n")
    words = run("cmake", "-P", script).strip().split(";")
    return words[words.index("SRCS") + 1:]


def sources_of(kind, folder, name):
    """Sources and include folders that the build system of this kind takes."""
    if kind == "arduino":  # all of src, and nothing else
        properties = dict(line.split("=", 1) for line in (folder / "library.properties").read_text().splitlines())
        assert properties["includes"] == f"{name}.h" and properties["name"] == name
        return [p.relative_to(folder) for p in (folder / "src").rglob("*.c")], ["src"]
    if kind == "platformio":
        build = json.loads((folder / "library.json").read_text())["build"]
        assert build["srcFilter"][0] == "-<*>"
        return [word[2:-1] for word in build["srcFilter"][1:]], [f[2:] for f in build["flags"] if f.startswith("-I")]
    if kind == "cmsis-pack":
        files = xml.etree.ElementTree.parse(folder / f"{name}.pdsc").getroot().findall(".//file")
        assert all((folder / f.get("name")).exists() for f in files)
        return [f.get("name") for f in files if f.get("category") == "source"], \
            [".", *(f.get("name") for f in files if f.get("category") == "include")]
    if kind == "zephyr":
        assert (folder / "zephyr/module.yml").read_text().count(f"name: {name}\n") == 1
        assert f"config {name.upper()}\n" in (folder / "zephyr/Kconfig").read_text()
        assert f"if(CONFIG_{name.upper()})" in (folder / "zephyr/CMakeLists.txt").read_text()
    return sources_of_cmake(folder), [".", "include"]


def test_each_package_compiles_what_it_names():
    for kind in KINDS:
        name = "net_" + kind.replace("-", "_")
        folder = compiled(name, "--package", kind)
        sources, includes = sources_of(kind, folder, name)
        described = json.loads((folder / f"{name}.json").read_text())["sources"]
        assert {pathlib.Path(s) for s in described} < {pathlib.Path(s) for s in sources}, kind
        self_test(folder, name, sources, includes)


def test_a_folder_of_any_package_is_verified():
    for kind in KINDS:
        assert "exact    yes" in muc("verify", compiled("net_" + kind.replace("-", "_"), "--package", kind), SMALL)


def test_a_changed_weight_fails_the_self_test():
    folder = WORK / "changed"
    shutil.copytree(compiled("net_cmake", "--package", "cmake"), folder)
    source = folder / "net_cmake.c"
    text = source.read_text()
    changed = text.replace("0, 0, 128, 62,", "0, 0, 128, 63,", 1)  # the bias 0.25 becomes 1
    assert changed != text
    source.write_text(changed)
    self_test(folder, "net_cmake", sources_of_cmake(folder), [".", "include"], status=1)


def test_cmake_builds_the_folder_by_itself():
    need("cmake")
    folder = compiled("net_cmake", "--package", "cmake")
    run("cmake", "-S", folder, "-B", WORK / "alone")
    run("cmake", "--build", WORK / "alone")
    assert (WORK / "alone/net_cmake_example").exists()


def test_cpp_calls_a_network():
    need("g++")
    folder = compiled("net_cmake", "--package", "cmake")
    (WORK / "user.cpp").write_text('#include "net_cmake.h"\nalignas(16) static uint8_t arena[NET_CMAKE_ARENA_BYTES];\n'
                                   "int main() { return net_cmake_selftest(arena); }\n")
    for source in sources_of_cmake(folder):
        run("cc", *FLAGS, "-c", f"-I{folder}", f"-I{folder}/include", folder / source, "-o", f"cpp_{pathlib.Path(source).stem}.o")
    run("g++", "-Wall", "-Wextra", "-Werror", f"-I{folder}", "user.cpp", *WORK.glob("cpp_*.o"), "-o", "user")
    run(WORK / "user")


def test_threads_run_a_network_at_the_same_time():
    folder = compiled("net_cmake", "--package", "cmake")
    (WORK / "threads.c").write_text("""#include <pthread.h>
#include "net_cmake.h"
static uint8_t arenas[2][NET_CMAKE_ARENA_BYTES + 64] __attribute__((aligned(64)));
static void *repeat(void *arena)
{
    for (int i = 0; i < 20000; i++)
        if (net_cmake_selftest(arena))
            return arena;
    return 0;
}
int main(void)
{
    pthread_t thread;
    void *wrong = 0;
    if (pthread_create(&thread, 0, repeat, arenas[0]) || repeat(arenas[1]) || pthread_join(thread, &wrong))
        return 1;
    return wrong != 0;
}
""")
    sources, includes = sources_of("cmake", folder, "net_cmake")
    run("cc", *FLAGS, "-pthread", *(f"-I{folder / include}" for include in includes), "threads.c", *(folder / s for s in sources), "-o", "threads")
    run(WORK / "threads")


def firmware(build):
    """What configures the example's firmware."""
    need("cmake", "arm-none-eabi-gcc")
    (WORK / "other.graph").write_text(OTHER)
    compiled("first", "--machine", "mps2-an386")
    compiled("second", "--machine", "mps2-an386", network=WORK / "other.graph")
    example = ROOT / "examples/two_networks"
    return ["cmake", "-S", example, "-B", WORK / build, f"-DNETWORKS={WORK}", f"-DCMAKE_TOOLCHAIN_FILE={example / 'cortex-m.cmake'}"]


def test_two_networks_share_their_kernels():
    need("qemu-system-arm")
    run(*firmware("firmware"))
    run("cmake", "--build", WORK / "firmware")
    told = run("qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-semihosting-config", "enable=on,target=native",
               "-kernel", WORK / "firmware/firmware.elf")
    assert told == "first: right\nsecond: right\n", told
    kernels = re.findall(r" T (mur_\w+)", run("arm-none-eabi-nm", WORK / "firmware/firmware.elf"))
    assert kernels and len(kernels) == len(set(kernels)), kernels


def test_kernels_of_two_versions_are_refused():
    configure = firmware("refused")
    kernel = next(k for k in (WORK / "second/kernels").rglob("*.c") if (WORK / "first" / k.relative_to(WORK / "second")).exists())
    text = kernel.read_text()
    kernel.write_text(text + "/* of another version */\n")
    told = run(*configure, status=1)
    kernel.write_text(text)
    assert "differ: compile both networks with the same version of muc" in " ".join(told.split()), told


def answer_of(weights):
    """What examples/new_weights says with these bytes in the flash that holds constants."""
    (WORK / "flash.bin").write_bytes(weights)
    return subprocess.run(["qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-semihosting-config", "enable=on,target=native",
                           "-device", "loader,file=weights_firmware/firmware.bin,addr=0",
                           "-device", "loader,file=flash.bin,addr=0x21000000"], cwd=WORK, capture_output=True, text=True, timeout=60).stdout


def test_weights_are_replaced_without_the_code():
    need("cmake", "arm-none-eabi-gcc", "qemu-system-arm")
    example = ROOT / "examples/new_weights"
    text = (example / "net.graph").read_text()
    options = ["--target", "mcu", "--machine", "mps2-an386", "--weights-file", "--name", "net", "-o"]
    for name, graph in {"old": text, "new": text.replace("values 0.5, -1.0, 0.25, 2.0", "values -0.5, -1.0, 0.25, -2.0"),
                        "other": text.replace("tanh", "sigmoid")}.items():
        (WORK / f"{name}.graph").write_text(graph)
        muc("compile", WORK / f"{name}.graph", *options, WORK / name)
    assert (WORK / "old/net.c").read_bytes() == (WORK / "new/net.c").read_bytes() != (WORK / "other/net.c").read_bytes()
    old, new, other = ((WORK / name / "net_weights.bin").read_bytes() for name in ("old", "new", "other"))
    run("cmake", "-S", example, "-B", "weights_firmware", f"-DNETWORK={WORK}/old",
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/examples/two_networks/cortex-m.cmake")
    run("cmake", "--build", "weights_firmware")
    assert len(old) == int(re.search(r"NET_WEIGHTS_BYTES (\d+)u", (WORK / "old/net.h").read_text())[1])
    assert answer_of(old) == "weights: right, answer: 0\n"  # 5.5, 1.375 and 1.25 before tanh
    assert answer_of(new) == "weights: right, answer: 1\n"  # -6.5 instead of 5.5
    assert answer_of(other) == "weights: of another network\n"
    assert answer_of(old[:5] + bytes([old[5] ^ 1]) + old[6:]) == "weights: damaged\n"
    assert answer_of(bytes(len(old))) == "weights: of another network\n"


def test_weights_of_text_and_of_a_file_answer_alike():
    folder = compiled("net_weights_file", "--weights-file")
    for kept, made in (("conv_1_weights[304]", 0), ("net_weights_file_weights[]", 1)):
        assert (kept in (folder / "net_weights_file.c").read_text()) == made, kept
    assert "exact    yes" in muc("verify", folder, SMALL)
    sources, includes = sources_of("cmake", folder, "net_weights_file")
    self_test(folder, "net_weights_file", sources, includes)


def test_names_and_packages_that_are_none_are_refused():
    muc("compile", SMALL, "--name", "3d", "-o", WORK / "none", status=USAGE, message="'3d' is not a name")
    muc("compile", SMALL, "--name", "a" * 41, "-o", WORK / "none", status=USAGE, message="is not a name")
    muc("compile", SMALL, "--target", "mcu", "--package", "zephir", "-o", WORK / "none", status=USAGE,
        message="did you mean 'zephyr'?")
    assert not (WORK / "none").exists()


run_tests(globals())
