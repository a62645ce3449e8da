"""What the turns of a loop hand to one another, where lanes that have some turns each can put it together afterwards.

Sums and the like (:mod:`fsr.analysis.accumulators`), compensated ones too, flags that are only ever set to one value,
and the best of many with whatever belongs to it: ``if (d < best) { best = d; who = ids[j]; }``. Which of equal ones is
kept, the first (``<``) or the last (``<=``), stays as it is: lanes tell the turn in which they found theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.accumulators import accumulators, mentions, update_of
from fsr.analysis.conditions import MIRRORED
from fsr.source.form import Assign, Binary, Comment, Expr, ExprStmt, For, If, Literal, Name, Stmt, Unary, conjuncts
from fsr.source.mapping import map_stmts
from fsr.source.walk import Block, integer, names_in, walk_stmts
from fsr.transform.lanes.compensated import Compensated, compensated, without_sums

_EXTREME = {">": "greatest", ">=": "greatest", "<": "least", "<=": "least"}


@dataclass(frozen=True, slots=True)
class Best:
    """``value``: the variable that holds it; ``kept``: those that are set with it; ``operator``: 'greatest' or 'least';
    ``last``: of equal ones the last is kept; ``second``: of ``kept`` what tells equal ones apart before that, with its
    operator."""

    value: str
    kept: tuple[str, ...]
    operator: str
    last: bool
    second: tuple[str, str] | None = None

    @property
    def names(self) -> frozenset[str]:
        """All variables that are set."""
        return frozenset((self.value, *self.kept))


@dataclass(frozen=True)
class Folds:
    """``plain``: operator by variable; ``flags``: what each is set to; ``sums``: those that keep what rounding lost;
    ``rest``: the loop without what all but ``plain`` set."""

    plain: Mapping[str, str]
    flags: Mapping[str, Expr]
    bests: tuple[Best, ...]
    rest: For
    sums: tuple[Compensated, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """All variables that the turns hand on."""
        several = [*(b.names for b in self.bests), *(s.names for s in self.sums)]
        return frozenset(self.plain) | frozenset(self.flags) | frozenset[str]().union(*several)


def folds_of(loop: For) -> Folds:
    """What a loop's turns hand on in a way that is known here; all else is left in ``rest``."""
    sums = compensated(loop)
    loop = replace(loop, body=without_sums(loop.body, sums))
    bests = _bests(loop)
    of_bests = {n for b in bests for n in b.names}
    flags = {n: v for n, v in _flags(loop).items() if n not in of_bests}

    def stripped(s: Stmt) -> Stmt | Iterable[Stmt]:
        best = best_of(s)
        if isinstance(s, If) and best in bests:
            return replace(s, then=tuple(ExprStmt(x.value) for x in s.then if isinstance(x, Assign)))
        return () if _is_flag(s, flags) else s

    rest = replace(loop, body=map_stmts(loop.body, stripped))
    return Folds(accumulators(rest.body), flags, bests, rest, sums)


def best_of(s: Stmt) -> Best | None:
    """The best that a statement keeps; None for any other statement, and where nothing but its value is kept in a way
    that is a plain fold."""
    if not isinstance(s, If) or s.orelse or update_of(s) is not None:
        return None
    sets = [x for x in s.then if not isinstance(x, Comment)]
    plain = [x for x in sets if isinstance(x, Assign) and x.op == "="]
    values = {x.target.text: x.value for x in plain if isinstance(x.target, Name)}
    if not sets or len(values) != len(sets) or any(names_in(v) & values.keys() for v in values.values()):
        return None
    asking = [p for p in conjuncts(s.test) if names_in(p) & values.keys()]
    if len(asking) != 1:
        return None
    one, two = _relation(asking[0], values), _relations(asking[0], values)
    first, last = two or (one, one)
    if first is None or last is None:
        return None
    second = (last[0], _EXTREME[last[1]]) if two else None
    kept = tuple(sorted(values.keys() - {first[0]}))
    return Best(first[0], kept, _EXTREME[first[1]], last[1].endswith("="), second)


def _relation(e: Expr, values: Mapping[str, Expr]) -> tuple[str, str] | None:
    """The variable that a comparison asks whether its new value is better, and how; None for any other expression."""
    match e:
        case Binary(op=op, left=left, right=Name(text=value)) if values.get(value) == left:
            pass
        case Binary(op=op, left=Name(text=value), right=right) if values.get(value) == right:
            op = MIRRORED.get(op, "")
        case _:
            return None
    return (value, op) if op in _EXTREME else None


def _relations(e: Expr, values: Mapping[str, Expr]) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """``d < best || (d == best && i < at)``: what is asked of the one, and of the other where the first are alike."""
    if not isinstance(e, Binary) or e.op != "||":
        return None
    for strict, alike in ((e.left, e.right), (e.right, e.left)):
        first, parts = _relation(strict, values), conjuncts(alike)
        if first is None or first[1].endswith("=") or len(parts) != 2:
            continue
        same = (Binary("==", values[first[0]], Name(first[0])), Binary("==", Name(first[0]), values[first[0]]))
        rest = [p for p in parts if p not in same]
        second = _relation(rest[0], values) if len(rest) == 1 else None
        if second is not None and second[0] != first[0]:
            return first, second
    return None


def _bests(loop: For) -> tuple[Best, ...]:
    """Those that the loop does nothing else with, each kept everywhere in one way."""
    found = [b for s in walk_stmts(loop.body) if (b := best_of(s)) is not None]
    counts = mentions(loop.body)
    alone = [
        b for b in dict.fromkeys(found)
        if counts[b.value] == (3 if b.second else 2) * found.count(b)
        and all(counts[n] == (2 if b.second and n == b.second[0] else 1) * found.count(b) for n in b.kept)
    ]  # fmt: skip
    # The turn in which a lane found its own tells which was first, where turns go up.
    up = (integer(loop.step) or 0) > 0
    return tuple(b for b in alone if up or not b.kept)


def _flags(loop: For) -> dict[str, Expr]:
    """Variables that the loop sets to one constant each and does not look at."""
    found: dict[str, list[Expr]] = {}
    for s in walk_stmts(loop.body):
        match s:
            case Assign(Name(name), "=", value) if _is_constant(value):
                found.setdefault(name, []).append(value)
    counts = mentions(loop.body)
    return {n: v[0] for n, v in found.items() if len(set(v)) == 1 and counts[n] == len(v)}


def _is_flag(s: Stmt, flags: Mapping[str, Expr]) -> bool:
    match s:
        case Assign(Name(name), "=", value):
            return flags.get(name) == value
    return False


def _is_constant(e: Expr) -> bool:
    match e:
        case Literal() | Name("true" | "false"):
            return True
        case Unary("-" | "+", operand):
            return _is_constant(operand)
    return False


def noting_turns(body: Block, turns: Mapping[Best, str], var: str) -> Block:
    """The statements, where each best is kept with the turn that found it in a variable."""

    def noted(s: Stmt) -> Stmt:
        best = best_of(s)
        if isinstance(s, If) and best is not None and best in turns:
            return replace(s, then=(*s.then, Assign(Name(turns[best]), "=", Name(var))))
        return s

    return map_stmts(body, noted)
