"""Expressions of a computation as C++ text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from fsr.computation.expression import (
    Affine,
    Case,
    Const,
    Expr,
    Load,
    Number,
    Op,
    Order,
    Quotient,
    Remainder,
    distinct,
    names_in,
)  # fmt: skip
from fsr.computation.types import type_of

TYPES = {
    "float32": "float", "float64": "double", "int32": "int", "int64": "long long", "int16": "short",
    "int8": "signed char", "bool": "bool", "float16": "__half", "bfloat16": "__nv_bfloat16",
}  # fmt: skip
_NARROW = ("float16", "bfloat16")
_COMPARISONS = ("gt", "ge", "eq", "ne")
_SIGNS = {
    "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "div": "/", "idiv": "/", "irem": "%", "and": "&", "or": "|",
    "xor": "^", "shl": "<<", "ashr": ">>",
}  # fmt: skip
_LEAST = {-(1 << 31): "(-2147483647 - 1)"}  # what stands behind a minus alone would be of a wider type
_OVERFLOWING = {"sum": "+", "prod": "*", "neg": "-", "shl": "<<"}
_WITHOUT_SIGN = {
    "int8": "unsigned char", "int16": "unsigned short", "int32": "unsigned", "int64": "unsigned long long",
}  # fmt: skip
_FUNCTIONS = frozenset(
    ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "tanh", "sinh", "cosh", "sin",
     "cos", "tan", "asin", "acos", "atan", "atan2", "pow", "fabs", "floor", "ceil", "trunc", "rint", "nearbyint",
     "round", "fmod", "hypot", "copysign", "erf", "erfc", "lgamma", "tgamma")
)  # fmt: skip


LONGEST_LINE = 3000  # characters: nobody reads more, and the guard refuses what is a little longer


class NotPlain(Exception):  # noqa: N818
    """A computation that is not written as plain loops."""


@dataclass(frozen=True)
class Writer:
    """Writes expressions. ``affine``: C text of an affine value of sizes and dimensions; ``by``: of a divisor.
    ``extents``: of each buffer the C texts of its extents. ``names``: what buffers and values are called. ``held``:
    expressions whose value stands in a variable. ``wide``: buffers of more elements than an int counts, where indices
    are ints. ``domain``: dimensions that stay below an extent, as it is told in divisors."""

    affine: Callable[[Affine], str]
    extents: Mapping[str, tuple[str, ...]]
    names: Mapping[str, str]
    by: Callable[[str | int], str]
    held: Mapping[Expr, str] = field(default_factory=dict)
    wide: frozenset[str] = frozenset()
    domain: Mapping[str, str] = field(default_factory=dict)

    def text(self, e: Expr) -> str:
        """An expression, in brackets where it is no single word. Raises NotPlain."""
        if e in self.held:
            return self.held[e]
        match e:
            case Const():
                return literal(e)
            case Number(Affine((), value), "int32") if value in _LEAST:
                return _LEAST[value]
            case Number(index, dtype):
                found = self._index(index)
                return found if dtype in ("int64", "int32") else f"({TYPES[dtype]})({found})"
            case Load():
                return self._load(e)
            case Case(left, right, yes, no):
                return f"({self.affine(left)} <= {self.affine(right)} ? {self.text(yes)} : {self.text(no)})"
            case Op(name, args):
                return self._operation(e, name, args)
        raise NotPlain(type(e).__name__)

    def _index(self, index: Affine | Remainder | Quotient) -> str:
        if isinstance(index, Affine):
            found = self.affine(index)
            return found if is_word(found) else f"({found})"
        value, by = self.affine(index.value), self.by(index.by)
        if isinstance(index, Quotient):
            return f"(({value}) / {by})"
        match index.value:  # a neighbour on a ring
            case Affine(((dim, 1),), 1) if self.domain.get(dim) == str(index.by):
                return f"({value} < {by} ? {value} : 0)"
            case Affine(((dim, 1),), -1) if self.domain.get(dim) == str(index.by):
                return f"({value} < 0 ? {by} - 1 : {value})"
        if index.value.constant < 0 or any(times < 0 for _, times in index.value.terms):  # C keeps the sign
            return f"((({value}) % {by} + {by}) % {by})"
        return f"(({value}) % {by})"

    def _load(self, e: Load) -> str:
        if not e.indices or e.buffer.startswith("_"):
            return self.names[e.buffer]
        return f"{self.names[e.buffer]}[{self.flat(e.buffer, e.indices)}]"

    def flat(self, buffer: str, indices: tuple[Expr, ...], dims: slice = slice(None)) -> str:
        """The element's number in a row-major buffer, or in one of some of its dimensions."""
        found = ""
        for part, extent in zip(indices, self.extents[buffer][dims], strict=True):
            text = self.text(part)
            text = bare(text) if isinstance(part, Number) and "?" not in text else text
            if found in ("", "0"):
                found = f"(long long){_grouped(text)}" if buffer in self.wide and text != "0" else text
                continue
            found = f"{_grouped(found)} * {extent} + {text}".removesuffix(" + 0")
        return found.removesuffix(" + 0")

    def _operation(self, e: Op, name: str, args: tuple[Expr, ...]) -> str:
        dtype = type_of(e)
        if name in TYPES or name.startswith("zext_"):
            return self._cast(name.removeprefix("zext_"), args[0], name.startswith("zext_"))
        unsigned = any(map(_unsigned, args))
        if (dtype in _NARROW and not _halves(name, args, e.known_order)) or (
            unsigned and not (name in ("eq", "ne") and any(map(_not_negative, args)))
        ):
            raise NotPlain(f"{name} of {dtype}")
        if name in _COMPARISONS:
            return f"({self._widened(args[0])} {_SIGNS[name]} {self._widened(args[1])})"
        if name == "isnan":
            return f"isnan({bare(self._widened(args[0]))})"
        order = e.known_order if name == "prod" else ()
        if name == "sum" and e.order:
            args = _as_a_difference(e.as_written)
        elif not order:
            args = self._as_people_write(name, args)
        parts = [self.text(a) for a in args]
        if name in _OVERFLOWING and (dtype in ("int8", "int16") or _wraps(e)):
            return _wrapped(name, dtype, parts)
        if name == "sum":
            return "(" + " + ".join(parts).replace("+ -", "- ") + ")"
        if name == "prod":
            return _product(order or tuple(range(len(parts))), parts)
        if name == "lshr":
            return f"(({TYPES[dtype]})({_WITHOUT_SIGN[dtype]}){parts[0]} >> {parts[1]})"
        if name == "ctpop" and dtype in ("int32", "int64"):
            return f"({TYPES[dtype]})__popc{'ll' if dtype == 'int64' else ''}({parts[0]})"
        if name == "abs":
            return f"{'llabs' if dtype == 'int64' else 'abs'}({parts[0]})"
        if name in ("max", "min"):
            call = {"float32": f"f{name}f", "float64": f"f{name}"}.get(dtype, name)
            if dtype == "int64":  # a number is written as an int, and the function of two types is none
                parts = [f"(long long){p}" if isinstance(a, Number) else p for a, p in zip(args, parts, strict=True)]
            found = parts[0]
            for part in parts[1:]:
                found = f"{call}({found}, {part})"
            return found
        if name in ("neg", "not"):
            return f"{'-' if name == 'neg' else '!'}{parts[0]}"
        if name == "select":
            return f"({parts[0]} ? {parts[1]} : {parts[2]})"
        if name == "inv":
            return f"({'1.0f' if dtype == 'float32' else '1.0'} / {parts[0]})"
        if name in _SIGNS:
            return f"({parts[0]} {_SIGNS[name]} {parts[1]})"
        if name in _FUNCTIONS:
            return f"{name}{'f' if dtype == 'float32' else ''}({', '.join(parts)})"
        raise NotPlain(name)

    def _as_people_write(self, name: str, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Factors in the order of a normalisation, ``0.5f * (x[i, k] - mean) * scale[i] * weight[k] * dout[i, k]``: a
        centred element with what scales it first, so that no partial product leaves the range that the whole one keeps
        to; else, and sums of products, in the order of the arguments: which of two products is fused with their sum
        depends on it; what is taken off last, ``a + c - b``, so that a value is whole before it is centred."""
        if name == "prod":
            return tuple(self._scaled_first(args))
        if name != "sum":
            return args
        if all(isinstance(part, Load) for a in args for part in factors_of(a)):
            args = tuple(sorted(args, key=lambda a: [self._place(part) for part in factors_of(a)]))
        return tuple(sorted(args, key=_is_less))

    def _scaled_first(self, factors: tuple[Expr, ...]) -> list[Expr]:
        """Constants, the widest factor (a centred one, if any), what scales rows of it, the rest, others as wide."""
        dims = {a: dims_of(a) for a in factors}
        most = max(map(len, dims.values()))
        widest = [a for a in factors if len(dims[a]) == most]
        centred = [a for a in widest if isinstance(a, Op) and a.name == "sum"]
        first = centred[0] if centred else min(widest, key=self._place)
        along = next(
            (set(names_in(x.indices[-1])) for x in distinct(first) if isinstance(x, Load) and x.indices), set[str]()
        )
        at = factors.index(first)  # one of them: a square has it twice
        left = [*factors[:at], *factors[at + 1 :]]
        left.sort(key=lambda a: (len(dims[a]) == most, bool(dims[a] & along), self._place(a)))
        return sorted([first, *left], key=lambda a: not isinstance(a, Const))

    def _place(self, e: Expr) -> tuple[int, str]:
        """Among the arguments: that of the first which is read."""
        places = {name: n for n, name in enumerate(self.extents)}
        found = [places.get(part.buffer, len(places)) for part in distinct(e) if isinstance(part, Load)]
        return min(found, default=len(places)), _spelled(e) if found else ""

    def _widened(self, e: Expr) -> str:
        """What is compared, 16 bits as float: which is exact, and __half has too many operators to choose from."""
        narrow = type_of(e) in _NARROW
        if narrow and isinstance(e, Const):
            return literal(replace(e, dtype="float32"))
        return f"(float){self.text(e)}" if narrow else self.text(e)

    def _cast(self, name: str, a: Expr, unsigned: bool) -> str:
        if name in ("float32", "float64") and isinstance(a, Op) and a.name.startswith("zext_") and _unsigned(a.args[0]):
            return f"({TYPES[name]}){self.text(a.args[0])}"  # without a detour over 64 bits, which a GPU does not have
        if isinstance(a, Load) and a.dtype.startswith("uint") and not unsigned and a.dtype != f"u{name}":
            raise NotPlain("an unsigned value read as signed")
        if unsigned and not _unsigned(a) and type_of(a) != "bool":
            if type_of(a) not in _WITHOUT_SIGN:
                raise NotPlain("a signed value read as unsigned")
            return f"({TYPES[name]})({_WITHOUT_SIGN[type_of(a)]}){self.text(a)}"
        if name in ("int8", "int16") and type_of(a).startswith("float"):
            return f"({TYPES[name]})(int){self.text(a)}"  # what is unsigned there wraps
        return f"{TYPES[name]}({self.text(a)})" if name in _NARROW else f"({TYPES[name]}){self.text(a)}"


def _product(order: Order, factors: Sequence[str]) -> str:
    """Factors as the source multiplies them: no partial product leaves the range that the source's keep to."""
    return "(" + " * ".join(factors[n] if isinstance(n, int) else _product(n, factors) for n in order) + ")"


def _halves(name: str, args: tuple[Expr, ...], order: Order) -> bool:
    """Whether an operation on 16-bit floats is one that the type has, with one rounding: of more terms their order
    counts, which the source's has to tell."""
    alike = len({type_of(a) for a in (args[1:] if name == "select" else args)}) == 1
    return alike and (
        name == "select"
        or (name in ("sum", "prod") and len(args) == 2)
        or (name == "prod" and bool(order))
        or (name == "neg" and len(args) == 1)
    )


def _unsigned(e: Expr) -> bool:
    """Whether it is an element of a type without a sign, or one of several."""
    if isinstance(e, Case):
        return _unsigned(e.yes) and _unsigned(e.no)
    return isinstance(e, Load) and e.dtype.startswith("uint")


@lru_cache(maxsize=1 << 14)
def _wraps(e: Expr) -> bool:
    """Whether elements without a sign are among what an integer is reckoned from: then it may go beyond its type."""
    if type_of(e) not in ("int32", "int64") or not isinstance(e, Op):
        return False
    return any(_unsigned(a) and e.name == a.dtype[1:] for a in e.args if isinstance(a, Load)) or any(
        map(_wraps, e.args)
    )


def _wrapped(name: str, dtype: str, parts: Sequence[str]) -> str:
    """An operation on integers whose result has the bits that its type has room for."""
    if dtype in ("int8", "int16"):
        inner = parts
    else:
        inner = [f"({_WITHOUT_SIGN[dtype]}){p}" for p in parts[: 1 if name == "shl" else None]] + list(
            parts[1:] if name == "shl" else []
        )
    text = f"-{inner[0]}" if name == "neg" else f" {_OVERFLOWING[name]} ".join(inner)
    return f"(({TYPES[dtype]})({text}))"


@lru_cache(maxsize=1 << 14)
def _not_negative(e: Expr) -> bool:
    """Whether it is a whole number that signed and unsigned elements of any width have alike."""
    match e:
        case Const(value) | Number(Affine((), value)):
            return isinstance(value, int) and 0 <= value < 128
    return False


def dims_of(e: Expr) -> frozenset[str]:
    """The dimensions that tell what is read."""
    return frozenset(name for part in distinct(e) if isinstance(part, Load) for name in names_in(part))


@lru_cache(maxsize=1 << 12)
def _spelled(e: Expr) -> str:
    return repr(e)


def factors_of(e: Expr) -> tuple[Expr, ...]:
    """What a term multiplies."""
    while isinstance(e, Op) and e.name == "neg":
        e = e.args[0]
    return e.args if isinstance(e, Op) and e.name == "prod" else (e,)


def is_word(text: str) -> bool:
    """Whether a text needs no brackets."""
    return text.isdigit() or text.removeprefix("$").isidentifier()


def is_whole(text: str) -> bool:
    """Whether the first bracket closes at the end."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return at == len(text) - 1
    return False


def bare(text: str) -> str:
    """A text without brackets around all of it."""
    return text[1:-1] if text.startswith("(") and is_whole(text) else text


def _grouped(text: str) -> str:
    return text if is_word(text) or (text.startswith("(") and is_whole(text)) else f"({text})"


def _is_less(e: Expr) -> bool:
    return isinstance(e, Op) and e.name == "neg"


def _as_a_difference(terms: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """``b - a`` for ``-a + b``, which is the same to the bit."""
    swapped = len(terms) > 1 and _is_less(terms[0]) and not _is_less(terms[1])
    return (terms[1], terms[0], *terms[2:]) if swapped else terms


def literal(e: Const) -> str:
    """A literal of its type."""
    if e.dtype == "bool":
        return "true" if e.value else "false"
    if isinstance(e.value, int):
        return _LEAST.get(e.value, str(e.value))
    if math.isnan(e.value):
        return "NAN" if e.dtype == "float32" else f"{TYPES[e.dtype]}(NAN)"
    if math.isinf(e.value):
        return "INFINITY" if e.value > 0 else "-INFINITY"
    if e.dtype in _NARROW:
        return f"{TYPES[e.dtype]}({literal(replace(e, dtype='float32'))})"
    text = repr(e.value) if e.dtype == "float64" else f"{e.value:.9g}"
    text = text if any(c in text for c in ".e") else text + ".0"
    if e.dtype == "float64":
        return text if e.value >= 0 else f"({text})"
    return f"{text}f" if e.value >= 0 else f"({text}f)"


__all__ = ["LONGEST_LINE", "TYPES", "NotPlain", "Writer", "bare", "is_whole", "is_word", "literal"]
