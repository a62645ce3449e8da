"""Where the state of a recurrence lies between steps, and how the code of one step speaks of it.

A shared array is kept twice: what the steps before left (old), and what this one writes (new), since other blocks read
the first while the second is written. Its elements lie with the items of a tile side by side, so that what several
items have at one place is read in packs. Registers are kept once; only the thread that owns them looks at them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fsr.hardware.c_types import BY_SPELLING
from fsr.records import Scratch
from fsr.source.form import Assign, Binary, Cast, Declare, Expr, Index, Name, Param, Stmt
from fsr.source.mapping import rewrite, with_blocks, with_exprs
from fsr.source.walk import Block
from fsr.transform.recurrence.form import Recurrence
from fsr.transform.recurrence.shared_state import StateArray, is_own
from fsr.transform.target import Target

AXES = "xyz"


@dataclass(frozen=True)
class Layout:
    """``axis``: of the grid, along which items lie in tiles of ``tile``."""

    rec: Recurrence
    axis: str
    tile: int

    @property
    def target(self) -> Target:
        """The launch."""
        return self.rec.target

    @property
    def threads(self) -> str:
        """Threads of a block as launched: elements of the state's arrays."""
        return f"({self.target.launch.block[0]})"

    @property
    def items(self) -> str:
        """Items along the axis."""
        return f"({self.target.launch.grid[AXES.index(self.axis)]})"

    @property
    def room(self) -> str:
        """Items for which there is room: whole tiles."""
        return f"round_up({self.items}, {self.tile})"

    @property
    def others(self) -> tuple[str, ...]:
        """The other axes along which there may be several blocks."""
        return tuple(a for a, size in zip(AXES, self.target.launch.grid, strict=True) if a != self.axis and size != "1")

    @property
    def layers(self) -> str:
        """Items that differ along the other axes only."""
        grid = dict(zip(AXES, self.target.launch.grid, strict=True))
        return " * ".join(f"({grid[a]})" for a in self.others) or "1"

    @property
    def arrays(self) -> tuple[StateArray, ...]:
        """Every array once."""
        return tuple({a.key: a for a in self.rec.arrays.values()}.values())

    # ------------------------------------------------------------ buffers

    def elements(self, array: StateArray) -> str:
        """Elements of an array for all items of a layer."""
        lead = " * ".join(map(str, array.lead)) or "1"
        return f"{lead} * {self.threads} * {self.room}"

    def scratch(self) -> list[Scratch]:
        """The buffers, arrays first; those of arrays are cleared, since there is more room than items."""
        taken = {a.name for a in self.target.contract.args} | {s.name for s in self.target.candidate.plan.scratch}
        taken |= {s.name for s in self.target.contract.sizes}
        found = [
            Scratch(f"state_{a.name}", BY_SPELLING[a.type].dtype, f"2 * {self.layers} * {self.elements(a)}", True)
            for a in self.arrays
        ]
        every = f"{self.layers} * {self.items} * {self.threads}"
        found += [Scratch(f"kept_{r.name}", BY_SPELLING[_plain(r)].dtype, every) for r in self.rec.registers]
        return [replace(s, name=_clear(s.name, taken)) for s in found]

    def params(self) -> tuple[Param, ...]:
        """The parameters behind the kernel's own: buffers, items of a layer, room for them, threads of an item."""
        arrays = [Param(f"{a.type} *", f"$state_{a.name}") for a in self.arrays]
        registers = [Param(f"{_plain(r)} *", f"$kept_{r.name}") for r in self.rec.registers]
        return (*arrays, *registers, Param("int", "$items"), Param("int", "$room"), Param("int", "$threads"))

    def versions(self, layer: str, layers: str, **versions: str) -> list[str]:
        """Declarations of ``$old_NAME`` and ``$new_NAME`` (the keywords), by which of the two copies each is."""
        lines = []
        for a in self.arrays:
            lead = " * ".join(map(str, a.lead)) or "1"
            size = f"(size_t)({lead} * $threads) * $room"
            for kind, number in versions.items():
                const = "const " if kind == "old" else ""
                place = f"((size_t)({number}) * ({layers}) + {layer}) * ({size})"
                lines.append(f"{const}{a.type} *${kind}_{a.name} = $state_{a.name} + {place};")
        return lines

    def layers_text(self) -> str:
        """The number of layers in a kernel that has the original's grid."""
        return " * ".join(f"(int)gridDim.{a}" for a in self.others) or "1"

    def layer_text(self) -> str:
        """The number of the layer in a kernel that has the original's grid."""
        match self.others:
            case ():
                return "0"
            case (a,):
                return f"(int)blockIdx.{a}"
        a, b = self.others
        return f"((int)blockIdx.{b} * (int)gridDim.{a} + (int)blockIdx.{a})"

    def register(self, r: Declare, layer: str, item: str) -> str:
        """Where a register of the thread ``$own`` is kept."""
        return f"$kept_{r.name}[((size_t)({layer}) * $items + {item}) * $threads + $own]"

    # ------------------------------------------------------------ code

    def array_of(self, e: Expr) -> StateArray | None:
        """The state array that an element is of."""
        base = e
        while isinstance(base, Index):
            base = base.base
        return self.rec.arrays.get(base.text) if isinstance(e, Index) and isinstance(base, Name) else None

    def place(self, array: StateArray, e: Index) -> Expr:
        """The place of an element among those of an item, by lead and index."""
        found: Expr = Cast("int", e.index)
        indices, base = list[Expr](), e.base
        while isinstance(base, Index):
            indices, base = [base.index, *indices], base.base
        if not indices:
            return found
        lead: Expr = Cast("int", indices[0])
        for index, extent in zip(indices[1:], array.lead[1:], strict=True):
            lead = Binary("+", Binary("*", lead, Name(str(extent))), Cast("int", index))
        return Binary("+", Binary("*", lead, Name("$threads")), found)

    def element(self, array: StateArray, e: Index, version: str, item: Expr) -> Expr:
        """An element of an item in a copy."""
        place = self.place(array, e)
        return Index(Name(f"${version}_{array.name}"), Binary("+", Binary("*", place, Name("$room")), item))

    def stated(self, part: Block, item: Expr, version: Callable[[StateArray, bool, bool], str]) -> Block:
        """Statements with elements of the state in place of shared ones. ``version``: which copy, of an array, an own
        element or not, written or read."""

        def expr(e: Expr, *, writes: bool = False) -> Expr:
            def change(x: Expr) -> Expr | None:
                array = self.array_of(x)
                if array is None or not isinstance(x, Index):
                    return None
                copy = version(array, is_own(self.target, x), writes and x is e)
                inner = _with_indices(x, lambda index: rewrite(index, change))
                return self.element(array, inner, copy, item)

            return rewrite(e, change)

        def statement(s: Stmt) -> Stmt:
            if isinstance(s, Assign):
                return replace(s, target=expr(s.target, writes=True), value=expr(s.value))
            return with_blocks(with_exprs(s, expr), lambda block: tuple(map(statement, block)))

        return tuple(map(statement, part))


def _plain(r: Declare) -> str:
    return r.type.removeprefix("const ")


def _clear(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _with_indices(e: Index, change: Callable[[Expr], Expr]) -> Index:
    base = _with_indices(e.base, change) if isinstance(e.base, Index) else e.base
    return Index(base, change(e.index))
