"""A kernel as a map over a grid of ids: one thread an (x, y) point, no cooperation, bounds taken apart.

Most kernels that people write first have this shape: ids from blockIdx, blockDim and threadIdx, a guard, and a
core that only speaks of the ids. Once the core is free of threadIdx, threads may be dealt out to points in any
other way. What does not have the shape, or cannot be shown to, has no Domain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.analysis.calls import COOPERATES, LOADS
from fsr.analysis.guards import Guard, is_pure, peel
from fsr.analysis.polynomial import Poly, constant, polynomial, symbol
from fsr.analysis.types import is_integer
from fsr.records import Launch
from fsr.source.form import (
    Binary,
    Call,
    Declare,
    Expr,
    Index,
    KernelForm,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Unary,
    conjunction,
)
from fsr.source.mapping import rewrite, substitute
from fsr.source.walk import identifiers, names_assigned, nodes, without_comments

_NUMBERS = re.compile(r"\{[\s\d.,fFuUlL+-]*\}")  # what a local array holds at first
_ATOM = re.compile(r"(threadIdx|blockIdx|blockDim|gridDim)(\.|$)")


@dataclass(frozen=True, slots=True)
class Axis:
    """One id: the variable that holds it, its C type, the conditions on it alone that the core runs under, and the
    exclusive upper bound that they give (None: only the launch bounds it)."""

    var: str
    type: str
    inside: tuple[Expr, ...] = ()
    extent: Poly | None = None

    def guard(self) -> Expr | None:
        """The conditions joined, None when there are none."""
        return conjunction(self.inside)


@dataclass(frozen=True, slots=True)
class Domain:
    """A kernel over points. ``axes`` by launch dimension ('x', and 'y' when there are two). ``uniform``:
    declarations that depend on no id; ``core``: what is done for each point, without return statements.
    ``known``: polynomials of integer locals in terms of ids, parameters and loop variables.
    ``flat``: the variable and row length of a one-dimensional id that was taken apart by / and %.
    """

    form: KernelForm
    launch: Launch
    axes: Mapping[str, Axis]
    uniform: tuple[Stmt, ...]
    core: tuple[Stmt, ...]
    known: Mapping[str, Poly]
    flat: tuple[str, Poly] | None = None
    constants: Mapping[str, int] = field(default_factory=dict)

    def poly(self, expr: Expr) -> Poly:
        """The polynomial of an integer expression of the core."""
        return polynomial(expr, self.known)

    def ids(self) -> tuple[str, ...]:
        """The id variables, x first."""
        return tuple(self.axes[a].var for a in sorted(self.axes))


def domain(form: KernelForm, launch: Launch, constants: Mapping[str, int]) -> Domain | None:
    """The kernel as a Domain; ``constants`` gives macros and template arguments. None: not provably of the shape."""
    body = plain_loads(without_comments(form.body))
    if any(COOPERATES.search(n) for n in identifiers(body)) or any(_hides(n) for n in nodes(body)):
        return None
    named = _name_ids(body, launch, constants)
    if named is None:
        return None
    body, ids = named
    peeled = peel(body, {v: a for a, (v, _) in ids.items()}, constants)
    if peeled is None:
        return None
    lead, guards, core = peeled
    known = _known_locals([*lead, *core], constants)
    uniform, front = _split_uniform(lead, core, {v for v, _ in ids.values()})
    axes = {a: _axis(v, t, guards.get(a, ()), known) for a, (v, t) in ids.items()}
    return Domain(form, launch, axes, uniform, (*front, *core), known, None, constants)


def plain_loads(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with ``__ldg(&a[i])`` and its relatives as ``a[i]``."""

    def change(expr: Expr) -> Expr | None:
        match expr:
            case Call(callee=Name(text=text), args=(Unary(op="&", operand=Index() as element),)) if text in LOADS:
                return rewrite(element, change)
            case Call(callee=Name(text=text), args=(Binary(op="+", left=Name() as base, right=index),)) if (
                text in LOADS
            ):
                return Index(base, rewrite(index, change))
        return None

    return rewrite(body, change)


def _hides(node: object) -> bool:
    """Whether a node hides what it does from the analysis."""
    if isinstance(node, Declare):
        return bool({"__shared__", "extern", "static"} & set(node.qualifiers)) or node.type.rstrip().endswith("&")
    return isinstance(node, OpaqueStmt) or (isinstance(node, OpaqueExpr) and not _NUMBERS.fullmatch(node.text))


