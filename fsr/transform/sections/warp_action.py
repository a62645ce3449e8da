"""warp-section: what one thread of a block, or each of its first few, does alone is done by a warp.

``if (threadIdx.x == 0) { float sum = 0; for (i < blockDim.x) sum += part[i]; ... }`` takes as long as its turns, one
after the other, while the block waits. A warp does as many turns at once as it has lanes, and folds what they have by
shuffles; where each of the first few threads does so (``if (threadIdx.x < k)``), each has a warp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from fsr.analysis.functions import hiding_macros
from fsr.records import Candidate
from fsr.source.form import Binary, Declare, Member, Name, number
from fsr.source.walk import BUILTINS, fresh, kernel_names
from fsr.transform.collectives import missing_helpers
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.rows.share import Group
from fsr.transform.sections.action import in_place, readable
from fsr.transform.sections.lists import Lists
from fsr.transform.sections.places import Together, sections
from fsr.transform.sections.warp import WARP, ForWarp, for_warp
from fsr.transform.target import Target, target_of, targets

_LEAST_GAIN, _MOST_GAIN = 1.1, 6.0
_REST = 48  # what else a thread may have to do, in turns: a guess
_FOLD = 8  # a fold of a warp's values, in turns


@dataclass(frozen=True)
class _Found:
    """The kernel in the form in which its sections were found, and those."""

    target: Target
    sections: tuple[ForWarp, ...]
    taken: frozenset[str]
    lists: Lists


@dataclass(frozen=True, slots=True)
class WarpSection:
    """All of a kernel's sections at once."""

    name: str = "warp-section"
    aims_at: frozenset[str] = frozenset(["latency", "occupancy", "instructions", "compute", "bandwidth"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One move, where there is a section with a loop to deal out."""
        for target in targets(subject):
            found = _found(subject, target)
            if found.sections:
                yield Move(self.name, target.region, (), _gain(found))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose warps do the sections."""
        target = target_of(subject, move)
        found = _found(subject, target)
        taken = set(found.taken)
        group = Group(WARP, found.target.threads or 0, fresh("lane", taken))
        taken.add(group.lane)
        helpers = frozenset[str]().union(*(one.work.helpers(group) for one in found.sections))
        new = {id(one.opened.section.stmt): one.text(group, taken) for one in found.sections}
        body = found.lists.back(in_place(found.target.kernel.body, new))
        lane = Declare("const int", group.lane, Binary("%", Member(Name("threadIdx"), "x"), number(WARP)))
        needed = missing_helpers(target.source, helpers)
        return rewritten(target, move, replace(target.kernel, body=(lane, *body)), helpers=needed)


def _found(subject: Subject, target: Target) -> _Found:
    return subject.once(("warp-section", target.region), partial(_sections, target))


def _sections(target: Target) -> _Found:
    lists, taken = Lists(), set(target.names) | BUILTINS
    target = readable(target, lists)
    none = _Found(target, (), frozenset(taken), lists)
    if target.block is None or target.block[0] % WARP or kernel_names(target.kernel) & hiding_macros(target.source):
        return none
    places = list(sections(target, few=True))
    together = Together(target, target.kernel) if places else None
    found = list[ForWarp]()
    for section in places:
        assert together is not None
        one = for_warp(target, together, section, taken)
        found += [] if one is None else [one]
    return replace(none, sections=tuple(found), taken=frozenset(taken))


def _gain(found: _Found) -> float:
    """How many times fewer turns come one after the other."""
    alone = by_warp = float(_REST)
    for section in found.sections:
        for turns in section.turns:
            alone += turns
            by_warp += turns / WARP + _FOLD
    return max(_LEAST_GAIN, min(_MOST_GAIN, alone / by_warp))
