"""Factors of which the contract tells that those of many turns multiplied are within the range of a double."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fsr.source.form import Binary, Cast, Declare, Expr, Index, Literal, Name, Ternary, Unary
from fsr.source.mapping import substitute
from fsr.source.walk import Block, subexprs
from fsr.transform.target import Target

_MOST = 1e4  # the product of two of these, to the power of as many lanes as a warp has
_OPERATORS = ("+", "-", "*")


def is_moderate(factor: Expr, made: Block, target: Target, is_whole: Callable[[str], bool]) -> bool:
    """Whether a factor is a sum or a product of what the contract limits. ``made``: declarations that it is made by;
    ``is_whole``: whether a variable or an array's elements are whole numbers of a word."""
    local = {s.name: s.init for s in made if isinstance(s, Declare) and s.init is not None}
    for _ in (*local, ""):
        factor = substitute(factor, local)
    parts = list(_parts(target.known.expand(factor)))
    return all(_is_plain(x) for x in parts) and all(
        is_whole(name) or _is_limited(target, name) for x in parts for name in _named(x)
    )


def _parts(e: Expr) -> Iterator[Expr]:
    """What a value is computed of: nothing of an index, or of a test."""
    yield e
    inner = () if isinstance(e, Index) else (e.yes, e.no) if isinstance(e, Ternary) else subexprs(e)
    for part in inner:
        yield from _parts(part)


def _is_plain(e: Expr) -> bool:
    match e:
        case Binary(op) | Unary(op):
            return op in _OPERATORS and not (op == "*" and isinstance(e, Unary))
        case Index(Name(), _) | Cast() | Literal() | Name() | Ternary():
            return True
    return False


def _named(e: Expr) -> tuple[str, ...]:
    """The variable or the array that a part is."""
    match e:
        case Name(text) | Index(Name(text), _):
            return (text,)
    return ()


def _is_limited(target: Target, name: str) -> bool:
    found = target.argument(name)
    limits = () if found is None else (found.constraints.low, found.constraints.high)
    return bool(limits) and all(text is not None and _is_small(text) for text in limits)


def _is_small(text: str) -> bool:
    try:
        return abs(float(text)) <= _MOST
    except ValueError:
        return False
