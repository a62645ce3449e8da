"""Global-memory accesses of a domain's core: which array, at which polynomial of ids, parameters and loop variables."""

from __future__ import annotations

from collections.abc import Mapping

from fsr.analysis.accesses import Access, pointed
from fsr.analysis.domain import Domain
from fsr.analysis.types import is_integer
from fsr.source.form import Assign, Binary, Declare, Expr, For, Index, Name, Unary
from fsr.source.mapping import rewrite
from fsr.source.walk import names_assigned, nodes

Inits = Mapping[str, Expr]


def once_set(found: Domain) -> dict[str, Expr]:
    """Integer and pointer locals of the core that are set once, with their values: what may be written out."""
    body = (*found.uniform, *found.core)
    written, values = set(names_assigned(body)), dict[str, Expr]()
    # What a loop counts may have the name of what another declares: which of them is meant depends on the place.
    seen = {node.var for node in nodes(body) if isinstance(node, For)}
    for node in nodes(body):
        if isinstance(node, Declare):
            simple = node.init is not None and not node.dims and (is_integer(node.type) or node.type.endswith("*"))
            if simple and node.init is not None and node.name not in written and node.name not in seen:
                values[node.name] = node.init
            else:
                values.pop(node.name, None)
            seen.add(node.name)
    return {n: v for n, v in values.items() if n in found.known or _is_place(v, found, values)}


def _is_place(value: Expr, found: Domain, values: Inits) -> bool:
    return pointed(written_out(value, values), _buffers(found)) is not None


def _buffers(found: Domain) -> frozenset[str]:
    return frozenset(p.name for p in found.form.params if p.is_pointer)


def written_out(expr: Expr, values: Inits) -> Expr:
    """The expression with the locals of ``values`` replaced by what they were set to, all the way down."""
    return rewrite(
        expr, lambda e: written_out(values[e.text], values) if isinstance(e, Name) and e.text in values else None
    )


def access(expr: Index, found: Domain, values: Inits, kind: str = "read") -> Access | None:
    """The access of an element of a pointer parameter, its index with locals written out; None for local arrays and
    what is not affine by form."""
    place = pointed(written_out(expr.base, values), _buffers(found))
    if place is None:
        return None
    index = written_out(expr.index, values)
    return Access(place[0], (index if place[1] is None else Binary("+", place[1], index),), kind, expr)


def accesses(found: Domain, values: Inits) -> list[Access] | None:
    """Every access of the core in order. None when a parameter is used in any other way (``*p``, ``p->x``, an address
    given to a call, a pointer that moves): then nothing can be said."""
    pointers = _buffers(found)
    aliases = [n for n in nodes(found.core) if isinstance(n, Declare) and n.name in values and n.type.endswith("*")]
    places = {id(n) for alias in aliases for n in nodes(alias.init)}
    targets = {id(n.target) for n in nodes(found.core) if isinstance(n, Assign)}
    result: list[Access] = []
    through = 0  # uses of pointers that are the base of an access
    for node in nodes(found.core):
        if id(node) in places:
            continue
        if isinstance(node, Unary) and node.op in ("*", "&"):
            return None
        if isinstance(node, Assign) and isinstance(node.target, Name) and node.target.text in pointers:
            return None
        if isinstance(node, Index):
            one = access(node, found, values, "write" if id(node) in targets else "read")
            if one is not None:
                result.append(one)
                through += 1
    known = pointers | {n for n, v in values.items() if _is_place(v, found, values)}
    used = sum(isinstance(n, Name) and n.text in known and id(n) not in places for n in nodes(found.core))
    return result if through == used else None
