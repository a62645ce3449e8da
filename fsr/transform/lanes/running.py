"""Sums that each turn of a loop goes on with, and looks at: ``acc += h[i]; cdf[i] = acc;`` as lanes can have them.

Lanes take as many turns at once as they are: what each adds is summed up to it by shuffles (Hillis and Steele, "Data
parallel algorithms", CACM 29, 1986), and each does its turn with the sum before and behind its own. Where places are
counted (``if (keep) out[n++] = x``) each finds the place of its own; once all places are taken no turn does anything.
Recurrences that multiply before they add (``x = a * x + b``) go the same way, as pairs of a factor and what is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from fsr.analysis.accesses import Access
from fsr.source.form import (
    Assign,
    Binary,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Literal,
    Name,
    Return,
    Stmt,
    Unary,
)
from fsr.source.mapping import substitute
from fsr.source.walk import (
    Block,
    fresh,
    integer,
    is_zero,
    jumps,
    names_assigned,
    names_in,
    names_mentioned,
    variables,
    walk_exprs,
    walk_stmts,
    without_comments,
)
from fsr.transform.lanes.linear import linear_step
from fsr.transform.lanes.stops import Quiet

_Step = tuple[Block, Expr]
"""Statements, and the test of the branch behind them."""
Types = Callable[[str], str | None]
_Addition = tuple[str, Expr, Expr | None]
"""A variable, what is added to it, and what it is multiplied by before."""


@dataclass(frozen=True)
class Run:
    """``name``: the variable; ``value``: what a turn adds to it, behind ``path``, the tests that it does it under, each
    behind the declarations that it is made of, and behind ``needs``, those of the value; ``before``, ``after``: names
    for the sum without it and with it; ``body``: what else a turn does, with these names; ``inner``: what of it stands
    where the addition stood. ``limit``: of a count by one, no turn is done from which on. ``first``: what the first
    turn that adds anything does ahead of all others' additions. ``factor``: what the variable is multiplied by before
    ``value`` is added to it."""

    name: str
    value: Expr
    path: tuple[_Step, ...]
    needs: Block
    before: str
    after: str
    body: Block
    inner: Block
    limit: Expr | None = None
    first: Block = ()
    factor: Expr | None = None

    def added(self, into: Name, factor: Name | None = None) -> Block:
        """Statements that set a variable to what a turn adds, where it adds anything, and one to the factor."""
        scaled = () if self.factor is None else (Assign(factor or into, "=", self.factor),)
        return self._behind((*self.needs, *scaled, Assign(into, "=", self.value)))

    @property
    def made(self) -> Block:
        """The statements that its tests and values are made by."""
        return (*(s for needs, _ in self.path for s in needs), *self.needs)

    def _behind(self, inner: Block) -> Block:
        for needs, test in reversed(self.path):
            inner = (*needs, If(test, inner))
        return inner

    def loop(self, loop: For, type_: str, accesses: Iterable[Access]) -> For:
        """The loop as one whose turns hand on nothing: each has its sums from somewhere. ``accesses``: those of
        ``body``."""
        added = self.added(Name(self.after))
        added = substitute(added, {n: Name(f"{n}_added") for n in variables(added)})
        told = (Declare(type_, self.before, Literal("0")), Declare(type_, self.after, Literal("0")), *added)
        if self._counts_places(loop, list(accesses)):
            at: dict[str, Expr] = {self.before: Name(loop.var), self.after: Binary("+", Name(loop.var), self.value)}
            return replace(loop, body=(*told, *substitute(self.body, at)))
        return replace(loop, body=(*told, *self.body))

    def told_by(self, test: Expr) -> Block | None:
        """The body where a test tells whether the turn adds anything, without what is not looked at any more; None
        where more hangs on what it adds under."""
        if self.by is None or len(self.path) != 1 or self.inner == ():
            return None
        found = list[Stmt]()
        wanted = frozenset[str]()
        for s in reversed(_with_test(self.body, self.inner, test)):
            if not (isinstance(s, Comment) or (s in self.path[0][0] and not _sets(s) & wanted)):
                found.insert(0, s)
                wanted |= names_mentioned((s,))
        return tuple(found)

    @property
    def by(self) -> int | None:
        """What each turn that adds anything adds, where that is a number greater than nought."""
        found = integer(self.value) if self.factor is None else None
        return found if found is not None and found > 0 else None

    def _counts_places(self, loop: For, accesses: list[Access]) -> bool:
        """Whether the sum tells turns that add to it apart as well as their number does, wherever it says a place."""
        own, turn = {self.before, self.after}, {loop.var, *variables(self.body)}
        outside = set(names_mentioned(_without(self.body, self.inner))) & own
        by_sum = {id(a): bool(names_in(a.expr) & own) for a in accesses}
        if self.by is None or outside or any(by_sum[id(a)] and names_in(a.expr) & turn for a in accesses):
            return False
        written = {a.root for a in accesses if a.kind != "read"}
        return all(len({by_sum[id(a)] for a in accesses if a.root == root}) == 1 for root in written)


@dataclass(frozen=True)
class Told:
    """What is known around a loop. ``quiet``: whether finding a value has no effect; ``types``: of variables;
    ``stored``: whether statements may read what a turn stores."""

    quiet: Quiet
    types: Types
    stored: Callable[[Block], bool]


def run_of(loop: For, taken: Iterable[str], told: Told, *, limit: tuple[str, Expr] | None = None) -> Run | None:
    """The sum that a loop's turns go on with; None where there is none, or several statements add to it. ``limit``: a
    variable from a value of which on turns do nothing."""
    if jumps(loop.body) or any(isinstance(s, Return) for s in walk_stmts(loop.body)):
        return None
    used = set(taken) | set(variables(loop.body))
    for path, (name, value, factor) in _additions(loop.body, told.types):
        if limit is not None and (name != limit[0] or integer(value) != 1 or factor is not None):
            continue
        if limit is not None or factor is not None or _mentions(loop.body, name) > 1:
            found = _run(loop, path, (name, value, factor), used, told)
            return found and replace(found, limit=limit and limit[1])
    return None


def starting(run: Run, at: int | None) -> Run:
    """The run with what stands under ``if (n == 0)`` ahead of all else where the addition stood apart, if the sum
    begins at 0: no turn comes before the one that does it."""
    inner = without_comments(run.inner)
    branch = inner[0] if inner else None
    if not (at == 0 and run.by and isinstance(branch, If) and not branch.orelse and _is_none(branch.test, run.before)):
        return run
    alone = not any(isinstance(s, ExprStmt | Assign) for s in walk_stmts(_without(run.body, run.inner)))
    first, others = substitute(branch.then, {run.before: Literal("0")}), inner[1:]
    told = {run.after, *variables(_without(run.body, run.inner)), *variables(others)}
    if not alone or jumps(first) or told & names_mentioned(first):
        return run
    return replace(run, first=first, inner=others, body=_with(run.body, run.inner, others))


def _is_none(test: Expr, name: str) -> bool:
    match test:
        case Binary("==", Name(text), zero) | Binary("==", zero, Name(text)):
            return text == name and is_zero(zero)
        case Unary("!", Name(text)):
            return text == name
    return False


def _additions(body: Block, types: Types) -> Iterator[tuple[tuple[int, ...], _Addition]]:
    """Where something is added to a variable, as the places of the statements that it stands in, and what."""
    for at, s in enumerate(body):
        inner = s.then if isinstance(s, If) and not s.orelse and not s.constexpr else ()
        found = _added(s, types)
        if found is not None:
            yield (at,), found
        yield from (((at, *path), what) for path, what in _additions(inner, types))


def _added(s: Stmt, types: Types) -> _Addition | None:
    match s:
        case Assign(Name(name), "+=", value) if name not in names_in(value):
            return name, value, None
        case Assign(Name(name), "=", Binary("+", Name(left), value)) if left == name and name not in names_in(value):
            return name, value, None
        case Assign(Name(name), "=", Binary("+", value, Name(right))) if right == name and name not in names_in(value):
            return name, value, None
    step = linear_step(s, types)
    return step and (step[0], step[1][1], step[1][0])


def _mentions(body: Block, name: str) -> int:
    """How many of the statements, those in others' blocks among them, mention a name by themselves."""
    return sum(name in names_mentioned((s,)) for s in walk_stmts(body) if not isinstance(s, If | For))


