"""Recognising a GEMM-like nest: one output a point, a loop over k that combines one row and one column.

Anything that is a fold over k of a function of a[m, k] and b[k, n] counts: products of any transposition by
strides, distances, min-plus. The start and the finish of the fold may be arbitrary code of the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fsr.analysis.accesses import Access
from fsr.analysis.domain import Domain
from fsr.analysis.point_accesses import Inits, access, accesses, once_set, written_out
from fsr.analysis.polynomial import Poly, constant
from fsr.contract.model import Contract
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
    Literal,
    Name,
    Stmt,
)  # fmt: skip
from fsr.source.mapping import rewrite
from fsr.source.walk import base_name, identifiers, names_assigned, nodes, without_comments
from fsr.transform.placement import dtype_of, may_alias

WIDENING = {"__half2float": "float", "__bfloat162float": "float", "float": "float", "double": "double", "int": "int"}


@dataclass(frozen=True, slots=True)
class Factor:
    """One of the two things combined: the access, the expression around it that converts it (or the access itself),
    the C type of that, and which dimension is contiguous ('k', 'outer' or '')."""

    access: Access
    expr: Expr
    value: str
    dtype: str
    along: str
    stride: Poly


@dataclass(frozen=True, slots=True)
class GemmNest:
    """``m_axis``/``n_axis``: launch dimensions of the two outer indices, n the one that is contiguous in what is
    written. ``before``: declarations of the point, without the accumulator; ``acc``: its declaration; ``finish``:
    what follows the loop. ``neutral``: a step of zeros changes nothing."""

    domain: Domain
    m_axis: str
    n_axis: str
    a: Factor
    b: Factor
    acc: Declare
    before: tuple[Declare, ...]
    loop: For
    finish: tuple[Stmt, ...]
    neutral: bool
    values: Inits


def gemm_nest(found: Domain, contract: Contract) -> GemmNest | None:
    """The nest in a two-dimensional domain; None when the core is anything else, or operands may be written."""
    if len(found.axes) != 2:
        return None
    values = once_set(found)
    every = accesses(found, values)
    if every is None:
        return None
    found = _with_accumulator(found, every, contract)
    every = accesses(found, values)
    split = _split(found.core)
    if split is None or every is None:
        return None
    before, acc, loop, finish = split
    local = {d.name for d in before} | set(found.ids())
    bounds = written_out(loop.start, values), written_out(loop.bound, values)
    if (
        identifiers(bounds) & (local | {acc.name})
        or loop.step != Literal("1")
        or loop.relation not in ("<", "<=")
        or loop.type is None
    ):
        return None
    if any(isinstance(n, Index) for n in nodes(bounds)) or not _plain_steps(loop.body, acc.name):
        return None
    pair = _factors(loop, found, values, contract)
    stored = [a for a in every if a.writes]
    if pair is None or not stored or not _safe(pair, stored, found, contract):
        return None
    n_axis = _contiguous_axis(stored, found)
    m_axis = "x" if n_axis == "y" else "y"
    if m_axis not in pair or n_axis not in pair:
        return None
    a, b = pair[m_axis], pair[n_axis]
    step = one_step(loop, a, b)
    if identifiers(step) & (local | {loop.var}):
        return None
    return GemmNest(found, m_axis, n_axis, a, b, acc, before, loop, finish, _neutral(loop, acc.name, a, b), values)


def one_step(loop: For, a: Factor, b: Factor) -> tuple[Stmt, ...]:
    """The loop's body with the factors as ``$a`` and ``$b``."""
    parts = {a.expr: Name("$a"), b.expr: Name("$b")}
    return rewrite(loop.body, lambda e: parts.get(e))


