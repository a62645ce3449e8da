"""jam-threads: one thread does the work of several that stand a block's width apart, statement by statement.

Thread coarsening by unroll-and-jam (Magni, Dubach, O'Boyle, "A large-scale cross-architecture evaluation of
thread-coarsening", SC 2013): where all threads walk over the same edges, weights or centres, what a turn loads and
computes for all of them is loaded and computed once for several, and their own chains of operations overlap. Each
thread's operations stay as they were, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from fsr.analysis.effects import Unclear
from fsr.analysis.threads import AXES
from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.form import Binary, Expr, Member, Name, Param, number
from fsr.source.walk import Block, identifiers
from fsr.transform.jam.extents import divides, guarded_along, words_of
from fsr.transform.jam.form import Alike, alike
from fsr.transform.jam.statements import Jam, Threads
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.plan import along, rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import largest_timed
from fsr.transform.target import target_of, targets

FACTORS = (4, 2, 8)
_MOST_WORDS, _MANY_WORDS = 160, 64  # registers of all of a thread's ids
_MOST_GAIN, _LEAST_GAIN = 2.5, 1.01


class JamThreads:
    """Each thread does ``factor`` threads ``along`` one axis of the grid."""

    name = "jam-threads"
    aims_at = frozenset({"latency", "instructions", "compute", "bandwidth"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Along each axis with several blocks, where a loop has something that threads have in common."""
        for target in () if subject.keep_launch else targets(subject):
            if any(name.startswith(f"{self.name}@{target.region}[") for name in subject.candidate.actions):
                continue  # all that a second time would find is what the first left to be done one after the other
            for axis, count in zip(AXES, target.launch.grid, strict=True):
                found = None if count == "1" else alike(target, axis)
                for rank, factor in enumerate(() if found is None else FACTORS):
                    made = None if found is None else _made(found, axis, factor)
                    if found is not None and made is not None and made.words <= _MOST_WORDS:
                        gain = _gain(subject, found, factor, made.words) - 0.01 * rank
                        params = (("factor", factor), ("along", axis))
                        yield Move(self.name, target.region, params, max(gain, _LEAST_GAIN))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose threads do several ids each."""
        target, axis, factor = target_of(subject, move), str(move.param("along")), int(move.param("factor"))
        found = alike(target, axis)
        made = None if found is None else _made(found, axis, factor)
        assert made is not None
        kernel = replace(target.kernel, body=made.body, params=(*target.kernel.params, *made.params))
        return rewritten(target, move, kernel, launch=lambda one: _regrid(one, axis, factor, made.args))


def _regrid(launch: Launch, axis: str, factor: int, args: tuple[ScalarArgument, ...]) -> Launch:
    """The launch with as many times fewer blocks along the axis."""
    fewer = f"ceil_div({launch.grid[AXES.index(axis)]}, {factor})"
    return replace(launch, grid=along(launch.grid, axis, fewer), args=(*launch.args, *args))


@dataclass(frozen=True)
class _Made:
    """A kernel's new body, what it is passed besides, and the registers that its arrays take."""

    body: Block
    params: tuple[Param, ...]
    args: tuple[ScalarArgument, ...]
    words: int


def _made(found: Alike, axis: str, factor: int) -> _Made | None:
    """The body for ``factor`` threads; None where a variable cannot be an array."""
    target = found.target
    first, count = Binary("*", Member(Name("blockIdx"), axis), number(factor)), target.launch.grid[AXES.index(axis)]

    def told(stmts: Block, u: str) -> Block:
        return with_ids(stmts, {("blockIdx", axis): Binary("+", first, Name(u))})

    taken = target.names | identifiers(found.body) | {found.blocks}
    threads = Threads(
        found.common, factor, told, found.side, found.rounds, target.known.types, partial(words_of, target)
    )
    jam = Jam(threads, taken)
    exists: Expr | None = Binary("<", Binary("+", first, Name(jam.u)), Name(found.blocks))
    if divides(target, axis, factor) or (found.chain and guarded_along(target, axis)):
        exists = None
    try:
        body = jam.whole(found.chain, found.core, found.body, exists)
    except Unclear:
        return None
    words = jam.words * factor
    if found.blocks not in identifiers(body):
        return _Made(body, (), (), words)
    return _Made(body, (Param("unsigned int", found.blocks),), (ScalarArgument("uint32", count),), words)


def _gain(subject: Subject, found: Alike, factor: int, words: int) -> float:
    """The guess: by instructions, less where registers are many, or threads few."""
    launch, gpu = found.target.launch, subject.gpu
    text = " * ".join(f"({n})" for n in (*launch.grid, *launch.block))
    threads = (largest_timed(subject.contract, text) or 0) / factor
    filled = min(1.0, threads / (gpu.sm_count * gpu.max_threads_per_sm / 8))  # each has several chains in flight
    room = 1.0 if words <= _MANY_WORDS else 0.6
    gain = 1.0 + (min(found.work.speedup(factor), _MOST_GAIN) - 1.0) * room
    return 1.0 + (gain - 1.0) * filled if filled > 0.25 else _LEAST_GAIN
