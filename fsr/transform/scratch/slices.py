"""Where an index of a buffer lies that is cut into slices of one length: in which slice, and how far into it.

``(size_t)tid * n + n - 1 - i`` is element ``n - 1 - i`` of slice ``tid``, where slices have ``n`` elements. The parts
are the source's own expressions, so that casts stay where they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

from fsr.analysis.accesses import declared_arrays
from fsr.analysis.calls import is_pure_name
from fsr.analysis.types import is_integer
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import parse
from fsr.source.form import Assign, Binary, Call, Cast, Declare, Expr, For, Index, Literal, Name, Unary
from fsr.source.mapping import map_expr
from fsr.source.walk import identifiers, integer, names_in, walk_stmts
from fsr.transform.scratch.verbatim import without_what_is_read
from fsr.transform.sizes import always
from fsr.transform.target import Target

_LANES = frozenset(f"threadIdx.{axis}" for axis in "xyz")
_IDS = _LANES | frozenset(f"blockIdx.{axis}" for axis in "xyz")
_MOST_FACTORS, _DEEPEST = 6, 4


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices of a buffer: how many elements each has, and how many there are, as size expressions. An element is as
    many of the buffer's as a vector has ``lanes``."""

    length: str
    count: str
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a buffer: element ``offset`` (None: 0) of slice ``number``."""

    number: Expr
    offset: Expr | None


def slices_of(contract: Contract, elements: str, length: str) -> Slices | None:
    """The slices of a buffer of so many elements; None where it is not cut into whole ones at all sizes."""
    try:
        factors = _factors(parse(elements))
    except ContractError:
        return None
    count = f"({elements}) // ({length})"
    for chosen in _subsets(factors):
        if same(contract, " * ".join(f"({factors[i]})" for i in chosen), length):
            rest = [f for i, f in enumerate(factors) if i not in chosen]
            count = " * ".join(f if len(rest) == 1 or _is_operand(f) else f"({f})" for f in rest) or "1"
            break
    return Slices(length, count) if same(contract, f"({count}) * ({length})", elements) else None


def same(contract: Contract, one: str, other: str) -> bool:
    """Whether two size expressions are equal at all sizes."""
    return one == other or always(contract, f"({one}) == ({other})")


def _factors(node: ast.expr) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [ast.unparse(node)]


def _is_operand(text: str) -> bool:
    return re.fullmatch(r"\w+|\w+\([^()]*\)", text) is not None


def _subsets(items: Sequence[object]) -> Iterator[tuple[int, ...]]:
    """The sets of places in a short list, small ones first."""
    for size in range(1, min(len(items), _MOST_FACTORS) + 1):
        yield from combinations(range(len(items)), size)


@dataclass(frozen=True, slots=True)
class _Term:
    """A product with a sign: its factors that tell threads apart, and the others."""

    sign: int
    own: tuple[Expr, ...]
    rest: tuple[Expr, ...]

    def __mul__(self, other: _Term) -> _Term:
        return _Term(self.sign * other.sign, self.own + other.own, self.rest + other.rest)

    def __neg__(self) -> _Term:
        return _Term(-self.sign, self.own, self.rest)


class Slicing:
    """The indices of one kernel taken apart."""

    def __init__(self, target: Target) -> None:
        self.target = target = replace(target, kernel=without_what_is_read(target.kernel))
        self.ids = _IDS | _made_from(target, _IDS)
        self._lanes = _LANES | _made_from(target, _LANES)

    def lengths(self, index: Expr) -> Iterator[str]:
        """The lengths that slices may have by an index: what the number of a thread is multiplied by."""
        for terms in self._ways(index):
            for term in terms:
                text = self._size(term.rest) if any(map(self.tells_lanes_apart, term.own)) else None
                if text is not None:
                    yield text

    def place(self, index: Expr, length: str) -> Place | None:
        """The place of an index; None where it cannot be told."""
        return next((p for terms in self._ways(index) if (p := self._place(terms, length)) is not None), None)

    def tells_threads_apart(self, e: Expr) -> bool:
        """Whether an index is made from the number of a thread."""
        return not self.ids.isdisjoint(identifiers(_without_memory(e)))

    def tells_lanes_apart(self, e: Expr) -> bool:
        """Whether an index is made from the number of a thread in its block."""
        return not self._lanes.isdisjoint(identifiers(_without_memory(e)))

    def is_offset(self, e: Expr, length: str) -> bool:
        """Whether nothing shows that an offset to a place in a slice leads into another slice."""
        terms = self._terms(e, spread=True)
        if any(t.own or self._divided(t.rest, length) for t in terms):
            return False
        return self._stays_inside([(t.sign, t.rest) for t in terms], length)

    def stays(self, e: Expr) -> bool:
        """Whether an expression has the same value wherever it stands."""
        return not names_in(e) & (self.target.known.changed | self.target.known.loops) and e == _without_memory(e)

    # ------------------------------------------------------------ sums of products

    def _ways(self, index: Expr) -> Iterator[list[_Term]]:
        """The index as a sum, with as little written out as may be first."""
        for _ in range(_DEEPEST):
            yield self._terms(index, spread=False)
            yield self._terms(index, spread=True)
            new = self._written_out(index)
            if new == index:
                return
            index = new

    def _written_out(self, index: Expr) -> Expr:
        """With the variables that tell threads apart as what they were set to."""
        values = self.target.known.values
        return map_expr(index, lambda e: values.get(e.text, e) if isinstance(e, Name) and e.text in self.ids else e)

    def _terms(self, e: Expr, spread: bool) -> list[_Term]:
        """``spread``: whether sums with a thread's number in them are multiplied out."""
        match e:
            case Binary("+", left, right):
                return self._terms(left, spread) + self._terms(right, spread)
            case Binary("-", left, right):
                return self._terms(left, spread) + [-t for t in self._terms(right, spread)]
            case Unary("-", operand):
                return [-t for t in self._terms(operand, spread)]
            case Binary("*", left, right):
                sides = self._factor(left, spread), self._factor(right, spread)
                return [a * b for a in sides[0] for b in sides[1]]
            case Binary("<<", left, right) if (shift := integer(right)) is not None and 0 <= shift < 31:
                two = _Term(1, (), (Literal(str(1 << shift)),))
                return [a * two for a in self._factor(left, spread)]
            case Cast(kind, Binary() as operand) if is_integer(kind) and self.tells_threads_apart(operand):
                return self._terms(operand, spread)
        return [self._atom(e)]

    def _factor(self, e: Expr, spread: bool) -> list[_Term]:
        """A factor as a sum: of one term, unless it is to be multiplied out."""
        inside = e.operand if isinstance(e, Cast) and is_integer(e.type) else e
        product = isinstance(inside, Binary) and inside.op in ("*", "<<")
        if product or (spread and self.tells_threads_apart(e)):
            return self._terms(inside if product else e, spread)
        return [self._atom(e)]

    def _atom(self, e: Expr) -> _Term:
        return _Term(1, (e,), ()) if self.tells_threads_apart(e) else _Term(1, (), (e,))

    # ------------------------------------------------------------ number and offset

    def _place(self, terms: list[_Term], length: str) -> Place | None:
        numbers: list[tuple[int, Sequence[Expr]]] = []
        offsets: list[tuple[int, Sequence[Expr]]] = []
        for term in terms:
            rest = self._divided(term.rest, length)
            if rest is not None and (rest or term.own):
                numbers.append((term.sign, (*term.own, *rest)))
            elif term.own:
                return None
            else:
                offsets.append((term.sign, term.rest))
        if not numbers or not self._stays_inside(offsets, length):
            return None
        return Place(_sum(numbers), _sum(offsets) if offsets else None)

    def _divided(self, factors: Sequence[Expr], length: str) -> tuple[Expr, ...] | None:
        """A product divided by the length; None where that is no product of some of its factors."""
        for chosen in _subsets(factors):
            text = self._size([factors[i] for i in chosen])
            if text is not None and same(self.target.contract, text, length):
                return tuple(f for i, f in enumerate(factors) if i not in chosen)
        return None

    def _stays_inside(self, offsets: list[tuple[int, Sequence[Expr]]], length: str) -> bool:
        """Whether what is known of an offset leads into no other slice. (Its end is in the one behind.)"""
        known = [(sign, text) for sign, factors in offsets if (text := self._size(factors)) is not None]
        total = " ".join(f"{'+' if sign > 0 else '-'} ({text})" for sign, text in known) or "+ 0"
        ends = f"0 {total} >= -max({length}, 1)", f"0 {total} <= max({length}, 0)"
        return all(always(self.target.contract, end) for end in ends)

    def _size(self, factors: Sequence[Expr]) -> str | None:
        return self.target.size_text(_product(factors)) if factors else None


