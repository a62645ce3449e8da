"""Folds as text: where they begin, one step, and how threads' partial results come together."""

from __future__ import annotations

import math

from fsr.computation.computation import Statement
from fsr.computation.expression import PLACES, Affine, Const, Expr, Fold, Number, Op, children, distinct, rebuilt
from fsr.computation.types import type_of
from fsr.transform.computed.parts import Part, name_of, value_of
from fsr.transform.plain.c_text import TYPES, NotPlain

_FLOATS = {"float32": ("0.0f", "1.0f"), "float64": ("0.0", "1.0")}
_TYPES = (*_FLOATS, "int32", "int64")
NEUTRAL = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}  # what changes nothing
OPERATORS = {"sum": "sum", "prod": "product", "max": "max", "min": "min"}  # as fsr.transform.collectives calls them


def folds_in(e: Expr) -> list[Fold]:
    """The outermost folds of an expression, each once."""
    return list(dict.fromkeys(x for x in distinct(e) if isinstance(x, Fold)))


def one_fold(part: Part, *, several: bool = False) -> tuple[Statement, Fold] | None:
    """The output of a part that has one, an element a point, and the fold that stands in it; None where there is not
    one, or it cannot be written. ``several``: see :func:`checked`."""
    if len(part.outputs) != 1:
        return None
    output = part.whole[0]
    folds = folds_in(value_of(output))
    if len(folds) != 1 or [name_of(i) for i in output.place] != [n for n, _ in part.domain]:
        return None
    try:
        return output, checked(folds[0], several=several)
    except NotPlain:
        return None


def best(fold: Fold) -> tuple[Expr, str]:
    """The value that an extreme's place is told by, as a type that is compared plainly, and the helpers' name for
    joining both. Raises NotPlain where the fold is no place along its one dimension."""
    match fold:
        case Fold("argmax" | "argmin", ((name, _),), Op("pair", (value, Number() as place)), False):
            narrow = type_of(value) in ("float16", "bfloat16")
            value = Op("float32", (value,)) if narrow else value
            if name_of(place) == name and type_of(value) in _FLOATS and not folds_in(value):
                return value, f"{'greatest' if fold.op == 'argmax' else 'least'}_at"
    raise NotPlain(f"a place by {fold.op}")


def begun(fold: Fold, result: str) -> list[str]:
    """Declarations of a fold's result before the first value; of a place, with the value there."""
    if fold.op in OPERATORS:
        return [f"{c_type(fold)} {result} = {identity(fold)};"]
    return [f"{TYPES[type_of(best(fold)[0])]} {result}_best = {identity(fold)};", f"{c_type(fold)} {result} = 0;"]


def compared(fold: Fold) -> tuple[Expr, str]:
    """What one step of a fold takes in, and the name of the place beside it; '' for one that is no extreme's place.
    Raises NotPlain where it cannot be written."""
    if fold.op not in PLACES:
        return checked(fold).body, ""
    return best(fold)[0], fold.dims[0][0]


def without(e: Expr, fold: Fold) -> Expr:
    """The expression with a fold as a value that is at hand."""
    return Const(0.0, type_of(fold)) if e == fold else rebuilt(e, tuple(without(p, fold) for p in children(e)))


def checked(fold: Fold, *, several: bool = False) -> Fold:
    """The fold, if it is one dimension's sum, product, maximum or minimum of a type that has one; with ``several``, or
    that of more dimensions. Raises NotPlain."""
    dtype = type_of(fold)
    if fold.op not in OPERATORS or fold.inside or (len(fold.dims) != 1 and not several) or dtype not in _TYPES:
        raise NotPlain(f"a fold by {fold.op} of {dtype}")
    if any(isinstance(e, Fold) for e in distinct(fold.body)) or (fold.op in ("max", "min") and dtype not in _FLOATS):
        raise NotPlain("a fold of folds")
    return fold


def extent(fold: Fold) -> Affine:
    """How far the one dimension goes."""
    return fold.dims[0][1]


def c_type(fold: Fold) -> str:
    """The C type of the result."""
    return TYPES[type_of(fold)]


def identity(fold: Fold) -> str:
    """The literal that changes nothing; of a place, the value there."""
    if fold.op in ("max", "min", *PLACES):
        return "-INFINITY" if fold.op.endswith("max") else "INFINITY"
    at = 0 if fold.op == "sum" else 1
    return _FLOATS.get(type_of(fold), ("0", "1"))[at]


def step(fold: Fold, result: str, value: str, place: str = "", *, rising: bool = True, best: str = "") -> str:
    """The statement that takes one more value in; of places, the first of equal values' stays. ``rising``: whether they
    come in order. ``best``: where the value of a place's result is, if not beside it."""
    if place:
        best = best or f"{result}_best"
        test = f"{value} {'>' if fold.op == 'argmax' else '<'} {best}"
        test += "" if rising else f" || ({value} == {best} && {place} < {result})"
        return f"if ({test}) {{ {best} = {value}; {result} = {place}; }}"
    if fold.op in ("sum", "prod"):
        return f"{result} {'+' if fold.op == 'sum' else '*'}= {value};"
    call = f"f{fold.op}{'f' if type_of(fold) == 'float32' else ''}"
    return f"{result} = {call}({result}, {value});"
