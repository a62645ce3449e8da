"""swap-rows: rows that a loop copies back at the end of every turn change places instead.

Dynamic programs and marches through time keep the last row, or the last two, and copy the newest one over it when a
turn is done: half of what a turn does, and a barrier more. Two pointers that change places do the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.source.counted import counted
from fsr.source.form import Assign, Declare, Name, Stmt
from fsr.source.mapping import map_stmts, replace_stmt, substitute
from fsr.source.shadows import unshadowed
from fsr.source.walk import Block, contains_opaque, fresh, walk_stmts
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.swaps.form import Copy, copies, pointed
from fsr.transform.target import Target, target_of, targets

_GAIN = 1.25


@dataclass(frozen=True, slots=True)
class SwapRows:
    """All such copies of a kernel at once."""

    name: str = "swap-rows"
    aims_at: frozenset[str] = frozenset(["latency", "instructions", "shared-conflicts"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels with a loop that copies rows where nobody can tell whether they changed places."""
        for target in map(_plain, targets(subject)):
            if next(copies(target), None) is not None:
                yield Move(self.name, target.region, (), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose rows change places."""
        target = _plain(target_of(subject, move))
        return rewritten(target, move, replace(target.kernel, body=_swapped(target)))


def _plain(target: Target) -> Target:
    """With loops that count as such, and no name that hides another."""
    kernel = target.kernel
    if contains_opaque(kernel.body):
        return replace(target, kernel=replace(kernel, body=()))
    body = counted(unshadowed(kernel.body, (p.name for p in kernel.params)))
    return replace(target, kernel=replace(kernel, body=body))


def _swapped(target: Target) -> Block:
    """The kernel's statements with pointers for rows that are arrays, and these exchanged where rows were copied."""
    taken, pointers, body = set(target.names), dict[str, Name](), target.kernel.body
    found = list(copies(target))
    declared = {s.name: s for s in walk_stmts(body) if isinstance(s, Declare)}
    for copy in found:
        body = replace_stmt(body, copy.place.loop, (replace(copy.place.loop, body=_turn(copy, declared, taken)),))
        for row in (name for chain in copy.chains for name in chain if declared[name].dims):
            pointers.setdefault(row, Name(fresh(f"{row}_row", taken)))
            taken.add(pointers[row].text)
    own = {name.text: row for row, name in pointers.items()}
    return map_stmts(substitute(body, pointers), lambda s: _declared(s, own))


def _declared(s: Stmt, own: dict[str, str]) -> Block:
    """A row's array with the pointer to it; a pointer that others' places may be put into."""
    if not isinstance(s, Declare) or s.name not in own:
        return (s,)
    return replace(s, name=own[s.name]), Declare(f"{s.type} *", s.name, Name(own[s.name]))


def _turn(copy: Copy, declared: dict[str, Declare], taken: set[str]) -> Block:
    """The loop's statements with rows that change places."""
    moves = list[Stmt]()
    for chain in copy.chains:
        held = fresh("oldest", taken)
        taken.add(held)
        moves.append(Declare(f"{pointed(declared[chain[0]])} *", held, Name(chain[0])))
        moves += [Assign(Name(to), "=", Name(of)) for to, of in zip(chain, (*chain[1:], held), strict=True)]
    body = copy.place.loop.body
    behind = tuple(s for n, s in enumerate(body) if n > copy.at and n != copy.barrier)
    return (*body[: copy.at], *moves, *behind)