def _with_accumulator(found: Domain, every: Sequence[Access], contract: Contract) -> Domain:
    """The domain with a sum that is kept in memory during the loop kept in a variable instead, when the element is
    the point's own and nothing else can touch it meanwhile; unchanged otherwise."""
    core = without_comments(found.core)
    at = next((i for i, s in enumerate(core) if isinstance(s, For)), None)
    loop = core[at] if at is not None else None
    if at is None or not isinstance(loop, For):
        return found
    inside = {n for n in nodes(loop.body) if isinstance(n, Index)}
    sums = [a for a in every if a.writes and a.expr in inside]
    if len({s.expr for s in sums}) != 1 or loop.var in found.poly(sums[0].offset).names():
        return found
    own, array = sums[0], sums[0].pointer
    same = [a for a in every if a.pointer == array]
    others = {a.pointer for a in every if a.pointer != array}
    if any(a.expr != own.expr for a in same) or any(may_alias(contract, found.launch, found, array, o) for o in others):
        return found
    kind = " ".join(w for w in found.form.param(array).type.replace("*", " ").split() if w != "const")
    before, first = list(core[:at]), own.expr
    start: Expr = first
    match before[-1] if before else None:
        case Assign(target=target, op="=", value=value) if target == first:
            start = value
            before.pop()
    if any(first in nodes(s) for s in before):
        return found
    total = Name("fsr_total")
    inner = rewrite(loop, lambda e: total if e == first else None)
    changed = (*before, Declare(kind, total.text, start), inner, Assign(first, "=", total), *core[at + 1 :])
    return replace(found, core=changed)


def _split(core: Sequence[Stmt]) -> tuple[tuple[Declare, ...], Declare, For, tuple[Stmt, ...]] | None:
    """Declarations, the accumulator's among them, one loop, and the rest."""
    core = without_comments(core)
    at = next((i for i, s in enumerate(core) if isinstance(s, For)), None)
    if at is None:
        return None
    lead, loop, finish = core[:at], core[at], core[at + 1 :]
    declared = [s for s in lead if isinstance(s, Declare)]
    if not isinstance(loop, For) or len(declared) != len(lead) or any(isinstance(n, For) for n in nodes(finish)):
        return None
    targets = {base_name(s.target) for s in nodes(loop.body) if isinstance(s, Assign)}
    targets -= {s.name for s in nodes(loop.body) if isinstance(s, Declare)}
    acc = [d for d in declared if d.name in targets]
    if len(acc) != 1 or len(targets) != 1 or acc[0].init is None or acc[0].dims or "auto" in acc[0].type:
        return None
    before = tuple(d for d in declared if d is not acc[0])
    if acc[0].name in identifiers(before) or {d.name for d in before} & set(names_assigned((loop.body, finish))):
        return None
    return before, acc[0], loop, finish


def _plain_steps(body: Sequence[Stmt], acc: str) -> bool:
    """Whether a loop body is declarations and assignments to the accumulator only."""
    for stmt in without_comments(body):
        if isinstance(stmt, Declare) and not stmt.dims and stmt.init is not None:
            continue
        if isinstance(stmt, Assign) and stmt.target == Name(acc):
            continue
        reads = any(isinstance(n, Index) for n in nodes(stmt))
        if isinstance(stmt, If) and not reads and _plain_steps((*stmt.then, *stmt.orelse), acc):
            continue
        return False
    return not any(isinstance(n, ExprStmt) for n in nodes(tuple(body)))


def _factors(loop: For, found: Domain, values: Inits, contract: Contract) -> dict[str, Factor] | None:
    """The factor that depends on each axis; None unless there is exactly one distinct access for each."""
    result: dict[str, Factor] = {}
    for node in nodes(loop.body):
        if not isinstance(node, Index):
            continue
        one = access(node, found, values)
        if one is None:
            return None
        used = [a for a, axis in found.axes.items() if axis.var in found.poly(one.offset).names()]
        if len(used) != 1:
            return None
        factor = _factor(one, found.axes[used[0]].var, loop, found, contract)
        if factor is None or (
            used[0] in result and found.poly(result[used[0]].access.offset) != found.poly(one.offset)
        ):
            return None
        if used[0] in result and result[used[0]].expr != factor.expr:
            return None
        result[used[0]] = factor
    return result if len(result) == 2 else None


