#!/usr/bin/env python3
"""The loops and rows of src/operators against what ONNX says the operators are, written down here once more. Prints TAP.

    tests/test_nests.py MUC      from the source root

muc run computes the networks of CASES. The second half changes the loops once (sign, bound, operation, order), compiles every change, runs it on the
same networks, and asks that one of the results is refused: so no loop could be wrong in that way and pass.
"""
import functools
import itertools
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from files import ROOT, muc, run_tests
from test_formulas import npy, run_graph

# format of struct, type of C
CODES = {"f32": ("f", "float"), "i8": ("b", "int8_t"), "i32": ("i", "int32_t"), "i64": ("q", "int64_t")}
LETTERS = "abc"  # inputs as C has them
TOLERANCE = 1e-5


class Case:
    """A node on its own: y = operator a, b, c with attributes; expected: y's elements; numbers: what its steps know, of a row alone;
    of_b: input 1's type; expected_1: the elements of the output beside y."""
    def __init__(self, operator, attributes, dtype, inputs, shape, expected, of_y=None, numbers=None, of_b=None, expected_1=None):
        self.numbers, self.expected_1 = numbers, expected_1
        self.types = [dtype, of_b or dtype, dtype]
        self.operator, self.attributes, self.dtype, self.inputs, self.shape = operator, attributes, dtype, inputs, shape
        self.expected, self.of_y = expected, of_y or dtype


def numbers(count, seed, least=-40, most=40, by=1):
    """Numbers that look random, the same in every run."""
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % (1 << 31)
        yield (least + (seed >> 8) % (most - least + 1)) / by if by != 1 else least + (seed >> 8) % (most - least + 1)


def index_of(shape, index):
    return sum(i * math.prod(shape[d + 1:]) for d, i in enumerate(index))


def every(shape):
    return itertools.product(*map(range, shape))


# ---- what the operators are ----

def lines(shape, axis):
    """The elements along axis, for each index of the others."""
    for index in every(shape[:axis] + shape[axis + 1:]):
        yield [index_of(shape, (*index[:axis], k, *index[axis:])) for k in range(shape[axis])]


def cum_sum(x, shape, axis, exclusive=0, reverse=0):
    y = [0] * len(x)
    for line in lines(shape, axis):
        for k, at in enumerate(line):
            before = line[k + 1:] if reverse else line[:k]
            y[at] = sum(x[i] for i in before) + (0 if exclusive else x[at])
    return y


def arg(x, shape, axis, best, select_last=0):
    found = []
    for line in lines(shape, axis):
        values = [x[i] for i in line]
        ordered = [math.inf if v != v else v for v in values]
        if best is min:  # NaN is above all
            places = [k for k, v in enumerate(ordered) if v == min(ordered)]
        else:
            places = [k for k, v in enumerate(values) if v != v] or [k for k, v in enumerate(ordered) if v == max(ordered)]
        found.append(places[-1 if select_last else 0])
    return found


def trilu(x, shape, upper, diagonal=0):
    return [x[index_of(shape, i)] if (i[-1] - i[-2] >= diagonal if upper else i[-1] - i[-2] <= diagonal) else 0 for i in every(shape)]


def cubic(d):
    d = abs(d)
    return 1 - 2.25 * d ** 2 + 1.25 * d ** 3 if d <= 1 else 3 - 6 * d + 3.75 * d ** 2 - 0.75 * d ** 3 if d < 2 else 0


def linear(d):
    return max(0, 1 - abs(d))


def mirrored(v, low, high):
    there = (v - low) % (2 * (high - low))
    return low + min(there, 2 * (high - low) - there)


def inside(i, size, padding, corners):
    """The pixel that stands for pixel i of a dimension, None: 0."""
    if padding == "border":
        return min(max(i, 0), size - 1)
    if padding == "reflection":
        turn = [*range(size), *(range(size - 2, 0, -1) if corners else range(size - 1, -1, -1))]
        return turn[i % len(turn)]
    return i if 0 <= i < size else None


