"""stage-slices: threads that go through slices of their own, ``x[i * 9 + k]``, find them in shared memory.

32 threads at the same place of 32 slices touch as many sectors, at every step again. A block's slices are one region:
its threads copy it together, neighbours neighbouring elements, and each works on its slice in shared memory, where one
word more for a slice of an even number puts lanes in different banks (CUDA C++ Best Practices Guide, "Shared Memory").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fsr.analysis.guards import structured
from fsr.analysis.macros import expanded
from fsr.records import Candidate, Role
from fsr.source.moved_pointers import with_own_pointers
from fsr.source.parse import parse_kernels
from fsr.source.walk import contains_barrier, contains_return, contains_warp_wide, names_mentioned
from fsr.transform.details.shared_locals import room_of
from fsr.transform.launch.block_size import BlockSize
from fsr.transform.protocol import Move, Subject
from fsr.transform.slices.grid_turns import macros_that_leave, one_turn
from fsr.transform.slices.slices import MOST_BYTES, slices_of
from fsr.transform.slices.text import Staged, end_of, staged
from fsr.transform.slices.writes import owned_by_block, wholly_written
from fsr.transform.target import Target, target_of, targets

THREADS = (128, 64, 256)
_LEAST_GAIN = 1.02
# By bytes of a slice, as measured on an H100 where slices are read and written; up to 8 it does not pay, and up to 16 a
# pack would do as well.
_GAINS = ((8, 1.02), (16, 1.25), (31, 2.0), (63, 3.0), (MOST_BYTES, 4.0))
_OF_READS = 0.4  # of the gain is left where what is written stays uncoalesced


@dataclass(frozen=True, slots=True)
class StageSlices:
    """All buffers in slices that fit at once, or those of them that are only read."""

    name: str = "stage-slices"
    aims_at: frozenset[str] = frozenset(["uncoalesced", "bandwidth", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """In the block as it is and in others, where that may change."""
        for target in targets(subject):
            found = _staged(target, subject.keep_launch)
            if not found:
                continue
            sizes = [target.threads or 0]
            free = {m.param("threads") for m in BlockSize().moves(subject) if m.region == target.region}
            sizes += [t for t in THREADS if t in free and t != target.threads]
            ways = ["all", "reads"] if {s.written for s in found} == {True, False} else ["all"]
            for what in ways:
                chosen = _chosen(found, what)
                for rank, threads in enumerate(sizes):
                    if _fit(chosen, threads, room_of(target)):
                        params = (("what", what), ("threads", threads))
                        gain = 1.0 + (_gain(chosen) - 1.0) * (_OF_READS if what == "reads" else 1.0) - 0.01 * rank
                        yield Move(self.name, target.region, params, max(gain, _LEAST_GAIN))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose blocks copy their slices."""
        target = target_of(subject, move)
        threads = int(move.param("threads"))
        if threads != target.threads:
            target = in_blocks(subject, move, threads)
        return staged(
            target, move, _chosen(_staged(target, subject.keep_launch), str(move.param("what"))), room_of(target)
        )


def in_blocks(subject: Subject, move: Move, threads: int) -> Target:
    """What a move is for with another block, as if that had been no move of its own."""
    action, region = BlockSize(), target_of(subject, move).region
    wanted = (m for m in action.moves(subject) if m.region == region and m.param("threads") == threads)
    made = action.apply(subject, next(wanted))
    other = Subject(made, parse_kernels(made.source), subject.contract, subject.keep_launch, subject.target)
    target = target_of(other, move)
    return replace(target, candidate=replace(target.candidate, actions=subject.candidate.actions))


def _chosen(found: Sequence[Staged], what: str) -> list[Staged]:
    return [s for s in found if what == "all" or not s.written]


def _fit(chosen: Sequence[Staged], threads: int, room: int) -> bool:
    """Whether a block has room for all as timed."""
    sizes = [s.bytes_of_block(threads, timed=True) for s in chosen]
    whole = all(threads % 16 == 0 for s in chosen if s.length is None)  # each part begins where packs do
    return whole and None not in sizes and sum(n or 0 for n in sizes) <= room


def _gain(chosen: Sequence[Staged]) -> float:
    longest = max(s.slices.longest * s.slices.cells * s.slices.bytes for s in chosen)
    return next(gain for most, gain in _GAINS if longest <= most)


# ---------------------------------------------------------------- which may be


@lru_cache(maxsize=32)  # each move asks for what offered it
def _staged(target: Target, keep_launch: bool) -> list[Staged]:
    """The buffers of a kernel that may be staged; in one turn of it, where threads go on by a grid; with
    macros written out, where it has none else."""
    found = _of_form(target, keep_launch)
    turn = one_turn(target)
    if not found and turn is not None:
        of_turn = _of_form(replace(target, kernel=with_own_pointers(turn)), keep_launch)
        found = [replace(one, of_turn=True) for one in of_turn]
    if not found and turn is None:
        plain = with_own_pointers(expanded(target.kernel, target.source))
        if plain.body != target.kernel.body:
            found = _of_form(replace(target, kernel=plain), keep_launch)
    return found


def _of_form(target: Target, keep_launch: bool) -> list[Staged]:
    found = list[Staged]()
    body = structured(target.kernel.body)
    leaves = body is None or contains_return(body) or macros_that_leave(target.source) & names_mentioned(body)
    alone = not contains_barrier(target.kernel.body) and not contains_warp_wide(target.kernel.body)
    for one in slices_of(target):
        end, length, cells = end_of(one), one.length.value, one.longest * one.cells
        if cells < 2 or cells * one.bytes > MOST_BYTES or (end is None and keep_launch):
            continue
        if length is None and (keep_launch or target.launch.shared_bytes != "0" or one.cells > 1):
            continue
        if one.low < 0 or (one.width is not None and one.width * 2 < one.longest):
            continue
        if one.written:
            argument = target.argument(one.name)
            apart = (one.width or 0) <= one.longest and owned_by_block(one)
            if body is None or leaves or not alone or not apart or argument is None:
                continue
            if argument.role is not Role.INOUT and not wholly_written(one, body):
                continue
        elif (one.width or 0) > 2 * one.longest:
            continue
        found.append(Staged(one, end))
    return found
