"""Neighbouring elements that a walk along a window reads, in packs of as many as a thread has points.

A step of the walk needs as many elements as there are points; as many steps need twice as many less one. So one pack is
kept and one fetched for a whole square of points and steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fsr.computation.expression import Affine, Expr, Load, Number, fixed, names_in
from fsr.hardware.c_types import BY_DTYPE
from fsr.transform.computed.parts import number_of
from fsr.transform.computed.record_packs import MOST_BYTES
from fsr.transform.computed.scene import Scene, bytes_of
from fsr.transform.computed.shifting import moved

_MOST_FIELDS = 4


@dataclass(frozen=True)
class Stream:
    """Elements, or records of ``fields`` elements, one behind the other. ``first``: the read of the first field;
    ``way``: 1 where a step goes up, -1 down; ``held``: the reads of the walk that are among them, by their field."""

    first: Load
    fields: int
    way: int
    held: Mapping[Load, int]
    name: str

    def begun(self, scene: Scene, along: str, by: str, count: int) -> list[str]:
        """Declarations before the walk: whether packs are whole, and those at its first step."""
        at = self._element(scene, {along: 0}, {by: 0})
        scene.helpers.update(("fsr_pack", "fsr_aligned", "fsr_neighbours"))
        width = self._width(count)
        lines = [f"const bool {self.name}_whole = fsr_aligned<{bytes_of(self.first) * width}>(&{at});"]
        return [*lines, *self._packs(scene, "", f"&{at}", count)]

    def fetched(self, scene: Scene, along: str, count: int) -> list[str]:
        """Declarations of the packs that the next steps need too."""
        return self._packs(scene, "_next", f"&{self._element(scene, {along: self.way * count}, {})}", count)

    def moved(self, count: int) -> list[str]:
        """The next packs in place of those before."""
        parts = count * self.fields // self._width(count)
        return [f"{self.name}_{n} = {self.name}_next_{n};" for n in range(parts)]

    def places(self, point: Mapping[str, int], at: int, count: int) -> dict[Expr, str]:
        """What stands for the reads of a point at a step of the square. ``point``: what both add to dimensions; ``at``:
        how many elements it is from the first pack's first."""
        pack, width = f"{self.name}{'' if 0 <= at < count else '_next'}", self._width(count)
        numbers = {x: at % count * self.fields + field for x, field in self.held.items()}
        return {moved(x, point): f"{pack}_{n // width}.v[{n % width}]" for x, n in numbers.items()}

    def _element(self, scene: Scene, by: Mapping[str, int], known: Mapping[str, int]) -> str:
        load = fixed(moved(self.first, by), known)
        assert isinstance(load, Load)
        return scene.element(load)

    def _width(self, count: int) -> int:
        """Elements of one access."""
        return math.gcd(MOST_BYTES // bytes_of(self.first), count * self.fields)

    def _packs(self, scene: Scene, which: str, at: str, count: int) -> list[str]:
        record, width = bytes_of(self.first) * self.fields, self._width(count)
        told = scene.target.alignment(scene.names.names[self.first.buffer])
        least = self.fields if record in (2, 4, 8, 16) and told % record == 0 else 1
        kind = f"{'const ' if which else ''}fsr_pack<{BY_DTYPE[self.first.dtype].spelling}, {width}>"
        starts = [f"{at} + {n}" if n else at for n in range(0, count * self.fields, width)]
        return [
            f"{kind} {self.name}{which}_{n} = fsr_neighbours<{width}, {least}>({start}, {self.name}_whole);"
            for n, start in enumerate(starts)
        ]  # fmt: skip


def streams(scene: Scene, near: Mapping[Load, int], along: str) -> list[Stream] | None:
    """All reads that a step moves as streams; None where one goes along no contiguous memory."""
    found = dict[tuple[Load, int, int], dict[Load, int]]()
    for load, way in near.items():
        begin = _begin(scene, load, along)
        if begin is None:
            return None
        first, fields, field = begin
        found.setdefault((first, fields, way), {})[load] = field
    return [Stream(*key, held, f"$near{n}") for n, (key, held) in enumerate(found.items())]


def _begin(scene: Scene, load: Load, along: str) -> tuple[Load, int, int] | None:
    """(the read of the first field, fields, the field) of a read along contiguous elements or records."""
    moving = [n for n, index in enumerate(load.indices) if along in names_in(index)]
    if moving == [len(load.indices) - 1]:
        return load, 1, 0
    field, extent = number_of(load.indices[-1]), scene.shape(load.buffer)[-1]
    if moving != [len(load.indices) - 2] or field is None or not extent.isdigit() or int(extent) > _MOST_FIELDS:
        return None
    return Load(load.buffer, (*load.indices[:-1], Number(Affine((), 0), "int32")), load.dtype), int(extent), field
