"""Which elements a kernel touches: its index expressions as polynomials, with the ranges that guards and loops give.

This is an abstract walk over the loop-nest form. Whatever it does not understand becomes an unknown: a fresh
atom without a range, so that an index that depends on it has no shape and is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf

from fsr.contract.polynomial import Poly
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
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

Kind = OneOf["read", "write", "update"]
AXES = ("x", "y", "z")
_BUILTINS = {"threadIdx": "t", "blockIdx": "b", "blockDim": "B", "gridDim": "G"}


@dataclass(frozen=True)
class Access:
    """One access of a buffer. ``bounds``: exclusive upper ends of the atoms in ``index`` where it happens.

    ``total``: the access happens for every value of its atoms within their bounds (only size guards stand
    around it), which makes a write cover them all.
    """

    buffer: str
    kind: Kind
    index: Poly
    bounds: Mapping[str, Poly]
    total: bool


@dataclass
class Walk:
    """What the walk over one kernel found.

    ``unclear``: buffers used in ways that are not understood, with the reason. ``guards``: atoms that a size
    guard bounds.
    """

    params: Mapping[str, bool]  # name → is a pointer
    constants: Mapping[str, int]
    block: Mapping[str, int]  # axis → blockDim, where the launch tells
    accesses: list[Access] = field(default_factory=list)
    unclear: dict[str, str] = field(default_factory=dict)
    guards: dict[str, Poly] = field(default_factory=dict)
    _fresh: int = 0

    def unknown(self, hint: str = "?") -> Poly:
        """A fresh atom that has no range."""
        self._fresh += 1
        return Poly.atom(f"?{hint}{self._fresh}")

    def doubt(self, names: frozenset[str] | set[str], reason: str) -> None:
        """Record buffers that are used in a way that is not understood."""
        for name in names:
            if self.params.get(name):
                self.unclear.setdefault(name, reason)


@dataclass(frozen=True)
class State:
    """What is known at a point: variables' values, local pointers, ranges of atoms."""

    values: Mapping[str, Poly]
    pointers: Mapping[str, tuple[str, Poly]]
    bounds: Mapping[str, Poly]
    total: bool = True

    def without(self, names: frozenset[str], walk: Walk) -> State:
        """The state after something may have changed these variables."""
        values = {n: walk.unknown(n) if n in names else v for n, v in self.values.items()}
        pointers = {n: v if n not in names else (v[0], walk.unknown(n)) for n, v in self.pointers.items()}
        return State(values, pointers, self.bounds, self.total)


def walk_kernel(kernel: KernelForm, constants: Mapping[str, int], block: Mapping[str, int]) -> Walk:
    """Every access of the kernel's pointer parameters. ``constants``: names with known values; ``block``: the
    extents of the block by axis, where they are known."""
    walk = Walk({p.name: p.is_pointer for p in kernel.params}, constants, block)
    values = {p.name: Poly.atom(p.name) for p in kernel.params if not p.is_pointer}
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
        target = _pointer(init, state, walk)
        if target is not None:
            pointers[name] = target
            return State(values, pointers, state.bounds, state.total)
    if init is not None:
        _visit(init, state, walk)
    values[name] = _value(init, state, walk) if init is not None else walk.unknown(name)
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
    _visit(stmt.test, state, walk)
    inside = _assume(stmt.test, True, state, walk)
    after_then = _block(stmt.then, inside, walk)
    otherwise = _assume(stmt.test, False, state, walk)
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


def _assume(test: Expr, holds: bool, state: State, walk: Walk) -> State:
    """The state where ``test`` holds, or does not: size guards become ranges, anything else makes it partial."""
    bounds, total = dict(state.bounds), state.total
    for part, positive in _conjuncts(test, holds):
        found = _upper(part, positive, state, walk) if part is not None else None
        if found is None:
            total = False
            continue
        atom, end = found
        bounds[atom] = end
        walk.guards.setdefault(atom, end)
    return State(state.values, state.pointers, bounds, total)


def _conjuncts(test: Expr, holds: bool) -> Iterator[tuple[Expr | None, bool]]:
    """The parts that all hold; None for a part that says less (one side of an or)."""
    match test:
        case Unary("!", operand):
            yield from _conjuncts(operand, not holds)
        case Binary(op, left, right) if op == ("&&" if holds else "||"):
            yield from _conjuncts(left, holds)
            yield from _conjuncts(right, holds)
        case Binary("&&" | "||"):
            yield None, holds
        case _:
            yield test, holds


