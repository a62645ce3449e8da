"""Elements that lie side by side and that one thread reads, or writes, one after the other: ``p[4 * i]`` to
``p[4 * i + 3]``, the members of a record, the words of a block cipher's state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fsr.analysis.accesses import Access, accesses_in, declared_arrays, pointed
from fsr.analysis.polynomial import Poly, constant
from fsr.analysis.types import bare, resolved
from fsr.hardware.c_types import element_bytes
from fsr.source.form import Assign, Declare, Expr, ExprStmt, For, If, Jump, Name, OpaqueStmt, Return, Stmt
from fsr.source.walk import (
    Block,
    contains_barrier,
    contains_opaque,
    contains_warp_wide,
    exprs_of,
    names_assigned,
    names_in,
    variables,
    walk_stmts,
)
from fsr.transform.sizes import always
from fsr.transform.target import Target

WIDTHS = (8, 4, 2)
_LEAST = 4  # bytes of a pack


@dataclass(frozen=True, slots=True)
class Pack:
    """Accesses of the statements ``first`` to ``last`` of a block that one access of ``width`` elements replaces.
    ``lanes``: which element each is, by how it is written; ``start``: the first of them as it is written; ``array``:
    the parameter that they are of; ``element``: their type, ``bytes`` long; ``promised``: whether it is aligned."""

    array: str
    element: str
    bytes: int
    width: int
    first: int
    last: int
    lanes: tuple[tuple[Expr, int], ...]
    start: Expr
    writes: bool
    promised: bool


@dataclass(frozen=True, slots=True)
class _Use:
    """An access that is made whenever its block's statement ``at`` is: which element of ``array``, from ``base`` on."""

    at: int
    access: Access
    array: str
    base: Poly
    offset: int


@dataclass
class Finder:
    """``most``: bytes of a pack at most; ``reads``, ``writes``: what is packed."""

    target: Target
    most: int
    reads: bool
    writes: bool
    _multiples: dict[tuple[str, int], bool] = field(default_factory=dict)

    def packs(self, block: Block) -> list[Pack]:
        """The packs of a block's own statements, none of which shares an access with another."""
        if self.target.aliasing:
            return []
        seen = _Block(self, block)
        found = list(seen.packs(writes=False)) if self.reads else []
        packed = {id(e) for p in found for e, _ in p.lanes}
        return [*found, *seen.packs(writes=True, packed=packed)] if self.writes else found

    # ------------------------------------------------------------ places

    @cached_property
    def arrays(self) -> frozenset[str]:
        """Names that memory is reached through."""
        kernel = self.target.kernel
        return frozenset(p.name for p in kernel.params if p.is_pointer) | declared_arrays(kernel.body)

    @cached_property
    def params(self) -> frozenset[str]:
        """Of them the parameters."""
        return frozenset(p.name for p in self.target.kernel.params if p.is_pointer)

    @cached_property
    def own(self) -> frozenset[str]:
        """Arrays that are the kernel's own."""
        stmts = walk_stmts(self.target.kernel.body)
        return self.target.known.shared | {s.name for s in stmts if isinstance(s, Declare) and s.dims}

    def place(self, access: Access) -> tuple[str, Poly] | None:
        """The parameter that an access is of, and which of its elements; None where that is not told."""
        if access.array is None or access.index is None:
            return None
        at, name = self.target.poly(access.index), access.array
        for _ in range(4):  # pointers into pointers
            if name in self.params:
                return None if name in self.target.known.changed else (name, at)
            value = self.target.known.values.get(name)
            to = None if value is None else pointed(value, self.arrays)
            if to is None:
                return None
            name, at = to[0], at if to[1] is None else at + self.target.poly(to[1])
        return None

    def memory(self, access: Access) -> str | None:
        """The parameter or the own array that an access is of; None where that is not told."""
        if access.array is None or access.array in self.own | self.params:
            return access.array
        place = self.place(access)
        return place and place[0]

    # ------------------------------------------------------------ multiples

    def is_multiple(self, value: Poly, width: int) -> bool:
        """Whether a number of elements is a multiple of the width whatever its symbols are."""
        return all(
            factor % width == 0 or any(self._steps(symbol, width) for symbol in monomial)
            for monomial, factor in value.terms
        )

    def _steps(self, symbol: str, width: int) -> bool:
        """Whether a variable is a multiple of the width: a size that always is, or what begins as one and goes on in
        such steps."""
        key = symbol, width
        if key not in self._multiples:
            self._multiples[key] = True  # as long as nothing shows otherwise: it may be told by itself
            self._multiples[key] = self._always(symbol, width) or self._stepped(symbol, width)
        return self._multiples[key]

    def _always(self, symbol: str, width: int) -> bool:
        passed = self.target.passed.get(symbol)
        return passed is not None and always(self.target.contract, f"({passed}) % {width} == 0")

    def _stepped(self, name: str, width: int) -> bool:
        body = self.target.kernel.body
        if variables(body).count(name) != 1 or any(isinstance(s, OpaqueStmt) for s in walk_stmts(body)):
            return False
        values = list[Expr]()
        for s in walk_stmts(body):
            match s:
                case Declare(name=own, init=init, dims=()) if own == name and init is not None:
                    values.append(init)
                case Assign(Name(own), "=" | "+=" | "-=", value) if own == name and name not in names_assigned(value):
                    values.append(value)
                case For(var=own, start=start, step=step) if own == name and s.type is not None:
                    values += [start, step]
                case Declare(name=own) | For(var=own) if own == name:
                    return False
                case _ if name in names_assigned(exprs_of(s)) or (isinstance(s, Assign) and name in names_assigned(s)):
                    return False
        return all(self.is_multiple(self.target.poly(v), width) for v in values)

    def whole(self, array: str, width: int) -> bool:
        """Whether a buffer ends with a whole pack."""
        elements = self.target.elements(array)
        return elements is not None and always(self.target.contract, f"({elements}) % {width} == 0")


