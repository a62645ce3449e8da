"""Executing a computation with NumPy: in the source's own types, or in float64.

It shares no line with the kernel that the computation was lifted from, nor with the devices that run kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fsr.computation.computation import KEPT, Buffer, Computation, Statement
from fsr.computation.expression import (
    Affine,
    Carried,
    Case,
    Const,
    Expr,
    Fold,
    Index,
    Load,
    Number,
    Op,
    Recurrence,
    Remainder,
    affine,
    children,
    distinct,
    names_in,
    rebuilt,
    renamed,
)  # fmt: skip
from fsr.computation.repeated import Repeated
from fsr.computation.types import type_of
from fsr.expressions import evaluate_int
from fsr.hardware.dtypes import is_float, numpy_dtype

Array = np.ndarray[Any, Any]
MOST_POINTS = 1 << 22


class NoMeaning(Exception):  # noqa: N818
    """A computation that cannot be executed; the message says which part."""


class TooLarge(NoMeaning):
    """More points than are worth executing here."""


def interpret(
    c: Computation, sizes: Mapping[str, int], inputs: Mapping[str, Array], *, wide: bool = False
) -> dict[str, Array]:
    """The outputs: buffers that statements write and the contract has. ``inputs``: initial contents of every buffer
    (shaped as the computation has it) and scalar that is read or asked for, and of outputs where not all elements are
    written. ``wide``: all floating values are float64. Raises NoMeaning."""
    sizes = _with_flags(c, sizes, inputs)
    memory = {name: _opened(value, wide) for name, value in inputs.items()}
    before = dict(memory)  # a statement of the contract's own reads a buffer as it was given
    made: dict[str, Array] = {}
    for s in c.statements:
        shape = tuple(evaluate_int(x, sizes) for x in c.buffer(s.target).shape)
        state = {**before, **{name: a for name, a in made.items() if name.startswith(("_", KEPT))}}
        start = made.get(s.target, memory.get(s.target))
        made[s.target] = _executed(s, _Evaluator(dict(sizes), state, wide), shape, start)
    return {name: made[name] for name in c.outputs}


def interpret_at(
    c: Computation, sizes: Mapping[str, int], inputs: Mapping[str, Array], target: str, at: Sequence[Array], *,
    wide: bool = False,
) -> Array:  # fmt: skip
    """Some elements of an output, as :func:`interpret` would have them: ``at`` are their indices, an array a dimension,
    all of one length. Raises NoMeaning."""
    (s,) = (s for s in c.statements if s.target == target)
    if s.value is None or s.kind == "scatter" or not all(isinstance(p, Number) for p in s.place):
        raise NoMeaning(f"{target} is opaque, or data decides where its elements go")
    run = _Evaluator(
        _with_flags(c, sizes, inputs), {name: _opened(value, wide) for name, value in inputs.items()}, wide
    )
    run.axes = 1
    run.dims = {name: index for (name, _), index in zip(s.domain, at, strict=True)}
    made = (k for k in c.statements if k.target.startswith(KEPT))
    run.kept = {
        k.target: (replace(k, value=inlined(c, k.value)), c.buffer(k.target)) for k in made if k.value is not None
    }
    return np.broadcast_to(run.body(inlined(c, s.value)), at[0].shape if at else (1,))


def _with_flags(c: Computation, sizes: Mapping[str, int], inputs: Mapping[str, Array]) -> dict[str, int]:
    """The sizes, the scalars that a computation names as it does sizes, and the expressions of sizes among its own."""
    known = {**{name: int(inputs[name]) for name in c.sizes if name not in sizes and name in inputs}, **sizes}
    return {**{text: evaluate_int(text, known) for text in c.sizes if not text.isidentifier()}, **known}


def inlined(c: Computation, e: Expr) -> Expr:
    """An expression with what statements make for it in place of their reads."""
    e = rebuilt(e, tuple(inlined(c, part) for part in children(e)))
    made = next((s for s in c.statements if isinstance(e, Load) and s.target == e.buffer), None)
    if not isinstance(e, Load) or made is None or not e.buffer.startswith("_"):
        return e
    if made.value is None or not all(isinstance(i, Number) and isinstance(i.index, Affine) for i in e.indices):
        raise NoMeaning(f"{e.buffer} is opaque")
    bound = [n for x in distinct(made.value) if isinstance(x, Fold) for n, _ in x.dims]
    bound += [x.dim for x in distinct(made.value) if isinstance(x, Recurrence)]
    names = {n: f"{n} of {e.buffer}" for n in bound}
    for (dim, _), i in zip(made.domain, e.indices, strict=True):
        assert isinstance(i, Number)
        assert isinstance(i.index, Affine)
        if len(i.index.terms) != 1 or i.index.constant or i.index.terms[0][1] != 1:
            raise NoMeaning(f"{e.buffer} is read at another place")
        names[dim] = i.index.terms[0][0]
    return inlined(c, renamed(made.value, lambda n: names.get(n, n)))


def _opened(value: Array, wide: bool) -> Array:
    if is_float(value.dtype):
        return value.astype(np.float64) if wide else value
    return value.view(f"i{value.dtype.itemsize}") if value.dtype.kind == "u" else value


def _executed(s: Statement, run: _Evaluator, shape: tuple[int, ...], start: Array | None) -> Array:
    if s.value is None:
        raise NoMeaning(f"{s.target} is opaque")
    for name, extent in s.domain:
        run.add_axis(name, evaluate_int(extent, run.sizes))
    value = run.body(s.value)
    dtype = np.dtype(np.float64) if run.wide and is_float(value.dtype) else numpy_dtype(type_of(s.value))
    full = tuple(reversed([evaluate_int(extent, run.sizes) for _, extent in s.domain]))
    value = np.broadcast_to(value, full).astype(dtype)
    at = tuple(np.broadcast_to(run.value(p), full) for p in s.place)
    result = np.zeros(shape, dtype) if start is None else start.astype(dtype).reshape(shape).copy()
    if any(((p < 0) | (p >= n)).any() for p, n in zip(at, shape, strict=True)):
        raise NoMeaning(f"{s.target} is written outside of its bounds")
    if s.combine:
        {"+": np.add, "max": np.maximum, "min": np.minimum}[s.combine].at(result, at, value)
    else:
        result[at] = value
    return result


class _Evaluator:
    """Values as arrays: a dimension is an axis, the first added is the last axis. ``kept``: statements whose values
    are computed where they are read, as those that are not asked for may be many."""

    def __init__(self, sizes: dict[str, int], memory: Mapping[str, Array], wide: bool) -> None:
        self.sizes, self.memory, self.wide = sizes, memory, wide
        self.dims: dict[str, Array] = {}
        self.masks: list[Array] = []
        self.kept: Mapping[str, tuple[Statement, Buffer]] = {}
        self.axes = 0
        self.carried: Array | None = None
        self.inside: list[Array] | None = None  # where reads are within their buffers, while a clipped fold collects it
        self._kept = Repeated()

    def add_axis(self, name: str, extent: int) -> int:
        """A dimension from 0 on; answers its axis from the right."""
        self.dims[name] = np.arange(extent).reshape(extent, *(1,) * self.axes)
        self.axes += 1
        return self.axes

    def affine(self, a: Affine) -> Array:
        total: Array = np.array(a.constant)
        for name, k in a.terms:
            total = total + k * (self.dims[name] if name in self.dims else self.sizes[name])
        return total

    def index(self, index: Index) -> Array:
        if isinstance(index, Affine):
            return self.affine(index)
        by = self.sizes[index.by] if isinstance(index.by, str) else index.by
        value = self.affine(index.value)
        return value % by if isinstance(index, Remainder) else value // by

    def dtype(self, name: str) -> np.dtype[Any]:
        found = numpy_dtype(name)
        return np.dtype(np.float64) if self.wide and is_float(found) else found

    def value(self, e: Expr) -> Array:
        """An expression's values; of what a body says several times they are computed once."""
        return self._kept.of(e, lambda: self._value(e))

    def body(self, e: Expr) -> Array:
        """As value, of what other dimensions stand around: nothing that is known elsewhere is known there."""
        around, self._kept = self._kept, Repeated(e)
        try:
            return self.value(e)
        finally:
            self._kept = around

    def _value(self, e: Expr) -> Array:
        match e:
            case Const(value, dtype):
                return np.array(value, self.dtype(dtype))
            case Number(index, dtype):
                return self.index(index).astype(self.dtype(dtype))
            case Load():
                return self._load(e)
            case Fold():
                return self._fold(e)
            case Case(left, right, yes, no):
                return np.where(self.affine(left) <= self.affine(right), self.value(yes), self.value(no))
            case Recurrence():
                return self._recurrence(e)
            case Carried():
                assert self.carried is not None
                return self.carried
            case Op(name, args):
                return self._operation(name, [self.value(a) for a in args])
        raise AssertionError(e)

    def _load(self, e: Load) -> Array:
        kept = self.kept.get(e.buffer)
        shape = self.memory[e.buffer].shape if kept is None else self._shape(kept[1])
        places = [self.value(part) for part in e.indices]
        at, inside = [], np.array(True)
        for place, size in zip(_carried(places, shape) if e.carries else places, shape, strict=True):
            inside = inside & (place >= 0) & (place < size)
            at.append(np.clip(place, 0, max(size - 1, 0)))
        if self.inside is not None:
            self.inside.append(inside)
        if 0 in shape:
            held = self.memory[e.buffer].dtype if kept is None else self.dtype(e.dtype)
            return np.zeros(np.broadcast_shapes(*(a.shape for a in at)), held)
        value = np.asarray(self.memory[e.buffer][tuple(at)]) if kept is None else self._made(kept[0], at)
        return value if inside.all() else np.where(inside, value, _outside(value.dtype))

    def _shape(self, buffer: Buffer) -> tuple[int, ...]:
        return tuple(evaluate_int(x, self.sizes) for x in buffer.shape)

    def _made(self, s: Statement, at: Sequence[Array]) -> Array:
        """What a statement makes for these elements, of those that are each written at its own place."""
        own = all(isinstance(p, Number) and p.index == affine(d) for p, (d, _) in zip(s.place, s.domain, strict=True))
        if s.value is None or s.kind == "scatter" or not own:
            raise NoMeaning(f"{s.target} is opaque, or data decides where its elements go")
        around = self.dims, self.inside, self.carried
        self.dims = {d: place for (d, _), place in zip(s.domain, at, strict=True)}
        self.inside = self.carried = None
        found = self.body(s.value)
        self.dims, self.inside, self.carried = around
        return found

    def _fold(self, e: Fold) -> Array:
        axes, within, around = self.axes, np.array(True), dict(self.dims)
        for name, extent in e.dims:
            lengths = self.affine(extent)
            if lengths.size:
                self.add_axis(name, max(0, int(lengths.max())))
            else:
                self.add_axis(name, 0)
            within = within & (self.dims[name] < lengths)
        over_dims = names_in(e.body) | {n for n, _ in e.dims}
        points = np.broadcast_shapes(within.shape, *(self.dims[n].shape for n in over_dims if n in self.dims))
        if math.prod(points) > MOST_POINTS:  # before they are made
            raise TooLarge("a fold over too many points")
        held, self.inside = self.inside, [] if e.inside else None
        pair = e.op in ("argmax", "argmin")
        body = self.body(e.body.args[0] if pair and isinstance(e.body, Op) else e.body)
        for inside in self.inside or ():
            within = within & inside
        self.inside = held
        place = self.body(e.body.args[1]) if pair and isinstance(e.body, Op) else None
        shape = np.broadcast_shapes(body.shape, within.shape, *(self.dims[n].shape for n, _ in e.dims))
        over = tuple(range(len(shape) - self.axes, len(shape) - axes))
        found = _reduced(e.op, np.broadcast_to(body, shape), np.broadcast_to(within, shape), over, place)
        self.axes, self.dims = axes, around
        return found

    def _recurrence(self, e: Recurrence) -> Array:
        held, lengths = self.carried, self.affine(e.extent)
        value = self.value(e.start)
        for step in range(int(lengths.max()) if lengths.size else 0):
            self.dims[e.dim] = np.array(step)
            self.carried = value
            value = np.where(step < lengths, self.body(e.step), value)
        self.dims.pop(e.dim, None)
        self.carried = held
        return value

    def _operation(self, name: str, args: Sequence[Array]) -> Array:
        if name in ("sum", "prod", "max", "min"):
            total = args[0]
            for a in args[1:]:
                total = _JOIN[name](total, a)
            return total
        if name.startswith("zext_"):
            return args[0].view(f"u{args[0].dtype.itemsize}").astype(numpy_dtype(name[5:]))
        if name in _CASTS:
            target = self.dtype(name)
            return (
                np.trunc(args[0]).astype(np.int64).astype(target)
                if args[0].dtype.kind == "f" and target.kind == "i"
                else args[0].astype(target)
            )
        function = _FUNCTIONS.get(name)
        if function is None:
            raise NoMeaning(f"{name} has no meaning here")
        found = function(*args)
        return np.asarray(found).astype(args[-1].dtype) if name in _IN_DOUBLE else np.asarray(found)


