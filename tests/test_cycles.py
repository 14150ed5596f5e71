#!/usr/bin/env python3
"""The model of cycles (bench/cycles): its table, loops whose cycles follow from the cores' manuals, llvm-mca's own count
of a loop in one piece, and the report that has them."""
import functools
import json
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile

import tap
from files import ROOT, Skip, run_tests

MUC = pathlib.Path(sys.argv[1]).resolve()
ROUNDS = 40
# board: a loop's instructions, register 0 counts; by the manuals its cycles but the branch's taking, the branch's, and its branches
# that are not taken; a refill of Cortex-M3, M4 and M33 is assumed to take 2
LOOPS = {
    # ldr 2, behind a load 1, SMLAD 1, constant offset store 1, PUSH and POP of three 4 each, subs 1, bne 1
    "m4": (["ldr r3, [r1]", "ldr r2, [r1, #4]", "smlad r3, r2, r3, r3", "str r3, [r1]", "push {r4-r6}", "pop {r4-r6}",
            "subs r0, #1", "bne 1b"], 2 + 1 + 1 + 1 + 4 + 4 + 1 + 1, 2),
    "m33": (["ldr r3, [r1]", "mul r2, r3, r3", "ldr r2, [r1, #4]", "subs r0, #1", "bne 1b"], 2 + 1 + 2 + 1 + 1, 2),
    # ldr 2, behind a load 1, MLA 2, UMULL 3 to 5 and UMLAL 4 to 7, by their most, constant offset store 1, PUSH and POP of two 3 each
    "m3": (["ldr r3, [r1]", "ldr r2, [r1, #4]", "mla r3, r2, r3, r3", "umull r4, r5, r3, r2", "umlal r4, r5, r3, r2", "str r3, [r1]",
            "push {r4, r5}", "pop {r4, r5}", "subs r0, #1", "bne 1b"], 2 + 1 + 2 + 5 + 7 + 1 + 3 + 3 + 1 + 1, 2),
    # every load and store 2, STM of two 3
    "m0": (["ldr r3, [r1]", "ldrb r2, [r1]", "muls r3, r2", "mov r4, r1", "stmia r4!, {r2, r3}", "subs r0, #1", "bne 1b"],
           2 + 2 + 1 + 1 + 3 + 1 + 1, 1),
    # a word may be used after 2 cycles, a byte and a product after 3
    "rv32": (["lw a2, 0(a1)", "addi a2, a2, 1", "lb a3, 4(a1)", "addi a4, a1, 1", "addi a3, a3, 1", "mul a4, a3, a3",
              "addi a4, a4, 1", "addi a0, a0, -1", "bnez a0, 1b"], 1 + 2 + 1 + 1 + 2 + 1 + 3 + 1 + 1, 0),
    "m7": (["vselgt.f32 s1, s2, s3", "ldr r3, [r1]", "smlad r2, r3, r3, r2", "ldr r4, [r1, #4]", "smlad r5, r3, r4, r5", "subs r0, #1",
            "bne 1b"], 0, 0),
}
PROGRAM = """#include "markers.h"
int main(void);
static unsigned data[4];
int main(void)
{
    unsigned left = %d;
    register unsigned *at __asm__("%s") = data;
    __asm__ volatile("%s%s\\n1: %s\\n%s" : : "r"(left), "r"(at) : %s, "cc", "memory");
    return 0;
}
"""
BUILD_AND_RUN = """
set -euo pipefail
. scripts/qemu_boards
board "$1"
$compiler -std=c11 -O2 -ffreestanding -nostdlib -Iexamples/qemu -Ibench/instructions -L examples/qemu -T "$script" \
    -Wl,--no-warn-rwx-segments "$2/loop.c" examples/qemu/semihosting.c "examples/qemu/$start" -lgcc -o "$2/image.elf"
cc -O2 -shared -fPIC -o "$2/count.so" bench/instructions/plugin.c
$emulator -display none -monitor none -serial none -kernel "$2/image.elf" -plugin "$2/count.so,paths=$2/paths" \
    -semihosting-config enable=on,target=native
"""


