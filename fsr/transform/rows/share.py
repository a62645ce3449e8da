"""Emitting a row's work for a group of threads: loops strided by lane, folds combined, stores by the leader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fsr.analysis.operators import OPERATORS
from fsr.analysis.parallel import ParallelLoop
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Literal,
    Member,
    Name,
    Scope,
    Stmt,
    While,
    number,
)
from fsr.source.walk import BARRIER, integer, is_zero, names_mentioned, without_casts
from fsr.transform.rows.units import Unit


@dataclass(frozen=True, slots=True)
class Group:
    """The threads that share a row: ``size`` of them out of a block of ``threads``; ``lane`` names the variable
    that numbers them."""

    size: int
    threads: int
    lane: str

    @property
    def is_warp(self) -> bool:
        """Whether the group is one warp, or lanes of one."""
        return self.size <= 32

    def barrier(self) -> Stmt:
        """All threads of the group meet, and see one another's writes."""
        assert self.size >= 32, "lanes of a warp that other lanes have left do not meet"
        if self.is_warp:
            return ExprStmt(Call(Name("__syncwarp"), ()))
        return BARRIER

    @property
    def mask(self) -> Expr:
        """The lanes of the group in their warp, of fewer than it has, along x."""
        x = Member(Name("threadIdx"), "x")
        first = Binary("*", Binary("/", Binary("%", x, number(32)), number(self.size)), number(self.size))
        return Binary("<<", Literal(f"{(1 << self.size) - 1:#x}u"), first)

    def helper(self, operator: str) -> str:
        """The device function that folds one value a thread."""
        return f"fsr_{'lanes' if self.size < 32 else 'warp' if self.is_warp else 'block'}_{operator}"

    def fold(self, operator: str, *values: Expr) -> Expr:
        """The call that folds a value of each thread (or an extreme and its place, both by reference); every thread
        gets the result."""
        return Call(Name(self.helper(operator)), values, () if self.size == 32 else (str(self.size),))


def plus(left: Expr, right: Expr) -> Expr:
    """A sum, with zeros left out."""
    if integer(left) == 0:
        return right
    return left if integer(right) == 0 else Binary("+", left, right)


def times(left: Expr, right: Expr) -> Expr:
    """A product, with ones left out."""
    if integer(left) == 1:
        return right
    return left if integer(right) == 1 else Binary("*", left, right)


def folding(
    split: ParallelLoop, body: Iterable[Stmt], before: Sequence[Stmt], types: dict[str, str], group: Group
) -> list[Stmt]:
    """``body`` (the shared loop) with what each of its folds needs before and after.

    ``before``: the statements in front of it; where one sets a sum to zero, and no later one mentions it, that zero
    need not be kept.
    """
    ahead: list[Stmt] = []
    behind: list[Stmt] = []
    for name, operator in split.folds.items():
        identity = OPERATORS[operator].identity
        folded = group.fold(operator, Name(name))
        if identity is None or (identity == "0" and set_to_zero(name, before)):
            behind.append(Assign(Name(name), "=", folded))
        else:
            kept = f"{name}_before"
            ahead += [Declare(f"const {types[name]}", kept, Name(name)), Assign(Name(name), "=", Literal(identity))]
            sign = {"product": "*", "xor": "^"}.get(operator, "+")
            behind.append(Assign(Name(name), "=", Binary(sign, Name(kept), folded)))
    # By reference: the fold sets both.
    behind += [ExprStmt(group.fold(place.fold, Name(place.value), Name(place.at))) for place in split.places]
    if any(OPERATORS[op].identity is not None for op in split.folds.values()) and ahead:
        return [Scope((*ahead, *body, *behind))]
    return [*ahead, *body, *behind]


def set_to_zero(name: str, before: Sequence[Stmt]) -> bool:
    """Whether a variable is zero after statements, the last of which that mentions it says so."""
    match next((s for s in reversed(before) if name in names_mentioned([s])), None):
        case Declare(name=declared, init=init) if init is not None:
            return declared == name and is_zero(without_casts(init))
        case Assign(target=Name(text=target), op="=", value=value):
            return target == name and is_zero(without_casts(value))
    return False


def strided(loop: For, group: Group, types: dict[str, str]) -> For:
    """The loop with its iterations dealt out to the lanes one by one."""
    step = loop.step
    offset = times(Name(group.lane), step)
    return replace(
        loop,
        type=(loop.type or types[loop.var]).removeprefix("const "),
        start=plus(loop.start, offset),
        step=number((integer(step) or 1) * group.size),
    )


def shared_out(
    units: Iterable[Unit], group: Group, crossing: frozenset[str], types: dict[str, str], before: Iterable[Stmt] = ()
) -> tuple[Stmt, ...]:
    """The statements that a group of threads runs for the units. ``before``: what stands in front of them."""
    found: list[Stmt] = []
    above = list(before)
    for unit in units:
        found += guarded_by_barriers(unit, _emit(unit, above, group, crossing, types), group, crossing)
        found = [*found[:-2], *_joined(found[-2:], group)]
        above.append(unit.stmt)
    return tuple(found)


def _joined(last: list[Stmt], group: Group) -> list[Stmt]:
    """Two statements as one where the leader alone does both."""
    leads = Binary("==", Name(group.lane), Literal("0"))
    match last:
        case [If(one, first, ()), If(two, then, ())] if one == two == leads:
            return [If(leads, (*first, *then))]
    return last


def guarded_by_barriers(unit: Unit, body: list[Stmt], group: Group, crossing: frozenset[str]) -> list[Stmt]:
    """The statements with a barrier before and after where the unit writes what other threads use."""
    writes = {a.root for a in unit.accesses if a.kind != "read"}
    return [group.barrier(), *body, group.barrier()] if writes & crossing else body


def _emit(
    unit: Unit, above: Sequence[Stmt], group: Group, crossing: frozenset[str], types: dict[str, str]
) -> list[Stmt]:
    stmt = unit.stmt
    inner = [shared_out(side, group, crossing, types) for side in unit.inner]
    match unit.kind, stmt:
        case "leader", _:
            return [If(Binary("==", Name(group.lane), Literal("0")), (stmt,))]
        case "loop", For() if unit.loop is not None:
            return folding(unit.loop, [strided(stmt, group, types)], above, types, group)
        case "branch", If():
            return [replace(stmt, then=inner[0], orelse=inner[1])]
        case "branch", Scope():
            return [replace(stmt, body=inner[0])]
        case "repeat", For() | While():
            return [replace(stmt, body=inner[0])]
    return [stmt]


def helpers_of(units: Iterable[Unit], group: Group) -> frozenset[str]:
    """The device functions that the shared units call."""
    found: set[str] = set()
    for unit in units:
        if unit.loop is not None:
            found |= {group.helper(op) for op in unit.loop.folds.values()}
            found |= {group.helper(place.fold) for place in unit.loop.places}
        for side in unit.inner:
            found |= helpers_of(side, group)
    return frozenset(found)
