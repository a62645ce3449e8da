"""The cases by which what was lifted is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fsr.computation.computation import Computation
from fsr.computation.expression import PLACES, Fold, distinct
from fsr.contract.flags import fixed_at
from fsr.contract.model import Contract
from fsr.lifting.sampling import checked_sizes, is_narrow
from fsr.records import Case
from fsr.testgen.families import among

_FAMILIES = ("normal", "uniform", "tripled", "negated")
_NARROW = ("uniform", "negated", "normal")
_TIED = among((0.25, 0.5, 1.0, 2.0))[0]


def usual_cases(contract: Contract, watched: Sequence[Mapping[str, int]], *, part: bool) -> list[Case]:
    """Every family at the first sizes that were not watched, ordinary values at the others. ``part``: two families
    at the sizes watched, of which most elements were not looked at."""
    own = [fixed_at(contract, w)[1] for w in watched]
    if part:
        return [Case("lifted", tuple(own[0].items()), family, 1001) for family in _FAMILIES[:2]]
    sizes = checked_sizes(contract, own)
    named = [("normal", s) for s in sizes] + [(family, s) for family in _FAMILIES[1:] for s in sizes[:1]]
    return [Case("lifted", tuple(s.items()), family, 1001 + n) for n, (family, s) in enumerate(named)]


def narrow_cases(cases: Sequence[Case]) -> list[Case]:
    """Those at sizes of an element or a few again, with other values: so few take one side of a branch by chance."""
    narrow = [c.sizes for c in cases if any(is_narrow(length) for _, length in c.sizes)]
    named = [(family, sizes) for family in _NARROW for sizes in narrow]
    return [Case("narrow", sizes, family, 2001 + n) for n, (family, sizes) in enumerate(named)]


def tied_cases(c: Computation, cases: Sequence[Case]) -> list[Case]:
    """Where a computation tells the place of an extreme, the same sizes with few values: which one of equals, those
    of one thread or of several, no others show."""
    folds = (e for s in c.statements if s.value is not None for e in distinct(s.value) if isinstance(e, Fold))
    if not any(fold.op in PLACES for fold in folds):
        return []
    long = dict.fromkeys(c.sizes for c in cases if not any(is_narrow(length) for _, length in c.sizes))
    return [Case("tied", sizes, _TIED, 3001 + n) for n, sizes in enumerate(long)]
