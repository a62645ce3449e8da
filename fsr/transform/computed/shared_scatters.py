"""shared-scatters: a block adds up rows of its own in shared memory, where data tells only the place in a row.

What adds to ``y[b, c, index[b, n]]`` at each point (gradients of gathered columns, rows of bins) has as many rows as
the leading dimensions have points: a block takes one, or neighbours that share their places, and adds them to memory
once.
``parts``: blocks that a row is split among, which add by atomics again. Rows too long for shared memory are added to
where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fsr.computation.computation import Statement
from fsr.computation.expression import Expr, Load, names_in
from fsr.hardware.c_types import BY_DTYPE
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.elements import stores
from fsr.transform.computed.parts import Domain, name_of, value_of
from fsr.transform.computed.scene import Scene, bytes_of
from fsr.transform.plain.c_text import NotPlain
from fsr.transform.plain.scatter import atomic

Params = Mapping[str, int | str]
_ROWS = (4, 2, 1)
_FILLED = 2  # blocks for each multiprocessor from which on a row is not split


@dataclass(frozen=True)
class _InRows:
    """``lead``: the dimensions that tell a row; ``over``: those that go through what is added to it."""

    scene: Scene
    added: Statement
    lead: Domain
    over: Domain

    @property
    def target(self) -> Load:
        return stores(self.scene)[0]

    @property
    def inside(self) -> tuple[Expr, ...]:
        """The indices within a row."""
        return self.added.place[len(self.lead) :]

    @property
    def length(self) -> str:
        """A row's elements, as a size expression."""
        return " * ".join(f"({x})" for x in self.scene.shape(self.added.target)[len(self.lead) :])

    @property
    def shares(self) -> bool:
        """Whether rows that are neighbours along the last leading dimension have the same places."""
        return not any(self.lead[-1][0] in names_in(i) for i in self.inside)


