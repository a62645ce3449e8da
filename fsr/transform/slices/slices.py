"""Buffers of which every thread touches a slice of its own: ``x[i * 9 + k]``, threads side by side.

Element for element, a place is ``thread * length + start + offset``: ``start`` is one number for a block, ``offset``
lies within the slice. That is shown by polynomials, for slices whose length is an argument once for each of the sizes
that stand for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property, reduce

from fsr.analysis.polynomial import Poly, constant
from fsr.analysis.records_of_numbers import numbers_in
from fsr.analysis.types import bare, is_integer, resolved
from fsr.expressions import evaluate_int
from fsr.hardware.c_types import LANES, ElementType, dtype_bytes, element_bytes
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Member,
    Name,
    OpaqueExpr,
    Param,
    Scope,
    Stmt,
    While,
    number,
)
from fsr.source.macros import macros, reached_by_macros
from fsr.source.mapping import map_stmts, substitute
from fsr.source.types import COMPLEX
from fsr.source.walk import (
    BUILTINS,
    Block,
    names_assigned,
    names_in,
    names_mentioned,
    variables,
    walk_expr,
    walk_stmts,
)
from fsr.transform.details.places import Place, Places, Span, span_of
from fsr.transform.placement import size_text
from fsr.transform.sizes import largest_timed, sample_sizes
from fsr.transform.target import Target

MOST_BYTES = 1024  # of a slice
_WORD = 4  # bytes of the words in which members of several types are copied
_FEWEST = 64  # threads of a block that is offered
_DEPTH = 8  # of variables that say one another
_MOST_SAMPLES = 24  # of sizes for which a length that is an argument is looked at


@dataclass(frozen=True)
class Slices:
    """A buffer in slices. ``length``: elements from one thread's slice to the next one's; ``start``: where the block's
    first one begins; ``low``, ``high``: the first and the last place that is touched, from a slice's beginning on
    (``high`` None: the last of the length); ``written``: whether anything is."""

    of: SlicedBuffer
    param: Param
    length: Poly
    start: Poly
    low: int
    high: int | None
    written: bool

    @property
    def name(self) -> str:
        """The buffer's."""
        return self.param.name

    @property
    def bytes(self) -> int:
        """Of what is copied at a time: an element, or a number in one."""
        return self.of.cell[1]

    @property
    def cells(self) -> int:
        """How many of them an element is."""
        return self.of.cell[2]

    @property
    def width(self) -> int | None:
        """How many neighbouring elements a thread touches; None where that is an argument."""
        return None if self.high is None else self.high - self.low + 1

    @property
    def longest(self) -> int:
        """Elements from slice to slice as timed, or the number that it is."""
        return self.length.value or self.of.timed(self.length) or 0

    def offset(self, at: Poly) -> Poly:
        """Where in the slice a place is."""
        return at - self.of.thread * self.length - self.start


