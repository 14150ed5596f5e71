"""Expressions of C as trees: reading them, their values in Python's numbers, and every single change of one."""
import math
import re

TOKEN = re.compile(r"\s*(?:(\d+\.\d+|\d+)u?|(\w+)|(<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&|^!~?:(),]))")
LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
OTHER = {"||": "&&", "&&": "||", "|": "&", "^": "|", "&": "|", "==": "!=", "!=": "==", "<": ">", ">": "<", "<=": ">", ">=": "<", "<<": ">>",
         ">>": "<<", "+": "-", "-": "+", "*": "+", "/": "*", "%": "/"}
ORDERED = {"<<", ">>", "-", "/", "%"}
TYPES = ("T", "S", "U", "A")


class Trap(Exception):
    """What has no value in C."""


def read(text):
    """The tree of a text: (kind, ...); R(c) is the number c."""
    tokens = [next(part for part in found if part) for found in TOKEN.findall(text)]
    at = 0

    def take(expected=None):
        nonlocal at
        at += 1
        if expected and tokens[at - 1] != expected:
            raise ValueError(f"{expected} expected in {text}")
        return tokens[at - 1]

    def peek(ahead=0):
        return tokens[at + ahead] if at + ahead < len(tokens) else ""

    def unary():
        if peek() in ("-", "!", "~"):
            return ("unary", take(), unary())
        if peek() == "(" and peek(1) in TYPES and peek(2) == ")":
            take(), take()
            kind = tokens[at - 1]
            take(")")
            return ("cast", kind, unary())
        if peek() == "(":
            take()
            inner = chosen()
            take(")")
            return inner
        word = take()
        if word[0].isdigit():
            return ("number", float(word) if "." in word else int(word))
        if peek() != "(":
            return ("name", word)
        take("(")
        arguments = [chosen()]
        while peek() == ",":
            take()
            arguments.append(chosen())
        take(")")
        return arguments[0] if word == "R" else ("call", word, *arguments)

    def level(i):
        if i == len(LEVELS):
            return unary()
        left = level(i + 1)
        while peek() in LEVELS[i]:
            left = ("binary", take(), left, level(i + 1))
        return left

    def chosen():
        condition = level(0)
        if peek() != "?":
            return condition
        take()
        yes = chosen()
        take(":")
        return ("choice", condition, yes, chosen())

    tree = chosen()
    if at != len(tokens):
        raise ValueError(f"{tokens[at]} left over in {text}")
    return tree


def divide(a, b, whole):
    if whole:
        if b == 0:
            raise Trap("division by 0")
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a / b if b else math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def remainder(a, b):
    return a - b * divide(a, b, True)


OPERATION = {"|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "&": lambda a, b: a & b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
             "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
             "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
             "%": remainder}


def value(tree, names, functions, cast=None):
    """Of real numbers, or where cast(type, value) is given of integers."""
    def of(node):
        return value(node, names, functions, cast)
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind == "name":
        return names[tree[1]]
    if kind == "unary":
        inner = of(tree[2])
        return -inner if tree[1] == "-" else int(not inner) if tree[1] == "!" else ~inner
    if kind == "cast":
        return cast(tree[1], of(tree[2]))
    if kind == "choice":
        return of(tree[2]) if of(tree[1]) else of(tree[3])
    if kind == "call":
        return functions[tree[1]](*(arg if tree[1] == "sizeof" else of(arg) for arg in tree[2:]))
    if tree[1] == "&&":
        return int(bool(of(tree[2])) and bool(of(tree[3])))
    if tree[1] == "||":
        return int(bool(of(tree[2])) or bool(of(tree[3])))
    a, b = of(tree[2]), of(tree[3])
    if cast and tree[1] in ("/", "%") and cast("S", divide(a, b, True)) != divide(a, b, True):
        raise Trap("a quotient that its type does not hold")
    if tree[1] == "/":
        return divide(a, b, cast is not None)
    if tree[1] in ("<<", ">>") and not 0 <= b < 64:
        raise Trap("a shift by more than the bits there are")
    return OPERATION[tree[1]](a, b)


def changes(tree):
    """Every tree that differs from this one in one sign, bound, operation or order."""
    kind = tree[0]
    if kind == "number":
        yield ("number", tree[1] + 1 if isinstance(tree[1], int) else tree[1] * 1.1)
    if kind == "name" and tree[1] in ("lowest", "highest"):
        yield ("name", "lowest" if tree[1] == "highest" else "highest")
    if kind == "unary":
        yield tree[2]
    if kind == "binary":
        yield ("binary", OTHER[tree[1]], *tree[2:])
        if tree[1] in ORDERED:
            yield ("binary", tree[1], tree[3], tree[2])
    if kind == "choice":
        yield ("choice", tree[1], tree[3], tree[2])
    if kind == "call" and tree[1] != "sizeof":
        if tree[1] in ("min", "max"):
            yield ("call", "min" if tree[1] == "max" else "max", *tree[2:])
        elif len(tree) > 3:
            yield ("call", tree[1], *tree[2:-2], tree[-1], tree[-2])
        yield tree[2]
    for i in range(1, len(tree)):
        if isinstance(tree[i], tuple):
            for other in changes(tree[i]):
                yield (*tree[:i], other, *tree[i + 1:])


def shown(tree):
    kind = tree[0]
    if kind in ("number", "name"):
        return str(tree[1])
    if kind in ("unary", "cast"):
        return (tree[1] if kind == "unary" else f"({tree[1]})") + shown(tree[2])
    if kind == "binary":
        return f"({shown(tree[2])} {tree[1]} {shown(tree[3])})"
    if kind == "choice":
        return f"({shown(tree[1])} ? {shown(tree[2])} : {shown(tree[3])})"
    return f"{tree[1]}({', '.join(map(shown, tree[2:]))})"