def taps(at, size, mode, padding, corners, volume):
    """(pixel, weight) along a dimension for the grid's coordinate."""
    v = (at + 1) / 2 * (size - 1) if corners else ((at + 1) * size - 1) / 2
    low, high = (0, size - 1) if corners else (-0.5, size - 0.5)
    if mode == "nearest":
        v = math.copysign(math.floor(abs(v) + 0.5), v) if volume else round(v)
    if padding == "border" and not low <= v <= high:
        v = min(max(v, 0), size - 1)
    if padding == "reflection" and high > low:
        v = mirrored(v, low, high)
    kernel = {"nearest": lambda d: d == 0, "linear": linear, "cubic": cubic}[mode]
    near = range(math.floor(v) - 1, math.floor(v) + 3)
    return [(inside(i, size, padding, corners), kernel(v - i)) for i in near if kernel(v - i)]


def grid_sample(x, shape, grid, grid_shape, mode, padding, corners):
    dims, places, y = shape[2:], grid_shape[1:-1], []
    for n, c, *place in every(shape[:2] + places):
        at = [grid[index_of(grid_shape, (n, *place, len(dims) - 1 - d))] for d in range(len(dims))]
        along = [taps(v, size, mode, padding, corners, len(dims) == 3) for v, size in zip(at, dims)]
        y.append(sum(math.prod(w for _, w in pixels) * x[index_of(shape, (n, c, *(i for i, _ in pixels)))]
                     for pixels in itertools.product(*along) if all(i is not None for i, _ in pixels)))
    return y


# ---- networks of one node ----

def along_cases():
    for dtype, (shape, axis), reverse, exclusive in itertools.product(("f32", "i32"), (((2, 3, 4), 1), ((5,), 0), ((2, 3), 1)), (0, 1), (0, 1)):
        x = list(numbers(math.prod(shape), 7))
        yield Case("cum_sum", f"axis={axis} exclusive={exclusive} reverse={reverse}", dtype, [(x, shape)], shape,
                   cum_sum(x, shape, axis, exclusive, reverse))


def softmax(v, beta=1, **_):
    return [math.exp(beta * x) / sum(math.exp(beta * y) for y in v) for x in v]


ROWS = {
    "softmax": ([{}, {"beta": 0.5}], softmax),
    "log_softmax": ([{}], lambda v: [math.log(x) for x in softmax(v)]),
    "hardmax": ([{}], lambda v: [int(k == v.index(max(v))) for k in range(len(v))]),
    "lp_norm": ([{"p": 1}, {"p": 2}], lambda v, p: [x and x / sum(abs(y) ** p for y in v) ** (1 / p) for x in v]),
}


def row_cases(name):
    for attributes, (shape, axis), by in itertools.product(ROWS[name][0], (((2, 5, 3), 1), ((7,), 0), ((2, 3), 1)), (1, 8, 0.05)):
        x, y = [v / by for v in numbers(math.prod(shape), 3, -9, 9)], []
        x[:3] = x[:2] + x[1:2] if by == 8 else [0] * 3
        y = [0] * len(x)
        for line in lines(shape, axis):
            for at, value in zip(line, ROWS[name][1]([x[i] for i in line], **attributes)):
                y[at] = value
        words = " ".join(f"{key}={value}" for key, value in attributes.items())
        known = {"outer": math.prod(shape[:axis]), "extent": shape[axis], "inner": math.prod(shape[axis + 1:]), "beta": 1, "p": 2, **attributes}
        yield Case(name, f"axis={axis} {words}", "f32", [(x, shape)], shape, y, numbers={key: str(value) for key, value in known.items()})


def arg_cases():
    for dtype, (shape, axis), last, best in itertools.product(("f32", "i8"), (((2, 5, 4), 1), ((7,), 0), ((2, 3), 1)), (0, 1), (min, max)):
        x = list(numbers(math.prod(shape), 3, -2, 2))
        rest = shape[:axis] + shape[axis + 1:]
        yield Case(f"arg_{best.__name__}", f"axis={axis} keep_dims=0 select_last={last}", dtype, [(x, shape)], rest, arg(x, shape, axis, best, last), "i64")
    x = [1.0, math.nan, 2.0, math.nan, -1.0]
    for last, best in itertools.product((0, 1), (min, max)):
        yield Case(f"arg_{best.__name__}", f"axis=0 keep_dims=0 select_last={last}", "f32", [(x, (5,))], (), arg(x, (5,), 0, best, last), "i64")


