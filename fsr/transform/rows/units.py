"""The body of one thread's work as units that a group of threads can share: loops to split, and everything else.

What is no parallel loop is computed alike by every thread of the group (it depends on nothing but the row), and
what it writes to memory is written by one of them, the leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fsr.analysis.accesses import Access
from fsr.analysis.effects import Unclear, accesses
from fsr.analysis.parallel import ParallelLoop, Scene, canonical, parallel_loop
from fsr.analysis.types import is_integer
from fsr.source.form import Assign, Comment, Declare, ExprStmt, For, If, Jump, OpaqueStmt, Return, Scope, Stmt, While
from fsr.source.walk import names_in


@dataclass(frozen=True, slots=True)
class Unit:
    """``kind``: 'all' (every thread), 'leader' (one thread), 'loop' (split), 'branch' or 'repeat' (every thread goes
    the same way; ``inner`` holds the units inside, for a branch those of the other side second)."""

    kind: str
    stmt: Stmt
    accesses: tuple[Access, ...] = ()
    loop: ParallelLoop | None = None
    inner: tuple[tuple[Unit, ...], ...] = ()
    repeated: bool = field(default=False)


def units_of(body: Iterable[Stmt], scene: Scene, *, repeated: bool = False) -> tuple[Unit, ...]:
    """The units of the statements. ``repeated``: they stand in a loop that every thread runs.

    Raises Unclear where the effect of a statement is not known.
    """
    return tuple(_unit(s, scene, repeated) for s in body)


def _unit(stmt: Stmt, scene: Scene, repeated: bool) -> Unit:
    match stmt:
        case OpaqueStmt():
            raise Unclear
        case Comment() | Jump() | Return(value=None):
            return Unit("all", stmt)
        case Declare() | Assign() | ExprStmt():
            if isinstance(stmt, Declare) and stmt.qualifiers:
                raise Unclear
            found = tuple(accesses([stmt], scene.pointers))
            kind = "all" if all(a.kind == "read" for a in found) else "leader"
            if any(a.kind == "atomic" for a in found) and not _plain_atomic(stmt, found, scene):
                raise Unclear
            return Unit(kind, stmt, found, repeated=repeated)
        case If(test=test, then=then, orelse=orelse):
            sides = (units_of(then, scene, repeated=repeated), units_of(orelse, scene, repeated=repeated))
            return Unit("branch", stmt, tuple(accesses([ExprStmt(test)], scene.pointers)), inner=sides)
        case Scope(body=body):
            return Unit("branch", stmt, inner=(units_of(body, scene, repeated=repeated), ()))
        case For(body=body):
            split = parallel_loop(stmt, scene)
            ends = [ExprStmt(stmt.start), ExprStmt(stmt.bound), ExprStmt(stmt.step)]
            if split is not None:
                found = (*accesses(ends, scene.pointers), *split.accesses)
                return Unit("loop", stmt, tuple(found), loop=split, repeated=repeated)
            ends_found = tuple(accesses(ends, scene.pointers))
            return Unit("repeat", stmt, ends_found, inner=(units_of(body, scene, repeated=True),))
        case While(test=test, body=body):
            tests = tuple(accesses([ExprStmt(test)], scene.pointers))
            return Unit("repeat", stmt, tests, inner=(units_of(body, scene, repeated=True),))
    raise Unclear


def _plain_atomic(stmt: Stmt, found: tuple[Access, ...], scene: Scene) -> bool:
    """Whether an atomic's result is unused and, where results must be exact, its order does not matter."""
    if not isinstance(stmt, ExprStmt):
        return False
    integers = all(is_integer(scene.pointers.elements[a.pointer]) for a in found if a.kind == "atomic")
    return integers or not scene.exact


def flatten(units: Iterable[Unit]) -> Iterator[Unit]:
    """Every unit, those inside others after them."""
    for unit in units:
        yield unit
        for side in unit.inner:
            yield from flatten(side)


def crossing(units: Iterable[Unit], scene: Scene) -> frozenset[str]:
    """The buffers through which threads of the group hand values to one another: units that write them need a
    barrier before and after."""
    every = list(flatten(units))
    written = {a.root for u in every for a in u.accesses if a.kind != "read"}
    return frozenset(root for root in written if _crosses(root, every, scene))


def _crosses(root: str, every: list[Unit], scene: Scene) -> bool:
    users = [u for u in every if any(a.root == root for a in u.accesses)]
    if all(u.kind == "leader" for u in users):
        return False
    if len(users) == 1 and not users[0].repeated:
        return False
    loops = [u.loop for u in users if u.loop is not None]
    if len(loops) < len(users):
        return True
    ways = {(p.loop.start, p.loop.step) for p in loops}
    places = {canonical(a, p.loop.var) for p in loops for a in p.accesses if a.root == root}
    vars_ = {p.loop.var for p in loops}
    unsteady = (scene.changing - vars_ - frozenset(scene.pointers.roots)) | scene.moving
    return len(ways) > 1 or len(places) > 1 or any((names_in(i) | {p}) & unsteady for p, i in places)


def level_of_loops(units: tuple[Unit, ...]) -> tuple[Unit, ...] | None:
    """The one list of units that directly holds every split loop; None when several lists do, or none."""
    found = [level for level in _levels(units) if any(u.kind == "loop" for u in level)]
    return found[0] if len(found) == 1 else None


def _levels(units: tuple[Unit, ...]) -> Iterator[tuple[Unit, ...]]:
    yield units
    for unit in units:
        for side in unit.inner:
            yield from _levels(side)
