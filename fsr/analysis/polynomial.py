"""Integer index expressions as polynomials over symbols: what proves that an access is affine, and coalesced.

A symbol is a name (``row``, ``cols``), a built-in (``threadIdx.x``), or the text in braces of a subexpression
that is no polynomial (``{i / n}``). Casts between integer types are looked through: where the original does not
overflow, neither does its polynomial.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fsr.source.emit import emit_expr
from fsr.source.form import Binary, Call, Cast, Expr, Literal, Member, Name, Unary

Monomial = tuple[str, ...]
INTEGER = re.compile(
    r"(?:const\s+)?(?:(?:unsigned|signed|short|int|long|char|size_t|ptrdiff_t|u?int(?:8|16|32|64)_t)\s*)+(?:\s+const)?$"
)
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Poly:
    """A sum of integer multiples of products of symbols; ``terms`` sorted, without zero coefficients."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    def __add__(self, other: Poly) -> Poly:
        return _collect([*self.terms, *other.terms])

    def __sub__(self, other: Poly) -> Poly:
        return self + other.times(constant(-1))

    def times(self, other: Poly) -> Poly:
        """The product."""
        return _collect([(tuple(sorted(a + b)), x * y) for a, x in self.terms for b, y in other.terms])

    def value(self) -> int | None:
        """The number it is, None when symbols remain."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () and len(self.terms) == 1 else None

    def names(self) -> frozenset[str]:
        """Every identifier that the value depends on, those inside opaque symbols too (``threadIdx.x`` is one)."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for symbol in monomial:
                found.update(re.findall(r"[A-Za-z_]\w*(?:\.\w+)?", symbol) if symbol[0] == "{" else [symbol])
        return frozenset(found)

    def coefficient(self, symbol: str) -> Poly | None:
        """The factor of ``symbol`` when the polynomial is linear in it (0 when absent); None when it is not."""
        if any(m.count(symbol) > 1 or any(s != symbol and symbol in _inner(s) for s in m) for m, _ in self.terms):
            return None
        return _collect([(_without(m, symbol), x) for m, x in self.terms if symbol in m])

    def without(self, symbol: str) -> Poly:
        """The terms that do not hold ``symbol`` as a factor."""
        return _collect([(m, x) for m, x in self.terms if symbol not in m])

    def text(self) -> str:
        """As a C expression."""
        if not self.terms:
            return "0"
        parts = []
        for monomial, x in self.terms:
            factors = [s[1:-1] if s[0] == "{" else s for s in monomial]
            factors = [f"({f})" if not re.fullmatch(r"[\w.]+", f) else f for f in factors]
            if x != 1 or not factors:
                factors.insert(0, str(x) if x >= 0 else f"({x})")
            parts.append(" * ".join(factors))
        return " + ".join(parts)


def _without(monomial: Monomial, symbol: str) -> Monomial:
    at = monomial.index(symbol)
    return monomial[:at] + monomial[at + 1 :]


def _inner(symbol: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*(?:\.\w+)?", symbol) if symbol[0] == "{" else []


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Poly:
    sums: dict[Monomial, int] = {}
    for monomial, x in terms:
        sums[monomial] = sums.get(monomial, 0) + x
    return Poly(tuple(sorted((m, x) for m, x in sums.items() if x)))


def constant(value: int) -> Poly:
    """The polynomial that is a number."""
    return _collect([((), value)])


def symbol(name: str) -> Poly:
    """The polynomial that is one symbol."""
    return Poly((((name,), 1),))


def integer_literal(text: str) -> int | None:
    """The value of an integer literal with any suffix; None for anything else."""
    body = text.lower().rstrip("ul").replace("'", "")
    try:
        return int(body, 0) if not re.fullmatch(r"0\d+", body) else int(body, 8)
    except ValueError:
        return None


def polynomial(expr: Expr, known: Mapping[str, Poly] | Callable[[str], Poly | None]) -> Poly:
    """The polynomial of an integer expression; ``known`` gives the meaning of names. What is no polynomial
    becomes an opaque symbol, so there always is one."""
    lookup = known if callable(known) else known.get
    match expr:
        case Literal(text=text):
            number = integer_literal(text)
            return constant(number) if number is not None else symbol("{" + text + "}")
        case Name(text=text):
            found = lookup(text)
            return found if found is not None else symbol(text)
        case Member(base=Name(text=base), name=name, arrow=False):
            found = lookup(f"{base}.{name}")
            return found if found is not None else symbol(f"{base}.{name}")
        case Unary(op="-", operand=operand):
            return polynomial(operand, lookup).times(constant(-1))
        case Unary(op="+", operand=operand):
            return polynomial(operand, lookup)
        case Cast(type=kind, operand=operand) if INTEGER.match(kind):
            return polynomial(operand, lookup)
        case Call(callee=Name(text=kind), args=(operand,)) if INTEGER.match(kind):
            return polynomial(operand, lookup)
        case Binary(op="+" | "-" | "*" | "<<" as op, left=left, right=right):
            a, b = polynomial(left, lookup), polynomial(right, lookup)
            if op == "<<":
                shift = b.value()
                if shift is not None and 0 <= shift < 31:
                    return a.times(constant(1 << shift))
            else:
                return a + b if op == "+" else a - b if op == "-" else a.times(b)
    return symbol("{" + _spelled(expr, lookup) + "}")


def _spelled(expr: Expr, lookup: Callable[[str], Poly | None]) -> str:
    """Text of an opaque subexpression with known names written out, so that what it depends on shows."""
    text = emit_expr(expr)

    def written(match: re.Match[str]) -> str:
        found = lookup(match.group())
        return match.group() if found is None else f"({found.text()})"

    return re.sub(r"[A-Za-z_]\w*(?:\.\w+)?", written, text)