def _name_ids(
    body: tuple[Stmt, ...], launch: Launch, constants: Mapping[str, int]
) -> tuple[tuple[Stmt, ...], dict[str, tuple[str, str]]] | None:
    """The body with all thread arithmetic replaced by one variable an axis, and these variables with their types.

    None when thread arithmetic of any other kind remains.
    """
    known = _launch_facts(launch, constants)
    targets = {
        a: _global_id(a, known) for a in "xy" if not (launch.grid["xy".index(a)] == launch.block["xy".index(a)] == "1")
    }
    written = names_assigned(body)
    inlined: dict[str, Expr] = {}
    kept: list[Stmt] = []
    ids: dict[str, tuple[str, str]] = {}
    for stmt in body:
        stmt = _abstract(substitute(stmt, inlined), targets, known)
        if isinstance(stmt, Declare) and stmt.init is not None and not stmt.dims and stmt.name not in written:
            axis = _placeholder_axis(stmt.init)
            if axis and is_integer(stmt.type) and "64" not in stmt.type:
                if axis in ids:
                    inlined[stmt.name] = Name("@" + axis)
                else:
                    ids[axis] = (stmt.name, stmt.type)
                continue
            if _atoms(stmt.init) and is_integer(stmt.type):
                inlined[stmt.name] = stmt.init
                continue
        kept.append(stmt)
    for axis in targets:
        if axis not in ids and f"@{axis}" in identifiers(tuple(kept)):
            ids[axis] = (_fresh(f"fsr_{axis}", identifiers(body)), "int")
    if not ids or _atoms(tuple(kept)):
        return None
    final = substitute(tuple(kept), {f"@{a}": Name(v) for a, (v, _) in ids.items()})
    plain = {a: (v, " ".join(w for w in t.split() if w != "const")) for a, (v, t) in ids.items()}
    return final, plain if not {v for v, _ in ids.values()} & set(written) else {}


def _launch_facts(launch: Launch, constants: Mapping[str, int]) -> dict[str, Poly]:
    facts = {name: constant(value) for name, value in constants.items()}
    for axis, block, grid in zip("xyz", launch.block, launch.grid, strict=True):
        if block.strip().isdigit():
            facts[f"blockDim.{axis}"] = constant(int(block))
        if block.strip() == "1":
            facts[f"threadIdx.{axis}"] = constant(0)
        if grid.strip() == "1":
            facts[f"blockIdx.{axis}"] = constant(0)
    return facts


def _global_id(axis: str, facts: Mapping[str, Poly]) -> Poly:
    def fact(name: str) -> Poly:
        return facts.get(name, symbol(name))

    return fact(f"blockIdx.{axis}") * fact(f"blockDim.{axis}") + fact(f"threadIdx.{axis}")


def _placeholder_axis(expr: Expr) -> str | None:
    while not isinstance(expr, Name) and hasattr(expr, "operand"):
        expr = expr.operand
    return expr.text[1:] if isinstance(expr, Name) and expr.text.startswith("@") else None


def _atoms(node: object) -> bool:
    """Whether a node still depends on the place of a thread in the launch (the z axis is left as it is)."""
    return any(_ATOM.match(n) and not n.endswith(".z") for n in identifiers(node))


def _abstract(stmt: Stmt, targets: Mapping[str, Poly], facts: Mapping[str, Poly]) -> Stmt:
    """The statement with every subexpression that is a global id replaced by ``@x`` or ``@y``."""

    def change(expr: Expr) -> Expr | None:
        if not _atoms(expr):
            return None
        value = polynomial(expr, facts)
        for axis, target in targets.items():
            if value == target and target.terms:
                return Name(f"@{axis}")
        return _sum_with_id(expr, targets, facts)

    return rewrite(stmt, change)


def _sum_with_id(expr: Expr, targets: Mapping[str, Poly], facts: Mapping[str, Poly]) -> Expr | None:
    """``a + blockIdx.x * blockDim.x + threadIdx.x`` as ``a + @x``: addends regrouped around one id."""
    if not (isinstance(expr, Binary) and expr.op == "+"):
        return None
    addends = _addends(expr)
    threads = [e for e in addends if _atoms(e)]
    total = polynomial(threads[0], facts)
    for addend in threads[1:]:
        total = total + polynomial(addend, facts)
    for axis, target in targets.items():
        if total == target:
            rest = [e for e in addends if e not in threads]
            result: Expr = Name(f"@{axis}")
            for addend in rest:
                result = Binary("+", result, addend)
            return result
    return None


def _addends(expr: Expr) -> list[Expr]:
    if isinstance(expr, Binary) and expr.op == "+":
        return _addends(expr.left) + _addends(expr.right)
    return [expr]


