"""The shared memory of several blocks in that of one: a part for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from fsr.analysis.types import resolved
from fsr.hardware.c_types import LANES, element_bytes
from fsr.source.arrays import shared_on_top
from fsr.source.form import Binary, Declare, Expr, Index, Literal, Name
from fsr.source.mapping import rewrite
from fsr.source.walk import Block, walk_exprs, walk_stmts
from fsr.transform.sizes import always
from fsr.transform.target import Target

_LINE = 16  # bytes, to which dynamic shared memory is aligned


@dataclass(frozen=True)
class Many:
    """How many blocks are one. ``most``: at any size; ``expr``: in the kernel; ``text``: as a size expression."""

    most: int
    expr: Expr
    text: str


@dataclass(frozen=True)
class Memory:
    """``arrays``: what the kernel's body declares of shared memory, the one of dynamic extent among them with the bytes
    of an element; ``whole``: those of which elements alone are used."""

    arrays: tuple[Declare, ...]
    element_bytes: int
    whole: frozenset[str]
    bytes: str  # of dynamic memory
    static_bytes: int  # of all else, as far as it is known

    def outside(self, body: Block) -> Block:
        """The body without these declarations."""
        return tuple(s for s in body if not (isinstance(s, Declare) and s in self.arrays))

    def room(self, part: Expr, many: Many, stride: str, *, inner: bool) -> Room:
        """Memory for as many blocks. ``part``: which of them a thread is of; ``stride``: a name for the elements of
        dynamic memory that each has; ``inner``: neighbours' elements lie side by side, where elements alone are
        used."""
        return Room(self, part, many, stride, inner)


@dataclass(frozen=True)
class Room:
    """See Memory.room."""

    memory: Memory
    part: Expr
    many: Many
    name: str
    inner: bool

    @property
    def stride(self) -> str | None:
        """Elements of dynamic memory from one part to the next, as a size expression; None where none is needed."""
        dynamic = [a for a in self.memory.arrays if _is_dynamic(a)]
        if not dynamic or self._beside(dynamic[0]):
            return None
        return f"ceil_div({self.memory.bytes}, {_LINE}) * {_LINE} // {self.memory.element_bytes}"

    def bytes(self, of_one: str) -> str:
        """Of dynamic memory for all parts. ``of_one``: for one."""
        if of_one == "0":
            return of_one
        return f"ceil_div({of_one}, {_LINE}) * {_LINE} * {self.many.text}"

    def within(self, body: Block) -> Block:
        """The body, each access to what is shared in its part."""
        extents = {a.name: a for a in self.memory.arrays}

        def change(e: Expr) -> Expr | None:
            base, indices = _chain(e)
            if base not in extents:
                return None
            return self._access(extents[base], [rewrite(i, change) for i in indices])

        return tuple(
            self._declared(s) if isinstance(s, Declare) and s in self.memory.arrays else rewrite(s, change)
            for s in body
        )

    def _beside(self, array: Declare) -> bool:
        return self.inner and array.name in self.memory.whole

    def _declared(self, array: Declare) -> Declare:
        if _is_dynamic(array):
            return array
        each: Expr = Literal(str(self.many.most))
        return replace(array, dims=(*array.dims, each) if self._beside(array) else (each, *array.dims))

    def _access(self, array: Declare, indices: list[Expr]) -> Expr:
        found: Expr = Name(array.name)
        if _is_dynamic(array):
            if self._beside(array):
                return Index(found, Binary("+", Binary("*", indices[0], self.many.expr), self.part))
            start = Binary("*", self.part, Name(self.name))
            if not indices:
                return Binary("+", found, start)
            indices = [Binary("+", start, indices[0]), *indices[1:]]
        else:
            indices = [*indices, self.part] if self._beside(array) else [self.part, *indices]
        for index in indices:
            found = Index(found, index)
        return found


def shared_memory(target: Target) -> Memory | None:
    """What a kernel shares; None where it shares nothing, or something that cannot be told apart by block."""
    body, launch = target.kernel.body, target.launch
    arrays = shared_on_top(body)
    named = [s.name for s in walk_stmts(body) if isinstance(s, Declare)]
    if not arrays or any(named.count(a.name) > 1 or a.init for a in arrays):
        return None
    dynamic = [a for a in arrays if _is_dynamic(a)]
    if bool(dynamic) != (launch.shared_bytes != "0") or len(dynamic) > 1:
        return None
    size = _element_bytes(target, dynamic[0].type) if dynamic else 1
    aligned = not dynamic or all(q in ("extern", "__shared__") for q in dynamic[0].qualifiers)
    if not size or not aligned or not always(target.contract, f"({launch.shared_bytes}) % {size} == 0"):
        return None
    elements = frozenset(a.name for a in arrays if _elements_alone(body, a))
    static = sum(_bytes(target, a) for a in arrays if not _is_dynamic(a))
    return Memory(arrays, size, elements, launch.shared_bytes, static)


def _bytes(target: Target, array: Declare) -> int:
    extents = [target.known.poly(d, target.numbers).value or 0 for d in array.dims]
    return prod(extents) * (_element_bytes(target, array.type) or 0)


def _is_dynamic(array: Declare) -> bool:
    return "extern" in array.qualifiers


def _chain(e: Expr) -> tuple[str, list[Expr]]:
    """The name that indices stand behind, and these; no name for anything else."""
    indices = list[Expr]()
    while isinstance(e, Index):
        indices.insert(0, e.index)
        e = e.base
    return (e.text, indices) if isinstance(e, Name) else ("", [])


def _elements_alone(body: Block, array: Declare) -> bool:
    """Whether each mention of an array is one element of it."""
    depth = len(array.dims)
    chains = [c for e in walk_exprs(body) if (c := _chain(e))[0] == array.name]
    mentions = sum(isinstance(e, Name) and e.text == array.name for e in walk_exprs(body))
    return sum(len(indices) == depth for _, indices in chains) == mentions and not any(
        len(indices) > depth for _, indices in chains
    )


def _element_bytes(target: Target, type_: str) -> int | None:
    plain = " ".join(w for w in type_.split() if w != "volatile")
    if plain in LANES:
        element, count = LANES[plain]
        return element.bytes * count
    return element_bytes(resolved(plain, target.aliases))