class SlicedBuffer(Places):
    """A buffer in global memory whose places are looked at. ``more``: values of arguments."""

    followed = (If, Scope, For, While)

    def __init__(self, target: Target, param: Param, more: Mapping[str, int] | None = None) -> None:
        self._polys: dict[int, tuple[Expr, Poly]] = {}  # of indices, by which they are: a place is looked at many times
        super().__init__(target, Declare(bare(param.type), param.name, None, (number(1),)), more)
        self.param, self.more = param, dict(more or {})
        self.given_places: list[Place] = []  # which functions are given
        self.written = False

    @cached_property
    def cell(self) -> tuple[str, int, int]:
        """The type that is copied, its bytes, and how many of it an element is: that of its members for a struct. No
        bytes where they are not known."""
        type_, source = bare(self.param.type), self.target.source
        if self._vector is not None:
            number_, lanes = self._vector
            return (number_.spelling, number_.bytes, 3) if lanes == 3 else (type_, number_.bytes * lanes, 1)
        argument = self.target.argument(self.param.name)
        if type_ in {name for kind, name in self.target.kernel.template_parameters if kind in ("typename", "class")}:
            return type_, (dtype_bytes(argument.dtype) if argument is not None else None) or 0, 1
        layout = argument.layout if argument is not None else None
        if layout is not None and layout.word == _WORD:  # members of several types
            return "unsigned int", _WORD, layout.bytes // _WORD
        record = numbers_in(source, type_)
        if record is not None and argument is not None and element_bytes(record[0]) == dtype_bytes(argument.dtype):
            return record[0], element_bytes(record[0]) or 0, record[1]
        return type_, element_bytes(resolved(type_, self.target.aliases)) or 0, 1

    @cached_property
    def _vector(self) -> tuple[ElementType, int] | None:
        """The number and how many of it, for a built-in vector or a complex number, by whatever name."""
        type_ = resolved(self.param.type, self.target.aliases)
        return LANES.get(COMPLEX.get(type_, type_))

    @cached_property
    def count(self) -> str:
        """How many cells the buffer has, as a size expression."""
        text = self.target.elements(self.param.name) or "0"
        lanes = self._vector[1] if self._vector is not None and self.cell[2] == 1 else 1
        return text if lanes == 1 else f"({text}) // {lanes}"

    def timed(self, value: Poly) -> int | None:
        """The largest value of a polynomial of sizes as timed; None where it is no such."""
        text = size_text(value, self.target.kernel, self.target.launch, self.target.contract)
        return None if text is None else largest_timed(self.target.contract, text)

    # ------------------------------------------------------------ places

    def poly(self, e: Expr) -> Poly:
        """The polynomial of an index, what a loop's turn sets once written out too."""
        if id(e) not in self._polys:
            self._polys[id(e)] = e, self.target.known.poly(self._expanded(e), self.known)
        return self._polys[id(e)][1]

    def _expanded(self, e: Expr) -> Expr:
        for _ in range(_DEPTH):
            e, before = self.target.known.expand(e), e
            e = substitute(e, self._of_turns) if self._of_turns else e
            if e is before or e == before:
                break
        return e

    @cached_property
    def _of_turns(self) -> Mapping[str, Expr]:
        """What variables are set to in each turn of a loop over a variable that was declared before it."""
        found, known = dict[str, Expr](), self.target.known
        every = [s.name for s in walk_stmts(self.target.kernel.body) if isinstance(s, Declare)]
        for loop in walk_stmts(self.target.kernel.body):
            if not isinstance(loop, For) or loop.type is not None or loop.var in names_assigned(loop.body):
                continue
            for s in walk_stmts(loop.body):
                if isinstance(s, Declare) and s.init is not None and is_integer(s.type) and every.count(s.name) == 1:
                    named = names_in(s.init)
                    steady = not named & (known.changed - {loop.var}) and named <= known.types.keys() | BUILTINS
                    plain = not any(isinstance(x, Index | Call | OpaqueExpr) for x in walk_expr(s.init))
                    if steady and plain and s.name not in known.changed:
                        found[s.name] = s.init
        return found

    def pointed(self) -> bool:
        """Whether pointers to the buffer are set once to a place in it; they are noted then."""
        body = self.target.kernel.body
        assigned = names_assigned(map_stmts(body, _of_names))
        return self.param.name not in assigned.union(variables(body)) and self.follow(body, assigned)

    def found(self, *, any_places: bool = True) -> bool:
        """Whether all that the kernel does with the buffer is to touch elements, which are noted then."""
        body = self.target.kernel.body
        if not self.pointed():
            return False
        counted = {s.var for s in walk_stmts(body) if isinstance(s, For) and s.type is not None}
        moving = self.target.known.changed - counted
        if any(at.depends_on(moving) for at in self.pointers.values()):
            return False
        called = {m.name for m in macros(self.target.source)} & names_mentioned(body)
        if called and self.names & reached_by_macros(self.target.source):
            return False
        return self.collect(body, {}, frozenset()) and (bool(self.places) or not any_places)

    def afresh(self) -> SlicedBuffer:
        """The buffer with no place noted yet; what the kernel as a whole does with it is known."""
        other = copy(self)
        other.places, other.given_places, other.given, other.written = [], [], False, False
        return other

    def collect(self, body: Block, reach: Mapping[str, Span], counted: frozenset[str]) -> bool:
        """Note all places; with values of arguments not those in loops that have no turn then."""
        if self.more:
            body = tuple(s for s in body if not (isinstance(s, For) and self._never_runs(s, reach)))
        return super().collect(body, reach, counted)

    def _never_runs(self, loop: For, reach: Mapping[str, Span]) -> bool:
        start, bound = (span_of(self.poly(e), reach) for e in (loop.start, loop.bound))
        if start is None or bound is None or loop.relation not in ("<", "<="):
            return False
        return start[0] >= bound[1] + (loop.relation == "<=")

    def _visit(self, s: Stmt, reach: Mapping[str, Span], counted: frozenset[str]) -> bool:
        self._reach = reach
        if isinstance(s, Assign):
            self.written |= self.changed(s.target) is not None
        if isinstance(s, Declare) and "&" in s.type and "const" not in s.type.split() and s.init is not None:
            self.written |= self.place(s.init) is not None
        return super()._visit(s, reach, counted)

    def changed(self, target: Expr) -> tuple[Poly, str] | None:
        """The place of which an assignment changes a member, or all (''); '?' for a part of a member."""
        member = ""
        while True:
            at = self.place(target)
            match target:
                case Member(_, name, True) if at is not None:
                    return at, "?" if member else name
                case _ if at is not None:
                    return at, member
                case Member(base, name, _):
                    target, member = base, "?" if member else name
                case Index(base, _):
                    target, member = base, "?"
                case _:
                    return None

    def _noted(self, place: Place) -> Place:
        reach = dict(place.reach)
        for x in reversed(list(walk_expr(self._expanded(place.expr)))):
            span = self._part(x, reach)
            if span is not None and (name := self.poly(x).single) is not None:
                reach[name] = span
        return Place(place.expr, place.base, place.at, reach, place.counted)

    def _part(self, e: Expr, reach: Mapping[str, Span]) -> Span | None:
        """Between which numbers a remainder or a quotient lies."""
        match e:
            case Binary("%" | "&" | "/" | ">>" as op, left, right):
                by, whole = self.poly(right).value, span_of(self.poly(left), reach)
                if by is not None and by >= 0 and op == "&":
                    return 0, by
                if by is None or by < 0 or whole is None or whole[0] < 0 or (op in "/%" and by == 0):
                    return None
                if op == "%":
                    return 0, min(by - 1, whole[1])
                return (whole[0] // by, whole[1] // by) if op == "/" else (whole[0] >> by, whole[1] >> by)
        return None

    def _is_harmless(self, call: Call) -> bool:
        callee = call.callee.text if isinstance(call.callee, Name) else ""
        by_reference = self.target.kernel.by_reference
        given = (a for n, a in enumerate(call.args) if f"{callee}({n}" in by_reference)
        self.written |= any(self.place(a) is not None for a in given)
        return super()._is_harmless(call)

    def written_out(self, call: Call) -> Block | None:
        """What a function does with the places that it is given, which are noted."""
        inside = super().written_out(call)
        for argument in call.args if inside is not None else ():
            at = self.address(argument)
            if at is not None:
                self.given_places.append(self._noted(Place(argument, "", at, self._reach, frozenset())))
        return inside

    # ------------------------------------------------------------ slices

    def sliced(self) -> Slices | None:
        """The buffer in slices; None where it is touched in any other way."""
        if not self.cell[1] or not self.found():
            return None
        every = [*self.places, *self.given_places]
        length = self._length(self.places[0].at)
        if length is None or not all(self._length(p.at) == length for p in every):
            return None
        rests = [p.at - self.thread * length for p in every]
        start = self._start(rests)
        if not start.names() <= self._uniform or any((r - start).depends_on(_IDS) for r in rests):
            return None
        spans = [p.span(r - start) for p, r in zip(every, rests, strict=True)]
        low, high = min((s[0] for s in spans if s), default=0), max((s[1] for s in spans if s), default=0)
        if length.value is None or None in spans:
            return Slices(self, self.param, length, start, 0, None, self.written)
        return Slices(self, self.param, length, start, low, high, self.written)

    def _length(self, at: Poly) -> Poly | None:
        """How far apart the places of neighbouring threads are; None where that is not the same for all."""
        if not self.thread.terms:
            return None
        first = next(m[0] for m, n in self.thread.terms if n == min(n for _, n in self.thread.terms))
        apart = at.coefficient(first)
        if apart is None or not apart.names() <= self._uniform or apart.depends_on(_IDS):
            return None
        return None if (at - self.thread * apart).depends_on(["threadIdx"]) or not apart.terms else apart

    def _start(self, rests: list[Poly]) -> Poly:
        """What all places of a block have in common."""
        common = reduce(lambda some, r: some & set(r.terms), rests, set(rests[0].terms))
        mine = [Poly((t,)) for t in sorted(common) if t[0] and Poly((t,)).names() <= self._uniform]
        return reduce(Poly.__add__, mine, constant(0))

    @cached_property
    def _uniform(self) -> frozenset[str]:
        """What is one number for a block, by name."""
        numbers = {p.name for p in self.target.kernel.params if not p.is_pointer} - self.target.known.changed
        return frozenset(numbers | {f"{of}.{axis}" for of in ("blockIdx", "gridDim") for axis in "xyz"})


def _of_names(s: Stmt) -> Stmt:
    """A statement without what it assigns to memory or to a member, which leaves all pointers as they are."""
    return ExprStmt(s.value) if isinstance(s, Assign) and not isinstance(s.target, Name) else s


@dataclass(frozen=True)
class OfBuffer:
    """What holds elements of a buffer for a while: a tile in shared memory."""

    of: SlicedBuffer

    @property
    def name(self) -> str:
        """The buffer's."""
        return self.of.param.name

    @property
    def type(self) -> str:
        """The elements'."""
        return self.of.declared.type

    @property
    def bytes(self) -> int:
        """Of an element."""
        return self.of.cell[1] * self.of.cell[2]


_IDS = ("threadIdx", "blockIdx", "gridDim")


def valued(value: Poly, numbers: Mapping[str, int]) -> Poly:
    """A polynomial with numbers in the place of names."""
    total = constant(0)
    for names, count in value.terms:
        known = reduce(int.__mul__, (numbers[n] for n in names if n in numbers), count)
        left = tuple(n for n in names if n not in numbers)
        total = total + Poly(((left, known),)) if known else total
    return total


def slices_of(target: Target) -> Iterator[Slices]:
    """The buffers of a kernel that are in slices, no other name for which is in use."""
    for param in target.kernel.params if target.block is not None else ():
        usable = param.name in target.unaliased and param.type.count("*") == 1 and "volatile" not in param.type
        if not usable or target.elements(param.name) is None:
            continue
        found = SlicedBuffer(target, param).sliced()
        if found is not None and (found.high is not None or all(within(found, values) for values in samples(found))):
            yield found


def samples(found: Slices) -> Iterator[dict[str, int]]:
    """Values of the arguments on which slices depend, for the sizes that stand for all, of those
    with which slices fit a block: with others they stay in global memory."""
    target, body = found.of.target, found.of.target.kernel.body
    heads = [e for s in walk_stmts(body) if isinstance(s, For) for e in (s.start, s.bound, s.step)]
    used = {n for e in heads for n in target.poly(e).names()} | found.length.names() | found.start.names()
    used |= {n for p in found.of.places for n in p.at.names()}
    texts = {p.name: t for p in target.kernel.params if p.name in used and (t := target.size_text(Name(p.name)))}
    seen, most = set[tuple[int, ...]](), STATIC_SHARED_BYTES // min(target.threads or 1, _FEWEST) // found.bytes
    for sizes in sample_sizes(target.contract):
        values = {name: evaluate_int(text, sizes) for name, text in texts.items()}
        fits = (valued(found.length, values).value or 0) <= most
        if fits and tuple(values.values()) not in seen and len(seen) < _MOST_SAMPLES:
            seen.add(tuple(values.values()))
            yield values


def within(found: Slices, values: Mapping[str, int]) -> bool:
    """Whether all places lie within their slices, where arguments have these values."""
    buffer = SlicedBuffer(found.of.target, found.param, values)
    length, start = valued(found.length, values), valued(found.start, values)
    if not buffer.found(any_places=False) or length.value is None or length.value < 1:
        return False
    for place in (*buffer.places, *buffer.given_places):
        span = place.span(place.at - buffer.thread * length - start)
        if span is None or span[0] < 0 or span[1] >= length.value:
            return False
    return True