def trilu_cases():
    for shape, upper, diagonal in itertools.product(((2, 3, 4), (5, 3)), (0, 1), (-9, -2, -1, 0, 1, 9)):
        x = list(numbers(math.prod(shape), 11, 1, 90))
        yield Case("trilu", f"upper={upper} diagonal={diagonal}", "i8", [(x, shape)], shape, trilu(x, shape, upper, diagonal))


def grid_cases():
    sizes = [((5,), (12,)), ((3, 4), (3, 4)), ((1, 3), (2, 3)), ((2, 3, 2), (2, 3, 2))]
    for (dims, places), mode, padding, corners in itertools.product(sizes, ("nearest", "linear", "cubic"), ("zeros", "border", "reflection"), (0, 1)):
        shape, grid_shape = (2, 3, *dims), (2, *places, len(dims))
        x, grid = list(numbers(math.prod(shape), 5)), list(numbers(math.prod(grid_shape), 9, -48, 48, 16))
        grid[:9] = [-1.0, 1.0, 0.0, 0.5, -0.25, 7.0, -9.0, -1 - 1 / 64, 7.0 if padding == "reflection" else 1e30]
        grid[-1] = -9.0 if padding == "reflection" else -1e30
        yield Case("grid_sample", f"mode={mode} padding={padding} align_corners={corners}", "f32", [(x, shape), (grid, grid_shape)],
                   (2, 3, *places), grid_sample(x, shape, grid, grid_shape, mode, padding, corners))


def gather_places_cases():
    for of_b, (shape, index_shape, axis) in itertools.product(("i32", "i64"), (((3, 4, 2), (3, 2, 2), 1), ((3, 2, 4), (2, 1, 3), 2), ((4, 5), (3, 5), 0),
                                                                               ((2, 3, 4, 2), (1, 2, 3, 2), 2), ((6,), (9,), 0))):
        x, indices = list(numbers(math.prod(shape), 3)), list(numbers(math.prod(index_shape), 5, -shape[axis], shape[axis] - 1))
        y = [x[index_of(shape, (*i[:axis], indices[k] % shape[axis], *i[axis + 1:]))] for k, i in enumerate(every(index_shape))]
        yield Case("gather_elements", f"axis={axis}", "i8", [(x, shape), (indices, index_shape)], index_shape, y, of_b=of_b)
    for of_b, (shape, index_shape, batch) in itertools.product(("i32", "i64"), (((3, 4, 2), (5, 2), 0), ((3, 4, 2), (3, 2, 1), 1), ((2, 3, 4), (2, 3, 3, 1), 2),
                                                                                ((3, 4), (2, 2, 1), 0))):
        x, length = list(numbers(math.prod(shape), 3)), index_shape[-1]
        rest, tuples = shape[batch + length:], list(every(index_shape[:-1]))
        indices = [v % (2 * n) - n for v, n in zip(numbers(math.prod(index_shape), 9, 0), itertools.cycle(shape[batch:batch + length]))]
        y = []
        for t, at in enumerate(tuples):
            place = [i % n for i, n in zip(indices[t * length:(t + 1) * length], shape[batch:])]
            y += [x[index_of(shape, (*at[:batch], *place, *r))] for r in every(rest)]
        yield Case("gather_nd", f"batch_dims={batch}", "i8", [(x, shape), (indices, index_shape)], index_shape[:-1] + rest, y, of_b=of_b)


def combined(reduction, held, update):
    """ONNX's: NaN spreads."""
    if reduction in ("min", "max") and (held != held or update != update):
        return math.nan
    return {"none": update, "add": held + update, "mul": held * update, "min": min(held, update), "max": max(held, update)}[reduction]


