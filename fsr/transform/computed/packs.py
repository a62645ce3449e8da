"""Neighbouring elements read or written in one access, and expressions over one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fsr.computation.expression import Expr, Load
from fsr.hardware.c_types import BY_DTYPE
from fsr.source.names import indent, unrolled
from fsr.transform.computed.scene import Scene, along, bytes_of, loads_in, surely, word

MOST_BYTES = 16


@dataclass(frozen=True)
class Packs:
    """The reads among some expressions that go along a dimension, as packs of ``width`` from ``$<dim>_first`` on."""

    scene: Scene
    dim: str
    width: int
    loads: tuple[Load, ...]
    names: Mapping[Load, str] = field(default_factory=dict)

    @staticmethod
    def of(scene: Scene, exprs: Iterable[Expr], dim: str, width: int) -> Packs:
        """Those of the expressions' reads that are at most 16 bytes wide as packs, and that no condition guards."""
        exprs = list(exprs)
        sure = surely(exprs)
        fitting = (x for x in loads_in(exprs) if along(x, dim) and bytes_of(x) * width <= MOST_BYTES)
        found = [x for x in fitting if scene.harmless(x, sure)]
        names: dict[Load, str] = {}
        for load in found:
            base = f"{scene.own(load.buffer)}_pack"
            count = sum(n == base or n[: len(base)] == base for n in names.values())
            names[load] = f"{base}{count + 1 if count else ''}"
        return Packs(scene, dim, width, tuple(found), names)

    def aligned(self, written: Sequence[Load] = ()) -> str:
        """The condition under which all packs are whole: rows and addresses are multiples of the width."""
        tests: dict[str, None] = {}
        for load in (*self.loads, *written):
            if len(load.indices) > 1:
                tests[f"{self.scene.size(self.scene.shape(load.buffer)[-1])} % {self.width} == 0"] = None
        for load in (*self.loads, *written):
            name, needed = self.scene.names.names[load.buffer], bytes_of(load) * self.width
            if needed > 1 and self.scene.target.alignment(name) % needed:
                self.scene.helpers.add("fsr_aligned")
                tests[f"fsr_aligned<{needed}>({name})"] = None
        return " && ".join(t for t in tests if t != f"0 % {self.width} == 0") or "true"

    def fetch(self) -> list[str]:
        """Declarations of the packs."""
        lines = []
        for load in self.loads:
            kind = pack_type(self.scene, load, self.width)
            lines.append(f"const {kind} {self.names[load]} = *reinterpret_cast<const {kind} *>(&{self.first(load)});")
        return lines

    def first(self, load: Load) -> str:
        """The lvalue of a pack's first element."""
        return word(self.scene.element(load), self.dim, f"${self.dim}_first")

    def held(self, lane: str) -> dict[Expr, str]:
        """What stands for each read in the code of one lane."""
        return {load: f"{name}.v[{lane}]" for load, name in self.names.items()}

    def made(self, written: Sequence[Load], values: Sequence[Expr], held: Mapping[Expr, str]) -> list[str]:
        """Packs of what is written, of the lanes' values, and their stores; ``held`` stands for parts of a lane's."""
        kinds = [pack_type(self.scene, o, self.width) for o in written]
        again = [sum(o.buffer == x.buffer for x in written[:n]) for n, o in enumerate(written)]
        names = [f"{self.scene.own(o.buffer)}_made{k + 1 if k else ''}" for o, k in zip(written, again, strict=True)]
        pairs = [(f"{name}.v[$lane]", value) for name, value in zip(names, values, strict=True)]
        return [
            *self.fetch(),
            *(f"{kind} {name};" for kind, name in zip(kinds, names, strict=True)),
            *self.lanes(self.scene.assigned(pairs, {**held, **self.held("$lane")})),
            *(f"*reinterpret_cast<{kind} *>(&{self.first(o)}) = {name};"
              for kind, name, o in zip(kinds, names, written, strict=True)),
        ]  # fmt: skip

    def lanes(self, inner: list[str], guard: str = "", at: str = "") -> list[str]:
        """The lines for each lane, unrolled; the dimension has its name there. ``at``: a lane's place in it where the
        lanes are no neighbours."""
        if any(f"${self.dim}" in line for line in (*inner, guard)):
            inner = _guarded(guard, inner)
            place = at or f"${self.dim}_first + $lane"
            inner = [f"const {self.scene.index} ${self.dim} = {place};", *inner]
        return unrolled("$lane", self.width, inner)


def _guarded(guard: str, inner: list[str]) -> list[str]:
    return [f"if ({guard}) {{", *indent(inner), "}"] if guard else inner


def pack_type(scene: Scene, load: Load, width: int) -> str:
    """The C type of a pack of a buffer's elements."""
    scene.helpers.add("fsr_pack")
    return f"fsr_pack<{BY_DTYPE[load.dtype].spelling}, {width}>"


def widths(exprs: Iterable[Expr], dim: str) -> tuple[int, ...]:
    """Pack widths worth trying, widest first: 16 bytes of the narrowest element that is read along the dimension, half
    of that, one."""
    sizes = [bytes_of(x) for x in loads_in(exprs) if along(x, dim)]
    if not sizes:
        return (1,)
    widest = MOST_BYTES // min(sizes)
    return tuple(dict.fromkeys(max(1, w) for w in (widest, widest // 2, 1) if w * max(sizes) <= 2 * MOST_BYTES)) or (1,)
