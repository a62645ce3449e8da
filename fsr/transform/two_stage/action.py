"""two-stage-fold: turns that few blocks go through in strides, each thread folding a state of its own, are shared by
many blocks; a second launch merges what the parts left, and folds and ends as the original did.

``for (i = threadIdx.x; i < n; i += blockDim.x)`` in one block, and a tree over what the threads found: the least and
its place, how many, mean and variance. Parts are runs of consecutive turns of the same thread, and are merged in order
with what the author merges states of threads with, the earlier one first: ties fall as in the loop. The scheme is that
of reductions in two passes (M. Harris, "Optimizing Parallel Reduction in CUDA", 2007), with the fold as written.

A part has all that a thread has before its first turn, and parts without turns are left aside, so that no more is asked
of the beginning than that it is not added once a part (:mod:`fsr.transform.two_stage.lawful`). To the merge it is as
though the block had ``parts`` times as many threads: where that is no fold of partial states (a thread's first element
is treated otherwise than the rest), results differ as they would with another block size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from fsr.analysis.macros import expanded, hides_names
from fsr.records import Candidate
from fsr.source.counted import counted
from fsr.source.form import Declare, Expr, Name, Scope, Stmt, While
from fsr.source.mapping import substitute
from fsr.source.shadows import unshadowed
from fsr.source.walk import Block, fresh, names_mentioned, variables
from fsr.transform.launch.cooperation import hands_on_ids
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, largest
from fsr.transform.target import Target, target_of, targets
from fsr.transform.turns.room import Room, room_of
from fsr.transform.turns.shared import free_axis
from fsr.transform.two_stage.folds import ends_of
from fsr.transform.two_stage.lawful import is_fold
from fsr.transform.two_stage.text import TwoStage, cut, kept_elements
from fsr.transform.two_stage.turns import MOST_PARTS, turns_of

PARTS = (8, 32, MOST_PARTS)
_LEAST_TURNS = 4  # of a thread in a part
_LEAST_ROOM = 2.0  # times as many threads as there are would fill half the GPU
_MERGED = 0.5  # of a turn, what it takes to merge a part
_LAUNCH = 4.0  # turns that another launch takes as long as
_MOST_GAIN = 6.0


class TwoStageFold:
    """Partial states by many blocks, and a launch that merges them."""

    name = "two-stage-fold"
    aims_at = frozenset({"occupancy", "latency"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a number of parts, where the grid leaves most of the GPU without work."""
        for target in () if subject.keep_launch else targets(subject):
            room = room_of(subject, target)
            if room.fill <= _LEAST_ROOM or room.grid >= subject.gpu.sm_count:
                continue
            found = self._of(subject, target)
            if found is not None:
                yield from self._parts(found, room)

    def _parts(self, found: TwoStage, room: Room) -> Iterator[Move]:
        turns = found.turns.timed(found.target)
        for parts in PARTS:
            kept = largest(found.target.contract, kept_elements(found.target, parts))
            if turns < _LEAST_TURNS * parts or kept is None or kept > INT_LIMIT:
                continue
            took = turns / min(parts, 2 * room.fill) + _MERGED * parts + _LAUNCH
            gain = min(turns / took, 2 * room.fill)
            if gain > 1:
                rank = ceil(took) / turns
                yield Move(self.name, found.target.region, (("parts", parts),), min(gain, _MOST_GAIN) - min(rank, 0.9))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate of two launches."""
        found = self._of(subject, target_of(subject, move))
        assert found is not None
        return cut(found, move)

    def _of(self, subject: Subject, target: Target) -> TwoStage | None:
        return subject.once((self.name, target.region), lambda: _found(target))


def _found(target: Target) -> TwoStage | None:
    """The kernel as it may be cut, as it stands or with its macros written out."""
    plain, written = target.kernel, expanded(target.kernel, target.source)
    for kernel in (plain,) if written == plain else (plain, written):
        plain_body = unshadowed(counted(kernel.body), (p.name for p in kernel.params))
        body = tuple(_opened(plain_body, set(target.names) | set(variables(plain_body))))
        read = replace(target, kernel=replace(kernel, body=body))
        if hides_names(kernel, target.source) or hands_on_ids(read, body):
            continue
        free, turns = free_axis(read), turns_of(read)
        ends = ends_of(read, turns) if turns is not None and read.block is not None and free is not None else None
        if turns is not None and ends is not None and free is not None and is_fold(read, turns, ends):
            return TwoStage(read, turns, ends, free)
    return None


def _opened(body: Block, taken: set[str]) -> Iterator[Stmt]:
    """Statements without braces around some of them, such as a function's that was written out; all are known by names
    of their own. (Braces around a variable and its loop are a ``for``.)"""
    for s in body:
        if not isinstance(s, Scope) or any(isinstance(x, While) for x in s.body):
            yield s
            continue
        names = dict[str, Expr]()
        for name in (x.name for x in s.body if isinstance(x, Declare)):
            new = fresh(name, taken - {name} if _is_alone(name, body, s) else taken)
            taken.add(new)
            names[name] = Name(new)
        yield from _opened(substitute(s.body, names), taken)


def _is_alone(name: str, body: Block, scope: Scope) -> bool:
    """Whether nothing beside some braces mentions a name."""
    return not any(name in names_mentioned((s,)) for s in body if s is not scope)
