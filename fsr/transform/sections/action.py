"""share-section: loops that one thread of a block goes through while all others wait, dealt out to all of them.

``if (threadIdx.x == 0) for (...) tile[i] = in[...]; __syncthreads();`` takes as long as one thread's loads one after
the other. With a turn a thread they are under way at once, and neighbours' turns are neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from fsr.analysis.braces import with_members_set
from fsr.analysis.functions import hiding_macros
from fsr.analysis.macros import expanded
from fsr.records import Candidate
from fsr.source.counting import counted
from fsr.source.form import Stmt
from fsr.source.mapping import with_blocks
from fsr.source.narrowing import narrowed
from fsr.source.walk import BARRIER, Block, kernel_names
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sections.alone import section_of
from fsr.transform.sections.lists import Lists
from fsr.transform.sections.opened import opened
from fsr.transform.sections.pieces import Shared, shared
from fsr.transform.sections.places import Together, sections
from fsr.transform.sections.text import Text
from fsr.transform.sizes import largest_timed
from fsr.transform.target import Target, target_of, targets

ORDERS = ("inner", "outer")  # which of two loops in one another neighbours have neighbouring turns of
_LEAST_GAIN, _MOST_GAIN = 1.1, 8.0
_REST = 16  # what else a thread may have to do, in turns: a guess


@dataclass(frozen=True)
class _Found:
    """The kernel in the form in which its sections were found, and what is shared of them."""

    target: Target
    sections: tuple[Shared, ...]
    taken: frozenset[str]
    lists: Lists


@dataclass(frozen=True, slots=True)
class ShareSection:
    """All of a kernel's sections at once."""

    name: str = "share-section"
    aims_at: frozenset[str] = frozenset(["latency", "occupancy", "uncoalesced", "bandwidth", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move an order of turns, where there are loops in one another; else one."""
        for target in targets(subject):
            found = _found(subject, target)
            if not found.sections:
                continue
            deep = any(len(nest.loops) > 1 for one in found.sections for nest in one.nests)
            gain = _gain(found)
            for rank, order in enumerate(ORDERS if deep else ORDERS[:1]):
                yield Move(self.name, target.region, (("order", order),), gain - 0.02 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose threads share the sections."""
        target = target_of(subject, move)
        found = _found(subject, target)
        text = Text(found.target, str(move.param("order")), set(found.taken))
        new = {id(one.opened.section.stmt): one for one in found.sections}
        places = {at: text.section(one) for at, one in new.items()}
        body = found.lists.back(in_place(found.target.kernel.body, places))
        return rewritten(target, move, replace(target.kernel, body=(*text.head(), *body)))


def _found(subject: Subject, target: Target) -> _Found:
    return subject.once(("share-section", target.region), partial(_sections, target))


def readable(target: Target, lists: Lists) -> Target:
    """The kernel in a form in which sections are found."""
    kernel = with_members_set(expanded(target.kernel, target.source), target.source)
    return replace(target, kernel=replace(kernel, body=lists.told(narrowed(counted(kernel.body)))))


def _sections(target: Target) -> _Found:
    lists, taken = Lists(), set(target.names)
    target = readable(target, lists)
    kernel, none = target.kernel, _Found(target, (), frozenset(taken), lists)
    if target.threads == 1 or kernel_names(kernel) & hiding_macros(target.source):
        return none
    places = list(sections(target, section_of))
    together = Together(target, kernel) if places else None
    found = list[Shared]()
    for section in places:
        assert together is not None
        one = opened(target, together, section, taken)
        whole = None if one is None or one.memory.volatile else shared(one)
        found += [] if whole is None else [whole]
    return replace(none, sections=tuple(found), taken=frozenset(taken))


def _gain(found: _Found) -> float:
    """How many times fewer turns come one after the other."""
    threads = found.target.threads or largest_timed(
        found.target.contract, " * ".join(f"({e})" for e in found.target.launch.block)
    )
    alone = shared_out = _REST
    for one in found.sections:
        for nest in one.nests:
            turns = nest.timed(one.opened.memory)
            alone += turns
            shared_out += -(-turns // (threads or 1))
    return max(_LEAST_GAIN, min(_MOST_GAIN, alone / shared_out))


def in_place(body: Block, new: Mapping[int, Block]) -> Block:
    """Statements with others in the place of sections, told by identity, and one barrier where several follow one
    another."""

    def change(block: Block) -> Block:
        out = list[Stmt]()
        for s in block:
            out += new.get(id(s)) or (with_blocks(s, change),)
        return tuple(out)

    return _met_once(change(body))


def _met_once(body: Block) -> Block:
    """The statements with one barrier where several follow one another."""
    found = [with_blocks(s, _met_once) for s in body]
    return tuple(s for at, s in enumerate(found) if s != BARRIER or found[at - 1 : at] != [BARRIER])
