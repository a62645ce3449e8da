"""Which launches become one: those after which every element is what it was, whichever thread is first.

A launch ends before the next begins. In one launch a thread goes through the steps for its own points alone, so what a
step of the run writes, other steps may only touch at elements that are the same thread's. Where grids differ, a thread
does the steps in whose own grid it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise
from math import gcd

from fsr.transform.fuse.order import in_front
from fsr.transform.fuse.own_place import one_owner
from fsr.transform.fuse.steps import Grid, Step, grids, steps_of
from fsr.transform.fuse.touches import Touch
from fsr.transform.protocol import Subject

MOST = 8  # launches of a run


@dataclass(frozen=True, eq=False)
class Run:
    """Launches in one grid. ``touches``: of each."""

    grid: Grid
    steps: tuple[Step, ...]
    touches: tuple[tuple[Touch, ...], ...] = field(repr=False)

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """In the plan."""
        return tuple(s.position for s in self.steps)

    @cached_property
    def uneven(self) -> frozenset[str]:
        """The axes along which grids differ."""
        return frozenset(axis for step in self.steps for axis in self.grid.own_counts(step, self.steps))

    @cached_property
    def by_buffer(self) -> dict[str, list[Touch]]:
        """All touches of each buffer."""
        every = sorted((t for own in self.touches for t in own), key=lambda t: t.buffer)
        return {buffer: list(own) for buffer, own in groupby(every, key=lambda t: t.buffer)}

    @cached_property
    def written(self) -> frozenset[str]:
        """The buffers that it writes."""
        return frozenset(b for b, own in self.by_buffer.items() if any(t.writes for t in own))


def runs(subject: Subject) -> list[Run]:
    """The longest runs that begin at each launch, in one grid and, where that makes others, in grids that differ; and
    pairs of neighbours in them; none within another of its kind."""
    return subject.once("fuse-launches", lambda: list(_runs(subject)))


def _runs(subject: Subject) -> Iterator[Run]:
    steps, seen, pairs = steps_of(subject), list[Run](), set[tuple[int, ...]]()
    for first in steps.values():
        grown = [_grown(subject, steps, grid, first) for grid in grids(list(steps.values()), first)]
        found = [run for run in grown if run is not None]
        even, uneven = [r for r in found if not r.uneven], [r for r in found if r.uneven]
        for best in (max(own, key=_worth, default=None) for own in (even, uneven)):
            if best is None or any(_within(best, old) for old in seen):
                continue
            seen.append(best)
            yield best
            for pair in pairwise(best.steps) if len(best.steps) > 2 else ():
                part = _pair(subject, best, pair)
                if part is not None and part.positions not in pairs:
                    pairs.add(part.positions)
                    yield part


def _within(run: Run, other: Run) -> bool:
    """Whether another does all of a run, and in one grid if the run does."""
    return set(run.positions) <= set(other.positions) and (bool(run.uneven) or not other.uneven)


def _worth(run: Run) -> tuple[int, bool]:
    """Longer runs first; loops over a grid are better one, in which a point's values stay in registers."""
    strided = any(s.point is not None and s.point.loop for s in run.steps)
    return len(run.steps), strided == run.grid.by_points


def _pair(subject: Subject, run: Run, pair: tuple[Step, Step]) -> Run | None:
    """Two steps of a run alone."""
    grid = run.grid if not run.grid.by_points or run.grid.host in pair else Grid(pair[0], by_points=True)
    if not all(grid.takes(s) for s in pair):
        return None
    only = {s.position: s for s in pair}
    return _grown(subject, only, grid, pair[0])


def _grown(subject: Subject, steps: dict[int, Step], grid: Grid, first: Step) -> Run | None:
    """All steps from ``first`` on that may come behind it in the grid; what stands between goes before or behind."""
    if not grid.takes(first) or (begun := _with(Run(grid, (), ()), first)) is None:
        return None
    run = begun
    for position, step in steps.items():
        if position <= first.position or len(run.steps) == MOST or step.space != first.space or not grid.takes(step):
            continue
        longer = _with(run, step) if in_front(subject, (*run.positions, position)) is not None else None
        run = longer or run
    return run if len(run.steps) > 1 and grid.host in run.steps else None


def _with(run: Run, step: Step) -> Run | None:
    """The run with one step more; None where that would not compute the same."""
    touches = run.grid.touches(step)
    if touches is None:
        return None
    longer = Run(run.grid, (*run.steps, step), (*run.touches, tuple(touches)))
    every = sorted((t for own in longer.touches for t in own), key=lambda t: t.memory)
    for memory, _ in groupby(every, key=lambda t: t.memory):
        if not _keeps([[t for t in own if t.memory == memory] for own in longer.touches], longer.uneven):
            return None
    return longer


def _keeps(by_step: Sequence[Sequence[Touch]], uneven: frozenset[str]) -> bool:
    """Whether what steps do to a memory may be done point by point. ``uneven``: axes along which grids differ."""
    every = [t for own in by_step for t in own]
    if not any(t.writes for t in every):
        return True
    if any(t.by_cache for t in every):
        return False
    if len({(t.buffer, t.type) for t in every}) > 1:
        return sum(bool(own) for own in by_step) < 2
    return all(_one_owner(group, uneven) for group in _apart(by_step))


def _apart(by_step: Sequence[Sequence[Touch]]) -> list[list[list[Touch]]]:
    """Touches of one memory in groups that have no element in common, each step by step."""
    combs = [t.comb for own in by_step for t in own]
    known = [c for c in combs if c is not None]
    if len(known) < len(combs):
        return [[list(own) for own in by_step]]
    step = gcd(*(c.step for c in known))
    firsts = dict.fromkeys(c.within(step) for c in known)
    return [[[t for t in own if t.comb and t.comb.within(step) == first] for own in by_step] for first in firsts]


def _one_owner(by_step: Sequence[Sequence[Touch]], uneven: frozenset[str]) -> bool:
    """Whether the elements that steps touch are one thread's each, or one step's all."""
    every = [t for own in by_step for t in own]
    if not any(t.writes for t in every) or sum(bool(own) for own in by_step) < 2:
        return True
    places = [t.place for t in every if t.place is not None]
    # A turn of a loop over the grid is another thread's in a grid of another size.
    moved = any(name in {f"@turn.{axis}" for axis in uneven} for place in places for name, _ in place.digits)
    return len(places) == len(every) and not moved and one_owner(places)
