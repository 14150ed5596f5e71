#!/usr/bin/env python3
"""Puts bugs into the compiler, one after another, and tells which of them networks drawn by chance find.

    fuzz/bugs.py [BUILD [NETWORKS [NUMBER...]]]     from the source root, whose files are put back afterwards

Each bug is a file, a text that is there once, and what stands in its place. A row whose text is not there any more is told: choose
another place for it.
"""
import pathlib
import shutil
import subprocess
import sys

FAILURES = ["wrong", "passes", "answered", "stopped", "broken", "crashed", "slow"]
STEP, FIRST_SEED = 1000, 5000000
ROOT = pathlib.Path(__file__).resolve().parent.parent
BUGS = [
    # passes
    ("src/passes/simplify/fuse.c", "sqrt((double)parts[3][c] + epsilon)", "sqrt((double)parts[3][c] - epsilon)"),
    ("src/passes/layout/layout.c", "if (++index[i] < dims[perm[i]])", "if (++index[i] < dims[i])"),
    ("src/passes/layout/pixel_windows.c", "sqrt((double)real(r, node->inputs[4], c) + muc_node_real(node, MUC_KEY_EPSILON))",
     "((double)real(r, node->inputs[4], c) + muc_node_real(node, MUC_KEY_EPSILON))"),
    ("src/passes/layout/layout.c", "if (i >= missing && !muc_rewrite_dim(&l->r.old, t, i - missing, &dims[i]))",
     "if (i > missing && !muc_rewrite_dim(&l->r.old, t, i - missing, &dims[i]))"),
    # plan
    ("src/plan/rigid_bodies.h", "a->first <= b->last && b->first <= a->last", "a->first < b->last && b->first < a->last"),
    ("src/targets/mcu/plan/plan_arena.c", "int64_t lead = overlap->lead > 0 ? overlap->lead : 0;", "int64_t lead = 0;"),
    # targets/mcu
    ("src/targets/mcu/loops/elementwise.c", "muc_mcu_most_elements(l, x) == muc_mcu_most_elements(l, y) &&",
     "muc_mcu_most_elements(l, x) <= muc_mcu_most_elements(l, y) &&"),
    ("src/targets/mcu/loops/loop_moves.c", "muc_mcu_dense(l, x, (uint32_t)perm[i])", "muc_mcu_dense(l, x, i)"),
    ("src/targets/mcu/loops/loop_moves.c", "stride->factor == 1 && is_expr_one(stride) && !stride->of_channels &&",
     "stride->factor == 1 && is_expr_one(stride) &&"),
    ("src/targets/mcu/loops/loop_nest.c", "if (muc_mcu_dim(nest->l, tensor, i) != 1)\n            operand->strides[ahead + i]",
     "if (muc_mcu_dim(nest->l, tensor, i) != 2)\n            operand->strides[ahead + i]"),
    ("src/targets/mcu/loops/loop_nest.c", "strides[0].factor != strides[1].factor * inner->immediate ||",
     "strides[0].factor < strides[1].factor * inner->immediate ||"),
    ("src/targets/mcu/loops/loop_windows.c", "if (!counts_padding)\n            line(&w, depth, \"count++;\");",
     "if (counts_padding)\n            line(&w, depth, \"count++;\");"),
    ("src/targets/mcu/loops/elementwise.c", '{ "S", muc_mcu_c_type(in) }', '{ "S", muc_mcu_c_type(out) }'),
    ("src/targets/mcu/tiles/tiled_conv.c", ".window = (layer->kernel_h - 1u) * layer->dilation_h + 1u,",
     ".window = (layer->kernel_h - 1u) * layer->dilation_h,"),
    # kernels
    ("runtime/kernels/ref/mur_conv_f32.c", "at + (*end - 1) * dilation >= size", "at + (*end - 1) * dilation > size"),
    ("runtime/kernels/ref/mur_ref_pool.c", "(sum > 0 ? sum + count / 2 : sum - count / 2) / count",
     "(sum + count / 2) / count"),
    ("runtime/include/mur_nn_arith.h", "(1 << 30)) >> 31", "(1 << 29)) >> 31"),
    ("runtime/kernels/tiles/mur_tiles.c", "b.rows = mur_tiles_smaller(t->row_tile, t->rows - b.row);",
     "b.rows = t->row_tile;"),
    # targets/cnnchip
    ("src/targets/cnnchip/lower/chip_windows.c", "(int64_t)(s->kernel - 1) * s->dilation + 1;",
     "(int64_t)s->kernel * s->dilation;"),
    ("src/targets/cnnchip/lower/chip_windows.c", "int64_t least = (first + s->pad) % s->stride;",
     "int64_t least = first % s->stride;"),
]


def build(folder):
    return subprocess.run(["ninja", "-C", folder, "fuzz/differ"], cwd=ROOT, capture_output=True).returncode == 0


def failures(program, networks, first):
    """How many networks fail, of the seeds from first on; any number where there is no end of it."""
    command = [program, str(networks), str(first)]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, env={"FUZZ_ONLY_COUNT": "1"})
    except subprocess.TimeoutExpired:
        return networks
    counts = dict(line.split()[:2] for line in run.stdout.splitlines() if len(line.split()) == 2)
    return sum(int(counts.get(name, 0)) for name in FAILURES)


def networks_until_found(folder, networks):
    """After how many networks more fail than without the bug, of seeds that no bug was chosen by; None: never."""
    for done in range(0, networks, STEP):
        first = FIRST_SEED + done
        if failures(f"{folder}/fuzz/differ", STEP, first) > failures(f"{folder}/differ_before", STEP, first):
            return done + STEP
    return None


def put_in(folder, networks, name, old, new):
    """What comes of one bug."""
    path = ROOT / name
    text = path.read_text()
    if text.count(old) != 1:
        return f"'{old}' is there {text.count(old)} times"
    try:
        path.write_text(text.replace(old, new))
        if not build(folder):
            return "does not build"
        after = networks_until_found(folder, networks)
        return f"found by {after} networks" if after else "MISSED"
    finally:
        path.write_text(text)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "build"
    networks = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    chosen = [int(n) for n in sys.argv[3:]] or range(1, len(BUGS) + 1)
    found = 0
    if not build(folder):
        sys.exit(f"{folder} does not build without a bug")
    shutil.copy(f"{folder}/fuzz/differ", f"{folder}/differ_before")
    for number in chosen:
        result = put_in(folder, networks, *BUGS[number - 1])
        found += result.startswith("found")
        print(f"{number} {BUGS[number - 1][0]}: {result}", flush=True)
    build(folder)
    print(f"{found} of {len(chosen)} found by {networks} networks each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
