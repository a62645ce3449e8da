"""The way back from a target: a candidate with a new kernel, launch or flags, and the move in its history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fsr.records import Candidate, Launch, Plan
from fsr.source.emit import emit_kernel
from fsr.source.form import KernelForm, OpaqueStmt
from fsr.source.names import settle, words
from fsr.source.rewrite import replace_kernel
from fsr.source.tokens import skeleton
from fsr.transform.protocol import Move
from fsr.transform.target import Target


def rewritten(
    target: Target, move: Move, kernel: KernelForm | None = None, *,
    launch: Callable[[Launch], Launch] | None = None, helpers: str = "", flags: Sequence[str] = (),
) -> Candidate:  # fmt: skip
    """The candidate with a new kernel, launch or flags, and the move in its history."""
    candidate, plan = target.candidate, target.candidate.plan
    source = candidate.source if kernel is None else replace_kernel(candidate.source, target.kernel, kernel, helpers)
    if launch is not None:
        plan = with_launch(plan, target.position, launch)
    return replace(candidate, source=source, plan=with_flags(plan, flags), actions=(*candidate.actions, move.name))


def rebuilt(
    target: Target, move: Move, body: str, launch: Launch, *, bounds: Sequence[int] = (), before: str = ""
) -> Candidate:
    """The candidate with the kernel's body replaced by ``body`` (``$names`` are settled) and its launch by ``launch``.
    ``bounds``: the launch bounds to declare; ``before``: declarations to stand before the kernel."""
    source = target.source
    text = settle(body, words(skeleton(source))).strip()
    params = tuple(replace(p, restrict=p.restrict or p.name in target.unaliased) for p in target.placed.params)
    declared = tuple(map(str, bounds))
    form = replace(target.kernel, body=(OpaqueStmt(text),), params=params, launch_bounds=declared)
    data = source.encode()
    start, end = target.kernel.span or (0, 0)
    kernel = before + emit_kernel(form).rstrip("\n")
    changed = replace(target.candidate, source=(data[:start] + kernel.encode() + data[end:]).decode())
    return rewritten(replace(target, candidate=changed), move, launch=lambda _: launch)


def along(dims: tuple[str, str, str], axis: str, text: str) -> tuple[str, str, str]:
    """A grid or a block with another extent along one axis."""
    x, y, z = (text if a == axis else old for a, old in zip("xyz", dims, strict=True))
    return x, y, z


def with_launch(plan: Plan, position: int, change: Callable[[Launch], Launch]) -> Plan:
    """The plan with one of its launches changed."""
    launches = list(plan.launches)
    launches[position] = change(launches[position])
    return replace(plan, launches=tuple(launches))


def with_flags(plan: Plan, flags: Sequence[str]) -> Plan:
    """The plan with compiler flags added, each in place of an earlier one for the same option."""
    kept = [f for f in plan.flags if f.split("=")[0] not in {g.split("=")[0] for g in flags}]
    return replace(plan, flags=(*kept, *flags))
