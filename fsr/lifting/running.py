"""Values that a running maximum decides on: what either side of the branch does is one sum of powers."""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol


class Terms(Protocol):
    """What is needed of a graph."""

    terms: list[tuple[Any, ...]]

    def list_of(self, op: str, parts: list[int]) -> int:
        """An associative operation."""

    def make(self, *term: Any) -> int:
        """The number of a term."""

    def op(self, name: str, *args: int) -> int:
        """An operation on terms."""

    def negated(self, a: int) -> int:
        """Minus a term."""

    def exponential(self, a: int) -> int:
        """e to a term."""

    def exponent(self, e: int) -> int | None:
        """What e is raised to in a power of it."""

    def const(self, value: float, dtype: str) -> int:
        """A literal."""

    def is_value(self, e: int, value: float) -> bool:
        """Whether a term is that literal."""


Summand = tuple[tuple[int, ...], int, bool]  # factors that are no powers of e, the whole exponent, whether it is double


def rescaled(g: Terms, condition: tuple[Any, ...], a: int, b: int) -> int | None:
    """``s * exp(m - x) + exp(x - x)`` where x > m, else ``s + exp(x - m)``: with M = max(m, x) both are
    ``s * exp(m - M) + exp(x - M)``. None for sides that are no such sums."""
    if condition[0] not in ("gt", "ge"):
        return None
    _, new, old = condition
    if not any(_has_power(g, e) for e in (a, b)):
        return None
    sides = [_summands(g, a, new), _summands(g, b, old)]
    if sides[0] != sides[1]:
        return None
    low = g.negated(g.list_of("max", [new, old]))
    total = []
    for (factors, exponent, wide), count in sides[0].items():
        power = g.exponential(g.list_of("sum", [exponent, low]))
        power = g.op("float64", power) if wide else power
        total += [g.list_of("prod", [power, *factors])] * count
    return g.list_of("sum", total)


def joined(g: Terms, flat: list[int]) -> int | None:
    """A sum in which selects by ``a > b`` say which of two sums has the larger maximum (as shuffles of pairs do): one
    sum of powers, as :func:`rescaled`. None for another."""
    both = _both(g, flat)
    if both is not None:
        return g.list_of("sum", both)
    factors = [f for k in flat for f in _parts(g, k, "prod")]
    conditions = [g.terms[g.terms[f][1]] for f in factors if g.terms[f][0] == "select"]
    if not conditions or conditions[0][0] not in ("gt", "ge") or not _chosen_powers(g, factors):
        return None
    condition = conditions[0]
    sides = [g.list_of("sum", [_side(g, k, condition, holds) for k in flat]) for holds in (True, False)]
    return rescaled(g, condition, sides[0], sides[1])


def _both(g: Terms, flat: list[int]) -> list[int] | None:
    """A sum in which a power of the larger and one of the smaller of two values stand: powers of the two."""
    for e in flat:
        for f in _parts(g, e, "prod"):
            power = g.exponent(f)
            for least in _parts(g, power, "sum") if power is not None else ():
                if g.terms[least][0] != "min" or len(g.terms[least][1]) != 2:
                    continue
                one, other = g.terms[least][1]
                partner = _with_power(g, e, f, least, g.list_of("max", [one, other]))
                if partner in flat and partner != e:
                    rest = [k for k in flat if k != e]
                    rest.remove(partner)
                    return [*rest, *(_with_power(g, e, f, least, k) for k in (one, other))]
    return None


def _with_power(g: Terms, e: int, factor: int, old: int, new: int) -> int:
    """A product with another term in the exponent of a factor."""
    power = g.exponent(factor)
    assert power is not None
    inner = g.exponential(g.list_of("sum", [new if k == old else k for k in _parts(g, power, "sum")]))
    inner = g.op("float64", inner) if g.terms[factor][0] == "float64" else inner
    return g.list_of("prod", [inner if k == factor else k for k in _parts(g, e, "prod")])