def _fresh(base: str, taken: frozenset[str]) -> str:
    while base in taken:
        base += "_"
    return base


def _known_locals(body: Sequence[Stmt], constants: Mapping[str, int]) -> dict[str, Poly]:
    """Polynomials of the integer locals that are set once, at their declaration, in declaration order."""
    known = {name: constant(value) for name, value in constants.items()}
    written = names_assigned(tuple(body))
    declared = [n for n in nodes(tuple(body)) if isinstance(n, Declare)]
    counts: dict[str, int] = {}
    for declare in declared:
        counts[declare.name] = counts.get(declare.name, 0) + 1
    for declare in declared:
        once = counts[declare.name] == 1 and declare.name not in written and declare.name not in known
        if once and declare.init is not None and not declare.dims and is_integer(declare.type):
            value = polynomial(declare.init, known)
            if not value.names() & set(written):
                known[declare.name] = value
    return known


def _split_uniform(
    lead: Sequence[Stmt], core: Sequence[Stmt], ids: set[str]
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """The leading declarations that depend on no id and may run anywhere, and the others, order kept."""
    uniform, front, local = [], [], set(ids)
    written = set(names_assigned((*lead, *core)))
    for stmt in lead:
        if (
            isinstance(stmt, Declare)
            and stmt.name not in written
            and is_pure(stmt)
            and not identifiers(stmt) & (local | written)
        ):
            uniform.append(stmt)
        else:
            front.append(stmt)
            local |= {stmt.name} if isinstance(stmt, Declare) else set()
    return tuple(uniform), tuple(front)


def _axis(var: str, kind: str, guards: Sequence[Guard], known: Mapping[str, Poly]) -> Axis:
    extents = [g.extent for g in guards if g.extent is not None]
    return Axis(var, kind, tuple(g.condition for g in guards), extents[0] if extents else None)


def flattened(found: Domain) -> Domain | None:
    """A one-dimensional domain whose id is taken apart as ``row = i / n; col = i % n`` under ``i < rows * n``, as
    a two-dimensional one; None when it is not of that form."""
    if set(found.axes) != {"x"}:
        return None
    axis, lead = found.axes["x"], [s for s in found.core if isinstance(s, Declare)]
    divided = _split_of(lead, axis.var, "/", found)
    rest = _split_of(lead, axis.var, "%", found)
    if not divided or not rest or divided[1] != rest[1] or axis.extent is None or len(axis.inside) != 1:
        return None
    (row, length), (col, _) = divided, rest
    rows = _quotient(axis.extent, length)
    if rows is None:
        return None
    axes = {"y": _bounded(row, axis.type, rows), "x": _bounded(col, axis.type, length)}
    core = tuple(s for s in found.core if not (isinstance(s, Declare) and s.name in (row, col)))
    known = {k: v for k, v in found.known.items() if k not in (row, col)}
    whole = symbol(row) * length + symbol(col)
    if axis.var in identifiers(core):
        size = next(d.init.right for d in lead if d.name == row and isinstance(d.init, Binary))
        place = Binary("+", Binary("*", Name(row), size), Name(col))
        core = (Declare(axis.type, axis.var, place), *core)
    known = {k: _replaced(v, axis.var, whole) for k, v in known.items()} | {axis.var: whole}
    return replace(found, axes=axes, core=core, known=known, flat=(axis.var, length))


def _bounded(var: str, kind: str, extent: Poly) -> Axis:
    return Axis(var, kind, (Binary("<", Name(var), OpaqueExpr(extent.text())),), extent)


def with_core(found: Domain, core: tuple[Stmt, ...]) -> Domain:
    """The same points with something else to do."""
    return replace(found, core=core, known=_known_locals([*found.uniform, *core], found.constants))


def _split_of(lead: Sequence[Declare], var: str, op: str, found: Domain) -> tuple[str, Poly] | None:
    for declare in lead:
        match declare.init:
            case Binary(op=this, left=Name(text=name), right=right) if this == op and name == var:
                if declare.name in found.known:
                    return declare.name, found.poly(right)
    return None


def _quotient(product: Poly, factor: Poly) -> Poly | None:
    """The polynomial q with q * factor == product, for a factor of one symbol; None when there is none."""
    if len(factor.terms) != 1 or len(factor.terms[0][0]) != 1 or factor.terms[0][1] != 1:
        return None
    quotient = product.coefficient(factor.terms[0][0][0])
    return quotient if quotient is not None and quotient * factor == product else None


def _replaced(value: Poly, name: str, by: Poly) -> Poly:
    factor = value.coefficient(name)
    return value if factor is None else value.without(name) + factor * by
