"""Neighbouring records (see :mod:`fsr.transform.computed.interleaved`), read or written by as few accesses as their
length lets: sixteen pixels of three bytes are three accesses of 16 bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fsr.computation.expression import Affine, Expr, Load, Number, names_in
from fsr.hardware.c_types import BY_DTYPE
from fsr.transform.computed.interleaved import MOST
from fsr.transform.computed.parts import name_of
from fsr.transform.computed.scene import Scene, bytes_of, loads_in

MOST_BYTES = 16


@dataclass(frozen=True)
class Record:
    """Records of ``count`` elements beside each other along a dimension. ``first``: their first element, as a read."""

    first: Load
    count: int

    @staticmethod
    def of(scene: Scene, load: Load, dim: str) -> Record | None:
        """The records that an element at a known place belongs to; None for any other element."""
        *lead, which = load.indices
        if not lead or name_of(lead[-1]) != dim or any(dim in names_in(i) for i in lead[:-1]):
            return None
        count = scene.shape(load.buffer)[-1]
        match which:
            case Number(Affine((), at), _) if count.isdigit() and 0 <= at < int(count) <= MOST:
                return Record(_element(load, 0), int(count))
        return None

    def unit(self, width: int) -> int:
        """Elements of one access, of which any ``width`` records are whole ones."""
        many = width * self.count
        unit = many & -many
        while unit * bytes_of(self.first) > MOST_BYTES:
            unit //= 2
        return unit

    def places(self, name: str, width: int, lane: str) -> dict[Load, str]:
        """What stands for each element of a lane's record in the packs of that name."""
        unit, found = self.unit(width), dict[Load, str]()
        for at in range(self.count):
            place = f"{lane} * {self.count} + {at}"
            found[_element(self.first, at)] = f"{name}[({place}) / {unit}].v[({place}) % {unit}]"
        return found

    def declared(self, scene: Scene, name: str, width: int, kept: str = "") -> str:
        """The declaration of packs without values, or with those of the packs ``kept``."""
        count = self._accesses(width)
        values = f" = {{{', '.join(f'{kept}[{n}]' for n in range(count))}}}" if kept else ""
        return f"{pack_type(scene, self.first, self.unit(width))} {name}[{count}]{values};"

    def fetched(self, scene: Scene, name: str, width: int, first: str) -> list[str]:
        """Declarations of packs that are read. ``first``: the lvalue of their first element."""
        kind = pack_type(scene, self.first, self.unit(width))
        packs = ", ".join(f"{name}_at[{n}]" for n in range(self._accesses(width)))
        return [
            f"const {kind} *const {name}_at = reinterpret_cast<const {kind} *>(&{first});",
            f"const {kind} {name}[{self._accesses(width)}] = {{{packs}}};",
        ]

    def stored(self, scene: Scene, name: str, width: int, first: str) -> list[str]:
        """Stores of packs."""
        kind = pack_type(scene, self.first, self.unit(width))
        return [f"reinterpret_cast<{kind} *>(&{first})[{n}] = {name}[{n}];" for n in range(self._accesses(width))]

    def _accesses(self, width: int) -> int:
        return width * self.count // self.unit(width)


def records_in(scene: Scene, exprs: Iterable[Expr], dim: str, fits: Callable[[Load], bool]) -> dict[str, Record]:
    """The records along a dimension that expressions read, by names for their packs. ``fits``: of which reads."""
    found = (Record.of(scene, x, dim) for x in loads_in(exprs) if fits(x))
    told = dict.fromkeys(r for r in found if r is not None)
    return {f"{scene.own(r.first.buffer)}_records{n}": r for n, r in enumerate(told, 1)}


def pack_type(scene: Scene, load: Load, width: int) -> str:
    """The C type of a pack of a buffer's elements."""
    scene.helpers.add("fsr_pack")
    return f"fsr_pack<{BY_DTYPE[load.dtype].spelling}, {width}>"


def _element(load: Load, at: int) -> Load:
    return Load(load.buffer, (*load.indices[:-1], Number(Affine((), at), "int64")), load.dtype)
