"""Size expressions: the arithmetic that contracts and plans use for shapes, grids and scalars.

The language is a subset of Python over named sizes: integers, ``+ - * // % ** << >>``, comparisons,
``a if c else b``, and ``ceil_div(a, b)``, ``round_up(a, b)``, ``min``, ``max``, ``next_pow2(a)``,
``isqrt(a)``. ``/`` is true division, and taken only where a floating number is meant: of whole numbers C and Python
disagree on it. An expression is stored as its text; it evaluates to a Python int (or float, where floats or ``/`` are
written), and it prints as C for launchers.
"""

from __future__ import annotations

import ast
import copy
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import cast

from fsr.errors import ContractError

Number = int | float

LIMIT = 2**64  # what no unsigned word holds is a slip of the pen, not a shape or a limit
_STEP_LIMIT = 2**128  # a product of two sizes that is divided again


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _next_pow2(a: int) -> int:
    return 1 << max(a - 1, 0).bit_length()


FUNCTIONS: dict[str, Callable[..., Number]] = {
    "ceil_div": _ceil_div,
    "round_up": lambda a, b: _ceil_div(a, b) * b,
    "min": min,
    "max": max,
    "next_pow2": _next_pow2,
    "isqrt": math.isqrt,
}

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Number, Number], Number]]] = {
    ast.Add: ("+", lambda a, b: a + b),
    ast.Sub: ("-", lambda a, b: a - b),
    ast.Mult: ("*", lambda a, b: a * b),
    ast.FloorDiv: ("/", lambda a, b: a // b),
    ast.Mod: ("%", lambda a, b: a % b),
    ast.LShift: ("<<", lambda a, b: int(a) << int(b)),
    ast.RShift: (">>", lambda a, b: int(a) >> int(b)),
    ast.Pow: ("**", lambda a, b: a**b),
}
_DIVIDED: dict[type[ast.operator], tuple[str, Callable[[Number, Number], Number]]] = {
    ast.Div: ("/", lambda a, b: a / b),
}
_WHOLE = (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)  # of parts with a fraction C knows none of these
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Number, Number], bool]]] = {
    ast.Lt: ("<", lambda a, b: a < b),
    ast.LtE: ("<=", lambda a, b: a <= b),
    ast.Gt: (">", lambda a, b: a > b),
    ast.GtE: (">=", lambda a, b: a >= b),
    ast.Eq: ("==", lambda a, b: a == b),
    ast.NotEq: ("!=", lambda a, b: a != b),
}


class BeyondRangeError(ContractError):
    """An expression's value, or one on the way to it, is larger than what is reckoned with."""


def _bad(text: str, why: str, kind: type[ContractError] = ContractError) -> ContractError:
    return kind(
        f"the expression {text!r} {why}",
        expected="integers and named sizes joined by + - * // % ** << >>, comparisons, `a if test else b`, ceil_div, "
        "round_up, min, max, next_pow2, isqrt; / in the value of a floating argument alone",
        fix="correct the expression in the contract",
    )


def is_floating(dtype: str) -> bool:
    """Whether values of a dtype may have a fraction, so that ``/`` is understood in their expressions."""
    return "float" in dtype


@lru_cache(maxsize=4096)
def parse(text: str, floating: bool = False) -> ast.expr:
    """The syntax tree of an expression. ``floating``: it says a floating number, and may divide by ``/``. Raises
    ContractError when it is not one of the language above."""
    if len(text) > 500:
        raise _bad(text[:40] + "...", "is longer than 500 characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # "1if": the checks below have the say
            tree = ast.parse(str(text).strip(), mode="eval").body
        _check(tree, text, floating)
    except (SyntaxError, ValueError) as fault:
        raise _bad(text, f"does not parse ({fault.args[0]})") from None
    except (RecursionError, MemoryError):
        raise _bad(text[:40] + "...", "is nested too deep") from None
    return tree


def _check(node: ast.expr, text: str, floating: bool) -> None:
    match node:
        case ast.Constant(value=value) if isinstance(value, int | float) and not isinstance(value, bool):
            return
        case ast.Name():
            return
        case ast.BinOp(left=left, op=op, right=right) if type(op) in (_BINARY | _DIVIDED if floating else _BINARY):
            for part in (left, right):
                _check(part, text, floating and not isinstance(op, _WHOLE))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand, text, floating)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            for part in (test, body, orelse):
                _check(part, text, floating)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            _check(left, text, floating)
            _check(right, text, floating)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            for argument in args:
                _check(argument, text, floating and name in ("min", "max"))
        case ast.BinOp(op=ast.Div()):
            raise _bad(text, "uses /, which C and Python understand differently: write // or ceil_div")
        case _:
            raise _bad(text, f"uses {ast.unparse(node)!r}, which is not part of the language")


