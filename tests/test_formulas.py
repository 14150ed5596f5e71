#!/usr/bin/env python3
"""Each row of src/graph/elementwise.def and reductions.def against what ONNX and PyTorch say the operator is, written down here once more. Prints TAP.

    tests/test_formulas.py MUC      from the source root

muc run computes each operator on SAMPLES in float32, integers and integers with scales. The second half changes each formula once (sign, bound, operation,
order), computes it on the same samples, and asks that the same comparison refuses it: so no row could be wrong in that way and pass.
"""
import functools
import math
import pathlib
import re
import struct
import sys
import tempfile
import zipfile

import c_expression
from files import ROOT, muc, run_tests

INF, NAN = math.inf, math.nan
SAMPLES = [-20.0, -7.0, -3.0, -2.5, -1.5, -1.0, -0.75, -0.5, -0.25, -0.125, -0.0, 0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.5, 3.0, 7.0, 20.0]
SPECIAL = [INF, -INF, NAN]
WHOLE = {"i8": ("b", 8, True), "u8": ("B", 8, False), "i32": ("i", 32, True), "u32": ("I", 32, False), "i64": ("q", 64, True)}
WIDE = {**WHOLE, "u64": ("Q", 64, False)}
WHOLE_SAMPLES = [-(1 << 40), -128, -127, -100, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, 100, 127, 128, 200, 255, 1 << 31, (1 << 63) - 1]
TOLERANCE = 2e-6


def guarded(function):
    """Of what Python refuses and C gives a value to."""
    def of(*args, **more):
        try:
            return function(*args, **more)
        except (ValueError, ZeroDivisionError):
            return NAN
        except OverflowError:
            return INF
    return of


def logistic(x):
    return math.exp(x) / (math.exp(x) + 1) if x < 0 else 1 / (1 + math.exp(-x))


def log1p_exp(x):
    return math.log(1 + math.exp(x)) if x < 20 else x


def clipped(x):
    return 0.0 if x < 0 else 1.0 if x > 1 else x


def least(a, b):
    return NAN if a != a or b != b else min(a, b)


def greatest(a, b):
    return NAN if a != a or b != b else max(a, b)


def floor_mod(a, b):
    return a - b * math.floor(a / b)


def inverse(x):
    return 1 / x if x else math.copysign(INF, x)


