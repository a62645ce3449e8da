"""What a function divides integers by over and over that stays the same meanwhile, and the statements that divide so by
a reciprocal found once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import partial

from fsr.analysis.definitions import definitions
from fsr.analysis.functions import functions_of
from fsr.analysis.integer_kinds import kinds_of
from fsr.analysis.types import bare
from fsr.source.constants import constant_variables
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.macros import Macro, macros
from fsr.source.mapping import map_stmts, rewrite, with_blocks
from fsr.source.parse import parse_device_functions
from fsr.source.references import by_reference, given_by_reference
from fsr.source.shadows import declared_once
from fsr.source.walk import (
    BUILTINS,
    Block,
    blocks_of,
    exprs_of,
    fresh,
    integer,
    names_assigned,
    names_in,
    names_written,
    opaque_names,
    taken_names,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.details.constant_loops import turns_of
from fsr.transform.details.limits import Limits
from fsr.transform.inlining.calls import result_type

_FUNCTIONS = {"/": "fsr_quotient", "%": "fsr_rest"}
_WORDS = {32: "unsigned int", 64: "unsigned long long"}
_ENOUGH = 3  # divisions that pay for a reciprocal, which takes one: so many in a row, or the turns of a loop
_MANY = (0,) * _ENOUGH  # turns, of loops that have no constant number
_WIDE, _NARROW = 64, 32
_WRITES = re.compile(r"(?<![=!<>])=(?!=)|\+\+|--|[(,=]\s*&")


@dataclass(frozen=True, slots=True)
class Place:
    """A kernel or a function of a text. ``known``: names that stand for numbers which the compiler knows; ``limits``:
    of a kernel's values; None where its contract says nothing of them."""

    form: KernelForm
    source: str
    known: Mapping[str, int]
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class _Way:
    """How divisions by one divisor are done: the divisor as it is spelt before them, in how many bits, and whether
    either operand may be negative."""

    divisor: Expr
    bits: int
    signed: bool


@dataclass(slots=True)
class _Uses:
    """Of a way in some statements: what is divided, and whether that changes from turn to turn of a loop there."""

    divided: set[Expr] = field(default_factory=set)
    turning: bool = False

    @property
    def pays(self) -> bool:
        """Whether there are enough divisions; compilers make one of a quotient and its remainder."""
        return self.turning or len(self.divided) >= _ENOUGH


