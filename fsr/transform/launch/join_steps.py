"""join-steps: repetitions of a launch that keep to a tile follow one another in one launch, the tile in shared memory.

A host that launches a step again and again (a sorting network, the butterflies of a transform, a map that is iterated)
pays each time for the launch and for all of memory. Where a few blocks are alone with what they write (see
:mod:`fsr.transform.launch.joined_steps`), the next step may begin when they are done, which a barrier tells. Steps that
reach further stay launches of their own; those that an earlier launch has done have an empty grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.analysis.types import bare
from fsr.contract.model import repeats_of
from fsr.expressions import evaluate_int
from fsr.hardware.c_types import element_bytes
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate
from fsr.source.form import Param
from fsr.source.narrowing import narrowed
from fsr.source.rewrite import replace_kernel
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.joined_steps import Steps, Tile, steps_of
from fsr.transform.launch.joined_text import Joined
from fsr.transform.plan import with_launch
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target

BLOCKS = (1, 2, 4, 8, 16)  # of before, whose elements make a tile
THREADS = (256, 512, 1024)
_MOST_GAIN = 6.0


class JoinSteps:
    """Repetitions of a launch in one, while they keep to a tile."""

    name = "join-steps"
    aims_at = frozenset({"launch", "latency", "bandwidth"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move for each number of blocks that make a tile, and of threads that work on it."""
        for target in () if subject.keep_launch else _repeated(subject):
            steps = _steps(subject, target)
            if steps is not None:
                yield from self._of(subject, target, steps)

    def _of(self, subject: Subject, target: Target, steps: Steps) -> Iterator[Move]:
        for blocks in BLOCKS:
            tile = _tile(subject, steps, blocks)
            if tile is None or sum(tile.elements * _bytes(p) for p in steps.written) > STATIC_SHARED_BYTES // 2:
                continue
            gain = _gain(target, steps, tile, subject.gpu.sm_count)
            for threads in THREADS:
                if gain > 1.0 and min(steps.threads, THREADS[0]) <= threads <= blocks * steps.threads:
                    params = (("blocks", blocks), ("threads", threads))
                    yield Move(self.name, target.region, params, gain - threads / 1e5)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose launches go through all steps that they can."""
        target = next(t for t in _repeated(subject) if t.region == move.region)
        steps = _steps(subject, target)
        tile = _tile(subject, steps, int(move.param("blocks"))) if steps is not None else None
        assert steps is not None
        assert tile is not None
        made = Joined(steps, tile, int(move.param("threads")))
        source = replace_kernel(target.source, target.kernel, made.kernel(), made.helpers)
        plan = with_launch(target.candidate.plan, target.position, made.launch)
        return replace(target.candidate, source=source, plan=plan, actions=(*target.candidate.actions, move.name))


def _repeated(subject: Subject) -> Iterator[Target]:
    """Each launch that is repeated, of a kernel that is launched nowhere else and whose threads do not cooperate."""
    launches = subject.candidate.plan.launches
    for kernel in subject.kernels.values():
        found = [i for i, launch in enumerate(launches) if launch.entry == kernel.name]
        if len(found) == 1 and launches[found[0]].repeated and len(launches[found[0]].args) == len(kernel.params):
            region = f"kernel:{kernel.name}" if len(launches) > 1 else "kernel"
            target = Target(
                replace(kernel, body=narrowed(kernel.body)), found[0], subject.candidate, subject.contract, region
            )
            if kernel.span is not None and not cooperates(target):
                yield target


def _steps(subject: Subject, target: Target) -> Steps | None:
    return subject.once(("steps", target.kernel.name), lambda: steps_of(target))


def _tile(subject: Subject, steps: Steps, blocks: int) -> Tile | None:
    return subject.once(("tile", steps.target.kernel.name, blocks), lambda: steps.tile(blocks))


def _bytes(param: Param) -> int:
    return element_bytes(bare(param.type)) or STATIC_SHARED_BYTES


def _gain(target: Target, steps: Steps, tile: Tile, multiprocessors: int) -> float:
    """How many times fewer launches are made of the timed sizes, if tiles are enough for all multiprocessors."""
    product, sizes = 1.0, target.contract.timed_sizes()
    for one in sizes:
        fewer = repeats_of(target.launch, one) / max(tile.starts(steps, one), 1)
        tiles = evaluate_int(target.launch.grid[0], one) / tile.blocks
        product *= max(fewer * min(1.0, tiles / multiprocessors), 1.0)
    return min(_MOST_GAIN, float(product ** (1 / max(len(sizes), 1))))
