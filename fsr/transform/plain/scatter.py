"""Counting and adding up where data tells, as one atomic a point of the domain: what privatised bins are made from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import Expr, Load, Number, affine, distinct
from fsr.expressions import evaluate
from fsr.records import Role
from fsr.transform.plain.c_text import NotPlain, Writer, bare
from fsr.transform.plain.kernel import Plain
from fsr.transform.plain.names import Names
from fsr.transform.target import Target

_ATOMICS = {"+": "atomicAdd", "max": "atomicMax", "min": "atomicMin"}
_ADDED = ("int32", "uint32", "uint64", "float32", "float64")  # types that there is an atomicAdd of
_COMPARED = ("int32", "uint32", "int64", "uint64")
_THREADS = 256
_INT = 2**31 - 1


def apart(c: Computation) -> tuple[Computation | None, list[Computation]] | None:
    """What sets elements that are added to afterwards, where anything does, and what adds where data tells, by domains,
    the one of most dimensions first; None where anything else is made, or what is added to is read."""
    added = [s for s in c.statements if s.kind == "scatter"]
    first = tuple(s for s in c.statements if s.kind != "scatter")
    targets = {s.target for s in added}
    if not added or any(s.kind != "map" or s.target not in targets for s in first):
        return None
    roots = [root for s in added for root in (s.value, *s.place) if root is not None]
    if any(isinstance(e, Load) and e.buffer in targets for root in roots for e in distinct(root)):
        return None
    domains = sorted(dict.fromkeys(s.domain for s in added), key=len, reverse=True)
    groups = [replace(c, statements=tuple(s for s in added if s.domain == d)) for d in domains]
    return (replace(c, statements=first) if first else None), groups


def scattered_kernel(c: Computation, target: Target, started: Computation | None = None) -> Plain:
    """A thread a point of the one domain. ``started``: what sets the elements before. Raises NotPlain where there are
    no such atomics."""
    begun = {s.target for s in started.statements} if started is not None else set()
    for s in c.statements:
        if s.value is None:
            raise NotPlain("nothing is known of what is added")
        if s.target not in begun and target.contract.argument(s.target).role is not Role.INOUT:
            raise NotPlain("what is added to is not given")
        atomic(s, c.buffer(s.target).dtype)
    called = Names(c, target)
    domain = _as_read(c.statements)
    largest = {s.name: s.maximum for s in target.contract.sizes}
    for shape in ([x for _, x in domain], *(b.shape for b in c.buffers)):
        if math.prod(float(evaluate(x, largest)) for x in shape) > _INT:
            raise NotPlain("more elements than an int counts")
    extents = [called.sizes.text(x) for _, x in domain]
    whole = extents[0] if len(extents) == 1 else " * ".join(extents)
    lines = ["int $at = blockIdx.x * blockDim.x + threadIdx.x;", f"if ($at >= {whole}) return;"]
    writer, stores = _writer(c, called, domain), list[str]()
    for s in c.statements:
        assert s.value is not None
        place = f"{called.names[s.target]}[{writer.flat(s.target, s.place)}]"
        stores.append(f"{atomic(s, c.buffer(s.target).dtype)}(&{place}, {bare(writer.text(s.value))});")
    used = "\n".join(stores)
    lines += [line for (name, _), line in zip(domain, _indices(domain, extents), strict=True) if f"${name}" in used]
    size = " * ".join(f"({x})" for _, x in domain) if len(domain) > 1 else domain[0][1]
    body = "\n".join([*lines, used])
    more = tuple((name, text) for text, name in called.sizes.more.items() if name in body)
    return Plain(body, (f"ceil_div({size}, {_THREADS})", "1", "1"), (str(_THREADS), "1", "1"), more)


def _as_read(statements: Sequence[Statement]) -> tuple[tuple[str, str], ...]:
    """The domain's dimensions; the last is the one along which what is read lies in memory."""
    roots = [root for s in statements for root in (s.value, *s.place) if root is not None]
    loads = [e for root in roots for e in distinct(root) if isinstance(e, Load) and e.indices]
    last = [e.indices[-1].index for e in loads if isinstance(e.indices[-1], Number)]
    domain = statements[0].domain
    told = [d for d in domain if affine(d[0]) in last]
    return domain if len(told) != 1 else (*(d for d in domain if d != told[0]), told[0])


def atomic(s: Statement, dtype: str) -> str:
    """The atomic operation that a statement needs, of elements of a type. Raises NotPlain."""
    if s.combine not in _ATOMICS or dtype not in (_ADDED if s.combine == "+" else _COMPARED):
        raise NotPlain(f"{s.combine} of {dtype} by atomics")
    return _ATOMICS[s.combine]


def has_atomic(s: Statement, c: Computation) -> bool:
    """Whether there is an atomic operation for a statement."""
    try:
        return bool(atomic(s, c.buffer(s.target).dtype))
    except NotPlain:
        return False


def _indices(domain: Sequence[tuple[str, str]], extents: Sequence[str]) -> list[str]:
    """A point's number taken apart: the last dimension is the contiguous one."""
    found = []
    for n, (name, _) in enumerate(domain):
        inner = " * ".join(extents[n + 1 :])
        value = f"$at / ({inner})" if inner and len(extents) - n > 2 else f"$at / {inner}" if inner else "$at"
        found.append(f"int ${name} = {value if not n else f'{value} % {extents[n]}'};")
    return found


def _writer(c: Computation, called: Names, domain: Sequence[tuple[str, str]]) -> Writer:
    """Elements that lie as the points do are read by the point's number."""
    own = tuple(affine(name) for name, _ in domain)
    shape = tuple(x for _, x in domain)
    held: dict[Expr, str] = {
        e: f"{called.names[e.buffer]}[$at]"
        for s in c.statements for root in (s.value, *s.place) if root is not None for e in distinct(root)
        if isinstance(e, Load) and e.indices and c.buffer(e.buffer).shape == shape
        and tuple(i.index if isinstance(i, Number) else None for i in e.indices) == own
    }  # fmt: skip
    w = called.writer
    return Writer(w.affine, w.extents, w.names, w.by, held, w.wide)
