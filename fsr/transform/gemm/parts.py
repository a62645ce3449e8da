"""From a recognised GEMM nest to the tiled kernel: the parts of the text, taken from the user's own code."""

from __future__ import annotations

from collections.abc import Callable

from fsr.analysis.domain import Axis
from fsr.analysis.point_accesses import written_out
from fsr.source.emit import emit_expr, emit_stmts
from fsr.source.form import Assign, Declare, Expr, Index, Literal, Name, OpaqueExpr, Stmt
from fsr.source.mapping import rewrite, substitute
from fsr.source.walk import identifiers, nodes
from fsr.transform.gemm.nest import Factor, GemmNest, one_step
from fsr.transform.gemm.text import GemmParts, Operand


def gemm_parts(nest: GemmNest) -> GemmParts:
    """The parts of the kernel text for a nest."""
    start, bound = (written_out(e, nest.values) for e in (nest.loop.start, nest.loop.bound))
    uniform = list(nest.domain.uniform)
    k_start, k_end = emit_expr(start), emit_expr(bound)
    kind = nest.loop.type or "int"
    if nest.loop.relation == "<=" or not isinstance(bound, Name | Literal):
        more = " + 1" if nest.loop.relation == "<=" else ""
        uniform.append(Declare(f"const {kind}", "$k_end", OpaqueExpr(f"{emit_expr(bound)}{more}")))
        k_end = "$k_end"
    if not isinstance(start, Name | Literal):
        uniform.append(Declare(f"const {kind}", "$k_start", start))
        k_start = "$k_start"
    return GemmParts(
        a=_operand(nest, nest.a, nest.m_axis),
        b=_operand(nest, nest.b, nest.n_axis),
        acc_type=_plain(nest.acc.type),
        start=_start(nest),
        combine=_combine(nest),
        finish=_finish(nest),
        zero_is_neutral=nest.neutral,
        k_type=kind,
        k_start=k_start,
        k_end=k_end,
        uniform=emit_stmts(tuple(uniform)),
    )


def _plain(kind: str) -> str:
    return " ".join(w for w in kind.split() if w != "const")


def _text(text: str) -> Expr:
    return Literal(text) if text.isdigit() else Name(text) if text.lstrip("$").isidentifier() else OpaqueExpr(text)


def _operand(nest: GemmNest, factor: Factor, axis: str) -> Operand:
    outer = nest.domain.axes[axis]
    access = factor.access

    def at(row: str, k: str) -> str:
        index = substitute(access.offset, {outer.var: _text(row), nest.loop.var: _text(k)})
        return emit_expr(Index(Name(access.pointer), index))

    def load(element: str) -> str:
        return emit_expr(rewrite(factor.expr, lambda e: OpaqueExpr(element) if e == access.expr else None))

    def inside(row: str) -> str:
        guard = outer.guard()
        return "" if guard is None else _conjunct(substitute(written_out(guard, nest.values), {outer.var: _text(row)}))

    return Operand(factor.dtype, _value(factor), at, load, inside, factor.along, factor.stride.text(), axis, outer.type)


def _value(factor: Factor) -> str:
    return _plain(factor.value)


def _conjunct(guard: Expr) -> str:
    text = emit_expr(guard)
    return f"({text})" if "||" in text else text


def _combine(nest: GemmNest) -> Callable[[str, str, str], str]:
    step = one_step(nest.loop, nest.a, nest.b)

    def combine(acc: str, a: str, b: str) -> str:
        parts = {nest.acc.name: _lvalue(acc), "$a": _lvalue(a), "$b": _lvalue(b)}
        return emit_stmts(substitute(step, parts)).rstrip("\n")

    return combine


def _lvalue(text: str) -> Expr:
    """``x[i][j]`` as nested Index, so that no brackets are put around it."""
    base, *indexes = text.replace("]", "").split("[")
    expr: Expr = Name(base)
    for index in indexes:
        expr = Index(expr, _text(index))
    return expr


def _point(nest: GemmNest, m: str, n: str, inner: tuple[Stmt, ...], needed: frozenset[str]) -> str:
    """Statements that run ``inner`` at one point if the kernel handles it, with the declarations it needs."""
    m_axis, n_axis = nest.domain.axes[nest.m_axis], nest.domain.axes[nest.n_axis]
    lines = [f"const {m_axis.type} {m_axis.var} = {m};", f"const {n_axis.type} {n_axis.var} = {n};"]
    guard = " && ".join(g for g in (_guard(nest, m_axis), _guard(nest, n_axis)) if g)
    lets = _needed(nest.before, needed | identifiers(inner))
    body = emit_stmts((*lets, *inner), 1).rstrip("\n")
    return "\n".join([*lines, f"if ({guard or 'true'}) {{", body, "}"])


def _guard(nest: GemmNest, axis: Axis) -> str:
    guard = axis.guard()
    return "" if guard is None else _conjunct(written_out(guard, nest.values))


def _needed(before: tuple[Declare, ...], used: frozenset[str]) -> tuple[Declare, ...]:
    """The declarations that the used names need, directly or through others, in order."""
    kept: list[Declare] = []
    for declare in reversed(before):
        if declare.name in used:
            kept.insert(0, declare)
            used = used | identifiers(declare)
    return tuple(kept)


def _start(nest: GemmNest) -> Callable[[str, str, str], str]:
    init = nest.acc.init or Literal("0")
    local = {d.name for d in nest.before} | set(nest.domain.ids())
    if not identifiers(init) & local and not any(isinstance(n, Index) for n in nodes(init)):
        return lambda m, n, acc: f"{acc} = {emit_expr(init)};"

    def start(m: str, n: str, acc: str) -> str:
        zero = f"{acc} = static_cast<{_plain(nest.acc.type)}>(0);\n"
        return zero + _point(nest, m, n, (Assign(_lvalue(acc), "=", init),), identifiers(init))

    return start


def _finish(nest: GemmNest) -> Callable[[str, str, str], str]:
    changed = any(isinstance(n, Assign) and n.target == Name(nest.acc.name) for n in nodes(nest.finish))

    def finish(m: str, n: str, acc: str) -> str:
        if changed:
            own = Declare(_plain(nest.acc.type), nest.acc.name, _lvalue(acc))
            return _point(nest, m, n, (own, *nest.finish), frozenset())
        return _point(nest, m, n, substitute(nest.finish, {nest.acc.name: _lvalue(acc)}), frozenset())

    return finish
