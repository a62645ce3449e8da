"""Launches that may be steps of another, and grids that several of them may share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fsr.analysis.polynomial import Poly, symbol
from fsr.analysis.threads import AXES
from fsr.records import Launch
from fsr.source.counting import counted
from fsr.source.entry import bare_name, function_name
from fsr.source.items import parse_items
from fsr.source.tokens import tokenize
from fsr.transform.fuse.coordinates import launched, placed, size_poly
from fsr.transform.fuse.points import Points, points_of
from fsr.transform.fuse.touches import Reader, Touch
from fsr.transform.launch.apart import Apart
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.protocol import Subject
from fsr.transform.sizes import always
from fsr.transform.target import Target

_TEXTURES = frozenset({"tex1Dfetch", "tex1D", "tex2D", "tex3D", "tex2DLayered", "surf2Dread", "surf2Dwrite"})


@dataclass(frozen=True, eq=False)
class Step(Apart):
    """A launch that becomes a step of another."""

    @property
    def space(self) -> str:
        """The namespace of its kernel."""
        return bare_name(self.launch.entry).rpartition("::")[0]

    @cached_property
    def point(self) -> Points | None:
        """The kernel as one that does something for every point below bounds."""
        return points_of(self.target)

    @cached_property
    def bounds(self) -> dict[str, Poly]:
        """Of the ids, where it is such a kernel."""
        return {} if self.point is None else {axis: size_poly(text) for axis, (_, text) in self.point.bounds.items()}

    @cached_property
    def as_launched(self) -> list[Touch] | None:
        """Its touches in its own grid."""
        shape = list(zip(AXES, self.launch.grid, self.block, strict=True))
        axes = [a for a, g, b in shape if g.strip() != "1" or b > 1]
        inside = {f"@{a}": size_poly(g) for a, g, b in shape if a in axes and b == 1}  # ids of blocks ask for no guard
        return Reader(self.target, launched(self.launch, self.block), axes, inside).touches()


@dataclass(frozen=True, eq=False)
class Grid:
    """Where steps run together: as ``host`` is launched; or, where all are kernels of points (``by_points``), at the
    points of ``host``; or, where grids may differ (``uneven``), each in its own of as many blocks as any has."""

    host: Step
    by_points: bool
    uneven: bool = False

    def takes(self, step: Step) -> bool:
        """Whether a step may run there."""
        if step is self.host:
            return not self.by_points or step.point is not None
        if not self.by_points:
            return step.block == self.host.block and (
                self.uneven or all(map(self._alike, step.launch.grid, self.host.launch.grid))
            )
        if step.point is None or self.host.point is None:
            return False
        return set(step.bounds) == set(self.host.bounds) or self.counts(step)

    def _always(self, one: str, relation: str, other: str) -> bool:
        """What two size expressions are for all sizes."""
        return always(self.host.target.contract, f"({one}) {relation} ({other})")

    def _alike(self, one: str, other: str) -> bool:
        return one == other or self._always(one, "==", other)

    def blocks(self, steps: Sequence[Step]) -> tuple[str, str, str]:
        """As many along each axis as the step with the most of them has."""
        found = list[str]()
        for counts in zip(self.host.launch.grid, *(s.launch.grid for s in steps), strict=True):
            kept = list[str]()
            for count in dict.fromkeys(counts):
                if not any(self._always(other, ">=", count) for other in kept):
                    kept = [other for other in kept if not self._always(count, ">=", other)] + [count]
            found.append(kept[0] if len(kept) == 1 else f"max({', '.join(kept)})")
        return found[0], found[1], found[2]

    def own_counts(self, step: Step, steps: Sequence[Step]) -> dict[str, str]:
        """By axis, the blocks of a step where steps have more of them."""
        if not self.uneven:
            return {}
        each = zip(AXES, step.launch.grid, self.blocks(steps), strict=True)
        return {axis: own for axis, own, most in each if not self._alike(own, most)}

    def counts(self, step: Step) -> bool:
        """Whether a step counts all points of several axes by one number."""
        whole = symbol("")
        for n, bound in enumerate(self.host.bounds.values()):
            whole = bound if n == 0 else whole * bound
        return set(step.bounds) == {"x"} and len(self.host.bounds) > 1 and step.bounds["x"] == whole

    def number(self) -> Poly:
        """The number of a point, x first."""
        number, before = Poly(), None
        for axis in sorted(self.host.bounds):
            own = symbol(f"@{axis}")
            number = number + (own if before is None else own * before)
            before = self.host.bounds[axis] if before is None else before * self.host.bounds[axis]
        return number

    def touches(self, step: Step) -> list[Touch] | None:
        """What a step does to memory, in terms of the grid."""
        if not self.by_points:
            return step.as_launched
        axes = sorted(self.host.bounds)
        ids, inside = {axis: symbol(f"@{axis}") for axis in axes}, dict[str, Poly]()
        if self.counts(step):
            ids = {"x": self.number()}
            inside = {f"@{axis}": self.host.bounds[axis] for axis in axes}
        loop = "" if step.point is None else step.point.loop
        return Reader(step.target, placed(ids), axes, inside, {loop: ids["x"]} if loop else {}).touches()


def steps_of(subject: Subject) -> dict[int, Step]:
    """The launches that may be steps, by position."""
    return subject.once("steps to fuse", lambda: _steps_of(subject))


def _steps_of(subject: Subject) -> dict[int, Step]:
    source = subject.candidate.source
    if _TEXTURES & {t.text for t in tokenize(source) if t.kind == "name"} or _holds_state(source):
        return {}
    found = ((at, _step(subject, at, launch)) for at, launch in enumerate(subject.candidate.plan.launches))
    return {at: step for at, step in found if step is not None}


def grids(steps: Sequence[Step], first: Step) -> Iterator[Grid]:
    """The grids in which steps from ``first`` on may run together."""
    yield Grid(first, by_points=False)
    if any(s.block == first.block and s.launch.grid != first.launch.grid for s in steps):
        yield Grid(first, by_points=False, uneven=True)
    if first.point is None:
        return
    yield Grid(first, by_points=True)
    wider = next((s for s in steps if s.position > first.position and len(s.bounds) > len(first.bounds)), None)
    if wider is not None:
        yield Grid(wider, by_points=True)


def _step(subject: Subject, position: int, launch: Launch) -> Step | None:
    """A launch as a step; None where threads cooperate, or what it is passed cannot be told."""
    kernel = subject.kernels.get(function_name(launch.entry))
    if kernel is None or kernel.span is None or len(launch.args) != len(kernel.params) or launch.repeated:
        return None
    types = {name for _, name in kernel.template_parameters}
    if any(
        p.type.count("*") > 1 or "volatile" in p.type or "&" in p.type or not p.name or set(p.type.split()) & types
        for p in kernel.params
    ):
        return None
    kernel = replace(kernel, body=counted(kernel.body))
    target = Target(kernel, position, subject.candidate, subject.contract, "plan")
    return None if target.block is None or cooperates(target) else Step(target)


def _holds_state(source: str) -> bool:
    """Whether a file has variables on the device that kernels may write."""
    return any(
        item.kind == "variable" and item.head & {"__device__", "__managed__"} and not item.head & {"const", "constexpr"}
        for one in parse_items(source)
        for item in one.walk()
    )
