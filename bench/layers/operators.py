"""Operators element by element, reductions and moves, as layers of bench/layers/count --cliffs."""
import dataclasses
import math
import random


@dataclasses.dataclass(frozen=True)
class Operator:
    kind: str
    inputs: tuple  # extents of each; of norms the first alone, gains and biases are drawn
    output: tuple
    attributes: str = ""
    scales: tuple = (.0213, .0297, .0467)  # of one input, of the other, of the output

    def bytes(self):
        return sum(map(math.prod, self.inputs)) + math.prod(self.output) * (8 if self.kind == "arg_max" else 1)

    def products(self):
        """of elements, since there are none"""
        return max(math.prod(self.inputs[0]), math.prod(self.output))

    def __str__(self):
        words = ["x".join(map(str, extents)) for extents in (*self.inputs, self.output)]
        return f"{self.kind} {', '.join(words[:-1])} > {words[-1]} {self.attributes}".strip()

    def graph(self, seed, is_float):
        chance = random.Random(seed)
        dtype = "f32" if is_float else "i8"
        keeps = self.kind in ("transpose", "max")
        zeros = [3] * 3 if keeps else [chance.randint(-20, 19) for _ in range(3)]
        if self.kind == "softmax":
            zeros[2] = -128
        scale = lambda i: "" if is_float else f" scale {self.scales[0] if keeps else self.scales[i]} zero {zeros[i]}"
        names = ["x", "x2"][:len(self.inputs)]
        lines = ["graph layer"]
        lines += [f"tensor {name} = input {dtype} {list(extents)}{scale(i)}" for i, (name, extents) in enumerate(zip(names, self.inputs))]
        if self.kind.endswith("norm"):
            gains = ["g"] if self.kind == "rmsnorm" else ["g", "b"]
            names += gains
            lines += [f"tensor {name} = const f32 [{self.output[-1]}] values "
                      f"{', '.join(f'{chance.uniform(.5, 1.5):.3f}' for _ in range(self.output[-1]))}" for name in gains]
        if self.kind == "prelu":
            names += ["s"]
            lines.append(f"tensor s = const {dtype} [{self.output[-1]}]{scale(1)} values "
                         f"{', '.join(str(chance.randint(-99, 99)) for _ in range(self.output[-1]))}")
        is_place = self.kind == "arg_max"
        result = f"{'i64' if is_place else dtype} {list(self.output)}{'' if is_place else scale(2)}"
        lines.append(f"node y {result} = {self.kind} {', '.join(names)} {self.attributes}".rstrip())
        return "\n".join(lines + ["output y"]) + "\n"


IMAGE, PIXELS, CHANNELS = (1, 20, 20, 16), (1, 20, 20, 1), (16,)
ROUND = (.02, .031, .05)

# What once took more instructions as int8 than as floats, and how many times those on floats it may take on Cortex-M4 and M7; few
# are nearer, since a float is scaled and bounded by nothing
CLIFFS = {Operator("mul", (IMAGE, PIXELS), IMAGE): 1.25, Operator("add", (IMAGE, PIXELS), IMAGE): 1, Operator("sub", (IMAGE, PIXELS), IMAGE): 1,
          Operator("div", (IMAGE, PIXELS), IMAGE): 1, Operator("div", (IMAGE, IMAGE), IMAGE): 1.3,
          Operator("add", (IMAGE, IMAGE), IMAGE, scales=ROUND): 1.6, Operator("sub", (IMAGE, IMAGE), IMAGE, scales=ROUND): 1.6,
          Operator("relu", (IMAGE,), IMAGE): .6, Operator("max", (IMAGE, PIXELS), IMAGE): .8, Operator("min", (IMAGE, IMAGE), IMAGE): 1,
          Operator("prelu", (IMAGE,), IMAGE): 1.1,
          Operator("transpose", ((1, 16, 20, 20),), IMAGE, "perm=[0, 2, 3, 1]"): .5,
          Operator("transpose", (IMAGE,), (1, 16, 20, 20), "perm=[0, 3, 1, 2]"): .6,
          Operator("transpose", ((64, 64),), (64, 64), "perm=[1, 0]"): .5,
          Operator("arg_max", (IMAGE,), (1, 20, 20), "axis=3 keep_dims=0"): .9,
          Operator("matmul", ((4, 32, 8), (4, 8, 32)), (4, 32, 32)): 1.2, Operator("matmul", ((4, 32, 32), (4, 32, 8)), (4, 32, 8)): 1.1,
          Operator("matmul", ((16, 4), (4, 16)), (16, 16)): .5,
          Operator("reduce_mean", (IMAGE,), (1, 20, 20), "axes=[3] keep_dims=0"): 1,
          Operator("instance_norm", (IMAGE,), IMAGE, "channels_last=1 epsilon=0.001"): 1,
          Operator("layer_norm", ((100, 64),), (100, 64), "axis=1 epsilon=0.001"): .7,
          Operator("mul", (IMAGE, CHANNELS), IMAGE): 1, Operator("mul", (IMAGE, IMAGE), IMAGE): 1.1,
          Operator("relu", ((1, 20, 7),), (1, 20, 7)): .6, Operator("leaky_relu", ((1, 20, 10),), (1, 20, 10), "alpha=0.1"): .6,
          Operator("layer_norm", ((100, 8),), (100, 8), "axis=1 epsilon=0.001"): 1,
          Operator("rmsnorm", ((100, 64),), (100, 64), "axis=1 epsilon=0.001"): 1.25,
          Operator("softmax", ((1, 10),), (1, 10), "axis=1", (.1, .1, 1 / 256)): 2.8,
          Operator("softmax", ((1, 100),), (1, 100), "axis=1", (.1, .1, 1 / 256)): .9}
# and on Cortex-M55
VECTOR_CLIFFS = {Operator("mul", (IMAGE, PIXELS), IMAGE): .8, Operator("add", (IMAGE, PIXELS), IMAGE): 1}
