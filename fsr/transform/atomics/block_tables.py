"""Tables: buffers of few places that a kernel's threads add to and use for nothing else, and the shared memory in which
a block may gather what it adds to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fsr.analysis.effects import element_type
from fsr.analysis.types import number_type
from fsr.errors import ContractError
from fsr.expressions import parse
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Role
from fsr.source.form import Cast, Expr, If, Literal, Name, OpaqueExpr, OpaqueStmt, Return, Stmt, Unary
from fsr.source.macros import reached_by_macros
from fsr.source.walk import (
    Block,
    blocks_of,
    contains_barrier,
    contains_return,
    contains_warp_wide,
    names_mentioned,
    nodes,
    opaque_names,
    walk_stmts,
)
from fsr.transform.atomics.global_atomics import Target as Gathered
from fsr.transform.atomics.global_atomics import counts_only, gathered_type
from fsr.transform.atomics.shared_places import Place, place_of, with_plain_places
from fsr.transform.details.shared_locals import room_of, static_in
from fsr.transform.fewer.called import forwarded_atomics
from fsr.transform.sizes import largest, largest_timed
from fsr.transform.slices.grid_turns import macros_that_leave
from fsr.transform.target import Target

MOST_BYTES = 32 * 1024  # of a table in shared memory, beside what the kernel has
_SLACK = 4  # a table is as large as it may ever be, unless that is so many times what is timed


@dataclass(frozen=True, slots=True)
class Table:
    """What a kernel adds to one parameter. ``places``: how many there are, as a size expression; ``most``: that at the
    contract's largest sizes, ``timed``: at those that are timed. ``base``: the parameter, or what it is taken for."""

    to: Gathered
    base: Expr
    places: str
    most: int
    timed: int


@dataclass(frozen=True, slots=True)
class Room:
    """A table's room in shared memory. ``limit`` in bytes, for tables that are no larger than at the sizes at hand;
    None: room for ``most`` places, whatever the sizes."""

    table: Table
    copies: int
    limit: int | None = None

    @property
    def place_bytes(self) -> int:
        """Of all copies of one place."""
        return self.copies * self.table.to.bin_bytes

    @property
    def fits(self) -> bool:
        """Whether it does at all sizes."""
        return self.limit is None or self.table.most * self.place_bytes <= self.limit

    @property
    def held(self) -> str:
        """How many places a block gathers, as a size expression: none where they do not fit."""
        places = self.table.places
        return places if self.fits else f"({places} if ({places}) * {self.place_bytes} <= {self.limit} else 0)"


def tables(target: Target) -> tuple[Target, list[Table]]:
    """The tables of a kernel, and the target in whose kernel each of their atomics names its parameter."""
    leaves = macros_that_leave(target.source) & names_mentioned(target.kernel.body)
    if "atomic" not in target.source or target.threads is None or leaves or _hides(target.kernel.body):
        return target, []
    plain = with_plain_places(target)
    body = plain.kernel.body
    if _leaves_early(body) or not _met_by_all(body):
        return target, []
    places: dict[str, list[Place]] = {}
    for stmt in walk_stmts(body):
        place = place_of(stmt)
        if place is not None:
            places.setdefault(place.pointer, []).append(place)
    hidden = reached_by_macros(target.source)
    return plain, [t for n, own in places.items() if n not in hidden and (t := _table(plain, n, own)) is not None]


def _hides(body: Block) -> bool:
    """Whether something cannot be read; members in braces (``{kept_a, kept_b}``) can."""
    if any(isinstance(s, OpaqueStmt) for s in walk_stmts(body)):
        return True
    hidden = [e for e in nodes(body) if isinstance(e, OpaqueExpr) and e.text]
    return any(re.fullmatch(r"\{[\w\s,.]*\}", e.text) is None for e in hidden)


