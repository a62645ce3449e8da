"""Loops that a block's threads go through in strides, or what many of them do once, by groups of lanes in their place.

A group does all that some threads did, one after the other: as many groups as there are take all of them. Threads of
before that touch the same did so in no order, so that they may be of different groups; a thread's own turns are one
group's, in their order, where a group goes from thread to thread. Where a block is whole groups, and a turn asks for
nothing of its thread, the strides may be the groups' instead, as a thread's own turns stay one group's. What stands
before and after is kept apart by barriers where it may touch the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fsr.analysis.effects import Unclear
from fsr.source.form import Binary, Comment, Declare, Expr, For, If, Member, Name, Scope, Stmt, number
from fsr.source.walk import BARRIER, Block, breaks, names_assigned, names_in, names_mentioned, variables, walk_stmts
from fsr.transform.lanes.loops import Loops, Shared
from fsr.transform.lanes.work import Work
from fsr.transform.rows.share import Group
from fsr.transform.sections.alone import EXTENT, few_of
from fsr.transform.sections.memory import meeting
from fsr.transform.sections.opened import Opened, opened
from fsr.transform.sections.pieces import around
from fsr.transform.sections.places import Section, Together
from fsr.transform.sections.warp import (
    LEAST_TURNS,
    WARP,
    forms,
    loose_in,
    taking,
    turns_of,
    with_single_back,
)
from fsr.transform.sizes import always, largest_timed
from fsr.transform.target import Target

_X = Member(Name("threadIdx"), "x")
_NEAR = 2.0  # the gain of neighbours read, in place of elements far apart
_FAR = 0.5
_FOLD = 8.0  # a fold of a group's values, in turns


@dataclass(frozen=True)
class ByGroups:
    """A loop in strides for groups of lanes. ``turn``: goes through the threads of before; ``work``: of one of them;
    ``rows``: whether neighbouring lanes read neighbours that neighbouring threads do not; ``columns``: whether it is
    the other way round; ``count``: turns of all threads at the timed sizes, ``turns``: those of the loops in it."""

    opened: Opened
    turn: For
    work: Work
    turns: tuple[int, ...]
    count: int
    rows: bool
    columns: bool
    first: bool
    last: bool

    def text(self, group: Group, mask: Expr | None, taken: set[str]) -> Block:
        """All statements in the section's place."""
        target, single = self.opened.memory.target, self.opened.memory.shared - self.opened.memory.arrays
        body = with_single_back(self.work.body(group, mask, taken), single)
        groups: Expr = Binary("/", EXTENT, number(group.size))
        if target.threads is not None:
            groups = number(target.threads // group.size)
        own, whole = Binary("/", _X, number(group.size)), is_whole(target, group.size)
        place = self._by_strides(body, own, groups) if whole else None
        if place is None:
            place = replace(self.turn, start=own, step=groups, body=(*self.opened.lead, *body))
        if not whole:
            place = If(Binary("<", _X, Binary("*", groups, number(group.size))), (place,))
        first, last = (((BARRIER,) if meets else ()) for meets in (self.first, self.last))
        words = f"{group.size} lanes do each turn of a thread"
        return (*first, Comment(f"// {words}"), place, *last)

    def _by_strides(self, body: Block, own: Expr, groups: Expr) -> Stmt | None:
        """The loop in strides of groups; None where its turns ask which thread's they are."""
        lead = self.opened.lead
        match body:
            case (For() as loop,) if not breaks(loop.body):
                asked = names_mentioned(loop.body) | names_in(loop.bound) | names_in(loop.step)
                if not asked & {self.turn.var, *(s.name for s in lead)}:
                    thread = Declare("const int", self.turn.var, own)
                    return Scope((thread, *lead, replace(loop, step=groups)))
        return None

    def gain(self, threads: int, lanes: int) -> float:
        """How many times fewer turns come one after the other, with what reading neighbours gains."""
        inner = sum(self.turns)
        alone = -(-self.count // threads) * inner
        by_groups = -(-self.count * lanes // threads) * (inner / lanes + _FOLD)
        near = _NEAR if self.rows else _FAR if self.columns else 1.0
        return near * alone / max(by_groups, 1.0)


def is_whole(target: Target, lanes: int) -> bool:
    """Whether blocks are whole groups of lanes at all sizes."""
    return always(target.contract, f"({target.launch.block[0]}) % {lanes} == 0")


def by_groups(target: Target, together: Together, section: Section, taken: set[str]) -> ByGroups | None:
    """The loop for groups; None where that cannot be shown to be the same, or nothing in it can be dealt out."""
    turn = For("int", taking("which", taken), Binary("/", _X, number(WARP)), "<", EXTENT, number(1), ())
    one = opened(target, together, section, taken, turn)
    if one is None or one.memory.volatile or any(isinstance(s, Declare) and s.dims for s in walk_stmts(one.body)):
        return None
    outer = names_assigned(one.body) - set(variables(one.body)) - one.memory.shared - one.memory.arrays
    if outer or loose_in(one, together) != {}:
        return None
    found = list[ByGroups]()
    try:
        for loops in forms(target, one, turn, one.lead):
            found += [way] if (way := _dealt(one, turn, loops)) is not None else []
    except Unclear:
        return None
    return max(found, key=lambda way: sum(way.turns), default=None)


def _dealt(one: Opened, turn: For, loops: Loops) -> ByGroups | None:
    match loops.body:
        case (For(var=var, body=inner),):
            shared = tuple(loops.outermost(inner, frozenset([var])))
        case (If(then=inner),):
            var, shared = turn.var, tuple(loops.outermost(inner, frozenset([turn.var])))
        case _:
            return None
    turns = tuple(turns_of(loops, s.loop) for s in shared)
    if max(turns, default=0) < LEAST_TURNS:
        return None
    rows, columns = _walks(loops, shared, var)
    work = Work(loops, shared, repeated=True)
    return ByGroups(one, turn, work, turns, _count(one), rows, columns, *_sides(one))


def _sides(one: Opened) -> tuple[bool, bool]:
    """Whether all have to meet before and after the loop, as others do now what a thread did."""
    memory = one.memory
    inside = memory.touches(one.body)
    before, after = ([t for a in side for t in around(one, a)] for side in (one.section.before, one.section.after))
    return bool(meeting(memory, before, inside)), bool(meeting(memory, inside, after))


def _count(one: Opened) -> int:
    """How many turns all threads have, at the timed sizes; as many as there are threads where data tells."""
    target, stmt = one.memory.target, one.section.stmt
    found = few_of(target, stmt)
    end = stmt.bound if isinstance(stmt, For) else found[0].count if found is not None else None
    text = None if end is None else target.size_text(end)
    count = None if text is None else largest_timed(target.contract, text)
    return threads_of(target) if count is None else count


def threads_of(target: Target) -> int:
    """Threads of a block at the timed sizes, the most."""
    return largest_timed(target.contract, target.launch.block[0]) or WARP


def _walks(loops: Loops, shared: tuple[Shared, ...], outer: str) -> tuple[bool, bool]:
    """Whether neighbouring turns of the inner loops read neighbours in buffers that turns of the outer one do not, and
    whether it is the other way round."""
    target, rows, columns = loops.target, False, False
    for one in shared:
        for access in one.accesses:
            place = target.known.poly(access.offset, target.constants)
            inner = place.coefficient(one.loop.var)
            if inner is None or not inner.terms or loops.pointers.roots[access.pointer].startswith("shared "):
                continue
            neighbours = place.coefficient(outer)
            begins = (s.init for s in walk_stmts(loops.body) if isinstance(s, Declare) and s.name == access.pointer)
            named = place.names().union(*(names_in(target.known.expand(e)) for e in begins if e is not None))
            columns |= neighbours is not None and neighbours.value == 1
            rows |= inner.value == 1 and outer in named and not (neighbours is not None and neighbours.value == 1)
    return rows, columns and not rows
