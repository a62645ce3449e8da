"""steps-in-block: launches of little work that follow one another, or one that is repeated, as one launch of one block.

A dynamic program row by row, a wave along diagonals, a decoder's iterations: each launch depends on the one before, has
work for a few warps, and takes the two or three microseconds that a launch takes. A block's barrier takes a few dozen
nanoseconds and keeps the same order: what was written before it is seen behind it by all threads of the block. Where
sizes may be so large that one block has too much to do, the launches of before stay for those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fsr.contract.model import Contract, repeats_of
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.records import Candidate, Launch
from fsr.source.entry import beside, function_name
from fsr.source.tokens import tokenize
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.in_block_text import InBlock, Step
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import largest, largest_timed
from fsr.transform.target import Target

THREADS = (1024, 512, 256)
MOST = 1 << 13  # threads of a launch that one block takes the place of
_LAUNCH_US, _STEP_US, _TURN_US = 2.2, 0.5, 0.3  # a launch; a barrier with a round trip to memory; a further turn
_MOST_GAIN, _LEAST_GAIN = 6.0, 1.1
# These read by a cache that does not see what the same launch writes.
_READ_ONLY = frozenset({"__ldg", "tex1Dfetch", "tex1D", "tex2D", "tex3D"})


class StepsInBlock:
    """Launches in a row as steps of one block, with a barrier for the end of each."""

    name = "steps-in-block"
    aims_at = frozenset({"launch", "latency"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """For each run of such launches, and each repeated one in it, a move a block size."""
        for steps in () if subject.keep_launch else _runs(subject):
            for threads in THREADS:
                gain = _gain(subject.contract, steps, threads)
                if gain > _LEAST_GAIN:
                    params = (("first", steps[0].position), ("launches", len(steps)), ("threads", threads))
                    yield Move(self.name, "plan", params, gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with one launch in the place of several, or before them where they are still needed."""
        first, count = int(move.param("first")), int(move.param("launches"))
        found = next(s for s in _runs(subject) if (s[0].position, len(s)) == (first, count))
        condition = _condition(subject.contract, found)
        made = InBlock(subject.candidate, tuple(found), int(move.param("threads")), condition)
        candidate = subject.candidate
        plan = replace(candidate.plan, launches=made.launches())
        return replace(candidate, source=made.source(), plan=plan, actions=(*candidate.actions, move.name))


def _runs(subject: Subject) -> list[list[Step]]:
    return subject.once("steps-in-block", lambda: list(_found(subject)))


def _found(subject: Subject) -> Iterator[list[Step]]:
    """Launches that follow one another, as many as may, and those of them that are repeated, alone."""
    if _READ_ONLY & {t.text for t in tokenize(subject.candidate.source) if t.kind == "name"}:
        return
    run = list[Step]()
    runs = [run]
    for position, launch in enumerate(subject.candidate.plan.launches):
        step = _step(subject, position, launch)
        if step is None or (run and beside(run[-1].launch.entry, "") != beside(launch.entry, "")):
            run = []
            runs.append(run)
        if step is not None:
            run.append(step)
    for found in runs:
        if len(found) > 1:
            yield found
        yield from ([step] for step in found if step.launch.repeated)


def _step(subject: Subject, position: int, launch: Launch) -> Step | None:
    """A launch as a step of a block; None where threads cooperate, or there are too many."""
    kernel = subject.kernels.get(function_name(launch.entry))
    if kernel is None or kernel.span is None or kernel.template is not None or len(launch.args) != len(kernel.params):
        return None
    if any(p.type.count("*") > 1 or "volatile" in p.type or not p.name for p in kernel.params):
        return None
    target = Target(kernel, position, subject.candidate, subject.contract, "plan")
    if target.block is None or cooperates(target):
        return None
    step = Step(target)
    few = [largest_timed(subject.contract, text) for text in step.threads]
    return step if all(n is not None and n <= MOST for n in few) else None


def _condition(contract: Contract, steps: Sequence[Step]) -> str | None:
    """When sizes are such that one block will do; None where it always will."""
    every = list(dict.fromkeys(text for step in steps for text in step.threads))
    large = [text for text in every if (largest(contract, text) or MOST + 1) > MOST]
    if not large:
        return None
    return f"({large[0]}) <= {MOST}" if len(large) == 1 else f"max({', '.join(large)}) <= {MOST}"


def _gain(contract: Contract, steps: Sequence[Step], threads: int) -> float:
    """What launches take over what turns of a block do, by rules of thumb."""
    before = after = 0.0
    for sizes in contract.timed_sizes():
        for step in steps:
            try:
                times = repeats_of(step.launch, sizes)
                most = max(evaluate_int(text, sizes) for text in step.threads)
            except ContractError:
                return 0.0
            before += times * _LAUNCH_US
            after += times * (_STEP_US + _TURN_US * -(-most // threads))
    return min(before / after, _MOST_GAIN) if after and before > 2 * _LAUNCH_US else 0.0
