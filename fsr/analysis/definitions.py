"""Local variables of a kernel: their types, which are set exactly once, and writing those out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsr.analysis.functions import NO_FUNCTIONS, Functions
from fsr.analysis.polynomial import Poly, constant, polynomial
from fsr.analysis.types import integer_bytes
from fsr.source.form import (
    Assign,
    Declare,
    Expr,
    For,
    Index,
    KernelForm,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Unary,
)  # fmt: skip
from fsr.source.mapping import map_expr
from fsr.source.walk import base_name, blocks_of, exprs_of, names_in, opaque_names, walk_expr, walk_stmts, written_by

NO_CONSTANTS: Mapping[str, int] = {}
_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Definitions:
    """What is known of a kernel's names.

    ``types``: the declared type of every parameter, local and loop variable (absent when declared twice with
    different types). ``values``: for each scalar local that is declared once and never changed, its value, when
    that value does not change either while the local lives: it reads no memory, calls only pure functions, and
    names only built-ins, unchanged parameters, loop variables around it and other such locals.
    ``changed``: names assigned anywhere after their declaration, stepped, or named in opaque code.
    ``shared``: arrays declared __shared__. ``loops``: loop variables.
    """

    types: Mapping[str, str]
    values: Mapping[str, Expr]
    changed: frozenset[str]
    shared: frozenset[str]
    loops: frozenset[str]

    def expand(self, e: Expr) -> Expr:
        """The expression with locals of ``values`` written out, all the way down."""
        for _ in range(_DEPTH):
            if self.values.keys().isdisjoint(names_in(e)):
                break
            new = map_expr(e, lambda x: self.values.get(x.text, x) if isinstance(x, Name) else x)
            if new == e:
                break
            e = new
        return e

    def poly(self, e: Expr, constants: Mapping[str, int] = NO_CONSTANTS) -> Poly:
        """The polynomial of an integer expression, locals of ``values`` written out. ``constants``: macros and
        template parameters with their values."""

        def known(name: str) -> Poly | None:
            return constant(constants[name]) if name in constants else None

        return polynomial(self.expand(e), known)


def definitions(kernel: KernelForm, functions: Functions = NO_FUNCTIONS) -> Definitions:
    """The names of a kernel. ``functions``: those of its file."""
    types, twice, declared = {p.name: p.type for p in kernel.params}, set[str](), dict[str, list[Declare]]()
    shared, loops = set[str](), set[str]()
    for s in walk_stmts(kernel.body):
        match s:
            case Declare(type=type_, name=name):
                if types.setdefault(name, type_) != type_:
                    twice.add(name)
                declared.setdefault(name, []).append(s)
                if "__shared__" in s.qualifiers:
                    shared.add(name)
            case For(type=str() as type_, var=name):
                loops.add(name)
                if types.setdefault(name, type_) != type_:
                    twice.add(name)
            case For(var=name):
                loops.add(name)
    changed = _changed(kernel) | shadowing(kernel.body, frozenset(p.name for p in kernel.params))
    types = {name: type_ for name, type_ in types.items() if name not in twice}
    values = {n: e for n, e in _stable(kernel, declared, changed, loops, functions).items() if n in types}
    return Definitions(types, values, changed, frozenset(shared), frozenset(loops))


def _changed(kernel: KernelForm) -> frozenset[str]:
    pointers = {p.name for p in kernel.params if p.is_pointer}
    pointers |= {s.name for s in walk_stmts(kernel.body) if isinstance(s, Declare) and s.type.endswith("*")}
    found: set[str] = set()
    for s in walk_stmts(kernel.body):
        match s:
            case Assign(target):
                found |= stored(target, pointers)
            case OpaqueStmt(text):
                found |= opaque_names(text)
            case For(type=None, var=name):
                found.add(name)
        for e in exprs_of(s):
            found |= {n for x in walk_expr(e) if isinstance(x, OpaqueExpr) for n in written_by(x)}
            for x in walk_expr(e):
                if isinstance(x, Unary) and x.op == "&":
                    found |= stored(x.operand, pointers)
    return frozenset(found)


def stored(target: Expr, pointers: frozenset[str] | set[str]) -> frozenset[str]:
    """The variables that a write to the lvalue changes: none when it goes to where a pointer points."""
    match target:
        case Index(Name(text), _) | Unary("*", Name(text)) if text in pointers:
            return frozenset()
        case Unary("*", operand):
            return names_in(operand) - pointers
    name = base_name(target)
    return frozenset([name]) if name else names_in(target)


def shadowing(stmts: tuple[Stmt, ...], outside: frozenset[str]) -> frozenset[str]:
    """Names declared where the same name is visible already: what is said of one must not be used for the other."""
    found, visible = set[str](), set(outside)
    for s in stmts:
        own = s.name if isinstance(s, Declare) else s.var if isinstance(s, For) and s.type is not None else None
        if own is not None and own in visible:
            found.add(own)
        if isinstance(s, Declare):
            visible.add(s.name)
        for block in blocks_of(s):
            found |= shadowing(block, frozenset(visible) | ({own} if own is not None else set()))
    return frozenset(found)


def _stable(
    kernel: KernelForm, declared: Mapping[str, list[Declare]], changed: frozenset[str], loops: set[str],
    functions: Functions,
) -> dict[str, Expr]:  # fmt: skip
    found: dict[str, Expr] = {}
    locals_ = set(declared) | loops
    parameters = {p.name for p in kernel.params}
    for name, places in declared.items():
        (first, *others), init = places, places[0].init
        if others or init is None or first.dims or name in changed or name in parameters or name in loops:
            continue
        narrow = (integer_bytes(first.type) or 4) < 4 or first.type.endswith("bool")  # holds less than its value
        if not (narrow or "__shared__" in first.qualifiers or reads_memory(init)) and functions.calls_builtins(init):
            found[name] = init
    while True:  # what rests on something unstable is unstable too
        steady = {
            name: init
            for name, init in found.items()
            if all(n not in changed and (n not in locals_ or n in found or n in loops) for n in names_in(init))
            and not (names_in(init) & loops & changed)
        }
        if len(steady) == len(found):
            return steady
        found = steady


def reads_memory(e: Expr) -> bool:
    """Whether an expression's value may be another after a store, or is not understood."""
    for x in walk_expr(e):
        match x:
            case Index() | OpaqueExpr() | Unary("*", _):
                return True
            case Member(_, _, True):
                return True
    return False
