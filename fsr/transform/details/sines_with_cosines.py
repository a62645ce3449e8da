"""sines-with-cosines: the sine and the cosine of one angle in one call.

Both bring the angle into a quarter turn first, which takes most of their time and, of a large angle in double
precision, a table in local memory; ``sincos`` does so once (CUDA Math API, sincos).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.types import DOUBLE, FLOAT, type_of
from fsr.records import Candidate
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    Literal,
    Member,
    Name,
    Return,
    Stmt,
    Unary,
)
from fsr.source.mapping import rewrite, with_blocks
from fsr.source.walk import Block, blocks_of, exprs_of, fresh, names_assigned, names_in, walk_expr, walk_stmts
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

GAIN = 1.15
_BOTH = {
    "sin": "sincos", "cos": "sincos", "sinf": "sincosf", "cosf": "sincosf", "__sinf": "__sincosf",
    "__cosf": "__sincosf", "sinpi": "sincospi", "cospi": "sincospi", "sinpif": "sincospif", "cospif": "sincospif",
}  # fmt: skip
_SINES = frozenset(name for name in _BOTH if "sin" in name)
_OF_SINGLES = {"sincos": "sincosf", "sincospi": "sincospif"}
_NO_POINTERS = ("++", "--", "&", "*")


@dataclass(frozen=True)
class _Pair:
    """Of one ``angle`` what is asked from statement ``first`` of a block to statement ``last``, by one ``call``."""

    first: int
    last: int
    angle: Expr
    call: str


@dataclass(frozen=True, slots=True)
class SinesWithCosines:
    """All such pairs of a kernel."""

    name: str = "sines-with-cosines"
    aims_at: frozenset[str] = frozenset(["compute", "instructions", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One a kernel that has a pair; none under an exact contract."""
        for target in () if subject.contract.tolerance.exact else targets(subject):
            blocks = [target.kernel.body, *(b for s in walk_stmts(target.kernel.body) for b in blocks_of(s))]
            if any(_pair(block, target) for block in blocks):
                yield Move(self.name, target.region, (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with both in one call."""
        target = target_of(subject, move)
        taken = set(target.names)
        return rewritten(target, move, replace(target.kernel, body=_joined(target.kernel.body, target, taken)))


def _joined(block: Block, target: Target, taken: set[str]) -> Block:
    """The block with its pairs joined, the blocks within it too."""
    while (pair := _pair(block, target)) is not None:
        names = list[str]()
        for name in ("sine", "cosine"):
            names.append(fresh(name, taken))
            taken.add(names[-1])
        sine, cosine = map(Name, names)
        type_ = FLOAT if pair.call.endswith("f") else DOUBLE
        outs = (Unary("&", sine), Unary("&", cosine))
        call = ExprStmt(Call(Name(pair.call), (pair.angle, *outs)))
        told = {name: sine if name in _SINES else cosine for name in _BOTH if _called(name, type_) == pair.call}
        part = _told(block[pair.first : pair.last + 1], pair.angle, told)
        made = (Declare(type_, names[0], None), Declare(type_, names[1], None), call)
        block = (*block[: pair.first], *made, *part, *block[pair.last + 1 :])
    return tuple(with_blocks(s, lambda inner: _joined(inner, target, taken)) for s in block)


def _told(block: Block, angle: Expr, told: Mapping[str, Name]) -> Block:
    """The statements with what is known of an angle in place of calls."""

    def change(e: Expr) -> Expr | None:
        match e:
            case Call(Name(name), (one,)) if one == angle:
                return told.get(name)
        return None

    return rewrite(block, change)


def _pair(block: Block, target: Target) -> _Pair | None:
    """The first sine and cosine of one angle that nothing changes between them."""
    open_ = dict[tuple[str, Expr], tuple[int, bool]]()
    shared = {s.name for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and s.qualifiers}
    for at, s in enumerate(block):
        for name, angle in _asked(s):
            call = _called(name, type_of(angle, target.known.types, target.aliases))
            if call is None or not _is_plain(angle) or names_in(angle) & shared:
                continue
            first, is_sine = open_.setdefault((call, angle), (at, name in _SINES))
            if is_sine != (name in _SINES):
                return _Pair(first, at, angle, call)
        gone = names_assigned(s) | {s.name for s in walk_stmts((s,)) if isinstance(s, Declare)}
        open_ = {key: place for key, place in open_.items() if not names_in(key[1]) & gone}
    return None


def _asked(s: Stmt) -> Iterator[tuple[str, Expr]]:
    """Sines and cosines that a statement asks for, once and before it changes anything."""
    if not isinstance(s, Declare | Assign | ExprStmt | Return) or (isinstance(s, Declare) and s.qualifiers):
        return
    for e in exprs_of(s):
        for part in walk_expr(e):
            match part:
                case Call(Name(name), (angle,)) if name in _BOTH:
                    yield name, angle


def _called(name: str, type_: str | None) -> str | None:
    """The function that gives both, of an angle of a type: C++ has one ``sin`` for floats and for doubles."""
    both = _BOTH[name]
    if both not in _OF_SINGLES:
        return both
    return {FLOAT: _OF_SINGLES[both], DOUBLE: both}.get(type_ or "")


def _is_plain(angle: Expr) -> bool:
    """Whether an angle is made of a thread's own numbers alone: no memory, no calls, no changes."""
    return all(
        isinstance(e, Name | Literal | Binary | Cast | Member) or (isinstance(e, Unary) and e.op not in _NO_POINTERS)
        for e in walk_expr(angle)
    )
