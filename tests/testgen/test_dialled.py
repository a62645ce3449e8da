"""Cases that differ in the numbers that callers set."""

from __future__ import annotations

from dataclasses import replace

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.records import Plan, Role
from fsr.testgen.dialled import ELEMENTS, MANY, dialled_cases
from fsr.testgen.fitting import elements
from fsr.testgen.values import build

LIMIT = Argument("limit", "int32", Role.SCALAR, constraints=Constraints(low="0", high="255"))
GAIN = Argument("gain", "float32", Role.SCALAR, constraints=Constraints(low="0", high="2"))
X = Argument("x", "uint8", Role.INOUT, ("n", "n"))
CONTRACT = Contract("k", (Size("n", 1, 4096, (4096,)),), (X, LIMIT, GAIN), Plan(()))


def test_a_limit_has_many_values_and_some_scalars_stay_at_their_ends() -> None:
    cases = dialled_cases(CONTRACT, 1, 1 << 18)
    assert len(cases) == MANY
    scalars = [build(CONTRACT, case).scalars for case in cases]
    assert len({s["limit"].value for s in scalars}) > MANY // 3
    assert any(s["limit"].value in (0, 255) and s["gain"].value not in (0, 1, 2) for s in scalars)
    assert all(elements(CONTRACT, case.size_map()) <= ELEMENTS for case in cases)
    assert cases == dialled_cases(CONTRACT, 1, 1 << 18)


def test_there_are_none_where_callers_set_nothing() -> None:
    fixed = replace(LIMIT, value="n")
    assert not dialled_cases(replace(CONTRACT, args=(X, fixed)), 1, 1 << 18)
