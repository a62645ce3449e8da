"""What lifting leaves of single points: branches that say for the first element what the other branch says too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fsr.computation.canonical import ordered
from fsr.computation.expression import (
    Affine,
    Case,
    Const,
    Expr,
    Fold,
    Op,
    children,
    fixed,
    mapped,
    rebuilt,
)
from fsr.computation.types import CASTS, neutral, type_of

_FRESH = 50  # so deep no fold stands: names of bound dimensions from there on are free


def unpeeled(e: Expr, below: Mapping[str, str] | None = None) -> Expr:
    """The expression without the branches for a dimension's first element that the general branch covers: it says the
    same there, sums of one term and powers of zero written out. ``below``: dimensions that are known to be at most
    another one."""
    below = below or {}
    known: dict[int, Expr] = {}  # what stands in several places is looked at once

    def told(e: Expr) -> Expr:
        if id(e) not in known:
            known[id(e)] = _unpeeled(e, below, told)
        return known[id(e)]

    return told(e)


def _unpeeled(e: Expr, below: Mapping[str, str], beneath: Callable[[Expr], Expr]) -> Expr:
    """The same of one expression; ``beneath``: of those in it, under what is known here."""
    match e:
        case Case(Affine(((a, 1),), 0), Affine(((b, 1),), -1), yes, no):
            return replace(e, yes=beneath(yes), no=unpeeled(no, {**below, a: b}))
    e = rebuilt(e, tuple(map(beneath, children(e))))
    match e:
        case Case(Affine(((name, 1),), 0), Affine((), 0), yes, no):
            first = [at_zero(x, name) for x in (yes, no)]
            if name in below:
                first = [at_zero(x, below[name]) for x in first]
            return no if simplified(first[0]) == simplified(first[1]) else e
    return e


def at_zero(e: Expr, name: str) -> Expr:
    """The expression where a dimension is 0."""
    return fixed(e, {name: 0})


def simplified(e: Expr) -> Expr:
    """The expression with what is known whatever its reads hold (finite) written out, its operands in order."""
    return ordered(_simplified(e))


def _simplified(e: Expr) -> Expr:
    return mapped(e, lambda e, parts: _known(rebuilt(e, parts)))


def _known(e: Expr) -> Expr:
    match e:
        case Fold(op, ((name, Affine((), 1)),), body, False) if op in ("sum", "prod", "max", "min"):
            return _simplified(at_zero(body, name))
        case Case(Affine((), left), Affine((), right), yes, no):
            return yes if left <= right else no
        case Op("select", (Const(value), yes, no)):
            return yes if value else no
        case Op("eq", (Const(one), Const(other))):
            return Const(one == other, "bool")
        case Op("exp", (Const(0.0, dtype),)):
            return Const(1.0, dtype)
        case Op("div", (a, Const(1.0, dtype))) if type_of(a) == dtype:
            return a
        case Op(name, (Const(value, _),)) if name in CASTS and name.startswith("float"):
            return Const(float(value), name)
        case Op("sum" | "prod", _):
            return _joined(e)
    return e


def _joined(e: Op) -> Expr:
    """A sum or product without what changes nothing and, of sums, without terms that cancel."""
    nothing = neutral(e.name, type_of(e))
    left = [a for a in e.args if not (isinstance(a, Const) and a.value == nothing.value)]
    if e.name == "sum" and any(isinstance(a, Op) and a.name == "neg" for a in left):
        told = [ordered(a, _FRESH) for a in left]
        for a in list(told):
            less = ordered(Op("neg", (a,)), _FRESH)
            if a in told and less in told:
                for each in (a, less):
                    del left[told.index(each)]
                    told.remove(each)
    if not left:
        return nothing
    return left[0] if len(left) == 1 else replace(e, args=tuple(left))
