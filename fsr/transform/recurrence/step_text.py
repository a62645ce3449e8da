"""One step as a kernel: sums first, for a tile of items and lanes over threads, shared among warps; then, an item and a
thread at a time, all the rest as it was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fsr.source.emit import emit_expr, emit_stmts
from fsr.source.form import (
    Assign,
    Binary,
    Cast,
    Expr,
    For,
    Index,
    Member,
    Name,
    OpaqueExpr,
    Stmt,
    Ternary,
    number,
)  # fmt: skip
from fsr.source.mapping import rewrite, with_blocks
from fsr.source.names import indent, unrolled
from fsr.source.walk import Block, names_in, subexprs, walk_expr
from fsr.transform.recurrence.form import elements
from fsr.transform.recurrence.placing import AXES, Layout
from fsr.transform.recurrence.shared_state import THREAD, THREADS_OF_BLOCK, StateArray
from fsr.transform.recurrence.sums import Group, Sum, Summed

WARP = 32
_FEW_HELD, _MANY_HELD = 24, 64  # sums of a thread; the fewer, the more turns' loads its registers hold
_UNROLL = ("#pragma unroll",)
_PACKS = {"float": "float4", "int": "int4", "unsigned": "uint4", "unsigned int": "uint4"}


@dataclass(frozen=True)
class Tile:
    """``lanes`` neighbouring threads' elements and ``items`` items a block of ``threads``."""

    lanes: int
    items: int
    threads: int

    @property
    def slices(self) -> int:
        """Groups of lanes that share the turns of a sum."""
        return self.threads // self.lanes

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return self.threads // WARP


