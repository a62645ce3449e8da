"""A plan of several launches, each lifted for itself, or all in two parts: what one leaves in scratch memory, and
another reads anywhere, is a value that the computation keeps between statements.

As a whole an element of such a plan is made of neighbours of neighbours, and these coincide at edges in many ways; a
launch alone knows of its own neighbours only.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from fsr.computation.canonical import canonical
from fsr.computation.computation import KEPT, Buffer, Computation, Statement
from fsr.computation.expression import Expr, Load, children, distinct, rebuilt
from fsr.computation.interpret import NoMeaning, inlined
from fsr.contract.model import Argument, Contract
from fsr.errors import ContractError
from fsr.lifting.found import Lifting
from fsr.lifting.in_plan import differs_in_plan
from fsr.lifting.refused import Refused
from fsr.lifting.sampling import view
from fsr.records import Candidate, Scratch
from fsr.source.emit import emit_kernel
from fsr.transform.instantiated import instantiated, kernels_of
from fsr.transform.launch_alone import (
    Alone,
    alone,
    as_candidate,
    launches_alone,
    scratch_argument,
    steps,
    with_computation,
)
from fsr.transform.own_copies import own_copies

_MOST = 6  # launches
_MOST_ORDERS = 6  # of a buffer's extents: as many as three have

Lift = Callable[[Contract, Candidate], Computation]


class Whole(Protocol):
    """Lifts a plan as a whole."""

    def __call__(self, contract: Contract, candidate: Candidate, *, limit_s: float, compile_s: float) -> Lifting:
        """What it computes, or why that is not known."""


@dataclass
class Steps:
    """Lifts launches of a plan, each plan of some of them once. ``until``: when no more is begun, by the monotonic
    clock; ``limit_s``: for one."""

    whole: Whole
    until: float
    limit_s: float
    compile_s: float
    known: dict[tuple[Contract, Candidate], Lifting] = field(default_factory=dict)

    def within(self, seconds: float) -> Lift:
        """The same, no more begun after so many seconds."""
        return replace(self, until=min(self.until, time.monotonic() + seconds)).lifted

    def lifted(self, own: Contract, step: Candidate) -> Computation:
        """What a plan of some launches computes. Raises Refused."""
        found = self.known.get((own, step))
        if found is None:
            left_s = self.until - time.monotonic()
            if left_s <= 0:
                raise Refused("no time")
            found = self.whole(own, step, limit_s=min(self.limit_s, left_s), compile_s=self.compile_s)
            self.known[own, step] = found
        if found.computation is None:
            raise Refused(found.why)
        return found.computation


def known_alone(contract: Contract, candidate: Candidate, lifting: Steps) -> Iterator[Alone]:
    """The launches of a plan of which each is known for itself."""
    candidate = instantiated(own_copies(candidate, contract))  # as actions see it
    kernels = kernels_of(candidate.source)
    for one in launches_alone(contract, candidate.plan):
        # Not of numbers that are told for a launch: what is drawn for them need not fit the sizes that are drawn.
        if one.kernel in kernels and one.told.counted(one.launches) and not steps(one.launches[0]):
            with suppress(Refused):
                computation = lifting.lifted(one.contract, as_candidate(one, candidate))
                told = with_computation(one, computation, emit_kernel(kernels[one.kernel]))
                if not differs_in_plan(contract, candidate, told):
                    yield told


def by_launches(contract: Contract, candidate: Candidate, lift: Lift) -> Computation:
    """What the plan computes, by what each launch does; where some do not tell, by those up to one and those behind it,
    as a scan of several launches before what reads it. ``lift``: of a plan of some launches. Raises Refused."""
    why = list[Refused]()
    again = any(one.often and not one.told.names for one in launches_alone(contract, candidate.plan))
    for parts in itertools.islice(_partings(len(candidate.plan.launches)), 1 if again else None):
        try:
            return _by_parts(contract, candidate, parts, lift)
        except Refused as refused:
            why.append(refused)
    raise why[0]


def _partings(count: int) -> Iterator[tuple[range, ...]]:
    """Each launch for itself; then all in two, the later the first."""
    yield tuple(range(n, n + 1) for n in range(count))
    if count > 2:
        yield from ((range(k), range(k, count)) for k in range(count - 1, 0, -1))


def _by_parts(contract: Contract, candidate: Candidate, parts: Sequence[range], lift: Lift) -> Computation:
    plan = candidate.plan
    uses = {s.name: {n for n, x in enumerate(plan.launches) if s.name in x.args} for s in plan.scratch}
    inner = {part: tuple(s for s in plan.scratch if uses[s.name] <= set(part)) for part in parts}
    between = [s for s in plan.scratch if not any(s in own for own in inner.values())]
    buffers = {a.name: a for a in contract.buffers()} | {s.name: _buffer(contract, s) for s in between}
    kept = {s.name for s in between}
    made, sizes, written, met = list[Statement](), dict[str, None](), set[str](), set[str]()
    for part in parts:
        own_plan = replace(plan, launches=plan.launches[part.start : part.stop], scratch=inner[part])
        step = Candidate(candidate.source, own_plan, (), candidate.language)
        passed = {name for launch in own_plan.launches for name in launch.args if isinstance(name, str)}
        first = [s.name for s in between if s.name in passed - met]
        found = _lifted_part(contract, buffers, first, step, lift)
        met |= passed
        sizes |= dict.fromkeys(found.sizes)
        own = _changes(found)
        read = {e.buffer for s in own for e in distinct(_value(s)) if isinstance(e, Load)}
        if read & ((kept - written) | (written - kept)) or written & {s.target for s in own}:
            raise Refused("a launch changes what another reads or writes")
        written |= {s.target for s in own}
        made += own
    names = {n: KEPT + n for n in kept}
    told = [replace(s, target=names.get(s.target, s.target), value=_renamed(_value(s), names)) for s in made]
    views = (
        Buffer(names.get(a.name, a.name), a.dtype, view(a.shape)) for a in buffers.values()
    )  # as they were watched
    return _in_order(canonical(Computation(tuple(sizes), tuple(views), tuple(told))))


def _lifted_part(
    contract: Contract, buffers: dict[str, Argument], first: Sequence[str], step: Candidate, lift: Lift
) -> Computation:
    """What some launches compute. The extents of scratch memory that is met ``first`` are no more than those of a
    buffer of as many elements, in whatever order: ``buffers`` holds that in which it is known. Raises Refused."""
    why = None
    orders = [_orders(buffers[name]) for name in first]
    for n in range(max(map(len, orders), default=1)):
        tried = {name: own[n % len(own)] for name, own in zip(first, orders, strict=True)}
        try:
            found = lift(alone(contract, {**buffers, **tried}, step.plan), step)
        except Refused as refused:
            why = why or refused
            continue
        buffers.update(tried)
        return found
    raise why or Refused("no launches")


def _orders(buffer: Argument) -> list[Argument]:
    """The buffer as it stands, and with its extents in other orders, the inner ones first."""
    dims = view(buffer.shape)
    orders = dict.fromkeys(itertools.islice(itertools.permutations(dims), _MOST_ORDERS))
    return [buffer, *(replace(buffer, shape=order) for order in list(orders)[1:])]


def apart(candidate: Candidate) -> bool:
    """Whether a plan has launches that scratch memory connects."""
    plan = candidate.plan
    return bool(plan.scratch) and 1 < len(plan.launches) <= _MOST and not any(x.repeated for x in plan.launches)


def _buffer(contract: Contract, s: Scratch) -> Argument:
    if s.zeroed:
        raise Refused("a launch adds to scratch memory")
    try:
        return scratch_argument(contract, s)
    except ContractError as why:
        raise Refused(str(why)) from None


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
        ready = [s for s in left if not missing & {e.buffer for e in distinct(_value(s)) if isinstance(e, Load)}]
        found += ready
        left = [s for s in left if s not in ready]
        if not ready:
            raise Refused("launches read of each other")
    return replace(c, statements=tuple(found))
