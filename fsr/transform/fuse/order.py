"""What becomes of launches that stand between those of a run: each goes in front of it, or behind it."""

from __future__ import annotations

from collections.abc import Sequence

from fsr.analysis.aliasing import memories
from fsr.source.entry import function_name
from fsr.transform.fuse.steps import steps_of
from fsr.transform.protocol import Subject


def in_front(subject: Subject, positions: Sequence[int]) -> tuple[int, ...] | None:
    """The launches between that go in front of a run at some positions, others go behind it; None where one can do
    neither."""
    before, behind = list[int](), list[int]()
    for position in range(positions[0] + 1, positions[-1]):
        if position in positions:
            continue
        earlier = [*(p for p in positions if p < position), *behind]
        if all(_independent(subject, position, p) for p in earlier):
            before.append(position)
        elif all(_independent(subject, position, p) for p in positions if p > position):
            behind.append(position)
        else:
            return None
    return tuple(before)


def _independent(subject: Subject, one: int, other: int) -> bool:
    """Whether two launches may be exchanged: neither may write what the other touches."""
    (own, writes), (others, rewrites) = (touched(subject, at) for at in (one, other))
    return not (writes & others or rewrites & own)


def touched(subject: Subject, position: int) -> tuple[set[str], set[str]]:
    """The memories that a launch touches, and those that it may write."""
    return subject.once(("touched", position), lambda: _read(subject, position))


def _read(subject: Subject, position: int) -> tuple[set[str], set[str]]:
    step = steps_of(subject).get(position)
    touches = None if step is None else step.as_launched
    if touches is not None:
        return {t.memory for t in touches}, {t.memory for t in touches if t.writes}
    launch, groups = subject.candidate.plan.launches[position], memories(subject.contract.aliasing)
    kernel = subject.kernels.get(function_name(launch.entry))
    params = () if kernel is None or len(kernel.params) != len(launch.args) else kernel.params
    kept = {p.name for p in params if "const" in p.type.split("*")[0].split()}
    names = [p.name for p in params] or [""] * len(launch.args)
    passed = [(name, groups.get(a, a)) for name, a in zip(names, launch.args, strict=True) if isinstance(a, str)]
    return {memory for _, memory in passed}, {memory for name, memory in passed if name not in kept}
