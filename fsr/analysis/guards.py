"""Guards: the conditions on ids under which a kernel's core runs, peeled off whatever way they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsr.analysis.conditions import negation
from fsr.analysis.polynomial import Poly, constant, polynomial
from fsr.analysis.types import is_integer
from fsr.source.form import Binary, Call, Declare, Expr, If, Index, Return, Stmt, Unary, conjuncts
from fsr.source.walk import identifiers, names_assigned, nodes, without_comments


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition linear in one id; ``extent`` when it is an upper bound: id < extent."""

    condition: Expr
    extent: Poly | None


Peeled = tuple[list[Stmt], dict[str, list[Guard]], tuple[Stmt, ...]]


def is_pure(stmt: Declare) -> bool:
    """Whether a declaration reads no memory and calls nothing, so that it may run where the original did not."""
    reads = any(isinstance(n, Index | Call) or (isinstance(n, Unary) and n.op == "*") for n in nodes(stmt.init))
    divides = any(isinstance(n, Binary) and n.op in "/%" for n in nodes(stmt.init))
    return not reads and not (divides and is_integer(stmt.type)) and not stmt.dims


def peel(body: Sequence[Stmt], axes: Mapping[str, str], constants: Mapping[str, int]) -> Peeled | None:
    """Leading declarations, guards by axis, and the core in structured form. ``axes``: axis of each id variable.

    None when a return statement cannot be removed.
    """
    lead: list[Stmt] = []
    guards: dict[str, list[Guard]] = {}
    known = {name: constant(value) for name, value in constants.items()}
    written = set(names_assigned(tuple(body)))
    rest = list(without_comments(body))
    while rest:
        stmt = rest[0]
        if isinstance(stmt, Declare):
            lead.append(stmt)
            if stmt.init is not None and not stmt.dims and is_integer(stmt.type) and stmt.name not in written:
                known[stmt.name] = polynomial(stmt.init, known)
            rest = rest[1:]
        elif isinstance(stmt, If) and not stmt.orelse and _returns(stmt.then):
            left = _hoist(conjuncts(negation(stmt.test)), axes, known, written, guards)
            rest = [If(_joined(left), tuple(rest[1:]))] if left else rest[1:]
            if left:
                break
        elif isinstance(stmt, If) and not stmt.orelse and _only_return(rest[1:]):
            left = _hoist(conjuncts(stmt.test), axes, known, written, guards)
            inner = without_comments(stmt.then)
            rest = [If(_joined(left), inner)] if left else list(inner)
            if left:
                break
        else:
            break
    core = structured(tuple(rest))
    return None if core is None else (lead, guards, core)


def _returns(then: Sequence[Stmt]) -> bool:
    inner = without_comments(then)
    return len(inner) == 1 and isinstance(inner[0], Return)


def _only_return(rest: Sequence[Stmt]) -> bool:
    return all(isinstance(s, Return) for s in rest)


def _joined(parts: Sequence[Expr]) -> Expr:
    joined = parts[0]
    for part in parts[1:]:
        joined = Binary("&&", joined, part)
    return joined


def _hoist(
    conditions: Sequence[Expr], axes: Mapping[str, str], known: Mapping[str, Poly], written: set[str],
    guards: dict[str, list[Guard]],
) -> list[Expr]:  # fmt: skip
    """Put the conditions that are linear in one id into ``guards``; give back the others."""
    left = []
    for condition in conditions:
        found = _linear(condition, axes, known)
        if found is None or identifiers(condition) & written:
            left.append(condition)
        else:
            guards.setdefault(found[0], []).append(Guard(condition, found[1]))
    return left


def _linear(condition: Expr, axes: Mapping[str, str], known: Mapping[str, Poly]) -> tuple[str, Poly | None] | None:
    """The axis of a condition linear in exactly one id with factor 1 or -1, and the extent it gives; or None."""
    if not (isinstance(condition, Binary) and condition.op in ("<", "<=", ">", ">=")):
        return None
    if any(isinstance(n, Index | Call) for n in nodes(condition)):
        return None
    difference = polynomial(condition.left, known) - polynomial(condition.right, known)
    used = [v for v in axes if v in difference.names()]
    if len(used) != 1:
        return None
    factor = difference.coefficient(used[0])
    sign = None if factor is None else factor.value
    if sign not in (1, -1):
        return None
    other = difference.without(used[0])  # sign * id + other REL 0
    upper = condition.op.startswith("<") == (sign == 1)
    limit = other * constant(-sign) + constant(1 if condition.op.endswith("=") else 0)
    return axes[used[0]], limit if upper else None


def structured(body: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """The statements with ``if (c) { ...; return; } rest`` as ``if (c) { ... } else { rest }`` and a final return
    dropped; None when any other return remains."""
    out: list[Stmt] = []
    body = without_comments(body)
    for at, stmt in enumerate(body):
        if isinstance(stmt, Return):
            return tuple(out) if stmt.value is None else None
        if isinstance(stmt, If) and any(isinstance(n, Return) for n in nodes(stmt)):
            branches = _branches(stmt, body[at + 1 :])
            return None if branches is None else (*out, branches)
        if any(isinstance(n, Return) for n in nodes(stmt)):
            return None
        out.append(stmt)
    return tuple(out)


def _branches(stmt: If, rest: tuple[Stmt, ...]) -> If | None:
    """An if that nothing follows, or of which one branch ends in return, with the rest moved into the other branch."""
    then, orelse = without_comments(stmt.then), without_comments(stmt.orelse)
    if not rest:  # what ends the function inside ends no more than the branch
        yes, no = structured(then), structured(orelse)
    elif then and isinstance(then[-1], Return):
        yes, no = structured(then), structured((*orelse, *rest))
    elif orelse and isinstance(orelse[-1], Return):
        yes, no = structured((*then, *rest)), structured(orelse)
    else:
        return None
    return None if yes is None or no is None else If(stmt.test, yes, no)
