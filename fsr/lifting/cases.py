"""The cases by which what was lifted is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fsr.contract.flags import fixed_at
from fsr.contract.model import Contract
from fsr.lifting.sampling import checked_sizes, is_narrow
from fsr.records import Case

_FAMILIES = ("normal", "uniform", "tripled", "negated")
_NARROW = ("uniform", "negated", "normal")


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
