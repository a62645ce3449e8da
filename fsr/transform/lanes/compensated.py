"""Compensated sums: what a loop adds to a variable while a second one keeps what rounding lost.

Kahan ("Further remarks on reducing truncation errors", CACM 8, 1965), Neumaier ("Rundungsfehleranalyse einiger
Verfahren zur Summation endlicher Summen", ZAMM 54, 1974), and Knuth's exact addition. Lanes add up parts of their own
so, and their parts are put together by exact additions, so that no more is lost than before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fsr.analysis.accumulators import mentions
from fsr.analysis.conditions import MIRRORED
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
    Name,
    Stmt,
    Ternary,
    Unary,
)
from fsr.source.mapping import with_blocks
from fsr.source.walk import Block, blocks_of, names_in

_SIZES = frozenset(["fabs", "fabsf", "abs"])


@dataclass(frozen=True, slots=True)
class Compensated:
    """``value``: the variable that holds the sum; ``lacks``: the one that holds what was lost; ``sign``: -1 where that
    is what the sum has too much, else 1. ``orderly``: an infinity is one only until something is added to it."""

    value: str
    lacks: str
    sign: int
    orderly: bool

    @property
    def names(self) -> frozenset[str]:
        """Both variables."""
        return frozenset((self.value, self.lacks))


@dataclass(frozen=True, slots=True)
class _Addition:
    """``first``, ``last``: where in a block its statements stand; ``added``: what it adds; ``own``: the variables that
    it makes for itself."""

    of: Compensated
    first: int
    last: int
    added: Expr
    own: frozenset[str]


_Change = Callable[[_Addition, Block], Block]


def compensated(loop: For) -> tuple[Compensated, ...]:
    """Those that a loop does nothing else with."""
    counts, uses = mentions(loop.body), Counter[str]()
    users = dict[str, set[Compensated]]()
    for one, stmts in _every(loop.body):
        for name in one.own | one.of.names:
            uses[name] += mentions(stmts)[name]
            users.setdefault(name, set()).add(one.of)
    mixed = {n for n, of in users.items() if len(of) > 1 and any(n in each.names for each in of)}
    bad = {of for n in uses if counts[n] != uses[n] or n in mixed for of in users[n]}
    return tuple(dict.fromkeys(one.of for one, _ in _every(loop.body) if one.of not in bad))


def without_sums(body: Block, sums: tuple[Compensated, ...]) -> Block:
    """The statements without what adds to some sums: what they add is found still."""
    return _changed(body, sums, lambda one, _: (ExprStmt(one.added),))


def noting_last(body: Block, turns: Mapping[Compensated, str], var: str) -> Block:
    """The statements, where the turn of each addition to some sums is kept in a variable."""
    return _changed(body, tuple(turns), lambda one, stmts: (*stmts, Assign(Name(turns[one.of]), "=", Name(var))))


def _changed(body: Block, sums: tuple[Compensated, ...], change: _Change) -> Block:
    found = {one.first: one for one in _additions(body) if one.of in sums}
    kept, at = list[Stmt](), 0
    while at < len(body):
        one = found.get(at)
        end = at if one is None else one.last
        part = body[at : end + 1]
        kept += (with_blocks(part[0], lambda b: _changed(b, sums, change)),) if one is None else change(one, part)
        at = end + 1
    return body if len(kept) == len(body) and all(map(_same, kept, body)) else tuple(kept)


def _same(one: Stmt, other: Stmt) -> bool:
    return one is other


# ---------------------------------------------------------------- additions


def _every(body: Block) -> Iterator[tuple[_Addition, Block]]:
    """The additions of statements and of all blocks in them, with their own statements."""
    for one in _additions(body):
        yield one, body[one.first : one.last + 1]
    for s in body:
        for block in blocks_of(s):
            yield from _every(block)


def _additions(body: Block) -> Iterator[_Addition]:
    """Those of one block."""
    places = [n for n, s in enumerate(body) if not isinstance(s, Comment)]
    for n, at in enumerate(places):
        for length, told in ((4, _kahan), (4, _knuth), (3, _neumaier)):
            part = places[n : n + length]
            found = told(tuple(body[m] for m in part)) if len(part) == length else None
            if found is None:
                continue
            of, added, own = found
            if not names_in(added) & (of.names | own) and not of.names & own and len(of.names) == 2:
                yield _Addition(of, at, part[-1], added, own)


_Found = tuple[Compensated, Expr, frozenset[str]]


def _kahan(stmts: Block) -> _Found | None:
    """``y = v - c; t = s + y; c = (t - s) - y; s = t;``, or with the other sign."""
    match stmts:
        case (
            Declare(name=y, init=corrected, dims=()),
            Declare(name=t, init=Binary("+", _, _) as total, dims=()),
            Assign(Name(c), "=", lost),
            Assign(Name(s), "=", Name(kept)),
        ) if kept == t and y in _others(total, s):
            sign = _sign_of_lost(lost, s, y, t)
            added = None if sign is None or corrected is None else _uncorrected(corrected, c, sign)
            if added is not None and sign is not None:
                return Compensated(s, c, sign, True), added, frozenset((y, t))
    return None


def _sign_of_lost(lost: Expr, s: str, y: str, t: str) -> int | None:
    much, less = Binary("-", Name(t), Name(s)), Binary("-", Name(s), Name(t))
    if lost == Binary("-", much, Name(y)):
        return -1
    return 1 if lost in (Binary("-", Name(y), much), Binary("+", less, Name(y)), Binary("+", Name(y), less)) else None


def _uncorrected(e: Expr, c: str, sign: int) -> Expr | None:
    """What is added, of that with what was lost before."""
    match e:
        case Binary("-", value, Name(text)) if text == c and sign < 0:
            return value
        case Binary("+", value, Name(text)) | Binary("+", Name(text), value) if text == c and sign > 0:
            return value
        case Call(Name("fma" | "fmaf"), (a, b, last)) if last == (Name(c) if sign > 0 else Unary("-", Name(c))):
            return Binary("*", a, b)
    return None


def _knuth(stmts: Block) -> _Found | None:
    """``t = s + v; z = t - s; c += (s - (t - z)) + (v - z); s = t;``"""
    match stmts:
        case (
            Declare(name=t, init=Binary("+", _, _) as total, dims=()),
            Declare(name=z, init=Binary("-", Name(after), Name(before)), dims=()),
            Assign(Name(c), "+=", Binary("+", Binary("-", one, part), Binary("-", value, Name(last)))),
            Assign(Name(s), "=", Name(kept)),
        ) if kept == after == t and (one, before, last) == (Name(s), s, z) and value in _sides(total, s):
            if part == Binary("-", Name(t), Name(z)):
                return Compensated(s, c, 1, False), value, frozenset((t, z))
    return None


def _neumaier(stmts: Block) -> _Found | None:
    """``t = s + v; if (fabs(s) >= fabs(v)) c += (s - t) + v; else c += (v - t) + s; s = t;``"""
    match stmts:
        case (
            Declare(name=t, init=Binary("+", _, _) as total, dims=()),
            asked,
            Assign(Name(s), "=", Name(kept)),
        ) if kept == t and (told := _either(asked)) is not None:
            c, test, yes, no = told
            for value in _sides(total, s):
                large, small = (yes, no) if _is_larger(test, Name(s), value) else (no, yes)
                known = _is_larger(test, Name(s), value) or _is_larger(test, value, Name(s))
                if known and _is_rest(large, Name(s), value, t) and _is_rest(small, value, Name(s), t):
                    return Compensated(s, c, 1, False), value, frozenset((t,))
    return None


def _either(s: Stmt) -> tuple[str, Expr, Expr, Expr] | None:
    """What is added to one variable under a condition, and otherwise."""
    match s:
        case Assign(Name(c), "+=", Ternary(test, yes, no)):
            return c, test, yes, no
        case If(test, (Assign(Name(c), "+=", yes),), (Assign(Name(other), "+=", no),)) if c == other:
            return c, test, yes, no
    return None


def _is_larger(test: Expr, one: Expr, other: Expr) -> bool:
    """Whether a condition asks whether one value is of the larger size."""
    match test:
        case Binary("<" | "<=" as op, left, right):
            return _is_larger(Binary(MIRRORED[op], right, left), one, other)
        case Binary(">" | ">=", Call(Name(first), (left,)), Call(Name(second), (right,))):
            return {first, second} <= _SIZES and (left, right) == (one, other)
    return False


def _is_rest(e: Expr, large: Expr, small: Expr, t: str) -> bool:
    """Whether a value is what the sum of a large and a small number lost: ``(large - t) + small``."""
    rest = Binary("-", large, Name(t))
    return e in (Binary("+", rest, small), Binary("+", small, rest))


def _sides(total: Expr, s: str) -> list[Expr]:
    """What is added to a variable by a sum of two."""
    match total:
        case Binary("+", left, right):
            return [b for a, b in ((left, right), (right, left)) if a == Name(s)]
    return []


def _others(total: Expr, s: str) -> list[str]:
    return [e.text for e in _sides(total, s) if isinstance(e, Name)]
