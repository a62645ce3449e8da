"""Which elements a kernel touches: its index expressions as polynomials, with the ranges that guards and loops give.

This is an abstract walk over the loop-nest form. Whatever it does not understand becomes an unknown: a fresh
atom without a range, so that an index that depends on it has no shape and is asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fsr.analysis.calls import LOADS
from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.ranges import (
    Kind,
    Reach,
    State,
    Walk,
    asks_for_buffer,
    assume,
    global_indices,
    is_size,
    pointer_of,
    sweeps,
    value_of,
    with_sums,
)
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
)
from fsr.source.walk import exprs_of, opaque_names, subexprs, walk_expr, walk_stmts


def walk_kernel(kernel: KernelForm, constants: Mapping[str, int], block: Mapping[str, int]) -> Walk:
    """Every access of the kernel's pointer parameters. ``constants``: names with known values; ``block``: the
    extents of the block by axis, where they are known."""
    walk = Walk({p.name: p.is_pointer for p in kernel.params}, constants, block, kernel.by_reference)
    values = {p.name: symbol(p.name) for p in kernel.params if not p.is_pointer}
    pointers = {p.name: (p.name, Poly()) for p in kernel.params if p.is_pointer}
    _block(kernel.body, State(values, pointers, {}), walk)
    return walk


# ---------------------------------------------------------------- statements


def _block(stmts: Sequence[Stmt], state: State, walk: Walk) -> State:
    for stmt in stmts:
        state = _stmt(stmt, state, walk)
        changed = frozenset(name for expr in exprs_of(stmt) for name in _changed_by(expr))
        if changed:
            state = state.without(changed, walk)
    return state


def _stmt(stmt: Stmt, state: State, walk: Walk) -> State:
    match stmt:
        case Declare(init=init, name=name):
            return _assign_name(name, init, state, walk, is_pointer="*" in stmt.type) if not stmt.dims else state
        case Assign():
            return _assign(stmt, state, walk)
        case ExprStmt(expr):
            _visit(expr, state, walk)
        case If():
            return _if(stmt, state, walk)
        case For():
            return _for(stmt, state, walk)
        case While(test, body):
            inside = state.without(_reassigned(body), walk)
            _visit(test, inside, walk)
            _block(body, State(inside.values, inside.pointers, inside.bounds, False), walk)
            return inside
        case Scope(body):
            return _block(body, state, walk)
        case Return(value) if value is not None:
            _visit(value, state, walk)
        case OpaqueStmt(text):
            walk.doubt(set(opaque_names(text)), f"it is used in {' '.join(text.split())[:40]!r}")
            return state.without(opaque_names(text), walk)
    return state


def _assign_name(name: str, init: Expr | None, state: State, walk: Walk, is_pointer: bool) -> State:
    values, pointers = dict(state.values), dict(state.pointers)
    pointers.pop(name, None)
    if init is not None and is_pointer:
        target = pointer_of(init, state, walk)
        if target is not None:
            pointers[name] = target
            return State(values, pointers, state.bounds, state.total)
    if init is not None:
        _visit(init, state, walk)
    values[name] = value_of(init, state, walk) if init is not None else walk.unknown(name)
    return State(values, pointers, state.bounds, state.total)


def _assign(stmt: Assign, state: State, walk: Walk) -> State:
    if isinstance(stmt.target, Name):
        name, value = stmt.target.text, stmt.value
        if name in state.pointers and stmt.op in ("=", "+="):
            whole: Expr = Binary("+", stmt.target, value) if stmt.op == "+=" else value
            return _assign_name(name, whole, state, walk, is_pointer=True)
        if stmt.op != "=":
            value = Binary(stmt.op[:-1], stmt.target, value)
        return _assign_name(name, value, state, walk, is_pointer=False)
    _visit(stmt.value, state, walk)
    _target(stmt.target, "write" if stmt.op == "=" else "update", state, walk)
    return state


def _target(target: Expr, kind: Kind, state: State, walk: Walk) -> None:
    match target:
        case Member(base, _, False):
            _target(base, "update" if kind == "write" else kind, state, walk)
        case Index(base, index):
            _visit(index, state, walk)
            _access(base, index, kind, state, walk)
        case Unary("*", operand):
            _access(operand, Literal("0"), kind, state, walk)
        case _:
            _visit(target, state, walk)


def _if(stmt: If, state: State, walk: Walk) -> State:
    _visit_test(stmt.test, state, walk)
    inside = assume(stmt.test, True, state, walk)
    after_then = _block(stmt.then, inside, walk)
    otherwise = assume(stmt.test, False, state, walk)
    after_else = _block(stmt.orelse, otherwise, walk)
    if _leaves(stmt.then):
        return after_else
    if stmt.orelse and _leaves(stmt.orelse):
        return after_then
    return state.without(_reassigned((*stmt.then, *stmt.orelse)), walk)


def _reassigned(stmts: Sequence[Stmt]) -> frozenset[str]:
    """Variables that may hold something else after the statements; writes through pointers do not count."""
    found: set[str] = set()
    for stmt in walk_stmts(stmts):
        match stmt:
            case Assign(Name(text)) | For(None, text):
                found.add(text)
            case OpaqueStmt(text):
                found |= opaque_names(text)
        for expr in exprs_of(stmt):
            found |= _changed_by(expr)
    return frozenset(found)


def _changed_by(expr: Expr) -> frozenset[str]:
    """Variables that evaluating an expression may change: their address is taken, or ``++`` hides in it."""
    found: set[str] = set()
    for part in walk_expr(expr):
        match part:
            case Unary("&", Name(text)):
                found.add(text)
            case OpaqueExpr(text):
                found |= opaque_names(text)
    return frozenset(found)


def _leaves(body: Sequence[Stmt]) -> bool:
    return bool(body) and isinstance(body[-1], Return)


def _for(stmt: For, state: State, walk: Walk) -> State:
    start, end = value_of(stmt.start, state, walk), value_of(stmt.bound, state, walk)
    for part in (stmt.start, stmt.bound, stmt.step):
        _visit(part, state, walk)
    after = state.without(_reassigned((stmt,)), walk)
    step = value_of(stmt.step, state, walk)
    walk._fresh += 1
    atom = f"@_{stmt.var}{walk._fresh}"
    end = end + constant(1) if stmt.relation == "<=" else end
    known = stmt.relation in ("<", "<=", "!=") and all(is_size(a, walk) for a in end.symbols)
    bounds, total = dict(after.bounds), after.total
    if known and sweeps(start, step, bounds, walk):
        bounds[atom] = end
    elif known and step.value == 1 and start.value is not None and start.value >= 0:
        bounds[atom], total = end, False  # j = 1, 2, …: in range, but the first ones are left out
    else:
        atom, total = f"?{stmt.var}{walk._fresh}", False
    values = {**after.values, stmt.var: symbol(atom)}
    _block(stmt.body, State(values, after.pointers, bounds, total), walk)
    return after


# ---------------------------------------------------------------- expressions


def _visit(expr: Expr, state: State, walk: Walk) -> None:
    """Record the accesses inside an expression."""
    match expr:
        case Index(base, index):
            _visit(index, state, walk)
            _access(base, index, "read", state, walk)
        case Unary("*", operand):
            _access(operand, Literal("0"), "read", state, walk)
        case Call(callee, args):
            _call(callee, args, state, walk)
        case Binary("&&" | "||" as op, left, right):
            _visit(left, state, walk)
            _visit(right, assume(left, op == "&&", state, walk), walk)
        case Ternary(test, yes, no):
            _visit_test(test, state, walk)
            _visit(yes, assume(test, True, state, walk), walk)
            _visit(no, assume(test, False, state, walk), walk)
        case Unary("&", operand) if _names_buffer(operand, state):
            _target(operand, "update", state, walk)
        case Name(text) if text in state.pointers:
            walk.doubt({state.pointers[text][0]}, "its address is used beyond indexing")
        case OpaqueExpr(text):
            held = {state.pointers[n][0] for n in opaque_names(text) if n in state.pointers}
            walk.doubt(held, f"it is used in {' '.join(text.split())[:40]!r}")
        case _:
            for part in subexprs(expr):
                _visit(part, state, walk)


def _visit_test(test: Expr, state: State, walk: Walk) -> None:
    """As _visit, of a condition: one that asks if there is a buffer takes no address."""
    match test:
        case Binary("&&" | "||" as op, left, right):
            _visit_test(left, state, walk)
            _visit_test(right, assume(left, op == "&&", state, walk), walk)
        case _ if asks_for_buffer(test, state) is None:
            _visit(test, state, walk)


def _names_buffer(expr: Expr, state: State) -> bool:
    return isinstance(expr, Index) and isinstance(expr.base, Name) and expr.base.text in state.pointers


def _call(callee: Expr, args: Sequence[Expr], state: State, walk: Walk) -> None:
    name = callee.text if isinstance(callee, Name) else ""
    rest = list(args)
    kind: Kind | None = None
    if name.startswith("atomic"):
        kind = "update"
    elif name in LOADS or name == "__ldcv":
        kind = "read"
    elif name in ("__stcs", "__stcg", "__stwb", "__stwt"):
        kind = "write"
    if kind is not None and rest:
        target = pointer_of(rest[0], state, walk)
        if target is not None:
            buffer, index = target
            _note(buffer, kind, index, state, walk)
            _visit_index(rest[0], state, walk)
            rest = rest[1:]
    for n, arg in enumerate(rest, len(args) - len(rest)):
        if isinstance(arg, Index) and f"{name}({n}" in walk.by_reference:
            _target(arg, "update", state, walk)
        else:
            _visit(arg, state, walk)


def _visit_index(expr: Expr, state: State, walk: Walk) -> None:
    match expr:
        case Unary("&", Index(_, index)):
            _visit(index, state, walk)
        case Binary(_, left, right):
            for part in (left, right):
                if not (isinstance(part, Name) and part.text in state.pointers):
                    _visit(part, state, walk)


def _access(base: Expr, index: Expr, kind: Kind, state: State, walk: Walk) -> None:
    target = pointer_of(base, state, walk)
    if target is None:
        if isinstance(base, Index):
            _target(base, kind, state, walk)
        elif not isinstance(base, Name):
            _visit(base, state, walk)
        return
    buffer, offset = target
    _note(buffer, kind, global_indices(offset + value_of(index, state, walk), walk), state, walk)


def _note(buffer: str, kind: Kind, index: Poly, state: State, walk: Walk) -> None:
    walk.accesses.append(Reach(buffer, kind, with_sums(index, state, walk), dict(state.bounds), state.total))
