"""Every array access of a kernel: which array, at what index, under which loops and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fsr.analysis.calls import is_atomic, is_load
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    For,
    If,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip
from fsr.source.walk import exprs_of, opaque_names, subexprs, walk_stmts

ZERO = Literal("0")


@dataclass(frozen=True, slots=True)
class Access:
    """One access as written. ``array``: the variable it goes through (a parameter, a shared or local array, or a
    local pointer; None when that is unclear); ``index``: the element index (outermost first for nested arrays in
    ``indices``), None when it is not an element access of the pointer's own type; ``kind``: 'read', 'write',
    'update' (compound assignment), 'atomic', 'opaque' (anything may happen); ``loops``: the loops around it,
    outermost first; ``tests``: the conditions it runs under (of if, ?: and &&; as
    written, for the other side too)."""

    array: str | None
    indices: tuple[Expr, ...]
    kind: str
    expr: Expr
    statement: Stmt | None = None
    loops: tuple[For | While, ...] = ()
    tests: tuple[Expr, ...] = ()
    root: str = ""  # the memory behind the array, where :mod:`fsr.analysis.effects` told

    @property
    def index(self) -> Expr | None:
        """The index of a one-dimensional access."""
        return self.indices[0] if len(self.indices) == 1 else None

    @property
    def pointer(self) -> str:
        """The array of an access that is known to be of one."""
        assert self.array is not None
        return self.array

    @property
    def offset(self) -> Expr:
        """The index of an access that is known to have one."""
        assert self.index is not None
        return self.index

    @property
    def writes(self) -> bool:
        """Whether it may change memory."""
        return self.kind != "read"


def accesses(kernel: KernelForm) -> list[Access]:
    """The accesses of a kernel in the order of the text. Pointer arithmetic that hands an address to an unknown
    function counts as 'opaque' access of that array; so does everything that opaque text names. An element that a
    function of the file takes by reference is updated."""
    arrays = {p.name for p in kernel.params if p.is_pointer} | declared_arrays(kernel.body)
    return list(_stmts(kernel.body, (), (), frozenset(arrays | kernel.by_reference)))


def declared_arrays(stmts: tuple[Stmt, ...]) -> frozenset[str]:
    """Names declared as arrays or pointers."""

    return frozenset(s.name for s in walk_stmts(stmts) if isinstance(s, Declare) and (s.dims or s.type.endswith("*")))


def accesses_in(stmts: tuple[Stmt, ...], arrays: frozenset[str]) -> list[Access]:
    """The accesses of some statements through the named arrays and pointers."""
    return list(_stmts(stmts, (), (), arrays))


Loops = tuple[For | While, ...]
Tests = tuple[Expr, ...]


def _stmts(stmts: tuple[Stmt, ...], loops: Loops, tests: Tests, arrays: frozenset[str]) -> Iterator[Access]:
    for s in stmts:
        for array, indices, kind, expr, under in _own(s, arrays):
            yield Access(array, indices, kind, expr, s, loops, (*tests, *under))
        match s:
            case If(test, then, orelse):
                yield from _stmts(then, loops, (*tests, test), arrays)
                yield from _stmts(orelse, loops, (*tests, test), arrays)
            case For() | While():
                yield from _stmts(s.body, (*loops, s), tests, arrays)
            case Scope(body):
                yield from _stmts(body, loops, tests, arrays)


def _changes(type_: str) -> bool:
    """Whether what a reference of the type is bound to may be changed by its name."""
    return type_.endswith("&") and "const" not in type_.split()


Raw = tuple[str | None, tuple[Expr, ...], str, Expr, Tests]


def _own(s: Stmt, arrays: frozenset[str]) -> Iterator[Raw]:
    match s:
        case Assign(target, op, value):
            yield from _expr(value, arrays)
            place = element(target, arrays)
            if place is not None:
                for index in place[1]:
                    yield from _expr(index, arrays)
                yield (*place, "write" if op == "=" else "update", target, ())
            elif isinstance(target, Index | Member | Unary):
                yield from _expr(target, arrays, "write" if op == "=" else "update")
            elif not isinstance(target, Name):  # a macro, for one: it may stand for anything
                yield None, (), "opaque", target, ()
        case OpaqueStmt(text):
            yield from ((n, (), "opaque", OpaqueExpr(text), ()) for n in sorted(opaque_names(text) & arrays))
        case Declare(type=type_, init=init) if init is not None and _changes(type_):
            yield from _expr(init, arrays, "update")
        case _:
            for e in exprs_of(s):
                yield from _expr(e, arrays)


def _expr(e: Expr, arrays: frozenset[str], kind: str = "read") -> Iterator[Raw]:
    if isinstance(e, OpaqueExpr):
        yield from ((n, (), "opaque", e, ()) for n in sorted(opaque_names(e.text) & arrays))
        return
    place = element(e, arrays)
    if place is not None:
        for index in place[1]:
            yield from _expr(index, arrays)
        yield (*place, kind, e, ())
        return
    match e:
        case Member(base, _, False):
            yield from _expr(base, arrays, "update" if kind == "write" else kind)
        case Call():
            yield from _call(e, arrays)
        case Ternary(test, yes, no):
            yield from _expr(test, arrays)
            yield from _under(test, (*_expr(yes, arrays), *_expr(no, arrays)))
        case Binary("&&" | "||", left, right):
            yield from _expr(left, arrays)
            yield from _under(left, _expr(right, arrays))
        case Unary("&", operand) if (place := element(operand, arrays)) is not None:
            for index in place[1]:  # an address, which reads nothing
                yield from _expr(index, arrays)
        case _:
            if isinstance(e, Unary) and e.op == "*":
                yield (_through(e.operand, arrays), (), "opaque" if kind != "read" else "read", e, ())
            elif isinstance(e, Index):
                yield (_through(e.base, arrays), (), "opaque" if kind != "read" else "read", e, ())
            for part in subexprs(e):
                yield from _expr(part, arrays)


def _under(test: Expr, found: Iterable[Raw]) -> Iterator[Raw]:
    for array, indices, kind, expr, tests in found:
        yield array, indices, kind, expr, (test, *tests)


def _call(e: Call, arrays: frozenset[str]) -> Iterator[Raw]:
    if is_atomic(e) or is_load(e):
        place = element(Unary("*", e.args[0]), arrays) if e.args else None
        if place is not None:
            for part in (*place[1], *e.args[1:]):
                yield from _expr(part, arrays)
            yield (*place, "atomic" if is_atomic(e) else "read", e, ())
            return
    callee = e.callee.text.split("<")[0].strip() if isinstance(e.callee, Name) else ""
    for n, argument in enumerate(e.args):
        name = _through(argument, arrays)
        if name is not None and element(argument, arrays) is None:
            yield name, (), "opaque", e, ()
        else:
            yield from _expr(argument, arrays, "update" if f"{callee}({n}" in arrays else "read")


def _through(e: Expr, arrays: frozenset[str]) -> str | None:
    """The array whose address an expression is made from, if any."""
    match e:
        case Name(text):
            return text if text in arrays else None
        case Cast(type_, operand) if "*" in type_:
            return _through(operand, arrays)
        case Unary("&", Index(base)):
            return _through(base, arrays)
        case Unary("&", Member(base, _, False)):
            return _through(Unary("&", base), arrays)
        case Binary("+" | "-", left, right):
            return _through(left, arrays) or _through(right, arrays)
    return None


def element(e: Expr, arrays: frozenset[str]) -> tuple[str, tuple[Expr, ...]] | None:
    """Array and indices of ``a[i]``, ``a[i][j]``, ``*a``, ``*(a + i)``, ``(a + i)[j]``, ``*&a[i]``; None for anything
    else."""
    match e:
        case Index(Index() as base, index):
            inner = element(base, arrays)
            return None if inner is None else (inner[0], (*inner[1], index))
        case Index(base, index):
            place = pointed(base, arrays)
            return None if place is None else (place[0], (index if place[1] is None else Binary("+", place[1], index),))
        case Unary("*", Unary("&", operand)):
            return element(operand, arrays)
        case Unary("*", operand):
            place = pointed(operand, arrays)
            return None if place is None else (place[0], (place[1] or ZERO,))
    return None


def pointed(e: Expr, arrays: frozenset[str]) -> tuple[str, Expr | None] | None:
    """Array and offset (None: 0) of the pointer expressions ``a``, ``a + i``, ``&a[i]`` and sums on these."""
    match e:
        case Name(text):
            return (text, None) if text in arrays else None
        case Binary("+", base, offset) | Unary("&", Index(base, offset)):
            place = pointed(base, arrays)
            return place and (place[0], offset if place[1] is None else Binary("+", place[1], offset))
    return None
