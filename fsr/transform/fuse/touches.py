"""What a launch does to memory: which buffers it reads and writes, and at whose elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from fsr.analysis.accesses import Access, accesses_in, element
from fsr.analysis.aliasing import memories
from fsr.analysis.calls import is_load
from fsr.analysis.effects import Unclear, pointers
from fsr.analysis.polynomial import Poly
from fsr.analysis.threads import guard_of
from fsr.analysis.types import is_integer
from fsr.analysis.written_out import plain
from fsr.source.form import Assign, Call, Declare, Expr, For, If, Index, Name, Stmt, Unary
from fsr.source.walk import Block, base_name, blocks_of, declared, nodes, walk_stmts
from fsr.transform.fuse.combs import Comb, comb_of, is_whole
from fsr.transform.fuse.coordinates import Indices, Told, is_coordinate
from fsr.transform.fuse.own_place import Place, Widths, place_of, turn
from fsr.transform.target import Target


@dataclass(frozen=True)
class Touch:
    """An access. ``buffer``: what the launch passes; ``memory``: the same for all buffers that may overlap; ``type``:
    of an element; ``place``: None where it may be any thread's; ``comb``: None where it may be any number;
    ``kind``: read, write, update or atomic."""

    buffer: str
    memory: str
    type: str
    kind: str
    place: Place | None
    comb: Comb | None
    by_cache: bool  # __ldg and the like

    @property
    def writes(self) -> bool:
        """Whether it changes memory."""
        return self.kind != "read"


class Reader:
    """The touches of one launch. ``told``: what its ids are; ``axes``: those of the grid that it is called in;
    ``inside``: bounds that hold wherever it is called; ``loops``: what variables of loops over the grid are."""

    def __init__(
        self,
        target: Target,
        told: Told,
        axes: Sequence[str],
        inside: Mapping[str, Poly],
        loops: Told = MappingProxyType({}),
    ) -> None:
        kernel = plain(target.kernel, target.source)
        self.target = replace(target, kernel=kernel)
        self.axes = axes
        self._inside: Widths = {name: (width,) for name, width in inside.items()}
        self._indices = Indices(self.target, told, inside)
        self._indices.loops = loops or self._turns()
        self._around: dict[int, Widths] = {}

    def touches(self) -> list[Touch] | None:
        """Every access of a buffer; None where one cannot be told."""
        kernel = self.target.kernel
        try:
            known = pointers(kernel, self.target.passed, self.target.contract.aliasing, self.target.functions)
        except Unclear:
            return None
        names = frozenset(known.roots)
        found = accesses_in(kernel.body, names | kernel.by_reference)
        own = [a for a in found if a.array in names]
        if any(a.array not in names and not _is_local(a, names) for a in found if a.array not in kernel.by_reference):
            return None
        mentions = sum(isinstance(n, Name) and n.text in names for n in nodes(kernel.body))
        if mentions != len(own) + sum(_points(s, names) for s in walk_stmts(kernel.body)):
            return None
        self._walk(kernel.body, self._inside)
        return [self._touch(a, known.roots, known.elements) for a in own]

    def _touch(self, access: Access, roots: Mapping[str, str], elements: Mapping[str, str]) -> Touch:
        params = frozenset(p.name for p in self.target.kernel.params if p.is_pointer)
        e = access.expr
        if is_load(e) and isinstance(e, Call) and e.args:
            e = Unary("*", e.args[0])
        place = None if access.kind == "opaque" else element(self.target.known.expand(e), params)
        memory = roots[access.pointer]
        buffer = self.target.passed[place[0]] if place is not None else self._only(memory)
        types = {elements[access.pointer]} | ({elements[place[0]]} if place is not None else set())
        kind = access.kind
        if kind == "opaque":
            kind = "read" if self._is_const(access.pointer) else "update"
        at, comb = None, None
        stays = place is not None and place[0] not in self._moved
        if place is not None and stays and len(place[1]) == 1 and len(types) == 1:
            index = self._indices.poly(place[1][0])
            comb = comb_of(index) if is_whole(place[1][0], self.target) else None
            if kind != "atomic":
                around = self._around.get(id(access.statement), self._inside)
                at = place_of(index, self.axes, around)
        return Touch(buffer, memory, "|".join(sorted(types)), kind, at, comb, is_load(access.expr))

    def _only(self, memory: str) -> str:
        """The buffer of a memory, where there is one."""
        groups = memories(self.target.contract.aliasing)
        return next((b for b in self.target.passed.values() if groups.get(b, b) == memory), memory)

    def _is_const(self, pointer: str) -> bool:
        return "const" in self.target.known.types.get(pointer, "").split("*")[0].split()

    @cached_property
    def _moved(self) -> frozenset[str]:
        """The parameters that are moved, whose indices count from elsewhere then."""
        every = (s.target for s in walk_stmts(self.target.kernel.body) if isinstance(s, Assign))
        return frozenset(target.text for target in every if isinstance(target, Name))

    # ------------------------------------------------------------ bounds

    def _turns(self) -> dict[str, Poly]:
        """Variables of loops over the grid: from a thread's place in steps of all threads along an axis."""
        found, others = dict[str, Poly](), set(declared(self.target.kernel.body))  # which may be another variable
        for loop in (s for s in walk_stmts(self.target.kernel.body) if isinstance(s, For)):
            start, step = self._indices.poly(loop.start), self._indices.poly(loop.step)
            axis = next((a for a in self.axes if self._indices.id_along(a) == start), None)
            if loop.type is not None and axis is not None and step == self._indices.extent(axis):
                found[loop.var] = turn(axis)
            else:
                others.add(loop.var)
        changed = self.target.known.changed
        return {name: t for name, t in found.items() if name not in others and name not in changed}

    @cached_property
    def _counted(self) -> dict[str, Poly]:
        """Loop variables that count up from 0 or more to one bound."""
        found, spoilt = dict[str, Poly](), set(declared(self.target.kernel.body))
        for loop in (s for s in walk_stmts(self.target.kernel.body) if isinstance(s, For)):
            start, step = self._indices.poly(loop.start).value, self._indices.poly(loop.step).value
            bound = self._indices.poly(loop.bound)
            up = loop.relation == "<" and (start or 0) >= 0 and start is not None and (step or 0) > 0
            if not up or loop.var in self.target.known.changed or found.get(loop.var, bound) != bound:
                spoilt.add(loop.var)
            elif not any(map(is_coordinate, bound.symbols)):
                found[loop.var] = bound
        return {name: bound for name, bound in found.items() if name not in spoilt}

    def _symbols(self) -> dict[str, str]:
        """Variables that are coordinates."""
        found = {name: value.single for name, value in self._indices.loops.items()}
        for name, value in self.target.known.values.items():
            kind = self.target.known.types.get(name, "")
            if is_integer(kind):
                found[name] = self._indices.poly(value).single
        return {name: s for name, s in found.items() if s is not None and is_coordinate(s)}

    def _walk(self, stmts: Block, around: Widths) -> None:
        """Note the bounds of coordinates that hold at each statement."""
        symbols = self._symbols()
        counted = {f"@{self.target.position}.{name}": (bound,) for name, bound in self._counted.items()}
        self._note(stmts, {**counted, **around}, symbols)

    def _note(self, stmts: Block, around: Widths, symbols: Mapping[str, str]) -> None:
        for s in stmts:
            self._around[id(s)] = around
            guard = guard_of(s, frozenset(symbols))
            inner = around
            if guard is not None:
                inner = _joined(around, ((symbols[n], self._indices.poly(b)) for n, b in guard.bounds.items()))
            elif isinstance(s, For) and s.var in symbols and s.relation == "<":
                inner = _joined(around, [(symbols[s.var], self._indices.poly(s.bound))])
            if guard is not None and guard.returns:
                around = inner
                continue
            for block in blocks_of(s):
                self._note(block, inner if not isinstance(s, If) or block is s.then else around, symbols)


def _joined(around: Widths, more: Iterator[tuple[str, Poly]] | list[tuple[str, Poly]]) -> Widths:
    found = dict(around)
    for name, bound in more:
        if not any(map(is_coordinate, bound.symbols)):
            found[name] = (*found.get(name, ()), bound)
    return found


def _is_local(access: Access, names: frozenset[str]) -> bool:
    """Whether an access is one of an array of the thread's own."""
    e: Expr = access.expr
    return access.array is None and isinstance(e, Index) and base_name(e) not in names | {None}


def _points(s: Stmt, names: frozenset[str]) -> bool:
    """Whether a statement mentions a pointer only to make or to move one."""
    match s:
        case Declare(name=name, init=init):
            return init is not None and name in names
        case Assign(target=Name(text), op=op):
            return text in names and op in ("+=", "-=")
    return False
