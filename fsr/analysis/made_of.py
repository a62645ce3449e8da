"""What the variables of a thread are made of after one turn of a loop: of what the turn found them to be, or anew.

A turn is gone through once. Inner loops of known length go round as often as they do, all others any number of times;
of two ways that data chooses, what either leaves counts, and what chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod

from fsr.analysis.types import is_integer
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Jump,
    Literal,
    Member,
    Name,
    Scope,
    Stmt,
    Unary,
    While,
)
from fsr.source.walk import (
    Block,
    base_name,
    exprs_of,
    names_changed,
    subexprs,
    walk_expr,
    walk_stmts,
)

MEMORY = "#"  # what is read of memory that the loop writes
_MOST_ELEMENTS, _MOST_TURNS, _MOST_STEPS = 128, 64, 8000
Made = frozenset[str]
NOTHING: Made = frozenset()


class Unclear(Exception):  # noqa: N818  # not an error: nothing is claimed
    """Something in a loop that cannot be followed."""


@dataclass(frozen=True)
class Around:
    """What is known around a loop.

    ``locals``: variables of the thread declared outside; ``roots``: the memory behind every pointer and shared array;
    ``shared``: of it, what a block shares; ``written``: of it, what the loop writes; ``steps``: variables whose value
    the turn's number tells; ``behind``: names in use after the loop; ``moving``: all that a turn changes, pointers that
    it sets among it; ``same``: whether an expression is the same in all turns (inner loops' variables in the second
    argument do not count); ``value``: the number that an expression is, where some names are known; ``members``: those
    of each variable by name; ``rings``: arrays of which every turn sets one element, which it sets again after so many
    turns and not before; ``by_reference``: see KernelForm."""

    locals: Mapping[str, Declare]
    roots: Mapping[str, str]
    shared: frozenset[str]
    written: frozenset[str]
    steps: frozenset[str]
    behind: frozenset[str]
    same: Callable[[Expr, frozenset[str]], bool]
    value: Callable[[Expr, Mapping[str, int]], int | None]
    moving: frozenset[str]
    members: Mapping[str, frozenset[str]]
    rings: Mapping[str, int]
    by_reference: frozenset[str] = frozenset()


def keys_of(s: Declare, around: Around) -> tuple[str, ...]:
    """The parts of a variable that are told apart: elements of an array, members by their names (and the rest), or
    it alone."""
    if s.name in around.rings and s.name in around.locals:
        return tuple(f"{s.name}[{turns} ago]" for turns in range(around.rings[s.name]))
    if s.dims:
        extents = [around.value(d, {}) or 0 for d in s.dims]
        if not 0 < prod(extents) <= _MOST_ELEMENTS:
            return (s.name,)
        return tuple(_element(s.name, at) for at in product(*(range(n) for n in extents)))
    members = around.members.get(s.name)
    return (*(f"{s.name}.{part}" for part in sorted(members)), f"{s.name}.") if members else (s.name,)


def _element(name: str, at: Iterable[int]) -> str:
    return f"{name}[{','.join(map(str, at))}]"


@dataclass
class Turn:
    """One turn, with ``chosen`` tests that are the same in all turns taken for true or false. ``made``: what each
    variable is made of; ``assigned``: which were set; ``seen``: what stores, tests and indices were made of;
    ``shared``: what was put in shared memory; ``known``: numbers that integers of the turn hold, ``counting`` ones."""

    loop: For
    around: Around
    chosen: Mapping[Expr, bool]
    made: dict[str, Made] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    shared: dict[str, Made] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    counting: set[str] = field(default_factory=set)
    varies: int = 0  # conditions around that are not the same in all turns
    stepping: frozenset[str] = frozenset()  # variables of inner loops that go through the same in all turns
    steps: int = 0

    def __post_init__(self) -> None:
        for name, s in self.around.locals.items():
            self.keys[name] = keys_of(s, self.around)
            if name not in self.around.steps:
                self.made |= {key: frozenset([key]) for key in self.keys[name]}
        for root in self.around.shared & self.around.written:
            self.made[root] = frozenset([root])
            self.shared[root] = NOTHING

    def left(self) -> dict[str, Made]:
        """What the variables of outside that were set are made of at the end."""
        outside = [k for name in self.around.locals for k in self.keys[name]]
        return {k: self.made[k] for k in outside if k in self.assigned} | self.shared

    # ------------------------------------------------------------ statements

    def run(self, body: Block) -> None:
        """The statements, one after the other."""
        for s in body:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise Unclear
            self._stmt(s)

    def _stmt(self, s: Stmt) -> None:
        for e in exprs_of(s):
            self._by_calls(e)
        match s:
            case Comment() | Jump():  # of an inner loop, which counts with it
                return
            case Scope(body):
                self.run(body)
            case ExprStmt(expr):
                self.seen |= self.of(expr)
            case Declare(name=name, init=init):
                if {"__shared__", "static", "volatile"} & {*s.qualifiers, *s.type.split()} or "&" in s.type:
                    raise Unclear
                self.known.pop(name, None)
                self.keys[name] = keys_of(s, self.around)
                self._put(self.keys[name], NOTHING if init is None else self.of(init))
                value = (
                    None if init is None or s.dims or not is_integer(s.type) else self.around.value(init, self.known)
                )
                if value is not None:
                    self.known[name] = value
                    self.counting.add(name)
            case Assign():
                self._assign(s)
            case If(test, then, orelse):
                self._if(test, then, orelse)
            case For():
                self._for(s)
            case While():
                self._while(s)
            case _:
                raise Unclear

    def _put(self, keys: Iterable[str], of: Made, *, also: bool = False) -> None:
        for key in keys:
            self.made[key] = self.made.get(key, NOTHING) | of if also else of
            self.assigned.add(key)

    def _assign(self, s: Assign) -> None:
        target, of = s.target, self.of(s.value)
        if isinstance(target, Name) and target.text in self.around.steps:
            return
        if s.op != "=":
            of |= self.of(target)
        name = base_name(target)
        whole = s.value if s.op == "=" else Binary(s.op[:-1], target, s.value)
        value = self.around.value(whole, self.known) if target == Name(name or "") and name in self.counting else None
        if name is None or (isinstance(target, Name) and name in self.around.roots):
            raise Unclear
        if name in self.keys and name not in self.around.roots:
            self.known.pop(name, None)
            keys = self._named(target)
            for part in walk_expr(target):
                of |= self.of(part.index) if isinstance(part, Index) else NOTHING
            if name in self.around.rings and self.keys[name][0].endswith(" ago]"):
                self._turned(self.keys[name], of)
                return
            self._put(keys or self.keys[name], of, also=keys is None)
            if value is not None:
                self.known[name] = value
            return
        root = self._root(target)
        if root is None:
            raise Unclear
        for part in subexprs(target):
            of |= self.of(part) - {root}
        if root in self.around.shared:
            within = [e.index for e in walk_expr(target) if isinstance(e, Index)]
            if (
                name in self.around.moving
                or self.varies
                or not all(self.around.same(e, self.stepping) for e in within)
                or not within
            ):
                raise Unclear  # other elements in other turns: which one is left from which turn, is not told
            self.shared[root] |= of
            self.made[root] |= of
        self.seen |= of

    def _turned(self, keys: tuple[str, ...], of: Made) -> None:
        """A ring gets a new element, and each other one is a turn older."""
        for key, newer in zip(reversed(keys), (*reversed(keys[:-1]), None), strict=True):
            self._put((key,), of if newer is None else self.made[newer])

    def _named(self, target: Expr) -> tuple[str, ...] | None:
        """The parts that a target is for sure; None where it is some part of the variable."""
        match target:
            case Name(text):
                return self.keys[text]
            case Member(Name(text), part, False) if f"{text}.{part}" in self.keys.get(text, ()):
                return (f"{text}.{part}",)
            case Index():
                at: list[int | None] = []
                base: Expr = target
                while isinstance(base, Index):
                    at, base = [self.around.value(base.index, self.known), *at], base.base
                if isinstance(base, Name) and None not in at:
                    key = _element(base.text, (n for n in at if n is not None))
                    return (key,) if key in self.keys.get(base.text, ()) else None
        return None

    def _root(self, e: Expr) -> str | None:
        name = base_name(e)
        return self.around.roots.get(name) if name is not None else None

    def _by_calls(self, e: Expr) -> None:
        """What calls in an expression may set through addresses and references."""
        for x in walk_expr(e):
            if not isinstance(x, Call):
                continue
            callee = x.callee.text.split("<")[0].strip() if isinstance(x.callee, Name) else ""
            given = [a for n, a in enumerate(x.args) if f"{callee}({n}" in self.around.by_reference]
            given += [a for a in x.args if isinstance(a, Unary) and a.op == "&"]
            given += [a for a in x.args if self._array_itself(a)]
            for argument in given:
                name = base_name(argument) or ""
                if name in self.keys and name not in self.around.roots:
                    self.known.pop(name, None)
                    self._put(self.keys[name], self.of(x), also=True)
                elif not isinstance(argument, Unary):
                    raise Unclear

    def _array_itself(self, argument: Expr) -> bool:
        """Whether an argument is (some place in) a local array as a whole."""
        match argument:
            case Cast(_, operand):
                return self._array_itself(operand)
            case Binary("+" | "-", left, right):
                return self._array_itself(left) or self._array_itself(right)
        depth = 0
        base: Expr = argument
        while isinstance(base, Index):
            depth, base = depth + 1, base.base
        own = self.keys.get(base.text, ("",)) if isinstance(base, Name) else ("",)
        return "[" in own[0] and depth < own[0].count(",") + 1

    def _if(self, test: Expr, then: Block, orelse: Block) -> None:
        same = self.around.same(test, self.stepping)
        value = self.around.value(test, self.known)
        if test in self.chosen or value is not None:
            self.run(then if self.chosen.get(test, bool(value)) else orelse)
            return
        of = self.of(test)
        self.seen |= of
        self.varies += not same
        self._either([lambda: self.run(then), lambda: self.run(orelse)], of)
        self.varies -= not same

    def _either(self, ways: list[Callable[[], None]], of: Made) -> None:
        """One of the ways, which is told by something made of ``of``."""
        before, known, was_set = dict(self.made), dict(self.known), self.assigned
        ends = list[dict[str, Made]]()
        changed = set[str]()
        for way in ways:
            self.made, self.known, self.assigned = dict(before), dict(known), set()
            way()
            ends.append(self.made)
            changed |= self.assigned
        self.made, self.assigned = dict(before), was_set | changed
        self.known = {n: v for n, v in known.items() if n not in changed}
        for key in changed | {k for k in self.shared if any(end[k] != before[k] for end in ends)}:
            self.made[key] = of.union(*(end.get(key, NOTHING) for end in ends))

    def _for(self, s: For) -> None:
        turns = self._turns(s)
        if turns is None:
            self._any_turns(s, (s.start, s.bound, s.step))
            return
        if s.type is None:
            if s.var not in self.keys:
                raise Unclear
            self._put(self.keys[s.var], NOTHING)
        outer, hidden = self.stepping, self.known.get(s.var)
        self.stepping |= {s.var}
        for value in turns:
            self.known[s.var] = value
            self.run(s.body)
        self.known.pop(s.var, None)
        if hidden is not None and s.type is not None:
            self.known[s.var] = hidden
        self.stepping = outer

    def _turns(self, s: For) -> range | None:
        """The numbers that an inner loop's variable goes through, where they are known and few."""
        start, bound, step = (self.around.value(e, self.known) for e in (s.start, s.bound, s.step))
        if start is None or bound is None or not step or s.var in names_changed(s.body) or s.relation == "!=":
            return None
        if any(isinstance(x, Jump) for x in walk_stmts(s.body)) or (step > 0) != (s.relation in ("<", "<=")):
            return None
        turns = range(start, bound + {"<=": 1, ">=": -1}.get(s.relation, 0), step)
        return turns if len(turns) <= _MOST_TURNS else None

    def _while(self, s: While) -> None:
        if self.around.value(s.test, self.known) is None or any(isinstance(x, Jump) for x in walk_stmts(s.body)):
            self._any_turns(s, (s.test,))
            return
        while (goes_on := self.around.value(s.test, self.known)) != 0:
            if goes_on is None:
                raise Unclear
            self.run(s.body)

    def _any_turns(self, s: For | While, ends: Iterable[Expr]) -> None:
        """Any number of turns of an inner loop."""
        outer, jumps = self.stepping, any(isinstance(x, Jump) for x in walk_stmts(s.body))
        same = isinstance(s, For) and not jumps and all(self.around.same(e, outer) for e in ends)
        if isinstance(s, For):
            self.known.pop(s.var, None)
            if s.type is None:
                if s.var not in self.keys:
                    raise Unclear
                self._put(self.keys[s.var], NOTHING.union(*(self.of(e) for e in ends)))
            else:
                self.keys[s.var], self.made[s.var] = (s.var,), NOTHING.union(*(self.of(e) for e in ends))
            self.stepping |= {s.var} if same else NOTHING
        tests = [x.test for x in walk_stmts(s.body) if isinstance(x, If | While)] if jumps else []
        self.varies += not same
        while True:
            before = {**self.made, **self.shared}
            of = NOTHING.union(*(self.of(e) for e in (*ends, *tests)))
            self.seen |= of
            for name in names_changed(s.body):
                self.known.pop(name, None)
            self._either([lambda: self.run(s.body), lambda: None], of)
            if before == {**self.made, **self.shared}:
                break
        self.varies -= not same
        self.stepping = outer

    # ------------------------------------------------------------ expressions

    def _held(self, root: str | None) -> Made:
        """What memory may hold."""
        if root in self.around.shared:
            return self.made.get(root or "", NOTHING)
        return frozenset([MEMORY]) if root in self.around.written else NOTHING

    def of(self, e: Expr) -> Made:
        """What an expression is made of."""
        match e:
            case Literal():
                return NOTHING
            case Name(text):
                own = NOTHING.union(*(self.made.get(k, NOTHING) for k in self.keys.get(text, ())))
                return own | self._held(self.around.roots.get(text))
            case Cast(_, operand):
                return self.of(operand)
        root = self._root(e) if isinstance(e, Index | Unary | Member) else None
        if root is None and (keys := self._named(e)):
            own = NOTHING.union(*(self.made.get(k, NOTHING) for k in keys))
            return own.union(*(self.of(x.index) for x in walk_expr(e) if isinstance(x, Index)))
        return self._held(root).union(
            *(self.of(part) for part in subexprs(e) if not (isinstance(e, Call) and part is e.callee))
        )