def scatter_places_cases():
    for dtype, of_b, reduction in itertools.product(("i8", "f32"), ("i32", "i64"), ("none", "add", "mul", "min", "max")):
        for shape, index_shape, axis in (((3, 4, 2), (3, 2, 2), 1), ((3, 2, 4), (2, 1, 3), 2), ((6,), (4,), 0), ((2, 3, 4, 2), (1, 2, 3, 2), 2)):
            x, updates = list(numbers(math.prod(shape), 3, -5, 5)), list(numbers(math.prod(index_shape), 8, -5, 5))
            # one place is not named twice where the order would matter
            some = list(numbers(math.prod(index_shape), 5, -shape[axis], shape[axis] - 1))
            indices = [i[axis] - shape[axis] * (k % 2) if reduction == "none" else some[k] for k, i in enumerate(every(index_shape))]
            if dtype == "f32":
                x[1], updates[-1] = math.nan, math.nan
            y = list(x)
            for k, i in enumerate(every(index_shape)):
                place = index_of(shape, (*i[:axis], indices[k] % shape[axis], *i[axis + 1:]))
                y[place] = combined(reduction, y[place], updates[k])
            yield Case("scatter_elements", f"axis={axis} reduction={reduction}", dtype, [(x, shape), (indices, index_shape), (updates, index_shape)], shape, y,
                       of_b=of_b)
        for shape, tuples in (((3, 4, 2), [(2, 1), (0, -1), (-3, 0), (2, 1)]), ((3, 2), [(1,), (-1,), (1,)]), ((2, 3), [(0, 0), (1, -2), (1, 2)])):
            rest = shape[len(tuples[0]):]
            shape_of_updates = (len(tuples), *rest)
            x, updates = list(numbers(math.prod(shape), 3, -5, 5)), list(numbers(math.prod(shape_of_updates), 8, -5, 5))
            y, at = list(x), iter(updates)
            for place, r in itertools.product(tuples, every(rest)):
                to = index_of(shape, (*(i % n for i, n in zip(place, shape)), *r))
                y[to] = combined(reduction, y[to], next(at))
            yield Case("scatter_nd", f"reduction={reduction}", dtype,
                       [(x, shape), ([i for place in tuples for i in place], (len(tuples), len(tuples[0]))), (updates, shape_of_updates)], shape, y, of_b=of_b)


def reverse_cases():
    for of_b, (shape, time, batch) in itertools.product(("i32", "i64"), (((5, 3, 2), 0, 1), ((3, 5), 1, 0), ((2, 3, 4, 2), 2, 1))):
        x, lengths = list(numbers(math.prod(shape), 3)), [k * 2 % (shape[time] + 1) for k in range(1, shape[batch] + 1)]
        y = []
        for i in every(shape):
            step, length = i[time], lengths[i[batch]]
            y.append(x[index_of(shape, (*i[:time], length - 1 - step if step < length else step, *i[time + 1:]))])
        yield Case("reverse_sequence", f"batch_axis={batch} time_axis={time}", "i8", [(x, shape), (lengths, (shape[batch],))], shape, y, of_b=of_b)


def top_k_cases():
    for dtype, (shape, axis, count), largest in itertools.product(("f32", "i8"), (((2, 5, 3), 1, 3), ((7,), 0, 7), ((2, 3), 1, 1), ((3, 2), 0, 2)), (0, 1)):
        x, rest = list(numbers(math.prod(shape), 3, -3, 3)), (*shape[:axis], count, *shape[axis + 1:])
        if dtype == "f32":
            x[:2] = [math.nan, math.inf]
        y, y1 = [0] * math.prod(rest), [0] * math.prod(rest)
        for line, to in zip(lines(shape, axis), lines(rest, axis)):
            above = [(x[i] != x[i], 0 if x[i] != x[i] else x[i]) for i in line]  # NaN is above all
            order = sorted(range(len(line)), key=lambda k: above[k], reverse=largest == 1)
            if largest:  # sorted reversed keeps the order of equals
                order = sorted(range(len(line)), key=lambda k: (not above[k][0], -above[k][1], k))
            for k, at in zip(order, to):
                y[at], y1[at] = x[line[k]], k
        yield Case("top_k", f"axis={axis} k={count} largest={largest}", dtype, [(x, shape)], rest, y, expected_1=y1)


CASES = {"cum_sum": along_cases, "arg": arg_cases, "trilu": trilu_cases, "grid_sample": grid_cases, "gather_places": gather_places_cases,
         "scatter_places": scatter_places_cases, "reverse_sequence": reverse_cases, "top_k": top_k_cases,
         **{name: functools.partial(row_cases, name) for name in ROWS}}


