"""What statements touch of the memory that threads share, and whether two of them may touch the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fsr.analysis.accesses import Access, accesses_in, declared_arrays
from fsr.analysis.calls import is_atomic
from fsr.analysis.memory_groups import memory_groups
from fsr.analysis.polynomial import Poly, constant
from fsr.source.form import Assign, Binary, Call, Declare, Expr, For, Member, OpaqueExpr
from fsr.source.walk import (
    BARRIER,
    Block,
    base_name,
    exprs_of,
    integer,
    names_assigned,
    names_in,
    names_mentioned,
    variables,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.sections.alone import extents
from fsr.transform.target import Target

_MOST_PLACES = 1 << 14
_ANY = ""


@dataclass(frozen=True)
class Touch:
    """``name``: what is touched, '' for any memory; ``writes``, ``reads``: whether it may be; ``place``: the element,
    as the thread of the section has it; ``loops``: around the access; ``own``: by that thread alone; ``again``: in
    another turn of a loop around the section, where the same words may stand for another element."""

    name: str
    writes: bool
    reads: bool
    place: Poly | None = None
    loops: tuple[For, ...] = ()
    own: bool = False
    again: bool = False


@dataclass(frozen=True)
class Memory:
    """The memory of a kernel, seen by the thread whose ids are given."""

    target: Target
    ids: Mapping[str, int]

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """What names, ids and extents stand for."""
        return {**extents(self.target), **self.ids}

    @cached_property
    def _declared(self) -> Mapping[str, Declare]:
        return {s.name: s for s in walk_stmts(self.target.kernel.body) if isinstance(s, Declare)}

    @cached_property
    def shared(self) -> frozenset[str]:
        """The variables and arrays that a block shares."""
        return frozenset(n for n, s in self._declared.items() if "__shared__" in s.qualifiers)

    @cached_property
    def arrays(self) -> frozenset[str]:
        """All names of arrays and pointers."""
        kernel = self.target.kernel
        return frozenset(p.name for p in kernel.params if p.is_pointer) | declared_arrays(kernel.body)

    @cached_property
    def files(self) -> frozenset[str]:
        """Names that are neither the kernel's variables nor its parameters."""
        own = {*variables(self.target.kernel.body), *(p.name for p in self.target.kernel.params)}
        return names_mentioned(self.target.kernel.body) - own

    @cached_property
    def private(self) -> frozenset[str]:
        """Arrays that each thread has for itself."""
        alone = {n for n in self.arrays if (s := self._declared.get(n)) and s.dims and n not in self.shared}
        return frozenset(n for n in alone if self._groups.get(n, frozenset()) <= alone)

    @cached_property
    def _groups(self) -> Mapping[str, frozenset[str]]:
        target = self.target
        numbers = frozenset(target.constants) | target.type_names
        numbers |= {n for _, n in target.kernel.template_parameters}
        return memory_groups(target.kernel, target.aliases, numbers)

    @property
    def volatile(self) -> bool:
        """Whether order is kept by other means than barriers."""
        types = [p.type for p in self.target.kernel.params]
        for s in self._declared.values():
            types += [s.type, *s.qualifiers]
        return any("volatile" in text.split() for text in types)

    def poly(self, e: Expr) -> Poly:
        """The polynomial of an expression."""
        return self.target.known.poly(e, self.numbers)

    # ------------------------------------------------------------ touches

    def touches(self, stmts: Block, *, own: bool = False, again: bool = False) -> list[Touch]:
        """All that the statements touch but what a thread has for itself."""
        inner = frozenset(variables(stmts))
        names = self.arrays | self.target.kernel.by_reference
        found = [t for a in accesses_in(stmts, names) for t in self._touch(a, inner)]
        found += self._scalars(stmts)
        if self._hides(stmts):
            found.append(Touch(_ANY, True, True))
        return [replace(t, own=own, again=again) for t in found]

    def _touch(self, a: Access, inner: frozenset[str]) -> Iterator[Touch]:
        if a.array is None:
            name = base_name(a.expr) or ""
            yield Touch(name if name in self.files else _ANY, a.writes, True)
        elif a.array not in self.private:
            writes, reads = a.writes, a.kind != "write"
            counted = tuple(loop for loop in a.loops if isinstance(loop, For))
            place = self._place(a) if a.kind in ("read", "write", "update") and len(counted) == len(a.loops) else None
            if place is not None and not self._is_told(place, inner - {loop.var for loop in counted}):
                place = None
            yield Touch(a.array, writes, reads, place, counted)

    def _place(self, a: Access) -> Poly | None:
        """The element's number, counted through all of an array's rows."""
        declared, place = self._declared.get(a.pointer), constant(0)
        if a.pointer in self.target.known.changed & self._pointers or not a.indices:
            return None
        dims = () if declared is None else declared.dims
        if len(a.indices) > 1 and len(dims) != len(a.indices):
            return None
        for rank, index in enumerate(a.indices):
            place = (place * self.poly(dims[rank]) if rank else place) + self.poly(index)
        return place

    def _is_told(self, place: Poly, inner: frozenset[str]) -> bool:
        """Whether a place is made of ids, sizes, counters, and what is set once, before the statements."""
        target = self.target
        once = {name for name, count in self._counts.items() if count == 1} - target.known.changed - self.arrays
        steady = once | {p.name for p in target.kernel.params} | set(target.constants)
        counters = target.known.loops
        return all("." in n or n in counters or n in steady for n in place.names()) and not place.depends_on(inner)

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        return Counter(variables(self.target.kernel.body))

    @cached_property
    def _pointers(self) -> frozenset[str]:
        return frozenset(n for n in self.arrays if (s := self._declared.get(n)) is None or not s.dims)

    def _scalars(self, stmts: Block) -> Iterator[Touch]:
        """Variables that a block shares, or all threads."""
        single = (self.shared - self.arrays) | (names_assigned(self.target.kernel.body) & self.files)
        for s in walk_stmts(stmts):
            written = base_name(s.target) or "" if isinstance(s, Assign) else ""
            read = frozenset[str]().union(*map(names_in, exprs_of(s))) & single
            yield from (Touch(n, True, True, None) for n in read)
            if written in single:
                yield Touch(written, True, True)

    def _hides(self, stmts: Block) -> bool:
        """Whether something is done that orders memory, or reaches it in ways that do not show."""
        target = self.target
        for e in walk_exprs(s for s in stmts if s != BARRIER):
            match e:
                case Call():
                    if is_atomic(e) or not target.functions.stays_in_thread(e, target.type_names):
                        return True
                case Member(_, _, True):
                    return True
                case OpaqueExpr(text):
                    if "(" in text:
                        return True
        return False

    # ------------------------------------------------------------ whether they meet

    def meet(self, one: Touch, other: Touch) -> bool:
        """Whether one may write what the other touches."""
        if not (one.writes or other.writes):
            return False
        return self.same_memory(one.name, other.name) and not self._apart(one, other)

    def same_memory(self, one: str, other: str) -> bool:
        """Whether two names may lead to the same memory."""
        if one == other or _ANY in (one, other):
            return True
        first, second = (self._groups.get(n, frozenset([n])) for n in (one, other))
        if first & second or _ANY in first | second:
            return True
        passed = self.target.passed
        return any(self.target.may_alias(a, b) for a in first & passed.keys() for b in second & passed.keys())

    def _apart(self, one: Touch, other: Touch) -> bool:
        """Whether two touches of one array are known to be of different elements: gone through, all of them."""
        if one.name != other.name or one.again or other.again:
            return False
        first, second = self._places(one), self._places(other)
        if first is None or second is None:
            return False
        distance = (first[0] - second[0]).value
        return distance is not None and not np.isin(first[1] + distance, second[1]).any()

    def _places(self, touch: Touch) -> tuple[Poly, np.ndarray] | None:
        """The part of a place that does not change, and what loops add to it."""
        if touch.place is None:
            return None
        rest, added = touch.place, np.zeros(1, dtype=np.int64)
        for loop in reversed(touch.loops):
            factor, turns = rest.coefficient(loop.var), self.turns(loop)
            if factor is None or factor.value is None or turns is None or turns.count is None:
                return None
            if loop.var in names_assigned(loop.body):
                return None
            if turns.count * len(added) > _MOST_PLACES:
                return None
            rest = rest.without(loop.var) + factor * turns.first
            added = np.add.outer(added, np.arange(turns.count) * turns.step * factor.value).ravel()
        outer = {n for n in self.target.known.loops if self._counts[n] != 1}
        return None if rest.depends_on(self.target.known.changed | outer) else (rest, added)

    # ------------------------------------------------------------ loops

    def turns(self, loop: For) -> Turns | None:
        """How many turns a loop has; None where its counter does not go on by a number."""
        step = integer(loop.step)
        up = loop.relation in ("<", "<=") or (loop.relation == "!=" and step == 1)
        if not step or up != (step > 0) or (loop.relation == "!=" and abs(step) != 1):
            return None
        first = self.poly(loop.start)
        left, right = (loop.bound, loop.start) if up else (loop.start, loop.bound)
        whole = Binary("-", left, right)
        distance = self.poly(whole) + constant(1 if "=" in loop.relation and loop.relation != "!=" else 0)
        size = self.target.poly_text(distance)
        text = size if size is None or abs(step) == 1 else f"ceil_div({size}, {abs(step)})"
        value = distance.value
        count = None if value is None else max(-(-value // abs(step)), 0)
        return Turns(first, step, text if count is None else str(count), count)


@dataclass(frozen=True)
class Turns:
    """Those of a loop: the counter's first value, what is added to it, and how many there are, as a size expression and
    as a number; None where that is not told."""

    first: Poly
    step: int
    text: str | None
    count: int | None


def meeting(memory: Memory, some: Iterable[Touch], others: Iterable[Touch]) -> list[tuple[Touch, Touch]]:
    """The pairs that may meet."""
    listed = list(others)
    return [(a, b) for a in some for b in listed if memory.meet(a, b)]