# operator: attributes to try, what it is of real numbers
REALS = {
    "silu": [{}, {"alpha": 1.75}], "relu": [{}], "leaky_relu": [{"alpha": 0.125}], "thresholded_relu": [{"alpha": 0.625}],
    "elu": [{"alpha": 1.5}], "selu": [{"alpha": 1.5, "gamma": 1.25}], "celu": [{"alpha": 1.5}], "hard_sigmoid": [{"alpha": 0.25, "beta": 0.375}],
    "gelu": [{}, {"mode": "tanh"}], "shrink": [{"bias": 0.375, "lambda": 0.625}], "mod": [{}, {"fmod": 1}],
    "is_inf": [{}, {"detect_negative": 0}, {"detect_positive": 0}],
}
MEANING = {
    "silu": lambda x, alpha=1.0: x * logistic(alpha * x),
    "relu": lambda x: x if x > 0 or x != x else 0.0,
    "leaky_relu": lambda x, alpha: alpha * x if x < 0 else x,
    "thresholded_relu": lambda x, alpha: x if x > alpha else 0.0,
    "elu": lambda x, alpha: alpha * (math.exp(x) - 1) if x < 0 else x,
    "selu": lambda x, alpha, gamma: gamma * (alpha * math.exp(x) - alpha) if x <= 0 else gamma * x,
    "celu": lambda x, alpha: max(0.0, x) + min(0.0, alpha * (math.exp(x / alpha) - 1)),
    "sigmoid": logistic,
    "hard_sigmoid": lambda x, alpha, beta: max(0.0, min(1.0, alpha * x + beta)),
    "hard_swish": lambda x: x * max(0.0, min(1.0, x / 6 + 0.5)),
    "tanh": lambda x: 1 - 2 / (math.exp(2 * x) + 1),
    "softplus": log1p_exp,
    "softsign": lambda x: x / (1 + abs(x)),
    "gelu": lambda x, mode="none": (x / 2 * math.erfc(-x / math.sqrt(2)) if mode == "none" else
                                    x * logistic(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "mish": lambda x: x * math.tanh(log1p_exp(x)),
    "shrink": lambda x, bias, **more: x + bias if x < -more["lambda"] else x - bias if x > more["lambda"] else 0.0,
    "abs": abs, "neg": lambda x: -x, "sign": lambda x: math.copysign(1, x) if x != 0 and x == x else x,
    "sqrt": lambda x: x ** 0.5 if x >= 0 else NAN, "reciprocal": inverse, "exp": lambda x: math.e ** x,
    "log": lambda x: math.log(x) if x > 0 else -INF if x == 0 else NAN, "erf": lambda x: 1 - math.erfc(x),
    "floor": lambda x: float(math.floor(x)), "ceil": lambda x: -float(math.floor(-x)), "round": lambda x: float(round(x)),
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "sinh": lambda x: (math.exp(x) - math.exp(-x)) / 2, "cosh": lambda x: (math.exp(x) + math.exp(-x)) / 2,
    "asinh": math.asinh, "acosh": lambda x: math.log(x + math.sqrt(x * x - 1)),
    "atanh": lambda x: math.log((1 + x) / (1 - x)) / 2 if abs(x) < 1 else math.copysign(INF, x) if abs(x) == 1 else NAN,
    "is_nan": lambda x: x != x,
    "is_inf": lambda x, detect_negative=1, detect_positive=1: (x == INF and detect_positive == 1) or (x == -INF and detect_negative == 1),
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b if b else a * inverse(b),
    "mod": lambda a, b, fmod=0: NAN if b == 0 else math.fmod(a, b) if fmod else floor_mod(a, b),
    "min": least, "max": greatest, "sum": lambda a, b: a + b, "mean": lambda a, b: (a + b) / 2,
    "prelu": lambda a, b: a * b if a < 0 else a,
    "equal": lambda a, b: a == b, "less": lambda a, b: a < b, "less_or_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b,
    "greater_or_equal": lambda a, b: a >= b,
}
TAKES_SPECIAL = {"relu", "abs", "neg", "sign", "is_nan", "is_inf", "min", "max", "equal", "less", "less_or_equal", "greater", "greater_or_equal"}
WHOLES = {"bit_shift": [{"direction": "left"}, {"direction": "right"}], "mod": [{}, {"fmod": 1}]}


def truncated(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


# of integers, before they wrap; bits: of the type
WHOLE_MEANING = {
    "relu": lambda x, bits: max(x, 0), "abs": lambda x, bits: abs(x), "neg": lambda x, bits: -x,
    "sign": lambda x, bits: 0 if x == 0 else x // abs(x), "bitwise_not": lambda x, bits: -1 - x,
    "add": lambda a, b, bits: a + b, "sub": lambda a, b, bits: a - b, "mul": lambda a, b, bits: a * b,
    "div": lambda a, b, bits: truncated(a, b),
    "mod": lambda a, b, bits, fmod=0: 0 if b == 0 else a - b * truncated(a, b) if fmod else a % b,
    "min": lambda a, b, bits: min(a, b), "max": lambda a, b, bits: max(a, b), "prelu": lambda a, b, bits: a * b if a < 0 else a,
    "bitwise_and": lambda a, b, bits: a & b, "bitwise_or": lambda a, b, bits: a | b, "bitwise_xor": lambda a, b, bits: a + b - 2 * (a & b),
    "bit_shift": lambda a, b, bits, direction: 0 if not 0 <= b < bits else a * 2 ** b if direction == "left" else a // 2 ** b,
}
for name in ("equal", "less", "less_or_equal", "greater", "greater_or_equal"):
    WHOLE_MEANING[name] = lambda a, b, bits, of=MEANING[name]: of(a, b)
BOOL_MEANING = {"not": lambda x: x == 0, "and": lambda a, b: a + b == 2, "or": lambda a, b: a + b > 0, "xor": lambda a, b: a + b == 1,
                "equal": lambda a, b: a == b}
# reductions of a list
FOLDS = {
    "reduce_sum": sum, "reduce_mean": lambda v: sum(v) / len(v), "reduce_max": lambda v: functools.reduce(greatest, v),
    "reduce_min": lambda v: functools.reduce(least, v), "reduce_prod": math.prod, "reduce_l1": lambda v: sum(map(abs, v)),
    "reduce_l2": lambda v: MEANING["sqrt"](sum(x ** 2 for x in v)), "reduce_log_sum": lambda v: MEANING["log"](sum(v)),
    "reduce_log_sum_exp": lambda v: MEANING["log"](sum(map(math.exp, v))), "reduce_sum_square": lambda v: sum(x ** 2 for x in v),
}
LISTS = [[1.5, -0.5, 2.5], [0.25, 0.5, 0.75], [20.0, -3.0, 7.0], [-7.0, -2.5, -3.0], [0.0, 0.0, 0.0], [88.5, 100.0, 99.0],
         [INF, 1.0, 2.0], [1.0, -INF, 2.0], [-INF, -INF, -INF], [1.0, NAN, 2.0], [INF, 3.0, -INF]]
# before they wrap; sum: wrapped to 64 bits
WHOLE_FOLDS = {**{name: FOLDS[f"reduce_{name}"] for name in ("max", "min", "prod", "l1", "sum_square")}, "sum": sum}
WHOLE_LISTS = [[1, 2, 3], [-7, 5, -1], [-128, -127, -100], [127, 100, 126], [0, 0, 0], [200, 255, 128], [-1, 0, -7], [1 << 40, -1, -(1 << 63)],
               [(1 << 63) - 1, 2, 1], [(1 << 64) - 1, (1 << 63) + 5, 3]]
# parts of changed formulas that give the same results
EQUIVALENT = {
    **dict.fromkeys(("leaky_relu", "prelu"), ["(p >= 1)"]),  # both ways meet in 0
    "is_inf": ["(x > 1)"],  # an infinity is beyond 1, too
    "div": ["((S)-2 < 1)", "((S)-1 < 2)"],  # these, too, ask whether the type has a sign
    "mod": ["((S)-2 < 1)", "((S)-1 < 2)", "(y < 2)"],  # and nothing is left over by 1
}


# ---- the table ----

def arguments(text):
    """What stands between the commas of a row, outside parentheses and strings."""
    parts, depth, quoted = [""], 0, False
    for c in text:
        quoted ^= c == '"'
        depth += (c in "([{") - (c in ")]}") if not quoted else 0
        if c == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return [" ".join(part.split()) for part in parts]


def table(name, kinds):
    """(match of kinds, arguments) of each row of a table."""
    text = (ROOT / "src/graph" / name).read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for match in re.finditer(rf"^MUC_{kinds}\(", text, re.M):
        end, depth = match.end(), 1
        while depth:
            depth += (text[end] == "(") - (text[end] == ")") if text[end] != '"' else 0
            if text[end] == '"':
                end = text.index('"', end + 1)
            end += 1
        yield match, arguments(text[match.end():end - 1])


def rows():
    """(operator, attribute values that choose it, inputs, real formula or None, integer formula or None) of each formula."""
    operators, found = {}, []
    for match, parts in table("elementwise.def", "(REAL|NUMBER|WHOLE|TRUTH|TEST)(_IF)?"):
        if match[2]:
            operator, inputs = operators[parts[1]]
            values, formulas = {parts[2].lower(): parts[3].replace("MUC_WORD_", "").lower()}, parts[4:]
        else:
            operator, inputs = operators[parts[0]] = parts[1].strip('"'), parts[2]
            values, formulas = {}, parts[5:-1]
        real = None if match[1] == "WHOLE" else formulas[0]
        whole = None if match[1] in ("REAL", "TEST") else formulas[-1]
        found.append((operator, values, 1 if inputs in ("ONE", "TESTED") else 2, real, whole))
    return found


def folds():
    """(operator, (start, step, end) of real numbers, the same of integers or None) of each reduction."""
    for _, parts in table("reductions.def", "REDUCE_(REAL|NUMBER)"):
        formulas = [tuple(arguments(part[1:-1])) for part in parts[4:-1]]
        yield (parts[1].strip('"'), formulas[0], formulas[1] if len(formulas) > 1 else None)


def chosen(values, attributes):
    return all(str(attributes.get(key, "")) == value for key, value in values.items())


def formula_of(operator, attributes):
    of_operator = [row for row in rows() if row[0] == operator and chosen(row[1], attributes)]
    return max(of_operator, key=lambda row: len(row[1]))


def pairs(samples, inputs):
    return [(x,) for x in samples] if inputs == 1 else [(x, y) for x in samples for y in samples]


def real_samples(operator, inputs):
    return pairs(SAMPLES + (SPECIAL if operator in TAKES_SPECIAL else []), inputs)


def agree(found, expected):
    if found != found or expected != expected:
        return found != found and expected != expected
    return found == expected or abs(found - expected) <= TOLERANCE * max(1, abs(expected))


# ---- what muc computes ----

def npy(code, values, shape=None):
    descr = {"B": "|u1", "b": "|i1", "?": "|b1"}.get(code) or f"<{'f' if code == 'f' else 'i' if code in 'iq' else 'u'}{struct.calcsize(code)}"
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape or (len(values),)}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values)


def run_graph(text, inputs, outputs):
    """The files of the outputs that muc run computes of the inputs' files."""
    with tempfile.TemporaryDirectory() as folder:
        graph, given, got = (pathlib.Path(folder) / name for name in ("g.graph", "in.npz", "out.npz"))
        graph.write_text(text)
        with zipfile.ZipFile(given, "w") as archive:
            for name, data in inputs.items():
                archive.writestr(f"{name}.npy", data)
        muc("run", graph, "--input", given, "--output", got)
        with zipfile.ZipFile(got) as archive:
            return [archive.read(f"{name}.npy") for name in outputs]


def computed(jobs, dtype, code, columns):
    """Results of the jobs (operator, attributes, is_truth) on the columns, in the jobs' order."""
    count = len(columns[0])
    text = "graph formulas\n" + "".join(f"tensor {'ab'[i]} = input {dtype} [{count}]\n" for i in range(len(columns)))
    for i, (operator, attributes, truth) in enumerate(jobs):
        words = " ".join(f"{key}={value}" for key, value in attributes.items())
        text += f"node y{i} {'bool' if truth else dtype} [{count}] = {operator} {', '.join('ab'[:len(columns)])} {words}\n"
    text += "".join(f"output y{i}\n" for i in range(len(jobs)))
    data = run_graph(text, {"ab"[i]: npy(code, column) for i, column in enumerate(columns)}, [f"y{i}" for i in range(len(jobs))])
    results = []
    for (_, _, truth), raw in zip(jobs, data):
        kind = "B" if truth else code
        results.append(struct.unpack(f"<{count}{kind}", raw[len(raw) - count * struct.calcsize(kind):]))
    return results


TRUTHS = {"is_nan", "is_inf", "equal", "less", "less_or_equal", "greater", "greater_or_equal"}


def check_computed(meanings, attributes_of, dtype, code, samples_of, expected_of):
    """Each operator of meanings with one and two inputs apart, against expected_of(operator, attributes, sample)."""
    for inputs in (1, 2):
        operators = [row[0] for row in rows() if row[2] == inputs and not row[1] and row[0] in meanings]
        for special in (False, True):
            jobs = [(operator, attributes, operator in TRUTHS) for operator in operators if (operator in TAKES_SPECIAL) == special
                    for attributes in attributes_of.get(operator, [{}])]
            if not jobs:
                continue
            samples = samples_of(jobs[0][0], inputs)
            for (operator, attributes, _), results in zip(jobs, computed(jobs, dtype, code, list(zip(*samples)))):
                for sample, result in zip(samples, results):
                    expected = expected_of(operator, attributes, sample)
                    assert agree(result, expected), f"{operator} {attributes} of {dtype} {sample} is {result}, expected {expected}"


def real_meaning(operator, attributes, sample):
    return guarded(MEANING[operator])(*sample, **attributes)


def wrapped(value, bits, signed):
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def whole_samples(dtype, inputs):
    _, bits, signed = WHOLE[dtype]
    fitting = [x for x in WHOLE_SAMPLES if wrapped(x, bits, signed) == x]
    return pairs([*fitting, -1 << (bits - 1)] if signed else fitting, inputs)


def whole_meaning(operator, attributes, sample, dtype):
    _, bits, signed = WHOLE[dtype]
    return wrapped(WHOLE_MEANING[operator](*sample, bits, **attributes), bits, signed)


def test_every_row_has_a_meaning_here():
    for operator, _, _, real, whole in rows():
        assert real is None or operator in MEANING, f"{operator} has no meaning of real numbers in this test"
        assert whole is None or operator in WHOLE_MEANING or operator in BOOL_MEANING, f"{operator} has no meaning of integers here"


def test_real_numbers_are_what_the_operators_are_said_to_be():
    check_computed(MEANING, REALS, "f32", "f", real_samples, real_meaning)


def test_integers_are_what_the_operators_are_said_to_be():
    for dtype, (code, _, _) in WHOLE.items():
        check_computed(WHOLE_MEANING, WHOLES, dtype, code, lambda operator, inputs: whole_samples(dtype, inputs),
                       lambda operator, attributes, sample: whole_meaning(operator, attributes, sample, dtype))


def test_truths_are_what_the_operators_are_said_to_be():
    check_computed(BOOL_MEANING, {}, "bool", "B", lambda operator, inputs: pairs([0, 1], inputs),
                   lambda operator, attributes, sample: BOOL_MEANING[operator](*sample))


def whole_fold(operator, dtype, values):
    _, bits, signed = WIDE[dtype]
    if operator == "reduce_mean":
        return truncated(wrapped(sum(values), 64, signed), len(values))
    return wrapped(WHOLE_FOLDS[operator.removeprefix("reduce_")](values), bits, signed)


def whole_lists(dtype):
    _, bits, signed = WIDE[dtype]
    return [values for values in WHOLE_LISTS if [wrapped(x, bits, signed) for x in values] == values]


def check_reduced(operators, dtype, code, lists, expected_of):
    """The reductions of each list, a row of an array."""
    text = f"graph folds\ntensor a = input {dtype} [{len(lists)}, 3]\n"
    text += "".join(f"node {name} {dtype} [{len(lists)}] = {name} a axes=[1] keep_dims=0\noutput {name}\n" for name in operators)
    results = run_graph(text, {"a": npy(code, [x for values in lists for x in values], (len(lists), 3))}, operators)
    for name, raw in zip(operators, results):
        for values, result in zip(lists, struct.unpack(f"<{len(lists)}{code}", raw[-len(lists) * struct.calcsize(code):])):
            assert agree(result, expected_of(name, values)), f"{name} of {dtype} {values} is {result}, expected {expected_of(name, values)}"


def test_reductions_are_what_they_are_said_to_be():
    names = [name for name, _, _ in folds()]
    assert set(names) == set(FOLDS), "a reduction has no meaning in this test"
    check_reduced(names, "f32", "f", LISTS, lambda name, values: guarded(FOLDS[name])(values))
    for dtype, (code, _, _) in WIDE.items():
        check_reduced([name for name, _, whole in folds() if whole], dtype, code, whole_lists(dtype),
                      lambda name, values: whole_fold(name, dtype, values))


# ---- each formula, changed ----

FUNCTIONS = {name: guarded(function) for name, function in {
    "abs": abs, "acos": math.acos, "acosh": math.acosh, "asin": math.asin, "asinh": math.asinh, "atan": math.atan, "atanh": MEANING["atanh"],
    "ceil": lambda x: float(math.ceil(x)), "cos": math.cos, "cosh": math.cosh, "erf": math.erf, "exp": math.exp, "expm1": math.expm1,
    "floor": lambda x: float(math.floor(x)), "fmod": math.fmod, "hard_sigmoid": lambda x, alpha, beta: clipped(alpha * x + beta),
    "log": MEANING["log"], "max": greatest, "min": least, "mod": floor_mod, "round": lambda x: float(round(x)), "sigmoid": logistic,
    "silu": MEANING["silu"], "sin": math.sin, "sinh": math.sinh, "sixth": lambda x: x / 6, "softplus": log1p_exp, "sqrt": MEANING["sqrt"],
    "tan": math.tan, "tanh": math.tanh}.items()}


def differs(tree, samples, value_of, expected_of, agree):
    for sample in samples:
        try:
            if not agree(value_of(tree, sample), expected_of(sample)):
                return True
        except (c_expression.Trap, OverflowError, TypeError):
            return True
    return False


def check_changes(operator, text, samples, value_of, expected_of, agree=agree):
    """The formula passes on the samples, and no change of it does. How many changes there were."""
    tree = c_expression.read(text)
    assert not differs(tree, samples, value_of, expected_of, agree), f"{operator}: {text} is not what this test says"
    changes = list(c_expression.changes(tree))
    for change in changes:
        shown = c_expression.shown(change)
        assert (differs(change, samples, value_of, expected_of, agree) or any(part in shown for part in EQUIVALENT.get(operator, []))), \
            f"{operator}: {text} may be changed to {shown}"
    return len(changes)


def named(sample, attributes):
    names = {"alpha": 1.0, "detect_negative": 1, "detect_positive": 1, "infinity": INF, **attributes}
    return {"x": sample[0], "y": sample[-1], **names}


def test_every_change_of_a_formula_of_real_numbers_fails():
    count = 0
    for operator in MEANING:
        tried = {}
        for attributes in REALS.get(operator, [{}]):
            _, _, inputs, real, _ = formula_of(operator, attributes)
            tried.setdefault(real, (inputs, []))[1].append(attributes)
        for real, (inputs, several) in tried.items():
            samples = [(attributes, sample) for attributes in several for sample in real_samples(operator, inputs)]
            divisor = 2 if operator == "mean" else 1
            count += check_changes(operator, real, samples,
                                   lambda tree, at: c_expression.value(tree, named(at[1], at[0]), FUNCTIONS) / divisor,
                                   lambda at: real_meaning(operator, at[0], at[1]))
    assert count > 100, f"only {count} changes"


def test_every_change_of_a_formula_of_integers_fails():
    count = 0
    for operator in WHOLE_MEANING:
        for attributes in WHOLES.get(operator, [{}]):
            _, _, inputs, _, whole = formula_of(operator, attributes)
            samples = [(dtype, sample) for dtype in ("i8", "u8", "i64") for sample in whole_samples(dtype, inputs)]

            def value_of(tree, at):
                _, bits, signed = WHOLE[at[0]]

                def cast(kind, value):
                    return wrapped(value, 64, False) if kind == "U" else wrapped(value, bits, signed)
                found = c_expression.value(tree, named(at[1], {"T": 0, "S": 0}), {"sizeof": lambda node: bits // 8}, cast)
                return wrapped(found, bits, signed)
            count += check_changes(operator, whole, samples, value_of, lambda at: whole_meaning(operator, attributes, at[1], at[0]))
    for operator in BOOL_MEANING:
        _, _, inputs, _, whole = formula_of(operator, {})
        count += check_changes(operator, whole, pairs([0, 1], inputs),
                               lambda tree, sample: bool(c_expression.value(tree, named(sample, {}), {}, lambda kind, value: value)),
                               lambda sample: BOOL_MEANING[operator](*sample))
    assert count > 100, f"only {count} changes"


# ---- integers that carry scales ----

def scaled_rows():
    """(operator, kind of factors, formula) of each MUC_INTEGERS."""
    for name in ("elementwise.def", "ops.def"):
        for _, (operator, factors, formula) in table(name, "INTEGERS"):
            yield operator.lower(), factors, formula


# what the formulas leave to the bounds of the output
UNBOUNDED = dict.fromkeys(("relu", "clip", "quantize"), lambda x: x)
ALPHA = 0.125
SCALED_ATTRIBUTES = {"leaky_relu": f"alpha={ALPHA}", "quantize": "to=i8"}


def scaled_meaning(operator, p, q, a, b, y):
    """The output's integer, not rounded, of inputs p and q; a, b and y: the scales."""
    function = UNBOUNDED.get(operator) or MEANING[operator]
    q = 1 if operator == "div" and q == 0 else q  # its least step
    return function(*(p * a, q * b)[:inputs_of(operator)], *([ALPHA] if operator == "leaky_relu" else [])) / y


@functools.cache
def inputs_of(operator):
    return 1 if operator in UNBOUNDED else next(row[2] for row in rows() if row[0] == operator)


class Factor(float):
    """What SCALE multiplies by, and nothing else."""


def scale(x, by):
    if isinstance(x, Factor) or not isinstance(by, Factor):
        raise c_expression.Trap("not a number and a factor")
    return round(x * by)


def test_every_change_of_a_formula_of_scaled_integers_fails():
    count = 0
    integers, y = (-120, -50, -7, -2, -1, 0, 1, 3, 9, 64, 120), 2.0 ** -20
    for operator, factors, text in scaled_rows():
        samples = [(p, q, a, b if inputs_of(operator) == 2 else 1) for p in integers for q in integers for a, b in ((1, 1), (0.5, 0.25), (0.25, 0.75))]

        def value_of(tree, at):
            p, q, a, b = at
            unit = 2 * max(a, b) / 2 ** 20
            of_p, of_q = {"SUM": (a / unit, b / unit), "EACH": (a / y, b / y)}.get(factors, (1, 1))
            factor = {"SUM": unit / y, "QUOTIENT": a / b / y / 2 ** 20, "LEAKY": ALPHA * a / y}.get(factors, a * b / y)
            names = {"p": round(p * of_p), "q": round(q * of_q), "factor": Factor(factor), "above": Factor(a / y)}
            return c_expression.value(tree, names, {"SCALE": scale}, lambda kind, value: value)
        count += check_changes(operator, text, samples, value_of, lambda at: scaled_meaning(operator, *at, y), lambda x, y: abs(x - y) <= 4)
    assert count > 20, f"only {count} changes"


def test_scaled_integers_are_what_the_operators_are_said_to_be():
    samples = pairs(range(-128, 128, 5), 2)
    quantizations = [(0.5, 3), (0.25, -7), (0.375, 11)]
    spelled = ["scale {} zero {}".format(*of) for of in quantizations]
    (a, of_a), (b, of_b), (y, of_y) = quantizations
    operators = [row[0] for row in scaled_rows()]
    text = "graph scaled\n" + "".join(f"tensor {'ab'[i]} = input i8 [{len(samples)}] {spelled[i]}\n" for i in range(2))
    for operator in operators:
        text += f"node {operator}_y i8 [{len(samples)}] {spelled[2]} = {operator} {', '.join('ab'[:inputs_of(operator)])} {SCALED_ATTRIBUTES.get(operator, '')}\n"
        text += f"output {operator}_y\n"
    columns = list(zip(*samples))
    found = run_graph(text, {"ab"[i]: npy("b", columns[i]) for i in range(2)}, [f"{operator}_y" for operator in operators])
    for operator, raw in zip(operators, found):
        for (p, q), result in zip(samples, struct.unpack(f"<{len(samples)}b", raw[-len(samples):])):
            expected = scaled_meaning(operator, p - of_a, q - of_b, a, b, y) + of_y
            expected = max(expected, of_y) if operator == "relu" else expected
            expected = min(max(expected, -128), 127)
            assert abs(result - expected) <= 1, f"{operator} of {p}, {q} is {result}, expected {expected}"


def folded(trees, values, functions, names, cast=None):
    """What the trees of start, step and end make of the values; cast: to the type of sum."""
    def of(tree, **more):
        found = c_expression.value(tree, {**names, "n": len(values), **more}, functions, cast)
        return cast("T", found) if cast else found
    total = of(trees[0])
    for x in values:
        total = of(trees[1], sum=total, x=x)
    return of(trees[2], sum=total)


def test_every_change_of_a_reduction_fails():
    count = 0
    for operator, real, whole in folds():
        trees = list(map(c_expression.read, real))

        def real_value(tree, at, i):
            most = functools.reduce(greatest, at)
            names = {"infinity": INF, "most": 0.0 if math.isinf(most) else most}
            return folded([*trees[:i], tree, *trees[i + 1:]], at, {**FUNCTIONS, "exp_in_sum": FUNCTIONS["exp"]}, names)
        for i, text in enumerate(real):
            count += check_changes(operator, text, LISTS, lambda tree, at: real_value(tree, at, i), guarded(FOLDS[operator]))
        whole_trees = list(map(c_expression.read, whole or ()))

        def whole_value(tree, at, i):
            _, bits, signed = WIDE[at[0]]
            names = {"lowest": -(1 << 63) if signed else 0, "highest": (1 << 63) - 1 if signed else (1 << 64) - 1}
            found = folded([*whole_trees[:i], tree, *whole_trees[i + 1:]], at[1], {}, names,
                           lambda kind, value: wrapped(value, 64, signed and kind not in "UA"))
            return wrapped(found, bits, signed)
        samples = [(dtype, values) for dtype in WIDE for values in whole_lists(dtype)]
        for i, text in enumerate(whole or ()):
            count += check_changes(operator, text, samples, lambda tree, at: whole_value(tree, at, i), lambda at: whole_fold(operator, *at))
    assert count > 50, f"only {count} changes"


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
