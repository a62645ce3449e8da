"""Walks along an array up to where data ends them, as loops of constant length.

``while (c < n && u >= w[c]) { u -= w[c]; ++c; }`` is at element c of the array, which is known at run time only. Of a
loop over all elements, ``for (int i = 0; i < N; ++i) if (i == c && i < n && u >= w[i]) { u -= w[i]; ++c; }``, each turn
is at an element that is known: c stays where the walk ended, and no later turn has that number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fsr.analysis.types import bare, is_integer, resolved
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    Literal,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Unary,
    While,
    conjunction,
    conjuncts,
    number,
)  # fmt: skip
from fsr.source.mapping import map_stmts, substitute
from fsr.source.walk import (
    Block,
    fresh,
    jumps,
    names_assigned,
    names_in,
    taken_names,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.selects.arrays import Place, SmallArray, goes_alone, own_names
from fsr.transform.selects.limits import FAR, access_limits


def with_walks(place: Place, arrays: Sequence[SmallArray]) -> Block:
    """A kernel's statements with a loop for each such walk."""
    form, taken = place.form, set(taken_names(place.form)) | set(place.known)
    own, types = own_names(form), _alone(form.body)

    def change(s: Stmt) -> Stmt:
        walk = _walked(s)
        if not isinstance(s, While) or walk is None:
            return s
        var, inner, step = walk
        type_ = types.get(var, "")
        known = var in own and is_integer(resolved(type_, place.types))
        if not known or not _is_walk(s.test, inner, var, place):
            return s
        limits = access_limits(inner, var, arrays, place.known)
        first, last = max((n for n, _ in limits), default=FAR), min((n for _, n in limits), default=FAR)
        if first < 0 or last <= first:
            return s
        taken.add(turn := fresh(f"{var}_turn", taken))
        asked = (substitute(t, {var: Name(turn)}) for t in conjuncts(s.test) if t != Literal("true"))
        here: Expr = Binary("==", Name(turn), Name(var))
        body = (If(conjunction((here, *asked)) or here, (*substitute(inner, {var: Name(turn)}), step)),)
        if step.op == "+=":
            return For(bare(type_), turn, number(first), "<", number(last + 1), number(1), body)
        return For(bare(type_), turn, number(last), ">=", number(first), Unary("-", number(1)), body)

    return map_stmts(form.body, change)


def _alone(body: Block) -> Mapping[str, str]:
    """The types of variables that are the only ones of their name, but for loops' own that no loop's body changes."""
    stmts = list(walk_stmts(body))
    names = Counter(s.name for s in stmts if isinstance(s, Declare))
    others = {s.var for s in stmts if isinstance(s, For) and s.var in names_assigned(s.body) | set(variables(s.body))}
    return {s.name: s.type for s in stmts if isinstance(s, Declare) and names[s.name] == 1 and s.name not in others}


def _walked(s: Stmt) -> tuple[str, Block, Assign] | None:
    """The variable that a loop moves by one at the end of each turn, what it does before, and this step."""
    match s:
        case While(body=(*inner, Assign(Name(name), "+=" | "-=", Literal("1")) as step)):
            return name, tuple(inner), step
    return None


def _is_walk(test: Expr, inner: Block, var: str, place: Place) -> bool:
    """Whether a loop's test only computes, and its body changes the variable nowhere else and has one end."""
    changed = place.changed(inner) | set(variables(inner))
    if jumps(inner) or var in changed or not goes_alone(inner, place.source):
        return False
    hidden = any(isinstance(x, OpaqueStmt) for x in walk_stmts(inner)) or any(
        isinstance(x, OpaqueExpr) and var in names_in(x) for x in walk_exprs(inner)
    )
    computes = place.functions.only_computes
    return not hidden and all(
        isinstance(x, Name | Literal | Binary | Index | Unary)
        or (isinstance(x, Call) and isinstance(x.callee, Name) and computes(x.callee.text))
        for x in walk_expr(test)
    )