def _carried(places: Sequence[Array], shape: Sequence[int]) -> list[Array]:
    """Indices of the same elements, each but the first within its row."""
    found, turns = list[Array](), np.array(0)
    for place, size in reversed(list(zip(places, shape, strict=True))[1:]):
        found.append((place + turns) % max(size, 1))
        turns = (place + turns) // max(size, 1)
    return [*(place + turns for place in places[:1]), *reversed(found)]


def _outside(dtype: np.dtype[Any]) -> Array:
    """What lies outside of a buffer: nothing that a right computation lets through."""
    if is_float(dtype):
        return np.array(np.nan, dtype)
    return np.array(0x5B if dtype.itemsize == 1 else 0x5BA1, np.int64).astype(dtype)


def _reduced(op: str, body: Array, within: Array, over: tuple[int, ...], place: Array | None) -> Array:
    """A fold along axes, which go."""
    if op in ("argmax", "argmin"):
        assert place is not None
        best = np.where(within, body, -np.inf if op == "argmax" else np.inf)
        flat = np.moveaxis(best, over, range(len(over))).reshape(
            -1, *(n for d, n in enumerate(best.shape) if d not in over)
        )
        places = np.moveaxis(np.broadcast_to(place, body.shape), over, range(len(over))).reshape(flat.shape)
        found = flat.argmax(0) if op == "argmax" else flat.argmin(0)
        return np.asarray(np.take_along_axis(places, found[None], 0)[0])
    neutral: Any = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf}[op]
    if body.dtype.kind in "iub" and op in ("max", "min"):
        info = np.iinfo(body.dtype) if body.dtype.kind != "b" else None
        neutral = (info.min if op == "max" else info.max) if info else op == "min"
    filled = np.where(within, body, np.array(neutral, body.dtype))
    if op in ("sum", "prod"):
        return np.asarray((np.add if op == "sum" else np.multiply).reduce(filled, axis=over, dtype=filled.dtype))
    if 0 in filled.shape:
        return np.full([n for d, n in enumerate(filled.shape) if d not in over], neutral, body.dtype)
    return np.asarray(filled.max(over) if op == "max" else filled.min(over))


