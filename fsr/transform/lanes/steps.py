"""Variables that each turn of a loop moves on by the same, told by the turn: ``p[k * n]`` for ``*p; p += n``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.types import is_integer
from fsr.source.form import Assign, Binary, Cast, Declare, Expr, For, Literal, Name, Unary, number
from fsr.source.mapping import substitute, with_blocks
from fsr.source.walk import (
    Block,
    integer,
    is_zero,
    jumps,
    loops,
    names_changed,
    names_in,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.rows.share import times


@dataclass(frozen=True)
class _Step:
    """``at``: which of the loop's statements adds ``by`` (or takes it away) to the variable."""

    name: str
    at: int
    op: str
    by: Expr


def by_turn(body: Block) -> Block:
    """The statements, where variables that a loop moves on and that nobody looks at afterwards stay as they began."""
    found = list(body)
    for n, s in enumerate(body):
        s = with_blocks(s, by_turn)
        if isinstance(s, For) and s.type is not None and s.relation in ("<", "<=") and integer(s.step) == 1:
            own = {d.name: d.type for d in body[:n] if isinstance(d, Declare) and not d.dims and d.init is not None}
            later = {name for e in walk_exprs(body[n + 1 :]) for name in names_in(e)}
            for step in [x for x in _steps(s) if x.name in own.keys() - later]:
                if "*" in own[step.name] or is_integer(own[step.name]):
                    s = _told(s, step, own[step.name])
        found[n] = s
    return body if all(a is b for a, b in zip(found, body, strict=True)) else tuple(found)


def _steps(loop: For) -> Iterator[_Step]:
    """The variables that every turn moves on once, last ones first."""
    changed = names_changed(loop.body) | {s.name for s in walk_stmts(loop.body) if isinstance(s, Declare)}
    changed |= {inner.var for inner in loops(loop.body)} | {loop.var}
    heads = names_in(loop.start) | names_in(loop.bound)
    sets = [s.target.text for s in walk_stmts(loop.body) if isinstance(s, Assign) and isinstance(s.target, Name)]
    if jumps(loop.body) or not _is_plain(loop.start) or names_in(loop.start) & changed:
        return
    for at in reversed(range(len(loop.body))):
        match loop.body[at]:
            case Assign(Name(name), "+=" | "-=" as op, by) if sets.count(name) == 1 and name not in heads:
                used = any(name in names_in(e) for e in walk_exprs((*loop.body[:at], *loop.body[at + 1 :])))
                if used and _is_plain(by) and not names_in(by) & changed and not _by_address(loop.body, name):
                    yield _Step(name, at, op[0], by)


def _told(loop: For, step: _Step, type_: str) -> For:
    """The loop without the step, for a variable of a type."""
    turn: Expr = Name(loop.var) if is_zero(loop.start) else Binary("-", Name(loop.var), loop.start)

    def moved(turns: Expr) -> Expr:
        if "*" in type_:
            far = turns if step.by == number(1) else Cast("long long", turns, "c")
            return Binary(step.op, Name(step.name), times(far, step.by))
        value = Binary(step.op, Name(step.name), times(turns, step.by))
        return value if type_ == loop.type == "int" and integer(step.by) is not None else Cast(type_, value, "c")

    before = substitute(loop.body[: step.at], {step.name: moved(turn)})
    after = substitute(loop.body[step.at + 1 :], {step.name: moved(Binary("+", turn, number(1)))})
    return replace(loop, body=(*before, *after))


def _is_plain(e: Expr) -> bool:
    """Whether a value is made of names and numbers alone."""
    return all(isinstance(x, Name | Literal | Binary | Cast | Unary) and not _looks(x) for x in walk_expr(e))


def _looks(e: Expr) -> bool:
    return isinstance(e, Unary) and e.op in ("*", "&")


def _by_address(body: Block, name: str) -> bool:
    return any(isinstance(e, Unary) and e.op == "&" and name in names_in(e) for e in walk_exprs(body))
