"""Neighbouring elements read or written in one access, and expressions over one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.computation.expression import Expr, Load
from fsr.source.names import indent, unrolled
from fsr.transform.computed.record_packs import MOST_BYTES, Record, pack_type, records_in
from fsr.transform.computed.scene import Scene, along, bytes_of, loads_in, surely, word


@dataclass(frozen=True)
class Packs:
    """The reads among some expressions that go along a dimension, as packs of ``width`` from ``$<dim>_first`` on.
    ``records``: those of records that do, by the names of their packs."""

    scene: Scene
    dim: str
    width: int
    loads: tuple[Load, ...]
    names: Mapping[Load, str] = field(default_factory=dict)
    records: Mapping[str, Record] = field(default_factory=dict)

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

    def with_records(self, exprs: Iterable[Expr]) -> Packs:
        """With the records of which expressions read elements that no condition guards."""
        exprs = list(exprs)
        sure = surely(exprs)
        return replace(self, records=records_in(self.scene, exprs, self.dim, lambda x: self.scene.harmless(x, sure)))

    def aligned(self, written: Sequence[Load] = ()) -> str:
        """The condition under which all packs are whole: rows and addresses are multiples of the width."""
        tests: dict[str, None] = {}
        records = {r.first: r for x in written if (r := Record.of(self.scene, x, self.dim))}
        records |= {r.first: r for r in self.records.values()}
        packs = [(x, self.width, 1) for x in (*self.loads, *written) if not Record.of(self.scene, x, self.dim)]
        packs += [(r.first, r.unit(self.width), 2) for r in records.values()]
        for load, _, own in packs:
            if len(load.indices) > own:
                tests[f"{self.scene.size(self.scene.shape(load.buffer)[-own])} % {self.width} == 0"] = None
        for load, width, _ in packs:
            name, needed = self.scene.names.names[load.buffer], bytes_of(load) * width
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
        for name, record in self.records.items():
            lines += record.fetched(self.scene, name, self.width, self.first(record.first))
        return lines

    def first(self, load: Load) -> str:
        """The lvalue of a pack's first element."""
        return word(self.scene.element(load), self.dim, f"${self.dim}_first")

    def held(self, lane: str) -> dict[Expr, str]:
        """What stands for each read in the code of one lane."""
        found: dict[Expr, str] = {load: f"{name}.v[{lane}]" for load, name in self.names.items()}
        for name, record in self.records.items():
            found |= dict[Expr, str](record.places(name, self.width, lane).items())
        return found

    def made(self, written: Sequence[Load], values: Sequence[Expr], held: Mapping[Expr, str]) -> list[str]:
        """Packs of what is written, of the lanes' values, and their stores; ``held`` stands for parts of a lane's. Of
        records that are written in part the elements alone, but for those that were read: what is left of them is
        written as it was."""
        places, begun, ended = dict[Load, str](), list[str](), list[str]()
        for o in written:
            record, own = Record.of(self.scene, o, self.dim), self.scene.own(o.buffer)
            whole = record is not None and set(record.places("", self.width, "")) <= set(written)
            kept = "" if record is None or whole else self._kept(record, written, values)
            if record is not None and not whole and not kept:
                places[o] = self.scene.element(o)
            elif record is not None and o not in places:
                places |= record.places(f"{own}_made", self.width, "$lane")
                begun.append(record.declared(self.scene, f"{own}_made", self.width, kept))
                ended += record.stored(self.scene, f"{own}_made", self.width, self.first(record.first))
            elif record is None:
                again = sum(o.buffer == x.buffer for x in places)
                name, kind = f"{own}_made{again + 1 if again else ''}", pack_type(self.scene, o, self.width)
                places[o] = f"{name}.v[$lane]"
                begun.append(f"{kind} {name};")
                ended.append(f"*reinterpret_cast<{kind} *>(&{self.first(o)}) = {name};")
        pairs = [(places[o], value) for o, value in zip(written, values, strict=True)]
        lanes = self.lanes(self.scene.assigned(pairs, {**held, **self.held("$lane")}))
        return [*self.fetch(), *begun, *lanes, *ended]

    def _kept(self, record: Record, written: Sequence[Load], values: Sequence[Expr]) -> str:
        """The packs that records were read in, of which nobody reads any but a lane's own; '' where there are none, or
        most of a record stays."""
        own = record.places("", self.width, "")
        if 2 * len(own.keys() & set(written)) < record.count:
            return ""
        alone = all(x in own for x in loads_in(values) if x.buffer == record.first.buffer)
        return next((name for name, read in self.records.items() if read == record), "") if alone else ""

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


def widths(exprs: Iterable[Expr], dim: str) -> tuple[int, ...]:
    """Pack widths worth trying, widest first: 16 bytes of the narrowest element that is read along the dimension, half
    of that, one."""
    sizes = [bytes_of(x) for x in loads_in(exprs) if along(x, dim)]
    if not sizes:
        return (1,)
    widest = MOST_BYTES // min(sizes)
    return tuple(dict.fromkeys(max(1, w) for w in (widest, widest // 2, 1) if w * max(sizes) <= 2 * MOST_BYTES)) or (1,)


__all__ = ["MOST_BYTES", "Packs", "pack_type", "widths"]
