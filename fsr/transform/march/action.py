"""segment-march: blocks of their own for segments of a loop in which each thread marches along an axis.

A thread that goes along a line with what it read last in registers (a stencil, a filter, a running window) leaves a GPU
with as many threads as there are lines. What it hands on from turn to turn is filled anew some turns before a segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from fsr.records import Candidate
from fsr.source.walk import nodes
from fsr.transform.march.form import March, marches
from fsr.transform.march.text import Segments
from fsr.transform.march.warm_up import phases
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import largest, largest_timed
from fsr.transform.target import Target, part_of, region_in, target_of, targets

PARTS = (2, 4, 8, 16, 32, 64)
_OFFERED = 4
_MOST_BLOCKS = 65535  # along y or z
_ANY_TURNS = 64  # where sizes do not tell
_MOST_GAIN, _LEAST_GAIN = 6.0, 1.05
_FULL = 1.5  # times what a GPU holds, from which on more threads change little


class SegmentMarch:
    """Several blocks along a march for one that goes all the way."""

    name = "segment-march"
    aims_at = frozenset({"occupancy", "latency"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The best numbers of segments for each march, as long as threads are too few for the GPU."""
        for target in () if subject.keep_launch else targets(subject):
            room = _room(subject, target)
            if room <= _LEAST_GAIN:
                continue
            for march in self._marches(subject, target):
                region = region_in(target, f"loop:{march.loop.var}")
                ranked = sorted(((_gain(march, parts, room), parts) for parts in PARTS), reverse=True)
                for gain, parts in ranked[:_OFFERED]:
                    if gain > _LEAST_GAIN and _fits(target, parts):
                        yield Move(self.name, region, (("parts", parts),), min(gain, _MOST_GAIN))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with a segment a block."""
        target = target_of(subject, move)
        march = next(m for m in self._marches(subject, target) if part_of(move) == f"loop:{m.loop.var}")
        made = Segments(march, int(move.param("parts")))
        return rewritten(march.target, move, made.kernel(), launch=made.launch)

    def _marches(self, subject: Subject, target: Target) -> tuple[March, ...]:
        """The marches, one for each name of a loop's variable."""
        found = subject.once((self.name, target.region), lambda: tuple(marches(target)))
        return tuple({m.loop.var: m for m in reversed(found)}.values())


def _room(subject: Subject, target: Target) -> float:
    """How many times as many threads are wanted."""
    launch = target.launch
    counts = [largest_timed(target.contract, text) or 1 for text in (*launch.grid, *launch.block)]
    return _FULL * subject.gpu.sm_count * subject.gpu.max_threads_per_sm / prod(counts)


def _gain(march: March, parts: int, room: float) -> float:
    turns = march.turns or _ANY_TURNS
    each = -(-turns // parts)
    if each < 2:
        return 0.0
    whole = sum(1 for _ in nodes(march.loop.body))
    early = sum(p.turns * sum(1 for _ in nodes(p.body)) for p in phases(march)) / max(whole, 1)
    return min(parts, room) * each / (each + early)


def _fits(target: Target, parts: int) -> bool:
    most = largest(target.contract, f"({target.launch.grid[2]}) * {parts}")
    return most is not None and most <= _MOST_BLOCKS