def _product(factors: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: Binary("*", a, b), factors)


def _sum(terms: list[tuple[int, Sequence[Expr]]]) -> Expr:
    """Positive terms first, where there is one."""
    terms = sorted(terms, key=lambda t: t[0] < 0)
    first, total = terms[0], _product(terms[0][1])
    if first[0] < 0:
        total = Unary("-", total)
    for sign, factors in terms[1:]:
        total = Binary("+" if sign > 0 else "-", total, _product(factors))
    return total


def _without_memory(e: Expr) -> Expr:
    """With nothing in it that is read from memory, or found out by a function."""
    return map_expr(e, lambda x: Literal("0") if isinstance(x, Index) or _is_told(x) else x)


def _is_told(e: Expr) -> bool:
    return isinstance(e, Call) and not (isinstance(e.callee, Name) and is_pure_name(e.callee.text))


def _made_from(target: Target, ids: frozenset[str]) -> frozenset[str]:
    """The variables that are made from some ids."""
    made, arrays = list[tuple[str, Expr]](), declared_arrays(target.kernel.body)
    for s in walk_stmts(target.kernel.body):
        match s:
            case Declare(type=type_, name=name, init=init) if init is not None and "*" not in type_:
                made.append((name, init))
            case Assign(target=Name(name), value=value) if name not in arrays:
                made.append((name, value))
            case For(type=type_, var=name, start=start) if "*" not in (type_ or ""):
                made.append((name, start))
    of, found = [(name, identifiers(_without_memory(e))) for name, e in made], frozenset[str]()
    while True:
        more = {name for name, used in of if not (found | ids).isdisjoint(used)}
        if more <= found:
            return found
        found |= more
