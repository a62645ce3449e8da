"""Cases of many elements with ordinary values."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.records import CaseKind, Plan, Role
from fsr.testgen.fitting import elements
from fsr.testgen.large import bulk_cases
from fsr.testgen.values import build

MOST = 1 << 22
SIZES = (Size("plane", 0, 2, (0,)), Size("d", 1, 64, (1,)), Size("w", 1, 4096, (4096,)), Size("h", 1, 4096, (4096,)))
ARGS = (
    Argument("x", "float64", Role.IN, ("d", "h", "w")),
    Argument("y", "int32", Role.OUT, ("h", "w")),
    Argument("gain", "float32", Role.SCALAR, constraints=Constraints(low="0", high="2")),
)
CONTRACT = Contract("k", SIZES, ARGS, Plan(()))


def threads(sizes: Mapping[str, int]) -> int:
    """A thread an element of a plane of one of three kinds."""
    w, h, d = sizes["w"], sizes["h"], sizes["d"]
    return (w * h, d * h, w * d)[sizes["plane"]]


def test_most_threads_write_most_elements() -> None:
    for seed in range(3):
        found = bulk_cases(CONTRACT, seed, MOST, threads)
        assert {c.kind for c in found} == {CaseKind.LARGE}
        for sizes in (c.size_map() for c in found):
            assert elements(CONTRACT, sizes) <= MOST
            assert min(threads(sizes), math.prod((sizes["w"], sizes["h"]))) > MOST // 8
        assert all(build(CONTRACT, c).scalars["gain"].value not in (0, 1, 2) for c in found)


def test_there_are_none_where_sizes_are_short() -> None:
    short = Contract("k", (Size("w", 1, 64, (64,)),), (Argument("y", "int32", Role.OUT, ("w",)),), Plan(()))
    assert not bulk_cases(short, 1, MOST, lambda sizes: sizes["w"])
