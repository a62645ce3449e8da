"""Cases that differ in the numbers that callers set: thresholds, gains, limits, each a number of its own a case.

All of an array is compared with one threshold, and thresholds that show a fault may be few: that a quotient is not
exact any more shows where a pixel's saturation is just the limit, at one limit in ten. Other cases are fewer, and have
mostly the ends of what is allowed. Here some scalars have these, so that what one of them decides is not decided by
another before.
"""

from __future__ import annotations

from fsr.contract.model import Contract
from fsr.records import Case, CaseKind, Role
from fsr.testgen.cases import new_case, stream
from fsr.testgen.fitting import clip, fit
from fsr.testgen.scalars import ALL_DRAWN, SOME_SPECIAL, special_turn

MANY = 32
ELEMENTS = 1 << 16
FAMILIES = ("uniform", "normal")


def dialled_cases(contract: Contract, seed: int, max_elements: int) -> list[Case]:
    """Cases of ordinary values and sizes where a scalar is drawn; none where there is no such scalar."""
    if not any(a.role is Role.SCALAR and a.value is None for a in contract.args):
        return []
    rng, most = stream("dialled", contract, seed), min(ELEMENTS, max_elements)
    found = list[Case]()
    while len(found) < MANY:
        drawn = {s.name: clip(s, 20 + int(rng.integers(0, 200))) for s in contract.sizes}
        family = FAMILIES[len(found) % len(FAMILIES)]
        case = new_case(f"dialled {len(found)}", fit(contract, drawn, most), family, rng, CaseKind.HELD_OUT)
        if special_turn(case) in (SOME_SPECIAL, *(ALL_DRAWN if len(found) % 3 == 0 else ())):
            found.append(case)
    return found
