"""Cases of a few elements, and those that go through one size."""

from __future__ import annotations

from fsr.contract.model import Argument, Contract, Size
from fsr.records import Plan, Role
from fsr.testgen.fitting import elements
from fsr.testgen.small_worlds import SMALL, SWEPT, small_cases
from fsr.testgen.values import build

ROWS, BINS, WIDE = Size("rows", 1, 4096, (256,)), Size("bins", 2, 700, (512,)), Size("fixed", 3, 3, (3,))
X = Argument("x", "float32", Role.INOUT, ("rows", "bins"))
CONTRACT = Contract("k", (ROWS, BINS, WIDE), (X,), Plan(()))
ROOM = 1 << 14


def test_all_is_few_and_each_size_is_gone_through() -> None:
    cases = small_cases(CONTRACT, 1, ROOM)
    few, swept = cases[:SMALL], cases[SMALL:]
    assert all(max(case.size_map().values()) < 12 for case in few)
    assert len({case.sizes for case in few}) > SMALL // 2
    assert len({case.family for case in few}) > 5
    for name, most in (("rows", 1024), ("bins", 700)):
        values = {case.size_map()[name] for case in swept if case.name.startswith(f"few but {name} ")}
        assert SWEPT // 2 < len(values) <= SWEPT + 1
        assert max(values) == most
        assert min(values) > 9
    assert all(elements(CONTRACT, case.size_map()) <= ROOM for case in cases)
    assert all(case.size_map()["fixed"] == 3 for case in cases)
    assert cases == small_cases(CONTRACT, 1, ROOM) != small_cases(CONTRACT, 2, ROOM)


def test_each_has_values_of_its_own() -> None:
    first, *others = (build(CONTRACT, case).arrays["x"].tobytes() for case in small_cases(CONTRACT, 1, ROOM)[:10])
    assert first not in others


def test_there_are_none_where_nothing_varies() -> None:
    assert not small_cases(Contract("k", (WIDE,), (X,), Plan(())), 1, ROOM)
