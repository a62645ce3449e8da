"""sums-before-atomics: what a loop adds to one place by atomics is added up in a register, and once behind the loop.

``for (j ...) if (near) atomicAdd(&force[i], f)`` takes a trip to the L2 cache for every j, as no compiler may leave an
atomic operation out (scalar promotion, as register-promotion does it, for memory that threads share). Nobody may be
able to tell: the results are not used, nothing else in the loop touches that memory but atomics of the same kind,
which come in no order, no thread waits for another one in it, and floating sums may come in another order by the
contract. A variable tells whether a turn added anything: elsewhere the place may be none (``&force[i]`` where ``i``
lies behind the end).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.calls import ATOMICS
from fsr.analysis.operators import BY_ATOMIC
from fsr.analysis.polynomial import Poly
from fsr.records import Candidate
from fsr.source.form import (
    Call,
    Cast,
    Expr,
    ExprStmt,
    For,
    Literal,
    Name,
    Stmt,
    Unary,
    While,
)
from fsr.source.mapping import map_stmts, with_blocks
from fsr.source.walk import Block, base_name, fresh, names_in, names_mentioned, walk_stmts
from fsr.transform.details.register_promotion import Element, Kept
from fsr.transform.gathered import Gathered
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

GAIN = 2.0
_FLOATS = ("float", "double")
_TYPES = frozenset([*_FLOATS, "int", "unsigned", "unsigned int", "unsigned long long", "long long",
                    "int32_t", "uint32_t"])  # fmt: skip
_Place = tuple[str, str, tuple[Poly, ...], str]


@dataclass(frozen=True, slots=True)
class SumsBeforeAtomics:
    """All such atomics of a kernel at once, each behind the outermost loop that lets it."""

    name: str = "sums-before-atomics"
    aims_at: frozenset[str] = frozenset(["latency", "bandwidth", "atomics"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels with a loop that adds to a place which does not change in it."""
        for target in targets(subject):
            if summed(target) != target.kernel.body:
                yield Move(self.name, target.region, (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose loops add up in registers."""
        target = target_of(subject, move)
        return rewritten(target, move, replace(target.kernel, body=summed(target)))


def summed(target: Target) -> Block:
    """The kernel's statements with sums in registers."""
    if not any(a in target.names for a in ATOMICS):
        return target.kernel.body
    return _Loops(Kept(target)).block(target.kernel.body)


@dataclass(frozen=True, slots=True)
class _Added:
    """An atomic statement: ``name`` of the function, the ``address`` and the element there, what is added."""

    name: str
    address: Expr
    element: Element
    value: Expr

    @property
    def place(self) -> _Place:
        """What tells one sum from others."""
        return self.name, self.element.array, self.element.where, self.element.member


@dataclass(frozen=True, slots=True)
class _Loops:
    kept: Kept

    def block(self, body: Block) -> Block:
        """Statements in which loops add up, those in others where these may not."""
        out = list[Stmt]()
        for s in body:
            sums = self._gathered(s) if isinstance(s, For | While) else {}
            loop = self._adding_up(s, sums) if sums else s
            before = (d for one in sums.values() for d in (one.begun, *one.asked))
            out += [*before, with_blocks(loop, self.block), *(one.added for one in sums.values())]
        return body if tuple(out) == body else tuple(out)

    def _gathered(self, loop: For | While) -> dict[_Place, Gathered]:
        waits = any("volatile" in self.kept.types.get(n, "") for n in names_mentioned((loop,)))
        if waits or not self.kept.is_quiet(loop):
            return {}
        every = [a for s in walk_stmts(loop.body) if (a := self._added(s)) is not None]
        sums: dict[_Place, Gathered] = {}
        for a in every:
            if a.place not in sums and self._may_wait(a, every, loop):
                total, told = (self._name(f"{a.element.array}_{word}") for word in (a.element.member or "sum", "any"))
                sums[a.place] = Gathered(a.name, a.address, total, a.element.type, told)
        return sums

    def _name(self, wanted: str) -> str:
        """A name that nothing has yet."""
        self.kept.taken.add(name := fresh(wanted, self.kept.taken))
        return name

    def _adding_up(self, loop: Stmt, sums: Mapping[_Place, Gathered]) -> Stmt:
        """The loop in which variables are added to."""

        def change(s: Stmt) -> Stmt | Block:
            added = self._added(s)
            one = sums.get(added.place) if added is not None else None
            return s if one is None or added is None else one.more(self._as_total(added.value, one.type))

        return map_stmts((loop,), change)[0]

    def _as_total(self, value: Expr, type_: str) -> Expr:
        """What is added, in the type of the sum."""
        same = isinstance(value, Name) and self.kept.types.get(value.text, "").removeprefix("const ") == type_
        return value if same else Cast(type_, value, "static_cast")

    def _added(self, s: Stmt) -> _Added | None:
        match s:
            case ExprStmt(Call(Name(name), (address, value))) if name in BY_ATOMIC:
                array = base_name(address) or ""
                place = address.operand if isinstance(address, Unary) and address.op == "&" else Unary("*", address)
                found = self.kept.element(place, array) if array in self.kept.groups else None
                own = name in self.kept.target.functions.own
                exact = self.kept.target.exact and found is not None and found.type in _FLOATS
                if found is not None and found.type in _TYPES and not own and not exact:
                    return _Added(name, address, found, value)
        return None

    def _may_wait(self, one: _Added, every: list[_Added], loop: For | While) -> bool:
        """Whether nobody can tell when in the loop a place is added to, and it stays the same place."""
        group = self.kept.groups[one.element.array]
        alike = [a for a in every if a.element.array in group]
        if any(BY_ATOMIC[a.name] != BY_ATOMIC[one.name] for a in alike) or not self.kept.is_apart(one.element.array):
            return False
        addresses = {a.address for a in alike}

        def without(s: Stmt) -> Stmt:
            match s:
                case ExprStmt(Call(Name(name), (address, value))) if name in BY_ATOMIC and address in addresses:
                    return ExprStmt(Call(Name(name), (Literal("0"), value)))
            return s

        left = map_stmts((loop,), without)
        inside = [a.element.expr for a in alike]
        reads = any(len(names_in(e) & group) > 1 for e in inside)  # of itself, in an index
        if names_mentioned(left) & group or reads:
            return False
        return self.kept.is_same_place(left, one.element.array, [one.element])