need = functools.partial(tap.need, hint=": scripts/setup bench installs it")


def run_loop(board, folder):
    """Runs the loop of a board; its paths are in the folder."""
    arm = board != "rv32"
    need(*tap.tools_of(board))
    loop = "\\n".join(LOOPS[board][0])
    marks = (("mov r12, r12", "mov r10, r10") if arm else
             (".option push\\n.option norvc\\naddi x0, x0, 1\\n.option pop", ".option push\\n.option norvc\\naddi x0, x0, 2\\n.option pop"))
    count = "r0" if arm else "a0"
    saved = '"r0", "r2", "r3", "r4", "r5", "r6"' if arm else '"a0", "a2", "a3", "a4"'
    text = PROGRAM % (ROUNDS, "r1" if arm else "a1", ".syntax unified\\n" if arm else "", f"mov{'s' if board == 'm0' else ''} {count}, %0\\n{marks[0]}"
                      if arm else f"mv {count}, %0\\n{marks[0]}", loop, marks[1], saved)
    (folder / "loop.c").write_text(text)
    done = subprocess.run(["bash", "-c", BUILD_AND_RUN, "bash", board, folder], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert f"#instructions {ROUNDS * len(LOOPS[board][0])}\n" in done.stderr, done.stderr


def price(core, folder, **more):
    return subprocess.run([ROOT / "bench/cycles/price", core, folder / "image.elf", folder / "paths"], capture_output=True,
                          text=True, **more)


def check_loop(board):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run_loop(board, folder)
        done = price(board, folder)
        assert done.returncode == 0, done.stderr
        _, cycles, taken, touched = done.stdout.split()
        _, straight, branch = LOOPS[board]
        assert int(taken) == ROUNDS - 1, done.stdout
        assert int(cycles) == ROUNDS * straight + (ROUNDS - 1) * branch, done.stdout
        assert 2 * len(LOOPS[board][0]) <= int(touched) <= 4 * len(LOOPS[board][0]), done.stdout


def test_a_loop_on_cortex_m4_takes_what_its_manual_says():
    check_loop("m4")


def test_a_loop_on_cortex_m3_takes_what_its_manual_says():
    check_loop("m3")


def test_a_loop_on_cortex_m33_takes_what_cortex_m4s_manual_says():
    check_loop("m33")


def test_a_loop_on_cortex_m0plus_takes_what_its_manual_says():
    check_loop("m0")


def test_a_loop_on_e31_waits_for_loads_and_products():
    check_loop("rv32")


def test_paths_add_up_to_what_llvm_mca_says_of_the_whole():
    """The loop's rounds one after another in one piece of text, which no part of bench/cycles has written."""
    need("llvm-mca-22", "llvm-objdump-22")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run_loop("m7", folder)
        done = price("m7", folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout == price("cortex-m7", folder).stdout  # a second time, by the core's name
        cycles, taken = [int(n) for n in done.stdout.split()[1:3]]
        text = "\n".join(LOOPS["m7"][0]).replace("1b", ".Lx")
        whole = subprocess.run(["llvm-mca-22", "-mtriple=thumbv7em-none-eabi", "-mcpu=cortex-m7", f"-iterations={ROUNDS}"],
                               input=text, capture_output=True, text=True, check=True).stdout
        expected = int(re.search(r"Total Cycles: +(\d+)", whole).group(1))
        assert cycles == expected + taken * 3 // 2 and expected > ROUNDS, (cycles, expected, taken)


def test_conditions_of_scalars_are_no_predicates_of_vectors():
    """where a segment begins within a block of either"""
    whole_blocks = runpy.run_path(str(ROOT / "bench/cycles/price"))["whole_blocks"]
    for text, whole in (("vldrlt s15, [r0]", "vldrlt s15, [r0]"), ("vselge.f32 s1, s2, s3", "vselge.f32 s1, s2, s3"),
                        ("vaddt.i32 q0, q1, q2", "vadd.i32 q0, q1, q2"), ("vldrbe.u16 q0, [r1]", "vldrb.u16 q0, [r1]")):
        assert whole_blocks([text]) == [whole], text


def test_rows_of_the_table_have_sources_and_a_default():
    text = (ROOT / "bench/cycles/cycles.def").read_text()
    cores = re.findall(r'^CORE\(([\w-]+), (\w+), "(\w+) ([^"]*)", (\d+), "([^"]+)"\)$', text, flags=re.M)
    costs = re.findall(r'^COST\(([\w-]+), "(.*)", (\d+), (\d+), (\d+), (\d+), "([^"]+)"\)$', text, flags=re.M)
    assert len(cores) == len(re.findall("^CORE", text, flags=re.M)) > 5
    assert len(costs) == len(re.findall("^COST", text, flags=re.M)) > 15
    boards = (ROOT / "scripts/qemu_boards").read_text()
    for name, board, kind, model, _, source in cores:
        assert f"    {board}) " in boards, board
        rows = [cost for cost in costs if cost[0] == model]
        assert kind == "mca" or rows and rows[-1][1] == ".*" and ".*" not in [row[1] for row in rows[:-1]], name
        assert re.search(r"assumed|DDI|manual", source), source
    for cost in costs:
        assert re.search(r"assumed|DDI \d{4}[A-Z]|E31 Core Complex manual", cost[6]), cost


def test_a_missing_model_is_named_with_what_installs_it():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "paths").write_text("region\n1 0:1\n")
        (folder / "tools").mkdir()
        (folder / "tools" / "env").symlink_to(shutil.which("env"))
        (folder / "tools" / "python3").symlink_to(sys.executable)
        done = price("cortex-m7", folder, env=dict(os.environ, PATH=str(folder / "tools")))
        assert done.returncode == 127 and "scripts/setup bench" in done.stderr and "llvm-" in done.stderr, done.stderr
        done = price("cortex-m9", folder)
        assert done.returncode == 1 and "cortex-m55" in done.stderr, done.stderr


def report(folder, *options):
    done = subprocess.run([MUC, "report", folder, *options, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_report_has_cycles_of_layers_time_and_energy():
    need("arm-none-eabi-gcc", "qemu-system-arm")
    with tempfile.TemporaryDirectory() as name:
        code = pathlib.Path(name) / "code"
        subprocess.run([MUC, "compile", ROOT / "examples/cnnchip/small.graph", "--target", "mcu", "--machine", "stm32l4r5", "-o",
                        code], check=True, capture_output=True)
        found = report(code, "--qemu", "m4", "--cycles")
        layers, cycles = found["layers"], found["modelled_cycles"]
        assert sum(layer["instructions"] for layer in layers) <= found["instructions"] < cycles, found
        assert 0 <= cycles - sum(layer["modelled_cycles"] for layer in layers) < 100, found
        assert all(layer["taken"] < layer["modelled_cycles"] for layer in layers), layers
        assert found["touch_cycles"] == 0 < found["taken_branches"], found
        assert abs(found["modelled_ms"] - cycles / 120e3) < 1e-6, found
        assert abs(found["modelled_millijoules"] - cycles / 120e3 * 0.042) < 1e-6, found
        assert "modelled_cycles" not in report(code, "--qemu", "m4")


def test_a_report_marks_layers_slower_than_their_kind():
    """One output a channel, for which little is shared; wide pointwise layers beside it are as fast as any."""
    need("arm-none-eabi-gcc", "qemu-system-arm")
    sys.path.insert(0, str(ROOT / "bench/networks"))
    import wakeword
    with tempfile.TemporaryDirectory() as name:
        code, graph = pathlib.Path(name) / "code", pathlib.Path(name) / "wakeword.graph"
        graph.write_text(wakeword.wakeword())
        subprocess.run([MUC, "compile", graph, "--target", "mcu", "--machine", "mps2-an500", "-o", code], check=True, capture_output=True)
        found = report(code, "--qemu", "m7")
        slow = {layer["node"]: layer["slow"] for layer in found["layers"] if "slow" in layer}
        assert "times the instructions of a depthwise layer" in slow["depthwise3"] and "too few" in slow["depthwise3"], slow
        assert not any(node.startswith("pointwise") for node in slow), slow
        assert any(slow["depthwise3"] in row["advice"] for row in found["what_to_change"]), found["what_to_change"]
        assert not any("slow" in layer for layer in report(code)["layers"])
        subprocess.run([MUC, "compile", graph, "--target", "mcu", "--machine", "esp32s3", "-o", code], check=True, capture_output=True)
        found = report(code, "--qemu", "m3")
        assert not any("slow" in layer for layer in found["layers"])
        assert any("xtensa-lx7 was not counted: no layer is marked as slow" in row["advice"] for row in found["what_to_change"]), found["what_to_change"]


def test_a_report_marks_layers_that_fill_no_vector():
    need("riscv64-unknown-elf-gcc", "qemu-system-riscv32")
    sys.path.insert(0, str(ROOT / "bench/layers"))
    import shapes
    with tempfile.TemporaryDirectory() as name:
        code, graph = pathlib.Path(name) / "code", pathlib.Path(name) / "conv.graph"
        graph.write_text(shapes.graph(shapes.Shape("conv", 9, 9, 3, 3, 3, 3, pad="same"), 1))
        subprocess.run([MUC, "compile", graph, "--target", "mcu", "--machine", "rv32v", "-o", code], check=True, capture_output=True)
        slow, = report(code, "--qemu", "rv32v")["layers"]
        assert slow["slow"].endswith("its 3 output channels are too few for vectors"), slow


def test_slow_flash_costs_a_wait_for_each_line_at_first():
    need("arm-none-eabi-gcc", "qemu-system-arm", "llvm-mca-22", "llvm-objdump-22")
    with tempfile.TemporaryDirectory() as name:
        found = []
        for machine in ("mps2-an500", "stm32h7a3"):
            code = pathlib.Path(name) / machine
            subprocess.run([MUC, "compile", ROOT / "examples/cnnchip/small.graph", "--target", "mcu", "--machine", machine, "-o",
                            code], check=True, capture_output=True)
            found.append(report(code, "--qemu", "m7", "--cycles"))
        fast, slow = found
        assert fast["touch_cycles"] == 0 and slow["touch_cycles"] % 14 == 0, found
        assert slow["touch_cycles"] >= (slow["constant_bytes"] // 32) * 14 > 0, slow
        assert slow["modelled_cycles"] == fast["modelled_cycles"] + slow["touch_cycles"], found
        assert slow["touch_cycles"] == sum(layer["touch_cycles"] for layer in slow["layers"]), slow


def test_the_schedules_of_cores_keep_a_networks_cycles():
    """MLPerf Tiny's keyword spotting; loops that all cores share took 1.37, 1.87, 0.62 and 4.40 cycles a product."""
    network = ROOT.parent / "shared/data/tflite/kws_ref_model.tflite"
    if not network.exists():
        raise Skip("shared data is not there")
    need("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "qemu-system-arm", "qemu-system-riscv32", "llvm-mca-22", "llvm-objdump-22")
    with tempfile.TemporaryDirectory() as name:
        for board, machine, most in (("m7", "mps2-an500", 0.95), ("m4", "mps2-an386", 1.55), ("m55", "mps3-an547", 0.45),
                                     ("rv32", "rv32", 3.5)):
            code = pathlib.Path(name) / board
            subprocess.run([MUC, "compile", network, "--machine", machine, "-o", code], check=True, capture_output=True)
            found = report(code, "--qemu", board, "--cycles")["cycles_per_mac"]
            assert most - 0.1 < found <= most, (board, found)


def test_cycles_need_a_board():
    done = subprocess.run([MUC, "report", ROOT / "examples", "--cycles"], capture_output=True, text=True)
    assert done.returncode == 7 and "--qemu BOARD" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