def _in_rows(scene: Scene) -> _InRows | None:
    if len(scene.part.outputs) != 1:
        return None
    (added,), extents = scene.part.outputs, dict(scene.part.domain)
    lead: list[str] = []
    for index, extent in zip(added.place, scene.shape(added.target), strict=True):
        name = name_of(index)
        if name is None or name in lead or extents.get(name) != extent:
            break
        lead.append(name)
    over = tuple(d for d in scene.part.domain if d[0] not in lead)
    if not lead or not over or len(lead) == len(added.place) or added.combine != "+":
        return None
    return _InRows(scene, added, tuple((n, extents[n]) for n in lead), over)


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = _in_rows(scene)
    if found is None:
        return
    length, blocks, points = scene.timed(found.length), 1, 1
    for _, extent in found.lead:
        blocks *= scene.timed(extent)
    for _, extent in found.over:
        points *= scene.timed(extent)
    enough, gain = _FILLED * scene.gpu.sm_count, 3.0 if points >= length else 1.3
    for rows in _ROWS if found.shares else (1,):
        if rows * length * bytes_of(found.target) > STATIC_SHARED_BYTES or (rows > 1 and blocks < rows * enough):
            continue
        parts = max(1, min(-(-enough * rows // blocks), points // 1024))
        for split in dict.fromkeys((parts, 1)):
            for threads in (256, 512, 1024):
                if threads <= max(256, points // split):
                    yield {"rows": rows, "parts": split, "threads": threads}, gain
                    gain *= 0.97


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    found = _in_rows(scene.narrowed())
    if found is None:
        raise NotPlain("no rows with places that data tells")
    rows, parts, threads = (int(params[k]) for k in ("rows", "parts", "threads"))
    if rows > 1 and not found.shares:
        raise NotPlain("each row has places of its own")
    kernel = _Kernel(found, rows, parts, threads)
    size = bytes_of(found.target)
    shared = f"min({size * rows} * ({found.length}), {STATIC_SHARED_BYTES})"
    *before, (_, last) = found.lead
    grid = "".join(f"({x}) * " for _, x in before) + f"ceil_div({last}, {rows})"
    return [
        Written(scene, kernel.lines(), (grid, str(parts), "1"), (str(threads), "1", "1"), threads, "rows",
                shared_bytes=shared)
    ]  # fmt: skip


@dataclass(frozen=True)
class _Kernel:
    rows: _InRows
    neighbours: int
    parts: int
    threads: int

    def lines(self) -> list[str]:
        """The kernel's lines."""
        scene, target = self.rows.scene, self.rows.target
        kind, index = BY_DTYPE[target.dtype].spelling, scene.index
        room = STATIC_SHARED_BYTES // bytes_of(target) // self.neighbours
        length = scene.size(self.rows.length)
        every = f"{self.neighbours} * $length" if self.neighbours > 1 else "$length"
        return [
            "extern __shared__ __align__(16) unsigned char $room[];",
            f"{kind} *const $sums = reinterpret_cast<{kind} *>($room);",
            f"const {index} $length = {length};",
            f"const bool $held = $length <= {room};",
            *self._place(),
            "if ($held) {",
            f"    for ({index} $k = threadIdx.x; $k < {every}; $k += {self.threads}) $sums[$k] = 0;",
            "    __syncthreads();",
            "}",
            *self._through(),
            "if ($held) {",
            "    __syncthreads();",
            *indent(self._ended(kind)),
            "}",
        ]

    def _place(self) -> list[str]:
        """The leading dimensions; of the last, the first of neighbours."""
        (last, extent), before = self.rows.lead[-1], self.rows.lead[:-1]
        if self.neighbours == 1:
            return lead_dims(self.rows.scene, self.rows.lead, "blockIdx.x")
        groups = (f"{last}_first", f"ceil_div({extent}, {self.neighbours})")
        lines = lead_dims(self.rows.scene, (*before, groups), "blockIdx.x")
        return [*lines[:-1], lines[-1].removesuffix(";") + f" * {self.neighbours};"]

    def _through(self) -> list[str]:
        """The loop over what is added to the rows."""
        scene, index, added = self.rows.scene, self.rows.scene.index, self.rows.added
        points = " * ".join(scene.size(x) for _, x in self.rows.over)
        step, first = f"{self.threads}", "threadIdx.x"
        if self.parts > 1:
            step, first = f"{self.threads * self.parts}", f"blockIdx.y * {self.threads} + threadIdx.x"
        value, atom = scene.text(value_of(added)), atomic(added, self.rows.target.dtype)
        at = self._row("$place", "$lane")
        each = [
            f"if ($held) {atom}(&$sums[{at}], {value});",
            f"else {atom}(&{scene.element(self.rows.target)}, {value});",
        ]
        place = scene.names.writer.flat(added.target, self.rows.inside, slice(len(self.rows.lead), None))
        inner = [
            *lead_dims(scene, self.rows.over, "$at"),
            f"const {index} $place = {place};",
            *self._each_row(each),
        ]
        loop = f"for ({index} $at = {first}; $at < {points}; $at += {step}) {{"
        return [loop, *indent(inner), "}"]

    def _row(self, place: str, lane: str) -> str:
        return f"{lane} * $length + {place}" if self.neighbours > 1 else place

    def _each_row(self, inner: list[str]) -> list[str]:
        """The lines for each of the neighbours that is there."""
        if self.neighbours == 1:
            return inner
        (last, extent), scene = self.rows.lead[-1], self.rows.scene
        lines = [
            f"const {scene.index} ${last} = ${last}_first + $lane;",
            f"if (${last} < {scene.size(extent)}) {{",
            *indent(inner),
            "}",
        ]
        return unrolled("$lane", self.neighbours, lines)

    def _ended(self, kind: str) -> list[str]:
        """What adds the rows to memory."""
        scene, target = self.rows.scene, self.rows.target
        count = len(self.rows.lead)
        row = scene.names.writer.flat(target.buffer, target.indices[:count], slice(count))
        element = f"{scene.names.names[target.buffer]}[({row}) * $length + $k]"
        atom = atomic(self.rows.added, target.dtype)
        value = f"$sums[{self._row('$k', '$lane')}]"
        add = f"{atom}(&{element}, $sum);" if self.parts > 1 else f"{element} += $sum;"
        inner = [f"const {kind} $sum = {value};", f"if ($sum != 0) {add}"]
        loop = f"for ({scene.index} $k = threadIdx.x; $k < $length; $k += {self.threads}) {{"
        return self._each_row([loop, *indent(inner), "}"])