def graph(cases):
    """A network of all the cases, and what it is given."""
    text, inputs = "graph nests\n", {}
    for k, case in enumerate(cases):
        for i, (values, shape) in enumerate(case.inputs):
            text += f"tensor {LETTERS[i]}{k} = input {case.types[i]} {list(shape)}\n"
            inputs[f"{LETTERS[i]}{k}"] = npy(CODES[case.types[i]][0], values, tuple(shape))
        names = ", ".join(f"{LETTERS[i]}{k}" for i in range(len(case.inputs)))
        beside = f", z{k} i64 {list(case.shape)}" if case.expected_1 else ""
        text += f"node y{k} {case.of_y} {list(case.shape)}{beside} = {case.operator} {names} {case.attributes}\noutput y{k}\n"
        text += f"output z{k}\n" if case.expected_1 else ""
    return text, inputs


def agree(found, expected):
    return abs(found - expected) <= TOLERANCE * max(1, abs(expected)) or found == expected or (found != found and expected != expected)


def test_every_nest_has_cases_here():
    assert not set(nests()) ^ set(CASES), f"nests of src/operators without cases here, or the reverse: {', '.join(set(nests()) ^ set(CASES))}"


def test_operators_are_what_they_are_said_to_be():
    for name, make in CASES.items():
        cases = list(make())
        text, inputs = graph(cases)
        wanted = [(case, f"y{k}", CODES[case.of_y][0], case.expected) for k, case in enumerate(cases)]
        wanted += [(case, f"z{k}", "q", case.expected_1) for k, case in enumerate(cases) if case.expected_1]
        for (case, _, code, expected), raw in zip(wanted, run_graph(text, inputs, [output for _, output, _, _ in wanted])):
            found = struct.unpack(f"<{len(expected)}{code}", raw[len(raw) - len(expected) * struct.calcsize(code):])
            wrong = [i for i, (x, y) in enumerate(zip(found, expected)) if not agree(x, y)]
            assert not wrong, f"{case.operator} {case.attributes} of {case.inputs}: element {wrong[0]} is {found[wrong[0]]}, expected {expected[wrong[0]]}"


# ---- each nest, changed ----

TOKEN = re.compile(r"\d[\w.]*|\w+|\+\+|--|[-+*/%<>=!]=|&&|\|\||[^\s\w]")
OTHER = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<": ">", ">": "<", "<=": ">", ">=": "<", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
         "+=": "-=", "-=": "+=", "*=": "+=", "LESSER": "LARGER", "LARGER": "LESSER"}
BOUND = {"<": "<=", ">": ">=", "<=": "<", ">=": ">"}
TYPES = {"T", "Y", "B"}
DECLARED = {*TYPES, "A", "INDEX", "PLACE"}


def nests():
    """The tokens of each nest's loops."""
    found = {}
    for path in sorted((ROOT / "src/operators").glob("*.c")):
        for match in re.finditer(r"^MUC_NEST_(?:REAL|NUMBERS|MOVE|ANY)\((\w+),[^{]*(\{.*?^\}\))", path.read_text(), re.M | re.S):
            found[match[1]] = TOKEN.findall(match[2][1:-2])
    return {**found, **rows()}


def rows():
    """The same of each row of rows.def; the loops around its steps are words that no change touches."""
    found = {}
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "src/operators/rows.def").read_text(), flags=re.S)
    for match in re.finditer(r"^MUC_ROWS\((\w+), \w+,(.*?)\)\n(?=[M#])", text, re.M | re.S):
        tokens = ["for (INDEX o = 0; o < outer; o++) for (INDEX i = 0; i < inner; i++) {"]
        for kind, step in re.findall(r"(ONCE|EACH)\((.*)\)$", match[2], re.M):
            tokens += ["" if kind == "ONCE" else "for (INDEX k = 0; k < extent; k++) {", *TOKEN.findall(step), ";" if kind == "ONCE" else ";}"]
        found[match[1].lower()] = [*tokens, "}"]
    return found


def changes(tokens):
    """Every change of a token, and the exchange of the operands of one that is not symmetric."""
    for i, token in enumerate(tokens):
        before, after = tokens[i - 1] if i else "", tokens[i + 1] if i + 1 < len(tokens) else ""
        if token in OTHER and not (token == "*" and before in TYPES):
            yield i, [OTHER[token]], 1
        if token in BOUND:
            yield i, [BOUND[token]], 1
        longer_array = before == "[" and tokens[i - 3] in DECLARED  # which computes the same
        if token[:1].isdigit() and not longer_array:
            yield i, [str(float(token) * 1.1) if "." in token else str(int(token) + 1)], 1
        simple = re.match(r"\w", before) and re.match(r"\w", after) and tokens[i - 2] not in (")", "-", "+", "*", "/", "%")
        if token in ("-", "/", "%") and simple and tokens[i + 2] not in ("[", "("):
            yield i - 1, [after, token, before], 3