_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _upper(test: Expr, holds: bool, state: State, walk: Walk) -> tuple[str, Poly] | None:
    """(atom, exclusive end) of a comparison such as ``i < n``; None for anything else."""
    if not isinstance(test, Binary) or test.op not in _NEGATED:
        return None
    op = test.op if holds else _NEGATED[test.op]
    left, right = _value(test.left, state, walk), _value(test.right, state, walk)
    if left.single is None or not _is_index(left.single):
        left, right, op = right, left, _SWAPPED[op]
    atom = left.single
    if atom is None or not _is_index(atom) or not all(_is_size(a, walk) for a in right.atoms()):
        return None
    if op == "<":
        return atom, right
    if op == "<=":
        return atom, right + Poly.number(1)
    if op == "==" and right.constant == 0:
        return atom, Poly.number(1)
    return None


def _is_index(atom: str) -> bool:
    """Thread indices and their parts, and loop variables; never sizes."""
    return atom[0] in "@?%"


def _is_size(atom: str, walk: Walk) -> bool:
    return atom in walk.params and not walk.params[atom]


def _for(stmt: For, state: State, walk: Walk) -> State:
    start, end = _value(stmt.start, state, walk), _value(stmt.bound, state, walk)
    for part in (stmt.start, stmt.bound, stmt.step):
        _visit(part, state, walk)
    after = state.without(_reassigned((stmt,)), walk)
    step = _value(stmt.step, state, walk)
    walk._fresh += 1
    atom = f"@{stmt.var}{walk._fresh}"
    end = end + Poly.number(1) if stmt.relation == "<=" else end
    known = stmt.relation in ("<", "<=", "!=") and all(_is_size(a, walk) for a in end.atoms())
    bounds, total = dict(after.bounds), after.total
    if known and _sweeps(start, step, bounds, walk):
        bounds[atom] = end
    elif known and step.constant == 1 and start.constant is not None and start.constant >= 0:
        bounds[atom], total = end, False  # j = 1, 2, …: in range, but the first ones are left out
    else:
        atom, total = f"?{stmt.var}{walk._fresh}", False
    values = {**after.values, stmt.var: Poly.atom(atom)}
    _block(stmt.body, State(values, after.pointers, bounds, total), walk)
    return after


def _sweeps(start: Poly, step: Poly, bounds: Mapping[str, Poly], walk: Walk) -> bool:
    """Whether the loop, over all threads, takes every value from 0 up: 0 and 1, or an index and the number of
    threads it runs over."""
    if start.constant == 0 and step.constant == 1:
        return True
    atom = start.single
    if atom is None:
        return False
    for axis in AXES:
        if atom == f"@t{axis}" and step == _extent(axis, walk):
            return True
        if atom == f"@b{axis}" and step.single == f"@G{axis}":
            return True
        if atom == f"@g{axis}" and step == _extent(axis, walk) * Poly.atom(f"@G{axis}"):
            return True
    return atom in bounds and atom.startswith("%") and bounds[atom] == step


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
            _visit(right, _assume(left, op == "&&", state, walk), walk)
        case Ternary(test, yes, no):
            _visit(test, state, walk)
            _visit(yes, _assume(test, True, state, walk), walk)
            _visit(no, _assume(test, False, state, walk), walk)
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


def _names_buffer(expr: Expr, state: State) -> bool:
    return isinstance(expr, Index) and isinstance(expr.base, Name) and expr.base.text in state.pointers


def _call(callee: Expr, args: Sequence[Expr], state: State, walk: Walk) -> None:
    name = callee.text if isinstance(callee, Name) else ""
    rest = list(args)
    kind: Kind | None = None
    if name.startswith("atomic"):
        kind = "update"
    elif name in ("__ldg", "__ldcs", "__ldca", "__ldcg", "__ldlu", "__ldcv"):
        kind = "read"
    elif name in ("__stcs", "__stcg", "__stwb", "__stwt"):
        kind = "write"
    if kind is not None and rest:
        target = _pointer(rest[0], state, walk)
        if target is not None:
            buffer, index = target
            walk.accesses.append(Access(buffer, kind, index, dict(state.bounds), state.total))
            _visit_index(rest[0], state, walk)
            rest = rest[1:]
    for arg in rest:
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
    target = _pointer(base, state, walk)
    if target is None:
        if isinstance(base, Index):
            _target(base, kind, state, walk)
        elif not isinstance(base, Name):
            _visit(base, state, walk)
        return
    buffer, offset = target
    whole = _globals(offset + _value(index, state, walk), walk)
    walk.accesses.append(Access(buffer, kind, whole, dict(state.bounds), state.total))


