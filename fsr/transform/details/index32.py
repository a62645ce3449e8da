"""64-bit index arithmetic in 32 bits, where the contract's sizes keep every index below 2^31."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.accesses import accesses
from fsr.analysis.types import FLOATING, type_of
from fsr.records import Candidate
from fsr.source.form import Assign, Binary, Call, Cast, Declare, Expr, For, Index, Literal, Name, Stmt
from fsr.source.mapping import map_expr, map_own_exprs, map_stmts
from fsr.source.walk import Block, base_name, names_in, walk_exprs, walk_stmts
from fsr.transform.details.divided32 import divided
from fsr.transform.details.limits import Limits, is_auto
from fsr.transform.launch.pointwise import pointwise
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, always, largest
from fsr.transform.target import Target, target_of, targets

WIDE = re.compile(r"(const )?(size_t|std::size_t|(unsigned )?long( long)?( int)?|u?int64_t|std::u?int64_t|ptrdiff_t)")
_ARITHMETIC = ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^")
SLACK = 1 << 22  # what a loop variable or a thread of the last block may go beyond its bound
GAIN = 1.05
DIVIDED_GAIN = 1.3  # a 64-bit division takes some seventy instructions, one of 32 bits fifteen


@dataclass(frozen=True, slots=True)
class Index32:
    """Takes widening casts out of indices, and declares ids and loop variables as int."""

    name: str = "index32"
    aims_at: frozenset[str] = frozenset(["instructions", "compute"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels with 64-bit arithmetic that can be shown to stay small."""
        for target in targets(subject):
            if _narrowed(target) != target.kernel.body:
                yield Move(self.name, target.region, (), DIVIDED_GAIN if _divides(target) else GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate in 32 bits."""
        target = target_of(subject, move)
        return rewritten(target, move, replace(target.kernel, body=_narrowed(target)))


def _divides(target: Target) -> bool:
    return any(isinstance(e, Binary) and e.op in ("/", "%") for e in walk_exprs(target.kernel.body))


def _narrowed(target: Target) -> Block:
    limits = Limits(target, INT_LIMIT - SLACK)
    narrow = replace(target, kernel=replace(target.kernel, body=_narrow(target)))
    return divided(target, _by_values(narrow, Limits(narrow, INT_LIMIT - SLACK)), limits)


def _by_values(target: Target, limits: Limits) -> Block:
    """The statements with 64-bit variables as int where neither they nor what is made of them goes beyond 32 bits or
    below nought, by the ranges of all that they are made of. An ``auto`` that is made of such and that more is made of
    says what it was."""
    body = target.kernel.body
    declared = [s for s in walk_stmts(body) if isinstance(s, Declare)]
    types = {p.name: p.type for p in target.kernel.params} | {s.name: s.type for s in declared}
    wide = {s.name: s for s in declared if WIDE.fullmatch(s.type) or is_auto(s)}
    small = {n for n, s in wide.items() if s.init is not None and limits.of(Name(n)) is not None}
    uses = [e for e in walk_exprs(body) if isinstance(e, Binary) and e.op in _ARITHMETIC]
    small -= {n for e in uses for n in _operands(e) & small if not _fits(e, limits, types, target)}

    def change(s: Stmt) -> Stmt:
        if not isinstance(s, Declare) or s.init is None or wide.get(s.name) != s:
            return s
        if s.name in small and not is_auto(s):
            return replace(s, type=_int(s.type), init=map_expr(s.init, _without_cast))
        return replace(s, type=_said(s, wide)) if s.name not in small and is_auto(s) else s

    return map_stmts(body, change)


def _said(s: Declare, wide: Mapping[str, Declare]) -> str:
    """The type that an ``auto`` has from the variables in its value; ``auto`` where these do not say."""
    made_of = [wide[n] for n in sorted(_operands(s.init or Literal("0"))) if n in wide and n != s.name]
    said = [t for x in made_of if "auto" not in (t := _said(x, wide) if is_auto(x) else x.type)]
    return said[0] if said else s.type


def _operands(e: Expr) -> frozenset[str]:
    """The variables that arithmetic is made of without a conversion on the way."""
    match e:
        case Name(text):
            return frozenset([text])
        case Binary(op, left, right) if op in _ARITHMETIC:
            return _operands(left) | _operands(right)
    return frozenset()


def _fits(e: Binary, limits: Limits, types: Mapping[str, str], target: Target) -> bool:
    """Whether arithmetic stays within what int holds, is of floats, or moves a pointer by what fits."""
    if any("*" in types.get(n, "") for n in _operands(e)):
        return all("*" in types.get(base_name(x) or "", "") or limits.of(x) is not None for x in (e.left, e.right))
    kind = type_of(e, types, target.aliases)
    return kind in FLOATING or limits.signed(e) is not None


def _narrow(target: Target) -> Block:
    small = {p.name for p in target.kernel.params if p.is_pointer and _is_small(target, p.name)}
    ids, only_indices = _small_ids(target), _all_small(target, small)

    def index(e: Expr) -> Expr:
        match e:
            case Index(Name(array), at) if array in small and _grows(target, at):
                return Index(Name(array), map_expr(at, _without_cast))
        return e

    def change(s: Stmt) -> Stmt:
        s = map_own_exprs(s, index)
        match s:
            case Assign(Name(array), "+=", value) if array in small and _grows(target, value):
                return replace(s, value=map_expr(value, _without_cast))
            case Declare() if s.name in ids and WIDE.fullmatch(s.type) and only_indices and s.init is not None:
                return replace(s, type=_int(s.type), init=map_expr(s.init, _without_cast))
            case For(type=str() as type_) if WIDE.fullmatch(type_) and only_indices and _small_loop(target, s):
                return replace(s, type="int", start=map_expr(s.start, _without_cast))
        return s

    return map_stmts(target.kernel.body, change)


def _int(type_: str) -> str:
    return "const int" if type_.startswith("const ") else "int"


def _without_cast(e: Expr) -> Expr:
    match e:
        case Cast(type_, operand) if WIDE.fullmatch(type_):
            return operand
        case Call(Name(type_), (operand,), ()) if WIDE.fullmatch(type_):
            return operand
    return e


def _is_small(target: Target, parameter: str) -> bool:
    """Whether every element of the buffer has an index below 2^31."""
    count = target.elements(parameter)
    most = None if count is None else largest(target.contract, count)
    return most is not None and most <= INT_LIMIT - SLACK


def _grows(target: Target, index: Expr) -> bool:
    """Whether an index is a sum of products of values that are never negative: then no part of it is larger than
    it, and it is below 2^31 because it lies inside its buffer."""
    poly = target.poly(index)
    return all(f > 0 for _, f in poly.terms) and all(_nonnegative(target, s) for s in poly.symbols)


def _nonnegative(target: Target, symbol: str) -> bool:
    """Whether a symbol is a thread's place, a size, or a loop variable that counts up from such."""
    if re.fullmatch(r"(threadIdx|blockIdx|blockDim|gridDim)\.[xyz]", symbol):
        return True
    starts = [s.start for s in walk_stmts(target.kernel.body) if isinstance(s, For) and s.var == symbol]
    if starts:
        return all(symbol not in names_in(e) and _grows(target, e) for e in starts)
    text = target.size_text(Name(symbol))
    return text is not None and always(target.contract, f"({text}) >= 0")


def _small_ids(target: Target) -> set[str]:
    """Global ids whose bound leaves room below 2^31 for the threads beyond it."""
    point = pointwise(target)
    if point is None:
        return set()
    found = set[str]()
    for axis, one in point.ids.items():
        most = largest(target.contract, point.bounds[axis][1])
        if most is not None and most <= INT_LIMIT - SLACK:
            found.add(one.name)
    return found


def _small_loop(target: Target, loop: For) -> bool:
    text = target.size_text(loop.bound)
    most = None if text is None else largest(target.contract, text)
    step = target.poly(loop.step)
    if most is None or most > INT_LIMIT - SLACK or loop.relation not in ("<", "<="):
        return False
    return all(f > 0 for _, f in step.terms) and bool(step.terms) and _small_step(step.symbols)


def _small_step(symbols: frozenset[str]) -> bool:
    """Whether a stride can only be made of the block and the grid, which SLACK allows for."""
    return symbols <= {"blockDim.x", "gridDim.x"}


def _all_small(target: Target, small: set[str]) -> bool:
    """Whether 64-bit variables serve only as indices of small buffers and in comparisons."""
    wide = {s.name for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and WIDE.fullmatch(s.type)}
    wide |= {s.var for s in walk_stmts(target.kernel.body) if isinstance(s, For) and WIDE.fullmatch(s.type or "")}
    if any(a.array not in small and a.array not in target.known.shared for a in accesses(target.kernel)):
        return False
    if any(isinstance(s, Assign) and names_in(s.target) & wide and not isinstance(s.target, Index) for s in
           walk_stmts(target.kernel.body)):  # fmt: skip
        return False

    def hide(e: Expr) -> Expr:
        match e:
            case Index(base, at) if _grows(target, at):
                return base
            case Binary("<" | ">" | "<=" | ">=" | "==" | "!=", Name(), Name() | Literal()):
                return Literal("0")
        return e

    left = map_stmts(target.kernel.body, lambda s: () if isinstance(s, Declare) and s.name in wide else s)
    left = map_stmts(left, lambda s: replace(s, start=Literal("0")) if isinstance(s, For) else s, hide)
    loose = {n for e in walk_exprs(left) for n in names_in(e)}
    bounds = {n for s in walk_stmts(left) if isinstance(s, For) for n in names_in(s.bound) | names_in(s.step)}
    return not (loose | bounds) & wide
