"""Integer expressions as polynomials over symbols: what proves that an access is affine, and coalesced.

``row * cols + j`` with ``row = blockIdx.x * blockDim.x + threadIdx.x`` becomes ``blockDim.x * blockIdx.x * cols
+ cols * threadIdx.x + j``. A symbol is a name (``row``), a built-in (``threadIdx.x``), or the text in braces of a
subexpression that is no polynomial (``{i / n}``). Arithmetic is that of unbounded integers, and casts to integers of at
least 32 bits are looked through: where the original does not overflow, neither does its polynomial.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fsr.analysis.types import is_integer
from fsr.source.emit import emit_expr
from fsr.source.form import Binary, Call, Cast, Expr, Member, Name, Unary
from fsr.source.walk import integer

Monomial = tuple[str, ...]  # its symbols, sorted; () is the constant
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.\w+)?")


@dataclass(frozen=True, slots=True)
class Poly:
    """A sum of integer multiples of products of symbols; ``terms`` sorted, without zero coefficients."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    def __add__(self, other: Poly) -> Poly:
        return _collect([*self.terms, *other.terms])

    def __neg__(self) -> Poly:
        return Poly(tuple((m, -x) for m, x in self.terms))

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    def __mul__(self, other: Poly) -> Poly:
        return _collect([(tuple(sorted(a + b)), x * y) for a, x in self.terms for b, y in other.terms])

    @property
    def value(self) -> int | None:
        """The number it is, None when symbols remain."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () and len(self.terms) == 1 else None

    @property
    def constant(self) -> int:
        """The number among its terms; 0 where there is none."""
        return dict(self.terms).get((), 0)

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols with a part in the value."""
        return frozenset(s for monomial, _ in self.terms for s in monomial)

    @property
    def single(self) -> str | None:
        """The symbol when it is one symbol alone."""
        one = len(self.terms) == 1 and len(self.terms[0][0]) == 1 and self.terms[0][1] == 1
        return self.terms[0][0][0] if one else None

    def names(self) -> frozenset[str]:
        """Every identifier that the value depends on, those inside opaque symbols too (``threadIdx.x`` is one)."""
        return frozenset(n for s in self.symbols for n in (_inner(s) if s[0] == "{" else [s]))

    def depends_on(self, names: Iterable[str]) -> bool:
        """Whether the value depends on any of the names, or on a member of one (``threadIdx`` of ``threadIdx.x``)."""
        own = self.names()
        return not frozenset(names).isdisjoint(own | {n.split(".")[0] for n in own})

    def coefficient(self, symbol: str) -> Poly | None:
        """The factor of ``symbol`` when the polynomial is linear in it (0 when absent); None when it is not."""
        if any(m.count(symbol) > 1 or any(s != symbol and symbol in _inner(s) for s in m) for m, _ in self.terms):
            return None
        return _collect([(_without(m, (symbol,)) or (), x) for m, x in self.terms if symbol in m])

    def without(self, symbol: str) -> Poly:
        """The terms that do not hold ``symbol`` as a factor."""
        return _collect([(m, x) for m, x in self.terms if symbol not in m])

    def over(self, other: Poly) -> Poly | None:
        """The exact quotient by a single-term polynomial; None when it does not divide every term."""
        if len(other.terms) != 1:
            return None
        monomial, count = other.terms[0]
        left = [(_without(own, monomial), own_count) for own, own_count in self.terms]
        if any(rest is None or own_count % count for rest, own_count in left):
            return None
        return _collect([(rest, own_count // count) for rest, own_count in left if rest is not None])

    def replace(self, old: Poly, new: Poly) -> Poly:
        """With the one- or two-term sum ``old`` taken out and ``new`` put in, as often as it fits whole."""
        lead, lead_count = old.terms[0]
        result, have = self, dict(self.terms)
        for monomial, count in self.terms:
            rest = _without(monomial, lead)
            if rest is not None:
                factor = _collect([(rest, count // lead_count)])
                if all(have.get(m) == x for m, x in (old * factor).terms):
                    result = result + (new - old) * factor
        return result

    def text(self) -> str:
        """As a C expression, positive terms first."""
        parts: list[str] = []
        for monomial, x in sorted(self.terms, key=lambda t: (t[1] < 0, -len(t[0]), t[0])):
            factors = [s if s[0] != "{" else f"({s[1:-1]})" for s in monomial]
            factors = ([] if abs(x) == 1 and factors else [str(abs(x))]) + factors
            sign = "-" if x < 0 else "+"
            parts.append((f"{sign} " if parts else "-" if x < 0 else "") + " * ".join(factors))
        return " ".join(parts) or "0"


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """The product without the factors of another; None when they are not all in it."""
    left = list(monomial)
    for symbol in part:
        if symbol not in left:
            return None
        left.remove(symbol)
    return tuple(left)


def _inner(symbol: str) -> list[str]:
    return _IDENTIFIER.findall(symbol) if symbol[0] == "{" else []


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Poly:
    sums: dict[Monomial, int] = {}
    for monomial, x in terms:
        sums[monomial] = sums.get(monomial, 0) + x
    return Poly(tuple(sorted((m, x) for m, x in sums.items() if x)))


def constant(value: int) -> Poly:
    """The polynomial that is a number."""
    return Poly((((), value),) if value else ())


def symbol(name: str) -> Poly:
    """The polynomial that is one symbol."""
    return Poly((((name,), 1),))


def polynomial(expr: Expr, known: Mapping[str, Poly] | Callable[[str], Poly | None]) -> Poly:
    """The polynomial of an integer expression; ``known`` gives the meaning of names. What is no polynomial
    becomes an opaque symbol, so there always is one."""
    lookup = known if callable(known) else known.get
    number = integer(expr)
    if number is not None:
        return constant(number)
    match expr:
        case Name(text=text):
            found = lookup(text)
            return found if found is not None else symbol(text)
        case Member(base=Name(text=base), name=name, arrow=False):
            found = lookup(f"{base}.{name}")
            return found if found is not None else symbol(f"{base}.{name}")
        case Unary(op="-", operand=operand):
            return -polynomial(operand, lookup)
        case Unary(op="+", operand=operand):
            return polynomial(operand, lookup)
        case Cast(type=kind, operand=operand) if is_integer(kind):
            return polynomial(operand, lookup)
        case Call(callee=Name(text=kind), args=(operand,)) if is_integer(kind):
            return polynomial(operand, lookup)
        case Binary(op="+" | "-" | "*" | "<<" as op, left=left, right=right):
            a, b = polynomial(left, lookup), polynomial(right, lookup)
            if op == "<<":
                shift = b.value
                if shift is not None and 0 <= shift < 31:
                    return a * constant(1 << shift)
            else:
                return a + b if op == "+" else a - b if op == "-" else a * b
    return symbol("{" + _spelled(expr, lookup) + "}")


def _spelled(expr: Expr, lookup: Callable[[str], Poly | None]) -> str:
    """Text of an opaque subexpression with known names written out, so that what it depends on shows."""
    text = emit_expr(expr)

    def written(match: re.Match[str]) -> str:
        found = lookup(match.group())
        return match.group() if found is None else f"({found.text()})"

    return _IDENTIFIER.sub(written, text)
