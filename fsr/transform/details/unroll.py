"""``#pragma unroll``: fewer branches, and independent loads side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.source.form import For
from fsr.source.mapping import replace_stmt
from fsr.source.walk import loop_regions, loops
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, part_of, region_in, target_of, targets

FACTORS = (2, 4, 8, 16)
FULL = 64  # iterations up to which a loop of constant length is offered whole
GAIN = 1.06


@dataclass(frozen=True, slots=True)
class Unroll:
    """A pragma on an innermost loop that has none; ``factor=0`` unrolls it whole."""

    name: str = "unroll"
    aims_at: frozenset[str] = frozenset(["latency", "instructions", "compute"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The innermost counted loops."""
        for target in targets(subject):
            for region, loop in loop_regions(target.kernel).items():
                if loop.pragmas or loops(loop.body):
                    continue
                length = trip_count(target, loop)
                for factor in FACTORS:
                    if length is None or factor < length:
                        yield Move(self.name, region_in(target, region), (("factor", factor),), GAIN)
                if length is not None and length <= FULL:
                    yield Move(self.name, region_in(target, region), (("factor", 0),), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the pragma."""
        target = target_of(subject, move)
        loop, factor = loop_regions(target.kernel)[part_of(move)], int(move.param("factor"))
        pragma = f"#pragma unroll {factor}" if factor else "#pragma unroll"
        body = replace_stmt(target.kernel.body, loop, (replace(loop, pragmas=(pragma,)),))
        return rewritten(target, move, replace(target.kernel, body=body))


def trip_count(target: Target, loop: For) -> int | None:
    """How often a loop of constant length runs; None when the length depends on anything, or it counts down."""
    start, bound, step = (target.poly(e).value for e in (loop.start, loop.bound, loop.step))
    if start is None or bound is None or step is None or step <= 0 or loop.relation not in ("<", "<="):
        return None
    return max(0, -(-(bound - start + (loop.relation == "<=")) // step))
