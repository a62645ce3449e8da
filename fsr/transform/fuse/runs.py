"""Which launches become one: those after which every element is what it was, whichever thread is first.

A launch ends before the next begins. In one launch a thread goes through the steps for its own points alone, so what a
step of the run writes, other steps may only touch at elements that are the same thread's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise

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
    def by_buffer(self) -> dict[str, list[Touch]]:
        """All touches of each buffer."""
        every = sorted((t for own in self.touches for t in own), key=lambda t: t.buffer)
        return {buffer: list(own) for buffer, own in groupby(every, key=lambda t: t.buffer)}

    @cached_property
    def written(self) -> frozenset[str]:
        """The buffers that it writes."""
        return frozenset(b for b, own in self.by_buffer.items() if any(t.writes for t in own))


def runs(subject: Subject) -> list[Run]:
    """The longest runs that begin at each launch, and pairs of neighbours in them; none within another of its kind."""
    return subject.once("fuse-launches", lambda: list(_runs(subject)))


def _runs(subject: Subject) -> Iterator[Run]:
    steps, seen, pairs = steps_of(subject), set[tuple[int, ...]](), set[tuple[int, ...]]()
    for first in steps.values():
        found = [_grown(subject, steps, grid, first) for grid in grids(list(steps.values()), first)]
        best = max((r for r in found if r is not None), key=_worth, default=None)
        if best is None or any(set(best.positions) <= set(old) for old in seen):
            continue
        seen.add(best.positions)
        yield best
        for pair in pairwise(best.steps) if len(best.steps) > 2 else ():
            part = _pair(subject, best, pair)
            if part is not None and part.positions not in pairs:
                pairs.add(part.positions)
                yield part


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
    for memory, group in groupby(every, key=lambda t: t.memory):
        if not _keeps(list(group), [[t for t in own if t.memory == memory] for own in longer.touches]):
            return None
    return longer


def _keeps(every: Sequence[Touch], by_step: Sequence[Sequence[Touch]]) -> bool:
    """Whether what steps do to a memory may be done point by point."""
    if not any(t.writes for t in every) or sum(bool(own) for own in by_step) < 2:
        return not any(t.by_cache for t in every if any(u.writes for u in every))
    if any(t.by_cache for t in every) or len({(t.buffer, t.type) for t in every}) > 1:
        return False
    places = [t.place for t in every if t.place is not None]
    return len(places) == len(every) and one_owner(places)
