"""join-steps: repetitions of a launch that keep to a tile follow one another in one launch, the tile in shared memory.

A host that launches a step again and again (a sorting network, the butterflies of a transform, a map that is iterated)
pays each time for the launch and for all of memory. Where a few blocks are alone with what they write (see
:mod:`fsr.transform.launch.joined_steps`), the next step may begin when they are done, which a barrier tells. Steps that
reach further stay launches of their own; those that an earlier launch has done have an empty grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.analysis.macros import expanded, hides_names
from fsr.contract.model import repeats_of
from fsr.expressions import evaluate_int
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate
from fsr.source.emit import emit_kernel
from fsr.source.entry import function_name
from fsr.source.form import KernelForm
from fsr.source.narrowing import narrowed
from fsr.source.rewrite import definition, insert_helpers, with_definitions
from fsr.source.walk import fresh
from fsr.transform.launch.joined_elements import element_of
from fsr.transform.launch.joined_steps import Steps, steps_of
from fsr.transform.launch.joined_text import Joined
from fsr.transform.launch.joined_tiles import Tile
from fsr.transform.launch.spread_threads import BLOCKS
from fsr.transform.plan import with_launch
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target

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
            if tile is None or not _fits(steps, tile):
                continue
            fewer = _fewer(target, steps, tile, subject.gpu.sm_count)
            for threads in THREADS:
                if fewer > 1.0 and min(steps.threads, THREADS[0]) <= threads <= blocks * steps.threads:
                    params = (("blocks", blocks), ("threads", threads))
                    yield Move(self.name, target.region, params, _gain(fewer, blocks * steps.threads / threads))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose launches go through all steps that they can."""
        target = next(t for t in _repeated(subject) if t.region == move.region)
        steps = _steps(subject, target)
        tile = _tile(subject, steps, int(move.param("blocks"))) if steps is not None else None
        assert steps is not None
        assert tile is not None
        name = fresh(f"{target.kernel.name}_steps", target.names) if _others(subject, target) else target.kernel.name
        made = Joined(steps, tile, int(move.param("threads")), name, target.kernel.body)
        plan = with_launch(target.candidate.plan, target.position, made.launch)
        source = _with_kernel(target, made)
        return replace(target.candidate, source=source, plan=plan, actions=(*target.candidate.actions, move.name))


def _with_kernel(target: Target, made: Joined) -> str:
    """The text with the new kernel in place of the old, or behind it where that is launched elsewhere; what a turn does
    stands before it, behind all that it names."""

    def parts(kernel: KernelForm) -> Iterator[str]:
        if made.name != kernel.name:
            yield definition(target.source, kernel)
        yield made.turn().rstrip("\n")
        yield emit_kernel(made.kernel()).rstrip("\n")

    return insert_helpers(with_definitions(target.source, [target.kernel], parts), made.helpers)


def _repeated(subject: Subject) -> Iterator[Target]:
    """Each launch that is repeated, of a kernel of which no other launch is."""
    launches = subject.candidate.plan.launches
    for kernel in subject.kernels.values():
        own = [i for i, launch in enumerate(launches) if function_name(launch.entry) == kernel.name]
        found = [i for i in own if launches[i].repeated]
        if len(found) == 1 and len(launches[found[0]].args) == len(kernel.params) and kernel.span is not None:
            region = f"kernel:{kernel.name}" if len(launches) > 1 else "kernel"
            form = _shown(kernel, subject.candidate.source)
            yield Target(form, found[0], subject.candidate, subject.contract, region)


def _shown(kernel: KernelForm, source: str) -> KernelForm:
    """The kernel with macros written out where they hide what it accesses."""
    form = expanded(kernel, source) if hides_names(kernel, source) else kernel
    return replace(form, body=narrowed(form.body))


def _others(subject: Subject, target: Target) -> bool:
    """Whether other launches need the kernel as it is."""
    named = [function_name(launch.entry) for launch in subject.candidate.plan.launches]
    return named.count(target.kernel.name) > 1


def _steps(subject: Subject, target: Target) -> Steps | None:
    return subject.once(("steps", target.kernel.name), lambda: steps_of(target))


def _tile(subject: Subject, steps: Steps, blocks: int) -> Tile | None:
    return subject.once(("tile", steps.target.kernel.name, blocks), lambda: steps.tile(blocks))


def _fits(steps: Steps, tile: Tile) -> bool:
    """Whether the elements of a tile are numbers that shared memory has room for, twice."""
    each = [(element_of(steps.target, p), tile.elements[p.name]) for p in steps.written(tile)]
    return sum(STATIC_SHARED_BYTES if e is None else e.bytes * n for e, n in each) <= STATIC_SHARED_BYTES // 2


def _gain(fewer: float, turns: float) -> float:
    """What so many times fewer launches gain, where each thread goes through so many elements a step.

    Measured for 29 candidates of ten public kernels (sorts, transforms, gates; H100): a launch of one element a thread
    is hidden by half, and turns beyond two cost as much as they spare.
    """
    return float(min(_MOST_GAIN, fewer) ** 0.5 * min(1.0, 2.0 / turns) ** 0.45)


def _fewer(target: Target, steps: Steps, tile: Tile, multiprocessors: int) -> float:
    """How many times fewer launches are made of the timed sizes, if tiles are enough for all multiprocessors."""
    product, sizes = 1.0, target.contract.timed_sizes()
    for one in sizes:
        fewer = repeats_of(target.launch, one) / max(tile.starts(steps.launch, one), 1)
        tiles = evaluate_int(steps.tiles(tile), one) * evaluate_int(steps.rows, one)
        product *= max(fewer * min(1.0, tiles / multiprocessors), 1.0)
    return float(product ** (1 / max(len(sizes), 1)))