def _factor(one: Access, outer: str, loop: For, found: Domain, contract: Contract) -> Factor | None:
    dtype = dtype_of(contract, found.launch, found, one.pointer)
    strides = found.poly(one.offset).coefficient(outer), found.poly(one.offset).coefficient(loop.var)
    if dtype is None or strides[0] is None or strides[1] is None or not strides[1].terms:
        return None
    locals_of_body = {n.name for n in nodes(loop.body) if isinstance(n, Declare)}
    if (strides[0].names() | strides[1].names()) & {outer, loop.var} or found.poly(one.offset).names() & locals_of_body:
        return None
    along, stride = "", constant(0)
    if strides[1] == constant(1):
        along, stride = "k", strides[0]
    elif strides[0] == constant(1):
        along, stride = "outer", strides[1]
    element = " ".join(
        w for w in found.form.param(one.pointer).type.replace("*", " ").split() if w not in ("const", "volatile")
    )
    expr, value = _converted(one.expr, loop, element)
    return Factor(one, expr, value, dtype, along, stride)


def _converted(element: Expr, loop: For, kind: str) -> tuple[Expr, str]:
    """The conversion right around an element, wherever it is used, and the type it gives."""
    around = {
        n for n in nodes(loop.body)
        if (isinstance(n, Call) and n.args == (element,) and isinstance(n.callee, Name) and n.callee.text in WIDENING)
        or (isinstance(n, Cast) and n.operand == element and n.type in ("float", "double", "int"))
    }  # fmt: skip
    bare = sum(n == element for n in nodes(loop.body))
    wrapped = [n for n in nodes(loop.body) if n in around] if len(around) == 1 else []
    if len(wrapped) != bare or not wrapped:
        return element, kind
    one = wrapped[0]
    return one, one.type if isinstance(one, Cast) else WIDENING[one.callee.text]


def _safe(pair: dict[str, Factor], stored: Sequence[Access], found: Domain, contract: Contract) -> bool:
    read = {f.access.pointer for f in pair.values()}
    return not any(may_alias(contract, found.launch, found, s.pointer, r) for s in stored for r in read)


def _contiguous_axis(stored: Sequence[Access], found: Domain) -> str:
    """The axis along which neighbouring points write neighbouring elements; x when there is none."""
    for axis in sorted(found.axes):
        if all(found.poly(s.offset).coefficient(found.axes[axis].var) == constant(1) for s in stored):
            return axis
    return "x"


def _neutral(loop: For, acc: str, a: Factor, b: Factor) -> bool:
    """Whether the loop adds or subtracts a plain product of the two factors."""
    body = without_comments(loop.body)
    lets = {s.name: s.init for s in body if isinstance(s, Declare) and s.init is not None}
    steps = [s for s in body if not isinstance(s, Declare)]
    if len(steps) != 1 or not isinstance(steps[0], Assign):
        return False
    step = steps[0]

    def product(left: Expr, right: Expr) -> bool:
        found = [lets.get(e.text, e) if isinstance(e, Name) else e for e in (left, right)]
        return found in ([a.expr, b.expr], [b.expr, a.expr])

    match step.op, step.value:
        case "+=" | "-=", Binary(op="*", left=left, right=right):
            return product(left, right)
        case "=", Call(callee=Name(text="fma" | "fmaf" | "__fmaf_rn"), args=(left, right, Name(text=name))):
            return name == acc and product(left, right)
        case "=", Binary(op="+", left=Name(text=name), right=Binary(op="*", left=left, right=right)):
            return name == acc and product(left, right)
        case "=", Binary(op="+", left=Binary(op="*", left=left, right=right), right=Name(text=name)):
            return name == acc and product(left, right)
    return False
