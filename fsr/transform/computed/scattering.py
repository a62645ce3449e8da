"""The parts of a computation that add to elements where data tells which, and what it makes besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fsr.computation.computation import KEPT, Computation, Statement
from fsr.computation.expression import Expr, Fold, Load, Recurrence, distinct
from fsr.transform.computed.parts import Domain, Part, name_of, put_in, value_of
from fsr.transform.plain.scatter import has_atomic


def scattering(c: Computation) -> tuple[Computation, tuple[Part, ...]] | None:
    """What is made without regard to where data tells, which must run first, and parts that add, each over one domain;
    None where anything reads what is added to, or what is added reads what is made."""
    made = {s.target: s for s in c.statements if s.target.startswith("_")}
    added = [_put_in(s, made) for s in c.statements if s.kind == "scatter" and s.value is not None]
    rest = tuple(s for s in c.statements if s.kind != "scatter")
    if len(added) + len(rest) < len(c.statements) or not all(has_atomic(s, c) for s in added):
        return None
    targets, outputs = {s.target for s in added}, {s.target for s in rest if not s.target.startswith(("_", KEPT))}
    for s in (*added, *rest):
        reads = {e.buffer for e in _within(s) if isinstance(e, Load)}
        if reads & targets or (s.kind == "scatter" and reads & outputs):
            return None
    if any(isinstance(e, Fold | Recurrence) for s in added for e in _within(s)):
        return None
    domains = dict.fromkeys(s.domain for s in added)
    parts = tuple(_part(c, [s for s in added if s.domain == domain]) for domain in domains)
    return replace(c, statements=rest), parts


def _put_in(s: Statement, made: dict[str, Statement]) -> Statement:
    return replace(s, value=put_in(value_of(s), made), place=tuple(put_in(p, made) for p in s.place))


def _within(s: Statement) -> list[Expr]:
    """All that a statement's value and place are made of."""
    return [e for root in (*([s.value] if s.value is not None else []), *s.place) for e in distinct(root)]


def _part(c: Computation, added: Sequence[Statement]) -> Part:
    used = {s.target for s in added} | {e.buffer for s in added for e in _within(s) if isinstance(e, Load)}
    domain = _as_it_lies(added)
    outputs = tuple(replace(s, domain=domain) for s in added)
    return Part(c.sizes, tuple(b for b in c.buffers if b.name in used), domain, (), outputs)


def _as_it_lies(added: Sequence[Statement]) -> Domain:
    """The domain with that dimension last along which what is added to lies in memory, or most of what is read."""
    domain = added[0].domain
    own = [name_of(s.place[-1]) for s in added if s.place]
    read = [name_of(e.indices[-1]) for s in added for e in _within(s) if isinstance(e, Load) and e.indices]
    along = max(domain, key=lambda d: (own.count(d[0]), read.count(d[0]), domain.index(d)), default=None)
    return (*(d for d in domain if d != along), along) if along is not None else domain
