#!/usr/bin/env python3
"""Puts bugs into the compiler, one after another, and tells which of them networks drawn by chance find.

    fuzz/bugs.py [BUILD [NETWORKS [FIRST [LAST]]]]     from the source root, whose files are put back afterwards

Each bug is a file, a text that is there once, and what stands in its place. A row whose text is not there any more is told: choose
another place for it.
"""
import pathlib
import subprocess
import sys

FAILURES = ["wrong", "passes", "answered", "stopped", "broken", "crashed", "slow"]
ROOT = pathlib.Path(__file__).resolve().parent.parent
BUGS = [
    # passes
    ("src/passes/fuse.c", "sqrt((double)parts[3][c] + epsilon)", "sqrt((double)parts[3][c] - epsilon)"),
    ("src/passes/layout.c", "if (++index[i] < dims[perm[i]])", "if (++index[i] < dims[i])"),
    ("src/passes/windows.c", "sqrt((double)real(r, node->inputs[4], c) + muc_node_real(node, MUC_KEY_EPSILON))",
     "((double)real(r, node->inputs[4], c) + muc_node_real(node, MUC_KEY_EPSILON))"),
    ("src/passes/layout.c", "if (i >= missing && !muc_rewrite_dim(&l->r.old, t, i - missing, &dims[i]))",
     "if (i > missing && !muc_rewrite_dim(&l->r.old, t, i - missing, &dims[i]))"),
    # plan
    ("src/plan/lifetimes.c", "(p->first <= q->last && q->first <= p->last)",
     "(p->first < q->last && q->first < p->last)"),
    ("src/targets/mcu/memory.c", "int64_t lead = overlap->lead > 0 ? overlap->lead : 0;", "int64_t lead = 0;"),
    # targets/mcu
    ("src/targets/mcu/elementwise.c", "muc_mcu_most_elements(l, x) == muc_mcu_most_elements(l, y) &&",
     "muc_mcu_most_elements(l, x) <= muc_mcu_most_elements(l, y) &&"),
    ("src/targets/mcu/moves.c", "muc_mcu_dense(l, x, (uint32_t)perm[i])", "muc_mcu_dense(l, x, i)"),
    ("src/targets/mcu/moves.c", "stride->factor == 1 && is_expr_one(stride) && !stride->of_channels &&",
     "stride->factor == 1 && is_expr_one(stride) &&"),
    ("src/targets/mcu/nest.c", "if (muc_mcu_dim(nest->l, tensor, i) != 1)\n            operand->strides[ahead + i]",
     "if (muc_mcu_dim(nest->l, tensor, i) != 2)\n            operand->strides[ahead + i]"),
    ("src/targets/mcu/nest.c", "strides[0].factor != strides[1].factor * inner->immediate ||",
     "strides[0].factor < strides[1].factor * inner->immediate ||"),
    ("src/targets/mcu/windows.c", "if (!counts_padding)\n            line(&w, depth, \"count++;\");",
     "if (counts_padding)\n            line(&w, depth, \"count++;\");"),
    ("src/targets/mcu/elementwise.def", 'MUC_MCU_WHOLE(SUB, "($T)(($U)$a - ($U)$b)")',
     'MUC_MCU_WHOLE(SUB, "($T)(($U)$b - ($U)$a)")'),
    ("src/targets/mcu/tiled_conv.c", ".window = (layer->kernel_h - 1u) * layer->dilation_h + 1u,",
     ".window = (layer->kernel_h - 1u) * layer->dilation_h,"),
    # kernels
    ("runtime/kernels/ref/mur_conv_f32.c", "at + (*end - 1) * dilation >= size", "at + (*end - 1) * dilation > size"),
    ("runtime/kernels/ref/mur_ref_pool.c", "(sum > 0 ? sum + count / 2 : sum - count / 2) / count",
     "(sum + count / 2) / count"),
    ("runtime/include/mur_nn_arith.h", "(1 << 30)) >> 31", "(1 << 29)) >> 31"),
    ("runtime/kernels/tiles/mur_tiles.c", "b.rows = mur_tiles_smaller(t->row_tile, t->rows - b.row);",
     "b.rows = t->row_tile;"),
    # targets/cnnchip
    ("src/targets/cnnchip/windows.c", "(int64_t)(s->kernel - 1) * s->dilation + 1;",
     "(int64_t)s->kernel * s->dilation;"),
    ("src/targets/cnnchip/windows.c", "int64_t least = (first + s->pad) % s->stride;",
     "int64_t least = first % s->stride;"),
]


def build(folder):
    return subprocess.run(["ninja", "-C", folder, "fuzz/differ"], cwd=ROOT, capture_output=True).returncode == 0


def failures(folder, networks):
    """How many networks fail, of seeds that no bug was chosen by; any number where there is no end of it."""
    command = [f"{folder}/fuzz/differ", str(networks), "5000000"]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, env={"FUZZ_ONLY_COUNT": "1"})
    except subprocess.TimeoutExpired:
        return networks
    counts = dict(line.split()[:2] for line in run.stdout.splitlines() if len(line.split()) == 2)
    return sum(int(counts.get(name, 0)) for name in FAILURES)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "build"
    networks = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    last = int(sys.argv[4]) if len(sys.argv) > 4 else len(BUGS)
    found = 0
    before = failures(folder, networks) if build(folder) else 0
    for number, (name, old, new) in enumerate(BUGS, 1):
        if not first <= number <= last:
            continue
        path = ROOT / name
        text = path.read_text()
        if text.count(old) != 1:
            print(f"{number} {name}: '{old}' is there {text.count(old)} times")
            continue
        try:
            path.write_text(text.replace(old, new))
            result = "does not build" if not build(folder) else \
                "found" if failures(folder, networks) > before else "MISSED"
        finally:
            path.write_text(text)
        found += result == "found"
        print(f"{number} {name}: {result}", flush=True)
    build(folder)
    print(f"{found} of {last - first + 1} found by {networks} networks each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