def _run(loop: For, path: tuple[int, ...], added: _Addition, taken: set[str], told: Told) -> Run | None:
    name, value, factor = added
    before, after = (fresh(f"{name}_{what}", taken) for what in ("before", "after"))
    early, late = {name: Name(before)}, {name: Name(after)}

    def without(block: Block, path: tuple[int, ...]) -> tuple[Block, Block]:
        """The block without the addition, and what of it stands beside that."""
        at, *further = path
        inner: Block = ()
        here: Block = ()
        if further:
            branch = block[at]
            assert isinstance(branch, If)
            then, here = without(branch.then, tuple(further))
            inner = (replace(branch, test=substitute(branch.test, early), then=then),)
        whole = (*substitute(block[:at], early), *inner, *substitute(block[at + 1 :], late))
        return whole, here if further else whole

    rest, inner = without(loop.body, path)
    made = _made(loop.body, path, (value,) if factor is None else (value, factor), told)
    set_again = names_assigned(rest) & {name, before, after}
    if made is None or set_again or name == loop.var:
        return None
    if factor is not None and not (told.quiet(value) and told.quiet(factor)):
        return None  # parts of what was computed once may stand in both
    run = Run(name, value, *made, before, after, rest, inner, factor=factor)
    heads = names_in(loop.start) | names_in(loop.bound) | names_in(loop.step)
    return None if name in heads | names_mentioned(run.added(Name(after))) else run