class Divisors:
    """Takes divisions of one function to reciprocals. ``least``: of how many bits at least. After :meth:`body`,
    ``bits`` holds the width of each division that was taken."""

    def __init__(self, place: Place, least: int = _NARROW) -> None:
        self._place, self._least = place, least
        self.bits = list[int]()
        body = place.form.body
        self._taken = set(taken_names(place.form))
        self._known = definitions(place.form)
        self._kinds = kinds_of(place.form, place.source, lambda name: result_type(name, place.source))
        self._by_reference = by_reference(place.source)
        self._everywhere = {v.name for v in constant_variables(place.source)} - {p.name for p in place.form.params}
        self._loose = self._changed_otherwise()
        changed = names_assigned(body) | given_by_reference(body, self._by_reference)
        own = ((name, s.init) for name, s in declared_once(body).items() if _keeps(s) and name not in changed)
        self._inits = {name: init for name, init in own if init is not None and name not in names_in(init)}

    def body(self) -> Block:
        """The function's statements, with reciprocals before the first division that they serve."""
        form = self._place.form
        if "goto" in self._loose:  # it may not pass a declaration
            return form.body
        return self._block(form.body, frozenset(self._everywhere | {p.name for p in form.params if _holds(p.type)}))

    def _changed_otherwise(self) -> set[str]:
        """What others than assignments may change: by an address or a reference, in text that is not understood, in
        macros and in functions that the file does not define."""
        source, body, writing = self._place.source, self._place.form.body, _writing_macros(self._place.source)
        found = {n for m in writing.values() for n in opaque_names(m.body)}
        for s in walk_stmts(body):
            if isinstance(s, OpaqueStmt):
                found |= opaque_names(s.text)
            elif isinstance(s, Declare) and "&" in s.type and s.init is not None:
                found |= names_in(s.init)
        functions, defined = functions_of(source), parse_device_functions(source)
        for e in walk_exprs(body):
            match e:
                case OpaqueExpr() | Unary("&"):
                    found |= names_in(e)
                case Call(Name(name)) if name not in writing and (
                    functions.only_computes(name) or name in defined or name.startswith(("__", "atomic"))
                ):
                    pass
                case Call(_, args) if self._kinds.of(e) is None or not isinstance(e.callee, Name):
                    found |= {n for a in args for n in names_in(a)}
        return found

    # ------------------------------------------------------------ blocks

    def _block(self, stmts: Block, seen: frozenset[str]) -> Block:
        """``seen``: the variables that statements may name here."""
        rest, found = stmts, list[Stmt]()
        while rest:
            if next(_divisions(rest[:1], self._place.known), None) is not None:
                for count in (len(rest), 1):  # a divisor may change later on
                    made, changed = self._region(rest[:count], seen)
                    found += made
                    rest = (*changed, *rest[count:])
            s, rest = rest[0], rest[1:]
            inner = seen | {s.var} if isinstance(s, For) else seen
            found.append(with_blocks(s, partial(self._block, seen=inner)))
            if isinstance(s, Declare) and _keeps(s):
                seen |= {s.name}
        return tuple(found)

    def _region(self, stmts: Block, seen: frozenset[str]) -> tuple[list[Declare], Block]:
        """The reciprocals of what the first of the statements divides by and none of them changes, and the statements
        with them; none for what only a part of it needs."""
        changed = names_assigned(stmts) | given_by_reference(stmts, self._by_reference)
        fixed = seen - changed - set(variables(stmts)) - self._loose
        every, names, made = self._uses(stmts, fixed), dict[_Way, str](), list[Declare]()
        for way in self._uses(stmts[:1], fixed):
            if not every[way].pays or self._nested(stmts, way, fixed):
                continue
            names[way] = fresh("inverse", self._taken)
            self._taken.add(names[way])
            given = (str(way.signed).lower(), _WORDS[way.bits])
            inverse = Call(Name("fsr_inverse"), (way.divisor,), given)
            made.append(Declare(f"const {_WORDS[way.bits]}", names[way], inverse))
        return made, self._rewritten(stmts, names, fixed) if names else stmts

    def _uses(self, stmts: Block, fixed: Set[str]) -> dict[_Way, _Uses]:
        found = dict[_Way, _Uses]()
        for e, changing in _divisions(stmts, self._place.known):
            way = self._way(e, fixed)
            if way is not None:
                uses = found.setdefault(way, _Uses())
                uses.divided.add(e.left)
                uses.turning |= bool(changing) and _varies(e.left, changing)
        return found

    def _nested(self, stmts: Block, way: _Way, fixed: Set[str]) -> bool:
        """Whether all divisions stand in one branch or scope of the first statement, which may have it as well."""
        first, rest = stmts[0], stmts[1:]
        if not isinstance(first, If | Scope) or (isinstance(first, Scope) and isinstance(first.body[-1], While)):
            return False
        beside = (*rest, *map(ExprStmt, exprs_of(first)))
        return way not in self._uses(beside, fixed) and sum(way in self._uses(b, fixed) for b in blocks_of(first)) == 1

    def _rewritten(self, stmts: Block, names: Mapping[_Way, str], fixed: Set[str]) -> Block:
        def statement(s: Stmt) -> Stmt:
            e = _compound(s)
            way = None if e is None else self._way(e, fixed)
            return replace(s, op="=", value=e) if isinstance(s, Assign) and e is not None and way in names else s

        def change(e: Expr) -> Expr | None:
            way, kind = self._way(e, fixed), self._kinds.of(e)
            if way not in names or way is None or kind is None or not isinstance(e, Binary):
                return None
            self.bits.append(kind.bits)
            operands = (rewrite(e.left, change), e.right, Name(names[way]))
            return Call(Name(_FUNCTIONS[e.op]), operands, (str(way.signed).lower(),))

        return rewrite(map_stmts(stmts, statement), change)

    # ------------------------------------------------------------ one division

    def _way(self, e: Expr, fixed: Set[str]) -> _Way | None:
        """How a division is done by what is known where only ``fixed`` variables may be named; None of all others."""
        if not isinstance(e, Binary) or e.op not in _FUNCTIONS or self._is_constant(e.right):
            return None
        kind, divisor = self._kinds.of(e), self._before(e.right, fixed)
        if kind is None or divisor is None or kind.bits < self._least:
            return None
        operands = (e.left, e.right)
        if kind.bits == _WIDE and all(map(self._small, operands)):
            return _Way(divisor, _NARROW, False)
        return _Way(divisor, kind.bits, kind.signed and not all(map(self._positive, operands)))

    def _is_constant(self, divisor: Expr) -> bool:
        """Whether a compiler knows what divides, and does it better."""
        form, known = self._place.form, self._place.known
        own = {p.name for p in form.params} | set(variables(form.body)) | self._everywhere | BUILTINS
        return not (names_in(self._known.expand(divisor)) & own) - set(known) - set(self._known.values)

    def _before(self, e: Expr, fixed: Set[str]) -> Expr | None:
        """An integer as it may be said before the statements that do not change ``fixed`` variables, and is worth the
        same; None where it reads, calls or divides, or they may change it."""
        match e:
            case Literal() | Member(Name("threadIdx" | "blockIdx" | "blockDim" | "gridDim"), _):
                return e
            case Name(text) if text in fixed:
                return e if self._kinds.of(e) is not None else None
            case Name(text) if text in self._inits and self._kinds.of(e) is not None:
                value = self._before(self._inits[text], fixed)
                plain = bare(self._known.types[text])
                return value if value is None or plain == "auto" else Cast(plain, value)
            case Cast(type_, operand) if self._kinds.of(e) is not None:
                value = self._before(operand, fixed)
                return None if value is None else Cast(type_, value)
            case Binary("+" | "-" | "*" as op, left, right):
                a, b = self._before(left, fixed), self._before(right, fixed)
                return None if a is None or b is None else Binary(op, a, b)
        return None

    def _positive(self, e: Expr) -> bool:
        """Whether an integer is known not to be negative."""
        kind = self._kinds.of(e)
        return kind is not None and (not kind.signed or self._small(e))

    def _small(self, e: Expr) -> bool:
        """Whether an integer is known to be from 0 to 2^32 - 1."""
        kind, limits = self._kinds.of(e), self._place.limits
        if kind is None or (kind.bits <= _NARROW and not kind.signed):
            return kind is not None
        if limits is not None and limits.of(e) is not None:
            return True
        match e:
            case Literal():
                return 0 <= (integer(e) or 0) < 1 << _NARROW
            case Cast(_, operand) if kind.bits == _WIDE:
                return self._small(operand)
            case Name(text) if kind.bits == _WIDE and text in self._inits:
                return self._small(self._inits[text])
            case Binary("%", left, right):
                return self._small(right) and (not kind.signed or self._small(left))
            case Binary("&", left, right):
                return self._small(left) or self._small(right)
            case Binary(">>", left, _):
                return self._small(left)
        return False


