"""Making a failing case small, so that a person can follow it: sizes first, then values, then memory and seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fsr.contract.model import Contract
from fsr.records import Case, CaseKind

_SIMPLER = ("zeros", "ones", "constant", "uniform", "normal")  # families, the easiest to reason about first


def shrink(case: Case, fails: Callable[[Case], bool], budget: int = 40, contract: Contract | None = None) -> Case:
    """The smallest case found that still fails; ``case`` itself, which is known to fail, when none does.

    Args:
        fails: runs a case; it is never called twice for one case.
        budget: how often ``fails`` may be called.
        contract: gives the smallest legal sizes; without it sizes stay at 1 or more.
    """
    if case.kind is CaseKind.NAMED:
        return case  # its size is the point, and trying others may be dear
    best, tried = case, {case}
    lows = {s.name: s.minimum for s in contract.sizes} if contract else {}
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(best, lows):
            if smaller in tried:
                continue
            if len(tried) > budget:
                return best
            tried.add(smaller)
            if fails(smaller):
                best, progress = smaller, True
                break
    return best


def _smaller(case: Case, lows: dict[str, int]) -> Iterator[Case]:
    """Simpler cases, the boldest first."""
    sizes = case.size_map()
    least = {name: max(lows.get(name, 1), 0) for name in sizes}
    if sum(v > least[n] for n, v in sizes.items()) > 1:
        yield _sized(case, least)
        yield _sized(case, {n: max(v // 2, least[n]) for n, v in sizes.items()})
    for name, value in sorted(sizes.items(), key=lambda item: -item[1]):
        for target in (least[name], max(least[name], 1), value // 2, value - value // 4, value - 1):
            if least[name] <= target < value:
                yield _sized(case, sizes | {name: target})
    at = _SIMPLER.index(case.family) if case.family in _SIMPLER else len(_SIMPLER)
    yield from (_named(replace(case, family=family)) for family in _SIMPLER[:at])
    if case.alignment_bytes != 256:
        yield _named(replace(case, alignment_bytes=256, apart=()))
    if case.aliased:
        yield _named(replace(case, aliased=()))
    if case.seed > 3:
        yield from (_named(replace(case, seed=seed)) for seed in (0, 1))


def _sized(case: Case, sizes: dict[str, int]) -> Case:
    return _named(replace(case, sizes=tuple(sizes.items())))


def _named(case: Case) -> Case:
    name = case.name if case.name.endswith("(shrunk)") else f"{case.name} (shrunk)"
    return replace(case, name=name)
