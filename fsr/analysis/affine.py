"""Integer expressions as polynomials with integer coefficients over symbols.

``row * cols + j`` with ``row = blockIdx.x * blockDim.x + threadIdx.x`` becomes
``blockIdx.x*blockDim.x*cols + threadIdx.x*cols + j``. Symbols are names, built-in members (``threadIdx.x``) and
whatever is no polynomial, as its text (``n / 4``). Arithmetic is that of unbounded integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fsr.analysis.definitions import INTEGER, Definitions
from fsr.source.emit import emit_expr
from fsr.source.form import Binary, Call, Cast, Expr, Literal, Member, Name, OpaqueExpr, Unary
from fsr.source.walk import integer, names_in, walk_expr

Monomial = tuple[str, ...]


@dataclass(frozen=True)
class Affine:
    """A polynomial: coefficient (never 0) by monomial, a monomial being its symbols sorted, () the constant.
    ``names``: every name that a symbol which is no plain name mentions, by symbol."""

    terms: Mapping[Monomial, int]
    inner: Mapping[str, frozenset[str]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Affine) and dict(self.terms) == dict(other.terms)

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return Affine({m: f for m, f in terms.items() if f}, {**self.inner, **other.inner})

    def __neg__(self) -> Affine:
        return Affine({m: -f for m, f in self.terms.items()}, self.inner)

    def __sub__(self, other: Affine) -> Affine:
        return self + -other

    def __mul__(self, other: Affine) -> Affine:
        terms: dict[Monomial, int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                key = tuple(sorted((*a, *b)))
                terms[key] = terms.get(key, 0) + x * y
        return Affine({m: f for m, f in terms.items() if f}, {**self.inner, **other.inner})

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols with a part in the value."""
        return frozenset(s for monomial in self.terms for s in monomial)

    def depends_on(self, names: Iterable[str]) -> bool:
        """Whether any symbol is one of the names, is a member of one (``threadIdx`` of ``threadIdx.x``), or has
        one of them inside."""
        wanted = frozenset(names)
        return any(
            s in wanted or s.split(".")[0] in wanted or bool(self.inner.get(s, frozenset()) & wanted)
            for s in self.symbols
        )

    def coefficient(self, symbol: str) -> Affine | None:
        """What the symbol is multiplied by, when the polynomial is linear in it (0 when it is absent); else None,
        also when the symbol stands inside another one."""
        if any(symbol in inside for s, inside in self.inner.items() if s in self.symbols and s != symbol):
            return None
        terms: dict[Monomial, int] = {}
        for monomial, factor in self.terms.items():
            count = monomial.count(symbol)
            if count > 1:
                return None
            if count == 1:
                terms[tuple(s for s in monomial if s != symbol)] = factor
        return Affine(terms, self.inner)

    def without(self, symbol: str) -> Affine:
        """The polynomial with the symbol set to 0."""
        return Affine({m: f for m, f in self.terms.items() if symbol not in m}, self.inner)

    def value(self) -> int | None:
        """The number it is, or None when it has symbols."""
        return self.terms.get((), 0) if not self.symbols else None


def constant(value: int) -> Affine:
    """The polynomial of a number."""
    return Affine({(): value} if value else {}, {})


def symbol(text: str, inner: frozenset[str] = frozenset()) -> Affine:
    """The polynomial of one symbol."""
    return Affine({(text,): 1}, {text: inner} if inner else {})


def affine(e: Expr, known: Definitions | None = None, constants: Mapping[str, int] | None = None) -> Affine:
    """The polynomial of an integer expression. ``known`` writes locals out; ``constants`` gives values of macros
    and template parameters. Casts between integer types are looked through."""
    whole = known.expand(e) if known is not None else e
    return _affine(whole, constants or {})


def _affine(e: Expr, constants: Mapping[str, int]) -> Affine:
    value = integer(e)
    if value is not None:
        return constant(value)
    match e:
        case Name(text):
            return constant(constants[text]) if text in constants else symbol(text)
        case Member(Name(base), field, False):
            return symbol(f"{base}.{field}")
        case Unary("-", operand):
            return -_affine(operand, constants)
        case Unary("+", operand):
            return _affine(operand, constants)
        case Cast(type_, operand) if INTEGER.fullmatch(type_):
            return _affine(operand, constants)
        case Call(Name(type_), (operand,)) if INTEGER.fullmatch(type_):
            return _affine(operand, constants)
        case Binary("+", left, right):
            return _affine(left, constants) + _affine(right, constants)
        case Binary("-", left, right):
            return _affine(left, constants) - _affine(right, constants)
        case Binary("*", left, right):
            return _affine(left, constants) * _affine(right, constants)
        case Binary("<<", left, Literal() as right) if (shift := integer(right)) is not None and 0 <= shift < 31:
            return _affine(left, constants) * constant(1 << shift)
    return symbol(emit_expr(e), names_in(e) | _memory(e))


def _memory(e: Expr) -> frozenset[str]:
    """A mark for symbols that read memory, so that a caller can tell them: the name ``*``."""
    return frozenset(["*"]) if any(isinstance(x, OpaqueExpr) for x in walk_expr(e)) else frozenset()
