"""block-shape-3d: other blocks for kernels over three ids, whose text is right for any block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from fsr.analysis.calls import COOPERATES
from fsr.analysis.functions import thread_aware
from fsr.analysis.guards import Guard, peel
from fsr.analysis.macros import constants, expanded
from fsr.analysis.threads import global_ids
from fsr.analysis.types import is_integer
from fsr.records import Candidate, Launch
from fsr.source.form import Declare, KernelForm
from fsr.source.walk import BUILTINS, contains_opaque, identifiers, names_changed, names_mentioned, walk_stmts
from fsr.transform.placement import launched_along, size_text
from fsr.transform.plan import with_launch
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import always
from fsr.transform.target import Target, target_for

SHAPES = ((32, 4, 2), (32, 8, 1), (64, 4, 1), (32, 4, 4), (64, 2, 2), (128, 2, 1), (16, 8, 2), (32, 2, 2))


class BlockShape3D:
    """The same points in blocks of x by y by z threads; the kernel stays as it is, the grid goes along."""

    name = "block-shape-3d"
    aims_at = frozenset({"uncoalesced", "occupancy", "latency", "bandwidth", "launch"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a shape other than the present one; none with keep_launch."""
        for kernel in subject.kernels.values():
            found = None if subject.keep_launch else any_block(subject, kernel)
            for rank, (x, y, z) in enumerate(SHAPES if found is not None else ()):
                if found is not None and found.launch.block != (str(x), str(y), str(z)):
                    yield Move(self.name, kernel.name, (("x", x), ("y", y), ("z", z)), gain=1.3 - 0.05 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with another launch. Raises KeyError when the move's region is not in the subject."""
        found = any_block(subject, subject.kernels[move.region])
        assert found is not None
        block = tuple(int(move.param(axis)) for axis in "xyz")
        plan = with_launch(subject.candidate.plan, found.position, lambda launch: _relaunched(launch, block))
        return replace(subject.candidate, plan=plan, actions=(*subject.candidate.actions, move.name))


def any_block(subject: Subject, kernel: KernelForm) -> Target | None:
    """How a kernel is launched whose text is right for any block of three dimensions: each thread handles the point
    that its three ids name, every id has an upper guard, and threads do not cooperate. None for any other."""
    found = target_for(subject, kernel)
    if found is None or kernel.launch_bounds or contains_opaque(kernel.body):
        return None
    form = expanded(kernel, found.source)
    if any(isinstance(s, Declare) and s.qualifiers for s in walk_stmts(form.body)):
        return None
    used = identifiers(form.body)
    if used & (thread_aware(found.source) - {kernel.name}) or any(COOPERATES.search(n) for n in used):
        return None
    ids = _ids(form)
    left = tuple(s for s in form.body if not (isinstance(s, Declare) and s.name in ids))
    if (
        set(ids.values()) != set("xyz")
        or len(ids) != 3
        or names_mentioned(left) & BUILTINS
        or names_changed(form.body) & set(ids)
    ):
        return None
    peeled = peel(left, ids, constants(found.source, kernel, found.launch.entry))
    if peeled is None:
        return None
    guards = peeled[1]
    return found if all(_covered(found, axis, guards.get(axis, ())) for axis in "xyz") else None


def _covered(found: Target, axis: str, guards: Iterable[Guard]) -> bool:
    """Whether the launch reaches every point that the guards let through, so that a wider one handles no more."""
    extents = [size_text(g.extent, found.kernel, found.launch, found.contract) for g in guards if g.extent is not None]
    launched = launched_along(found.launch, axis)
    return any(text is not None and always(found.contract, f"({text}) <= ({launched})") for text in extents)


def _ids(form: KernelForm) -> dict[str, str]:
    """Variable to axis of the integers ``blockIdx.a * blockDim.a + threadIdx.a``."""
    found = (one for one in global_ids(form).values() if one.block_dim is None)
    return {one.name: one.axis for one in found if is_integer(one.declaration.type)}


def _relaunched(launch: Launch, block: tuple[int, ...]) -> Launch:
    old = zip(launch.grid, launch.block, block, strict=True)
    grid = tuple(g if b == str(new) else f"ceil_div(({g}) * ({b}), {new})" for g, b, new in old)
    x, y, z = map(str, block)
    return replace(launch, grid=(grid[0], grid[1], grid[2]), block=(x, y, z))
