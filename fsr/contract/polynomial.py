"""Integer polynomials over named atoms: what an index is, in terms of thread indices, loop variables and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Monomial = tuple[str, ...]  # sorted atom names; () is the constant


@dataclass(frozen=True, slots=True)
class Poly:
    """A sum of coefficient times monomial; zero coefficients are not kept."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @classmethod
    def of(cls, terms: Mapping[Monomial, int]) -> Poly:
        """From a mapping, in canonical order."""
        return cls(tuple(sorted((m, c) for m, c in terms.items() if c)))

    @classmethod
    def number(cls, value: int) -> Poly:
        """A constant."""
        return cls.of({(): value})

    @classmethod
    def atom(cls, name: str) -> Poly:
        """A single atom."""
        return cls.of({(name,): 1})

    def __add__(self, other: Poly) -> Poly:
        terms = dict(self.terms)
        for monomial, count in other.terms:
            terms[monomial] = terms.get(monomial, 0) + count
        return Poly.of(terms)

    def __neg__(self) -> Poly:
        return Poly(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    def __mul__(self, other: Poly) -> Poly:
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in other.terms:
                key = tuple(sorted(m1 + m2))
                terms[key] = terms.get(key, 0) + c1 * c2
        return Poly.of(terms)

    @property
    def constant(self) -> int | None:
        """The value when it is a constant."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == () else None

    @property
    def single(self) -> str | None:
        """The atom when it is one atom alone."""
        one = len(self.terms) == 1 and len(self.terms[0][0]) == 1 and self.terms[0][1] == 1
        return self.terms[0][0][0] if one else None

    def atoms(self) -> frozenset[str]:
        """All atoms in it."""
        return frozenset(a for m, _ in self.terms for a in m)

    def over(self, other: Poly) -> Poly | None:
        """The exact quotient by a single-term polynomial; None when it does not divide every term."""
        if len(other.terms) != 1:
            return None
        monomial, count = other.terms[0]
        found: dict[Monomial, int] = {}
        for own, own_count in self.terms:
            left = list(own)
            for atom in monomial:
                if atom not in left:
                    return None
                left.remove(atom)
            if own_count % count:
                return None
            found[tuple(left)] = own_count // count
        return Poly.of(found)

    def coefficient(self, atom: str) -> Poly:
        """What multiplies the first power of ``atom``."""
        found = {tuple(x for x in m if x != atom): c for m, c in self.terms if m.count(atom) == 1}
        return Poly.of(found)

    def replace(self, old: Poly, new: Poly) -> Poly:
        """With the one- or two-term sum ``old`` taken out and ``new`` put in, as often as it fits whole."""
        lead, lead_count = old.terms[0]
        factor_of = {}
        for m, c in self.terms:
            rest = _without(m, lead)
            if rest is not None:
                factor_of[rest] = c // lead_count
        result = self
        for rest, count in factor_of.items():
            scaled = old * Poly.of({rest: count})
            have = dict(self.terms)
            if all(have.get(m) == c for m, c in scaled.terms):
                result = result - scaled + new * Poly.of({rest: count})
        return result

    def text(self) -> str:
        """As a size expression; positive terms first."""
        parts: list[str] = []
        for monomial, count in sorted(self.terms, key=lambda t: (t[1] < 0, -len(t[0]), t[0])):
            factors = ([] if abs(count) == 1 and monomial else [str(abs(count))]) + list(monomial)
            sign = "- " if count < 0 else "+ "
            parts.append((sign if parts or count < 0 else "") + " * ".join(factors))
        return (
            " ".join(parts).removeprefix("+ ").replace("- ", "-", 1)
            if parts and parts[0][0] == "-"
            else (" ".join(parts) or "0")
        )


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    left = list(monomial)
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
