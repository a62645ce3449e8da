"""Accumulators of loops: variables that an iteration only combines with a new value."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.source.form import Assign, Binary, Call, Comment, Expr, If, Name, Stmt, Ternary
from fsr.source.walk import exprs_of, names_in, names_mentioned, walk_stmts

IDENTITY = {"+": "0", "*": "1", "&": "~0", "|": "0", "^": "0", "max": None, "min": None, "&&": "true", "||": "false"}
_EXTREMES = {"max": "max", "fmax": "max", "fmaxf": "max", "min": "min", "fmin": "min", "fminf": "min"}


@dataclass(frozen=True, slots=True)
class Reduction:
    """``name`` combined with ``value`` by ``op``: one of + * & | ^ max min. ``identity`` is a literal that is
    neutral in every arithmetic type, None for max and min (the initial value, repeated, is neutral there).
    ``call``: the function used (fmaxf), or None."""

    name: str
    op: str
    value: Expr
    statement: Stmt
    call: str | None = None

    @property
    def identity(self) -> str | None:
        """The neutral element, or None for max and min."""
        return IDENTITY[self.op]


def reduction_of(s: Stmt) -> Reduction | None:
    """The fold that one statement makes: ``acc += e``, ``acc = acc + e``, ``acc = e + acc``, ``acc = fmaxf(acc, e)``,
    ``acc = e > acc ? e : acc``, ``if (e > acc) acc = e;``; None for anything else."""
    match s:
        case Assign(Name(name), "+=" | "-=" | "*=" | "&=" | "|=" | "^=" as op, value) if name not in names_in(value):
            return Reduction(name, "+" if op == "-=" else op[0], value, s)
        case Assign(Name(name), "=", value):
            return _assigned(name, value, s)
        case If(Binary(op, left, right), then, ()):
            match [t for t in then if not isinstance(t, Comment)]:
                case [Assign(Name(name), "=", value)] if name not in names_in(value):
                    extreme = _compared(op, left, right, value, Name(name))
                    return Reduction(name, extreme, value, s) if extreme else None
    return None


def _assigned(name: str, value: Expr, s: Stmt) -> Reduction | None:
    match value:
        case Binary("+" | "*" | "&" | "|" | "^" as op, Name(left), other) if left == name and name not in names_in(
            other
        ):
            return Reduction(name, op, other, s)
        case Binary("+" | "*" | "&" | "|" | "^" as op, other, Name(right)) if right == name and name not in names_in(
            other
        ):
            return Reduction(name, op, other, s)
        case Call(Name(function), (a, b)) if function in _EXTREMES and (a == Name(name)) != (b == Name(name)):
            other = b if a == Name(name) else a
            return None if name in names_in(other) else Reduction(name, _EXTREMES[function], other, s, function)
        case Ternary(Binary(op, left, right), yes, no) if Name(name) in (yes, no) and yes != no:
            other = no if yes == Name(name) else yes
            extreme = _compared(op, left, right, yes, no)
            return Reduction(name, extreme, other, s) if extreme and name not in names_in(other) else None
    return None


def _compared(op: str, left: Expr, right: Expr, yes: Expr, no: Expr) -> str | None:
    """'max' or 'min' when ``left op right ? yes : no`` picks it."""
    if op not in ("<", ">", "<=", ">=") or {left, right} != {yes, no}:
        return None
    larger = (op[0] == ">") == (left == yes)
    return "max" if larger else "min"


def reductions(body: tuple[Stmt, ...]) -> dict[str, Reduction]:
    """The accumulators of a loop body by name: each is folded by one operator (possibly in several statements) and
    mentioned nowhere else in the body."""
    found: dict[str, list[Reduction]] = {}
    folding: set[int] = set()
    for s in walk_stmts(body):
        fold = reduction_of(s)
        if fold is not None and id(s) not in folding:
            found.setdefault(fold.name, []).append(fold)
            folding.add(id(s))
            if isinstance(s, If):
                folding.update(id(t) for t in s.then)
    others = set[str]()
    for s in walk_stmts(body):
        if id(s) not in folding:
            for e in exprs_of(s):
                others |= names_in(e)
            if not exprs_of(s):
                others |= names_mentioned((s,)) if type(s).__name__ == "OpaqueStmt" else set()
    declared = {getattr(s, "name", "") for s in walk_stmts(body)}
    return {
        name: folds[0]
        for name, folds in found.items()
        if name not in others
        and name not in declared
        and len({f.op for f in folds}) == 1
        and all(name not in names_in(f.value) for f in folds)
        and not _mentioned_by_other_folds(name, found)
    }


def _mentioned_by_other_folds(name: str, found: dict[str, list[Reduction]]) -> bool:
    return any(
        name in names_mentioned((f.statement,)) for other, folds in found.items() if other != name for f in folds
    )