def printed(tokens, code):
    """The numbers by name that a printed nest has in place of the names."""
    found = TOKEN.findall(code)
    assert len(found) == len(tokens), f"the printed loops have {len(found)} words, expected {len(tokens)}"
    return {word: number[:-1] for word, number in zip(tokens, found) if re.fullmatch(r"\d+u", number)}


def numbers_of(tokens, cases):
    """What the loops know of each case, as mcu prints them."""
    if cases[0].numbers:
        return [case.numbers for case in cases]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "nests.graph"
        path.write_text(graph(cases)[0])
        muc("compile", path, "--target", "mcu", "-o", pathlib.Path(folder) / "c")
        code = (pathlib.Path(folder) / "c/nests.c").read_text()
    bodies = {int(k): body for k, body in re.findall(r"^static void [a-z_]+?_(\d+)\([^)]*\)\n\{\n(.*?)^\}", code, re.M | re.S)}
    return [printed(tokens, bodies[k]) for k in range(len(cases))]


HEAD = """#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mur_whole.h"
typedef uint32_t INDEX;
typedef int32_t PLACE;
"""
ROW_WORDS = """#define x a[(o * extent + k) * inner + i]
#define y to[(o * extent + k) * inner + i]
#define exp_in_sum mur_real_exp
#define log mur_real_log
#define sqrt mur_sqrt
#define abs mur_abs
#define infinity INFINITY
"""
MAIN = """
int main(void)
{
    for (unsigned m = 0; m < sizeof(functions) / sizeof(*functions); m++) {
        int status;
        if (fork() == 0) {
            setitimer(ITIMER_VIRTUAL, &(const struct itimerval){ { 0, 0 }, { 0, 300000 } }, NULL);
            for (unsigned k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
                size_t size = cases[k].count * sizeof(Y);
                unsigned char *y = malloc(size + 64);
                int64_t *y1 = malloc((cases[k].count + 64) * sizeof(*y1));
                memset(y, 99, size + 64);
                memset(y1, 99, (cases[k].count + 64) * sizeof(*y1));
                functions[m](cases[k].a, cases[k].b, cases[k].c, (Y *)y, y1, cases[k].numbers);
                for (size_t i = 0; i < 64; i++)
                    if (y[size + i] != 99 || (char)y1[cases[k].count + i] != 99)
                        _exit(1);
                for (size_t i = 0; i < cases[k].count; i++) {
                    double found = ((Y *)y)[i], expected = cases[k].expected[i], most = expected < 0 ? -expected : expected;
                    double far = found < expected ? expected - found : found - expected;
                    if (!(far <= 1e-5 * (most > 1 ? most : 1)) && found != expected && !(found != found && expected != expected))
                        _exit(1);
                    if (cases[k].expected_1 && y1[i] != cases[k].expected_1[i])
                        _exit(1);
                }
            }
            _exit(0);
        }
        wait(&status);
        if (status == 0)
            printf("%u\\n", m);
    }
    return 0;
}
"""


def array(kind, name, values):
    words = ("NAN" if v != v else "INFINITY" if v == math.inf else repr(v) for v in values)
    return f"static const {kind} {name}[] = {{ {', '.join(words)} }};\n"


