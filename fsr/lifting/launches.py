"""A plan of several launches, each lifted for itself, or all in two parts: what one leaves in scratch memory, and
another reads anywhere, is a value that the computation keeps between statements.

As a whole an element of such a plan is made of neighbours of neighbours, and these coincide at edges in many ways; a
launch alone knows of its own neighbours only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from fsr.computation.canonical import canonical
from fsr.computation.computation import KEPT, Buffer, Computation, Statement
from fsr.computation.expression import Expr, Load, children, rebuilt, walk
from fsr.computation.interpret import NoMeaning, inlined
from fsr.contract.model import Argument, Contract
from fsr.errors import ContractError
from fsr.expressions import fingerprint
from fsr.lifting.refused import Refused
from fsr.records import Candidate, Plan, Role, Scratch

_MOST = 6  # launches

Lift = Callable[[Contract, Candidate], Computation]
LiftPart = Callable[[range, Contract, Candidate], Computation]


def by_launches(contract: Contract, candidate: Candidate, lift: Lift) -> Computation:
    """What the plan computes, by what each launch does; where some do not tell, by those up to one and those behind it,
    as a scan of several launches before what reads it. ``lift``: of a plan of some launches. Raises Refused."""
    count, known, why = len(candidate.plan.launches), dict[range, Computation | Refused](), list[Refused]()

    def lifted(part: range, own: Contract, step: Candidate) -> Computation:
        if part not in known:
            try:
                known[part] = lift(own, step)
            except Refused as refused:
                known[part] = refused
        found = known[part]
        if isinstance(found, Refused):
            raise found
        return found

    for parts in _partings(count):
        try:
            return _by_parts(contract, candidate, parts, lifted)
        except Refused as refused:
            why.append(refused)
    raise why[0]


def _partings(count: int) -> Iterator[tuple[range, ...]]:
    """Each launch for itself; then all in two, the later the first."""
    yield tuple(range(n, n + 1) for n in range(count))
    if count > 2:
        yield from ((range(k), range(k, count)) for k in range(count - 1, 0, -1))


def _by_parts(contract: Contract, candidate: Candidate, parts: Sequence[range], lift: LiftPart) -> Computation:
    plan = candidate.plan
    uses = {s.name: {n for n, x in enumerate(plan.launches) if s.name in x.args} for s in plan.scratch}
    inner = {part: tuple(s for s in plan.scratch if uses[s.name] <= set(part)) for part in parts}
    between = [s for s in plan.scratch if not any(s in own for own in inner.values())]
    buffers = {a.name: a for a in contract.buffers()} | {s.name: _argument(contract, s) for s in between}
    kept = {s.name for s in between}
    made, sizes, written = list[Statement](), dict[str, None](), set[str]()
    for part in parts:
        own_plan = replace(plan, launches=plan.launches[part.start : part.stop], scratch=inner[part])
        step = Candidate(candidate.source, own_plan, (), candidate.language)
        found = lift(part, _alone(contract, buffers, own_plan), step)
        sizes |= dict.fromkeys(found.sizes)
        own = _changes(found)
        read = {e.buffer for s in own for e in walk(_value(s)) if isinstance(e, Load)}
        if read & ((kept - written) | (written - kept)) or written & {s.target for s in own}:
            raise Refused("a launch changes what another reads or writes")
        written |= {s.target for s in own}
        made += own
    names = {n: KEPT + n for n in kept}
    told = [replace(s, target=names.get(s.target, s.target), value=_renamed(_value(s), names)) for s in made]
    views = (Buffer(names.get(a.name, a.name), a.dtype, a.shape) for a in buffers.values())
    return _in_order(canonical(Computation(tuple(sizes), tuple(views), tuple(told))))


def apart(candidate: Candidate) -> bool:
    """Whether a plan has launches that scratch memory connects."""
    plan = candidate.plan
    return bool(plan.scratch) and 1 < len(plan.launches) <= _MOST and not any(x.repeated for x in plan.launches)


def _argument(contract: Contract, s: Scratch) -> Argument:
    """Scratch memory as an argument, of the shape of a buffer of as many elements."""
    if s.zeroed:
        raise Refused("a launch adds to scratch memory")
    alike = (a.shape for a in contract.buffers() if _counts(contract, " * ".join(f"({x})" for x in a.shape) or "1")
             == _counts(contract, s.count))  # fmt: skip
    return Argument(s.name, s.dtype, Role.INOUT, next(alike, (s.count,)))


def _counts(contract: Contract, count: str) -> tuple[object, ...]:
    try:
        return fingerprint(count, (s.name for s in contract.sizes))
    except ContractError as why:
        raise Refused(str(why)) from None


def _alone(contract: Contract, buffers: Mapping[str, Argument], plan: Plan) -> Contract:
    """The contract of some launches alone: they may change whatever they do not only read."""
    used = [a for launch in plan.launches for a in launch.args if isinstance(a, str)]
    own = [buffers.get(a.name, a) for a in contract.args if a.name in used or a.symbol or a.role is Role.SCALAR]
    own += [a for name, a in buffers.items() if name in used and a not in own]
    args = tuple(replace(a, role=Role.INOUT) if a.role is Role.OUT else a for a in own)
    return replace(contract, entry=plan.launches[0].entry, args=args, plan=plan)


def _changes(c: Computation) -> list[Statement]:
    """What a launch writes, each with what it is made of written out. Raises Refused."""
    found = []
    for s in c.statements:
        if s.target.startswith("_") or (
            isinstance(s.value, Load) and (s.value.buffer, s.value.indices) == (s.target, s.place)
        ):
            continue
        if s.kind == "scatter" or s.value is None:
            raise Refused("data decides where a launch writes")
        try:
            found.append(replace(s, kind="map", value=inlined(c, s.value)))
        except NoMeaning as why:
            raise Refused(str(why)) from None
    return found


def _value(s: Statement) -> Expr:
    assert s.value is not None
    return s.value


def _renamed(e: Expr, names: Mapping[str, str]) -> Expr:
    e = rebuilt(e, tuple(_renamed(part, names) for part in children(e)))
    return replace(e, buffer=names.get(e.buffer, e.buffer)) if isinstance(e, Load) else e


def _in_order(c: Computation) -> Computation:
    """With every statement behind those whose values it reads."""
    left, found = list(c.statements), list[Statement]()
    while left:
        missing = {s.target for s in left if s.target.startswith((KEPT, "_"))}
        ready = [s for s in left if not missing & {e.buffer for e in walk(_value(s)) if isinstance(e, Load)}]
        found += ready
        left = [s for s in left if s not in ready]
        if not ready:
            raise Refused("launches read of each other")
    return replace(c, statements=tuple(found))
