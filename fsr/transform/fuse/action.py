"""fuse-launches: launches that follow one another over the same points become one.

A pipeline of small kernels (gray, gradients, their magnitude, a threshold) writes each picture to memory and reads it
again. In one launch each thread does all steps for its point: what it hands on to itself stays in a register, what
several steps read is read once, and a launch is two microseconds. Where other threads ask for what a launch computed,
each computes what it reads (``by=reads``), if that is little more work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fsr.contract.model import Contract, dim3, repeats_of
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.hardware.c_types import dtype_bytes
from fsr.records import Candidate, Launch
from fsr.transform.fuse.fed_text import Fed
from fsr.transform.fuse.feeds import Feed, feeds
from fsr.transform.fuse.order import in_front
from fsr.transform.fuse.runs import Run, runs
from fsr.transform.fuse.text import Fused
from fsr.transform.fuse.touches import Touch
from fsr.transform.fuse.values import values_of
from fsr.transform.protocol import Move, Subject

_LAUNCH_S = 2e-6
_REACHED = 0.8  # of the memory's rate
_SURE = 0.8  # of what memory and launches alone would gain: kernels compute, too
_MOST_GAIN, _LEAST_GAIN = 4.0, 1.02
_MOST_READS = 3.0  # of an element that is computed for each


class FuseLaunches:
    """One launch for several over the same points."""

    name = "fuse-launches"
    aims_at = frozenset({"launch", "bandwidth", "latency"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move for each run of launches, and for each pair in a longer one."""
        if subject.keep_launch or len(subject.candidate.plan.launches) < 2:
            return
        for run in runs(subject):
            gain = _gain(subject, run)
            if gain > _LEAST_GAIN:
                yield Move(self.name, "plan", (("launches", _named(run.positions)),), gain)
        for feed in feeds(subject):
            if any(set(feed.positions) <= set(run.positions) for run in runs(subject)):
                continue  # a thread reads what it made itself
            gain = _gain_of_feed(subject, feed)
            if gain > _LEAST_GAIN:
                yield Move(self.name, "plan", (("launches", _named(feed.positions)), ("by", "reads")), gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with one launch in the place of several."""
        candidate, launches = subject.candidate, move.param("launches")
        made: Fed | Fused
        if ("by", "reads") in move.params:
            made = Fed(candidate, next(f for f in feeds(subject) if _named(f.positions) == launches))
        else:
            found = next(r for r in runs(subject) if _named(r.positions) == launches)
            made = Fused(candidate, found, values_of(subject, found), in_front(subject, found.positions) or ())
        actions = (*candidate.actions, move.name)
        return Candidate(made.source(), made.plan(), actions, candidate.language)


def _named(positions: Sequence[int]) -> str:
    return "+".join(map(str, positions))


def _gain(subject: Subject, run: Run) -> float:
    """What memory and launches take before and after, by the sizes of buffers."""
    values = values_of(subject, run)
    before = after = 0.0
    for sizes in subject.contract.timed_sizes():
        if run.uneven and _blocks(run, sizes) > sum(math.prod(dim3(s.launch.grid, sizes)) for s in run.steps):
            return 0.0  # a row and a column are no plane
        held = _held(subject, sizes)
        own = [_bytes(touches, held) for touches in run.touches]
        moved = _bytes((t for own in run.touches for t in own if t.buffer not in values), held)
        try:
            seconds = _seconds(subject, sizes, held, dict(zip(run.positions, own, strict=True)), moved)
        except ContractError:
            return 0.0
        before, after = before + seconds[0], after + seconds[1]
    return _sure(before, after)


def _gain_of_feed(subject: Subject, feed: Feed) -> float:
    """The same where elements are computed as often as they are read."""
    before = after = 0.0
    for sizes in subject.contract.timed_sizes():
        held = _held(subject, sizes)
        made, inputs = held[feed.scratch.name], _bytes(feed.inputs, held)
        others = _bytes((t for t in feed.reader.as_launched or () if t.buffer != feed.scratch.name), held)
        own = dict(zip(feed.positions, (inputs + made, made + others), strict=True))
        try:
            reads = feed.reads(sizes)
            if reads is None or reads > _MOST_READS:
                return 0.0
            seconds = _seconds(subject, sizes, held, own, int(inputs * max(reads, 1.0)) + others)
        except ContractError:
            return 0.0
        before, after = before + seconds[0], after + seconds[1]
    return _sure(before, after)


def _sure(before: float, after: float) -> float:
    return min(1.0 + _SURE * (before / after - 1.0), _MOST_GAIN) if after else 0.0


def _seconds(
    subject: Subject, sizes: Mapping[str, int], held: Mapping[str, int], own: Mapping[int, int], moved: int
) -> tuple[float, float]:
    """What a plan takes before and after. ``own``: bytes that launches move that become one, which moves ``moved``."""
    gpu, before, after = subject.gpu, 0.0, 0.0
    rate = _REACHED * (gpu.memory_bytes_per_s if sum(held.values()) > gpu.l2_bytes else gpu.l2_bytes_per_s)
    for at, launch in enumerate(subject.candidate.plan.launches):
        bytes_ = own[at] if at in own else _passed(launch, held)
        seconds = repeats_of(launch, sizes) * (_LAUNCH_S + bytes_ / rate)
        before += seconds
        after += 0.0 if at in own else seconds
    return before, after + _LAUNCH_S + moved / rate


def _blocks(run: Run, sizes: Mapping[str, int]) -> int:
    return math.prod(dim3(run.grid.blocks(run.steps), sizes))


def _held(subject: Subject, sizes: dict[str, int]) -> dict[str, int]:
    """Bytes of each buffer."""
    contract: Contract = subject.contract
    found = {a.name: math.prod(contract.shape(a, sizes)) * (dtype_bytes(a.dtype) or 4) for a in contract.buffers()}
    for one in subject.candidate.plan.scratch:
        found[one.name] = evaluate_int(one.count, sizes) * (dtype_bytes(one.dtype) or 4)
    return found


def _passed(launch: Launch, held: Mapping[str, int]) -> int:
    """What a launch that stays moves at least: each buffer once."""
    return sum(held.get(buffer, 0) for buffer in {a for a in launch.args if isinstance(a, str)})


def _bytes(touches: Iterable[Touch], held: Mapping[str, int]) -> int:
    """What is moved: each buffer is read where it is read before it is written, and it is written."""
    first, written = dict[str, str](), set[str]()
    for touch in touches:
        first.setdefault(touch.buffer, touch.kind)
        written |= {touch.buffer} if touch.writes else set()
    return sum(held.get(buffer, 0) * ((kind != "write") + (buffer in written)) for buffer, kind in first.items())