def _whole_quotient(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, 1, b)
    return np.asarray(np.sign(a) * np.sign(safe) * (np.abs(a) // np.abs(safe))).astype(a.dtype)


def _logical(a: Array, b: Array) -> Array:
    bits = f"u{a.dtype.itemsize}"
    return np.asarray(np.where(b != 0, a.view(bits) >> b.astype(bits), a.view(bits))).astype(a.dtype)


def _counted(a: Array) -> Array:
    return np.asarray(np.bitwise_count(a.view(f"u{a.dtype.itemsize}"))).astype(a.dtype)


def _each(function: Callable[..., float]) -> Callable[..., Array]:
    return np.vectorize(function, otypes=[np.float64])


_JOIN: dict[str, Callable[[Array, Array], Array]] = {
    "sum": np.add, "prod": np.multiply, "max": np.fmax, "min": np.fmin,
}  # fmt: skip
_CASTS = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "bool")
_IN_DOUBLE = ("erf", "erfc", "lgamma", "tgamma")
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "div": np.divide, "inv": np.reciprocal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal, "not": np.logical_not, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b, "select": np.where, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a),
    "cbrt": np.cbrt, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "pow": np.power, "fabs": np.abs,
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "round": lambda a: np.sign(a) * np.floor(np.abs(a) + 0.5), "fmod": np.fmod, "hypot": np.hypot,
    "copysign": np.copysign, "erf": _each(math.erf), "erfc": _each(math.erfc), "lgamma": _each(math.lgamma),
    "tgamma": _each(math.gamma), "idiv": _whole_quotient, "irem": lambda a, b: a - _whole_quotient(a, b) * b,
    "shl": np.left_shift, "ashr": np.right_shift, "lshr": _logical, "freeze": lambda a: a,
    "ctpop": _counted, "isnan": np.isnan,
}  # fmt: skip
