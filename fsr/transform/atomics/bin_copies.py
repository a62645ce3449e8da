"""spread-bins: what a block adds up by atomics in its own memory, in several copies side by side, lanes in turn.

Lanes of a warp that meet at one bin wait for each other, and an addition of floats in shared memory is a loop around
compare-and-swap besides: few bins, many equal values or a popular one make that the most of a kernel's time. With C
copies a lane meets a C-th of the others (replication of bins: Gomez-Luna et al., "An optimized approach to histogram
computation on GPU", Machine Vision and Applications 24, 2013). Who reads a bin adds its copies up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from fsr.analysis.calls import ATOMICS, CONSTANTS
from fsr.analysis.operators import BY_ATOMIC
from fsr.analysis.types import bare, number_type
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate, Launch
from fsr.source.arrays import is_only_one
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    For,
    Index,
    Name,
    Stmt,
    Unary,
    number,
)  # fmt: skip
from fsr.source.mapping import rewrite, with_blocks, with_exprs
from fsr.source.types import type_bytes
from fsr.source.walk import (
    Block,
    base_name,
    fresh,
    is_zero,
    names_assigned,
    names_in,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.atomics.global_atomics import address_of
from fsr.transform.fewer.called import folds_of_atomics
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.rows.share import plus, times
from fsr.transform.sizes import always
from fsr.transform.target import Target, target_of, targets
from fsr.transform.thread_number import thread_number

COPIES = (4, 8, 32)
_EXTERN = re.compile(r"\bextern\s+__shared__|__shared__\s+extern")
_GAIN, _STEP = 2.0, 0.1
_TYPES = frozenset(["float", "double", "int", "unsigned int", "unsigned long long"])
_FOLDS: Mapping[str, str] = {
    "sum": "all + copies[c]", "max": "max(all, copies[c])", "min": "min(all, copies[c])",
    "and": "all & copies[c]", "or": "all | copies[c]", "xor": "all ^ copies[c]",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpreadBins:
    """The action."""

    name: str = "spread-bins"
    aims_at: frozenset[str] = frozenset(["atomics", "shared-conflicts"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A number of copies each for which there is room."""
        for target in targets(subject):
            found = _bins(target)
            for rank, copies in enumerate(COPIES if found else ()):
                if _room(target, found, copies, keep_launch=subject.keep_launch):
                    yield Move(self.name, target.region, (("copies", copies),), _GAIN - _STEP * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with that many copies of all bins that its blocks have."""
        target, copies = target_of(subject, move), int(move.param("copies"))
        found = _bins(target)
        made = _Copied(target, found, copies)
        lane = Binary("%", thread_number(target.block or (1, 1, 1)), number(copies))
        body = (Declare("const int", made.copy, lane), *made.written(target.kernel.body))
        kernel = replace(target.kernel, body=body)
        helpers = "\n".join(_helper(fold) for fold in sorted({b.fold for b in found.values() if b.fold}))
        return rewritten(target, move, kernel, launch=lambda old: _with_room(old, found, copies), helpers=helpers)


@dataclass(frozen=True)
class _Bins:
    """An array of the block's, or a pointer into the launch's memory. ``fold``: what all its atomics fold by; '' of
    memory that only begins others."""

    declared: Declare
    fold: str
    launched: bool


def _bins(target: Target) -> dict[str, _Bins]:
    """By name, what blocks add to and do nothing else with but empty and read it; the launch's memory if all of it is
    such."""
    if target.threads is None:
        return {}
    found: dict[str, _Bins] = {}
    for group in _groups(target):
        launched = "extern" in group[0].qualifiers
        ones = {s.name: _Bins(s, _fold(target, s.name), launched) for s in group}
        if any(b.fold for b in ones.values()) and all(_is_plain(target, b) for b in ones.values()):
            made = _Copied(target, ones, COPIES[0])
            made.written(target.kernel.body)
            mentions = [e.text for e in walk_exprs(target.kernel.body) if isinstance(e, Name) and e.text in ones]
            found |= ones if made.handled == len(mentions) else {}
    return found


def _groups(target: Target) -> Iterator[list[Declare]]:
    """Arrays of the block's memory; the launch's with all pointers into it."""
    every = [s for s in walk_stmts(target.kernel.body) if isinstance(s, Declare)]
    for root in (s for s in every if "__shared__" in s.qualifiers):
        group = [root]
        for s in every:
            if "*" in s.type and s.init is not None and base_name(s.init) in {one.name for one in group}:
                group.append(s)
        several = _EXTERN.findall(target.source)
        if (len(several) == 1) if "extern" in root.qualifiers else (len(group) == 1 and len(root.dims) == 1):
            yield group


def _fold(target: Target, name: str) -> str:
    """What the atomics on an array fold by, if all by one; '' where there are none, or several."""
    named = {
        s.expr.callee.text
        for s in walk_stmts(target.kernel.body)
        if isinstance(s, ExprStmt) and (place := _atomic(target, s)) is not None and place[0] == name
        if isinstance(s.expr, Call) and isinstance(s.expr.callee, Name)
    }
    own = {name: BY_ATOMIC[f"atomic{fold}"] for name, fold in folds_of_atomics(target.source).items()}
    folds = {own.get(one, BY_ATOMIC.get(one, "")) for one in named}
    return next(iter(folds)) if len(folds) == 1 else ""


def _is_plain(target: Target, bins: _Bins) -> bool:
    """Whether an array's type may be folded in any order, and nothing moves a pointer or hides the name."""
    s, kernel = bins.declared, target.kernel
    type_ = number_type(bare(s.type), target.aliases)
    ordered = target.exact and bins.fold == "sum" and type_ in ("float", "double")
    if s.name in names_assigned(kernel.body) or not is_only_one(kernel, s) or "volatile" in s.type:
        return False
    return not bins.fold or (type_ in _TYPES and not ordered)


def _atomic(target: Target, s: Stmt) -> tuple[str, Expr] | None:
    """The array and the place that a statement adds to by an atomic function, CUDA's or the usual loop around
    compare-and-swap, whose result nobody uses."""
    match s:
        case ExprStmt(Call(Name(name), (address, _))):
            cudas = name in ATOMICS and name not in target.functions.own
            return address_of(address) if cudas or name in folds_of_atomics(target.source) else None
    return None


# ---------------------------------------------------------------- the text


@dataclass
class _Copied:
    """The kernel's statements with copies of bins. ``handled``: how many mentions of bins were understood."""

    target: Target
    bins: Mapping[str, _Bins]
    copies: int
    handled: int = 0
    copy: str = field(init=False)
    turn: str = field(init=False)

    def __post_init__(self) -> None:
        self.copy = fresh("copy", self.target.names)
        self.turn = fresh("c", {*self.target.names, self.copy})

    def written(self, stmts: Block) -> Block:
        """The statements: declarations with room, atomics on a lane's copy, emptied copies, and sums of them."""
        return tuple(self._statement(s) for s in stmts)

    def _statement(self, s: Stmt) -> Stmt:
        place = _atomic(self.target, s)
        match s:
            case Declare(name=name, init=init) if name in self.bins:
                if "extern" in s.qualifiers:
                    return s  # the launch tells how long it is
                if init is None:
                    return replace(s, dims=tuple(times(d, number(self.copies)) for d in s.dims))
                return replace(s, init=self._begun(init))
            case ExprStmt(Call(callee, (_, value))) if place is not None and place[0] in self.bins:
                at = self._at(place[0], self._read(place[1]), Name(self.copy))
                return ExprStmt(Call(callee, (Unary("&", at), self._read(value))))
            case Assign(Index(Name(name), index), "=", value) if name in self.bins and self._empties(name, value):
                at = self._at(name, self._read(index), Name(self.turn))
                return For("int", self.turn, number(0), "<", number(self.copies), number(1), (Assign(at, "=", value),))
            case Assign(target) if base_name(target) in self.bins:
                return s  # changed by a thread alone: not understood
        return with_blocks(with_exprs(s, self._read), self.written)

    def _begun(self, e: Expr) -> Expr:
        """Where a pointer begins among what is so many times as long."""
        match e:
            case Cast(type_, operand):
                return Cast(type_, self._begun(operand), e.style)
            case Unary("&", Index(base, index)):
                return Unary("&", Index(self._begun(base), times(index, number(self.copies))))
            case Binary("+", base, index):
                return Binary("+", self._begun(base), times(index, number(self.copies)))
        self.handled += isinstance(e, Name)
        return e

    def _at(self, name: str, index: Expr, copy: Expr) -> Index:
        self.handled += 1
        return Index(Name(name), plus(times(index, number(self.copies)), copy))

    def _empties(self, name: str, value: Expr) -> bool:
        """Whether all copies may be set to a value for one: to what adds nothing, or what may be met again."""
        match value:
            case Cast(_, operand) | Call(Name(_), (operand,)) if not isinstance(value, Call) or self._is_type(value):
                return self._empties(name, operand)
        if self.bins[name].fold in ("sum", "xor"):
            return is_zero(value)
        return not names_in(value) - frozenset(self.target.constants) - CONSTANTS and not _calls(value)

    def _is_type(self, e: Call) -> bool:
        return isinstance(e.callee, Name) and (e.callee.text in self.target.type_names or e.callee.text in _TYPES)

    def _read(self, e: Expr) -> Expr:
        return rewrite(e, self._sum)

    def _sum(self, e: Expr) -> Expr | None:
        match e:
            case Unary("&", Index(Name(name), _)) if name in self.bins:
                return e  # an address that goes somewhere: not understood
            case Index(Name(name), index) if name in self.bins and self.bins[name].fold:
                self.handled += 1
                begun = Unary("&", Index(Name(name), times(self._read(index), number(self.copies))))
                return Call(Name(f"{_function(self.bins[name].fold)}<{self.copies}>"), (begun,))
        return None


def _calls(e: Expr) -> bool:
    return any(isinstance(x, Call) for x in walk_expr(e))


def _function(fold: str) -> str:
    return f"fsr_{fold}_of_copies"


def _helper(fold: str) -> str:
    return f"""
// {fold.capitalize()} of the copies of one bin.
template <int COPIES, typename T>
__device__ __forceinline__ T {_function(fold)}(const T *copies)
{{
    T all = copies[0];
#pragma unroll
    for (int c = 1; c < COPIES; c++) all = {_FOLDS[fold]};
    return all;
}}
"""


# ---------------------------------------------------------------- room


def _room(target: Target, found: Mapping[str, _Bins], copies: int, *, keep_launch: bool) -> bool:
    """Whether the copies fit into what any block may have, at all sizes."""
    arrays = [s for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and "__shared__" in s.qualifiers]
    declared = 0
    for s in (s for s in arrays if "extern" not in s.qualifiers):
        count = math.prod(target.known.poly(d, target.numbers).value or 0 for d in s.dims)
        bytes_ = type_bytes(bare(s.type), target.aliases) * count
        if not bytes_:
            return False
        declared += bytes_ * (copies if s.name in found else 1)
    given = _with_room(target.launch, found, copies)
    if keep_launch and given != target.launch:
        return False
    return always(target.contract, f"({given.shared_bytes}) <= {STATIC_SHARED_BYTES - declared}")


def _with_room(old: Launch, found: Mapping[str, _Bins], copies: int) -> Launch:
    """The launch with room for so many times what it gives, where its memory is bins."""
    launched = any(b.launched for b in found.values())
    return replace(old, shared_bytes=f"({old.shared_bytes}) * {copies}") if launched else old
