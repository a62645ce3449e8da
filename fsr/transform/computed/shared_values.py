"""Values of neighbouring points as one graph: what is equal is there once, whatever point it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.computation.expression import (
    ASSOCIATIVE,
    Case,
    Const,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    children,
    moved,
    rebuilt,
    with_own_affine,
)
from fsr.computation.types import type_of
from fsr.transform.computed.shifting import raised
from fsr.transform.plain.c_text import TYPES, Writer, bare

_LONG = 160  # characters that get a name of their own


@dataclass
class SharedValues:
    """A node: an expression with its operands by number, which are smaller. ``held``: elements that stand in variables
    already."""

    held: Mapping[Expr, str]
    _numbers: dict[object, int] = field(default_factory=dict)
    _nodes: list[Expr] = field(default_factory=list)  # their own operands do not count
    _below: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, e: Expr, by: Mapping[str, int]) -> int:
        """The number of a value, of the point that is so far away; a fold is among those that are held."""
        known: dict[int, int] = {}

        def of(e: Expr) -> int:
            found = known.get(id(e))
            if found is None:
                found = known[id(e)] = self._added(e, by, of)
            return found

        return of(e)

    def _added(self, e: Expr, by: Mapping[str, int], of: Callable[[Expr], int]) -> int:
        if isinstance(e, Fold):
            return self._node(e, ())
        parts = tuple(map(of, children(e)))
        e = with_own_affine(e, lambda a: raised(a, by))
        if isinstance(e, Op) and e.name in ASSOCIATIVE:
            places = sorted(range(len(parts)), key=parts.__getitem__)
            e = replace(e, order=moved(e.known_order, places.index))
            parts = tuple(parts[n] for n in places)
        return self._node(e, parts)

    def __len__(self) -> int:
        return len(self._nodes)

    def _node(self, e: Expr, parts: tuple[int, ...]) -> int:
        match e:
            case Load():
                own: object = (e.buffer, e.dtype)
            case Op():
                own = e.name
            case Case():
                own = (e.left, e.right)
            case Const():
                own = (repr(e.value), e.dtype)
            case _:
                own = e
        number = self._numbers.setdefault((type(e), own, parts), len(self._nodes))
        if number == len(self._nodes):
            self._nodes.append(e)
            self._below.append(parts)
        return number

    # ------------------------------------------------------------ text

    def assigned(self, pairs: Sequence[tuple[str, int]], writer: Writer) -> list[str]:
        """Statements that set each place to a value; what stands in several of them is computed before, once."""
        counts, early = self._wanted([value for _, value in pairs])
        lines = list[str]()
        names = dict(self.held)
        write = replace(writer, held=names)
        made: list[Expr] = []
        for number, node in enumerate(self._nodes):
            below = self._below[number]
            e = rebuilt(node, tuple(made[k] for k in below)) if below else node
            if e in self.held:
                e = self._variable(names, self.held[e], e)
            elif number in early and type_of(e) in TYPES and (below or isinstance(e, Op)):
                text = write.text(e) if counts[number] == 1 else ""
                if counts[number] > 1 or len(text) > _LONG:
                    name = f"$t{len(lines) + 1}"
                    lines.append(f"const {TYPES[type_of(e)]} {name} = {bare(text or write.text(e))};")
                    e = self._variable(names, name, e)
            made.append(e)
        return [*lines, *(f"{place} = {bare(write.text(made[value]))};" for place, value in pairs)]

    def _variable(self, names: dict[Expr, str], name: str, e: Expr) -> Expr:
        variable = Load(name, (), e.dtype if isinstance(e, Load) else type_of(e))  # an element may be without a sign
        names[variable] = name
        return variable

    def _wanted(self, roots: Sequence[int]) -> tuple[list[int], set[int]]:
        """How often each is wanted, and those that may be computed before it is known whether they are."""
        counts, sure = [0] * len(self), self._sure(roots)
        for k in (*roots, *(k for parts in self._below for k in parts)):
            counts[k] += 1
        free = list[bool]()
        for node, parts in zip(self._nodes, self._below, strict=True):
            alone = not isinstance(node, Load) or not node.indices or node in self.held
            free.append(alone and all(free[k] for k in parts))
        movable = (n for n, e in enumerate(self._nodes) if not isinstance(e, Const | Number | Fold))
        return counts, {n for n in movable if free[n] or n in sure}

    def _sure(self, roots: Sequence[int]) -> set[int]:
        found, left = set[int](), list(roots)
        while left:
            k = left.pop()
            if k not in found:
                found.add(k)
                node, below = self._nodes[k], self._below[k]
                if not isinstance(node, Case):
                    left += below[:1] if isinstance(node, Op) and node.name == "select" else below
        return found
