"""How large integers in a kernel get, over all sizes that its contract allows: what 32 bits can hold."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from fsr.analysis.polynomial import Poly, constant
from fsr.analysis.types import integer_bytes, resolved
from fsr.records import Role
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    For,
    Index,
    Literal,
    Member,
    Name,
    Param,
    Stmt,
    Ternary,
)
from fsr.source.mapping import map_stmts
from fsr.source.walk import Block, base_name, integer, names_assigned, names_in, variables, walk_stmts
from fsr.transform.sizes import always, largest
from fsr.transform.target import Target

Range = tuple[int, int]


@dataclass(frozen=True)
class Limits:
    """``most``: what counts as too large. Only values that are never negative have a range here."""

    target: Target
    most: int

    def of(self, e: Expr) -> Range | None:
        """The least and the largest value; None where it is not known, or may be negative or too large."""
        if e not in self._known:
            self._known[e] = None  # as long as it is not known: of variables that are divided by each other
            found = self._of(e)
            self._known[e] = found if found is not None and 0 <= found[0] <= found[1] <= self.most else None
        return self._known[e]

    def signed(self, e: Expr) -> Range | None:
        """The least and the largest value of a sum, which may be negative where its type has a sign; None where it is
        not known, or beyond what counts as too large to either side."""
        if e not in self._sums:
            found = self.of(e)
            if found is None and isinstance(e, Binary) and e.op in ("+", "-") and self._has_sign(e):
                found = self._sum(e)
            near = found is not None and -self.most <= found[0] <= found[1] <= self.most
            self._sums[e] = found if near else None
        return self._sums[e]

    def _sum(self, e: Binary) -> Range | None:
        a, b = self.signed(e.left), self.signed(e.right)
        if a is None or b is None:
            return None
        return (a[0] + b[0], a[1] + b[1]) if e.op == "+" else (a[0] - b[1], a[1] - b[0])

    def _has_sign(self, e: Expr) -> bool:
        """Whether an integer is of a type with a sign whatever stands around it: without one, ``x - 1 + n`` is another
        number where ``n`` has more bits than ``x``."""
        match e:
            case Literal(text):
                return text.isdigit()
            case Name(text):
                return resolved(self._types.get(text, "").removeprefix("const "), self.target.aliases) in _WITH_SIGN
            case Binary("+" | "-" | "*" | "/" | "%", left, right):
                return self._has_sign(left) and self._has_sign(right)
            case Cast(type_, _):
                return resolved(type_, self.target.aliases) in _WITH_SIGN
        return False

    @cached_property
    def _types(self) -> Mapping[str, str]:
        return declared_types(self.target.kernel.params, self.target.kernel.body)

    @cached_property
    def _sums(self) -> dict[Expr, Range | None]:
        """What was found out about sums that may be negative."""
        return {}

    @cached_property
    def _known(self) -> dict[Expr, Range | None]:
        """What was found out: each step of a mixing of bits is made of the one before several times."""
        return {}

    @cached_property
    def _declared(self) -> Mapping[str, Declare]:
        """Variables that have one value."""
        found: dict[str, Declare] = {}
        twice = set[str]()
        for s in walk_stmts(self.target.kernel.body):
            if isinstance(s, Declare):
                twice |= {s.name} & set(found)
                found[s.name] = s
        changed = names_assigned(self.target.kernel.body) | twice
        return {n: s for n, s in found.items() if n not in changed and not s.dims and s.init is not None}

    @cached_property
    def _divided(self) -> Mapping[str, tuple[Declare, list[Expr]]]:
        """Variables that are only divided after their declaration, and by what: what is left of an index that is taken
        apart, ``w = rest % width; rest /= width;``."""
        by: dict[str, list[Expr]] = {}
        for s in walk_stmts(self.target.kernel.body):
            step = _division(s)
            if step is not None:
                by.setdefault(step[0], []).append(step[1])
        rest = map_stmts(self.target.kernel.body, lambda s: () if _division(s) is not None else s)
        names, changed = variables(rest), names_assigned(rest)
        found = [s for s in walk_stmts(rest) if isinstance(s, Declare) and s.name in by and s.init is not None]
        return {s.name: (s, by[s.name]) for s in found
                if names.count(s.name) == 1 and s.name not in changed and not s.dims}  # fmt: skip

    @cached_property
    def _loops(self) -> Mapping[str, list[For]]:
        """Loops that count up, by the names of their variables, which nothing else is called or changes."""
        found = dict[str, list[For]]()
        for s in walk_stmts(self.target.kernel.body):
            if isinstance(s, For):
                found.setdefault(s.var, []).append(s)
        body = self.target.kernel.body
        other = names_assigned(body) | {s.name for s in walk_stmts(body) if isinstance(s, Declare)}
        up = {n: all(s.type and s.relation in ("<", "<=") for s in loops) for n, loops in found.items()}
        return {n: loops for n, loops in found.items() if up[n] and n not in other}

    def _of(self, e: Expr) -> Range | None:
        value = integer(e)
        if value is not None:
            return value, value
        match e:
            case Member(base=Name(text=text), name=axis) if text in _BUILTINS:
                return self._builtin(text, "xyz".index(axis))
            case Cast(type_, operand) if (integer_bytes(resolved(type_, self.target.aliases)) or 0) >= 4:
                return self.of(operand)
            case Name(text=name) if name in self._declared:
                return self._variable(self._declared[name])
            case Name(text=name) if name in self._divided:
                return self._left(*self._divided[name])
            case Name(text=name) if name in self._loops:
                return self._counted(self._loops[name])
            case Index():
                return self._read(e)
            case Ternary(_, yes, no):
                a, b = self.of(yes), self.of(no)
                return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))
            case Call(Name("min" | "max" as which), (left, right)):
                a, b = self.of(left), self.of(right)
                pick = min if which == "min" else max
                return None if a is None or b is None else (pick(a[0], b[0]), pick(a[1], b[1]))
        return self._size(e) or self._remainder(e) or (self._binary(e) if isinstance(e, Binary) else None)

    def _size(self, e: Expr) -> Range | None:
        made_of = [self._declared[n].init for n in names_in(e) & set(self._declared)]
        if any(x is not None and names_in(x) & set(self._declared) for x in made_of):
            return None  # written out, steps that are made of one another grow without end
        text = self.target.size_text(e)
        most = None if text is None else largest(self.target.contract, text)
        if text is None or most is None or not always(self.target.contract, f"({text}) >= 0"):
            return None
        return int(always(self.target.contract, f"({text}) >= 1")), most

    def _builtin(self, name: str, axis: int) -> Range | None:
        launch = self.target.launch
        most = largest(self.target.contract, (launch.block if name in ("threadIdx", "blockDim") else launch.grid)[axis])
        if most is None:
            return None
        return (0, most - 1) if name in ("threadIdx", "blockIdx") else (1, most)

    def _variable(self, s: Declare) -> Range | None:
        wide = is_auto(s) or (integer_bytes(resolved(s.type, self.target.aliases)) or 0) >= 4
        return self.of(s.init) if wide and s.init is not None else None

    def _left(self, s: Declare, by: Sequence[Expr]) -> Range | None:
        """What a variable holds that is divided by some values, which may be made of it no more."""
        start, divisors = self._variable(s), [self.of(e) for e in by]
        if start is None or any(d is None or d[0] < 1 for d in divisors):
            return None
        return 0, start[1]

    def _counted(self, loops: Sequence[For]) -> Range | None:
        """What the variable of some loops holds, whichever is meant."""
        known = [[self.of(e) for e in (s.start, s.bound, s.step)] for s in loops]
        parts = [(start[0], bound[1] + step[1]) for start, bound, step in known if start and bound and step]
        return (min(p[0] for p in parts), max(p[1] for p in parts)) if len(parts) == len(loops) else None

    def _read(self, e: Index) -> Range | None:
        """What an input holds, by the contract."""
        argument = self.target.argument(base_name(e) or "")
        high = None if argument is None or argument.role is not Role.IN else argument.constraints.high
        most = None if high is None else largest(self.target.contract, high)
        low = None if argument is None else argument.constraints.low
        unsigned = argument is not None and argument.dtype.startswith("uint")
        if argument is None or most is None or "int" not in argument.dtype:
            return None
        return (0, most) if unsigned or (low is not None and always(self.target.contract, f"({low}) >= 0")) else None

    def _remainder(self, e: Expr) -> Range | None:
        """What is left of a division by hand: ``a - q * b`` where q is a / b."""
        match e:
            case Binary("-", a, Binary("*", left, right)):
                for q, b in ((left, right), (right, left)):
                    told = self._declared[q.text].init if isinstance(q, Name) and q.text in self._declared else q
                    if told == Binary("/", a, b) and not (names_in(told) & set(self._divided)):
                        return self.of(Binary("%", a, b))
        return None

    def _product(self, e: Binary) -> Range | None:
        """Of all factors at once: a quotient a / b times b is at most a, however large either may be."""
        factors = _factors(e)
        ranges = [self.of(f) for f in factors]
        known = [r for r in ranges if r is not None]
        if len(known) < len(ranges):
            return None
        most = math.prod(high for _, high in known)
        for n, factor in enumerate(factors):
            rest = _product_of(map(self.target.known.poly, (*factors[:n], *factors[n + 1 :])))
            wholes = (self.of(over) for over, by in self._quotients(factor) if by == rest)
            most = min([most, *(a[1] for a in wholes if a is not None)])
        return math.prod(low for low, _ in known), most

    def _quotients(self, e: Expr) -> Iterator[tuple[Expr, Poly]]:
        """What a value is the quotient of, and by what: of ``a / b / c`` a / b by c, and a by b * c."""
        told = self._declared[e.text].init if isinstance(e, Name) and e.text in self._declared else e
        if isinstance(told, Binary) and told.op == "/" and not names_in(told) & set(self._divided):
            by = self.target.known.poly(told.right)
            yield told.left, by
            yield from ((over, by * more) for over, more in self._quotients(told.left))

    def _binary(self, e: Binary) -> Range | None:
        if e.op in ("+", "-"):
            return self._sum(e)
        if e.op == "*":
            return self._product(e)
        a, b = self.of(e.left), self.of(e.right)
        if a is None or b is None:
            return None
        match e.op:
            case "/" if b[0] >= 1:
                return a[0] // b[1], a[1] // b[0]
            case "%" if b[0] >= 1:
                return 0, min(a[1], b[1] - 1)
            case ">>" if b[1] < 64:
                return a[0] >> b[1], a[1] >> b[0]
            case "&":
                return 0, min(a[1], b[1])
        return None


def declared_types(params: Iterable[Param], body: Block) -> dict[str, str]:
    """The types of parameters, variables and loops, as declared; '' of a name that stands for two, of which it is not
    known which is meant."""
    found = {p.name: p.type for p in params}
    for s in walk_stmts(body):
        name, type_ = (s.name, s.type) if isinstance(s, Declare) else ("", "")
        if isinstance(s, For) and s.type:
            name, type_ = s.var, s.type
        if name:
            found[name] = type_ if found.get(name, type_) == type_ else ""
    return found


def _factors(e: Expr) -> list[Expr]:
    return [*_factors(e.left), *_factors(e.right)] if isinstance(e, Binary) and e.op == "*" else [e]


def _product_of(polys: Iterable[Poly]) -> Poly:
    return reduce(operator.mul, polys, constant(1))


def _division(s: Stmt) -> tuple[str, Expr] | None:
    """The variable that a statement divides, or leaves the remainder of, and by what; None of another statement."""
    match s:
        case Assign(Name(name), "/=" | "%=", by):
            return name, by
        case Assign(Name(name), "=", Binary("/" | "%", Name(same), by)) if name == same:
            return name, by
    return None


def is_auto(s: Declare) -> bool:
    """Whether a variable has the type of its value."""
    return s.type.removeprefix("const ") == "auto"


_WITH_SIGN = ("int", "long", "long int", "long long", "long long int")
_BUILTINS = ("threadIdx", "blockIdx", "blockDim", "gridDim")