@dataclass(frozen=True)
class StepText:
    """The text of a step's kernel."""

    layout: Layout
    summed: Summed
    tile: Tile

    @property
    def across(self) -> str | None:
        """The axis whose number of blocks the kernel must know to tell its layer apart; None where it need not."""
        return self.layout.others[0] if len(self.layout.others) == 2 else None

    def body(self) -> list[str]:
        """The statements; names that are not the user's begin with ``$``."""
        rec = self.layout.rec
        first = f"const {rec.type} {rec.variable} = {emit_expr(rec.at(Name('$step')))};"
        lines = [
            "const int $layer = blockIdx.z;",
            f"const unsigned $first = blockIdx.x * {self.tile.lanes}, $from = blockIdx.y * {self.tile.items};",
            first,
            *self.layout.versions("$layer", "(int)gridDim.z", old="$step % 2", new="($step + 1) % 2"),
        ]
        for number_, group in enumerate(self.summed.groups):
            lines += self._group(number_, group)
        if self.summed.groups:
            lines.append("__syncthreads();")
        return [*lines, *self._rest()]

    # ------------------------------------------------------------ sums

    def _group(self, number_: int, group: Group) -> list[str]:
        """The sums of a group, from their parts by warps in shared memory."""
        lines, tile = list[str](), self.tile
        for place, one in enumerate(group.sums):
            size = one.count * tile.items
            lines.append(f"__shared__ {one.type} $part{number_}_{place}[{tile.warps * size * tile.lanes}];")
        inside = [
            f"const int $lane = threadIdx.x % {tile.lanes}, $slice = threadIdx.x / {tile.lanes};",
            "const unsigned $own = $first + $lane < $threads ? $first + $lane : $threads - 1;",
        ]
        for place, one in enumerate(group.sums):
            inside.append(f"{one.type} $sum{place}[{one.count * tile.items}];")
            inside += unrolled("$q", one.count * tile.items, [f"$sum{place}[$q] = 0;"])
        guards = " && ".join(f"({self._placed_text(g, '$own', '$from')})" for g in group.guards)
        loop = self._turns(group)
        inside += [f"if ({guards}) {{", *indent(loop), "}"] if guards else loop
        for place, one in enumerate(group.sums):
            inside += self._combined(number_, place, one)
        return [*lines, "{", *indent(inside), "}"]

    def _turns(self, group: Group) -> list[str]:
        """The loop over a slice's turns."""
        head = group.loop
        start, bound, step = (self._placed_text(e, "$own", "$from") for e in (head.start, head.bound, head.step))
        stride = f"{self.tile.slices} * ({step})"
        held = sum(s.count for s in group.sums) * self.tile.items
        again = 4 if held <= _FEW_HELD else 2 if held <= _MANY_HELD else 1
        lines = [f"#pragma unroll {again}",
                 f"for ({head.type} {head.var} = {start} + $slice * ({step}); {head.var} {head.relation} {bound};"
                 f" {head.var} += {stride}) {{"]  # fmt: skip
        given = dict[Expr, str]()
        common = list[str]()
        for one in group.sums:
            common += self._loaded(one.term, given, "", frozenset(v for v, _ in one.around))
        inner = list(common)
        for place, one in enumerate(group.sums):
            inner += self._added(place, one, dict(given))
        return [*lines, *indent(inner), "}"]

    def _added(self, place: int, one: Sum, given: dict[Expr, str]) -> list[str]:
        """One turn's terms of a sum, for all items."""
        loads = self._loaded(one.term, given, f"_{place}", frozenset())
        term = self._term(one.term, given)
        flat = flat_of(one)
        adding = [f"$sum{place}[({flat}) * {self.tile.items} + $n] += {emit_expr(term)};"]
        if self._varies(term):
            adding.insert(0, "const unsigned $item = $from + $n < $items ? $from + $n : $items - 1;")
        lines = [*loads, *unrolled("$n", self.tile.items, adding)]
        for var, count in reversed(one.around):
            lines = unrolled(var, count, lines)
        return lines

    def _varies(self, e: Expr) -> bool:
        """Whether an expression is another for each item."""
        return any(x == Name("$item") for x in walk_expr(e))

    def _loaded(self, term: Expr, given: dict[Expr, str], mark: str, inner: frozenset[str]) -> list[str]:
        """Loads of the elements of a term that are the same for all items, and of states of all items at one place;
        but none that depends on ``inner``. ``given``: what each element is called."""
        lines = list[str]()
        for e in _always_read(term):
            if e in given or names_in(e) & inner or self._mentions_item(e) or any(x is not e for x in elements(e)):
                continue
            array = self.layout.array_of(e)
            name = f"$at{mark}_{len(given)}"
            given[e] = name
            if array is None:
                lines.append(f"const auto {name} = {self._placed_text(e, '$own', '$from')};")
            else:
                lines += self._pack(array, e, name)
        return lines

    def _pack(self, array: StateArray, e: Index, name: str) -> list[str]:
        """The elements of all items of the tile at one place."""
        count, pack = self.tile.items, _PACKS.get(array.type)
        place = self._placed_text(self.layout.place(array, e), "$own", "$from")
        first = f"&$old_{array.name}[({place}) * $room + $from]"
        if count % 4 or pack is None:
            read = unrolled("$n", count, [f"{name}[$n] = ({first})[$n];"])
            return [f"{array.type} {name}[{count}];", *read]
        lanes = [f"{name}[4 * $n + {i}] = $four.{c};" for i, c in enumerate("xyzw")]
        four = f"const {pack} $four = reinterpret_cast<const {pack} *>({first})[$n];"
        return [f"{array.type} {name}[{count}];", *unrolled("$n", count // 4, [four, *lanes])]

    def _term(self, term: Expr, given: Mapping[Expr, str]) -> Expr:
        """The term for item ``$n`` of the tile."""

        def change(e: Expr) -> Expr | None:
            if e in given:
                name = Name(given[e])
                return name if self.layout.array_of(e) is None else Index(name, Name("$n"))
            array = self.layout.array_of(e)
            if array is None or not isinstance(e, Index):
                return None
            inner = Index(e.base, rewrite(e.index, change))
            return self.layout.element(array, inner, "old", Name("$item"))

        found: Expr = self._placed(rewrite(term, change), Name("$own"), Name("$item"))
        return found

    def _mentions_item(self, e: Expr) -> bool:
        return any(x == Member(Name("blockIdx"), self.layout.axis) for x in walk_expr(e))

    def _combined(self, number_: int, place: int, one: Sum) -> list[str]:
        """The sums of a warp's slices, and those of all warps in shared memory. With every exchange a thread gives away
        half of its sums and takes the other half of its partner's."""
        held, lanes, kind, name = one.count * self.tile.items, self.tile.lanes, one.type, f"$sum{place}"
        lines, kept, begins, over = list[str](), held, list[str](), lanes
        while over < WARP and kept % 2 == 0:
            kept //= 2
            upper = f"$upper{place}_{over}"
            begins.append(f"({upper} ? {kept} : 0)")
            lines.append(f"const bool {upper} = threadIdx.x & {over};")
            lines += unrolled("$q", kept, [
                f"const {kind} $mine = {upper} ? {name}[$q + {kept}] : {name}[$q];",
                f"const {kind} $given = {upper} ? {name}[$q] : {name}[$q + {kept}];",
                f"{name}[$q] = $mine + __shfl_xor_sync(0xffffffffu, $given, {over});",
            ])  # fmt: skip
            over *= 2
        alone = over  # lanes beyond these hold what others hold too
        while over < WARP:
            added = f"{name}[$q] += __shfl_xor_sync(0xffffffffu, {name}[$q], {over});"
            lines += unrolled("$q", kept, [added])
            over *= 2
        first = " + ".join([f"(threadIdx.x / {WARP}) * {held}", *begins])
        write = f"$part{number_}_{place}[({first} + $q) * {lanes} + $lane] = {name}[$q];"
        written = unrolled("$q", kept, [write])
        if alone < WARP:
            written = [f"if (threadIdx.x % {WARP} < {alone}) {{", *indent(written), "}"]
        return [*lines, *written]

    # ------------------------------------------------------------ the rest

    def _rest(self) -> list[str]:
        """What is not summed, an item and a thread at a time."""
        layout, rec, tile = self.layout, self.layout.rec, self.tile
        versions = "new", "old"
        body = layout.stated(
            self._without_sums(rec.body), Name("$item"),
            lambda array, own, writes: versions[0] if own and (array.copied or writes) else versions[1],
        )  # fmt: skip
        inside = [
            f"const unsigned $own = $first + $pair % {tile.lanes}, $item = $from + $pair / {tile.lanes};",
            "if ($own >= $threads || $item >= $items) continue;",
            *self._lines(tuple(rec.fixed)),
        ]
        inside += [f"{r.type.removeprefix('const ')} {r.name} = {self._register(r.name)};" for r in rec.registers]
        inside += [f"{r.type} {r.name};" for r in rec.own]
        inside += [line for array in layout.arrays if array.copied for line in self._handed_on(array)]
        inside += ["{", *indent(self._lines(body)), "}"]
        inside += [f"{self._register(r.name)} = {r.name};" for r in rec.registers]
        head = f"for (int $pair = threadIdx.x; $pair < {tile.lanes * tile.items}; $pair += {tile.threads}) {{"
        return [head, *indent(inside), "}"]

    def _register(self, name: str) -> str:
        own = next(r for r in self.layout.rec.registers if r.name == name)
        return self.layout.register(own, "$layer", "$item")

    def _handed_on(self, array: StateArray) -> list[str]:
        """The thread's own elements, as they were."""
        count = 1
        for extent in array.lead:
            count *= extent
        place = "($k * $threads + $own) * $room + $item"
        moved = f"$new_{array.name}[{place}] = $old_{array.name}[{place}];"
        return [f"for (int $k = 0; $k < {count}; ++$k) {{", *indent([moved]), "}"]

    def _without_sums(self, body: Block) -> Block:
        """The statements with what was summed added where it stood."""

        def statement(s: Stmt) -> tuple[Stmt, ...]:
            places = self.summed.at(s) if isinstance(s, For) else None
            if places is not None:
                return tuple(self._total(group, place) for group, place in places)
            inner = with_blocks(s, lambda block: tuple(new for x in block for new in statement(x)))
            if isinstance(inner, For) and inner is not s and not inner.pragmas:
                return (replace(inner, pragmas=_UNROLL),)
            return (inner,)

        return tuple(new for s in body for new in statement(s))

    def _total(self, group: int, place: int) -> Stmt:
        """A sum added, warp after warp."""
        one, tile = self.summed.groups[group].sums[place], self.tile
        size = one.count * tile.items
        index = (f"($warp * {size} + ({flat_of(one)}) * {tile.items} + $pair / {tile.lanes}) * {tile.lanes}"
                 f" + $pair % {tile.lanes}")  # fmt: skip
        part = Index(Name(f"$part{group}_{place}"), OpaqueExpr(index))
        adding = (Assign(one.target, "+=", part),)
        return For("int", "$warp", number(0), "<", number(tile.warps), number(1), adding, _UNROLL)

    # ------------------------------------------------------------ places

    def _lines(self, part: Block) -> list[str]:
        return emit_stmts(self._placed(part, Name("$own"), Name("$item"))).splitlines()

    def _placed_text(self, e: Expr, own: str, item: str) -> str:
        found: Expr = self._placed(e, Name(own), Name(item))
        text = emit_expr(found)
        return text if isinstance(found, Name | Index) else f"({text})"

    def _placed(self, part: Any, own: Expr, item: Expr) -> Any:
        """Code as the thread ``own`` of the block for ``item`` runs it."""
        values: dict[Expr, Expr] = {THREAD: own, THREADS_OF_BLOCK: Cast("unsigned", Name("$threads"))}
        for axis in AXES:
            values[Member(Name("blockIdx"), axis)] = self._coordinate(axis, item)
        return rewrite(part, lambda e: values.get(e))

    def _coordinate(self, axis: str, item: Expr) -> Expr:
        layer: Expr = Cast("unsigned", Name("$layer"))
        if axis == self.layout.axis:
            return item
        if axis not in self.layout.others:
            return Cast("unsigned", number(0))
        if self.across is None:
            return layer
        return Binary("%" if axis == self.across else "/", layer, Name("$across"))


def _always_read(e: Expr) -> Iterator[Index]:
    """The elements that evaluating an expression reads whatever their values are."""
    match e:
        case Ternary(test) | Binary("&&" | "||", test):
            yield from _always_read(test)
        case Index():
            yield e
        case _:
            for part in subexprs(e):
                yield from _always_read(part)


def flat_of(one: Sum) -> str:
    """The number of a sum among those of its loops, by their variables."""
    text = "0"
    for var, count in one.around:
        text = var if text == "0" else f"({text}) * {count} + {var}"
    return text
