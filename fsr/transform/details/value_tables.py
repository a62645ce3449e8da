"""value-tables: what is computed of a byte, or of the difference of two, is looked up.

A weight of a filter, a gamma curve or a tone map is a function of a pixel's value, which has 256 of them, and costs an
exponential or a power at each of thousands of pixels a block. Each block finds all values once, by the same expression,
and looks them up in shared memory: the results have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.integer_kinds import kinds_of
from fsr.analysis.types import DOUBLE, FLOAT, INT, bare, type_of
from fsr.hardware.c_types import element_bytes
from fsr.records import Candidate
from fsr.source.arrays import shared_on_top
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    For,
    Index,
    Literal,
    Name,
    Stmt,
    Unary,
    While,
    number,
)
from fsr.source.mapping import rewrite, with_parts
from fsr.source.shadows import declared_once
from fsr.source.walk import (
    BARRIER,
    Block,
    contains_opaque,
    exprs_of,
    fresh,
    integer,
    names_changed,
    names_in,
    subexprs,
    variables,
    walk_expr,
    walk_stmts,
)
from fsr.transform.details.shared_tables import MOST_BYTES
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets
from fsr.transform.thread_number import THREAD, THREADS

MOST_TABLES = 4
_GAIN = 2.5
_BYTE, _WORD = 8, 32  # bits of what has few values, and of what these are computed in
_DEAR = frozenset((
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan", "sinh", "cosh",
    "tanh", "asin", "acos", "atan", "atan2", "cbrt", "erf", "erfc", "sqrt", "rsqrt", "hypot",
))  # fmt: skip
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Found:
    """An expression of ``index``, an integer from ``range``, and of what no thread changes; ``type`` of its value.
    ``value``: the same with variables written out."""

    whole: Expr
    value: Expr
    index: Expr
    range: Range
    type: str

    @property
    def count(self) -> int:
        return self.range[1] - self.range[0] + 1


class ValueTables:
    """Tables of all such expressions that stand in loops."""

    name = "value-tables"
    aims_at = frozenset({"compute", "instructions", "latency"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels whose loops compute a dear function of few values."""
        for target in targets(subject):
            if _found(target):
                yield Move(self.name, target.region, (), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose blocks have the tables."""
        target = target_of(subject, move)
        taken, tables, filled = set(target.names), dict[Expr, Expr](), list[Stmt]()
        for found in _found(target):
            table, at = (fresh(text, taken) for text in ("values", "value"))
            taken |= {table, at}
            least = found.range[0]
            shift = Binary("+", found.index, number(-least)) if least else found.index
            tables[found.whole] = Index(Name(table), shift)
            own = Binary("-", Name(at), number(-least)) if least else Name(at)
            value = rewrite(found.value, lambda e, found=found, own=own: own if e == found.index else None)
            filled.append(Declare(found.type, table, None, (number(found.count),), ("__shared__",)))
            filled.append(For("int", at, THREAD, "<", number(found.count), THREADS, (
                Assign(Index(Name(table), Name(at)), "=", value),)))  # fmt: skip
        shared = shared_on_top(target.kernel.body) or ()
        rest = tuple(s for s in target.kernel.body if not any(s is one for one in shared))
        told = Comment("// all that a byte, or a difference of bytes, can come to")
        body: Block = (*shared, told, *filled, BARRIER, *rewrite(rest, tables.get))
        return rewritten(target, move, replace(target.kernel, body=body))


def _found(target: Target) -> tuple[_Found, ...]:
    """The expressions in loops that get a table; none where the kernel holds what is not understood."""
    body = target.kernel.body
    if contains_opaque(body) or shared_on_top(body) is None:
        return ()
    search, found = _Search(target), dict[Expr, _Found]()
    for loop in (s for s in walk_stmts(body) if isinstance(s, For | While)):
        for s in walk_stmts(loop.body):
            for e in exprs_of(s):
                for one in search.within(e):
                    found.setdefault(one.whole, one)
    chosen = tuple(found.values())[:MOST_TABLES]
    size = sum(one.count * (element_bytes(one.type) or MOST_BYTES) for one in chosen)
    return chosen if size <= MOST_BYTES else ()


class _Search:
    def __init__(self, target: Target) -> None:
        body = target.kernel.body
        self.kinds, self.aliases = kinds_of(target.kernel, target.source), target.aliases
        self.functions, self.changed = target.functions, names_changed(body)
        own = set(variables(body))
        params = (p.name for p in target.kernel.params if not p.is_pointer and "&" not in p.type)
        self.fixed = {name for name in params if name not in self.changed | own}
        self.inits = {
            name: s.init
            for name, s in declared_once(body).items()
            if s.init is not None and not s.dims and name not in self.changed
        }

    def within(self, e: Expr) -> Iterator[_Found]:
        """The largest such expressions in one."""
        found = self._of(e)
        if found is not None:
            yield found
            return
        for part in subexprs(e):
            yield from self.within(part)

    def _of(self, e: Expr) -> _Found | None:
        type_ = self._type(e)
        if type_ not in (FLOAT, DOUBLE) or not any(map(_dear, walk_expr(e))):
            return None
        value, indices = self._written_out(e), set[Expr]()
        if not self._collected(value, indices) or len(indices) != 1:
            return None
        (index,) = indices
        range_ = self.range(index)
        # What it was declared with stands elsewhere: there must be no other value between.
        if range_ is None or (value != e and names_in(index) & self.changed):
            return None
        return _Found(e, value, index, range_, type_)

    def _type(self, e: Expr) -> str | None:
        """As type_of, of CUDA's overloaded functions too: a double's where an argument is one, or an integer alone."""
        match e:
            case Call(Name(text), args, ()) if self.functions.builtin(text) and text.removeprefix("std::") in _DEAR:
                kinds = {self._type(a) for a in args}
                if None in kinds or kinds == {INT, FLOAT}:
                    return None
                return FLOAT if kinds == {FLOAT} else DOUBLE
            case Unary("-" | "+", part):
                return self._type(part)
            case Binary("+" | "-" | "*" | "/", left, right):
                kinds = {self._type(left), self._type(right)}
                return None if None in kinds else next(k for k in (DOUBLE, FLOAT, INT) if k in kinds)
        return type_of(e, self.kinds.types, self.aliases)

    def _written_out(self, e: Expr) -> Expr:
        """With floating variables as what they are declared as."""
        if isinstance(e, Name) and e.text in self.inits:
            init, type_ = self.inits[e.text], self.kinds.types.get(e.text, "")
            if type_of(e, self.kinds.types, self.aliases) in (FLOAT, DOUBLE):
                return Cast(bare(type_), self._written_out(init))
        return with_parts(e, self._written_out)

    def _collected(self, e: Expr, indices: set[Expr]) -> bool:
        """Whether it is made of an integer of few values, what no thread changes, and functions that merely compute;
        ``indices``: the integers."""
        if integer(e) is None and self.range(e) is not None:
            indices.add(e)
            return True
        match e:
            case Literal():
                return True
            case Name(text):
                return text in self.fixed
            case Unary("-" | "+", part) | Cast(_, part):
                return self._collected(part, indices)
            case Binary("+" | "-" | "*" | "/", left, right):
                return self._collected(left, indices) and self._collected(right, indices)
            case Call(Name(text), args, ()):
                return self.functions.builtin(text) and all(self._collected(a, indices) for a in args)
        return False

    def range(self, e: Expr) -> Range | None:
        """From where to where the values of an integer expression go; None where they may be many."""
        value = integer(e)
        if value is not None:
            return value, value
        match e:
            case Binary("+" | "-" as op, left, right):
                a, b = self.range(left), self.range(right)
                if a is None or b is None:
                    return None
                return (a[0] + b[0], a[1] + b[1]) if op == "+" else (a[0] - b[1], a[1] - b[0])
            case Call(Name("abs"), (operand,), ()):
                a = self.range(operand)
                return None if a is None else (0, max(abs(a[0]), abs(a[1])))
        kind = self.kinds.of(e)
        if kind is not None and kind.bits <= _BYTE and isinstance(e, Name | Index | Cast):
            return (-(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1) if kind.signed else (0, (1 << kind.bits) - 1)
        wide = kind is not None and kind.bits >= _WORD and kind.signed
        if wide and isinstance(e, Name) and e.text in self.inits:
            return self.range(self.inits[e.text])
        return self.range(e.operand) if wide and isinstance(e, Cast) else None


def _dear(e: Expr) -> bool:
    text = e.callee.text.removeprefix("std::") if isinstance(e, Call) and isinstance(e.callee, Name) else ""
    return text in _DEAR or (text.endswith("f") and text[:-1] in _DEAR)