def names(text: str) -> frozenset[str]:
    """The sizes that an expression mentions."""
    tree = parse(text, floating=True)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called)


def evaluate(text: str, sizes: Mapping[str, Number]) -> Number:
    """The value of an expression for concrete sizes. Raises ContractError on an unknown name or overflow."""
    try:
        value = _evaluate(parse(text, floating=True), sizes, text)
    except (ZeroDivisionError, OverflowError, TypeError, ValueError, AttributeError) as fault:
        raise _bad(text, f"cannot be evaluated for {dict(sizes)}: {fault}") from None
    if not abs(value) < LIMIT:  # NaN too
        raise _bad(text, f"is {value} for {dict(sizes)}, beyond 64 bits", BeyondRangeError)
    return value


# Small and large: what rounds up to a multiple of 128 is 128 at all small sizes.
_PLACES = (
    (3, 5, 7, 11, 13, 17), (19, 8, 23, 6, 29, 4), (10, 31, 9, 37, 12, 41),
    (1000, 300, 257, 511, 130, 205), (641, 1999, 1290, 77, 333, 512),
)  # fmt: skip


def fingerprint(text: str, sizes: Iterable[str]) -> tuple[Number | None, ...]:
    """Its values at a few places, by which two expressions of the same sizes are told to be one; None where it is too
    large there, as powers of a size are. Raises ContractError, also where it is too large everywhere."""
    named = list(enumerate(sizes))
    rows = ({name: row[i % len(row)] + 43 * (i // len(row)) for i, name in named} for row in _PLACES)
    found = tuple(_within_range(text, row) for row in rows)
    if all(value is None for value in found):
        raise _bad(text, "is too large wherever it was tried", BeyondRangeError)
    return found


def _within_range(text: str, sizes: Mapping[str, Number]) -> Number | None:
    try:
        return evaluate(text, sizes)
    except BeyondRangeError:
        return None


def evaluate_int(text: str, sizes: Mapping[str, Number]) -> int:
    """Like :func:`evaluate`, for a count: the value must be a whole number."""
    parse(text)  # no size is made by /, even where it comes out even
    value = evaluate(text, sizes)
    if value != int(value):
        raise _bad(text, f"is {value} for {dict(sizes)}, not a whole number")
    return int(value)


def _evaluate(node: ast.expr, sizes: Mapping[str, Number], text: str) -> Number:
    match node:
        case ast.Constant(value=value):
            return cast(Number, value)
        case ast.Name(id=name):
            if name not in sizes:
                known = ", ".join(sorted(sizes)) or "none"
                raise _bad(text, f"names {name!r}, which is no size of this contract (sizes: {known})")
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _evaluate(left, sizes, text), _evaluate(right, sizes, text)
            if isinstance(op, ast.Pow | ast.LShift) and abs(b) > 64:
                raise _bad(text, f"shifts or raises by {b}", BeyondRangeError)
            value = (_BINARY | _DIVIDED)[type(op)][1](a, b)
            if abs(value) >= _STEP_LIMIT:  # in every step: a tower of powers would take minutes
                raise _bad(text, "goes beyond 64 bits, and on its way beyond 128", BeyondRangeError)
            return value
        case ast.UnaryOp(operand=operand):
            return -_evaluate(operand, sizes, text)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return int(_COMPARE[type(op)][1](_evaluate(left, sizes, text), _evaluate(right, sizes, text)))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _evaluate(body if _evaluate(test, sizes, text) else orelse, sizes, text)
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](*(_evaluate(a, sizes, text) for a in args))
    raise _bad(text, "cannot be evaluated")


# What no operator says is a function on the spot, so that a launcher needs nothing beside the expression.
_ON_THE_SPOT = {
    "next_pow2": "[](long long a) { long long p = 1; while (p < a) p *= 2; return p; }",
    "isqrt": "[](long long a) { long long r = 0; for (long long b = 1LL << 31; b; b /= 2)"
    " if ((r + b) <= a / (r + b)) r += b; return r; }",
    "**": "[](long long a, long long n) { long long p = 1; while (n-- > 0) p *= a; return p; }",
}


def to_c(text: str, called: Mapping[str, str] | None = None) -> str:
    """The expression as C++ over ``long long`` variables named like the sizes, or as ``called`` says."""
    change = _Replaced({ast.dump(ast.Name(n, ast.Load())): ast.Name(c, ast.Load()) for n, c in (called or {}).items()})
    tree = parse(text, floating=True)
    return _to_c(cast("ast.expr", change.visit(copy.deepcopy(tree))) if called else tree)


def replaced(text: str, others: Mapping[str, str]) -> str:
    """The expression with other parts in the place of some: of names, or of whatever is written as a key is."""
    change = _Replaced({ast.dump(parse(old, floating=True)): parse(new, floating=True) for old, new in others.items()})
    tree = change.visit(copy.deepcopy(parse(text, floating=True)))
    return ast.unparse(tree) if change.found else text


class _Replaced(ast.NodeTransformer):
    def __init__(self, others: Mapping[str, ast.expr]) -> None:
        self._others, self.found = others, False

    def visit(self, node: ast.AST) -> ast.AST:
        other = self._others.get(ast.dump(node))
        if other is not None:
            self.found = True
            return copy.deepcopy(other)
        if isinstance(node, ast.Call):  # a function's name is no part
            return ast.Call(node.func, [cast("ast.expr", self.visit(a)) for a in node.args], [])
        return self.generic_visit(node)


def divisors(text: str) -> frozenset[int]:
    """The numbers that something is divided by: 512 in ``ceil_div(n, 512)``."""
    return frozenset(cast("int", d.value) for d in _divisors(parse(text, floating=True)))


def with_divisors(text: str, others: Mapping[int, int]) -> str:
    """The expression with other numbers in the place of those divisors."""
    tree = copy.deepcopy(parse(text, floating=True))
    found = _divisors(tree)
    for one in found:
        one.value = others.get(cast("int", one.value), one.value)
    return ast.unparse(tree) if found else text


def rescaled(text: str, old: int, new: int) -> str:
    """The expression with divisors that are multiples of one number as the same multiples of another."""
    return with_divisors(text, {d: d // old * new for d in divisors(text) if d % old == 0})


def _divisors(tree: ast.expr) -> list[ast.Constant]:
    found = list[ast.Constant]()
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.FloorDiv(), right=ast.Constant(value=int()) as divisor):
                found.append(divisor)
            case ast.Call(func=ast.Name(id="ceil_div"), args=[_, ast.Constant(value=int()) as divisor]):
                found.append(divisor)
    return found


def _has_fraction(node: ast.expr) -> bool:
    """Whether a value is a floating number in C; sizes are none."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, float)
        case ast.BinOp(op=ast.Div()) | ast.BinOp(op=ast.Pow(), right=ast.UnaryOp()):
            return True
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return _has_fraction(left) or _has_fraction(right)
        case ast.UnaryOp(operand=operand):
            return _has_fraction(operand)
        case ast.Call(args=args):
            return any(map(_has_fraction, args))
    return False


def _to_c(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=value):
            return f"{value}LL" if isinstance(value, int) else repr(value)
        case ast.Name(id=name):
            return name
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if 0 <= power <= 8:
            return "(" + " * ".join([_to_c(left)] * power or ["1LL"]) + ")"
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.UnaryOp(operand=ast.Constant(value=int(n)))) if n <= 8:
            return f"(1.0 / ({' * '.join([f'(double){_to_c(left)}'] * n or ['1.0'])}))"
        case ast.BinOp(left=left, op=ast.Pow(), right=right) if _has_fraction(node):
            return f"pow((double){_to_c(left)}, (double){_to_c(right)})"
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return f"((double){_to_c(left)} / (double){_to_c(right)})"
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"{_ON_THE_SPOT['**']}({_to_c(left)}, {_to_c(right)})"
        case ast.BinOp(left=left, op=op, right=right):
            return f"({_to_c(left)} {_BINARY[type(op)][0]} {_to_c(right)})"
        case ast.UnaryOp(operand=operand):
            return f"(-{_to_c(operand)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return f"({_to_c(left)} {_COMPARE[type(op)][0]} {_to_c(right)})"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return f"({_to_c(test)} ? {_to_c(body)} : {_to_c(orelse)})"
        case ast.Call(func=ast.Name(id=name), args=args):
            a = [_to_c(x) for x in args]
            match name:
                case "ceil_div":
                    return f"(({a[0]} + {a[1]} - 1LL) / {a[1]})"
                case "round_up":
                    return f"(({a[0]} + {a[1]} - 1LL) / {a[1]} * {a[1]})"
                case "min" | "max":
                    sign = "<" if name == "min" else ">"
                    joined = a[0]
                    for other in a[1:]:
                        joined = f"({joined} {sign} {other} ? {joined} : {other})"
                    return joined
                case "next_pow2" | "isqrt":
                    return f"{_ON_THE_SPOT[name]}({a[0]})"
    raise _bad(ast.unparse(node), "has no C form")