def _pointer(expr: Expr, state: State, walk: Walk) -> tuple[str, Poly] | None:
    """(buffer, offset) of a pointer expression; None when it is none that is understood."""
    match expr:
        case Name(text):
            return state.pointers.get(text)
        case Unary("&", Index(base, index)) | Binary("+", base, index):
            inner = _pointer(base, state, walk)
            if inner is None:
                return None
            return inner[0], _globals(inner[1] + _value(index, state, walk), walk)
    return None


def _value(expr: Expr, state: State, walk: Walk) -> Poly:
    """An integer expression as a polynomial; unknown atoms for what is not understood."""
    match expr:
        case Literal(text):
            number = re.fullmatch(r"(0[xX][0-9a-fA-F']+|\d[\d']*)[uUlL]*", text)
            return Poly.number(int(number[1].replace("'", ""), 0)) if number else walk.unknown()
        case Name(text):
            if text in state.values:
                return state.values[text]
            return Poly.number(walk.constants[text]) if text in walk.constants else walk.unknown(text)
        case Member(Name(builtin), axis) if builtin in _BUILTINS and axis in AXES:
            if builtin == "blockDim" and axis in walk.block:
                return Poly.number(walk.block[axis])
            return Poly.atom(f"@{_BUILTINS[builtin]}{axis}")
        case Cast(_, operand):
            return _value(operand, state, walk)
        case Unary("-", operand):
            return -_value(operand, state, walk)
        case Unary("+", operand):
            return _value(operand, state, walk)
        case Call(Name(name), (one,)) if name in ("int", "size_t", "unsigned", "int64_t", "uint32_t", "long"):
            return _value(one, state, walk)
        case Binary(op, left, right):
            return _binary(op, _value(left, state, walk), _value(right, state, walk), state, walk)
    return walk.unknown()


def _binary(op: str, left: Poly, right: Poly, state: State, walk: Walk) -> Poly:
    if op == "+":
        return _globals(left + right, walk)
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    if left.constant is not None and right.constant:
        value = {"/": left.constant // right.constant, "%": left.constant % right.constant,
                 ">>": left.constant >> right.constant, "<<": left.constant << right.constant}.get(op)  # fmt: skip
        return walk.unknown() if value is None else Poly.number(value)
    if op == "<<" and right.constant is not None:
        return left * Poly.number(1 << right.constant)
    if op == "&" and right.constant is not None and right.constant & (right.constant + 1) == 0:
        op, right = "%", right + Poly.number(1)
    if op == ">>" and right.constant is not None:
        op, right = "/", Poly.number(1 << right.constant)
    if op in ("/", "%") and left.single is not None and _is_index(left.single):
        return _part(op, left.single, right, state, walk)
    return walk.unknown()


def _part(op: str, atom: str, divisor: Poly, state: State, walk: Walk) -> Poly:
    """``i / cols`` and ``i % cols`` as atoms with ranges of their own."""
    name = f"%{'quotient' if op == '/' else 'rest'} {atom} {divisor.text()}"
    bounds = state.bounds
    if isinstance(bounds, dict):
        if op == "%":
            bounds[name] = divisor
        elif atom in bounds and (whole := bounds[atom].over(divisor)) is not None:
            bounds[name] = whole
    return Poly.atom(name)


def _extent(axis: str, walk: Walk) -> Poly:
    return Poly.number(walk.block[axis]) if axis in walk.block else Poly.atom(f"@B{axis}")


def _globals(poly: Poly, walk: Walk) -> Poly:
    """blockIdx * blockDim + threadIdx as the one atom of the global index."""
    for axis in AXES:
        if f"@b{axis}" in poly.atoms() and f"@t{axis}" in poly.atoms():
            pair = Poly.atom(f"@b{axis}") * _extent(axis, walk) + Poly.atom(f"@t{axis}")
            poly = poly.replace(pair, Poly.atom(f"@g{axis}"))
    return poly
