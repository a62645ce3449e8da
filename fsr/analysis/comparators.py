"""What statements of constant length do with an array by comparing its elements and exchanging them: a sequence of
comparators, each of which leaves the lesser of two elements at one place and the greater at another.

Statements are gone through turn by turn; what stands in an element is the least or the greatest of some of what stood
there before. Whatever is not understood ends it. Elements are taken for numbers in one order, of which equal ones have
the same bits: who uses the result sees to it that there are no NaNs and no zeros of both signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsr.analysis.compared import Elements, NotUnderstood, Pointer, Surroundings, Test, Value, Where
from fsr.analysis.early_ends import BREAK, Exchanged, as_condition, skipped
from fsr.analysis.exchanges import exchanges, pointed
from fsr.analysis.sorting_networks import settled
from fsr.analysis.types import bare
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    KernelForm,
    Name,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.walk import Block, names_assigned, names_in, walk_expr, walk_stmts

MOST_STEPS = 30_000  # statements gone through
_SWAPS = frozenset(["swap", "std::swap", "thrust::swap"])


@dataclass(frozen=True, slots=True)
class Comparators:
    """``pairs``: where each leaves the lesser and the greater element. ``loose``: of some it is only known what they
    leave in one place, the least or the greatest of several; where the others go is not. ``early``: some are left out
    where the one before found its elements in order. ``exits``: pairs from a number up to another, after which all that
    a loop has left is left out where those found their elements in order. ``named``: the given constants that this
    depends on."""

    pairs: tuple[tuple[int, int], ...]
    loose: bool
    early: bool
    exits: tuple[tuple[int, int], ...]
    named: frozenset[str]


def comparators(region: Block, array: str, element: str, around: Surroundings) -> Comparators | None:
    """What statements do with an array of ``element``, if they do nothing else to it, and with nothing else but
    scalars."""
    walk = _Walk(array, element, around)
    walk.names = dict.fromkeys(names_assigned(region)) | walk.names
    try:
        walk.run(region)
    except NotUnderstood:
        return None
    if not walk.at_home() or not walk.pairs:
        return None
    return Comparators(tuple(walk.pairs), walk.loose, walk.early, tuple(walk.exits), frozenset(walk.named))


class _Walk(Elements):
    """Statements, turn by turn."""

    def run(self, body: Block) -> None:
        """Go through statements; what they declare ends with them."""
        outer, types = self.names, self.types
        self.names, self.types = dict(outer), dict(types)
        own = set[str]()
        for s in body:
            if self._left:
                break
            if isinstance(s, Declare):
                own.add(s.name)
                self.types[s.name] = s.type
            self._step(s)
        self.names = {name: (outer[name] if name in own else self.names[name]) for name in outer}
        self.types = types

    def _step(self, s: Stmt) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise NotUnderstood
        if self._late and not isinstance(s, Comment):
            put, self._stops = self._stops, []
            late, self._late = self._late, frozenset()
            closes = self._closes(s, put)
            self.names |= dict.fromkeys(late & self.names.keys())
            if closes:
                return
        match s:
            case Comment():
                pass
            case Declare(name=name, init=init, dims=(), qualifiers=()) if "*" not in s.type and "&" not in s.type:
                self.names[name] = None
                if init is not None:
                    self._store(Name(name), self.value(init))
            case Assign(target, op, value):
                new = value if op == "=" else Binary(op[:-1], target, value)
                self._store(target, self.value(new))
            case ExprStmt(Call() as call):
                self._call(call)
            case If(test, then, ()) if then == BREAK:
                self._left = not self._goes_on(Unary("!", test))
            case If(test, then, orelse):
                self._branch(test, then, orelse)
            case Scope(body):
                self.run(body)
            case For() | While() if (asked := self._asking(s)) is not None:
                self._step(asked)
            case For():
                self._count(s)
            case While(Binary("&&", first, second), body) if self._asks(second):
                self._insert(first, second, body)
            case While(test, body):
                exits = len(self.exits)
                while self._goes_on(test) and not self._turn(body):
                    pass
                self._ended(s, exits)
            case _:
                raise NotUnderstood
        if not self._tested:
            self._exchange()

    def _count(self, s: For) -> None:
        outer, types = dict(self.names), self.types
        if s.type is not None:
            self.types = {**types, s.var: s.type}
        self._set(s.var, self.value(s.start))
        exits = len(self.exits)
        while self._holds(Binary(s.relation, Name(s.var), s.bound)):
            if self._turn(s.body):
                break
            self._set(s.var, self.value(Binary("+", Name(s.var), s.step)))
        self._ended(s, exits)
        self.types = types
        if s.type is not None:
            self.names = {name: outer[name] if name == s.var else v for name, v in self.names.items() if name in outer}

    def _turn(self, body: Block) -> bool:
        """Go through a loop's statements once; tell whether that ends it."""
        if (rest := skipped(body)) is not None and self._asks(rest[0]):
            body = (If(rest[0], (), rest[1]),)
        self.run(body)
        left, self._left = self._left, False
        return left

    def _asks(self, test: Expr) -> bool:
        """Whether a test compares elements."""
        elements = any(isinstance(e, Index) or (isinstance(e, Unary) and e.op == "*") for e in walk_expr(test))
        return elements and self._integer(test) is None

    def _asking(self, s: For | While) -> Stmt | None:
        """A loop that begins by asking an element whether it ends, with that in its condition."""
        asked = as_condition(s)
        inner = asked.body[-1] if isinstance(asked, Scope) else asked
        asks = isinstance(inner, While) and isinstance(inner.test, Binary) and self._asks(inner.test.right)
        return asked if asks else None

    def _goes_on(self, test: Expr) -> bool:
        """Whether a loop goes on, where its end may depend on whether elements were exchanged: it does as long as any
        may be out of order, and :attr:`Comparators.exits` tells when it may end before."""
        match test:
            case Binary("&&", first, second) if self._integer(second) is None:
                return self._holds(first) and self._goes_on(second)
        self._steps += 1
        told = [name for name in names_in(test) if isinstance(self.names.get(name), Exchanged)]
        if not told:
            return self._holds(test)
        found, ways = self.names[told[0]], list[bool]()
        if len(told) != 1 or not isinstance(found, Exchanged) or self._tested or not self.at_home():
            raise NotUnderstood
        for value in (found.yes, found.no):
            self.names[told[0]] = value
            ways.append(self._holds(test))
        self.names[told[0]] = found
        if ways[0] == ways[1]:
            return ways[0]
        if ways != [True, False] or tuple(self.pairs[found.since :]) != found.pairs:
            raise NotUnderstood
        if self._is_sorted(found.since):
            self.names[told[0]] = found.no
            return False
        self.exits.append((found.since, len(self.pairs)))
        return True

    def _is_sorted(self, many: int) -> bool:
        """Whether the first comparators put all elements in order."""
        count = max(max(pair) for pair in self.pairs) + 1
        first = self.pairs[:many]
        mirrored = [(count - 1 - low, count - 1 - high) for low, high in first]
        return any(len(settled(pairs, count, loose=self.loose)) == count for pairs in (first, mirrored))

    def _ended(self, s: For | While, exits: int) -> None:
        """Forget what depends on when a loop ended, if that does on elements."""
        if len(self.exits) > exits:
            changed = names_assigned((s,)) | ({s.var} if isinstance(s, For) else set())
            self.names |= dict.fromkeys(changed & self.names.keys())

    def _holds(self, test: Expr) -> bool:
        self._steps += 1
        found = self._integer(test)
        if found is None or self._steps > MOST_STEPS:
            raise NotUnderstood
        return bool(found)

    def _branch(self, test: Expr, then: Block, orelse: Block) -> None:
        decided = self._integer(test)
        if decided is not None:
            self.run(then if decided else orelse)
            return
        match test:
            case Binary("!=", one, other) if not orelse and (at := self._elsewhere(one, other)) is not None:
                many, names = len(self.pairs), dict(self.names)
                self.run(then)  # an exchange of an element with itself changes nothing
                if not self.at_home() or not all(at in pair for pair in self.pairs[many:]):
                    raise NotUnderstood
                self.names = {name: v if v == names[name] else None for name, v in self.names.items()}
                return
        greater = self._compared(test)
        if not orelse and any(isinstance(s, While | For) for s in walk_stmts(then)):
            self._insert_if(greater, then)
            return
        before = dict(self.cells), dict(self.names), self._hole
        ways = []
        for block in (then, orelse):
            self.cells, self.names, self._hole = dict(before[0]), dict(before[1]), before[2]
            self._tested += 1
            self.run(block)
            self._tested -= 1
            ways.append((self.cells, self.names, self._hole))
        (cells, names, hole), (other_cells, other_names, other_hole) = ways
        if hole != other_hole:
            raise NotUnderstood
        cells, other_cells = {**self.home, **cells}, {**self.home, **other_cells}
        self.cells = {at: self._either(greater, cells[at], other_cells[at]) for at in cells}
        told = self._told if cells != other_cells else self._either
        self.names = {name: told(greater, names[name], other_names[name]) for name in before[1]}

    def _told(self, test: Test, yes: Value, no: Value) -> Value:
        """What a variable is in which statements that exchange elements put a number."""
        if not isinstance(yes, int) or not isinstance(no, int | Exchanged) or yes == no:
            return self._either(test, yes, no)
        places = {value: at for at, value in self.home.items()}
        if self._tested or not all(value in places for value in test):
            return None
        pair = places[test[0]], places[test[1]]
        if isinstance(no, Exchanged):
            return no.more(yes, pair, len(self.pairs))
        return Exchanged(yes, no, len(self.pairs), (pair,))

    def _insert_if(self, test: Test, then: Block) -> None:
        """Moving an element on that is asked first whether its neighbour is greater: the first comparator would find
        them in order."""
        places = {value: at for at, value in self.home.items()}
        greater, lesser = (places.get(value) for value in test)
        many, names = len(self.pairs), dict(self.names)
        if self._tested or not self.at_home():
            raise NotUnderstood
        self.run(then)
        if not self.early or not self.at_home() or self.pairs[many : many + 1] != [(greater, lesser)]:
            raise NotUnderstood
        self.names = {name: v if v == names[name] else None for name, v in self.names.items()}

    def _elsewhere(self, one: Expr, other: Expr) -> int | None:
        """The integer that the index of an extreme is compared with."""
        for a, b in ((one, other), (other, one)):
            if isinstance(a, Name) and isinstance(self.names.get(a.text), Where):
                return self._integer(b)
        return None

    def _insert(self, first: Expr, second: Expr, body: Block) -> None:
        """A loop that moves an element on until it stands behind a lesser one. All turns are taken: where those before
        are in order, that changes nothing (:attr:`Comparators.early`)."""
        if self._tested or not self.at_home():
            raise NotUnderstood
        self.early, late, stops = True, set[str](), list[tuple[Mapping[str, Value], int]]()
        while self._holds(first):
            greater, lesser = self._compared(second)
            cells, names = dict(self.cells), dict(self.names)
            self._tested += 1
            self.run(body)
            self._tested -= 1
            changed = {at: v for at, v in self.cells.items() if v != cells.get(at)}
            self.cells = cells
            different = {name for name, v in self.names.items() if v != names[name]}
            if not all(isinstance(self.names[name], int) for name in different):
                raise NotUnderstood
            places = {v: at for at, v in self.home.items()}
            low, high = places.get(lesser), places.get(greater)
            if (
                low is None
                or high is None
                or changed not in ({low: greater, high: lesser}, {low: greater}, {high: lesser})
            ):
                raise NotUnderstood
            # Of one that is moved alone the other is a copy, as if it stood in the place that is free.
            copies = {name for name, v in names.items() if v == (lesser if low in changed else greater)}
            if len(changed) == 1:
                (free,) = changed
                stops.append((names, free))
            self._pair(high, low)
            self._free = (high if low in changed else low) if len(changed) == 1 else None
            if len(changed) == 1:
                self.names |= dict.fromkeys(copies, self.home[high if free == low else low])
            late |= different | copies
        if stops:
            stops.append((dict(self.names), next(at for at, v in self.home.items() if v in self.names.values())))
        self._late, self._stops = frozenset(late), stops

    def _closes(self, s: Stmt, stops: list[tuple[Mapping[str, Value], int]]) -> bool:
        """Whether a statement puts the copy into the place that is free, whenever the loop before has ended."""
        match s:
            case Assign(Index(Name(array), index), "=", Name(copy)) if stops:
                base = self.names.get(array)
                if not isinstance(base, Pointer) or base.is_place or copy not in self.names:
                    raise NotUnderstood
                for names, free in stops:
                    outer, self.names = self.names, dict(names)
                    at = self._integer(index)
                    self.names = outer
                    if at is None or base.at + at != free:
                        raise NotUnderstood
                if self.names[copy] != self.home.get(stops[-1][1]):
                    raise NotUnderstood
                self._free = None
                return True
        if stops:
            raise NotUnderstood
        return False

    def _call(self, call: Call) -> None:
        name = call.callee.text if isinstance(call.callee, Name) else ""
        function = self.around.functions.get(name)
        swapped: tuple[Expr | None, ...] = call.args if function is None and name in _SWAPS else ()
        if function is not None and exchanges(function) and len(call.args) == 2:
            swapped = tuple(pointed(a, p) for a, p in zip(call.args, function.params, strict=True))
        match swapped:
            case (one, other) if one is not None and other is not None and self._takes(function):
                first, second = self.value(one), self.value(other)
                self._store(one, second)
                self._store(other, first)
                return
        if function is None or len(function.params) != len(call.args) or self._calls > 4:
            raise NotUnderstood
        before, self.typename = self.typename, self._typename(function)
        bound = dict[str, Value]()
        for param, arg in zip(function.params, call.args, strict=True):
            at = self._place(arg) if "&" in param.type else None
            bound[param.name] = self.value(arg) if at is None else Pointer(at, is_place=True)
            plain = isinstance(bound[param.name], int) and param.type in ("int", "const int")
            if not plain and not self._is_element(param.type.replace("&", "").replace("*", "").strip()):
                raise NotUnderstood
            if isinstance(bound[param.name], Pointer) != ("&" in param.type or "*" in param.type):
                raise NotUnderstood
        outer = self.names, self.known, self.types
        self.names, self.known, self.types = bound, self.around.everywhere, {p.name: p.type for p in function.params}
        self._calls += 1
        self.run(function.body)
        self._calls -= 1
        self.names, self.known, self.types = outer
        self.typename = before

    def _takes(self, function: KernelForm | None) -> bool:
        """Whether a function that exchanges two elements does so with those of the array."""
        if function is None:
            return True
        outer, self.typename = self.typename, self._typename(function)
        held = [bare(s.type) for s in function.body if isinstance(s, Declare)]
        fine = all(self._is_element(bare(p.type)) for p in function.params) and all(map(self._holds_elements, held))
        self.typename = outer
        return fine

    def _typename(self, function: KernelForm) -> str:
        """What a template over one type, which then is that of its parameters, calls the elements."""
        match function.template_parameters:
            case ():
                return self.element
            case ((("typename" | "class"), name),) if any(bare(p.type) == name for p in function.params):
                return name
        raise NotUnderstood