def _writing_macros(source: str) -> dict[str, Macro]:
    """The macros of a text that may change a variable, by themselves or by another one."""
    found = {m.name: m for m in macros(source) if _WRITES.search(m.body)}
    while more := {m.name: m for m in macros(source) if m.name not in found and opaque_names(m.body) & found.keys()}:
        found |= more
    return found


def _holds(type_: str) -> bool:
    """Whether a variable of the type has a value of its own, which nobody changes behind its back."""
    return "&" not in type_ and "volatile" not in type_


def _keeps(s: Declare) -> bool:
    """Whether a declaration is of such a variable, of each thread's."""
    return _holds(s.type) and not s.dims and not s.qualifiers


def _divisions(
    stmts: Block, known: Mapping[str, int], changing: frozenset[str] = frozenset()
) -> Iterator[tuple[Binary, frozenset[str]]]:
    """The divisions in statements, and what the loops around each change that turn more than twice."""
    for s in stmts:
        inner = changing
        if isinstance(s, For | While) and not (isinstance(s, For) and len(turns_of(s, known) or _MANY) < _ENOUGH):
            inner = changing | names_written((s,))
        for e in exprs_of(s):
            around = changing if isinstance(s, For) and e is s.start else inner
            yield from ((x, around) for x in walk_expr(e) if isinstance(x, Binary) and x.op in _FUNCTIONS)
        compound = _compound(s)
        if compound is not None:
            yield compound, changing
        for block in blocks_of(s):
            yield from _divisions(block, known, inner)


def _compound(s: Stmt) -> Binary | None:
    """What ``x /= n`` and ``x %= n`` assign to a place that may be named twice; None of other statements."""
    match s:
        case Assign(target, "/=" | "%=" as op, value) if not any(
            isinstance(e, Call | OpaqueExpr) for e in walk_expr(target)
        ):
            return Binary(op[0], target, value)
    return None


def _varies(e: Expr, changing: Set[str]) -> bool:
    """Whether a value may be another one where some variables are."""
    return bool(names_in(e) & changing) or any(isinstance(x, Index | Call | OpaqueExpr) for x in walk_expr(e))
