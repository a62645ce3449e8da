"""A computation cut into parts that a kernel each can make: outputs over one domain with what they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Expr, Load, Number, children, rebuilt, renamed, walk

Domain = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Outputs over one domain. ``made``: the values between statements that they read; ``outputs``: as in the
    computation; ``whole``: the same with those values put in."""

    sizes: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    domain: Domain
    made: tuple[Statement, ...]
    outputs: tuple[Statement, ...]

    @property
    def whole(self) -> tuple[Statement, ...]:
        """The outputs as they are when nothing is kept between statements."""
        made = {s.target: s for s in self.made}
        return tuple(replace(s, value=put_in(value_of(s), made)) for s in self.outputs)

    @property
    def computation(self) -> Computation:
        """The part as a computation of its own."""
        return Computation(self.sizes, self.buffers, (*self.made, *self.outputs))


def parts_of(c: Computation) -> list[Part]:
    """A part for each domain of outputs, in the order of their first statements; empty where the computation is more
    than maps and folds, or an output is read by another statement than its own."""
    if any(s.value is None or s.kind not in ("map", "fold") for s in c.statements):
        return []
    made = {s.target: s for s in c.statements if s.target.startswith("_")}
    outputs = [s for s in c.statements if not s.target.startswith("_")]
    places = {s.target: s.place for s in outputs}
    for s in c.statements:
        for e in walk(value_of(s)):
            own = isinstance(e, Load) and s.target == e.buffer and e.indices == s.place
            if isinstance(e, Load) and e.buffer in places and not own:
                return []
    groups: dict[Domain, list[Statement]] = {}
    for s in outputs:
        groups.setdefault(s.domain, []).append(s)
    return [_part(c, made, group) for group in groups.values()]


def _part(c: Computation, made: Mapping[str, Statement], outputs: Sequence[Statement]) -> Part:
    wanted: dict[str, None] = {}

    def want(s: Statement) -> None:
        for e in walk(value_of(s)):
            if isinstance(e, Load) and e.buffer in made and e.buffer not in wanted:
                want(made[e.buffer])
                wanted[e.buffer] = None

    for s in outputs:
        want(s)
    own = [s for s in c.statements if s.target in wanted]
    used = {e.buffer for s in (*own, *outputs) for e in walk(value_of(s)) if isinstance(e, Load)}
    buffers = tuple(b for b in c.buffers if b.name in used | {s.target for s in outputs})
    return Part(c.sizes, buffers, outputs[0].domain, tuple(own), tuple(outputs))


def value_of(s: Statement) -> Expr:
    """What a statement computes; it is not opaque."""
    assert s.value is not None
    return s.value


def put_in(e: Expr, made: Mapping[str, Statement]) -> Expr:
    """The expression with the values between statements written out."""
    e = rebuilt(e, tuple(put_in(p, made) for p in children(e)))
    if not isinstance(e, Load) or e.buffer not in made:
        return e
    s = made[e.buffer]
    called = {}
    for (dim, _), index in zip(s.domain, e.indices, strict=True):
        called[dim] = name_of(index) or dim
    return renamed(put_in(value_of(s), made), lambda n: called.get(n, n))


def name_of(index: Expr) -> str | None:
    """The dimension that an index is; None for anything else."""
    match index:
        case Number(Affine(((name, 1),), 0), _):
            return name
    return None