def survivors(name, tokens, variants, cases, of_cases):
    """The numbers of the variants that give what is expected of all cases, which have one type."""
    kind, of_b, of_y = CODES[cases[0].dtype][1], CODES[cases[0].types[1]][1], CODES[cases[0].of_y][1]
    sums = "float" if kind == "float" else "uint32_t"
    above = "mur_above" if kind == "float" else "mur_above_whole"
    text = HEAD + f"typedef {kind} T;\ntypedef {of_b} B;\ntypedef {of_y} Y;\ntypedef {sums} A;\n#define ABOVE {above}\n#define AT mur_wrap_index\n"
    text += "".join(f"#define {word} {of_f32 if kind == 'float' else of_whole}\n" for word, of_f32, of_whole in
                    (("LESSER", "mur_min", "mur_lesser"), ("LARGER", "mur_max", "mur_larger")))
    if cases[0].numbers:
        text += ROW_WORDS
    output = "to" if cases[0].numbers else "y"
    names = sorted({word for words in of_cases for word in words})
    for m, variant in enumerate(variants):
        text += f"static void f{m}(const T *a, const B *b, const T *c, Y *{output}, int64_t *y1, const double *numbers)\n{{\n"
        text += "".join(f"const {'T' if word == 'beta' else 'INDEX'} {word} = numbers[{i}];\n" for i, word in enumerate(names))
        text += " ".join(variant) + "\n}\n"
    text += "static void (*const functions[])(const T *, const B *, const T *, Y *, int64_t *, const double *) = { "
    text += ", ".join(f"f{m}" for m in range(len(variants))) + " };\n"
    for k, case in enumerate(cases):
        for letter, of_input, (values, _) in zip(LETTERS, (kind, of_b, kind), case.inputs):
            text += array(of_input, f"input_{letter}{k}", values)
        text += array("int64_t", f"expected_1{k}", case.expected_1) if case.expected_1 else ""
        text += array("double", f"expected{k}", case.expected)
    text += f"static const struct {{ const T *a; const B *b; const T *c; const double *expected; const int64_t *expected_1; size_t count; double numbers[{len(names)}]; }} cases[] = {{\n"
    for k, (case, words) in enumerate(zip(cases, of_cases)):
        given = ", ".join(f"input_{letter}{k}" if i < len(case.inputs) else "NULL" for i, letter in enumerate(LETTERS))
        beside = f"expected_1{k}" if case.expected_1 else "NULL"
        text += f"{{ {given}, expected{k}, {beside}, {len(case.expected)}, {{ {', '.join(words[word] for word in names)} }} }},\n"
    text += "};\n#undef y\n" + MAIN
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / f"{name}.c", pathlib.Path(folder) / name
        source.write_text(text)
        subprocess.run(["cc", "-w", "-O1", "-I", ROOT / "runtime/include", source, "-o", program], check=True)
        return set(map(int, subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()))


# changes that compute the same
EQUIVALENT = {**{name: ["x >>>=<< most ?", "( found = >>2<<"] for name in ("softmax", "log_softmax", "hardmax")}, "grid_sample": [
    ">>1073741825<<", "x >>>=<< - 1073741824", "x >><=<< 1073741824",  # any bound far outside
    "x >>>=<< 0 : below", "below -= x >><=<<", "far >><=<< 0", "far >><=<< 1", "place >><=<< 0 ? 0", "place < >>1<< ? 0",  # both ways meet there
    "? size >>+<< 1",  # every pixel beyond the end is the last one
    "- >>2<< : row",  # any number below 0
], **{name: ["i >><=<< length"] for name in ("gather_places", "scatter_places")},  # behind the last there are zeros
    "top_k": ["k >><=<< count ?"]}  # both ways meet there


def test_every_change_of_a_nest_fails():
    count = 0
    for name, tokens in nests().items():
        cases, variants, shown = list(CASES[name]()), [tokens], ["as it is"]
        for at, words, length in changes(tokens):
            variants.append([*tokens[:at], *words, *tokens[at + length:]])
            shown.append(f"{' '.join(tokens[max(0, at - 6):at])} >>{' '.join(words)}<< {' '.join(tokens[at + length:at + length + 6])}")
        left, known = set(range(len(variants))), numbers_of(tokens, cases)
        for types in {tuple(case.types) for case in cases}:
            of_type = [k for k, case in enumerate(cases) if tuple(case.types) == types]
            found = survivors(name, tokens, variants, [cases[k] for k in of_type], [known[k] for k in of_type])
            assert 0 in found, f"{name} of {', '.join(types)} is not what this test says"
            left &= found
        left = [shown[m] for m in sorted(left - {0}) if not any(part in shown[m] for part in EQUIVALENT.get(name, []))]
        assert not left, f"{name} may be changed in {len(left)} of {len(variants)} places:\n" + "\n".join(left)
        count += len(variants) - 1
    assert count > 100, f"only {count} changes"


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