def _side(g: Terms, e: int, condition: tuple[Any, ...], holds: bool) -> int:
    """A product where the condition holds, or where not."""
    _, new, old = condition
    most, least = (g.list_of(op, [new, old]) for op in ("max", "min"))
    known = {most: new if holds else old, least: old if holds else new}
    known |= {g.negated(a): g.negated(b) for a, b in known.items()}
    found = []
    for f in _parts(g, e, "prod"):
        x, power = g.terms[f], g.exponent(f)
        if x[0] == "select" and g.terms[x[1]] == condition:
            found.append(int(x[2 if holds else 3]))
        elif power is not None:
            inner = g.exponential(g.list_of("sum", [known.get(k, k) for k in _parts(g, power, "sum")]))
            found.append(g.op("float64", inner) if x[0] == "float64" else inner)
        else:
            found.append(f)
    return g.list_of("prod", found)


def _parts(g: Terms, e: int, op: str) -> list[int]:
    return list(g.terms[e][1]) if g.terms[e][0] == op else [e]


def _has_power(g: Terms, e: int) -> bool:
    return any(g.exponent(f) is not None for k in _parts(g, e, "sum") for f in _parts(g, k, "prod"))


def _chosen_powers(g: Terms, factors: list[int]) -> bool:
    """Whether a power stands among factors, or in what selects among them may choose: without one all that sides
    would be compared for is in vain, and of selects in selects that takes twice as long for each."""
    todo, seen = list(factors), set(factors)
    while todo:
        f = todo.pop()
        if g.exponent(f) is not None:
            return True
        branches = g.terms[f][2:4] if g.terms[f][0] == "select" else ()
        found = {x for e in branches for k in _parts(g, e, "sum") for x in _parts(g, k, "prod")}
        todo += found - seen
        seen |= found
    return False


def _summands(g: Terms, e: int, top: int) -> Counter[Summand]:
    """The terms of a sum, each times e to ``top``."""
    found: Counter[Summand] = Counter()
    for k in _parts(g, e, "sum"):
        if g.is_value(k, 0.0):
            continue
        exponents, rest = [top], list[int]()
        wide = g.terms[k][0] == "const" and g.terms[k][2] == "float64"
        for f in _parts(g, k, "prod"):
            power = g.exponent(f)
            if power is not None:
                exponents.append(power)
                wide = wide or g.terms[f][0] == "float64"
            elif not g.is_value(f, 1.0):
                rest.append(f)
        found[tuple(sorted(rest)), g.list_of("sum", exponents), wide] += 1
    return found


def clamped(g: Terms, x: tuple[Any, ...], a: int, b: int) -> int | None:
    """``0 > v ? 0 : min(v, 9)`` and its like: the larger of both, or the smaller. ``x``: the condition. None of
    anything else."""
    if x[0] not in ("gt", "ge"):
        return None
    for limit, rest, low in ((a, b, x[1] == a), (b, a, x[2] == b)):
        value = x[2] if x[1] == limit else x[1] if x[2] == limit else None
        op, other = ("max", "min") if low else ("min", "max")
        if value is None or g.terms[rest][0] != other or value not in g.terms[rest][1]:
            continue
        literals = [g.terms[k] for k in (limit, *g.terms[rest][1]) if k != value]
        if all(k[0] in ("const", "int") for k in literals):
            order = [k[1] for k in literals]
            if order[0] == (min if low else max)(order):
                return g.list_of(op, [a, b])
    return None


def added_to(g: Terms, c: int, a: int, b: int) -> int | None:
    """``c ? s + x : s`` where s is a sum of such: ``s + (c ? x : 0)``, so that all that is added stands side by side.
    None of anything else."""
    more, less = (g.terms[k][1] if g.terms[k][0] == "sum" else (k,) for k in (a, b))
    turned = len(more) < len(less)
    more, less = (less, more) if turned else (more, less)
    rest = list(more)
    for k in less:
        if k not in rest:
            return None
        rest.remove(k)
    zero = next((z for k in less if (z := _nothing_of(g, k)) is not None), None)
    if not rest or zero is None:
        return None
    new = g.list_of("sum", rest)
    return g.list_of("sum", [*less, g.make("select", c, *((zero, new) if turned else (new, zero)))])


def _nothing_of(g: Terms, e: int) -> int | None:
    """The nought of a term that is something where a condition holds and nothing elsewhere, or the other way round;
    None of another."""
    x = g.terms[e]
    sides = (x[3], x[2]) if x[0] == "select" else ()
    return next((k for k in sides if g.terms[k][0] in ("const", "int") and g.terms[k][1] == 0), None)
