"""Loops that set the beginning of each row (``for (i = 1; i < n; i++) H[i * w] = -i``), in front of the loop over the
rows, as statements at the beginning of the turn that uses the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fsr.analysis.accesses import accesses_in
from fsr.analysis.polynomial import Poly, constant
from fsr.records import Role
from fsr.source.form import Assign, Binary, Call, Comment, Declare, Expr, For, Index, Name, Scope, Stmt, Unary, number
from fsr.source.mapping import substitute
from fsr.source.walk import Block, integer, names_in, nodes, variables, walk_exprs
from fsr.transform.scratch.buffers import Unfit
from fsr.transform.scratch.kept_rows import Reading
from fsr.transform.scratch.row_nests import Nest
from fsr.transform.sizes import always
from fsr.transform.target import Target


@dataclass(frozen=True, slots=True)
class _Split:
    """A loop's statements: those that stay, those that set what belongs to the turn's row; by how much the loop's
    variable is ahead of the variable of the loop over rows."""

    kept: Block
    moved: Block
    ahead: int


def with_starts_in_turns(target: Target, nest: Nest, readings: Mapping[str, Reading]) -> Nest:
    """The statements so. ``readings``: of the buffers of which rows are meant, by parameter. Raises Unfit where a loop
    does more than can be moved."""
    before, heads = list[Stmt](), list[Stmt]()
    for s in nest.before:
        split = _Loop(target, nest, s, readings).split() if isinstance(s, For) and s.type is not None else None
        if split is None or not isinstance(s, For):
            before.append(s)
            continue
        before += _left(target, nest, s, split)
        turn: Expr = Name(nest.loop.var)
        if split.ahead:
            turn = Binary("+" if split.ahead > 0 else "-", turn, number(abs(split.ahead)))
        heads.append(Scope(substitute(split.moved, {s.var: turn})))
    loop = replace(nest.loop, body=(*heads, *nest.loop.body))
    return replace(nest, before=tuple(before), loop=loop)


def _left(target: Target, nest: Nest, loop: For, split: _Split) -> Block:
    """What stays of the loop in front: rows before the first turn's, and statements of something else."""
    first, own = target.poly(nest.loop.start) + constant(split.ahead), target.poly(loop.start)
    if first.value is None or own.value is None or own.value > first.value:
        raise Unfit
    rest: list[Stmt] = []
    if own.value < first.value:
        last = target.poly_text(target.poly(loop.bound) + constant(loop.relation == "<="))
        if last is None or not always(target.contract, f"({last}) >= {first.value}"):
            raise Unfit
        rest.append(replace(loop, relation="<", bound=number(first.value), body=split.moved))
    if any(not isinstance(s, Declare | Comment) for s in split.kept):
        rest.append(replace(loop, body=split.kept))
    return tuple(rest)


class _Loop:
    """One loop in front of the rows."""

    def __init__(self, target: Target, nest: Nest, loop: Stmt, readings: Mapping[str, Reading]) -> None:
        assert isinstance(loop, For)
        self.target, self.nest, self.loop, self.readings = target, nest, loop, readings
        self.of = {name: r for r in readings.values() for name in r.pointers.names}

    def split(self) -> _Split | None:
        """Its statements; None where none sets a row's own. Raises Unfit where that cannot be told."""
        ahead = {self._ahead(s) for s in self.loop.body} - {None}
        if not ahead:
            return None
        by = ahead.pop()
        if ahead or by is None or integer(self.loop.step) != 1 or self.loop.relation not in ("<", "<="):
            raise Unfit
        ends = self._end(self.loop) - self._end(self.nest.loop)
        if ends.value != by:
            raise Unfit
        kept, moved = list[Stmt](), list[Stmt]()
        for s in self.loop.body:
            if isinstance(s, Declare):
                self._check_pure([s.init] if s.init is not None else [])
            if isinstance(s, Declare | Comment):
                kept.append(s)
                moved.append(s)
            elif self._ahead(s) is not None:
                self._check(s)
                moved.append(s)
            else:
                kept.append(s)
        reads = {e.text for s in kept for a in _values(s) for e in nodes(a) if isinstance(e, Name)}
        if reads & set(self.of):
            raise Unfit
        return _Split(tuple(kept), tuple(moved), by)

    def _end(self, loop: For) -> Poly:
        return self.target.poly(loop.bound) + constant(loop.relation == "<=")

    def _ahead(self, s: Stmt) -> int | None:
        """By how much the loop's variable is ahead where a statement writes a row's own; None where it does not."""
        found = set[int]()
        for a in accesses_in((s,), frozenset(self.of)):
            reading = self.of.get(a.array or "")
            if reading is None or not a.writes:
                continue
            place = reading.pointers.place(a)
            each = place.coefficient(self.loop.var)
            if each is None:
                raise Unfit
            if each == reading.stride:
                found.add(reading.shift - reading.rows_in(place.without(self.loop.var)))
        if len(found) > 1:
            raise Unfit
        return found.pop() if found else None

    def _check(self, s: Stmt) -> None:
        """Raises Unfit for a statement that is more than setting elements to what is the same later."""
        match s:
            case Assign(target, "=", value):
                index = [e.index for e in nodes(target) if isinstance(e, Index)]
                self._check_pure([value, *index])
            case For(body=body, type=str()):
                for inner in body:
                    self._check(inner)
                self._check_pure([s.start, s.bound])
            case Declare(init=init):
                self._check_pure([init] if init is not None else [])
            case Comment():
                pass
            case _:
                raise Unfit

    def _check_pure(self, values: Sequence[Expr]) -> None:
        known, functions = self.target.known, self.target.functions
        local = {self.loop.var, *variables(self.loop.body)}
        for e in walk_exprs([Declare("int", "x", v) for v in values]):
            if isinstance(e, Call) and not (isinstance(e.callee, Name) and functions.only_computes(e.callee.text)):
                raise Unfit
            if isinstance(e, Unary) and e.op in ("*", "&"):
                raise Unfit
            if isinstance(e, Index) and not self._stays(e):
                raise Unfit
        if frozenset().union(*map(names_in, values)) & (known.changed - local - set(self.of)):
            raise Unfit
        if local & known.changed:
            raise Unfit

    def _stays(self, e: Index) -> bool:
        """Whether an element is of a row, or of what nobody writes."""
        base = e.base
        if not isinstance(base, Name):
            return False
        argument = self.target.argument(base.text) if base.text in self.target.passed else None
        read_only = argument is not None and argument.role is Role.IN and base.text in self.target.unaliased
        return base.text in self.of or read_only


def _values(s: Stmt) -> list[Expr]:
    """What a statement reads."""
    match s:
        case Declare(init=init):
            return [] if init is None else [init]
        case Assign(target, _, value):
            return [value, *(e.index for e in nodes(target) if isinstance(e, Index))]
    return list(walk_exprs((s,)))
