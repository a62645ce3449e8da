"""shared-atomics: what a block adds to few places of global memory, gathered in shared memory first, in any kernel.

private-bins deals the elements out anew and needs a kernel that is a loop over them; here the kernel stays as it is and
its atomics alone go to another place: a histogram beside other work, a block with a part of its own, a grid of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.effects import element_type
from fsr.records import Candidate, Role
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Literal,
    Member,
    Name,
    Return,
    Stmt,
    Unary,
    number,
)  # fmt: skip
from fsr.source.mapping import map_stmts
from fsr.source.walk import (
    BARRIER,
    blocks_of,
    contains_barrier,
    contains_opaque,
    contains_return,
    contains_warp_wide,
    fresh,
    nodes,
    walk_stmts,
)
from fsr.transform.atomics.global_atomics import Target as Gathered
from fsr.transform.atomics.global_atomics import atomic_of, counts_only, gathered_type
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.rows.share import plus, times
from fsr.transform.sizes import largest
from fsr.transform.target import Target, target_of, targets

_MOST_BYTES = 32 * 1024  # of static shared memory, beside what the kernel has
_COPIES = (1, 4)
_GAIN = 8.0


@dataclass(frozen=True, slots=True)
class Found:
    """A kernel's atomics on one parameter, behind which there are ``most`` elements at most."""

    target: Target
    to: Gathered
    most: int


@dataclass(frozen=True, slots=True)
class SharedAtomics:
    """The action."""

    name: str = "shared-atomics"
    aims_at: frozenset[str] = frozenset(["atomics", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One a buffer, with and without copies for warps that would meet at one place."""
        for target in targets(subject):
            for found in _found(target):
                for copies in _COPIES:
                    if copies * found.most * found.to.bin_bytes <= _MOST_BYTES:
                        params = (("to", found.to.pointer), ("copies", copies))
                        yield Move(self.name, target.region, params, _GAIN - 0.1 * copies)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with that buffer's atomics gathered a block at a time."""
        target = target_of(subject, move)
        found = next(f for f in _found(target) if f.to.pointer == move.param("to"))
        body = _rewritten(found, int(move.param("copies")))
        return rewritten(target, move, replace(target.kernel, body=body))


def _found(target: Target) -> list[Found]:
    """The buffers to which a kernel's threads add few places, and that it uses for nothing else."""
    body = target.kernel.body
    if target.threads is None or contains_opaque(body) or _leaves_early(body) or not _met_by_all(body):
        return []
    places: dict[str, list[tuple[str, Expr, str, Expr]]] = {}
    for stmt in walk_stmts(body):
        place = atomic_of(stmt)
        if place is not None:
            places.setdefault(place[0], []).append(place)
    return [f for name, own in places.items() if (f := _one(target, name, own)) is not None]


def _one(target: Target, name: str, own: list[tuple[str, Expr, str, Expr]]) -> Found | None:
    argument = target.argument(name) if name in target.unaliased else None
    uses = sum(isinstance(e, Name) and e.text == name for e in nodes(target.kernel.body))
    operations = {operation for _, _, operation, _ in own}
    if argument is None or argument.role is Role.IN or uses != len(own) or len(operations) != 1:
        return None
    operation = operations.pop()
    written = element_type(next(p.type for p in target.kernel.params if p.name == name))
    type_ = gathered_type(target.aliases.get(written, written), operation)
    most = largest(target.contract, target.elements(name) or "")
    if type_ is None or most is None or most < 1:
        return None
    to = Gathered(name, name, Literal("0"), operation, type_, False, counts_only(operation, [v for *_, v in own]))
    return None if type_ in ("float", "double") and target.exact and not to.counts else Found(target, to, most)


def _leaves_early(body: tuple[Stmt, ...]) -> bool:
    """Whether a thread may end before others have met, or elsewhere than where :func:`_kept_in` sees it."""
    return contains_return(body) and (contains_barrier(body) or contains_return(_kept_in(body)))


def _met_by_all(body: tuple[Stmt, ...]) -> bool:
    """Whether no threads meet, or a warp's lanes, where others may not come: those have ended by then in the original,
    and wait for the block here."""
    branches = [block for s in walk_stmts(body) if isinstance(s, If) for block in blocks_of(s)]
    return not contains_warp_wide(body) and not any(contains_barrier(block) for block in branches)


def _kept_in(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Statements in which threads that would end go round the rest: ``if (c) return; rest`` as ``if (!c) rest``."""
    for at, stmt in enumerate(body):
        match stmt:
            case If(test=test, then=(Return(value=None),), orelse=()):
                return (*body[:at], If(Unary("!", test), _kept_in(body[at + 1 :])))
    return body


def _rewritten(found: Found, copies: int) -> tuple[Stmt, ...]:
    target, to = found.target, found.to
    names: Mapping[str, str] = {k: fresh(f"{to.pointer}_{k}", target.names) for k in ("bins", "own", "k", "total")}
    bins, k, total = Name(names["bins"]), Name(names["k"]), Name(names["total"])
    thread, threads = _thread(target)
    own: Expr = bins
    ahead: list[Stmt] = [Declare(to.bin_type, names["bins"], None, (number(found.most * copies),), ("__shared__",))]
    if copies > 1:
        warp = Binary("%", Binary("/", thread, number(32)), number(copies))
        ahead.append(Declare(f"{to.bin_type} *const", names["own"], plus(bins, times(warp, number(found.most)))))
        own = Name(names["own"])
    nothing = Literal(to.nothing)

    def over(count: int, *body: Stmt) -> Stmt:
        return For("int", k.text, thread, "<", number(count), number(threads), body)

    def gathered(stmt: Stmt) -> Stmt:
        place = atomic_of(stmt)
        if place is None or place[0] != to.pointer:
            return stmt
        _, index, operation, value = place
        return ExprStmt(Call(Name(f"atomic{operation}"), (Unary("&", Index(own, index)), to.binned(value))))

    others = [Index(bins, plus(k, number(c * found.most))) for c in range(1, copies)]
    sum_: Expr = Index(bins, k)
    for other in others:
        sum_ = to.folded(sum_, other)
    add = ExprStmt(Call(Name(to.gathered), (Unary("&", Index(Name(to.pointer), k)), to.ungathered(total))))
    return (
        *ahead, over(found.most * copies, Assign(Index(bins, k), "=", nothing)), BARRIER,
        *map_stmts(_kept_in(target.kernel.body), gathered), BARRIER,
        over(found.most, Declare(f"const {to.bin_type}", total.text, sum_),
             If(Binary("!=", total, nothing), (add,))),
    )  # fmt: skip


def _thread(target: Target) -> tuple[Expr, int]:
    """A thread's number in its block, and how many there are."""
    assert target.block is not None
    (x, y, z), (i, j, k) = target.block, (Member(Name("threadIdx"), axis) for axis in "xyz")
    found: Expr = i
    if y > 1 or z > 1:
        rows = plus(j, times(k, number(y))) if z > 1 else j
        found = plus(i, times(rows, number(x)))
    return found, x * y * z