def _table(target: Target, name: str, own: list[Place]) -> Table | None:
    argument = target.argument(name) if name in target.unaliased else None
    uses = sum(
        (isinstance(e, Name) and e.text == name) or (isinstance(e, OpaqueExpr) and name in opaque_names(e.text))
        for e in nodes(target.kernel.body)
    )
    ways = {(p.operation, p.base) for p in own}
    if argument is None or argument.role is Role.IN or uses != len(own) or len(ways) != 1:
        return None
    operation, base = ways.pop()
    pointed = base.type if isinstance(base, Cast) else next(p.type for p in target.kernel.params if p.name == name)
    written = element_type(pointed)
    type_ = gathered_type(number_type(written, target.aliases), operation)
    places = target.elements(name) or ""
    most, timed = largest(target.contract, places), largest_timed(target.contract, places)
    if type_ is None or not most or not timed or not _is_cudas(target, f"atomic{operation}"):
        return None
    to = Gathered(name, name, Literal("0"), operation, type_, False, counts_only(operation, [p.value for p in own]))
    sums = type_ in ("float", "double") and not to.counts
    return None if sums and target.exact else Table(to, base, places, most, timed)


def _is_cudas(target: Target, name: str) -> bool:
    """Whether an atomic is CUDA's, or one of the file's that only hands on to it."""
    return name not in target.functions.own or name in forwarded_atomics(target.source)


def _leaves_early(body: Block) -> bool:
    """Whether a thread may end before others have met, or elsewhere than where :func:`kept_in` sees it."""
    return contains_return(body) and (contains_barrier(body) or contains_return(kept_in(body)))


def _met_by_all(body: Block) -> bool:
    """Whether no threads meet, or a warp's lanes, where others may not come: those have ended by then in the original,
    and wait for the block here."""
    branches = [block for s in walk_stmts(body) if isinstance(s, If) for block in blocks_of(s)]
    return not contains_warp_wide(body) and not any(contains_barrier(block) for block in branches)


def kept_in(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Statements in which threads that would end go round the rest: ``if (c) return; rest`` as ``if (!c) rest``."""
    for at, stmt in enumerate(body):
        match stmt:
            case If(test=test, then=(Return(value=None),), orelse=()):
                return (*body[:at], If(Unary("!", test), kept_in(body[at + 1 :])))
    return body


# ---------------------------------------------------------------- where they go


def rooms(target: Target, chosen: Sequence[Table], copies: int, *, keep_launch: bool) -> tuple[Room, ...] | None:
    """Room for so many copies of tables, those of wide types first, so that all are aligned; None where there is none.
    With ``keep_launch`` the launch gives none that depends on the sizes."""
    whole = [t for t in chosen if _is_whole(t, copies) and (keep_launch or t.most <= _SLACK * t.timed)]
    sized = [t for t in chosen if t not in whole]
    fixed = sum(t.most * t.to.bin_bytes * copies for t in whole)
    if (static_in(target) or 0) + fixed > STATIC_SHARED_BYTES:
        return None
    if (sized or len(whole) > 1) and fixed > room_of(target):
        return None
    if not sized:
        return tuple(Room(t, copies) for t in whole)
    if keep_launch or target.launch.shared_bytes.strip() != "0":
        return None  # what else lies in dynamic memory begins where this would
    limit = min(MOST_BYTES, (room_of(target) - fixed) // len(sized))
    found = [Room(t, copies, limit) for t in sorted(sized, key=lambda t: -t.to.bin_bytes)]
    if any(r.table.timed * r.place_bytes > limit for r in found) or not _is_written(found):
        return None
    return (*(Room(t, copies) for t in whole), *found)


def bytes_of(found: Sequence[Room]) -> str:
    """Dynamic shared memory for them, as a size expression."""
    return " + ".join(f"{r.place_bytes} * ({r.held})" for r in found if r.limit is not None) or "0"


def _is_whole(table: Table, copies: int) -> bool:
    return table.most * table.to.bin_bytes * copies <= MOST_BYTES


def _is_written(found: Sequence[Room]) -> bool:
    """Whether a plan can hold the size expressions: they have a longest length."""
    try:
        return all(parse(text) is not None for text in (bytes_of(found), *(r.held for r in found)))
    except ContractError:
        return False
