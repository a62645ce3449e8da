"""privatize-shared: slices of a shared array that are a thread's own become an array of the thread's (array
privatization): registers, once the loops over it are unrolled.

``own[i]`` with ``own = &memory[16 + threadIdx.x * 16]`` is the thread's where all else that is touched of the array
lies elsewhere. Both ways to deal an array out count: a run of elements each, or every so many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd, prod

from fsr.analysis.polynomial import Poly, constant
from fsr.analysis.types import bare
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate, Launch
from fsr.source.arrays import is_only_one
from fsr.source.form import (
    Declare,
    Expr,
    For,
    Index,
    Name,
    OpaqueExpr,
    Stmt,
    number,
)  # fmt: skip
from fsr.source.macros import reached_by_macros
from fsr.source.mapping import map_stmts, replace_stmt, rewrite
from fsr.source.walk import (
    Block,
    fresh,
    names_assigned,
    names_in,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.details.places import MOST_TURNS, Place, Places
from fsr.transform.details.thread_arrays import bytes_of
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import always, largest
from fsr.transform.target import Target, part_of, region_in, target_of, targets

MOST = MOST_TURNS  # elements of a thread
GAIN = 1.3
_UNROLL = ("#pragma unroll",)
_DYNAMIC = re.compile(r"\bextern\b[^;{}]*\b__shared__\b|\b__shared__\b[^;{}]*\bextern\b")


@dataclass(frozen=True, slots=True)
class PrivatizeShared:
    """``memory[threadIdx.x * 16 + i]`` becomes ``memory_own[i]``."""

    name: str = "privatize-shared"
    aims_at: frozenset[str] = frozenset(["shared-conflicts", "instructions", "latency", "occupancy"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Shared arrays with such slices, at indices that constants and loops of constant length give."""
        for target in map(_of_known_extent, targets(subject)):
            for found in _sliced(target):
                yield Move(self.name, region_in(target, f"shared:{found.array.name}"), (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose threads have arrays of their own; of the shared array stays what all use."""
        given = target_of(subject, move)
        target = _of_known_extent(given)
        name = part_of(move).removeprefix("shared:")
        found = next(f for f in _sliced(target) if f.array.name == name)
        launch = None if target is given else _without_dynamic_memory
        return rewritten(target, move, replace(target.kernel, body=found.privatized()), launch=launch)


def _of_known_extent(target: Target) -> Target:
    """The target with its dynamic shared array (``extern __shared__ T x[];``) as one of as many elements as the launch
    gives it, where these are so many at all sizes and no more than an array of the kernel may have."""
    dynamic = [s for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and "extern" in s.qualifiers]
    elsewhere = len(_DYNAMIC.findall(target.source)) > 1  # a function's has the same memory
    if len(dynamic) != 1 or elsewhere or "__shared__" not in dynamic[0].qualifiers or target.block is None:
        return target
    text, size = target.launch.shared_bytes, bytes_of(target, dynamic[0].type)
    whole = largest(target.contract, text)
    if not whole or not size or whole > STATIC_SHARED_BYTES or not always(target.contract, f"({text}) == {whole}"):
        return target
    qualifiers = tuple(q for q in dynamic[0].qualifiers if q != "extern")
    known = replace(dynamic[0], dims=(number(whole // size),), qualifiers=qualifiers)
    body = replace_stmt(target.kernel.body, dynamic[0], (known,))
    return replace(target, kernel=replace(target.kernel, body=body))


def _without_dynamic_memory(launch: Launch) -> Launch:
    return replace(launch, shared_bytes="0")


def _sliced(target: Target) -> Iterator[_Slices]:
    for s in target.kernel.body if target.block is not None else ():
        shared = isinstance(s, Declare) and "__shared__" in s.qualifiers and "extern" not in s.qualifiers and s.dims
        if (
            shared
            and isinstance(s, Declare)
            and s.init is None
            and "volatile" not in s.type
            and is_only_one(target.kernel, s)
        ):
            found = _Array(target, s).slices()
            if found is not None:
                yield found


class _Array(Places):
    """A shared array whose places are sorted into a thread's own and others'."""

    def slices(self) -> _Slices | None:
        """The array with its slices; None where it has none, or is touched in another way."""
        body = self.target.kernel.body
        if not all(self.dims) or not self.follow(body, names_assigned(body)):
            return None
        threads = {f"threadIdx.{a}": (0, n - 1) for a, n in self.extents.items()}
        if self.names & reached_by_macros(self.target.source) or not self.collect(body, threads, frozenset()):
            return None
        steps = {c for p in self.places if (c := self._slot(p.at)) > 0}
        return next((found for c in sorted(steps) if (found := self._sorted(c)) is not None), None)

    def _slot(self, at: Poly) -> int:
        """How far apart the places of neighbouring threads are; 0 where that is not the same for all."""
        first = next((m[0] for m, n in self.thread.terms if n == min(n for _, n in self.thread.terms)), "")
        apart = at.coefficient(first)
        step = 0 if apart is None else apart.value or 0
        return 0 if (at - self.thread * constant(step)).depends_on(["threadIdx"]) else step

    def _sorted(self, step: int) -> _Slices | None:
        """The slices whose beginnings are so far apart."""
        own = [p for p in self.places if self._slot(p.at) == step]
        rests = [p.at - self.thread * constant(step) for p in own]
        spans = [p.span(r) for p, r in zip(own, rests, strict=True) if r.symbols <= p.counted]
        if len(spans) < len(own) or None in spans:
            return None
        low, high = min(s[0] for s in spans if s), max(s[1] for s in spans if s)
        threads = step * (prod(self.extents.values()) - 1)
        unit = 1 if high - low < step else gcd(*(n for r in rests for _, n in (r - constant(low)).terms))
        others = tuple(p for p in self.places if p not in own)
        apart = all((s := p.span(p.at)) is not None and (s[1] < low or s[0] > high + threads) for p in others)
        count = (high - low) // unit + 1 if unit else 0
        if not apart or not 1 < count <= MOST or (high - low >= step and unit <= threads):
            return None
        bases = {p.base for p in own}
        first = self.thread * constant(step) + constant(low)
        alone = next(iter(bases)) if len(bases) == 1 and unit == 1 else ""
        pointer = alone if self.pointers.get(alone) == first else None
        if self.given and pointer is None:  # a function would need the places to be as far apart as they were
            return None
        which = {p.expr: (r - constant(low)).over(constant(unit)) for p, r in zip(own, rests, strict=True)}
        return _Slices(self, {e: at for e, at in which.items() if at is not None}, pointer, others, low, count)


@dataclass(frozen=True)
class _Slices:
    """The slices of an array. ``own``: which of a thread's ``count`` elements each place is; ``pointer``: what they are
    all touched through, if that points to the first; ``rest``: other places; ``low``: where the first slice begins."""

    of: _Array
    own: Mapping[Expr, Poly]
    pointer: str | None
    rest: tuple[Place, ...]
    low: int
    count: int

    @property
    def array(self) -> Declare:
        """The shared array."""
        return self.of.declared

    def privatized(self) -> Block:
        """The kernel's statements."""
        name = self.pointer or fresh(f"{self.array.name}_own", self.of.target.names)
        own = Declare(bare(self.array.type), name, None, (number(self.count),))
        used = self._used()

        def change(e: Expr) -> Expr | None:
            at = self.own.get(e)
            if at is None or self.pointer:
                return None
            return Index(Name(name), OpaqueExpr(at.text()) if at.value is None else number(at.value))

        def settled(s: Stmt) -> Stmt | tuple[Stmt, ...]:
            match s:
                case Declare(name=self.array.name):
                    left = (replace(s, dims=self._left()),) if s.name in used else ()
                    return left if self.pointer else (*left, own)
                case Declare(name=self.pointer):
                    return own
                case Declare() if s.name in self.of.pointers and s.name not in used:
                    return ()
                case For() if not s.pragmas and self.of.is_counted(s) and self._is_index(s, name):
                    return replace(s, pragmas=_UNROLL)
            return s

        return map_stmts(rewrite(self.of.target.kernel.body, change), settled)

    def _used(self) -> frozenset[str]:
        """The array and the pointers that the rest is touched through."""
        found = {p.base for p in self.rest}
        pointers = [s for s in walk_stmts(self.of.target.kernel.body) if isinstance(s, Declare)]
        for s in reversed(pointers):  # what a pointer is made from stands before it
            if s.name in found and s.name in self.of.pointers and s.init is not None:
                found |= names_in(s.init) & self.of.names
        return frozenset(found)

    def _left(self) -> tuple[Expr, ...]:
        """The extents of what stays shared: what lies before the slices, where nothing behind them is used."""
        ends = [span[1] for p in self.rest if (span := p.span(p.at)) is not None]
        return (number(self.low),) if len(self.array.dims) == 1 and max(ends) < self.low else self.array.dims

    def _is_index(self, loop: For, name: str) -> bool:
        """Whether a loop's variable tells which of the thread's elements are touched."""
        indices = (e.index for e in walk_exprs(loop.body) if isinstance(e, Index) and e.base == Name(name))
        return any(loop.var in names_in(self.of.target.known.expand(e)) for e in indices)