def _made(
    body: Block, path: tuple[int, ...], values: tuple[Expr, ...], told: Told
) -> tuple[tuple[_Step, ...], Block] | None:
    """The tests on the way to an addition, each behind the statements that it is made by, and those that the values are
    made by; None where something may have changed since."""
    blocks, tests = list[Block](), list[Expr]()
    for at in path:
        blocks.append(body[:at])
        s = body[at]
        if isinstance(s, If):
            tests.append(s.test)
            body = s.then
    wanted = set[str]().union(*map(names_in, (*values, *tests)))
    needs, others = list[Block](), list[Stmt]()
    for block in reversed(blocks):
        found = list[Stmt]()
        for s in reversed(block):
            if not _sets(s) & wanted:
                others.append(s)
                continue
            if _stores(s) or not all(map(told.quiet, walk_exprs((s,)))) or not all(map(_is_plain, walk_stmts((s,)))):
                return None
            wanted |= names_mentioned((s,))
            found.insert(0, s)
        needs.insert(0, tuple(found))
    copied = tuple(s for block in needs for s in block)
    if (
        names_assigned(copied) - set(variables(copied))
        or _sets(*others) & wanted
        or not all(_in_order(blocks, needs, [*tests, value], told.stored) for value in values)
    ):
        return None
    return tuple(zip(needs, tests, strict=False)), needs[-1]


def _sets(*stmts: Stmt) -> frozenset[str]:
    return frozenset(names_assigned(stmts)) | frozenset(variables(stmts))


def _is_plain(s: Stmt) -> bool:
    """Whether a copy of a statement beside it does the same with other names."""
    return not isinstance(s, Declare) or not (s.dims or s.qualifiers or "&" in s.type or "*" in s.type)


def _in_order(blocks: list[Block], needs: list[Block], values: list[Expr], rereads: Callable[[Block], bool]) -> bool:
    """Whether what is needed reads nothing behind a statement that may have stored to it."""
    stored = False
    for block, wanted, value in zip(blocks, needs, values, strict=True):
        for s in block:
            if stored and s in wanted and rereads((s,)):
                return False
            stored |= _stores(s)
        if stored and rereads((ExprStmt(value),)):
            return False
    return True


def _stores(s: Stmt) -> bool:
    plain = (x for x in walk_stmts((s,)) if not isinstance(x, Declare | Comment))
    return any(isinstance(x, ExprStmt) or not isinstance(getattr(x, "target", Name("")), Name) for x in plain)


def _with_test(body: Block, inner: Block, test: Expr) -> Block:
    """The statements with another test for the branch that holds a block."""
    return tuple(replace(s, test=test) if isinstance(s, If) and s.then is inner else s for s in body)


def _without(body: Block, inner: Block) -> Block:
    return _with(body, inner, ())


def _with(body: Block, inner: Block, other: Block) -> Block:
    """The statements with another block in the place of one that stands in them."""
    if body is inner:
        return other
    return tuple(replace(s, then=_with(s.then, inner, other)) if isinstance(s, If) else s for s in body)
