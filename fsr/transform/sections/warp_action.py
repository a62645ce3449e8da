"""warp-section: what one thread of a block, or each of its first few, does alone is done by a warp; and what each does
of many, by a few lanes.

``if (threadIdx.x == 0) { float sum = 0; for (i < blockDim.x) sum += part[i]; ... }`` takes as long as its turns, one
after the other, while the block waits. A warp does as many turns at once as it has lanes, and folds what they have by
shuffles; where each of the first few threads does so (``if (threadIdx.x < k)``), each has a warp. Where all threads go
through rows in strides (``for (j = threadIdx.x; j < n; j += blockDim.x) for (i < m) a += w[j * m + i] * p[i]``), or
have a row each (``if (threadIdx.x < n)``), they read rows apart, and are idle where rows are few: 4 to 32 lanes do a
turn together and read a row as neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from fsr.analysis.functions import hiding_macros
from fsr.records import Candidate
from fsr.source.form import Binary, Declare, Expr, Member, Name, Stmt, number
from fsr.source.walk import BUILTINS, kernel_names
from fsr.transform.collectives import missing_helpers
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.rows.share import Group
from fsr.transform.sections.action import in_place, readable
from fsr.transform.sections.alone import each_of, few_of
from fsr.transform.sections.lists import Lists
from fsr.transform.sections.places import Together, sections
from fsr.transform.sections.strides import ByGroups, by_groups, threads_of
from fsr.transform.sections.warp import WARP, ForWarp, for_warp, taking
from fsr.transform.sizes import always
from fsr.transform.target import Target, target_of, targets

LANES = (32, 8, 16, 4)
WHICH = ("rows", "all")  # loops whose threads read rows apart, or all in strides
_LEAST_GAIN, _MOST_GAIN = 1.1, 6.0
_REST = 48  # what else a thread may have to do, in turns: a guess
_FOLD = 8  # a fold of a warp's values, in turns


@dataclass(frozen=True)
class _Found:
    """The kernel in the form in which its sections were found, and those. ``strides``: loops of all threads."""

    target: Target
    sections: tuple[ForWarp, ...]
    strides: tuple[ByGroups, ...]
    taken: frozenset[str]
    lists: Lists


@dataclass(frozen=True, slots=True)
class WarpSection:
    """All of a kernel's sections at once."""

    name: str = "warp-section"
    aims_at: frozenset[str] = frozenset(["latency", "occupancy", "instructions", "compute", "bandwidth"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One move, where there is a section with a loop to deal out; a move a group size for loops in strides that
        read rows, and for all of them."""
        for target in targets(subject):
            found = _found(subject, target)
            if found.sections:
                yield Move(self.name, target.region, (), _gain(found))
            for which in WHICH:
                chosen = _chosen(found, which)
                if not chosen or (which == "all" and len(chosen) == len(_chosen(found, "rows"))):
                    continue
                for rank, lanes in enumerate(LANES):
                    if _has_groups(found.target, lanes):
                        params = (("strides", which), ("lanes", lanes))
                        gain = _gain_by_groups(found.target, chosen, lanes)
                        yield Move(self.name, target.region, params, gain - 0.001 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose warps do the sections."""
        target, params = target_of(subject, move), dict(move.params)
        found = _found(subject, target)
        taken = set(found.taken)
        chosen = _chosen(found, str(params["strides"])) if params else found.sections
        size = int(params.get("lanes", WARP))
        group = Group(size, found.target.threads or 0, taking("lane", taken))
        head: list[Stmt] = [Declare("const int", group.lane, Binary("%", Member(Name("threadIdx"), "x"), number(size)))]
        mask: Expr | None = None
        if size < WARP and any(one.work.meets for one in chosen):
            mask = Name(taking("group", taken))
            head.append(Declare("const unsigned int", mask.text, group.mask))
        helpers = frozenset[str]().union(*(one.work.helpers(group) for one in chosen))
        new = {id(one.opened.section.stmt): one.text(group, mask, taken) for one in chosen}
        body = found.lists.back(in_place(found.target.kernel.body, new))
        needed = missing_helpers(target.source, helpers)
        return rewritten(target, move, replace(target.kernel, body=(*head, *body)), helpers=needed)


def _found(subject: Subject, target: Target) -> _Found:
    return subject.once(("warp-section", target.region), partial(_sections, target))


def _sections(target: Target) -> _Found:
    lists, taken = Lists(), set(target.names) | BUILTINS
    target = readable(target, lists)
    none = _Found(target, (), (), frozenset(taken), lists)
    if kernel_names(target.kernel) & hiding_macros(target.source):
        return none
    alone = list(sections(target, few_of)) if target.block is not None and target.block[0] % WARP == 0 else []
    strided = list(sections(target, each_of)) if cooperates(target) and _has_groups(target, min(LANES)) else []
    together = Together(target, target.kernel) if alone or strided else None
    found, strides = list[ForWarp](), list[ByGroups]()
    for section in alone:
        assert together is not None
        found += [one] if (one := for_warp(target, together, section, taken)) is not None else []
    done = [one.opened.section.stmt for one in found]
    for section in strided:
        assert together is not None
        new = None if any(section.stmt is s for s in done) else by_groups(target, together, section, taken)
        strides += [] if new is None else [new]
    return replace(none, sections=tuple(found), strides=tuple(strides), taken=frozenset(taken))


def _chosen(found: _Found, which: str) -> tuple[ByGroups, ...]:
    return tuple(one for one in found.strides if one.rows or which == "all")


def _has_groups(target: Target, lanes: int) -> bool:
    """Whether a block in one dimension has a whole group of lanes at all sizes."""
    x, *others = target.launch.block
    return others == ["1", "1"] and always(target.contract, f"({x}) >= {lanes}")


def _gain_by_groups(target: Target, chosen: tuple[ByGroups, ...], lanes: int) -> float:
    """What the longest of the loops gains, as the others take less."""
    longest = max(chosen, key=lambda one: one.count * sum(one.turns))
    return max(_LEAST_GAIN, min(_MOST_GAIN, longest.gain(threads_of(target), lanes)))


def _gain(found: _Found) -> float:
    """How many times fewer turns come one after the other."""
    alone = by_warp = float(_REST)
    for section in found.sections:
        for turns in section.turns:
            alone += turns
            by_warp += turns / WARP + _FOLD
    return max(_LEAST_GAIN, min(_MOST_GAIN, alone / by_warp))
