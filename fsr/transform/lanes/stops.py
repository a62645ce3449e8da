"""Loops that stop when so much is found: ``if (ok && n < most) { list[n] = j; n++; }``, or by a ``break``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fsr.analysis.conditions import MIRRORED, NEGATED
from fsr.analysis.early_ends import BREAK
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
    Stmt,
    Ternary,
    Unary,
    conjunction,
    conjuncts,
)
from fsr.source.loop_heads import has_continue, without_continue
from fsr.source.mapping import map_stmts
from fsr.source.walk import (
    Block,
    blocks_of,
    exprs_of,
    is_zero,
    names_assigned,
    names_changed,
    names_in,
    variables,
    without_comments,
)

Quiet = Callable[[Expr | None], bool]
_LARGEST = Literal("2147483647")
_Stop = tuple[Block, str, Expr]
"""The body without the stop, the variable that is asked, and from which value on no turn is done."""


def straight(loop: For) -> For:
    """The loop with what turns do under conditions where they had gone on with the next one."""
    if not has_continue(loop.body):
        return loop
    body = without_continue(loop.body)

    def turned(s: Stmt) -> Stmt:
        match s:
            case If(test, then, (_, *_) as orelse) if not without_comments(then) and not s.constexpr:
                return replace(s, test=Unary("!", test), then=orelse, orelse=())
        return s

    return loop if body is None else replace(loop, body=map_stmts(body, turned))


def stopped(loop: For, quiet: Quiet, start: Callable[[str], int | None]) -> Iterator[tuple[For, str, Expr]]:
    """The loop without what ends it when a count by one has reached a limit, the count, and the limit. ``quiet``:
    whether finding a value has no effect; ``start``: what a variable is before the loop, if that is known."""
    body = without_comments(loop.body)
    changed, own = names_changed(body) | names_assigned(body), frozenset(variables(body))
    for found, name, limit in _Stops(quiet, start, changed, own).of(body):
        if not names_in(limit) & ((changed | own | {loop.var}) - {name}):
            yield replace(loop, body=found), name, limit


@dataclass(frozen=True)
class _Stops:
    """Looks for tests of a count. ``counted``: what turns change; ``own``: what each turn has for itself."""

    quiet: Quiet
    start: Callable[[str], int | None]
    counted: frozenset[str]
    own: frozenset[str]

    def of(self, body: Block, *, behind_only: bool = False) -> Iterator[_Stop]:
        """Those of a block behind which a turn does nothing. ``behind_only``: none that must stand ahead of all that a
        turn does."""
        if not body:
            return
        if not behind_only:
            yield from self._in_front(body)
        last = body[-1]
        test = _break_test(last)
        asked = self._limit(test, behind=True) if test is not None and not _else_of(last) else None
        if asked is not None and asked[0] in names_assigned(body[:-1]):
            yield body[:-1], *asked
        if not isinstance(last, If) or last.orelse or last.constexpr:
            return
        looks = not behind_only and self._looks(ExprStmt(last.test)) and all(map(self._looks, body[:-1]))
        if looks:
            yield from self._guards(body, last)
        for then, name, limit in self.of(without_comments(last.then), behind_only=not looks):
            yield (*body[:-1], replace(last, then=then)), name, limit

    def _in_front(self, body: Block) -> Iterator[_Stop]:
        """Those with nothing but looking ahead of them."""
        for at, s in enumerate(body):
            test = _break_test(s)
            if test is not None and (asked := self._limit(test, behind=False)) is not None:
                yield (*body[:at], *_else_of(s), *body[at + 1 :]), *asked
            if not self._looks(s):
                return

    def _looks(self, s: Stmt) -> bool:
        """Whether a statement does nothing but find values for variables of the turn's own."""
        return all(map(self.quiet, exprs_of(s))) and (
            isinstance(s, ExprStmt | Comment)
            or (isinstance(s, Declare) and not s.qualifiers)
            or (isinstance(s, Assign) and isinstance(s.target, Name) and s.target.text in self.own)
            or (isinstance(s, For | If) and all(self._looks(x) for block in blocks_of(s) for x in block))
        )

    def _guards(self, body: Block, last: If) -> Iterator[_Stop]:
        """The tests of a turn's only branch that say how much may be found."""
        tests = conjuncts(last.test)
        for n, test in enumerate(tests):
            asked = self._limit(Unary("!", test), behind=False)
            left = conjunction(t for m, t in enumerate(tests) if m != n)
            if asked is not None and left is not None and asked[0] in names_assigned(last.then):
                yield (*body[:-1], replace(last, test=left)), *asked

    def _limit(self, test: Expr, *, behind: bool) -> tuple[str, Expr] | None:
        """The variable and the limit that a test for the end tells; ``behind``: it stands behind what the turn adds,
        so that a first turn is done whatever the limit is."""
        match test:
            case Unary("!", Binary(op, left, right)) if op in NEGATED:
                return self._limit(Binary(NEGATED[op], left, right), behind=behind)
            case Binary(op, limit, Name(text) as name) if op in MIRRORED and not self._counts(limit):
                if text in self.counted:
                    return self._limit(Binary(MIRRORED[op], name, limit), behind=behind)
            case Binary(">", Name() as name, limit):
                return self._limit(Binary(">=", name, Binary("+", limit, Literal("1"))), behind=behind)
            case Binary(">=" | "==" as op, Name(text) as name, limit) if text in self.counted and _is_plain(limit):
                return None if text in names_in(limit) else (text, self._told(op, name, limit, behind=behind))
        return None

    def _told(self, op: str, name: Name, limit: Expr, *, behind: bool) -> Expr:
        begin = self.start(name.text)
        if op == ">=" and not behind:
            return limit
        if begin == 0 and isinstance(limit, Literal) and limit.text.isdigit() and not is_zero(limit):
            return limit
        now: Expr = name if begin is None else Literal(str(begin))
        further = _LARGEST if op == "==" else Binary("+", now, Literal("1"))
        return Ternary(Binary("<" if behind else "<=", now, limit), limit, further)

    def _counts(self, e: Expr) -> bool:
        return isinstance(e, Name) and e.text in self.counted


def _break_test(s: Stmt) -> Expr | None:
    """When a statement ends the loop."""
    match s:
        case If(test, then, ()) if without_comments(then) == BREAK:
            return test
        case If(test, _, orelse) if without_comments(orelse) == BREAK:
            return Unary("!", test)
    return None


def _else_of(s: Stmt) -> Block:
    """What it does where it does not."""
    assert isinstance(s, If)
    return () if without_comments(s.then) == BREAK else s.then


def _is_plain(e: Expr) -> bool:
    match e:
        case Name() | Literal():
            return True
        case Binary("+" | "-" | "*", left, right):
            return _is_plain(left) and _is_plain(right)
        case Binary("/" | ">>", left, Literal() as right):
            return _is_plain(left) and not is_zero(right)
    return False