class _Block:
    """What a block's own statements read and write. ``uses``: of each statement."""

    def __init__(self, finder: Finder, block: Block) -> None:
        self.finder, self.block = finder, block
        self.touched = [accesses_in((s,), finder.arrays) for s in block]

    def packs(self, *, writes: bool, packed: frozenset[int] | set[int] = frozenset()) -> Iterator[Pack]:
        """``packed``: expressions that are read otherwise already."""
        groups = dict[tuple[str, Poly], list[_Use]]()
        for use in self._uses(writes=writes):
            groups.setdefault((use.array, use.base), []).append(use)
        for (array, base), uses in groups.items():
            size = self._bytes(array)
            done = set[int]()
            for width in WIDTHS if size is not None else ():
                assert size is not None
                if not _LEAST <= width * size <= self.finder.most or not self.finder.is_multiple(base, width):
                    continue
                for pack in self._of(array, size, width, [u for u in uses if id(u.access.expr) not in done], writes):
                    done |= {id(e) for e, _ in pack.lanes}
                    if not writes or self._may_wait(pack, packed):
                        yield pack

    def _uses(self, *, writes: bool) -> Iterator[_Use]:
        for at, (s, touched) in enumerate(zip(self.block, self.touched, strict=True)):
            if not isinstance(s, Assign if writes else Assign | Declare | ExprStmt | If | Return):
                continue
            for a in touched:
                if (
                    a.statement is not s
                    or a.tests
                    or a.loops
                    or a.kind not in ("write" if writes else "read", "update")
                ):
                    continue
                if a.kind == "update" and not (isinstance(s, Assign) and s.target is a.expr):  # by a reference to it
                    continue
                place = self.finder.place(a)
                if place is not None and "volatile" not in self.finder.target.known.types.get(a.pointer, ""):
                    offset = place[1].constant
                    yield _Use(at, a, place[0], place[1] - constant(offset), offset)

    def _bytes(self, array: str) -> int | None:
        target = self.finder.target
        return element_bytes(resolved(bare(target.known.types.get(array, "")), target.aliases))

    def _of(self, array: str, size: int, width: int, uses: Sequence[_Use], writes: bool) -> Iterator[Pack]:
        """Packs of one width: of what is written every element, of what is read more than half, and in stretches in
        which nothing stands between."""
        records = dict[int, list[_Use]]()
        for use in uses:
            records.setdefault(use.offset // width, []).append(use)
        for own in records.values():
            for stretch in self._stretches(own, writes):
                lanes = {u.offset % width for u in stretch}
                enough = len(lanes) == width or (
                    not writes and 2 * len(lanes) > width and self.finder.whole(array, width)
                )
                if not enough or 0 not in lanes or (writes and len(stretch) != width):
                    continue
                start = next(u.access.expr for u in stretch if u.offset % width == 0)
                first, last = stretch[0].at, stretch[-1].at
                if names_in(start) & {*variables(self.block[first : last + 1])}:
                    continue
                element = bare(self.finder.target.known.types[array])
                promised = self.finder.target.alignment(array) % (size * width) == 0
                told = tuple((u.access.expr, u.offset % width) for u in stretch)
                yield Pack(array, element, size, width, first, last, told, start, writes, promised)

    def _stretches(self, uses: Sequence[_Use], writes: bool) -> Iterator[list[_Use]]:
        """The accesses of one record, parted where what stands between does not let them be made at once."""
        held = list[_Use]()
        for use in uses:
            if held and not self._together(held, use, writes):
                yield held
                held = []
            held.append(use)
        if held:
            yield held

    def _together(self, held: Sequence[_Use], use: _Use, writes: bool) -> bool:
        between = self.block[held[0].at : use.at + 1]
        named = {n for u in (*held, use) for n in names_in(u.access.expr)} | use.base.names()
        if named & names_assigned(between) or any(map(_parts, between[:-1])):
            return False
        if any(u.access.kind == "update" and u.offset == use.offset for u in held):  # it is another value by now
            return False
        for at in range(held[0].at, use.at + 1):
            for a in self.touched[at]:
                if any(a.expr is u.access.expr for u in (*held, use)) or self._harmless(a, at, (*held, use), writes):
                    continue
                return False
        return True

    def _harmless(self, a: Access, at: int, uses: Sequence[_Use], writes: bool) -> bool:
        """Whether an access between changes nothing of what is read before it, or reads nothing of what is written
        after it."""
        if not writes and not a.writes:
            return True
        if a.kind == "opaque" or a.array is None:
            return False
        memory = self.finder.memory(a)
        if memory is not None and memory != uses[0].array:
            return a.kind != "atomic"
        place = self.finder.place(a)
        if place is None or a.kind == "atomic":
            return False
        offset = place[1].constant
        if place[1] - constant(offset) != uses[0].base:
            return False
        if writes:  # another element, or one that is read before it is written
            return a.kind == "read" and all(u.offset != offset or at <= u.at for u in uses)
        return all(u.offset != offset or u.at <= at for u in uses)

    def _may_wait(self, pack: Pack, packed: frozenset[int] | set[int]) -> bool:
        """Whether elements that are updated are read with a pack: what is written is not read from memory then."""
        updates = [
            a.expr for at in range(pack.first, pack.last + 1) for a in self.touched[at]
            if a.kind == "update" and any(a.expr is e for e, _ in pack.lanes)
        ]  # fmt: skip
        return all(id(e) in packed for e in updates)


def _parts(s: Stmt) -> bool:
    """Whether threads wait in a statement, may leave in it, or anything may happen."""
    leaves = any(isinstance(x, Return | Jump) for x in walk_stmts((s,)))
    return leaves or contains_barrier((s,)) or contains_warp_wide((s,)) or contains_opaque((s,))
