"""Launches whose only result is what one other reads, by any threads: each element is computed where it is read.

Products that a launch writes and the next one adds up by rows are no thread's own. But each is a function of its
number alone: the sum's thread computes the products that it asks for, and the buffer between the two goes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fsr.analysis.polynomial import constant
from fsr.contract.model import dim3
from fsr.expressions import evaluate_int
from fsr.records import Scratch
from fsr.source.form import For, Name, While
from fsr.source.walk import Block, blocks_of, exprs_of, identifiers, integer, walk_expr
from fsr.transform.fuse.order import touched
from fsr.transform.fuse.steps import Grid, Step, steps_of
from fsr.transform.fuse.touches import Touch
from fsr.transform.fuse.values import with_value
from fsr.transform.protocol import Subject
from fsr.transform.target import Target


@dataclass(frozen=True, eq=False)
class Feed:
    """``maker``: the launch that computes the elements of ``scratch``, from ``inputs``; ``reader``: the one that reads
    them."""

    maker: Step
    reader: Step
    scratch: Scratch
    inputs: tuple[Touch, ...]

    @property
    def positions(self) -> tuple[int, int]:
        """In the plan."""
        return self.maker.position, self.reader.position

    def reads(self, sizes: Mapping[str, int]) -> float | None:
        """How often an element is read; None where it is not known."""
        point, reader = self.maker.point, self.reader
        each = _reads_in(reader.target.kernel.body, parameter(reader, self.scratch.name), reader.target, sizes)
        if each is None or point is None:
            return None
        if reader.point is not None:
            threads = math.prod(evaluate_int(text, sizes) for _, text in reader.point.bounds.values())
        else:
            threads = math.prod(dim3(reader.launch.grid, sizes)) * math.prod(reader.block)
        return each * threads / max(evaluate_int(point.bounds["x"][1], sizes), 1)


def feeds(subject: Subject) -> list[Feed]:
    """The pairs of a maker and a reader."""
    return subject.once("feeds", lambda: list(_feeds(subject)))


def parameter(step: Step, buffer: str) -> str:
    """What a kernel calls a buffer that it is passed once."""
    return next(name for name, passed in step.target.passed.items() if passed == buffer)


def _feeds(subject: Subject) -> Iterator[Feed]:
    steps, plan = steps_of(subject), subject.candidate.plan
    for scratch in plan.scratch:
        users = [i for i, launch in enumerate(plan.launches) for a in launch.args if a == scratch.name]
        if len(set(users)) != 2 or len(users) != 2 or not all(u in steps for u in users):
            continue
        maker, reader = (steps[u] for u in users)
        made, read = _made(maker, scratch.name), reader.as_launched
        if made is None or read is None or maker.space != reader.space:
            continue
        inputs = tuple(t for t in made if t.buffer != scratch.name)
        asked, needed = [t for t in read if t.buffer == scratch.name], {t.memory for t in inputs}
        if len({t.type for t in (*made, *asked) if t.buffer == scratch.name}) > 1 or not _plain(reader, scratch.name):
            continue
        between = [touched(subject, i)[1] for i in range(maker.position + 1, reader.position + 1)]
        if all(t.kind == "read" and not t.by_cache for t in asked) and not any(w & needed for w in between):
            yield Feed(maker, reader, scratch, inputs)


def _made(step: Step, buffer: str) -> list[Touch] | None:
    """The touches of a launch whose point i computes element i of a buffer, and nothing else; None for all others."""
    if step.point is None or set(step.point.ids) != {"x"} or not _plain(step, buffer):
        return None
    touches = Grid(step, by_points=True).touches(step)
    if touches is None or any(t.buffer != buffer for t in touches if t.writes):
        return None
    places = {t.place for t in touches if t.buffer == buffer}
    (place, *others) = places or {None}
    if others or place is None or not place.fixed or place.low != 0 or place.rest.terms:
        return None
    return touches if place.digits == (("@x", constant(1)),) else None


def _plain(step: Step, buffer: str) -> bool:
    """Whether a kernel asks for elements of a buffer and does nothing else with it, nor prints."""
    kernel, name = step.target.kernel, parameter(step, buffer)
    if "<" in step.launch.entry or name in kernel.macro_words or "printf" in identifiers(kernel.body):
        return False
    return with_value(kernel.body, name) is not None


def _reads_in(block: Block, name: str, target: Target, sizes: Mapping[str, int]) -> float | None:
    """How often statements read elements of what a parameter points to."""
    found = 0.0
    for s in block:
        own = sum(isinstance(x, Name) and x.text == name for e in exprs_of(s) for x in walk_expr(e))
        inner = [_reads_in(b, name, target, sizes) for b in blocks_of(s)]
        times = _turns(s, target, sizes) if isinstance(s, For) else None if isinstance(s, While) else 1.0
        every = [n for n in (float(own), *inner) if n != 0]
        if any(n is None for n in every) or (every and times is None):
            return None
        found += sum(n for n in every if n is not None) * (times or 0.0)
    return found


def _turns(loop: For, target: Target, sizes: Mapping[str, int]) -> float | None:
    start, bound, step = target.size_text(loop.start), target.size_text(loop.bound), integer(loop.step)
    if start is None or bound is None or not step:
        return None
    return max((evaluate_int(bound, sizes) - evaluate_int(start, sizes)) / step, 0.0)
